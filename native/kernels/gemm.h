/* Products of float matrices by loops of our own, where the processor has vectors of 512 bits: of any strides, in parts on several threads. */
#ifndef MINDTORCH_GEMM_H
#define MINDTORCH_GEMM_H

#include "native.h"

/* c (m, n) = alpha * a (m, k) b (k, n) + beta * c + bias. Strides in elements; the rows of c have theirs side by side. */
typedef struct {
    const void *a, *b;
    void *c;
    const void *bias; /* n elements, or NULL */
    npy_intp m, n, k, a_row, a_k, b_row, b_column, c_row;
    double alpha, beta;
} Gemm;

/* Whether these loops are the ones to take: products by a vector, and of few rows by a matrix that lies transposed, are a BLAS's. */
INTERNAL int gemm_serves(const Gemm *g);

/* The product, of items of 4 or 8 bytes. Each element is summed over k in one order, whatever m, n and the threads are. Needs no GIL. */
INTERNAL void gemm(int width, const Gemm *g);

#endif
