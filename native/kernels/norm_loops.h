/* Layer norm over rows, forward and backward, and RMS norm; included for each type and processor. */
#include "lanes.h"

/* Mean and variance of a row, in two passes. */
static inline TARGET void NAME(moments)(const T *x, npy_intp n, T *mean, T *variance)
{
    T centre = (T)(NAME(sum_of)(x, n) / (double)n);
    V centres = NAME(all)(centre);
    double squares;
    SUM_OVER(squares, n, (NAME(load)(x + j) - centres) * (NAME(load)(x + j) - centres), (x[j] - centre) * (x[j] - centre));
    *mean = centre;
    *variance = (T)(squares / (double)n);
}

/* `means` and `rstds` may be NULL, and so may weight and bias. */
static TARGET void NAME(layer_norm_rows)(const void *input, const void *scale, const void *shift, void *output, void *means, void *rstds,
                                         npy_intp rows, npy_intp n, double eps)
{
    const T *x = input, *weight = scale, *bias = shift;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, x += n, out += n) {
        T mean, variance;
        NAME(moments)(x, n, &mean, &variance);
        T rstd = (T)(1 / sqrt((double)(T)(variance + (T)eps)));
        if (means != NULL) {
            ((T *)means)[r] = mean;
            ((T *)rstds)[r] = rstd;
        }
        if (weight != NULL && bias != NULL) {
            for (npy_intp i = 0; i < n; i++) {
                out[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
            }
        }
        else if (weight != NULL) {
            for (npy_intp i = 0; i < n; i++) {
                out[i] = (x[i] - mean) * rstd * weight[i];
            }
        }
        else {
            for (npy_intp i = 0; i < n; i++) {
                out[i] = (x[i] - mean) * rstd + (bias == NULL ? 0 : bias[i]);
            }
        }
    }
}

/* `rstds` and weight may be NULL. */
static TARGET void NAME(rms_norm_rows)(const void *input, const void *scale, void *output, void *rstds, npy_intp rows, npy_intp n, double eps)
{
    const T *x = input, *weight = scale;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++, x += n, out += n) {
        double squares;
        SUM_OVER(squares, n, NAME(load)(x + j) * NAME(load)(x + j), x[j] * x[j]);
        T rstd = (T)(1 / sqrt((double)((T)(squares / (double)n) + (T)eps)));
        if (rstds != NULL) {
            ((T *)rstds)[r] = rstd;
        }
        for (npy_intp i = 0; i < n; i++) {
            out[i] = weight == NULL ? x[i] * rstd : x[i] * rstd * weight[i];
        }
    }
}

/* One row: its input's gradient (unless NULL), and what it adds to those of weight and bias (unless NULL). */
static inline TARGET void NAME(backward_row)(const T *grad, const T *x, T mean, T rstd, const T *weight, npy_intp n, T *input, T *scale,
                                             T *shift)
{
    if (input != NULL) {
        double along, level;
        V means = NAME(all)(mean), rstds = NAME(all)(rstd);
        if (weight == NULL) {
            SUM_OVER(along, n, NAME(load)(grad + j) * ((NAME(load)(x + j) - means) * rstds), grad[j] * ((x[j] - mean) * rstd));
            level = NAME(sum_of)(grad, n);
        }
        else {
            SUM_OVER(along, n, NAME(load)(grad + j) * NAME(load)(weight + j) * ((NAME(load)(x + j) - means) * rstds),
                     grad[j] * weight[j] * ((x[j] - mean) * rstd));
            SUM_OVER(level, n, NAME(load)(grad + j) * NAME(load)(weight + j), grad[j] * weight[j]);
        }
        T by = (T)(along / (double)n), off = (T)(level / (double)n);
        for (npy_intp i = 0; i < n; i++) {
            T u = weight == NULL ? grad[i] : grad[i] * weight[i];
            input[i] = (u - off - (x[i] - mean) * rstd * by) * rstd;
        }
    }
    if (scale != NULL) {
        for (npy_intp i = 0; i < n; i++) {
            scale[i] += grad[i] * ((x[i] - mean) * rstd);
        }
    }
    if (shift != NULL) {
        for (npy_intp i = 0; i < n; i++) {
            shift[i] += grad[i];
        }
    }
}

/* `scratch` holds 2 n elements of T and 2 n doubles: partial sums of a block of rows, and those of all blocks. */
static TARGET void NAME(layer_norm_backward_rows)(const void *gradient, const void *input, const void *means, const void *rstds,
                                                  const void *scale, void *to_input, int to_scale, int to_shift, npy_intp rows, npy_intp n,
                                                  void *scratch)
{
    const T *grad = gradient, *x = input, *mean = means, *rstd = rstds;
    double *scale_total = scratch, *shift_total = scale_total + n;
    T *scale_part = to_scale ? (T *)(shift_total + n) : NULL, *shift_part = to_shift ? (T *)(shift_total + n) + n : NULL;
    for (npy_intp i = 0; i < n; i++) {
        scale_total[i] = shift_total[i] = 0;
    }
    for (npy_intp start = 0; start < rows; start += 64) {
        npy_intp stop = start + 64 < rows ? start + 64 : rows;
        for (npy_intp i = 0; i < n; i++) {
            if (scale_part != NULL) {
                scale_part[i] = 0;
            }
            if (shift_part != NULL) {
                shift_part[i] = 0;
            }
        }
        for (npy_intp r = start; r < stop; r++) {
            NAME(backward_row)(grad + r * n, x + r * n, mean[r], rstd[r], scale, n, to_input == NULL ? NULL : (T *)to_input + r * n,
                               scale_part, shift_part);
        }
        for (npy_intp i = 0; scale_part != NULL && i < n; i++) {
            scale_total[i] += scale_part[i];
        }
        for (npy_intp i = 0; shift_part != NULL && i < n; i++) {
            shift_total[i] += shift_part[i];
        }
    }
}

/* The sums of several pieces, `step` apart, in their order. */
static TARGET void NAME(finish_totals)(const double *totals, npy_intp pieces, npy_intp step, void *result, npy_intp n)
{
    T *to = result;
    for (npy_intp i = 0; i < n; i++) {
        double sum = totals[i];
        for (npy_intp k = 1; k < pieces; k++) {
            sum += totals[k * step + i];
        }
        to[i] = (T)sum;
    }
}
