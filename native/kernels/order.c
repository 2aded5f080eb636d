/* Kernels that order rows: sort and argsort, stable, NaN after all else in ascending order.
 *
 * Elements become unsigned keys of the same order (NaN the largest, the two zeros one), which are complemented for descending orders.
 */
#include "order.h"

#define FEW_PAIRS 64 /* that are put in order one by one */
#define KEY_BLOCK 32 /* keys that are looked at together */

#define NAME(what) narrow_##what
#define KEY npy_uint32
#define KEY_BITS 32
#define PAIR npy_uint64
#define PLACE_BITS 32
#include "order_loops.h"

#define NAME(what) wide_##what
#define KEY npy_uint64
#define KEY_BITS 64
#define PAIR unsigned __int128
#define PLACE_BITS 64
#include "order_loops.h"

int order_kind(PyObject *object)
{
    int kind = kind_of(object);
    if (kind < 0 && is_array(object) && PyArray_ISALIGNED((PyArrayObject *)object) && PyArray_NDIM((PyArrayObject *)object) <= MAX_DIMS) {
        PyArray_Descr *descr = PyArray_DESCR((PyArrayObject *)object);
        kind = descr == S.descr_bfloat16 ? ORDER_BFLOAT16 : descr->type_num == NPY_HALF && PyArray_ISNOTSWAPPED((PyArrayObject *)object) ? ORDER_HALF : -1;
    }
    return kind;
}

static inline int is_wide(int kind)
{
    return kind == KIND_INT64 || kind == KIND_DOUBLE;
}

size_t order_space(int kind, npy_intp n)
{
    return (size_t)n * (is_wide(kind) ? sizeof(npy_uint64) + 2 * sizeof(unsigned __int128) : sizeof(npy_uint32) + 2 * sizeof(npy_uint64)) + 16;
}

/* Numbers of a sign and a magnitude as numbers that ascend. `nan` is the first magnitude that is no number. */
#define FLOAT_KEYS(BITS, U, nan)                                                                                                           \
    for (npy_intp i = 0; i < n; i++) {                                                                                                     \
        const U sign = (U)((U)1 << (BITS - 1)), bits = ((const U *)x)[i], magnitude = (U)(bits & (U)(sign - 1));                            \
        const U key = (U)(bits & sign ? (U)(sign - magnitude) : (U)(sign + magnitude));                                                     \
        keys[i] = magnitude >= (nan) ? (U)-1 : key;                                                                                        \
    }

#define INTEGER_KEYS(T, offset)                                                                                                            \
    for (npy_intp i = 0; i < n; i++) {                                                                                                     \
        keys[i] = (npy_uint32)((npy_int32)((const T *)x)[i] + (offset));                                                                   \
    }

static inline void float_keys(const void *x, npy_intp n, npy_uint32 *keys)
{
    FLOAT_KEYS(32, npy_uint32, 0x7f800001u)
}

#if HAS_WIDE
WIDE static void wide_float_keys(const void *x, npy_intp n, npy_uint32 *keys)
{
    float_keys(x, n, keys);
}
#endif

static void narrow_keys(int kind, const void *x, npy_intp n, npy_uint32 *keys)
{
    switch (kind) {
    case KIND_FLOAT:
#if HAS_WIDE
        (S.vectors > 0 ? wide_float_keys : float_keys)(x, n, keys);
#else
        float_keys(x, n, keys);
#endif
        break;
    case ORDER_HALF:
        FLOAT_KEYS(16, npy_uint16, 0x7c01u)
        break;
    case ORDER_BFLOAT16:
        FLOAT_KEYS(16, npy_uint16, 0x7f81u)
        break;
    case KIND_INT32:
        for (npy_intp i = 0; i < n; i++) {
            keys[i] = ((const npy_uint32 *)x)[i] ^ 0x80000000u;
        }
        break;
    case KIND_INT16:
        INTEGER_KEYS(npy_int16, 32768)
        break;
    case KIND_INT8:
        INTEGER_KEYS(npy_int8, 128)
        break;
    default:
        INTEGER_KEYS(npy_uint8, 0)
    }
}

