/* Reading by keys that hold tensors, and assignment by all kinds of keys, for plain CPU tensors without history. What is unusual, and every error, is left to
 * the Python code behind `Tensor.__getitem__` and `__setitem__`.
 */
#include "keys.h"
#include "../kernels/move.h"
#include "../kernels/views.h"
#include <float.h>

static Kernel index_kernel, index_put_kernel;

int has_tensor(PyObject *key)
{
    if (!PyTuple_CheckExact(key)) {
        return is_plain(key);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
        if (is_plain(PyTuple_GET_ITEM(key, i))) {
            return 1;
        }
    }
    return 0;
}

/* The array of a tensor that an index may be (a mask, or positions), else NULL. */
static PyArrayObject *index_array(PyObject *item)
{
    if (!is_plain(item)) {
        return NULL;
    }
    PyArrayObject *array = array_of(item);
    int type = array == NULL ? -1 : PyArray_TYPE(array);
    return (type == NPY_BOOL || type == NPY_INT64 || type == NPY_INT32) && PyArray_NDIM(array) ? array : NULL;
}

/* Counts the dimensions that an item takes; 0 when it is none that C reads. */
int measure_item(PyObject *item, int *consumed, int *ellipses)
{
    if (PyLong_CheckExact(item) || PySlice_Check(item)) {
        (*consumed)++;
        return 1;
    }
    if (item == Py_Ellipsis) {
        (*ellipses)++;
        return 1;
    }
    if (item == Py_None) {
        return 1;
    }
    PyArrayObject *array = index_array(item);
    if (array == NULL) {
        return 0;
    }
    *consumed += PyArray_TYPE(array) == NPY_BOOL ? PyArray_NDIM(array) : 1;
    return 1;
}

/* Appends an index for dimension `dim` of the view; None for those between. `covered` counts the dimensions that the list speaks of. */
static int append_index(PyObject **indices, PyArrayObject *array, int dim, int *covered)
{
    if (*indices == NULL && (*indices = PyList_New(0)) == NULL) {
        return -1;
    }
    for (; *covered < dim; (*covered)++) {
        if (PyList_Append(*indices, Py_None) < 0) {
            return -1;
        }
    }
    *covered += PyArray_TYPE(array) == NPY_BOOL ? PyArray_NDIM(array) : 1;
    return PyList_Append(*indices, (PyObject *)array);
}

/* Replaces the view by the one that an item gives; `dim` is where it stands, and where the next one will. 0 to decline. */
static int take_item(PyArrayObject **view, PyObject *item, int *dim)
{
    PyObject *next;
    int whole = 0;
    Py_ssize_t number = 1;
    if (item == Py_None) {
        next = view_unsqueeze(*view, (*dim)++);
    }
    else if (PySlice_Check(item)) {
        PySliceObject *slice = (PySliceObject *)item;
        if (slice->step != Py_None && !as_index(slice->step, &number)) {
            return 0;
        }
        next = view_slice(*view, (*dim)++, slice->start, slice->stop, number, &whole);
    }
    else {
        next = as_index(item, &number) ? view_select(*view, *dim, number) : NULL;
    }
    if (next == NULL) {
        return 0;
    }
    Py_SETREF(*view, (PyArrayObject *)next);
    return 1;
}

int read_key(PyArrayObject *self, PyObject *key, PyArrayObject **view, PyObject **indices)
{
    int is_tuple = PyTuple_CheckExact(key), consumed = 0, ellipses = 0, dim = 0, covered = 0, ndim = PyArray_NDIM(self);
    Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(key) : 1;
    PyObject *const *items = is_tuple ? ((PyTupleObject *)key)->ob_item : &key;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!measure_item(items[i], &consumed, &ellipses)) {
            return 0;
        }
    }
    if (consumed > ndim || ellipses > 1 || count > MAX_DIMS) {
        return 0;
    }
    *view = (PyArrayObject *)Py_NewRef(self);
    *indices = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = items[i];
        int good = 1;
        if (item == Py_Ellipsis) {
            dim += ndim - consumed;
        }
        else if (item == Py_None || PySlice_Check(item) || PyLong_CheckExact(item)) {
            good = take_item(view, item, &dim);
        }
        else {
            PyArrayObject *array = index_array(item);
            good = append_index(indices, array, dim, &covered) == 0;
            dim += PyArray_TYPE(array) == NPY_BOOL ? PyArray_NDIM(array) : 1;
        }
        if (!good) {
            Py_CLEAR(*view);
            Py_CLEAR(*indices);
            return 0;
        }
    }
    return 1;
}

/* Whether the strides are those of a fresh array, also along dimensions of size 1. */
static int is_canonical(PyArrayObject *array)
{
    npy_intp item = PyArray_ITEMSIZE(array);
    for (int d = PyArray_NDIM(array) - 1; d >= 0; d--) {
        if (PyArray_STRIDE(array, d) != item) {
            return 0;
        }
        item *= PyArray_DIM(array, d);
    }
    return 1;
}

/* Whether the rule lays the result of an index out contiguously for certain. */
static int gives_contiguous(PyArrayObject *view, PyObject *indices)
{
    if (!is_canonical(view) || PyArray_SIZE(view) == 0) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(indices); i++) {
        PyObject *item = PyList_GET_ITEM(indices, i);
        if (item != Py_None && PyArray_TYPE((PyArrayObject *)item) != NPY_BOOL &&
            (!is_canonical((PyArrayObject *)item) || PyArray_SIZE((PyArrayObject *)item) == 0)) {
            return 0;
        }
    }
    return 1;
}

