/* Plan: what a rule said for an operator and a geometry is remembered, so that the next call of the kind needs no rule.
 *
 * A key has, for each argument, all that a rule may look at: dtype, shape and strides of a tensor, the value of an int, a text, a flag; of a number
 * its value, or, where numbers are operands, its kind and the range it is in (rules refuse numbers that a dtype cannot hold). Elements and
 * storages are not in it: `learn` (_dispatch/plans.py) shows the rule geometries alone, and remembers nothing of a rule that asks for more.
 * A call is planned when it comes the second time, so that shapes that never come again cost no more than the look.
 */
#include "plan.h"
#include "waves.h"

#include <math.h>

#define MOST_PLANS 128
#define FIRST_SLOTS 16
#define PROBES 4
#define SEEN 64

struct Plans {
    Py_ssize_t epoch;
    int slots, used;
    Plan **slot;
    uint32_t seen[SEEN]; /* hashes of calls that came once */
};

/* ------------------------------------------------------------------------------------------------------------------- key */

static inline int add(Key *key, uint64_t word)
{
    if (key->count == KEY_WORDS) {
        return 0;
    }
    key->word[key->count++] = word;
    return 1;
}

/* Shape and strides of a payload on the meta device. */
static int add_meta(Key *key, PyObject *tensor)
{
    PyObject *data = SLOT(tensor, S.at_data);
    if (data == NULL || Py_TYPE(data) != Z.payload) {
        return 0;
    }
    PyObject *shape = SLOT(data, Z.at_shape), *stride = SLOT(data, Z.at_stride);
    if (!PyTuple_Check(shape) || !PyTuple_Check(stride) || PyTuple_GET_SIZE(shape) != PyTuple_GET_SIZE(stride)) {
        return 0;
    }
    key->meta = 1;
    if (!add(key, (uint64_t)(uintptr_t)SLOT(tensor, S.at_dtype)) || !add(key, 0x1100u | (unsigned)PyTuple_GET_SIZE(shape))) {
        return 0;
    }
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); d++) {
        Py_ssize_t size, step;
        if (!as_index(PyTuple_GET_ITEM(shape, d), &size) || !as_index(PyTuple_GET_ITEM(stride, d), &step) || !add(key, (uint64_t)size) ||
            !add(key, (uint64_t)step)) {
            return 0;
        }
    }
    return 1;
}

static int add_array(Key *key, PyObject *tensor)
{
    PyArrayObject *array = array_of(tensor);
    if (array == NULL) {
        return add_meta(key, tensor);
    }
    key->cpu = 1;
    int ndim = PyArray_NDIM(array);
    if (ndim > MAX_DIMS || key->count + 2 * ndim + 2 > KEY_WORDS || !PyArray_ISALIGNED(array)) {
        return 0;
    }
    uint64_t *word = key->word + key->count;
    *word++ = (uint64_t)(uintptr_t)SLOT(tensor, S.at_dtype);
    *word++ = 0x100u | (unsigned)ndim;
    const npy_intp *dims = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
    for (int d = 0; d < ndim; d++) {
        *word++ = (uint64_t)dims[d];
        *word++ = (uint64_t)strides[d];
    }
    key->count += 2 + 2 * ndim;
    return 1;
}

/* The range of a magnitude, between the limits that rules compare with. */
static unsigned range_of(double size)
{
    static const double limits[] = {0, 1, 127, 255, 32767, 65504, 2147483647.0, 9223372036854775807.0, 3.3895313892515355e38, 3.4028234663852886e38};
    unsigned at = 0;
    while (at < sizeof(limits) / sizeof(limits[0]) && size > limits[at]) {
        at++;
    }
    return isinf(size) ? 30 : isnan(size) ? 31 : at;
}

