/* How the kernels of normalisations read their arguments. */
#ifndef MINDTORCH_NORM_H
#define MINDTORCH_NORM_H

#include "../runtime/plan.h"
#include "kinds.h"

/* Whether an optional weight or bias is a dense array of `count` elements; NULL for None. */
static inline int vector(PyObject *object, int width, npy_intp count, const void **data)
{
    *data = NULL;
    if (object == Py_None) {
        return 1;
    }
    if (dense_width(object) != width || PyArray_NDIM((PyArrayObject *)object) != 1 || PyArray_SIZE((PyArrayObject *)object) != count) {
        return 0;
    }
    *data = PyArray_DATA((PyArrayObject *)object);
    return 1;
}

/* An optional weight or bias of n elements in float32: a new reference, or NULL for None. 0 to decline. */
static inline int wide_vector(PyObject *object, npy_intp n, PyArrayObject **wide, const void **data)
{
    Row widen;
    *wide = NULL;
    if (object != Py_None && kind_widened(object, &widen) == KIND_FLOAT && widen != NULL) {
        *wide = converted((PyArrayObject *)object, S.descr32);
    }
    return (object == Py_None || *wide != NULL) && vector(*wide == NULL ? Py_None : (PyObject *)*wide, 4, n, data);
}

/* Which of three gradients are wanted. */
static inline int read_mask(PyObject *mask, int *wanted)
{
    if ((!PyTuple_CheckExact(mask) && !PyList_CheckExact(mask)) || Py_SIZE(mask) != 3) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(mask, i);
        if (!PyBool_Check(item)) {
            return 0;
        }
        wanted[i] = item == Py_True;
    }
    return 1;
}

#endif
