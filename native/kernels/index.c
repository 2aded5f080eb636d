/* Reading and writing at positions: index, index_put_, and whole slices along a dimension. */
#include "places.h"

/* The one mask of a list of indices, when it covers all of self. */
static PyArrayObject *whole_mask(PyArrayObject *self, PyObject *indices)
{
    if (!PyList_CheckExact(indices) || PyList_GET_SIZE(indices) != 1) {
        return NULL;
    }
    PyArrayObject *mask = movable(PyList_GET_ITEM(indices, 0));
    return mask != NULL && is_mask(mask) && PyArray_NDIM(mask) && PyArray_SAMESHAPE(mask, self) ? mask : NULL;
}

/* self, indices. */
static PyObject *index_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]);
    if (self == NULL) {
        return NULL;
    }
    PyArrayObject *mask = whole_mask(self, args[1]);
    if (mask != NULL && PyArray_IS_C_CONTIGUOUS(self) && PyArray_IS_C_CONTIGUOUS(mask)) {
        return picked(self, mask);
    }
    Places places;
    if (!find_places(self, args[1], &places)) {
        return NULL;
    }
    PyObject *made = read_places(self, &places);
    forget_places(&places);
    return made;
}

/* self, indices, values, accumulate. */
static PyObject *index_put_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]), *values = movable(args[2]);
    if (self == NULL || values == NULL || !PyBool_Check(args[3]) || !same_kind(self, values) || !(PyArray_FLAGS(self) & NPY_ARRAY_WRITEABLE)) {
        return NULL;
    }
    int accumulate = args[3] == Py_True;
    PyArrayObject *mask = accumulate || PyArray_NDIM(values) ? NULL : whole_mask(self, args[1]);
    if (mask != NULL && !may_overlap(self, values) && !may_overlap(self, mask) && choose_into(self, mask, values, self)) {
        return Py_NewRef(args[0]);
    }
    Places places;
    Row row = accumulate ? adding_row(PyArray_DESCR(self)) : row_of_size(PyArray_ITEMSIZE(self));
    if (row == NULL || !find_places(self, args[1], &places)) {
        return NULL;
    }
    int written = write_places(self, &places, values, row);
    forget_places(&places);
    return written ? Py_NewRef(args[0]) : NULL;
}

/* ----------------------------------------------------------------------------------------------------------- whole slices */

/* Arguments self, dim, index; 0 to decline. */
static int slices_of(PyObject *const *args, PyArrayObject **self, Places *places)
{
    *self = movable(args[0]);
    PyArrayObject *index = movable(args[2]);
    if (*self == NULL || index == NULL || !PyArray_NDIM(*self)) {
        return 0;
    }
    int dim = as_dim(args[1], PyArray_NDIM(*self));
    return dim >= 0 && find_slices(*self, dim, index, places);
}

static PyObject *index_select_kernel(PyObject *const *args)
{
    Places places;
    PyArrayObject *self;
    if (!slices_of(args, &self, &places)) {
        return NULL;
    }
    PyObject *made = read_places(self, &places);
    forget_places(&places);
    return made;
}

/* Whether the shape of `source` is that of the slices. */
static int has_slices(PyArrayObject *source, const Places *places)
{
    if (PyArray_NDIM(source) != places->outer + 1 + places->inner || PyArray_DIM(source, places->outer) != places->count) {
        return 0;
    }
    for (int d = 0; d < PyArray_NDIM(source); d++) {
        npy_intp n = d < places->outer ? places->outer_dims[d] : d > places->outer ? places->inner_dims[d - places->outer - 1] : places->count;
        if (PyArray_DIM(source, d) != n) {
            return 0;
        }
    }
    return 1;
}

static PyObject *write_slices(PyObject *const *args, PyArrayObject *source, int adds)
{
    Places places;
    PyArrayObject *self;
    if (source == NULL || !slices_of(args, &self, &places)) {
        return NULL;
    }
    int written = 0;
    if (same_kind(self, source) && has_slices(source, &places)) {
        written = write_places(self, &places, source, adds ? adding_row(PyArray_DESCR(self)) : row_of_size(PyArray_ITEMSIZE(self)));
    }
    forget_places(&places);
    return written ? Py_NewRef(args[0]) : NULL;
}

/* self, dim, index, source, alpha. */
static PyObject *index_add_kernel(PyObject *const *args)
{
    Py_ssize_t alpha;
    int plain = (as_index(args[4], &alpha) && alpha == 1) || (PyFloat_CheckExact(args[4]) && PyFloat_AS_DOUBLE(args[4]) == 1);
    return plain ? write_slices(args, movable(args[3]), 1) : NULL;
}

