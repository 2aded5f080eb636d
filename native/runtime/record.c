/* Recorder: makes the node of one operator, as the generated `_record_*` functions do in Python.
 *
 * Its description lists, by parameter number, which arguments get edges and what the node saves. It serves plain tensors with arrays; for
 * other payloads, subclasses and saved-tensor hooks (which make the state special) it calls the Python function.
 */
#include "engine.h"
#include <structmember.h>

#define MAX_RESULTS 8 /* that nodes save */

/* Results are numbered from -1 downwards. */
typedef struct {
    int source;     /* a parameter, or a result */
    unsigned needs; /* bits of the edges of which one must be there; 0: always */
} Saved;

typedef struct {
    int source;
    PyObject *attribute; /* or NULL: the argument itself */
    int length;          /* of a list of tensors */
} Const;

/* How many results the operator has, and which of them have a history. */
enum { ONE, ALL, FIRST };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    PyTypeObject *cls;
    int params, input_count, saved_count, const_count, outputs;
    int inputs[MAX_PARAMS];
    Saved saved[MAX_PARAMS];
    Const consts[MAX_PARAMS];
} Recorder;

/* What a node saves of a tensor: (tensor, version). Inference tensors are refused in Python. */
static PyObject *keep(PyObject *tensor)
{
    if (is_inference(tensor)) {
        return PyObject_CallOneArg(S.keep, tensor);
    }
    PyObject *pair = PyTuple_New(2);
    if (pair == NULL) {
        return NULL;
    }
    PyTuple_SET_ITEM(pair, 0, Py_NewRef(tensor));
    PyTuple_SET_ITEM(pair, 1, Py_NewRef(rare_number(counter_of(tensor), S.at_count)));
    return pair;
}

/* What a node saves of its own result: a SavedOutput. */
static PyObject *keep_output(PyObject *out, int number)
{
    PyObject *counter = counter_of(out);
    PyObject *reference = PyWeakref_NewRef(counter, NULL);
    PyObject *saved = reference == NULL ? NULL : S.saved_output->tp_alloc(S.saved_output, 0);
    PyObject *which = saved == NULL ? NULL : PyLong_FromLong(number);
    if (which == NULL) {
        Py_XDECREF(reference);
        Py_XDECREF(saved);
        return NULL;
    }
    SLOT(saved, S.at_payload) = Py_NewRef(SLOT(out, S.at_data));
    SLOT(saved, S.at_kind) = Py_NewRef(SLOT(out, S.at_dtype));
    SLOT(saved, S.at_reference) = reference;
    SLOT(saved, S.at_saved_version) = Py_NewRef(rare_number(counter, S.at_count));
    SLOT(saved, S.at_saved_number) = which;
    PyObject *record = rare_of(counter);
    SLOT(saved, S.at_record) = Py_NewRef(record == NULL ? Py_None : record);
    return saved;
}

/* The node that a tensor's history goes through now (new reference), or None; NULL with an exception. */
static PyObject *node_of(PyObject *tensor)
{
    PyObject *node = SLOT(tensor, S.at_node);
    if (node == NULL || !may_have_history(tensor)) {
        return Py_NewRef(Py_None);
    }
    PyObject *base = SLOT(tensor, S.at_base);
    if (base == NULL || base == Py_None) {
        return Py_NewRef(node);
    }
    int same = PyObject_RichCompareBool(rare_number(tensor, S.at_epoch), rare_number(base, S.at_epoch), Py_EQ);
    if (same < 0) {
        return NULL;
    }
    if (!same) {
        return PyObject_CallOneArg(S.live_node, tensor);
    }
    return Py_NewRef(node == S.view ? Py_None : node);
}

/* (node, output number), or None; a new reference. */
PyObject *edge_of(PyObject *tensor)
{
    PyObject *node = node_of(tensor);
    if (node == NULL || node == Py_None) {
        return node;
    }
    PyObject *pair = PyTuple_New(2);
    if (pair == NULL) {
        Py_DECREF(node);
        return NULL;
    }
    PyTuple_SET_ITEM(pair, 0, node);
    PyTuple_SET_ITEM(pair, 1, Py_NewRef(rare_number(tensor, S.at_number)));
    return pair;
}

