/* Kernels that order rows: sort and topk of short rows, stable, NaN after all else in ascending order. Long rows are numpy's. */
#include "native.h"

#define SHORT 64 /* elements of a row that are put in order one by one */

/* The first k of a row in order: each element goes to its place among those before it. */
#define ORDER(name, T, LESS)                                                                                                        \
    static void name(const void *from, npy_intp n, npy_intp k, int descending, void *to, npy_int64 *places)                          \
    {                                                                                                                               \
        const T *row = from;                                                                                                        \
        T *values = to;                                                                                                             \
        npy_intp count = 0;                                                                                                         \
        for (npy_intp i = 0; i < n; i++) {                                                                                          \
            T value = row[i];                                                                                                       \
            if (count == k && !(descending ? LESS(values[k - 1], value) : LESS(value, values[k - 1]))) {                            \
                continue;                                                                                                           \
            }                                                                                                                       \
            npy_intp at = count < k ? count++ : k - 1;                                                                              \
            for (; at > 0 && (descending ? LESS(values[at - 1], value) : LESS(value, values[at - 1])); at--) {                      \
                values[at] = values[at - 1];                                                                                        \
                places[at] = places[at - 1];                                                                                        \
            }                                                                                                                       \
            values[at] = value;                                                                                                     \
            places[at] = i;                                                                                                         \
        }                                                                                                                           \
    }

#define LESS_FLOAT(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
#define LESS_INT(a, b) ((a) < (b))

ORDER(order_float, float, LESS_FLOAT)
ORDER(order_double, double, LESS_FLOAT)
ORDER(order_int64, npy_int64, LESS_INT)
ORDER(order_int32, npy_int32, LESS_INT)

typedef void (*Order)(const void *, npy_intp, npy_intp, int, void *, npy_int64 *);

static Order order_of(PyArrayObject *array)
{
    switch (PyArray_DESCR(array)->type_num) {
    case NPY_FLOAT:
        return order_float;
    case NPY_DOUBLE:
        return order_double;
    case NPY_INT64:
        return order_int64;
    case NPY_INT32:
        return order_int32;
    default:
        return NULL;
    }
}

/* (values, indices) of the first k in order along the last dimension of a contiguous array; NULL without an exception declines. */
static PyObject *ordered(PyObject *self, PyObject *dim, Py_ssize_t k, int descending)
{
    PyArrayObject *array = (PyArrayObject *)self;
    if (!is_array(self) || !is_contiguous(array) || !PyArray_ISNOTSWAPPED(array)) {
        return NULL;
    }
    int ndim = PyArray_NDIM(array);
    Order order = order_of(array);
    if (order == NULL || ndim == 0 || ndim > MAX_DIMS || as_dim(dim, ndim) != ndim - 1) {
        return NULL;
    }
    npy_intp n = PyArray_DIM(array, ndim - 1), dims[MAX_DIMS];
    k = k < 0 ? n : k;
    if (k > n || n == 0 || k == 0 || (n > SHORT && k > 8)) {
        return NULL;
    }
    memcpy(dims, PyArray_DIMS(array), sizeof(npy_intp) * (size_t)ndim);
    dims[ndim - 1] = k;
    PyArray_Descr *descr = PyArray_DESCR(array), *whole = PyArray_DescrFromType(NPY_INT64);
    PyObject *values = new_array(ndim, dims, descr), *places = new_array(ndim, dims, whole);
    Py_DECREF(whole);
    PyObject *made = values == NULL || places == NULL ? NULL : PyTuple_Pack(2, values, places);
    if (made != NULL) {
        npy_intp rows = PyArray_SIZE(array) / n, item = PyArray_ITEMSIZE(array);
        const char *from = PyArray_BYTES(array);
        char *to = PyArray_BYTES((PyArrayObject *)values);
        npy_int64 *place = PyArray_DATA((PyArrayObject *)places);
        PyThreadState *thread = rows * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        for (npy_intp row = 0; row < rows; row++) {
            order(from + row * n * item, n, k, descending, to + row * k * item, place + row * k);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(values);
    Py_XDECREF(places);
    return made;
}

/* sort(self, dim, descending) */
static PyObject *sort_kernel(PyObject *const *args)
{
    return PyBool_Check(args[2]) ? ordered(args[0], args[1], -1, args[2] == Py_True) : NULL;
}

/* sort_stable(self, stable, dim, descending) */
static PyObject *sort_stable_kernel(PyObject *const *args)
{
    return PyBool_Check(args[3]) ? ordered(args[0], args[2], -1, args[3] == Py_True) : NULL;
}

/* topk(self, k, dim, largest, sorted) */
static PyObject *topk_kernel(PyObject *const *args)
{
    Py_ssize_t k;
    return as_index(args[1], &k) && k >= 0 && PyBool_Check(args[3]) ? ordered(args[0], args[2], k, args[3] == Py_True) : NULL;
}

const KernelEntry order_kernels[] = {
    {"sorting.sort", sort_kernel},
    {"sorting.sort_stable", sort_stable_kernel},
    {"sorting.topk", topk_kernel},
    {NULL, NULL},
};
