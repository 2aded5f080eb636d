/* Losses and their gradients. Reductions: 0 none, 1 mean, 2 sum, and for KlDiv 3 the sum by the batch's size. */
#include "ops_pointwise.h"

enum { NONE, MEAN, SUM, BATCH_MEAN };

/* The shape that `count` present tensors broadcast to. */
static EmTensor joint_shape(const EmCall *call, int count) {
    EmTensor like = {.numel = 1};
    for (int t = 0; t < count; t++)
        if (call->tensor[t].present && call->tensor[t].ndim > like.ndim) like.ndim = call->tensor[t].ndim;
    for (int d = 0; d < like.ndim; d++) like.dims[d] = 1;
    for (int t = 0; t < count; t++) {
        const EmTensor *tensor = &call->tensor[t];
        for (int d = 0; tensor->present && d < tensor->ndim; d++)
            if (tensor->dims[d] != 1) like.dims[like.ndim - tensor->ndim + d] = tensor->dims[d];
    }
    for (int d = 0; d < like.ndim; d++) like.numel *= like.dims[d];
    return like;
}

static void reduce(const EmTensor *out, double *losses, int64_t count, int64_t reduction, int64_t batch) {
    if (reduction == NONE) {
        em_write_reals(out, losses);
        return;
    }
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += losses[k];
    if (reduction == MEAN) sum /= (double)count;
    if (reduction == BATCH_MEAN) sum /= (double)batch;
    em_write_reals(out, &sum);
}

/* Inputs a and b, optional ones c and d, which are 1 where absent; the output comes after them. */
#define LOSS(NAME, INPUTS, EXPRESSION)                                                                                    \
    static void NAME(EmCall *call) {                                                                                      \
        const int inputs = INPUTS;                                                                                        \
        EmTensor like = joint_shape(call, inputs);                                                                        \
        const double r0 = pw_argument(call, 0);                                                                           \
        const int64_t i1 = pw_option(call, 1);                                                                            \
        double *read[4] = {0}, *losses = pw_allocate(like.numel, sizeof *losses);                                         \
        for (int t = 0; t < inputs; t++)                                                                                  \
            if (call->tensor[t].present) read[t] = pw_reals_as(&call->tensor[t], &like);                                  \
        for (int64_t k = 0; k < like.numel; k++) {                                                                        \
            const double a = read[0][k], b = read[1][k], c = read[2] ? read[2][k] : 1, d = read[3] ? read[3][k] : 1;      \
            (void)c, (void)d, (void)r0, (void)i1;                                                                         \
            losses[k] = EXPRESSION;                                                                                       \
        }                                                                                                                 \
        reduce(&call->tensor[inputs], losses, like.numel, call->integer[0], like.ndim ? like.dims[0] : 1);                \
        for (int t = 0; t < inputs; t++) free(read[t]);                                                                   \
        free(losses);                                                                                                     \
    }
/* Gradients: a is the output's gradient, b the input, c the target, d an optional weight; each element by the mean's number of elements. */
#define LOSS_GRADIENT(NAME, INPUTS, EXPRESSION)                                                                           \
    static void NAME(EmCall *call) {                                                                                      \
        const int inputs = INPUTS;                                                                                        \
        EmTensor like = joint_shape(call, inputs);                                                                        \
        const double r0 = pw_argument(call, 0);                                                                           \
        const int64_t i1 = pw_option(call, 1), reduction = call->integer[0], rows = like.ndim ? like.dims[0] : 1;         \
        const double share = reduction == MEAN ? (double)like.numel : reduction == BATCH_MEAN ? (double)rows : 1;         \
        double *read[4] = {0}, *results = pw_allocate(like.numel, sizeof *results);                                       \
        for (int t = 0; t < inputs; t++)                                                                                  \
            if (call->tensor[t].present) read[t] = pw_reals_as(&call->tensor[t], &like);                                  \
        for (int64_t k = 0; k < like.numel; k++) {                                                                        \
            const double a = read[0][k], b = read[1][k], c = read[2][k], d = read[3] ? read[3][k] : 1;                    \
            (void)b, (void)d, (void)r0, (void)i1;                                                                               \
            results[k] = (EXPRESSION) / share;                                                                            \
        }                                                                                                                 \
        em_write_reals(&call->tensor[inputs], results);                                                                   \
        for (int t = 0; t < inputs; t++) free(read[t]);                                                                   \
        free(results);                                                                                                    \
    }

static double smooth_l1(double difference, double beta) {
    double size = fabs(difference);
    return size < beta ? 0.5 * size * size / beta : size - 0.5 * beta;
}

