/* Softmax and its logarithm over rows; included for each type and processor. */
#include "vecmath.h"

#define LANES 16

static inline TARGET T NAME(row_max)(const T *x, npy_intp n)
{
    T best = x[0];
    npy_intp i = 0;
    if (n >= LANES) {
        T lanes[LANES];
        for (int k = 0; k < LANES; k++) {
            lanes[k] = x[k];
        }
        for (i = LANES; i + LANES <= n; i += LANES) {
            for (int k = 0; k < LANES; k++) {
                T v = x[i + k];
                lanes[k] = v > lanes[k] || v != v ? v : lanes[k];
            }
        }
        for (int k = 0; k < LANES; k++) {
            best = lanes[k] > best || lanes[k] != lanes[k] ? lanes[k] : best;
        }
    }
    for (; i < n; i++) {
        best = x[i] > best || x[i] != x[i] ? x[i] : best;
    }
    return best;
}

static inline TARGET T NAME(fold)(const T *lanes)
{
    T half[LANES / 2];
    for (int k = 0; k < LANES / 2; k++) {
        half[k] = lanes[k] + lanes[k + LANES / 2];
    }
    T total = 0;
    for (int k = 0; k < LANES / 2; k++) {
        total += half[k];
    }
    return total;
}

/* Sums over a row. Lanes are emptied into a double now and then, so that long rows keep their digits. */
#define SUM_ROW(total, n, term)                                                                                                            \
    do {                                                                                                                                   \
        double sum_ = 0;                                                                                                                   \
        npy_intp i = 0;                                                                                                                    \
        while (i + LANES <= (n)) {                                                                                                         \
            npy_intp end_ = i + 4096 < (n) ? i + 4096 : (n);                                                                               \
            T lanes_[LANES] = {0};                                                                                                         \
            for (; i + LANES <= end_; i += LANES) {                                                                                        \
                for (int k = 0; k < LANES; k++) {                                                                                          \
                    npy_intp j = i + k;                                                                                                    \
                    lanes_[k] += term;                                                                                                     \
                }                                                                                                                          \
            }                                                                                                                              \
            sum_ += NAME(fold)(lanes_);                                                                                                    \
        }                                                                                                                                  \
        T rest_ = 0;                                                                                                                       \
        for (; i < (n); i++) {                                                                                                             \
            npy_intp j = i;                                                                                                                \
            rest_ += term;                                                                                                                 \
        }                                                                                                                                  \
        (total) = (T)(sum_ + rest_);                                                                                                       \
    } while (0)

static TARGET void NAME(softmax_rows)(const void *input, void *output, npy_intp rows, npy_intp n)
{
    const T *x = input;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, x += n, out += n) {
        T best = NAME(row_max)(x, n), total;
        SUM_ROW(total, n, (out[j] = NAME(exponential)(x[j] - best)));
        T factor = 1 / total;
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
        T best = NAME(row_max)(x, n), total;
        SUM_ROW(total, n, NAME(exponential)(x[j] - best));
        T shift = (T)log((double)total);
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
        T total;
        SUM_ROW(total, n, grad[j] * y[j]);
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
        T total;
        SUM_ROW(total, n, grad[j]);
        for (npy_intp i = 0; i < n; i++) {
            out[i] = grad[i] - NAME(exponential)(y[i]) * total;
        }
    }
}

#undef LANES
#undef SUM_ROW