/* self, dim, index, source. */
static PyObject *index_copy_kernel(PyObject *const *args)
{
    return write_slices(args, movable(args[3]), 0);
}

/* self, dim, index, value. */
static PyObject *index_fill_kernel(PyObject *const *args)
{
    Places places;
    PyArrayObject *self;
    char element[16];
    if (!slices_of(args, &self, &places)) {
        return NULL;
    }
    PyArrayObject *value = element_of(args[3], PyArray_DESCR(self), element) ? (PyArrayObject *)new_array(0, NULL, PyArray_DESCR(self)) : NULL;
    int written = 0;
    if (value != NULL) {
        memcpy(PyArray_DATA(value), element, (size_t)PyArray_ITEMSIZE(self));
        written = write_places(self, &places, value, row_of_size(PyArray_ITEMSIZE(self)));
    }
    Py_XDECREF(value);
    forget_places(&places);
    return written ? Py_NewRef(args[0]) : NULL;
}

/* self, num_classes: a row of zeros with a one for each class. */
static PyObject *one_hot_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]);
    Py_ssize_t classes;
    if (self == NULL || index_width(self) != 8 || !is_contiguous(self) || !as_index(args[1], &classes) || PyArray_NDIM(self) == MAX_DIMS) {
        return NULL;
    }
    npy_intp n = size_of(self), dims[MAX_DIMS], largest = -1;
    const npy_int64 *class = PyArray_DATA(self);
    for (npy_intp i = 0; i < n; i++) {
        if (class[i] < 0) {
            return NULL;
        }
        largest = class[i] > largest ? class[i] : largest;
    }
    classes = classes == -1 ? largest + 1 : classes;
    if (n == 0 || largest >= classes) {
        return NULL;
    }
    copy_dims(dims, PyArray_DIMS(self), PyArray_NDIM(self));
    dims[PyArray_NDIM(self)] = classes;
    PyArrayObject *out = (PyArrayObject *)new_array(PyArray_NDIM(self) + 1, dims, PyArray_DESCR(self));
    if (out != NULL) {
        npy_int64 *y = PyArray_DATA(out);
        memset(y, 0, (size_t)(n * classes) * sizeof(*y));
        for (npy_intp i = 0; i < n; i++, y += classes) {
            y[class[i]] = 1;
        }
    }
    return (PyObject *)out;
}

#define TAKE(T)                                                                                                                            \
    for (npy_intp i = 0; i < n; i++) {                                                                                                     \
        npy_int64 place = at[i] < 0 ? at[i] + total : at[i];                                                                               \
        if (place < 0 || place >= total) {                                                                                                 \
            return 0;                                                                                                                      \
        }                                                                                                                                  \
        ((T *)to)[i] = ((const T *)from)[place];                                                                                           \
    }                                                                                                                                      \
    return 1

/* 0 for a place that is not there. */
static int take_elements(const void *from, npy_intp total, const npy_int64 *at, npy_intp n, npy_intp item, void *to)
{
    switch (item) {
    case 1:
        TAKE(npy_uint8);
    case 2:
        TAKE(npy_uint16);
    case 4:
        TAKE(npy_uint32);
    default:
        TAKE(npy_uint64);
    }
}

/* self, index: elements by their number in row-major order. */
static PyObject *take_kernel(PyObject *const *args)
{
    PyArrayObject *x = (PyArrayObject *)args[0], *index = (PyArrayObject *)args[1];
    if (!is_array(args[0]) || !is_array(args[1]) || !is_contiguous(x) || !is_contiguous(index) || PyArray_TYPE(index) != NPY_INT64) {
        return NULL;
    }
    npy_intp item = PyArray_ITEMSIZE(x);
    if (item != 1 && item != 2 && item != 4 && item != 8) {
        return NULL;
    }
    PyObject *out = new_array(PyArray_NDIM(index), PyArray_DIMS(index), PyArray_DESCR(x));
    if (out != NULL &&
        !take_elements(PyArray_DATA(x), PyArray_SIZE(x), PyArray_DATA(index), PyArray_SIZE(index), item, PyArray_DATA((PyArrayObject *)out))) {
        Py_CLEAR(out); /* Python says which */
    }
    return out;
}

const KernelEntry index_kernels[] = {
    {"indexing.take", take_kernel},
    {"indexing.index", index_kernel},
    {"indexing.index_put_", index_put_kernel},
    {"indexing.index_select", index_select_kernel},
    {"indexing.index_add_", index_add_kernel},
    {"indexing.index_copy_", index_copy_kernel},
    {"indexing.index_fill_", index_fill_kernel},
    {"indexing.one_hot", one_hot_kernel},
    {NULL, NULL},
};
