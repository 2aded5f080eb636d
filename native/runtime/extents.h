/* Memory of the system's in pages, which is kept for the next who asks (extents.c). */
#ifndef MINDTORCH_EXTENTS_H
#define MINDTORCH_EXTENTS_H

#include "native.h"

#define MEBIBYTE ((size_t)1 << 20)
#define AUTOMATIC SIZE_MAX /* the limit that goes by the most that was in use */

typedef struct {
    size_t kept, limit, used, most;
} ExtentCounts;

/* Memory of `size` bytes, or NULL; what lies before `*dirty` is zero. Sizes are multiples of `extent_page`. */
INTERNAL char *extent_take(size_t size, char **dirty);
INTERNAL void extent_give(char *start, size_t size);

/* The size of pages, 0 on systems where memory is not had so. */
INTERNAL size_t extent_page(void);

/* Keeps so many bytes at most from now on, or forgets how much was in use at most. */
INTERNAL void extent_limit(size_t limit);
INTERNAL ExtentCounts extent_counts(void);

/* As if a period had passed: gives back what nobody used meanwhile. */
INTERNAL void extent_age(void);

/* buffers.c: an uninitialised array like another one, of a dtype or its own. */
INTERNAL PyObject *buffer_like(PyArrayObject *like, NPY_ORDER order, PyArray_Descr *descr);

/* Lets numpy make arrays in this memory while a kernel of Python's runs, if one of its arguments is large; -1 with an exception. To be undone with `*before`. */
INTERNAL int enter_buffers(PyObject *const *values, int count, PyObject **before);
INTERNAL int leave_buffers(PyObject *before);

/* Memory for a while, at a multiple of 64, or NULL; threads without the GIL may ask for it. */
INTERNAL void *scratch_take(size_t size);
INTERNAL void scratch_give(void *block);

#endif
