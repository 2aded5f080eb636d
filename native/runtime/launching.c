/* Launches of aclnn functions on an NPU: descriptors, both phases and release, without a call of Python between them.
 *
 * Note [Arguments of whole words]
 * Calls and Launchers hold addresses of C functions whose arguments are pointers, integers and bools, and at most eight floats and doubles. Each of the former is passed as a word of 64 bits,
 * whatever its size: the procedure call standards of x86-64 and AArch64 pass every such argument in a register or a slot of eight bytes, of which the callee reads what it
 * needs. The latter go by registers of their own, in their order among themselves; a float is the lower half of one. On other processors nothing is called this way (LAUNCHES is 0 then).
 *
 * Note [Nothing between the phases]
 * Python runs signal handlers between its own instructions. There are none here from the first descriptor to the last one's end, but where a workspace is asked for, and
 * then the executor is destroyed before the exception goes on.
 *
 * Note [Repeated launches]
 * A plan's launcher may keep what the first phase made: an executor that CANN has been told to keep (aclSetAclOpExecutorRepeatable, right behind that phase), and the descriptors that it reads. The
 * next launch gives them the new addresses (aclSetTensorAddr) and calls the second phase alone. CANN refuses some functions, whose launchers do not ask again; and tensors that begin elsewhere
 * in their memory, or have more or less of it, are launched as ever, since descriptors have that for good. One thread at a time uses what is kept. It goes with the launcher, or with a launch that fails.
 */
#include "npu.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIMS MAX_DIMS
#define WORDS 16      /* that a short function takes, without the last two */
#define MORE_WORDS 62 /* that any takes */
#define FLOATS 8
#define GROUPS 16
#define MOST_KEPT 1024 /* executors of all launchers together */

typedef int32_t (*Phase)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t, uint64_t, uint64_t, double, double, double, double, double, double, double, double);
#define W8 uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t
typedef int32_t (*LongPhase)(W8, W8, W8, W8, W8, W8, W8, W8, double, double, double, double, double, double, double, double);
#undef W8
typedef void *(*CreateTensor)(const int64_t *, uint64_t, int, const int64_t *, int64_t, int, const int64_t *, uint64_t, void *);
typedef void *(*CreateScalar)(void *, int);
typedef void *(*CreateMany)(const void *, uint64_t);
typedef int32_t (*Destroy)(const void *);
typedef int32_t (*Second)(void *, uint64_t, void *, void *);
typedef int32_t (*Synchronize)(void *);
typedef int32_t (*SetAddress)(void *, size_t, void *, void *);
typedef int32_t (*ViewShape)(const void *, int64_t **, uint64_t *);

/* The functions that every call needs, in the order in which they are given. */
typedef struct {
    PyObject_HEAD
    CreateTensor tensor;
    Destroy end_tensor;
    CreateScalar scalar;
    Destroy end_scalar, end_executor;
    CreateMany many[5]; /* tensors, scalars, ints, bools, floats */
    Destroy end_many[5];
    Synchronize synchronize;
    ViewShape view_shape;
} Calls;
#define FUNCTIONS 17

enum { LIST_TENSORS, LIST_SCALARS, LIST_INTS, LIST_BOOLS, LIST_FLOATS, TEXT };

typedef struct {
    int place, ndim, dtype, format; /* place: among the words, or -1 in a list */
    int64_t dims[DIMS], strides[DIMS];
} TensorPlan;

typedef struct {
    int place, dtype;
    char value[16];
} ScalarPlan;

typedef struct {
    int place, kind, first;
    Py_ssize_t count;
    PyObject *bytes;
} GroupPlan;

typedef struct {
    const Launcher *of;
    void **made; /* tensors, then scalars */
    int tensors, scalars, groups;
    void *group[GROUPS];
} Made;

/* What a launcher keeps; see Note [Repeated launches]. */
typedef struct {
    void *executor;
    uint64_t workspace;
    Made made;
    int64_t *numbers; /* of the last launch */
} Kept;