static double smooth_l1_slope(double difference, double beta) {
    return fabs(difference) >= beta ? pw_sign(difference) : difference / beta;
}

/* Logarithms of probabilities stop at -100. */
static double cross_entropy(double probability, double target) {
    return (target - 1) * fmax(log1p(-probability), -100) - target * fmax(log(probability), -100);
}

static double cross_entropy_with_logits(double x, double target, double positive) {
    double scaled = 1 + (positive - 1) * target; /* the factor of -log sigmoid(x) but for (1 - target) x */
    return (1 - target) * x + scaled * pw_log1p_exp(-x);
}

static double kl_div(double x, double target, int64_t in_logs) {
    if (in_logs) return exp(target) * (target - x);
    return target < 0 ? NAN : target == 0 ? 0 - target * x : target * (log(target) - x);
}

LOSS(mse_kernel, 2, (a - b) * (a - b))
LOSS(l1_kernel, 2, fabs(a - b))
LOSS(smooth_l1_kernel, 2, smooth_l1(a - b, r0))
LOSS(cross_entropy_kernel, 3, c * cross_entropy(a, b))
LOSS(cross_entropy_with_logits_kernel, 4, c * cross_entropy_with_logits(a, b, d))
LOSS(kl_div_kernel, 2, kl_div(a, b, i1))
LOSS_GRADIENT(mse_gradient_kernel, 3, 2 * (b - c) * a)
LOSS_GRADIENT(l1_gradient_kernel, 3, pw_sign(b - c) * a)
LOSS_GRADIENT(smooth_l1_gradient_kernel, 3, smooth_l1_slope(b - c, r0) * a)
LOSS_GRADIENT(cross_entropy_gradient_kernel, 4, d * a * (b - c) / fmax((1 - b) * b, 1e-12))
LOSS_GRADIENT(kl_div_gradient_kernel, 3, i1 ? -exp(c) * a : c > 0 ? -c * a : 0)

/* The output of a loss: the inputs' shape, or one element; [1] where `vector`. */
static aclnnStatus check_loss(aclOpExecutor *ex, const aclTensor *self, const aclTensor *target, const aclTensor *out, int64_t reduction, int64_t last,
                              uint32_t set, bool vector) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(target);
    EM_NOT_NULL(out);
    EM_REQUIRE(reduction >= NONE && reduction <= last, "reduction is %lld, not 0 to %lld", (long long)reduction, (long long)last);
    EM_REQUIRE(pw_is(self->dtype, set) && pw_is(target->dtype, set) && pw_is(out->dtype, set), "a dtype is not supported");
    EM_REQUIRE(pw_converts(em_promote(self->dtype, target->dtype), out->dtype), "the loss's dtype does not convert to out's");
    const aclTensor *both[] = {self, target};
    int ndim;
    int64_t dims[EM_MAX_DIMS];
    EM_REQUIRE(pw_broadcast(2, both, &ndim, dims), "self and target do not broadcast");
    if (reduction == NONE) EM_REQUIRE(pw_has_shape(out, ndim, dims), "out's shape is not that of self and target");
    else EM_REQUIRE(out->ndim == 0 || (vector && out->ndim == 1 && out->dims[0] == 1), "out is not one element");
    return 0;
}

EM_OP(aclnnMseLoss, const aclTensor *self, const aclTensor *target, int64_t reduction, aclTensor *out) {
    EM_BEGIN(aclnnMseLoss);
    TRY(check_loss(ex, self, target, out, reduction, SUM, D_FLOATS, false));
    em_tensor(ex, self), em_tensor(ex, target), em_tensor(ex, out);
    em_integer(ex, reduction);
    return em_ready(ex, mse_kernel, 0);
}

EM_OP(aclnnL1Loss, const aclTensor *self, const aclTensor *target, int64_t reduction, aclTensor *out) {
    EM_BEGIN(aclnnL1Loss);
    TRY(check_loss(ex, self, target, out, reduction, SUM, D_FLOATS | D_I64, false));
    EM_REQUIRE(reduction != MEAN || em_is_floating(self->dtype) || em_is_floating(target->dtype), "the mean is not of integers");
    EM_REQUIRE(reduction != NONE || em_is_floating(self->dtype) || !em_is_floating(target->dtype), "target is floating, self is not");
    em_tensor(ex, self), em_tensor(ex, target), em_tensor(ex, out);
    em_integer(ex, reduction);
    return em_ready(ex, l1_kernel, 0);
}

