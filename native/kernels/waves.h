/* Loops of sine and cosine that take the place of numpy's where the processor has vectors of 512 bits. */
#ifndef MINDTORCH_WAVES_H
#define MINDTORCH_WAVES_H

#include "native.h"

/* That for float64 of a ufunc, by its name; `numpy`, which it needs, where there is none. */
INTERNAL Loop wave_loop(const char *ufunc, Loop numpy);

#endif
