/* Kinds of elements, and the axes that a reduction goes over.
 *
 * `kinds` tables have one row for each kind and one column for each set of vector instructions (S.vectors).
 */
#ifndef MINDTORCH_KINDS_H
#define MINDTORCH_KINDS_H

#include "move.h"

enum { KIND_FLOAT, KIND_DOUBLE, KIND_INT64, KIND_INT32, KIND_INT16, KIND_INT8, KIND_UINT8, KIND_BOOL, KINDS };

/* The kind of an aligned array in native byte order; -1 for what there are no loops for. */
static inline int kind_of(PyObject *object)
{
    if (!is_array(object)) {
        return -1;
    }
    PyArrayObject *x = (PyArrayObject *)object;
    if (!PyArray_ISALIGNED(x) || !PyArray_ISNOTSWAPPED(x) || PyArray_NDIM(x) > MAX_DIMS) {
        return -1;
    }
    switch (PyArray_TYPE(x)) {
    case NPY_FLOAT32:
        return KIND_FLOAT;
    case NPY_FLOAT64:
        return KIND_DOUBLE;
    case NPY_INT64:
        return KIND_INT64;
    case NPY_INT32:
        return KIND_INT32;
    case NPY_INT16:
        return KIND_INT16;
    case NPY_INT8:
        return KIND_INT8;
    case NPY_UINT8:
        return KIND_UINT8;
    case NPY_BOOL:
        return KIND_BOOL;
    default:
        return -1;
    }
}

/* Like kind_of, where half types count as float32: `widen` makes that of their elements, and is NULL for all others. */
static inline int kind_widened(PyObject *object, Row *widen)
{
    *widen = NULL;
    if (is_array(object) && PyArray_ITEMSIZE((PyArrayObject *)object) == 2) {
        PyArrayObject *x = (PyArrayObject *)object;
        PyArray_Descr *descr = PyArray_DESCR(x);
        if ((descr->type_num == NPY_HALF && PyArray_ISNOTSWAPPED(x)) || descr == S.descr_bfloat16) {
            *widen = PyArray_ISALIGNED(x) && PyArray_NDIM(x) <= MAX_DIMS ? row_between(descr, S.descr32) : NULL;
            return *widen == NULL ? -1 : KIND_FLOAT;
        }
    }
    return kind_of(object);
}

static inline int is_float_kind(int kind)
{
    return kind == KIND_FLOAT || kind == KIND_DOUBLE;
}

static inline npy_intp kind_size(int kind)
{
    static const unsigned char sizes[KINDS] = {4, 8, 8, 4, 2, 1, 1, 1};
    return sizes[kind];
}

static inline PyObject *new_numbers(int ndim, const npy_intp *dims, int type)
{
    PyArray_Descr *descr = PyArray_DescrFromType(type); /* one object for each type, which numpy keeps */
    PyObject *made = new_array(ndim, dims, descr);
    Py_DECREF(descr);
    return made;
}

/* What a kernel of two results returns; takes over the references, and NULL for either gives NULL. */
static inline PyObject *pair_of(PyObject *first, PyObject *second)
{
    PyObject *made = first == NULL || second == NULL ? NULL : PyTuple_New(2);
    if (made == NULL) {
        Py_XDECREF(first);
        Py_XDECREF(second);
        return NULL;
    }
    PyTuple_SET_ITEM(made, 0, first);
    PyTuple_SET_ITEM(made, 1, second);
    return made;
}

/* 0 or 1 for a bool; -1 for anything else. */
static inline int as_flag(PyObject *object)
{
    return object == Py_True ? 1 : object == Py_False ? 0 : -1;
}

typedef struct {
    npy_intp size, stride; /* the stride in bytes */
} Axis;

typedef struct {
    Axis kept[MAX_DIMS], reduced[MAX_DIMS]; /* those of size 1 left out, neighbours joined where memory allows, the innermost last */
    int kept_count, reduced_count;
    npy_intp dims[MAX_DIMS]; /* of the result */
    int ndim;
    npy_intp n, count; /* elements of one result, and results */
} Reduction;

