/* Launches of aclnn functions on an NPU: descriptors, both phases and release, without a call of Python between them.
 *
 * Note [Arguments of whole words]
 * A Launcher holds addresses of C functions whose arguments are pointers, integers and bools. Each is passed as a word of 64 bits, whatever its size: the procedure
 * call standards of x86-64 and AArch64 pass every such argument in a register or a slot of eight bytes, of which the callee reads what it needs. Functions with
 * floating arguments are not called this way, nor any on other processors (LAUNCHES is 0 then).
 *
 * Note [Nothing between the phases]
 * Python runs signal handlers between its own instructions. There are none here from the first descriptor to the last one's end, but where a workspace is asked for, and
 * then the executor is destroyed before the exception goes on.
 */
#include "native.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIMS 8
#define TENSORS 6
#define SCALARS 4
#define VALUES 16

typedef int32_t (*Phase)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t, uint64_t, uint64_t);
typedef void *(*CreateTensor)(const int64_t *, uint64_t, int, const int64_t *, int64_t, int, const int64_t *, uint64_t, void *);
typedef void *(*CreateScalar)(void *, int);
typedef int32_t (*Destroy)(const void *);
typedef int32_t (*Second)(void *, uint64_t, void *, void *);

typedef struct {
    int place, ndim, dtype, format;
    int64_t dims[DIMS], strides[DIMS];
} TensorPlan;

typedef struct {
    int place, dtype;
    char value[16];
} ScalarPlan;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    CreateTensor create;
    CreateScalar create_scalar;
    Destroy destroy, destroy_scalar, destroy_executor;
    Phase first;
    Second second;
    int tensors, scalars, values;
    TensorPlan tensor[TENSORS];
    ScalarPlan scalar[SCALARS];
    uint64_t value[VALUES + 2];
} Launcher;

static int read_ints(PyObject *sequence, int64_t *into, int *count)
{
    if (!PyTuple_Check(sequence) || PyTuple_GET_SIZE(sequence) > DIMS) {
        PyErr_SetString(PyExc_ValueError, "a tuple of at most 8 integers is expected");
        return -1;
    }
    *count = (int)PyTuple_GET_SIZE(sequence);
    for (int d = 0; d < *count; d++) {
        into[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(sequence, d));
        if (into[d] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

/* tensors: (place, shape, strides, dtype, format) each; scalars: (place, bytes, dtype); values: integers for all places. */
static int read_plan(Launcher *made, PyObject *tensors, PyObject *scalars, PyObject *values)
{
    made->tensors = (int)PyTuple_GET_SIZE(tensors);
    made->scalars = (int)PyTuple_GET_SIZE(scalars);
    made->values = (int)PyTuple_GET_SIZE(values);
    if (made->tensors > TENSORS || made->scalars > SCALARS || made->values > VALUES) {
        PyErr_SetString(PyExc_ValueError, "a function with too many arguments for a launcher");
        return -1;
    }
    for (int t = 0; t < made->tensors; t++) {
        TensorPlan *plan = &made->tensor[t];
        PyObject *shape, *strides;
        int count;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(tensors, t), "iOOii", &plan->place, &shape, &strides, &plan->dtype, &plan->format)) return -1;
        if (read_ints(shape, plan->dims, &plan->ndim) || read_ints(strides, plan->strides, &count)) return -1;
        if (count != plan->ndim || plan->place < 0 || plan->place >= made->values) {
            PyErr_SetString(PyExc_ValueError, "a tensor of a launcher has as many strides as sizes, and a place among the values");
            return -1;
        }
    }
    for (int s = 0; s < made->scalars; s++) {
        ScalarPlan *plan = &made->scalar[s];
        Py_buffer bytes;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(scalars, s), "iy*i", &plan->place, &bytes, &plan->dtype)) return -1;
        int fits = bytes.len <= (Py_ssize_t)sizeof plan->value && plan->place >= 0 && plan->place < made->values;
        if (fits) memcpy(plan->value, bytes.buf, (size_t)bytes.len);
        PyBuffer_Release(&bytes);
        if (!fits) {
            PyErr_SetString(PyExc_ValueError, "a scalar of a launcher has at most 16 bytes, and a place among the values");
            return -1;
        }
    }
    for (int v = 0; v < made->values; v++) {
        made->value[v] = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(values, v));
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static void destroy_all(const Launcher *self, void **tensors, int made, void **scalars, int made_scalars)
{
    while (made_scalars) self->destroy_scalar(scalars[--made_scalars]);
    while (made) self->destroy(tensors[--made]);
}

