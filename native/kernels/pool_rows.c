/* Maxima of windows of float planes, a row of windows at a time: each element of the kernel meets all of them, so that vectors are full. */
#include "pool_rows.h"
#include <math.h>

#define BLOCK 256 /* windows of a row that are kept while their elements go by */
#define LEAST_ROW 8

#define LOOPS "pool_rows_loops.h"
#include "variants.h"

int serves_max_rows(const Windows *w)
{
    return w->out[2] >= LEAST_ROW && w->in[0] * w->in[1] * w->in[2] < NPY_MAX_INT32;
}

void max_rows(int width, const void *plane, const Windows *w, void *best, npy_int64 *index)
{
    CHOOSE(max_rows, width, plane, w, best, index);
}
