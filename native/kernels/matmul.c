/* Products of matrices so small that a call of the BLAS costs more than the product. Larger ones are left to numpy. */
#include "native.h"

#define SMALL_PRODUCT 512 /* elements of the right matrix, and multiplications by the left one's rows, up to which the loop serves */

#define LOOPS "matmul_loops.h"
#include "variants.h"

static int step_of(PyArrayObject *array, int dim, int width, npy_intp *step)
{
    npy_intp stride = PyArray_STRIDE(array, dim);
    *step = stride / width;
    return stride % width == 0;
}

/* `left` (..., k) times `right` (k, n) or, transposed, (n, k). `left` has at least two dimensions. */
static PyObject *product(PyObject *const left_object, PyObject *const right_object, PyObject *added, int transposed)
{
    if (!is_array(left_object) || !is_array(right_object)) {
        return NULL;
    }
    PyArrayObject *left = (PyArrayObject *)left_object, *right = (PyArrayObject *)right_object;
    int width = float_width(left), ndim = PyArray_NDIM(left);
    if (!width || float_width(right) != width || PyArray_NDIM(right) != 2 || ndim < 2 || ndim > MAX_DIMS) {
        return NULL;
    }
    if (!(PyArray_FLAGS(left) & PyArray_FLAGS(right) & NPY_ARRAY_ALIGNED) || (ndim > 2 && !is_contiguous(left))) {
        return NULL;
    }
    npy_intp k = PyArray_DIM(left, ndim - 1), n = PyArray_DIM(right, transposed ? 0 : 1), m = 1;
    npy_intp step_a[2], step_b[2], dims[MAX_DIMS];
    for (int d = 0; d < ndim - 1; d++) {
        dims[d] = PyArray_DIM(left, d);
        m *= dims[d];
    }
    dims[ndim - 1] = n;
    if (PyArray_DIM(right, transposed ? 1 : 0) != k || !m || !n || !k || k * n > SMALL_PRODUCT || m * k * n > 2 * SMALL_PRODUCT) {
        return NULL;
    }
    if (!step_of(left, ndim - 2, width, &step_a[0]) || !step_of(left, ndim - 1, width, &step_a[1]) ||
        !step_of(right, transposed ? 1 : 0, width, &step_b[0]) || !step_of(right, transposed ? 0 : 1, width, &step_b[1])) {
        return NULL;
    }
    if (ndim > 2) { /* the rows of all matrices follow each other; a dimension of size 1 may have any stride */
        step_a[0] = k;
        step_a[1] = 1;
    }
    void *bias = NULL;
    if (added != Py_None) {
        if (dense_width(added) != width || PyArray_NDIM((PyArrayObject *)added) != 1 || PyArray_DIM((PyArrayObject *)added, 0) != n) {
            return NULL;
        }
        bias = PyArray_DATA((PyArrayObject *)added);
    }
    PyObject *out = new_array(ndim, dims, PyArray_DESCR(left));
    if (out != NULL) {
        CHOOSE(small_product, width, PyArray_DATA(left), step_a, PyArray_DATA(right), step_b, bias, PyArray_DATA((PyArrayObject *)out), m,
               k, n);
    }
    return out;
}

static PyObject *matmul_kernel(PyObject *const *args)
{
    return product(args[0], args[1], Py_None, 0);
}

static PyObject *mm_kernel(PyObject *const *args)
{
    return is_array(args[0]) && PyArray_NDIM((PyArrayObject *)args[0]) == 2 ? product(args[0], args[1], Py_None, 0) : NULL;
}

static PyObject *linear_kernel(PyObject *const *args)
{
    return product(args[0], args[1], args[2], 1);
}

const KernelEntry matmul_kernels[] = {
    {"matmul.fast_matmul", matmul_kernel},
    {"matmul.fast_mm", mm_kernel},
    {"matmul.fast_linear", linear_kernel},
    {NULL, NULL},
};
