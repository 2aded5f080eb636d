/* What torch.Size does in C: it is made of sequences of ints, and slices of it are sizes. */
#include "making.h"

static binaryfunc tuple_subscript;
static PyObject *length; /* of a size that is no int: the int that stands for it */

/* The sizes as a tuple of ints. */
static PyObject *as_ints(PyObject *sizes)
{
    PyObject *items = sizes == NULL ? PyTuple_New(0) : PySequence_Tuple(sizes);
    const Py_ssize_t count = items == NULL ? 0 : PyTuple_GET_SIZE(items);
    Py_ssize_t ints = 0;
    while (ints < count && PyLong_CheckExact(PyTuple_GET_ITEM(items, ints))) {
        ints++;
    }
    if (ints == count) {
        return items;
    }
    PyObject *checked = PyTuple_New(count);
    for (Py_ssize_t i = 0; checked != NULL && i < count; i++) {
        PyObject *one = PyObject_CallFunction(length, "nO", i, PyTuple_GET_ITEM(items, i));
        if (one == NULL) {
            Py_CLEAR(checked);
            break;
        }
        PyTuple_SET_ITEM(checked, i, one);
    }
    Py_DECREF(items);
    return checked;
}

/* The methods of tuple are not asked by their names: they refuse to make what has a `__new__` of its own in C. */
static PyObject *new_size(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sizes", NULL};
    PyObject *sizes = NULL;
    if (PyTuple_GET_SIZE(args) == 1 && kwargs == NULL) {
        sizes = PyTuple_GET_ITEM(args, 0);
    }
    else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Size", names, &sizes)) {
        return NULL;
    }
    PyObject *items = as_ints(sizes), *given = items == NULL ? NULL : PyTuple_Pack(1, items);
    PyObject *made = given == NULL ? NULL : PyTuple_Type.tp_new(type, given, NULL);
    Py_XDECREF(items);
    Py_XDECREF(given);
    return made;
}

/* `Size.__new__(Size, sizes)`, as copies and pickles call it. */
static PyObject *size_new(PyObject *Py_UNUSED(self), PyObject *args, PyObject *kwargs)
{
    PyObject *type = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (type == NULL || !PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, S.size)) {
        PyErr_SetString(PyExc_TypeError, "Size.__new__(X): X is not a subtype of Size");
        return NULL;
    }
    PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
    PyObject *made = rest == NULL ? NULL : new_size((PyTypeObject *)type, rest, kwargs);
    Py_XDECREF(rest);
    return made;
}

static PyMethodDef size_maker = {"__new__", (PyCFunction)(void (*)(void))size_new, METH_VARARGS | METH_KEYWORDS, "__new__(cls, sizes=())\n--\n\nMake a size."};

/* An element, or a Size for a slice. */
static PyObject *size_subscript(PyObject *self, PyObject *key)
{
    Py_ssize_t i;
    if (as_index(key, &i)) {
        i += i < 0 ? PyTuple_GET_SIZE(self) : 0;
        if (i >= 0 && i < PyTuple_GET_SIZE(self)) {
            return Py_NewRef(PyTuple_GET_ITEM(self, i));
        }
    }
    PyObject *part = tuple_subscript(self, key);
    if (part == NULL || !PyTuple_CheckExact(part)) {
        return part;
    }
    PyObject *size = PyObject_CallOneArg((PyObject *)S.size, part);
    Py_DECREF(part);
    return size;
}

static PyMethodDef subscript = {"__getitem__", size_subscript, METH_O | METH_COEXIST, "__getitem__($self, key, /)\n--\n\nReturn self[key]."};

int install_size(void)
{
    tuple_subscript = PyTuple_Type.tp_as_mapping->mp_subscript;
    PyObject *descriptor = PyDescr_NewMethod(S.size, &subscript);
    if (descriptor == NULL || PyObject_SetAttrString((PyObject *)S.size, "__getitem__", descriptor) < 0) {
        Py_XDECREF(descriptor);
        return -1;
    }
    Py_DECREF(descriptor);
    S.size->tp_as_mapping->mp_subscript = size_subscript; /* without the look-up of the method */
    PyObject *before = PyObject_GetAttrString((PyObject *)S.size, "__new__");
    length = before == NULL || !PyFunction_Check(before) ? NULL : PyDict_GetItemString(PyFunction_GetGlobals(before), "_length");
    Py_XINCREF(length);
    Py_XDECREF(before);
    PyObject *maker = length == NULL ? NULL : PyCFunction_New(&size_maker, NULL);
    if (maker == NULL || PyObject_SetAttrString((PyObject *)S.size, "__new__", maker) < 0) {
        Py_XDECREF(maker);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_RuntimeError, "Size has no __new__ of its own");
        }
        return -1;
    }
    Py_DECREF(maker);
    S.size->tp_new = new_size; /* without the look-up of the method */
    return 0;
}