static inline int add_axis(Axis *axes, int count, npy_intp size, npy_intp stride)
{
    if (size == 1) {
        return count;
    }
    if (count && axes[count - 1].stride == size * stride) {
        axes[count - 1].size *= size;
        axes[count - 1].stride = stride;
        return count;
    }
    axes[count].size = size;
    axes[count].stride = stride;
    return count + 1;
}

/* The dimensions that `dim` names, as bits: an int, a tuple or list of ints, all for None or none named. -1 for what is no valid `dim`. */
static inline int dims_of(PyObject *dim, int ndim)
{
    const int all = (1 << ndim) - 1;
    if (dim == Py_None) {
        return all;
    }
    if (PyLong_CheckExact(dim)) {
        int at = as_dim(dim, ndim ? ndim : 1);
        return at < 0 ? -1 : ndim ? 1 << at : 0;
    }
    int in_list = PyList_CheckExact(dim);
    if (!in_list && !PyTuple_Check(dim)) {
        return -1;
    }
    Py_ssize_t count = in_list ? PyList_GET_SIZE(dim) : PyTuple_GET_SIZE(dim);
    int mask = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        int at = as_dim(in_list ? PyList_GET_ITEM(dim, i) : PyTuple_GET_ITEM(dim, i), ndim ? ndim : 1);
        if (at < 0 || (mask >> at & 1)) {
            return -1;
        }
        mask |= 1 << at;
    }
    return ndim == 0 || count == 0 ? all : mask;
}

/* The reduction of x over the dimensions of the bits `mask`. `ordered` keeps the order of the reduced axes. */
static inline void plan_reduction(PyArrayObject *x, int mask, int keepdim, int ordered, Reduction *plan)
{
    const int ndim = PyArray_NDIM(x);
    const npy_intp *shape = PyArray_DIMS(x), *strides = PyArray_STRIDES(x);
    Axis reduced[MAX_DIMS];
    int found = 0, sorted = 1;
    plan->kept_count = plan->reduced_count = plan->ndim = 0;
    plan->n = plan->count = 1;
    for (int d = 0; d < ndim; d++) {
        if (mask >> d & 1) {
            plan->n *= shape[d];
            if (shape[d] != 1) {
                sorted &= !found || reduced[found - 1].stride >= strides[d];
                reduced[found].size = shape[d];
                reduced[found++].stride = strides[d];
            }
            if (keepdim) {
                plan->dims[plan->ndim++] = 1;
            }
        }
        else {
            plan->count *= shape[d];
            plan->dims[plan->ndim++] = shape[d];
            plan->kept_count = add_axis(plan->kept, plan->kept_count, shape[d], strides[d]);
        }
    }
    for (int i = 1; !sorted && !ordered && i < found; i++) { /* the largest stride first, so that more axes join */
        Axis moved = reduced[i];
        int at = i;
        for (; at > 0 && reduced[at - 1].stride < moved.stride; at--) {
            reduced[at] = reduced[at - 1];
        }
        reduced[at] = moved;
    }
    for (int i = 0; i < found; i++) {
        plan->reduced_count = add_axis(plan->reduced, plan->reduced_count, reduced[i].size, reduced[i].stride);
    }
}

/* Steps to the next element of `axes`; `at` counts, from zeros. */
static inline const char *next_place(const Axis *axes, int count, npy_intp *at, const char *x)
{
    for (int d = count - 1; d >= 0; d--) {
        x += axes[d].stride;
        if (++at[d] < axes[d].size) {
            return x;
        }
        x -= axes[d].stride * axes[d].size;
        at[d] = 0;
    }
    return x;
}

static inline void clear_places(npy_intp *at, int count)
{
    for (int d = 0; d < count; d++) {
        at[d] = 0;
    }
}

/* x itself, or a contiguous copy; a new reference. */
static inline PyArrayObject *contiguous_of(PyArrayObject *x)
{
    if (is_contiguous(x)) {
        return (PyArrayObject *)Py_NewRef((PyObject *)x);
    }
    PyObject *copy = new_like(x);
    if (copy != NULL && !move_into((PyArrayObject *)copy, x)) {
        Py_CLEAR(copy);
    }
    return (PyArrayObject *)copy;
}

#endif
