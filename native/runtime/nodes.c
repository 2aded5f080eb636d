/* One node of the tape: its derivative, and what becomes of the gradients that it gives. */
#include "walk.h"

/* Whether a node has hooks and the like. */
static int has_extras(PyObject *node)
{
    PyObject *extras = SLOT(node, E.at_extras);
    return extras != NULL && extras != Py_None;
}

/* The gradients that have arrived at a node, as a tuple; the visit gives them up. */
static PyObject *take_grads(Visit *visit)
{
    PyObject *grads = PyTuple_New(visit->outputs);
    for (int i = 0; grads != NULL && i < visit->outputs; i++) {
        PyObject *grad = visit->held[i].grad;
        visit->held[i].grad = NULL;
        PyTuple_SET_ITEM(grads, i, grad != NULL ? grad : Py_NewRef(Py_None));
    }
    return grads;
}

static int capture(Run *run, int visit, PyObject *grads)
{
    for (Py_ssize_t i = 0; i < run->input_count; i++) {
        Py_ssize_t number = run->numbers[i];
        if (run->inputs[i] != visit || number >= PyTuple_GET_SIZE(grads)) {
            continue;
        }
        if (PyList_SetItem(run->results, i, Py_NewRef(PyTuple_GET_ITEM(grads, number))) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Lets a node forget what it saved. */
static int release(PyObject *node)
{
    PyObject *method = PyObject_GetAttr((PyObject *)Py_TYPE(node), E.release);
    if (method == NULL) {
        return -1;
    }
    int plain = method == E.plain_release;
    Py_DECREF(method);
    if (plain) {
        set_slot(node, S.at_saved, Py_NewRef(Py_None));
        return 0;
    }
    PyObject *done = PyObject_CallMethodNoArgs(node, E.release);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Sends the gradients of a node's inputs along its edges; `instead` in the place of `handed`. */
static int distribute(Run *run, PyObject *node, PyObject *const *given, PyObject *handed, PyObject *instead)
{
    PyObject *edges = SLOT(node, S.at_edges);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges); i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i);
        if (given[i] == NULL || !is_edge(edge)) {
            continue;
        }
        PyObject *target = PyTuple_GET_ITEM(edge, 0), *number = PyTuple_GET_ITEM(edge, 1);
        int visit = find_visit(run, target);
        if (visit < 0) {
            PyErr_SetString(PyExc_RuntimeError, "an edge of the tape was changed while it was walked");
            return -1;
        }
        if (given[i] == Py_None) {
            if (reach(&run->visits[visit], PyLong_AsSsize_t(number)) < 0 || PyErr_Occurred()) {
                return -1;
            }
            continue;
        }
        PyObject *grad = fitted(run, handed != NULL && given[i] == handed ? instead : given[i], target, number, node, i);
        Py_ssize_t output = grad == NULL ? -1 : PyLong_AsSsize_t(number);
        if (output == -1 && PyErr_Occurred()) {
            Py_XDECREF(grad);
            return -1;
        }
        if (arrive(run, &run->visits[visit], output, grad) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The derivative by a formula in C, for one plain gradient: 1 when it is done, 0 when the node's `apply` must, -1 with an exception. */
static int by_formula(Run *run, int v)
{
    Visit *visit = &run->visits[v];
    PyObject *node = visit->node, *grad = visit->held[0].grad;
    if (run->create || run->anomaly || visit->outputs != 1 || is_watched()) {
        return 0;
    }
    const Formula *formula = formula_of(Py_TYPE(node));
    if (formula == NULL || grad == NULL || Py_TYPE(grad) != S.tensor || array_of(grad) == NULL) {
        return 0;
    }
    PyObject *edges = SLOT(node, S.at_edges), *given[MAX_PARAMS] = {NULL};
    Py_ssize_t count = formula->edges;
    if (PyTuple_GET_SIZE(edges) != count) {
        return 0;
    }
    int status = formula->call(node, grad, given);
    if (status > 0) {
        visit->held[0].grad = NULL;
        Py_DECREF(grad);
        if (!run->keep) {
            set_slot(node, S.at_saved, Py_NewRef(Py_None));
        }
        status = distribute(run, node, given, NULL, NULL) < 0 ? -1 : 1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_XDECREF(given[i]);
    }
    return status;
}

/* The same of a likelihood and the log_softmax before it, whose gradient nothing else gives a part of: that of the latter, row by row, without the matrix
 * between the two, which is zero but for an element of each row. */
static int by_pair(Run *run, int v)
{
    Visit *visit = &run->visits[v];
    PyObject *node = visit->node, *grad = visit->held[0].grad;
    if (!is_likelihood(Py_TYPE(node)) || run->create || run->anomaly || is_watched() || run->at < 1 || visit->outputs != 2 || visit->held[1].grad != NULL ||
        grad == NULL || Py_TYPE(grad) != S.tensor || array_of(grad) == NULL) {
        return 0;
    }
    PyObject *edge = PyTuple_GET_SIZE(SLOT(node, S.at_edges)) == 1 ? PyTuple_GET_ITEM(SLOT(node, S.at_edges), 0) : NULL;
    const int next = run->order[run->at - 1];
    Visit *before = &run->visits[next];
    if (edge == NULL || !is_edge(edge) || PyTuple_GET_ITEM(edge, 0) != before->node || before->held != NULL || before->captured ||
        Py_TYPE(before->node) == S.accumulate || has_extras(before->node) || (run->input_count && !before->wanted) ||
        PyTuple_GET_SIZE(SLOT(before->node, S.at_edges)) != 1) {
        return 0;
    }
    PyObject *given[1] = {NULL};
    int status = of_cross_entropy(node, before->node, grad, run->keep, given);
    if (status > 0) {
        visit->held[0].grad = NULL;
        Py_DECREF(grad);
        status = distribute(run, before->node, given, NULL, NULL) < 0 ? -1 : 1;
    }
    Py_XDECREF(given[0]);
    return status;
}

/* Whether all that a node saved is contiguous, so that what it computes with a dense gradient is laid out as with one that was spread. */
static int saved_contiguous(PyObject *node)
{
    PyObject *saved = SLOT(node, S.at_saved);
    if (saved == NULL || !PyList_CheckExact(saved)) {
        return saved == Py_None;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(saved); i++) {
        PyObject *entry = PyList_GET_ITEM(saved, i), *data = NULL;
        if (entry == Py_None || PyFloat_CheckExact(entry) || PyLong_Check(entry)) {
            continue;
        }
        if (Py_TYPE(entry) == S.saved_output) {
            data = SLOT(entry, S.at_payload);
        }
        else if (PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 2 && PyObject_TypeCheck(PyTuple_GET_ITEM(entry, 0), S.tensor)) {
            data = SLOT(PyTuple_GET_ITEM(entry, 0), S.at_data);
        }
        if (data == NULL || !is_array(data) || !is_contiguous((PyArrayObject *)data)) {
            return 0;
        }
    }
    return 1;
}

/* Whether no gradient at all has come to a node, which gives none then; nodes of users make zeros of them. */
static int no_gradient(PyObject *node, PyObject *grads)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(grads); i++) {
        if (PyTuple_GET_ITEM(grads, i) != Py_None) {
            return 0;
        }
    }
    PyObject *runs = PyObject_GetAttrString((PyObject *)Py_TYPE(node), "runs_on_nothing");
    int truth = runs == NULL ? -1 : PyObject_IsTrue(runs);
    Py_XDECREF(runs);
    return truth < 0 ? -1 : !truth;
}

static PyObject *nones(Py_ssize_t count)
{
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyTuple_SET_ITEM(made, i, Py_NewRef(Py_None));
    }
    return made;
}

/* The derivative by the node's `apply`. Takes over `grads`. `spread`: the gradient as it arrived when `grads` has a dense one in its place, which
 * is what an edge gets that it is handed on to. */
static int by_apply(Run *run, PyObject *node, PyObject *grads, int extras, PyObject *spread)
{
    int status = -1;
    PyObject *dense = spread == NULL ? NULL : PyTuple_GET_ITEM(grads, 0); /* an address alone */
    int nothing = no_gradient(node, grads);
    PyObject *given = nothing < 0 ? NULL : nothing ? nones(PyTuple_GET_SIZE(SLOT(node, S.at_edges))) : PyObject_CallMethodOneArg(node, E.apply, grads);
    if (given != NULL && run->anomaly) {
        PyObject *checked = PyObject_CallFunctionObjArgs(E.check_nan, node, given, NULL);
        if (checked == NULL) {
            Py_CLEAR(given);
        }
        Py_XDECREF(checked);
    }
    if (given != NULL && extras) {
        Py_SETREF(given, PyObject_CallFunctionObjArgs(E.after, node, given, grads, NULL));
    }
    Py_DECREF(grads);
    if (given == NULL || (!run->keep && release(node) < 0)) {
        Py_XDECREF(given);
        return -1;
    }
    PyObject *items = PySequence_Fast(given, "a node's gradients must be a sequence");
    Py_DECREF(given);
    PyObject *edges = items == NULL ? NULL : edges_of(node);
    if (edges != NULL && PySequence_Fast_GET_SIZE(items) != PyTuple_GET_SIZE(edges)) {
        PyObject *failed = PyObject_CallFunction(E.count_error, "Onn", node, PyTuple_GET_SIZE(edges), PySequence_Fast_GET_SIZE(items));
        Py_XDECREF(failed);
        edges = NULL;
    }
    if (edges != NULL) {
        status = distribute(run, node, PySequence_Fast_ITEMS(items), dense, spread);
    }
    Py_XDECREF(items);
    return status;
}

/* Whether the walk ends at a node that an input is a result of: nothing that is asked for lies beyond it. Then the gradient is captured, and the
 * node itself, with the hooks that are its own, does not run. */
int ends_at(const Run *run, int v)
{
    PyObject *node = run->visits[v].node;
    if (!run->visits[v].captured || (Py_TYPE(node) == S.accumulate && run->accumulate)) {
        return 0;
    }
    PyObject *edges = SLOT(node, S.at_edges);
    for (Py_ssize_t e = 0; e < PyTuple_GET_SIZE(edges); e++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, e);
        if (is_edge(edge) && run->visits[find_visit(run, PyTuple_GET_ITEM(edge, 0))].wanted) {
            return 0;
        }
    }
    return 1;
}

