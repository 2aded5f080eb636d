/* Loops of elementary functions in vectors of 512 bits; see elementary.c. Each takes the operand and the place of the results. */
#ifndef MINDTORCH_ELEMENTARY_H
#define MINDTORCH_ELEMENTARY_H

#include <math.h>

#include "native.h"

#if HAS_WIDE
#define WIDEST_LOOP(name) INTERNAL void name(const void *const *sources, void *target, npy_intp n);
WIDEST_LOOP(widest_exp)
WIDEST_LOOP(widest_sigmoid)
WIDEST_LOOP(widest_silu)
WIDEST_LOOP(widest_tanh)
WIDEST_LOOP(widest_log)
WIDEST_LOOP(widest_erf)
WIDEST_LOOP(widest_erfc)
WIDEST_LOOP(widest_gelu)
WIDEST_LOOP(widest_sqrt)
WIDEST_LOOP(widest_sqrt_double)
#undef WIDEST_LOOP
#endif

#endif
