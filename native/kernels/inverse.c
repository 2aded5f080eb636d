/* Inverses and Cholesky factors of float32 and float64, written as PyTorch lays them out: column by column. Small matrices by loops that are made for them.
 * A matrix that has none is left to Python, which says what is wrong with it.
 */
#include "blas.h"
#include "factor.h"
#include "kinds.h"
#include <math.h>

#define SMALL 16 /* rows up to which the loops serve */

/* --- loops */

#define SMALL_LOOPS(name, T, SIZE, ROOT)                                                                                                   \
    /* Gauss-Jordan elimination in place, with the rows swapped so that the largest element of a column divides; 0 for a singular matrix. */ \
    static int name##_invert(T *a, npy_intp n)                                                                                             \
    {                                                                                                                                      \
        npy_intp from[SMALL];                                                                                                              \
        for (npy_intp j = 0; j < n; j++) {                                                                                                 \
            npy_intp chosen = j;                                                                                                           \
            for (npy_intp i = j + 1; i < n; i++) {                                                                                         \
                chosen = SIZE(a[i * n + j]) > SIZE(a[chosen * n + j]) ? i : chosen;                                                        \
            }                                                                                                                              \
            from[j] = chosen;                                                                                                              \
            T *head = a + j * n;                                                                                                           \
            for (npy_intp k = 0; chosen != j && k < n; k++) {                                                                              \
                T moved = head[k];                                                                                                         \
                head[k] = a[chosen * n + k];                                                                                               \
                a[chosen * n + k] = moved;                                                                                                 \
            }                                                                                                                              \
            if (!(SIZE(head[j]) > 0)) {                                                                                                    \
                return 0;                                                                                                                  \
            }                                                                                                                              \
            const T by = 1 / head[j];                                                                                                      \
            head[j] = 1;                                                                                                                   \
            for (npy_intp k = 0; k < n; k++) {                                                                                             \
                head[k] *= by;                                                                                                             \
            }                                                                                                                              \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                T *restrict row = a + i * n;                                                                                               \
                const T *restrict first = head;                                                                                            \
                const T factor = row[j];                                                                                                   \
                if (i == j) {                                                                                                              \
                    continue;                                                                                                              \
                }                                                                                                                          \
                row[j] = 0;                                                                                                                \
                for (npy_intp k = 0; k < n; k++) {                                                                                         \
                    row[k] -= factor * first[k];                                                                                           \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (npy_intp j = n - 1; j >= 0; j--) { /* what swapped rows before swaps columns after */                                         \
            for (npy_intp i = 0; from[j] != j && i < n; i++) {                                                                             \
                T moved = a[i * n + j];                                                                                                    \
                a[i * n + j] = a[i * n + from[j]];                                                                                         \
                a[i * n + from[j]] = moved;                                                                                                \
            }                                                                                                                              \
        }                                                                                                                                  \
        return 1;                                                                                                                          \
    }                                                                                                                                      \
                                                                                                                                           \
    /* The factor whose columns lie one after the other, of the lower triangle; 0 for a matrix that is not positive definite. */           \
    static int name##_cholesky(T *a, npy_intp n)                                                                                           \
    {                                                                                                                                      \
        for (npy_intp j = 0; j < n; j++) {                                                                                                 \
            T *restrict column = a + j * n;                                                                                                \
            for (npy_intp k = 0; k < j; k++) {                                                                                             \
                const T *restrict before = a + k * n;                                                                                      \
                const T factor = before[j];                                                                                                \
                for (npy_intp i = j; i < n; i++) {                                                                                         \
                    column[i] -= factor * before[i];                                                                                       \
                }                                                                                                                          \
            }                                                                                                                              \
            if (!(column[j] > 0)) {                                                                                                        \
                return 0;                                                                                                                  \
            }                                                                                                                              \
            const T root = ROOT(column[j]);                                                                                                \
            for (npy_intp i = j; i < n; i++) {                                                                                             \
                column[i] = i == j ? root : column[i] / root;                                                                              \
            }                                                                                                                              \
        }                                                                                                                                  \
        return 1;                                                                                                                          \
    }

SMALL_LOOPS(float, float, fabsf, sqrtf)
SMALL_LOOPS(double, double, fabs, sqrt)

/* `space` is that of inverse_space where n is larger than SMALL. */
static int invert(int is_double, void *a, npy_intp n, void *space)
{
    if (n <= SMALL) {
        return is_double ? double_invert(a, n) : float_invert(a, n);
    }
    return invert_by_products(is_double ? 8 : 4, a, n, space);
}

static int factor(int is_double, void *a, npy_intp n)
{
    if (n <= SMALL) {
        return is_double ? double_cholesky(a, n) : float_cholesky(a, n);
    }
    return cholesky_by_products(is_double ? 8 : 4, a, n);
}

/* --- kernels */

/* Arrays of square matrices, to be written column by column, with a copy of the elements; NULL declines. `turned` copies their transposes. */
static PyObject *in_columns(PyObject *object, int turned)
{
    PyArrayObject *x = (PyArrayObject *)object;
    const int ndim = is_array(object) && float_width(x) ? PyArray_NDIM(x) : 0;
    if (ndim < 2 || ndim > MAX_DIMS || PyArray_DIM(x, ndim - 1) != PyArray_DIM(x, ndim - 2) || !PyArray_SIZE(x)) {
        return NULL;
    }
    if (PyArray_DIM(x, ndim - 1) > SMALL && !has_blas()) {
        return NULL;
    }
    npy_intp strides[MAX_DIMS], step = PyArray_ITEMSIZE(x);
    for (int k = 0; k < ndim; k++) {
        const int d = k == 0 ? ndim - 2 : k == 1 ? ndim - 1 : ndim - 1 - k;
        strides[d] = step;
        step *= PyArray_DIM(x, d);
    }
    PyObject *whole = new_array(ndim, PyArray_DIMS(x), PyArray_DESCR(x));
    PyObject *made = whole == NULL ? NULL : new_view((PyArrayObject *)whole, ndim, PyArray_DIMS(x), strides, PyArray_BYTES((PyArrayObject *)whole));
    npy_intp other[MAX_DIMS];
    copy_dims(other, PyArray_STRIDES(x), ndim);
    if (turned) {
        other[ndim - 1] = PyArray_STRIDE(x, ndim - 2);
        other[ndim - 2] = PyArray_STRIDE(x, ndim - 1);
    }
    Row row = row_of_size(PyArray_ITEMSIZE(x));
    if (made != NULL) {
        move_freely(ndim, PyArray_DIMS(x), PyArray_BYTES((PyArrayObject *)made), strides, PyArray_BYTES(x), other, row);
    }
    Py_XDECREF(whole);
    return made;
}

/* The matrices, which take over the reference, and an int32 of 0 for each. */
static PyObject *with_info(PyObject *made)
{
    PyObject *info = PyArray_ZEROS(PyArray_NDIM((PyArrayObject *)made) - 2, PyArray_DIMS((PyArrayObject *)made), NPY_INT32, 0);
    return pair_of(made, info);
}

/* inv_ex(A, check_errors) */
static PyObject *inverse_kernel(PyObject *const *args)
{
    PyObject *made = in_columns(args[0], 0);
    if (made == NULL) {
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)made;
    const npy_intp n = PyArray_DIM(x, PyArray_NDIM(x) - 1), count = PyArray_SIZE(x) / (n * n);
    const int width = float_width(x);
    char *data = PyArray_BYTES(x);
    void *space = n > SMALL ? PyMem_RawMalloc(inverse_space(width, n)) : NULL;
    int fine = n <= SMALL || space != NULL;
    PyThreadState *thread = PyArray_SIZE(x) * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; i < count && fine; i++) {
        fine = invert(width == 8, data + i * n * n * width, n, space);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    PyMem_RawFree(space);
    if (!fine) {
        Py_DECREF(made);
        return NULL;
    }
    return with_info(made);
}

/* cholesky_ex(self, upper, check_errors): of the upper triangle as the transpose of the lower one. */
static PyObject *cholesky_kernel(PyObject *const *args)
{
    const int upper = as_flag(args[1]);
    PyObject *made = upper < 0 ? NULL : in_columns(args[0], upper);
    if (made == NULL) {
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)made;
    const int ndim = PyArray_NDIM(x), width = float_width(x);
    const npy_intp n = PyArray_DIM(x, ndim - 1), count = PyArray_SIZE(x) / (n * n);
    char *data = PyArray_BYTES(x);
    int fine = 1;
    PyThreadState *thread = PyArray_SIZE(x) * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; i < count && fine; i++) {
        char *one = data + i * n * n * width;
        fine = factor(width == 8, one, n);
        for (npy_intp j = 0; j < n; j++) { /* NaN, which LAPACK lets pass */
            fine &= width == 8 ? ((double *)one)[j * n + j] > 0 : ((float *)one)[j * n + j] > 0;
        }
        for (npy_intp j = 1; j < n; j++) {
            memset(one + j * n * width, 0, (size_t)(j * width));
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (!fine) {
        Py_DECREF(made);
        return NULL;
    }
    if (upper) {
        npy_intp strides[MAX_DIMS];
        copy_dims(strides, PyArray_STRIDES(x), ndim);
        strides[ndim - 1] = PyArray_STRIDE(x, ndim - 2);
        strides[ndim - 2] = PyArray_STRIDE(x, ndim - 1);
        Py_SETREF(made, new_view(x, ndim, PyArray_DIMS(x), strides, data));
    }
    return made == NULL ? NULL : with_info(made);
}

const KernelEntry inverse_kernels[] = {
    {"linalg.inv_ex", inverse_kernel},
    {"linalg.cholesky_ex", cholesky_kernel},
    {NULL, NULL},
};
