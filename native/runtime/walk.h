/* The parts of the walk over the tape: the graph (graph.c), sums and leaves (gradients.c), one node (nodes.c), and the walk itself (engine.c). */
#ifndef MINDTORCH_WALK_H
#define MINDTORCH_WALK_H

#include "engine.h"

/* A gradient that arrives at an output of a node. */
typedef struct {
    PyObject *grad; /* or NULL */
    int own;        /* the walk made it as a sum, so that nobody else can see it */
} Held;

typedef struct {
    PyObject *node;
    Held one;   /* for nodes of one output */
    Held *held; /* NULL until a gradient has arrived */
    int outputs, wanted, captured;
} Visit;

typedef struct Run {
    struct Run *outer; /* the walk in whose course this one runs, in the same thread */
    long long number;
    Visit *visits;
    int at;     /* how much of the order is left */
    int *order; /* consumers of gradients before their producers */
    int *table; /* hash table of visits by node; -1 is free */
    int count, space, ordered;
    size_t slots;
    int keep, create, accumulate, anomaly;
    PyObject *results; /* list of what arrived at the inputs, or NULL */
    int *inputs;       /* visit of each input, or -1 */
    Py_ssize_t *numbers;
    Py_ssize_t input_count;
} Run;

/* graph.c: what each does is said there. */
INTERNAL PyObject *edges_of(PyObject *node);
INTERNAL int is_edge(PyObject *edge);
INTERNAL int find_visit(const Run *run, PyObject *node);
INTERNAL int explore(Run *run, PyObject *root);
INTERNAL void mark_wanted(Run *run);
INTERNAL void end_run(Run *run);

/* gradients.c */
INTERNAL int reach(Visit *visit, Py_ssize_t number);
INTERNAL int arrive(Run *run, Visit *visit, Py_ssize_t number, PyObject *grad);
INTERNAL PyObject *fitted(const Run *run, PyObject *grad, PyObject *target, PyObject *number, PyObject *source, Py_ssize_t position);
INTERNAL int accumulate(const Run *run, PyObject *node, PyObject *grad);

/* nodes.c */
INTERNAL int ends_at(const Run *run, int v);
INTERNAL int run_node(Run *run, int v);

#endif