struct Launcher {
    PyObject_HEAD
    vectorcallfunc call;
    Calls *calls;
    uintptr_t first;
    Second second;
    int tensors, scalars, groups, words, floats, shape_of;
    TensorPlan *tensor;
    ScalarPlan *scalar;
    GroupPlan group[GROUPS];
    uint64_t word[MORE_WORDS + 2];
    double real[FLOATS];
    int32_t (*repeatable)(void *); /* NULL: nothing is kept */
    SetAddress set_address;
    size_t *position; /* of a tensor, among those of the function */
    Kept *kept;
    int busy;
};

static int executors_kept;

int launcher_tensors(const Launcher *self)
{
    return self->tensors;
}

/* --------------------------------------------------------------------------------------------------------------- launches */

static void destroy_all(Made *made)
{
    const Launcher *self = made->of;
    const Calls *calls = self->calls;
    while (made->groups) {
        int g = --made->groups;
        if (made->group[g] != NULL) calls->end_many[self->group[g].kind](made->group[g]); /* a list's elements go with it */
    }
    while (made->scalars) {
        int s = --made->scalars;
        if (self->scalar[s].place >= 0) calls->end_scalar(made->made[self->tensors + s]);
    }
    while (made->tensors) {
        int t = --made->tensors;
        if (self->tensor[t].place >= 0) calls->end_tensor(made->made[t]);
    }
}

/* What is in no list yet, where a list could not be made. */
static void destroy_listed(Made *made, int from)
{
    const Launcher *self = made->of;
    for (int g = from; g < self->groups; g++) {
        const GroupPlan *plan = &self->group[g];
        for (Py_ssize_t i = 0; i < plan->count && plan->kind <= LIST_SCALARS; i++) {
            int at = plan->first + (int)i, has = plan->kind == LIST_TENSORS ? at < made->tensors : at < made->scalars;
            if (has && plan->kind == LIST_TENSORS) self->calls->end_tensor(made->made[at]);
            else if (has) self->calls->end_scalar(made->made[self->tensors + at]);
        }
    }
}

static int describe(Made *made, const int64_t *numbers, uint64_t *word)
{
    const Launcher *self = made->of;
    const Calls *calls = self->calls;
    for (; made->tensors < self->tensors; made->tensors++) {
        const TensorPlan *plan = &self->tensor[made->tensors];
        const int64_t *own = numbers + 3 * made->tensors;
        void *one = calls->tensor(plan->dims, (uint64_t)plan->ndim, plan->dtype, plan->strides, own[1], plan->format, &own[2], 1, (void *)(intptr_t)own[0]);
        if (one == NULL) return -1;
        made->made[made->tensors] = one;
        if (plan->place >= 0) word[plan->place] = (uint64_t)(uintptr_t)one;
    }
    for (; made->scalars < self->scalars; made->scalars++) {
        const ScalarPlan *plan = &self->scalar[made->scalars];
        void *one = calls->scalar((void *)plan->value, plan->dtype);
        if (one == NULL) return -1;
        made->made[self->tensors + made->scalars] = one;
        if (plan->place >= 0) word[plan->place] = (uint64_t)(uintptr_t)one;
    }
    for (; made->groups < self->groups; made->groups++) {
        const GroupPlan *plan = &self->group[made->groups];
        const void *items = plan->kind == LIST_TENSORS   ? (const void *)(made->made + plan->first)
                            : plan->kind == LIST_SCALARS ? (const void *)(made->made + self->tensors + plan->first)
                                                         : (const void *)PyBytes_AS_STRING(plan->bytes);
        void *one = plan->kind == TEXT ? NULL : calls->many[plan->kind](items, (uint64_t)plan->count);
        if (one == NULL && plan->kind != TEXT) return -1;
        made->group[made->groups] = one;
        word[plan->place] = (uint64_t)(uintptr_t)(plan->kind == TEXT ? items : one);
    }
    return 0;
}

