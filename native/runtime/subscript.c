/* Subscript: `x[index]` for basic indices (ints, slices, None, Ellipsis, tuples of them) of plain CPU tensors, and what keys.c reads and assigns.
 *
 * Each item is one view operator, as in the Python code behind it; with a history each is recorded by that operator.
 */
#include "keys.h"
#include "making.h"
#include "pipeline.h"
#include "views.h"
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    PyObject *dict;
    PyObject *operators; /* a callable that gives (slice, select, unsqueeze, the function index) when they are first needed */
    PyObject *slice, *select, *unsqueeze, *index;
    Py_ssize_t takes; /* arguments, the tensor among them: three where it writes */
} Subscript;

static int need_operators(Subscript *self)
{
    if (self->slice != NULL) {
        return 0;
    }
    PyObject *found = PyObject_CallNoArgs(self->operators);
    if (found == NULL) {
        return -1;
    }
    PyObject *slice, *select, *unsqueeze, *index;
    if (!PyArg_ParseTuple(found, "OOOO", &slice, &select, &unsqueeze, &index)) {
        Py_DECREF(found);
        return -1;
    }
    self->slice = Py_NewRef(slice);
    self->select = Py_NewRef(select);
    self->unsqueeze = Py_NewRef(unsqueeze);
    self->index = Py_NewRef(index);
    Py_DECREF(found);
    return 0;
}

/* One view of `source` as a tensor; `operator` points to what records it. Takes over the reference to `data`. */
static PyObject *step_to(Subscript *self, PyObject *source, PyObject *data, PyObject *const *operator, PyObject *const *rest, Py_ssize_t count)
{
    PyObject *made = make_tensor(data, SLOT(source, S.at_dtype));
    if (made == NULL) {
        return NULL;
    }
    if (may_have_history(source) && need_operators(self) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    PyObject *args[5] = {source};
    for (Py_ssize_t i = 0; i < count; i++) {
        args[i + 1] = rest[i];
    }
    return finish_view(made, source, *operator, args, count + 1);
}

static PyObject *one_slice(Subscript *self, PyObject *source, int dim, PyObject *item, int alone)
{
    PySliceObject *slice = (PySliceObject *)item;
    Py_ssize_t step = 1;
    int whole = 0;
    if (slice->step != Py_None && !as_index(slice->step, &step)) {
        return NULL;
    }
    PyObject *data = view_slice(array_of(source), dim, slice->start, slice->stop, step, &whole);
    if (data == NULL) {
        return NULL;
    }
    if (whole && !alone) { /* an item that leaves everything in place is no operation */
        Py_DECREF(data);
        return Py_NewRef(source);
    }
    PyObject *number = PyLong_FromLong(dim), *stride = PyLong_FromSsize_t(step);
    PyObject *made = NULL;
    if (number == NULL || stride == NULL) {
        Py_DECREF(data);
    }
    else {
        PyObject *rest[4] = {number, slice->start, slice->stop, stride};
        made = step_to(self, source, data, &self->slice, rest, 4);
    }
    Py_XDECREF(number);
    Py_XDECREF(stride);
    return made;
}

static PyObject *one_select(Subscript *self, PyObject *source, int dim, PyObject *item)
{
    Py_ssize_t index;
    if (!as_index(item, &index)) {
        return NULL;
    }
    PyObject *data = view_select(array_of(source), dim, index);
    if (data == NULL) {
        return NULL;
    }
    PyObject *number = PyLong_FromLong(dim);
    if (number == NULL) {
        Py_DECREF(data);
        return NULL;
    }
    PyObject *rest[2] = {number, item};
    PyObject *made = step_to(self, source, data, &self->select, rest, 2);
    Py_DECREF(number);
    return made;
}

static PyObject *one_unsqueeze(Subscript *self, PyObject *source, int dim)
{
    PyObject *data = view_unsqueeze(array_of(source), dim);
    if (data == NULL) {
        return NULL;
    }
    PyObject *number = PyLong_FromLong(dim);
    if (number == NULL) {
        Py_DECREF(data);
        return NULL;
    }
    PyObject *rest[1] = {number};
    PyObject *made = step_to(self, source, data, &self->unsqueeze, rest, 1);
    Py_DECREF(number);
    return made;
}

/* Whether C reads the item; counts the dimensions that it consumes. */
static int is_basic(PyObject *item, int *consumed, int *ellipses)
{
    if (PyLong_CheckExact(item) || PySlice_Check(item)) {
        (*consumed)++;
        return 1;
    }
    if (item == Py_Ellipsis) {
        (*ellipses)++;
        return 1;
    }
    return item == Py_None;
}

static PyObject *by_items(Subscript *self, PyObject *tensor, PyObject *const *items, Py_ssize_t count)
{
    int consumed = 0, ellipses = 0, dim = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!is_basic(items[i], &consumed, &ellipses)) {
            return NULL;
        }
    }
    int ndim = PyArray_NDIM(array_of(tensor));
    if (consumed > ndim || ellipses > 1 || (count > 1 && count > MAX_DIMS)) {
        return NULL;
    }
    PyObject *result = Py_NewRef(tensor);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = items[i];
        PyObject *next;
        if (item == Py_Ellipsis) {
            dim += ndim - consumed;
            continue;
        }
        if (item == Py_None) {
            next = one_unsqueeze(self, result, dim++);
        }
        else if (PySlice_Check(item)) {
            next = one_slice(self, result, dim++, item, count == 1);
        }
        else {
            next = one_select(self, result, dim, item);
        }
        Py_DECREF(result);
        if (next == NULL) {
            return NULL;
        }
        result = next;
    }
    if (result == tensor) { /* `x[...]`: an alias, which Python makes */
        Py_DECREF(result);
        return NULL;
    }
    return result;
}

