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

/* The products of a row with n rows, times a factor: four rows at a time, for which the one is read once and four sums are under way. */
static TARGET void NAME(row_products)(const T *one, const T *rows, npy_intp step, npy_intp n, npy_intp width, T factor, T *products)
{
    npy_intp s = 0;
    for (; width <= SUM_BLOCK && s + 4 <= n; s += 4) {
        const T *a = rows + s * step, *b = a + step, *c = b + step, *d = c + step;
        V in_a = {0}, in_b = {0}, in_c = {0}, in_d = {0};
        npy_intp j = 0;
        for (; j + STEP <= width; j += STEP) {
            const V left = NAME(load)(one + j);
            in_a += left * NAME(load)(a + j);
            in_b += left * NAME(load)(b + j);
            in_c += left * NAME(load)(c + j);
            in_d += left * NAME(load)(d + j);
        }
        T sums[4] = {NAME(added_up)(in_a), NAME(added_up)(in_b), NAME(added_up)(in_c), NAME(added_up)(in_d)};
        ROLLED for (; j < width; j++)
        {
            sums[0] += one[j] * a[j];
            sums[1] += one[j] * b[j];
            sums[2] += one[j] * c[j];
            sums[3] += one[j] * d[j];
        }
        for (int i = 0; i < 4; i++) {
            products[s + i] = sums[i] * factor;
        }
    }
    for (; s < n; s++) {
        products[s] = NAME(row_product)(one, rows + s * step, width) * factor;
    }
}

/* Adds n rows, each times its weight, to `sum`, which is read and written once for four of them. */
static TARGET void NAME(add_weighted)(T *restrict sum, const T *weights, const T *rows, npy_intp step, npy_intp n, npy_intp width)
{
    npy_intp s = 0;
    for (; s + 4 <= n; s += 4) {
        const T *a = rows + s * step, *b = a + step, *c = b + step, *d = c + step;
        const T of_a = weights[s], of_b = weights[s + 1], of_c = weights[s + 2], of_d = weights[s + 3];
        for (npy_intp j = 0; j < width; j++) {
            sum[j] += (of_a * a[j] + of_b * b[j]) + (of_c * c[j] + of_d * d[j]);
        }
    }
    for (; s < n; s++) {
        const T *row = rows + s * step, weight = weights[s];
        for (npy_intp j = 0; j < width; j++) {
            sum[j] += weight * row[j];
        }
    }
}

/* Scores of a query against `keys` keys, scaled already, as exponentials; gives the largest score and their sum, of at least one that is no number. */
static TARGET void NAME(weigh)(T *scores, npy_intp keys, const void *mask, npy_intp mask_step, int mask_is_bool, T *largest, double *sum)
{
    if (mask != NULL && mask_is_bool) {
        const unsigned char *seen = mask;
        NAME(Bits) hidden;
        hidden.value = (T)-INFINITY;
        if (mask_step == 1) { /* a loop of its own, which is vectorised: by bits, since bytes may stand for anything, also for scores */
#pragma GCC ivdep
            for (npy_intp s = 0; s < keys; s++) {
                NAME(Bits) score;
                score.value = scores[s];
                const __typeof__(score.bits) mine = -(__typeof__(score.bits))(seen[s] != 0);
                score.bits = (score.bits & mine) | (hidden.bits & ~mine);
                scores[s] = score.value;
            }
        }
        for (npy_intp s = 0; mask_step != 1 && s < keys; s++) {
            scores[s] = seen[s * mask_step] ? scores[s] : hidden.value;
        }
    }
    else if (mask != NULL) {
        const T *added = mask;
        for (npy_intp s = 0; s < keys; s++) {
            scores[s] += added[s * mask_step];
        }
    }
    if (largest == NULL) {
        return;
    }
    T top = NAME(extreme)(scores, keys, 0);
    if (mask != NULL && top == (T)-INFINITY) {
        top = 0;
    }
    EACH(keys, scores, scores, scores, made = NAME(exponential)(p - top));
    double total = NAME(sum_of)(scores, keys);
    if (mask != NULL && total == 0) {
        total = 1;
    }
    *largest = top;
    *sum = total;
}

/* One query against `keys` keys and values: its output, and the logarithm of the sum of exponentials. `mask` is NULL, or bytes or numbers. */
static TARGET void NAME(attend)(const void *query, const void *key, npy_intp key_step, const void *value, npy_intp value_step, const void *mask,
                                npy_intp mask_step, int mask_is_bool, void *output, void *logsum, void *scratch, npy_intp keys, npy_intp width,
                                double scale)
{
    const T *q = query, *k = key, *v = value;
    const T factor = (T)scale;
    T *out = output, *scores = scratch, top;
    double total;
    NAME(row_products)(q, k, key_step, keys, width, factor, scores);
    NAME(weigh)(scores, keys, mask, mask_step, mask_is_bool, &top, &total);
    memset(out, 0, (size_t)width * sizeof(T));
    NAME(add_weighted)(out, scores, v, value_step, keys, width);
    const T by = (T)total;
    for (npy_intp d = 0; d < width; d++) {
        out[d] /= by;
    }
    *(T *)logsum = (T)log(total) + top;
}

