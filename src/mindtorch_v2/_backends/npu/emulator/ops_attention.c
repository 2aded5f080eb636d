/* Fused attention, and its gradient. */

#include "ops_attention.h"

/* tensors: query, key, value, pse, drop mask, mask, then softmaxMax, softmaxSum, attention. Integers: preTokens, nextTokens, heads, innerPrecise, sparse mode, pseType. */
void em_attend(const EmCall *call, const EmTensor *t, const char *layout, int64_t sequence, int64_t first_bit) {
    Attention a = {.first_bit = first_bit};
    read_options(&a, call);
    if (sequence < a.prefix.size) a.prefix.values[0] = a.prefix.values[sequence];
    bool right = a.sparse == 3;
    read_attention(&a, t, layout, call->integer[2]);
    a.invalid_rows = call->integer[3] == 2 || (right && a.query.length > a.key.length);
    Layout shape = a.query;
    shape.width = a.value.width;
    int64_t lines = shape.batch * shape.heads * shape.length;
    double *out = es_doubles(lines * shape.width), *tops = es_doubles(lines * 8), *sums = es_doubles(lines * 8), *scores = es_doubles(a.key.length);
    for (int64_t l = 0; l < lines; l++) {
        int64_t i = l % shape.length, n = l / shape.length % shape.heads, b = l / shape.length / shape.heads;
        double top, sum;
        attend(&a, b, n, i, scores, out + l * shape.width, &top, &sum);
        for (int64_t e = 0; e < 8; e++) tops[l * 8 + e] = top, sums[l * 8 + e] = sum;
    }
    EmTensor result = by_heads(&t[8], layout, shape);
    em_write_reals(&t[6], tops);
    em_write_reals(&t[7], sums);
    em_write_reals(&result, out);
    free(out), free(tops), free(sums), free(scores);
    free_attention(&a);
}

static void attention_kernel(EmCall *call) { em_attend(call, call->tensor, call->text[0], 0, 0); }

static aclnnStatus check_drop(aclOpExecutor *ex, const aclTensor *drop, double keep, Layout q, Layout k) {
    EM_REQUIRE(keep > 0 && keep <= 1, "keepProb must be within (0, 1]");
    if (!drop) return 0;
    ES_DTYPE(drop, ES_DT(ACL_UINT8));
    EM_REQUIRE(em_numel(drop) * 8 >= q.batch * q.heads * q.length * k.length, "dropMask has fewer bits than there are scores");
    return 0;
}

static aclnnStatus check_sums(aclOpExecutor *ex, const aclTensor *tensor, Layout q) {
    EM_NOT_NULL(tensor);
    ES_DTYPE(tensor, ES_DT(ACL_FLOAT));
    int64_t dims[4] = {q.batch, q.heads, q.length, 8};
    EM_REQUIRE(es_has_shape(tensor, 4, dims), "softmaxMax and softmaxSum must be [B, N, S, 8]");
    return 0;
}

static aclnnStatus attention(aclOpExecutor *ex, const aclTensor *query, const aclTensor *key, const aclTensor *value, const aclTensor *pse, const aclTensor *drop,
                             const aclTensor *padding, const aclTensor *mask, const aclIntArray *prefix, double scale, double keep, int64_t before, int64_t after,
                             int64_t heads, const char *layout, int64_t precise, int64_t sparse, int64_t pse_type, const aclTensor *top, const aclTensor *sum,
                             const aclTensor *out) {
    Layout q = {0}, k = {0}, v = {0};
    TRY(check_attention(ex, query, key, value, pse, mask, heads, layout, sparse, ES_FLOATS, &q, &k, &v));
    TRY(check_drop(ex, drop, keep, q, k));
    EM_REQUIRE(!padding, "paddingMask is not supported");
    EM_REQUIRE(pse_type == 0 || pse_type == 1, "pseType %lld is not supported by the emulator", (long long)pse_type);
    TRY(check_sums(ex, top, q));
    TRY(check_sums(ex, sum, q));
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(query, out);
    Layout o = {0};
    EM_REQUIRE(sizes_of(layout, out->ndim, out->dims, heads, 0, &o) && o.batch == q.batch && o.heads == q.heads && o.length == q.length && o.width == v.width,
               "attentionOut does not have the query's shape with the value's width");
    em_tensor(ex, query), em_tensor(ex, key), em_tensor(ex, value), em_tensor(ex, pse), em_tensor(ex, drop), em_tensor(ex, mask);
    em_tensor(ex, top), em_tensor(ex, sum), em_tensor(ex, out);
    em_array(ex, prefix);
    em_real(ex, scale), em_real(ex, keep);
    em_integer(ex, before), em_integer(ex, after), em_integer(ex, heads), em_integer(ex, precise), em_integer(ex, sparse), em_integer(ex, pse_type);
    em_text(ex, layout);
    return em_ready(ex, attention_kernel, 512);
}

