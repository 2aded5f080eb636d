/* What pooling and convolution share: windows of up to three dimensions over dense planes. Fewer dimensions have leading ones of size 1. */
#ifndef MINDTORCH_WINDOWS_H
#define MINDTORCH_WINDOWS_H

#include "native.h"

extern INTERNAL const KernelEntry pool_kernels[];

typedef struct {
    npy_intp in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} Windows;

/* An int, or a list or tuple of one or `dims` ints, to the last `dims` of three sizes. With an empty list or None, `otherwise`; 0 to decline. */
static inline int read_sizes(PyObject *object, int dims, npy_intp *sizes, const npy_intp *otherwise, npy_intp first)
{
    for (int d = 0; d < 3 - dims; d++) {
        sizes[d] = first;
    }
    Py_ssize_t number;
    if (as_index(object, &number)) {
        for (int d = 3 - dims; d < 3; d++) {
            sizes[d] = number;
        }
        return 1;
    }
    int listed = PyTuple_Check(object) || PyList_CheckExact(object);
    Py_ssize_t count = listed ? Py_SIZE(object) : 0;
    if ((object == Py_None || (listed && !count)) && otherwise != NULL) {
        for (int d = 0; d < 3; d++) {
            sizes[d] = otherwise[d];
        }
        return 1;
    }
    if (!listed || (count != 1 && count != dims)) {
        return 0;
    }
    for (int d = 0; d < dims; d++) {
        if (!as_index(PySequence_Fast_GET_ITEM(object, count == 1 ? 0 : d), &number)) {
            return 0;
        }
        sizes[3 - dims + d] = number;
    }
    return 1;
}

/* The places of the kernel, from `from` up to `to`, at which a window that begins at `start` has elements of the input. */
static inline void places_inside(npy_intp start, npy_intp size, npy_intp kernel, npy_intp dilation, npy_intp *from, npy_intp *to)
{
    *from = start < 0 ? (-start + dilation - 1) / dilation : 0;
    npy_intp end = start < size ? (size - start + dilation - 1) / dilation : 0;
    *to = end < kernel ? end : kernel;
}

/* The windows, from `from` up to `to`, whose element at the place `offset` (in elements of the input, less the padding) lies in the input. */
static inline void windows_inside(npy_intp offset, npy_intp size, npy_intp count, npy_intp stride, npy_intp *from, npy_intp *to)
{
    *from = offset < 0 ? (-offset + stride - 1) / stride : 0;
    npy_intp end = offset < size ? (size - offset + stride - 1) / stride : 0;
    *to = end < count ? end : count;
    if (*to < *from) {
        *to = *from;
    }
}

/* The array, or a dense copy of it; a new reference. */
static inline PyArrayObject *dense(PyObject *object)
{
    if (is_contiguous((PyArrayObject *)object)) {
        return (PyArrayObject *)Py_NewRef(object);
    }
    return (PyArrayObject *)PyArray_FROM_OF(object, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED);
}

#endif
