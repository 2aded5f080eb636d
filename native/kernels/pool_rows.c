/* Maxima and means of windows of float planes, a row of windows at a time: each element of the kernel meets all of them, so that vectors are full. */
#include "pool_rows.h"
#include <math.h>

#define BLOCK 256 /* windows of a row that are kept while their elements go by */
#define LEAST_ROW 8

/* The windows of a row, of those from `from` up to `to`, whose element at the place `offset` lies in the input. */
static inline void windows_among(const Windows *w, npy_intp offset, npy_intp from, npy_intp to, npy_intp *low, npy_intp *high)
{
    windows_inside(offset, w->in[2], w->out[2], w->stride[2], low, high);
    *low = *low < from ? from : *low;
    *high = *high > to ? to : *high;
}

#define LOOPS "pool_rows_loops.h"
#include "variants.h"

int serves_max_rows(const Windows *w)
{
    return w->out[2] >= LEAST_ROW && volume(w->in) < NPY_MAX_INT32;
}

void max_rows(int width, const void *plane, const Windows *w, void *best, npy_int64 *index)
{
    CHOOSE(max_rows, width, plane, w, best, index);
}

/* One plane: the mean of each window, of which `divisors` has what is divided by for each in a row, for one row and one place in depth unless `by` is
 * given; `spread` instead divides what each window has among its elements, in the order of the windows. */
static void mean_plane(int width, char *x, const Windows *w, const double *divisors, int padded, double by, char *out, int spread)
{
    double sum[BLOCK], share[BLOCK];
    for (npy_intp oz = 0; oz < w->out[0]; oz++) {
        npy_intp zf, zt, yf, yt;
        const npy_intp depth = counted_places(w, 0, oz, padded, &zf, &zt);
        for (npy_intp oy = 0; oy < w->out[1]; oy++, out += w->out[2] * width) {
            const npy_intp counted = depth * counted_places(w, 1, oy, padded, &yf, &yt);
            const double rows = by != 0 ? 1 : (double)counted;
            for (npy_intp from = 0; from < w->out[2]; from += BLOCK) {
                const npy_intp to = from + BLOCK < w->out[2] ? from + BLOCK : w->out[2], step = w->stride[2], n = to - from;
                float *narrow = (float *)out + from;
                double *wide = (double *)out + from;
                memset(sum, 0, (size_t)n * sizeof(double));
                for (npy_intp i = 0; spread && i < n; i++) {
                    const double each = rows * divisors[from + i];
                    if (width == 4) {
                        ((float *)share)[i] = (float)(narrow[i] / each);
                    }
                    else {
                        share[i] = wide[i] / each;
                    }
                }
                for (npy_intp z = zf; z < zt; z++) {
                    for (npy_intp y = yf; y < yt; y++) {
                        for (npy_intp k = 0; k < w->kernel[2]; k++) {
                            const npy_intp offset = (spread ? w->kernel[2] - 1 - k : k) - w->padding[2];
                            npy_intp low, high;
                            windows_among(w, offset, from, to, &low, &high);
                            void *first = x + ((z * w->in[1] + y) * w->in[2] + offset + low * step) * width;
                            CHOOSE(share, width, first, step, high - low, sum + low - from, (const void *)((char *)share + (low - from) * width), spread);
                        }
                    }
                }
                for (npy_intp i = 0; !spread && i < n; i++) {
                    const double mean = sum[i] / (rows * divisors[from + i]);
                    if (width == 4) {
                        narrow[i] = (float)mean;
                    }
                    else {
                        wide[i] = mean;
                    }
                }
            }
        }
    }
}

#define MOST_STEPS 4 /* elements from window to window, for which rows of them are faster than one after the other */

int mean_rows(int width, void *planes, const Windows *w, int padded, double by, void *means, npy_intp count, int spread)
{
    const npy_intp windows = w->out[2], cells = volume(w->in), all = volume(w->out);
    double *divisors = windows >= LEAST_ROW && w->stride[2] <= MOST_STEPS ? PyMem_RawMalloc((size_t)windows * sizeof(double)) : NULL;
    if (divisors == NULL) {
        return 0;
    }
    for (npy_intp o = 0, from, to; o < windows; o++) {
        const npy_intp counted = counted_places(w, 2, o, padded, &from, &to);
        divisors[o] = by != 0 ? by : (double)counted;
    }
    for (npy_intp p = 0; p < count; p++) {
        mean_plane(width, (char *)planes + p * cells * width, w, divisors, padded, by, (char *)means + p * all * width, spread);
    }
    PyMem_RawFree(divisors);
    return 1;
}
