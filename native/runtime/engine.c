/* The walk over the tape, as `_Run` of _autograd/engine.py does it in Python, which serves without the extension.
 *
 * Order, sums and ownership of gradients are decided here; what few programs have (hooks, retained gradients, anomaly mode, gradients that
 * must be cast or reduced, other payloads) goes to functions of engine.py, which both walks share.
 */
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

EngineState E;

static _Thread_local Run *running = NULL;
static long long walks = 0; /* how many have been started; counted under the lock that Python takes */

/* ------------------------------------------------------------------------------------------------------------- the graph */

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
static int find_visit(const Run *run, PyObject *node)
{
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
static PyObject *edges_of(PyObject *node)
{
    PyObject *edges = SLOT(node, S.at_edges);
    if (edges == NULL || !PyTuple_Check(edges)) {
        PyErr_SetString(PyExc_TypeError, "the edges of a node must be a tuple");
        return NULL;
    }
    return edges;
}

static int is_edge(PyObject *edge)
{
    return PyTuple_Check(edge) && PyTuple_GET_SIZE(edge) == 2;
}

typedef struct {
    int visit;
    Py_ssize_t position;
} Step;

/* Adds a root and all that can be reached from it: depth first, in the order in which the nodes are left. */
static int explore(Run *run, PyObject *root)
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
static void mark_wanted(Run *run)
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

static void end_run(Run *run)
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

/* ------------------------------------------------------------------------------------------------------------- gradients */

/* Calls a function of engine.py or an operator by its name. */
static PyObject *call_op(const char *name, PyObject *first, PyObject *second)
{
    PyObject *op = PyObject_GetAttrString(E.ops, name);
    PyObject *result = op == NULL ? NULL : PyObject_CallFunctionObjArgs(op, first, second, NULL);
    Py_XDECREF(op);
    return result;
}

/* The array of a gradient that the walk may add up by itself, or NULL; while something special is active operators do it. */
static PyArrayObject *summable(const Run *run, PyObject *grad)
{
    if (is_watched() || Py_TYPE(grad) != S.tensor || is_inference(grad) || (run->create && may_have_history(grad))) {
        return NULL;
    }
    PyArrayObject *array = array_of(grad);
    return array != NULL && is_contiguous(array) && float_width(array) ? array : NULL;
}

/* Whether an array holds elements several times, as `expand` makes them, in an order in which results of it are contiguous. */
static int is_spread(PyArrayObject *array)
{
    int spread = 0;
    npy_intp before = NPY_MAX_INTP;
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        npy_intp step = PyArray_STRIDE(array, d);
        if (PyArray_DIM(array, d) == 1) {
            continue;
        }
        if (step == 0) {
            spread = 1;
        }
        else if (step < 0 || step > before) {
            return 0;
        }
        else {
            before = step;
        }
    }
    return spread && PyArray_SIZE(array) > 0;
}

/* A gradient (taken over) with each element of its own where it was spread, for kernels that want dense arrays; NULL with an exception. */
PyObject *densified(PyObject *grad)
{
    PyArrayObject *array = Py_TYPE(grad) == S.tensor && !is_watched() ? array_of(grad) : NULL;
    if (array == NULL || is_contiguous(array) || !is_spread(array) || may_have_history(grad) || is_inference(grad)) {
        return grad;
    }
    PyObject *copy = new_like(array);
    if (copy != NULL && PyArray_CopyInto((PyArrayObject *)copy, array) < 0) {
        Py_CLEAR(copy);
    }
    PyObject *made = copy == NULL ? NULL : make_tensor(copy, SLOT(grad, S.at_dtype));
    Py_DECREF(grad);
    return made;
}

