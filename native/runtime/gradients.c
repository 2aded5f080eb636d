/* Gradients that arrive at the outputs of nodes and at leaves: their sums, shapes and owners. */
#include "walk.h"

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
int reach(Visit *visit, Py_ssize_t number)
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
int arrive(Run *run, Visit *visit, Py_ssize_t number, PyObject *grad)
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
    return referent(SLOT(node, E.at_leaf));
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
PyObject *fitted(const Run *run, PyObject *grad, PyObject *target, PyObject *number, PyObject *source, Py_ssize_t position)
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
    if (storage == NULL) { /* a sparse one: its members go along with it, whoever else has them */
        PyErr_Clear();
        return 1;
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
int accumulate(const Run *run, PyObject *node, PyObject *grad)
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
