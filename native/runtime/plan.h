/* A plan: what the rule said for one operator and one geometry of its arguments, and how the CPU runs it. */
#ifndef MINDTORCH_PLAN_H
#define MINDTORCH_PLAN_H

#include "fast.h"

#define KEY_WORDS 160

typedef struct {
    int count;
    int meta, cpu; /* whether tensors are on the one or the other */
    uint64_t word[KEY_WORDS];
} Key;

enum { PLAN_ONE, PLAN_SEVERAL, PLAN_UNKNOWN_SHAPE, PLAN_VIEW, PLAN_VIEWS, PLAN_RESHAPED };

typedef struct {
    int ndim;
    int absent;     /* None in place of a result */
    int unknown;    /* only the elements tell its shape */
    int contiguous; /* in row-major order */
    npy_intp dims[MAX_DIMS], strides[MAX_DIMS]; /* strides in bytes */
    npy_intp offset;                            /* of a view, in bytes */
    PyObject *dtype;
    PyArray_Descr *descr;
} Result;

/* A result on the meta device. */
typedef struct {
    PyObject *shape, *stride, *dtype; /* NULL: None in place of a result */
    PyObject *nbytes; /* of the storage; of a view, the step from the first element of its source */
} MetaResult;

/* The class of payloads on the meta device and its slots, that of their storages, and the device. */
typedef struct {
    PyTypeObject *payload;
    PyObject *storage, *device;
    Py_ssize_t at_shape, at_stride, at_dtype, at_offset, at_storage;
} MetaState;

extern INTERNAL MetaState Z;

struct Plan {
    int references;
    uint64_t hash;
    int words;
    uint64_t *word;     /* the key */
    PyObject *alive;    /* what the key knows by its address */
    int how;            /* PLAN_... */
    int count;          /* of results */
    int listed;         /* the results are a list of the operator's own, not one tuple of its signature */
    PyArray_Descr *compute; /* NULL: operands stay as they are */
    PyObject *kernel;
    int takes_out;
    Blocked *blocked;     /* the operator's loops, or NULL */
    unsigned constants;   /* bits of the arguments that must not require grad: what the rule refuses otherwise */
    int halves;           /* the kernel takes half types as they are, where it computes in float32 */
    int half;             /* the kernel computes in another dtype than that of a floating result */
    PyTypeObject *cls;    /* of the tuple of several results */
    MetaResult *meta;     /* the results on the meta device, or NULL */
    Loop loop;            /* of the ufunc for this dtype; call is NULL when there is none */
    Result result[1];     /* as many as `count` */
};

/* What a kernel gets, and what has to be given back after it. */
typedef struct {
    PyObject *slots[MAX_PARAMS + 2]; /* one place before the first, and one for out= */
    PyObject **value;
    PyObject *owned[MAX_PARAMS];
    int count;
    int history; /* an argument may have a history */
    unsigned uncast; /* bits of the arrays that are cast slab by slab */
} Given;

#define LINES_FROM 256 /* elements of a cast operand that are worth lines */
#define SLAB 8192 /* elements that stay in the cache with what is computed of them */

/* Whether a call with a cast operand of so many elements is run slab by slab: an element of the result depends on the elements at its place alone. */
INTERNAL int has_slabs(const Path *path, const Plan *plan, npy_intp elements);
/* The result in `target`, of operands of which some are yet to be cast. */
INTERNAL int compute_slabs(const Path *path, const Plan *plan, const Bound *bound, const Given *given, PyArrayObject *target);
/* The result in `target`, which has its dtype and shape: 1, or 0 with or without an exception. */
INTERNAL int compute_into(const Path *path, const Plan *plan, const Bound *bound, Given *given, PyArrayObject *target);
/* Arrays of the elements of `array` in another dtype, in the same order of dimensions (convert.c); a new reference. */
INTERNAL PyArrayObject *converted(PyArrayObject *array, PyArray_Descr *descr);
/* Copies with conversion; -1 with an exception. */
INTERNAL int copy_into(PyArrayObject *target, PyArrayObject *source);
/* A number as an array without dimensions, as `_backends/common/convert.number` makes it; NULL without an exception declines. */
INTERNAL PyArrayObject *number_array(PyObject *number, PyArray_Descr *descr);
/* Records a result, and makes it a leaf that requires a gradient if the call asks for it; takes over the reference. */
INTERNAL PyObject *finish_call(const Path *path, const Bound *bound, PyObject *made, int history);
INTERNAL PyObject *run_meta(const Path *path, const Plan *plan, const Bound *bound);
/* A fresh array as a result says. */
INTERNAL PyArrayObject *empty_result(const Result *result);
/* Runs a loop of one or two operands over arrays that broadcast to `out`. */
INTERNAL void iterate(const Loop *loop, int operands, PyArrayObject *const *operand, PyArrayObject *out);

#endif
