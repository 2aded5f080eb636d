/* Distributions made of uniform and normal numbers: by inversion, by rejection, and by weight.
 *
 * What `_random/continuous.py`, `gamma.py` and `discrete.py` draw, number by number, for few numbers: large arrays are left to numpy, which computes
 * whole ones. Parameters that PyTorch refuses are left to Python before anything is drawn.
 */
#include "stream.h"
#include <math.h>

#define FEW 4096
#define TINY_FLOAT 1.17549435e-38f
#define TINY_DOUBLE 2.2250738585072014e-308

/* An array that may be filled in the order of its indices, of few floats; KIND_NONE to decline. */
static FloatKind few_floats(PyObject *object)
{
    PyArrayObject *array = (PyArrayObject *)object;
    return is_array(object) && is_contiguous(array) && PyArray_ISBEHAVED(array) && PyArray_SIZE(array) <= FEW ? float_kind(PyArray_DESCR(array)) : KIND_NONE;
}

/* ------------------------------------------------------------------------------------------------------------- by inversion */

typedef double (*Draw)(Stream *stream, const double *parameters);

static double draw_exponential(Stream *stream, const double *parameters)
{
    return log1p(-stream_double(stream)) * (-1.0 / parameters[0]);
}

static double draw_cauchy(Stream *stream, const double *parameters)
{
    return fma(tan((stream_double(stream) - 0.5) * M_PI), parameters[1], parameters[0]);
}

static double draw_log_normal(Stream *stream, const double *parameters)
{
    return exp(fma(stream_normal(stream), parameters[1], parameters[0]));
}

static double draw_geometric(Stream *stream, const double *parameters)
{
    double u = stream_double(stream);
    return ceil((u > 0 ? log(u) : -INFINITY) / log1p(-parameters[0]));
}

/* Whether the last parameter scales, and the other shifts, without overflow. */
static int fair_scale(double shift, double scale)
{
    return scale > 1e-30 && scale < 1e30 && fabs(shift) < 1e30;
}

static PyObject *fill_by(Draw draw, PyObject *object, const double *parameters, PyObject *generator)
{
    FloatKind kind = few_floats(object);
    Stream *stream = kind == KIND_NONE ? NULL : take_stream(generator);
    if (stream == NULL) {
        return NULL;
    }
    npy_intp n = PyArray_SIZE((PyArrayObject *)object);
    char *out = PyArray_DATA((PyArrayObject *)object);
    for (npy_intp i = 0; i < n; i++) {
        store_number(kind, out, i, draw(stream, parameters));
    }
    give_stream(stream);
    return Py_NewRef(object);
}

/* self, lambd, generator */
static PyObject *exponential_kernel(PyObject *const *args)
{
    double rate;
    return as_double(args[1], &rate) && fair_scale(0, rate) ? fill_by(draw_exponential, args[0], &rate, args[2]) : NULL;
}

/* self, p, generator */
static PyObject *geometric_kernel(PyObject *const *args)
{
    double p;
    return as_double(args[1], &p) && p > 1e-30 && p < 1 ? fill_by(draw_geometric, args[0], &p, args[2]) : NULL;
}

static PyObject *shifted(Draw draw, PyObject *const *args)
{
    double both[2];
    return as_double(args[1], both) && as_double(args[2], both + 1) && fair_scale(both[0], both[1]) ? fill_by(draw, args[0], both, args[3]) : NULL;
}

/* self, median, sigma, generator */
static PyObject *cauchy_kernel(PyObject *const *args)
{
    return shifted(draw_cauchy, args);
}

/* self, mean, std, generator */
static PyObject *log_normal_kernel(PyObject *const *args)
{
    return shifted(draw_log_normal, args);
}

/* -------------------------------------------------------------------------------------------------------------- by rejection */

