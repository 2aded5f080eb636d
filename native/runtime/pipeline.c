/* Recording: the pending tensor of a pointwise call, and the entry that says how to compute it. */
#include "pipeline.h"

#include <frameobject.h> /* which Python.h does not bring before 3.11 */

Pipeline P;

/* ------------------------------------------------------------------------------------------------------------ connecting */

PyObject *connect_pipeline(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"recorder", "entry", "pending", "storage", "spec", "block", "window", "recorded", "specs", "homes", "settled", NULL};
    PyObject *recorder, *entry, *pending, *storage, *spec, *block, *window, *recorded, *specs, *homes, *settled;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!O!O!O!O!O!O!O!O", keywords, &PyType_Type, &recorder, &PyType_Type, &entry, &PyType_Type, &pending,
                                     &PyType_Type, &storage, &PyType_Type, &spec, &PyType_Type, &block, &PyType_Type, &window, &PySet_Type, &recorded,
                                     &PyDict_Type, &specs, &PyTuple_Type, &homes, &settled)) {
        return NULL;
    }
    if (!S.ready) {
        PyErr_SetString(PyExc_RuntimeError, "pipelines are connected after the package");
        return NULL;
    }
    if (P.ready) {
        Py_RETURN_NONE;
    }
    const Slot of_pending[] = {{"shape", &P.pending_shape},   {"stride", &P.pending_stride},   {"dtype", &P.pending_dtype},
                               {"offset", &P.pending_offset}, {"storage", &P.pending_storage}, {"_settled", &P.pending_settled},
                               {NULL, NULL}};
    const Slot of_storage[] = {{"value", &P.storage_value}, {"device", &P.storage_device}, {"writes", &P.storage_writes}, {NULL, NULL}};
    const Slot of_entry[] = {
        {"dtype", &P.value_dtype}, {"error", &P.value_error}, {"holder", &P.value_holder},   {"kept", &P.value_kept},     {"payload", &P.value_payload},
        {"recorder", &P.value_recorder}, {"shape", &P.value_shape}, {"step", &P.value_step}, {"stride", &P.value_stride}, {"args", &P.entry_args},
        {"block", &P.entry_block}, {"fast", &P.entry_fast},   {"code", &P.entry_code},   {"form", &P.entry_form},       {"op", &P.entry_op},         {"parts", &P.entry_parts},
        {"pipe", &P.entry_pipe},   {"place", &P.entry_place}, {"spec", &P.entry_spec},       {"target", &P.entry_target}, {"where", &P.entry_where},
        {NULL, NULL}};
    const Slot of_spec[] = {{"shape", &P.spec_shape}, {"dtype", &P.spec_dtype}, {"stride", &P.spec_stride}, {"compute", &P.spec_compute}, {NULL, NULL}};
    const Slot of_window[] = {{"value", &P.window_value}, {"shape", &P.window_shape},   {"stride", &P.window_stride},
                              {"dtype", &P.window_dtype}, {"offset", &P.window_offset}, {NULL, NULL}};
    const Slot of_block[] = {{"opcode", &P.block_opcode}, {"operands", &P.block_operands}, {NULL, NULL}};
    const Slot of_recorder[] = {{"entries", &P.recorder_entries}, {"pipes", &P.recorder_pipes},         {"bytes", &P.recorder_bytes},
                                {"max_ops", &P.recorder_max_ops}, {"max_bytes", &P.recorder_max_bytes}, {"foreign", &P.recorder_foreign}, {"careful", &P.recorder_careful},
                                {NULL, NULL}};
    if (find_slots(pending, of_pending) < 0 || find_slots(storage, of_storage) < 0 || find_slots(entry, of_entry) < 0 ||
        find_slots(spec, of_spec) < 0 || find_slots(block, of_block) < 0 || find_slots(window, of_window) < 0 || find_slots(recorder, of_recorder) < 0) {
        return NULL;
    }
    P.zero = PyLong_FromLong(0);
    P.run = PyUnicode_InternFromString("run");
    P.pipeline = PyUnicode_InternFromString("pipeline");
    P.lasti = PyUnicode_InternFromString("f_lasti");
    P.empty = PyTuple_New(0);
    if (P.zero == NULL || P.run == NULL || P.pipeline == NULL || P.lasti == NULL || P.empty == NULL) {
        return NULL;
    }
    P.recorder = (PyTypeObject *)Py_NewRef(recorder);
    P.entry = (PyTypeObject *)Py_NewRef(entry);
    P.pending = (PyTypeObject *)Py_NewRef(pending);
    P.storage = (PyTypeObject *)Py_NewRef(storage);
    P.spec = (PyTypeObject *)Py_NewRef(spec);
    P.block = (PyTypeObject *)Py_NewRef(block);
    P.window = (PyTypeObject *)Py_NewRef(window);
    P.specs = Py_NewRef(specs);
    P.recorded = Py_NewRef(recorded);
    P.homes = Py_NewRef(homes);
    P.settled = Py_NewRef(settled);
    P.ready = 1;
    Py_RETURN_NONE;
}

