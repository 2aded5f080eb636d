/* mt19937 as a Python type: the same methods as `Mt19937` of `_random/engine.py`, and a lock that C and Python both take. */
#include "stream.h"
#include <structmember.h>

#define LOOPS "stream_loops.h"
#include "variants.h"

/* ---------------------------------------------------------------------------------------------------------------- draws */

static void restart(Stream *self, npy_uint64 seed)
{
    self->seed = seed;
    npy_uint32 word = (npy_uint32)seed;
    for (npy_uint32 i = 0; i < STREAM_WORDS; i++) {
        self->words[i] = word;
        word = 1812433253U * (word ^ (word >> 30)) + i + 1;
    }
    self->position = STREAM_WORDS;
    self->next_when_spent = 0;
}

void stream_draws(Stream *self, npy_uint32 *out, npy_intp n)
{
    if (n) {
        self->next_when_spent = STREAM_WORDS;
    }
    while (n) {
        if (self->position == STREAM_WORDS) {
            CHOOSE32(twist)(self->words);
            self->position = 0;
        }
        npy_intp count = STREAM_WORDS - self->position;
        count = count < n ? count : n;
        CHOOSE32(temper)(self->words + self->position, out, count);
        self->position += (int)count;
        out += count;
        n -= count;
    }
}

/* ----------------------------------------------------------------------------------------------------------------- lock */

/* The GIL is held. */
static void lock(Stream *self)
{
    unsigned long me = PyThread_get_thread_ident();
    if (self->depth && self->owner == me) {
        self->depth++;
        return;
    }
    if (!PyThread_acquire_lock(self->lock, NOWAIT_LOCK)) {
        Py_BEGIN_ALLOW_THREADS
        PyThread_acquire_lock(self->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS
    }
    self->owner = me;
    self->depth = 1;
}

static void unlock(Stream *self)
{
    if (--self->depth == 0) {
        PyThread_release_lock(self->lock);
    }
}

/* Whether a pipeline of this thread has recorded something, which has to be drawn first; -1 with an exception. */
static int is_recording(void)
{
    if (!is_special()) {
        return 0;
    }
    PyObject *pipeline = S.ready ? PyObject_GetAttr(S.tls, M.pipeline) : Py_NewRef(Py_True);
    if (pipeline == NULL) {
        return -1;
    }
    int recording = pipeline != Py_None;
    Py_DECREF(pipeline);
    return recording;
}

Stream *take_stream(PyObject *generator)
{
    if (is_recording()) {
        return NULL;
    }
    PyObject *found = Py_XNewRef(M.stream);
    if (generator != Py_None) {
        Py_XDECREF(found);
        found = PyObject_GetAttr(generator, M.made_engine);
        if (found == NULL) {
            PyErr_Clear(); /* a generator of another device */
        }
    }
    if (found == NULL || !Py_IS_TYPE(found, &StreamType)) {
        Py_XDECREF(found);
        return NULL;
    }
    Stream *stream = (Stream *)found;
    lock(stream);
    return stream;
}

void give_stream(Stream *stream)
{
    unlock(stream);
    Py_DECREF(stream);
}

static PyObject *stream_enter(Stream *self, PyObject *unused)
{
    (void)unused;
    lock(self);
    return Py_NewRef(self);
}

/* acquire(timeout), release(): the same for who cannot use a block, and seconds to wait at most. */
static PyObject *stream_acquire(Stream *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"timeout", NULL};
    double timeout;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "d", keywords, &timeout)) {
        return NULL;
    }
    unsigned long me = PyThread_get_thread_ident();
    if (self->depth && self->owner == me) {
        self->depth++;
        Py_RETURN_TRUE;
    }
    PyLockStatus got;
    Py_BEGIN_ALLOW_THREADS
    got = PyThread_acquire_lock_timed(self->lock, timeout > 0 ? (PY_TIMEOUT_T)((timeout < 3600 ? timeout : 3600) * 1e6) : 0, 0);
    Py_END_ALLOW_THREADS
    if (got != PY_LOCK_ACQUIRED) {
        Py_RETURN_FALSE;
    }
    self->owner = me;
    self->depth = 1;
    Py_RETURN_TRUE;
}

static PyObject *stream_release(Stream *self, PyObject *unused)
{
    (void)unused;
    if (!self->depth || self->owner != PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release a lock that is not held");
        return NULL;
    }
    unlock(self);
    Py_RETURN_NONE;
}

