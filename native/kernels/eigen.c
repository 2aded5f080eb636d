/* Eigenvalues of symmetric matrices, and singular values, by the LAPACK that numpy carries in their own precision, which numpy does not have for float32: as
 * PyTorch has them, signs of vectors included.
 */
#include "kinds.h"
#include <math.h>
#include "blas.h"

typedef void (*Eigen)(const char *job, const char *part, const npy_int64 *n, void *a, const npy_int64 *row, void *values, void *work, const npy_int64 *length,
                      npy_int64 *integers, const npy_int64 *integers_length, npy_int64 *info, size_t, size_t);
typedef void (*Singular)(const char *job, const npy_int64 *m, const npy_int64 *n, void *a, const npy_int64 *row, void *values, void *u, const npy_int64 *u_row,
                         void *v, const npy_int64 *v_row, void *work, const npy_int64 *length, npy_int64 *integers, npy_int64 *info, size_t);

/* Float matrices that are worth a look: their width, or 0. */
static int matrices(PyObject *object)
{
    PyArrayObject *a = (PyArrayObject *)object;
    const int width = is_array(object) ? float_width(a) : 0;
    return width && PyArray_NDIM(a) >= 2 && PyArray_SIZE(a) ? width : 0;
}

/* The number that a query of LAPACK's left. */
static npy_int64 length_of(int width, const void *work)
{
    return (npy_int64)(width == 4 ? nextafterf(*(const float *)work, INFINITY) : *(const double *)work) + 1;
}

static int all_finite(PyArrayObject *a, int width)
{
    const npy_intp n = PyArray_SIZE(a);
    const void *data = PyArray_DATA(a);
    double none = 0; /* times zero, all but numbers is NaN */
    for (npy_intp i = 0; i < n; i++) {
        none += 0 * (width == 4 ? (double)((const float *)data)[i] : ((const double *)data)[i]);
    }
    return none == 0;
}

