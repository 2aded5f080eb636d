/* Few vectors by a matrix, whose elements are read once, become float32 in a register, and are summed in float32. */
#ifndef MINDTORCH_FEW_VECTORS_H
#define MINDTORCH_FEW_VECTORS_H

#include "kinds.h"

#define MOST_VECTORS 32 /* with more, a copy in float32 and its tiles take less time */

enum { ELEMENT_F16, ELEMENT_B16, ELEMENT_I8, ELEMENT_F32, ELEMENTS };

typedef struct {
    int element;
    const char *matrix; /* rows of n elements side by side */
    npy_intp rows, n, apart; /* bytes between rows */
    int summed_rows;    /* whether sums go over the rows, else along them */
    int vectors;        /* at most MOST_VECTORS */
    const float *x;     /* the vectors, one after the other */
    float *factors;     /* room for as many numbers, where sums go over the rows */
    float *out;         /* what each vector gives, one after the other: for each row, or for each place in a row */
} FewVectors;

/* Whether there are loops for such elements on this processor. */
INTERNAL int has_few_vectors(int element);
/* Several threads may help. Needs no GIL. */
INTERNAL void by_few_vectors(FewVectors *all);

#endif