/* A result by its number, borrowed; NULL when there is none. */
static PyObject *result_of(const Recorder *self, PyObject *out, int source)
{
    if (self->outputs == ONE) {
        return source == -1 ? out : NULL;
    }
    return -source <= PyTuple_GET_SIZE(out) ? PyTuple_GET_ITEM(out, -source - 1) : NULL;
}

static int is_list(PyObject *value)
{
    return PyList_CheckExact(value) || (PyTuple_Check(value) && Py_TYPE(value) != S.size);
}

/* What a node saves of an argument: of a list what it saves of each item. */
static PyObject *keep_any(PyObject *value)
{
    if (PyObject_TypeCheck(value, S.tensor)) {
        return keep(value);
    }
    if (!is_list(value)) {
        return Py_NewRef(value);
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    PyObject *all = PyList_New(count);
    for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
        PyObject *item = keep_any(PySequence_Fast_GET_ITEM(value, i));
        if (item == NULL) {
            Py_CLEAR(all);
            break;
        }
        PyList_SET_ITEM(all, i, item);
    }
    return all;
}

static PyObject *make_saved(const Recorder *self, PyObject *out, PyObject *const *args, unsigned present)
{
    if (!self->saved_count) {
        return Py_NewRef(Py_None);
    }
    PyObject *saved = PyList_New(self->saved_count);
    for (int i = 0; saved != NULL && i < self->saved_count; i++) {
        const Saved *one = &self->saved[i];
        PyObject *item;
        if (one->needs && !(one->needs & present)) {
            item = Py_NewRef(Py_None);
        }
        else if (one->source < 0) {
            PyObject *result = result_of(self, out, one->source);
            item = result == NULL || result == Py_None ? NULL : keep_output(result, -one->source - 1);
            if (item == NULL && !PyErr_Occurred()) {
                PyErr_SetString(PyExc_SystemError, "a result that a derivative reads is not there");
            }
        }
        else {
            item = keep_any(args[one->source]);
        }
        if (item == NULL) {
            Py_CLEAR(saved);
            break;
        }
        PyList_SET_ITEM(saved, i, item);
    }
    return saved;
}

static PyObject *attribute_of(const Const *one, PyObject *value);

static PyObject *make_const(const Recorder *self, const Const *one, PyObject *out, PyObject *const *args)
{
    PyObject *value = one->source < 0 ? result_of(self, out, one->source) : args[one->source];
    if (value == NULL) {
        PyErr_SetString(PyExc_SystemError, "a result that a derivative reads is not there");
        return NULL;
    }
    if (one->length) {
        Py_ssize_t count = PySequence_Size(value);
        return count < 0 ? NULL : PyLong_FromSsize_t(count);
    }
    if (one->attribute == NULL) {
        return Py_NewRef(value);
    }
    if (!is_list(value)) {
        return attribute_of(one, value);
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    PyObject *all = PyList_New(count);
    for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
        PyObject *item = attribute_of(one, PySequence_Fast_GET_ITEM(value, i));
        if (item == NULL) {
            Py_CLEAR(all);
            break;
        }
        PyList_SET_ITEM(all, i, item);
    }
    return all;
}

static PyObject *attribute_of(const Const *one, PyObject *value)
{
    if (PyObject_TypeCheck(value, S.tensor)) {
        if (one->attribute == S.shape && array_of(value) != NULL) {
            return make_size(array_of(value));
        }
        if (one->attribute == S.dtype) {
            return Py_NewRef(SLOT(value, S.at_dtype));
        }
    }
    PyObject *found = PyObject_GetAttr(value, one->attribute);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    return found;
}

