/* Memory of an NPU that is lent: what the caching allocator of `_backends/npu/allocator.py` does most of the time, on its own blocks, pools and counters.
 *
 * Note [Leases]
 * A Lease holds a block for as long as it lives. Neither its beginning nor its end runs an instruction of Python, where a signal's handler might raise: a block is never
 * taken that no lease holds, and none is kept when the last reference to its lease goes. What is not done here (a new segment, other streams' use, a history)
 * is the allocator's own: `slow` puts the block into a list that it is given, and the end of a lease into `deferred`, which the allocator works off with its next call.
 * Blocks, segments and pools are the very objects of the Python code, which is not inside of the allocator (`busy`) while this runs: the interpreter's lock is held throughout, and
 * nothing that might run Python code happens between the first look and the last change.
 */
#include "npu.h"
#include <structmember.h>

Npu N;

#define MIN_BLOCK 512
#define PADDING 32
#define SMALL_SIZE (1 << 20)

enum { ALLOCATION, ALLOCATED_BYTES, ACTIVE, ACTIVE_BYTES, REQUESTED_BYTES, INACTIVE_SPLIT, INACTIVE_SPLIT_BYTES, SEGMENT, RESERVED_BYTES, KINDS };
enum { PEAK = KINDS, ALLOCATED = 2 * KINDS, FREED = 3 * KINDS, COUNTERS = 4 * KINDS };

typedef struct {
    PyObject_HEAD
    char busy, plain;                           /* the allocator is at work; nothing but blocks of these pools is asked for */
    PyObject *small, *large, *pending, *deferred; /* the pools, what waits for other streams, and what was given back meanwhile */
    PyObject *slow, *append;
    Py_buffer counters[3]; /* all, large, small */
} Shelf;

typedef struct {
    PyObject_HEAD
    Shelf *shelf;
    PyObject *block;
    long long address;
} Lease;

static long long number(PyObject *object, Py_ssize_t at)
{
    return PyLong_AsLongLong(SLOT(object, at));
}

static void set_number(PyObject *object, Py_ssize_t at, long long value)
{
    set_slot(object, at, PyLong_FromLongLong(value));
}

/* -------------------------------------------------------------------------------------------------------------- counters */

