/* Memory of large results: freed blocks are kept for the next ones, since the page faults of fresh memory take longer than most operators.
 *
 * A handler of numpy's memory (NEP 49). Only arrays that the extension makes are given it; numpy remembers it in the array, frees by it, and tells
 * tracemalloc of it like of any other.
 *
 * Note [Nobody waits]. The list of blocks is behind a flag that is tried, never waited for: who finds it set asks the system. So a process that was
 * forked while another thread had the flag goes on without kept blocks, rather than not at all.
 */
#include "native.h"

#include <stdint.h>
#include <stdlib.h>

#if !defined(_WIN32)
#include <sys/mman.h>
#include <unistd.h>
#endif

#define MEBIBYTE ((size_t)1 << 20)
#define KEPT_DEFAULT (64 * MEBIBYTE)
#define KEPT_BLOCKS 64
#define HUGE_PAGE (2 * MEBIBYTE) /* also the size from which blocks have them */

/* Before each block, so that the memory itself begins at a cache line. */
typedef struct {
    size_t room;   /* bytes of the block behind the head */
    size_t mapped; /* bytes that are the system's, from the head on; 0 for a block of malloc */
    void *start;   /* of a block of malloc */
} Head;

#define HEAD 64

static inline Head *head_of(void *block)
{
    return (Head *)((char *)block - HEAD);
}

/* --------------------------------------------------------------------------------------------------------------- system */

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