/* The view that the items beside tensors give, indexed by the tensors. */
static PyObject *by_tensors(Subscript *self, PyObject *tensor, PyObject *const *items, Py_ssize_t count)
{
    int consumed = 0, ellipses = 0, dim = 0, covered = 0, ndim = PyArray_NDIM(array_of(tensor));
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!measure_item(items[i], &consumed, &ellipses)) {
            return NULL;
        }
    }
    if (consumed > ndim || ellipses > 1 || count > MAX_DIMS || need_operators(self) < 0) {
        return NULL;
    }
    PyObject *view = Py_NewRef(tensor), *indices = PyList_New(0), *made = NULL;
    for (Py_ssize_t i = 0; view != NULL && indices != NULL && i < count; i++) {
        PyObject *item = items[i], *next = view;
        if (item == Py_Ellipsis) {
            dim += ndim - consumed;
            continue;
        }
        if (is_plain(item)) {
            for (; covered < dim; covered++) {
                if (PyList_Append(indices, Py_None) < 0) {
                    goto done;
                }
            }
            const int takes = PyArray_TYPE(array_of(item)) == NPY_BOOL ? PyArray_NDIM(array_of(item)) : 1;
            covered += takes;
            dim += takes;
            if (PyList_Append(indices, item) < 0) {
                goto done;
            }
            continue;
        }
        next = item == Py_None ? one_unsqueeze(self, view, dim++) : PySlice_Check(item) ? one_slice(self, view, dim++, item, 0) : one_select(self, view, dim, item);
        Py_SETREF(view, next);
    }
    if (view != NULL && indices != NULL) {
        PyObject *given[2] = {view, indices};
        made = PyObject_Vectorcall(self->index, given, 2, NULL);
    }
done:
    Py_XDECREF(view);
    Py_XDECREF(indices);
    return made;
}

/* Python's int for a whole number of numpy or of a tensor without dimensions, a tensor for a list of numbers, everything else as it is: a new
 * reference; NULL, maybe with an exception, when Python has to look. */
static PyObject *plain_item(PyObject *item, int *changed)
{
    if (PyArray_IsScalar(item, Integer)) {
        *changed = 1;
        return PyNumber_Long(item);
    }
    if (PyList_CheckExact(item)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(item); i++) {
            if (!PyLong_CheckExact(PyList_GET_ITEM(item, i)) && !PyBool_Check(PyList_GET_ITEM(item, i))) {
                return NULL;
            }
        }
        *changed = 1;
        return PyList_GET_SIZE(item) ? tensor_of_numbers(item, Py_None) : NULL;
    }
    PyArrayObject *array = is_plain(item) ? array_of(item) : NULL;
    if (array != NULL && PyArray_NDIM(array) == 0) {
        *changed = 1;
        return PyArray_TYPE(array) == NPY_INT64   ? PyLong_FromLongLong(*(const npy_int64 *)PyArray_DATA(array))
               : PyArray_TYPE(array) == NPY_INT32 ? PyLong_FromLong(*(const npy_int32 *)PyArray_DATA(array))
                                                  : NULL;
    }
    return Py_NewRef(item);
}

/* The index as a tuple of what C reads, if that is anything else than the index itself. */
static PyObject *plain_key(PyObject *index)
{
    int is_tuple = PyTuple_CheckExact(index), changed = 0;
    Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(index) : 1;
    PyObject *key = PyTuple_New(count);
    for (Py_ssize_t i = 0; key != NULL && i < count; i++) {
        PyObject *item = plain_item(is_tuple ? PyTuple_GET_ITEM(index, i) : index, &changed);
        if (item == NULL) {
            Py_CLEAR(key);
            break;
        }
        PyTuple_SET_ITEM(key, i, item);
    }
    if (!changed) {
        Py_CLEAR(key);
    }
    return key;
}

