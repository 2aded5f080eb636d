/* Recorder: makes the node of one operator, as the generated `_record_*` functions do in Python.
 *
 * Its description lists, by parameter number, which arguments get edges and what the node saves. It serves plain tensors with arrays; for
 * other payloads, subclasses and saved-tensor hooks (which make the state special) it calls the Python function.
 */
#include "engine.h"
#include <structmember.h>

#define RESULT (-1)

typedef struct {
    int source;     /* a parameter, or RESULT */
    unsigned needs; /* bits of the edges of which one must be there; 0: always */
} Saved;

typedef struct {
    int source;
    PyObject *attribute; /* or NULL: the argument itself */
} Const;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    PyTypeObject *cls;
    int params, input_count, saved_count, const_count;
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
static PyObject *keep_output(PyObject *out)
{
    PyObject *counter = counter_of(out);
    PyObject *reference = PyWeakref_NewRef(counter, NULL);
    PyObject *saved = reference == NULL ? NULL : S.saved_output->tp_alloc(S.saved_output, 0);
    if (saved == NULL) {
        Py_XDECREF(reference);
        return NULL;
    }
    SLOT(saved, S.at_payload) = Py_NewRef(SLOT(out, S.at_data));
    SLOT(saved, S.at_kind) = Py_NewRef(SLOT(out, S.at_dtype));
    SLOT(saved, S.at_reference) = reference;
    SLOT(saved, S.at_saved_version) = Py_NewRef(rare_number(counter, S.at_count));
    SLOT(saved, S.at_saved_number) = Py_NewRef(S.zero);
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
        else if (one->source == RESULT) {
            item = keep_output(out);
        }
        else {
            PyObject *value = args[one->source];
            item = PyObject_TypeCheck(value, S.tensor) ? keep(value) : Py_NewRef(value);
        }
        if (item == NULL) {
            Py_CLEAR(saved);
            break;
        }
        PyList_SET_ITEM(saved, i, item);
    }
    return saved;
}

static PyObject *make_const(const Const *one, PyObject *out, PyObject *const *args)
{
    PyObject *value = one->source == RESULT ? out : args[one->source];
    if (one->attribute == NULL) {
        return Py_NewRef(value);
    }
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
        PyObject *item = make_const(&self->consts[i], out, args);
        if (item == NULL) {
            Py_CLEAR(consts);
            break;
        }
        PyTuple_SET_ITEM(consts, i, item);
    }
    return consts;
}

/* ((shape, dtype, device),) */
static PyObject *describe(PyObject *out)
{
    PyArrayObject *data = array_of(out);
    PyObject *shape = tuple_of(PyArray_NDIM(data), PyArray_DIMS(data));
    PyObject *one = PyTuple_New(3);
    PyObject *all = PyTuple_New(1);
    if (shape == NULL || one == NULL || all == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(one);
        Py_XDECREF(all);
        return NULL;
    }
    PyTuple_SET_ITEM(one, 0, shape);
    PyTuple_SET_ITEM(one, 1, Py_NewRef(SLOT(out, S.at_dtype)));
    PyTuple_SET_ITEM(one, 2, Py_NewRef(S.cpu));
    PyTuple_SET_ITEM(all, 0, one);
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

/* Makes `out` the result of `node`. */
static int attach(PyObject *out, PyObject *node, int fresh)
{
    set_slot(out, S.at_node, Py_NewRef(node));
    PyObject *base = SLOT(out, S.at_base);
    if (base != NULL && base != Py_None) {
        if (follow(out, S.at_epoch, rare_number(base, S.at_epoch)) < 0) {
            return -1;
        }
    }
    return fresh ? 0 : follow(out, S.at_number, S.zero);
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

PyObject *recorder_run(PyObject *recorder, PyObject *out, PyObject *const *args, Py_ssize_t count, int fresh)
{
    Recorder *self = (Recorder *)recorder;
    if (count > MAX_PARAMS) {
        PyErr_SetString(PyExc_TypeError, "too many arguments to record");
        return NULL;
    }
    if (count != self->params || is_special() || !is_plain(out) || array_of(out) == NULL) {
        return by_fallback(self, out, args, count);
    }
    int enabled = grad_enabled();
    if (enabled <= 0) {
        return enabled < 0 ? NULL : Py_NewRef(out);
    }
    if (!is_differentiable(SLOT(out, S.at_dtype))) {
        return Py_NewRef(out);
    }
    PyObject *edges = PyTuple_New(self->input_count);
    PyObject *node = NULL;
    if (edges == NULL) {
        return NULL;
    }
    unsigned present = 0;
    for (int i = 0; i < self->input_count; i++) {
        PyObject *value = args[self->inputs[i]];
        PyObject *edge;
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
        PyTuple_SET_ITEM(edges, i, edge);
    }
    if (!present) {
        Py_DECREF(edges);
        return Py_NewRef(out);
    }
    PyObject *saved = make_saved(self, out, args, present);
    PyObject *consts = saved == NULL ? NULL : make_consts(self, out, args);
    PyObject *outputs = consts == NULL ? NULL : describe(out);
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
    int status = attach(out, node, fresh);
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
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(saved, i), "iO!", &one->source, &PyTuple_Type, &needs) || one->source < RESULT ||
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
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(consts, i), "iO", &one->source, &name) || one->source < RESULT ||
            one->source >= self->params) {
            return -1;
        }
        if (name != Py_None) {
            one->attribute = Py_NewRef(name);
            PyUnicode_InternInPlace(&one->attribute);
        }
        self->const_count++;
    }
    return 0;
}

static PyObject *recorder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"fallback", "op", "dense", "cls", "params", "inputs", "saved", "consts", NULL};
    PyObject *fallback, *cls, *inputs, *saved, *consts;
    const char *op;
    int params, dense;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OspO!iO!O!O!", keywords, &fallback, &op, &dense, &PyType_Type, &cls, &params, &PyTuple_Type, &inputs,
                                     &PyTuple_Type, &saved, &PyTuple_Type, &consts)) {
        return NULL;
    }
    if (!S.ready || !PyType_IsSubtype((PyTypeObject *)cls, S.node)) {
        PyErr_SetString(PyExc_TypeError, "a recorder needs a class of nodes");
        return NULL;
    }
    if (params > MAX_PARAMS || PyTuple_GET_SIZE(inputs) > MAX_PARAMS || PyTuple_GET_SIZE(saved) > MAX_PARAMS ||
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
