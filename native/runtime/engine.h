/* What the walk over the tape (engine.c) and the derivatives in C (formulas.c) share. */
#ifndef MINDTORCH_ENGINE_H
#define MINDTORCH_ENGINE_H

#include "native.h"

/* Gradients of a node's inputs from that of its only output, which is a plain tensor with an array. `given` has a NULL for each edge; new
 * references. 1 when it is done, 0 when the node's `apply` must do it, -1 with an exception. No history is wanted. */
typedef struct {
    const char *op; /* the operator's identifier in its table */
    Py_ssize_t edges;
    int (*call)(PyObject *node, PyObject *grad, PyObject **given);
} Formula;

extern INTERNAL const Formula formulas[];

typedef struct {
    PyObject *ops; /* the namespace of operators */
    /* functions of engine.py and node.py */
    PyObject *fit, *first, *added, *before, *after, *accumulated, *check_nan, *count_error, *plain_release, *unpack, *unpack_one;
    PyObject *apply, *release, *anomaly; /* names */
    Py_ssize_t at_leaf, at_extras;
    Loop add[2];
    Kernel sum_dim, mm, layer_norm, layer_norm_backward;
} EngineState;

extern INTERNAL EngineState E;

/* The derivative of the nodes of a class, or NULL. */
INTERNAL const Formula *formula_of(PyTypeObject *cls);
/* Whether nodes of a class compute with their gradient, rather than hand it on or take views of it. */
INTERNAL int wants_dense(PyTypeObject *cls);
/* Lets the nodes of a class have the derivative of an operator, if there is one; `dense` is what `wants_dense` says. */
INTERNAL int register_formula(PyTypeObject *cls, const char *op, int dense);
INTERNAL PyObject *unpack_entry(PyObject *node, PyObject *entry);
INTERNAL PyObject *densified(PyObject *grad);

/* What the node of a negative log likelihood and that of the log_softmax which it was taken of give together: 1 when it is done, 0 when each must give
 * its own, -1 with an exception. Both forget what they saved unless `keep`. */
INTERNAL int of_cross_entropy(PyObject *node, PyObject *logs_node, PyObject *grad, int keep, PyObject **given);
INTERNAL int is_likelihood(PyTypeObject *cls);

/* loss.c: arguments of nll_loss_backward; writes the gradient of log_softmax's operand to `out`, which may be `self`. 0 with an exception. */
INTERNAL int cross_entropy_fits(PyObject *const *args);
INTERNAL int cross_entropy_gradient(PyObject *const *args, PyArrayObject *out);
/* softmax.c */
INTERNAL int log_softmax_of_shares(PyArrayObject *y, const npy_int64 *target, npy_int64 ignored, const void *shares, PyArrayObject *out);

#endif
