/* Fast: a callable that stands before a generated function or method.
 *
 * It holds the paths of the function's overloads. A path binds the arguments to the operator's parameters, runs a loop or a kernel on the
 * payloads, and makes the tensor; when an input may have a history the operator records it. Whatever does not fit is left to the Python
 * function, called with the very arguments.
 */
#include "fast.h"

/* ------------------------------------------------------------------------------------------------------------- binding */

static int same_name(PyObject *a, PyObject *b)
{
    return a == b || (PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_Compare(a, b) == 0);
}

/* args[1:] as one tuple of ints, or NULL. */
static PyObject *gather(PyObject *const *args, Py_ssize_t n)
{
    for (Py_ssize_t i = 1; i < n; i++) {
        if (!PyLong_CheckExact(args[i])) {
            return NULL;
        }
    }
    PyObject *made = PyTuple_New(n - 1);
    if (made == NULL) {
        PyErr_Clear();
        return NULL;
    }
    for (Py_ssize_t i = 1; i < n; i++) {
        PyTuple_SET_ITEM(made, i - 1, Py_NewRef(args[i]));
    }
    return made;
}

/* Fills `bound` with borrowed references in the order of the parameters; 0 when the arguments do not fit. `owned` is released after use. */
static int bind(const Path *path, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **bound, PyObject **owned)
{
    Py_ssize_t given = n;
    if (path->gathers && n > 1 && (n > 2 || PyLong_CheckExact(args[1]))) {
        *owned = gather(args, n);
        if (*owned == NULL) {
            return 0;
        }
        bound[0] = args[0];
        bound[1] = *owned;
        given = 2;
    }
    else if (n > path->positional) {
        return 0;
    }
    else {
        for (Py_ssize_t i = 0; i < n; i++) {
            bound[i] = args[i];
        }
    }
    for (Py_ssize_t i = given; i < path->params; i++) {
        bound[i] = NULL;
    }
    if (kwnames != NULL) {
        Py_ssize_t count = PyTuple_GET_SIZE(kwnames);
        for (Py_ssize_t k = 0; k < count; k++) {
            PyObject *name = PyTuple_GET_ITEM(kwnames, k);
            Py_ssize_t at = given;
            while (at < path->params && !same_name(name, PyTuple_GET_ITEM(path->names, at))) {
                at++;
            }
            if (at == path->params || bound[at] != NULL) {
                return 0;
            }
            bound[at] = args[n + k];
        }
    }
    for (Py_ssize_t i = given; i < path->params; i++) {
        if (bound[i] == NULL) {
            if (path->required[i]) {
                return 0;
            }
            bound[i] = PyTuple_GET_ITEM(path->defaults, i);
        }
    }
    if (path->swaps) {
        PyObject *first = bound[0];
        bound[0] = bound[1];
        bound[1] = first;
    }
    for (Py_ssize_t i = 1; i < path->params; i++) {
        /* A list is the caller's, who may change it before the derivative is taken. */
        if (path->roles[i] == 'L' && PyList_CheckExact(bound[i]) && *owned == NULL) {
            *owned = PyList_AsTuple(bound[i]);
            if (*owned == NULL) {
                PyErr_Clear();
                return 0;
            }
            bound[i] = *owned;
        }
    }
    return 1;
}

/* ------------------------------------------------------------------------------------------------------------- calling */

static Recordable recordable(const Path *path)
{
    return (Recordable){path->op,      (const Blocked *)path->loops_of_op, path->blocks, path->roles, path->params, path->numbers, path->is_view,
                        path->run == run_kernel ? path->fast : NULL};
}

/* The pending result of a call in a pipeline. `key` is set where the call may be learnt from. */
static PyObject *run_recorded(const Path *path, PyObject *recorder, PyObject *const *bound, PyObject **key)
{
    if (path->inplace) {
        return NULL;
    }
    const Recordable call = recordable(path);
    int history = 0;
    PyObject *made = path->loops_of_op == NULL ? NULL : pipeline_record(recorder, &call, bound, &history);
    if (made == NULL && !PyErr_Occurred()) {
        if (path->is_view && is_plain(bound[0]) && array_of(bound[0]) != NULL) {
            return path->run(path, bound); /* a view of memory that is there */
        }
        PyObject *found = recall_key(recorder, &call, bound);
        if (found == NULL) {
            return NULL;
        }
        made = recall(recorder, &call, found, bound, &history);
        if (made == NULL && *key == NULL) {
            *key = Py_NewRef(found);
        }
        Py_DECREF(found);
        if (made != NULL && path->is_view) {
            return finish_view(made, bound[0], path->op, bound, path->params);
        }
    }
    return made == NULL || !history || !path->records ? made : record_call(path->op, made, bound, path->params);
}

static PyObject *call_recording(Fast *self, PyObject *recorder, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyObject *bound[MAX_PARAMS + 1], *owned = NULL, *key = NULL, *result = NULL;
    const Path *learnt = NULL;
    for (int i = 0; i < self->count && result == NULL && learnt == NULL; i++) {
        const Path *path = &self->paths[i];
        if (bind(path, args, n, kwnames, bound, &owned)) {
            result = run_recorded(path, recorder, bound, &key);
            learnt = key == NULL ? NULL : path;
        }
        if (learnt == NULL) {
            Py_CLEAR(owned);
        }
        if (PyErr_Occurred()) {
            Py_CLEAR(result);
            goto done;
        }
    }
    if (result == NULL) {
        result = PyObject_Vectorcall(self->fallback, args, nargsf, kwnames);
        if (result != NULL && learnt != NULL) {
            const Recordable call = recordable(learnt);
            recall_learn(recorder, &call, key, bound, result);
        }
    }
done:
    Py_XDECREF(owned);
    Py_XDECREF(key);
    return result;
}

PyObject *fast_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Fast *self = (Fast *)callable;
    int special = is_special();
    if (special) {
        PyObject *recorder = pipeline_recorder();
        if (recorder != NULL) {
            PyObject *result = call_recording(self, recorder, args, nargsf, kwnames);
            Py_DECREF(recorder);
            return result;
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    if (!special || is_recording()) { /* pipelines of other threads change nothing here */
        Py_ssize_t n = PyVectorcall_NARGS(nargsf);
        for (int i = 0; i < self->count; i++) {
            PyObject *bound[MAX_PARAMS + 1];
            PyObject *owned = NULL;
            PyObject *result = NULL;
            if (bind(&self->paths[i], args, n, kwnames, bound, &owned)) {
                result = self->paths[i].run(&self->paths[i], bound);
            }
            Py_XDECREF(owned);
            if (result != NULL || PyErr_Occurred()) {
                return result;
            }
        }
    }
    return PyObject_Vectorcall(self->fallback, args, nargsf, kwnames);
}