EM_OP(aclnnSmoothL1Loss, const aclTensor *self, const aclTensor *target, int64_t reduction, float beta, aclTensor *result) {
    EM_BEGIN(aclnnSmoothL1Loss);
    EM_REQUIRE(beta >= 0, "beta is negative");
    TRY(check_loss(ex, self, target, result, reduction, SUM, D_FLOATS, true));
    em_tensor(ex, self), em_tensor(ex, target), em_tensor(ex, result);
    em_integer(ex, reduction);
    em_real(ex, beta);
    return em_ready(ex, smooth_l1_kernel, 0);
}

EM_OP(aclnnKlDiv, const aclTensor *self, const aclTensor *target, int64_t reduction, bool logTarget, aclTensor *out) {
    EM_BEGIN(aclnnKlDiv);
    TRY(check_loss(ex, self, target, out, reduction, BATCH_MEAN, D_FLOATS, true));
    em_tensor(ex, self), em_tensor(ex, target), em_tensor(ex, out);
    em_integer(ex, reduction);
    em_integer(ex, logTarget);
    return em_ready(ex, kl_div_kernel, 0);
}

static aclnnStatus check_weight(aclOpExecutor *ex, const aclTensor *weight, const aclTensor *like) {
    if (!weight) return 0;
    EM_REQUIRE(weight->dtype == like->dtype, "a weight's dtype is not self's");
    EM_REQUIRE(pw_expands(weight, like), "a weight does not broadcast to self");
    return 0;
}

EM_OP(aclnnBinaryCrossEntropy, const aclTensor *self, const aclTensor *target, const aclTensor *weight, int64_t reduction, aclTensor *out) {
    EM_BEGIN(aclnnBinaryCrossEntropy);
    TRY(check_loss(ex, self, target, out, reduction, SUM, D_FLOATS, true));
    EM_REQUIRE(self->dtype == target->dtype && self->dtype == out->dtype, "self, target and out differ in dtype");
    EM_REQUIRE(em_same_shape(self, target), "self and target differ in shape");
    TRY(check_weight(ex, weight, self));
    em_tensor(ex, self), em_tensor(ex, target), em_tensor(ex, weight), em_tensor(ex, out);
    em_integer(ex, reduction);
    return em_ready(ex, cross_entropy_kernel, 0);
}

EM_OP(aclnnBinaryCrossEntropyWithLogits, const aclTensor *self, const aclTensor *target, const aclTensor *weightOptional, const aclTensor *posWeightOptional,
      int64_t reduction, aclTensor *out) {
    EM_BEGIN(aclnnBinaryCrossEntropyWithLogits);
    TRY(check_loss(ex, self, target, out, reduction, SUM, D_FLOATS, true));
    EM_REQUIRE(self->dtype == target->dtype && target->dtype == out->dtype, "self, target and out differ in dtype");
    EM_REQUIRE(em_same_shape(self, target), "self and target differ in shape");
    TRY(check_weight(ex, weightOptional, self));
    TRY(check_weight(ex, posWeightOptional, self));
    em_tensor(ex, self), em_tensor(ex, target), em_tensor(ex, weightOptional), em_tensor(ex, posWeightOptional), em_tensor(ex, out);
    em_integer(ex, reduction);
    return em_ready(ex, cross_entropy_with_logits_kernel, 0);
}

/* Gradients */

static aclnnStatus check_reduction(aclOpExecutor *ex, int64_t reduction, int64_t last) {
    EM_REQUIRE(reduction >= NONE && reduction <= last, "reduction is %lld, not 0 to %lld", (long long)reduction, (long long)last);
    return 0;
}

EM_OP(aclnnMseLossBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target, int64_t reduction, aclTensor *out) {
    EM_BEGIN(aclnnMseLossBackward);
    TRY(check_reduction(ex, reduction, SUM));
    EM_NOT_NULL(gradOutput);
    EM_NOT_NULL(self);
    EM_NOT_NULL(target);
    EM_REQUIRE(gradOutput->dtype == self->dtype && target->dtype == self->dtype, "gradOutput, self and target differ in dtype");
    TRY(pw_check3(ex, gradOutput, self, target, out, D_FLOATS, D_FLOATS, TO_CASTABLE));
    em_integer(ex, reduction);
    return em_ready(ex, mse_gradient_kernel, 0);
}

EM_OP(aclnnL1LossBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target, int64_t reduction, aclTensor *gradInput) {
    EM_BEGIN(aclnnL1LossBackward);
    TRY(check_reduction(ex, reduction, SUM));
    TRY(pw_check3(ex, gradOutput, self, target, gradInput, D_FLOATS, D_FLOATS, TO_CASTABLE));
    em_integer(ex, reduction);
    return em_ready(ex, l1_gradient_kernel, 0);
}

