/* Program: a BlockProgram as a Python object. */
#include "blocks.h"

#include <limits.h>

typedef struct {
    PyObject_HEAD
    BlockProgram *program;
} Program;

/* A small int of a tuple; -1 with an exception. */
static int int_at(PyObject *tuple, Py_ssize_t at)
{
    long value = PyLong_AsLong(PyTuple_GET_ITEM(tuple, at));
    if ((value < 0 || value > INT_MAX) && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "program: operations and slots are small numbers from 0 on");
    }
    return PyErr_Occurred() ? -1 : (int)value;
}

/* (operation, target slot, source slots ...) */
static int read_step(PyObject *object, BlockStep *step)
{
    Py_ssize_t size = PyTuple_Check(object) ? PyTuple_GET_SIZE(object) : 0;
    if (size < 3 || size > 2 + BLOCK_SOURCES) {
        PyErr_SetString(PyExc_TypeError, "program: an instruction is a tuple of operation, target and sources");
        return -1;
    }
    memset(step, 0, sizeof(*step));
    step->opcode = int_at(object, 0);
    step->target = PyErr_Occurred() ? -1 : int_at(object, 1);
    step->count = (int)size - 2;
    for (int k = 0; k < step->count && !PyErr_Occurred(); k++) {
        step->sources[k] = int_at(object, k + 2);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static BlockProgram *read_program(int width, PyObject *shape, PyObject *instructions, PyObject *arrays, int outputs, int temporaries,
                                  PyObject *immediates)
{
    npy_intp dims[MAX_DIMS];
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape), steps = PyTuple_GET_SIZE(instructions), count = PyTuple_GET_SIZE(arrays);
    Py_ssize_t numbers = PyTuple_GET_SIZE(immediates);
    if (ndim > MAX_DIMS || steps > BLOCK_SLOTS || count > BLOCK_SLOTS || numbers > BLOCK_SLOTS) {
        PyErr_SetString(PyExc_ValueError, "program: too many dimensions, instructions or slots");
        return NULL;
    }
    for (Py_ssize_t d = 0; d < ndim; d++) {
        dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
        if (dims[d] == -1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    PyArrayObject *array[BLOCK_SLOTS];
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!PyArray_Check(PyTuple_GET_ITEM(arrays, i))) {
            PyErr_SetString(PyExc_TypeError, "program: arrays are numpy arrays");
            return NULL;
        }
        array[i] = (PyArrayObject *)PyTuple_GET_ITEM(arrays, i);
    }
    double immediate[BLOCK_SLOTS];
    for (Py_ssize_t i = 0; i < numbers; i++) {
        immediate[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(immediates, i));
        if (immediate[i] == -1.0 && PyErr_Occurred()) {
            return NULL;
        }
    }
    BlockStep *step = PyMem_Calloc((size_t)steps + 1, sizeof(BlockStep));
    if (step == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    BlockProgram *program = NULL;
    Py_ssize_t read = 0;
    while (read < steps && read_step(PyTuple_GET_ITEM(instructions, read), &step[read]) == 0) {
        read++;
    }
    if (read == steps) {
        program = block_program(width, (int)ndim, dims, (int)count, array, outputs, temporaries, (int)numbers, immediate, (int)steps, step);
    }
    PyMem_Free(step);
    return program;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"width", "shape", "instructions", "arrays", "outputs_from", "temporaries", "immediates", NULL};
    PyObject *shape, *instructions, *arrays, *immediates;
    int width, outputs, temporaries;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO!O!O!iiO!", keywords, &width, &PyTuple_Type, &shape, &PyTuple_Type, &instructions,
                                     &PyTuple_Type, &arrays, &outputs, &temporaries, &PyTuple_Type, &immediates)) {
        return NULL;
    }
    BlockProgram *program = read_program(width, shape, instructions, arrays, outputs, temporaries, immediates);
    if (program == NULL) {
        return NULL;
    }
    Program *self = (Program *)type->tp_alloc(type, 0);
    if (self == NULL) {
        block_free(program);
        return NULL;
    }
    self->program = program;
    return (PyObject *)self;
}

/* No cycle goes through a program: it holds arrays alone. */
static void program_dealloc(Program *self)
{
    if (self->program != NULL) {
        block_free(self->program);
    }
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *program_run(Program *self, PyObject *unused)
{
    (void)unused;
    npy_intp done = block_run(self->program);
    return done < 0 ? NULL : PyLong_FromSsize_t(done);
}

static PyObject *program_blocks(Program *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(self->program->blocks);
}

static PyMethodDef program_methods[] = {
    {"run", (PyCFunction)program_run, METH_NOARGS, "Run the blocks that nobody has claimed; returns how many this call did."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef program_getset[] = {
    {"blocks", (getter)program_blocks, NULL, "How many blocks there are; the program is done when the calls of run() together did as many.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject ProgramType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Program",
    .tp_doc = "Program(width, shape, instructions, arrays, outputs_from, temporaries, immediates): pointwise operators, block by block.\n\n"
              "Slots are numbered: arrays (inputs, from `outputs_from` on outputs), temporaries, immediates. An instruction is a tuple of\n"
              "operation, target slot and source slots. It runs once; several threads may call run() at the same time.",
    .tp_basicsize = sizeof(Program),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = program_new,
    .tp_dealloc = (destructor)program_dealloc,
    .tp_methods = program_methods,
    .tp_getset = program_getset,
};
