/* Kernels that find the values that differ, with their numbers and where they are. A NaN differs from every other. */
#include "../runtime/extents.h"
#include "order.h"

/* Keeps of n values the first of each run of equal ones, with the run's length; `inverse` gets the number of each element's run. `places` are those
 * of the elements, or NULL where each stands at its own. Gives the number of runs. */
#define RUNS(name, T, DIFFER)                                                                                                              \
    static npy_intp name(void *values, npy_intp n, const npy_int64 *places, npy_int64 *inverse, npy_int64 *lengths)                        \
    {                                                                                                                                      \
        T *v = values;                                                                                                                     \
        npy_intp found = 0;                                                                                                                \
        T before = 0;                                                                                                                      \
        for (npy_intp i = 0; i < n; i++) { /* what is written stays if the element differs, else the next one takes its place */           \
            const T value = v[i];                                                                                                          \
            v[found] = value;                                                                                                              \
            lengths[found] = i;                                                                                                            \
            found += (i == 0) | DIFFER(value, before);                                                                                     \
            before = value;                                                                                                                \
            if (inverse != NULL) {                                                                                                         \
                inverse[places == NULL ? i : places[i]] = found - 1;                                                                       \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (npy_intp k = 0; k < found; k++) { /* from where runs begin */                                                                 \
            lengths[k] = (k + 1 < found ? lengths[k + 1] : n) - lengths[k];                                                                \
        }                                                                                                                                  \
        return found;                                                                                                                      \
    }

#define UNEQUAL(a, b) ((a) != (b))
/* Bits of half types: the two zeros are equal, a NaN to nothing. */
#define UNEQUAL_HALF(a, b) (((a) != (b) && (((a) | (b)) & 0x7fff)) || ((a)&0x7fff) > 0x7c00)
#define UNEQUAL_BFLOAT16(a, b) (((a) != (b) && (((a) | (b)) & 0x7fff)) || ((a)&0x7fff) > 0x7f80)

RUNS(runs_of_float, float, UNEQUAL)
RUNS(runs_of_double, double, UNEQUAL)
RUNS(runs_of_int64, npy_int64, UNEQUAL)
RUNS(runs_of_int32, npy_int32, UNEQUAL)
RUNS(runs_of_int16, npy_int16, UNEQUAL)
RUNS(runs_of_int8, npy_int8, UNEQUAL)
RUNS(runs_of_half, npy_uint16, UNEQUAL_HALF)
RUNS(runs_of_bfloat16, npy_uint16, UNEQUAL_BFLOAT16)

typedef npy_intp (*Runs)(void *, npy_intp, const npy_int64 *, npy_int64 *, npy_int64 *);

static const Runs runs[] = {
    [KIND_FLOAT] = runs_of_float, [KIND_DOUBLE] = runs_of_double, [KIND_INT64] = runs_of_int64, [KIND_INT32] = runs_of_int32,
    [KIND_INT16] = runs_of_int16, [KIND_INT8] = runs_of_int8,     [KIND_UINT8] = runs_of_int8,  [KIND_BOOL] = runs_of_int8,
    [ORDER_HALF] = runs_of_half,  [ORDER_BFLOAT16] = runs_of_bfloat16,
};

/* The first `count` elements of memory that was filled, as an array of its own. */
static PyObject *array_of_first(const void *from, npy_intp count, PyArray_Descr *descr)
{
    PyObject *made = new_array(1, &count, descr);
    if (made != NULL) {
        memcpy(PyArray_DATA((PyArrayObject *)made), from, (size_t)count * (size_t)PyDataType_ELSIZE(descr));
    }
    return made;
}

/* (values, inverse or nothing, counts or nothing) */
static PyObject *distinct(PyObject *self, PyObject *wants_inverse, PyObject *wants_counts, int consecutive)
{
    int kind = order_kind(self), inverse = as_flag(wants_inverse), counts = as_flag(wants_counts);
    if (kind < 0 || inverse < 0 || counts < 0 || PyArray_SIZE((PyArrayObject *)self) >= NPY_MAX_INT32) {
        return NULL;
    }
    PyArrayObject *x = contiguous_of((PyArrayObject *)self);
    if (x == NULL) {
        return NULL;
    }
    const npy_intp n = PyArray_SIZE(x), item = PyArray_ITEMSIZE(x);
    /* Places and lengths, values, then what the order takes. */
    const size_t each = sizeof(npy_int64) * (size_t)n, space = consecutive ? 0 : order_space(kind, n);
    char *memory = scratch_take(3 * each + space + 1);
    PyObject *belongs = new_numbers(inverse ? PyArray_NDIM(x) : 1, inverse ? PyArray_DIMS(x) : (npy_intp[]){0}, NPY_INT64), *made = NULL;
    if (memory == NULL) {
        PyErr_NoMemory();
    }
    else if (belongs != NULL) {
        npy_int64 *places = (npy_int64 *)memory, *lengths = places + n, *number = inverse ? PyArray_DATA((PyArrayObject *)belongs) : NULL;
        void *values = lengths + n;
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        if (consecutive) {
            memcpy(values, PyArray_DATA(x), (size_t)(n * item));
        }
        else {
            order_row(kind, PyArray_DATA(x), n, n, 0, memory + 3 * each, places);
            order_take(item, PyArray_DATA(x), places, n, values);
        }
        const npy_intp found = runs[kind](values, n, consecutive ? NULL : places, number, lengths);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        PyArray_Descr *whole = PyArray_DescrFromType(NPY_INT64);
        PyObject *first = array_of_first(values, found, PyArray_DESCR(x)), *count = array_of_first(lengths, counts ? found : 0, whole);
        Py_DECREF(whole);
        made = first == NULL || count == NULL ? NULL : PyTuple_Pack(3, first, belongs, count);
        Py_XDECREF(first);
        Py_XDECREF(count);
    }
    if (memory != NULL) {
        scratch_give(memory);
    }
    Py_XDECREF(belongs);
    Py_DECREF(x);
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

const KernelEntry unique_kernels[] = {
    {"sorting.unique2", unique2_kernel},
    {"sorting.unique_consecutive", unique_consecutive_kernel},
    {NULL, NULL},
};
