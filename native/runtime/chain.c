/* A flush that is one chain: entries that pipeline.c recorded, over one shape, become a program of the block interpreter without a planner. */
#include "pipeline.h"

#define LONGEST 48

/* What is known of each entry of the chain. */
typedef struct {
    PyObject *entry;
    int needed, kept;
    int last; /* the entry that reads it last; itself when none does */
    int slot;
} Link;

typedef struct {
    Link links[LONGEST];
    int count, width;
    int ndim;
    npy_intp dims[MAX_DIMS];
    PyArrayObject *arrays[BLOCK_SLOTS];
    PyObject *results[LONGEST];
    double immediates[LONGEST * BLOCK_SOURCES];
    BlockStep steps[LONGEST];
    int inputs, outputs, numbers, temporaries, step_count;
} Chain;

/* Slots while the numbers of each kind are not known yet: inputs from 0 on, the others by these. */
#define OUTPUT 10000
#define TEMPORARY 20000
#define NUMBER 30000

static npy_intp elements(const Chain *chain)
{
    npy_intp n = 1;
    for (int d = 0; d < chain->ndim; d++) {
        n *= chain->dims[d];
    }
    return n;
}

static int find(const Chain *chain, PyObject *value, int before)
{
    for (int i = before - 1; i >= 0; i--) {
        if (chain->links[i].entry == value) {
            return i;
        }
    }
    return -1;
}

static int is_alive(PyObject *holder)
{
    return holder != NULL && PyWeakref_Check(holder) && PyWeakref_GET_OBJECT(holder) != Py_None;
}

/* Whether each entry is a recorded loop over one shape whose operands are numbers, contiguous arrays and earlier entries. */
static int read_links(Chain *chain, PyObject *entries)
{
    chain->count = (int)PyList_GET_SIZE(entries);
    PyObject *shape = NULL, *stride = NULL;
    for (int i = 0; i < chain->count; i++) {
        PyObject *entry = PyList_GET_ITEM(entries, i);
        if (Py_TYPE(entry) != P.entry || SLOT(entry, P.entry_block) == Py_None || SLOT(entry, P.entry_form) != P.run) {
            return 0;
        }
        if (i == 0) {
            shape = SLOT(entry, P.value_shape);
            stride = SLOT(entry, P.value_stride);
        }
        else if ((SLOT(entry, P.value_shape) != shape || SLOT(entry, P.value_stride) != stride) &&
                 !(PyObject_RichCompareBool(SLOT(entry, P.value_shape), shape, Py_EQ) == 1 &&
                   PyObject_RichCompareBool(SLOT(entry, P.value_stride), stride, Py_EQ) == 1)) {
            return 0;
        }
        PyObject *kind = SLOT(SLOT(entry, P.entry_spec), P.spec_compute);
        int width = kind == S.float32 ? 4 : kind == S.float64 ? 8 : 0;
        if (!width || (chain->width && chain->width != width)) {
            return 0;
        }
        chain->width = width;
        chain->links[i] = (Link){entry, 0, is_alive(SLOT(entry, P.value_holder)), i, -1};
    }
    int ndim;
    npy_intp strides[MAX_DIMS];
    return read_dims(shape, &chain->ndim, chain->dims) && read_dims(stride, &ndim, strides) && is_dense(ndim, chain->dims, strides);
}

/* Which entries somebody looks at, directly or through others. */
static int find_needed(Chain *chain)
{
    for (int i = chain->count - 1; i >= 0; i--) {
        Link *link = &chain->links[i];
        link->needed |= link->kept;
        PyObject *args = SLOT(link->entry, P.entry_args);
        for (Py_ssize_t k = 0; link->needed && k < PyTuple_GET_SIZE(args); k++) {
            PyObject *argument = PyTuple_GET_ITEM(args, k);
            if (Py_TYPE(argument) == P.entry) {
                int source = find(chain, argument, i);
                if (source < 0) {
                    return 0;
                }
                chain->links[source].needed = 1;
                chain->links[source].last = chain->links[source].last > i ? chain->links[source].last : i;
            }
        }
    }
    return 1;
}

