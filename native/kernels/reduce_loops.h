/* Reductions; included for each type and processor. */
#include "lanes.h"

#define COLUMNS 1024 /* added to in the cache */
#define ROWS 64      /* whose sum goes to the total at once */

/* out[r] = the sum of row r, divided by `by`. */
static TARGET void NAME(sum_rows)(const void *input, void *output, npy_intp rows, npy_intp width, double by)
{
    const T *x = input;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, x += width) {
        double total = NAME(sum_of)(x, width);
        out[r] = by == 1 ? (T)total : (T)(total / by);
    }
}

/* The rows of `part` columns are added up, in blocks, to out. */
static inline TARGET void NAME(add_columns)(const T *x, T *out, npy_intp n, npy_intp inner, npy_intp part)
{
    T block[COLUMNS];
    for (npy_intp start = 0; start < n; start += ROWS) {
        npy_intp stop = start + ROWS < n ? start + ROWS : n, k = start;
        for (npy_intp i = 0; i < part; i++) {
            block[i] = 0;
        }
        for (; k + 4 <= stop; k += 4) {
            const T *a = x + k * inner, *b = a + inner, *c = b + inner, *d = c + inner;
            for (npy_intp i = 0; i < part; i++) {
                block[i] += (a[i] + b[i]) + (c[i] + d[i]);
            }
        }
        for (; k < stop; k++) {
            const T *a = x + k * inner;
            for (npy_intp i = 0; i < part; i++) {
                block[i] += a[i];
            }
        }
        for (npy_intp i = 0; i < part; i++) {
            out[i] = start ? out[i] + block[i] : block[i];
        }
    }
}

/* out[o, i] = the sum of x[o, :, i], divided by `by`. */
static TARGET void NAME(sum_columns)(const void *input, void *output, npy_intp outer, npy_intp n, npy_intp inner, double by)
{
    const T *x = input;
    T *out = output;
    for (npy_intp o = 0; o < outer; o++, out += inner, x += n * inner) {
        for (npy_intp at = 0; at < inner; at += COLUMNS) {
            NAME(add_columns)(x + at, out + at, n, inner, inner - at < COLUMNS ? inner - at : COLUMNS);
        }
        for (npy_intp i = 0; by != 1 && i < inner; i++) {
            out[i] /= (T)by;
        }
    }
}

static TARGET void NAME(max_all)(const void *input, void *output, npy_intp n)
{
    *(T *)output = NAME(extreme)(input, n, 0);
}

static TARGET void NAME(min_all)(const void *input, void *output, npy_intp n)
{
    *(T *)output = NAME(extreme)(input, n, 1);
}

#undef COLUMNS
#undef ROWS