EM_OP(aclnnFlashAttentionScore, const aclTensor *query, const aclTensor *key, const aclTensor *value, const aclTensor *realShiftOptional, const aclTensor *dropMaskOptional,
      const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional, const aclIntArray *prefixOptional, double scaleValue, double keepProb, int64_t preTokens,
      int64_t nextTokens, int64_t headNum, char *inputLayout, int64_t innerPrecise, int64_t sparseMode, const aclTensor *softmaxMaxOut, const aclTensor *softmaxSumOut,
      const aclTensor *softmaxOutOut, const aclTensor *attentionOutOut) {
    EM_BEGIN(aclnnFlashAttentionScore);
    (void)softmaxOutOut;
    return attention(ex, query, key, value, realShiftOptional, dropMaskOptional, paddingMaskOptional, attenMaskOptional, prefixOptional, scaleValue, keepProb, preTokens,
                     nextTokens, headNum, inputLayout, innerPrecise, sparseMode, 1, softmaxMaxOut, softmaxSumOut, attentionOutOut);
}

EM_OP(aclnnFlashAttentionScoreV2, const aclTensor *query, const aclTensor *key, const aclTensor *value, const aclTensor *realShiftOptional,
      const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional, const aclIntArray *prefixOptional,
      const aclIntArray *qStartIdxOptional, const aclIntArray *kvStartIdxOptional, double scaleValue, double keepProb, int64_t preTokens, int64_t nextTokens,
      int64_t headNum, char *inputLayout, int64_t innerPrecise, int64_t sparseMode, int64_t pseType, const aclTensor *softmaxMaxOut, const aclTensor *softmaxSumOut,
      const aclTensor *softmaxOutOut, const aclTensor *attentionOutOut) {
    EM_BEGIN(aclnnFlashAttentionScoreV2);
    (void)softmaxOutOut, (void)qStartIdxOptional, (void)kvStartIdxOptional;
    return attention(ex, query, key, value, realShiftOptional, dropMaskOptional, paddingMaskOptional, attenMaskOptional, prefixOptional, scaleValue, keepProb, preTokens,
                     nextTokens, headNum, inputLayout, innerPrecise, sparseMode, pseType, softmaxMaxOut, softmaxSumOut, attentionOutOut);
}

/* Sums a gradient over what was broadcast, and writes it. */
static void write_reduced(const EmTensor *target, const double *values, const int64_t *whole) {
    double *sums = es_doubles(target->numel);
    int64_t at[4] = {0}, index = 0;
    do {
        int64_t place = 0;
        for (int d = 0; d < 4; d++) place = place * target->dims[d] + (target->dims[d] == 1 ? 0 : at[d]);
        sums[place] += values[index++];
    } while (es_next(4, whole, at));
    em_write_reals(target, sums);
    free(sums);
}