/* The sum of a gradient that has arrived and another one (taken over). */
static int add_to(Run *run, Held *held, PyObject *grad)
{
    PyArrayObject *other = Py_TYPE(held->grad) == S.tensor ? array_of(held->grad) : NULL;
    if (other != NULL && is_contiguous(other)) {
        grad = densified(grad);
    }
    other = grad != NULL && Py_TYPE(grad) == S.tensor ? array_of(grad) : NULL;
    if (other != NULL && is_contiguous(other)) {
        held->grad = densified(held->grad);
    }
    if (grad == NULL || held->grad == NULL) {
        Py_XDECREF(grad);
        return -1;
    }
    PyArrayObject *left = summable(run, held->grad), *right = summable(run, grad);
    int alike = left != NULL && right != NULL && PyArray_DESCR(left) == PyArray_DESCR(right) && PyArray_SAMESHAPE(left, right);
    if (alike && held->own && loop_inplace(E.add, left, right, NULL)) {
        Py_DECREF(grad);
        return 0;
    }
    PyObject *data = alike ? loop_binary(E.add, 0, left, right) : NULL, *sum = NULL;
    int own = data != NULL;
    if (own) {
        sum = make_tensor(data, SLOT(grad, S.at_dtype));
    }
    else if (!PyErr_Occurred()) {
        sum = call_op("add", held->grad, grad);
    }
    Py_DECREF(grad);
    if (sum == NULL) {
        return -1;
    }
    Py_SETREF(held->grad, sum);
    held->own = own;
    return 0;
}