static int32_t call_first(const Launcher *self, const uint64_t *w)
{
    const double *r = self->real;
    if (self->words <= WORDS) {
        return ((Phase)self->first)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13], w[14], w[15], w[16], w[17], r[0], r[1], r[2],
                                    r[3], r[4], r[5], r[6], r[7]);
    }
#define W8(n) w[n], w[n + 1], w[n + 2], w[n + 3], w[n + 4], w[n + 5], w[n + 6], w[n + 7]
    return ((LongPhase)self->first)(W8(0), W8(8), W8(16), W8(24), W8(32), W8(40), W8(48), W8(56), r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]);
#undef W8
}

/* The shape that a kernel gave its result. ACL allocates the array and has nothing to release it with: a few bytes are lost each time. */
static PyObject *view_shape(const Launcher *self, const void *tensor, int32_t *status)
{
    int64_t *dims = NULL;
    uint64_t count = 0;
    *status = self->calls->view_shape(tensor, &dims, &count);
    PyObject *shape = *status ? NULL : PyTuple_New((Py_ssize_t)count);
    for (uint64_t d = 0; shape != NULL && d < count; d++) {
        PyObject *size = PyLong_FromLongLong(dims[d]);
        if (size == NULL) Py_CLEAR(shape);
        else PyTuple_SET_ITEM(shape, (Py_ssize_t)d, size);
    }
    return shape;
}

/* ------------------------------------------------------------------------------------------------------ repeated launches */

/* The executor first, since it reads the descriptors. Nothing where the runtime is gone, or another process's. */
static void let_go(Launcher *self)
{
    Kept *kept = self->kept;
    if (kept == NULL) return;
    self->kept = NULL;
    executors_kept--;
    if (N.ready) {
        self->calls->end_executor(kept->executor);
        destroy_all(&kept->made);
    }
    PyMem_RawFree(kept->made.made);
    PyMem_RawFree(kept->numbers);
    PyMem_RawFree(kept);
}

/* Whether this launch may use, or make, what is kept. */
static int may_repeat(const Launcher *self, const int64_t *numbers)
{
    if (self->repeatable == NULL || self->busy || !N.ready) return 0;
    if (self->kept == NULL) return executors_kept < MOST_KEPT;
    for (int t = 0; t < self->tensors; t++) {
        const int64_t *new = numbers + 3 * t, *old = self->kept->numbers + 3 * t;
        if (new[1] != old[1] || new[2] != old[2]) return 0;
    }
    return 1;
}

/* Give what is kept the addresses of this launch. */
static int32_t renew(const Launcher *self, const int64_t *numbers)
{
    Kept *kept = self->kept;
    for (int t = 0; t < self->tensors; t++) {
        if (numbers[3 * t] == kept->numbers[3 * t]) continue;
        int32_t status = self->set_address(kept->executor, self->position[t], kept->made.made[t], (void *)(intptr_t)numbers[3 * t]);
        if (status) return status;
        kept->numbers[3 * t] = numbers[3 * t];
    }
    return 0;
}

/* Keep what the first phase made, if CANN and memory allow it. Runs without the interpreter's lock. */
static void keep(Launcher *self, const Made *made, const int64_t *numbers, void *executor, uint64_t workspace)
{
    size_t count = (size_t)(self->tensors + self->scalars), size = sizeof(int64_t) * 3 * (size_t)self->tensors;
    Kept *kept = PyMem_RawMalloc(sizeof *kept);
    void **items = PyMem_RawMalloc(sizeof(void *) * (count + 1));
    int64_t *given = PyMem_RawMalloc(size + 1);
    if (kept == NULL || items == NULL || given == NULL || self->repeatable(executor)) {
        PyMem_RawFree(kept);
        PyMem_RawFree(items);
        PyMem_RawFree(given);
        self->repeatable = NULL;
        return;
    }
    memcpy(items, made->made, sizeof(void *) * count);
    memcpy(given, numbers, size);
    *kept = (Kept){executor, workspace, *made, given};
    kept->made.made = items;
    self->kept = kept;
}