EM_OP(aclnnSmoothL1LossBackward, const aclTensor *gradOut, const aclTensor *self, const aclTensor *target, int64_t reduction, float beta, aclTensor *gradInput) {
    EM_BEGIN(aclnnSmoothL1LossBackward);
    TRY(check_reduction(ex, reduction, SUM));
    EM_REQUIRE(beta >= 0, "beta is negative");
    TRY(pw_check3(ex, gradOut, self, target, gradInput, D_FLOATS, D_FLOATS, TO_CASTABLE));
    em_integer(ex, reduction);
    em_real(ex, beta);
    return em_ready(ex, smooth_l1_gradient_kernel, 0);
}

EM_OP(aclnnKlDivBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target, int64_t reduction, bool logTarget, aclTensor *out) {
    EM_BEGIN(aclnnKlDivBackward);
    TRY(check_reduction(ex, reduction, BATCH_MEAN));
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_REQUIRE(self->dtype == out->dtype && em_same_shape(self, out), "self and out differ in dtype or shape");
    TRY(pw_check3(ex, gradOutput, self, target, out, D_FLOATS, D_FLOATS, TO_CASTABLE));
    em_integer(ex, reduction);
    em_integer(ex, logTarget);
    return em_ready(ex, kl_div_gradient_kernel, 0);
}

EM_OP(aclnnBinaryCrossEntropyBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target, const aclTensor *weightOptional,
      int64_t reduction, aclTensor *out) {
    EM_BEGIN(aclnnBinaryCrossEntropyBackward);
    TRY(check_reduction(ex, reduction, SUM));
    const aclTensor *all[] = {gradOutput, self, target, out};
    for (int t = 0; t < 4; t++) EM_NOT_NULL(all[t]);
    for (int t = 0; t < 4; t++) EM_REQUIRE(pw_is(all[t]->dtype, D_FLOATS), "a dtype is not supported");
    EM_REQUIRE(target->dtype == self->dtype, "self and target differ in dtype");
    EM_REQUIRE(em_same_shape(self, out), "self and out differ in shape");
    EM_REQUIRE(pw_expands(gradOutput, self) && pw_expands(target, self), "gradOutput or target does not broadcast to self");
    TRY(check_weight(ex, weightOptional, self));
    em_tensor(ex, gradOutput), em_tensor(ex, self), em_tensor(ex, target), em_tensor(ex, weightOptional), em_tensor(ex, out);
    em_integer(ex, reduction);
    return em_ready(ex, cross_entropy_gradient_kernel, 0);
}

/* Negative log-likelihood: self is (N, C) or (C), target (N) or (). Tensors: self, target, weight, out, totalWeightOut. */

static aclnnStatus check_nll(aclOpExecutor *ex, const aclTensor *self, const aclTensor *target, const aclTensor *weight, int64_t reduction) {
    TRY(check_reduction(ex, reduction, SUM));
    EM_REQUIRE(pw_is(self->dtype, D_FLOATS) && weight->dtype == self->dtype, "self's and weight's dtypes differ or are not supported");
    EM_REQUIRE(pw_is(target->dtype, D_I64 | D_I32 | D_U8), "target has dtype %d, which is not supported", target->dtype);
    EM_REQUIRE(self->ndim == 1 || self->ndim == 2, "self has %d dimensions, not 1 or 2", self->ndim);
    EM_REQUIRE(self->ndim == 2 ? target->ndim == 1 && target->dims[0] == self->dims[0] : em_numel(target) == 1 && target->ndim <= 1, "target's shape does not fit self's");
    EM_REQUIRE(weight->ndim == 1 && weight->dims[0] == self->dims[self->ndim - 1], "weight's shape is not (C)");
    return 0;
}

static bool is_one_element(const aclTensor *tensor) { return tensor->ndim == 0 || (tensor->ndim == 1 && tensor->dims[0] == 1); }

