/* Kernels that order rows: sort of short rows, stable (long ones are numpy's), and topk. NaN comes after all else in ascending order. */
#include "kinds.h"
#include "choose.h"

#define SHORT 64 /* elements of a row that are put in order one by one */
#define ALL (-1) /* in place of the k of a topk: all elements, equal ones in the order of their places */

/* Orders a row of n elements so far that the k first are those of topk; their places go to `p`. */
#define ORDER(name, T, LESS)                                                                                                               \
    CHOOSE(name, T, LESS)                                                                                                                  \
    static void name##_order(void *v, npy_intp *p, npy_intp n, npy_intp k, int down, int in_order)                                         \
    {                                                                                                                                      \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            p[i] = i;                                                                                                                      \
        }                                                                                                                                  \
        if (k == ALL) {                                                                                                                    \
            name##_insert(v, p, n, down);                                                                                                  \
        }                                                                                                                                  \
        else {                                                                                                                             \
            name##_first(v, p, k, n, down, in_order);                                                                                      \
        }                                                                                                                                  \
    }

ORDER(float32, float, LESS_FLOAT)
ORDER(float64, double, LESS_FLOAT)
ORDER(int64, npy_int64, LESS_INT)
ORDER(int32, npy_int32, LESS_INT)

typedef void (*Order)(void *, npy_intp *, npy_intp, npy_intp, int, int);

static const Order orders[KINDS] = {
    [KIND_FLOAT] = float32_order, [KIND_DOUBLE] = float64_order, [KIND_INT64] = int64_order, [KIND_INT32] = int32_order};

/* (values, indices) of the first k, or of ALL, along the last dimension of a contiguous array; NULL without an exception declines. */
static PyObject *ordered(PyObject *self, PyObject *dim, npy_intp k, PyObject *largest, int in_order)
{
    int kind = kind_of(self), down = as_flag(largest);
    PyArrayObject *x = (PyArrayObject *)self;
    if (kind < 0 || orders[kind] == NULL || !is_contiguous(x) || down < 0 || in_order < 0) {
        return NULL;
    }
    int ndim = PyArray_NDIM(x);
    npy_intp n = ndim ? PyArray_DIM(x, ndim - 1) : 0, dims[MAX_DIMS], count = k == ALL ? n : k;
    if (count < 1 || count > n || n > (k == ALL ? SHORT : NPY_MAX_INTP / 32) || as_dim(dim, ndim) != ndim - 1) {
        return NULL;
    }
    memcpy(dims, PyArray_DIMS(x), sizeof(npy_intp) * (size_t)ndim);
    dims[ndim - 1] = count;
    PyObject *values = new_array(ndim, dims, PyArray_DESCR(x)), *places = values == NULL ? NULL : new_numbers(ndim, dims, NPY_INT64);
    double few[2 * SHORT], *v = n > SHORT ? PyMem_RawMalloc((size_t)n * (sizeof(double) + sizeof(npy_intp))) : few;
    if (places != NULL && v != NULL) {
        npy_intp rows = PyArray_SIZE(x) / n, item = PyArray_ITEMSIZE(x), *p = (npy_intp *)(v + n);
        const char *from = PyArray_BYTES(x);
        char *to = PyArray_BYTES((PyArrayObject *)values);
        npy_int64 *place = PyArray_DATA((PyArrayObject *)places);
        PyThreadState *thread = rows * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        for (npy_intp row = 0; row < rows; row++, from += n * item, to += count * item, place += count) {
            memcpy(v, from, (size_t)(n * item));
            orders[kind](v, p, n, k, down, in_order);
            memcpy(to, v, (size_t)(count * item));
            memcpy(place, p, (size_t)count * sizeof(npy_int64));
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    if (v != few) {
        PyMem_RawFree(v);
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(values);
    }
    return pair_of(values, places);
}

/* sort(self, dim, descending) */
static PyObject *sort_kernel(PyObject *const *args)
{
    return ordered(args[0], args[1], ALL, args[2], 1);
}

/* sort_stable(self, stable, dim, descending) */
static PyObject *sort_stable_kernel(PyObject *const *args)
{
    return ordered(args[0], args[2], ALL, args[3], 1);
}

/* topk(self, k, dim, largest, sorted) */
static PyObject *topk_kernel(PyObject *const *args)
{
    Py_ssize_t k;
    return as_index(args[1], &k) && k > 0 ? ordered(args[0], args[2], k, args[3], as_flag(args[4])) : NULL;
}

const KernelEntry order_kernels[] = {
    {"sorting.sort", sort_kernel},
    {"sorting.sort_stable", sort_stable_kernel},
    {"sorting.topk", topk_kernel},
    {NULL, NULL},
};
