/* Normalisation over batches, renorm, and the operators on pairs of vectors: in double, rounded once. */

#include "ops_shape.h"

/* tensors: input, weight, bias, runningMean, runningVar, output, saveMean, saveInvstd; integer: training; reals: momentum, eps. */
static void batch_norm_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t channels = t[0].dims[1], inner = es_product(t[0].dims, 2, t[0].ndim), batch = t[0].dims[0], count = batch * inner;
    bool training = call->integer[0];
    double momentum = call->real[0], eps = call->real[1];
    double *x = em_read_reals(&t[0]), *weight = t[1].present ? em_read_reals(&t[1]) : NULL, *bias = t[2].present ? em_read_reals(&t[2]) : NULL;
    double *running_mean = t[3].present ? em_read_reals(&t[3]) : NULL, *running_var = t[4].present ? em_read_reals(&t[4]) : NULL;
    double *means = es_doubles(channels), *invstds = es_doubles(channels);
    for (int64_t c = 0; c < channels; c++) {
        double mean = 0, var = 0;
        if (training) {
            for (int64_t n = 0; n < batch; n++)
                for (int64_t i = 0; i < inner; i++) mean += x[(n * channels + c) * inner + i];
            mean /= (double)count;
            for (int64_t n = 0; n < batch; n++)
                for (int64_t i = 0; i < inner; i++) var += pow(x[(n * channels + c) * inner + i] - mean, 2);
            if (running_mean) running_mean[c] = (1 - momentum) * running_mean[c] + momentum * mean;
            if (running_var) running_var[c] = (1 - momentum) * running_var[c] + momentum * var / (double)(count - 1);
            var /= (double)count;
        } else {
            mean = running_mean[c];
            var = running_var[c];
        }
        means[c] = mean;
        invstds[c] = 1 / sqrt(var + eps);
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < inner; i++) {
                double *value = &x[(n * channels + c) * inner + i];
                *value = (*value - mean) * invstds[c] * (weight ? weight[c] : 1) + (bias ? bias[c] : 0);
            }
    }
    em_write_reals(&t[5], x);
    if (training) {
        em_write_reals(&t[6], means);
        em_write_reals(&t[7], invstds);
        if (running_mean) em_write_reals(&t[3], running_mean);
        if (running_var) em_write_reals(&t[4], running_var);
    }
    free(x);
    free(weight);
    free(bias);
    free(running_mean);
    free(running_var);
    free(means);
    free(invstds);
}

static bool per_channel(const aclTensor *tensor, int64_t channels) { return !tensor || (tensor->ndim == 1 && tensor->dims[0] == channels); }

EM_OP(aclnnBatchNorm, const aclTensor *input, const aclTensor *weight, const aclTensor *bias, aclTensor *runningMean, aclTensor *runningVar, bool training,
      double momentum, double eps, aclTensor *output, aclTensor *saveMean, aclTensor *saveInvstd) {
    EM_BEGIN(aclnnBatchNorm);
    EM_NOT_NULL(input);
    EM_NOT_NULL(output);
    EM_NOT_NULL(saveMean);
    EM_NOT_NULL(saveInvstd);
    if (!training) {
        EM_NOT_NULL(runningMean);
        EM_NOT_NULL(runningVar);
    }
    ES_DTYPE(input, ES_REALS);
    ES_SAME_DTYPE(input, output);
    ES_SAME_SHAPE(input, output);
    EM_REQUIRE(input->ndim >= 2, "input must have at least 2 dimensions");
    int64_t channels = input->dims[1];
    EM_REQUIRE(per_channel(weight, channels) && per_channel(bias, channels) && per_channel(runningMean, channels) && per_channel(runningVar, channels),
               "weight, bias, runningMean or runningVar does not have a number per channel");
    EM_REQUIRE(!training || (per_channel(saveMean, channels) && per_channel(saveInvstd, channels)), "saveMean or saveInvstd does not have a number per channel");
    em_tensor(ex, input);
    em_tensor(ex, weight);
    em_tensor(ex, bias);
    em_tensor(ex, runningMean);
    em_tensor(ex, runningVar);
    em_tensor(ex, output);
    em_tensor(ex, saveMean);
    em_tensor(ex, saveInvstd);
    em_integer(ex, training);
    em_real(ex, momentum);
    em_real(ex, eps);
    return em_ready(ex, batch_norm_kernel, 0);
}