static int add_number(Key *key, PyObject *value, int range)
{
    uint64_t word = 0;
    double number;
    if (PyBool_Check(value)) {
        return add(key, 0x200u | (value == Py_True));
    }
    if (PyFloat_CheckExact(value)) {
        number = PyFloat_AS_DOUBLE(value);
        if (!range) {
            memcpy(&word, &number, 8);
            return add(key, 0x300u) && add(key, word);
        }
        return add(key, 0x400u | range_of(fabs(number)) | (signbit(number) ? 0x80u : 0));
    }
    if (PyComplex_CheckExact(value)) {
        const Py_complex both = PyComplex_AsCComplex(value);
        uint64_t words[2];
        memcpy(words, &both, 16);
        return add(key, 0xc00u) && add(key, words[0]) && add(key, words[1]);
    }
    if (!PyLong_CheckExact(value)) {
        return 0;
    }
    int overflow;
    long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) {
        return 0;
    }
    if (!range) {
        return add(key, 0x500u) && add(key, (uint64_t)whole);
    }
    if (whole >= -127 && whole <= 127) { /* most are */
        return add(key, 0x600u | (whole == 0 ? 0 : whole == 1 || whole == -1 ? 1 : 2) | (whole < 0 ? 0x80u : 0));
    }
    if (whole == -128 || whole == -32768 || whole == -2147483648LL || whole == LLONG_MIN) {
        return 0; /* the lowest of a type, whose magnitude is past its highest */
    }
    return add(key, 0x600u | range_of(fabs((double)whole)) | (whole < 0 ? 0x80u : 0));
}

static int add_ints(Key *key, PyObject *tuple)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    if (!add(key, 0x700u | ((uint64_t)count << 16))) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t value;
        if (!as_index(PyTuple_GET_ITEM(tuple, i), &value) || !add(key, (uint64_t)value)) {
            return 0;
        }
    }
    return 1;
}

static int add_argument(Key *key, const Path *path, int at, PyObject *value)
{
    if (value == Py_None) {
        return add(key, 0x800u);
    }
    switch (path->kinds[at]) {
    case 'N':
    case 'T':
        if (is_plain(value)) {
            return add_array(key, value);
        }
        return add_number(key, value, path->pointwise);
    case 'S':
        return add_number(key, value, path->pointwise);
    case 'F':
    case 'I':
        return add_number(key, value, 0);
    case 'L':
        return PyTuple_Check(value) && add_ints(key, value);
    case 'V':
    case 'v': {
        Py_ssize_t count = PyList_GET_SIZE(value);
        if (!add(key, 0x900u | ((uint64_t)count << 16))) {
            return 0;
        }
        /* Runs of items that are alike, as in a batch that is stacked: how many, and the words of one. */
        int start = 0, words = 0;
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *item = PyList_GET_ITEM(value, i);
            const int before = key->count;
            if (!add(key, 0xd00u | 1u << 16) || !(item == Py_None ? add(key, 0x800u) : add_array(key, item))) {
                return 0;
            }
            const int made = key->count - before;
            if (made == words && memcmp(key->word + start + 1, key->word + before + 1, sizeof(uint64_t) * (size_t)(words - 1)) == 0) {
                key->word[start] += 1u << 16;
                key->count = before;
                continue;
            }
            start = before;
            words = made;
        }
        return 1;
    }
    case 'G': /* None is behind: which stream is read changes no geometry */
        return add(key, 0xa00u);
    case 'B':
    case 'X':
    case 'D':
    case 'O':
        return add(key, 0xb00u) && add(key, (uint64_t)(uintptr_t)value);
    case 'C':
        *(value == Z.device ? &key->meta : &key->cpu) = 1;
        return add(key, 0xb00u) && add(key, (uint64_t)(uintptr_t)value);
    default:
        return 0;
    }
}

