/* Connectionist temporal classification: the loss of a batch, and its gradient, by forward and backward sums over all alignments, in double.
 *
 * A target of length S is spread to 2 S + 1 states, blanks between its labels. alpha[n, t, s]: the logarithm of the probability of all beginnings that are in
 * state s at time t; beta: the same of the ends. States behind a sample's own target are blanks. */

#include "ops_shape.h"

static double add2(double a, double b) {
    double top = a > b ? a : b;
    return top == -INFINITY ? top : top + log(exp(a - top) + exp(b - top));
}
static double add3(double a, double b, double c) { return add2(add2(a, b), c); }

typedef struct Batch {
    int64_t times, count, classes, states, blank;
    const EmInts *inputs, *lengths;
    int64_t *labels; /* [count, states] */
} Batch;

static int64_t length_of(const EmInts *lengths, int64_t n) { return lengths->values[n]; }

/* tensors 0: log_probs [T, N, C], 1: targets; arrays: input and target lengths; integer 0: blank. False after telling of a label out of range. */
static bool batch_of(EmCall *call, const EmTensor *probs, const EmTensor *targets, Batch *b) {
    *b = (Batch){probs->dims[0], probs->dims[1], probs->dims[2], 1, call->integer[0], &call->array[0], &call->array[1], NULL};
    for (int64_t n = 0; n < b->count; n++)
        if (2 * length_of(b->lengths, n) + 1 > b->states) b->states = 2 * length_of(b->lengths, n) + 1;
    b->labels = es_int64s(b->count * b->states);
    int64_t *given = em_read_integers(targets), start = 0;
    bool fine = true;
    for (int64_t i = 0; i < b->count * b->states; i++) b->labels[i] = b->blank;
    for (int64_t n = 0; n < b->count; n++) {
        if (targets->ndim == 2) start = n * targets->dims[1];
        for (int64_t s = 0; s < length_of(b->lengths, n) && fine; s++) {
            int64_t label = given[start + s];
            fine = label >= 0 && label < b->classes;
            if (fine) b->labels[n * b->states + 2 * s + 1] = label;
            else em_kernel_failed(call, ES_INDEX_ERROR, "%s: label %lld is out of range", call->name, (long long)label);
        }
        if (targets->ndim == 1) start += length_of(b->lengths, n);
    }
    free(given);
    return fine;
}

/* Whether a state may be entered from two states before. */
static bool skips(const Batch *b, int64_t n, int64_t s) {
    const int64_t *labels = b->labels + n * b->states;
    return s >= 3 && s % 2 == 1 && labels[s] != labels[s - 2];
}

/* tensors: log_probs, targets, loss, log_alpha. */
static void loss_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    Batch b;
    if (batch_of(call, &t[0], &t[1], &b)) {
        double *p = em_read_reals(&t[0]), *loss = es_doubles(b.count), *alpha = es_doubles(b.count * b.times * b.states);
        for (int64_t n = 0; n < b.count; n++) {
            for (int64_t i = 0; i < b.times; i++)
                for (int64_t s = 0; s < b.states; s++) {
                    double *cell = alpha + (n * b.times + i) * b.states + s, *before = cell - b.states;
                    double emitted = p[(i * b.count + n) * b.classes + b.labels[n * b.states + s]];
                    if (i == 0) *cell = s < 2 ? emitted : -INFINITY;
                    else *cell = emitted + add3(before[0], s >= 1 ? before[-1] : -INFINITY, skips(&b, n, s) ? before[-2] : -INFINITY);
                }
            int64_t length = length_of(b.inputs, n), size = length_of(b.lengths, n);
            if (!length) {
                loss[n] = size ? INFINITY : 0;
                continue;
            }
            const double *last = alpha + (n * b.times + length - 1) * b.states + 2 * size;
            loss[n] = -add2(last[0], size ? last[-1] : -INFINITY);
        }
        em_write_reals(&t[2], loss);
        int64_t width = t[3].dims[2];
        double *wide = es_doubles(t[3].numel);
        for (int64_t i = 0; i < b.count * b.times; i++)
            for (int64_t s = 0; s < width; s++) wide[i * width + s] = s < b.states ? alpha[i * b.states + s] : -INFINITY;
        em_write_reals(&t[3], wide);
        free(wide);
        free(p);
        free(loss);
        free(alpha);
    }
    free(b.labels);
}

/* tensors: log_probs, targets, gradOut, loss, log_alpha, out; integer 1: whether infinite losses have no gradient. */
static void loss_backward_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    Batch b;
    if (batch_of(call, &t[0], &t[1], &b)) {
        double *p = em_read_reals(&t[0]), *grad = em_read_reals(&t[2]), *loss = em_read_reals(&t[3]), *alpha = em_read_reals(&t[4]);
        double *out = es_doubles(t[5].numel), *beta = es_doubles(2 * b.states), *share = es_doubles(b.classes);
        for (int64_t n = 0; n < b.count; n++) {
            int64_t length = length_of(b.inputs, n), count = 2 * length_of(b.lengths, n) + 1;
            if (!length || (call->integer[1] && isinf(loss[n]))) continue;
            for (int64_t i = length - 1; i >= 0; i--) {
                double *now = beta + i % 2 * b.states, *after = beta + (i + 1) % 2 * b.states;
                const double *line = p + (i * b.count + n) * b.classes, *ends = alpha + (n * b.times + i) * t[4].dims[2];
                memset(share, 0, sizeof(double) * (size_t)b.classes);
                for (int64_t s = 0; s < count; s++) {
                    int64_t label = b.labels[n * b.states + s];
                    if (i == length - 1) now[s] = s >= count - 2 ? line[label] : -INFINITY;
                    else
                        now[s] = line[label] + add3(after[s], s + 1 < count ? after[s + 1] : -INFINITY,
                                                    s + 2 < count && skips(&b, n, s + 2) ? after[s + 2] : -INFINITY);
                    share[label] += exp(ends[s] + now[s] - line[label] + loss[n]);
                }
                for (int64_t c = 0; c < b.classes; c++) out[(i * b.count + n) * b.classes + c] = (exp(line[c]) - share[c]) * grad[n];
            }
        }
        em_write_reals(&t[5], out);
        free(p);
        free(grad);
        free(loss);
        free(alpha);
        free(out);
        free(beta);
        free(share);
    }
    free(b.labels);
}

