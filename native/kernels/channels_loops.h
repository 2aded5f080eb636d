/* Batch and group norm, forward and backward; included for each type and processor.
 *
 * Arrays are (batch, channels, places). Sums are kept in double; `sum` and `along` have one of them for each channel.
 */
#include "lanes.h"

/* Adds to `sum` what a plane's elements sum to, and to `along` the sum of their products with those of `other`, less `centre` and times `scale`. */
static inline TARGET void NAME(add_plane)(const T *x, const T *other, npy_intp places, T centre, T scale, double *sum, double *along)
{
    double products;
    V centres = NAME(all)(centre), scales = NAME(all)(scale);
    *sum += NAME(sum_of)(x, places);
    SUM_OVER(products, places, NAME(load)(x + j) * ((NAME(load)(other + j) - centres) * scales), x[j] * ((other[j] - centre) * scale));
    *along += products;
}

/* Of channels that lie side by side (one place each), four rows meet before they are added to the doubles: WHAT is the term of row `r` at c. */
#define FOUR_ROWS 4
#define SIDE_BY_SIDE(total, WHAT)                                                                                                          \
    for (npy_intp n = 0; n < batch; n += FOUR_ROWS) {                                                                                      \
        npy_intp r = n * channels;                                                                                                         \
        if (batch - n < FOUR_ROWS) {                                                                                                       \
            for (; r < batch * channels; r += channels) {                                                                                  \
                for (npy_intp c = first; c < last; c++) {                                                                                  \
                    total[c] += (double)(WHAT(r));                                                                                         \
                }                                                                                                                          \
            }                                                                                                                              \
            break;                                                                                                                         \
        }                                                                                                                                  \
        const npy_intp s = r + channels, t = s + channels, u = t + channels;                                                               \
        for (npy_intp c = first; c < last; c++) {                                                                                          \
            total[c] += (double)(((WHAT(r)) + (WHAT(s))) + ((WHAT(t)) + (WHAT(u))));                                                       \
        }                                                                                                                                  \
    }
#define ELEMENT(r) x[(r) + c]
#define SQUARED(r) (x[(r) + c] - (T)mean[c]) * (x[(r) + c] - (T)mean[c])
#define GRADIENT(r) grad[(r) + c]
#define ALONG(r) grad[(r) + c] * ((x[(r) + c] - mean[c]) * scale[c])

static TARGET void NAME(moments_side_by_side)(const T *restrict x, npy_intp batch, npy_intp channels, npy_intp first, npy_intp last, double *restrict mean,
                                              double *restrict variance)
{
    SIDE_BY_SIDE(mean, ELEMENT)
    for (npy_intp c = first; c < last; c++) {
        mean[c] /= (double)batch;
    }
    SIDE_BY_SIDE(variance, SQUARED)
    for (npy_intp c = first; c < last; c++) {
        variance[c] /= (double)batch;
    }
}

static TARGET void NAME(sums_side_by_side)(const T *restrict grad, const T *restrict x, npy_intp batch, npy_intp channels, npy_intp first, npy_intp last,
                                           const T *restrict mean, const T *restrict scale, double *restrict sum, double *restrict along)
{
    SIDE_BY_SIDE(sum, GRADIENT)
    SIDE_BY_SIDE(along, ALONG)
}
#undef FOUR_ROWS
#undef SIDE_BY_SIDE
#undef ELEMENT
#undef SQUARED
#undef GRADIENT
#undef ALONG

/* Mean and variance of every channel. */
static TARGET void NAME(channel_moments)(const void *input, npy_intp batch, npy_intp channels, npy_intp places, npy_intp first, npy_intp last, double *mean,
                                         double *variance)
{
    const double count = (double)(batch * places);
    for (npy_intp c = first; c < last; c++) {
        mean[c] = variance[c] = 0;
    }
    if (places == 1) {
        NAME(moments_side_by_side)(input, batch, channels, first, last, mean, variance);
        return;
    }
    for (npy_intp n = 0; n < batch; n++) {
        const T *x = (const T *)input + (n * channels + first) * places;
        for (npy_intp c = first; c < last; c++, x += places) {
            mean[c] += NAME(sum_of)(x, places);
        }
    }
    for (npy_intp c = first; c < last; c++) {
        mean[c] /= count;
    }
    for (npy_intp n = 0; n < batch; n++) {
        const T *x = (const T *)input + (n * channels + first) * places;
        for (npy_intp c = first; c < last; c++, x += places) {
            T centre = (T)mean[c];
            V centres = NAME(all)(centre);
            double squares;
            SUM_OVER(squares, places, (NAME(load)(x + j) - centres) * (NAME(load)(x + j) - centres), (x[j] - centre) * (x[j] - centre));
            variance[c] += squares;
        }
    }
    for (npy_intp c = first; c < last; c++) {
        variance[c] /= count;
    }
}

/* out = (x - mean) * scale + shift, each by channel. */
static TARGET void NAME(scale_channels)(const void *input, void *output, npy_intp batch, npy_intp channels, npy_intp places, const void *means,
                                        const void *scales, const void *shifts)
{
    const T *restrict x = input, *mean = means, *scale = scales, *shift = shifts;
    T *restrict y = output;
    for (npy_intp n = 0; n < batch; n++) {
        if (places == 1) {
            for (npy_intp c = 0; c < channels; c++) {
                y[c] = (x[c] - mean[c]) * scale[c] + (shift == NULL ? 0 : shift[c]);
            }
            x += channels;
            y += channels;
            continue;
        }
        for (npy_intp c = 0; c < channels; c++, x += places, y += places) {
            T centre = mean[c], by = scale[c], more = shift == NULL ? 0 : shift[c];
            for (npy_intp i = 0; i < places; i++) {
                y[i] = (x[i] - centre) * by + more;
            }
        }
    }
}

