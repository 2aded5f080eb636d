/* KernelCall: a callable that runs a C kernel, and the Python function of the same name where the C kernel declines.
 *
 * It takes the arguments of the Python function, of which `out` may be given by name.
 */
#include "native.h"
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Kernel call;
    PyObject *fallback;
    PyObject *defaults; /* of the last parameters */
    PyObject *dict;
    int params; /* with `out`, if there is one */
    int has_out;
    int halves;
} KernelCall;

static PyObject *kernel_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    KernelCall *self = (KernelCall *)callable;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    int fits = n <= self->params - (named ? 1 : 0) && named <= self->has_out;
    if (fits && named) {
        fits = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "out") == 0;
    }
    Py_ssize_t first = self->params - PyTuple_GET_SIZE(self->defaults);
    if (fits && n >= first) {
        PyObject *given[MAX_PARAMS];
        for (Py_ssize_t i = 0; i < self->params; i++) {
            given[i] = i < n ? args[i] : PyTuple_GET_ITEM(self->defaults, i - first);
        }
        if (named) {
            given[self->params - 1] = args[n];
        }
        PyObject *result = self->call(given);
        if (result != NULL || PyErr_Occurred()) {
            return result;
        }
    }
    return PyObject_Vectorcall(self->fallback, args, nargsf, kwnames);
}

PyObject *kernel_try(PyObject *kernel, PyObject **args, int count, PyArrayObject *out)
{
    if (!Py_IS_TYPE(kernel, &KernelType)) {
        return NULL;
    }
    KernelCall *self = (KernelCall *)kernel;
    if (count + self->has_out == self->params) {
        if (self->has_out) {
            args[count] = out == NULL ? Py_None : (PyObject *)out;
        }
        return self->call(args);
    }
    if (out != NULL || count > self->params || self->params - count > PyTuple_GET_SIZE(self->defaults)) {
        return NULL;
    }
    PyObject *given[MAX_PARAMS + 1];
    Py_ssize_t first = self->params - PyTuple_GET_SIZE(self->defaults);
    for (int i = 0; i < self->params; i++) {
        given[i] = i < count ? args[i] : PyTuple_GET_ITEM(self->defaults, i - first);
    }
    return self->call(given);
}

int kernel_takes_halves(PyObject *kernel)
{
    return Py_IS_TYPE(kernel, &KernelType) && ((KernelCall *)kernel)->halves;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "fallback", "defaults", "params", "has_out", NULL};
    const char *name;
    PyObject *fallback, *defaults;
    int params, has_out;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOO!ip", keywords, &name, &fallback, &PyTuple_Type, &defaults, &params, &has_out)) {
        return NULL;
    }
    const KernelEntry *entry = find_entry(name);
    if (entry == NULL || params > MAX_PARAMS || PyTuple_GET_SIZE(defaults) > params) {
        PyErr_Format(PyExc_LookupError, "no kernel %s", name);
        return NULL;
    }
    KernelCall *self = (KernelCall *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = kernel_call;
    self->call = entry->call;
    self->halves = entry->halves;
    self->fallback = Py_NewRef(fallback);
    self->defaults = Py_NewRef(defaults);
    self->params = params;
    self->has_out = has_out;
    return (PyObject *)self;
}

static int kernel_traverse(KernelCall *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fallback);
    Py_VISIT(self->defaults);
    Py_VISIT(self->dict);
    return 0;
}

static int kernel_clear(KernelCall *self)
{
    Py_CLEAR(self->fallback);
    Py_CLEAR(self->dict);
    return 0;
}

static void kernel_dealloc(KernelCall *self)
{
    PyObject_GC_UnTrack(self);
    kernel_clear(self);
    Py_CLEAR(self->defaults);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *kernel_repr(KernelCall *self)
{
    return PyObject_Repr(self->fallback);
}

static PyObject *kernel_reduce(KernelCall *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(self->fallback, "__qualname__");
}

/* What the C kernel gives of half types as they are; None where it declines. */
static PyObject *kernel_of_halves(KernelCall *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *given[MAX_PARAMS + 1];
    if (!self->halves || count > self->params) {
        Py_RETURN_NONE;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        given[i] = args[i];
    }
    PyObject *made = kernel_try((PyObject *)self, given, (int)count, NULL);
    return made != NULL || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

static PyMethodDef kernel_methods[] = {
    {"of_halves", (PyCFunction)(void (*)(void))kernel_of_halves, METH_FASTCALL, "What the C kernel gives of half types as they are; None where it declines."},
    {"__reduce__", (PyCFunction)kernel_reduce, METH_NOARGS, "The name to pickle by."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef kernel_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(KernelCall, fallback), READONLY, "The Python function behind."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef kernel_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject KernelType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Kernel",
    .tp_doc = "A kernel in C, with the numpy function that serves where it declines.",
    .tp_basicsize = sizeof(KernelCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = kernel_new,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_clear = (inquiry)kernel_clear,
    .tp_repr = (reprfunc)kernel_repr,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(KernelCall, vectorcall),
    .tp_dictoffset = offsetof(KernelCall, dict),
    .tp_methods = kernel_methods,
    .tp_members = kernel_members,
    .tp_getset = kernel_getset,
};
