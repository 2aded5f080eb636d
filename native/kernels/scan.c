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
#define STRETCH 16 /* elements of a line that are looked at at once, and the fewest columns that are worth vectors */

#define FEW_COLUMNS(name, T, BETTER)                                                                                                       \
    PLAIN static void name##_few(const T *x, T *restrict out, npy_int64 *restrict place, npy_intp n, npy_intp inner)                       \
    {                                                                                                                                      \
        memcpy(out, x, (size_t)inner * sizeof(T));                                                                                         \
        memset(place, 0, (size_t)inner * sizeof(npy_int64));                                                                               \
        for (npy_intp i = inner, k = 1; k < n; k++) {                                                                                      \
            for (const npy_intp end = i + inner; i < end; i++) {                                                                           \
                if (x[i] BETTER out[i - inner] || x[i] != x[i]) {                                                                          \
                    out[i] = x[i];                                                                                                         \
                    place[i] = k;                                                                                                          \
                }                                                                                                                          \
                else {                                                                                                                     \
                    out[i] = out[i - inner];                                                                                               \
                    place[i] = place[i - inner];                                                                                           \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

#define EXTREMES(name, suffix, TARGET, T, BETTER, PASSES)                                                                                  \
    TARGET static void name##_line##suffix(const T *x, T *restrict out, npy_int64 *restrict place, npy_intp n)                             \
    {                                                                                                                                      \
        T best = x[0];                                                                                                                     \
        npy_int64 at = 0;                                                                                                                  \
        for (npy_intp start = 0, stop; start < n; start = stop) {                                                                          \
            stop = n - start < STRETCH ? n : start + STRETCH;                                                                              \
            if (stop - start == STRETCH) {                                                                                                 \
                int takes = 0;                                                                                                             \
                for (int i = 0; i < STRETCH; i++) {                                                                                        \
                    takes |= !(best PASSES x[start + i]);                                                                                  \
                }                                                                                                                          \
                if (!takes) {                                                                                                              \
                    for (int i = 0; i < STRETCH; i++) {                                                                                    \
                        out[start + i] = best;                                                                                             \
                        place[start + i] = at;                                                                                             \
                    }                                                                                                                      \
                    continue;                                                                                                              \
                }                                                                                                                          \
            }                                                                                                                              \
            const T best_before = best;                                                                                                    \
            const npy_int64 at_before = at;                                                                                                \
            int has_nan = best != best;                                                                                                    \
            for (npy_intp k = start; k < stop; k++) { /* without branches, of which half would be guessed wrong */                         \
                const T here = x[k];                                                                                                       \
                const npy_int64 mask = -(npy_int64) !(best PASSES here);                                                                   \
                has_nan |= here != here;                                                                                                   \
                out[k] = best = best PASSES here ? best : here;                                                                            \
                place[k] = at = (k & mask) | (at & ~mask);                                                                                 \
            }                                                                                                                              \
            if (has_nan) { /* anew, since a NaN lets everything pass */                                                                    \
                best = best_before, at = at_before;                                                                                        \
                for (npy_intp k = start; k < stop; k++) {                                                                                  \
                    if (x[k] BETTER best || x[k] != x[k]) {                                                                                \
                        best = x[k], at = k;                                                                                               \
                    }                                                                                                                      \
                    out[k] = best;                                                                                                         \
                    place[k] = at;                                                                                                         \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    TARGET static void name##suffix(const void *input, void *output, npy_int64 *place, npy_intp outer, npy_intp n, npy_intp inner,         \
                                    npy_intp first, npy_intp last)                                                                         \
    {                                                                                                                                      \
        const T *x = input;                                                                                                                \
        T *out = output;                                                                                                                   \
        for (npy_intp o = 0; o < outer; o++, x += n * inner, out += n * inner, place += n * inner) {                                       \
            if (inner < STRETCH) {                                                                                                         \
                inner == 1 ? name##_line##suffix(x, out, place, n) : name##_few(x, out, place, n, inner);                                  \
                continue;                                                                                                                  \
            }                                                                                                                              \
            memcpy(out + first, x + first, (size_t)(last - first) * sizeof(T));                                                            \
            memset(place + first, 0, (size_t)(last - first) * sizeof(npy_int64));                                                          \
            for (npy_intp k = 1; k < n; k++) {                                                                                             \
                const T *row = x + k * inner + first, *best = out + (k - 1) * inner + first;                                               \
                const npy_int64 *known = place + (k - 1) * inner + first;                                                                  \
                T *restrict value = out + k * inner + first;                                                                               \
                npy_int64 *restrict at = place + k * inner + first;                                                                        \
                for (npy_intp i = 0; i < last - first; i++) { /* without branches, as vectors want it */                                   \
                    const T here = row[i], before = best[i];                                                                               \
                    const int takes = (here BETTER before) | (here != here);                                                               \
                    const npy_int64 mask = -(npy_int64)takes, was = known[i];                                                              \
                    value[i] = takes ? here : before;                                                                                      \
                    at[i] = (k & mask) | (was & ~mask);                                                                                    \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

#if HAS_WIDE
#define VARIANTS(name, T, BETTER, PASSES)                                                                                                  \
    FEW_COLUMNS(name, T, BETTER)                                                                                                           \
    EXTREMES(name, , PLAIN, T, BETTER, PASSES)                                                                                             \
    EXTREMES(name, _wide, WIDE, T, BETTER, PASSES)
#define VARIANTS_OF(name) {name, name##_wide}
#else
#define VARIANTS(name, T, BETTER, PASSES)                                                                                                  \
    FEW_COLUMNS(name, T, BETTER)                                                                                                           \
    EXTREMES(name, , PLAIN, T, BETTER, PASSES)
#define VARIANTS_OF(name) {name, name}
#endif

#define OF_TYPE(name, T)                                                                                                                   \
    VARIANTS(largest_##name, T, >=, >)                                                                                                     \
    VARIANTS(smallest_##name, T, <=, <)

OF_TYPE(float, float)
OF_TYPE(double, double)
OF_TYPE(int64, npy_int64)
OF_TYPE(int32, npy_int32)
OF_TYPE(int16, npy_int16)
OF_TYPE(int8, npy_int8)
OF_TYPE(uint8, npy_uint8)

typedef void (*Extremes)(const void *input, void *output, npy_int64 *place, npy_intp outer, npy_intp n, npy_intp inner, npy_intp first, npy_intp last);

#define OF_KINDS(order)                                                                                                                    \
    {                                                                                                                                      \
        VARIANTS_OF(order##_float), VARIANTS_OF(order##_double), VARIANTS_OF(order##_int64), VARIANTS_OF(order##_int32),                   \
            VARIANTS_OF(order##_int16), VARIANTS_OF(order##_int8), VARIANTS_OF(order##_uint8), VARIANTS_OF(order##_uint8) /* bool */       \
    }

/* One row for each kind: plain, and with AVX2. */
static const Extremes largest[KINDS][2] = OF_KINDS(largest), smallest[KINDS][2] = OF_KINDS(smallest);

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
static PyObject *extremes(PyObject *const *args, const Extremes (*of_kinds)[2])
{
    const int kind = kind_of(args[0]);
    PyArrayObject *x = (PyArrayObject *)args[0];
    int at = kind < 0 || !PyArray_NDIM(x) || !PyArray_SIZE(x) ? -1 : as_dim(args[1], PyArray_NDIM(x));
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
        const Extremes run = of_kinds[kind][S.vectors > 0];
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
    return extremes(args, largest);
}

static PyObject *cummin_kernel(PyObject *const *args)
{
    return extremes(args, smallest);
}

const KernelEntry scan_kernels[] = {
    {"scan.cummax", cummax_kernel},
    {"scan.cummin", cummin_kernel},
    {"scan.cumsum", cumsum_kernel},
    {"scan.cumprod", cumprod_kernel},
    {NULL, NULL},
};
