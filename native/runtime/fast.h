/* The road of a call: a callable that stands before a generated function or method, its paths (one an overload), and the four steps bind, plan,
 * run, record. Whatever does not fit goes to the Python function, called with the very arguments.
 */
#ifndef MINDTORCH_FAST_H
#define MINDTORCH_FAST_H

#include "pipeline.h"

typedef struct Path Path;
typedef PyObject *(*Run)(const Path *path, PyObject *const *bound);
typedef struct Plan Plan;

/* What is remembered of the rule's answers for one operator (plan.c); of fixed size. */
typedef struct Plans Plans;

enum { FORM_NEW, FORM_INPLACE };
enum { BY_NOTHING, BY_PLAN, BY_COMPOSITE };

struct Path {
    Run run; /* a short cut that needs no plan, or NULL */
    PyObject *op;
    PyObject *names;    /* tuple of the parameters' names */
    PyObject *defaults; /* tuple; NULL items are required parameters */
    char roles[MAX_PARAMS + 1]; /* for short cuts and pipelines: T tensor, t optional tensor, L list of ints, I int, B bool, S str, - anything else */
    char kinds[MAX_PARAMS + 1]; /* for binding: see bind.c */
    int required[MAX_PARAMS], optional[MAX_PARAMS], sizes[MAX_PARAMS];
    int casts[MAX_PARAMS]; /* takes part in promotion */
    int params, positional;
    int gathers; /* all positional arguments from the one before this number on are one list of ints; 0 for none */
    int operands; /* of a ufunc */
    int swaps;     /* the place of the function's first argument among the operator's */
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
    int by;                /* BY_... */
    int runs_at_once;      /* never waits in a careful pipeline, and writes to no argument */
    int has_out, has_requires_grad;
    int autocast;  /* casts arguments, or their like, under autocast */
    int pointwise; /* numbers are operands: the rule looks at their kind and range alone */
    int mutates;   /* number of the argument that the kernel writes to, or -1 */
    PyObject *ufunc; /* with which the operator computes where its other arguments have their defaults, or NULL */
    int ufunc_operands;
    PyObject *composite; /* the Python function, when it has been asked for */
    Plans *plans;
};

typedef struct {
    PyObject_VAR_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    PyObject *form; /* what errors need to know: whether it is a method, and whether it writes in place */
    PyObject *dict;
    PyObject *weakrefs;
    int count;
    Path paths[1]; /* as many as `count` */
} Fast;

/* ---------------------------------------------------------------------------------------------------------------- binding */

#define MAX_OWNED 8

/* The arguments of a call in schema order, converted as the schema's types want them. */
typedef struct {
    PyObject *slots[MAX_PARAMS + 1];
    PyObject **value; /* slots + 1, so that there is a place before the first */
    PyObject *owned[MAX_OWNED];
    int owned_count;
    PyObject *out; /* borrowed; NULL when there is none */
    int requires_grad;
} Bound;

enum { UNFIT, FITS, UNKNOWN };
/* FITS: `bound` is filled. UNFIT: another overload is meant. UNKNOWN: Python has to look. */
INTERNAL int bind_path(const Path *path, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, Bound *bound);
INTERNAL void bound_clear(Bound *bound);

/* ---------------------------------------------------------------------------------------------------------------- running */

/* Ways to run a path on bound arguments without a plan (fast_paths.c). NULL without an exception declines. */
INTERNAL PyObject *run_unary(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_binary(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_inplace(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_kernel(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_blocked(const Path *path, PyObject *const *bound);
INTERNAL PyObject *run_blocked_inplace(const Path *path, PyObject *const *bound);
/* Whether an argument that a ufunc's path does not use has its default. */
INTERNAL int has_defaults(const Path *path, int operands, PyObject *const *bound);
/* Whether a tensor may be written to without a look at histories. */
INTERNAL int may_change(PyObject *target, PyObject *other);

/* The plan of a call, a new reference; NULL without an exception when there is none (yet). */
INTERNAL Plan *plan_of(Path *path, const Bound *bound);
INTERNAL void plan_release(Plan *plan);
INTERNAL void plans_free(Plans *plans);
INTERNAL int plans_traverse(Plans *plans, visitproc visit, void *arg);
/* Runs a call by plan. NULL without an exception declines. */
INTERNAL PyObject *run_planned(Path *path, const Bound *bound);
INTERNAL PyObject *run_composite(Path *path, const Bound *bound);

INTERNAL PyObject *fast_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);
INTERNAL PyObject *front_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);

#endif
