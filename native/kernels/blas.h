/* Products of matrices by the BLAS that numpy carries, called without numpy between: parts of arrays, and results that are added to. */
#ifndef MINDTORCH_BLAS_H
#define MINDTORCH_BLAS_H

#include "native.h"

/* Whether numpy's BLAS was found; the first call looks for it, and needs the GIL. */
INTERNAL int has_blas(void);

/* c (m, n) = a (m, k) times b (k, n) plus `beta` times c, in rows that lie so many elements apart; a matrix that is `turned` lies transposed.
 * Items of 4 or 8 bytes. Needs no GIL. */
INTERNAL void multiply(int width, int a_turned, int b_turned, npy_intp m, npy_intp n, npy_intp k, double alpha, const void *a, npy_intp a_row,
                       const void *b, npy_intp b_row, double beta, void *c, npy_intp c_row);

/* A function of the LAPACK that comes with it, by its name in Fortran, where numbers there have 64 bits; NULL if there is none. Needs the GIL. */
INTERNAL void *lapack_function(const char *name);

/* The threads that products take, where the BLAS can be told. Needs the GIL. */
INTERNAL void use_blas_threads(int count);

/* `in_parts` of a loop that calls the BLAS, which takes one thread for each part meanwhile. */
INTERNAL void in_parts_of_products(LoopPart part, void *work, npy_intp n, npy_intp grain);

#endif