static TARGET void NAME(channel_sums)(const void *gradient, const void *input, npy_intp batch, npy_intp channels, npy_intp places, npy_intp first, npy_intp last,
                                      const void *means, const void *scales, double *sum, double *along)
{
    const T *mean = means, *scale = scales;
    for (npy_intp c = first; c < last; c++) {
        sum[c] = along[c] = 0;
    }
    if (places == 1) {
        NAME(sums_side_by_side)(gradient, input, batch, channels, first, last, mean, scale, sum, along);
        return;
    }
    for (npy_intp n = 0; n < batch; n++) {
        const npy_intp skipped = (n * channels + first) * places;
        const T *grad = (const T *)gradient + skipped, *x = (const T *)input + skipped;
        for (npy_intp c = first; c < last; c++, x += places, grad += places) {
            NAME(add_plane)(grad, x, places, mean[c], scale[c], &sum[c], &along[c]);
        }
    }
}

/* The input's gradient of batch norm: (grad - level - (x - mean) * invstd * slope) * invstd * weight; `level` is NULL outside of training. */
static TARGET void NAME(batch_norm_input)(const void *gradient, const void *input, void *output, npy_intp batch, npy_intp channels,
                                          npy_intp places, const void *means, const void *scales, const void *weights, const double *level,
                                          const double *slope)
{
    const T *restrict grad = gradient, *restrict x = input, *mean = means, *scale = scales, *weight = weights;
    T *restrict out = output;
    for (npy_intp n = 0; n < batch; n++) {
        if (places == 1) {
            for (npy_intp c = 0; c < channels; c++) {
                const T by = weight == NULL ? scale[c] : scale[c] * weight[c];
                const T off = level == NULL ? 0 : (T)level[c], along = level == NULL ? 0 : (T)slope[c] * scale[c];
                out[c] = (grad[c] - off - (x[c] - mean[c]) * along) * by;
            }
            x += channels;
            grad += channels;
            out += channels;
            continue;
        }
        for (npy_intp c = 0; c < channels; c++, x += places, grad += places, out += places) {
            T centre = mean[c], by = weight == NULL ? scale[c] : scale[c] * weight[c];
            T off = level == NULL ? 0 : (T)level[c], along = level == NULL ? 0 : (T)slope[c] * scale[c];
            for (npy_intp i = 0; i < places; i++) {
                out[i] = (grad[i] - off - (x[i] - centre) * along) * by;
            }
        }
    }
}

/* Groups of channels with mean 0 and variance 1; `wide` is the number of channels in a group. */
static TARGET void NAME(group_norm_planes)(const void *input, const void *weights, const void *biases, void *output, void *means, void *rstds,
                                           npy_intp batch, npy_intp groups, npy_intp wide, npy_intp places, double eps)
{
    const T *restrict x = input, *weight = weights, *bias = biases;
    T *restrict y = output, *mean = means, *rstd = rstds;
    const npy_intp n = wide * places;
    for (npy_intp r = 0; r < batch * groups; r++) {
        T centre = (T)(NAME(sum_of)(x, n) / (double)n);
        V centres = NAME(all)(centre);
        double squares;
        SUM_OVER(squares, n, (NAME(load)(x + j) - centres) * (NAME(load)(x + j) - centres), (x[j] - centre) * (x[j] - centre));
        mean[r] = centre;
        rstd[r] = (T)(1 / sqrt((double)((T)(squares / (double)n) + (T)eps)));
        for (npy_intp k = 0; k < wide; k++, x += places, y += places) {
            npy_intp c = r % groups * wide + k;
            T by = weight == NULL ? rstd[r] : rstd[r] * weight[c], more = bias == NULL ? 0 : bias[c];
            for (npy_intp i = 0; i < places; i++) {
                y[i] = (x[i] - centre) * by + more;
            }
        }
    }
}

/* `sum` and `along` are what the gradients of bias and weight are made of. */
static TARGET void NAME(group_norm_backward_planes)(const void *gradient, const void *input, const void *means, const void *rstds,
                                                    const void *weights, void *output, npy_intp batch, npy_intp groups, npy_intp wide,
                                                    npy_intp places, double *sum, double *along)
{
    const T *grad = gradient, *x = input, *mean = means, *rstd = rstds, *weight = weights;
    const npy_intp n = wide * places;
    T *out = output;
    for (npy_intp c = 0; c < groups * wide; c++) {
        sum[c] = along[c] = 0;
    }
    for (npy_intp r = 0; r < batch * groups; r++, x += n, grad += n) {
        double level = 0, slope = 0;
        for (npy_intp k = 0; k < wide; k++) {
            npy_intp c = r % groups * wide + k;
            double plain = 0, product = 0, by = weight == NULL ? 1 : (double)weight[c];
            NAME(add_plane)(grad + k * places, x + k * places, places, mean[r], rstd[r], &plain, &product);
            sum[c] += plain;
            along[c] += product;
            level += plain * by;
            slope += product * by;
        }
        if (out == NULL) {
            continue;
        }
        T off = (T)(level / (double)n), steep = (T)(slope / (double)n) * rstd[r], centre = mean[r], scale = rstd[r];
        for (npy_intp k = 0; k < wide; k++, out += places) {
            T by = weight == NULL ? 1 : weight[r % groups * wide + k];
            const T *restrict g = grad + k * places, *restrict from = x + k * places;
            for (npy_intp i = 0; i < places; i++) {
                out[i] = (g[i] * by - off - (from[i] - centre) * steep) * scale;
            }
        }
    }
}
