/* The type of Blocked: what `op.block` of an operator says, read once. */
#include "blocks.h"

#include <stddef.h>

#define MAX_ALTERNATIVES 8

static PyObject *blocked_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (n != 2 || kwnames != NULL || !PyList_CheckExact(args[0]) || !(args[1] == Py_None || is_array(args[1]))) {
        PyErr_SetString(PyExc_TypeError, "a list of arguments, and the array for the result or None");
        return NULL;
    }
    PyArrayObject *out = args[1] == Py_None ? NULL : (PyArrayObject *)args[1];
    PyObject *made = blocked_apply((Blocked *)callable, ((PyListObject *)args[0])->ob_item, PyList_GET_SIZE(args[0]), out);
    if (made == NULL && !PyErr_Occurred()) {
        Py_RETURN_NONE;
    }
    return made;
}

static PyObject *blocked_chosen(PyObject *self, PyObject *args)
{
    if (!PyTuple_Check(args)) {
        PyErr_SetString(PyExc_TypeError, "a tuple of arguments");
        return NULL;
    }
    return PyLong_FromLong(blocked_choose((Blocked *)self, ((PyTupleObject *)args)->ob_item, PyTuple_GET_SIZE(args)));
}

static PyMethodDef blocked_methods[] = {
    {"choose", blocked_chosen, METH_O, "The number of the alternative that takes the arguments, whatever stands for tensors; -1 when none does."},
    {NULL, NULL, 0, NULL},
};

/* (operation, operands, ((argument, value) ...), exact) */
static int read_alternative(PyObject *description, Alternative *alternative)
{
    PyObject *operands, *conditions;
    if (!PyArg_ParseTuple(description, "iO!O!p", &alternative->opcode, &PyTuple_Type, &operands, &PyTuple_Type, &conditions, &alternative->exact)) {
        return -1;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(operands), rules = PyTuple_GET_SIZE(conditions);
    if (alternative->opcode < 0 || alternative->opcode >= block_count || count != (Py_ssize_t)strlen(block_entries[alternative->opcode].kinds) ||
        rules > MAX_PARAMS) {
        PyErr_SetString(PyExc_ValueError, "an operation that the extension does not have");
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        long operand = PyLong_AsLong(PyTuple_GET_ITEM(operands, k));
        if (operand < 0 || operand >= MAX_PARAMS) {
            PyErr_SetString(PyExc_ValueError, "an operand is the number of a parameter");
            return -1;
        }
        alternative->operand[k] = (int)operand;
    }
    alternative->operands = (int)count;
    for (Py_ssize_t i = 0; i < rules; i++) {
        PyObject *value;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(conditions, i), "iO", &alternative->argument[i], &value)) {
            return -1;
        }
        if (alternative->argument[i] < 0 || alternative->argument[i] >= MAX_PARAMS) {
            PyErr_SetString(PyExc_ValueError, "a condition is about the number of a parameter");
            return -1;
        }
        alternative->value[i] = Py_NewRef(value);
        alternative->conditions++;
    }
    return 0;
}

static PyObject *blocked_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"alternatives", NULL};
    PyObject *described;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!", keywords, &PyTuple_Type, &described)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(described);
    if (count > MAX_ALTERNATIVES) {
        PyErr_SetString(PyExc_ValueError, "too many alternatives");
        return NULL;
    }
    Blocked *self = (Blocked *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = blocked_call;
    self->alternatives = PyMem_Calloc((size_t)count + 1, sizeof(Alternative));
    if (self->alternatives == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        self->count++;
        if (read_alternative(PyTuple_GET_ITEM(described, i), &self->alternatives[i]) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

/* No cycle goes through it: the values are numbers, texts and None. */
static void blocked_dealloc(Blocked *self)
{
    for (int i = 0; i < self->count; i++) {
        for (int k = 0; k < self->alternatives[i].conditions; k++) {
            Py_XDECREF(self->alternatives[i].value[k]);
        }
    }
    PyMem_Free(self->alternatives);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

PyTypeObject BlockedType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Blocked",
    .tp_doc = "Blocked(alternatives): an operator by the loops of the block interpreter. Called with the list of its arguments and an array for the\n"
              "result, or None; gives the array, or None where it declines.",
    .tp_basicsize = sizeof(Blocked),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = blocked_new,
    .tp_dealloc = (destructor)blocked_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Blocked, vectorcall),
    .tp_methods = blocked_methods,
};