static PyObject *make_consts(const Recorder *self, PyObject *out, PyObject *const *args)
{
    if (!self->const_count) {
        return Py_NewRef(Py_None);
    }
    PyObject *consts = PyTuple_New(self->const_count);
    for (int i = 0; consts != NULL && i < self->const_count; i++) {
        PyObject *item = make_const(self, &self->consts[i], out, args);
        if (item == NULL) {
            Py_CLEAR(consts);
            break;
        }
        PyTuple_SET_ITEM(consts, i, item);
    }
    return consts;
}

/* (shape, dtype, device) */
static PyObject *describe_one(PyObject *out)
{
    if (out == Py_None) {
        return Py_NewRef(out);
    }
    PyArrayObject *data = array_of(out);
    PyObject *shape = tuple_of(PyArray_NDIM(data), PyArray_DIMS(data));
    PyObject *one = PyTuple_New(3);
    if (shape == NULL || one == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(one);
        return NULL;
    }
    PyTuple_SET_ITEM(one, 0, shape);
    PyTuple_SET_ITEM(one, 1, Py_NewRef(SLOT(out, S.at_dtype)));
    PyTuple_SET_ITEM(one, 2, Py_NewRef(S.cpu));
    return one;
}

/* A tuple of the descriptions of all results. */
static PyObject *describe(const Recorder *self, PyObject *out)
{
    Py_ssize_t count = self->outputs == ONE ? 1 : PyTuple_GET_SIZE(out);
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
        PyObject *one = describe_one(self->outputs == ONE ? out : PyTuple_GET_ITEM(out, i));
        if (one == NULL) {
            Py_CLEAR(all);
            break;
        }
        PyTuple_SET_ITEM(all, i, one);
    }
    return all;
}

/* A rare number of a tensor becomes what it is elsewhere; a Rare is made only when it must be. */
static int follow(PyObject *out, Py_ssize_t place, PyObject *wanted)
{
    int same = PyObject_RichCompareBool(rare_number(out, place), wanted, Py_EQ);
    if (same) {
        return same < 0 ? -1 : 0;
    }
    PyObject *rare = need_rare(out);
    if (rare == NULL) {
        return -1;
    }
    set_slot(rare, place, Py_NewRef(wanted));
    return 0;
}

/* Makes `out` the result of `node` with a number. */
static int attach(PyObject *out, PyObject *node, int fresh, Py_ssize_t number)
{
    set_slot(out, S.at_node, Py_NewRef(node));
    PyObject *base = SLOT(out, S.at_base);
    if (base != NULL && base != Py_None) {
        if (follow(out, S.at_epoch, rare_number(base, S.at_epoch)) < 0) {
            return -1;
        }
    }
    if (fresh && !number) {
        return 0;
    }
    PyObject *which = PyLong_FromSsize_t(number);
    int status = which == NULL ? -1 : follow(out, S.at_number, which);
    Py_XDECREF(which);
    return status;
}

