/* Rows of a table: gathered (embedding) and added to (its derivative, index_add). */
#include "kinds.h"

#define LOOPS "embedding_loops.h"
#include "variants.h"

/* weight, indices, ...: a row of `weight` for each index. Declines for indices out of range, for which the rule has words. */
static PyObject *embedding_kernel(PyObject *const *args)
{
    if (!is_array(args[0]) || !is_array(args[1])) {
        return NULL;
    }
    PyArrayObject *weight = (PyArrayObject *)args[0], *indices = (PyArrayObject *)args[1];
    PyArray_Descr *descr = PyArray_DESCR(weight);
    int ndim = PyArray_NDIM(indices), wide = PyArray_TYPE(indices) == NPY_INT64;
    if (PyArray_NDIM(weight) != 2 || !is_contiguous(weight) || !is_contiguous(indices) || ndim + 1 > MAX_DIMS || !PyArray_SIZE(indices) ||
        (!wide && PyArray_TYPE(indices) != NPY_INT32) || PyDataType_REFCHK(descr) || !PyArray_ISNOTSWAPPED(indices)) {
        return NULL;
    }
    npy_intp rows = PyArray_DIM(weight, 0), size = PyArray_DIM(weight, 1) * PyArray_ITEMSIZE(weight), count = PyArray_SIZE(indices);
    npy_intp dims[MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        dims[d] = PyArray_DIM(indices, d);
    }
    dims[ndim] = PyArray_DIM(weight, 1);
    const void *data = PyArray_DATA(indices);
    for (npy_intp i = 0; i < count; i++) {
        npy_int64 row = wide ? ((const npy_int64 *)data)[i] : ((const npy_int32 *)data)[i];
        if (row < 0 || row >= rows) {
            return NULL;
        }
    }
    PyObject *out = new_array(ndim + 1, dims, descr);
    if (out == NULL) {
        return NULL;
    }
    const char *from = PyArray_BYTES(weight);
    char *to = PyArray_BYTES((PyArrayObject *)out);
    for (npy_intp i = 0; i < count; i++, to += size) {
        npy_int64 row = wide ? ((const npy_int64 *)data)[i] : ((const npy_int32 *)data)[i];
        memcpy(to, from + row * size, (size_t)size);
    }
    return out;
}

/* out, rows, values: out[rows[i]] += values[i]. `rows` are in range, as those who call make sure of; it is looked at again all the same. */
static PyObject *add_rows_kernel(PyObject *const *args)
{
    int width = dense_width(args[0]);
    if (!width || !is_array(args[2]) || float_width((PyArrayObject *)args[2]) != width || !is_array(args[1])) {
        return NULL;
    }
    PyArrayObject *out = (PyArrayObject *)args[0], *rows = (PyArrayObject *)args[1], *values = (PyArrayObject *)args[2];
    if (PyArray_NDIM(out) != 2 || PyArray_NDIM(values) != 2 || PyArray_NDIM(rows) != 1 || PyArray_TYPE(rows) != NPY_INTP ||
        !is_contiguous(rows) || !PyArray_ISNOTSWAPPED(rows) || PyArray_DIM(values, 0) != PyArray_DIM(rows, 0) ||
        PyArray_DIM(values, 1) != PyArray_DIM(out, 1) || !(PyArray_FLAGS(out) & NPY_ARRAY_WRITEABLE)) {
        return NULL;
    }
    npy_intp count = PyArray_DIM(rows, 0), n = PyArray_DIM(out, 1), height = PyArray_DIM(out, 0);
    const npy_intp *which = PyArray_DATA(rows);
    for (npy_intp i = 0; i < count; i++) {
        if (which[i] < 0 || which[i] >= height) {
            return NULL;
        }
    }
    PyArrayObject *dense = contiguous_of(values); /* the gradient of a sum is one number, repeated */
    if (dense == NULL) {
        return NULL;
    }
    CHOOSE(add_each_row, width, PyArray_DATA(out), which, PyArray_DATA(dense), count, n);
    Py_DECREF((PyObject *)dense);
    return Py_NewRef(Py_None);
}

static int reads_places(PyObject *object, npy_intp count, npy_intp end)
{
    if (!is_array(object)) {
        return 0;
    }
    PyArrayObject *x = (PyArrayObject *)object;
    if (PyArray_NDIM(x) != 1 || PyArray_TYPE(x) != NPY_INTP || !is_contiguous(x) || !PyArray_ISNOTSWAPPED(x) || PyArray_DIM(x, 0) != count) {
        return 0;
    }
    const npy_intp *place = PyArray_DATA(x);
    for (npy_intp i = 0; i < count; i++) {
        if (place[i] < 0 || place[i] >= end) {
            return 0;
        }
    }
    return 1;
}

/* weight, rows, the bag of each, bags, factors or None: the sums of the bags. */
static PyObject *sum_bags_kernel(PyObject *const *args)
{
    int width = dense_width(args[0]);
    Py_ssize_t bags;
    if (!width || !is_array(args[1]) || PyArray_NDIM((PyArrayObject *)args[0]) != 2 || !as_index(args[3], &bags) || bags < 0) {
        return NULL;
    }
    PyArrayObject *weight = (PyArrayObject *)args[0], *factors = args[4] == Py_None ? NULL : (PyArrayObject *)args[4];
    npy_intp count = PyArray_SIZE((PyArrayObject *)args[1]), n = PyArray_DIM(weight, 1), dims[2] = {bags, n};
    if (!reads_places(args[1], count, PyArray_DIM(weight, 0)) || !reads_places(args[2], count, bags) ||
        (factors != NULL && (dense_width(args[4]) != width || PyArray_SIZE(factors) != count))) {
        return NULL;
    }
    PyObject *out = new_array(2, dims, PyArray_DESCR(weight));
    if (out != NULL) {
        memset(PyArray_DATA((PyArrayObject *)out), 0, (size_t)PyArray_NBYTES((PyArrayObject *)out));
        CHOOSE(sum_each_row, width, PyArray_DATA((PyArrayObject *)out), PyArray_DATA(weight), PyArray_DATA((PyArrayObject *)args[1]),
               PyArray_DATA((PyArrayObject *)args[2]), factors == NULL ? NULL : PyArray_DATA(factors), count, n);
    }
    return out;
}

const KernelEntry embedding_kernels[] = {
    {"nn.fast_embedding", embedding_kernel},
    {"nn.add_rows", add_rows_kernel},
    {"bags.sum_bags", sum_bags_kernel},
    {NULL, NULL},
};
