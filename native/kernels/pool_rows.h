/* Maxima and means of windows by rows of them. */
#ifndef MINDTORCH_POOL_ROWS_H
#define MINDTORCH_POOL_ROWS_H

#include "windows.h"

/* Whether rows of windows are long enough, and places fit into 32 bits. */
INTERNAL int serves_max_rows(const Windows *w);

/* Of one plane, of items of 4 or 8 bytes: the largest element of each window, and its place in the plane; the last NaN where there is one. */
INTERNAL void max_rows(int width, const void *plane, const Windows *w, void *best, npy_int64 *index);

/* Of some planes, the mean of each window; `spread` instead adds to the planes what each window of `means` has for each of its elements. `padded` says
 * whether padding counts, `by` what is divided by if it is not 0. Returns 0, with nothing done, for other windows than it is good for. */
INTERNAL int mean_rows(int width, void *planes, const Windows *w, int padded, double by, void *means, npy_intp count, int spread);

#endif