static void count(Shelf *self, int small, int kind, int64_t amount)
{
    for (int pool = 0; pool < 3; pool += small ? 2 : 1) {
        if (pool == 2 && !small) break;
        int64_t *n = self->counters[pool].buf;
        n[kind] += amount;
        if (amount > 0) {
            n[ALLOCATED + kind] += amount;
            if (n[kind] > n[PEAK + kind]) n[PEAK + kind] = n[kind];
        }
        else {
            n[FREED + kind] -= amount;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------ pools */

/* Where (size, address) stands, or would, among entries (size, address, block). */
static Py_ssize_t place_of(PyObject *entries, long long size, long long address)
{
    Py_ssize_t low = 0, high = PyList_GET_SIZE(entries);
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        PyObject *entry = PyList_GET_ITEM(entries, middle);
        long long other = PyLong_AsLongLong(PyTuple_GET_ITEM(entry, 0));
        if (other < size || (other == size && PyLong_AsLongLong(PyTuple_GET_ITEM(entry, 1)) < address)) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void add(PyObject *pool, PyObject *entries, PyObject *block, PyObject *entry)
{
    set_slot(block, N.at_cached, Py_NewRef(Py_True));
    set_slot(block, N.at_born, Py_NewRef(SLOT(pool, N.at_calls)));
    PyTuple_SET_ITEM(entry, 0, Py_NewRef(SLOT(block, N.at_size)));
    PyTuple_SET_ITEM(entry, 1, Py_NewRef(SLOT(block, N.at_address)));
    PyTuple_SET_ITEM(entry, 2, Py_NewRef(block));
    PyList_Insert(entries, place_of(entries, number(block, N.at_size), number(block, N.at_address)), entry);
}

/* Takes a block out of its pool. 0 when it is not there. */
static int take_out(PyObject *entries, PyObject *block)
{
    Py_ssize_t at = place_of(entries, number(block, N.at_size), number(block, N.at_address));
    if (at == PyList_GET_SIZE(entries) || PyTuple_GET_ITEM(PyList_GET_ITEM(entries, at), 2) != block) return 0;
    set_slot(block, N.at_cached, Py_NewRef(Py_False));
    PyList_SetSlice(entries, at, at + 1, NULL);
    return 1;
}

static void link_blocks(PyObject *before, PyObject *after)
{
    if (before != Py_None) set_slot(before, N.at_next, Py_NewRef(after));
    if (after != Py_None) set_slot(after, N.at_previous, Py_NewRef(before));
}

static void absorb_next(PyObject *block)
{
    PyObject *gone = Py_NewRef(SLOT(block, N.at_next));
    set_number(block, N.at_size, number(block, N.at_size) + number(gone, N.at_size));
    link_blocks(block, SLOT(gone, N.at_next));
    set_slot(gone, N.at_previous, Py_NewRef(Py_None));
    set_slot(gone, N.at_next, Py_NewRef(Py_None));
    Py_DECREF(gone);
}

/* A block without a place; what it needs is made before anything is looked at, since the collector may run then. */
static PyObject *new_block(void)
{
    PyObject *made = N.block->tp_alloc(N.block, 0);
    if (made == NULL) return NULL;
    const Py_ssize_t nothing[] = {N.at_segment, N.at_previous, N.at_next, N.at_uses, N.at_frames}, zero[] = {N.at_requested, N.at_events, N.at_born, N.at_address, N.at_size};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) SLOT(made, nothing[i]) = Py_NewRef(Py_None);
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++) SLOT(made, zero[i]) = Py_NewRef(S.zero);
    SLOT(made, N.at_allocated) = Py_NewRef(Py_False);
    SLOT(made, N.at_cached) = Py_NewRef(Py_False);
    return made;
}

/* A block from a pool, or NULL without an exception. */
static PyObject *take(Shelf *self, long long nbytes, PyObject *stream)
{
    const long long size = (nbytes + PADDING + MIN_BLOCK - 1) / MIN_BLOCK * MIN_BLOCK;
    const int small = size <= SMALL_SIZE;
    PyObject *rest = new_block(), *entry = PyTuple_New(3), *block = NULL;
    if (rest == NULL || entry == NULL) {
        PyErr_Clear();
        goto done;
    }
    if (self->busy || !self->plain || PyObject_Size(self->deferred) || PyDict_GET_SIZE(self->pending)) goto done;
    PyObject *pool = small ? self->small : self->large, *entries = PyDict_GetItem(SLOT(pool, N.at_free), stream);
    Py_ssize_t at = entries == NULL ? 0 : place_of(entries, size, 0);
    if (entries == NULL || at == PyList_GET_SIZE(entries)) goto done;
    block = Py_NewRef(PyTuple_GET_ITEM(PyList_GET_ITEM(entries, at), 2));
    PyList_SetSlice(entries, at, at + 1, NULL);
    set_slot(block, N.at_cached, Py_NewRef(Py_False));
    const long long whole = number(block, N.at_size), left = whole - size;
    const int split = SLOT(block, N.at_previous) != Py_None || SLOT(block, N.at_next) != Py_None;
    if (small ? left >= MIN_BLOCK : left > SMALL_SIZE) {
        set_number(rest, N.at_address, number(block, N.at_address) + size);
        set_number(rest, N.at_size, left);
        set_slot(rest, N.at_segment, Py_NewRef(SLOT(block, N.at_segment)));
        link_blocks(rest, SLOT(block, N.at_next));
        link_blocks(block, rest);
        set_number(block, N.at_size, size);
        add(pool, entries, rest, entry);
        count(self, small, INACTIVE_SPLIT_BYTES, split ? -size : left);
        if (!split) count(self, small, INACTIVE_SPLIT, 1);
    }
    else if (split) {
        count(self, small, INACTIVE_SPLIT_BYTES, -whole);
        count(self, small, INACTIVE_SPLIT, -1);
    }
    set_slot(block, N.at_allocated, Py_NewRef(Py_True));
    set_number(block, N.at_requested, nbytes);
    const long long own = number(block, N.at_size);
    count(self, small, ALLOCATION, 1);
    count(self, small, ALLOCATED_BYTES, own);
    count(self, small, ACTIVE, 1);
    count(self, small, ACTIVE_BYTES, own);
    count(self, small, REQUESTED_BYTES, nbytes);
done:
    Py_XDECREF(rest);
    Py_XDECREF(entry);
    return block;
}

/* Puts a block back, joined with free neighbours. 0 when the allocator has to. */
static int give_back(Shelf *self, PyObject *block)
{
    PyObject *entry = PyTuple_New(3);
    if (entry == NULL) {
        PyErr_Clear();
        return 0;
    }
    PyObject *segment = SLOT(block, N.at_segment), *entries = NULL;
    if (!self->busy && self->plain && SLOT(block, N.at_uses) == Py_None && SLOT(block, N.at_allocated) == Py_True) {
        PyObject *pool = SLOT(segment, N.at_small) == Py_True ? self->small : self->large;
        entries = PyDict_GetItem(SLOT(pool, N.at_free), SLOT(segment, N.at_stream));
    }
    if (entries == NULL) {
        Py_DECREF(entry);
        return 0;
    }
    const int small = SLOT(segment, N.at_small) == Py_True;
    const long long size = number(block, N.at_size), requested = number(block, N.at_requested);
    PyObject *after = SLOT(block, N.at_next), *before = SLOT(block, N.at_previous);
    int64_t pieces = 0, bytes = 0;
    set_slot(block, N.at_allocated, Py_NewRef(Py_False));
    set_slot(block, N.at_requested, Py_NewRef(S.zero));
    count(self, small, ALLOCATION, -1);
    count(self, small, ALLOCATED_BYTES, -size);
    if (after != Py_None && SLOT(after, N.at_cached) == Py_True && take_out(entries, after)) {
        pieces--;
        bytes -= number(after, N.at_size);
        absorb_next(block);
    }
    if (before != Py_None && SLOT(before, N.at_cached) == Py_True && take_out(entries, before)) {
        pieces--;
        bytes -= number(before, N.at_size);
        absorb_next(before);
        block = before;
    }
    add(small ? self->small : self->large, entries, block, entry);
    if (SLOT(block, N.at_previous) != Py_None || SLOT(block, N.at_next) != Py_None) {
        pieces++;
        bytes += number(block, N.at_size);
    }
    if (pieces) count(self, small, INACTIVE_SPLIT, pieces);
    if (bytes) count(self, small, INACTIVE_SPLIT_BYTES, bytes);
    count(self, small, ACTIVE, -1);
    count(self, small, ACTIVE_BYTES, -size);
    count(self, small, REQUESTED_BYTES, -requested);
    Py_DECREF(entry);
    return 1;
}

/* ----------------------------------------------------------------------------------------------------------------- leases */

static void end(Shelf *shelf, PyObject *block)
{
    if (!give_back(shelf, block)) {
        PyObject *done = PyObject_CallOneArg(shelf->append, block);
        if (done == NULL) PyErr_WriteUnraisable(block);
        Py_XDECREF(done);
    }
}

static void lease_dealloc(Lease *self)
{
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    if (self->block != NULL) end(self->shelf, self->block);
    Py_CLEAR(self->block);
    Py_CLEAR(self->shelf);
    PyErr_Restore(kind, error, trace);
    PyObject_Free(self);
}

/* A block from the allocator itself: see Note [Leases]. */
static PyObject *take_slowly(Shelf *self, long long nbytes, PyObject *stream)
{
    PyObject *found = PyList_New(0), *done = NULL, *block = NULL;
    if (self->slow == NULL) PyErr_SetString(PyExc_RuntimeError, "the allocator is no longer there");
    else if (found != NULL) {
        done = PyObject_CallFunction(self->slow, "LOO", nbytes, stream, found);
        block = PyList_GET_SIZE(found) ? Py_NewRef(PyList_GET_ITEM(found, 0)) : NULL;
    }
    if (block != NULL && done == NULL) { /* a signal's handler raised when the block was there */
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        end(self, block);
        Py_CLEAR(block);
        PyErr_Restore(kind, error, trace);
    }
    else if (block == NULL && done != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "internal: an allocator that gave no block");
    }
    Py_XDECREF(done);
    Py_XDECREF(found);
    return block;
}

PyObject *lease_of(PyObject *shelf, long long nbytes, PyObject *stream)
{
    Shelf *self = (Shelf *)shelf;
    Lease *made = PyObject_New(Lease, &LeaseType);
    if (made == NULL) return NULL;
    made->shelf = (Shelf *)Py_NewRef(shelf);
    made->block = NULL;
    made->block = N.block != NULL ? take(self, nbytes, stream) : NULL;
    if (made->block == NULL) made->block = take_slowly(self, nbytes, stream);
    if (made->block == NULL) {
        Py_DECREF(made);
        return NULL;
    }
    made->address = number(made->block, N.at_address);
    return (PyObject *)made;
}

long long address_of_lease(PyObject *lease)
{
    if (lease == Py_None) return 0;
    if (!Py_IS_TYPE(lease, &LeaseType)) {
        PyErr_Format(PyExc_TypeError, "a lease is expected, not %s", Py_TYPE(lease)->tp_name);
        return -1;
    }
    return ((Lease *)lease)->address;
}

static PyMemberDef lease_members[] = {
    {"block", T_OBJECT_EX, offsetof(Lease, block), READONLY, "The block that is lent."},
    {"address", T_LONGLONG, offsetof(Lease, address), READONLY, "Where it begins."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject LeaseType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Lease",
    .tp_doc = "Memory of an NPU for as long as this lives; see native/runtime/leases.c.",
    .tp_basicsize = sizeof(Lease),
    .tp_dealloc = (destructor)lease_dealloc,
    .tp_members = lease_members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

/* ------------------------------------------------------------------------------------------------------------------ shelf */

static PyObject *shelf_lease(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "lease(nbytes, stream)");
        return NULL;
    }
    long long nbytes = PyLong_AsLongLong(args[0]);
    if (nbytes == -1 && PyErr_Occurred()) return NULL;
    return lease_of(self, nbytes, args[1]);
}

static PyObject *shelf_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *small, *large, *pending, *deferred, *slow, *counters[3];
    if (named != NULL && PyDict_GET_SIZE(named)) {
        PyErr_SetString(PyExc_TypeError, "Shelf takes no keywords");
        return NULL;
    }
    if (N.block == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the classes of blocks are not known yet");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OOO!OOOOO", &small, &large, &PyDict_Type, &pending, &deferred, &slow, &counters[0], &counters[1], &counters[2])) return NULL;
    Shelf *made = (Shelf *)type->tp_alloc(type, 0);
    if (made == NULL) return NULL;
    made->small = Py_NewRef(small);
    made->large = Py_NewRef(large);
    made->pending = Py_NewRef(pending);
    made->deferred = Py_NewRef(deferred);
    made->slow = Py_NewRef(slow);
    made->append = PyObject_GetAttrString(deferred, "append");
    int failed = made->append == NULL;
    for (int i = 0; i < 3 && !failed; i++) {
        failed = PyObject_GetBuffer(counters[i], &made->counters[i], PyBUF_WRITABLE) < 0;
        if (!failed && (made->counters[i].len != COUNTERS * (Py_ssize_t)sizeof(int64_t) || made->counters[i].itemsize != sizeof(int64_t))) {
            PyErr_SetString(PyExc_ValueError, "counters of another number");
            failed = 1;
        }
    }
    if (failed) Py_CLEAR(made);
    return (PyObject *)made;
}

