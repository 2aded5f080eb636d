/* Python's numbers as tensors and back: what `tensor` reads of nested lists, and the members of Tensor that give numbers.
 *
 * Each member stands before the Python one of its name, which answers for all but plain CPU tensors of everyday dtypes and raises all errors.
 */
#include "making.h"
#include "../kernels/move.h"

/* ------------------------------------------------------------------------------------------------------------- to arrays */

enum { NOTHING, TRUTHS, WHOLE, REAL };

typedef struct {
    int ndim, settled; /* whether a number or an empty list has said how deep the lists are */
    npy_intp dims[MAX_DIMS];
    int most; /* the widest kind of number */
} Nest;

static PyObject *const *items_of(PyObject *list, Py_ssize_t *count)
{
    *count = Py_SIZE(list);
    return PyList_CheckExact(list) ? ((PyListObject *)list)->ob_item : ((PyTupleObject *)list)->ob_item;
}

static inline int is_sequence(PyObject *object)
{
    return PyList_CheckExact(object) || PyTuple_CheckExact(object);
}

static inline int kind_of_number(PyObject *object)
{
    return PyFloat_CheckExact(object) ? REAL : PyLong_CheckExact(object) ? WHOLE : PyBool_Check(object) ? TRUTHS : NOTHING;
}

/* Reads shape and kind; 0 for what is ragged or holds anything else. */
static int measure(PyObject *data, int level, Nest *nest)
{
    if (!is_sequence(data)) {
        int kind = kind_of_number(data);
        if (kind == NOTHING || (nest->settled && nest->ndim != level)) {
            return 0;
        }
        nest->ndim = level;
        nest->settled = 1;
        nest->most = kind > nest->most ? kind : nest->most;
        return 1;
    }
    Py_ssize_t count;
    PyObject *const *items = items_of(data, &count);
    if (level == MAX_DIMS || (nest->settled && level >= nest->ndim)) {
        return 0;
    }
    if (nest->settled || level < nest->ndim) {
        if (nest->dims[level] != count) {
            return 0;
        }
    }
    else {
        nest->dims[level] = count;
        nest->ndim = level + 1;
    }
    if (count == 0) {
        if (nest->settled && nest->ndim != level + 1) {
            return 0;
        }
        nest->settled = 1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!measure(items[i], level + 1, nest)) {
            return 0;
        }
    }
    return 1;
}

/* Whether a number, if it is an integer, is one of a small dtype of that size, whether it has a sign or not. Floating dtypes hold these too. */
static int in_range(PyObject *number, npy_intp item)
{
    Py_ssize_t whole;
    if (item == 8 || !as_index(number, &whole)) {
        return item == 8 || !PyLong_CheckExact(number);
    }
    return whole >= 0 && whole >> (8 * item - 1) == 0;
}

static int fill(PyObject *data, PyArray_Descr *descr, npy_intp item, char **to)
{
    if (!is_sequence(data)) {
        if (descr == S.descr32 && PyFloat_CheckExact(data)) {
            *(float *)*to = (float)PyFloat_AS_DOUBLE(data);
        }
        else if (!in_range(data, item) || !element_of(data, descr, *to)) {
            return 0;
        }
        *to += item;
        return 1;
    }
    Py_ssize_t count;
    PyObject *const *items = items_of(data, &count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!fill(items[i], descr, item, to)) {
            return 0;
        }
    }
    return 1;
}

PyObject *tensor_of_numbers(PyObject *data, PyObject *kind)
{
    Nest nest = {0};
    if (!measure(data, 0, &nest) || M.dtypes == NULL) {
        return NULL;
    }
    if (kind == Py_None) {
        kind = nest.most == TRUTHS ? S.bool_ : nest.most == WHOLE ? S.int64 : PyDict_GetItem(M.dtypes, M.default_);
    }
    PyArray_Descr *descr = kind == NULL ? NULL : descr_of(kind);
    if (descr == NULL || PyDataType_ELSIZE(descr) > 8) {
        return NULL;
    }
    PyObject *made = new_array(nest.ndim, nest.dims, descr);
    char *to = made == NULL ? NULL : PyArray_DATA((PyArrayObject *)made);
    if (made == NULL || !fill(data, descr, PyDataType_ELSIZE(descr), &to)) {
        Py_XDECREF(made);
        return NULL;
    }
    return make_result(made, kind);
}

/* ------------------------------------------------------------------------------------------------------------ to numbers */

/* NULL without an exception for dtypes that Python has to look at. */
static PyObject *number_of(PyArray_Descr *descr, const char *element)
{
    switch (descr->type_num) {
    case NPY_FLOAT:
        return PyFloat_FromDouble(*(const float *)element);
    case NPY_DOUBLE:
        return PyFloat_FromDouble(*(const double *)element);
    case NPY_BOOL:
        return PyBool_FromLong(*element != 0);
    case NPY_INT64:
        return PyLong_FromLongLong(*(const npy_int64 *)element);
    case NPY_INT32:
        return PyLong_FromLong(*(const npy_int32 *)element);
    case NPY_INT16:
        return PyLong_FromLong(*(const npy_int16 *)element);
    case NPY_INT8:
        return PyLong_FromLong(*(const npy_int8 *)element);
    case NPY_UINT8:
        return PyLong_FromLong(*(const npy_uint8 *)element);
    default:
        break;
    }
    if (descr == S.descr_bfloat16) {
        union {
            npy_uint32 bits;
            float value;
        } of = {(npy_uint32) * (const npy_uint16 *)element << 16};
        return PyFloat_FromDouble(of.value);
    }
    return NULL;
}

