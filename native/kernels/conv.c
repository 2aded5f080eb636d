/* Convolutions that are too small for a matrix product of patches, and those of one kernel a channel: sums over the places of the kernel, each a loop
 * along the rows of the result.
 */
#include "windows.h"

#define MOST_PRODUCTS 16384 /* of a result; more of them are BLAS's */

typedef struct {
    Windows w;
    npy_intp batch, channels, outputs, groups; /* channels of the input; of the result */
    npy_intp plane_in, plane_out, places;
} Conv;

#define CONVOLVE(name, T)                                                                                                            \
    /* Adds one plane of the input, under one kernel, to one plane of the result. */                                                 \
    static void name##_plane(const Windows *w, const T *x, const T *kernel, T *y)                                                    \
    {                                                                                                                                \
        for (npy_intp a = 0; a < w->kernel[0]; a++) {                                                                                \
            npy_intp at0 = a * w->dilation[0] - w->padding[0], from0, to0;                                                           \
            windows_inside(at0, w->in[0], w->out[0], w->stride[0], &from0, &to0);                                                    \
            for (npy_intp b = 0; b < w->kernel[1]; b++) {                                                                            \
                npy_intp at1 = b * w->dilation[1] - w->padding[1], from1, to1;                                                       \
                windows_inside(at1, w->in[1], w->out[1], w->stride[1], &from1, &to1);                                                \
                for (npy_intp c = 0; c < w->kernel[2]; c++) {                                                                        \
                    npy_intp at2 = c * w->dilation[2] - w->padding[2], from2, to2, step = w->stride[2];                              \
                    windows_inside(at2, w->in[2], w->out[2], step, &from2, &to2);                                                    \
                    T weight = *kernel++;                                                                                            \
                    for (npy_intp i = from0; i < to0; i++) {                                                                         \
                        for (npy_intp j = from1; j < to1; j++) {                                                                     \
                            const T *row = x + ((i * w->stride[0] + at0) * w->in[1] + j * w->stride[1] + at1) * w->in[2] + at2;      \
                            T *out = y + (i * w->out[1] + j) * w->out[2];                                                            \
                            if (step == 1) {                                                                                         \
                                for (npy_intp k = from2; k < to2; k++) {                                                             \
                                    out[k] += weight * row[k];                                                                       \
                                }                                                                                                    \
                            }                                                                                                        \
                            else {                                                                                                   \
                                for (npy_intp k = from2; k < to2; k++) {                                                             \
                                    out[k] += weight * row[k * step];                                                                \
                                }                                                                                                    \
                            }                                                                                                        \
                        }                                                                                                            \
                    }                                                                                                                \
                }                                                                                                                    \
            }                                                                                                                        \
        }                                                                                                                            \
    }                                                                                                                                \
    static void name(const Conv *v, const T *x, const T *weight, const T *bias, T *y)                                                \
    {                                                                                                                                \
        npy_intp inputs = v->channels / v->groups, outputs = v->outputs / v->groups;                                                 \
        for (npy_intp n = 0; n < v->batch; n++) {                                                                                    \
            for (npy_intp o = 0; o < v->outputs; o++) {                                                                              \
                T *plane = y + (n * v->outputs + o) * v->plane_out;                                                                  \
                const T *first = x + (n * v->channels + o / outputs * inputs) * v->plane_in;                                         \
                for (npy_intp k = 0; k < v->plane_out; k++) {                                                                        \
                    plane[k] = bias == NULL ? 0 : bias[o];                                                                           \
                }                                                                                                                    \
                for (npy_intp i = 0; i < inputs; i++) {                                                                              \
                    name##_plane(&v->w, first + i * v->plane_in, weight + (o * inputs + i) * v->places, plane);                      \
                }                                                                                                                    \
            }                                                                                                                        \
        }                                                                                                                            \
    }

CONVOLVE(convolve_float, float)
CONVOLVE(convolve_double, double)

