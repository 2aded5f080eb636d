/* LU factorisation with partial pivoting, and substitution, of float32 and float64: recursive, as in Toledo, "Locality of Reference in LU Decomposition
 * with Partial Pivoting" (1997), so that most of the work is products of matrices.
 */
#include "factor.h"
#include <math.h>
#include "blas.h"
#include "kinds.h"

#define PANEL 8     /* columns that are factored one by one */
#define TOGETHER 16 /* rows that are substituted one by one */

/* c (m, n) -= a (m, k) b (k, n), of which a_row or a_k is 1. */
static void subtract_product(int width, npy_intp m, npy_intp n, npy_intp k, const void *a, npy_intp a_row, npy_intp a_k, const void *b, npy_intp b_row,
                             void *c, npy_intp c_row)
{
    multiply(width, a_k != 1, 0, m, n, k, -1, a, a_k == 1 ? a_row : a_k, b, b_row, 1, c, c_row);
}

#define LOOPS "factor_loops.h"
#include "variants.h"

static int is_int32(PyObject *object, npy_intp size)
{
    return is_array(object) && is_contiguous((PyArrayObject *)object) && PyArray_TYPE((PyArrayObject *)object) == NPY_INT32 &&
           PyArray_SIZE((PyArrayObject *)object) == size;
}

/* Room for the columns of a panel. */
static void *panel_space(npy_intp rows, int width)
{
    return PyMem_RawMalloc((size_t)(rows * PANEL * width + 1));
}