/* eigh(A, UPLO, compute_v) */
static PyObject *eigh_kernel(PyObject *const *args)
{
    PyArrayObject *given = (PyArrayObject *)args[0];
    const int width = matrices(args[0]), wanted = as_flag(args[2]), ndim = width ? PyArray_NDIM(given) : 0;
    if (!width || wanted < 0 || !PyUnicode_Check(args[1]) || PyUnicode_GET_LENGTH(args[1]) != 1 || PyArray_DIM(given, ndim - 1) != PyArray_DIM(given, ndim - 2)) {
        return NULL;
    }
    const npy_intp n = PyArray_DIM(given, ndim - 1), count = PyArray_SIZE(given) / (n * n), none = 0;
    const Py_UCS4 letter = PyUnicode_READ_CHAR(args[1], 0);
    Eigen function = (Eigen)lapack_function(width == 4 ? "ssyevd" : "dsyevd");
    if (function == NULL) {
        return NULL;
    }
    /* LAPACK's columns lie one behind the other, and it leaves the vectors in the place of the matrix. */
    PyObject *turned = PyArray_SwapAxes(given, ndim - 1, ndim - 2), *vectors = NULL;
    PyArrayObject *a = turned == NULL ? NULL : (PyArrayObject *)PyArray_NewCopy((PyArrayObject *)turned, NPY_CORDER);
    PyObject *values = new_array(ndim - 1, PyArray_DIMS(given), PyArray_DESCR(given));
    const char *job = wanted ? "V" : "N", *part = letter == 'U' || letter == 'u' ? "U" : "L";
    npy_int64 size = n, length = -1, integers_length = -1, info = 0, first_integer = 0;
    double first = 0;
    function(job, part, &size, NULL, &size, NULL, &first, &length, &first_integer, &integers_length, &info, 1, 1);
    length = length_of(width, &first);
    integers_length = first_integer;
    void *space = PyMem_RawMalloc((size_t)length * (size_t)width + (size_t)integers_length * sizeof(npy_int64) + 8);
    int fine = a != NULL && values != NULL && info == 0 && all_finite(a, width);
    if (space == NULL) {
        PyErr_NoMemory();
        fine = 0;
    }
    if (fine) {
        npy_int64 *integers = (npy_int64 *)((char *)space + ((size_t)length * (size_t)width + 7) / 8 * 8);
        char *matrix = PyArray_BYTES(a), *to = PyArray_BYTES((PyArrayObject *)values);
        PyThreadState *thread = count * n * n >= 1024 ? PyEval_SaveThread() : NULL;
        for (npy_intp b = 0; b < count && info == 0; b++, matrix += n * n * width, to += n * width) {
            function(job, part, &size, matrix, &size, to, space, &length, integers, &integers_length, &info, 1, 1);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        fine = info == 0;
    }
    PyMem_RawFree(space);
    if (fine) {
        vectors = wanted ? PyArray_SwapAxes(a, ndim - 1, ndim - 2) : new_array(1, &none, PyArray_DESCR(given));
    }
    Py_XDECREF(turned);
    Py_XDECREF(a);
    if (vectors != NULL) {
        return pair_of(values, vectors);
    }
    Py_XDECREF(values);
    return NULL;
}

/* svd(A, full_matrices, compute_uv, driver) */
static PyObject *svd_kernel(PyObject *const *args)
{
    PyArrayObject *given = (PyArrayObject *)args[0];
    const int width = matrices(args[0]), full = as_flag(args[1]), wanted = as_flag(args[2]), ndim = width ? PyArray_NDIM(given) : 0;
    Singular function = width && full >= 0 && wanted >= 0 ? (Singular)lapack_function(width == 4 ? "sgesdd" : "dgesdd") : NULL;
    if (function == NULL) {
        return NULL;
    }
    const npy_intp rows = PyArray_DIM(given, ndim - 2), columns = PyArray_DIM(given, ndim - 1), inner = rows < columns ? rows : columns;
    const npy_intp left = full ? rows : inner, right = full ? columns : inner, count = PyArray_SIZE(given) / (rows * columns), none = 0;
    npy_intp dims[NPY_MAXDIMS];
    memcpy(dims, PyArray_DIMS(given), (size_t)ndim * sizeof(npy_intp));
    PyArray_Descr *descr = PyArray_DESCR(given);
    /* LAPACK's columns lie one behind the other, as the results' do. */
    PyObject *turned = PyArray_SwapAxes(given, ndim - 1, ndim - 2);
    PyArrayObject *a = turned == NULL ? NULL : (PyArrayObject *)PyArray_NewCopy((PyArrayObject *)turned, NPY_CORDER);
    dims[ndim - 2] = inner;
    PyObject *values = new_array(ndim - 1, dims, descr), *parts[2] = {NULL, NULL}, *made = NULL;
    dims[ndim - 2] = left, dims[ndim - 1] = rows;
    parts[0] = wanted ? new_array(ndim, dims, descr) : new_array(1, &none, descr);
    dims[ndim - 2] = columns, dims[ndim - 1] = right;
    parts[1] = wanted ? new_array(ndim, dims, descr) : new_array(1, &none, descr);
    const char *job = !wanted ? "N" : full ? "A" : "S";
    const npy_int64 m = rows, n = columns, v_row = right;
    npy_int64 length = -1, info = 0;
    double first = 0;
    function(job, &m, &n, NULL, &m, NULL, NULL, &m, NULL, &v_row, &first, &length, NULL, &info, 1);
    length = length_of(width, &first);
    void *space = PyMem_RawMalloc((size_t)length * (size_t)width + (size_t)(8 * inner) * sizeof(npy_int64) + 8);
    int fine = a != NULL && values != NULL && parts[0] != NULL && parts[1] != NULL && info == 0 && all_finite(a, width);
    if (space == NULL) {
        PyErr_NoMemory();
        fine = 0;
    }
    if (fine) {
        npy_int64 *integers = (npy_int64 *)((char *)space + ((size_t)length * (size_t)width + 7) / 8 * 8);
        char *matrix = PyArray_BYTES(a), *to = PyArray_BYTES((PyArrayObject *)values), *u = PyArray_BYTES((PyArrayObject *)parts[0]);
        char *v = PyArray_BYTES((PyArrayObject *)parts[1]);
        PyThreadState *thread = count * rows * columns >= 1024 ? PyEval_SaveThread() : NULL;
        for (npy_intp b = 0; b < count && info == 0; b++) {
            function(job, &m, &n, matrix, &m, to, u, &m, v, &v_row, space, &length, integers, &info, 1);
            matrix += rows * columns * width;
            to += inner * width;
            u += wanted ? left * rows * width : 0;
            v += wanted ? right * columns * width : 0;
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        fine = info == 0;
    }
    PyMem_RawFree(space);
    Py_XDECREF(turned);
    Py_XDECREF(a);
    for (int i = 0; fine && wanted && i < 2; i++) {
        Py_SETREF(parts[i], PyArray_SwapAxes((PyArrayObject *)parts[i], ndim - 1, ndim - 2));
        fine = parts[i] != NULL;
    }
    if (fine) {
        made = PyTuple_Pack(3, parts[0], values, parts[1]);
    }
    Py_XDECREF(values);
    Py_XDECREF(parts[0]);
    Py_XDECREF(parts[1]);
    return made;
}

const KernelEntry eigen_kernels[] = {
    {"linalg.eigh", eigh_kernel},
    {"linalg.svd", svd_kernel},
    {NULL, NULL},
};