static PyObject *by_fallback(Recorder *self, PyObject *out, PyObject *const *args, Py_ssize_t count)
{
    PyObject *given[MAX_PARAMS + 2];
    given[1] = out;
    for (Py_ssize_t i = 0; i < count; i++) {
        given[i + 2] = args[i];
    }
    return PyObject_Vectorcall(self->fallback, given + 1, (size_t)(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

static int attach_all(const Recorder *self, PyObject *outs, PyObject *node)
{
    Py_ssize_t count = self->outputs == FIRST ? 1 : PyTuple_GET_SIZE(outs);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *out = PyTuple_GET_ITEM(outs, i);
        if (out != Py_None && is_differentiable(SLOT(out, S.at_dtype)) && attach(out, node, 0, i) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Whether the result, or all results, are plain tensors with arrays. */
static int is_recordable(const Recorder *self, PyObject *out)
{
    if (self->outputs == ONE) {
        return is_plain(out) && array_of(out) != NULL;
    }
    if (!PyTuple_Check(out) || PyTuple_GET_SIZE(out) == 0) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(out); i++) {
        PyObject *one = PyTuple_GET_ITEM(out, i);
        if (one != Py_None && (!is_plain(one) || array_of(one) == NULL)) {
            return 0;
        }
    }
    return 1;
}

PyObject *recorder_run(PyObject *recorder, PyObject *out, PyObject *const *args, Py_ssize_t count, int fresh)
{
    Recorder *self = (Recorder *)recorder;
    if (count > MAX_PARAMS) {
        PyErr_SetString(PyExc_TypeError, "too many arguments to record");
        return NULL;
    }
    if (count != self->params || is_special() || !is_recordable(self, out)) {
        return by_fallback(self, out, args, count);
    }
    int enabled = grad_enabled();
    if (enabled <= 0) {
        return enabled < 0 ? NULL : Py_NewRef(out);
    }
    if (self->outputs == ONE && !is_differentiable(SLOT(out, S.at_dtype))) {
        return Py_NewRef(out);
    }
    Py_ssize_t total = 0;
    for (int i = 0; i < self->input_count; i++) {
        PyObject *value = args[self->inputs[i]];
        total += is_list(value) ? PySequence_Fast_GET_SIZE(value) : 1;
    }
    PyObject *edges = PyTuple_New(total);
    PyObject *node = NULL;
    if (edges == NULL) {
        return NULL;
    }
    unsigned present = 0;
    Py_ssize_t at = 0;
    for (int i = 0; i < self->input_count; i++) {
        PyObject *const *values = &args[self->inputs[i]];
        Py_ssize_t items = 1;
        if (is_list(*values)) {
            items = PySequence_Fast_GET_SIZE(*values);
            values = PySequence_Fast_ITEMS(*values);
        }
        for (Py_ssize_t k = 0; k < items; k++) {
            PyObject *value = values[k], *edge;
            if (is_plain(value)) {
                edge = edge_of(value);
                if (edge == NULL) {
                    goto failed;
                }
                present |= (unsigned)(edge != Py_None) << i;
            }
            else if (PyObject_TypeCheck(value, S.tensor)) {
                Py_DECREF(edges);
                return by_fallback(self, out, args, count);
            }
            else {
                edge = Py_NewRef(Py_None);
            }
            PyTuple_SET_ITEM(edges, at++, edge);
        }
    }
    if (!present) {
        Py_DECREF(edges);
        return Py_NewRef(out);
    }
    PyObject *saved = make_saved(self, out, args, present);
    PyObject *consts = saved == NULL ? NULL : make_consts(self, out, args);
    PyObject *outputs = consts == NULL ? NULL : describe(self, out);
    node = outputs == NULL ? NULL : self->cls->tp_alloc(self->cls, 0);
    if (node == NULL) {
        Py_XDECREF(saved);
        Py_XDECREF(consts);
        Py_XDECREF(outputs);
        goto failed;
    }
    SLOT(node, S.at_edges) = edges;
    SLOT(node, S.at_saved) = saved;
    SLOT(node, S.at_consts) = consts;
    SLOT(node, S.at_outputs) = outputs;
    if (offer_saved(node, saved) < 0) {
        Py_DECREF(node);
        return NULL;
    }
    int status = self->outputs == ONE ? attach(out, node, fresh, 0) : attach_all(self, out, node);
    Py_DECREF(node);
    return status < 0 ? NULL : Py_NewRef(out);
failed:
    Py_DECREF(edges);
    return NULL;
}

static PyObject *recorder_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (n < 1 || n > MAX_PARAMS + 1 || (kwnames != NULL && PyTuple_GET_SIZE(kwnames))) {
        return PyObject_Vectorcall(((Recorder *)callable)->fallback, args, nargsf, kwnames);
    }
    return recorder_run(callable, args[0], args + 1, n - 1, 0);
}

/* --------------------------------------------------------------------------------------------------------- construction */

static int read_inputs(Recorder *self, PyObject *inputs)
{
    self->input_count = (int)PyTuple_GET_SIZE(inputs);
    for (int i = 0; i < self->input_count; i++) {
        self->inputs[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(inputs, i));
        if (PyErr_Occurred() || self->inputs[i] < 0 || self->inputs[i] >= self->params) {
            return -1;
        }
    }
    return 0;
}

static int read_saved(Recorder *self, PyObject *saved)
{
    self->saved_count = (int)PyTuple_GET_SIZE(saved);
    for (int i = 0; i < self->saved_count; i++) {
        PyObject *needs;
        Saved *one = &self->saved[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(saved, i), "iO!", &one->source, &PyTuple_Type, &needs) || one->source < -MAX_RESULTS ||
            one->source >= self->params) {
            return -1;
        }
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(needs); k++) {
            long bit = PyLong_AsLong(PyTuple_GET_ITEM(needs, k));
            if (bit < 0 || bit >= self->input_count) {
                return -1;
            }
            one->needs |= 1u << bit;
        }
    }
    return 0;
}

static int read_consts(Recorder *self, PyObject *consts)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(consts); i++) {
        PyObject *name;
        Const *one = &self->consts[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(consts, i), "iO", &one->source, &name) || one->source < -MAX_RESULTS ||
            one->source >= self->params) {
            return -1;
        }
        one->length = PyLong_CheckExact(name);
        if (name != Py_None && !one->length) {
            one->attribute = Py_NewRef(name);
            PyUnicode_InternInPlace(&one->attribute);
        }
        self->const_count++;
    }
    return 0;
}

