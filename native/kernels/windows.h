/* What pooling and convolution share: windows of up to three dimensions over dense planes. Fewer dimensions have leading ones of size 1. */
#ifndef MINDTORCH_WINDOWS_H
#define MINDTORCH_WINDOWS_H

#include "native.h"

extern INTERNAL const KernelEntry pool_kernels[];

typedef struct {
    npy_intp in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} Windows;

/* The elements of a plane of three sizes. */
static inline npy_intp volume(const npy_intp *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

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

/* The elements of window `o`, which has no dilation, along a dimension; how many count, those of the padding too if it is `padded`. */
static inline npy_intp counted_places(const Windows *w, int d, npy_intp o, int padded, npy_intp *from, npy_intp *to)
{
    const npy_intp start = o * w->stride[d] - w->padding[d], end = start + w->kernel[d], limit = w->in[d] + w->padding[d];
    *from = start < 0 ? 0 : start;
    *to = end < w->in[d] ? end : w->in[d];
    return padded ? (end < limit ? end : limit) - start : *to - *from;
}

/* In planes with their padding: how far the place `p` of a kernel is from its first one. */
static inline npy_intp place_offset(const Windows *w, npy_intp p)
{
    const npy_intp i = p / (w->kernel[1] * w->kernel[2]), j = p / w->kernel[2] % w->kernel[1], k = p % w->kernel[2];
    const npy_intp rows = w->in[1] + 2 * w->padding[1], row = w->in[2] + 2 * w->padding[2];
    return (i * w->dilation[0] * rows + j * w->dilation[1]) * row + k * w->dilation[2];
}

/* For each place of the kernel, BEFORE and the rows of windows whose element there lies in the input: ROW sees that of window k, from `from2` up to `to2`,
 * at `at + k * step` in the plane, and the window itself at `to + k` among all. */
#define EACH_ROW(w, BEFORE, ROW)                                                                                                           \
    for (npy_intp a = 0; a < (w)->kernel[0]; a++) {                                                                                        \
        npy_intp at0 = a * (w)->dilation[0] - (w)->padding[0], from0, to0;                                                                 \
        windows_inside(at0, (w)->in[0], (w)->out[0], (w)->stride[0], &from0, &to0);                                                        \
        for (npy_intp b = 0; b < (w)->kernel[1]; b++) {                                                                                    \
            npy_intp at1 = b * (w)->dilation[1] - (w)->padding[1], from1, to1;                                                             \
            windows_inside(at1, (w)->in[1], (w)->out[1], (w)->stride[1], &from1, &to1);                                                    \
            for (npy_intp c = 0; c < (w)->kernel[2]; c++) {                                                                                \
                const npy_intp at2 = c * (w)->dilation[2] - (w)->padding[2], step = (w)->stride[2];                                        \
                npy_intp from2, to2;                                                                                                       \
                windows_inside(at2, (w)->in[2], (w)->out[2], step, &from2, &to2);                                                          \
                BEFORE;                                                                                                                    \
                for (npy_intp i = from0; i < to0 && from2 < to2; i++) {                                                                    \
                    for (npy_intp j = from1; j < to1; j++) {                                                                               \
                        const npy_intp at = ((i * (w)->stride[0] + at0) * (w)->in[1] + j * (w)->stride[1] + at1) * (w)->in[2] + at2;       \
                        const npy_intp to = (i * (w)->out[1] + j) * (w)->out[2];                                                           \
                        ROW;                                                                                                               \
                    }                                                                                                                      \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
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