static PyObject *list_of(PyArrayObject *array, int level, const char *element)
{
    if (level == PyArray_NDIM(array)) {
        return number_of(PyArray_DESCR(array), element);
    }
    npy_intp count = PyArray_DIM(array, level), step = PyArray_STRIDE(array, level);
    PyObject *made = PyList_New(count);
    for (npy_intp i = 0; made != NULL && i < count; i++, element += step) {
        PyObject *item = list_of(array, level + 1, element);
        if (item == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyList_SET_ITEM(made, i, item);
    }
    return made;
}

/* The array of a plain tensor whose elements can be read as they lie, else NULL. */
static PyArrayObject *readable(PyObject *self)
{
    PyArrayObject *array = is_special() || !is_plain(self) ? NULL : array_of(self);
    return array != NULL && PyArray_ISNOTSWAPPED(array) && PyArray_ISALIGNED(array) ? array : NULL;
}

/* The only element as a number; NULL with or without an exception. */
static PyObject *only_number(PyObject *self)
{
    PyArrayObject *array = readable(self);
    return array != NULL && PyArray_SIZE(array) == 1 ? number_of(PyArray_DESCR(array), PyArray_BYTES(array)) : NULL;
}

/* --------------------------------------------------------------------------------------------------------------- members */

enum { ITEM, TOLIST, TO_BOOL, TO_INT, TO_FLOAT, TO_INDEX, DATA_PTR, ELEMENT_SIZE, STORAGE_OFFSET, COUNT };
static PyObject *fallbacks[COUNT];

static PyObject *or_python(int number, PyObject *self, PyObject *made)
{
    return made != NULL || PyErr_Occurred() ? made : PyObject_CallOneArg(fallbacks[number], self);
}

static PyObject *call_item(PyObject *self, PyObject *unused)
{
    (void)unused;
    return or_python(ITEM, self, only_number(self));
}

static PyObject *call_tolist(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyArrayObject *array = readable(self);
    return or_python(TOLIST, self, array == NULL ? NULL : list_of(array, 0, PyArray_BYTES(array)));
}

static PyObject *call_bool(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *number = only_number(self);
    if (number != NULL) {
        Py_SETREF(number, PyBool_FromLong(PyObject_IsTrue(number)));
    }
    return or_python(TO_BOOL, self, number);
}

static PyObject *call_int(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *number = may_have_history(self) ? NULL : only_number(self);
    if (number != NULL) {
        Py_SETREF(number, PyNumber_Long(number));
    }
    return or_python(TO_INT, self, number);
}

static PyObject *call_float(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *number = may_have_history(self) ? NULL : only_number(self); /* of which Python warns */
    if (number != NULL) {
        Py_SETREF(number, PyNumber_Float(number));
    }
    return or_python(TO_FLOAT, self, number);
}

static PyObject *call_index(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *number = only_number(self);
    if (number != NULL) {
        Py_SETREF(number, PyLong_Check(number) ? PyNumber_Long(number) : NULL);
    }
    return or_python(TO_INDEX, self, number);
}

static PyObject *call_data_ptr(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyArrayObject *array = is_special() ? NULL : array_of(self);
    return or_python(DATA_PTR, self, array == NULL ? NULL : PyLong_FromVoidPtr(PyArray_SIZE(array) ? PyArray_DATA(array) : NULL));
}

static PyObject *call_element_size(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyArrayObject *array = array_of(self);
    return or_python(ELEMENT_SIZE, self, array == NULL ? NULL : PyLong_FromSsize_t(PyArray_ITEMSIZE(array)));
}

/* Of an array that has its memory for itself. */
static PyObject *call_storage_offset(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyArrayObject *array = array_of(self);
    return or_python(STORAGE_OFFSET, self, array == NULL || PyArray_BASE(array) != NULL ? NULL : Py_NewRef(S.zero));
}

static PyMethodDef methods[COUNT] = {
    [ITEM] = {"item", call_item, METH_NOARGS, "item($self, /)\n--\n\nThe value of a tensor of one element as a Python number. RuntimeError for more elements, and on the meta device."},
    [TOLIST] = {"tolist", call_tolist, METH_NOARGS, "tolist($self, /)\n--\n\nThe values as nested lists of Python numbers; a number for a 0-dim tensor."},
    [TO_BOOL] = {"__bool__", call_bool, METH_NOARGS, "__bool__($self, /)\n--\n\nWhether the only element is not zero."},
    [TO_INT] = {"__int__", call_int, METH_NOARGS, "__int__($self, /)\n--\n\nThe only element as an int."},
    [TO_FLOAT] = {"__float__", call_float, METH_NOARGS, "__float__($self, /)\n--\n\nThe only element as a float."},
    [TO_INDEX] = {"__index__", call_index, METH_NOARGS, "__index__($self, /)\n--\n\nThe only element, of an integer dtype, as an int."},
    [DATA_PTR] = {"data_ptr", call_data_ptr, METH_NOARGS, "data_ptr($self, /)\n--\n\nThe address of the first element; 0 on the meta device and for tensors without elements."},
    [ELEMENT_SIZE] = {"element_size", call_element_size, METH_NOARGS, "element_size($self, /)\n--\n\nBytes per element."},
    [STORAGE_OFFSET] = {"storage_offset", call_storage_offset, METH_NOARGS, "storage_offset($self, /)\n--\n\nWhere the first element stands in the storage, in elements."},
};

PyObject *number_member(PyTypeObject *type, PyObject *name, PyObject *member)
{
    for (int i = 0; i < COUNT; i++) {
        if (PyUnicode_CompareWithASCIIString(name, methods[i].ml_name) == 0) {
            Py_XSETREF(fallbacks[i], Py_NewRef(member));
            return base_method(type, &methods[i]);
        }
    }
    return Py_NewRef(member);
}
