/* Softmax and its logarithm, with their gradients: in double, rounded once. */

#include "ops_shape.h"

enum { SOFTMAX, LOG_SOFTMAX };

static void softmax_kernel(EmCall *call) {
    int64_t lines, length;
    EmTensor self = es_last(&call->tensor[0], call->integer[1], &lines, &length), out = es_last(&call->tensor[1], call->integer[1], &lines, &length);
    bool logarithm = call->integer[0] == LOG_SOFTMAX;
    double *values = em_read_reals(&self);
    for (int64_t l = 0; l < lines; l++) {
        double *x = values + l * length, most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < length; i++)
            if (x[i] > most || isnan(x[i])) most = x[i];
        for (int64_t i = 0; i < length; i++) {
            double e = exp(x[i] - most);
            sum += e;
            x[i] = logarithm ? x[i] - most : e;
        }
        double log_sum = log(sum);
        for (int64_t i = 0; i < length; i++) x[i] = logarithm ? x[i] - log_sum : x[i] / sum;
    }
    em_write_reals(&out, values);
    free(values);
}

static aclnnStatus softmax_like(aclOpExecutor *ex, int kind, const aclTensor *self, int64_t dim, aclTensor *out) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_REALS);
    ES_DTYPE(out, ES_REALS);
    ES_SAME_SHAPE(self, out);
    ES_DIM(at, dim, self);
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, kind);
    em_integer(ex, at);
    return em_ready(ex, softmax_kernel, 0);
}

EM_OP(aclnnSoftmax, const aclTensor *self, int64_t dim, aclTensor *out) {
    EM_BEGIN(aclnnSoftmax);
    return softmax_like(ex, SOFTMAX, self, dim, out);
}

EM_OP(aclnnLogSoftmax, const aclTensor *self, int64_t dim, aclTensor *out) {
    EM_BEGIN(aclnnLogSoftmax);
    return softmax_like(ex, LOG_SOFTMAX, self, dim, out);
}

static void softmax_backward_kernel(EmCall *call) {
    int64_t lines, length, dim = call->integer[1];
    EmTensor grad = es_last(&call->tensor[0], dim, &lines, &length), output = es_last(&call->tensor[1], dim, &lines, &length);
    EmTensor out = es_last(&call->tensor[2], dim, &lines, &length);
    bool logarithm = call->integer[0] == LOG_SOFTMAX;
    double *gradients = em_read_reals(&grad), *outputs = em_read_reals(&output);
    for (int64_t l = 0; l < lines; l++) {
        double *g = gradients + l * length, *y = outputs + l * length, sum = 0;
        for (int64_t i = 0; i < length; i++) sum += logarithm ? g[i] : g[i] * y[i];
        for (int64_t i = 0; i < length; i++) g[i] = logarithm ? g[i] - exp(y[i]) * sum : y[i] * (g[i] - sum);
    }
    em_write_reals(&out, gradients);
    free(gradients);
    free(outputs);
}

static aclnnStatus softmax_backward(aclOpExecutor *ex, int kind, const aclTensor *gradOutput, const aclTensor *output, int64_t dim, aclTensor *out) {
    EM_NOT_NULL(gradOutput);
    EM_NOT_NULL(output);
    EM_NOT_NULL(out);
    ES_DTYPE(gradOutput, ES_REALS);
    ES_DTYPE(out, ES_REALS);
    ES_SAME_DTYPE(gradOutput, output);
    ES_SAME_SHAPE(gradOutput, output);
    ES_SAME_SHAPE(gradOutput, out);
    ES_DIM(at, dim, output);
    em_tensor(ex, gradOutput);
    em_tensor(ex, output);
    em_tensor(ex, out);
    em_integer(ex, kind);
    em_integer(ex, at);
    return em_ready(ex, softmax_backward_kernel, 0);
}

EM_OP(aclnnSoftmaxBackward, const aclTensor *gradOutput, const aclTensor *output, int64_t dim, aclTensor *out) {
    EM_BEGIN(aclnnSoftmaxBackward);
    return softmax_backward(ex, SOFTMAX, gradOutput, output, dim, out);
}

EM_OP(aclnnLogSoftmaxBackward, const aclTensor *gradOutput, const aclTensor *output, int64_t dim, aclTensor *out) {
    EM_BEGIN(aclnnLogSoftmaxBackward);
    return softmax_backward(ex, LOG_SOFTMAX, gradOutput, output, dim, out);
}
