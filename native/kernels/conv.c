/* Convolutions, their adjoints and derivatives. Those that are too small for a product of matrices are sums over the places of the kernel here. */
#include "blas.h"
#include "conv.h"
#include "kinds.h"

#define MOST_PRODUCTS 16384 /* of a result; more of them are BLAS's */
#define MOST_STRIDE 4      /* windows of stride one for each that is wanted */

#define CONVOLVE(name, T)                                                                                                            \
    /* Adds one plane of the input, under one kernel, to one plane of the result. */                                                 \
    static void name##_plane(const Windows *w, const T *x, const T *kernel, T *y)                                                    \
    {                                                                                                                                \
        EACH_ROW(                                                                                                                    \
            w, const T weight = *kernel++,                                                                                           \
            const T *row = x + at;                                                                                                   \
            T *out = y + to;                                                                                                         \
            if (step == 1) {                                                                                                         \
                for (npy_intp k = from2; k < to2; k++) {                                                                             \
                    out[k] += weight * row[k];                                                                                       \
                }                                                                                                                    \
            } else {                                                                                                                 \
                for (npy_intp k = from2; k < to2; k++) {                                                                             \
                    out[k] += weight * row[k * step];                                                                                \
                }                                                                                                                    \
            })                                                                                                                       \
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

/* The sizes of the plain convolution that takes an array like `x` by `weight`, or of a transposed one the plain one that it is the adjoint of.
 * 0 declines, and leaves what the rule refuses to it. */
static int read_conv(PyArrayObject *x, PyArrayObject *weight, PyObject *const *args, Conv *v)
{
    int dims = PyArray_NDIM(weight) - 2, single = PyArray_NDIM(x) == dims + 1, transposed = as_flag(args[3]);
    npy_intp more[3];
    Py_ssize_t groups;
    if (dims < 1 || dims > 3 || (!single && PyArray_NDIM(x) != dims + 2) || transposed < 0 || !as_index(args[5], &groups) || groups < 1) {
        return 0;
    }
    if (!read_sizes(args[0], dims, v->w.stride, NULL, 1) || !read_sizes(args[1], dims, v->w.padding, NULL, 0) ||
        !read_sizes(args[2], dims, v->w.dilation, NULL, 1) || !read_sizes(args[4], dims, more, NULL, 0)) {
        return 0;
    }
    v->batch = single ? 1 : PyArray_DIM(x, 0);
    v->outputs = PyArray_DIM(weight, 0);
    v->channels = PyArray_DIM(weight, 1) * groups;
    v->groups = groups;
    if ((transposed ? v->outputs : v->channels) != PyArray_DIM(x, !single) || v->outputs % groups || v->outputs == 0 || v->channels == 0) {
        return 0;
    }
    v->plane_in = v->plane_out = v->places = 1;
    for (int d = 0; d < 3; d++) {
        int at = d - (3 - dims);
        npy_intp size = at < 0 ? 1 : PyArray_DIM(x, at + 1 + !single);
        v->w.kernel[d] = at < 0 ? 1 : PyArray_DIM(weight, at + 2);
        if (v->w.stride[d] < 1 || v->w.dilation[d] < 1 || v->w.padding[d] < 0 || v->w.kernel[d] < 1 || size < 1) {
            return 0;
        }
        const npy_intp reach = v->w.dilation[d] * (v->w.kernel[d] - 1) + 1;
        if (transposed) {
            v->w.out[d] = size;
            v->w.in[d] = (size - 1) * v->w.stride[d] - 2 * v->w.padding[d] + reach + (at < 0 ? 0 : more[d]);
        }
        else {
            v->w.in[d] = size;
            v->w.out[d] = (size + 2 * v->w.padding[d] - reach) / v->w.stride[d] + 1;
        }
        if (size + 2 * v->w.padding[d] < (transposed ? 1 : reach) || v->w.in[d] < 1) {
            return 0;
        }
        v->plane_in *= v->w.in[d];
        v->plane_out *= v->w.out[d];
        v->places *= v->w.kernel[d];
    }
    return 1;
}

/* Whether sums over places are quicker than products of patches. */
static int takes_rows(const Conv *v)
{
    return is_by_channel(v) && v->w.stride[0] * v->w.stride[1] * v->w.stride[2] <= MOST_STRIDE;
}

static npy_intp products_of(const Conv *v)
{
    return v->batch * v->outputs * v->plane_out * v->places * (v->channels / v->groups);
}

static PyObject *planes_like(PyArrayObject *x, int dims, npy_intp batch, npy_intp channels, const npy_intp *sizes)
{
    npy_intp shape[5] = {batch, channels};
    int single = PyArray_NDIM(x) == dims + 1;
    copy_dims(shape + 2, sizes + 3 - dims, dims);
    return new_array(dims + 2 - single, shape + single, PyArray_DESCR(x));
}

static int forward_some(const Conv *v, int width, const void *x, const void *weight, const void *shift, void *y)
{
    if (takes_rows(v)) {
        return by_channel_forward(v, width, x, weight, shift, y);
    }
    if (products_of(v) > MOST_PRODUCTS) {
        return conv_forward(v, width, x, weight, shift, y);
    }
    if (width == 4) {
        convolve_float(v, x, weight, shift, y);
    }
    else {
        convolve_double(v, x, weight, shift, y);
    }
    return 1;
}

typedef struct {
    const Conv *v;
    int width, is_input_gradient;
    const char *from;
    const void *weight, *shift;
    char *to;
    int failed; /* memory was missing; atomic */
} Images;

static void convolve_images(void *work, npy_intp begin, npy_intp end)
{
    Images *all = work;
    Conv v = *all->v;
    const npy_intp in = v.channels * v.plane_in * all->width, out = v.outputs * v.plane_out * all->width;
    v.batch = end - begin;
    int fine;
    if (all->is_input_gradient) {
        fine = (takes_rows(all->v) ? by_channel_input_gradient : conv_input_gradient)(&v, all->width, all->from + begin * out, all->weight,
                                                                                    all->to + begin * in);
    }
    else {
        fine = forward_some(&v, all->width, all->from + begin * in, all->weight, all->shift, all->to + begin * out);
    }
    if (!fine) {
        __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
    }
}

/* The images of a batch, or the gradient of the input from that of the result. 0 when memory is lacking. */
static int each_image(Images *all)
{
    const Conv *v = all->v;
    const int by_blas = !takes_rows(v) && (all->is_input_gradient || products_of(v) > MOST_PRODUCTS);
    if (by_blas && (all->is_input_gradient ? windows_serve_input_gradient : windows_serve)(v, all->width)) {
        convolve_images(all, 0, v->batch); /* which share the weights' packing, and the threads by themselves */
        return !all->failed;
    }
    (by_blas ? in_parts_of_products : in_parts)(convolve_images, all, v->batch, grain_of(products_of(v) / v->batch / 8));
    return !all->failed;
}

static int forward_into(const Conv *v, int width, const void *x, const void *weight, const void *shift, void *y)
{
    return each_image(&(Images){v, width, 0, x, weight, shift, y, 0});
}

static int input_gradient(const Conv *v, int width, const void *gradient, const void *weight, void *x)
{
    return each_image(&(Images){v, width, 1, gradient, weight, NULL, x, 0});
}

/* Adds an element to each plane of its channel. */
static void add_shift(int width, const char *shift, char *x, npy_intp batch, npy_intp channels, npy_intp plane)
{
    for (npy_intp p = 0; p < batch * channels; p++) {
        for (npy_intp k = 0; k < plane; k++, x += width) {
            if (width == 4) {
                *(float *)x += ((const float *)shift)[p % channels];
            }
            else {
                *(double *)x += ((const double *)shift)[p % channels];
            }
        }
    }
}

/* Float arrays of one width, densely: new references. 0 to decline. */
static int dense_pair(PyObject *first, PyObject *second, PyArrayObject **made, int *width)
{
    *width = is_array(first) ? float_width((PyArrayObject *)first) : 0;
    if (!*width || !is_array(second) || float_width((PyArrayObject *)second) != *width) {
        return 0;
    }
    made[0] = dense(first);
    made[1] = made[0] == NULL ? NULL : dense(second);
    if (made[1] == NULL) {
        Py_XDECREF((PyObject *)made[0]);
        return 0;
    }
    return 1;
}

/* convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
static PyObject *convolution_kernel(PyObject *const *args)
{
    PyArrayObject *given[2];
    int width;
    Conv v;
    if (!dense_pair(args[0], args[1], given, &width)) {
        return NULL;
    }
    PyArrayObject *x = given[0], *weight = given[1], *bias = args[2] == Py_None ? NULL : (PyArrayObject *)args[2];
    PyObject *made = NULL;
    const int dims = PyArray_NDIM(weight) - 2, transposed = args[6] == Py_True;
    if (!read_conv(x, weight, args + 3, &v) || !PyArray_SIZE(x) ||
        (bias != NULL && (dense_width(args[2]) != width || PyArray_SIZE(bias) != (transposed ? v.channels : v.outputs)))) {
        goto done;
    }
    const npy_intp products = products_of(&v);
    if (!takes_rows(&v) && (products > MOST_PRODUCTS || transposed) && !has_blas()) {
        goto done;
    }
    made = transposed ? planes_like(x, dims, v.batch, v.channels, v.w.in) : planes_like(x, dims, v.batch, v.outputs, v.w.out);
    if (made != NULL) {
        void *y = PyArray_DATA((PyArrayObject *)made), *shift = bias == NULL ? NULL : PyArray_DATA(bias);
        const void *from = PyArray_DATA(x), *by = PyArray_DATA(weight);
        PyThreadState *thread = products >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        int fine = !transposed ? forward_into(&v, width, from, by, shift, y)
                               : input_gradient(&v, width, from, by, y);
        if (transposed && shift != NULL) {
            add_shift(width, shift, y, v.batch, v.channels, v.plane_in);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        if (!fine) {
            Py_CLEAR(made);
            PyErr_NoMemory();
        }
    }
done:
    Py_DECREF((PyObject *)x);
    Py_DECREF((PyObject *)weight);
    return made;
}

/* unshifted_gradients(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, wants_input, wants_weight) */
static PyObject *gradients_kernel(PyObject *const *args)
{
    PyArrayObject *given[2];
    int width, wants_x = as_flag(args[9]), wants_weight = as_flag(args[10]);
    Conv v;
    if (wants_x < 0 || wants_weight < 0 || !is_array(args[2]) || !dense_pair(args[0], args[1], given, &width)) {
        return NULL;
    }
    PyArrayObject *grad = given[0], *x = given[1], *weight = dense(args[2]);
    PyObject *of_x = NULL, *of_weight = NULL;
    const int transposed = args[6] == Py_True;
    int fits = weight != NULL && float_width(weight) == width && PyArray_SIZE(x) && PyArray_SIZE(grad) && read_conv(x, weight, args + 3, &v);
    if (!fits || (!takes_rows(&v) && !has_blas())) {
        goto done;
    }
    of_x = wants_x ? new_like(x) : Py_NewRef(Py_None);
    of_weight = wants_weight ? new_like(weight) : Py_NewRef(Py_None);
    if (of_x != NULL && of_weight != NULL) {
        /* Of a transposed convolution the gradient is what the plain one takes, and the input is what it gives. */
        const void *plain_in = PyArray_DATA(transposed ? grad : x), *plain_out = PyArray_DATA(transposed ? x : grad), *by = PyArray_DATA(weight);
        const int rows = takes_rows(&v);
        int fine = 1;
        PyThreadState *thread = products_of(&v) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        if (wants_x && transposed) {
            fine = forward_into(&v, width, plain_in, by, NULL, PyArray_DATA((PyArrayObject *)of_x));
        }
        else if (wants_x) {
            fine = input_gradient(&v, width, plain_out, by, PyArray_DATA((PyArrayObject *)of_x));
        }
        if (wants_weight) {
            void *to = PyArray_DATA((PyArrayObject *)of_weight);
            fine &= (rows ? by_channel_weight_gradient : conv_weight_gradient)(&v, width, plain_out, plain_in, to);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        if (!fine) {
            Py_CLEAR(of_x);
            PyErr_NoMemory();
        }
    }
done:
    Py_DECREF((PyObject *)grad);
    Py_DECREF((PyObject *)x);
    Py_XDECREF((PyObject *)weight);
    if (of_x == NULL || of_weight == NULL) {
        Py_XDECREF(of_x);
        Py_XDECREF(of_weight);
        return NULL;
    }
    return pair_of(of_x, of_weight);
}

const KernelEntry conv_kernels[] = {
    {"conv.convolution", convolution_kernel},
    {"conv.unshifted_gradients", gradients_kernel},
    {NULL, NULL},
};
