/* Results that are computed again in the backward pass: Note [Results computed again] in `_autograd/again.py`.
 *
 * A node that saves a large result of a cheap operator is put on a list, and looked at when the next one is: once nobody else refers to the result, its
 * entry is handed to Python, which puts in its place what it is computed of. What is seen here are counts of references alone, so that nothing is asked of
 * operators in between, and a small result costs one comparison.
 */
#include "engine.h"

#define WAITING 16 /* nodes that are looked at; of more, the oldest keep what they saved */

typedef struct {
    PyObject *node; /* a weak reference */
    Py_ssize_t place;
} Waiting;

static Waiting waiting[WAITING];
static int waiting_count;
static int is_busy; /* while the list is walked, in which finalizers or other threads may run operators: what they save is kept */
static PyObject *put_away, *cheap;   /* what Python does with entries; the name of what it says of a class of nodes */
static Py_ssize_t large_from, small_to; /* bytes; see there */

static void remove_at(int i)
{
    Py_DECREF(waiting[i].node);
    waiting_count--;
    memmove(&waiting[i], &waiting[i + 1], sizeof(Waiting) * (size_t)(waiting_count - i));
}

/* What lies at a place of what a node saved, if it is a tensor with its version; borrowed. */
static PyObject *pair_at(PyObject *saved, Py_ssize_t place)
{
    if (saved == NULL || !PyList_CheckExact(saved) || place >= PyList_GET_SIZE(saved)) {
        return NULL;
    }
    PyObject *entry = PyList_GET_ITEM(saved, place);
    int fits = PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 2 && is_plain(PyTuple_GET_ITEM(entry, 0));
    return fits ? entry : NULL;
}

/* Whether nodes alone refer to a tensor, so many of them, and to its memory: it is no view, and nobody has been given its memory, which would have made a
 * `Rare`. */
static int is_held_by(PyObject *tensor, Py_ssize_t nodes)
{
    PyObject *base = SLOT(tensor, S.at_base), **weak = PyObject_GET_WEAKREFS_LISTPTR(tensor);
    PyArrayObject *array = array_of(tensor);
    if (Py_REFCNT(tensor) != nodes || (base != NULL && base != Py_None) || *weak != NULL || rare_of(tensor) != NULL || array == NULL) {
        return 0;
    }
    return Py_REFCNT(array) == 1 && PyArray_BASE(array) == NULL && is_contiguous(array);
}

/* Whether what a result is computed of stays as it is: large operands are held by the result's own node alone. */
static int is_kept_whole(PyObject *producer)
{
    PyObject *saved = SLOT(producer, S.at_saved);
    if (saved == NULL || !PyList_CheckExact(saved)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(saved); i++) {
        PyObject *entry = PyList_GET_ITEM(saved, i), *pair = pair_at(saved, i);
        if (pair == NULL) {
            if (entry != Py_None && Py_TYPE(entry) != S.recomputed && !PyFloat_CheckExact(entry) && !PyLong_Check(entry)) {
                return 0;
            }
            continue;
        }
        PyObject *tensor = PyTuple_GET_ITEM(pair, 0);
        PyArrayObject *array = array_of(tensor);
        if (array == NULL || (PyArray_NBYTES(array) > small_to && (Py_REFCNT(pair) != 1 || !is_held_by(tensor, 1)))) {
            return 0;
        }
    }
    return 1;
}

/* The tensor that a waiting node saved, if its graph is still there and it alone holds the entry; borrowed. */
static PyObject *saved_by(int i)
{
    PyObject *node = referent(waiting[i].node);
    PyObject *pair = node == NULL ? NULL : pair_at(SLOT(node, S.at_saved), waiting[i].place);
    PyObject *tensor = pair != NULL && Py_REFCNT(pair) == 1 ? PyTuple_GET_ITEM(pair, 0) : NULL;
    if (node != NULL && Py_REFCNT(node) == 1) { /* it went in between */
        tensor = NULL;
    }
    Py_XDECREF(node);
    return tensor;
}

