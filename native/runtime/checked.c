/* Checked: a member of Tensor that is written in Python, before which its arguments are looked at: those of the usual classes here, all others by `check`. */
#include "native.h"
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *check; /* raises for arguments that do not fit */
    PyObject *names, *classes; /* of the parameters; None where any value is looked at, list for ints */
    PyObject *dict;
    Py_ssize_t positional, required;
} Checked;

static int is_int(PyObject *value)
{
    return PyLong_CheckExact(value);
}

static int are_ints(PyObject *value)
{
    if (!PyTuple_Check(value) && !PyList_Check(value)) {
        return 0;
    }
    PyObject *const *items = PySequence_Fast_ITEMS(value);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
        if (!is_int(items[i])) {
            return 0;
        }
    }
    return 1;
}

static int is_usual(const Checked *self, Py_ssize_t at, PyObject *value)
{
    PyObject *cls = PyTuple_GET_ITEM(self->classes, at);
    if (cls == (PyObject *)&PyList_Type) {
        return are_ints(value);
    }
    return cls != Py_None && PyObject_TypeCheck(value, (PyTypeObject *)cls);
}

/* Whether the arguments, without the tensor, are the usual ones. Those that must be there are, by their place. */
static int fits(const Checked *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs < self->required) {
        return 0;
    }
    if (nargs > self->positional || (nargs == 1 && self->positional == 1 && is_int(args[0]))) { /* ints one by one */
        if (self->positional == 0 || kwnames != NULL || PyTuple_GET_ITEM(self->classes, 0) != (PyObject *)&PyList_Type) {
            return 0;
        }
        for (Py_ssize_t i = 0; i < nargs; i++) {
            if (!is_int(args[i])) {
                return 0;
            }
        }
        return 1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (!is_usual(self, i, args[i])) {
            return 0;
        }
    }
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        Py_ssize_t at = nargs;
        const Py_ssize_t count = PyTuple_GET_SIZE(self->names);
        while (at < count && PyTuple_GET_ITEM(self->names, at) != PyTuple_GET_ITEM(kwnames, i)) { /* names are interned */
            at++;
        }
        if (at == count || !is_usual(self, at, args[nargs + i])) {
            return 0;
        }
    }
    return 1;
}

static PyObject *checked_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Checked *self = (Checked *)callable;
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (nargs == 0 || !fits(self, args + 1, nargs - 1, kwnames)) {
        PyObject *checked = PyObject_Vectorcall(self->check, args, (size_t)nargs, kwnames);
        if (checked == NULL) {
            return NULL;
        }
        Py_DECREF(checked);
    }
    return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
}

static PyObject *checked_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"function", "check", "names", "classes", "positional", "required", NULL};
    PyObject *function, *check, *names, *classes;
    Py_ssize_t positional, required;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!O!nn", keywords, &function, &check, &PyTuple_Type, &names, &PyTuple_Type, &classes, &positional, &required)) {
        return NULL;
    }
    Checked *self = (Checked *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = checked_call;
    self->function = Py_NewRef(function);
    self->check = Py_NewRef(check);
    self->names = Py_NewRef(names);
    self->classes = Py_NewRef(classes);
    self->positional = positional;
    self->required = required;
    return (PyObject *)self;
}

static int checked_traverse(Checked *self, visitproc visit, void *arg)
{
    Py_VISIT(self->function);
    Py_VISIT(self->check);
    Py_VISIT(self->names);
    Py_VISIT(self->classes);
    Py_VISIT(self->dict);
    return 0;
}

static int checked_clear(Checked *self)
{
    Py_CLEAR(self->function);
    Py_CLEAR(self->check);
    Py_CLEAR(self->names);
    Py_CLEAR(self->classes);
    Py_CLEAR(self->dict);
    return 0;
}

static void checked_dealloc(Checked *self)
{
    PyObject_GC_UnTrack(self);
    checked_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *checked_bind(PyObject *self, PyObject *instance, PyObject *type)
{
    (void)type;
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyMemberDef checked_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Checked, function), READONLY, "The Python function behind."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef checked_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject CheckedType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Checked",
    .tp_doc = "A member of Tensor whose arguments are looked at first.",
    .tp_basicsize = sizeof(Checked),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = checked_new,
    .tp_dealloc = (destructor)checked_dealloc,
    .tp_traverse = (traverseproc)checked_traverse,
    .tp_clear = (inquiry)checked_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Checked, vectorcall),
    .tp_descr_get = checked_bind,
    .tp_dictoffset = offsetof(Checked, dict),
    .tp_members = checked_members,
    .tp_getset = checked_getset,
};