PyObject *read_by_tensors(PyObject *tensor, PyObject *key)
{
    PyArrayObject *view;
    PyObject *indices;
    if (index_kernel == NULL) {
        index_kernel = find_kernel("indexing.index");
    }
    if (index_kernel == NULL || may_have_history(tensor) || !read_key(array_of(tensor), key, &view, &indices)) {
        return NULL;
    }
    PyObject *made = NULL;
    if (indices != NULL && gives_contiguous(view, indices)) {
        PyObject *const args[2] = {(PyObject *)view, indices};
        made = index_kernel(args);
    }
    Py_DECREF(view);
    Py_XDECREF(indices);
    return made == NULL ? NULL : make_result(made, SLOT(tensor, S.at_dtype));
}

/* -------------------------------------------------------------------------------------------------------------- assignment */

/* Whether a number is an element of a dtype as it is: what overflows is refused or warned of. */
static int fits(PyObject *number, PyArray_Descr *descr, char *element)
{
    if (PyFloat_CheckExact(number)) {
        double x = PyFloat_AS_DOUBLE(number);
        if (descr->type_num != NPY_DOUBLE && x == x && (x > FLT_MAX || x < -FLT_MAX)) {
            return 0;
        }
        return element_of(number, descr, element);
    }
    if (!element_of(number, descr, element)) {
        return 0;
    }
    if (PyTypeNum_ISINTEGER(descr->type_num) && PyDataType_ELSIZE(descr) < 8) {
        npy_int64 back = 0;
        Row row = row_between(descr, PyArray_DescrFromType(NPY_INT64));
        if (row == NULL) {
            return 0;
        }
        row((char *)&back, 0, element, 0, 1);
        return back == PyLong_AsLongLong(number);
    }
    return 1;
}

/* The value as an array, a new reference: that of a plain tensor without history, or a number in the dtype of the target. NULL to decline. */
static PyArrayObject *value_array(PyObject *value, PyArray_Descr *descr)
{
    if (is_plain(value)) {
        return may_have_history(value) || array_of(value) == NULL ? NULL : (PyArrayObject *)Py_NewRef((PyObject *)array_of(value));
    }
    char element[16];
    if ((!PyFloat_CheckExact(value) && !PyLong_CheckExact(value) && !PyBool_Check(value)) || PyDataType_ELSIZE(descr) > 16 ||
        !fits(value, descr, element)) {
        return NULL;
    }
    PyArrayObject *made = (PyArrayObject *)new_array(0, NULL, descr);
    if (made != NULL) {
        memcpy(PyArray_DATA(made), element, (size_t)PyDataType_ELSIZE(descr));
    }
    return made;
}

/* Whether a tensor may be written to with nothing to record and nothing to refuse. */
static int is_free(PyObject *tensor)
{
    PyObject *base = SLOT(tensor, S.at_base);
    if (may_have_history(tensor) || (is_inference(tensor) && !infers()) || !(PyArray_FLAGS(array_of(tensor)) & NPY_ARRAY_WRITEABLE)) {
        return 0;
    }
    if (base == NULL || base == Py_None) {
        return rare_of(tensor) == NULL || SLOT(rare_of(tensor), S.at_multi_view) == Py_False;
    }
    return SLOT(base, S.at_node) == Py_None && (rare_of(base) == NULL || SLOT(rare_of(base), S.at_multi_view) == Py_False) && (!is_inference(base) || infers());
}

/* Whether several elements are one in memory. */
static int repeats(PyArrayObject *array)
{
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        if (PyArray_STRIDE(array, d) == 0 && PyArray_DIM(array, d) > 1) {
            return 1;
        }
    }
    return 0;
}

static int is_indexed_by_itself(PyArrayObject *view, PyObject *indices)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(indices); i++) {
        PyObject *item = PyList_GET_ITEM(indices, i);
        if (item != Py_None && may_overlap(view, (PyArrayObject *)item)) {
            return 1;
        }
    }
    return 0;
}

int assign(PyObject *tensor, PyObject *key, PyObject *value)
{
    PyArrayObject *view, *from = is_free(tensor) ? value_array(value, PyArray_DESCR(array_of(tensor))) : NULL;
    PyObject *indices;
    if (index_put_kernel == NULL) {
        index_put_kernel = find_kernel("indexing.index_put_");
    }
    if (from == NULL || !read_key(array_of(tensor), key, &view, &indices)) {
        Py_XDECREF(from);
        return PyErr_Occurred() ? -1 : 0;
    }
    int done = 0;
    if (!repeats(view) && PyArray_SIZE(view)) {
        if (indices == NULL) {
            done = move_into(view, from);
        }
        else if (index_put_kernel != NULL && !is_indexed_by_itself(view, indices)) {
            PyObject *const args[4] = {(PyObject *)view, indices, (PyObject *)from, Py_False};
            PyObject *written = index_put_kernel(args);
            done = written != NULL;
            Py_XDECREF(written);
        }
    }
    Py_DECREF(view);
    Py_DECREF(from);
    Py_XDECREF(indices);
    if (done) {
        return bump_version(tensor) < 0 ? -1 : 1;
    }
    return PyErr_Occurred() ? -1 : 0;
}