/* What both functions ask of their arguments; adds log_probs, targets and the lengths. */
static aclnnStatus alignment(aclOpExecutor *ex, const aclTensor *logProbs, const aclTensor *targets, const aclIntArray *inputLengths,
                             const aclIntArray *targetLengths, int64_t blank, const aclTensor *logAlpha) {
    EM_NOT_NULL(logProbs);
    EM_NOT_NULL(targets);
    EM_NOT_NULL(inputLengths);
    EM_NOT_NULL(targetLengths);
    EM_NOT_NULL(logAlpha);
    ES_DTYPE(logProbs, ES_REALS);
    ES_DTYPE(targets, ES_INDICES | ES_BOOL | ES_FLOATS);
    ES_RANK(logProbs, 3);
    EM_REQUIRE(targets->ndim == 1 || targets->ndim == 2, "targets must have 1 or 2 dimensions");
    uint64_t batch = (uint64_t)logProbs->dims[1];
    EM_REQUIRE(batch <= 64, "the emulator takes batches of up to 64 samples");
    EM_REQUIRE(inputLengths->size == batch && targetLengths->size == batch, "there must be a length for each sample");
    EM_REQUIRE(blank >= 0 && blank < logProbs->dims[2], "blank must be a label");
    int64_t longest = 0, sum = 0;
    for (uint64_t n = 0; n < batch; n++) {
        EM_REQUIRE(inputLengths->values[n] >= 0 && inputLengths->values[n] <= logProbs->dims[0], "an input length is out of range");
        EM_REQUIRE(targetLengths->values[n] >= 0, "a target length is negative");
        if (targetLengths->values[n] > longest) longest = targetLengths->values[n];
        sum += targetLengths->values[n];
    }
    EM_REQUIRE(targets->ndim == 1 ? targets->dims[0] >= sum : targets->dims[0] == logProbs->dims[1] && targets->dims[1] >= longest, "targets are too short");
    int64_t dims[3] = {logProbs->dims[1], logProbs->dims[0], (2 * longest + 1 + 7) / 8 * 8};
    EM_REQUIRE(es_has_shape(logAlpha, 3, dims), "logAlpha must be [N, T, 2 * longest target + 1 rounded up to a multiple of 8]");
    em_tensor(ex, logProbs);
    em_tensor(ex, targets);
    em_array(ex, inputLengths);
    em_array(ex, targetLengths);
    em_integer(ex, blank);
    return ACL_SUCCESS;
}

EM_OP(aclnnCtcLoss, const aclTensor *logProbs, const aclTensor *targets, const aclIntArray *inputLengths, const aclIntArray *targetlengths, int64_t blank,
      bool zeroInfinity, aclTensor *negLogLikelihoodOut, aclTensor *logAlphaOut) {
    EM_BEGIN(aclnnCtcLoss);
    aclnnStatus status = alignment(ex, logProbs, targets, inputLengths, targetlengths, blank, logAlphaOut);
    if (status) return status;
    EM_NOT_NULL(negLogLikelihoodOut);
    EM_REQUIRE(negLogLikelihoodOut->ndim == 1 && negLogLikelihoodOut->dims[0] == logProbs->dims[1], "negLogLikelihood must have a number for each sample");
    (void)zeroInfinity; /* only the gradient heeds it */
    em_tensor(ex, negLogLikelihoodOut);
    em_tensor(ex, logAlphaOut);
    return em_ready(ex, loss_kernel, 0);
}

EM_OP(aclnnCtcLossBackward, const aclTensor *gradOut, const aclTensor *logProbs, const aclTensor *targets, const aclIntArray *inputLengths,
      const aclIntArray *targetLengths, const aclTensor *negLogLikelihood, const aclTensor *logAlpha, int64_t blank, bool zeroInfinity, aclTensor *out) {
    EM_BEGIN(aclnnCtcLossBackward);
    aclnnStatus status = alignment(ex, logProbs, targets, inputLengths, targetLengths, blank, logAlpha);
    if (status) return status;
    EM_NOT_NULL(gradOut);
    EM_NOT_NULL(negLogLikelihood);
    EM_NOT_NULL(out);
    EM_REQUIRE(em_numel(gradOut) == logProbs->dims[1] && em_numel(negLogLikelihood) == logProbs->dims[1], "there must be a gradient and a loss for each sample");
    ES_SAME_SHAPE(out, logProbs);
    em_tensor(ex, gradOut);
    em_tensor(ex, negLogLikelihood);
    em_tensor(ex, logAlpha);
    em_tensor(ex, out);
    em_integer(ex, zeroInfinity);
    return em_ready(ex, loss_backward_kernel, 0);
}
