/* The patches of convolutions, for a matrix product: an array of (batch, channels, places of the kernel, windows) from the input, and its adjoint. */
#include "windows.h"

typedef struct {
    Windows w;
    npy_intp planes, plane, windows, places; /* planes of the input, their elements, the windows over one, the places of a kernel */
} Patches;

/* ROW sees each part of a row of windows that lies in the input: the element k from `from2` up to `to2` is at `at + k * step` in the plane, and at
 * `to + k` in the patches of this place. BEFORE comes before each place of the kernel.
 */
#define EACH_ROW(w, BEFORE, ROW)                                                                                                           \
    for (npy_intp a = 0; a < w->kernel[0]; a++) {                                                                                          \
        npy_intp at0 = a * w->dilation[0] - w->padding[0], from0, to0;                                                                     \
        windows_inside(at0, w->in[0], w->out[0], w->stride[0], &from0, &to0);                                                              \
        for (npy_intp b = 0; b < w->kernel[1]; b++) {                                                                                      \
            npy_intp at1 = b * w->dilation[1] - w->padding[1], from1, to1;                                                                 \
            windows_inside(at1, w->in[1], w->out[1], w->stride[1], &from1, &to1);                                                          \
            for (npy_intp c = 0; c < w->kernel[2]; c++, patches += v->windows) {                                                           \
                const npy_intp at2 = c * w->dilation[2] - w->padding[2], step = w->stride[2];                                              \
                npy_intp from2, to2;                                                                                                       \
                windows_inside(at2, w->in[2], w->out[2], step, &from2, &to2);                                                              \
                BEFORE;                                                                                                                    \
                for (npy_intp i = from0; i < to0 && from2 < to2; i++) {                                                                    \
                    for (npy_intp j = from1; j < to1; j++) {                                                                               \
                        const npy_intp at = ((i * w->stride[0] + at0) * w->in[1] + j * w->stride[1] + at1) * w->in[2] + at2;               \
                        const npy_intp to = (i * w->out[1] + j) * w->out[2];                                                               \
                        ROW;                                                                                                               \
                    }                                                                                                                      \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

#define PATCHES(name, T)                                                                                                                   \
    static void unroll_##name(const Patches *v, const T *x, T *patches)                                                                    \
    {                                                                                                                                      \
        const Windows *w = &v->w;                                                                                                          \
        for (npy_intp p = 0; p < v->planes; p++, x += v->plane) {                                                                          \
            EACH_ROW(                                                                                                                      \
                w,                                                                                                                         \
                if (to0 - from0 < w->out[0] || to1 - from1 < w->out[1] || to2 - from2 < w->out[2]) {                                       \
                    memset(patches, 0, (size_t)v->windows * sizeof(T));                                                                    \
                },                                                                                                                         \
                if (step == 1) {                                                                                                           \
                    memcpy(patches + to + from2, x + at + from2, (size_t)(to2 - from2) * sizeof(T));                                       \
                } else {                                                                                                                   \
                    for (npy_intp k = from2; k < to2; k++) {                                                                               \
                        patches[to + k] = x[at + k * step];                                                                                \
                    }                                                                                                                      \
                })                                                                                                                         \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static void fold_##name(const Patches *v, const T *patches, T *x)                                                                      \
    {                                                                                                                                      \
        const Windows *w = &v->w;                                                                                                          \
        memset(x, 0, (size_t)(v->planes * v->plane) * sizeof(T));                                                                          \
        for (npy_intp p = 0; p < v->planes; p++, x += v->plane) {                                                                          \
            EACH_ROW(                                                                                                                      \
                w, ,                                                                                                                       \
                if (step == 1) {                                                                                                           \
                    for (npy_intp k = from2; k < to2; k++) {                                                                               \
                        x[at + k] += patches[to + k];                                                                                      \
                    }                                                                                                                      \
                } else {                                                                                                                   \
                    for (npy_intp k = from2; k < to2; k++) {                                                                               \
                        x[at + k * step] += patches[to + k];                                                                               \
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
