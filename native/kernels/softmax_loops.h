/* Softmax and its logarithm over rows; included for each type and processor. */
#include "lanes.h"
#include "vecmath.h"

#define CHUNK 1024 /* elements whose exponentials are still in the cache when they are added up */

#if VECTOR_BYTES < 64 /* the widest vectors have those of soft_rows.c */
/* out = exp(x - best); the sum of it. */
static inline TARGET double NAME(exponentials)(const T *x, T best, T *out, npy_intp n)
{
    double total = 0;
    for (npy_intp start = 0; start < n; start += CHUNK) {
        npy_intp count = n - start < CHUNK ? n - start : CHUNK;
        EACH(count, x + start, x + start, out + start, made = NAME(exponential)(p - best));
        total += NAME(sum_of)(out + start, count);
    }
    return total;
}

static TARGET void NAME(softmax_rows)(const void *input, void *output, npy_intp rows, npy_intp n)
{
    const T *x = input;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, x += n, out += n) {
        T factor = (T)(1 / NAME(exponentials)(x, NAME(extreme)(x, n, 0), out, n));
        EACH(n, out, out, out, made = p * factor);
    }
}

static TARGET void NAME(log_softmax_rows)(const void *input, void *output, npy_intp rows, npy_intp n)
{
    const T *x = input;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, x += n, out += n) {
        T best = NAME(extreme)(x, n, 0);
        T shift = (T)log(NAME(exponentials)(x, best, out, n));
        EACH(n, x, x, out, made = p - best - shift);
    }
}

static TARGET void NAME(softmax_backward_rows)(const void *gradient, const void *result, void *output, npy_intp rows, npy_intp n)
{
    const T *grad = gradient, *y = result;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, grad += n, y += n, out += n) {
        double sum;
        SUM_OVER(sum, n, NAME(load)(grad + j) * NAME(load)(y + j), grad[j] * y[j]);
        T total = (T)sum;
        EACH(n, grad, y, out, made = (p - total) * q);
    }
}

static TARGET void NAME(log_softmax_backward_rows)(const void *gradient, const void *result, void *output, npy_intp rows, npy_intp n)
{
    const T *grad = gradient, *y = result;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, grad += n, y += n, out += n) {
        T total = (T)NAME(sum_of)(grad, n);
        EACH(n, grad, y, out, made = p - NAME(exponential)(q) * total);
    }
}
#endif

/* Over the middle dimension of (outer, n, inner), some columns at a time. */
static inline __attribute__((always_inline)) TARGET void NAME(softmax_middle)(const T *x, T *out, npy_intp outer, npy_intp n, npy_intp inner, npy_intp first, npy_intp last,
                                                                                       int logarithm)
{
    T best[CHUNK], total[CHUNK];
    for (npy_intp o = 0; o < outer; o++, x += n * inner, out += n * inner) {
        for (npy_intp start = first; start < last; start += CHUNK) {
            npy_intp part = last - start < CHUNK ? last - start : CHUNK;
            for (npy_intp i = 0; i < part; i++) {
                best[i] = x[start + i];
                total[i] = 0;
            }
            for (npy_intp k = 1; k < n; k++) {
                const T *row = x + k * inner + start;
                for (npy_intp i = 0; i < part; i++) {
                    T kept = best[i], next = row[i];
                    best[i] = NAME(better_one)(kept, next, 0);
                }
            }
            if (part == inner && n * inner <= CHUNK) { /* few columns: their exponentials in one loop */
                for (npy_intp k = 0; k < n; k++) {
                    for (npy_intp i = 0; i < part; i++) {
                        out[k * inner + i] = x[k * inner + i] - best[i];
                    }
                }
                for (npy_intp i = 0; i < n * inner; i++) {
                    out[i] = NAME(exponential)(out[i]);
                }
                for (npy_intp k = 0; k < n; k++) {
                    for (npy_intp i = 0; i < part; i++) {
                        total[i] += out[k * inner + i];
                    }
                }
            }
            else {
                for (npy_intp k = 0; k < n; k++) {
                    const T *restrict row = x + k * inner + start;
                    T *restrict made = out + k * inner + start;
                    for (npy_intp i = 0; i < part; i++) {
                        T power = NAME(exponential)(row[i] - best[i]);
                        made[i] = power;
                        total[i] += power;
                    }
                }
            }
            for (npy_intp i = 0; i < part; i++) {
                total[i] = logarithm ? NAME(log)(total[i]) : 1 / total[i];
            }
            for (npy_intp k = 0; k < n; k++) {
                const T *restrict row = x + k * inner + start;
                T *restrict made = out + k * inner + start;
                for (npy_intp i = 0; i < part; i++) {
                    made[i] = logarithm ? row[i] - best[i] - total[i] : made[i] * total[i];
                }
            }
        }
    }
}

static TARGET void NAME(softmax_columns)(const void *input, void *output, npy_intp outer, npy_intp n, npy_intp inner, npy_intp first, npy_intp last)
{
    NAME(softmax_middle)(input, output, outer, n, inner, first, last, 0);
}

static TARGET void NAME(log_softmax_columns)(const void *input, void *output, npy_intp outer, npy_intp n, npy_intp inner, npy_intp first, npy_intp last)
{
    NAME(softmax_middle)(input, output, outer, n, inner, first, last, 1);
}

static inline __attribute__((always_inline)) TARGET void NAME(softmax_backward_middle)(const T *grad, const T *y, T *out, npy_intp outer,
                                                                                       npy_intp n, npy_intp inner, npy_intp first, npy_intp last,
                                                                                       int logarithm)
{
    T total[CHUNK];
    for (npy_intp o = 0; o < outer; o++, grad += n * inner, y += n * inner, out += n * inner) {
        for (npy_intp start = first; start < last; start += CHUNK) {
            npy_intp part = last - start < CHUNK ? last - start : CHUNK;
            for (npy_intp i = 0; i < part; i++) {
                total[i] = 0;
            }
            for (npy_intp k = 0; k < n; k++) {
                const T *restrict g = grad + k * inner + start, *restrict row = y + k * inner + start;
                for (npy_intp i = 0; i < part; i++) {
                    total[i] += logarithm ? g[i] : g[i] * row[i];
                }
            }
            for (npy_intp k = 0; k < n; k++) {
                const T *restrict g = grad + k * inner + start, *restrict row = y + k * inner + start;
                T *restrict made = out + k * inner + start;
                for (npy_intp i = 0; i < part; i++) {
                    made[i] = logarithm ? g[i] - NAME(exponential)(row[i]) * total[i] : (g[i] - total[i]) * row[i];
                }
            }
        }
    }
}

static TARGET void NAME(softmax_backward_columns)(const void *gradient, const void *result, void *output, npy_intp outer, npy_intp n,
                                                  npy_intp inner, npy_intp first, npy_intp last)
{
    NAME(softmax_backward_middle)(gradient, result, output, outer, n, inner, first, last, 0);
}

static TARGET void NAME(log_softmax_backward_columns)(const void *gradient, const void *result, void *output, npy_intp outer, npy_intp n,
                                                      npy_intp inner, npy_intp first, npy_intp last)
{
    NAME(softmax_backward_middle)(gradient, result, output, outer, n, inner, first, last, 1);
}

#undef CHUNK
