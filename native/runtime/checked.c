/* Checked: a member of Tensor that is written in Python, before which its arguments are looked at; where there are none to look at, it is called at once. */
#include "native.h"
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *check; /* raises for arguments that do not fit */
    PyObject *dict;
    int bare; /* may be called without arguments */
} Checked;

static PyObject *checked_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Checked *self = (Checked *)callable;
    if (!self->bare || PyVectorcall_NARGS(nargsf) != 1 || kwnames != NULL) {
        PyObject *fits = PyObject_Vectorcall(self->check, args, (size_t)PyVectorcall_NARGS(nargsf), kwnames);
        if (fits == NULL) {
            return NULL;
        }
        Py_DECREF(fits);
    }
    return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
}

static PyObject *checked_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"function", "check", "bare", NULL};
    PyObject *function, *check;
    int bare;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOp", keywords, &function, &check, &bare)) {
        return NULL;
    }
    Checked *self = (Checked *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = checked_call;
    self->function = Py_NewRef(function);
    self->check = Py_NewRef(check);
    self->bare = bare;
    return (PyObject *)self;
}

static int checked_traverse(Checked *self, visitproc visit, void *arg)
{
    Py_VISIT(self->function);
    Py_VISIT(self->check);
    Py_VISIT(self->dict);
    return 0;
}

static int checked_clear(Checked *self)
{
    Py_CLEAR(self->function);
    Py_CLEAR(self->check);
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