/* Marsaglia and Tsang, as in `gamma.py`; `single`: expressions of alpha alone are rounded to single precision. */
static double draw_gamma(Stream *stream, double alpha, int single)
{
    const double third = (double)(1.0f / 3.0f), squeeze = (double)0.0331f;
    double scale = 1;
    if (isnan(alpha) || alpha == 0) {
        return alpha;
    }
    if (alpha < 1) {
        double power = 1 / alpha;
        scale = pow(1 - stream_double(stream), single ? (double)(float)power : power);
        alpha = single ? (double)(float)(alpha + 1) : alpha + 1;
    }
    double d = single ? (double)(float)(alpha - third) : alpha - third, c = 1 / sqrt(9 * d);
    for (;;) {
        double x, y;
        do {
            x = stream_normal(stream);
            y = 1 + c * x;
        } while (y <= 0);
        double v = y * y * y, u = 1 - stream_double(stream), squared = x * x;
        if (u < 1 - squeeze * squared * squared || log(u) < 0.5 * squared + d * (1 - v + log(v))) {
            return scale * d * v;
        }
    }
}

/* Whether all shapes are such that the loop ends. */
static int fair_shapes(PyArrayObject *alpha, int width)
{
    for (npy_intp i = 0; i < PyArray_SIZE(alpha); i++) {
        double value = width == 8 ? ((const double *)PyArray_DATA(alpha))[i] : ((const float *)PyArray_DATA(alpha))[i];
        if (!isnan(value) && !(value >= 0 && value < 1e30)) {
            return 0;
        }
    }
    return 1;
}

/* An array of shapes, contiguous (a copy of one that distributions have expanded), its width, and the stream to draw from; NULL to decline. */
static Stream *shapes_of(PyObject *object, PyObject *generator, PyArrayObject **alpha, int *width)
{
    *alpha = NULL;
    *width = is_array(object) ? float_width((PyArrayObject *)object) : 0;
    if (!*width) {
        return NULL;
    }
    *alpha = dense_width(object) ? (PyArrayObject *)Py_NewRef(object) : (PyArrayObject *)PyArray_NewCopy((PyArrayObject *)object, NPY_CORDER);
    Stream *stream = *alpha != NULL && fair_shapes(*alpha, *width) ? take_stream(generator) : NULL;
    if (stream == NULL) {
        Py_CLEAR(*alpha);
    }
    return stream;
}

