/* Batch and group norm of float arrays, forward and backward. */
#include "norm.h"
#include <math.h>

#define LOOPS "channels_loops.h"
#include "variants.h"

typedef struct {
    npy_intp batch, channels, places;
} Planes;

static int read_planes(PyArrayObject *x, Planes *planes)
{
    if (PyArray_NDIM(x) < 2 || PyArray_NDIM(x) > MAX_DIMS || !PyArray_SIZE(x)) {
        return 0;
    }
    planes->batch = PyArray_DIM(x, 0);
    planes->channels = PyArray_DIM(x, 1);
    planes->places = PyArray_SIZE(x) / (planes->batch * planes->channels);
    return 1;
}

/* What a channel's elements are less and times: of `width` bytes each, one of each for every channel. */
static void set_factors(int width, npy_intp channels, const double *mean, const double *invstd, void *means, void *scales)
{
    for (npy_intp c = 0; c < channels; c++) {
        if (width == 4) {
            ((float *)means)[c] = (float)mean[c];
            ((float *)scales)[c] = (float)invstd[c];
        }
        else {
            ((double *)means)[c] = mean[c];
            ((double *)scales)[c] = invstd[c];
        }
    }
}

static double at(const void *data, int width, npy_intp i)
{
    return width == 4 ? ((const float *)data)[i] : ((const double *)data)[i];
}

static void put(void *data, int width, npy_intp i, double value)
{
    if (width == 4) {
        ((float *)data)[i] = (float)value;
    }
    else {
        ((double *)data)[i] = value;
    }
}

static void move_towards(void *running, int width, npy_intp i, double value, double momentum)
{
    double before = at(running, width, i), step = (value - before) * momentum;
    put(running, width, i, width == 4 ? (float)before + (float)step : before + step);
}

static PyObject *three(PyObject *first, PyObject *second, PyObject *third)
{
    PyObject *made = first == NULL || second == NULL || third == NULL ? NULL : PyTuple_Pack(3, first, second, third);
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(third);
    return made;
}

/* What is computed of each channel over a batch, or of each image; what a loop does not take is NULL. */
typedef struct {
    enum { MOMENTS, SUMS, SCALE, INPUT } what;
    const Planes *p;
    int width;
    const char *x, *grad;
    char *out;
    const void *mean, *scale, *extra; /* `extra`: the shift, or the weight */
    double *first, *second;
} Channels;

static void channels_part(void *work, npy_intp begin, npy_intp end)
{
    const Channels *all = work;
    const Planes *p = all->p;
    const int width = all->width;
    const npy_intp skipped = begin * p->channels * p->places * width, count = end - begin;
    switch (all->what) {
    case MOMENTS:
        CHOOSE(channel_moments, width, all->x, p->batch, p->channels, p->places, begin, end, all->first, all->second);
        break;
    case SUMS:
        CHOOSE(channel_sums, width, all->grad, all->x, p->batch, p->channels, p->places, begin, end, all->mean, all->scale, all->first, all->second);
        break;
    case SCALE:
        CHOOSE(scale_channels, width, all->x + skipped, all->out + skipped, count, p->channels, p->places, all->mean, all->scale, all->extra);
        break;
    default:
        CHOOSE(batch_norm_input, width, all->grad + skipped, all->x + skipped, all->out + skipped, count, p->channels, p->places, all->mean,
               all->scale, all->extra, all->first, all->second);
    }
}

static void run_channels(const Channels *all)
{
    const Planes *p = all->p;
    const int over_batch = all->what == SCALE || all->what == INPUT;
    in_parts(channels_part, (void *)all, over_batch ? p->batch : p->channels, grain_of((over_batch ? p->channels : p->batch) * p->places));
}