/* `x[index]` for an index that is no tuple of ints, slices, None and Ellipsis. */
static PyObject *read_otherwise(Subscript *self, PyObject *tensor, PyObject *index)
{
    PyObject *made = has_tensor(index) ? read_by_tensors(tensor, index) : NULL;
    if (made != NULL || PyErr_Occurred()) {
        return made;
    }
    PyObject *key = plain_key(index);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (key != NULL) {
        made = by_items(self, tensor, ((PyTupleObject *)key)->ob_item, PyTuple_GET_SIZE(key));
    }
    PyObject *read = key == NULL ? index : key;
    if (made == NULL && !PyErr_Occurred() && has_tensor(read)) {
        made = key == NULL ? NULL : read_by_tensors(tensor, read);
        if (made == NULL && !PyErr_Occurred()) {
            int is_tuple = PyTuple_CheckExact(read);
            made = by_tensors(self, tensor, is_tuple ? ((PyTupleObject *)read)->ob_item : &read, is_tuple ? PyTuple_GET_SIZE(read) : 1);
        }
    }
    Py_XDECREF(key);
    return made;
}

static PyObject *subscript_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Subscript *self = (Subscript *)callable;
    const Py_ssize_t given = PyVectorcall_NARGS(nargsf);
    if (given && given != self->takes && kwnames == NULL) {
        return PyErr_Format(PyExc_TypeError, self->takes == 3 ? " expected 2 arguments, got %zd" : "expected 1 argument, got %zd", given - 1);
    }
    if (given == 2 && kwnames == NULL && !(is_special() && !is_recording()) && is_plain(args[0]) && array_of(args[0]) != NULL) {
        PyObject *index = args[1];
        PyObject *result = NULL;
        if (PyTuple_CheckExact(index)) {
            result = by_items(self, args[0], ((PyTupleObject *)index)->ob_item, PyTuple_GET_SIZE(index));
        }
        else if (PyLong_CheckExact(index) || PySlice_Check(index) || index == Py_None) {
            result = by_items(self, args[0], &index, 1);
        }
        if (result == NULL && !PyErr_Occurred() && !is_special()) {
            result = read_otherwise(self, args[0], index);
        }
        if (result != NULL || PyErr_Occurred()) {
            return result;
        }
    }
    else if (given == 3 && kwnames == NULL && !is_special() && is_plain(args[0]) && array_of(args[0]) != NULL) {
        int done = assign(args[0], args[1], args[2]);
        if (done == 0) {
            PyObject *key = plain_key(args[1]);
            done = key == NULL ? (PyErr_Occurred() ? -1 : 0) : assign(args[0], key, args[2]);
            Py_XDECREF(key);
        }
        if (done != 0) {
            return done < 0 ? NULL : Py_NewRef(Py_None);
        }
    }
    return PyObject_Vectorcall(self->fallback, args, nargsf, kwnames);
}

static PyObject *subscript_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"fallback", "operators", "takes", NULL};
    PyObject *fallback, *operators;
    Py_ssize_t takes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOn", keywords, &fallback, &operators, &takes)) {
        return NULL;
    }
    Subscript *self = (Subscript *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = subscript_call;
    self->fallback = Py_NewRef(fallback);
    self->operators = Py_NewRef(operators);
    self->takes = takes;
    return (PyObject *)self;
}

static int subscript_traverse(Subscript *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fallback);
    Py_VISIT(self->dict);
    Py_VISIT(self->operators);
    Py_VISIT(self->slice);
    Py_VISIT(self->select);
    Py_VISIT(self->unsqueeze);
    Py_VISIT(self->index);
    return 0;
}

static int subscript_clear(Subscript *self)
{
    Py_CLEAR(self->fallback);
    Py_CLEAR(self->dict);
    Py_CLEAR(self->operators);
    Py_CLEAR(self->slice);
    Py_CLEAR(self->select);
    Py_CLEAR(self->unsqueeze);
    Py_CLEAR(self->index);
    return 0;
}

static void subscript_dealloc(Subscript *self)
{
    PyObject_GC_UnTrack(self);
    subscript_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *subscript_bind(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)type;
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, instance);
}

static PyMemberDef subscript_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Subscript, fallback), READONLY, "The Python function behind."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef subscript_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject SubscriptType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Subscript",
    .tp_doc = "Tensor.__getitem__ or Tensor.__setitem__ with short cuts.",
    .tp_basicsize = sizeof(Subscript),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = subscript_new,
    .tp_dealloc = (destructor)subscript_dealloc,
    .tp_traverse = (traverseproc)subscript_traverse,
    .tp_clear = (inquiry)subscript_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Subscript, vectorcall),
    .tp_descr_get = subscript_bind,
    .tp_dictoffset = offsetof(Subscript, dict),
    .tp_members = subscript_members,
    .tp_getset = subscript_getset,
};