/* The walk has come to an output of a node, with a gradient or with none. */
static int reach(Visit *visit, Py_ssize_t number)
{
    if (visit->held == NULL) {
        PyObject *outputs = SLOT(visit->node, S.at_outputs);
        Py_ssize_t count = outputs != NULL && PyTuple_Check(outputs) ? PyTuple_GET_SIZE(outputs) : 0;
        count = count > number ? count : number + 1;
        visit->outputs = (int)count;
        visit->held = count == 1 ? &visit->one : PyMem_Calloc((size_t)count, sizeof(Held));
        if (visit->held == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

/* A gradient (taken over) arrives at an output of a node. */
static int arrive(Run *run, Visit *visit, Py_ssize_t number, PyObject *grad)
{
    if (reach(visit, number) < 0) {
        Py_DECREF(grad);
        return -1;
    }
    if (number < 0 || number >= visit->outputs) {
        Py_DECREF(grad);
        PyErr_SetString(PyExc_RuntimeError, "an edge to an output that its node does not have");
        return -1;
    }
    Held *held = &visit->held[number];
    if (held->grad == NULL) {
        held->grad = grad;
        return 0;
    }
    return add_to(run, held, grad);
}

/* A new reference to the tensor of a leaf's node; NULL when it is gone. */
static PyObject *variable_of(PyObject *node)
{
    PyObject *reference = SLOT(node, E.at_leaf), *found = NULL;
#if PY_VERSION_HEX >= 0x030D0000
    if (PyWeakref_GetRef(reference, &found) < 0) {
        PyErr_Clear();
    }
#else
    found = PyWeakref_GetObject(reference);
    found = found == NULL || found == Py_None ? NULL : Py_NewRef(found);
#endif
    return found;
}

static int has_shape(PyArrayObject *array, PyObject *shape)
{
    if (!PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) != PyArray_NDIM(array)) {
        return 0;
    }
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        Py_ssize_t n;
        if (!as_index(PyTuple_GET_ITEM(shape, d), &n) || n != PyArray_DIM(array, d)) {
            return 0;
        }
    }
    return 1;
}

/* The sum of a dense gradient over dimensions that its tensor does not have or has once: over leading ones or over a single one, where the
 * kernel takes it. NULL declines. */
static PyObject *summed(PyObject *grad, PyObject *shape, PyArrayObject *like)
{
    PyArrayObject *array = array_of(grad);
    int ndim = PyArray_NDIM(array), left = like != NULL ? PyArray_NDIM(like) : (int)PyTuple_GET_SIZE(shape), once = -1;
    if (left > ndim || ndim > MAX_DIMS || Py_TYPE(grad) != S.tensor || !is_contiguous(array) || !float_width(array)) {
        return NULL;
    }
    npy_intp rows = 1, dims[MAX_DIMS + 1], strides[MAX_DIMS + 1], step = PyArray_ITEMSIZE(array);
    for (int d = ndim - 1; d >= 0; d--) {
        npy_intp n = PyArray_DIM(array, d);
        int at = d - (ndim - left);
        if (at < 0) {
            rows *= n;
            continue;
        }
        Py_ssize_t wanted = -1;
        if (like != NULL) {
            wanted = PyArray_DIM(like, at);
        }
        else if (!as_index(PyTuple_GET_ITEM(shape, at), &wanted)) {
            return NULL;
        }
        if (wanted != n) {
            if (wanted != 1 || once >= 0 || left < ndim) {
                return NULL;
            }
            once = d;
        }
        dims[at + 1] = n;
        strides[at + 1] = step;
        step *= n;
    }
    dims[0] = rows;
    strides[0] = step;
    int leading = once < 0;
    PyObject *flat = new_view(array, left + leading, dims + !leading, strides + !leading, PyArray_BYTES(array));
    PyObject *dim = PyLong_FromLong(leading ? 0 : once);
    PyObject *const args[4] = {flat, dim, leading ? Py_False : Py_True, Py_None};
    PyObject *sum = flat == NULL || dim == NULL ? NULL : E.sum_dim(args);
    Py_XDECREF(flat);
    Py_XDECREF(dim);
    return sum == NULL ? NULL : make_tensor(sum, SLOT(grad, S.at_dtype));
}

/* The gradient (a new reference) in the shape and dtype of the tensor that it belongs to. */
static PyObject *fitted(const Run *run, PyObject *grad, PyObject *target, PyObject *number, PyObject *source, Py_ssize_t position)
{
    PyArrayObject *array = PyObject_TypeCheck(grad, S.tensor) ? array_of(grad) : NULL;
    if (array != NULL) {
        PyObject *kind = NULL, *shape = NULL;
        PyArrayObject *like = NULL;
        int fits = 0;
        if (Py_TYPE(target) == S.accumulate) {
            PyObject *variable = variable_of(target);
            if (variable == NULL) {
                return Py_NewRef(grad);
            }
            like = array_of(variable);
            kind = SLOT(variable, S.at_dtype);
            fits = like != NULL && PyArray_SAMESHAPE(array, like);
            Py_DECREF(variable); /* which somebody else holds, or it would have been gone */
        }
        else {
            Py_ssize_t output;
            PyObject *outputs = SLOT(target, S.at_outputs);
            if (outputs != NULL && PyTuple_Check(outputs) && as_index(number, &output) && output >= 0 && output < PyTuple_GET_SIZE(outputs)) {
                PyObject *described = PyTuple_GET_ITEM(outputs, output);
                if (PyTuple_CheckExact(described) && PyTuple_GET_SIZE(described) == 3 && PyTuple_GET_ITEM(described, 2) == S.cpu) {
                    shape = PyTuple_GET_ITEM(described, 0);
                    kind = PyTuple_GET_ITEM(described, 1);
                    fits = has_shape(array, shape);
                }
            }
        }
        if (kind == SLOT(grad, S.at_dtype)) {
            if (fits) {
                return Py_NewRef(grad);
            }
            if (!is_watched() && (like != NULL || (shape != NULL && PyTuple_Check(shape))) && !(run->create && may_have_history(grad))) {
                PyObject *dense = densified(Py_NewRef(grad));
                PyObject *sum = dense == NULL ? NULL : summed(dense, shape, like);
                Py_XDECREF(dense);
                if (sum != NULL || PyErr_Occurred()) {
                    return sum;
                }
            }
        }
    }
    return PyObject_CallFunction(E.fit, "OOOOn", grad, target, number, source, position);
}

/* -------------------------------------------------------------------------------------------------------------- the leaves */

/* Whether nobody else can see the memory of a gradient that only the walk holds, and all of it belongs to the gradient. */
static int is_sole(PyObject *grad, PyArrayObject *array)
{
    if (Py_TYPE(grad) != S.tensor || Py_REFCNT(grad) != 1 || Py_REFCNT(array) != 1 || !PyArray_ISWRITEABLE(array)) {
        return 0;
    }
    PyArrayObject *owner = array;
    PyObject *above = SLOT(grad, S.at_base);
    while (PyArray_BASE(owner) != NULL) {
        PyObject *base = PyArray_BASE(owner);
        Py_ssize_t holders = 1;
        if (above != NULL && above != Py_None && SLOT(above, S.at_data) == base && Py_REFCNT(above) == 1) {
            holders = 2; /* a view's base tensor, which nobody but the view has */
        }
        if (Py_TYPE(base) != &PyArray_Type || Py_REFCNT(base) != holders) {
            return 0;
        }
        owner = (PyArrayObject *)base;
    }
    return (PyArray_FLAGS(owner) & NPY_ARRAY_OWNDATA) && PyArray_SIZE(owner) == PyArray_SIZE(array);
}

/* The same of a payload that is no array. */
static int is_sole_payload(PyObject *grad)
{
    if (Py_TYPE(grad) != S.tensor || Py_REFCNT(grad) != 1 || SLOT(grad, S.at_base) != Py_None || Py_REFCNT(SLOT(grad, S.at_data)) != 1) {
        return 0;
    }
    PyObject *storage = PyObject_GetAttrString(SLOT(grad, S.at_data), "storage");
    if (storage == NULL) {
        PyErr_Clear();
        return 0;
    }
    int sole = Py_REFCNT(storage) == 2; /* the payload's, and this one */
    Py_DECREF(storage);
    return sole;
}

/* What becomes the first gradient of a leaf: the memory that arrived, or a copy laid out like the leaf. Takes over `grad`. Of arrays without elements, which numpy
 * takes for contiguous whatever their strides, Python looks at the strides. */
static PyObject *first_gradient(PyObject *variable, PyObject *grad)
{
    PyArrayObject *array = PyObject_TypeCheck(grad, S.tensor) ? array_of(grad) : NULL, *like = array_of(variable);
    int sole = array == NULL ? is_sole_payload(grad) : is_sole(grad, array);
    PyObject *made;
    if (array != NULL && like != NULL && PyArray_SIZE(array) > 0 && is_contiguous(like) &&
        SLOT(grad, S.at_dtype) == SLOT(variable, S.at_dtype) && ((sole && is_contiguous(array)) || !is_watched())) {
        if (sole && is_contiguous(array)) {
            if (SLOT(grad, S.at_node) == Py_None && SLOT(grad, S.at_base) == Py_None && rare_of(grad) == NULL) {
                return grad;
            }
            made = make_tensor(Py_NewRef((PyObject *)array), SLOT(grad, S.at_dtype));
        }
        else {
            PyObject *copy = new_like(array);
            if (copy != NULL && PyArray_CopyInto((PyArrayObject *)copy, array) < 0) {
                Py_CLEAR(copy);
            }
            made = copy == NULL ? NULL : make_tensor(copy, SLOT(grad, S.at_dtype));
            if (made != NULL && bump_version(made) < 0) { /* it was written once, as `copy_` counts it */
                Py_CLEAR(made);
            }
        }
    }
    else {
        made = PyObject_CallFunctionObjArgs(E.first, variable, grad, sole ? Py_True : Py_False, NULL);
    }
    Py_DECREF(grad);
    return made;
}

/* Adds a gradient to what a leaf has: 1 when it was done, 0 when Python must, -1 with an exception. */
static int add_in_place(const Run *run, PyObject *before, PyObject *grad)
{
    if (Py_TYPE(before) != S.tensor) {
        return 0;
    }
    PyArrayObject *left = summable(run, before), *right = summable(run, grad);
    if (left == NULL || right == NULL || !PyArray_SAMESHAPE(left, right) || !loop_inplace(E.add, left, right, NULL)) {
        return 0;
    }
    return bump_version(before) < 0 ? -1 : 1;
}

/* The end of the tape at a leaf. Takes over `grad`. */
static int accumulate(const Run *run, PyObject *node, PyObject *grad)
{
    PyObject *variable = variable_of(node);
    if (variable == NULL) {
        Py_DECREF(grad);
        return 0;
    }
    int status = -1;
    PyObject *rare = need_rare(variable);
    PyObject *before = rare == NULL ? NULL : Py_NewRef(SLOT(rare, S.at_grad));
    PyObject *after = NULL;
    if (before == NULL) {
        Py_DECREF(grad);
    }
    else if (before == Py_None && !run->create) {
        after = first_gradient(variable, grad);
    }
    else {
        grad = run->create ? grad : densified(grad);
        int done = grad == NULL ? -1 : run->create ? 0 : add_in_place(run, before, grad);
        after = done > 0 ? Py_NewRef(before) : NULL;
        if (!done) {
            after = PyObject_CallFunctionObjArgs(E.added, variable, before, grad, run->create ? Py_True : Py_False, NULL);
        }
        Py_XDECREF(grad);
    }
    if (after != NULL) {
        rare = need_rare(variable); /* what was called may have made another one */
        if (rare != NULL) {
            set_slot(rare, S.at_grad, after);
            after = NULL;
            status = 0;
        }
    }
    Py_XDECREF(after);
    Py_XDECREF(before);
    Py_DECREF(variable);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------------- a node */

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
static int ends_at(const Run *run, int v)
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

static int run_node(Run *run, int v)
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

/* ----------------------------------------------------------------------------------------------------------------- the walk */

/* Starts with the gradients of the tensors; what the walk adds to `grads` holds the memory of those that the caller gave. */
static int start(Run *run, PyObject *tensors, PyObject *grads)
{
    /* First all nodes, then gradients: a visit that holds one may not move, as a visit that is added may make them all do. */
    for (int arriving = 0; arriving < 2; arriving++) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); i++) {
            PyObject *edge = edge_of(PyTuple_GET_ITEM(tensors, i));
            if (edge == Py_None) {
                PyErr_SetString(PyExc_RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn");
            }
            if (edge == NULL || edge == Py_None) {
                Py_XDECREF(edge);
                return -1;
            }
            PyObject *node = PyTuple_GET_ITEM(edge, 0);
            Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(edge, 1));
            int failed = !arriving ? explore(run, node) < 0
                                   : arrive(run, &run->visits[find_visit(run, node)], number, Py_NewRef(PyTuple_GET_ITEM(grads, i))) < 0;
            Py_DECREF(edge);
            if (failed) {
                return -1;
            }
        }
    }
    return 0;
}