/* In a forked child: the thread that held it is gone. The old lock is left alone, since nobody may free one that is held. */
static PyObject *stream_reinit(Stream *self, PyObject *unused)
{
    (void)unused;
    PyThread_type_lock fresh = PyThread_allocate_lock();
    if (fresh == NULL) {
        return PyErr_NoMemory();
    }
    self->lock = fresh;
    self->depth = 0;
    Py_RETURN_NONE;
}

static PyObject *stream_exit(Stream *self, PyObject *args)
{
    (void)args;
    if (!self->depth || self->owner != PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release a lock that is not held");
        return NULL;
    }
    unlock(self);
    Py_RETURN_NONE;
}

/* -------------------------------------------------------------------------------------------------------------- methods */

static int take_seed(PyObject *value, npy_uint64 *seed)
{
    *seed = PyLong_AsUnsignedLongLong(value);
    return *seed == (npy_uint64)-1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *stream_seed(Stream *self, PyObject *value)
{
    npy_uint64 seed;
    if (take_seed(value, &seed) < 0) {
        return NULL;
    }
    restart(self, seed);
    Py_RETURN_NONE;
}

static PyObject *draw(Stream *self, PyObject *count, int type, npy_intp per_item)
{
    Py_ssize_t n = PyNumber_AsSsize_t(count, PyExc_OverflowError);
    if (n < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "a negative number of draws");
        }
        return NULL;
    }
    PyArrayObject *made = (PyArrayObject *)PyArray_SimpleNew(1, &n, type);
    if (made == NULL) {
        return NULL;
    }
    if (type == NPY_UINT32) {
        stream_draws(self, PyArray_DATA(made), n);
        return (PyObject *)made;
    }
    npy_uint64 *out = PyArray_DATA(made);
    npy_uint32 block[STREAM_BLOCK];
    for (npy_intp start = 0; start < n; start += STREAM_BLOCK / 2) {
        npy_intp part = n - start < STREAM_BLOCK / 2 ? n - start : STREAM_BLOCK / 2;
        stream_draws(self, block, part * per_item);
        for (npy_intp i = 0; i < part; i++) {
            out[start + i] = per_item == 1 ? block[i] : (npy_uint64)block[2 * i] << 32 | block[2 * i + 1];
        }
    }
    return (PyObject *)made;
}

static PyObject *stream_raw(Stream *self, PyObject *count)
{
    return draw(self, count, NPY_UINT64, 1);
}

static PyObject *stream_draws32(Stream *self, PyObject *count)
{
    return draw(self, count, NPY_UINT32, 1);
}

static PyObject *stream_draws64(Stream *self, PyObject *count)
{
    return draw(self, count, NPY_UINT64, 2);
}

static PyObject *stream_position(Stream *self, PyObject *unused)
{
    (void)unused;
    npy_intp n = STREAM_WORDS;
    PyObject *words = PyArray_SimpleNew(1, &n, NPY_UINT32);
    if (words == NULL) {
        return NULL;
    }
    memcpy(PyArray_DATA((PyArrayObject *)words), self->words, sizeof(self->words));
    int spent = self->position == STREAM_WORDS;
    return Py_BuildValue("(Nii)", words, spent ? 1 : STREAM_WORDS + 1 - self->position, spent ? self->next_when_spent : self->position);
}

static PyObject *stream_set_position(Stream *self, PyObject *args)
{
    PyObject *given;
    long long left, next;
    if (!PyArg_ParseTuple(args, "OLL", &given, &left, &next)) {
        return NULL;
    }
    int spent = left == 1 && next >= 0 && next <= STREAM_WORDS;
    if (!spent && !(left > 1 && left <= STREAM_WORDS && next == STREAM_WORDS + 1 - left)) {
        PyErr_SetString(PyExc_RuntimeError, "Invalid mt19937 state");
        return NULL;
    }
    PyObject *words = PyArray_FROMANY(given, NPY_UINT32, 1, 1, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
    if (words == NULL) {
        return NULL;
    }
    if (PyArray_DIM((PyArrayObject *)words, 0) != STREAM_WORDS) {
        Py_DECREF(words);
        PyErr_SetString(PyExc_RuntimeError, "Invalid mt19937 state");
        return NULL;
    }
    memcpy(self->words, PyArray_DATA((PyArrayObject *)words), sizeof(self->words));
    Py_DECREF(words);
    self->next_when_spent = (int)next;
    self->position = spent ? STREAM_WORDS : (int)next;
    Py_RETURN_NONE;
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"seed", NULL};
    PyObject *value;
    npy_uint64 seed;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", keywords, &value) || take_seed(value, &seed) < 0) {
        return NULL;
    }
    Stream *self = (Stream *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->lock = PyThread_allocate_lock();
    if (self->lock == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    restart(self, seed);
    return (PyObject *)self;
}

static PyObject *stream_copy(Stream *self, PyObject *unused)
{
    (void)unused;
    Stream *other = (Stream *)PyObject_CallFunction((PyObject *)Py_TYPE(self), "K", (unsigned long long)self->seed);
    if (other != NULL) {
        memcpy(other->words, self->words, sizeof(self->words));
        other->position = self->position;
        other->next_when_spent = self->next_when_spent;
    }
    return (PyObject *)other;
}

static void stream_dealloc(Stream *self)
{
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    if (self->lock != NULL) {
        PyThread_free_lock(self->lock);
    }
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* ----------------------------------------------------------------------------------------------------------- attributes */

static PyObject *get_seed(Stream *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(self->seed);
}

static int set_seed(Stream *self, PyObject *value, void *closure)
{
    (void)closure;
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "seed_value");
        return -1;
    }
    return take_seed(value, &self->seed);
}