/* The same of a block of queries whose scores are there: row after row of `keys`, of which causal attention leaves `reach` to the first, one more to
 * the next. What the outputs must be divided by goes to `totals`. */
static TARGET void NAME(weigh_rows)(void *block, npy_intp rows, npy_intp keys, npy_intp reach, const void *mask, npy_intp mask_row, npy_intp mask_step,
                                    int mask_is_bool, void *logsums, void *totals)
{
    T *scores = block;
    for (npy_intp r = 0; r < rows; r++, scores += keys) {
        const npy_intp seen = reach + r < keys ? reach + r : keys;
        T top;
        double total;
        NAME(weigh)(scores, seen, mask == NULL ? NULL : (const char *)mask + r * mask_row, mask_step, mask_is_bool, &top, &total);
        for (npy_intp s = seen; s < keys; s++) {
            scores[s] = 0;
        }
        ((T *)logsums)[r] = (T)log(total) + top;
        ((T *)totals)[r] = (T)total;
    }
}

static TARGET void NAME(divide_rows)(void *output, npy_intp step, npy_intp rows, npy_intp width, const void *totals)
{
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, out += step) {
        const T by = ((const T *)totals)[r];
        for (npy_intp d = 0; d < width; d++) {
            out[d] /= by;
        }
    }
}

/* The weights from the scores and what was saved, and the scores' gradient from that of the weights. */
static TARGET void NAME(unweigh)(T *scores, T *given, npy_intp keys, T saved, T shared, T factor)
{
    EACH(keys, scores, scores, scores, made = NAME(exponential)(p - saved));
    EACH(keys, scores, given, given, made = p * (q - shared) * factor);
}

/* The weights of a block of queries from its scores and what was saved of it, and the scores' gradient from that of the weights, in `inner`. */
static TARGET void NAME(unweigh_rows)(void *block, void *inner, npy_intp rows, npy_intp keys, npy_intp reach, const void *mask, npy_intp mask_row,
                                      npy_intp mask_step, int mask_is_bool, const void *logsums, npy_intp logsum_step, const void *grads,
                                      npy_intp grad_step, const void *outputs, npy_intp output_step, npy_intp width, double scale)
{
    T *weights = block, *given = inner;
    const T factor = (T)scale;
    for (npy_intp r = 0; r < rows; r++, weights += keys, given += keys) {
        const npy_intp seen = reach + r < keys ? reach + r : keys;
        const T logsum = ((const T *)logsums)[r * logsum_step];
        const T shared = NAME(row_product)((const T *)grads + r * grad_step, (const T *)outputs + r * output_step, width);
        NAME(weigh)(weights, seen, mask == NULL ? NULL : (const char *)mask + r * mask_row, mask_step, mask_is_bool, NULL, NULL);
        NAME(unweigh)(weights, given, seen, logsum, shared, factor);
        for (npy_intp s = seen; s < keys; s++) {
            weights[s] = given[s] = 0;
        }
    }
}

/* The gradients of one query, and its part of those of keys and values, which is added unless it is the first. `scratch` has room for two numbers of each key. */
static TARGET void NAME(attend_back)(const void *grad, const void *query, const void *key, npy_intp key_step, const void *value, npy_intp value_step,
                                     const void *output, const void *logsum, const void *mask, npy_intp mask_step, int mask_is_bool, void *of_query,
                                     void *of_key, npy_intp of_key_step, void *of_value, npy_intp of_value_step, int is_first, void *scratch,
                                     npy_intp keys, npy_intp width, double scale)
{
    const T *g = grad, *q = query, *k = key, *v = value;
    const T shared = NAME(row_product)(g, output, width), saved = *(const T *)logsum, factor = (T)scale;
    T *to_q = of_query, *scores = scratch, *from = scores + keys; /* weights, and the scores' gradients */
    NAME(row_products)(q, k, key_step, keys, width, factor, scores);
    NAME(weigh)(scores, keys, mask, mask_step, mask_is_bool, NULL, NULL);
    memset(to_q, 0, (size_t)width * sizeof(T));
    NAME(row_products)(g, v, value_step, keys, width, 1, from);
    NAME(unweigh)(scores, from, keys, saved, shared, factor);
    NAME(add_weighted)(to_q, from, k, key_step, keys, width);
    for (npy_intp s = 0; s < keys; s++) {
        const T weight = scores[s], given = from[s];
        T *to_k = (T *)of_key + s * of_key_step, *to_v = (T *)of_value + s * of_value_step;
        if (is_first) {
            for (npy_intp d = 0; d < width; d++) {
                to_k[d] = given * q[d];
                to_v[d] = weight * g[d];
            }
        }
        else {
            for (npy_intp d = 0; d < width; d++) {
                to_k[d] += given * q[d];
                to_v[d] += weight * g[d];
            }
        }
    }
}