/* (stream, workspace, address, offset, stored elements, ...): None, or (phase, status). `workspace` gives an address for a number of bytes. */
static PyObject *launch(PyObject *callable, PyObject *const *args, size_t count, PyObject *names)
{
    Launcher *self = (Launcher *)callable;
    void *tensors[TENSORS], *scalars[SCALARS], *executor = NULL, *memory = NULL;
    int64_t numbers[3 * TENSORS];
    uint64_t value[VALUES + 2], size = 0;
    Py_ssize_t given = PyVectorcall_NARGS(count);
    if (names || given != 2 + 3 * self->tensors) {
        PyErr_Format(PyExc_TypeError, "a launcher takes a stream, a function and three numbers for each of %d tensors", self->tensors);
        return NULL;
    }
    void *stream = PyLong_AsVoidPtr(args[0]);
    for (int n = 0; n < 3 * self->tensors; n++) numbers[n] = (int64_t)PyLong_AsUnsignedLongLongMask(args[2 + n]);
    if (PyErr_Occurred()) return NULL;
    memcpy(value, self->value, sizeof value);
    int made = 0, made_scalars = 0;
    int32_t status = -1;
    PyThreadState *state = PyEval_SaveThread();
    for (; made < self->tensors; made++) {
        const TensorPlan *plan = &self->tensor[made];
        const int64_t *own = numbers + 3 * made;
        tensors[made] = self->create(plan->dims, (uint64_t)plan->ndim, plan->dtype, plan->strides, own[1], plan->format, &own[2], 1, (void *)(intptr_t)own[0]);
        if (!tensors[made]) goto no_descriptor;
        value[plan->place] = (uint64_t)(uintptr_t)tensors[made];
    }
    for (; made_scalars < self->scalars; made_scalars++) {
        const ScalarPlan *plan = &self->scalar[made_scalars];
        scalars[made_scalars] = self->create_scalar((void *)plan->value, plan->dtype);
        if (!scalars[made_scalars]) goto no_descriptor;
        value[plan->place] = (uint64_t)(uintptr_t)scalars[made_scalars];
    }
    value[self->values] = (uint64_t)(uintptr_t)&size;
    value[self->values + 1] = (uint64_t)(uintptr_t)&executor;
    status = self->first(value[0], value[1], value[2], value[3], value[4], value[5], value[6], value[7], value[8], value[9], value[10], value[11], value[12], value[13],
                         value[14], value[15], value[16], value[17]);
    if (status) goto failed;
    if (size) {
        PyEval_RestoreThread(state);
        PyObject *found = PyObject_CallFunction(args[1], "K", (unsigned long long)size);
        memory = found ? PyLong_AsVoidPtr(found) : NULL;
        Py_XDECREF(found);
        if (PyErr_Occurred()) {
            self->destroy_executor(executor);
            destroy_all(self, tensors, made, scalars, made_scalars);
            return NULL;
        }
        state = PyEval_SaveThread();
    }
    status = self->second(memory, size, executor, stream);
    destroy_all(self, tensors, made, scalars, made_scalars);
    PyEval_RestoreThread(state);
    if (status) return Py_BuildValue("(ii)", 2, (int)status);
    Py_RETURN_NONE;
no_descriptor:
failed:
    destroy_all(self, tensors, made, scalars, made_scalars);
    PyEval_RestoreThread(state);
    return Py_BuildValue("(ii)", 1, (int)status);
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *functions, *tensors, *scalars, *values;
    if (!LAUNCHES) {
        PyErr_SetString(PyExc_NotImplementedError, "launchers are for x86-64 and AArch64");
        return NULL;
    }
    if (named && PyDict_GET_SIZE(named)) {
        PyErr_SetString(PyExc_TypeError, "Launcher takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!O!O!O!", &PyTuple_Type, &functions, &PyTuple_Type, &tensors, &PyTuple_Type, &scalars, &PyTuple_Type, &values)) return NULL;
    unsigned long long address[7];
    if (!PyArg_ParseTuple(functions, "KKKKKKK", &address[0], &address[1], &address[2], &address[3], &address[4], &address[5], &address[6])) return NULL;
    for (int f = 0; f < 7; f++)
        if (!address[f]) {
            PyErr_SetString(PyExc_ValueError, "the address of a function is 0");
            return NULL;
        }
    Launcher *made = (Launcher *)type->tp_alloc(type, 0);
    if (!made) return NULL;
    made->call = launch;
    made->create = (CreateTensor)(uintptr_t)address[0];
    made->destroy = (Destroy)(uintptr_t)address[1];
    made->create_scalar = (CreateScalar)(uintptr_t)address[2];
    made->destroy_scalar = (Destroy)(uintptr_t)address[3];
    made->destroy_executor = (Destroy)(uintptr_t)address[4];
    made->first = (Phase)(uintptr_t)address[5];
    made->second = (Second)(uintptr_t)address[6];
    if (read_plan(made, tensors, scalars, values)) {
        Py_DECREF(made);
        return NULL;
    }
    return (PyObject *)made;
}

PyTypeObject LauncherType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native.Launcher",
    .tp_doc = "Launcher(functions, tensors, scalars, values): calls both phases of an aclnn function; see native/runtime/launching.c.",
    .tp_basicsize = sizeof(Launcher),
    .tp_vectorcall_offset = offsetof(Launcher, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = make,
};
