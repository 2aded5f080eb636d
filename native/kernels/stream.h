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
} Stream;

extern INTERNAL PyTypeObject StreamType;

/* The stream of an argument `generator` (None: the default one), locked; NULL where Python has to draw, with or without an exception. */
INTERNAL Stream *take_stream(PyObject *generator);
INTERNAL void give_stream(Stream *stream);

/* The next draws. The lock is held; the GIL need not be. */
INTERNAL void stream_draws(Stream *stream, npy_uint32 *out, npy_intp n);

/* A number 0 <= u < 1 of 53 bits. */
static inline double stream_double(Stream *stream)
{
    npy_uint32 pair[2];
    stream_draws(stream, pair, 2);
    return (double)((npy_int64)(pair[0] & 0x1FFFFF) << 32 | pair[1]) * (1.0 / 9007199254740992.0);
}

#endif