PyObject *pipeline_recorder(void)
{
    if (!P.ready || PySet_GET_SIZE(P.recorded) == 0) {
        return NULL;
    }
    PyObject *recorder = PyObject_GetAttr(S.tls, P.pipeline);
    if (recorder != NULL && Py_TYPE(recorder) != P.recorder) {
        Py_CLEAR(recorder);
    }
    return recorder;
}

int recorder_is_careful(PyObject *recorder)
{
    return SLOT(recorder, P.recorder_careful) == Py_True;
}

int settle_argument(PyObject *argument)
{
    if (PyList_CheckExact(argument) || PyTuple_CheckExact(argument)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(argument); i++) {
            if (settle_argument(PySequence_Fast_GET_ITEM(argument, i)) < 0) {
                return -1;
            }
        }
        return 0;
    }
    if (!is_recorded_tensor(argument) || SLOT(argument, S.at_data) == NULL || Py_TYPE(SLOT(argument, S.at_data)) != P.pending) {
        return 0;
    }
    PyObject *data = PyObject_CallOneArg(P.settled, argument);
    Py_XDECREF(data);
    return data == NULL ? -1 : 0;
}

/* -------------------------------------------------------------------------------------------------------------- operands */

/* The geometry that all operands of a call share. */
typedef struct {
    PyObject *kind;
    int ndim;
    npy_intp dims[MAX_DIMS];
    PyObject *shape, *stride; /* of a pending operand, or NULL; borrowed */
} Shared;

int is_recorded_tensor(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type == S.tensor || type == S.other) {
        return 1;
    }
    if (!PyType_IsSubtype(type, S.tensor)) {
        return 0;
    }
    int found = PySet_Contains(P.recorded, (PyObject *)type);
    if (found < 0) {
        PyErr_Clear();
    }
    return found > 0;
}

/* Whether the shape is that of the operands so far, which it becomes for the first one. */
static int shares(Shared *shared, PyObject *kind, int ndim, const npy_intp *dims)
{
    if (shared->kind == NULL) {
        if (ndim > MAX_DIMS) {
            return 0;
        }
        for (int d = 0; d < ndim; d++) {
            if (dims[d] == 0) {
                return 0;
            }
        }
        shared->kind = kind;
        shared->ndim = ndim;
        copy_dims(shared->dims, dims, ndim);
        return 1;
    }
    return shared->kind == kind && shared->ndim == ndim && PyArray_CompareLists(shared->dims, dims, ndim);
}

/* The dimensions of a tuple; 0 when it is none of small ints. */
int read_dims(PyObject *tuple, int *ndim, npy_intp *dims)
{
    if (tuple == NULL || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > MAX_DIMS) {
        return 0;
    }
    *ndim = (int)PyTuple_GET_SIZE(tuple);
    for (int d = 0; d < *ndim; d++) {
        if (!as_index(PyTuple_GET_ITEM(tuple, d), &dims[d])) {
            return 0;
        }
    }
    return 1;
}

int is_dense(int ndim, const npy_intp *dims, const npy_intp *strides)
{
    npy_intp step = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        if (strides[d] != step) {
            return 0;
        }
        step *= dims[d];
    }
    return 1;
}