/* tensors: query, key, value, pse, drop mask, mask, dy, softmaxMax, softmaxSum, attention, then dq, dk, dv, dpse. */
void em_attend_grad(const EmCall *call, const EmTensor *t, const char *layout, int64_t sequence, int64_t first_bit) {
    Attention a = {.first_bit = first_bit};
    read_options(&a, call);
    if (sequence < a.prefix.size) a.prefix.values[0] = a.prefix.values[sequence];
    read_attention(&a, t, layout, call->integer[2]);
    Layout shape = a.query;
    shape.width = a.value.width;
    EmTensor upper = by_heads(&t[6], layout, shape), result = by_heads(&t[9], layout, shape);
    double *dy = em_read_reals(&upper), *top = em_read_reals(&t[7]), *sum = em_read_reals(&t[8]), *out = em_read_reals(&result);
    int64_t lines = shape.batch * shape.heads * shape.length, keys = a.key.length;
    double *dq = es_doubles(lines * a.query.width), *dk = es_doubles(a.key.batch * a.key.heads * keys * a.key.width);
    double *dv = es_doubles(a.value.batch * a.value.heads * keys * a.value.width), *dpse = a.pse ? es_doubles(lines * keys) : NULL, *scores = es_doubles(keys);
    for (int64_t l = 0; l < lines; l++) {
        int64_t i = l % shape.length, n = l / shape.length % shape.heads, b = l / shape.length / shape.heads, pair = b * a.key.heads + n / a.group;
        const double *above = dy + l * shape.width;
        double dot = 0;
        for (int64_t d = 0; d < shape.width; d++) dot += above[d] * out[l * shape.width + d];
        row_of_scores(&a, b, n, i, scores);
        for (int64_t j = 0; j < keys; j++) {
            double weight = exp(scores[j] - top[l * 8]) / sum[l * 8], keep = kept(&a, b, n, i, j), slope = 0;
            for (int64_t d = 0; d < shape.width; d++) {
                slope += above[d] * a.v[(pair * keys + j) * a.value.width + d];
                dv[(pair * keys + j) * a.value.width + d] += weight * keep * above[d];
            }
            if (scores[j] == MASKED) continue;
            double score = weight * (slope * keep - dot);
            if (dpse) dpse[l * keys + j] = a.pse_first ? score * a.scale : score;
            for (int64_t d = 0; d < a.query.width; d++) {
                dq[l * a.query.width + d] += a.scale * score * a.k[(pair * keys + j) * a.key.width + d];
                dk[(pair * keys + j) * a.key.width + d] += a.scale * score * a.q[l * a.query.width + d];
            }
        }
    }
    EmTensor first = by_heads(&t[10], layout, a.query), second = by_heads(&t[11], layout, a.key), third = by_heads(&t[12], layout, a.value);
    em_write_reals(&first, dq);
    em_write_reals(&second, dk);
    em_write_reals(&third, dv);
    int64_t whole[4] = {shape.batch, shape.heads, shape.length, keys};
    if (dpse && t[13].present && t[13].numel) write_reduced(&t[13], dpse, whole);
    free(dy), free(top), free(sum), free(out), free(dq), free(dk), free(dv), free(dpse), free(scores);
    free_attention(&a);
}

static void attention_grad_kernel(EmCall *call) { em_attend_grad(call, call->tensor, call->text[0], 0, 0); }

