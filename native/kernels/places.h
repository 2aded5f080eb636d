/* The places in an array that index tensors and masks mean. */
#ifndef MINDTORCH_PLACES_H
#define MINDTORCH_PLACES_H

#include "move.h"

#define FEW_PLACES 64

/* What x[indices] addresses: `outer` dimensions of x that come before the indexed ones, the places, and `inner` ones behind. */
typedef struct {
    int outer, ndim, inner;
    npy_intp outer_dims[MAX_DIMS], outer_strides[MAX_DIMS], dims[MAX_DIMS], inner_dims[MAX_DIMS], inner_strides[MAX_DIMS];
    npy_intp count;   /* of the places */
    npy_intp *offset; /* of each, in bytes: `few`, or memory of their own */
    npy_intp few[FEW_PLACES];
} Places;

/* By a list of arrays and None. 0 to decline, for indices out of range as well, or with an exception. */
INTERNAL int find_places(PyArrayObject *self, PyObject *indices, Places *places);
/* By one array of positions, none of which is negative, along a dimension. */
INTERNAL int find_slices(PyArrayObject *self, int dim, PyArrayObject *index, Places *places);
INTERNAL void forget_places(Places *places);

/* A new array of what is at the places. */
INTERNAL PyObject *read_places(PyArrayObject *self, const Places *places);
/* Runs a row from `values`, which broadcast, to the places; 0 to decline. */
INTERNAL int write_places(PyArrayObject *self, const Places *places, PyArrayObject *values, Row row);

/* The row that adds (`or` for bool), or NULL. */
INTERNAL Row adding_row(PyArray_Descr *descr);

/* 8 for int64, 4 for int32, in native byte order; 0 for all else. */
static inline int index_width(PyArrayObject *array)
{
    if (!PyArray_ISNOTSWAPPED(array) || PyArray_NDIM(array) > MAX_DIMS) {
        return 0;
    }
    return PyArray_TYPE(array) == NPY_INT64 ? 8 : PyArray_TYPE(array) == NPY_INT32 ? 4 : 0;
}

typedef npy_int64 __attribute__((aligned(1), may_alias)) Index8;
typedef npy_int32 __attribute__((aligned(1), may_alias)) Index4;

static inline npy_int64 index_at(const char *at, int width)
{
    return width == 8 ? *(const Index8 *)at : *(const Index4 *)at;
}

/* out[...] = a where the condition (bytes) holds, else b, over dimensions with strides for each of the four; `out` may be a or b itself. masks.c */
INTERNAL int choose_into(PyArrayObject *out, PyArrayObject *condition, PyArrayObject *a, PyArrayObject *b);
/* The elements of `self` where a mask of its shape holds; NULL to decline. */
INTERNAL PyObject *picked(PyArrayObject *self, PyArrayObject *mask);

/* A mask: bool, or uint8. */
static inline int is_mask(PyArrayObject *array)
{
    return PyArray_TYPE(array) == NPY_BOOL || PyArray_TYPE(array) == NPY_UINT8;
}

#endif
