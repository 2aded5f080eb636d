/* The type of Fast: its construction from descriptions of paths, and what makes it pass for a function. */
#include "fast.h"
#include <structmember.h>

/* How the arguments are bound: (names, defaults, required, optional, kinds, sizes, casts, positional, gathers, swaps, has_out, has_requires_grad). */
static int read_binding(Path *path, PyObject *description)
{
    PyObject *names, *defaults, *required, *optional, *sizes, *casts;
    const char *kinds;
    if (!PyArg_ParseTuple(description, "O!O!O!O!sO!O!iiiii", &PyTuple_Type, &names, &PyTuple_Type, &defaults, &PyTuple_Type, &required,
                          &PyTuple_Type, &optional, &kinds, &PyTuple_Type, &sizes, &PyTuple_Type, &casts, &path->positional, &path->gathers,
                          &path->swaps, &path->has_out, &path->has_requires_grad)) {
        return -1;
    }
    Py_ssize_t params = PyTuple_GET_SIZE(names);
    if (params > MAX_PARAMS || PyTuple_GET_SIZE(defaults) != params || PyTuple_GET_SIZE(required) != params || PyTuple_GET_SIZE(optional) != params ||
        PyTuple_GET_SIZE(sizes) != params || PyTuple_GET_SIZE(casts) != params || (Py_ssize_t)strlen(kinds) != params || path->positional > params) {
        PyErr_SetString(PyExc_ValueError, "a binding whose parts disagree");
        return -1;
    }
    strcpy(path->kinds, kinds);
    path->params = (int)params;
    for (Py_ssize_t i = 0; i < params; i++) {
        path->required[i] = PyObject_IsTrue(PyTuple_GET_ITEM(required, i));
        path->optional[i] = PyObject_IsTrue(PyTuple_GET_ITEM(optional, i));
        path->casts[i] = PyObject_IsTrue(PyTuple_GET_ITEM(casts, i));
        path->sizes[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(sizes, i));
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    path->names = Py_NewRef(names);
    path->defaults = Py_NewRef(defaults);
    return 0;
}

/* A short cut: (kind, roles, target, kernel_name, result, to_bool, like, reflected, blocked, loops, blocks, fast). */
static int read_short_cut(Path *path, PyObject *description)
{
    const char *kind, *roles, *kernel_name;
    PyObject *target, *result, *blocked, *loops, *blocks, *fast;
    if (!PyArg_ParseTuple(description, "ssOzOiiiOOOO", &kind, &roles, &target, &kernel_name, &result, &path->to_bool, &path->like, &path->reflected,
                          &blocked, &loops, &blocks, &fast)) {
        return -1;
    }
    if ((Py_ssize_t)strlen(roles) != path->params || path->like < 0 || path->like >= path->params) {
        PyErr_SetString(PyExc_ValueError, "a path whose parts disagree");
        return -1;
    }
    strcpy(path->roles, roles);
    if (strcmp(kind, "kernel") == 0) {
        path->run = run_kernel;
        path->native = kernel_name == NULL ? NULL : find_kernel(kernel_name);
        path->numbers = 0;
    }
    else {
        if (!find_loops(target, path->to_bool, path->loops)) {
            PyErr_SetString(PyExc_LookupError, "a ufunc without loops for float32 and float64");
            return -1;
        }
        path->operands = strcmp(kind, "unary") == 0 ? 1 : 2;
        path->run = path->inplace ? run_inplace : path->operands == 1 ? run_unary : run_binary;
        if (path->params < path->operands) {
            PyErr_SetString(PyExc_ValueError, "a ufunc with more operands than parameters");
            return -1;
        }
    }
    if (Py_TYPE(blocked) == &BlockedType) {
        path->run = path->inplace ? run_blocked_inplace : run_blocked;
        path->blocked = (Blocked *)Py_NewRef(blocked);
    }
    if (Py_TYPE(loops) == &BlockedType && PyTuple_CheckExact(blocks)) {
        path->loops_of_op = Py_NewRef(loops);
        path->blocks = Py_NewRef(blocks);
    }
    path->fast = fast == Py_None ? NULL : Py_NewRef(fast);
    path->result = result == Py_None ? NULL : Py_NewRef(result);
    path->kernel = target == Py_None ? NULL : Py_NewRef(target);
    return 0;
}

/* One path from its description (see `accelerate` in _dispatch/native.py):
 * (op, binding, by, is_view, inplace, records, numbers, pointwise, autocast, mutates, runs_at_once, ufunc, short cut or None). */
static int read_path(Path *path, PyObject *description)
{
    PyObject *op, *binding, *ufunc, *short_cut;
    int numbers;
    memset(path, 0, sizeof(*path));
    if (!PyArg_ParseTuple(description, "OO!iiiiiiiiiOO", &op, &PyTuple_Type, &binding, &path->by, &path->is_view, &path->inplace, &path->records, &numbers,
                          &path->pointwise, &path->autocast, &path->mutates, &path->runs_at_once, &ufunc, &short_cut) ||
        read_binding(path, binding) < 0) {
        return -1;
    }
    path->op = Py_NewRef(op);
    path->numbers = numbers;
    if (path->mutates >= path->params) {
        PyErr_SetString(PyExc_ValueError, "a kernel that writes to no parameter");
        return -1;
    }
    if (PyObject_TypeCheck(ufunc, &PyUFunc_Type)) {
        path->ufunc = Py_NewRef(ufunc);
        path->ufunc_operands = ((PyUFuncObject *)ufunc)->nin;
        if (path->ufunc_operands > 2 || path->ufunc_operands > path->params) {
            PyErr_SetString(PyExc_ValueError, "a ufunc with more operands than parameters");
            return -1;
        }
    }
    if (!PyTuple_Check(short_cut)) {
        return 0;
    }
    int is_kernel = PyTuple_GET_SIZE(short_cut) && PyUnicode_Check(PyTuple_GET_ITEM(short_cut, 0)) &&
                    PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(short_cut, 0), "kernel") == 0;
    if (read_short_cut(path, short_cut) < 0) {
        return -1;
    }
    if (!is_kernel || path->blocked != NULL || path->loops_of_op != NULL) {
        path->numbers = numbers;
    }
    return 0;
}