static uint64_t hash_of(const Key *key)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < key->count; i++) {
        hash = (hash ^ key->word[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

/* ----------------------------------------------------------------------------------------------------------------- memory */

void plan_release(Plan *plan)
{
    if (--plan->references > 0) {
        return;
    }
    for (int i = 0; i < plan->count; i++) {
        Py_XDECREF(plan->result[i].dtype);
        Py_XDECREF((PyObject *)plan->result[i].descr);
    }
    Py_XDECREF((PyObject *)plan->compute);
    Py_XDECREF(plan->kernel);
    Py_XDECREF((PyObject *)plan->blocked);
    Py_XDECREF((PyObject *)plan->cls);
    Py_XDECREF(plan->alive);
    for (int i = 0; plan->meta != NULL && i < plan->count; i++) {
        Py_XDECREF(plan->meta[i].shape);
        Py_XDECREF(plan->meta[i].stride);
        Py_XDECREF(plan->meta[i].dtype);
        Py_XDECREF(plan->meta[i].nbytes);
    }
    PyMem_Free(plan->meta);
    PyMem_Free(plan->word);
    PyMem_Free(plan);
}

static void forget(Plans *plans)
{
    for (int i = 0; i < plans->slots; i++) {
        Plan *plan = plans->slot[i];
        plans->slot[i] = NULL;
        if (plan != NULL) {
            plan_release(plan);
        }
    }
    plans->used = 0;
    plans->epoch = S.epoch_of_plans;
}

void plans_free(Plans *plans)
{
    if (plans != NULL) {
        forget(plans);
        PyMem_Free(plans->slot);
        PyMem_Free(plans);
    }
}

int plans_traverse(Plans *plans, visitproc visit, void *arg)
{
    for (int i = 0; plans != NULL && i < plans->slots; i++) {
        if (plans->slot[i] != NULL) {
            Py_VISIT(plans->slot[i]->kernel);
        }
    }
    return 0;
}

static Plans *plans_of(Path *path)
{
    Plans *plans = path->plans;
    if (plans == NULL) {
        plans = path->plans = PyMem_Calloc(1, sizeof(Plans));
        if (plans == NULL) {
            return NULL;
        }
        plans->epoch = S.epoch_of_plans;
    }
    if (plans->epoch != S.epoch_of_plans) {
        forget(plans);
    }
    return plans;
}

static Plan *find(const Plans *plans, const Key *key, uint64_t hash)
{
    for (int i = 0; plans->slots && i < PROBES; i++) {
        Plan *plan = plans->slot[(hash + (unsigned)i) & (unsigned)(plans->slots - 1)];
        if (plan != NULL && plan->hash == hash && plan->words == key->count && memcmp(plan->word, key->word, 8 * (size_t)key->count) == 0) {
            return plan;
        }
    }
    return NULL;
}

/* Takes over the reference. A full neighbourhood gives up its first plan. */
static void put(Plans *plans, Plan *plan)
{
    unsigned mask = (unsigned)plans->slots - 1;
    for (int i = 0; i < PROBES; i++) {
        Plan **slot = &plans->slot[(plan->hash + (unsigned)i) & mask];
        if (*slot == NULL) {
            *slot = plan;
            plans->used++;
            return;
        }
    }
    Plan **slot = &plans->slot[plan->hash & mask], *before = *slot;
    *slot = plan;
    plan_release(before);
}

static int grow(Plans *plans)
{
    if (plans->slots && (plans->slots == MOST_PLANS || plans->used * 2 < plans->slots)) {
        return 1;
    }
    Plan **before = plans->slot;
    int count = plans->slots;
    Plan **made = PyMem_Calloc((size_t)(count ? 2 * count : FIRST_SLOTS), sizeof(Plan *));
    if (made == NULL) {
        return count > 0;
    }
    plans->slot = made;
    plans->slots = count ? 2 * count : FIRST_SLOTS;
    plans->used = 0;
    for (int i = 0; i < count; i++) {
        if (before[i] != NULL) {
            put(plans, before[i]);
        }
    }
    PyMem_Free(before);
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------------- learning */

static int read_result(PyObject *description, Result *result)
{
    if (description == Py_None) {
        result->absent = 1;
        return 1;
    }
    PyObject *shape, *stride, *kind, *descr;
    Py_ssize_t offset;
    if (!PyArg_ParseTuple(description, "OOOOn", &shape, &stride, &kind, &descr, &offset)) {
        return 0;
    }
    result->dtype = Py_NewRef(kind);
    if (!PyArray_DescrCheck(descr)) {
        return 0;
    }
    result->descr = (PyArray_Descr *)Py_NewRef(descr);
    if (shape == Py_None) {
        result->unknown = 1;
        result->contiguous = stride == Py_None;
        return 1;
    }
    npy_intp item = PyDataType_ELSIZE(result->descr), next = item;
    result->ndim = (int)PyTuple_GET_SIZE(shape);
    if (result->ndim > MAX_DIMS) {
        return 0;
    }
    result->contiguous = 1;
    for (int d = 0; d < result->ndim; d++) {
        result->dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
        if (__builtin_mul_overflow(PyLong_AsSsize_t(PyTuple_GET_ITEM(stride, d)), item, &result->strides[d])) {
            return 0;
        }
    }
    for (int d = result->ndim - 1; d >= 0; d--) {
        result->contiguous &= result->strides[d] == next;
        if (result->dims[d] > 1 && __builtin_mul_overflow(next, result->dims[d], &next)) {
            return 0; /* without elements, by another dimension */
        }
    }
    result->offset = offset * item;
    return !PyErr_Occurred();
}

/* The dtype of the first argument, of a ufunc with that operand alone; NULL when there is none. */
static PyArray_Descr *only_operand(const Bound *bound, int operands)
{
    PyArrayObject *array = operands == 1 && is_plain(bound->value[0]) ? array_of(bound->value[0]) : NULL;
    return array != NULL && PyArray_ISNOTSWAPPED(array) ? PyArray_DESCR(array) : NULL;
}

/* The loop of a ufunc for the dtypes of a plan. */
static void find_loop(Plan *plan, PyObject *ufunc, int operands, const Bound *bound)
{
    PyUFuncObject *table = (PyUFuncObject *)ufunc;
    if (plan->how != PLAN_ONE || !PyObject_TypeCheck(ufunc, &PyUFunc_Type) || table->nout != 1 || table->nin != operands || table->functions == NULL ||
        table->core_enabled) {
        return;
    }
    PyArray_Descr *given = plan->compute != NULL ? plan->compute : only_operand(bound, operands);
    if (given == NULL) {
        return;
    }
    int type = given->type_num, to = plan->result[0].descr->type_num;
    if (plan->half) {
        to = type;
    }
    for (int i = 0; i < table->ntypes; i++) {
        const char *types = table->types + i * (table->nin + 1);
        if (types[0] == type && (operands == 1 || types[1] == type) && types[operands] == to) {
            plan->loop.call = table->functions[i];
            plan->loop.data = table->data == NULL ? NULL : (void *)table->data[i];
            plan->loop = type == NPY_DOUBLE && to == NPY_DOUBLE ? wave_loop(table->name, plan->loop) : plan->loop;
            return;
        }
    }
}

/* On the meta device: (how, class, ((shape, stride, dtype, nbytes) or None, ...)). */
static Plan *read_meta_plan(PyObject *learnt)
{
    int how;
    PyObject *cls, *results;
    if (!PyArg_ParseTuple(learnt, "iOO!", &how, &cls, &PyTuple_Type, &results)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(results);
    Plan *plan = PyMem_Calloc(1, sizeof(Plan) + (size_t)count * sizeof(Result));
    if (plan == NULL) {
        return NULL;
    }
    plan->references = 1;
    plan->how = how;
    plan->cls = PyType_Check(cls) ? (PyTypeObject *)Py_NewRef(cls) : NULL;
    plan->meta = PyMem_Calloc((size_t)count + 1, sizeof(MetaResult));
    for (Py_ssize_t i = 0; plan->meta != NULL && i < count; i++) {
        plan->count++;
        PyObject *one = PyTuple_GET_ITEM(results, i), *shape, *stride, *kind, *nbytes;
        if (one == Py_None) {
            continue;
        }
        if (!PyArg_ParseTuple(one, "O!O!OO", &PyTuple_Type, &shape, &PyTuple_Type, &stride, &kind, &nbytes)) {
            plan_release(plan);
            return NULL;
        }
        plan->meta[i] = (MetaResult){Py_NewRef(shape), Py_NewRef(stride), Py_NewRef(kind), Py_NewRef(nbytes)};
    }
    return plan;
}

/* (how, compute, kernel, takes_out, blocked, half, class, listed, results, constants) of `learn`; NULL without an exception when it is None. */
static Plan *read_plan(PyObject *learnt)
{
    int how, takes_out, half, listed;
    PyObject *compute, *kernel, *blocked, *cls, *results, *constants;
    if (!PyArg_ParseTuple(learnt, "iOOpOpOpO!O!", &how, &compute, &kernel, &takes_out, &blocked, &half, &cls, &listed, &PyTuple_Type, &results,
                          &PyTuple_Type, &constants)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(results);
    Plan *plan = PyMem_Calloc(1, sizeof(Plan) + (size_t)count * sizeof(Result));
    if (plan == NULL) {
        return NULL;
    }
    plan->references = 1;
    plan->how = how;
    plan->takes_out = takes_out;
    plan->half = half;
    plan->listed = listed;
    plan->kernel = Py_NewRef(kernel);
    plan->compute = PyArray_DescrCheck(compute) ? (PyArray_Descr *)Py_NewRef(compute) : NULL;
    plan->blocked = Py_IS_TYPE(blocked, &BlockedType) ? (Blocked *)Py_NewRef(blocked) : NULL;
    plan->halves = plan->compute == S.descr32 && plan->how <= PLAN_SEVERAL && kernel_takes_halves(kernel);
    plan->cls = PyType_Check(cls) ? (PyTypeObject *)Py_NewRef(cls) : NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        plan->constants |= 1u << PyLong_AsLong(PyTuple_GET_ITEM(constants, i));
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        plan->count++;
        if (!read_result(PyTuple_GET_ITEM(results, i), &plan->result[i])) {
            plan_release(plan);
            return NULL;
        }
    }
    return plan;
}

static Plan *learn(Path *path, const Bound *bound, const Key *key, uint64_t hash)
{
    PyObject *args = PyTuple_New(path->params);
    for (int i = 0; args != NULL && i < path->params; i++) {
        PyTuple_SET_ITEM(args, i, Py_NewRef(bound->value[i]));
    }
    PyObject *learnt = args == NULL ? NULL : PyObject_CallFunctionObjArgs(S.learn, path->op, args, key->meta ? Py_True : Py_False, NULL);
    Py_XDECREF(args);
    if (learnt == NULL || learnt == Py_None) {
        Py_XDECREF(learnt);
        return NULL;
    }
    Plan *plan = key->meta ? read_meta_plan(learnt) : read_plan(learnt);
    Py_DECREF(learnt);
    if (plan == NULL) {
        return NULL;
    }
    plan->hash = hash;
    plan->words = key->count;
    plan->word = PyMem_Malloc(8 * (size_t)key->count + 8);
    PyObject *alive = PyTuple_New(path->params);
    if (plan->word == NULL || alive == NULL) {
        Py_XDECREF(alive);
        plan_release(plan);
        return NULL;
    }
    memcpy(plan->word, key->word, 8 * (size_t)key->count);
    for (int i = 0; i < path->params; i++) {
        int by_address = strchr("BXDCO", path->kinds[i]) != NULL;
        PyTuple_SET_ITEM(alive, i, Py_NewRef(by_address ? bound->value[i] : Py_None));
    }
    plan->alive = alive;
    if (path->ufunc != NULL && plan->meta == NULL) {
        find_loop(plan, path->ufunc, path->ufunc_operands, bound);
    }
    return plan;
}

Plan *plan_of(Path *path, const Bound *bound)
{
    Key key;
    key.count = key.meta = key.cpu = 0;
    for (int i = 0; i < path->params; i++) {
        if (!add_argument(&key, path, i, bound->value[i])) {
            return NULL;
        }
    }
    Plans *plans = key.meta && key.cpu ? NULL : plans_of(path); /* devices that do not go together are Python's business */
    if (plans == NULL) {
        return NULL;
    }
    uint64_t hash = hash_of(&key);
    Plan *plan = find(plans, &key, hash);
    if (plan != NULL) {
        plan->references++;
        return plan;
    }
    uint32_t *seen = &plans->seen[hash % SEEN];
    if (*seen != (uint32_t)(hash >> 32)) {
        *seen = (uint32_t)(hash >> 32);
        return NULL;
    }
    plan = learn(path, bound, &key, hash);
    if (plan == NULL) {
        return NULL;
    }
    if (path->plans == plans && plans->epoch == S.epoch_of_plans && grow(plans)) { /* the rule is Python, which may do anything */
        plan->references++;
        put(plans, plan);
    }
    return plan;
}
