/* Fast: a callable that stands before a generated function or method.
 *
 * It holds the paths of the function's overloads. A path binds the arguments to the operator's parameters, runs a loop or a kernel on the
 * payloads, and makes the tensor; when an input may have a history the operator records it. Whatever does not fit is left to the Python
 * function, called with the very arguments.
 */
#include "pipeline.h"
#include <structmember.h>

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

/* ------------------------------------------------------------------------------------------------------------- running */

/* The arguments of a ufunc's path that are no operands must have their defaults. */
static int has_defaults(const Path *path, PyObject *const *bound)
{
    for (int i = path->operands; i < path->params; i++) {
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
    PyObject *made = make_tensor(data, path->to_bool ? S.bool_ : kind);
    if (made == NULL || !history || !path->records) {
        return made;
    }
    return record_call(path->op, made, bound, path->params);
}

static PyObject *run_binary(const Path *path, PyObject *const *bound)
{
    PyObject *first = bound[path->swaps], *second = bound[!path->swaps];
    if (!is_plain(first) || !has_defaults(path, bound)) {
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

static PyObject *run_unary(const Path *path, PyObject *const *bound)
{
    PyObject *first = bound[0];
    if (!is_plain(first) || !has_defaults(path, bound)) {
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
static int may_change(PyObject *target, PyObject *other)
{
    PyObject *inference = PyObject_GetAttr(target, S.inference);
    Py_XDECREF(inference);
    if (inference != Py_False) {
        PyErr_Clear();
        return 0;
    }
    PyObject *base = SLOT(target, S.at_base);
    int viewed = base != NULL && base != Py_None && SLOT(target, S.at_node) != S.view;
    if (!viewed && !may_have_history(target) && (other == NULL || !may_have_history(other))) {
        return 1;
    }
    int enabled = grad_enabled();
    if (enabled < 0) {
        PyErr_Clear();
    }
    return enabled == 0;
}

static PyObject *run_inplace(const Path *path, PyObject *const *bound)
{
    PyObject *target = bound[0], *second = path->operands == 2 ? bound[1] : NULL;
    if (!is_plain(target) || !has_defaults(path, bound)) {
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

static PyObject *run_kernel(const Path *path, PyObject *const *bound)
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
        data = PyObject_Vectorcall(path->kernel, payloads + 1, (size_t)path->params | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
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

static PyObject *run_blocked(const Path *path, PyObject *const *bound)
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

static PyObject *run_blocked_inplace(const Path *path, PyObject *const *bound)
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

static PyObject *fast_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Fast *self = (Fast *)callable;
    PyObject *recorder = is_special() ? pipeline_recorder() : NULL;
    if (recorder != NULL) {
        PyObject *result = call_recording(self, recorder, args, nargsf, kwnames);
        Py_DECREF(recorder);
        return result;
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (!is_special() || is_recording()) { /* pipelines of other threads change nothing here */
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

/* --------------------------------------------------------------------------------------------------------- construction */

/* One path from its description (see `accelerate` in _dispatch/native.py). */
static int read_path(Path *path, PyObject *description)
{
    const char *kind, *roles, *kernel_name;
    PyObject *op, *names, *defaults, *required, *target, *result, *blocked, *loops, *blocks, *fast;
    int positional, gathers, to_bool, is_view, records, like, swaps, reflected, numbers, inplace;
    if (!PyArg_ParseTuple(description, "sOO!O!O!sOzOiiiiiiiiiiOOOO", &kind, &op, &PyTuple_Type, &names, &PyTuple_Type, &defaults, &PyTuple_Type,
                          &required, &roles, &target, &kernel_name, &result, &positional, &gathers, &to_bool, &is_view, &records,
                          &like, &swaps, &reflected, &numbers, &inplace, &blocked, &loops, &blocks, &fast)) {
        return -1;
    }
    Py_ssize_t params = PyTuple_GET_SIZE(names);
    if (params > MAX_PARAMS || PyTuple_GET_SIZE(defaults) != params || PyTuple_GET_SIZE(required) != params ||
        (Py_ssize_t)strlen(roles) != params || like < 0 || like >= params || positional > params) {
        PyErr_SetString(PyExc_ValueError, "a path whose parts disagree");
        return -1;
    }
    memset(path, 0, sizeof(*path));
    strcpy(path->roles, roles);
    for (Py_ssize_t i = 0; i < params; i++) {
        path->required[i] = PyObject_IsTrue(PyTuple_GET_ITEM(required, i));
    }
    path->params = (int)params;
    path->positional = positional;
    path->gathers = gathers;
    path->to_bool = to_bool;
    path->is_view = is_view;
    path->inplace = inplace;
    path->records = records;
    path->like = like;
    if (strcmp(kind, "kernel") == 0) {
        path->run = run_kernel;
        path->native = kernel_name == NULL ? NULL : find_kernel(kernel_name);
    }
    else {
        if (!find_loops(target, to_bool, path->loops)) {
            PyErr_SetString(PyExc_LookupError, "a ufunc without loops for float32 and float64");
            return -1;
        }
        path->operands = strcmp(kind, "unary") == 0 ? 1 : 2;
        path->numbers = numbers;
        path->swaps = swaps;
        path->reflected = reflected;
        path->run = inplace ? run_inplace : path->operands == 1 ? run_unary : run_binary;
        if (params < path->operands) {
            PyErr_SetString(PyExc_ValueError, "a ufunc with more operands than parameters");
            return -1;
        }
    }
    if (Py_TYPE(blocked) == &BlockedType) {
        path->numbers = numbers;
        path->run = inplace ? run_blocked_inplace : run_blocked;
        path->blocked = (Blocked *)Py_NewRef(blocked);
    }
    if (Py_TYPE(loops) == &BlockedType && PyTuple_CheckExact(blocks)) {
        path->numbers = numbers;
        path->loops_of_op = Py_NewRef(loops);
        path->blocks = Py_NewRef(blocks);
    }
    path->fast = fast == Py_None ? NULL : Py_NewRef(fast);
    path->op = Py_NewRef(op);
    path->names = Py_NewRef(names);
    path->defaults = Py_NewRef(defaults);
    path->result = result == Py_None ? NULL : Py_NewRef(result);
    path->kernel = Py_NewRef(target);
    return 0;
}

static PyObject *fast_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"fallback", "paths", NULL};
    PyObject *fallback, *paths;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!", keywords, &fallback, &PyTuple_Type, &paths)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(paths) > MAX_PATHS) {
        PyErr_SetString(PyExc_ValueError, "too many paths");
        return NULL;
    }
    Fast *self = (Fast *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = fast_call;
    self->fallback = Py_NewRef(fallback);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(paths); i++) {
        if (read_path(&self->paths[i], PyTuple_GET_ITEM(paths, i)) < 0) {
            Py_DECREF(self);
            return NULL;
        }
        self->count++;
    }
    return (PyObject *)self;
}

static int fast_traverse(Fast *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fallback);
    Py_VISIT(self->dict);
    for (int i = 0; i < self->count; i++) {
        Py_VISIT(self->paths[i].op);
        Py_VISIT(self->paths[i].names);
        Py_VISIT(self->paths[i].defaults);
        Py_VISIT(self->paths[i].result);
        Py_VISIT(self->paths[i].kernel);
        Py_VISIT(self->paths[i].blocked);
        Py_VISIT(self->paths[i].loops_of_op);
        Py_VISIT(self->paths[i].blocks);
        Py_VISIT(self->paths[i].fast);
    }
    return 0;
}

static int fast_clear(Fast *self)
{
    int count = self->count;
    self->count = 0;
    for (int i = 0; i < count; i++) {
        Py_CLEAR(self->paths[i].op);
        Py_CLEAR(self->paths[i].names);
        Py_CLEAR(self->paths[i].defaults);
        Py_CLEAR(self->paths[i].result);
        Py_CLEAR(self->paths[i].kernel);
        Py_CLEAR(self->paths[i].blocked);
        Py_CLEAR(self->paths[i].loops_of_op);
        Py_CLEAR(self->paths[i].blocks);
        Py_CLEAR(self->paths[i].fast);
    }
    Py_CLEAR(self->dict);
    return 0;
}

static void fast_dealloc(Fast *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    fast_clear(self);
    Py_CLEAR(self->fallback);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *fast_bind(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)type;
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, instance);
}

static PyObject *fast_repr(Fast *self)
{
    return PyObject_Repr(self->fallback);
}

/* Pickled by name, like the function. */
static PyObject *fast_reduce(Fast *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(self->fallback, "__qualname__");
}

static PyMethodDef fast_methods[] = {
    {"__reduce__", (PyCFunction)fast_reduce, METH_NOARGS, "The name to pickle by."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef fast_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Fast, fallback), READONLY, "The Python function behind."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef fast_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject FastType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Fast",
    .tp_doc = "A function with short cuts for plain CPU tensors.",
    .tp_basicsize = sizeof(Fast),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = fast_new,
    .tp_dealloc = (destructor)fast_dealloc,
    .tp_traverse = (traverseproc)fast_traverse,
    .tp_clear = (inquiry)fast_clear,
    .tp_repr = (reprfunc)fast_repr,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Fast, vectorcall),
    .tp_descr_get = fast_bind,
    .tp_dictoffset = offsetof(Fast, dict),
    .tp_weaklistoffset = offsetof(Fast, weakrefs),
    .tp_methods = fast_methods,
    .tp_members = fast_members,
    .tp_getset = fast_getset,
};