/* (address of aclSetAclOpExecutorRepeatable, of aclSetTensorAddr, the tensors' numbers among the function's): keep executors from now on. */
static PyObject *repeat(PyObject *callable, PyObject *args)
{
    Launcher *self = (Launcher *)callable;
    unsigned long long repeatable, set_address;
    PyObject *positions;
    if (!PyArg_ParseTuple(args, "KKO!", &repeatable, &set_address, &PyTuple_Type, &positions)) return NULL;
    int lists = 0;
    for (int g = 0; g < self->groups; g++) lists |= self->group[g].kind == LIST_TENSORS;
    if (!repeatable || !set_address || PyTuple_GET_SIZE(positions) != self->tensors || lists || self->shape_of >= 0 || self->position != NULL) {
        PyErr_SetString(PyExc_ValueError, "repeat() takes two addresses and a number for each tensor, once, of a launcher without lists of tensors");
        return NULL;
    }
    self->position = PyMem_Calloc((size_t)self->tensors + 1, sizeof(size_t));
    if (self->position == NULL) return PyErr_NoMemory();
    for (int t = 0; t < self->tensors; t++) self->position[t] = PyLong_AsSize_t(PyTuple_GET_ITEM(positions, t));
    if (PyErr_Occurred()) return NULL;
    self->set_address = (SetAddress)(uintptr_t)set_address;
    self->repeatable = (int32_t (*)(void *))(uintptr_t)repeatable;
    Py_RETURN_NONE;
}

static PyMethodDef launcher_methods[] = {
    {"repeat", repeat, METH_VARARGS, "Keep executors between launches: see Note [Repeated launches]."},
    {NULL, NULL, 0, NULL},
};

