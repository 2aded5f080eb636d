/* Memory of results: of large ones, pages that were freed are kept for the next ones (extents.c), since the page faults of fresh memory take longer than most
 * operators; of smaller ones, blocks of malloc that begin at a cache line.
 *
 * A handler of numpy's memory (NEP 49). Only arrays that the extension makes are given it; numpy remembers it in the array, frees by it, and tells
 * tracemalloc of it like of any other.
 */
#include "extents.h"

#include <stdint.h>
#include <stdlib.h>

/* Before each block, so that the memory itself begins at a cache line. */
typedef struct {
    size_t room;   /* bytes of the block behind the head */
    size_t mapped; /* bytes that are an extent, from the head on; 0 for a block of malloc */
    void *start;   /* of a block of malloc */
} Head;

#define HEAD 64
#define TRACE_DOMAIN 389047 /* numpy's, of tracemalloc */

static inline Head *head_of(void *block)
{
    return (Head *)((char *)block - HEAD);
}

/* A block of malloc. */
static void *small_block(size_t size, int zeroed)
{
    void *start = size > SIZE_MAX - HEAD - 64 ? NULL : zeroed ? calloc(1, size + HEAD + 64) : malloc(size + HEAD + 64);
    if (start == NULL) {
        return NULL;
    }
    char *block = (char *)(((uintptr_t)start + HEAD + 63) & ~(uintptr_t)63);
    *head_of(block) = (Head){size, 0, start};
    return block;
}

/* A block of any size. */
static void *block_of(size_t size, int zeroed)
{
    const size_t page = extent_page();
    if (size < BUFFER_FROM || page == 0) {
        return small_block(size, zeroed);
    }
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    const size_t mapped = (size + HEAD + page - 1) / page * page;
    char *dirty, *start = extent_take(mapped, &dirty);
    if (start == NULL) {
        return NULL;
    }
    if (zeroed && dirty < start + mapped) {
        memset(dirty, 0, (size_t)(start + mapped - dirty));
    }
    *(Head *)start = (Head){mapped - HEAD, mapped, NULL};
    return start + HEAD;
}

/* Whether a block serves `size` without wasting more than an eighth of it. */
static inline int is_close(size_t room, size_t size)
{
    return room >= size && room - size <= size / 8;
}

/* -------------------------------------------------------------------------------------------------------------- handler */

static void *buffer_malloc(void *context, size_t size)
{
    (void)context;
    return block_of(size, 0);
}

static void *buffer_calloc(void *context, size_t count, size_t item)
{
    (void)context;
    return item != 0 && count > SIZE_MAX / item ? NULL : block_of(count * item, 1);
}

static void buffer_free(void *context, void *block, size_t size)
{
    (void)context;
    (void)size;
    if (block == NULL) {
        return;
    }
    Head *head = head_of(block);
    if (head->mapped) {
        extent_give((char *)head, head->mapped);
    }
    else {
        free(head->start);
    }
}

static void *buffer_realloc(void *context, void *block, size_t size)
{
    if (block == NULL) {
        return buffer_malloc(context, size);
    }
    size_t room = head_of(block)->room;
    if (is_close(room, size)) {
        return block;
    }
    void *made = buffer_malloc(context, size);
    if (made != NULL) {
        memcpy(made, block, room < size ? room : size);
        buffer_free(context, block, room);
    }
    return made;
}

static PyDataMem_Handler handler = {"mindtorch_buffers", 1, {NULL, buffer_malloc, buffer_calloc, buffer_realloc, buffer_free}};
static PyObject *capsule;
static int in_use = 1; /* 0 where nothing is to be kept */

/* ---------------------------------------------------------------------------------------------------------------- arrays */

/* Whether arrays are made in this memory from now on: not where somebody has a handler of their own. `before` is what serves else. */
static int enter(PyObject **before)
{
    *before = PyDataMem_GetHandler();
    if (*before == NULL) {
        return -1;
    }
    PyObject *last = in_use && *before == PyDataMem_DefaultHandler ? PyDataMem_SetHandler(capsule) : NULL;
    if (last == NULL) {
        Py_DECREF(*before);
        *before = NULL;
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_DECREF(last);
    return 1;
}

static int leave(PyObject *before)
{
    PyObject *last = PyDataMem_SetHandler(before);
    Py_DECREF(before);
    Py_XDECREF(last);
    return last == NULL ? -1 : 0;
}

int enter_buffers(PyObject *const *values, int count, PyObject **before)
{
    *before = NULL;
    for (int i = 0; i < count; i++) {
        if (is_array(values[i]) && PyArray_NBYTES((PyArrayObject *)values[i]) >= BUFFER_FROM) {
            return enter(before) < 0 ? -1 : 0;
        }
    }
    return 0;
}

int leave_buffers(PyObject *before)
{
    return before == NULL ? 0 : leave(before);
}

/* Whether nobody has a handler of their own now. */
static int is_default_handler(void)
{
    PyObject *now = PyDataMem_GetHandler();
    if (now == NULL) {
        PyErr_Clear(); /* numpy says again what is wrong with it, when it takes memory itself */
        return 0;
    }
    Py_DECREF(now);
    return now == PyDataMem_DefaultHandler;
}

/* The array of a block, which numpy frees by the handler as if it had taken it there: cheaper than to put the handler in force for a call. */
static PyObject *array_at(void *block, size_t bytes, int ndim, const npy_intp *dims, const npy_intp *strides, PyArray_Descr *descr)
{
    Py_INCREF(descr);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, strides, block, NPY_ARRAY_DEFAULT, NULL);
    if (made == NULL) {
        buffer_free(NULL, block, bytes);
        return NULL;
    }
    PyArray_ENABLEFLAGS((PyArrayObject *)made, NPY_ARRAY_OWNDATA);
    ((PyArrayObject_fields *)made)->mem_handler = Py_NewRef(capsule);
    PyTraceMalloc_Track(TRACE_DOMAIN, (uintptr_t)block, bytes);
    return made;
}