/* Statistics of a batch, or the running ones, as 1/std and mean in double; the running ones are moved towards those of a batch. */
static void statistics(const void *x, int width, const Planes *p, void *running_mean, void *running_var, int training, double momentum, double eps,
                       double *mean, double *invstd)
{
    if (!training) {
        for (npy_intp c = 0; c < p->channels; c++) {
            mean[c] = at(running_mean, width, c);
            double variance = at(running_var, width, c);
            invstd[c] = 1 / (width == 4 ? (double)sqrtf((float)variance + (float)eps) : sqrt(variance + eps));
        }
        return;
    }
    run_channels(&(Channels){.what = MOMENTS, .p = p, .width = width, .x = x, .first = mean, .second = invstd});
    double count = (double)(p->batch * p->places);
    for (npy_intp c = 0; c < p->channels; c++) {
        double variance = invstd[c];
        if (running_mean != NULL) {
            move_towards(running_mean, width, c, mean[c], momentum);
        }
        if (running_var != NULL) {
            move_towards(running_var, width, c, count > 1 ? variance * (count / (count - 1)) : NPY_NAN, momentum);
        }
        invstd[c] = 1 / sqrt(variance + eps);
    }
}

#define SOME_PLACES 2048 /* elements of half types that are float32 at a time */

/* Channels of half types less and times and plus what is float32. */
typedef struct {
    Row widen, narrow;
    const Planes *p;
    const char *x;
    char *y;
    const float *mean, *scale, *shift; /* the last may be NULL */
} HalfScale;

static void half_scale_part(void *work, npy_intp begin, npy_intp end)
{
    const HalfScale *all = work;
    const npy_intp channels = all->p->channels, places = all->p->places, together = places < SOME_PLACES ? SOME_PLACES / places : 1;
    float from[SOME_PLACES], to[SOME_PLACES];
    for (npy_intp n = begin; n < end; n++) {
        for (npy_intp c = 0; c < channels; c += together) {
            const npy_intp some = channels - c < together ? channels - c : together, skipped = (n * channels + c) * places;
            for (npy_intp i = 0; i < places; i += SOME_PLACES) { /* more than once in the planes of one channel alone */
                const npy_intp wide = places - i < SOME_PLACES ? places - i : SOME_PLACES, count = some * wide;
                all->widen((char *)from, 4, all->x + (skipped + i) * 2, 2, count);
                CHOOSE(scale_channels, 4, from, to, 1, some, wide, all->mean + c, all->scale + c, all->shift == NULL ? NULL : all->shift + c);
                all->narrow(all->y + (skipped + i) * 2, 2, (const char *)to, 4, count);
            }
        }
    }
}

/* Batch norm of half types by running statistics; all parameters are of one dtype, which is that of the statistics that nobody saves. */
static PyObject *half_batch_norm(PyObject *const *args, const Planes *p, double eps)
{
    PyArrayObject *x = (PyArrayObject *)args[0], *wide[4] = {NULL, NULL, NULL, NULL}, *dense = NULL;
    const void *data[4];
    HalfScale all = {.p = p};
    PyObject *made = NULL, *out = NULL;
    float *numbers = NULL;
    int fits = kind_widened(args[0], &all.widen) == KIND_FLOAT && all.widen != NULL;
    for (int k = 0; fits && k < 4; k++) {
        fits = (args[1 + k] == Py_None && k < 2) || (is_array(args[1 + k]) && PyArray_DESCR((PyArrayObject *)args[1 + k]) == PyArray_DESCR(x) && args[1] != Py_None);
    }
    for (int k = 0; fits && k < 4; k++) {
        fits = wide_vector(args[1 + k], p->channels, &wide[k], &data[k]);
    }
    all.narrow = row_between(S.descr32, PyArray_DESCR(x));
    if (fits && all.narrow != NULL && (dense = contiguous_of(x)) != NULL && (out = new_like(dense)) != NULL) {
        double *scratch = PyMem_RawMalloc((size_t)p->channels * (2 * sizeof(double) + 2 * sizeof(float)));
        if (scratch == NULL) {
            PyErr_NoMemory();
        }
        else {
            double *centre = scratch, *scale = scratch + p->channels;
            numbers = (float *)(scale + p->channels);
            statistics(NULL, 4, p, (void *)data[2], (void *)data[3], 0, 0, eps, centre, scale);
            set_factors(4, p->channels, centre, scale, numbers, numbers + p->channels);
            for (npy_intp c = 0; data[0] != NULL && c < p->channels; c++) {
                numbers[p->channels + c] *= ((const float *)data[0])[c];
            }
            all.x = PyArray_BYTES(dense), all.y = PyArray_BYTES((PyArrayObject *)out);
            all.mean = numbers, all.scale = numbers + p->channels, all.shift = data[1];
            PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
            in_parts(half_scale_part, &all, p->batch, grain_of(p->channels * p->places));
            if (thread != NULL) {
                PyEval_RestoreThread(thread);
            }
            PyMem_RawFree(scratch);
            const npy_intp none = 0;
            made = three(Py_NewRef(out), new_array(1, &none, PyArray_DESCR(x)), new_array(1, &none, PyArray_DESCR(x)));
        }
    }
    for (int k = 0; k < 4; k++) {
        Py_XDECREF((PyObject *)wide[k]);
    }
    Py_XDECREF((PyObject *)dense);
    Py_XDECREF(out);
    return made;
}

