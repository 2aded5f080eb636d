/* Attention for inference. */

#include "ops_attention.h"

/* Inference. tensors: query, key, value, pse, (no drop mask), mask, attention, logarithms of the sums. Arrays: lengths of queries and of keys. */
static void infer_attention_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    Attention a = {.keep = 1, .scale = call->real[0], .before = call->integer[0], .after = call->integer[1], .sparse = call->integer[3]};
    a.query_lengths = call->array[0], a.key_lengths = call->array[1];
    const char *turned = strchr(call->text[0], '_');
    const char *given = turned ? "BNSD" : call->text[0];
    read_attention(&a, t, given, call->integer[2]);
    a.invalid_rows = true;
    Layout shape = a.query;
    shape.width = a.value.width;
    int64_t lines = shape.batch * shape.heads * shape.length;
    double *out = es_doubles(lines * shape.width), *sums = es_doubles(lines), *scores = es_doubles(a.key.length);
    for (int64_t l = 0; l < lines; l++) {
        int64_t i = l % shape.length, n = l / shape.length % shape.heads, b = l / shape.length / shape.heads;
        if (i >= length_of(&a.query_lengths, b, shape.length)) {
            sums[l] = INFINITY;
            continue;
        }
        double top, sum;
        attend(&a, b, n, i, scores, out + l * shape.width, &top, &sum);
        sums[l] = isinf(sum) ? INFINITY : top + log(sum);
    }
    EmTensor result = by_heads(&t[6], turned ? turned + 1 : given, shape);
    em_write_reals(&result, out);
    if (t[7].present && t[7].numel) em_write_reals(&t[7], sums);
    free(out), free(sums), free(scores);
    free_attention(&a);
}

static aclnnStatus check_lengths(aclOpExecutor *ex, const aclIntArray *lengths, Layout sizes) {
    if (!lengths) return 0;
    EM_REQUIRE(lengths->size == 1 || (int64_t)lengths->size >= sizes.batch, "actualSeqLengths must have one number, or one for each batch");
    for (uint64_t k = 0; k < lengths->size; k++) EM_REQUIRE(lengths->values[k] >= 0 && lengths->values[k] <= sizes.length, "an actual length is beyond the tensor's");
    return 0;
}

EM_OP(aclnnFusedInferAttentionScore, const aclTensor *query, const aclTensorList *key, const aclTensorList *value, const aclTensor *pseShift, const aclTensor *attenMask,
      const aclIntArray *actualSeqLengths, const aclIntArray *actualSeqLengthsKv, const aclTensor *deqScale1, const aclTensor *quantScale1, const aclTensor *deqScale2,
      const aclTensor *quantScale2, const aclTensor *quantOffset2, const aclTensor *antiquantScale, const aclTensor *antiquantOffset, const aclTensor *blockTable,
      const aclTensor *queryPaddingSize, const aclTensor *kvPaddingSize, int64_t numHeads, double scaleValue, int64_t preTokens, int64_t nextTokens, char *inputLayout,
      int64_t numKeyValueHeads, int64_t sparseMode, int64_t innerPrecise, int64_t blockSize, int64_t antiquantMode, bool softmaxLseFlag, const aclTensor *attentionOut,
      const aclTensor *softmaxLse) {
    EM_BEGIN(aclnnFusedInferAttentionScore);
    (void)innerPrecise, (void)blockSize, (void)antiquantMode;
    EM_NOT_NULL(key);
    EM_NOT_NULL(value);
    EM_NOT_NULL(attentionOut);
    const aclTensor *more[] = {deqScale1, quantScale1, deqScale2, quantScale2, quantOffset2, antiquantScale, antiquantOffset, blockTable, queryPaddingSize, kvPaddingSize};
    for (size_t k = 0; k < sizeof more / sizeof *more; k++) EM_REQUIRE(!more[k], "quantisation, pages and paddings are not in the emulator");
    EM_REQUIRE(key->size == 1 && value->size == 1, "key and value must be lists of one tensor");
    Layout q = {0}, k = {0}, v = {0}, o = {0};
    EM_NOT_NULL(inputLayout);
    bool turned = !strcmp(inputLayout, "BNSD_BSND");
    TRY(check_attention(ex, query, key->items[0], value->items[0], pseShift, attenMask, numHeads, turned ? "BNSD" : inputLayout, sparseMode, ES_DT(ACL_FLOAT16) | ES_DT(ACL_BF16), &q, &k, &v));
    EM_REQUIRE(strcmp(inputLayout, "SBH"), "the layout SBH is not supported");
    EM_REQUIRE(!numKeyValueHeads || numKeyValueHeads == k.heads, "key has %lld heads, not %lld", (long long)k.heads, (long long)numKeyValueHeads);
    EM_REQUIRE(numKeyValueHeads || k.heads == q.heads, "numKeyValueHeads of 0 means as many heads as the query has");
    TRY(check_lengths(ex, actualSeqLengths, q));
    TRY(check_lengths(ex, actualSeqLengthsKv, k));
    ES_SAME_DTYPE(query, attentionOut);
    EM_REQUIRE(sizes_of(turned ? "BSND" : inputLayout, attentionOut->ndim, attentionOut->dims, numHeads, 0, &o) && o.batch == q.batch && o.heads == q.heads && o.length == q.length &&
               o.width == v.width, "attentionOut does not have the query's shape with the value's width");
    if (softmaxLseFlag) {
        int64_t dims[4] = {q.batch, q.heads, q.length, 1};
        EM_NOT_NULL(softmaxLse);
        ES_DTYPE(softmaxLse, ES_DT(ACL_FLOAT));
        EM_REQUIRE(es_has_shape(softmaxLse, 4, dims), "softmaxLse must be [B, N, S, 1]");
    }
    em_tensor(ex, query), em_tensor(ex, key->items[0]), em_tensor(ex, value->items[0]), em_tensor(ex, pseShift), em_tensor(ex, NULL), em_tensor(ex, attenMask);
    em_tensor(ex, attentionOut), em_tensor(ex, softmaxLseFlag ? softmaxLse : NULL);
    em_array(ex, actualSeqLengths), em_array(ex, actualSeqLengthsKv);
    em_real(ex, scaleValue);
    em_integer(ex, preTokens), em_integer(ex, nextTokens), em_integer(ex, numHeads), em_integer(ex, sparseMode);
    em_text(ex, inputLayout);
    return em_ready(ex, infer_attention_kernel, 512);
}