static int find_inputs(Run *run, PyObject *inputs)
{
    run->input_count = PyTuple_GET_SIZE(inputs);
    size_t space = (size_t)(run->input_count ? run->input_count : 1);
    run->inputs = PyMem_Malloc(space * sizeof(int));
    run->numbers = PyMem_Malloc(space * sizeof(Py_ssize_t));
    if (run->inputs == NULL || run->numbers == NULL) {
        run->input_count = 0;
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < run->input_count; i++) {
        PyObject *edge = edge_of(PyTuple_GET_ITEM(inputs, i));
        if (edge == NULL) {
            return -1;
        }
        run->inputs[i] = edge == Py_None ? -1 : find_visit(run, PyTuple_GET_ITEM(edge, 0));
        run->numbers[i] = edge == Py_None ? 0 : PyLong_AsSsize_t(PyTuple_GET_ITEM(edge, 1));
        Py_DECREF(edge);
    }
    mark_wanted(run);
    return 0;
}

static int walk(Run *run, PyObject *inputs)
{
    for (int i = run->ordered - 1; i >= 0; i--) {
        int v = run->order[i];
        run->at = i;
        Visit *visit = &run->visits[v];
        if (visit->held == NULL || (inputs != Py_None && !visit->wanted)) {
            continue;
        }
        if (run_node(run, v) < 0) {
            return -1;
        }
    }
    return 0;
}