static PyObject *fast_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"fallback", "paths", "form", NULL};
    PyObject *fallback, *paths, *form;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O", keywords, &fallback, &PyTuple_Type, &paths, &form)) {
        return NULL;
    }
    Fast *self = (Fast *)type->tp_alloc(type, PyTuple_GET_SIZE(paths));
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = PyTuple_GET_SIZE(paths) ? fast_call : front_call;
    self->fallback = Py_NewRef(fallback);
    self->form = Py_NewRef(form);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(paths); i++) {
        self->count++;
        if (read_path(&self->paths[i], PyTuple_GET_ITEM(paths, i)) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static int fast_traverse(Fast *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fallback);
    Py_VISIT(self->form);
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
        Py_VISIT(self->paths[i].composite);
        int found = plans_traverse(self->paths[i].plans, visit, arg);
        if (found) {
            return found;
        }
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
        Py_CLEAR(self->paths[i].ufunc);
        Py_CLEAR(self->paths[i].composite);
        Plans *plans = self->paths[i].plans;
        self->paths[i].plans = NULL;
        plans_free(plans);
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
    Py_CLEAR(self->form);
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

/* A function is a member as it stands; that it can be asked makes it a routine to `inspect`, as builtin functions are. */
static PyObject *fast_itself(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)instance;
    (void)type;
    return Py_NewRef(self);
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
    .tp_doc = "A function with short cuts for plain CPU tensors. As a member of a class it stays a function, like those of PyTorch, which are builtin.",
    .tp_basicsize = offsetof(Fast, paths),
    .tp_itemsize = sizeof(Path),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
    .tp_new = fast_new,
    .tp_dealloc = (destructor)fast_dealloc,
    .tp_traverse = (traverseproc)fast_traverse,
    .tp_clear = (inquiry)fast_clear,
    .tp_repr = (reprfunc)fast_repr,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Fast, vectorcall),
    .tp_dictoffset = offsetof(Fast, dict),
    .tp_weaklistoffset = offsetof(Fast, weakrefs),
    .tp_methods = fast_methods,
    .tp_members = fast_members,
    .tp_getset = fast_getset,
    .tp_descr_get = fast_itself,
};

PyTypeObject FastMethodType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.FastMethod",
    .tp_doc = "A Fast that is bound to the instance whose class has it.",
    .tp_base = &FastType,
    .tp_basicsize = offsetof(Fast, paths),
    .tp_itemsize = sizeof(Path),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Fast, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = fast_bind,
};
