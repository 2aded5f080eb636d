/* Keys of subscripts: what stands between the brackets of `x[...]`. */
#ifndef MINDTORCH_KEYS_H
#define MINDTORCH_KEYS_H

#include "native.h"

/* Whether there is a tensor in a key. */
INTERNAL int has_tensor(PyObject *key);
/* The view that the basic parts of a key give, and the list of arrays for `index` (NULL without any), both new references; 0 to decline. */
/* Counts the dimensions that an item of an index takes, and ellipses; 0 when it is none that C reads. */
INTERNAL int measure_item(PyObject *item, int *consumed, int *ellipses);
INTERNAL int read_key(PyArrayObject *self, PyObject *key, PyArrayObject **view, PyObject **indices);
/* x[key] with tensors in the key, of a tensor without history; NULL to decline. */
INTERNAL PyObject *read_by_tensors(PyObject *tensor, PyObject *key);
/* x[key] = value; 1 when done, 0 to decline, -1 with an exception. */
INTERNAL int assign(PyObject *tensor, PyObject *key, PyObject *value);

#endif