/* tensors: gradOut, input, weight, mean, invstd or variance, the three gradients; integer: training; real: eps. */
static void batch_norm_backward_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t channels = t[1].dims[1], inner = es_product(t[1].dims, 2, t[1].ndim), batch = t[1].dims[0], count = batch * inner;
    bool training = call->integer[0];
    double *dy = em_read_reals(&t[0]), *x = em_read_reals(&t[1]), *weight = t[2].present ? em_read_reals(&t[2]) : NULL;
    double *means = em_read_reals(&t[3]), *spreads = em_read_reals(&t[4]), *dweight = es_doubles(channels), *dbias = es_doubles(channels);
    for (int64_t c = 0; c < channels; c++) {
        double invstd = training ? spreads[c] : 1 / sqrt(spreads[c] + call->real[0]), scale = invstd * (weight ? weight[c] : 1), sum = 0, dot = 0;
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < inner; i++) {
                int64_t at = (n * channels + c) * inner + i;
                sum += dy[at];
                dot += dy[at] * (x[at] - means[c]) * invstd;
            }
        dweight[c] = dot;
        dbias[c] = sum;
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < inner; i++) {
                int64_t at = (n * channels + c) * inner + i;
                dy[at] = scale * (training ? dy[at] - (sum + (x[at] - means[c]) * invstd * dot) / (double)count : dy[at]);
            }
    }
    if (t[5].present) em_write_reals(&t[5], dy);
    if (t[6].present) em_write_reals(&t[6], dweight);
    if (t[7].present) em_write_reals(&t[7], dbias);
    free(dy);
    free(x);
    free(weight);
    free(means);
    free(spreads);
    free(dweight);
    free(dbias);
}

EM_OP(aclnnBatchNormBackward, const aclTensor *gradOut, const aclTensor *input, const aclTensor *weight, const aclTensor *runningMean,
      const aclTensor *runningVar, const aclTensor *saveMean, const aclTensor *saveInvstd, bool training, double eps, const aclBoolArray *outputMask,
      aclTensor *gradInput, aclTensor *gradWeight, aclTensor *gradBias) {
    EM_BEGIN(aclnnBatchNormBackward);
    const aclTensor *mean = training ? saveMean : runningMean, *spread = training ? saveInvstd : runningVar;
    EM_NOT_NULL(gradOut);
    EM_NOT_NULL(input);
    EM_NOT_NULL(outputMask);
    EM_NOT_NULL(mean);
    EM_NOT_NULL(spread);
    ES_DTYPE(gradOut, ES_REALS);
    ES_SAME_SHAPE(gradOut, input);
    EM_REQUIRE(input->ndim >= 2 && outputMask->size == 3, "input must have at least 2 dimensions and outputMask 3 values");
    int64_t channels = input->dims[1];
    aclTensor *gradients[3] = {gradInput, gradWeight, gradBias};
    for (int i = 0; i < 3; i++) {
        if (!outputMask->values[i]) gradients[i] = NULL;
        else EM_NOT_NULL(gradients[i]);
    }
    EM_REQUIRE(per_channel(weight, channels) && per_channel(mean, channels) && per_channel(spread, channels), "a statistic does not have a number per channel");
    EM_REQUIRE(per_channel(gradients[1], channels) && per_channel(gradients[2], channels), "a gradient does not have a number per channel");
    if (gradients[0]) ES_SAME_SHAPE(gradInput, input);
    em_tensor(ex, gradOut);
    em_tensor(ex, input);
    em_tensor(ex, weight);
    em_tensor(ex, mean);
    em_tensor(ex, spread);
    for (int i = 0; i < 3; i++) em_tensor(ex, gradients[i]);
    em_integer(ex, training);
    em_real(ex, eps);
    return em_ready(ex, batch_norm_backward_kernel, 0);
}

static double distance(const double *a, const double *b, int64_t n, double p) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(a[i] - (b ? b[i] : 0));
        if (isinf(p)) sum = d > sum || isnan(d) ? d : sum;
        else sum += p == 0 ? d != 0 : p == 1 ? d : p == 2 ? d * d : pow(d, p);
    }
    return p == 2 ? sqrt(sum) : p == 0 || p == 1 || isinf(p) ? sum : pow(sum, 1 / p);
}

/* tensors: self, out; integer: dim; reals: p, maxNorm. Each part along dim is a line. */
static void renorm_kernel(EmCall *call) {
    int64_t lines, length;
    bool marked[EM_MAX_DIMS];
    for (int d = 0; d < EM_MAX_DIMS; d++) marked[d] = d != call->integer[0];
    EmTensor self = es_lines(&call->tensor[0], marked, &lines, &length), out = es_lines(&call->tensor[1], marked, &lines, &length);
    double *x = em_read_reals(&self);
    for (int64_t l = 0; l < lines; l++) {
        double norm = distance(x + l * length, NULL, length, call->real[0]);
        for (int64_t i = 0; i < length && norm > call->real[1]; i++) x[l * length + i] *= call->real[1] / (norm + 1e-7);
    }
    em_write_reals(&out, x);
    free(x);
}

EM_OP(aclnnRenorm, const aclTensor *self, const aclScalar *p, int64_t dim, const aclScalar *maxNorm, aclTensor *out) {
    EM_BEGIN(aclnnRenorm);
    EM_NOT_NULL(self);
    EM_NOT_NULL(p);
    EM_NOT_NULL(maxNorm);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_FLOATS);
    ES_SAME_DTYPE(self, out);
    ES_SAME_SHAPE(self, out);
    EM_REQUIRE(self->ndim >= 2, "self must have at least 2 dimensions");
    EM_REQUIRE(p->real > 0 && maxNorm->real >= 0, "p must be positive and maxNorm not negative");
    ES_DIM(at, dim, self);
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, at);
    em_real(ex, p->real);
    em_real(ex, maxNorm->real);
    return em_ready(ex, renorm_kernel, 0);
}

