/* Products of few vectors with a matrix of bytes that has a scale for each row: each byte is read once and becomes float32 in a register, since memory is what
 * such a product waits for. The Python kernel of `matmul.py` says the same; larger products are left to it, and to the BLAS.
 */
#include "../runtime/plan.h"
#include "few_vectors.h"

/* self, mat2, scales */
static PyObject *byte_product_kernel(PyObject *const *args)
{
    Row widen, widen_scale;
    PyArrayObject *self = (PyArrayObject *)args[0], *matrix = (PyArrayObject *)args[1], *scales = (PyArrayObject *)args[2];
    if (!is_array(args[0]) || !is_array(args[1]) || !is_array(args[2]) || PyArray_NDIM(self) != 2 || PyArray_NDIM(matrix) != 2 ||
        PyArray_NDIM(scales) != 1 || PyArray_DESCR(matrix)->type_num != NPY_BYTE || !is_contiguous(matrix) || !is_contiguous(self) ||
        !is_contiguous(scales) || kind_widened(args[0], &widen) != KIND_FLOAT || kind_widened(args[2], &widen_scale) != KIND_FLOAT) {
        return NULL;
    }
    const npy_intp vectors = PyArray_DIM(self, 0), k = PyArray_DIM(self, 1), rows = PyArray_DIM(matrix, 0);
    if (vectors < 1 || vectors > MOST_VECTORS || k != PyArray_DIM(matrix, 1) || rows != PyArray_DIM(scales, 0) || rows == 0) {
        return NULL;
    }
    const npy_intp dims[2] = {vectors, rows};
    float *space = PyMem_RawMalloc((size_t)(vectors * k + rows + 1) * sizeof(float)), *scale = space + vectors * k;
    PyObject *out = space == NULL ? PyErr_NoMemory() : new_array(2, dims, S.descr32);
    if (out == NULL) {
        PyMem_RawFree(space);
        return NULL;
    }
    const npy_intp item = PyArray_ITEMSIZE(self), scale_item = PyArray_ITEMSIZE(scales);
    if (widen != NULL) {
        widen((char *)space, 4, PyArray_BYTES(self), item, vectors * k);
    }
    else {
        memcpy(space, PyArray_DATA(self), (size_t)(vectors * k) * sizeof(float));
    }
    if (widen_scale != NULL) {
        widen_scale((char *)scale, 4, PyArray_BYTES(scales), scale_item, rows);
    }
    else {
        memcpy(scale, PyArray_DATA(scales), (size_t)rows * sizeof(float));
    }
    PyThreadState *thread = rows * k >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    float *sums = PyArray_DATA((PyArrayObject *)out);
    FewVectors few = {ELEMENT_I8, PyArray_BYTES(matrix), rows, k, k, 0, (int)vectors, space, NULL, sums};
    by_few_vectors(&few);
    for (npy_intp v = 0; v < vectors; v++) {
        for (npy_intp r = 0; r < rows; r++) {
            sums[v * rows + r] *= scale[r];
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    PyMem_RawFree(space);
    if (PyArray_DESCR(self) != S.descr32) {
        Py_SETREF(out, (PyObject *)converted((PyArrayObject *)out, PyArray_DESCR(self)));
    }
    return out;
}

const KernelEntry byte_product_kernels[] = {
    {"matmul.weight_int8pack_mm", byte_product_kernel, HALVES},
    {NULL, NULL},
};