/* run_backward(tensors, grads, inputs or None, accumulate, retain_graph, create_graph, anomaly): a list of what arrived at the inputs. */
PyObject *run_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 7 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[0]) != PyTuple_GET_SIZE(args[1]) ||
        !(args[2] == Py_None || PyTuple_Check(args[2])) || E.ops == NULL) {
        PyErr_SetString(PyExc_TypeError, "run_backward takes tensors, their gradients, inputs, and four flags");
        return NULL;
    }
    PyObject *const groups[2] = {args[0], args[2]};
    for (int g = 0; g < 2; g++) {
        for (Py_ssize_t i = 0; groups[g] != Py_None && i < PyTuple_GET_SIZE(groups[g]); i++) {
            if (!PyObject_TypeCheck(PyTuple_GET_ITEM(groups[g], i), S.tensor)) {
                PyErr_Format(PyExc_TypeError, "%R is no tensor", PyTuple_GET_ITEM(groups[g], i));
                return NULL;
            }
        }
    }
    Run run = {0};
    run.accumulate = PyObject_IsTrue(args[3]);
    run.keep = PyObject_IsTrue(args[4]);
    run.create = PyObject_IsTrue(args[5]);
    run.anomaly = PyObject_IsTrue(args[6]);
    PyObject *results = PyList_New(0);
    for (Py_ssize_t i = 0; results != NULL && args[2] != Py_None && i < PyTuple_GET_SIZE(args[2]); i++) {
        if (PyList_Append(results, Py_None) < 0) {
            Py_CLEAR(results);
        }
    }
    run.results = results;
    run.number = ++walks;
    run.outer = running;
    running = &run;
    if (results == NULL || start(&run, args[0], args[1]) < 0 || (args[2] != Py_None && find_inputs(&run, args[2]) < 0) ||
        walk(&run, args[2]) < 0) {
        Py_CLEAR(results);
    }
    running = run.outer;
    end_run(&run);
    return results;
}

