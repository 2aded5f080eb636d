/* Softmax and its kin over rows whose elements lie side by side, in vectors of 512 bits. */
#ifndef MINDTORCH_SOFT_ROWS_H
#define MINDTORCH_SOFT_ROWS_H

#include "native.h"

/* Whether rows of n elements are done here: shorter ones are turned first, see Note [Short rows]; with a logarithm of each row up to more elements. Rows of one
 * element, and those that are too long to turn, always are where the processor has the vectors. */
INTERNAL int soft_rows_serve(int width, npy_intp n, int logarithm);

/* Softmax, or its logarithm, of rows of n elements of `width` bytes. */
INTERNAL void soft_rows(int width, int logarithm, const void *x, void *out, npy_intp rows, npy_intp n);

/* Their derivatives, of the gradient and of what they gave. */
INTERNAL void soft_rows_backward(int width, int logarithm, const void *gradient, const void *y, void *out, npy_intp rows, npy_intp n);

/* The logarithm of the sum of each row's exponentials; rows begin `step` elements from each other. */
INTERNAL void log_sums(int width, const void *x, npy_intp step, void *out, npy_intp rows, npy_intp n);

#endif