static aclnnStatus attention_grad(aclOpExecutor *ex, const aclTensor *query, const aclTensor *keyIn, const aclTensor *value, const aclTensor *dy, const aclTensor *pse,
                                  const aclTensor *drop, const aclTensor *padding, const aclTensor *mask, const aclTensor *top, const aclTensor *sum,
                                  const aclTensor *attentionIn, const aclIntArray *prefix, double scale, double keep, int64_t before, int64_t after, int64_t heads,
                                  const char *layout, int64_t precise, int64_t sparse, int64_t pse_type, const aclTensor *dqOut, const aclTensor *dkOut,
                                  const aclTensor *dvOut, const aclTensor *dpseOut) {
    Layout q = {0}, k = {0}, v = {0};
    TRY(check_attention(ex, query, keyIn, value, pse, mask, heads, layout, sparse, ES_FLOATS, &q, &k, &v));
    TRY(check_drop(ex, drop, keep, q, k));
    EM_REQUIRE(!padding, "paddingMask is not supported");
    EM_REQUIRE(pse_type == 0 || pse_type == 1, "pseType %lld is not supported by the emulator", (long long)pse_type);
    TRY(check_sums(ex, top, q));
    TRY(check_sums(ex, sum, q));
    EM_NOT_NULL(dy);
    EM_NOT_NULL(attentionIn);
    EM_NOT_NULL(dqOut);
    EM_NOT_NULL(dkOut);
    EM_NOT_NULL(dvOut);
    ES_SAME_DTYPE(query, dy);
    ES_SAME_SHAPE(dy, attentionIn);
    ES_SAME_SHAPE(query, dqOut);
    ES_SAME_SHAPE(keyIn, dkOut);
    ES_SAME_SHAPE(value, dvOut);
    ES_SAME_DTYPE(query, dqOut);
    ES_SAME_DTYPE(keyIn, dkOut);
    ES_SAME_DTYPE(value, dvOut);
    if (pse && dpseOut && em_numel(dpseOut)) ES_SAME_SHAPE(pse, dpseOut);
    em_tensor(ex, query), em_tensor(ex, keyIn), em_tensor(ex, value), em_tensor(ex, pse), em_tensor(ex, drop), em_tensor(ex, mask), em_tensor(ex, dy);
    em_tensor(ex, top), em_tensor(ex, sum), em_tensor(ex, attentionIn), em_tensor(ex, dqOut), em_tensor(ex, dkOut), em_tensor(ex, dvOut), em_tensor(ex, dpseOut);
    em_array(ex, prefix);
    em_real(ex, scale), em_real(ex, keep);
    em_integer(ex, before), em_integer(ex, after), em_integer(ex, heads), em_integer(ex, precise), em_integer(ex, sparse), em_integer(ex, pse_type);
    em_text(ex, layout);
    return em_ready(ex, attention_grad_kernel, 512);
}

EM_OP(aclnnFlashAttentionScoreGrad, const aclTensor *query, const aclTensor *keyIn, const aclTensor *value, const aclTensor *dy, const aclTensor *pseShiftOptional,
      const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional, const aclTensor *softmaxMaxOptional,
      const aclTensor *softmaxSumOptional, const aclTensor *softmaxInOptional, const aclTensor *attentionInOptional, const aclIntArray *prefixOptional, double scaleValue,
      double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, char *inputLayout, int64_t innerPrecise, int64_t sparseMode, const aclTensor *dqOut,
      const aclTensor *dkOut, const aclTensor *dvOut, const aclTensor *dpseOut) {
    EM_BEGIN(aclnnFlashAttentionScoreGrad);
    (void)softmaxInOptional;
    return attention_grad(ex, query, keyIn, value, dy, pseShiftOptional, dropMaskOptional, paddingMaskOptional, attenMaskOptional, softmaxMaxOptional, softmaxSumOptional,
                          attentionInOptional, prefixOptional, scaleValue, keepProb, preTokens, nextTokens, headNum, inputLayout, innerPrecise, sparseMode, 1, dqOut, dkOut,
                          dvOut, dpseOut);
}

EM_OP(aclnnFlashAttentionScoreGradV2, const aclTensor *query, const aclTensor *keyIn, const aclTensor *value, const aclTensor *dy, const aclTensor *pseShiftOptional,
      const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional, const aclTensor *softmaxMaxOptional,
      const aclTensor *softmaxSumOptional, const aclTensor *softmaxInOptional, const aclTensor *attentionInOptional, const aclIntArray *prefixOptional,
      const aclIntArray *qStartIdxOptional, const aclIntArray *kvStartIdxOptional, double scaleValue, double keepProb, int64_t preTokens, int64_t nextTokens,
      int64_t headNum, char *inputLayout, int64_t innerPrecise, int64_t sparseMode, int64_t pseType, const aclTensor *dqOut, const aclTensor *dkOut,
      const aclTensor *dvOut, const aclTensor *dpseOut) {
    EM_BEGIN(aclnnFlashAttentionScoreGradV2);
    (void)softmaxInOptional, (void)qStartIdxOptional, (void)kvStartIdxOptional;
    return attention_grad(ex, query, keyIn, value, dy, pseShiftOptional, dropMaskOptional, paddingMaskOptional, attenMaskOptional, softmaxMaxOptional, softmaxSumOptional,
                          attentionInOptional, prefixOptional, scaleValue, keepProb, preTokens, nextTokens, headNum, inputLayout, innerPrecise, sparseMode, pseType, dqOut,
                          dkOut, dvOut, dpseOut);
}
