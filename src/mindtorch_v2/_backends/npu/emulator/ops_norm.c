/* Normalisations, with their gradients: in double, rounded once. */

#include "ops_shape.h"

/* Note [Groups]
 * Every normalisation but that of batches sees `groups` runs of `size` elements that lie one after the other; weight and bias have one number per element of a run
 * (layers) or per `per` elements (channels of groups). */

static double *optional_reals(const EmTensor *tensor) { return tensor->present ? em_read_reals(tensor) : NULL; }

static bool is_suffix(const aclTensor *tensor, const int64_t *dims, int64_t count) {
    if (tensor->ndim < count) return false;
    for (int64_t d = 0; d < count; d++)
        if (tensor->dims[tensor->ndim - count + d] != dims[d]) return false;
    return true;
}

static void mean_and_rstd(const double *x, int64_t size, double eps, double *mean, double *rstd) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < size; i++) sum += x[i];
    *mean = size ? sum / (double)size : 0;
    for (int64_t i = 0; i < size; i++) squares += (x[i] - *mean) * (x[i] - *mean);
    *rstd = 1 / sqrt(squares / (double)size + eps);
}

/* tensors: input, weight, bias, out, mean, rstd; integers: size of a run, elements per weight, number of weights; real: eps. */
static void normalise_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t size = call->integer[0], per = call->integer[1], weights = call->integer[2];
    int64_t groups = size ? t[0].numel / size : t[4].present ? t[4].numel : 0; /* a run without elements has the mean 0 and the deviation NaN, as in PyTorch */
    double *x = em_read_reals(&t[0]), *weight = optional_reals(&t[1]), *bias = optional_reals(&t[2]);
    double *means = es_doubles(groups), *rstds = es_doubles(groups);
    for (int64_t g = 0; g < groups; g++) {
        double *line = x + g * size;
        mean_and_rstd(line, size, call->real[0], &means[g], &rstds[g]);
        for (int64_t i = 0; i < size; i++) {
            int64_t w = (g * size + i) / per % weights;
            line[i] = (line[i] - means[g]) * rstds[g] * (weight ? weight[w] : 1) + (bias ? bias[w] : 0);
        }
    }
    em_write_reals(&t[3], x);
    if (t[4].present) em_write_reals(&t[4], means);
    if (t[5].present) em_write_reals(&t[5], rstds);
    free(x);
    free(weight);
    free(bias);
    free(means);
    free(rstds);
}

/* tensors: grad, input, mean, rstd, weight, input's, weight's and bias's gradients; integers as above. */
static void normalise_backward_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t size = call->integer[0], per = call->integer[1], weights = call->integer[2];
    int64_t groups = size ? t[0].numel / size : t[4].present ? t[4].numel : 0; /* a run without elements has the mean 0 and the deviation NaN, as in PyTorch */
    double *grad = em_read_reals(&t[0]), *x = em_read_reals(&t[1]), *mean = em_read_reals(&t[2]), *rstd = em_read_reals(&t[3]), *weight = optional_reals(&t[4]);
    double *weight_grad = es_doubles(weights), *bias_grad = es_doubles(weights);
    for (int64_t g = 0; g < groups; g++) {
        double sum = 0, dot = 0, *dy = grad + g * size, *line = x + g * size;
        for (int64_t i = 0; i < size; i++) {
            int64_t w = (g * size + i) / per % weights;
            double normal = (line[i] - mean[g]) * rstd[g];
            weight_grad[w] += dy[i] * normal;
            bias_grad[w] += dy[i];
            dy[i] *= weight ? weight[w] : 1;
            line[i] = normal;
            sum += dy[i];
            dot += dy[i] * normal;
        }
        for (int64_t i = 0; i < size; i++) dy[i] = rstd[g] * (dy[i] - (sum + line[i] * dot) / (double)size);
    }
    if (t[5].present) em_write_reals(&t[5], grad);
    if (t[6].present) em_write_reals(&t[6], weight_grad);
    if (t[7].present) em_write_reals(&t[7], bias_grad);
    free(grad);
    free(x);
    free(mean);
    free(rstd);
    free(weight);
    free(weight_grad);
    free(bias_grad);
}