/* self, generator */
static PyObject *gamma_kernel(PyObject *const *args)
{
    int width;
    PyArrayObject *alpha;
    Stream *stream = shapes_of(args[0], args[1], &alpha, &width);
    PyObject *made = stream == NULL ? NULL : new_like(alpha);
    PyThreadState *thread = made != NULL && PyArray_SIZE(alpha) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; made != NULL && i < PyArray_SIZE(alpha); i++) {
        if (width == 8) {
            double drawn = draw_gamma(stream, ((const double *)PyArray_DATA(alpha))[i], 0);
            ((double *)PyArray_DATA((PyArrayObject *)made))[i] = drawn < TINY_DOUBLE ? TINY_DOUBLE : drawn;
        }
        else {
            float drawn = (float)draw_gamma(stream, ((const float *)PyArray_DATA(alpha))[i], 1);
            ((float *)PyArray_DATA((PyArrayObject *)made))[i] = drawn < TINY_FLOAT ? TINY_FLOAT : drawn;
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (stream != NULL) {
        give_stream(stream);
    }
    Py_XDECREF((PyObject *)alpha);
    return made;
}

/* One row of gamma numbers in `drawn`, divided by their sum. */
static void shares_of(double *drawn, npy_intp n)
{
    double sum = 0;
    for (npy_intp i = 0; i < n; i++) {
        drawn[i] = drawn[i] < TINY_DOUBLE ? TINY_DOUBLE : drawn[i];
        sum += drawn[i];
    }
    for (npy_intp i = 0; i < n; i++) {
        drawn[i] /= sum;
    }
}

/* self, generator */
static PyObject *dirichlet_kernel(PyObject *const *args)
{
    int width;
    PyArrayObject *alpha = (PyArrayObject *)args[0];
    npy_intp row = is_array(args[0]) && PyArray_NDIM(alpha) ? PyArray_DIM(alpha, PyArray_NDIM(alpha) - 1) : 0;
    if (row == 0 || row >= 8) {
        return NULL; /* longer sums are numpy's, in its order */
    }
    Stream *stream = shapes_of(args[0], args[1], &alpha, &width);
    PyObject *made = stream == NULL ? NULL : new_like(alpha);
    const double below_one = 1 - 1.1102230246251565e-16;
    const float single_below_one = 1 - 5.9604645e-08f;
    PyThreadState *thread = made != NULL && PyArray_SIZE(alpha) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp start = 0; made != NULL && start < PyArray_SIZE(alpha); start += row) {
        double drawn[8];
        for (npy_intp i = 0; i < row; i++) {
            double shape = width == 8 ? ((const double *)PyArray_DATA(alpha))[start + i] : ((const float *)PyArray_DATA(alpha))[start + i];
            drawn[i] = draw_gamma(stream, shape, 0);
        }
        shares_of(drawn, row);
        for (npy_intp i = 0; i < row; i++) {
            if (width == 8) {
                double x = drawn[i];
                ((double *)PyArray_DATA((PyArrayObject *)made))[start + i] = x < TINY_DOUBLE ? TINY_DOUBLE : x > below_one ? below_one : x;
            }
            else {
                float x = (float)drawn[i];
                ((float *)PyArray_DATA((PyArrayObject *)made))[start + i] = x < TINY_FLOAT ? TINY_FLOAT : x > single_below_one ? single_below_one : x;
            }
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (stream != NULL) {
        give_stream(stream);
    }
    Py_XDECREF((PyObject *)alpha);
    return made;
}

/* A double, rounded to single precision where the parameters have that. */
static inline double rounded(double x, int single)
{
    return single ? (double)(float)x : x;
}

/* Sums of the waiting times between successes, as in `gamma.py`. */
static double binomial_waiting(Stream *stream, double count, double prob, int single)
{
    double log_prob = rounded(log1p(-prob), single), total = 0, successes = 0;
    for (;;) {
        double u = rounded(stream_double(stream), single);
        double wait = u > 0 ? ceil(rounded(rounded(log(u), single) / log_prob, single)) : INFINITY;
        total = rounded(total + wait, single);
        if (total > count) {
            return successes;
        }
        successes++;
    }
}

/* log k! less Stirling's formula for it. */
static double stirling_tail(double k)
{
    static const double tails[] = {0.0810614667953272,  0.0413406959554092,  0.0276779256849983,  0.02079067210376509, 0.0166446911898211,
                                   0.0138761288230707,  0.0118967099458917,  0.0104112652619720,  0.00925546218271273, 0.00833056343336287};
    if (k <= 9) {
        return tails[(int)k];
    }
    double squared = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / squared) / squared) / (k + 1);
}