static void wide_keys(int kind, const void *x, npy_intp n, npy_uint64 *keys)
{
    if (kind == KIND_DOUBLE) {
        FLOAT_KEYS(64, npy_uint64, 0x7ff0000000000001u)
        return;
    }
    for (npy_intp i = 0; i < n; i++) {
        keys[i] = ((const npy_uint64 *)x)[i] ^ 0x8000000000000000u;
    }
}

void order_row(int kind, const void *x, npy_intp n, npy_intp k, int descending, void *space, npy_int64 *places)
{
    char *start = (char *)(((npy_uintp)space + 15) & ~(npy_uintp)15); /* where pairs of 128 bits may stand */
    if (is_wide(kind)) {
        void *pairs = start;
        npy_uint64 *keys = (npy_uint64 *)(start + (size_t)n * 2 * sizeof(unsigned __int128)), least = (npy_uint64)-1, most = 0;
        wide_keys(kind, x, n, keys);
        for (npy_intp i = 0; i < n; i++) {
            least = keys[i] < least ? keys[i] : least;
            most = keys[i] > most ? keys[i] : most;
        }
        if (most - least > 0xffffffffu) {
            for (npy_intp i = 0; descending && i < n; i++) {
                keys[i] = ~keys[i];
            }
            wide_places(keys, n, k, pairs, places);
            return;
        }
        /* As most integers are: their distance from the least one is a shorter key, in the same memory. */
        npy_uint32 *narrow = (npy_uint32 *)(start + (size_t)n * 2 * sizeof(npy_uint64));
        for (npy_intp i = 0; i < n; i++) {
            narrow[i] = (npy_uint32)(descending ? most - keys[i] : keys[i] - least);
        }
        narrow_places(narrow, n, k, pairs, places);
        return;
    }
    npy_uint32 *keys = (npy_uint32 *)(start + (size_t)n * 2 * sizeof(npy_uint64));
    narrow_keys(kind, x, n, keys);
    for (npy_intp i = 0; descending && i < n; i++) {
        keys[i] = ~keys[i];
    }
    narrow_places(keys, n, k, start, places);
}

void order_take(npy_intp item, const void *x, const npy_int64 *places, npy_intp k, void *to)
{
    switch (item) {
    case 1:
        for (npy_intp i = 0; i < k; i++) {
            ((npy_uint8 *)to)[i] = ((const npy_uint8 *)x)[places[i]];
        }
        break;
    case 2:
        for (npy_intp i = 0; i < k; i++) {
            ((npy_uint16 *)to)[i] = ((const npy_uint16 *)x)[places[i]];
        }
        break;
    case 4:
        for (npy_intp i = 0; i < k; i++) {
            ((npy_uint32 *)to)[i] = ((const npy_uint32 *)x)[places[i]];
        }
        break;
    default:
        for (npy_intp i = 0; i < k; i++) {
            ((npy_uint64 *)to)[i] = ((const npy_uint64 *)x)[places[i]];
        }
    }
}

#define ON_STACK 4096 /* bytes */

typedef struct {
    int kind, descending;
    npy_intp n, item;
    const char *x;
    char *values; /* or NULL */
    npy_int64 *places;
    int failed; /* memory was missing; atomic */
} Ordering;

