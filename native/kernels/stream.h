/* The stream of random draws that a Generator reads: mt19937, as `_random/engine.py` describes it. */
#ifndef MINDTORCH_STREAM_H
#define MINDTORCH_STREAM_H

#include "making.h"

#define STREAM_WORDS 624
#define STREAM_BLOCK 2048 /* draws that are made at a time: they stay in the first level cache */

typedef struct {
    PyObject_HEAD
    npy_uint64 seed;
    npy_uint32 words[STREAM_WORDS];
    int position;        /* the next word; STREAM_WORDS when they are used up */
    int next_when_spent; /* Note [left and next] of engine.py */
    int has_double, has_float;
    double next_double; /* the second of a pair of normal numbers that waits for the next call */
    float next_float;
    /* A lock that its owner may take again. */
    PyThread_type_lock lock;
    unsigned long owner;
    long depth;
    PyObject *weakrefs;
} Stream;

extern INTERNAL PyTypeObject StreamType;

/* The stream of an argument `generator` (None: the default one), locked; NULL where Python has to draw, with or without an exception. */
INTERNAL Stream *take_stream(PyObject *generator);
INTERNAL void give_stream(Stream *stream);

/* The next draws. The lock is held; the GIL need not be. */
INTERNAL void stream_draws(Stream *stream, npy_uint32 *out, npy_intp n);

typedef enum { KIND_NONE, KIND_FLOAT, KIND_DOUBLE, KIND_HALF, KIND_BFLOAT16 } FloatKind;
INTERNAL FloatKind float_kind(PyArray_Descr *descr);

/* Into contiguous memory: 0 <= u < 1 of a width of 4 or 8, low <= x < high, normal numbers. */
INTERNAL void draw_units(Stream *stream, char *out, npy_intp n, int width);
INTERNAL void draw_uniform(Stream *stream, PyArrayObject *array, double low, double high, FloatKind kind);
INTERNAL double stream_normal(Stream *stream); /* the next normal number in double precision */
/* The element `i` of contiguous numbers. */
INTERNAL void store_number(FloatKind kind, char *out, npy_intp i, double value);
INTERNAL void draw_normal(Stream *stream, PyArrayObject *array, double mean, double std, FloatKind kind, int in_order);

/* Whether means and deviations are such that nothing is refused and nothing overflows. */
static inline int fair_normal(double mean, double std)
{
    return (std == 0 || (std > 1e-30 && std < 1e30)) && mean < 1e30 && mean > -1e30;
}

/* A number 0 <= u < 1 of 53 bits. */
static inline double stream_double(Stream *stream)
{
    npy_uint32 pair[2];
    stream_draws(stream, pair, 2);
    return (double)((npy_int64)(pair[0] & 0x1FFFFF) << 32 | pair[1]) * (1.0 / 9007199254740992.0);
}

#endif
