/* Resizing of the last dimensions of float arrays, one after the other, forward and backward: each output is a weighted sum of a few inputs along the
 * dimension. The Python kernels of `upsample.py` say the same of other dtypes.
 */
#include "making.h"
#include "norm.h"
#include <math.h>

enum { UPPER_FIRST, LOWER_FIRST, BY_ROWS }; /* see Note [Bilinear roundings] */

#define LOOPS "bilinear_loops.h"
#include "variants.h"

#define MOST_AXES 3

enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, SMOOTH_LINEAR, SMOOTH_CUBIC, SMOOTH_LANCZOS };

/* Along one dimension: for every output its inputs and their weights, `taps` of each, of which the first `count` (all, if that is NULL) are used. */
typedef struct {
    npy_intp size, out;
    int taps;
    npy_intp *place, *count;
    double *weight;
} Line;

static double cubic_weight(double distance, double a)
{
    double d = fabs(distance);
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static npy_intp within(npy_intp place, npy_intp size)
{
    return place < 0 ? 0 : place >= size ? size - 1 : place;
}

/* Where in the input an output lies. */
static double position(npy_intp i, npy_intp size, npy_intp out, double scale, int corners)
{
    return corners ? (out > 1 ? (double)i * ((double)(size - 1) / (double)(out - 1)) : 0.0) : ((double)i + 0.5) * scale - 0.5;
}

static double sinc(double x)
{
    const double pi = 3.14159265358979323846;
    return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

static double window(int mode, double distance)
{
    double d = fabs(distance);
    switch (mode) {
    case SMOOTH_LINEAR:
        return fmax(1 - d, 0);
    case SMOOTH_CUBIC:
        return cubic_weight(d, -0.5);
    default:
        return d < 3 ? sinc(d) * sinc(d / 3) : 0;
    }
}

/* Windows that grow with the image, so that nothing aliases. */
static int set_smooth_axis(Line *axis, int mode, double factor, int corners)
{
    npy_intp size = axis->size, out = axis->out;
    double scale = corners ? (out > 1 ? (double)(size - 1) / (double)(out - 1) : 0) : factor > 0 ? 1.0 / factor : (double)size / (double)out;
    double grown = fmax(scale, 1), support = (mode == SMOOTH_LINEAR ? 1 : mode == SMOOTH_CUBIC ? 2 : 3) * grown;
    double widest = fmin(2 * support + 2, (double)size);
    if (widest * (double)out > 1e9) {
        return 0;
    }
    axis->taps = (int)widest;
    axis->place = PyMem_Malloc((size_t)(out * axis->taps) * (sizeof(npy_intp) + sizeof(double)) + (size_t)out * sizeof(npy_intp) + 8);
    if (axis->place == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    axis->count = axis->place + out * axis->taps;
    axis->weight = (double *)(axis->count + out);
    for (npy_intp i = 0; i < out; i++) {
        double centre = scale * ((double)i + 0.5), total = 0;
        npy_intp first = (npy_intp)(centre - support + 0.5), end = (npy_intp)(centre + support + 0.5);
        first = within(first, size); /* at least one element, though a factor may put the centre beyond the last one */
        end = end > size ? size : end <= first ? first + 1 : end;
        npy_intp *place = axis->place + i * axis->taps;
        double *weight = axis->weight + i * axis->taps;
        axis->count[i] = end - first;
        for (npy_intp k = 0; k < end - first; k++) {
            place[k] = first + k;
            weight[k] = window(mode, ((double)(k + first) - centre + 0.5) / grown);
            total += weight[k];
        }
        for (npy_intp k = 0; k < end - first && total != 0; k++) {
            weight[k] /= total;
        }
    }
    return 1;
}

static int set_axis(Line *axis, int mode, npy_intp size, npy_intp out, double factor, int corners)
{
    axis->size = size;
    axis->out = out;
    axis->count = NULL;
    if (mode >= SMOOTH_LINEAR) {
        return set_smooth_axis(axis, mode, factor, corners);
    }
    axis->taps = mode == CUBIC ? 4 : mode == LINEAR && size != out ? 2 : 1;
    axis->place = PyMem_Malloc((size_t)(out * axis->taps) * (sizeof(npy_intp) + sizeof(double)) + 8);
    if (axis->place == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    axis->weight = (double *)(axis->place + out * axis->taps);
    double scale = factor > 0 ? 1.0 / factor : (double)size / (double)out;
    for (npy_intp i = 0; i < out; i++) {
        npy_intp *place = axis->place + i * axis->taps;
        double *weight = axis->weight + i * axis->taps;
        if (mode == NEAREST || mode == NEAREST_EXACT) {
            place[0] = within((npy_intp)(((float)i + (mode == NEAREST_EXACT ? 0.5f : 0.0f)) * (float)scale), size);
            weight[0] = 1;
        }
        else if (mode == LINEAR && size == out) {
            place[0] = i;
            weight[0] = 1;
        }
        else if (mode == LINEAR) {
            double at = fmax(position(i, size, out, scale, corners), 0), part;
            place[0] = within((npy_intp)at, size);
            place[1] = within(place[0] + 1, size);
            part = fmin(at - (double)place[0], 1.0);
            weight[0] = 1 - part;
            weight[1] = part;
        }
        else {
            double at = position(i, size, out, scale, corners), base = floor(at);
            for (int k = 0; k < 4; k++) {
                place[k] = within((npy_intp)base + k - 1, size);
                weight[k] = cubic_weight(at - (base + k - 1), -0.75);
            }
        }
    }
    return 1;
}

/* How many neighbours are made of each element, where it is the same number for all; 0 otherwise. */
static npy_intp whole_ratio(const Line *axis)
{
    const npy_intp ratio = axis->taps == 1 && axis->out % axis->size == 0 ? axis->out / axis->size : 0;
    for (npy_intp i = 0; ratio && i < axis->out; i++) {
        if (axis->place[i] != i / ratio) {
            return 0;
        }
    }
    return ratio;
}

/* x is (outer, size, inner), y (outer, out, inner). A weight of zero multiplies all the same, as infinities tell. */
#define RESIZE(forth, back, T)                                                                                                             \
    static void forth(const Line *axis, const T *restrict x, T *restrict y, npy_intp outer, npy_intp inner)                               \
    {                                                                                                                                      \
        const int taps = axis->taps;                                                                                                       \
        for (npy_intp o = 0; o < outer; o++, x += axis->size * inner) {                                                                    \
            if (inner == 1) {                                                                                                              \
                const npy_intp *place = axis->place;                                                                                       \
                const double *weight = axis->weight;                                                                                       \
                if (taps == 1) { /* nearest */                                                                                             \
                    for (npy_intp i = 0; i < axis->out; i++) {                                                                             \
                        *y++ = x[place[i]];                                                                                                \
                    }                                                                                                                      \
                    continue;                                                                                                              \
                }                                                                                                                          \
                if (axis->count == NULL) {                                                                                                 \
                    for (npy_intp i = 0; i < axis->out; i++, place += taps, weight += taps) {                                              \
                        T total = x[place[0]] * (T)weight[0];                                                                              \
                        for (int t = 1; t < taps; t++) {                                                                                   \
                            total += x[place[t]] * (T)weight[t];                                                                           \
                        }                                                                                                                  \
                        *y++ = total;                                                                                                      \
                    }                                                                                                                      \
                    continue;                                                                                                              \
                }                                                                                                                          \
                for (npy_intp i = 0; i < axis->out; i++, place += taps, weight += taps) {                                                  \
                    const int count = (int)axis->count[i];                                                                                 \
                    T total = x[place[0]] * (T)weight[0];                                                                                  \
                    for (int t = 1; t < count; t++) {                                                                                      \
                        total += x[place[t]] * (T)weight[t];                                                                               \
                    }                                                                                                                      \
                    *y++ = total;                                                                                                          \
                }                                                                                                                          \
                continue;                                                                                                                  \
            }                                                                                                                              \
            for (npy_intp i = 0; i < axis->out; i++, y += inner) {                                                                         \
                const npy_intp *place = axis->place + i * taps;                                                                            \
                const double *weight = axis->weight + i * taps;                                                                            \
                const int count = axis->count == NULL ? taps : (int)axis->count[i];                                                        \
                const T *first = x + place[0] * inner, w = (T)weight[0];                                                                   \
                for (npy_intp k = 0; k < inner; k++) {                                                                                     \
                    y[k] = taps == 1 ? first[k] : first[k] * w;                                                                            \
                }                                                                                                                          \
                for (int t = 1; t < count; t++) {                                                                                          \
                    const T *next = x + place[t] * inner, v = (T)weight[t];                                                                \
                    for (npy_intp k = 0; k < inner; k++) {                                                                                 \
                        y[k] += next[k] * v;                                                                                               \
                    }                                                                                                                      \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    /* y, which is zero before, becomes (outer, size, inner). */                                                                           \
    static void back(const Line *axis, const T *restrict x, T *restrict y, npy_intp outer, npy_intp inner)                                \
    {                                                                                                                                      \
        const npy_intp ratio = inner == 1 ? whole_ratio(axis) : 0;                                                                         \
        for (npy_intp o = 0; ratio && o < outer; o++, x += axis->out, y += axis->size) {                                                   \
            if (ratio == 2) { /* a loop that is vectorised */                                                                              \
                for (npy_intp i = 0; i < axis->size; i++) {                                                                                \
                    y[i] = x[2 * i] + x[2 * i + 1];                                                                                        \
                }                                                                                                                          \
                continue;                                                                                                                  \
            }                                                                                                                              \
            for (npy_intp i = 0; i < axis->size; i++) {                                                                                    \
                T total = x[i * ratio];                                                                                                    \
                for (npy_intp k = 1; k < ratio; k++) {                                                                                     \
                    total += x[i * ratio + k];                                                                                             \
                }                                                                                                                          \
                y[i] = total;                                                                                                              \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (npy_intp o = 0; !ratio && o < outer; o++, y += axis->size * inner) {                                                         \
            for (npy_intp i = 0; i < axis->out; i++, x += inner) {                                                                         \
                const int count = axis->count == NULL ? axis->taps : (int)axis->count[i];                                                  \
                for (int t = 0; t < count; t++) {                                                                                          \
                    T *to = y + axis->place[i * axis->taps + t] * inner, v = (T)axis->weight[i * axis->taps + t];                          \
                    for (npy_intp k = 0; k < inner; k++) {                                                                                 \
                        to[k] += x[k] * v;                                                                                                 \
                    }                                                                                                                      \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

RESIZE(resize_float, restore_float, float)
RESIZE(resize_double, restore_double, double)

typedef struct {
    const Line *axis;
    int width, backward;
    char *from, *to;
    npy_intp in, out, inner; /* elements of a line, before and after; those beside each other */
} Lines;

static void resize_part(void *work, npy_intp begin, npy_intp end)
{
    const Lines *all = work;
    void *from = all->from + begin * all->in * all->inner * all->width, *to = all->to + begin * all->out * all->inner * all->width;
    if (all->width == 4) {
        (all->backward ? restore_float : resize_float)(all->axis, from, to, end - begin, all->inner);
    }
    else {
        (all->backward ? restore_double : resize_double)(all->axis, from, to, end - begin, all->inner);
    }
}

/* One dimension after the other, the first one first. `dims` are those of x, and become those of the result. */
static PyObject *along_axes(PyArrayObject *x, npy_intp *dims, const Line *axis, int axes, int backward)
{
    int ndim = PyArray_NDIM(x), width = float_width(x);
    PyArrayObject *from = contiguous_of(x);
    for (int a = 0; a < axes && from != NULL; a++) {
        int d = ndim - axes + a;
        dims[d] = backward ? axis[a].size : axis[a].out;
        npy_intp outer = PyArray_MultiplyList(dims, d), inner = PyArray_MultiplyList(PyArray_DIMS(from) + d + 1, ndim - d - 1);
        PyArrayObject *to = (PyArrayObject *)new_array(ndim, dims, PyArray_DESCR(x));
        if (to != NULL) {
            npy_intp n = PyArray_SIZE(to) > PyArray_SIZE(from) ? PyArray_SIZE(to) : PyArray_SIZE(from);
            void *source = PyArray_DATA(from), *target = PyArray_DATA(to);
            PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
            if (backward) {
                memset(target, 0, (size_t)PyArray_NBYTES(to));
            }
            Lines all = {&axis[a], width, backward, source, target, PyArray_DIM(from, d), dims[d], inner};
            in_parts(resize_part, &all, outer, grain_of(2 * dims[d] * inner));
            if (thread != NULL) {
                PyEval_RestoreThread(thread);
            }
        }
        Py_SETREF(from, to);
    }
    return (PyObject *)from;
}

/* Along rows or columns of an image: for every output its two inputs, and their weights in the image's type. */
typedef struct {
    npy_intp *low, *high;
    void *near, *far;
} Pair;

typedef struct {
    Pair rows, columns;
    int width;
    npy_intp height, across, out_height, out_across; /* sizes of an image, before and after */
    npy_intp channels, full;                         /* how many images make one entry of the batch, and of those the ones in whole vectors */
    int by_rows;
    char *from, *to;
} Images;

static int set_pair(Pair *pair, int width, npy_intp size, npy_intp out, double factor, int corners)
{
    pair->low = PyMem_Malloc((size_t)out * 2 * (sizeof(npy_intp) + sizeof(double)) + 8);
    if (pair->low == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    pair->high = pair->low + out;
    pair->near = pair->high + out;
    pair->far = (char *)pair->near + out * width;
    CHOOSE(places, width, size, out, factor, corners, pair->low, pair->high, pair->near, pair->far);
    return 1;
}

static void blend_part(void *work, npy_intp begin, npy_intp end)
{
    const Images *all = work;
    const npy_intp line = all->across * all->width;
    for (npy_intp at = begin; at < end; at++) {
        const char *image = all->from + at * all->height * line;
        char *row = all->to + at * all->out_height * all->out_across * all->width;
        const int order = all->by_rows ? BY_ROWS : at % all->channels < all->full ? LOWER_FIRST : UPPER_FIRST;
        for (npy_intp i = 0; i < all->out_height; i++, row += all->out_across * all->width) {
            const char *upper = image + all->rows.low[i] * line, *lower = image + all->rows.high[i] * line;
            CHOOSE(blend, all->width, upper, lower, row, all->out_across, all->columns.low, all->columns.high, all->columns.near, all->columns.far,
                   all->rows.near, all->rows.far, i, order);
        }
    }
}

/* Whether the channels of images are innermost in memory. */
static int channels_last(PyArrayObject *x)
{
    const npy_intp *dims = PyArray_DIMS(x), *strides = PyArray_STRIDES(x);
    static const int order[4] = {1, 3, 2, 0};
    npy_intp step = PyArray_ITEMSIZE(x);
    for (int k = 0; k < 4; k++) {
        const int d = order[k];
        if (dims[d] != 1 && strides[d] != step) {
            return 0;
        }
        step *= dims[d];
    }
    return 1;
}

static PyObject *bilinear(PyArrayObject *x, const npy_intp *out, const double *factors, int corners)
{
    const int ndim = PyArray_NDIM(x), width = float_width(x);
    npy_intp dims[MAX_DIMS];
    copy_dims(dims, PyArray_DIMS(x), ndim);
    dims[ndim - 2] = out[0];
    dims[ndim - 1] = out[1];
    Images all = {.width = width, .height = PyArray_DIM(x, ndim - 2), .across = PyArray_DIM(x, ndim - 1), .out_height = out[0], .out_across = out[1],
                  .channels = PyArray_DIM(x, 1)};
    all.full = all.channels - all.channels % (32 / width);
    all.by_rows = all.channels > 3 && out[0] + out[1] > 128 && !channels_last(x);
    PyArrayObject *from = contiguous_of(x), *to = from == NULL ? NULL : (PyArrayObject *)new_array(ndim, dims, PyArray_DESCR(x));
    if (to != NULL && set_pair(&all.rows, width, all.height, out[0], factors[0], corners) && set_pair(&all.columns, width, all.across, out[1], factors[1], corners)) {
        all.from = PyArray_DATA(from);
        all.to = PyArray_DATA(to);
        PyThreadState *thread = PyArray_SIZE(to) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        in_parts(blend_part, &all, PyArray_SIZE(from) / (all.height * all.across), grain_of(4 * out[0] * out[1]));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    else {
        Py_CLEAR(to);
    }
    PyMem_Free(all.rows.low);
    PyMem_Free(all.columns.low);
    Py_XDECREF(from);
    return (PyObject *)to;
}

/* self or grad_output, output_size; backward: input_size; linear and cubic: align_corners; and a scale or None for each of `axes` dimensions. */
static PyObject *resize(PyObject *const *args, int mode, int axes, int backward)
{
    PyArrayObject *x = (PyArrayObject *)args[0];
    npy_intp out[MAX_DIMS], whole[MAX_DIMS], dims[MAX_DIMS];
    int ndim = is_array(args[0]) && float_width(x) ? PyArray_NDIM(x) : 0, corners = 0;
    if (ndim < axes || ndim > MAX_DIMS || !PyArray_SIZE(x) || sizes_of(args[1], out) != axes) {
        return NULL;
    }
    copy_dims(dims, PyArray_DIMS(x), ndim);
    const npy_intp *sizes = dims + ndim - axes;
    PyObject *const *rest = args + 2;
    if (backward) {
        if (sizes_of(*rest++, whole) != ndim) {
            return NULL;
        }
        sizes = whole + ndim - axes;
        for (int d = 0; d < ndim; d++) {
            if (dims[d] != (d < ndim - axes ? whole[d] : out[d - (ndim - axes)])) {
                return NULL;
            }
        }
    }
    if (mode >= LINEAR) {
        corners = as_flag(*rest++);
    }
    if (mode == LINEAR && axes == 2 && ndim == 4 && !backward && corners >= 0 && out[0] > 0 && out[1] > 0) {
        double factors[2] = {0, 0};
        return (rest[0] == Py_None || as_double(rest[0], &factors[0])) && (rest[1] == Py_None || as_double(rest[1], &factors[1]))
                   ? bilinear(x, out, factors, corners)
                   : NULL;
    }
    Line axis[MOST_AXES];
    int ready = 0, fits = corners >= 0;
    for (; fits && ready < axes; ready += fits) {
        double factor = 0; /* windows that grow leave a dimension that keeps its size as it is, whatever the factor, but not in its derivative */
        fits = sizes[ready] > 0 && out[ready] > 0 && (rest[ready] == Py_None || as_double(rest[ready], &factor)) &&
               set_axis(&axis[ready], mode >= SMOOTH_LINEAR && !backward && sizes[ready] == out[ready] ? LINEAR : mode, sizes[ready], out[ready], factor, corners);
    }
    PyObject *made = fits ? along_axes(x, dims, axis, axes, backward) : NULL;
    while (ready > 0) {
        PyMem_Free(axis[--ready].place);
    }
    return made;
}

#define KERNELS(name, mode, axes)                                                                                                          \
    static PyObject *name##_kernel(PyObject *const *args)                                                                                  \
    {                                                                                                                                      \
        return resize(args, mode, axes, 0);                                                                                                \
    }                                                                                                                                      \
    static PyObject *name##_backward_kernel(PyObject *const *args)                                                                         \
    {                                                                                                                                      \
        return resize(args, mode, axes, 1);                                                                                                \
    }

KERNELS(nearest1d, NEAREST, 1)
KERNELS(nearest2d, NEAREST, 2)
KERNELS(nearest3d, NEAREST, 3)
KERNELS(exact1d, NEAREST_EXACT, 1)
KERNELS(exact2d, NEAREST_EXACT, 2)
KERNELS(exact3d, NEAREST_EXACT, 3)
KERNELS(linear1d, LINEAR, 1)
KERNELS(bilinear2d, LINEAR, 2)
KERNELS(trilinear3d, LINEAR, 3)
KERNELS(bicubic2d, CUBIC, 2)
KERNELS(smooth_bilinear2d, SMOOTH_LINEAR, 2)
KERNELS(smooth_bicubic2d, SMOOTH_CUBIC, 2)
KERNELS(smooth_lanczos2d, SMOOTH_LANCZOS, 2)

const KernelEntry resize_kernels[] = {
    {"upsample.upsample_nearest1d", nearest1d_kernel},
    {"upsample.upsample_nearest2d", nearest2d_kernel},
    {"upsample.upsample_nearest3d", nearest3d_kernel},
    {"upsample.upsample_nearest_exact1d", exact1d_kernel},
    {"upsample.upsample_nearest_exact2d", exact2d_kernel},
    {"upsample.upsample_nearest_exact3d", exact3d_kernel},
    {"upsample.upsample_linear1d", linear1d_kernel},
    {"upsample.upsample_bilinear2d", bilinear2d_kernel},
    {"upsample.upsample_trilinear3d", trilinear3d_kernel},
    {"upsample.upsample_bicubic2d", bicubic2d_kernel},
    {"upsample.upsample_nearest1d_backward", nearest1d_backward_kernel},
    {"upsample.upsample_nearest2d_backward", nearest2d_backward_kernel},
    {"upsample.upsample_nearest3d_backward", nearest3d_backward_kernel},
    {"upsample.upsample_nearest_exact1d_backward", exact1d_backward_kernel},
    {"upsample.upsample_nearest_exact2d_backward", exact2d_backward_kernel},
    {"upsample.upsample_nearest_exact3d_backward", exact3d_backward_kernel},
    {"upsample.upsample_linear1d_backward", linear1d_backward_kernel},
    {"upsample.upsample_bilinear2d_backward", bilinear2d_backward_kernel},
    {"upsample.upsample_trilinear3d_backward", trilinear3d_backward_kernel},
    {"upsample.upsample_bicubic2d_backward", bicubic2d_backward_kernel},
    {"upsample.upsample_bilinear2d_aa", smooth_bilinear2d_kernel},
    {"upsample.upsample_bicubic2d_aa", smooth_bicubic2d_kernel},
    {"upsample.upsample_lanczos2d_aa", smooth_lanczos2d_kernel},
    {"upsample.upsample_bilinear2d_aa_backward", smooth_bilinear2d_backward_kernel},
    {"upsample.upsample_bicubic2d_aa_backward", smooth_bicubic2d_backward_kernel},
    {"upsample.upsample_lanczos2d_aa_backward", smooth_lanczos2d_backward_kernel},
    {NULL, NULL},
};
