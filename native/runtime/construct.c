/* Functions that are no operators, and those composed of operators that are worth it, before the Python ones of their names. */
#include "making.h"
#include "../kernels/equal.h"

static PyObject *fallbacks[4];

/* A tensor over the memory of an array, or NULL without an exception where Python has to look. */
static PyObject *over_array(PyObject *object)
{
    PyArrayObject *array = (PyArrayObject *)object;
    if (!is_array(object) || M.kinds == NULL || !PyArray_ISWRITEABLE(array) || !PyArray_ISNOTSWAPPED(array)) {
        return NULL;
    }
    npy_intp item = PyArray_ITEMSIZE(array);
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        npy_intp step = PyArray_STRIDE(array, d);
        if (step < 0 || (step & (item - 1) && step % item)) {
            return NULL;
        }
    }
    PyArray_Descr *descr = PyArray_DESCR(array);
    PyObject *kind = descr == S.descr32   ? S.float32
                     : descr == S.descr64 ? S.float64
                                          : PyDict_GetItemWithError(M.kinds, (PyObject *)descr);
    if (kind == NULL) {
        PyErr_Clear(); /* Python names the type in its message */
        return NULL;
    }
    PyObject *own = PyArray_View(array, NULL, NULL); /* the user may give theirs another shape */
    return own == NULL ? NULL : make_result(own, kind);
}

static PyObject *from_numpy(PyObject *module, PyObject *object)
{
    (void)module;
    PyObject *made = S.ready && !is_special() ? over_array(object) : NULL;
    return made != NULL || PyErr_Occurred() ? made : PyObject_CallOneArg(fallbacks[0], object);
}

static PyObject *as_tensor(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    (void)module;
    if (count == 1 && kwnames == NULL && !is_special()) {
        if (is_plain(args[0])) {
            return Py_NewRef(args[0]);
        }
        PyObject *made = is_array(args[0]) ? over_array(args[0]) : tensor_of_numbers(args[0], Py_None);
        if (made != NULL || PyErr_Occurred()) {
            return made;
        }
    }
    return PyObject_Vectorcall(fallbacks[1], args, (size_t)count, kwnames);
}

static int is_cpu(PyObject *device)
{
    return device == Py_None || device == S.cpu || (PyUnicode_CheckExact(device) && PyUnicode_CompareWithASCIIString(device, "cpu") == 0);
}

/* tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) of numbers, on the CPU. */
static PyObject *tensor(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    (void)module;
    PyObject *kind = Py_None, *wanted = Py_False;
    int fits = count == 1 && !is_special();
    for (Py_ssize_t i = 0; fits && kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i), *value = args[1 + i];
        if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0) {
            kind = value;
        }
        else if (PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0) {
            wanted = value;
            fits = PyBool_Check(value);
        }
        else {
            fits = PyUnicode_CompareWithASCIIString(name, "device") == 0 && is_cpu(value);
        }
    }
    PyObject *made = fits ? tensor_of_numbers(args[0], kind) : NULL;
    if (made != NULL && wanted == Py_True) {
        PyObject *node = is_differentiable(SLOT(made, S.at_dtype)) ? new_accumulate(made) : NULL;
        if (node != NULL) {
            set_slot(made, S.at_node, node);
        }
        else {
            Py_CLEAR(made); /* Python refuses other dtypes */
        }
    }
    return made != NULL || PyErr_Occurred() ? made : PyObject_Vectorcall(fallbacks[2], args, (size_t)count, kwnames);
}

/* equal(self, other) */
static PyObject *equal(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    (void)module;
    if (count == 2 && kwnames == NULL && !is_special() && is_plain(args[0]) && is_plain(args[1])) {
        PyArrayObject *a = array_of(args[0]), *b = array_of(args[1]);
        int same = a == NULL || b == NULL ? -1 : arrays_equal(a, b);
        if (same >= 0 || PyErr_Occurred()) {
            return same < 0 ? NULL : PyBool_FromLong(same);
        }
    }
    return PyObject_Vectorcall(fallbacks[3], args, (size_t)count, kwnames);
}

static PyMethodDef functions[] = {
    {"from_numpy", from_numpy, METH_O,
     "from_numpy($module, ndarray, /)\n--\n\nA tensor that shares the memory of an array. TypeError for dtypes without a tensor type, "
     "ValueError for negative strides."},
    {"as_tensor", (PyCFunction)(void (*)(void))as_tensor, METH_FASTCALL | METH_KEYWORDS,
     "as_tensor($module, /, data, dtype=None, device=None)\n--\n\nThe data as a tensor: itself, or sharing memory with an array, when dtype and "
     "device allow it; a copy otherwise."},
    {"tensor", (PyCFunction)(void (*)(void))tensor, METH_FASTCALL | METH_KEYWORDS,
     "tensor($module, /, data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\nA new leaf tensor with a copy of the "
     "data: numbers, nested sequences, arrays, or a tensor (its values)."},
    {"equal", (PyCFunction)(void (*)(void))equal, METH_FASTCALL | METH_KEYWORDS,
     "equal($module, self, other, /)\n--\n\nWhether shapes and all elements are equal."},
};

PyObject *constructor(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 2 || !PyUnicode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "constructor(name, function)");
        return NULL;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (PyUnicode_CompareWithASCIIString(args[0], functions[i].ml_name) == 0) {
            Py_XSETREF(fallbacks[i], Py_NewRef(args[1]));
            PyObject *where = PyObject_GetAttrString(args[1], "__module__");
            PyObject *made = where == NULL ? NULL : PyCFunction_NewEx(&functions[i], NULL, where);
            Py_XDECREF(where);
            return made;
        }
    }
    return Py_NewRef(args[1]);
}