/* The value behind a pending payload (borrowed) when this recorder has still to compute it and the payload is all of it, contiguous; else NULL. */
static PyObject *value_of(PyObject *recorder, PyObject *data, PyObject *kind, Shared *shared)
{
    PyObject *storage = SLOT(data, P.pending_storage);
    if (storage == NULL || Py_TYPE(storage) != P.storage || SLOT(storage, P.storage_device) != S.cpu || SLOT(storage, P.storage_writes) != P.zero) {
        return NULL;
    }
    PyObject *value = SLOT(storage, P.storage_value);
    if (value == NULL || Py_TYPE(value) != P.entry || SLOT(value, P.value_payload) != Py_None || SLOT(value, P.value_error) != Py_None ||
        SLOT(value, P.value_recorder) != recorder || SLOT(data, P.pending_offset) != P.zero || SLOT(value, P.value_dtype) != kind ||
        SLOT(data, P.pending_shape) != SLOT(value, P.value_shape) || SLOT(data, P.pending_stride) != SLOT(value, P.value_stride)) {
        return NULL;
    }
    PyObject *shape = SLOT(value, P.value_shape), *stride = SLOT(value, P.value_stride);
    if (shared->shape != NULL && shared->shape == shape && shared->stride == stride) {
        return value;
    }
    int ndim, same;
    npy_intp dims[MAX_DIMS], strides[MAX_DIMS];
    if (!read_dims(shape, &ndim, dims) || !read_dims(stride, &same, strides) || same != ndim || !is_dense(ndim, dims, strides) ||
        !shares(shared, kind, ndim, dims)) {
        return NULL;
    }
    shared->shape = shape;
    shared->stride = stride;
    return value;
}

/* An int that is a double as well. */
static int is_exact_int(PyObject *object)
{
    Py_ssize_t value;
    return as_index(object, &value) && value <= ((Py_ssize_t)1 << 53) && value >= -((Py_ssize_t)1 << 53);
}

/* Whether an argument is of its parameter's type; what stands for another (a bool for a number, say) is for the dispatcher to judge. */
static int fits_role(char role, PyObject *argument, int number)
{
    switch (role) {
    case 'B':
        return PyBool_Check(argument);
    case 'S':
        return PyUnicode_CheckExact(argument);
    case 'I':
        return number && PyLong_CheckExact(argument);
    default:
        return number;
    }
}

/* What the entry keeps of an argument (a new reference): a value, a tensor of its own, or the argument itself. NULL declines. */
static PyObject *operand_of(PyObject *recorder, const Recordable *call, int at, PyObject *argument, Shared *shared, int *history)
{
    char role = call->roles[at];
    int number = PyFloat_CheckExact(argument) || is_exact_int(argument);
    if (role != 'T' && (role != 't' || argument == Py_None)) {
        return argument == Py_None || fits_role(role, argument, number) ? Py_NewRef(argument) : NULL;
    }
    if (number) {
        return call->numbers ? Py_NewRef(argument) : NULL;
    }
    if (!is_recorded_tensor(argument)) {
        return NULL;
    }
    PyObject *kind = SLOT(argument, S.at_dtype), *data = SLOT(argument, S.at_data);
    if (data == NULL || (kind != S.float32 && kind != S.float64)) {
        return NULL;
    }
    *history |= may_have_history(argument);
    if (Py_TYPE(data) == P.pending) {
        PyObject *value = value_of(recorder, data, kind, shared);
        return value == NULL || shared->kind != kind ? NULL : Py_NewRef(value);
    }
    if (!is_array(data) || !is_contiguous((PyArrayObject *)data) ||
        !shares(shared, kind, PyArray_NDIM((PyArrayObject *)data), PyArray_DIMS((PyArrayObject *)data))) {
        return NULL;
    }
    return make_tensor(Py_NewRef(data), kind);
}

/* ------------------------------------------------------------------------------------------------------------- recording */

static int is_inside(PyObject *file)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(P.homes); i++) {
        if (PyUnicode_Tailmatch(file, PyTuple_GET_ITEM(P.homes, i), 0, PY_SSIZE_T_MAX, -1)) {
            return 1;
        }
    }
    return 0;
}

