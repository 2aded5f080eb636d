/* The first of rows in order. Where equal elements leave a choice, it is PyTorch's; see Note [Equal elements] in choose.h. */
#include "order.h"
#include "choose.h"

#define SHORT 64 /* elements of a row whose order is found as if some were equal */

/* Orders a row of n elements so far that the k first are those of topk; their places go to `p`. And whether of n elements none is equal to the next. */
#define ORDER(name, T, LESS)                                                                                                               \
    CHOOSE(name, T, LESS)                                                                                                                  \
    static void name##_order(void *v, npy_intp *p, npy_intp n, npy_intp k, int down, int in_order)                                         \
    {                                                                                                                                      \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            p[i] = i;                                                                                                                      \
        }                                                                                                                                  \
        name##_first(v, p, k, n, down, in_order);                                                                                          \
    }                                                                                                                                      \
    static int name##_differ(const void *elements, npy_intp n)                                                                             \
    {                                                                                                                                      \
        const T *v = elements;                                                                                                             \
        int all = 1;                                                                                                                       \
        for (npy_intp i = 1; i < n; i++) {                                                                                                 \
            all &= LESS(v[i - 1], v[i]) || LESS(v[i], v[i - 1]);                                                                           \
        }                                                                                                                                  \
        return all;                                                                                                                        \
    }

#define FEW 64   /* elements that are kept in order while the others pass by */
#define PASSED 32 /* elements that are compared with the last of those at once */

/* The `count` first elements of a row and their places, by one walk along it: most elements come after the last of them. 0 where there is NaN. */
#define SCAN(name, T)                                                                                                                      \
    static inline __attribute__((always_inline)) int name##_walk(const T *v, npy_intp n, npy_intp count, int down, T *first,               \
                                                                 npy_int64 *places)                                                        \
    {                                                                                                                                      \
        npy_intp kept = 0;                                                                                                                 \
        for (npy_intp start = 0; start < n; start += PASSED) {                                                                             \
            const npy_intp stop = n - start < PASSED ? n : start + PASSED;                                                                 \
            if (kept == count && stop - start == PASSED) {                                                                                 \
                const T last = first[count - 1];                                                                                           \
                int comes = 0;                                                                                                             \
                for (int i = 0; i < PASSED; i++) {                                                                                         \
                    comes |= down ? !(v[start + i] <= last) : !(v[start + i] >= last);                                                     \
                }                                                                                                                          \
                if (!comes) {                                                                                                              \
                    continue;                                                                                                              \
                }                                                                                                                          \
            }                                                                                                                              \
            for (npy_intp i = start; i < stop; i++) {                                                                                      \
                const T value = v[i];                                                                                                      \
                if (value != value) {                                                                                                      \
                    return 0;                                                                                                              \
                }                                                                                                                          \
                if (kept == count && !(down ? value > first[count - 1] : value < first[count - 1])) {                                      \
                    continue;                                                                                                              \
                }                                                                                                                          \
                npy_intp at = kept < count ? kept++ : count - 1;                                                                           \
                for (; at > 0 && (down ? value > first[at - 1] : value < first[at - 1]); at--) {                                           \
                    first[at] = first[at - 1];                                                                                             \
                    places[at] = places[at - 1];                                                                                           \
                }                                                                                                                          \
                first[at] = value;                                                                                                         \
                places[at] = i;                                                                                                            \
            }                                                                                                                              \
        }                                                                                                                                  \
        return 1;                                                                                                                          \
    }                                                                                                                                      \
    static int name##_scan(const void *row, npy_intp n, npy_intp count, int down, void *first, npy_int64 *places)                          \
    {                                                                                                                                      \
        return down ? name##_walk(row, n, count, 1, first, places) : name##_walk(row, n, count, 0, first, places);                         \
    }

SCAN(float32, float)
SCAN(float64, double)
SCAN(int64, npy_int64)
SCAN(int32, npy_int32)

ORDER(float32, float, LESS_FLOAT)
ORDER(float64, double, LESS_FLOAT)
ORDER(int64, npy_int64, LESS_INT)
ORDER(int32, npy_int32, LESS_INT)

