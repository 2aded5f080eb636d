/* The part of the tape that a walk visits, and its order: consumers of gradients before their producers. */
#include "walk.h"

static int grow_table(Run *run)
{
    size_t slots = run->slots ? run->slots * 4 : 64;
    int *table = PyMem_Malloc(slots * sizeof(int));
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < slots; i++) {
        table[i] = -1;
    }
    for (int v = 0; v < run->count; v++) {
        size_t at = ((size_t)run->visits[v].node >> 4) & (slots - 1);
        while (table[at] >= 0) {
            at = (at + 1) & (slots - 1);
        }
        table[at] = v;
    }
    PyMem_Free(run->table);
    run->table = table;
    run->slots = slots;
    return 0;
}

/* The number of a node's visit; -1 when there is none. */
int find_visit(const Run *run, PyObject *node)
{
    if (!run->slots) { /* a walk from no tensor at all */
        return -1;
    }
    size_t at = ((size_t)node >> 4) & (run->slots - 1);
    while (run->table[at] >= 0 && run->visits[run->table[at]].node != node) {
        at = (at + 1) & (run->slots - 1);
    }
    return run->table[at];
}

/* A new visit of a node that has none; its number, or -1 with an exception. */
static int add_visit(Run *run, PyObject *node)
{
    if (!PyObject_TypeCheck(node, S.node)) {
        PyErr_Format(PyExc_TypeError, "%R is no node of the tape", node);
        return -1;
    }
    if (run->count == run->space) {
        int space = run->space ? run->space * 2 : 32;
        Visit *visits = PyMem_Realloc(run->visits, (size_t)space * sizeof(Visit));
        if (visits != NULL) {
            run->visits = visits;
        }
        int *order = visits == NULL ? NULL : PyMem_Realloc(run->order, (size_t)space * sizeof(int));
        if (order == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        run->order = order;
        run->space = space;
    }
    if ((size_t)run->count * 2 >= run->slots && grow_table(run) < 0) {
        return -1;
    }
    Visit *visit = &run->visits[run->count];
    memset(visit, 0, sizeof(*visit));
    visit->node = Py_NewRef(node);
    size_t at = ((size_t)node >> 4) & (run->slots - 1);
    while (run->table[at] >= 0) {
        at = (at + 1) & (run->slots - 1);
    }
    run->table[at] = run->count;
    return run->count++;
}

/* The edges of a node, borrowed; NULL with an exception. */
PyObject *edges_of(PyObject *node)
{
    PyObject *edges = SLOT(node, S.at_edges);
    if (edges == NULL || !PyTuple_Check(edges)) {
        PyErr_SetString(PyExc_TypeError, "the edges of a node must be a tuple");
        return NULL;
    }
    return edges;
}

int is_edge(PyObject *edge)
{
    return PyTuple_Check(edge) && PyTuple_GET_SIZE(edge) == 2;
}

typedef struct {
    int visit;
    Py_ssize_t position;
} Step;

/* Adds a root and all that can be reached from it: depth first, in the order in which the nodes are left. */
int explore(Run *run, PyObject *root)
{
    if (run->slots == 0 && grow_table(run) < 0) {
        return -1;
    }
    if (find_visit(run, root) >= 0) {
        return 0;
    }
    int first = add_visit(run, root), space = 64, depth = 0, status = -1;
    Step *stack = first < 0 ? NULL : PyMem_Malloc((size_t)space * sizeof(Step));
    if (stack == NULL) {
        if (first >= 0) {
            PyErr_NoMemory();
        }
        return -1;
    }
    stack[depth++] = (Step){first, 0};
    while (depth) {
        Step *top = &stack[depth - 1];
        PyObject *edges = edges_of(run->visits[top->visit].node);
        if (edges == NULL) {
            goto done;
        }
        int below = -1;
        while (below < 0 && top->position < PyTuple_GET_SIZE(edges)) {
            PyObject *edge = PyTuple_GET_ITEM(edges, top->position++);
            if (is_edge(edge) && find_visit(run, PyTuple_GET_ITEM(edge, 0)) < 0) {
                below = add_visit(run, PyTuple_GET_ITEM(edge, 0));
                if (below < 0) {
                    goto done;
                }
            }
        }
        if (below < 0) {
            run->order[run->ordered++] = top->visit;
            depth--;
            continue;
        }
        if (depth == space) {
            space *= 2;
            Step *wider = PyMem_Realloc(stack, (size_t)space * sizeof(Step));
            if (wider == NULL) {
                PyErr_NoMemory();
                goto done;
            }
            stack = wider;
        }
        stack[depth++] = (Step){below, 0};
    }
    status = 0;
done:
    PyMem_Free(stack);
    return status;
}

/* Marks the nodes from which an input can be reached. */
void mark_wanted(Run *run)
{
    for (Py_ssize_t i = 0; i < run->input_count; i++) {
        if (run->inputs[i] >= 0) {
            run->visits[run->inputs[i]].wanted = run->visits[run->inputs[i]].captured = 1;
        }
    }
    for (int i = 0; i < run->ordered; i++) {
        Visit *visit = &run->visits[run->order[i]];
        PyObject *edges = SLOT(visit->node, S.at_edges);
        for (Py_ssize_t e = 0; !visit->wanted && e < PyTuple_GET_SIZE(edges); e++) {
            PyObject *edge = PyTuple_GET_ITEM(edges, e);
            visit->wanted = is_edge(edge) && run->visits[find_visit(run, PyTuple_GET_ITEM(edge, 0))].wanted;
        }
    }
}

void end_run(Run *run)
{
    for (int v = 0; v < run->count; v++) {
        Visit *visit = &run->visits[v];
        for (int i = 0; visit->held != NULL && i < visit->outputs; i++) {
            Py_CLEAR(visit->held[i].grad);
        }
        if (visit->held != &visit->one) {
            PyMem_Free(visit->held);
        }
        Py_CLEAR(visit->node);
    }
    PyMem_Free(run->visits);
    PyMem_Free(run->order);
    PyMem_Free(run->table);
    PyMem_Free(run->inputs);
    PyMem_Free(run->numbers);
}
