/* Calls on an NPU whose launch is known: the key of a call, its plan, the result's memory, both phases, the tensor; see Note [Plans of launches] in `_backends/npu/plans.py`. */
#include "npu.h"
#include "plan.h"
#include <structmember.h>

#define MOST_TENSORS 16

typedef struct {
    PyObject_HEAD
    Launcher *launcher;
    PyObject *spec, *shape, *stride, *dtype, *nbytes, *where, *index, *function, *shelf;
    long long bytes;
    int count;
    struct {
        int source; /* number of an argument, or -1 for the result */
        long long item;
    } tensor[MOST_TENSORS];
} Planned;

/* ------------------------------------------------------------------------------------------------------------------- keys */

static PyObject *payload_of(PyObject *value)
{
    if (!is_plain(value)) return NULL;
    PyObject *data = SLOT(value, S.at_data);
    return data != NULL && Py_TYPE(data) == N.payload && Py_TYPE(SLOT(data, N.at_storage)) == N.storage ? data : NULL;
}

static int is_number(PyObject *value)
{
    return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value);
}

static int is_zero(PyObject *value)
{
    return PyFloat_CheckExact(value) && PyFloat_AS_DOUBLE(value) == 0.0;
}

/* What is the same for calls that are alike: the operator, and of each argument the geometry, or type and value. NULL without an exception where there is nothing
 * to be known of such a call. `index`: the device (borrowed); `history`: whether a tensor may have one. */
static PyObject *key_of(PyObject *op, PyObject *const *values, Py_ssize_t n, PyObject **index, int *history)
{
    PyObject *seen[MAX_PARAMS];
    Py_ssize_t size = 1, at = 0, tensors = 0;
    *index = NULL;
    *history = 0;
    if (n > MAX_PARAMS) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *value = values[i], *data;
        if (is_number(value)) {
            size += 2;
        }
        else if ((data = payload_of(value)) != NULL) {
            *index = SLOT(SLOT(data, N.at_storage), N.at_index);
            *history |= may_have_history(value);
            size += 5;
        }
        else if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
            for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(value); k++) {
                PyObject *item = PySequence_Fast_GET_ITEM(value, k);
                if (!is_number(item) || is_zero(item)) return NULL;
            }
            size += 2;
        }
        else {
            return NULL;
        }
    }
    PyObject *key = *index == NULL ? NULL : PyTuple_New(size);
    if (key == NULL) return NULL;
    PyTuple_SET_ITEM(key, at++, Py_NewRef(op));
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *value = values[i], *data = is_number(value) ? NULL : payload_of(value);
        if (data == NULL) {
            PyObject *part = is_zero(value) ? PyObject_Str(value) : PyList_CheckExact(value) ? PyList_AsTuple(value) : Py_NewRef(value); /* -0.0 equals 0.0 */
            if (part == NULL) {
                Py_DECREF(key);
                return NULL;
            }
            PyTuple_SET_ITEM(key, at++, Py_NewRef((PyObject *)Py_TYPE(value)));
            PyTuple_SET_ITEM(key, at++, part);
            continue;
        }
        Py_ssize_t which = 0;
        while (which < tensors && seen[which] != data) which++;
        PyObject *same = which < tensors ? PyLong_FromSsize_t(which) : Py_NewRef(Py_None); /* small numbers are always there */
        seen[tensors++] = data;
        PyTuple_SET_ITEM(key, at++, Py_NewRef(SLOT(data, N.at_shape)));
        PyTuple_SET_ITEM(key, at++, Py_NewRef(SLOT(data, N.at_stride)));
        PyTuple_SET_ITEM(key, at++, Py_NewRef(SLOT(data, N.at_dtype)));
        PyTuple_SET_ITEM(key, at++, Py_NewRef(SLOT(SLOT(data, N.at_storage), N.at_index)));
        PyTuple_SET_ITEM(key, at++, same);
    }
    return key;
}

/* --------------------------------------------------------------------------------------------------------------- launches */

