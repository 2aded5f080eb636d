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

/* The columns of a matrix, whose elements lie side by side and which begin `b_column` elements from each other, as tiles read them: p by p for 32 columns,
 * then for the next 32; the last may be 16, and columns that are not there are 0. Only where gemm_serves may say yes. */
INTERNAL void pack_turned(const float *b, npy_intp b_column, npy_intp columns, npy_intp k, float *to);

/* Rows, at most 14, whose elements lie side by side and which begin `a_row` elements from each other: p by p. */
INTERNAL void pack_rows(const float *a, npy_intp a_row, npy_intp rows, npy_intp k, float *to);

/* to[p * step + i] = from[i * row + p] for p up to k and i up to `kept`, at most 16; 0 from `rows` on. */
INTERNAL void turn(const float *from, npy_intp row, npy_intp rows, npy_intp k, float *to, npy_intp step, npy_intp kept);
INTERNAL void turn_doubles(const double *from, npy_intp row, npy_intp rows, npy_intp k, double *to, npy_intp step, npy_intp kept);

/* The columns of a matrix of dense rows, which begin `b_row` elements from each other, in the same form. */
INTERNAL void pack_columns(const float *b, npy_intp b_row, npy_intp columns, npy_intp k, float *to);

/* The product of float32 with `b` in that form, of which a_k is 1: for one that many products share. On one thread. */
INTERNAL void gemm_packed(const Gemm *g);

#endif