/* Lets Python put away what all nodes that wait with a tensor saved of it; -1 with an exception. */
static int hand_over(PyObject *tensor)
{
    PyObject *entries = PyList_New(0);
    for (int i = waiting_count - 1; entries != NULL && i >= 0; i--) {
        if (saved_by(i) == tensor) {
            PyObject *one = Py_BuildValue("Nn", referent(waiting[i].node), waiting[i].place);
            if (one == NULL || PyList_Append(entries, one) < 0) {
                Py_CLEAR(entries);
            }
            Py_XDECREF(one);
            remove_at(i);
        }
    }
    PyObject *done = entries == NULL ? NULL : PyObject_CallOneArg(put_away, entries);
    Py_XDECREF(entries);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* A tensor that nodes alone hold by now, borrowed; NULL when there is none. Nodes that are gone are dropped. */
static PyObject *next_forgotten(void)
{
    PyObject *tensors[WAITING];
    for (int i = 0; i < waiting_count;) {
        tensors[i] = saved_by(i);
        PyObject *producer = tensors[i] == NULL ? NULL : SLOT(tensors[i], S.at_node);
        if (producer == NULL || !PyObject_TypeCheck(producer, S.node)) {
            remove_at(i);
            continue;
        }
        i++;
    }
    for (int i = 0; i < waiting_count; i++) {
        Py_ssize_t nodes = 0;
        for (int k = 0; k < waiting_count; k++) {
            nodes += tensors[k] == tensors[i];
        }
        if (is_held_by(tensors[i], nodes) && is_kept_whole(SLOT(tensors[i], S.at_node))) {
            return tensors[i];
        }
    }
    return NULL;
}

int forget_results(void)
{
    if (is_busy || waiting_count == 0) {
        return 0;
    }
    int status = 0;
    is_busy = 1;
    for (PyObject *tensor; status == 0 && (tensor = next_forgotten()) != NULL;) {
        status = hand_over(tensor);
    }
    is_busy = 0;
    return status;
}

/* Whether it costs little to compute a tensor again: -1 with an exception. */
static int is_cheap(PyObject *tensor)
{
    PyObject *producer = SLOT(tensor, S.at_node);
    if (producer == NULL || !PyObject_TypeCheck(producer, S.node)) {
        return 0;
    }
    PyObject *said = PyObject_GetAttr((PyObject *)Py_TYPE(producer), cheap);
    Py_XDECREF(said);
    return said == NULL ? -1 : said == Py_True;
}

int offer_saved(PyObject *node, PyObject *saved)
{
    if (put_away == NULL || is_busy || !PyList_CheckExact(saved)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(saved); i++) {
        PyObject *pair = pair_at(saved, i);
        PyArrayObject *array = pair == NULL ? NULL : array_of(PyTuple_GET_ITEM(pair, 0));
        if (array == NULL || PyArray_NBYTES(array) < large_from) {
            continue;
        }
        int fits = is_cheap(PyTuple_GET_ITEM(pair, 0));
        if (fits > 0 && forget_results() < 0) {
            return -1;
        }
        PyObject *reference = fits > 0 ? PyWeakref_NewRef(node, NULL) : NULL;
        if (fits < 0 || (fits && reference == NULL)) {
            return -1;
        }
        if (fits) {
            if (waiting_count == WAITING) {
                remove_at(0);
            }
            waiting[waiting_count++] = (Waiting){reference, i};
        }
    }
    return 0;
}

/* connect_again(function, class, large, small): who puts entries away, the class of what then stands in their place, and bytes of results and operands. */
PyObject *connect_again(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *function, *cls;
    if (!PyArg_ParseTuple(args, "OO!nn", &function, &PyType_Type, &cls, &large_from, &small_to)) {
        return NULL;
    }
    cheap = PyUnicode_InternFromString("is_cheap");
    S.unpack = PyUnicode_InternFromString("unpack");
    if (cheap == NULL || S.unpack == NULL) {
        return NULL;
    }
    S.recomputed = (PyTypeObject *)Py_NewRef(cls);
    put_away = Py_NewRef(function);
    Py_RETURN_NONE;
}
