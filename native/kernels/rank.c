/* Kernels that choose by rank: the k-th smallest, medians, and the most frequent. NaN comes after all else. Of equal elements the first is the
 * median; see Note [Equal elements] in choose.h for the others.
 */
#include "kinds.h"
#include "choose.h"


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

/* By kind; bools are bytes of 0 and 1. */
#define BY_KIND(what)                                                                                                                      \
    {                                                                                                                                      \
        [KIND_FLOAT] = float32_##what, [KIND_DOUBLE] = float64_##what, [KIND_INT64] = int64_##what, [KIND_INT32] = int32_##what,           \
        [KIND_INT16] = int16_##what, [KIND_INT8] = int8_##what, [KIND_UINT8] = uint8_##what, [KIND_BOOL] = uint8_##what,                   \
    }

static const Pick picks[KINDS] = BY_KIND(pick);

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

const KernelEntry rank_kernels[] = {
    {"sorting.kthvalue", kthvalue_kernel},
    {"sorting.median", median_kernel},
    {"sorting.nanmedian", nanmedian_kernel},
    {"sorting.median_dim", median_dim_kernel},
    {"sorting.nanmedian_dim", nanmedian_dim_kernel},
    {"sorting.mode", mode_kernel},
    {NULL, NULL},
};
