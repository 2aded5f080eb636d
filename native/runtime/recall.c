/* Recording by memory: the geometry of a result depends on that of the arguments alone, so what a rule has said once for an operator and such
 * arguments holds for the next call. The first call goes through the dispatcher; `learn` reads what it recorded, `recall` makes the like of it.
 */
#include "pipeline.h"

#define MOST_REMEMBERED 4096

/* What is remembered of a call that is recorded (CALL), and of a view (VIEW). */
enum { CALL_SPEC, CALL_ARGS, CALL_SHAPE, CALL_STRIDE, CALL_DTYPE, CALL_NBYTES, CALL_SIZE };
enum { VIEW_SHAPE, VIEW_STRIDE, VIEW_OFFSET, VIEW_DTYPE, VIEW_SIZE };

static int is_pending(PyObject *storage)
{
    PyObject *value = SLOT(storage, P.storage_value);
    return SLOT(storage, P.storage_writes) != P.zero || (SLOT(value, P.value_payload) == Py_None && SLOT(value, P.value_error) == Py_None);
}

/* The payload of a tensor on the CPU: an array, or one that this recorder has still to compute (borrowed); NULL declines. */
static PyObject *payload_of(PyObject *recorder, PyObject *tensor)
{
    PyObject *data = SLOT(tensor, S.at_data);
    if (data == NULL || is_array(data)) {
        return data;
    }
    if (Py_TYPE(data) != P.pending || SLOT(SLOT(data, P.pending_storage), P.storage_device) != S.cpu) {
        return NULL;
    }
    if (is_pending(SLOT(data, P.pending_storage))) {
        return SLOT(SLOT(SLOT(data, P.pending_storage), P.storage_value), P.value_recorder) == recorder ? data : NULL;
    }
    PyObject *settled = SLOT(data, P.pending_settled);
    if (settled == NULL || !is_array(settled)) {
        return NULL;
    }
    set_slot(tensor, S.at_data, Py_NewRef(settled));
    return settled;
}

static int same_tuple(PyObject *a, PyObject *b)
{
    return a == b || PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

/* ------------------------------------------------------------------------------------------------------------------- key */

static PyObject *strides_of(PyArrayObject *array)
{
    npy_intp strides[MAX_DIMS];
    int ndim = PyArray_NDIM(array);
    npy_intp item = PyArray_ITEMSIZE(array);
    if (ndim > MAX_DIMS || PyArray_SIZE(array) == 0) {
        return NULL;
    }
    for (int d = 0; d < ndim; d++) {
        strides[d] = PyArray_STRIDE(array, d) / item;
    }
    return tuple_of(ndim, strides);
}

/* Adds shape, stride and dtype of a tensor. */
static int key_of_tensor(PyObject *key, Py_ssize_t *at, PyObject *recorder, PyObject *tensor)
{
    PyObject *data = payload_of(recorder, tensor), *shape, *stride;
    if (data == NULL) {
        return 0;
    }
    if (is_array(data)) {
        PyArrayObject *array = (PyArrayObject *)data;
        stride = strides_of(array);
        shape = stride == NULL ? NULL : tuple_of(PyArray_NDIM(array), PyArray_DIMS(array));
        if (shape == NULL) {
            Py_XDECREF(stride);
            PyErr_Clear();
            return 0;
        }
    }
    else {
        shape = Py_NewRef(SLOT(data, P.pending_shape));
        stride = Py_NewRef(SLOT(data, P.pending_stride));
    }
    PyTuple_SET_ITEM(key, (*at)++, shape);
    PyTuple_SET_ITEM(key, (*at)++, stride);
    PyTuple_SET_ITEM(key, (*at)++, Py_NewRef(SLOT(tensor, S.at_dtype)));
    return 1;
}

/* Whether a value says all about itself by type and equality. */
static int is_plain_value(PyObject *value)
{
    if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) ||
        Py_TYPE(value) == Py_TYPE(S.float32)) {
        return 1;
    }
    if (!PyTuple_Check(value)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(value, i))) {
            return 0;
        }
    }
    return 1;
}

