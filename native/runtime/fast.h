/* What the files of Fast share: a callable that stands before a generated function or method, and its paths. */
#ifndef MINDTORCH_FAST_H
#define MINDTORCH_FAST_H

#include "pipeline.h"

typedef struct Path Path;
typedef PyObject *(*Run)(const Path *path, PyObject *const *bound);

struct Path {
    Run run;
    PyObject *op;
    PyObject *names;    /* tuple of the parameters' names */
    PyObject *defaults; /* tuple; NULL items are required parameters */
    char roles[MAX_PARAMS + 1]; /* T tensor, t optional tensor, L list of ints, I int, B bool, S str, - anything else */
    int required[MAX_PARAMS];
    int params, positional;
    int gathers;  /* all positional arguments after the first are one list of ints */
    int operands; /* of a ufunc */
    int swaps;     /* the function's first two arguments are the operator's in reverse */
    int reflected; /* the ufunc's operands are the function's in reverse */
    int to_bool;
    int is_view;
    int inplace;
    int records;
    int numbers; /* a number may stand for the second operand */
    int like;         /* the parameter whose dtype the result has */
    PyObject *result; /* the dtype of the result, or NULL */
    Loop loops[2];
    Kernel native;
    PyObject *kernel;
    Blocked *blocked; /* the operator by a loop of the block interpreter, or NULL */
    PyObject *loops_of_op; /* Blocked: what a pipeline records, or NULL */
    PyObject *blocks;      /* the records of those loops */
    PyObject *fast;        /* the kernel as a pipeline runs it later, or NULL */
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    PyObject *dict;
    PyObject *weakrefs;
    int count;
    Path paths[MAX_PATHS];
} Fast;

/* Ways to run a path on bound arguments (fast_paths.c). NULL without an exception declines. */
INTERNAL PyObject *run_unary(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_binary(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_inplace(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_kernel(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_blocked(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_blocked_inplace(const Path *path, PyObject *const *bound);

INTERNAL PyObject *fast_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