EM_OP(aclnnLayerNorm, const aclTensor *input, const aclIntArray *normalizedShape, const aclTensor *weightOptional, const aclTensor *biasOptional, double eps,
      aclTensor *out, aclTensor *meanOutOptional, aclTensor *rstdOutOptional) {
    EM_BEGIN(aclnnLayerNorm);
    EM_NOT_NULL(input);
    EM_NOT_NULL(normalizedShape);
    EM_NOT_NULL(out);
    ES_DTYPE(input, ES_REALS);
    ES_SAME_DTYPE(input, out);
    ES_SAME_SHAPE(input, out);
    int64_t count = (int64_t)normalizedShape->size, size = es_product(normalizedShape->values, 0, (int)count);
    EM_REQUIRE(count >= 1 && is_suffix(input, normalizedShape->values, count), "normalizedShape is not the end of input's shape");
    const aclTensor *affine[2] = {weightOptional, biasOptional}, *statistics[2] = {meanOutOptional, rstdOutOptional};
    for (int i = 0; i < 2; i++) {
        EM_REQUIRE(!affine[i] || es_in(affine[i]->dtype, ES_REALS), "weight or bias has a dtype that is not supported");
        EM_REQUIRE(!affine[i] || es_has_shape(affine[i], (int)count, normalizedShape->values), "weight or bias does not have normalizedShape");
        EM_REQUIRE(!statistics[i] || es_in(statistics[i]->dtype, ES_REALS), "mean or rstd has a dtype that is not supported");
        EM_REQUIRE(!statistics[i] || em_numel(statistics[i]) == es_product(input->dims, 0, input->ndim - (int)count), "mean or rstd does not have a number per line");
    }
    em_tensor(ex, input);
    em_tensor(ex, weightOptional);
    em_tensor(ex, biasOptional);
    em_tensor(ex, out);
    em_tensor(ex, meanOutOptional);
    em_tensor(ex, rstdOutOptional);
    em_integer(ex, size);
    em_integer(ex, 1);
    em_integer(ex, size);
    em_real(ex, eps);
    return em_ready(ex, normalise_kernel, 0);
}

/* The gradients that a mask of three asks for. */
static aclnnStatus check_mask(aclOpExecutor *ex, const aclBoolArray *outputMask, const aclTensor *first, const aclTensor *second, const aclTensor *third) {
    EM_NOT_NULL(outputMask);
    EM_REQUIRE(outputMask->size == 3, "outputMask must have 3 values");
    if ((outputMask->values[0] && !first) || (outputMask->values[1] && !second) || (outputMask->values[2] && !third))
        return em_fail(ex, ACLNN_ERR_PARAM_NULLPTR, "a gradient that outputMask asks for is NULL");
    return ACL_SUCCESS;
}

EM_OP(aclnnLayerNormBackward, const aclTensor *gradOut, const aclTensor *input, const aclIntArray *normalizedShape, const aclTensor *mean, const aclTensor *rstd,
      const aclTensor *weightOptional, const aclTensor *biasOptional, const aclBoolArray *outputMask, aclTensor *gradInputOut, aclTensor *gradWeightOut,
      aclTensor *gradBiasOut) {
    EM_BEGIN(aclnnLayerNormBackward);
    (void)biasOptional;
    EM_NOT_NULL(gradOut);
    EM_NOT_NULL(input);
    EM_NOT_NULL(normalizedShape);
    EM_NOT_NULL(mean);
    EM_NOT_NULL(rstd);
    aclnnStatus status = check_mask(ex, outputMask, gradInputOut, gradWeightOut, gradBiasOut);
    if (status) return status;
    ES_DTYPE(gradOut, ES_REALS);
    ES_SAME_DTYPE(gradOut, input);
    ES_SAME_SHAPE(gradOut, input);
    ES_DTYPE(mean, ES_REALS);
    ES_SAME_DTYPE(mean, rstd);
    int64_t count = (int64_t)normalizedShape->size, size = es_product(normalizedShape->values, 0, (int)count);
    EM_REQUIRE(count >= 1 && is_suffix(input, normalizedShape->values, count), "normalizedShape is not the end of input's shape");
    int64_t lines = es_product(input->dims, 0, input->ndim - (int)count);
    EM_REQUIRE(em_numel(mean) == lines && em_numel(rstd) == lines, "mean or rstd does not have a number per line");
    EM_REQUIRE(!weightOptional || es_has_shape(weightOptional, (int)count, normalizedShape->values), "weight does not have normalizedShape");
    if (outputMask->values[0]) ES_SAME_SHAPE(gradInputOut, input);
    if (outputMask->values[1]) EM_REQUIRE(es_has_shape(gradWeightOut, (int)count, normalizedShape->values), "gradWeightOut does not have normalizedShape");
    if (outputMask->values[2]) EM_REQUIRE(es_has_shape(gradBiasOut, (int)count, normalizedShape->values), "gradBiasOut does not have normalizedShape");
    em_tensor(ex, gradOut);
    em_tensor(ex, input);
    em_tensor(ex, mean);
    em_tensor(ex, rstd);
    em_tensor(ex, weightOptional);
    em_tensor(ex, outputMask->values[0] ? gradInputOut : NULL);
    em_tensor(ex, outputMask->values[1] ? gradWeightOut : NULL);
    em_tensor(ex, outputMask->values[2] ? gradBiasOut : NULL);
    em_integer(ex, size);
    em_integer(ex, 1);
    em_integer(ex, size);
    return em_ready(ex, normalise_backward_kernel, 0);
}