/* lu_in_place(lu, pivots, info): all of them written to. */
static PyObject *factor_kernel(PyObject *const *args)
{
    PyArrayObject *lu = (PyArrayObject *)args[0];
    int width = dense_width(args[0]);
    if (!width || PyArray_NDIM(lu) != 3 || !PyArray_ISWRITEABLE(lu) || !has_blas()) {
        return NULL;
    }
    npy_intp count = PyArray_DIM(lu, 0), rows = PyArray_DIM(lu, 1), columns = PyArray_DIM(lu, 2), steps = rows < columns ? rows : columns;
    if (!is_int32(args[1], count * steps) || !is_int32(args[2], count)) {
        return NULL;
    }
    npy_int32 *pivots = PyArray_DATA((PyArrayObject *)args[1]), *info = PyArray_DATA((PyArrayObject *)args[2]);
    char *data = PyArray_DATA(lu);
    void *space = panel_space(rows, width);
    if (space == NULL) {
        return PyErr_NoMemory();
    }
    PyThreadState *thread = PyArray_SIZE(lu) >= 1024 ? PyEval_SaveThread() : NULL;
    for (npy_intp b = 0; b < count; b++, data += rows * columns * width) {
        CHOOSE(factor, width, (void *)data, rows, columns, 0, columns, pivots + b * steps, info + b, space);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    PyMem_RawFree(space);
    return Py_NewRef(args[0]);
}

/* substituted(a, x, upper, unit): x, which is written to, of as many matrices as a. */
static PyObject *substituted_kernel(PyObject *const *args)
{
    PyArrayObject *a = (PyArrayObject *)args[0], *x = (PyArrayObject *)args[1];
    int width = dense_width(args[1]);
    if (!width || !is_array(args[0]) || float_width(a) != width || PyArray_NDIM(a) != 3 || PyArray_NDIM(x) != 3 || !PyArray_ISWRITEABLE(x) ||
        !PyArray_ISALIGNED(a) || PyArray_DIM(a, 0) != PyArray_DIM(x, 0) || PyArray_DIM(a, 1) != PyArray_DIM(x, 1) ||
        PyArray_DIM(a, 2) != PyArray_DIM(x, 1) || !PyBool_Check(args[2]) || !PyBool_Check(args[3])) {
        return NULL;
    }
    const npy_intp n = PyArray_DIM(x, 1), m = PyArray_DIM(x, 2), row = PyArray_STRIDE(a, 1) / width, column = PyArray_STRIDE(a, 2) / width;
    if (PyArray_STRIDE(a, 1) % width || PyArray_STRIDE(a, 2) % width || (n > TOGETHER && ((row != 1 && column != 1) || !has_blas()))) {
        return NULL;
    }
    const int upper = args[2] == Py_True, unit = args[3] == Py_True;
    const char *from = PyArray_DATA(a);
    char *data = PyArray_DATA(x);
    PyThreadState *thread = PyArray_SIZE(x) >= 1024 ? PyEval_SaveThread() : NULL;
    for (npy_intp b = 0; b < PyArray_DIM(x, 0); b++, from += PyArray_STRIDE(a, 0), data += n * m * width) {
        CHOOSE(substitute, width, (const void *)from, row, column, (void *)data, m, n, m, upper, unit);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return Py_NewRef(args[1]);
}

/* Square matrices with others of as many rows; 0 to decline. */
static int is_system(PyObject *first, PyObject *second)
{
    const PyArrayObject *a = (PyArrayObject *)first, *b = (PyArrayObject *)second;
    const int width = is_array(first) ? float_width((PyArrayObject *)first) : 0, ndim = width ? PyArray_NDIM(a) : 0;
    if (ndim < 2 || !is_array(second) || float_width((PyArrayObject *)second) != width || PyArray_NDIM(b) != ndim || !PyArray_SIZE((PyArrayObject *)b) ||
        PyArray_DIM(a, ndim - 1) != PyArray_DIM(a, ndim - 2) || PyArray_DIM(b, ndim - 2) != PyArray_DIM(a, ndim - 1)) {
        return 0;
    }
    for (int d = 0; d < ndim - 2; d++) {
        if (PyArray_DIM(a, d) != PyArray_DIM(b, d)) {
            return 0;
        }
    }
    return has_blas() ? width : 0;
}

/* The right sides `x` (n rows of m), which follow the rows of `lu`, become the solution; 0 for a singular matrix. */
static int solve_one(int width, void *lu, npy_intp n, char *x, npy_intp m, npy_int32 *pivots, void *space)
{
    npy_int32 info = 0;
    CHOOSE(factor, width, lu, n, n, 0, n, pivots, &info, space);
    if (info) {
        return 0;
    }
    for (npy_intp i = 0; i < n; i++) {
        char *one = x + i * m * width, *other = x + (pivots[i] - 1) * m * width;
        for (npy_intp k = 0; one != other && k < m * width; k++) {
            const char moved = one[k];
            one[k] = other[k];
            other[k] = moved;
        }
    }
    CHOOSE(substitute, width, lu, n, 1, (void *)x, m, n, m, 0, 1);
    CHOOSE(substitute, width, lu, n, 1, (void *)x, m, n, m, 1, 0);
    return 1;
}

size_t inverse_space(int width, npy_intp n)
{
    return (size_t)(n * n * width + n * PANEL * width + n * (npy_intp)sizeof(npy_int32));
}

int invert_by_products(int width, void *a, npy_intp n, void *space)
{
    char *lu = space, *panel = lu + n * n * width;
    memcpy(lu, a, (size_t)(n * n * width));
    memset(a, 0, (size_t)(n * n * width));
    for (npy_intp i = 0; i < n; i++) {
        if (width == 4) {
            ((float *)a)[i * n + i] = 1;
        }
        else {
            ((double *)a)[i * n + i] = 1;
        }
    }
    return solve_one(width, lu, n, a, n, (npy_int32 *)(panel + n * PANEL * width), panel);
}

int cholesky_by_products(int width, void *a, npy_intp n)
{
    return width == 4 ? CHOOSE32(cholesky)(a, n, n) : CHOOSE64(cholesky)(a, n, n);
}

/* solved(a, b): a^-1 b; declines where a matrix is singular. */
static PyObject *solved_kernel(PyObject *const *args)
{
    const int width = is_system(args[0], args[1]);
    if (!width) {
        return NULL;
    }
    PyObject *lu = PyArray_NewCopy((PyArrayObject *)args[0], NPY_CORDER), *x = lu == NULL ? NULL : PyArray_NewCopy((PyArrayObject *)args[1], NPY_CORDER);
    if (x == NULL) {
        Py_XDECREF(lu);
        return NULL;
    }
    const int ndim = PyArray_NDIM((PyArrayObject *)x);
    const npy_intp n = PyArray_DIM((PyArrayObject *)x, ndim - 2), m = PyArray_DIM((PyArrayObject *)x, ndim - 1), count = PyArray_SIZE((PyArrayObject *)x) / (n * m);
    char *data = PyArray_BYTES((PyArrayObject *)lu), *to = PyArray_BYTES((PyArrayObject *)x);
    char *space = panel_space(n, width);
    npy_int32 *pivots = PyMem_RawMalloc((size_t)n * sizeof(npy_int32));
    if (space == NULL || pivots == NULL) {
        Py_CLEAR(x);
        PyErr_NoMemory();
        goto done;
    }
    int fine = 1;
    PyThreadState *thread = count * n * n >= 1024 ? PyEval_SaveThread() : NULL;
    for (npy_intp b = 0; b < count && fine; b++) {
        fine = solve_one(width, data + b * n * n * width, n, to + b * n * m * width, m, pivots, space);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (!fine) {
        Py_CLEAR(x);
    }
done:
    PyMem_RawFree(space);
    PyMem_RawFree(pivots);
    Py_DECREF(lu);
    return x;
}

/* The determinants of square matrices: with `as_log` their signs and the logarithms of their sizes. */
static PyObject *determinants(PyObject *object, int as_log)
{
    PyArrayObject *a = (PyArrayObject *)object;
    const int width = is_array(object) ? float_width(a) : 0, ndim = width ? PyArray_NDIM(a) : 0;
    if (ndim < 2 || !PyArray_SIZE(a) || PyArray_DIM(a, ndim - 1) != PyArray_DIM(a, ndim - 2) || !has_blas()) {
        return NULL;
    }
    const npy_intp n = PyArray_DIM(a, ndim - 1), count = PyArray_SIZE(a) / (n * n);
    PyObject *lu = PyArray_NewCopy(a, NPY_CORDER), *first = new_array(ndim - 2, PyArray_DIMS(a), PyArray_DESCR(a));
    PyObject *second = as_log ? new_array(ndim - 2, PyArray_DIMS(a), PyArray_DESCR(a)) : Py_NewRef(Py_None);
    char *space = panel_space(n, width);
    npy_int32 *pivots = PyMem_RawMalloc((size_t)n * sizeof(npy_int32));
    int fine = lu != NULL && first != NULL && second != NULL;
    if (fine && (space == NULL || pivots == NULL)) {
        PyErr_NoMemory();
        fine = 0;
    }
    char *data = fine ? PyArray_BYTES((PyArrayObject *)lu) : NULL;
    PyThreadState *thread = fine && count * n * n >= 1024 ? PyEval_SaveThread() : NULL;
    for (npy_intp b = 0; fine && b < count; b++, data += n * n * width) {
        npy_int32 info = 0;
        CHOOSE(factor, width, (void *)data, n, n, 0, n, pivots, &info, (void *)space);
        double sign = 1;
        for (npy_intp i = 0; i < n; i++) {
            sign = pivots[i] == i + 1 ? sign : -sign;
        }
#define DIAGONAL(T, SIZE, LOGARITHM)                                                                                                       \
    do {                                                                                                                                   \
        T whole = (T)sign, logarithm = 0;                                                                                                  \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            const T one = ((const T *)data)[i * (n + 1)];                                                                                  \
            whole *= !as_log ? one : one > 0 ? (T)1 : one < 0 ? (T)-1 : one; /* 0 and NaN stay */                                          \
            logarithm += as_log ? LOGARITHM(SIZE(one)) : 0;                                                                                \
        }                                                                                                                                  \
        ((T *)PyArray_DATA((PyArrayObject *)first))[b] = whole;                                                                            \
        if (as_log) {                                                                                                                      \
            ((T *)PyArray_DATA((PyArrayObject *)second))[b] = logarithm;                                                                   \
        }                                                                                                                                  \
    } while (0)
        if (width == 4) {
            DIAGONAL(float, fabsf, logf);
        }
        else {
            DIAGONAL(double, fabs, log);
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    PyMem_RawFree(space);
    PyMem_RawFree(pivots);
    Py_XDECREF(lu);
    if (!fine || !as_log) {
        Py_XDECREF(second);
    }
    if (!fine) {
        Py_XDECREF(first);
        return NULL;
    }
    return as_log ? pair_of(first, second) : first;
}

/* det(A) */
static PyObject *det_kernel(PyObject *const *args)
{
    return determinants(args[0], 0);
}

/* slogdet(A) */
static PyObject *slogdet_kernel(PyObject *const *args)
{
    return determinants(args[0], 1);
}

const KernelEntry factor_kernels[] = {
    {"linalg.lu_in_place", factor_kernel},
    {"linalg.substituted", substituted_kernel},
    {"linalg.solved", solved_kernel},
    {"linalg.det", det_kernel},
    {"linalg.slogdet", slogdet_kernel},
    {NULL, NULL},
};