/* The line outside of this package that is being run: code object and instruction. */
static int find_caller(PyObject **code, PyObject **place)
{
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    while (frame != NULL) {
        PyCodeObject *found = PyFrame_GetCode(frame);
        if (!is_inside(found->co_filename)) {
            *code = (PyObject *)found;
#if PY_VERSION_HEX >= 0x030B0000
            *place = PyLong_FromLong(PyFrame_GetLasti(frame));
#else
            *place = PyObject_GetAttr((PyObject *)frame, P.lasti);
#endif
            Py_DECREF(frame);
            return *place == NULL ? -1 : 0;
        }
        Py_DECREF(found);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    *code = Py_NewRef(Py_None);
    *place = Py_NewRef(P.zero);
    return 0;
}

/* Whether the recorder has room for another result; counts its bytes. */
int recorder_has_room(PyObject *recorder, npy_intp nbytes)
{
    PyObject *entries = SLOT(recorder, P.recorder_entries);
    Py_ssize_t bytes, most, limit;
    if (SLOT(recorder, P.recorder_foreign) != Py_False) {
        return 0; /* see Note [Other threads] in recorder.py */
    }
    if (entries == NULL || !PyList_CheckExact(entries) || !as_index(SLOT(recorder, P.recorder_bytes), &bytes) ||
        !as_index(SLOT(recorder, P.recorder_max_bytes), &most) || !as_index(SLOT(recorder, P.recorder_max_ops), &limit) ||
        PyList_GET_SIZE(entries) >= limit || bytes > most) {
        return 0;
    }
    PyObject *sum = PyLong_FromSsize_t(bytes + nbytes);
    if (sum == NULL) {
        PyErr_Clear();
        return 0;
    }
    set_slot(recorder, P.recorder_bytes, sum);
    return 1;
}

static PyObject *make_spec(PyObject *shape, PyObject *kind, PyObject *compute)
{
    PyObject *spec = P.spec->tp_alloc(P.spec, 0);
    if (spec != NULL) {
        SLOT(spec, P.spec_shape) = Py_NewRef(shape);
        SLOT(spec, P.spec_dtype) = Py_NewRef(kind);
        SLOT(spec, P.spec_stride) = Py_NewRef(Py_None);
        SLOT(spec, P.spec_compute) = Py_NewRef(compute);
    }
    return spec;
}

PyObject *make_entry(PyObject *recorder, PyObject *op, PyObject *args, PyObject *fast, PyObject *spec, PyObject *shape, PyObject *stride, PyObject *kind)
{
    PyObject *pipes = SLOT(recorder, P.recorder_pipes);
    PyObject *entry = P.entry->tp_alloc(P.entry, 0);
    if (entry == NULL || !PyList_CheckExact(pipes) || PyList_GET_SIZE(pipes) == 0) {
        Py_XDECREF(entry);
        Py_DECREF(args);
        return NULL;
    }
    SLOT(entry, P.entry_args) = args;
    SLOT(entry, P.entry_op) = Py_NewRef(op);
    SLOT(entry, P.entry_spec) = Py_NewRef(spec);
    SLOT(entry, P.entry_fast) = Py_NewRef(fast == NULL ? Py_None : fast);
    SLOT(entry, P.entry_block) = Py_NewRef(Py_None);
    SLOT(entry, P.entry_form) = Py_NewRef(P.run);
    SLOT(entry, P.entry_parts) = Py_NewRef(Py_None);
    SLOT(entry, P.entry_target) = Py_NewRef(Py_None);
    SLOT(entry, P.entry_where) = Py_NewRef(S.cpu);
    SLOT(entry, P.entry_pipe) = Py_NewRef(PyList_GET_ITEM(pipes, PyList_GET_SIZE(pipes) - 1));
    SLOT(entry, P.value_shape) = Py_NewRef(shape);
    SLOT(entry, P.value_stride) = Py_NewRef(stride);
    SLOT(entry, P.value_dtype) = Py_NewRef(kind);
    SLOT(entry, P.value_recorder) = Py_NewRef(recorder);
    SLOT(entry, P.value_payload) = Py_NewRef(Py_None);
    SLOT(entry, P.value_error) = Py_NewRef(Py_None);
    SLOT(entry, P.value_holder) = Py_NewRef(Py_None);
    SLOT(entry, P.value_step) = Py_NewRef(Py_None);
    SLOT(entry, P.value_kept) = Py_NewRef(Py_False);
    if (find_caller(&SLOT(entry, P.entry_code), &SLOT(entry, P.entry_place)) < 0) {
        Py_CLEAR(entry);
    }
    return entry;
}

/* The pending payload over a new storage of the value. */
static PyObject *make_pending(PyObject *value)
{
    PyObject *storage = P.storage->tp_alloc(P.storage, 0);
    if (storage == NULL) {
        return NULL;
    }
    SLOT(storage, P.storage_value) = Py_NewRef(value);
    SLOT(storage, P.storage_device) = Py_NewRef(S.cpu);
    SLOT(storage, P.storage_writes) = Py_NewRef(P.zero);
    PyObject *holder = PyWeakref_NewRef(storage, NULL);
    PyObject *made = holder == NULL ? NULL : P.pending->tp_alloc(P.pending, 0);
    if (made == NULL) {
        Py_XDECREF(holder);
        Py_DECREF(storage);
        return NULL;
    }
    set_slot(value, P.value_holder, holder);
    SLOT(made, P.pending_shape) = Py_NewRef(SLOT(value, P.value_shape));
    SLOT(made, P.pending_stride) = Py_NewRef(SLOT(value, P.value_stride));
    SLOT(made, P.pending_dtype) = Py_NewRef(SLOT(value, P.value_dtype));
    SLOT(made, P.pending_offset) = Py_NewRef(P.zero);
    SLOT(made, P.pending_storage) = storage;
    SLOT(made, P.pending_settled) = Py_NewRef(Py_None);
    return made;
}

PyObject *append_entry(PyObject *recorder, PyObject *entry)
{
    PyObject *kind = SLOT(entry, P.value_dtype);
    PyObject *data = make_pending(entry);
    PyObject *made = data == NULL ? NULL : make_tensor(data, kind);
    if (made != NULL && PyList_Append(SLOT(recorder, P.recorder_entries), entry) < 0) {
        Py_CLEAR(made);
    }
    Py_DECREF(entry);
    return made;
}

static PyObject *dense_strides(const Shared *shared)
{
    npy_intp strides[MAX_DIMS], step = 1;
    for (int d = shared->ndim - 1; d >= 0; d--) {
        strides[d] = step;
        step *= shared->dims[d];
    }
    return tuple_of(shared->ndim, strides);
}

PyObject *pipeline_record(PyObject *recorder, const Recordable *call, PyObject *const *bound, int *history)
{
    int chosen = blocked_choose(call->blocked, bound, call->params);
    if (chosen < 0 || chosen >= PyTuple_GET_SIZE(call->blocks)) {
        return NULL;
    }
    PyObject *args = PyTuple_New(call->params);
    if (args == NULL) {
        return NULL;
    }
    Shared shared = {0};
    for (int i = 0; i < call->params; i++) {
        PyObject *operand = operand_of(recorder, call, i, bound[i], &shared, history);
        if (operand == NULL) {
            Py_DECREF(args);
            return NULL;
        }
        PyTuple_SET_ITEM(args, i, operand);
    }
    npy_intp count = shared.kind == S.float64 ? 8 : 4;
    for (int d = 0; d < shared.ndim; d++) {
        count *= shared.dims[d];
    }
    if (shared.kind == NULL || !recorder_has_room(recorder, count)) {
        Py_DECREF(args);
        return NULL;
    }
    PyObject *kind = blocked_to_bool(call->blocked, chosen) ? S.bool_ : shared.kind;
    PyObject *shape = shared.shape != NULL ? Py_NewRef(shared.shape) : tuple_of(shared.ndim, shared.dims);
    PyObject *stride = shared.stride != NULL ? Py_NewRef(shared.stride) : dense_strides(&shared);
    PyObject *spec = shape == NULL || stride == NULL ? NULL : make_spec(shape, kind, shared.kind);
    PyObject *entry = NULL;
    if (spec != NULL) {
        entry = make_entry(recorder, call->op, args, NULL, spec, shape, stride, kind);
    }
    else {
        Py_DECREF(args);
    }
    Py_XDECREF(shape);
    Py_XDECREF(stride);
    Py_XDECREF(spec);
    if (entry == NULL) {
        return NULL;
    }
    set_slot(entry, P.entry_block, Py_NewRef(PyTuple_GET_ITEM(call->blocks, chosen)));
    return append_entry(recorder, entry);
}
