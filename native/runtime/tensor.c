/* Tensors as the extension makes and reads them. */
#include "native.h"
#include <structmember.h>

State S;

/* Where a `__slots__` entry of a class lies in its instances; -1 with an exception when there is no such slot. */
static Py_ssize_t slot_offset(PyObject *type, const char *name)
{
    PyObject *descriptor = PyObject_GetAttrString(type, name);
    if (descriptor == NULL) {
        return -1;
    }
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
        offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }
    else {
        PyErr_Format(PyExc_TypeError, "%s is no slot of %R", name, type);
    }
    Py_DECREF(descriptor);
    return offset;
}

int find_slots(PyObject *type, const Slot *slots)
{
    for (; slots->name != NULL; slots++) {
        *slots->place = slot_offset(type, slots->name);
        if (*slots->place < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *tuple_of(int count, const npy_intp *numbers)
{
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made != NULL && i < count; i++) {
        PyObject *number = PyLong_FromSsize_t(numbers[i]);
        if (number == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, i, number);
    }
    return made;
}

PyObject *make_tensor(PyObject *data, PyObject *kind)
{
    PyObject *made = S.tensor->tp_alloc(S.tensor, 0);
    if (made == NULL) {
        Py_DECREF(data);
        return NULL;
    }
    SLOT(made, S.at_data) = data;
    SLOT(made, S.at_dtype) = Py_NewRef(kind);
    SLOT(made, S.at_node) = Py_NewRef(Py_None);
    SLOT(made, S.at_base) = Py_NewRef(Py_None);
    return made;
}

PyObject *make_size(PyArrayObject *array)
{
    int ndim = PyArray_NDIM(array);
    PyObject *size = S.size->tp_alloc(S.size, ndim);
    if (size == NULL) {
        return NULL;
    }
    for (int i = 0; i < ndim; i++) {
        PyObject *item = PyLong_FromSsize_t(PyArray_DIM(array, i));
        if (item == NULL) {
            Py_DECREF(size);
            return NULL;
        }
        PyTuple_SET_ITEM(size, i, item);
    }
    return size;
}

/* 1, 0, or -1 with an exception. */
int grad_enabled(void)
{
    PyObject *value = PyObject_GetAttr(S.tls, S.grad_enabled);
    if (value == NULL) {
        return -1;
    }
    int enabled = value == Py_True ? 1 : PyObject_IsTrue(value);
    Py_DECREF(value);
    return enabled;
}

/* `op.record(made, *args)`: takes over the reference to `made`. */
PyObject *record_call(PyObject *op, PyObject *made, PyObject *const *args, Py_ssize_t count)
{
    PyObject *record = PyObject_GetAttr(op, S.record);
    if (record == NULL || record == Py_None) {
        Py_XDECREF(record);
        if (record == NULL) {
            Py_DECREF(made);
            return NULL;
        }
        return made;
    }
    PyObject *result;
    if (Py_IS_TYPE(record, &RecorderType)) {
        result = recorder_run(record, made, args, count, 1);
    }
    else {
        PyObject *given[MAX_PARAMS + 2];
        given[1] = made;
        for (Py_ssize_t i = 0; i < count; i++) {
            given[i + 2] = args[i];
        }
        result = PyObject_Vectorcall(record, given + 1, (size_t)(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    Py_DECREF(record);
    Py_DECREF(made);
    return result;
}

/* The tensor that counts the versions of this one: its base, or what it was detached from. A new reference. */
PyObject *counter_of(PyObject *tensor)
{
    Py_INCREF(tensor);
    for (;;) {
        PyObject *above = SLOT(tensor, S.at_base);
        if (above != NULL && above != Py_None) {
            Py_INCREF(above);
        }
        else {
            above = PyObject_GetAttr(tensor, S.shares);
            if (above == NULL) {
                Py_DECREF(tensor);
                return NULL;
            }
            if (above == Py_None) {
                Py_DECREF(above);
                return tensor;
            }
        }
        Py_DECREF(tensor);
        tensor = above;
    }
}

/* Counts one change in place; -1 with an exception. */
int bump_version(PyObject *tensor)
{
    PyObject *counter = counter_of(tensor);
    if (counter == NULL) {
        return -1;
    }
    int status = -1;
    PyObject *version = PyObject_GetAttr(counter, S.version), *one = PyLong_FromLong(1);
    PyObject *next = version == NULL || one == NULL ? NULL : PyNumber_Add(version, one);
    if (next != NULL) {
        status = PyObject_SetAttr(counter, S.version, next);
    }
    Py_XDECREF(version);
    Py_XDECREF(one);
    Py_XDECREF(next);
    Py_DECREF(counter);
    return status;
}

/* Makes a fresh tensor a view of `source`, with the history of Note [Views and history]; takes over the reference to `made`. */
PyObject *finish_view(PyObject *made, PyObject *source, PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    PyObject *base = SLOT(source, S.at_base);
    if (base == NULL || base == Py_None) {
        base = source;
    }
    set_slot(made, S.at_base, Py_NewRef(base));
    int floating = is_differentiable(SLOT(made, S.at_dtype));
    if (!may_have_history(source)) {
        if (floating) {
            set_slot(made, S.at_node, Py_NewRef(S.view));
        }
        return made;
    }
    int enabled = grad_enabled();
    if (enabled <= 0) {
        if (enabled < 0) {
            Py_CLEAR(made);
        }
        return made;
    }
    made = record_call(op, made, args, count);
    if (made != NULL && floating && Py_TYPE(made) == S.tensor && SLOT(made, S.at_node) == Py_None) {
        set_slot(made, S.at_node, Py_NewRef(S.view));
    }
    return made;
}

PyObject *new_view(PyArrayObject *source, int ndim, const npy_intp *dims, const npy_intp *strides, char *data)
{
    PyArray_Descr *descr = PyArray_DESCR(source);
    Py_INCREF(descr);
    int flags = PyArray_FLAGS(source) & NPY_ARRAY_WRITEABLE;
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, strides, data, flags, NULL);
    if (view == NULL) {
        return NULL;
    }
    Py_INCREF(source);
    if (PyArray_SetBaseObject((PyArrayObject *)view, (PyObject *)source) < 0) {
        Py_DECREF(view);
        return NULL;
    }
    return view;
}

/* ----------------------------------------------------------------------------------------------------------- attributes */

/* Attributes of Tensor that are read all the time. For payloads that are no arrays they ask the payload, as the Python ones do. */

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    PyArrayObject *array = array_of(self);
    if (array != NULL) {
        return make_size(array);
    }
    PyObject *data = SLOT(self, S.at_data);
    if (data == NULL) {
        PyErr_SetString(PyExc_AttributeError, "_data");
        return NULL;
    }
    PyObject *shape = PyObject_GetAttr(data, S.shape);
    if (shape == NULL) {
        return NULL;
    }
    PyObject *size = PyObject_CallOneArg((PyObject *)S.size, shape);
    Py_DECREF(shape);
    return size;
}

static PyObject *get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *kind = SLOT(self, S.at_dtype);
    if (kind == NULL) {
        PyErr_SetString(PyExc_AttributeError, "_dtype");
        return NULL;
    }
    return Py_NewRef(kind);
}

static PyObject *get_ndim(PyObject *self, void *closure)
{
    (void)closure;
    PyArrayObject *array = array_of(self);
    if (array != NULL) {
        return PyLong_FromLong(PyArray_NDIM(array));
    }
    PyObject *data = SLOT(self, S.at_data);
    if (data == NULL) {
        PyErr_SetString(PyExc_AttributeError, "_data");
        return NULL;
    }
    return PyObject_GetAttrString(data, "ndim");
}

static PyObject *call_dim(PyObject *self, PyObject *unused)
{
    (void)unused;
    return get_ndim(self, NULL);
}

static PyGetSetDef getters[] = {
    {"shape", get_shape, NULL, "The size of each dimension, a torch.Size.", NULL},
    {"dtype", get_dtype, NULL, "The type of the elements.", NULL},
    {"ndim", get_ndim, NULL, "The number of dimensions.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"dim", call_dim, METH_NOARGS, "dim($self, /)\n--\n\nThe number of dimensions."},
    {"ndimension", call_dim, METH_NOARGS, "ndimension($self, /)\n--\n\nThe number of dimensions."},
    {NULL, NULL, 0, NULL},
};

int install_attributes(PyObject *tensor)
{
    for (PyGetSetDef *getter = getters; getter->name != NULL; getter++) {
        PyObject *descriptor = PyDescr_NewGetSet((PyTypeObject *)tensor, getter);
        if (descriptor == NULL || PyObject_SetAttrString(tensor, getter->name, descriptor) < 0) {
            Py_XDECREF(descriptor);
            return -1;
        }
        Py_DECREF(descriptor);
    }
    for (PyMethodDef *method = methods; method->ml_name != NULL; method++) {
        PyObject *descriptor = PyDescr_NewMethod((PyTypeObject *)tensor, method);
        if (descriptor == NULL || PyObject_SetAttrString(tensor, method->ml_name, descriptor) < 0) {
            Py_XDECREF(descriptor);
            return -1;
        }
        Py_DECREF(descriptor);
    }
    return 0;
}