static aclnnStatus check_groups(aclOpExecutor *ex, const aclTensor *tensor, int64_t N, int64_t C, int64_t HxW, int64_t group) {
    EM_REQUIRE(group > 0 && C % group == 0, "the channels are not divisible by group");
    EM_REQUIRE(tensor->ndim >= 2 && tensor->dims[0] == N && tensor->dims[1] == C && em_numel(tensor) == N * C * HxW, "self does not have N, C and HxW");
    return ACL_SUCCESS;
}

EM_OP(aclnnGroupNorm, const aclTensor *self, const aclTensor *gamma, const aclTensor *beta, int64_t N, int64_t C, int64_t HxW, int64_t group, double eps,
      aclTensor *out, aclTensor *meanOut, aclTensor *rstdOut) {
    EM_BEGIN(aclnnGroupNorm);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_NOT_NULL(meanOut);
    EM_NOT_NULL(rstdOut);
    ES_DTYPE(self, ES_REALS);
    ES_SAME_DTYPE(self, out);
    ES_SAME_SHAPE(self, out);
    ES_DTYPE(meanOut, ES_REALS);
    ES_DTYPE(rstdOut, ES_REALS);
    EM_REQUIRE(eps > 0, "eps must be positive");
    aclnnStatus status = check_groups(ex, self, N, C, HxW, group);
    if (status) return status;
    EM_REQUIRE(!gamma || em_numel(gamma) == C, "gamma does not have a number per channel");
    EM_REQUIRE(!beta || em_numel(beta) == C, "beta does not have a number per channel");
    EM_REQUIRE(em_numel(meanOut) == N * group && em_numel(rstdOut) == N * group, "meanOut or rstdOut does not have a number per group");
    em_tensor(ex, self);
    em_tensor(ex, gamma);
    em_tensor(ex, beta);
    em_tensor(ex, out);
    em_tensor(ex, meanOut);
    em_tensor(ex, rstdOut);
    em_integer(ex, C / group * HxW);
    em_integer(ex, HxW);
    em_integer(ex, C);
    em_real(ex, eps);
    return em_ready(ex, normalise_kernel, 0);
}

EM_OP(aclnnGroupNormBackward, const aclTensor *gradOut, const aclTensor *input, const aclTensor *mean, const aclTensor *rstd, const aclTensor *gamma, int64_t N,
      int64_t C, int64_t HxW, int64_t group, const aclBoolArray *outputMask, aclTensor *gradInput, aclTensor *gradGammaOut, aclTensor *gradBetaOut) {
    EM_BEGIN(aclnnGroupNormBackward);
    EM_NOT_NULL(gradOut);
    EM_NOT_NULL(input);
    EM_NOT_NULL(mean);
    EM_NOT_NULL(rstd);
    aclnnStatus status = check_mask(ex, outputMask, gradInput, gradGammaOut, gradBetaOut);
    if (status) return status;
    ES_DTYPE(gradOut, ES_REALS);
    ES_SAME_DTYPE(gradOut, input);
    ES_SAME_SHAPE(gradOut, input);
    if ((status = check_groups(ex, input, N, C, HxW, group))) return status;
    EM_REQUIRE(em_numel(mean) == N * group && em_numel(rstd) == N * group, "mean or rstd does not have a number per group");
    EM_REQUIRE(!gamma || em_numel(gamma) == C, "gamma does not have a number per channel");
    if (outputMask->values[0]) ES_SAME_SHAPE(gradInput, input);
    EM_REQUIRE(!outputMask->values[1] || em_numel(gradGammaOut) == C, "gradGammaOut does not have a number per channel");
    EM_REQUIRE(!outputMask->values[2] || em_numel(gradBetaOut) == C, "gradBetaOut does not have a number per channel");
    em_tensor(ex, gradOut);
    em_tensor(ex, input);
    em_tensor(ex, mean);
    em_tensor(ex, rstd);
    em_tensor(ex, gamma);
    em_tensor(ex, outputMask->values[0] ? gradInput : NULL);
    em_tensor(ex, outputMask->values[1] ? gradGammaOut : NULL);
    em_tensor(ex, outputMask->values[2] ? gradBetaOut : NULL);
    em_integer(ex, C / group * HxW);
    em_integer(ex, HxW);
    em_integer(ex, C);
    return em_ready(ex, normalise_backward_kernel, 0);
}

