/* Products of matrices: what the kernels know of the operands. */
#ifndef MINDTORCH_PRODUCT_H
#define MINDTORCH_PRODUCT_H

#include "kinds.h"

/* One product: the matrices of the operands (a vector is one with a side of 1) and the dimensions of the result. Strides in bytes. */
typedef struct {
    PyArrayObject *left, *right;
    npy_intp m, k, n, a[2], b[2];
    int batch; /* leading dimensions of the result */
    npy_intp dims[MAX_DIMS], batch_a[MAX_DIMS], batch_b[MAX_DIMS];
    int ndim;
    npy_intp count; /* matrices */
} Product;

/* The next matrices of the batch. */
static inline void advance(const Product *p, npy_intp *at, const char **a, const char **b)
{
    for (int d = p->batch - 1; d >= 0; d--) {
        *a += p->batch_a[d];
        *b += p->batch_b[d];
        if (++at[d] < p->dims[d]) {
            return;
        }
        *a -= p->batch_a[d] * p->dims[d];
        *b -= p->batch_b[d] * p->dims[d];
        at[d] = 0;
    }
}

/* The sums in float32 of a product of half types, or of float32, of which one matrix has few rows (or columns); NULL declines. */
INTERNAL PyObject *few_sums(const Product *p);

/* A product of integers of the same type; NULL, without an exception where it is large or they are of another one. */
INTERNAL PyObject *small_integers(const Product *p);

/* A product of bfloat16 matrices by a processor's tiles as elements of bfloat16 or float32, plus a row (or None); NULL without an exception where it has none,
 * or the product is small. */
INTERNAL PyObject *amx_product(const Product *p, PyObject *added, PyArray_Descr *descr);

#endif
