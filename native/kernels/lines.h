/* Loops over operands that are repeated or cast: line by line, where a line is what lies side by side in all of them. */
#ifndef MINDTORCH_LINES_H
#define MINDTORCH_LINES_H

#include "blocks.h"
#include "move.h"

typedef struct {
    const char *data; /* of a number: its value, as the loop takes it */
    npy_intp strides[MAX_DIMS];
    npy_intp item; /* bytes of an element; 0 for a number */
    Row cast;      /* to what is computed with, of the result from that; NULL where it is the same */
} LineOperand;

typedef struct {
    int opcode; /* of a block, where there is no ufunc */
    const Loop *ufunc;
    int count, width; /* operands; bytes of an element of what is computed with */
    int ndim;
    npy_intp dims[MAX_DIMS];
    LineOperand operand[BLOCK_SOURCES + 1]; /* the result comes after the last */
    int result_item;                        /* bytes of what the loop makes: `width`, or 1 for truths of a ufunc */
    /* filled in by lines_fit */
    BlockLoop loop;
    unsigned fixed, filled; /* operands that are one element in a line: those that the loop takes as numbers, and those that it takes as arrays */
    npy_intp period;        /* short lines that were put together: their length, */
    unsigned tiled, spread; /* the operands that are the same in each of them, and those that are one element in each */
} Lines;

/* An operand with its strides over `ndim` dimensions, 0 where it is repeated; 0 for a shape that does not fit. */
INTERNAL int line_operand(LineOperand *operand, PyArrayObject *array, int ndim, const npy_intp *dims);

/* Whether a large array meets a smaller one, whose lines the loops here read from the cache, where numpy's take half as long again; of truths where lines are
 * short alone. */
INTERNAL int lines_repeat(PyObject *const *operands, int count, int truths);

/* Puts dimensions together and chooses the loop; 0 where lines are short or elements lie far from each other. */
INTERNAL int lines_fit(Lines *lines);

/* Releases the GIL where there is much to do. */
INTERNAL void lines_run(const Lines *lines);

#endif