/* The numbers of the walks that run in this thread, the innermost first. */
PyObject *running_walks(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *numbers = PyList_New(0);
    for (Run *run = running; numbers != NULL && run != NULL; run = run->outer) {
        PyObject *number = PyLong_FromLongLong(run->number);
        if (number == NULL || PyList_Append(numbers, number) < 0) {
            Py_CLEAR(numbers);
        }
        Py_XDECREF(number);
    }
    return numbers;
}

static int executes(const Run *run, int v)
{
    return v >= 0 && (!run->input_count || (run->visits[v].wanted && !ends_at(run, v)));
}

/* Whether the innermost walk runs a node; None for a leaf whose gradient it only captures. */
PyObject *walk_executes(PyObject *module, PyObject *node)
{
    (void)module;
    int v = running == NULL ? -1 : find_visit(running, node);
    if (v >= 0 && Py_TYPE(node) == S.accumulate && ends_at(running, v)) {
        Py_RETURN_NONE;
    }
    return PyBool_FromLong(running != NULL && executes(running, v));
}

/* The nodes that the innermost walk still runs, in their order. */
PyObject *walk_remaining(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *nodes = PyList_New(0);
    for (int i = running == NULL ? -1 : running->at; nodes != NULL && i >= 0; i--) {
        int v = running->order[i];
        if (executes(running, v) && PyList_Append(nodes, running->visits[v].node) < 0) {
            Py_CLEAR(nodes);
        }
    }
    return nodes;
}