/* Operation and operands of a loop's record; how many operands, or -1. */
static int read_block(PyObject *block, int *opcode, int *operands)
{
    if (Py_TYPE(block) != P.block) {
        return -1;
    }
    PyObject *numbers = SLOT(block, P.block_operands);
    Py_ssize_t value;
    if (!as_index(SLOT(block, P.block_opcode), &value) || !PyTuple_CheckExact(numbers) || PyTuple_GET_SIZE(numbers) > BLOCK_SOURCES) {
        return -1;
    }
    *opcode = (int)value;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(numbers); k++) {
        if (!as_index(PyTuple_GET_ITEM(numbers, k), &value) || value < 0) {
            return -1;
        }
        operands[k] = (int)value;
    }
    return (int)PyTuple_GET_SIZE(numbers);
}

static int add_input(Chain *chain, PyArrayObject *array)
{
    for (int i = 0; i < chain->inputs; i++) {
        if (chain->arrays[i] == array) {
            return i;
        }
    }
    chain->arrays[chain->inputs] = array;
    return chain->inputs++;
}

/* The slot of an operand; -1 declines. */
static int slot_of(Chain *chain, int at, PyObject *argument)
{
    if (Py_TYPE(argument) == P.entry) {
        int source = find(chain, argument, at);
        return source < 0 ? -1 : chain->links[source].slot;
    }
    if (PyFloat_CheckExact(argument) || PyLong_CheckExact(argument)) {
        double value = PyFloat_AsDouble(argument);
        if (value == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
        chain->immediates[chain->numbers] = value;
        return NUMBER + chain->numbers++;
    }
    if (Py_TYPE(argument) != S.tensor) {
        return -1;
    }
    PyArrayObject *array = array_of(argument);
    if (array == NULL || float_width(array) != chain->width || !is_contiguous(array) || PyArray_NDIM(array) != chain->ndim ||
        !PyArray_CompareLists(PyArray_DIMS(array), chain->dims, chain->ndim)) {
        return -1;
    }
    return add_input(chain, array);
}

/* The instructions; temporaries are used again once what they held has been read for the last time. */
static int write_steps(Chain *chain)
{
    int free_slots[LONGEST], free_count = 0;
    for (int i = 0; i < chain->count; i++) {
        Link *link = &chain->links[i];
        if (!link->needed) {
            continue;
        }
        BlockStep *step = &chain->steps[chain->step_count++];
        int operands[BLOCK_SOURCES];
        memset(step, 0, sizeof(*step));
        step->count = read_block(SLOT(link->entry, P.entry_block), &step->opcode, operands);
        if (step->count < 0) {
            return 0;
        }
        PyObject *args = SLOT(link->entry, P.entry_args);
        for (int k = 0; k < step->count; k++) {
            if (operands[k] >= PyTuple_GET_SIZE(args) || (step->sources[k] = slot_of(chain, i, PyTuple_GET_ITEM(args, operands[k]))) < 0) {
                return 0;
            }
        }
        if (link->kept) {
            link->slot = OUTPUT + chain->outputs++;
        }
        else {
            link->slot = free_count ? free_slots[--free_count] : TEMPORARY + chain->temporaries++;
        }
        step->target = link->slot;
        for (int k = 0; k <= i; k++) {
            Link *other = &chain->links[k];
            if (other->needed && !other->kept && other->last == i && other->slot >= 0) {
                free_slots[free_count++] = other->slot;
                other->last = -1;
            }
        }
    }
    return chain->outputs > 0;
}

static int final_slot(const Chain *chain, int slot)
{
    if (slot >= NUMBER) {
        return chain->inputs + chain->outputs + chain->temporaries + slot - NUMBER;
    }
    if (slot >= TEMPORARY) {
        return chain->inputs + chain->outputs + slot - TEMPORARY;
    }
    return slot >= OUTPUT ? chain->inputs + slot - OUTPUT : slot;
}

static int run_program(Chain *chain)
{
    int made = 0, failed = 0;
    for (int i = 0; i < chain->count && !failed; i++) {
        if (chain->links[i].kept) {
            int to_bool = SLOT(chain->links[i].entry, P.value_dtype) == S.bool_;
            PyArray_Descr *descr = to_bool ? S.descr_bool : chain->width == 8 ? S.descr64 : S.descr32;
            PyObject *array = new_array(chain->ndim, chain->dims, descr);
            failed = array == NULL;
            if (!failed) {
                chain->results[made] = array;
                chain->arrays[chain->inputs + made++] = (PyArrayObject *)array;
            }
        }
    }
    for (int i = 0; i < chain->step_count; i++) {
        BlockStep *step = &chain->steps[i];
        step->target = final_slot(chain, step->target);
        for (int k = 0; k < step->count; k++) {
            step->sources[k] = final_slot(chain, step->sources[k]);
        }
    }
    BlockProgram *program = failed ? NULL
                                   : block_program(chain->width, chain->ndim, chain->dims, chain->inputs + chain->outputs, chain->arrays, chain->inputs,
                                                   chain->temporaries, chain->numbers, chain->immediates, chain->step_count, chain->steps);
    failed = program == NULL || block_run(program) < 0;
    if (program != NULL) {
        block_free(program);
    }
    for (int i = 0; failed && i < made; i++) {
        Py_CLEAR(chain->results[i]);
    }
    return failed ? -1 : 0;
}

/* Gives the entries their payloads, lets go of their arguments, and says what happened, for Pipeline.explain. */
static PyObject *finish(Chain *chain)
{
    PyObject *lines = PyList_New(0);
    int made = 0, fused = chain->step_count > 1;
    npy_intp n = elements(chain);
    for (int i = 0; i < chain->count; i++) {
        PyObject *entry = chain->links[i].entry;
        if (chain->links[i].kept) {
            set_slot(entry, P.value_payload, chain->results[made++]);
        }
        set_slot(entry, P.entry_args, Py_NewRef(P.empty));
        if (lines != NULL && chain->links[i].needed) {
            npy_intp bytes = n * (SLOT(entry, P.value_dtype) == S.bool_ ? 1 : chain->width);
            int kept = chain->links[i].kept;
            PyObject *line = Py_BuildValue("(O((OO))OOnni)", SLOT(entry, P.entry_op), SLOT(entry, P.value_shape), SLOT(entry, P.value_dtype),
                                           SLOT(entry, P.entry_code), SLOT(entry, P.entry_place), kept ? bytes : (npy_intp)0, kept ? (npy_intp)0 : bytes, fused);
            if (line == NULL || PyList_Append(lines, line) < 0) {
                Py_CLEAR(lines);
            }
            Py_XDECREF(line);
        }
    }
    return lines;
}

/* The lines of the report, or None when it is no such chain. */
PyObject *run_chain(PyObject *module, PyObject *entries)
{
    (void)module;
    if (!P.ready || !PyList_CheckExact(entries) || PyList_GET_SIZE(entries) == 0 || PyList_GET_SIZE(entries) > LONGEST) {
        Py_RETURN_NONE;
    }
    Chain chain;
    chain.count = chain.width = chain.inputs = chain.outputs = chain.numbers = chain.temporaries = chain.step_count = 0;
    if (!read_links(&chain, entries) || !find_needed(&chain) || !write_steps(&chain)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    if (run_program(&chain) < 0) {
        PyErr_Clear(); /* the planner runs the entries one by one, and says which of them it is */
        Py_RETURN_NONE;
    }
    return finish(&chain);
}
