/* Elements from one place to another: what the kernels that copy, join and index share. */
#ifndef MINDTORCH_MOVE_H
#define MINDTORCH_MOVE_H

#include "native.h"

/* n elements from `from` to `to`, which lie so many bytes apart. Rows may have any alignment, and do not overlap. */
typedef void (*Row)(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n);

/* The row that copies items of a size, or NULL. */
INTERNAL Row row_of_size(npy_intp item);
/* The row that makes elements of one dtype of those of another, or NULL. Copies where they are the same. */
INTERNAL Row row_between(PyArray_Descr *from, PyArray_Descr *to);

/* Runs a row over dimensions of any strides, in the order that suits memory. `from` and `to` do not overlap. */
INTERNAL void move(int ndim, const npy_intp *dims, char *to, const npy_intp *to_strides, const char *from, const npy_intp *from_strides, Row row);
/* The same, without the GIL when there is much to do. */
INTERNAL void move_freely(int ndim, const npy_intp *dims, char *to, const npy_intp *to_strides, const char *from, const npy_intp *from_strides,
                          Row row);

/* All elements of an array to another of its shape: both contiguous and apart. Without the GIL when there is much to do. */
INTERNAL void move_row(PyArrayObject *target, PyArrayObject *source, Row row);
/* Writes `source`, broadcast and converted, to `target`; 0 when it cannot (nothing was written then). */
INTERNAL int move_into(PyArrayObject *target, PyArrayObject *source);
/* Strides of an array for a shape that it broadcasts to; 0 when it does not. */
INTERNAL int broadcast_strides(PyArrayObject *array, int ndim, const npy_intp *dims, npy_intp *strides);
/* Whether two arrays may share memory: the stretches from their first to their last elements meet. */
INTERNAL int may_overlap(PyArrayObject *a, PyArrayObject *b);

/* A number (int, float, bool, or an array without dimensions of the same dtype) as an element; 0 to decline. `element` has room for 16 bytes. */
INTERNAL int element_of(PyObject *number, PyArray_Descr *descr, char *element);

/* A dtype whose elements are bits that may be copied, in this processor's byte order. */
static inline int is_movable(PyArrayObject *array)
{
    PyArray_Descr *descr = PyArray_DESCR(array);
    return !PyDataType_REFCHK(descr) && PyArray_NDIM(array) <= MAX_DIMS && PyArray_ISNOTSWAPPED(array);
}

/* An array (not a number, list, subclass) that is movable. */
static inline PyArrayObject *movable(PyObject *object)
{
    return is_array(object) && is_movable((PyArrayObject *)object) ? (PyArrayObject *)object : NULL;
}

/* Whether two arrays have the same dtype. */
static inline int same_kind(PyArrayObject *a, PyArrayObject *b)
{
    return PyArray_DESCR(a) == PyArray_DESCR(b) ||
           (PyArray_TYPE(a) == PyArray_TYPE(b) && PyArray_TYPE(a) < NPY_OBJECT && PyArray_ISNOTSWAPPED(a) && PyArray_ISNOTSWAPPED(b));
}

static inline npy_intp size_of(PyArrayObject *array)
{
    return PyArray_MultiplyList(PyArray_DIMS(array), PyArray_NDIM(array));
}

#endif