PyObject *buffer_array(int ndim, const npy_intp *dims, const npy_intp *strides, PyArray_Descr *descr, size_t bytes, int zeroed)
{
    void *block = bytes >= ALIGNED_FROM && in_use && is_default_handler() ? block_of(bytes, zeroed) : NULL;
    if (block != NULL) {
        return array_at(block, bytes, ndim, dims, strides, descr);
    }
    Py_INCREF(descr);
    return zeroed ? PyArray_Zeros(ndim, dims, descr, 0) : PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, strides, NULL, 0, NULL);
}

/* The strides, of elements of `item` bytes, of an array that lies densely in the order of another; 0 where that is not dense, or may be said in two ways. */
static int dense_strides(PyArrayObject *like, npy_intp item, npy_intp *strides)
{
    const int ndim = PyArray_NDIM(like);
    npy_intp expected = PyArray_ITEMSIZE(like), step = item;
    for (int found = 0; found < ndim; found++) {
        int d = 0;
        while (d < ndim && PyArray_STRIDE(like, d) != expected) {
            d++;
        }
        if (d == ndim || PyArray_DIM(like, d) < 2) {
            return 0;
        }
        strides[d] = step;
        step *= PyArray_DIM(like, d);
        expected *= PyArray_DIM(like, d);
    }
    return 1;
}

PyObject *buffer_like(PyArrayObject *like, NPY_ORDER order, PyArray_Descr *descr)
{
    descr = descr == NULL ? PyArray_DESCR(like) : descr;
    npy_intp strides[NPY_MAXDIMS];
    const size_t bytes = bytes_of(PyArray_NDIM(like), PyArray_DIMS(like), descr);
    if (bytes >= ALIGNED_FROM && order == NPY_KEEPORDER && dense_strides(like, PyDataType_ELSIZE(descr), strides)) {
        return buffer_array(PyArray_NDIM(like), PyArray_DIMS(like), strides, descr, bytes, 0);
    }
    PyObject *before = NULL;
    if (bytes >= ALIGNED_FROM && enter(&before) < 0) {
        return NULL;
    }
    Py_INCREF(descr);
    PyObject *made = PyArray_NewLikeArray(like, order, descr, 0);
    if (before != NULL && leave(before) < 0) {
        Py_CLEAR(made);
    }
    return made;
}

void *scratch_take(size_t size)
{
    /* Also of less than arrays are, lest malloc gives the pages back each time. */
    const size_t least = size > BUFFER_FROM / 4 && size < BUFFER_FROM ? BUFFER_FROM : size;
    return in_use ? block_of(least, 0) : small_block(size, 0);
}

void scratch_give(void *block)
{
    buffer_free(NULL, block, 0);
}

PyObject *empty_array(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 2 || !PyArray_DescrCheck(args[1])) {
        PyErr_SetString(PyExc_TypeError, "empty: a shape and a numpy.dtype are expected");
        return NULL;
    }
    PyArray_Dims shape = {NULL, 0};
    if (!PyArray_IntpConverter(args[0], &shape)) {
        return NULL;
    }
    PyObject *made = new_array(shape.len, shape.ptr, (PyArray_Descr *)args[1]);
    PyDimMem_FREE(shape.ptr);
    return made;
}

PyObject *keep_buffers(PyObject *module, PyObject *limit)
{
    (void)module;
    if (limit != Py_None) {
        int overflow;
        const long long bytes = PyLong_AsLongLongAndOverflow(limit, &overflow);
        if (bytes == -1 && PyErr_Occurred()) {
            return NULL;
        }
        in_use = bytes != 0;
        extent_limit(overflow || bytes < 0 ? AUTOMATIC : (size_t)bytes);
    }
    const ExtentCounts counts = extent_counts();
    return Py_BuildValue("(nnnn)", (Py_ssize_t)counts.kept, (Py_ssize_t)counts.limit, (Py_ssize_t)counts.used, (Py_ssize_t)counts.most);
}

PyObject *age_buffers(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    extent_age();
    Py_RETURN_NONE;
}

int start_buffers(void)
{
    const char *text = getenv("MINDTORCH_V2_BUFFER_CACHE");
    if (text != NULL && *text != '\0') {
        char *end;
        unsigned long long size = strtoull(text, &end, 10);
        if (*end == '\0' && size <= SIZE_MAX / MEBIBYTE / 2) {
            in_use = size != 0;
            extent_limit((size_t)size * MEBIBYTE);
        }
        else if (PyErr_WarnFormat(PyExc_UserWarning, 1, "MINDTORCH_V2_BUFFER_CACHE is no number of MiB: %s", text) < 0) {
            return -1;
        }
    }
    capsule = PyCapsule_New(&handler, "mem_handler", NULL);
    return capsule == NULL ? -1 : 0;
}
