/* Views of arrays: geometry, by dimension. Each returns a new array, or NULL; without an exception that declines. */
#ifndef MINDTORCH_VIEWS_H
#define MINDTORCH_VIEWS_H

#include "native.h"

INTERNAL PyObject *view_select(PyArrayObject *array, int dim, Py_ssize_t index);
/* `start` and `stop` are Python objects: ints, or None. `whole` says whether the slice leaves everything in place. */
INTERNAL PyObject *view_slice(PyArrayObject *array, int dim, PyObject *start, PyObject *stop, Py_ssize_t step, int *whole);
INTERNAL PyObject *view_unsqueeze(PyArrayObject *array, int dim);

#endif
