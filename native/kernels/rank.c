/* Kernels that choose by rank: the k-th smallest, medians, the most frequent, and unique values. NaN comes after all else. Of equal elements the first is the
 * median; see Note [Equal elements] in choose.h for the others.
 */
#include "kinds.h"
#include "choose.h"

#define SHORT 192 /* elements that are put in order one by one; what needs an order of more is numpy's */

enum { KTH, MEDIAN, NAN_MEDIAN, MODE };

/* Reads n elements, `stride` bytes apart, with their places. */
#define RANK(name, T, LESS, IS_NAN)                                                                                                        \
    static inline int name##_before(const T *v, const npy_intp *p, npy_intp a, npy_intp b)                                                 \
    {                                                                                                                                      \
        return LESS(v[a], v[b]) || (!LESS(v[b], v[a]) && p[a] < p[b]);                                                                     \
    }                                                                                                                                      \
    /* Hoare's selection: afterwards the k-th smallest stands at k. */                                                                     \
    static void name##_select(T *v, npy_intp *p, npy_intp n, npy_intp k)                                                                   \
    {                                                                                                                                      \
        npy_intp low = 0, high = n - 1;                                                                                                    \
        while (low < high) {                                                                                                               \
            npy_intp middle = low + (high - low) / 2;                                                                                      \
            if (name##_before(v, p, middle, low)) {                                                                                        \
                name##_exchange(v, p, middle, low);                                                                                        \
            }                                                                                                                              \
            if (name##_before(v, p, high, low)) {                                                                                          \
                name##_exchange(v, p, high, low);                                                                                          \
            }                                                                                                                              \
            if (name##_before(v, p, high, middle)) {                                                                                       \
                name##_exchange(v, p, high, middle);                                                                                       \
            }                                                                                                                              \
            if (high - low < 3) {                                                                                                          \
                return;                                                                                                                    \
            }                                                                                                                              \
            name##_exchange(v, p, middle, high - 1); /* the pivot waits there, between sentinels */                                        \
            npy_intp i = low, j = high - 1;                                                                                                \
            for (;;) {                                                                                                                     \
                do {                                                                                                                       \
                    i++;                                                                                                                   \
                } while (name##_before(v, p, i, high - 1));                                                                                \
                do {                                                                                                                       \
                    j--;                                                                                                                   \
                } while (name##_before(v, p, high - 1, j));                                                                                \
                if (i >= j) {                                                                                                              \
                    break;                                                                                                                 \
                }                                                                                                                          \
                name##_exchange(v, p, i, j);                                                                                               \
            }                                                                                                                              \
            name##_exchange(v, p, i, high - 1);                                                                                            \
            if (i >= k) {                                                                                                                  \
                high = i - 1;                                                                                                              \
            }                                                                                                                              \
            if (i <= k) {                                                                                                                  \
                low = i + 1;                                                                                                               \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    /* The place in the row of what `what` asks for; its value goes to `value`. */                                                         \
    static npy_intp name##_pick(const char *x, npy_intp n, npy_intp stride, int what, npy_intp k, void *scratch, npy_intp *p, void *value) \
    {                                                                                                                                      \
        T *v = scratch;                                                                                                                    \
        npy_intp nans = 0, chosen = k;                                                                                                     \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            v[i] = *(const T *)(x + i * stride);                                                                                           \
            p[i] = i;                                                                                                                      \
            nans += IS_NAN(v[i]);                                                                                                          \
        }                                                                                                                                  \
        if (what == MODE) {                                                                                                                \
            npy_intp longest = 0, run = 0;                                                                                                 \
            name##_all(v, p, n, 0);                                                                                                        \
            chosen = 0;                                                                                                                    \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                run = i && v[i] == v[i - 1] ? run + 1 : 1;                                                                                 \
                if (run > longest) {                                                                                                       \
                    longest = run;                                                                                                         \
                    chosen = i;                                                                                                            \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
        else if (what == KTH) {                                                                                                            \
            name##_kth(v, p, k, n);                                                                                                        \
        }                                                                                                                                  \
        else {                                                                                                                             \
            if (what == MEDIAN) {                                                                                                          \
                chosen = nans ? n - nans : (n - 1) / 2;                                                                                    \
            }                                                                                                                              \
            else {                                                                                                                         \
                chosen = n > nans ? (n - nans - 1) / 2 : 0;                                                                                \
            }                                                                                                                              \
            name##_select(v, p, n, chosen);                                                                                                \
        }                                                                                                                                  \
        *(T *)value = v[chosen];                                                                                                           \
        return p[chosen];                                                                                                                  \
    }                                                                                                                                      \
    /* Puts the elements in order unless `sorted`; of each run of equal ones the first goes to `values`, with its length. `inverse` gets the \
     * number of each element's run. Gives the number of runs. */                                                                          \
    static npy_intp name##_runs(const void *x, npy_intp n, int consecutive, void *scratch, npy_intp *p, void *values, npy_int64 *inverse,  \
                                npy_int64 *counts)                                                                                         \
    {                                                                                                                                      \
        T *v = scratch, *made = values;                                                                                                    \
        npy_intp found = 0;                                                                                                                \
        memcpy(v, x, (size_t)n * sizeof(T));                                                                                               \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            p[i] = i;                                                                                                                      \
        }                                                                                                                                  \
        if (!consecutive) {                                                                                                                \
            name##_insert(v, p, n, 0);                                                                                                     \
        }                                                                                                                                  \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            if (!i || v[i] != v[i - 1]) {                                                                                                  \
                made[found] = v[i];                                                                                                        \
                counts[found++] = 0;                                                                                                       \
            }                                                                                                                              \
            counts[found - 1]++;                                                                                                           \
            inverse[p[i]] = found - 1;                                                                                                     \
        }                                                                                                                                  \
        return found;                                                                                                                      \
    }

#define NAN_FLOAT(a) ((a) != (a))
#define NAN_INT(a) 0

CHOOSE(float32, float, LESS_FLOAT)
RANK(float32, float, LESS_FLOAT, NAN_FLOAT)
CHOOSE(float64, double, LESS_FLOAT)
RANK(float64, double, LESS_FLOAT, NAN_FLOAT)
CHOOSE(int64, npy_int64, LESS_INT)
RANK(int64, npy_int64, LESS_INT, NAN_INT)
CHOOSE(int32, npy_int32, LESS_INT)
RANK(int32, npy_int32, LESS_INT, NAN_INT)
CHOOSE(int16, npy_int16, LESS_INT)
RANK(int16, npy_int16, LESS_INT, NAN_INT)
CHOOSE(int8, npy_int8, LESS_INT)
RANK(int8, npy_int8, LESS_INT, NAN_INT)
CHOOSE(uint8, npy_uint8, LESS_INT)
RANK(uint8, npy_uint8, LESS_INT, NAN_INT)

typedef npy_intp (*Pick)(const char *, npy_intp, npy_intp, int, npy_intp, void *, npy_intp *, void *);
typedef npy_intp (*Runs)(const void *, npy_intp, int, void *, npy_intp *, void *, npy_int64 *, npy_int64 *);

/* By kind; bools are bytes of 0 and 1. */
#define BY_KIND(what)                                                                                                                      \
    {                                                                                                                                      \
        [KIND_FLOAT] = float32_##what, [KIND_DOUBLE] = float64_##what, [KIND_INT64] = int64_##what, [KIND_INT32] = int32_##what,           \
        [KIND_INT16] = int16_##what, [KIND_INT8] = int8_##what, [KIND_UINT8] = uint8_##what, [KIND_BOOL] = uint8_##what,                   \
    }

static const Pick picks[KINDS] = BY_KIND(pick);
static const Runs runs[KINDS] = BY_KIND(runs);

/* Room for n elements of at most eight bytes and their places; NULL with an exception. */
static double *scratch_of(npy_intp n)
{
    double *made = n > NPY_MAX_INTP / 32 ? NULL : PyMem_RawMalloc((size_t)n * (sizeof(double) + sizeof(npy_intp)));
    if (made == NULL) {
        PyErr_NoMemory();
    }
    return made;
}

static void pick_rows(const Reduction *plan, int kind, int what, npy_intp k, const char *x, char *values, npy_int64 *places, double *scratch)
{
    const Axis along = plan->reduced_count ? plan->reduced[0] : (Axis){1, 0};
    const npy_intp item = kind_size(kind);
    npy_intp at[MAX_DIMS];
    clear_places(at, plan->kept_count);
    for (npy_intp done = 0; done < plan->count; done++) {
        npy_intp place = picks[kind](x, along.size, along.stride, what, k, scratch, (npy_intp *)(scratch + along.size), values + done * item);
        if (places != NULL) {
            places[done] = place;
        }
        if (done + 1 < plan->count) {
            x = next_place(plan->kept, plan->kept_count, at, x);
        }
    }
}

/* (values, places) along the dimensions of the bits `mask`, or values alone. */
static PyObject *picked(PyArrayObject *x, int kind, int mask, int keepdim, int what, npy_intp k, int pair)
{
    Reduction plan;
    plan_reduction(x, mask, keepdim, 1, &plan);
    if (!plan.n || plan.reduced_count > 1 || k >= plan.n) {
        return NULL;
    }
    double *scratch = scratch_of(plan.n);
    PyObject *values = scratch == NULL ? NULL : new_array(plan.ndim, plan.dims, PyArray_DESCR(x));
    PyObject *places = values != NULL && pair ? new_numbers(plan.ndim, plan.dims, NPY_INT64) : NULL;
    if (values != NULL && (places != NULL || !pair)) {
        char *found = PyArray_BYTES((PyArrayObject *)values);
        npy_int64 *place = pair ? PyArray_DATA((PyArrayObject *)places) : NULL;
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL / 8 ? PyEval_SaveThread() : NULL;
        pick_rows(&plan, kind, what, k, PyArray_BYTES(x), found, place, scratch);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    PyMem_RawFree(scratch);
    return pair ? pair_of(values, places) : values;
}

/* Over one dimension. */
static PyObject *picked_dim(PyObject *self, PyObject *dim, PyObject *keep, int what, npy_intp k)
{
    int kind = kind_of(self), keepdim = as_flag(keep);
    if (kind < 0 || keepdim < 0 || PyArray_NDIM((PyArrayObject *)self) == 0 || !PyLong_CheckExact(dim)) {
        return NULL;
    }
    int mask = dims_of(dim, PyArray_NDIM((PyArrayObject *)self));
    return mask < 0 ? NULL : picked((PyArrayObject *)self, kind, mask, keepdim, what, k, 1);
}

/* Over all elements. */
static PyObject *picked_all(PyObject *self, int what)
{
    int kind = kind_of(self);
    if (kind < 0) {
        return NULL;
    }
    PyArrayObject *x = contiguous_of((PyArrayObject *)self);
    PyObject *made = x == NULL ? NULL : picked(x, kind, (1 << PyArray_NDIM(x)) - 1, 0, what, 0, 0);
    Py_XDECREF(x);
    return made;
}

/* self, k, dim, keepdim */
static PyObject *kthvalue_kernel(PyObject *const *args)
{
    Py_ssize_t k;
    return as_index(args[1], &k) && k > 0 ? picked_dim(args[0], args[2], args[3], KTH, k - 1) : NULL;
}

static PyObject *median_kernel(PyObject *const *args)
{
    return picked_all(args[0], MEDIAN);
}

static PyObject *nanmedian_kernel(PyObject *const *args)
{
    return picked_all(args[0], NAN_MEDIAN);
}

/* self, dim, keepdim */
static PyObject *median_dim_kernel(PyObject *const *args)
{
    return picked_dim(args[0], args[1], args[2], MEDIAN, 0);
}

static PyObject *nanmedian_dim_kernel(PyObject *const *args)
{
    return picked_dim(args[0], args[1], args[2], NAN_MEDIAN, 0);
}

static PyObject *mode_kernel(PyObject *const *args)
{
    return picked_dim(args[0], args[1], args[2], MODE, 0);
}

/* The first `count` elements of memory that was filled, as an array of its own. */
static PyObject *array_of_first(const void *from, npy_intp count, PyArray_Descr *descr)
{
    PyObject *made = new_array(1, &count, descr);
    if (made != NULL) {
        memcpy(PyArray_DATA((PyArrayObject *)made), from, (size_t)count * (size_t)PyDataType_ELSIZE(descr));
    }
    return made;
}

/* (values, inverse or nothing, counts or nothing) of few elements. */
static PyObject *distinct(PyObject *self, PyObject *wants_inverse, PyObject *wants_counts, int consecutive)
{
    int kind = kind_of(self), inverse = as_flag(wants_inverse), counts = as_flag(wants_counts);
    if (kind < 0 || inverse < 0 || counts < 0 || PyArray_SIZE((PyArrayObject *)self) > SHORT) {
        return NULL;
    }
    PyArrayObject *x = contiguous_of((PyArrayObject *)self);
    PyObject *places = x == NULL ? NULL : new_numbers(inverse ? PyArray_NDIM(x) : 1, inverse ? PyArray_DIMS(x) : (npy_intp[]){0}, NPY_INT64);
    PyObject *made = places == NULL ? NULL : PyTuple_New(3);
    if (made != NULL) {
        double scratch[SHORT], values[SHORT];
        npy_intp order[SHORT];
        npy_int64 belongs[SHORT], lengths[SHORT];
        npy_intp n = PyArray_SIZE(x), found = runs[kind](PyArray_DATA(x), n, consecutive, scratch, order, values, belongs, lengths);
        if (inverse) {
            memcpy(PyArray_DATA((PyArrayObject *)places), belongs, (size_t)n * sizeof(npy_int64));
        }
        PyArray_Descr *whole = PyArray_DescrFromType(NPY_INT64);
        PyTuple_SET_ITEM(made, 0, array_of_first(values, found, PyArray_DESCR(x)));
        PyTuple_SET_ITEM(made, 1, Py_NewRef(places));
        PyTuple_SET_ITEM(made, 2, array_of_first(lengths, counts ? found : 0, whole));
        Py_DECREF(whole);
        if (PyTuple_GET_ITEM(made, 0) == NULL || PyTuple_GET_ITEM(made, 2) == NULL) {
            Py_CLEAR(made);
        }
    }
    Py_XDECREF(x);
    Py_XDECREF(places);
    return made;
}

/* self, sorted, return_inverse, return_counts */
static PyObject *unique2_kernel(PyObject *const *args)
{
    return distinct(args[0], args[2], args[3], 0);
}

/* self, return_inverse, return_counts, dim */
static PyObject *unique_consecutive_kernel(PyObject *const *args)
{
    return args[3] == Py_None ? distinct(args[0], args[1], args[2], 1) : NULL;
}

const KernelEntry rank_kernels[] = {
    {"sorting.kthvalue", kthvalue_kernel},
    {"sorting.median", median_kernel},
    {"sorting.nanmedian", nanmedian_kernel},
    {"sorting.median_dim", median_dim_kernel},
    {"sorting.nanmedian_dim", nanmedian_dim_kernel},
    {"sorting.mode", mode_kernel},
    {"sorting.unique2", unique2_kernel},
    {"sorting.unique_consecutive", unique_consecutive_kernel},
    {NULL, NULL},
};
