/* The patches of convolutions, for a matrix product: an array of (batch, channels, places of the kernel, windows) from the input, and its adjoint. */
#include "windows.h"

typedef struct {
    Windows w;
    npy_intp planes, plane, windows, places; /* planes of the input, their elements, the windows over one, the places of a kernel */
} Patches;

#define PATCHES(name, T)                                                                                                                   \
    static void unroll_##name(const Patches *v, const T *x, T *patches)                                                                    \
    {                                                                                                                                      \
        const Windows *w = &v->w;                                                                                                          \
        for (npy_intp p = 0; p < v->planes; p++, x += v->plane) {                                                                          \
            EACH_ROW(                                                                                                                      \
                w,                                                                                                                         \
                T *part = patches; patches += v->windows;                                                                                  \
                if (to0 - from0 < w->out[0] || to1 - from1 < w->out[1] || to2 - from2 < w->out[2]) {                                       \
                    memset(part, 0, (size_t)v->windows * sizeof(T));                                                                       \
                },                                                                                                                         \
                if (step == 1) {                                                                                                           \
                    memcpy(part + to + from2, x + at + from2, (size_t)(to2 - from2) * sizeof(T));                                          \
                } else {                                                                                                                   \
                    for (npy_intp k = from2; k < to2; k++) {                                                                               \
                        part[to + k] = x[at + k * step];                                                                                   \
                    }                                                                                                                      \
                })                                                                                                                         \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static void fold_##name(const Patches *v, const T *patches, T *x)                                                                      \
    {                                                                                                                                      \
        memset(x, 0, (size_t)(v->planes * v->plane) * sizeof(T));                                                                          \
        for (npy_intp p = 0; p < v->planes; p++, x += v->plane) {                                                                          \
            EACH_ROW(                                                                                                                      \
                &v->w, const T *part = patches; patches += v->windows,                                                                     \
                if (step == 1) {                                                                                                           \
                    for (npy_intp k = from2; k < to2; k++) {                                                                               \
                        x[at + k] += part[to + k];                                                                                         \
                    }                                                                                                                      \
                } else {                                                                                                                   \
                    for (npy_intp k = from2; k < to2; k++) {                                                                               \
                        x[at + k * step] += part[to + k];                                                                                  \
                    }                                                                                                                      \
                })                                                                                                                         \
        }                                                                                                                                  \
    }

PATCHES(float, float)
PATCHES(double, double)

/* From the sizes of the input, the kernel, the windows, their stride, padding and dilation: tuples of one to three. 0 declines. */
static int read_patches(PyObject *in, PyObject *const *rest, npy_intp planes, int dims, Patches *v)
{
    Windows *w = &v->w;
    if (dims < 1 || dims > 3 || !read_sizes(in, dims, w->in, NULL, 1) || !read_sizes(rest[0], dims, w->kernel, NULL, 1) ||
        !read_sizes(rest[1], dims, w->out, NULL, 1) || !read_sizes(rest[2], dims, w->stride, NULL, 1) ||
        !read_sizes(rest[3], dims, w->padding, NULL, 0) || !read_sizes(rest[4], dims, w->dilation, NULL, 1)) {
        return 0;
    }
    v->planes = planes;
    v->plane = v->windows = v->places = 1;
    for (int d = 0; d < 3; d++) {
        if (w->in[d] < 0 || w->kernel[d] < 1 || w->out[d] < 0 || w->stride[d] < 1 || w->padding[d] < 0 || w->dilation[d] < 1) {
            return 0;
        }
        v->plane *= w->in[d];
        v->windows *= w->out[d];
        v->places *= w->kernel[d];
    }
    return 1;
}

/* unrolled(x, kernel, out, stride, padding, dilation) */
static PyObject *unrolled_kernel(PyObject *const *args)
{
    PyArrayObject *x = (PyArrayObject *)args[0];
    int width = is_array(args[0]) ? float_width(x) : 0, dims = width ? PyArray_NDIM(x) - 2 : 0;
    if (dims < 1 || dims > 3) {
        return NULL;
    }
    Patches v = {.planes = 0};
    PyObject *in = tuple_of(dims, PyArray_DIMS(x) + 2);
    if (in == NULL) {
        return NULL;
    }
    int fits = read_patches(in, args + 1, PyArray_DIM(x, 0) * PyArray_DIM(x, 1), dims, &v);
    Py_DECREF(in);
    int moved = v.places > 1 || v.plane != v.windows; /* else the input itself */
    for (int d = 0; d < 3; d++) {
        moved |= v.w.padding[d] || v.w.stride[d] > 1;
    }
    if (!fits || !moved) {
        return NULL;
    }
    npy_intp shape[4] = {PyArray_DIM(x, 0), PyArray_DIM(x, 1), v.places, v.windows};
    PyArrayObject *from = dense(args[0]);
    PyObject *made = from == NULL ? NULL : new_array(4, shape, PyArray_DESCR(from));
    if (made != NULL) {
        const void *data = PyArray_DATA(from);
        void *to = PyArray_DATA((PyArrayObject *)made);
        PyThreadState *thread = PyArray_SIZE((PyArrayObject *)made) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        if (width == 4) {
            unroll_float(&v, data, to);
        }
        else {
            unroll_double(&v, data, to);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(from);
    return made;
}

/* folded(columns, spatial, kernel, out, stride, padding, dilation) */
static PyObject *folded_kernel(PyObject *const *args)
{
    PyArrayObject *columns = (PyArrayObject *)args[0];
    int width = is_array(args[0]) ? float_width(columns) : 0, dims = PyTuple_Check(args[1]) ? (int)PyTuple_GET_SIZE(args[1]) : 0;
    Patches v;
    if (!width || PyArray_NDIM(columns) != 4 ||
        !read_patches(args[1], args + 2, PyArray_DIM(columns, 0) * PyArray_DIM(columns, 1), dims, &v) ||
        PyArray_DIM(columns, 2) != v.places || PyArray_DIM(columns, 3) != v.windows) {
        return NULL;
    }
    npy_intp shape[5] = {PyArray_DIM(columns, 0), PyArray_DIM(columns, 1)};
    for (int d = 0; d < dims; d++) {
        shape[2 + d] = v.w.in[3 - dims + d];
    }
    PyArrayObject *from = dense(args[0]);
    PyObject *made = from == NULL ? NULL : new_array(2 + dims, shape, PyArray_DESCR(from));
    if (made != NULL) {
        const void *data = PyArray_DATA(from);
        void *to = PyArray_DATA((PyArrayObject *)made);
        PyThreadState *thread = PyArray_SIZE(columns) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        if (width == 4) {
            fold_float(&v, data, to);
        }
        else {
            fold_double(&v, data, to);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(from);
    return made;
}

const KernelEntry patch_kernels[] = {
    {"conv.unrolled", unrolled_kernel},
    {"conv.folded", folded_kernel},
    {NULL, NULL},
};
