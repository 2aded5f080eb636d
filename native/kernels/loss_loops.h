/* Losses of pairs of elements, and the negative log likelihood of classes; included for each type and processor. */
#include "lanes.h"
#include "pointwise_math.h"

/* The losses of n elements a and b; `p` is the operator's parameter. */
#define PAIR_LOSS(name, LOSS)                                                                                                              \
    static TARGET void NAME(name)(const void *input, const void *target, const void *factors, void *output, npy_intp n, double by)         \
    {                                                                                                                                      \
        const T *x = input, *y = target, parameter = (T)by;                                                                                \
        T *out = output;                                                                                                                   \
        (void)parameter, (void)factors;                                                                                                    \
        EACH(n, x, y, out, const T a = p, b = q, d = NAME(fabs)(a - b); (void)d; made = LOSS);                                             \
    }

#define SOFTPLUS_OF_NEGATIVE (NAME(log1p)(NAME(exponential)(-NAME(fabs)(a))) + NAME(larger)(-a, 0))

PAIR_LOSS(squared_loss, d *d)
PAIR_LOSS(absolute_loss, d)
PAIR_LOSS(smooth_loss, NAME(chosen)(d < parameter, d *d *((T)0.5 / parameter), d - (T)0.5 * parameter))
PAIR_LOSS(huber_loss, NAME(chosen)(d <= parameter, d *d *(T)0.5, (d - (T)0.5 * parameter) * parameter))
PAIR_LOSS(soft_margin_loss, NAME(log1p)(NAME(exponential)(-b * a)))
PAIR_LOSS(entropy_loss, (b - 1) * NAME(larger)(NAME(log1p)(-a), -100) - b *NAME(larger)(NAME(log)(a), -100))
PAIR_LOSS(logit_loss, (1 - b) * a + SOFTPLUS_OF_NEGATIVE)
PAIR_LOSS(softplus_of_negative, SOFTPLUS_OF_NEGATIVE)

static TARGET void NAME(weighted_logit_loss)(const void *input, const void *target, const void *factors, void *output, npy_intp n, double by)
{
    const T *restrict x = input, *restrict y = target, *restrict w = factors;
    T *restrict out = output;
    NAME(softplus_of_negative)(input, target, factors, output, n, by);
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (1 - y[i]) * x[i] + out[i] * ((w[i] - 1) * y[i] + 1);
    }
}

static TARGET void NAME(times)(void *output, const void *factors, npy_intp n)
{
    T *restrict out = output;
    const T *restrict w = factors;
    for (npy_intp i = 0; i < n; i++) {
        out[i] *= w[i];
    }
}

static TARGET void NAME(total_of)(const void *values, npy_intp n, double *total)
{
    *total += NAME(sum_of)(values, n);
}

static TARGET void NAME(all_shares)(const void *values, npy_intp n, int *all)
{
    const T *x = values;
    int within = 1;
    for (npy_intp i = 0; i < n; i++) {
        within &= x[i] >= 0 && x[i] <= 1;
    }
    *all = within;
}

/* Per sample (`each`) or together: losses, and the weights that counted. `ignored` is no class, or one that does not count. */
static void NAME(class_losses)(const void *input, const npy_int64 *target, const void *weights, npy_intp samples, npy_intp classes,
                               npy_int64 ignored, int mean, void *each, void *together, void *counted)
{
    const T *scores = input, *weight = weights;
    double loss = 0, total = 0;
    for (npy_intp i = 0; i < samples; i++, scores += classes) {
        T share = target[i] == ignored ? 0 : weight == NULL ? 1 : weight[target[i]];
        T one = target[i] == ignored ? 0 : -scores[target[i]] * share;
        if (each != NULL) {
            ((T *)each)[i] = one;
        }
        loss += one;
        total += share;
    }
    if (each == NULL) {
        *(T *)together = (T)(mean ? loss / total : loss);
        *(T *)counted = (T)total;
    }
    else {
        *(T *)counted = 0;
    }
}

/* The gradient of the scores, which are zero before. `gradient` has one element, or one for each sample. */
/* The one element that is not zero of each row of the gradient. */
static void NAME(class_shares)(const void *gradient, int each, const npy_int64 *target, const void *weights, npy_intp samples, npy_int64 ignored,
                               const void *counted, void *output)
{
    const T *grad = gradient, *weight = weights;
    T *out = output;
    for (npy_intp i = 0; i < samples; i++) {
        if (target[i] != ignored) {
            T share = -(weight == NULL ? (T)1 : weight[target[i]]) * grad[each ? i : 0];
            out[i] = counted == NULL ? share : share / *(const T *)counted;
        }
    }
}

static void NAME(class_gradients)(const void *gradient, int each, const npy_int64 *target, const void *weights, npy_intp samples,
                                  npy_intp classes, npy_int64 ignored, const void *counted, void *output)
{
    const T *grad = gradient, *weight = weights;
    T *out = output;
    for (npy_intp i = 0; i < samples; i++, out += classes) {
        if (target[i] != ignored) {
            T share = -(weight == NULL ? (T)1 : weight[target[i]]) * grad[each ? i : 0];
            out[target[i]] = counted == NULL ? share : share / *(const T *)counted;
        }
    }
}