int launch_phases(Launcher *self, void *stream, const int64_t *numbers, Workspace workspace, const void *context, int32_t *status, PyObject **shape)
{
    void *few[16], *executor = NULL, *memory = NULL;
    uint64_t word[MORE_WORDS + 2], size = 0;
    Made made = {.of = self, .made = few};
    const int repeats = may_repeat(self, numbers), again = repeats && self->kept != NULL;
    int phase = 0;
    PyObject *lease = NULL;
    if (!again && self->tensors + self->scalars > 16 && (made.made = PyMem_Malloc(sizeof(void *) * (size_t)(self->tensors + self->scalars))) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(word, self->word, sizeof(uint64_t) * (self->words <= WORDS ? WORDS + 2 : MORE_WORDS + 2));
    word[self->words] = (uint64_t)(uintptr_t)&size;
    word[self->words + 1] = (uint64_t)(uintptr_t)&executor;
    *status = -1;
    if (repeats) self->busy = 1;
    PyThreadState *state = PyEval_SaveThread();
    if (again) {
        executor = self->kept->executor;
        size = self->kept->workspace;
        phase = (*status = renew(self, numbers)) ? 2 : 0;
    }
    else if (describe(&made, numbers, word) < 0) {
        destroy_listed(&made, made.groups);
        phase = 1;
    }
    else if ((*status = call_first(self, word))) {
        phase = 1;
    }
    else if (repeats) {
        keep(self, &made, numbers, executor, size);
    }
    const int kept = repeats && self->kept != NULL;
    if (!phase && size) {
        PyEval_RestoreThread(state);
        lease = workspace(context, size);
        long long address = lease == NULL ? -1 : address_of_lease(lease);
        memory = (void *)(intptr_t)address;
        if (lease == NULL || PyErr_Occurred()) {
            if (!kept) self->calls->end_executor(executor);
            phase = -1;
        }
        state = PyEval_SaveThread();
    }
    if (!phase) {
        *status = self->second(memory, size, executor, stream);
        phase = *status ? 2 : 0;
    }
    if (!phase && shape != NULL) {
        *status = self->calls->synchronize(stream);
        phase = *status ? 3 : 0;
    }
    void *found = shape == NULL ? NULL : (void *)(uintptr_t)word[self->shape_of];
    PyEval_RestoreThread(state);
    Py_XDECREF(lease);
    if (!phase && shape != NULL) {
        *shape = view_shape(self, found, status);
        phase = *status ? 4 : *shape == NULL ? -1 : 0;
    }
    if (kept && !again) executors_kept++;
    if (kept && phase) let_go(self);
    if (repeats) self->busy = 0;
    if (!kept) destroy_all(&made);
    if (made.made != few) PyMem_Free(made.made);
    return phase;
}

/* -------------------------------------------------------------------------------------------------------------- launchers */

static PyObject *ask(const void *callable, uint64_t size)
{
    return PyObject_CallFunction((PyObject *)callable, "K", (unsigned long long)size);
}

/* (stream, workspace, address, offset, stored elements, ...): None or the shape, or a list of phase and status. `workspace` gives a lease for a number of bytes. */
static PyObject *launch(PyObject *callable, PyObject *const *args, size_t count, PyObject *names)
{
    Launcher *self = (Launcher *)callable;
    int64_t few[48], *numbers = few;
    Py_ssize_t given = PyVectorcall_NARGS(count), wanted = 3 * (Py_ssize_t)self->tensors;
    if (names || given != 2 + wanted) {
        PyErr_Format(PyExc_TypeError, "a launcher takes a stream, a function and three numbers for each of %d tensors", self->tensors);
        return NULL;
    }
    void *stream = PyLong_AsVoidPtr(args[0]);
    if (wanted > 48 && (numbers = PyMem_Malloc(sizeof(int64_t) * (size_t)wanted)) == NULL) return PyErr_NoMemory();
    for (Py_ssize_t n = 0; n < wanted; n++) numbers[n] = (int64_t)PyLong_AsUnsignedLongLongMask(args[2 + n]);
    PyObject *shape = NULL;
    int32_t status = 0;
    int phase = PyErr_Occurred() ? -1 : launch_phases(self, stream, numbers, ask, args[1], &status, self->shape_of < 0 ? NULL : &shape);
    if (numbers != few) PyMem_Free(numbers);
    if (phase < 0) return NULL;
    if (phase) return Py_BuildValue("[ii]", phase, (int)status);
    return shape == NULL ? Py_NewRef(Py_None) : shape;
}

static int read_ints(PyObject *sequence, int64_t *into, int *count)
{
    if (!PyTuple_Check(sequence) || PyTuple_GET_SIZE(sequence) > DIMS) {
        PyErr_SetString(PyExc_ValueError, "a tuple of at most 16 integers is expected");
        return -1;
    }
    *count = (int)PyTuple_GET_SIZE(sequence);
    for (int d = 0; d < *count; d++) {
        into[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(sequence, d));
        if (into[d] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

/* (shape, strides, dtype, format) */
static int read_tensor(TensorPlan *plan, PyObject *description, int place)
{
    PyObject *shape, *strides;
    int count;
    plan->place = place;
    if (!PyArg_ParseTuple(description, "OOii", &shape, &strides, &plan->dtype, &plan->format) || read_ints(shape, plan->dims, &plan->ndim) ||
        read_ints(strides, plan->strides, &count)) {
        return -1;
    }
    if (count != plan->ndim) {
        PyErr_SetString(PyExc_ValueError, "a tensor of a launcher has as many strides as sizes");
        return -1;
    }
    return 0;
}

/* (bytes, dtype) */
static int read_scalar(ScalarPlan *plan, PyObject *description, int place)
{
    PyObject *bytes;
    plan->place = place;
    if (!PyArg_ParseTuple(description, "O!i", &PyBytes_Type, &bytes, &plan->dtype)) return -1;
    if (PyBytes_GET_SIZE(bytes) > (Py_ssize_t)sizeof plan->value) {
        PyErr_SetString(PyExc_ValueError, "a scalar of a launcher has at most 16 bytes");
        return -1;
    }
    memcpy(plan->value, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    return 0;
}

/* One argument: (letter, what it is). See the table in `_backends/npu/launchers.py`. */
static int read_argument(Launcher *made, char letter, PyObject *what)
{
    static const char lists[] = "TSIBFC";
    const char *list = strchr(lists, letter);
    if (letter == 'd' || letter == 'f') {
        double value = PyFloat_AsDouble(what);
        if (value == -1.0 && PyErr_Occurred()) return -1;
        if (letter == 'f') {
            float half = (float)value;
            memcpy(&made->real[made->floats], &half, sizeof half);
        }
        else made->real[made->floats] = value;
        made->floats++;
        return 0;
    }
    const int place = made->words++;
    if (letter == 'w') {
        made->word[place] = PyLong_AsUnsignedLongLongMask(what);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (letter == 't') return read_tensor(&made->tensor[made->tensors++], what, place);
    if (letter == 's') return read_scalar(&made->scalar[made->scalars++], what, place);
    if (list == NULL || made->groups == GROUPS) {
        PyErr_SetString(PyExc_ValueError, "an argument of a kind that launchers do not know");
        return -1;
    }
    GroupPlan *group = &made->group[made->groups++];
    group->place = place;
    group->kind = (int)(list - lists);
    if (group->kind <= LIST_SCALARS) {
        group->first = group->kind == LIST_TENSORS ? made->tensors : made->scalars;
        group->count = PyTuple_GET_SIZE(what);
        for (Py_ssize_t i = 0; i < group->count; i++) {
            PyObject *item = PyTuple_GET_ITEM(what, i);
            if (group->kind == LIST_TENSORS ? read_tensor(&made->tensor[made->tensors++], item, -1) : read_scalar(&made->scalar[made->scalars++], item, -1)) return -1;
        }
        return 0;
    }
    static const Py_ssize_t sizes[] = {[LIST_INTS] = 8, [LIST_BOOLS] = 1, [LIST_FLOATS] = 4, [TEXT] = 1};
    group->count = PyBytes_GET_SIZE(what) / sizes[group->kind];
    group->bytes = Py_NewRef(what);
    return 0;
}

/* Whether each argument is a letter with an object of its kind; counts tensors, scalars, words and floats. */
static int measure(PyObject *arguments, int *tensors, int *scalars, int *words, int *floats)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); i++) {
        PyObject *item = PyTuple_GET_ITEM(arguments, i);
        const char *text = PyTuple_Check(item) && PyTuple_GET_SIZE(item) == 2 && PyUnicode_Check(PyTuple_GET_ITEM(item, 0)) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0)) : NULL;
        const char letter = text == NULL ? 0 : text[0];
        PyObject *what = letter ? PyTuple_GET_ITEM(item, 1) : NULL;
        int fine = letter && (strchr("tsTS", letter) ? PyTuple_Check(what) : strchr("IBFC", letter) ? PyBytes_Check(what) : strchr("wdf", letter) != NULL);
        if (!fine) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "an argument of a launcher is a letter with what it stands for");
            return -1;
        }
        int many = strchr("TS", letter) != NULL ? (int)PyTuple_GET_SIZE(what) : 1;
        *tensors += letter == 't' || letter == 'T' ? many : 0;
        *scalars += letter == 's' || letter == 'S' ? many : 0;
        *floats += letter == 'd' || letter == 'f';
        *words += letter != 'd' && letter != 'f';
    }
    if (*words > MORE_WORDS || *floats > FLOATS) {
        PyErr_SetString(PyExc_ValueError, "a function with too many arguments for a launcher");
        return -1;
    }
    return 0;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *calls, *phases, *arguments;
    unsigned long long address[2];
    int shape_of = -1, tensors = 0, scalars = 0, words = 0, floats = 0;
    if (named && PyDict_GET_SIZE(named)) {
        PyErr_SetString(PyExc_TypeError, "Launcher takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!O!O!|i", &CallsType, &calls, &PyTuple_Type, &phases, &PyTuple_Type, &arguments, &shape_of) ||
        !PyArg_ParseTuple(phases, "KK", &address[0], &address[1]) || measure(arguments, &tensors, &scalars, &words, &floats) < 0) {
        return NULL;
    }
    if (!address[0] || !address[1]) {
        PyErr_SetString(PyExc_ValueError, "the address of a function is 0");
        return NULL;
    }
    Launcher *made = (Launcher *)type->tp_alloc(type, 0);
    if (!made) return NULL;
    made->call = launch;
    made->calls = (Calls *)Py_NewRef(calls);
    made->first = (uintptr_t)address[0];
    made->second = (Second)(uintptr_t)address[1];
    made->shape_of = shape_of;
    made->tensor = PyMem_Calloc((size_t)tensors + 1, sizeof(TensorPlan));
    made->scalar = PyMem_Calloc((size_t)scalars + 1, sizeof(ScalarPlan));
    int failed = made->tensor == NULL || made->scalar == NULL;
    if (failed) PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments) && !failed; i++) {
        PyObject *item = PyTuple_GET_ITEM(arguments, i);
        failed = read_argument(made, PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0))[0], PyTuple_GET_ITEM(item, 1)) < 0;
    }
    if (!failed && shape_of >= 0) {
        failed = 1;
        for (int t = 0; t < made->tensors; t++) failed = failed && made->tensor[t].place != shape_of;
        if (failed) PyErr_SetString(PyExc_ValueError, "the place whose shape is asked for is no tensor's");
    }
    if (failed) {
        Py_DECREF(made);
        return NULL;
    }
    return (PyObject *)made;
}

