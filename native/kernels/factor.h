/* Factorisations of float matrices, most of whose work is products. They need what has_blas() has found, and no GIL. */
#ifndef MINDTORCH_FACTOR_H
#define MINDTORCH_FACTOR_H

#include "native.h"

/* The matrix of n rows becomes its inverse; 0, and anything in it, for a singular one. `space` has inverse_space() bytes. */
INTERNAL int invert_by_products(int width, void *a, npy_intp n, void *space);
INTERNAL size_t inverse_space(int width, npy_intp n);

/* The upper triangle becomes the factor u of a = u^T u; 0 for a matrix that is not positive definite, or has NaN there. What is below is anything. */
INTERNAL int cholesky_by_products(int width, void *a, npy_intp n);

#endif