PyObject *recall_key(PyObject *recorder, const Recordable *call, PyObject *const *bound)
{
    PyObject *key = PyTuple_New(1 + 3 * call->params);
    if (key == NULL) {
        PyErr_Clear();
        return NULL;
    }
    Py_ssize_t at = 0;
    PyTuple_SET_ITEM(key, at++, Py_NewRef(call->op));
    for (int i = 0; i < call->params; i++) {
        PyObject *value = bound[i];
        if ((call->roles[i] == 'T' || call->roles[i] == 't') && is_recorded_tensor(value)) {
            if (!key_of_tensor(key, &at, recorder, value)) {
                Py_DECREF(key);
                return NULL;
            }
            continue;
        }
        if (!is_plain_value(value)) {
            Py_DECREF(key);
            return NULL;
        }
        PyTuple_SET_ITEM(key, at++, Py_NewRef((PyObject *)Py_TYPE(value)));
        PyTuple_SET_ITEM(key, at++, Py_NewRef(value));
        PyTuple_SET_ITEM(key, at++, Py_NewRef(Py_None));
    }
    return key;
}

/* ---------------------------------------------------------------------------------------------------------------- learning */

static void remember(PyObject *key, PyObject *found)
{
    if (found != NULL) {
        if (PyDict_GET_SIZE(P.specs) >= MOST_REMEMBERED) {
            PyDict_Clear(P.specs);
        }
        if (PyDict_SetItem(P.specs, key, found) < 0) {
            PyErr_Clear();
        }
        Py_DECREF(found);
    }
    PyErr_Clear();
}

static void learn_call(PyObject *recorder, const Recordable *call, PyObject *key, PyObject *const *bound, PyObject *entry)
{
    PyObject *entries = SLOT(recorder, P.recorder_entries), *args = SLOT(entry, P.entry_args);
    if (SLOT(entry, P.entry_op) != call->op || SLOT(entry, P.entry_form) != P.run || PyList_GET_SIZE(entries) == 0 ||
        PyList_GET_ITEM(entries, PyList_GET_SIZE(entries) - 1) != entry || PyTuple_GET_SIZE(args) != call->params) {
        return;
    }
    if (call->fast != NULL) {
        set_slot(entry, P.entry_fast, Py_NewRef(call->fast));
    }
    PyObject *kept = PyTuple_New(call->params);
    PyObject *nbytes = kept == NULL ? NULL : PyObject_CallMethod(entry, "nbytes", NULL);
    if (nbytes == NULL) {
        Py_XDECREF(kept);
        PyErr_Clear();
        return;
    }
    for (int i = 0; i < call->params; i++) {
        PyTuple_SET_ITEM(kept, i, Py_NewRef(is_recorded_tensor(bound[i]) ? Py_None : PyTuple_GET_ITEM(args, i)));
    }
    remember(key, Py_BuildValue("(ONOOON)", SLOT(entry, P.entry_spec), kept, SLOT(entry, P.value_shape), SLOT(entry, P.value_stride),
                                SLOT(entry, P.value_dtype), nbytes));
}

static void learn_view(PyObject *key, PyObject *source, PyObject *data)
{
    Py_ssize_t from, to;
    if (SLOT(source, P.pending_storage) != SLOT(data, P.pending_storage) || !as_index(SLOT(source, P.pending_offset), &from) ||
        !as_index(SLOT(data, P.pending_offset), &to)) {
        return;
    }
    remember(key, Py_BuildValue("(OOnO)", SLOT(data, P.pending_shape), SLOT(data, P.pending_stride), to - from, SLOT(data, P.pending_dtype)));
}

void recall_learn(PyObject *recorder, const Recordable *call, PyObject *key, PyObject *const *bound, PyObject *result)
{
    PyObject *data = Py_TYPE(result) == S.tensor ? SLOT(result, S.at_data) : NULL;
    if (data == NULL || Py_TYPE(data) != P.pending) {
        return;
    }
    PyObject *value = SLOT(SLOT(data, P.pending_storage), P.storage_value);
    if (call->is_view) {
        PyObject *source = SLOT(bound[0], S.at_data);
        if (source != NULL && Py_TYPE(source) == P.pending && SLOT(data, P.pending_dtype) == SLOT(source, P.pending_dtype)) {
            learn_view(key, source, data);
        }
    }
    else if (Py_TYPE(value) == P.entry) {
        learn_call(recorder, call, key, bound, value);
    }
}

/* --------------------------------------------------------------------------------------------------------------- recalling */