/* The handle of this thread's stream on its device, if that is the plan's (a new reference); NULL without an exception else. */
static PyObject *stream_of(const Planned *plan)
{
    PyObject *device = PyObject_GetAttr(N.devices, N.device_name), *streams = NULL, *handle = NULL;
    if (device != NULL && (device == plan->index || PyObject_RichCompareBool(device, plan->index, Py_EQ) == 1) && (streams = PyObject_GetAttr(N.streams, N.streams_name)) != NULL) {
        PyObject *stream = PyDict_GetItem(streams, plan->index);
        handle = stream == NULL ? NULL : Py_XNewRef(SLOT(stream, N.at_handle));
    }
    Py_XDECREF(device);
    Py_XDECREF(streams);
    if (handle == NULL) PyErr_Clear(); /* the thread has chosen none yet */
    return handle;
}

typedef struct {
    PyObject *op, *stream;
    const Planned *plan;
} Asked;

static PyObject *workspace(const void *context, uint64_t size)
{
    const Asked *asked = context;
    return PyObject_CallFunction(N.workspace, "OOOOK", asked->op, asked->plan->function, asked->plan->index, asked->stream, (unsigned long long)size);
}

static PyObject *new_payload(const Planned *plan, PyObject *lease)
{
    PyObject *storage = N.storage->tp_alloc(N.storage, 0);
    if (storage == NULL) {
        Py_DECREF(lease);
        return NULL;
    }
    SLOT(storage, N.at_where) = Py_NewRef(plan->where);
    SLOT(storage, N.at_index) = Py_NewRef(plan->index);
    SLOT(storage, N.at_nbytes) = Py_NewRef(plan->nbytes);
    SLOT(storage, N.at_lease) = lease;
    PyObject *made = N.payload->tp_alloc(N.payload, 0);
    if (made == NULL) {
        Py_DECREF(storage);
        return NULL;
    }
    SLOT(made, N.at_shape) = Py_NewRef(plan->shape);
    SLOT(made, N.at_stride) = Py_NewRef(plan->stride);
    SLOT(made, N.at_dtype) = Py_NewRef(plan->dtype);
    SLOT(made, N.at_offset) = Py_NewRef(S.zero);
    SLOT(made, N.at_storage) = storage;
    return made;
}

static void fail(PyObject *op, const Planned *plan, PyObject *const *values, Py_ssize_t n, PyObject *result, int phase, int32_t status)
{
    PyObject *given = PyTuple_New(n);
    for (Py_ssize_t i = 0; given != NULL && i < n; i++) PyTuple_SET_ITEM(given, i, Py_NewRef(values[i]));
    PyObject *made = given == NULL ? NULL : PyObject_CallFunction(N.failed, "OOOOii", op, given, result, plan->function, phase, (int)status);
    if (made != NULL) PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    Py_XDECREF(given);
}

/* The result's payload. NULL without an exception declines. */
static PyObject *run(PyObject *op, const Planned *plan, PyObject *const *values, Py_ssize_t n)
{
    int64_t numbers[3 * MOST_TENSORS];
    Asked asked = {op, stream_of(plan), plan};
    if (asked.stream == NULL) return NULL;
    PyObject *lease = plan->bytes ? lease_of(plan->shelf, plan->bytes, asked.stream) : Py_NewRef(Py_None);
    PyObject *made = lease == NULL ? NULL : new_payload(plan, lease);
    if (made == NULL) {
        Py_DECREF(asked.stream);
        return NULL;
    }
    for (int t = 0; t < plan->count; t++) {
        PyObject *data = plan->tensor[t].source < 0 ? made : SLOT(values[plan->tensor[t].source], S.at_data), *storage = SLOT(data, N.at_storage);
        numbers[3 * t] = address_of_lease(SLOT(storage, N.at_lease));
        numbers[3 * t + 1] = PyLong_AsLongLong(SLOT(data, N.at_offset));
        numbers[3 * t + 2] = PyLong_AsLongLong(SLOT(storage, N.at_nbytes)) / plan->tensor[t].item;
    }
    int32_t status = 0;
    int phase = PyErr_Occurred() ? -1 : launch_phases(plan->launcher, PyLong_AsVoidPtr(asked.stream), numbers, workspace, &asked, &status, NULL);
    if (phase > 0) fail(op, plan, values, n, made, phase, status);
    if (phase) Py_CLEAR(made);
    Py_DECREF(asked.stream);
    return made;
}

