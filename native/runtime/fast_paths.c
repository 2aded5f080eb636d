/* The paths of Fast: an operator by a ufunc's loop, a loop of the block interpreter, or a kernel, on the payloads of plain tensors. */
#include "extents.h"
#include "fast.h"

/* The arguments of a ufunc's path that are no operands must have their defaults. */
int has_defaults(const Path *path, int operands, PyObject *const *bound)
{
    for (int i = operands; i < path->params; i++) {
        PyObject *value = PyTuple_GET_ITEM(path->defaults, i);
        if (bound[i] != value) {
            if (!PyLong_CheckExact(bound[i]) || !PyLong_CheckExact(value)) {
                return 0;
            }
            int equal = PyObject_RichCompareBool(bound[i], value, Py_EQ);
            if (equal <= 0) {
                PyErr_Clear();
                return 0;
            }
        }
    }
    return 1;
}

static inline PyObject *wrapped(const Path *path, PyObject *data, PyObject *kind, int history, PyObject *const *bound)
{
    PyObject *made = make_result(data, path->to_bool ? S.bool_ : kind);
    if (made == NULL || !history || !path->records) {
        return made;
    }
    return record_call(path->op, made, bound, path->params);
}

PyObject *run_binary(const Path *path, PyObject *const *bound)
{
    PyObject *first = bound[path->swaps], *second = bound[!path->swaps];
    if (!is_plain(first) || !has_defaults(path, path->operands, bound)) {
        return NULL;
    }
    PyObject *kind = SLOT(first, S.at_dtype);
    if (kind != S.float32 && kind != S.float64) {
        return NULL;
    }
    PyArrayObject *left = array_of(first);
    if (left == NULL) {
        return NULL;
    }
    PyObject *data;
    int history = may_have_history(first);
    if (path->numbers && (PyFloat_CheckExact(second) || PyLong_CheckExact(second))) {
        data = loop_number(path->loops, path->to_bool, left, second, path->reflected);
    }
    else {
        if (!is_plain(second) || SLOT(second, S.at_dtype) != kind) {
            return NULL;
        }
        PyArrayObject *right = array_of(second);
        if (right == NULL) {
            return NULL;
        }
        history |= may_have_history(second);
        data = path->reflected ? NULL : loop_binary(path->loops, path->to_bool, left, right);
    }
    return data == NULL ? NULL : wrapped(path, data, kind, history, bound);
}

PyObject *run_unary(const Path *path, PyObject *const *bound)
{
    PyObject *first = bound[0];
    if (!is_plain(first) || !has_defaults(path, path->operands, bound)) {
        return NULL;
    }
    PyObject *kind = SLOT(first, S.at_dtype);
    PyArrayObject *array = array_of(first);
    if ((kind != S.float32 && kind != S.float64) || array == NULL) {
        return NULL;
    }
    PyObject *data = loop_unary(path->loops, path->to_bool, array);
    return data == NULL ? NULL : wrapped(path, data, kind, may_have_history(first), bound);
}

/* Whether an in-place operation on `target` is recorded, refused, or needs a look at histories: then Python does it. */
int may_change(PyObject *target, PyObject *other)
{
    PyObject *base = SLOT(target, S.at_base);
    int is_view = base != NULL && base != Py_None;
    if ((is_inference(target) || (is_view && is_inference(base))) && !infers()) {
        return 0;
    }
    int viewed = is_view && SLOT(target, S.at_node) != S.view &&
                 (is_differentiable(SLOT(target, S.at_dtype)) || SLOT(base, S.at_node) != Py_None);
    if (!viewed && !may_have_history(target) && (other == NULL || !may_have_history(other))) {
        return 1;
    }
    int enabled = grad_enabled();
    if (enabled < 0) {
        PyErr_Clear();
    }
    return enabled == 0;
}

PyObject *run_inplace(const Path *path, PyObject *const *bound)
{
    PyObject *target = bound[0], *second = path->operands == 2 ? bound[1] : NULL;
    if (!is_plain(target) || !has_defaults(path, path->operands, bound)) {
        return NULL;
    }
    PyObject *kind = SLOT(target, S.at_dtype), *number = NULL;
    PyArrayObject *array = array_of(target), *other = NULL;
    if (array == NULL || (kind != S.float32 && kind != S.float64)) {
        return NULL;
    }
    if (second != NULL) {
        if (path->numbers && (PyFloat_CheckExact(second) || PyLong_CheckExact(second))) {
            number = second;
            second = NULL;
        }
        else if (!is_plain(second) || SLOT(second, S.at_dtype) != kind || (other = array_of(second)) == NULL) {
            return NULL;
        }
    }
    if (!may_change(target, second) || !loop_inplace(path->loops, array, other, number) || bump_version(target) < 0) {
        return NULL;
    }
    return Py_NewRef(target);
}

