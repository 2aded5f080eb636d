/* How the kernels of reductions walk: what an operator gives for each kind, and what runs it over an array. */
#ifndef MINDTORCH_REDUCE_H
#define MINDTORCH_REDUCE_H

#include "kinds.h"

#define COLUMNS 1024 /* results side by side whose states stay in the cache */
#define SUM_ROWS 64  /* whose sum goes to the total at once, where rows are added column by column */
#define SHORT 32     /* elements of rows that are turned first: see Note [Short rows] */

typedef void (*RowLoop)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context);
typedef void (*RowsLoop)(const char *x, npy_intp rows, npy_intp step, npy_intp n, npy_intp stride, void *states);
typedef void (*ColumnLoop)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context);
/* Makes results of states: the last two numbers are the elements of each, and a parameter of the operator. */
typedef void (*Finish)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by);

/* What goes over the elements once. */
typedef struct {
    RowLoop row;
    RowsLoop rows; /* NULL: one by one */
    ColumnLoop columns;
    RowLoop merge; /* makes one state of several that lie side by side; NULL where it cannot be done */
    /* Takes rows of states to a row of states, with the bits of the elements taken in their order; NULL where it cannot be done. A state of its own may
     * have each call of `row`, and so many rows of `columns` as `unit` says: 0 for any number, -1 for no less than all. */
    ColumnLoop join;
    int unit;
    npy_intp size; /* of a state */
    union {
        double real;
        float single;
        npy_int64 whole;
        npy_int32 whole32;
        npy_int16 whole16;
        npy_int8 whole8;
        unsigned char bytes[8];
    } start; /* the state of nothing */
} Pass;

typedef struct {
    Pass first, second; /* the second one, if there is one, gets what `between` makes of the first's states as context */
    Finish between, finish;
    Row widen;                  /* makes float32, for which the passes are, of the elements of x; NULL where those are what they are for */
    npy_intp item;              /* bytes of an element of x */
    npy_intp out_item, second_item; /* bytes of a result */
} Reducer;

INTERNAL void reduce_array(const Reduction *plan, const Reducer *with, const char *x, char *out, char *second, double by);

/* Neighbours in memory that are kept are taken together, unless the reduced ones are neighbours or there are too few: their number, or 1. */
INTERNAL npy_intp columns_of(const Reduction *plan, npy_intp item);

/* Whether threads share the elements of each result, so many of which are taken together, rather than the results: see Note [Rows in units]. */
INTERNAL int shares_elements(const Reduction *plan, npy_intp columns);

/* Whether the rows that are reduced are so short that they are turned first, and the turning: see Note [Short rows]. */
INTERNAL int are_short(const Reduction *plan, npy_intp item);
INTERNAL void turn_rows(void *to, const char *x, npy_intp rows, npy_intp step, npy_intp n, npy_intp item);

/* `merge` and `join` of states that are sums in float64. */
INTERNAL RowLoop merge_of_sums(void);
INTERNAL ColumnLoop join_of_sums(void);

/* The largest element, and how many are not zero (in int64). */
INTERNAL void largest_pass(Pass *pass, int kind);
INTERNAL void count_pass(Pass *pass, int kind);

#endif
