/* Rows of half types, some at a time as float32, so that what is cast never leaves the first cache: what kernels that go row by row share. */
#ifndef MINDTORCH_HALF_SLABS_H
#define MINDTORCH_HALF_SLABS_H

#include "kinds.h"

#define HALF_SLAB 4096      /* elements of a slab, but for rows that are longer */
#define LONGEST_HALF (1 << 17) /* elements of a row: three of them fit the second cache */

/* `rows` rows of float32, as operands and for the result. */
typedef void (*FloatRows)(void *work, const float *const *from, float *to, npy_intp rows);

typedef struct {
    Row widen, narrow;
    const char *from[2]; /* the second one may be NULL */
    char *to;
    npy_intp n; /* elements of a row */
    FloatRows run;
    void *work;
    int failed; /* memory was missing; atomic */
} HalfSlabs;

static void some_half_rows(void *work, npy_intp begin, npy_intp end)
{
    HalfSlabs *all = work;
    const npy_intp n = all->n, most = n < HALF_SLAB ? HALF_SLAB / n : 1, size = n < HALF_SLAB ? HALF_SLAB : n;
    float few[3 * HALF_SLAB], *space = n > HALF_SLAB ? PyMem_RawMalloc((size_t)(3 * n) * sizeof(float)) : few;
    if (space == NULL) {
        __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    const float *from[2] = {space, all->from[1] == NULL ? NULL : space + size};
    float *to = space + 2 * size;
    for (npy_intp rows; begin < end; begin += rows) {
        rows = end - begin < most ? end - begin : most;
        for (int k = 0; k < 2 && from[k] != NULL; k++) {
            all->widen((char *)(space + k * size), 4, all->from[k] + begin * n * 2, 2, rows * n);
        }
        all->run(all->work, from, to, rows);
        all->narrow(all->to + begin * n * 2, 2, (const char *)to, 4, rows * n);
    }
    if (space != few) {
        PyMem_RawFree(space);
    }
}

/* Whether rows of n elements of a half type go this way; the others are cast as a whole. */
static inline int half_slabs_serve(PyObject *object, npy_intp n, HalfSlabs *all)
{
    if (kind_widened(object, &all->widen) != KIND_FLOAT || all->widen == NULL || n > LONGEST_HALF) {
        return 0;
    }
    all->narrow = row_between(S.descr32, PyArray_DESCR((PyArrayObject *)object));
    all->n = n;
    return all->narrow != NULL;
}

/* 0 with an exception where memory is missing. */
static inline int run_half_slabs(HalfSlabs *all, npy_intp rows)
{
    PyThreadState *thread = rows * all->n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    in_parts(some_half_rows, all, rows, grain_of(2 * all->n));
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (all->failed) {
        PyErr_NoMemory();
    }
    return !all->failed;
}

#endif