/* Memory of the system's, which is zero. */
static void *fresh_block(size_t size)
{
#if defined(_WIN32)
    return small_block(size, 1);
#else
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (size + HEAD + page - 1) / page * page;
    size_t more = size >= HUGE_PAGE ? HUGE_PAGE : 0, rest = mapped % HUGE_PAGE;
    if (more && rest >= HUGE_PAGE / 2 && HUGE_PAGE - rest <= size / 8) { /* the end is a huge page as well */
        mapped += HUGE_PAGE - rest;
    }
    char *start = mmap(NULL, mapped + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    if (more) {
        /* Huge pages begin at multiples of their size. */
        size_t before = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
        if (before) {
            munmap(start, before);
        }
        if (more > before) {
            munmap(start + before + mapped, more - before);
        }
        start += before;
#if defined(MADV_HUGEPAGE)
        madvise(start, mapped, MADV_HUGEPAGE);
#endif
    }
    *(Head *)start = (Head){mapped - HEAD, mapped, NULL};
    return start + HEAD;
#endif
}

static void give_back(void *block)
{
    Head *head = head_of(block);
#if !defined(_WIN32)
    if (head->mapped) {
        munmap(head, head->mapped);
        return;
    }
#endif
    free(head->start);
}

/* ----------------------------------------------------------------------------------------------------------------- kept */

/* The blocks that nobody uses, the one that was freed last at the end. */
static struct {
    int busy, count;
    size_t bytes, limit;
    void *blocks[KEPT_BLOCKS];
} kept = {.limit = KEPT_DEFAULT};

static inline int try_lock(void)
{
    return !__atomic_exchange_n(&kept.busy, 1, __ATOMIC_ACQUIRE);
}

static inline void unlock(void)
{
    __atomic_store_n(&kept.busy, 0, __ATOMIC_RELEASE);
}

static void *take_out(int at)
{
    void *block = kept.blocks[at];
    kept.bytes -= head_of(block)->mapped;
    kept.count--;
    memmove(&kept.blocks[at], &kept.blocks[at + 1], (size_t)(kept.count - at) * sizeof(void *));
    return block;
}

/* Whether a block serves `size` without wasting more than an eighth of it. */
static inline int is_close(size_t room, size_t size)
{
    return room >= size && room - size <= size / 8;
}

/* The kept block that wastes least, of equal ones the last that was freed, whose memory is most likely still in the cache; or NULL. */
static void *kept_block(size_t size)
{
    if (!try_lock()) {
        return NULL;
    }
    int best = -1;
    for (int i = kept.count - 1; i >= 0; i--) {
        size_t room = head_of(kept.blocks[i])->room;
        if (is_close(room, size) && (best < 0 || room < head_of(kept.blocks[best])->room)) {
            best = i;
        }
    }
    void *block = best < 0 ? NULL : take_out(best);
    unlock();
    return block;
}

/* Gives back the blocks that were freed longest ago, until there is room for another of `size` bytes. */
static void make_room(size_t size, int blocks)
{
    while (kept.count > 0 && (kept.count > KEPT_BLOCKS - blocks || kept.bytes + size > kept.limit)) {
        give_back(take_out(0));
    }
}

static int keep(void *block)
{
    size_t mapped = head_of(block)->mapped;
    if (mapped > kept.limit || !try_lock()) {
        return 0;
    }
    make_room(mapped, 1);
    kept.blocks[kept.count++] = block;
    kept.bytes += mapped;
    unlock();
    return 1;
}

/* -------------------------------------------------------------------------------------------------------------- handler */

static void *buffer_malloc(void *context, size_t size)
{
    (void)context;
    if (size < BUFFER_FROM) {
        return small_block(size, 0);
    }
    void *block = kept_block(size);
    return block != NULL ? block : fresh_block(size);
}

static void *buffer_calloc(void *context, size_t count, size_t item)
{
    (void)context;
    if (item != 0 && count > SIZE_MAX / item) {
        return NULL;
    }
    size_t size = count * item;
    void *block = size < BUFFER_FROM ? NULL : kept_block(size);
    return block != NULL ? memset(block, 0, size) : size < BUFFER_FROM ? small_block(size, 1) : fresh_block(size);
}

static void buffer_free(void *context, void *block, size_t size)
{
    (void)context;
    (void)size;
    if (block != NULL && (head_of(block)->mapped == 0 || !keep(block))) {
        give_back(block);
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

/* ---------------------------------------------------------------------------------------------------------------- arrays */

PyObject *buffer_array(int ndim, const npy_intp *dims, PyArray_Descr *descr)
{
    PyObject *before = PyDataMem_GetHandler(), *last = NULL;
    int ours = kept.limit > 0 && before == PyDataMem_DefaultHandler; /* not where somebody has a handler of their own */
    if (before == NULL || (ours && (last = PyDataMem_SetHandler(capsule)) == NULL)) {
        Py_XDECREF(before);
        return NULL;
    }
    Py_INCREF(descr);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, NULL, NULL, 0, NULL);
    if (ours) {
        Py_DECREF(last);
        last = PyDataMem_SetHandler(before);
        if (last == NULL) {
            Py_CLEAR(made);
        }
    }
    Py_XDECREF(last);
    Py_DECREF(before);
    return made;
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
        size_t bytes = PyLong_AsSize_t(limit);
        if (bytes == (size_t)-1 && PyErr_Occurred()) {
            return NULL;
        }
        if (try_lock()) {
            kept.limit = bytes;
            make_room(0, 0);
            unlock();
        }
    }
    return Py_BuildValue("(nn)", (Py_ssize_t)kept.bytes, (Py_ssize_t)kept.limit);
}

int start_buffers(void)
{
    const char *text = getenv("MINDTORCH_V2_BUFFER_CACHE");
    if (text != NULL && *text != '\0') {
        char *end;
        unsigned long long size = strtoull(text, &end, 10);
        if (*end == '\0' && size <= SIZE_MAX / MEBIBYTE / 2) {
            kept.limit = (size_t)size * MEBIBYTE;
        }
        else if (PyErr_WarnFormat(PyExc_UserWarning, 1, "MINDTORCH_V2_BUFFER_CACHE is no number of MiB: %s", text) < 0) {
            return -1;
        }
    }
    capsule = PyCapsule_New(&handler, "mem_handler", NULL);
    return capsule == NULL ? -1 : 0;
}
