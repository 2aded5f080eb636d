/* Fourier transforms: what the two files of kernels share. */
#ifndef MINDTORCH_FOURIER_H
#define MINDTORCH_FOURIER_H

#include "native.h"

typedef struct {
    double re, im;
} Number;

/* exp(2 pi i k / n), of k below n. */
INTERNAL Number root_of_unity(npy_intp k, npy_intp n);

/* Of arrays that lie close, (outer, n, inner), in the precision of `width` bytes, times `by`: numbers in place, reals to numbers (n / 2 + 1 or all n of
 * them), and n / 2 + 1 numbers to reals. 0 to decline; with the GIL, which they let go. */
INTERNAL int fourier_complex(void *data, npy_intp outer, npy_intp n, npy_intp inner, int width, int inverse, double by);
INTERNAL int fourier_real(const void *reals, void *numbers, npy_intp outer, npy_intp n, npy_intp inner, npy_intp kept, int width, double by);
INTERNAL int fourier_to_real(const void *numbers, void *reals, npy_intp outer, npy_intp n, npy_intp inner, int width, double by);

#endif