/* input, weight, bias, running_mean, running_var, training, momentum, eps. */
static PyObject *batch_norm_kernel(PyObject *const *args)
{
    int width = is_array(args[0]) ? float_width((PyArrayObject *)args[0]) : 0, training = args[5] == Py_True;
    PyArrayObject *x = (PyArrayObject *)args[0];
    Planes p;
    const void *weight, *bias, *running_mean, *running_var;
    double momentum, eps;
    if (!width && args[5] == Py_False && is_array(args[0]) && PyArray_ITEMSIZE(x) == 2) {
        return read_planes(x, &p) && as_double(args[7], &eps) ? half_batch_norm(args, &p, eps) : NULL;
    }
    if (!width || !PyBool_Check(args[5]) || !read_planes(x, &p) || !as_double(args[6], &momentum) || !as_double(args[7], &eps) ||
        !vector(args[1], width, p.channels, &weight) || !vector(args[2], width, p.channels, &bias) ||
        !vector(args[3], width, p.channels, &running_mean) || !vector(args[4], width, p.channels, &running_var) ||
        (!training && (running_mean == NULL || running_var == NULL))) {
        return NULL;
    }
    double *scratch = PyMem_RawMalloc((size_t)p.channels * (2 * sizeof(double) + 2 * (size_t)width));
    npy_intp saved = training ? p.channels : 0;
    PyArrayObject *dense = scratch == NULL ? NULL : contiguous_of(x);
    PyObject *out = dense == NULL ? NULL : new_like(dense), *mean = new_array(1, &saved, PyArray_DESCR(x));
    PyObject *invstd = new_array(1, &saved, PyArray_DESCR(x));
    if (out != NULL && mean != NULL && invstd != NULL) {
        double *centre = scratch, *scale = scratch + p.channels;
        char *centres = (char *)(scale + p.channels), *scales = centres + p.channels * width;
        void *y = PyArray_DATA((PyArrayObject *)out);
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        statistics(PyArray_DATA(dense), width, &p, (void *)running_mean, (void *)running_var, training, momentum, eps, centre, scale);
        set_factors(width, p.channels, centre, scale, centres, scales);
        if (training) {
            memcpy(PyArray_DATA((PyArrayObject *)mean), centres, (size_t)(p.channels * width));
            memcpy(PyArray_DATA((PyArrayObject *)invstd), scales, (size_t)(p.channels * width));
        }
        for (npy_intp c = 0; weight != NULL && c < p.channels; c++) {
            put(scales, width, c, at(scales, width, c) * at(weight, width, c));
        }
        run_channels(&(Channels){.what = SCALE, .p = &p, .width = width, .x = PyArray_DATA(dense), .out = y, .mean = centres, .scale = scales, .extra = bias});
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    PyMem_RawFree(scratch);
    Py_XDECREF((PyObject *)dense);
    return three(out, mean, invstd);
}

/* A gradient by channel in the dtype of `like`, or None when it is not wanted. */
static PyObject *by_channel(int wanted, const double *values, npy_intp channels, PyArrayObject *like)
{
    if (!wanted) {
        return Py_NewRef(Py_None);
    }
    PyObject *made = new_array(1, &channels, PyArray_DESCR(like));
    for (npy_intp c = 0; made != NULL && c < channels; c++) {
        put(PyArray_DATA((PyArrayObject *)made), float_width(like), c, values[c]);
    }
    return made;
}

/* grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask. */
static PyObject *batch_norm_backward_kernel(PyObject *const *args)
{
    int width = is_array(args[0]) ? float_width((PyArrayObject *)args[0]) : 0, train = args[7] == Py_True, wanted[3];
    PyArrayObject *grad = (PyArrayObject *)args[0], *x = (PyArrayObject *)args[1];
    Planes p;
    const void *weight, *mean, *second;
    double eps;
    if (!width || !PyBool_Check(args[7]) || !is_array(args[1]) || float_width(x) != width || !PyArray_SAMESHAPE(grad, x) || !read_planes(x, &p) ||
        !as_double(args[8], &eps) || !read_mask(args[9], wanted) || !vector(args[2], width, p.channels, &weight) ||
        !vector(args[train ? 5 : 3], width, p.channels, &mean) || !vector(args[train ? 6 : 4], width, p.channels, &second) || mean == NULL ||
        second == NULL) {
        return NULL;
    }
    double *sum = PyMem_RawMalloc((size_t)p.channels * (2 * sizeof(double) + (size_t)width));
    PyArrayObject *dense = sum == NULL ? NULL : contiguous_of(x), *upper = dense == NULL ? NULL : contiguous_of(grad);
    PyObject *made = NULL, *input = upper == NULL ? NULL : wanted[0] ? new_like(dense) : Py_NewRef(Py_None);
    if (input != NULL) {
        double *along = sum + p.channels;
        char *scale = (char *)(along + p.channels);
        for (npy_intp c = 0; c < p.channels; c++) {
            put(scale, width, c, train ? at(second, width, c) : 1 / sqrt(at(second, width, c) + eps));
        }
        void *g = PyArray_DATA(upper), *data = PyArray_DATA(dense), *out = wanted[0] ? PyArray_DATA((PyArrayObject *)input) : NULL;
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        if (train || wanted[1] || wanted[2]) {
            run_channels(&(Channels){.what = SUMS, .p = &p, .width = width, .x = data, .grad = g, .mean = mean, .scale = scale, .first = sum, .second = along});
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        PyObject *to_weight = by_channel(wanted[1], along, p.channels, x), *to_bias = by_channel(wanted[2], sum, p.channels, x);
        for (npy_intp c = 0; c < p.channels && train; c++) {
            sum[c] /= (double)(p.batch * p.places);
            along[c] /= (double)(p.batch * p.places);
        }
        if (out != NULL) {
            thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
            run_channels(&(Channels){.what = INPUT, .p = &p, .width = width, .x = data, .grad = g, .out = out, .mean = mean, .scale = scale, .extra = weight,
                                     .first = train ? sum : NULL, .second = along});
            if (thread != NULL) {
                PyEval_RestoreThread(thread);
            }
        }
        made = three(input, to_weight, to_bias);
    }
    PyMem_RawFree(sum);
    Py_XDECREF((PyObject *)dense);
    Py_XDECREF((PyObject *)upper);
    return made;
}

/* Reads N, C, HxW and group at `args`, and whether they are those of x. */
static int read_groups(PyObject *const *args, PyArrayObject *x, Planes *p, npy_intp *groups)
{
    Py_ssize_t sizes[4];
    for (int i = 0; i < 4; i++) {
        if (!as_index(args[i], &sizes[i])) {
            return 0;
        }
    }
    *groups = sizes[3];
    return read_planes(x, p) && sizes[0] == p->batch && sizes[1] == p->channels && sizes[2] == p->places && sizes[3] > 0 && sizes[1] % sizes[3] == 0;
}

typedef struct {
    const Planes *p;
    int width;
    npy_intp groups;
    const char *x;
    const void *weight, *bias;
    char *y, *mean, *rstd;
    double eps;
} Groups;

static void groups_part(void *work, npy_intp begin, npy_intp end)
{
    const Groups *all = work;
    const Planes *p = all->p;
    const int width = all->width;
    const npy_intp skipped = begin * p->channels * p->places * width, small = begin * all->groups * width;
    CHOOSE(group_norm_planes, width, all->x + skipped, all->weight, all->bias, all->y + skipped, all->mean + small, all->rstd + small, end - begin,
           all->groups, p->channels / all->groups, p->places, all->eps);
}

/* input, weight, bias, N, C, HxW, group, eps. */
static PyObject *group_norm_kernel(PyObject *const *args)
{
    int width = is_array(args[0]) ? float_width((PyArrayObject *)args[0]) : 0;
    PyArrayObject *x = (PyArrayObject *)args[0];
    Planes p;
    npy_intp groups;
    const void *weight, *bias;
    double eps;
    if (!width || !read_groups(args + 3, x, &p, &groups) || !as_double(args[7], &eps) || !vector(args[1], width, p.channels, &weight) ||
        !vector(args[2], width, p.channels, &bias)) {
        return NULL;
    }
    npy_intp small[2] = {p.batch, groups};
    PyArrayObject *dense = contiguous_of(x);
    PyObject *out = dense == NULL ? NULL : new_like(dense), *mean = new_array(2, small, PyArray_DESCR(x));
    PyObject *rstd = new_array(2, small, PyArray_DESCR(x));
    if (out != NULL && mean != NULL && rstd != NULL) {
        void *from = PyArray_DATA(dense), *y = PyArray_DATA((PyArrayObject *)out), *means = PyArray_DATA((PyArrayObject *)mean);
        void *rstds = PyArray_DATA((PyArrayObject *)rstd);
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        Groups all = {&p, width, groups, from, weight, bias, y, means, rstds, eps};
        in_parts(groups_part, &all, p.batch, grain_of(2 * p.channels * p.places));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF((PyObject *)dense);
    return three(out, mean, rstd);
}

/* grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask. */
static PyObject *group_norm_backward_kernel(PyObject *const *args)
{
    int width = is_array(args[0]) ? float_width((PyArrayObject *)args[0]) : 0, wanted[3];
    PyArrayObject *grad = (PyArrayObject *)args[0], *x = (PyArrayObject *)args[1];
    Planes p;
    npy_intp groups;
    const void *weight;
    if (!width || !is_array(args[1]) || float_width(x) != width || !PyArray_SAMESHAPE(grad, x) || !read_groups(args + 5, x, &p, &groups) ||
        dense_width(args[2]) != width || dense_width(args[3]) != width || PyArray_SIZE((PyArrayObject *)args[2]) != p.batch * groups ||
        PyArray_SIZE((PyArrayObject *)args[3]) != p.batch * groups || !vector(args[4], width, p.channels, &weight) || !read_mask(args[9], wanted)) {
        return NULL;
    }
    wanted[1] = wanted[1] && weight != NULL;
    double *sum = PyMem_RawMalloc((size_t)p.channels * 2 * sizeof(double));
    PyArrayObject *dense = sum == NULL ? NULL : contiguous_of(x), *upper = dense == NULL ? NULL : contiguous_of(grad);
    PyObject *made = NULL, *input = upper == NULL ? NULL : wanted[0] ? new_like(dense) : Py_NewRef(Py_None);
    if (input != NULL) {
        void *out = wanted[0] ? PyArray_DATA((PyArrayObject *)input) : NULL, *mean = PyArray_DATA((PyArrayObject *)args[2]);
        void *rstd = PyArray_DATA((PyArrayObject *)args[3]), *g = PyArray_DATA(upper), *data = PyArray_DATA(dense);
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        CHOOSE(group_norm_backward_planes, width, g, data, mean, rstd, weight, out, p.batch, groups, p.channels / groups, p.places, sum,
               sum + p.channels);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        made = three(input, by_channel(wanted[1], sum + p.channels, p.channels, x), by_channel(wanted[2], sum, p.channels, x));
    }
    PyMem_RawFree(sum);
    Py_XDECREF((PyObject *)dense);
    Py_XDECREF((PyObject *)upper);
    return made;
}

const KernelEntry channel_kernels[] = {
    {"norm.native_batch_norm", batch_norm_kernel, HALVES},
    {"norm.native_batch_norm_backward", batch_norm_backward_kernel},
    {"norm.native_group_norm", group_norm_kernel},
    {"norm.native_group_norm_backward", group_norm_backward_kernel},
    {NULL, NULL},
};