static const struct {
    void (*order)(void *, npy_intp *, npy_intp, npy_intp, int, int);
    int (*differ)(const void *, npy_intp);
    int (*scan)(const void *, npy_intp, npy_intp, int, void *, npy_int64 *);
} rows_of[KINDS] = {
    [KIND_FLOAT] = {float32_order, float32_differ, float32_scan},
    [KIND_DOUBLE] = {float64_order, float64_differ, float64_scan},
    [KIND_INT64] = {int64_order, int64_differ, int64_scan},
    [KIND_INT32] = {int32_order, int32_differ, int32_scan},
};

/* What a row needs: a copy of it with places, or an order and what comes first in it. */
static size_t space_of(int kind, npy_intp n)
{
    const size_t ordered = order_space(kind, n) + (size_t)n * (sizeof(npy_int64) + sizeof(double));
    return n <= SHORT ? (size_t)n * (sizeof(double) + sizeof(npy_intp)) : ordered;
}

/* The k first of a row and their places, where no two of them and none behind them are equal; 0 otherwise. */
static int clear_first(int kind, const void *row, npy_intp n, npy_intp k, int down, char *space, npy_intp item, void *values, npy_int64 *places)
{
    const npy_intp more = k < n ? k + 1 : n;
    npy_int64 *order = (npy_int64 *)space;
    char *first = space + (size_t)n * sizeof(npy_int64);
    if (more > FEW || !rows_of[kind].scan(row, n, more, down, first, order)) {
        order_row(kind, row, n, more, down, first + (size_t)n * sizeof(double), order);
        order_take(item, row, order, more, first);
    }
    if (!rows_of[kind].differ(first, more)) {
        return 0;
    }
    memcpy(values, first, (size_t)(k * item));
    memcpy(places, order, (size_t)k * sizeof(npy_int64));
    return 1;
}

/* topk(self, k, dim, largest, sorted) along the last dimension of a contiguous array; NULL without an exception declines. */
static PyObject *topk_kernel(PyObject *const *args)
{
    Py_ssize_t k;
    PyArrayObject *x = (PyArrayObject *)args[0];
    const int kind = kind_of(args[0]), down = as_flag(args[3]), in_order = as_flag(args[4]);
    if (kind < 0 || rows_of[kind].order == NULL || !is_contiguous(x) || down < 0 || in_order < 0 || !as_index(args[1], &k)) {
        return NULL;
    }
    const int ndim = PyArray_NDIM(x);
    npy_intp n = ndim ? PyArray_DIM(x, ndim - 1) : 0, dims[MAX_DIMS];
    if (k < 1 || k > n || n >= NPY_MAX_INT32 || as_dim(args[2], ndim) != ndim - 1) {
        return NULL;
    }
    copy_dims(dims, PyArray_DIMS(x), ndim);
    dims[ndim - 1] = k;
    PyObject *values = new_array(ndim, dims, PyArray_DESCR(x)), *places = values == NULL ? NULL : new_numbers(ndim, dims, NPY_INT64);
    double few[2 * SHORT];
    char *space = n > SHORT ? PyMem_RawMalloc(space_of(kind, n)) : (char *)few;
    if (places != NULL && space != NULL) {
        const npy_intp rows = PyArray_SIZE(x) / n, item = PyArray_ITEMSIZE(x);
        npy_intp *moved = (npy_intp *)((double *)space + n);
        const char *from = PyArray_BYTES(x);
        char *to = PyArray_BYTES((PyArrayObject *)values);
        npy_int64 *place = PyArray_DATA((PyArrayObject *)places);
        PyThreadState *thread = rows * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        for (npy_intp row = 0; row < rows; row++, from += n * item, to += k * item, place += k) {
            if (in_order && n > SHORT && clear_first(kind, from, n, k, down, space, item, to, place)) {
                continue;
            }
            memcpy(space, from, (size_t)(n * item));
            rows_of[kind].order(space, moved, n, k, down, in_order);
            memcpy(to, space, (size_t)(k * item));
            memcpy(place, moved, (size_t)k * sizeof(npy_int64));
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    if (space != (char *)few) {
        PyMem_RawFree(space);
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(values);
    }
    return pair_of(values, places);
}

const KernelEntry topk_kernels[] = {
    {"sorting.topk", topk_kernel},
    {NULL, NULL},
};
