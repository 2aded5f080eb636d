/* What the files that make tensors share beside native.h: dtypes as arrays know them, shapes, and the stream of random draws. */
#ifndef MINDTORCH_MAKING_H
#define MINDTORCH_MAKING_H

#include "native.h"

typedef struct {
    PyTypeObject *dtype; /* the class torch.dtype */
    Py_ssize_t at_np;    /* its slot for numpy's dtype */
    PyObject *dtypes;    /* the namespace of the module `_dtype`, which knows the default dtype */
    PyObject *stream;    /* of the default generator; NULL until something was drawn from it */
    PyArray_Descr *bfloat16;
    PyObject *kinds; /* dict of torch.dtype by numpy's */
    /* interned names */
    PyObject *pipeline, *made_engine, *default_;
} Making;

extern INTERNAL Making M;

/* numpy's dtype of a torch.dtype, or of the default one for None; NULL without an exception when it has none or is something else. Borrowed. */
INTERNAL PyArray_Descr *descr_of(PyObject *dtype);
/* The sizes in a tuple or list of ints; -1 when it holds something else, negative numbers included, or too much. */
INTERNAL int sizes_of(PyObject *sizes, npy_intp *dims);

/* members.c: `member(class, name, Python member)`, what stands before the Python member; the Python member itself where there is nothing. */
INTERNAL PyObject *member(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* numbers.c: the same for the members that give numbers; and a tensor of a number or nested lists of numbers, of a dtype or the one that fits them
 * (None). NULL without an exception for what Python has to look at. */
INTERNAL PyObject *number_member(PyTypeObject *type, PyObject *name, PyObject *member);
INTERNAL PyObject *tensor_of_numbers(PyObject *data, PyObject *kind);
INTERNAL PyObject *connect_casts(PyObject *module, PyObject *args);
INTERNAL int install_size(void);
/* layers.c: connect_module(Module, hooks of calls, of parameters, of modules), connect_parameter(Parameter). */
INTERNAL PyObject *connect_module(PyObject *module, PyObject *args);
INTERNAL PyObject *adopt_module(PyObject *module, PyObject *cls); /* a new subclass of Module */
INTERNAL PyObject *connect_parameter(PyObject *module, PyObject *cls);
INTERNAL PyObject *new_accumulate(PyObject *variable); /* the node of a leaf that requires grad */
/* construct.c: `constructor(name, Python function)`, likewise. */
INTERNAL PyObject *constructor(PyObject *module, PyObject *const *args, Py_ssize_t count);

INTERNAL PyObject *connect_making(PyObject *module, PyObject *args, PyObject *kwargs);
INTERNAL PyObject *use_stream(PyObject *module, PyObject *stream);
INTERNAL int start_making(void);

#endif
