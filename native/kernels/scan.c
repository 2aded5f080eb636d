/* Running sums and products along one dimension, of arrays of any layout. Those of float32 are kept in double. */
#include "kinds.h"

#define SIDE 512 /* columns whose running results stay in the cache */

/* x (outer, n, inner), contiguous; `out` likewise; of the innermost those from `first` to `last`. */
#define SCAN(name, T, TOTAL, START, STEP)                                                                                                  \
    static void name(const void *input, void *output, npy_intp outer, npy_intp n, npy_intp inner, npy_intp first, npy_intp last)           \
    {                                                                                                                                      \
        const T *restrict x = input;                                                                                                       \
        T *restrict out = output;                                                                                                          \
        for (npy_intp o = 0; o < outer; o++, x += n * inner, out += n * inner) {                                                           \
            if (inner == 1) {                                                                                                              \
                TOTAL total = START;                                                                                                       \
                for (npy_intp k = 0; k < n; k++) {                                                                                         \
                    total STEP (TOTAL)x[k];                                                                                                \
                    out[k] = (T)total;                                                                                                     \
                }                                                                                                                          \
                continue;                                                                                                                  \
            }                                                                                                                              \
            for (npy_intp start = first; start < last; start += SIDE) {                                                                    \
                npy_intp part = last - start < SIDE ? last - start : SIDE;                                                                 \
                TOTAL totals[SIDE];                                                                                                        \
                for (npy_intp i = 0; i < part; i++) {                                                                                      \
                    totals[i] = START;                                                                                                     \
                }                                                                                                                          \
                for (npy_intp k = 0; k < n; k++) {                                                                                         \
                    const T *restrict row = x + k * inner + start;                                                                         \
                    T *restrict made = out + k * inner + start;                                                                            \
                    for (npy_intp i = 0; i < part; i++) {                                                                                  \
                        totals[i] STEP (TOTAL)row[i];                                                                                      \
                        made[i] = (T)totals[i];                                                                                            \
                    }                                                                                                                      \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

/* Integers wrap: unsigned ones do so by definition. */
SCAN(sum_float, float, double, -0.0, +=)
SCAN(sum_double, double, double, -0.0, +=)
SCAN(sum_int64, npy_uint64, npy_uint64, 0, +=)
SCAN(product_float, float, double, 1, *=)
SCAN(product_double, double, double, 1, *=)
SCAN(product_int64, npy_uint64, npy_uint64, 1, *=)

#define SNATCH 1024 /* bytes of a row that a thread reads and writes; fewer take as long as those between them */

/* Whether the threads share what lies behind the dimension: where what lies before it cannot be shared evenly. */
static int is_by_columns(npy_intp outer, npy_intp inner, npy_intp item)
{
    const npy_intp threads = part_threads;
    return outer < 4 * threads && outer % threads != 0 && inner * item >= SNATCH * threads;
}

static void share(LoopPart part, void *work, int by_columns, npy_intp outer, npy_intp n, npy_intp inner)
{
    if (by_columns) {
        in_shares(part, work, inner, 16, grain_of(2 * outer * n));
    }
    else {
        in_parts(part, work, outer, grain_of(2 * n * inner));
    }
}

typedef void (*Scan)(const void *input, void *output, npy_intp outer, npy_intp n, npy_intp inner, npy_intp first, npy_intp last);

typedef struct {
    Scan run;
    const char *x;
    char *y;
    npy_intp outer, n, inner, item;
    int by_columns;
} Scanning;

static void scan_part(void *work, npy_intp begin, npy_intp end)
{
    const Scanning *all = work;
    if (all->by_columns) {
        all->run(all->x, all->y, all->outer, all->n, all->inner, begin, end);
        return;
    }
    const npy_intp skipped = begin * all->n * all->inner * all->item;
    all->run(all->x + skipped, all->y + skipped, end - begin, all->n, all->inner, 0, all->inner);
}

/* self, dim: of float32, float64 and int64. */
static PyObject *scanned(PyObject *const *args, Scan of_float, Scan of_double, Scan of_int64)
{
    int kind = kind_of(args[0]);
    Scan scan = kind == KIND_FLOAT ? of_float : kind == KIND_DOUBLE ? of_double : kind == KIND_INT64 ? of_int64 : NULL;
    if (scan == NULL) {
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)args[0];
    int ndim = PyArray_NDIM(x), at = as_dim(args[1], ndim ? ndim : 1);
    if (at < 0) {
        return NULL;
    }
    npy_intp outer = 1, n = 1, inner = 1;
    for (int d = 0; d < ndim; d++) {
        *(d < at ? &outer : d == at ? &n : &inner) *= PyArray_DIM(x, d);
    }
    PyArrayObject *source = contiguous_of(x);
    PyObject *out = source == NULL ? NULL : new_like(x);
    if (out != NULL && PyArray_SIZE(x) > 0) {
        const void *from = PyArray_DATA(source);
        void *to = PyArray_DATA((PyArrayObject *)out);
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        Scanning all = {scan, from, to, outer, n, inner, PyArray_ITEMSIZE(x), is_by_columns(outer, inner, PyArray_ITEMSIZE(x))};
        share(scan_part, &all, all.by_columns, outer, n, inner);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(source);
    return out;
}

static PyObject *cumsum_kernel(PyObject *const *args)
{
    return scanned(args, sum_float, sum_double, sum_int64);
}

static PyObject *cumprod_kernel(PyObject *const *args)
{
    return scanned(args, product_float, product_double, product_int64);
}

/* --- running extremes */

/* Equal elements take over, and so does each NaN, which stays: the place is that of the latest. */
#define EXTREMES(name, T, BETTER)                                                                                                          \
    static void name(const void *input, void *output, npy_int64 *place, npy_intp outer, npy_intp n, npy_intp inner, npy_intp first,        \
                     npy_intp last)                                                                                                        \
    {                                                                                                                                      \
        const T *x = input;                                                                                                                \
        T *out = output;                                                                                                                   \
        for (npy_intp o = 0; o < outer; o++, x += n * inner, out += n * inner, place += n * inner) {                                       \
            if (inner == 1) { /* in registers */                                                                                           \
                T best = x[0];                                                                                                             \
                npy_int64 at = 0;                                                                                                          \
                for (npy_intp k = 0; k < n; k++) {                                                                                         \
                    if (x[k] BETTER best || x[k] != x[k]) {                                                                                \
                        best = x[k];                                                                                                       \
                        at = k;                                                                                                            \
                    }                                                                                                                      \
                    out[k] = best;                                                                                                         \
                    place[k] = at;                                                                                                         \
                }                                                                                                                          \
                continue;                                                                                                                  \
            }                                                                                                                              \
            memcpy(out + first, x + first, (size_t)(last - first) * sizeof(T));                                                            \
            memset(place + first, 0, (size_t)(last - first) * sizeof(npy_int64));                                                          \
            for (npy_intp k = 1; k < n; k++) {                                                                                             \
                const T *row = x + k * inner + first, *best = out + (k - 1) * inner + first;                                               \
                const npy_int64 *known = place + (k - 1) * inner + first;                                                                  \
                T *restrict value = out + k * inner + first;                                                                               \
                npy_int64 *restrict at = place + k * inner + first;                                                                        \
                for (npy_intp i = 0; i < last - first; i++) {                                                                              \
                    int takes = row[i] BETTER best[i] || row[i] != row[i];                                                                 \
                    value[i] = takes ? row[i] : best[i];                                                                                   \
                    at[i] = takes ? k : known[i];                                                                                          \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

EXTREMES(largest_float, float, >=)
EXTREMES(largest_double, double, >=)
EXTREMES(largest_int64, npy_int64, >=)
EXTREMES(smallest_float, float, <=)
EXTREMES(smallest_double, double, <=)
EXTREMES(smallest_int64, npy_int64, <=)

typedef void (*Extremes)(const void *input, void *output, npy_int64 *place, npy_intp outer, npy_intp n, npy_intp inner, npy_intp first, npy_intp last);

typedef struct {
    Extremes run;
    const char *x;
    char *values;
    npy_int64 *places;
    npy_intp outer, n, inner, item;
    int by_columns;
} ExtremesRun;

static void extremes_part(void *work, npy_intp begin, npy_intp end)
{
    const ExtremesRun *all = work;
    if (all->by_columns) {
        all->run(all->x, all->values, all->places, all->outer, all->n, all->inner, begin, end);
        return;
    }
    const npy_intp skipped = begin * all->n * all->inner;
    all->run(all->x + skipped * all->item, all->values + skipped * all->item, all->places + skipped, end - begin, all->n, all->inner, 0, all->inner);
}

/* self, dim: (values, places). */
static PyObject *extremes(PyObject *const *args, Extremes of_float, Extremes of_double, Extremes of_int64)
{
    int kind = kind_of(args[0]);
    Extremes run = kind == KIND_FLOAT ? of_float : kind == KIND_DOUBLE ? of_double : kind == KIND_INT64 ? of_int64 : NULL;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int at = run == NULL || !PyArray_NDIM(x) || !PyArray_SIZE(x) ? -1 : as_dim(args[1], PyArray_NDIM(x));
    if (at < 0) {
        return NULL;
    }
    npy_intp outer = 1, n = 1, inner = 1;
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        *(d < at ? &outer : d == at ? &n : &inner) *= PyArray_DIM(x, d);
    }
    PyArrayObject *source = contiguous_of(x);
    PyObject *values = source == NULL ? NULL : new_like(x);
    PyObject *places = values == NULL ? NULL : new_numbers(PyArray_NDIM(x), PyArray_DIMS(x), NPY_INT64);
    if (places != NULL) {
        const void *from = PyArray_DATA(source);
        void *to = PyArray_DATA((PyArrayObject *)values);
        npy_int64 *place = PyArray_DATA((PyArrayObject *)places);
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        ExtremesRun all = {run, from, to, place, outer, n, inner, PyArray_ITEMSIZE(x), is_by_columns(outer, inner, PyArray_ITEMSIZE(x))};
        share(extremes_part, &all, all.by_columns, outer, n, inner);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(source);
    return pair_of(values, places);
}

static PyObject *cummax_kernel(PyObject *const *args)
{
    return extremes(args, largest_float, largest_double, largest_int64);
}

static PyObject *cummin_kernel(PyObject *const *args)
{
    return extremes(args, smallest_float, smallest_double, smallest_int64);
}

const KernelEntry scan_kernels[] = {
    {"scan.cummax", cummax_kernel},
    {"scan.cummin", cummin_kernel},
    {"scan.cumsum", cumsum_kernel},
    {"scan.cumprod", cumprod_kernel},
    {NULL, NULL},
};
