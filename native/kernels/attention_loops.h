/* Scaled dot product attention, a row of queries at a time; included for each type and processor. */
#include "lanes.h"
#include "vecmath.h"

/* The sum of products of two rows. */
static inline TARGET T NAME(row_product)(const T *a, const T *b, npy_intp n)
{
    double sum;
    SUM_OVER(sum, n, NAME(load)(a + j) * NAME(load)(b + j), a[j] * b[j]);
    return (T)sum;
}

/* One query against `keys` keys and values: its output, and the logarithm of the sum of exponentials. `mask` is NULL, or bytes or numbers. */
static TARGET void NAME(attend)(const void *query, const void *key, npy_intp key_step, const void *value, npy_intp value_step, const void *mask,
                                npy_intp mask_step, int mask_is_bool, void *output, void *logsum, void *scratch, npy_intp keys, npy_intp width,
                                double scale)
{
    const T *q = query, *k = key, *v = value;
    const T factor = (T)scale;
    T *out = output, *scores = scratch;
    for (npy_intp s = 0; s < keys; s++) {
        scores[s] = NAME(row_product)(q, k + s * key_step, width) * factor;
    }
    if (mask != NULL && mask_is_bool) {
        const unsigned char *seen = mask;
        for (npy_intp s = 0; s < keys; s++) {
            scores[s] = seen[s * mask_step] ? scores[s] : (T)-INFINITY;
        }
    }
    else if (mask != NULL) {
        const T *added = mask;
        for (npy_intp s = 0; s < keys; s++) {
            scores[s] += added[s * mask_step];
        }
    }
    T top = NAME(extreme)(scores, keys, 0);
    if (mask != NULL && top == (T)-INFINITY) {
        top = 0;
    }
    double total = 0;
    for (npy_intp s = 0; s < keys; s++) {
        scores[s] = NAME(exponential)(scores[s] - top);
    }
    total = NAME(sum_of)(scores, keys);
    if (mask != NULL && total == 0) {
        total = 1;
    }
    for (npy_intp d = 0; d < width; d++) {
        out[d] = 0;
    }
    for (npy_intp s = 0; s < keys; s++) {
        const T weight = scores[s];
        const T *row = v + s * value_step;
        for (npy_intp d = 0; d < width; d++) {
            out[d] += weight * row[d];
        }
    }
    const T by = (T)total;
    for (npy_intp d = 0; d < width; d++) {
        out[d] /= by;
    }
    *(T *)logsum = (T)log(total) + top;
}
