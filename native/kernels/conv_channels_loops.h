/* Convolutions of one plane, stretched out to one row; included for each type and processor. */
#include "lanes.h"

/* out[t] = the sum over places of weight[place] * x[t + at[place]], for t below n, plus what is there when `more`. */
static TARGET void NAME(slide)(const void *source, const npy_intp *at, const void *weights, npy_intp places, int more, void *output, npy_intp n)
{
    const T *x = source, *weight = weights;
    T *out = output;
    npy_intp t = 0;
    for (; t + 4 * STEP <= n; t += 4 * STEP) {
        V sum[4];
        for (int k = 0; k < 4; k++) {
            sum[k] = more ? NAME(load)(out + t + k * STEP) : NAME(all)(0);
        }
        for (npy_intp p = 0; p < places; p++) {
            const V by = NAME(all)(weight[p]);
            const T *from = x + t + at[p];
            sum[0] += by * NAME(load)(from);
            sum[1] += by * NAME(load)(from + STEP);
            sum[2] += by * NAME(load)(from + 2 * STEP);
            sum[3] += by * NAME(load)(from + 3 * STEP);
        }
        memcpy(out + t, sum, sizeof(sum));
    }
    for (; t < n; t++) {
        T sum = more ? out[t] : 0;
        for (npy_intp p = 0; p < places; p++) {
            sum += weight[p] * x[t + at[p]];
        }
        out[t] = sum;
    }
}

/* sum[place] += the sum over t below n of y[t] * x[t + at[place]]. */
static TARGET void NAME(correlate)(const void *left, const void *right, const npy_intp *at, npy_intp places, double *sum, npy_intp n)
{
    const T *y = left, *x = right;
    for (npy_intp p = 0; p < places; p++) {
        const T *moved = x + at[p];
        double total;
        SUM_OVER(total, n, NAME(load)(y + j) * NAME(load)(moved + j), y[j] * moved[j]);
        sum[p] += total;
    }
}

static TARGET void NAME(add_number)(const void *number, void *output, npy_intp n)
{
    const T one = *(const T *)number;
    T *out = output;
    for (npy_intp i = 0; i < n; i++) {
        out[i] += one;
    }
}

static TARGET void NAME(finish)(const double *sum, void *output, npy_intp n)
{
    T *out = output;
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (T)sum[i];
    }
}