static void launcher_dealloc(Launcher *self)
{
    let_go(self);
    for (int g = 0; g < self->groups; g++) Py_XDECREF(self->group[g].bytes);
    PyMem_Free(self->position);
    PyMem_Free(self->tensor);
    PyMem_Free(self->scalar);
    Py_XDECREF((PyObject *)self->calls);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

PyTypeObject LauncherType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "mindtorch_v2._native.Launcher",
    .tp_doc = "Launcher(calls, phases, arguments, shape_of=-1): calls both phases of an aclnn function; see native/runtime/launching.c.",
    .tp_basicsize = sizeof(Launcher),
    .tp_vectorcall_offset = offsetof(Launcher, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = make,
    .tp_methods = launcher_methods,
    .tp_dealloc = (destructor)launcher_dealloc,
};

static PyObject *make_calls(PyTypeObject *type, PyObject *args, PyObject *named)
{
    uintptr_t address[FUNCTIONS];
    if (!LAUNCHES) {
        PyErr_SetString(PyExc_NotImplementedError, "launchers are for x86-64 and AArch64");
        return NULL;
    }
    if ((named && PyDict_GET_SIZE(named)) || PyTuple_GET_SIZE(args) != FUNCTIONS) {
        PyErr_Format(PyExc_TypeError, "Calls takes the addresses of %d functions", FUNCTIONS);
        return NULL;
    }
    for (int f = 0; f < FUNCTIONS; f++) {
        address[f] = (uintptr_t)PyLong_AsVoidPtr(PyTuple_GET_ITEM(args, f));
        if (PyErr_Occurred()) return NULL;
        if (!address[f]) {
            PyErr_SetString(PyExc_ValueError, "the address of a function is 0");
            return NULL;
        }
    }
    Calls *made = (Calls *)type->tp_alloc(type, 0);
    if (made == NULL) return NULL;
    made->tensor = (CreateTensor)address[0];
    made->end_tensor = (Destroy)address[1];
    made->scalar = (CreateScalar)address[2];
    made->end_scalar = (Destroy)address[3];
    made->end_executor = (Destroy)address[4];
    for (int kind = 0; kind < 5; kind++) {
        made->many[kind] = (CreateMany)address[5 + 2 * kind];
        made->end_many[kind] = (Destroy)address[6 + 2 * kind];
    }
    made->synchronize = (Synchronize)address[15];
    made->view_shape = (ViewShape)address[16];
    return (PyObject *)made;
}

PyTypeObject CallsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Calls",
    .tp_doc = "The functions of ACL that launches need, by their addresses; see native/runtime/launching.c.",
    .tp_basicsize = sizeof(Calls),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = make_calls,
};
