/* Pointwise operators block by block. The schema's `block` expressions become loops over contiguous elements (generated/native/block_loops.h); a
 * program is a list of them over slots, and goes through its iteration space in blocks whose temporaries stay in the cache.
 */
#ifndef MINDTORCH_BLOCKS_H
#define MINDTORCH_BLOCKS_H

#include "native.h"

#define BLOCK 1024      /* elements */
#define BLOCK_SOURCES 5 /* operands of a loop at most */
#define BLOCK_SLOTS 1024
#define BLOCK_PATTERNS 4

typedef void (*BlockLoop)(const void *const *sources, void *target, npy_intp n);

/* One function of a loop: the mask of the operands that it takes as numbers, and its forms by item size and processor. */
typedef struct {
    unsigned numbers;
    BlockLoop loops[2][3];
} BlockPattern;

/* `kinds` has a letter for each operand: T one that may be an array, S one that is a number. The first pattern takes all T operands as arrays. */
typedef struct {
    const char *name;
    const char *kinds;
    int to_bool;
    BlockPattern patterns[BLOCK_PATTERNS];
} BlockEntry;

extern INTERNAL const BlockEntry block_entries[];
extern INTERNAL const int block_count;

/* The loop of an operation where the operands of the mask are numbers; NULL when it has none for them. */
INTERNAL BlockLoop block_loop(int opcode, int width, unsigned numbers);

typedef struct {
    int opcode;
    int target;
    int sources[BLOCK_SOURCES];
    int count;
    BlockLoop loop;
    unsigned filled; /* mask of the sources that are numbers, but that the loop takes as blocks */
} BlockStep;

typedef enum { BLOCK_DENSE, BLOCK_NUMBER, BLOCK_STRIDED } BlockKind;

typedef struct {
    PyArrayObject *array; /* owned */
    BlockKind kind;
    char *data;
    int item; /* 1 for bool */
    int ndim; /* with dimensions that follow each other in memory put together */
    npy_intp dims[MAX_DIMS], strides[MAX_DIMS];
} BlockArray;

/* Slots: arrays (inputs, then outputs from `outputs`), temporaries, immediates. */
typedef struct {
    int width;
    npy_intp n, blocks;
    int arrays, outputs, temporaries, immediates, steps;
    BlockArray *array;
    double *immediate;
    BlockStep *step;
    int *buffer; /* of each slot: which block buffer of the thread it uses, or -1 */
    int buffers;
    npy_intp next; /* the first block that nobody has claimed; atomic */
} BlockProgram;

/* A program from its parts; copies what it is given and takes references. NULL with ValueError or TypeError when it is wrong. */
INTERNAL BlockProgram *block_program(int width, int ndim, const npy_intp *dims, int arrays, PyArrayObject *const *array, int outputs,
                                     int temporaries, int immediates, const double *immediate, int steps, const BlockStep *step);
INTERNAL void block_free(BlockProgram *program);
/* Runs the blocks that are left, with the GIL when there are few; returns how many this call did, or -1 with MemoryError. */
INTERNAL npy_intp block_run(BlockProgram *program);

/* ---------------------------------------------------------------------------------------------------------------- eager */

/* A way to compute the operator: a loop, the arguments that are its operands, and what the others must be. */
typedef struct {
    int opcode, exact; /* exact: the numpy kernel gives the same bits, and is left to do so */
    int operands, operand[BLOCK_SOURCES];
    int conditions, argument[MAX_PARAMS];
    PyObject *value[MAX_PARAMS];
} Alternative;

/* The `block` record of an operator. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int count;
    Alternative *alternatives;
} Blocked;

/* The operator as one loop over its arguments: arrays, numbers, and whatever must have its default. `out`, when it is not NULL, gets the result and
 * is returned. NULL without an exception declines. */
INTERNAL PyObject *blocked_apply(const Blocked *blocked, PyObject *const *args, Py_ssize_t count, PyArrayObject *out);

/* Which alternative takes the arguments, where operands may be anything but None; -1 when none does. */
INTERNAL int blocked_choose(const Blocked *blocked, PyObject *const *args, Py_ssize_t count);
INTERNAL int blocked_to_bool(const Blocked *blocked, int alternative);

/* The operator as one loop. */
typedef struct {
    int opcode, count, operand[BLOCK_SOURCES]; /* which argument each operand is, -1 for a number */
    double number[BLOCK_SOURCES];
} FlatLoop;

/* The loop that takes the arguments, of which those of the mask are arrays and all others are numbers; 0 where there is none. */
INTERNAL int blocked_flat(const Blocked *blocked, PyObject *const *args, Py_ssize_t count, unsigned arrays, FlatLoop *flat);

/* The number as a loop takes it, in the room that is given. */
static inline const void *number_as(double value, int width, double *room)
{
    const float narrow = (float)value;
    memcpy(room, width == 4 ? (const void *)&narrow : (const void *)&value, (size_t)width);
    return room;
}

/* Whether the elements of both stand in one order and fill one piece of memory. */
INTERNAL int same_layout(PyArrayObject *a, PyArrayObject *b);

/* Whether the arrays may share memory. */
INTERNAL int arrays_meet(PyArrayObject *a, PyArrayObject *b);

extern INTERNAL PyTypeObject BlockedType;
extern INTERNAL PyTypeObject ProgramType;

#endif
