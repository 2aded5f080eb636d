/* Distances of all pairs of rows, and their gradients. The Python kernels of `matmul.py` say the same. */
#include "kinds.h"
#include <math.h>
#include "blas.h"

#define FEW_ROWS 25 /* whose Euclidean distances come from differences, as in PyTorch */

#define LOOPS "distance_loops.h"
#include "variants.h"

/* self, p */
static PyObject *pdist_kernel(PyObject *const *args)
{
    int width = dense_width(args[0]);
    double p;
    if (!width || PyArray_NDIM((PyArrayObject *)args[0]) != 2 || !as_double(args[1], &p) || p < 0) {
        return NULL;
    }
    PyArrayObject *self = (PyArrayObject *)args[0];
    npy_intp rows = PyArray_DIM(self, 0), n = PyArray_DIM(self, 1), pairs = rows ? rows * (rows - 1) / 2 : 0;
    PyObject *out = new_array(1, &pairs, PyArray_DESCR(self));
    if (out != NULL) {
        PyThreadState *thread = pairs * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        CHOOSE(distances, width, PyArray_DATA(self), rows, n, p, PyArray_DATA((PyArrayObject *)out));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

/* grad, self, p, the distances */
static PyObject *pdist_backward_kernel(PyObject *const *args)
{
    int width = dense_width(args[1]);
    double p;
    if (!width || dense_width(args[0]) != width || dense_width(args[3]) != width || PyArray_NDIM((PyArrayObject *)args[1]) != 2 ||
        !as_double(args[2], &p) || p < 0) {
        return NULL;
    }
    PyArrayObject *grad = (PyArrayObject *)args[0], *self = (PyArrayObject *)args[1], *lengths = (PyArrayObject *)args[3];
    npy_intp rows = PyArray_DIM(self, 0), n = PyArray_DIM(self, 1), pairs = rows ? rows * (rows - 1) / 2 : 0;
    if (PyArray_SIZE(grad) != pairs || PyArray_SIZE(lengths) != pairs) {
        return NULL;
    }
    PyObject *out = new_like(self);
    if (out != NULL) {
        memset(PyArray_DATA((PyArrayObject *)out), 0, (size_t)PyArray_NBYTES((PyArrayObject *)out));
        PyThreadState *thread = pairs * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        CHOOSE(distances_backward, width, PyArray_DATA(grad), PyArray_DATA(self), rows, n, p, PyArray_DATA(lengths),
               PyArray_DATA((PyArrayObject *)out));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

/* Rows of n of two arrays with the same batches. */
typedef struct {
    npy_intp batches, rows, others, n;
    int width;
} Between;

static int read_between(PyObject *first, PyObject *second, Between *of)
{
    of->width = dense_width(first);
    PyArrayObject *a = (PyArrayObject *)first, *b = (PyArrayObject *)second;
    if (!of->width || dense_width(second) != of->width || PyArray_NDIM(a) < 2 || PyArray_NDIM(a) != PyArray_NDIM(b)) {
        return 0;
    }
    const int last = PyArray_NDIM(a) - 1;
    of->batches = 1;
    for (int d = 0; d < last - 1; d++) {
        if (PyArray_DIM(a, d) != PyArray_DIM(b, d)) {
            return 0;
        }
        of->batches *= PyArray_DIM(a, d);
    }
    of->rows = PyArray_DIM(a, last - 1);
    of->others = PyArray_DIM(b, last - 1);
    of->n = PyArray_DIM(a, last);
    return PyArray_DIM(b, last) == of->n;
}

/* Distances from the products of all pairs of rows, times -2, and the rows' own squares, of which `space` takes those of the others. Roots take so long
 * that wider vectors would not be faster. */
#define LENGTHS_OF_PRODUCTS(T, ROOT)                                                                                                       \
    static void lengths_##T(const T *a, npy_intp rows, const T *b, npy_intp others, npy_intp n, T *restrict squares, T *restrict to)       \
    {                                                                                                                                      \
        for (npy_intp r = 0; r < rows + others; r++) {                                                                                     \
            const T *row = r < others ? b + r * n : a + (r - others) * n;                                                                  \
            T own = 0;                                                                                                                     \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                own += row[i] * row[i];                                                                                                    \
            }                                                                                                                              \
            if (r < others) {                                                                                                              \
                squares[r] = own;                                                                                                          \
                continue;                                                                                                                  \
            }                                                                                                                              \
            for (npy_intp j = 0; j < others; j++) {                                                                                        \
                const T square = own + squares[j] + to[j];                                                                                 \
                to[j] = ROOT(square <= 0 ? 0 : square);                                                                                    \
            }                                                                                                                              \
            to += others;                                                                                                                  \
        }                                                                                                                                  \
    }
LENGTHS_OF_PRODUCTS(float, sqrtf)
LENGTHS_OF_PRODUCTS(double, sqrt)

/* x1, x2, p, compute mode. */
static PyObject *cdist_kernel(PyObject *const *args)
{
    Between of;
    double p;
    Py_ssize_t mode = 0;
    if (!read_between(args[0], args[1], &of) || !as_double(args[2], &p) || p < 0 || (args[3] != Py_None && !as_index(args[3], &mode))) {
        return NULL;
    }
    const int by_product = p == 2 && mode != 2 && (mode == 1 || of.rows > FEW_ROWS || of.others > FEW_ROWS);
    if (by_product && (!has_blas() || !of.batches || !of.rows || !of.others || !of.n)) {
        return NULL;
    }
    PyArrayObject *first = (PyArrayObject *)args[0];
    npy_intp shape[MAX_DIMS];
    const int ndim = PyArray_NDIM(first);
    copy_dims(shape, PyArray_DIMS(first), ndim);
    shape[ndim - 1] = of.others;
    PyObject *out = new_array(ndim, shape, PyArray_DESCR(first));
    void *space = by_product ? PyMem_RawMalloc((size_t)(of.others * of.width)) : NULL;
    if (by_product && space == NULL) {
        Py_CLEAR(out);
        PyErr_NoMemory();
    }
    if (out != NULL) {
        const char *a = PyArray_BYTES(first), *b = PyArray_BYTES((PyArrayObject *)args[1]);
        char *to = PyArray_BYTES((PyArrayObject *)out);
        PyThreadState *thread = PyArray_SIZE((PyArrayObject *)out) * of.n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        for (npy_intp batch = 0; batch < of.batches; batch++) {
            if (by_product) {
                multiply(of.width, 0, 1, of.rows, of.others, of.n, -2, a, of.n, b, of.n, 0, to, of.others);
                if (of.width == 4) {
                    lengths_float((const float *)a, of.rows, (const float *)b, of.others, of.n, space, (float *)to);
                }
                else {
                    lengths_double((const double *)a, of.rows, (const double *)b, of.others, of.n, space, (double *)to);
                }
            }
            else {
                CHOOSE(distances_between, of.width, a, of.rows, b, of.others, of.n, p, to);
            }
            a += of.rows * of.n * of.width;
            b += of.others * of.n * of.width;
            to += of.rows * of.others * of.width;
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    PyMem_RawFree(space);
    return out;
}

/* grad, x1, x2, p, the distances. Declines what goes through a product. */
static PyObject *cdist_backward_kernel(PyObject *const *args)
{
    Between of;
    double p;
    if (!read_between(args[1], args[2], &of) || !is_array(args[0]) || !is_array(args[4]) || float_width((PyArrayObject *)args[0]) != of.width ||
        float_width((PyArrayObject *)args[4]) != of.width || !as_double(args[3], &p) || p < 0 || (p == 2 && (of.rows > FEW_ROWS || of.others > FEW_ROWS)) ||
        PyArray_SIZE((PyArrayObject *)args[0]) != of.batches * of.rows * of.others ||
        PyArray_SIZE((PyArrayObject *)args[4]) != of.batches * of.rows * of.others) {
        return NULL;
    }
    PyArrayObject *grad = contiguous_of((PyArrayObject *)args[0]), *lengths = grad == NULL ? NULL : contiguous_of((PyArrayObject *)args[4]);
    PyObject *out = lengths == NULL ? NULL : new_like((PyArrayObject *)args[1]);
    if (out != NULL) {
        const char *g = PyArray_BYTES(grad), *length = PyArray_BYTES(lengths), *a = PyArray_BYTES((PyArrayObject *)args[1]), *b = PyArray_BYTES((PyArrayObject *)args[2]);
        char *to = PyArray_BYTES((PyArrayObject *)out);
        memset(to, 0, (size_t)PyArray_NBYTES((PyArrayObject *)out));
        PyThreadState *thread = PyArray_SIZE(grad) * of.n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        for (npy_intp batch = 0; batch < of.batches; batch++) {
            CHOOSE(between_backward, of.width, g, a, of.rows, b, of.others, of.n, p, length, to);
            a += of.rows * of.n * of.width;
            to += of.rows * of.n * of.width;
            b += of.others * of.n * of.width;
            g += of.rows * of.others * of.width;
            length += of.rows * of.others * of.width;
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF((PyObject *)grad);
    Py_XDECREF((PyObject *)lengths);
    return out;
}

const KernelEntry distance_kernels[] = {
    {"matmul.cdist_forward", cdist_kernel},
    {"matmul.cdist_backward", cdist_backward_kernel},
    {"matmul.pdist_forward", pdist_kernel},
    {"matmul.pdist_backward", pdist_backward_kernel},
    {NULL, NULL},
};