static int shelf_traverse(Shelf *self, visitproc visit, void *arg)
{
    Py_VISIT(self->small);
    Py_VISIT(self->large);
    Py_VISIT(self->pending);
    Py_VISIT(self->deferred);
    Py_VISIT(self->slow);
    Py_VISIT(self->append);
    return 0;
}

/* Only what leads back to the allocator: leases that outlive it still come to an end. */
static int shelf_clear(Shelf *self)
{
    self->plain = 0;
    Py_CLEAR(self->slow);
    return 0;
}

static void shelf_dealloc(Shelf *self)
{
    PyObject_GC_UnTrack(self);
    shelf_clear(self);
    for (int i = 0; i < 3; i++) PyBuffer_Release(&self->counters[i]);
    Py_CLEAR(self->small);
    Py_CLEAR(self->large);
    Py_CLEAR(self->pending);
    Py_CLEAR(self->deferred);
    Py_CLEAR(self->append);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef shelf_methods[] = {
    {"lease", (PyCFunction)(void (*)(void))shelf_lease, METH_FASTCALL, "lease(nbytes, stream): memory for work on a stream."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef shelf_members[] = {
    {"busy", T_BOOL, offsetof(Shelf, busy), 0, "Whether the allocator is at work."},
    {"plain", T_BOOL, offsetof(Shelf, plain), 0, "Whether blocks are all that is wanted: no history, no settings."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject ShelfType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mindtorch_v2._native.Shelf",
    .tp_doc = "Shelf(small, large, pending, deferred, slow, all counters, those of large, of small): lends blocks of an allocator; see native/runtime/leases.c.",
    .tp_basicsize = sizeof(Shelf),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = shelf_new,
    .tp_dealloc = (destructor)shelf_dealloc,
    .tp_traverse = (traverseproc)shelf_traverse,
    .tp_clear = (inquiry)shelf_clear,
    .tp_methods = shelf_methods,
    .tp_members = shelf_members,
};