/* Sizes of a convolution; 0 declines, and leaves what the rule refuses to it. */
static int read_conv(PyArrayObject *x, PyArrayObject *weight, PyObject *const *args, Conv *v)
{
    int dims = PyArray_NDIM(weight) - 2, single = PyArray_NDIM(x) == dims + 1;
    Py_ssize_t groups;
    if (dims < 1 || dims > 3 || (!single && PyArray_NDIM(x) != dims + 2) || args[6] != Py_False || !as_index(args[8], &groups) || groups < 1) {
        return 0;
    }
    if (!read_sizes(args[3], dims, v->w.stride, NULL, 1) || !read_sizes(args[4], dims, v->w.padding, NULL, 0) ||
        !read_sizes(args[5], dims, v->w.dilation, NULL, 1)) {
        return 0;
    }
    v->batch = single ? 1 : PyArray_DIM(x, 0);
    v->channels = PyArray_DIM(x, !single);
    v->outputs = PyArray_DIM(weight, 0);
    v->groups = groups;
    if (v->channels != PyArray_DIM(weight, 1) * groups || v->outputs % groups || v->outputs == 0 || v->channels == 0) {
        return 0;
    }
    v->plane_in = v->plane_out = v->places = 1;
    for (int d = 0; d < 3; d++) {
        int at = d - (3 - dims);
        v->w.in[d] = at < 0 ? 1 : PyArray_DIM(x, at + 1 + !single);
        v->w.kernel[d] = at < 0 ? 1 : PyArray_DIM(weight, at + 2);
        if (v->w.stride[d] < 1 || v->w.dilation[d] < 1 || v->w.padding[d] < 0 || v->w.kernel[d] < 1) {
            return 0;
        }
        npy_intp reach = v->w.in[d] + 2 * v->w.padding[d] - v->w.dilation[d] * (v->w.kernel[d] - 1) - 1;
        if (reach < 0) {
            return 0;
        }
        v->w.out[d] = reach / v->w.stride[d] + 1;
        v->plane_in *= v->w.in[d];
        v->plane_out *= v->w.out[d];
        v->places *= v->w.kernel[d];
    }
    return 1;
}

/* convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
static PyObject *convolution_kernel(PyObject *const *args)
{
    PyArrayObject *x = (PyArrayObject *)args[0], *weight = (PyArrayObject *)args[1], *bias = args[2] == Py_None ? NULL : (PyArrayObject *)args[2];
    int width = dense_width(args[0]);
    Conv v;
    if (!width || dense_width(args[1]) != width || (bias != NULL && dense_width(args[2]) != width) || !read_conv(x, weight, args, &v) ||
        (bias != NULL && PyArray_SIZE(bias) != v.outputs)) {
        return NULL;
    }
    npy_intp products = v.batch * v.outputs * v.plane_out * v.places * (v.channels / v.groups);
    int by_channel = v.channels == v.groups && v.outputs == v.groups && v.groups > 1;
    if (products > MOST_PRODUCTS && !by_channel) {
        return NULL;
    }
    int dims = PyArray_NDIM(weight) - 2, single = PyArray_NDIM(x) == dims + 1;
    npy_intp shape[5] = {v.batch, v.outputs};
    for (int d = 0; d < dims; d++) {
        shape[2 + d] = v.w.out[3 - dims + d];
    }
    PyObject *made = new_array(dims + 2 - single, shape + single, PyArray_DESCR(x));
    if (made == NULL) {
        return NULL;
    }
    void *y = PyArray_DATA((PyArrayObject *)made), *shift = bias == NULL ? NULL : PyArray_DATA(bias);
    PyThreadState *thread = products >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (width == 4) {
        convolve_float(&v, PyArray_DATA(x), PyArray_DATA(weight), shift, y);
    }
    else {
        convolve_double(&v, PyArray_DATA(x), PyArray_DATA(weight), shift, y);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return made;
}

const KernelEntry conv_kernels[] = {
    {"conv.convolution", convolution_kernel},
    {NULL, NULL},
};
