/* Softmax and its logarithm over rows; included for each type and processor. */
#include "lanes.h"
#include "vecmath.h"

#define CHUNK 1024 /* elements whose exponentials are still in the cache when they are added up */

/* out = exp(x - best); the sum of it. */
static inline TARGET double NAME(exponentials)(const T *x, T best, T *out, npy_intp n)
{
    double total = 0;
    for (npy_intp start = 0; start < n; start += CHUNK) {
        npy_intp count = n - start < CHUNK ? n - start : CHUNK;
        for (npy_intp i = 0; i < count; i++) {
            out[start + i] = NAME(exponential)(x[start + i] - best);
        }
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
        for (npy_intp i = 0; i < n; i++) {
            out[i] *= factor;
        }
    }
}

static TARGET void NAME(log_softmax_rows)(const void *input, void *output, npy_intp rows, npy_intp n)
{
    const T *x = input;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, x += n, out += n) {
        T best = NAME(extreme)(x, n, 0);
        T shift = (T)log(NAME(exponentials)(x, best, out, n));
        for (npy_intp i = 0; i < n; i++) {
            out[i] = x[i] - best - shift;
        }
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
        for (npy_intp i = 0; i < n; i++) {
            out[i] = (grad[i] - total) * y[i];
        }
    }
}

static TARGET void NAME(log_softmax_backward_rows)(const void *gradient, const void *result, void *output, npy_intp rows, npy_intp n)
{
    const T *grad = gradient, *y = result;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, grad += n, y += n, out += n) {
        T total = (T)NAME(sum_of)(grad, n);
        for (npy_intp i = 0; i < n; i++) {
            out[i] = grad[i] - NAME(exponential)(y[i]) * total;
        }
    }
}

#undef CHUNK