static void order_part(void *work, npy_intp begin, npy_intp end)
{
    Ordering *all = work;
    const npy_intp n = all->n, row = n * all->item;
    long double small[ON_STACK / sizeof(long double)];
    const size_t bytes = order_space(all->kind, n);
    void *space = bytes <= ON_STACK ? (void *)small : PyMem_RawMalloc(bytes);
    if (space == NULL) {
        __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (npy_intp r = begin; r < end; r++) {
        order_row(all->kind, all->x + r * row, n, n, all->descending, space, all->places + r * n);
        if (all->values != NULL) {
            order_take(all->item, all->x + r * row, all->places + r * n, n, all->values + r * row);
        }
    }
    if (space != (void *)small) {
        PyMem_RawFree(space);
    }
}

/* Orders every row of a contiguous array; `values` may be NULL. 0 when there is no memory. */
static int order_rows(int kind, PyArrayObject *x, npy_intp n, int descending, PyObject *values, npy_int64 *places)
{
    const npy_intp rows = PyArray_SIZE(x) / n;
    Ordering all = {kind, descending, n, PyArray_ITEMSIZE(x), PyArray_BYTES(x), values == NULL ? NULL : PyArray_BYTES((PyArrayObject *)values), places, 0};
    PyThreadState *thread = rows * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    in_parts(order_part, &all, rows, grain_of(8 * n));
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return !all.failed;
}

/* An array with a dimension and the last one exchanged; takes over the reference. */
static PyObject *exchanged(PyObject *array, int dim)
{
    if (array == NULL || dim == PyArray_NDIM((PyArrayObject *)array) - 1) {
        return array;
    }
    PyObject *view = PyArray_SwapAxes((PyArrayObject *)array, dim, PyArray_NDIM((PyArrayObject *)array) - 1);
    Py_DECREF(array);
    return view;
}

/* (values, places) or places of all elements in order along a dimension. */
static PyObject *ordered(PyObject *self, PyObject *dim, PyObject *direction, int places_alone)
{
    int kind = order_kind(self), descending = as_flag(direction);
    if (kind < 0 || descending < 0) {
        return NULL;
    }
    int ndim = PyArray_NDIM((PyArrayObject *)self), along = as_dim(dim, ndim);
    if (ndim == 0 || along < 0) {
        return NULL;
    }
    npy_intp n = PyArray_DIM((PyArrayObject *)self, along);
    if (n >= NPY_MAX_INT32 || PyArray_SIZE((PyArrayObject *)self) == 0) {
        return NULL;
    }
    PyObject *rows = exchanged(Py_NewRef(self), along);
    PyArrayObject *x = rows == NULL ? NULL : contiguous_of((PyArrayObject *)rows);
    Py_XDECREF(rows);
    if (x == NULL) {
        return NULL;
    }
    PyObject *places = new_numbers(ndim, PyArray_DIMS(x), NPY_INT64);
    PyObject *values = places_alone ? NULL : new_array(ndim, PyArray_DIMS(x), PyArray_DESCR(x));
    if (places != NULL && (places_alone || values != NULL) &&
        !order_rows(kind, x, n, descending, values, PyArray_DATA((PyArrayObject *)places))) {
        Py_CLEAR(places);
        PyErr_NoMemory();
    }
    Py_DECREF(x);
    places = exchanged(places, along);
    return places_alone ? places : pair_of(exchanged(values, along), places);
}

/* sort(self, dim, descending) */
static PyObject *sort_kernel(PyObject *const *args)
{
    return ordered(args[0], args[1], args[2], 0);
}

/* sort_stable(self, stable, dim, descending) */
static PyObject *sort_stable_kernel(PyObject *const *args)
{
    return ordered(args[0], args[2], args[3], 0);
}

static PyObject *argsort_kernel(PyObject *const *args)
{
    return ordered(args[0], args[1], args[2], 1);
}

static PyObject *argsort_stable_kernel(PyObject *const *args)
{
    return ordered(args[0], args[2], args[3], 1);
}

const KernelEntry order_kernels[] = {
    {"sorting.sort", sort_kernel},
    {"sorting.sort_stable", sort_stable_kernel},
    {"sorting.argsort", argsort_kernel},
    {"sorting.argsort_stable", argsort_stable_kernel},
    {NULL, NULL},
};
