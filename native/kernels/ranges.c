/* New arrays of ranges of numbers: of the kernels of `_backends/cpu/ops/creation.py` those that have a start and an end.
 *
 * What might round otherwise than numpy, or does not fit, is left to numpy.
 */
#include "../runtime/plan.h"
#include "making.h"
#include <math.h>

/* Product and sum are two roundings here, as they are in numpy's ufuncs. */
#if defined(__GNUC__) && !defined(__clang__)
#define UNFUSED __attribute__((optimize("fp-contract=off")))
#else
#define UNFUSED
#endif

#define RUN(type, value)                                                                                                                   \
    for (npy_intp i = 0; i < n; i++) {                                                                                                     \
        out[i] = (type)(value);                                                                                                            \
    }

static PyObject *integers(npy_int64 start, npy_int64 step, npy_intp n, PyArray_Descr *descr)
{
    int type = descr->type_num;
    npy_int64 last;
    if (__builtin_mul_overflow(n, step, &last) || __builtin_add_overflow(last, start, &last)) {
        return NULL;
    }
    if (!(type == NPY_LONG && sizeof(npy_long) == 8) && !(type == NPY_INT && start == (npy_int32)start && last == (npy_int32)last)) {
        return NULL;
    }
    PyObject *made = new_array(1, &n, descr);
    if (made != NULL && type == NPY_LONG) {
        npy_long *out = PyArray_DATA((PyArrayObject *)made);
        npy_long next = start;
        for (npy_intp i = 0; i < n; i++, next += step) { /* sums, for which there are vectors of 64 bits */
            out[i] = next;
        }
    }
    else if (made != NULL) {
        npy_int32 *out = PyArray_DATA((PyArrayObject *)made);
        npy_int32 from = (npy_int32)start, by = (npy_int32)step;
        RUN(npy_int32, from + (npy_int32)i * by)
    }
    return made;
}

UNFUSED static PyObject *floats(double start, double step, npy_intp n, PyArray_Descr *descr)
{
    PyObject *made = descr == S.descr32 || descr == S.descr64 ? new_array(1, &n, descr) : NULL;
    if (made == NULL) {
        return NULL;
    }
    if (descr == S.descr32) {
        float *out = PyArray_DATA((PyArrayObject *)made);
        if (n <= NPY_MAX_INT32) {
            RUN(float, (double)(npy_int32)i * step + start) /* such indices have vectors */
        }
        else {
            RUN(float, (double)i * step + start)
        }
    }
    else {
        double *out = PyArray_DATA((PyArrayObject *)made);
        if (n <= NPY_MAX_INT32) {
            RUN(double, (double)(npy_int32)i * step + start)
        }
        else {
            RUN(double, (double)i * step + start)
        }
    }
    return made;
}

/* The numbers of a range with exact results: ints of at most 53 bits, or finite floats. 1 for ints, 2 for floats, 0 to decline. */
static int range_number(PyObject *object, npy_int64 *whole, double *value)
{
    Py_ssize_t number;
    if (as_index(object, &number)) {
        *whole = number;
        *value = (double)number;
        return number >= -((npy_int64)1 << 52) && number <= (npy_int64)1 << 52;
    }
    if (!PyFloat_CheckExact(object) || !isfinite(PyFloat_AS_DOUBLE(object))) {
        return 0;
    }
    *value = PyFloat_AS_DOUBLE(object);
    return 2;
}

/* start, start + step, ... below end; `start` and `step` may be NULL for 0 and 1. */
static PyObject *arange(PyObject *start, PyObject *end, PyObject *step, PyObject *dtype)
{
    npy_int64 first = 0, last = 0, by = 1;
    double from = 0, to = 0, width = 1;
    int a = start == NULL ? 1 : range_number(start, &first, &from), b = range_number(end, &last, &to);
    int c = step == NULL ? 1 : range_number(step, &by, &width);
    if (!a || !b || !c) {
        return NULL;
    }
    int whole = a == 1 && b == 1 && c == 1;
    PyArray_Descr *descr = descr_of(dtype == Py_None && whole ? S.int64 : dtype);
    if (descr == NULL || width == 0 || (to - from) / width < 0) {
        return NULL;
    }
    npy_intp n;
    if (whole) {
        npy_int64 distance = last - first;
        n = distance / by + (distance % by != 0);
    }
    else {
        double steps = ceil((to - from) / width);
        if (!(steps < 1e12)) {
            return NULL;
        }
        n = (npy_intp)steps;
    }
    if (n > (npy_intp)1 << 40) {
        return NULL;
    }
    if (descr == S.descr32 || descr == S.descr64) {
        if (!whole) {
            return floats(from, width, n, descr);
        }
        /* Sums of ints, which are exact. */
        return fabs(width) * (double)n + fabs(from) <= 9007199254740992.0 ? floats(from, width, n, descr) : NULL;
    }
    if (whole && is_half_type(descr) && fabs(width) * (double)n + fabs(from) <= 16777216.0) {
        PyObject *wide = floats(from, width, n, S.descr32); /* exact there */
        PyObject *made = wide == NULL ? NULL : (PyObject *)converted((PyArrayObject *)wide, descr);
        Py_XDECREF(wide);
        return made;
    }
    return whole ? integers(first, by, n, descr) : NULL;
}

/* end, dtype, ... */
static PyObject *arange_kernel(PyObject *const *args)
{
    return arange(NULL, args[0], NULL, args[1]);
}

/* start, end, dtype, ... */
static PyObject *arange_start_kernel(PyObject *const *args)
{
    return arange(args[0], args[1], NULL, args[2]);
}

/* start, end, step, dtype, ... */
static PyObject *arange_step_kernel(PyObject *const *args)
{
    return arange(args[0], args[1], args[2], args[3]);
}

/* start, end, steps, dtype, ...: equal steps, from both ends to the middle. */
static PyObject *linspace_kernel(PyObject *const *args)
{
    npy_int64 unused;
    double start, end;
    Py_ssize_t n;
    PyArray_Descr *descr = descr_of(args[3]);
    if ((descr != S.descr32 && descr != S.descr64) || !range_number(args[0], &unused, &start) || !range_number(args[1], &unused, &end) ||
        !as_index(args[2], &n) || n < 0 || n > 1 << 28) {
        return NULL;
    }
    PyObject *made = new_array(1, &n, descr);
    if (made == NULL) {
        return NULL;
    }
    npy_intp half = n == 1 ? 1 : n / 2;
    if (descr == S.descr32) {
        float *out = PyArray_DATA((PyArrayObject *)made), first = (float)start, last = (float)end;
        float step = n > 1 ? (last - first) / (float)(n - 1) : 0;
        for (npy_intp i = 0; i < half; i++) {
            out[i] = (float)((double)i * step + first); /* the product is exact */
        }
        for (npy_intp i = half; i < n; i++) {
            out[i] = (float)((double)(i - (n - 1)) * step + last);
        }
    }
    else {
        double *out = PyArray_DATA((PyArrayObject *)made), step = n > 1 ? (end - start) / (double)(n - 1) : 0;
        for (npy_intp i = 0; i < half; i++) {
            out[i] = fma((double)i, step, start);
        }
        for (npy_intp i = half; i < n; i++) {
            out[i] = fma((double)(i - (n - 1)), step, end);
        }
    }
    return made;
}

const KernelEntry range_kernels[] = {
    {"creation.arange", arange_kernel},
    {"creation.arange_start", arange_start_kernel},
    {"creation.arange_step", arange_step_kernel},
    {"creation.linspace", linspace_kernel},
    {NULL, NULL},
};
