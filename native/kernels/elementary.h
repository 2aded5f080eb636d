/* Loops of elementary functions in vectors of 512 bits; see elementary.c. Each takes the operand and the place of the results. */
#ifndef MINDTORCH_ELEMENTARY_H
#define MINDTORCH_ELEMENTARY_H

#include <math.h>

#include "native.h"

/* The functions of blocks, by the names that expressions call them by, and the types that have such a loop: `make codegen` reads them here. */
#define BY_HAND(LOOP)                                                                                                                      \
    LOOP(nearest_exponential, float)                                                                                                       \
    LOOP(nearest_exponential, double)                                                                                                      \
    LOOP(log, float)                                                                                                                       \
    LOOP(tanh, float)                                                                                                                      \
    LOOP(sigmoid, float)                                                                                                                   \
    LOOP(silu, float)                                                                                                                      \
    LOOP(gelu, float)                                                                                                                      \
    LOOP(error_function, float)                                                                                                            \
    LOOP(erfc, float)                                                                                                                      \
    LOOP(sqrt, float)                                                                                                                      \
    LOOP(sqrt, double)

#if HAS_WIDE
#define DECLARED(function, type) INTERNAL void function##_##type##_by_hand(const void *const *sources, void *target, npy_intp n);
BY_HAND(DECLARED)
#undef DECLARED
#endif

#endif