/* The plan of a key, a new reference; NULL without an exception when there is none. `known`: whether it is known that there is none. */
static PyObject *plan_for(PyObject *key, int *known)
{
    PyObject *plan = PyDict_GetItemWithError(N.plans, key);
    *known = plan != NULL;
    if (plan == NULL) PyErr_Clear(); /* what cannot be compared has no plan */
    return plan == NULL || !Py_IS_TYPE(plan, &PlannedType) ? NULL : Py_NewRef(plan);
}

PyObject *run_launched(const Path *path, const Bound *bound)
{
    if (!N.ready || path->inplace || path->is_view || bound->out != NULL || bound->requires_grad) return NULL;
    if (PySet_GET_SIZE(N.begins) && PySet_Contains(N.begins, path->op)) return NULL; /* or an exception */
    PyObject *index;
    int history, known;
    PyObject *key = key_of(path->op, bound->value, path->params, &index, &history);
    PyObject *plan = key == NULL ? NULL : plan_for(key, &known);
    Py_XDECREF(key);
    PyObject *made = plan == NULL ? NULL : run(path->op, (Planned *)plan, bound->value, path->params);
    if (made != NULL) {
        made = make_result(made, ((Planned *)plan)->dtype);
        made = made == NULL ? NULL : finish_call(path, bound, made, history);
    }
    Py_XDECREF(plan);
    return made;
}

/* launched(op, args): (the spec, the result) of a call that has a plan, else None; what has none yet may have one from the next call on. */
PyObject *launched(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 2 || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "launched(operator, arguments)");
        return NULL;
    }
    if (!N.ready) Py_RETURN_NONE;
    PyObject *const *values = ((PyTupleObject *)args[1])->ob_item, *index, *found = NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(args[1]);
    int history, known = 1;
    PyObject *key = key_of(args[0], values, n, &index, &history);
    PyObject *plan = key == NULL ? NULL : plan_for(key, &known);
    if (!known) found = PyObject_CallFunctionObjArgs(N.later, args[0], args[1], key, NULL);
    if (plan != NULL) {
        PyObject *made = run(args[0], (Planned *)plan, values, n);
        found = made == NULL ? NULL : Py_BuildValue("(ON)", ((Planned *)plan)->spec, made);
    }
    Py_XDECREF(plan);
    Py_XDECREF(key);
    return found != NULL || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

/* ------------------------------------------------------------------------------------------------------------------ plans */

static PyObject *planned_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *launcher, *spec, *shape, *stride, *dtype, *nbytes, *where, *index, *function, *shelf, *sources;
    if (named != NULL && PyDict_GET_SIZE(named)) {
        PyErr_SetString(PyExc_TypeError, "Planned takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!OO!O!OO!OO!OO!O!", &LauncherType, &launcher, &spec, &PyTuple_Type, &shape, &PyTuple_Type, &stride, &dtype, &PyLong_Type, &nbytes, &where,
                          &PyLong_Type, &index, &function, &ShelfType, &shelf, &PyTuple_Type, &sources)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(sources) != launcher_tensors((Launcher *)launcher) || PyTuple_GET_SIZE(sources) > MOST_TENSORS) {
        PyErr_SetString(PyExc_ValueError, "a plan has a source for each of its launcher's tensors, and at most 16");
        return NULL;
    }
    Planned *made = (Planned *)type->tp_alloc(type, 0);
    if (made == NULL) return NULL;
    made->launcher = (Launcher *)Py_NewRef(launcher);
    made->spec = Py_NewRef(spec);
    made->shape = Py_NewRef(shape);
    made->stride = Py_NewRef(stride);
    made->dtype = Py_NewRef(dtype);
    made->nbytes = Py_NewRef(nbytes);
    made->where = Py_NewRef(where);
    made->index = Py_NewRef(index);
    made->function = Py_NewRef(function);
    made->shelf = Py_NewRef(shelf);
    made->bytes = PyLong_AsLongLong(nbytes);
    made->count = (int)PyTuple_GET_SIZE(sources);
    for (int t = 0; t < made->count; t++) {
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(sources, t), "iL", &made->tensor[t].source, &made->tensor[t].item)) break;
        if (made->tensor[t].item <= 0 || made->tensor[t].source >= MAX_PARAMS) PyErr_SetString(PyExc_ValueError, "a source is (number, bytes of an element)");
    }
    if (PyErr_Occurred()) Py_CLEAR(made);
    return (PyObject *)made;
}

