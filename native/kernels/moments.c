/* Variances, norms and logarithms of sums, over any dimensions of float arrays of any layout. */
#include "reduce.h"
#include "soft_rows.h"
#include <math.h>

#define LOOPS "moments_loops.h"
#include "variants.h"

#if HAS_WIDE
#define LOOP(name, kind) (kind == KIND_DOUBLE ? CHOOSE64(name) : CHOOSE32(name))
#else
#define LOOP(name, kind) (kind == KIND_DOUBLE ? name##_double_plain : name##_float_plain)
#endif
#define SET_PASS(pass, name, kind, bytes)                                                                                                  \
    do {                                                                                                                                   \
        (pass).row = LOOP(name##_row, kind);                                                                                               \
        (pass).columns = LOOP(name##_columns, kind);                                                                                       \
        (pass).merge = (pass).row;                                                                                                         \
        (pass).join = (pass).columns;                                                                                                      \
        (pass).size = (bytes);                                                                                                             \
    } while (0)
#define SET_SUM(pass, name, kind)                                                                                                          \
    do {                                                                                                                                   \
        SET_PASS(pass, name, kind, sizeof(double));                                                                                        \
        (pass).merge = merge_of_sums();                                                                                                    \
        (pass).join = join_of_sums();                                                                                                      \
        (pass).unit = -1;                                                                                                                  \
    } while (0)

static void mean_of(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    (void)context, (void)second, (void)by;
    const double *total = state;
    double *mean = output;
    for (npy_intp i = 0; i < count; i++) {
        mean[i] = total[i] / n;
    }
}

static int prepare(PyObject *object, PyObject *dim, PyObject *keepdim, Reduction *plan, Reducer *with)
{
    Row widen;
    int kind = kind_widened(object, &widen), keep = as_flag(keepdim);
    if (!is_float_kind(kind) || keep < 0) {
        return -1;
    }
    PyArrayObject *x = (PyArrayObject *)object;
    int mask = dims_of(dim, PyArray_NDIM(x));
    if (mask < 0) {
        return -1;
    }
    plan_reduction(x, mask, keep, 0, plan);
    memset(with, 0, sizeof(Reducer));
    with->out_item = with->second_item = kind_size(kind);
    with->widen = widen;
    with->item = PyArray_ITEMSIZE(x);
    return kind;
}

static PyObject *run(PyArrayObject *x, const Reduction *plan, const Reducer *with, double by, int pair)
{
    PyArray_Descr *descr = with->out_item == 8 ? S.descr64 : S.descr32;
    PyObject *out = new_array(plan->ndim, plan->dims, descr);
    PyObject *second = pair && out != NULL ? new_array(plan->ndim, plan->dims, descr) : NULL;
    if (out == NULL || (pair && second == NULL)) {
        Py_XDECREF(out);
        return NULL;
    }
    if (plan->count) {
        char *result = PyArray_DATA((PyArrayObject *)out), *other = pair ? PyArray_DATA((PyArrayObject *)second) : NULL;
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        reduce_array(plan, with, PyArray_DATA(x), result, other, by);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return pair ? pair_of(out, second) : out;
}

/* self, dim, correction, keepdim. */
static PyObject *variance_kernel(PyObject *const *args, int root, int pair)
{
    Reduction plan;
    Reducer with;
    double correction = 1;
    if (args[2] != Py_None) {
        if (!PyFloat_CheckExact(args[2]) && !PyLong_Check(args[2])) {
            return NULL;
        }
        correction = PyFloat_AsDouble(args[2]);
        if (correction == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return NULL;
        }
    }
    int kind = prepare(args[0], args[1], args[3], &plan, &with);
    if (kind < 0 || !plan.n) {
        return NULL;
    }
    SET_SUM(with.first, plain, kind);
    SET_SUM(with.second, deviation, kind);
    with.between = mean_of;
    with.finish = root ? LOOP(deviation, kind) : LOOP(variance, kind);
    return run((PyArrayObject *)args[0], &plan, &with, correction, pair);
}

static PyObject *var_kernel(PyObject *const *args)
{
    return variance_kernel(args, 0, 0);
}

static PyObject *std_kernel(PyObject *const *args)
{
    return variance_kernel(args, 1, 0);
}

static PyObject *var_mean_kernel(PyObject *const *args)
{
    return variance_kernel(args, 0, 1);
}

static PyObject *std_mean_kernel(PyObject *const *args)
{
    return variance_kernel(args, 1, 1);
}

typedef struct {
    const char *x;
    char *out;
    npy_intp n, step; /* bytes from row to row */
    int width;
} LogSums;

static void some_log_sums(void *work, npy_intp from, npy_intp to)
{
    const LogSums *all = work;
    log_sums(all->width, all->x + from * all->step, all->step / all->width, all->out + from * all->width, to - from, all->n);
}

#define LONGEST 8192 /* elements of rows that are not done in pieces */

/* Whether each result is that of a row that soft_rows.c does. */
static int are_soft_rows(const Reduction *plan, const Reducer *with)
{
    const npy_intp item = with->item;
    return with->widen == NULL && plan->reduced_count == 1 && plan->reduced[0].stride == item && plan->kept_count <= 1 && plan->n <= LONGEST &&
           soft_rows_serve((int)item, plan->n, 1) && (!plan->kept_count || plan->kept[0].stride % item == 0);
}

/* self, dim, keepdim. */
static PyObject *logsumexp_kernel(PyObject *const *args)
{
    Reduction plan;
    Reducer with;
    int kind = prepare(args[0], args[1], args[2], &plan, &with);
    if (kind < 0 || !plan.n) {
        return NULL;
    }
    if (are_soft_rows(&plan, &with)) {
        PyArrayObject *x = (PyArrayObject *)args[0];
        PyObject *out = new_array(plan.ndim, plan.dims, PyArray_DESCR(x));
        if (out != NULL) {
            LogSums all = {PyArray_DATA(x), PyArray_DATA((PyArrayObject *)out), plan.n, plan.kept_count ? plan.kept[0].stride : 0, (int)with.item};
            PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
            in_parts(some_log_sums, &all, plan.count, grain_of(2 * plan.n));
            if (thread != NULL) {
                PyEval_RestoreThread(thread);
            }
        }
        return out;
    }
    largest_pass(&with.first, kind);
    SET_SUM(with.second, exponential, kind);
    with.between = LOOP(shift_by, kind);
    with.finish = LOOP(log_of_sum, kind);
    return run((PyArrayObject *)args[0], &plan, &with, 0, 0);
}

/* self, dim, keepdim, dtype (which self has already). */
static PyObject *nansum_kernel(PyObject *const *args)
{
    Reduction plan;
    Reducer with;
    int kind = prepare(args[0], args[1], args[2], &plan, &with);
    if (kind < 0) {
        return NULL;
    }
    SET_SUM(with.first, number, kind);
    with.finish = LOOP(narrowed, kind);
    return run((PyArrayObject *)args[0], &plan, &with, 0, 0);
}

/* self, ord, dim, keepdim, dtype (which self has already): orders 0, 1, 2 and the infinite ones. */
static PyObject *vector_norm_kernel(PyObject *const *args)
{
    Reduction plan;
    Reducer with;
    if (!PyFloat_CheckExact(args[1]) && !PyLong_CheckExact(args[1])) {
        return NULL;
    }
    double order = PyFloat_AsDouble(args[1]);
    if (order == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    int kind = prepare(args[0], args[2], args[3], &plan, &with);
    if (kind < 0 || !plan.n) {
        return NULL;
    }
    if (order == 2) {
        SET_SUM(with.first, square, kind);
        with.finish = LOOP(root, kind);
    }
    else if (order == 1) {
        SET_SUM(with.first, magnitude, kind);
        with.finish = LOOP(narrowed, kind);
    }
    else if (order == 0) {
        count_pass(&with.first, kind);
        with.finish = LOOP(counted, kind);
    }
    else if (order == NPY_INFINITY) {
        SET_PASS(with.first, farthest, kind, kind_size(kind));
        with.finish = LOOP(as_it_is, kind);
    }
    else if (order == -NPY_INFINITY) {
        SET_PASS(with.first, nearest, kind, kind_size(kind));
        with.finish = LOOP(as_it_is, kind);
        if (kind == KIND_FLOAT) {
            with.first.start.single = NPY_INFINITYF;
        }
        else {
            with.first.start.real = NPY_INFINITY;
        }
    }
    else {
        return NULL;
    }
    return run((PyArrayObject *)args[0], &plan, &with, 0, 0);
}

const KernelEntry moment_kernels[] = {
    {"reduction.var", var_kernel, HALVES},
    {"reduction.std", std_kernel, HALVES},
    {"reduction.var_mean", var_mean_kernel, HALVES},
    {"reduction.std_mean", std_mean_kernel, HALVES},
    {"reduction.nansum", nansum_kernel, HALVES},
    {"reduction.logsumexp", logsumexp_kernel, HALVES},
    {"reduction.vector_norm", vector_norm_kernel, HALVES},
    {NULL, NULL},
};