/* What Tensor.backward does for one plain float without any arguments but retain_graph: None when it did not. */
PyObject *quick_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 2 || E.ops == NULL || is_watched() || !is_plain(args[0]) || array_of(args[0]) == NULL) {
        Py_RETURN_FALSE;
    }
    PyArrayObject *array = array_of(args[0]);
    if (PyArray_SIZE(array) != 1 || !float_width(array) || !is_contiguous(array)) {
        Py_RETURN_FALSE;
    }
    PyObject *edge = edge_of(args[0]);
    if (edge == NULL) {
        return NULL;
    }
    int without = edge == Py_None;
    Py_DECREF(edge);
    PyObject *anomaly = without ? NULL : PyObject_GetAttr(S.tls, E.anomaly);
    if (anomaly == NULL) {
        return without ? Py_NewRef(Py_False) : NULL;
    }
    PyObject *ones = new_like(array);
    if (ones != NULL && float_width(array) == 4) {
        *(float *)PyArray_DATA((PyArrayObject *)ones) = 1;
    }
    else if (ones != NULL) {
        *(double *)PyArray_DATA((PyArrayObject *)ones) = 1;
    }
    PyObject *grad = ones == NULL ? NULL : make_tensor(ones, SLOT(args[0], S.at_dtype));
    PyObject *grads = grad == NULL ? NULL : PyTuple_Pack(1, grad);
    Py_XDECREF(grad);
    PyObject *tensors = grads == NULL ? NULL : PyTuple_Pack(1, args[0]);
    PyObject *enabled = tensors == NULL ? NULL : PyObject_GetAttr(S.tls, S.grad_enabled);
    PyObject *results = NULL;
    if (enabled != NULL && PyObject_SetAttr(S.tls, S.grad_enabled, Py_False) == 0) {
        PyObject *const given[7] = {tensors, grads, Py_None, Py_True, args[1], Py_False, anomaly};
        results = run_backward(NULL, given, 7);
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (PyObject_SetAttr(S.tls, S.grad_enabled, enabled) < 0) {
            Py_CLEAR(results);
        }
        if (type != NULL) {
            PyErr_Restore(type, value, traceback);
        }
    }
    Py_DECREF(anomaly);
    Py_XDECREF(grads);
    Py_XDECREF(tensors);
    Py_XDECREF(enabled);
    if (results == NULL) {
        return NULL;
    }
    Py_DECREF(results);
    Py_RETURN_TRUE;
}

/* The tensor that an entry of `saved` stands for, a new reference; NULL without an exception when Python must look. */
PyObject *unpack_entry(PyObject *node, PyObject *entry)
{
    if (PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 2) {
        PyObject *tensor = PyTuple_GET_ITEM(entry, 0), *version = PyTuple_GET_ITEM(entry, 1);
        if (!PyObject_TypeCheck(tensor, S.tensor)) {
            return NULL;
        }
        PyObject *now = rare_number(counter_of(tensor), S.at_count);
        Py_ssize_t left, right;
        int same = now == version || (as_index(now, &left) && as_index(version, &right) && left == right);
        return same ? Py_NewRef(tensor) : NULL;
    }
    if (Py_TYPE(entry) == S.saved_output) {
        PyObject *reference = SLOT(entry, S.at_reference), *keeper = NULL;
#if PY_VERSION_HEX >= 0x030D0000
        if (PyWeakref_GetRef(reference, &keeper) < 0) {
            PyErr_Clear();
            return NULL;
        }
#else
        keeper = PyWeakref_GetObject(reference);
        keeper = keeper == NULL || keeper == Py_None ? NULL : Py_NewRef(keeper);
#endif
        int same = 1;
        if (keeper != NULL) {
            Py_ssize_t left, right;
            PyObject *now = rare_number(keeper, S.at_count), *version = SLOT(entry, S.at_saved_version);
            same = now == version || (as_index(now, &left) && as_index(version, &right) && left == right);
            Py_DECREF(keeper);
        }
        if (!same) {
            return NULL;
        }
        PyObject *made = make_tensor(Py_NewRef(SLOT(entry, S.at_payload)), SLOT(entry, S.at_kind)), *number = SLOT(entry, S.at_saved_number);
        if (made != NULL) {
            set_slot(made, S.at_node, Py_NewRef(node));
            if (number != S.zero) {
                PyObject *rare = need_rare(made);
                if (rare == NULL) {
                    Py_DECREF(made);
                    return NULL;
                }
                set_slot(rare, S.at_number, Py_NewRef(number));
            }
        }
        return made;
    }
    if (PyList_CheckExact(entry)) {
        PyObject *all = PyList_New(PyList_GET_SIZE(entry));
        for (Py_ssize_t i = 0; all != NULL && i < PyList_GET_SIZE(entry); i++) {
            PyObject *item = unpack_entry(node, PyList_GET_ITEM(entry, i));
            if (item == NULL) {
                Py_CLEAR(all);
                break;
            }
            PyList_SET_ITEM(all, i, item);
        }
        return all;
    }
    return entry == Py_None ? Py_NewRef(entry) : NULL;
}