/* Hoermann's algorithm BTRS, as in `gamma.py`. */
static double binomial_transformed(Stream *stream, double count, double prob, int single)
{
    double deviation = sqrt(count * prob * (1 - prob)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * prob;
    double c = count * prob + 0.5, squeeze = 0.92 - 4.2 / b, odds = prob / (1 - prob), alpha = (2.83 + 5.1 / b) * deviation;
    double m = floor((count + 1) * prob);
    for (;;) {
        double u = rounded(stream_double(stream) - 0.5, single), v = rounded(stream_double(stream), single), us = 0.5 - fabs(u);
        double k = us != 0 ? floor((2 * a / us + b) * u + c) : -1;
        if (us >= 0.07 && v <= squeeze) {
            return k;
        }
        if (k < 0 || k > count) {
            continue;
        }
        double ratio = v != 0 ? log(v * alpha / (a / (us * us) + b)) : -INFINITY;
        double bound = (m + 0.5) * log((m + 1) / (odds * (count - m + 1))) + (count + 1) * log((count - m + 1) / (count - k + 1)) +
                       (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(count - m) - stirling_tail(k) -
                       stirling_tail(count - k);
        if (ratio <= bound) {
            return k;
        }
    }
}

static double draw_binomial(Stream *stream, double count, double prob, int single)
{
    if (count <= 0 || prob <= 0) {
        return 0;
    }
    if (isnan(prob) || prob >= 1) {
        return isnan(prob) ? prob : count;
    }
    double rare = prob > 0.5 ? rounded(1 - prob, single) : prob;
    double drawn = (count * rare >= 10 ? binomial_transformed : binomial_waiting)(stream, count, rare, single);
    return prob > 0.5 ? count - drawn : drawn;
}

static double element_of(PyArrayObject *array, npy_intp i, int width)
{
    return width == 8 ? ((const double *)PyArray_DATA(array))[i] : ((const float *)PyArray_DATA(array))[i];
}

/* count, prob, generator: of one shape and dtype; counts are whole numbers. */
static PyObject *binomial_kernel(PyObject *const *args)
{
    int width = is_array(args[0]) ? float_width((PyArrayObject *)args[0]) : 0;
    if (!width || !is_array(args[1]) || float_width((PyArrayObject *)args[1]) != width ||
        !PyArray_SAMESHAPE((PyArrayObject *)args[0], (PyArrayObject *)args[1])) {
        return NULL;
    }
    PyArrayObject *parts[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        parts[i] = dense_width(args[i]) ? (PyArrayObject *)Py_NewRef(args[i]) : (PyArrayObject *)PyArray_NewCopy((PyArrayObject *)args[i], NPY_CORDER);
    }
    npy_intp n = parts[0] != NULL ? PyArray_SIZE(parts[0]) : 0;
    int fair = parts[0] != NULL && parts[1] != NULL;
    for (npy_intp i = 0; fair && i < n; i++) {
        double count = element_of(parts[0], i, width);
        fair = count < 1e15 && count == floor(count);
    }
    Stream *stream = fair ? take_stream(args[2]) : NULL;
    PyObject *made = stream == NULL ? NULL : new_like(parts[0]);
    if (made != NULL) {
        char *out = PyArray_DATA((PyArrayObject *)made);
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        for (npy_intp i = 0; i < n; i++) {
            double drawn = draw_binomial(stream, element_of(parts[0], i, width), element_of(parts[1], i, width), width == 4);
            store_number(width == 8 ? KIND_DOUBLE : KIND_FLOAT, out, i, drawn);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    if (stream != NULL) {
        give_stream(stream);
    }
    Py_XDECREF((PyObject *)parts[0]);
    Py_XDECREF((PyObject *)parts[1]);
    return made;
}

/* ----------------------------------------------------------------------------------------------------------------- by weight */

/* Whether the weights of each row are finite, none is negative, and their sum is neither zero nor infinite. */
static int fair_weights(const char *data, npy_intp rows, npy_intp length, int width)
{
    for (npy_intp r = 0; r < rows; r++) {
        double sum = 0;
        for (npy_intp i = r * length; i < (r + 1) * length; i++) {
            double weight = width == 8 ? ((const double *)data)[i] : ((const float *)data)[i];
            if (!(weight >= 0 && weight < INFINITY)) {
                return 0;
            }
            sum += weight;
        }
        if (!(sum > 0 && sum < (width == 8 ? 1e300 : 1e38))) {
            return 0;
        }
    }
    return 1;
}

/* The race that `multinomial` in `discrete.py` describes: the quickest first, of equals the one of the lowest index. `speed` has room for a row. */
#define RACE(type)                                                                                                                         \
    do {                                                                                                                                   \
        type *speed = (type *)room;                                                                                                        \
        for (npy_intp r = 0; r < rows; r++) {                                                                                              \
            for (npy_intp i = 0; i < length; i++) {                                                                                        \
                type q = (type)draw_exponential(stream, &one);                                                                             \
                speed[i] = ((const type *)data)[r * length + i] / q;                                                                       \
            }                                                                                                                              \
            for (npy_intp k = 0; k < samples; k++) {                                                                                       \
                npy_intp best = 0;                                                                                                         \
                for (npy_intp i = 1; i < length; i++) {                                                                                    \
                    best = speed[i] > speed[best] ? i : best;                                                                              \
                }                                                                                                                          \
                out[r * samples + k] = best;                                                                                               \
                speed[best] = -1;                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

/* The place of a uniform number in the sums of the weights, each rounded to their dtype. */
#define PLACE(type)                                                                                                                        \
    do {                                                                                                                                   \
        type *sums = (type *)room;                                                                                                         \
        for (npy_intp r = 0; r < rows; r++) {                                                                                              \
            type sum = 0;                                                                                                                  \
            for (npy_intp i = 0; i < length; i++) {                                                                                        \
                sums[i] = sum = i ? sum + ((const type *)data)[r * length + i] : ((const type *)data)[r * length];                         \
            }                                                                                                                              \
            for (npy_intp i = 0; i < length; i++) {                                                                                        \
                sums[i] = i == length - 1 ? 1 : sums[i] / sum;                                                                             \
            }                                                                                                                              \
            for (npy_intp k = 0; k < samples; k++) {                                                                                       \
                double u = stream_double(stream);                                                                                          \
                npy_intp low = 0, high = length;                                                                                           \
                while (low < high) {                                                                                                       \
                    npy_intp middle = (low + high) / 2;                                                                                    \
                    if ((double)sums[middle] < u) {                                                                                        \
                        low = middle + 1;                                                                                                  \
                    }                                                                                                                      \
                    else {                                                                                                                 \
                        high = middle;                                                                                                     \
                    }                                                                                                                      \
                }                                                                                                                          \
                out[r * samples + k] = low;                                                                                                \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

/* self, num_samples, replacement, generator */
static PyObject *multinomial_kernel(PyObject *const *args)
{
    PyArrayObject *weights = (PyArrayObject *)args[0];
    int width = dense_width(args[0]), ndim = width ? PyArray_NDIM(weights) : 0;
    Py_ssize_t samples;
    if (ndim < 1 || ndim > 2 || !as_index(args[1], &samples) || samples < 1 || !PyBool_Check(args[2])) {
        return NULL;
    }
    npy_intp rows = ndim == 2 ? PyArray_DIM(weights, 0) : 1, length = PyArray_DIM(weights, ndim - 1), dims[2] = {rows, samples};
    const int again = args[2] == Py_True && samples > 1;
    const char *data = PyArray_DATA(weights);
    if (rows * length == 0 || rows * length > FEW || samples > FEW || (!again && samples > length) || !fair_weights(data, rows, length, width)) {
        return NULL;
    }
    Stream *stream = take_stream(args[3]);
    if (stream == NULL) {
        return NULL;
    }
    PyArray_Descr *descr = PyArray_DescrFromType(NPY_INT64);
    PyObject *made = new_array(ndim, ndim == 2 ? dims : dims + 1, descr);
    Py_DECREF(descr);
    char *room = made == NULL ? NULL : PyMem_Malloc((size_t)length * sizeof(double));
    if (room != NULL) {
        npy_int64 *out = PyArray_DATA((PyArrayObject *)made);
        const double one = 1;
        if (again) {
            if (width == 8) {
                PLACE(double);
            }
            else {
                PLACE(float);
            }
        }
        else if (width == 8) {
            RACE(double);
        }
        else {
            RACE(float);
        }
    }
    else {
        Py_CLEAR(made);
    }
    PyMem_Free(room);
    give_stream(stream);
    return made;
}

const KernelEntry draw_kernels[] = {
    {"random.exponential_", exponential_kernel},
    {"random.geometric_", geometric_kernel},
    {"random.cauchy_", cauchy_kernel},
    {"random.log_normal_", log_normal_kernel},
    {"random.standard_gamma", gamma_kernel},
    {"random.sample_dirichlet", dirichlet_kernel},
    {"random.multinomial", multinomial_kernel},
    {"random.binomial", binomial_kernel},
    {NULL, NULL},
};