int run_node(Run *run, int v)
{
    PyObject *node = run->visits[v].node;
    int leaf = Py_TYPE(node) == S.accumulate, extras = has_extras(node), captured = run->visits[v].captured;
    int accumulates = leaf && run->accumulate;
    if (!extras && !captured) {
        if (leaf) {
            PyObject *grad = run->visits[v].held[0].grad;
            run->visits[v].held[0].grad = NULL;
            if (grad == NULL || !accumulates) {
                Py_XDECREF(grad);
                return 0;
            }
            return accumulate(run, node, grad);
        }
        int done = by_formula(run, v);
        if (!done) {
            done = by_pair(run, v);
        }
        if (done) {
            return done < 0 ? -1 : 0;
        }
    }
    Visit *visit = &run->visits[v];
    PyObject *spread = NULL;
    if (visit->outputs == 1 && !run->create && !extras && !captured && visit->held[0].grad != NULL && wants_dense(Py_TYPE(node)) &&
        saved_contiguous(node)) {
        spread = Py_NewRef(visit->held[0].grad);
        visit->held[0].grad = densified(visit->held[0].grad);
        if (visit->held[0].grad == NULL) {
            Py_DECREF(spread);
            return -1;
        }
        if (visit->held[0].grad == spread) {
            Py_CLEAR(spread);
        }
    }
    int ends = ends_at(run, v);
    PyObject *grads = take_grads(visit);
    if (grads != NULL && extras) {
        PyObject *before = PyObject_CallFunctionObjArgs(E.before, node, grads, ends ? Py_True : Py_False, NULL);
        Py_SETREF(grads, before);
        if (grads != NULL && !PyTuple_Check(grads)) {
            PyErr_SetString(PyExc_TypeError, "a hook must return a tuple");
            Py_CLEAR(grads);
        }
    }
    if (grads == NULL || (captured && capture(run, v, grads) < 0)) {
        Py_XDECREF(grads);
        Py_XDECREF(spread);
        return -1;
    }
    if (ends) {
        Py_DECREF(grads);
        Py_XDECREF(spread);
        return 0;
    }
    if (!leaf) {
        int status = by_apply(run, node, grads, extras, spread);
        Py_XDECREF(spread);
        return status;
    }
    PyObject *grad = PyTuple_GET_SIZE(grads) ? Py_NewRef(PyTuple_GET_ITEM(grads, 0)) : Py_NewRef(Py_None);
    Py_DECREF(grads);
    if (grad == Py_None || !accumulates) {
        Py_DECREF(grad);
        return 0;
    }
    PyObject *arrived = extras ? Py_NewRef(grad) : NULL;
    if (accumulate(run, node, grad) < 0) {
        Py_XDECREF(arrived);
        return -1;
    }
    if (extras) {
        PyObject *done = PyObject_CallFunctionObjArgs(E.accumulated, node, arrived, NULL);
        Py_XDECREF(done);
        Py_DECREF(arrived);
        return done == NULL ? -1 : 0;
    }
    return 0;
}