static PyObject *get_double(Stream *self, void *closure)
{
    (void)closure;
    return self->has_double ? PyFloat_FromDouble(self->next_double) : Py_NewRef(Py_None);
}

static PyObject *get_float(Stream *self, void *closure)
{
    (void)closure;
    return self->has_float ? PyFloat_FromDouble(self->next_float) : Py_NewRef(Py_None);
}

/* A float, or None; -1 with an exception. */
static int take_waiting(PyObject *value, int *has, double *number)
{
    if (value == NULL || value == Py_None) {
        *has = 0;
        return 0;
    }
    double given = PyFloat_AsDouble(value);
    if (given == -1 && PyErr_Occurred()) {
        return -1;
    }
    *has = 1;
    *number = given;
    return 0;
}

static int set_double(Stream *self, PyObject *value, void *closure)
{
    (void)closure;
    return take_waiting(value, &self->has_double, &self->next_double);
}

static int set_float(Stream *self, PyObject *value, void *closure)
{
    (void)closure;
    double number = 0;
    int status = take_waiting(value, &self->has_float, &number);
    self->next_float = (float)number;
    return status;
}

static PyObject *get_lock(Stream *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self);
}

static PyGetSetDef getters[] = {
    {"seed_value", (getter)get_seed, (setter)set_seed, "The whole seed.", NULL},
    {"next_double", (getter)get_double, (setter)set_double, "The normal number that waits for the next call, or None.", NULL},
    {"next_float", (getter)get_float, (setter)set_float, "The same in single precision.", NULL},
    {"lock", (getter)get_lock, NULL, "Itself: a context manager whose block no other thread draws in.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"seed", (PyCFunction)stream_seed, METH_O, "Start the stream of a seed from its beginning."},
    {"raw", (PyCFunction)stream_raw, METH_O, "The next n 32-bit draws, as uint64."},
    {"draws32", (PyCFunction)stream_draws32, METH_O, "The next n 32-bit draws, as uint32."},
    {"draws64", (PyCFunction)stream_draws64, METH_O, "The next n 64-bit draws, as uint64: two of 32 bits each, the first one high."},
    {"position", (PyCFunction)stream_position, METH_NOARGS, "(words, left, next): the 624 words and PyTorch's two counters."},
    {"set_position", (PyCFunction)stream_set_position, METH_VARARGS, "Take over what `position` gave."},
    {"copy", (PyCFunction)stream_copy, METH_NOARGS, "A stream of its own that goes on with the same draws."},
    {"acquire", (PyCFunction)(void (*)(void))stream_acquire, METH_VARARGS | METH_KEYWORDS, "acquire(timeout): whether no other thread draws within so many seconds; nobody else does until `release`."},
    {"release", (PyCFunction)stream_release, METH_NOARGS, "End one `acquire`."},
    {"_at_fork_reinit", (PyCFunction)stream_reinit, METH_NOARGS, "Free the lock, in a forked child, from a thread that is gone."},
    {"__enter__", (PyCFunction)stream_enter, METH_NOARGS, "Wait until no other thread draws."},
    {"__exit__", (PyCFunction)stream_exit, METH_VARARGS, "Let others draw."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject StreamType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Stream",
    .tp_doc = "A stream of random draws, mt19937.",
    .tp_basicsize = sizeof(Stream),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = stream_new,
    .tp_dealloc = (destructor)stream_dealloc,
    .tp_weaklistoffset = offsetof(Stream, weakrefs),
    .tp_methods = methods,
    .tp_getset = getters,
};