PyObject *run_kernel(const Path *path, PyObject *const *bound)
{
    PyObject *payloads[MAX_PARAMS + 1];
    int history = 0;
    for (int i = 0; i < path->params; i++) {
        PyObject *value = bound[i];
        char role = path->roles[i];
        if (role == 'T' || (role == 't' && value != Py_None)) {
            if (!is_plain(value)) {
                return NULL;
            }
            PyArrayObject *array = array_of(value);
            if (array == NULL) {
                return NULL;
            }
            history |= may_have_history(value);
            payloads[i + 1] = (PyObject *)array;
        }
        else {
            payloads[i + 1] = value;
        }
    }
    PyObject *data = NULL;
    if (path->native != NULL) {
        data = path->native(payloads + 1);
    }
    if (data == NULL) {
        if (PyErr_Occurred() || path->kernel == NULL) {
            return NULL;
        }
        /* The kernel may run Python code that gives a tensor another payload. */
        for (int i = 0; i < path->params; i++) {
            Py_INCREF(payloads[i + 1]);
        }
        PyObject *memory;
        data = enter_buffers(payloads + 1, path->params, &memory) < 0
                   ? NULL
                   : PyObject_Vectorcall(path->kernel, payloads + 1, (size_t)path->params | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (memory != NULL) {
            PyObject *type, *value, *traceback;
            PyErr_Fetch(&type, &value, &traceback);
            if (leave_buffers(memory) < 0) {
                PyErr_Clear();
            }
            PyErr_Restore(type, value, traceback);
        }
        for (int i = 0; i < path->params; i++) {
            Py_DECREF(payloads[i + 1]);
        }
        if (data == NULL) {
            return NULL;
        }
        if (!is_array(data)) {
            Py_DECREF(data);
            return NULL;
        }
    }
    PyObject *kind = path->result != NULL ? path->result : SLOT(bound[path->like], S.at_dtype);
    if (!path->is_view) {
        return wrapped(path, data, kind, history, bound);
    }
    PyObject *made = make_tensor(data, kind);
    return made == NULL ? NULL : finish_view(made, bound[0], path->op, bound, path->params);
}

/* What an operator by a loop gets: payloads of plain tensors of one float dtype, the first one contiguous, and the other arguments as they are. */
typedef struct {
    PyObject *payloads[MAX_PARAMS];
    PyObject *kind;
    int history;
    int dense; /* all are contiguous */
} Given;

static int read_given(const Path *path, PyObject *const *bound, Given *given)
{
    given->kind = NULL;
    given->history = 0;
    given->dense = 1;
    for (int i = 0; i < path->params; i++) {
        PyObject *value = given->payloads[i] = bound[i];
        if (!(path->roles[i] == 'T' || (path->roles[i] == 't' && value != Py_None))) {
            continue;
        }
        if (i > 0 && path->numbers && (PyFloat_CheckExact(value) || PyLong_CheckExact(value))) {
            if (!has_plain_strides((PyArrayObject *)given->payloads[0])) {
                return 0;
            }
            continue;
        }
        PyArrayObject *array = is_plain(value) ? array_of(value) : NULL;
        if (array == NULL || (given->kind != NULL && SLOT(value, S.at_dtype) != given->kind)) {
            return 0;
        }
        if (!is_contiguous(array)) {
            given->dense = 0;
            if (i == 0) {
                return 0;
            }
        }
        given->kind = SLOT(value, S.at_dtype);
        given->history |= may_have_history(value);
        given->payloads[i] = (PyObject *)array;
    }
    return given->kind == S.float32 || given->kind == S.float64;
}

PyObject *run_blocked(const Path *path, PyObject *const *bound)
{
    Given given;
    PyObject *data = NULL;
    if (read_given(path, bound, &given)) {
        data = blocked_apply(path->blocked, given.payloads, path->params, NULL);
    }
    /* The rule says how a result is laid out that a strided operand stretches. */
    if (data != NULL && !given.dense && !PyArray_SAMESHAPE((PyArrayObject *)data, (PyArrayObject *)given.payloads[0])) {
        Py_CLEAR(data);
    }
    if (data != NULL) {
        return wrapped(path, data, PyArray_ISBOOL((PyArrayObject *)data) ? S.bool_ : given.kind, given.history, bound);
    }
    return PyErr_Occurred() || path->operands ? NULL : run_kernel(path, bound);
}

PyObject *run_blocked_inplace(const Path *path, PyObject *const *bound)
{
    Given given;
    if (!read_given(path, bound, &given)) {
        return NULL;
    }
    PyObject *second = path->operands == 2 && is_plain(bound[1]) ? bound[1] : NULL;
    if (!PyArray_ISWRITEABLE((PyArrayObject *)given.payloads[0]) || !may_change(bound[0], second)) {
        return NULL;
    }
    PyArrayObject *target = (PyArrayObject *)given.payloads[0], *other = second == NULL ? NULL : (PyArrayObject *)given.payloads[1];
    if (other != NULL && arrays_meet(target, other) &&
        !(PyArray_BYTES(target) == PyArray_BYTES(other) && PyArray_SAMESHAPE(target, other) && is_contiguous(other))) {
        return NULL; /* refused in PyTorch's words */
    }
    PyObject *done = blocked_apply(path->blocked, given.payloads, path->params, target);
    Py_XDECREF(done);
    return done == NULL || bump_version(bound[0]) < 0 ? NULL : Py_NewRef(bound[0]);
}