/* What an entry keeps of a tensor: the value, a window into it, or a tensor of its own. */
static PyObject *operand_of(PyObject *recorder, PyObject *tensor)
{
    PyObject *data = payload_of(recorder, tensor);
    if (data == NULL) {
        return NULL;
    }
    if (is_array(data)) {
        return make_tensor(Py_NewRef(data), SLOT(tensor, S.at_dtype));
    }
    PyObject *value = SLOT(SLOT(data, P.pending_storage), P.storage_value);
    if (SLOT(data, P.pending_offset) == P.zero && SLOT(data, P.pending_dtype) == SLOT(value, P.value_dtype) &&
        same_tuple(SLOT(data, P.pending_shape), SLOT(value, P.value_shape)) && same_tuple(SLOT(data, P.pending_stride), SLOT(value, P.value_stride))) {
        return Py_NewRef(value);
    }
    PyObject *made = P.window->tp_alloc(P.window, 0);
    if (made != NULL) {
        SLOT(made, P.window_value) = Py_NewRef(value);
        SLOT(made, P.window_shape) = Py_NewRef(SLOT(data, P.pending_shape));
        SLOT(made, P.window_stride) = Py_NewRef(SLOT(data, P.pending_stride));
        SLOT(made, P.window_dtype) = Py_NewRef(SLOT(data, P.pending_dtype));
        SLOT(made, P.window_offset) = Py_NewRef(SLOT(data, P.pending_offset));
    }
    return made;
}

static PyObject *recall_call(PyObject *recorder, const Recordable *call, PyObject *known, PyObject *const *bound, int *history)
{
    PyObject *kept = PyTuple_GET_ITEM(known, CALL_ARGS);
    Py_ssize_t nbytes;
    PyObject *args = PyTuple_New(call->params);
    for (int i = 0; args != NULL && i < call->params; i++) {
        PyObject *operand;
        if (is_recorded_tensor(bound[i])) {
            operand = operand_of(recorder, bound[i]);
            *history |= may_have_history(bound[i]);
        }
        else {
            operand = Py_NewRef(PyTuple_GET_ITEM(kept, i));
        }
        if (operand == NULL) {
            Py_CLEAR(args);
            break;
        }
        PyTuple_SET_ITEM(args, i, operand);
    }
    if (args == NULL || !as_index(PyTuple_GET_ITEM(known, CALL_NBYTES), &nbytes) || !recorder_has_room(recorder, nbytes)) {
        Py_XDECREF(args);
        return NULL;
    }
    PyObject *entry = make_entry(recorder, call->op, args, call->fast, PyTuple_GET_ITEM(known, CALL_SPEC), PyTuple_GET_ITEM(known, CALL_SHAPE),
                                 PyTuple_GET_ITEM(known, CALL_STRIDE), PyTuple_GET_ITEM(known, CALL_DTYPE));
    return entry == NULL ? NULL : append_entry(recorder, entry);
}

static PyObject *recall_view(PyObject *recorder, PyObject *known, PyObject *source)
{
    PyObject *data = payload_of(recorder, source);
    Py_ssize_t from, step;
    if (data == NULL || is_array(data) || !as_index(SLOT(data, P.pending_offset), &from) || !as_index(PyTuple_GET_ITEM(known, VIEW_OFFSET), &step)) {
        return NULL;
    }
    PyObject *made = P.pending->tp_alloc(P.pending, 0);
    PyObject *offset = made == NULL ? NULL : PyLong_FromSsize_t(from + step);
    if (offset == NULL) {
        Py_XDECREF(made);
        return NULL;
    }
    SLOT(made, P.pending_shape) = Py_NewRef(PyTuple_GET_ITEM(known, VIEW_SHAPE));
    SLOT(made, P.pending_stride) = Py_NewRef(PyTuple_GET_ITEM(known, VIEW_STRIDE));
    SLOT(made, P.pending_dtype) = Py_NewRef(PyTuple_GET_ITEM(known, VIEW_DTYPE));
    SLOT(made, P.pending_offset) = offset;
    SLOT(made, P.pending_storage) = Py_NewRef(SLOT(data, P.pending_storage));
    SLOT(made, P.pending_settled) = Py_NewRef(Py_None);
    return make_tensor(made, SLOT(source, S.at_dtype));
}

PyObject *recall(PyObject *recorder, const Recordable *call, PyObject *key, PyObject *const *bound, int *history)
{
    PyObject *known = PyDict_GetItemWithError(P.specs, key);
    if (known == NULL) {
        PyErr_Clear();
        return NULL;
    }
    Py_INCREF(known);
    PyObject *made = call->is_view ? PyTuple_GET_SIZE(known) == VIEW_SIZE ? recall_view(recorder, known, bound[0]) : NULL
                     : PyTuple_GET_SIZE(known) == CALL_SIZE ? recall_call(recorder, call, known, bound, history)
                                                            : NULL;
    Py_DECREF(known);
    return made;
}