static PyObject *recorder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"fallback", "op", "dense", "cls", "params", "inputs", "saved", "consts", "outputs", NULL};
    PyObject *fallback, *cls, *inputs, *saved, *consts;
    const char *op;
    int params, dense, outputs;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OspO!iO!O!O!i", keywords, &fallback, &op, &dense, &PyType_Type, &cls, &params, &PyTuple_Type, &inputs,
                                     &PyTuple_Type, &saved, &PyTuple_Type, &consts, &outputs)) {
        return NULL;
    }
    if (!S.ready || !PyType_IsSubtype((PyTypeObject *)cls, S.node)) {
        PyErr_SetString(PyExc_TypeError, "a recorder needs a class of nodes");
        return NULL;
    }
    if (outputs < ONE || outputs > FIRST || params > MAX_PARAMS || PyTuple_GET_SIZE(inputs) > MAX_PARAMS || PyTuple_GET_SIZE(saved) > MAX_PARAMS ||
        PyTuple_GET_SIZE(consts) > MAX_PARAMS) {
        PyErr_SetString(PyExc_ValueError, "too many parts of a recorder");
        return NULL;
    }
    Recorder *self = (Recorder *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = recorder_call;
    self->fallback = Py_NewRef(fallback);
    self->cls = (PyTypeObject *)Py_NewRef(cls);
    self->params = params;
    self->outputs = outputs;
    if (read_inputs(self, inputs) < 0 || read_saved(self, saved) < 0 || read_consts(self, consts) < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "a recorder that names a parameter that is not there");
        }
        Py_DECREF(self);
        return NULL;
    }
    if (register_formula((PyTypeObject *)cls, op, dense) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int recorder_traverse(Recorder *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fallback);
    Py_VISIT(self->cls);
    return 0;
}

static int recorder_clear(Recorder *self)
{
    Py_CLEAR(self->fallback);
    Py_CLEAR(self->cls);
    return 0;
}

static void recorder_dealloc(Recorder *self)
{
    PyObject_GC_UnTrack(self);
    for (int i = 0; i < self->const_count; i++) {
        Py_CLEAR(self->consts[i].attribute);
    }
    recorder_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef recorder_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Recorder, fallback), READONLY, "The Python function behind."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject RecorderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Recorder",
    .tp_doc = "Makes the node of one operator.",
    .tp_basicsize = sizeof(Recorder),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = recorder_new,
    .tp_dealloc = (destructor)recorder_dealloc,
    .tp_traverse = (traverseproc)recorder_traverse,
    .tp_clear = (inquiry)recorder_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Recorder, vectorcall),
    .tp_members = recorder_members,
};