static void planned_dealloc(Planned *self)
{
    PyObject *held[] = {(PyObject *)self->launcher, self->spec, self->shape, self->stride, self->dtype, self->nbytes, self->where, self->index, self->function, self->shelf};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) Py_XDECREF(held[i]);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef planned_members[] = {
    {"spec", T_OBJECT_EX, offsetof(Planned, spec), READONLY, "What the rule said."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject PlannedType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Planned",
    .tp_doc = "Planned(launcher, spec, shape, stride, dtype, bytes, device, its index, function, shelf, sources): one launch with its result.",
    .tp_basicsize = sizeof(Planned),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = planned_new,
    .tp_dealloc = (destructor)planned_dealloc,
    .tp_members = planned_members,
};

/* connect_npu(block=, segment=, pool=): the allocator's classes; later the others too, with which calls are run. */
PyObject *connect_npu(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"block", "segment", "pool", "payload", "storage", "stream", "plans", "later", "failed", "workspace", "devices", "streams", "begins", NULL};
    PyObject *block, *segment, *pool, *payload = NULL, *storage, *stream, *plans, *later, *failed, *space, *devices, *streams, *begins;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!|O!O!O!O!OOOOOO!", keywords, &PyType_Type, &block, &PyType_Type, &segment, &PyType_Type, &pool, &PyType_Type, &payload,
                                     &PyType_Type, &storage, &PyType_Type, &stream, &PyDict_Type, &plans, &later, &failed, &space, &devices, &streams, &PySet_Type, &begins)) {
        return NULL;
    }
    const Slot of_block[] = {{"address", &N.at_address}, {"size", &N.at_size}, {"requested", &N.at_requested}, {"segment", &N.at_segment}, {"previous", &N.at_previous},
                             {"next", &N.at_next}, {"allocated", &N.at_allocated}, {"cached", &N.at_cached}, {"uses", &N.at_uses}, {"events", &N.at_events},
                             {"born", &N.at_born}, {"frames", &N.at_frames}, {NULL, NULL}};
    const Slot of_segment[] = {{"stream", &N.at_stream}, {"small", &N.at_small}, {NULL, NULL}}, of_pool[] = {{"free", &N.at_free}, {"calls", &N.at_calls}, {NULL, NULL}};
    if (find_slots(block, of_block) < 0 || find_slots(segment, of_segment) < 0 || find_slots(pool, of_pool) < 0) return NULL;
    Py_XSETREF(N.block, (PyTypeObject *)Py_NewRef(block));
    if (payload == NULL) Py_RETURN_NONE;
    const Slot of_payload[] = {{"shape", &N.at_shape}, {"stride", &N.at_stride}, {"dtype", &N.at_dtype}, {"offset", &N.at_offset}, {"storage", &N.at_storage}, {NULL, NULL}};
    const Slot of_storage[] = {{"_where", &N.at_where}, {"_index", &N.at_index}, {"_nbytes", &N.at_nbytes}, {"_lease", &N.at_lease}, {NULL, NULL}};
    const Slot of_stream[] = {{"handle", &N.at_handle}, {NULL, NULL}};
    if (find_slots(payload, of_payload) < 0 || find_slots(storage, of_storage) < 0 || find_slots(stream, of_stream) < 0) return NULL;
    N.device_name = PyUnicode_InternFromString("device");
    N.streams_name = PyUnicode_InternFromString("streams");
    if (N.device_name == NULL || N.streams_name == NULL) return NULL;
    Py_XSETREF(N.payload, (PyTypeObject *)Py_NewRef(payload));
    Py_XSETREF(N.storage, (PyTypeObject *)Py_NewRef(storage));
    Py_XSETREF(N.plans, Py_NewRef(plans));
    Py_XSETREF(N.later, Py_NewRef(later));
    Py_XSETREF(N.failed, Py_NewRef(failed));
    Py_XSETREF(N.workspace, Py_NewRef(space));
    Py_XSETREF(N.devices, Py_NewRef(devices));
    Py_XSETREF(N.streams, Py_NewRef(streams));
    Py_XSETREF(N.begins, Py_NewRef(begins));
    N.ready = 1;
    Py_RETURN_NONE;
}

/* In a forked child, and when the program ends: nothing is launched any more. */
PyObject *disconnect_npu(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    N.ready = 0;
    Py_RETURN_NONE;
}