static PyObject *unpack(PyObject *node, PyObject *unused)
{
    (void)unused;
    PyObject *saved = SLOT(node, S.at_saved);
    if (saved == NULL || !PyList_CheckExact(saved)) {
        return PyObject_CallOneArg(E.unpack, node);
    }
    Py_INCREF(saved);
    PyObject *made = PyList_New(PyList_GET_SIZE(saved));
    for (Py_ssize_t i = 0; made != NULL && i < PyList_GET_SIZE(saved); i++) {
        PyObject *entry = PyList_GET_ITEM(saved, i);
        PyObject *item = unpack_entry(node, entry);
        if (item == NULL && !PyErr_Occurred()) {
            item = PyObject_CallFunctionObjArgs(E.unpack_one, node, entry, NULL);
        }
        if (item == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyList_SET_ITEM(made, i, item);
    }
    Py_DECREF(saved);
    return made;
}

static PyMethodDef unpack_method = {"unpack", unpack, METH_NOARGS,
                                    "unpack($self, /)\n--\n\nThe saved tensors. RuntimeError when they were freed, or changed in place since."};

/* connect_engine(ops, fit, first, added, before, after, accumulated, check_nan, count_error, release, unpack, unpack_one, add) */
PyObject *connect_engine(PyObject *module, PyObject *args)
{
    (void)module;
    EngineState made = {0};
    PyObject *add;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOOO", &made.ops, &made.fit, &made.first, &made.added, &made.before, &made.after,
                                      &made.accumulated, &made.check_nan, &made.count_error, &made.plain_release, &made.unpack, &made.unpack_one, &add)) {
        return NULL;
    }
    const Slot of_leaf[] = {{"reference", &made.at_leaf}, {"extras", &made.at_extras}, {NULL, NULL}};
    if (find_slots((PyObject *)S.accumulate, of_leaf) < 0) {
        return NULL;
    }
    made.apply = PyUnicode_InternFromString("apply");
    made.release = PyUnicode_InternFromString("release");
    made.anomaly = PyUnicode_InternFromString("anomaly");
    made.sum_dim = find_kernel("reduction.sum_dim_fast");
    made.mm = find_kernel("matmul.fast_mm");
    made.layer_norm = find_kernel("norm.native_layer_norm");
    made.layer_norm_backward = find_kernel("norm.native_layer_norm_backward");
    if (made.apply == NULL || made.release == NULL || made.anomaly == NULL || made.sum_dim == NULL || made.mm == NULL || made.layer_norm == NULL || made.layer_norm_backward == NULL || !find_loops(add, 0, made.add)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_LookupError, "a kernel that the walk needs is not there");
        }
        return NULL;
    }
    PyObject *const kept[] = {made.ops,   made.fit,         made.first,     made.added,       made.before,
                              made.after, made.accumulated, made.check_nan, made.count_error, made.plain_release, made.unpack, made.unpack_one};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        Py_INCREF(kept[i]);
    }
    E = made;
    PyObject *method = PyDescr_NewMethod(S.node, &unpack_method);
    int status = method == NULL ? -1 : PyObject_SetAttrString((PyObject *)S.node, "unpack", method);
    Py_XDECREF(method);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}
