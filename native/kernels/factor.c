/* LU factorisation with partial pivoting, and substitution, of float32 and float64: the inner blocks of what `ops/linalg.py` composes with products. */
#include "native.h"
#include <math.h>

/* The columns from `start` to `stop` of every matrix are factored in place; rows are swapped as a whole, and columns from `stop` are left as they are
 * otherwise. `pivots` gets the rows (from 1), `info` the first zero pivot (from 1) unless there was one before.
 */
#define FACTOR(name, T, SIZE)                                                                                                              \
    static void name##_panel(T *lu, npy_intp rows, npy_intp columns, npy_intp start, npy_intp stop, npy_int32 *pivots, npy_int32 *info)    \
    {                                                                                                                                      \
        for (npy_intp j = start; j < stop && j < rows; j++) {                                                                                          \
            npy_intp chosen = j;                                                                                                           \
            T largest = SIZE(lu[j * columns + j]);                                                                                         \
            for (npy_intp i = j + 1; i < rows && largest == largest; i++) {                                                                \
                T size = SIZE(lu[i * columns + j]);                                                                                        \
                if (size > largest || size != size) {                                                                                      \
                    largest = size;                                                                                                        \
                    chosen = i;                                                                                                            \
                }                                                                                                                          \
            }                                                                                                                              \
            pivots[j] = (npy_int32)(chosen + 1);                                                                                           \
            T *head = lu + j * columns, *other = lu + chosen * columns;                                                                    \
            for (npy_intp k = 0; chosen != j && k < columns; k++) {                                                                        \
                T moved = head[k];                                                                                                         \
                head[k] = other[k];                                                                                                        \
                other[k] = moved;                                                                                                          \
            }                                                                                                                              \
            if (head[j] == 0 && !*info) {                                                                                                  \
                *info = (npy_int32)(j + 1);                                                                                                \
            }                                                                                                                              \
            for (npy_intp i = j + 1; i < rows; i++) {                                                                                      \
                T *restrict row = lu + i * columns;                                                                                        \
                const T *restrict from = head;                                                                                             \
                T factor = head[j] == 0 ? row[j] : row[j] / head[j];                                                                       \
                row[j] = factor;                                                                                                           \
                for (npy_intp k = j + 1; k < stop; k++) {                                                                                  \
                    row[k] -= factor * from[k];                                                                                            \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    /* x becomes a^-1 x; the elements of a are `row` and `column` bytes apart, x is n rows of m. */                                        \
    static void name##_solve(const char *a, npy_intp row, npy_intp column, T *x, npy_intp n, npy_intp m, int upper, int unit)              \
    {                                                                                                                                      \
        for (npy_intp step = 0; step < n; step++) {                                                                                        \
            const npy_intp i = upper ? n - 1 - step : step, from = upper ? i + 1 : 0, to = upper ? n : i;                                  \
            T *restrict target = x + i * m;                                                                                                \
            for (npy_intp j = from; j < to; j++) {                                                                                         \
                const T factor = *(const T *)(a + i * row + j * column);                                                                   \
                const T *restrict source = x + j * m;                                                                                      \
                for (npy_intp k = 0; k < m; k++) {                                                                                         \
                    target[k] -= factor * source[k];                                                                                       \
                }                                                                                                                          \
            }                                                                                                                              \
            const T by = *(const T *)(a + i * row + i * column);                                                                           \
            for (npy_intp k = 0; !unit && k < m; k++) {                                                                                    \
                target[k] /= by;                                                                                                           \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

FACTOR(float, float, fabsf)
FACTOR(double, double, fabs)

static int is_int32(PyObject *object, npy_intp size)
{
    return is_array(object) && is_contiguous((PyArrayObject *)object) && PyArray_TYPE((PyArrayObject *)object) == NPY_INT32 &&
           PyArray_SIZE((PyArrayObject *)object) == size;
}

/* lu_panel(lu, start, stop, pivots, info): all of them written to. */
static PyObject *panel_kernel(PyObject *const *args)
{
    Py_ssize_t start, stop;
    PyArrayObject *lu = (PyArrayObject *)args[0];
    int width = dense_width(args[0]);
    if (!width || PyArray_NDIM(lu) != 3 || !PyArray_ISWRITEABLE(lu) || !as_index(args[1], &start) || !as_index(args[2], &stop)) {
        return NULL;
    }
    npy_intp count = PyArray_DIM(lu, 0), rows = PyArray_DIM(lu, 1), columns = PyArray_DIM(lu, 2), steps = rows < columns ? rows : columns;
    if (start < 0 || stop > columns || start > stop || !is_int32(args[3], count * steps) || !is_int32(args[4], count)) {
        return NULL;
    }
    npy_int32 *pivots = PyArray_DATA((PyArrayObject *)args[3]), *info = PyArray_DATA((PyArrayObject *)args[4]);
    char *data = PyArray_DATA(lu);
    PyThreadState *thread = PyArray_SIZE(lu) >= 1024 ? PyEval_SaveThread() : NULL;
    for (npy_intp b = 0; b < count; b++, data += rows * columns * width) {
        if (width == 4) {
            float_panel((float *)data, rows, columns, start, stop, pivots + b * steps, info + b);
        }
        else {
            double_panel((double *)data, rows, columns, start, stop, pivots + b * steps, info + b);
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
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
    const npy_intp n = PyArray_DIM(x, 1), m = PyArray_DIM(x, 2), row = PyArray_STRIDE(a, 1), column = PyArray_STRIDE(a, 2);
    const int upper = args[2] == Py_True, unit = args[3] == Py_True;
    const char *from = PyArray_DATA(a);
    char *data = PyArray_DATA(x);
    PyThreadState *thread = PyArray_SIZE(x) >= 1024 ? PyEval_SaveThread() : NULL;
    for (npy_intp b = 0; b < PyArray_DIM(x, 0); b++, from += PyArray_STRIDE(a, 0), data += n * m * width) {
        if (width == 4) {
            float_solve(from, row, column, (float *)data, n, m, upper, unit);
        }
        else {
            double_solve(from, row, column, (double *)data, n, m, upper, unit);
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return Py_NewRef(args[1]);
}

const KernelEntry factor_kernels[] = {
    {"linalg.lu_panel", panel_kernel},
    {"linalg.substituted", substituted_kernel},
    {NULL, NULL},
};
