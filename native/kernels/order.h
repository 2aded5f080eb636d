/* Orders of elements, for kernels that sort and those that look for equal elements. */
#ifndef MINDTORCH_ORDER_H
#define MINDTORCH_ORDER_H

#include "kinds.h"

enum { ORDER_HALF = KINDS, ORDER_BFLOAT16 };

/* The kind of an array's elements, one of kinds.h or above; -1 for what cannot be put in order here. */
INTERNAL int order_kind(PyObject *object);
/* Bytes that `order_row` works in. */
INTERNAL size_t order_space(int kind, npy_intp n);
/* The places of the k first of n elements in order, fewer than 2**31. */
INTERNAL void order_row(int kind, const void *x, npy_intp n, npy_intp k, int descending, void *space, npy_int64 *places);
/* The elements at k places. */
INTERNAL void order_take(npy_intp item, const void *x, const npy_int64 *places, npy_intp k, void *to);

#endif