static void nll_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    int64_t reduction = call->integer[0], ignored = call->integer[1], classes = self->dims[self->ndim - 1], rows = self->ndim == 2 ? self->dims[0] : 1;
    double *x = em_read_reals(self), *w = em_read_reals(&call->tensor[2]), *losses = pw_allocate(rows, sizeof *losses), total = 0, sum = 0;
    int64_t *target = em_read_integers(&call->tensor[1]);
    bool failed = false;
    for (int64_t n = 0; n < rows && !failed; n++) {
        if (target[n] == ignored) continue;
        failed = target[n] < 0 || target[n] >= classes;
        if (failed) {
            em_kernel_failed(call, 0, "target %lld is out of range of %lld classes", (long long)target[n], (long long)classes);
            break;
        }
        losses[n] = -w[target[n]] * x[n * classes + target[n]];
        total += w[target[n]];
        sum += losses[n];
    }
    if (!failed && reduction == NONE) em_write_reals(&call->tensor[3], losses);
    if (!failed && reduction != NONE) {
        if (reduction == MEAN) sum /= total;
        em_write_reals(&call->tensor[3], &sum);
        em_write_reals(&call->tensor[4], &total);
    }
    free(x), free(w), free(losses), free(target);
}

EM_OP(aclnnNLLLoss, const aclTensor *self, const aclTensor *target, const aclTensor *weight, int64_t reduction, int64_t ignoreIndex, aclTensor *out,
      aclTensor *totalWeightOut) {
    EM_BEGIN(aclnnNLLLoss);
    const aclTensor *all[] = {self, target, weight, out, totalWeightOut};
    for (int t = 0; t < 5; t++) EM_NOT_NULL(all[t]);
    TRY(check_nll(ex, self, target, weight, reduction));
    EM_REQUIRE(pw_is(out->dtype, D_FLOATS) && pw_is(totalWeightOut->dtype, D_FLOATS), "an output's dtype is not supported");
    if (reduction == NONE && self->ndim == 2) EM_REQUIRE(out->ndim == 1 && out->dims[0] == self->dims[0], "out's shape is not (N)");
    else EM_REQUIRE(is_one_element(out), "out is not one element");
    EM_REQUIRE(is_one_element(totalWeightOut), "totalWeightOut is not one element");
    for (int t = 0; t < 5; t++) em_tensor(ex, all[t]);
    em_integer(ex, reduction);
    em_integer(ex, ignoreIndex);
    return em_ready(ex, nll_kernel, 0);
}

/* Tensors: gradOutput, self, target, weight, totalWeight, out. */
static void nll_gradient_kernel(EmCall *call) {
    const EmTensor *grad = &call->tensor[0], *self = &call->tensor[1];
    int64_t reduction = call->integer[0], ignored = call->integer[1], classes = self->dims[self->ndim - 1], rows = self->ndim == 2 ? self->dims[0] : 1;
    double *g = em_read_reals(grad), *w = em_read_reals(&call->tensor[3]), *total = em_read_reals(&call->tensor[4]);
    double *results = pw_allocate(self->numel, sizeof *results), share = reduction == MEAN ? total[0] : 1;
    int64_t *target = em_read_integers(&call->tensor[2]);
    bool failed = false;
    for (int64_t n = 0; n < rows && !failed; n++) {
        if (target[n] == ignored) continue;
        failed = target[n] < 0 || target[n] >= classes;
        if (failed) em_kernel_failed(call, 0, "target %lld is out of range of %lld classes", (long long)target[n], (long long)classes);
        else results[n * classes + target[n]] = -w[target[n]] * g[grad->numel == 1 ? 0 : n] / share;
    }
    if (!failed) em_write_reals(&call->tensor[5], results);
    free(g), free(w), free(total), free(results), free(target);
}

EM_OP(aclnnNLLLossBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target, const aclTensor *weight, int64_t reduction,
      int64_t ignoreIndex, const aclTensor *totalWeight, aclTensor *out) {
    EM_BEGIN(aclnnNLLLossBackward);
    const aclTensor *all[] = {gradOutput, self, target, weight, totalWeight, out};
    for (int t = 0; t < 6; t++) EM_NOT_NULL(all[t]);
    TRY(check_nll(ex, self, target, weight, reduction));
    EM_REQUIRE(gradOutput->dtype == self->dtype && totalWeight->dtype == self->dtype && out->dtype == self->dtype, "the dtypes differ");
    EM_REQUIRE(em_same_shape(out, self), "out and self differ in shape");
    if (reduction == NONE && self->ndim == 2) EM_REQUIRE(gradOutput->ndim == 1 && gradOutput->dims[0] == self->dims[0], "gradOutput's shape is not (N)");
    else EM_REQUIRE(is_one_element(gradOutput), "gradOutput is not one element");
    EM_REQUIRE(is_one_element(totalWeight), "totalWeight is not one element");
    for (int t = 0; t < 6; t++) em_tensor(ex, all[t]);
    em_integer(ex, reduction);
    em_integer(ex, ignoreIndex);
    return em_ready(ex, nll_gradient_kernel, 0);
}