/* tensors: x, gamma, y, rstd; integer: size of a line; real: epsilon. */
static void rms_norm_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t size = call->integer[0], lines = t[3].numel;
    double *x = em_read_reals(&t[0]), *gamma = em_read_reals(&t[1]), *rstd = es_doubles(lines);
    for (int64_t l = 0; l < lines; l++) {
        double squares = 0, *line = x + l * size;
        for (int64_t i = 0; i < size; i++) squares += line[i] * line[i];
        rstd[l] = size ? 1 / sqrt(squares / (double)size + call->real[0]) : 0;
        for (int64_t i = 0; i < size; i++) line[i] *= rstd[l] * gamma[i];
    }
    em_write_reals(&t[2], x);
    em_write_reals(&t[3], rstd);
    free(x);
    free(gamma);
    free(rstd);
}

EM_OP(aclnnRmsNorm, const aclTensor *x, const aclTensor *gamma, double epsilon, const aclTensor *yOut, const aclTensor *rstdOut) {
    EM_BEGIN(aclnnRmsNorm);
    EM_NOT_NULL(x);
    EM_NOT_NULL(gamma);
    EM_NOT_NULL(yOut);
    EM_NOT_NULL(rstdOut);
    ES_DTYPE(x, ES_FLOATS);
    ES_DTYPE(gamma, ES_FLOATS);
    ES_DTYPE(rstdOut, ES_DT(ACL_FLOAT));
    ES_SAME_DTYPE(x, yOut);
    ES_SAME_SHAPE(x, yOut);
    EM_REQUIRE(gamma->ndim >= 1 && is_suffix(x, gamma->dims, gamma->ndim), "gamma's shape is not the end of x's");
    EM_REQUIRE(em_numel(rstdOut) == es_product(x->dims, 0, x->ndim - gamma->ndim), "rstdOut does not have a number per line");
    em_tensor(ex, x);
    em_tensor(ex, gamma);
    em_tensor(ex, yOut);
    em_tensor(ex, rstdOut);
    em_integer(ex, em_numel(gamma));
    em_real(ex, epsilon);
    return em_ready(ex, rms_norm_kernel, 0);
}

static void rms_norm_grad_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t size = t[3].numel, lines = size ? t[1].numel / size : 0;
    double *dy = em_read_reals(&t[0]), *x = em_read_reals(&t[1]), *rstd = em_read_reals(&t[2]), *gamma = em_read_reals(&t[3]), *dgamma = es_doubles(size);
    for (int64_t l = 0; l < lines; l++) {
        double dot = 0, *grad = dy + l * size, *line = x + l * size;
        for (int64_t i = 0; i < size; i++) {
            line[i] *= rstd[l];
            dgamma[i] += grad[i] * line[i];
            grad[i] *= gamma[i];
            dot += grad[i] * line[i];
        }
        for (int64_t i = 0; i < size; i++) grad[i] = rstd[l] * (grad[i] - line[i] * dot / (double)size);
    }
    em_write_reals(&t[4], dy);
    em_write_reals(&t[5], dgamma);
    free(dy);
    free(x);
    free(rstd);
    free(gamma);
    free(dgamma);
}

EM_OP(aclnnRmsNormGrad, const aclTensor *dy, const aclTensor *x, const aclTensor *rstd, const aclTensor *gamma, const aclTensor *dxOut,
      const aclTensor *dgammaOut) {
    EM_BEGIN(aclnnRmsNormGrad);
    EM_NOT_NULL(dy);
    EM_NOT_NULL(x);
    EM_NOT_NULL(rstd);
    EM_NOT_NULL(gamma);
    EM_NOT_NULL(dxOut);
    EM_NOT_NULL(dgammaOut);
    ES_DTYPE(x, ES_FLOATS);
    ES_SAME_DTYPE(x, dy);
    ES_SAME_DTYPE(x, dxOut);
    ES_DTYPE(gamma, ES_FLOATS);
    ES_DTYPE(rstd, ES_DT(ACL_FLOAT));
    ES_DTYPE(dgammaOut, ES_DT(ACL_FLOAT));
    ES_SAME_SHAPE(x, dy);
    ES_SAME_SHAPE(x, dxOut);
    ES_SAME_SHAPE(gamma, dgammaOut);
    EM_REQUIRE(gamma->ndim >= 1 && is_suffix(x, gamma->dims, gamma->ndim), "gamma's shape is not the end of x's");
    EM_REQUIRE(em_numel(rstd) == es_product(x->dims, 0, x->ndim - gamma->ndim), "rstd does not have a number per line");
    em_tensor(ex, dy);
    em_tensor(ex, x);
    em_tensor(ex, rstd);
    em_tensor(ex, gamma);
    em_tensor(ex, dxOut);
    em_tensor(ex, dgammaOut);
    return em_ready(ex, rms_norm_grad_kernel, 0);
}