static void cdist_kernel(EmCall *call) {
    const EmTensor *out = &call->tensor[2];
    int n = out->ndim;
    int64_t rows = out->dims[n - 2], columns = out->dims[n - 1], width = call->tensor[0].dims[call->tensor[0].ndim - 1], left[EM_MAX_DIMS], right[EM_MAX_DIMS];
    memcpy(left, out->dims, sizeof left);
    memcpy(right, out->dims, sizeof right);
    left[n - 1] = right[n - 1] = width;
    right[n - 2] = columns;
    EmTensor a = em_expand(&call->tensor[0], n, left), b = em_expand(&call->tensor[1], n, right);
    double *x = em_read_reals(&a), *y = em_read_reals(&b), *result = es_doubles(out->numel);
    for (int64_t i = 0; i < out->numel; i++) {
        int64_t batch = i / (rows * columns);
        result[i] = distance(x + (i / columns) * width, y + (batch * columns + i % columns) * width, width, call->real[0]);
    }
    em_write_reals(out, result);
    free(x);
    free(y);
    free(result);
}

EM_OP(aclnnCdist, const aclTensor *x1, const aclTensor *x2, float p, int64_t compute_mode, aclTensor *out) {
    EM_BEGIN(aclnnCdist);
    EM_NOT_NULL(x1);
    EM_NOT_NULL(x2);
    EM_NOT_NULL(out);
    ES_DTYPE(x1, ES_FLOATS);
    ES_SAME_DTYPE(x1, x2);
    ES_SAME_DTYPE(x1, out);
    EM_REQUIRE(p >= 0, "p must not be negative");
    EM_REQUIRE(compute_mode >= 0 && compute_mode <= 2, "compute_mode must be 0, 1 or 2");
    EM_REQUIRE(x1->ndim >= 2 && x2->ndim >= 2 && x1->dims[x1->ndim - 1] == x2->dims[x2->ndim - 1], "x1 and x2 must be matrices of as many columns");
    EM_REQUIRE(out->ndim == (x1->ndim > x2->ndim ? x1->ndim : x2->ndim), "out has another number of dimensions than the distances");
    EM_REQUIRE(out->dims[out->ndim - 2] == x1->dims[x1->ndim - 2] && out->dims[out->ndim - 1] == x2->dims[x2->ndim - 2], "out does not have a place per pair");
    const aclTensor *both[2] = {x1, x2};
    for (int t = 0; t < 2; t++)
        for (int d = 3; d <= both[t]->ndim; d++) {
            int64_t size = both[t]->dims[both[t]->ndim - d];
            EM_REQUIRE(size == 1 || size == out->dims[out->ndim - d], "the batches do not broadcast to out's");
        }
    em_tensor(ex, x1);
    em_tensor(ex, x2);
    em_tensor(ex, out);
    em_real(ex, p);
    return em_ready(ex, cdist_kernel, 0);
}

static void cross_kernel(EmCall *call) {
    int64_t lines, length, dim = call->integer[0];
    const EmTensor *into = &call->tensor[2];
    EmTensor left = em_expand(&call->tensor[0], into->ndim, into->dims), right = em_expand(&call->tensor[1], into->ndim, into->dims);
    EmTensor a = es_last(&left, dim, &lines, &length), b = es_last(&right, dim, &lines, &length), out = es_last(into, dim, &lines, &length);
    double complex *x = em_read_complex(&a), *y = em_read_complex(&b), *z = es_alloc(out.numel, sizeof *z);
    for (int64_t l = 0; l < 3 * lines; l += 3)
        for (int i = 0; i < 3; i++) {
            int64_t j = l + (i + 1) % 3, k = l + (i + 2) % 3;
            z[l + i] = x[j] * y[k] - x[k] * y[j];
        }
    em_write_complex(&out, z);
    free(x);
    free(y);
    free(z);
}

EM_OP(aclnnLinalgCross, const aclTensor *self, const aclTensor *other, int64_t dim, aclTensor *out) {
    EM_BEGIN(aclnnLinalgCross);
    EM_NOT_NULL(self);
    EM_NOT_NULL(other);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_REALS | ES_INTS | ES_COMPLEX);
    ES_SAME_DTYPE(self, other);
    ES_SAME_DTYPE(self, out);
    EM_REQUIRE(em_broadcasts(self, other, out), "self and other do not broadcast to out's shape");
    ES_DIM(at, dim, out);
    EM_REQUIRE(out->ndim >= 1 && out->dims[at] == 3, "the dimension must have size 3");
    em_tensor(ex, self);
    em_tensor(ex, other);
    em_tensor(ex, out);
    em_integer(ex, at);
    return em_ready(ex, cross_kernel, 0);
}
