#ifndef MINDTORCH_EQUAL_H
#define MINDTORCH_EQUAL_H

#include "native.h"

/* Whether arrays have the same shape and equal elements: 1 or 0; -1, with or without an exception, for different dtypes and those without a loop. */
INTERNAL int arrays_equal(PyArrayObject *a, PyArrayObject *b);

#endif
