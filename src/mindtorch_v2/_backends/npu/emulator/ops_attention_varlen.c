/* Fused attention of sequences of variable lengths, and its gradient. */

#include "ops_attention.h"

/* Sequences of variable lengths, behind each other in the layout TND: each is a batch of its own. Arrays: prefix, where the queries' and the keys' sequences end. */

/* Rows `from` to `to` of [T, N, D] as [1, S, N, D], or (by_head) as [1, N, S, D]. */
static EmTensor rows_of(const EmTensor *t, int64_t from, int64_t to, bool by_head) {
    EmTensor part = *t;
    if (!t->present || t->ndim != 3) return part;
    part.ndim = 4;
    part.numel = (to - from) * t->dims[1] * t->dims[2];
    part.data += from * t->strides[0] * (int64_t)em_item_size(t->dtype);
    part.dims[0] = 1, part.dims[1 + by_head] = to - from, part.dims[2 - by_head] = t->dims[1], part.dims[3] = t->dims[2];
    part.strides[0] = 0, part.strides[1 + by_head] = t->strides[0], part.strides[2 - by_head] = t->strides[1], part.strides[3] = t->strides[2];
    return part;
}

/* The part of a mask for the longest sequences that a sequence sees. */
static EmTensor mask_of(const EmTensor *t, int64_t sequence, int64_t queries, int64_t keys) {
    EmTensor part = *t;
    if (!t->present) return part;
    if (t->ndim > 2 && t->dims[0] > 1) part.data += sequence * t->strides[0] * (int64_t)em_item_size(t->dtype), part.dims[0] = 1;
    part.dims[t->ndim - 2] = queries, part.dims[t->ndim - 1] = keys;
    part.numel = es_product(part.dims, 0, part.ndim);
    return part;
}

/* The sparse mode of a sequence: modes 7 and 8 are a band for the last or the first one that is not empty, and mode 3 or 2 for the others. */
static int64_t mode_of(int64_t sparse, const int64_t *q_ends, const int64_t *k_ends, int64_t count, int64_t sequence) {
    if (sparse != 7 && sparse != 8) return sparse;
    int64_t band = -1;
    for (int64_t b = 0; b < count; b++) {
        bool there = q_ends[b] > (b ? q_ends[b - 1] : 0) && k_ends[b] > (b ? k_ends[b - 1] : 0);
        if (there && (sparse == 7 || band < 0)) band = b;
    }
    return sequence == band ? 4 : sparse == 7 ? 3 : 2;
}

typedef void (*OneSequence)(const EmCall *, const EmTensor *, const char *, int64_t, int64_t);

static void each_sequence(EmCall *call, const char *kinds, OneSequence run) { /* kinds, by tensor: q and k rows, s sums, m the mask, another one as it is */
    const EmInts *queries = &call->array[1], *keys = &call->array[2];
    int64_t q_from = 0, k_from = 0, bit = 0, heads = call->integer[2];
    for (int b = 0; b < queries->size; b++) {
        int64_t q_to = queries->values[b], k_to = keys->values[b];
        EmTensor parts[14];
        for (int k = 0; kinds[k]; k++) {
            const EmTensor *t = &call->tensor[k];
            parts[k] = kinds[k] == 'q' ? rows_of(t, q_from, q_to, false) : kinds[k] == 'k' ? rows_of(t, k_from, k_to, false) : kinds[k] == 's' ? rows_of(t, q_from, q_to, true)
                     : kinds[k] == 'm' && call->integer[4] < 2 ? mask_of(t, b, q_to - q_from, k_to - k_from) : *t;
        }
        int64_t integers[6];
        memcpy(integers, call->integer, sizeof integers);
        integers[4] = mode_of(call->integer[4], queries->values, keys->values, queries->size, b);
        EmCall own = *call;
        own.integer = integers;
        if (q_to > q_from) run(&own, parts, "BSND", b, bit);
        bit += heads * (q_to - q_from) * (k_to - k_from);
        q_from = q_to, k_from = k_to;
    }
}

static void varlen_kernel(EmCall *call) { each_sequence(call, "qkk-dmssq", em_attend); }

static void varlen_grad_kernel(EmCall *call) {
    for (int k = 10; k < 13; k++) { /* a sequence without queries gives its keys no gradient */
        double *zeros = es_doubles(call->tensor[k].numel);
        em_write_reals(&call->tensor[k], zeros);
        free(zeros);
    }
    each_sequence(call, "qkk-dmqssqqkk-", em_attend_grad);
}

static bool ends_fit(const aclIntArray *ends, const aclTensor *tensor) {
    int64_t before = 0;
    for (uint64_t k = 0; k < ends->size; before = ends->values[k++])
        if (ends->values[k] < before) return false;
    return ends->size > 0 && ends->size <= 64 && before == tensor->dims[0];
}

static aclnnStatus check_varlen(aclOpExecutor *ex, const aclTensor *query, const aclTensor *key, const aclTensor *value, const aclTensor *pse, const aclTensor *drop,
                                const aclTensor *mask, const aclIntArray *q_ends, const aclIntArray *k_ends, int64_t heads, const char *layout, int64_t before, int64_t after,
                                int64_t sparse, double keep, const aclTensor *top, const aclTensor *sum) {
    const aclTensor *all[] = {query, key, value};
    for (int k = 0; k < 3; k++) {
        EM_NOT_NULL(all[k]);
        ES_RANK(all[k], 3);
        ES_DTYPE(all[k], ES_FLOATS);
        ES_SAME_DTYPE(query, all[k]);
    }
    EM_NOT_NULL(layout);
    EM_NOT_NULL(q_ends);
    EM_NOT_NULL(k_ends);
    EM_REQUIRE(!strcmp(layout, "TND"), "the layout must be TND, not %s", layout);
    EM_REQUIRE(heads > 0 && query->dims[1] == heads, "query has %lld heads, not %lld", (long long)query->dims[1], (long long)heads);
    EM_REQUIRE(key->dims[1] == value->dims[1] && key->dims[1] && heads % key->dims[1] == 0, "the heads of query, key and value do not fit each other");
    EM_REQUIRE(query->dims[2] == key->dims[2] && key->dims[2] >= value->dims[2] && query->dims[2] <= 768, "the widths of query, key and value do not fit each other");
    EM_REQUIRE(key->dims[0] == value->dims[0], "key and value differ in length");
    EM_REQUIRE(ends_fit(q_ends, query) && ends_fit(k_ends, key) && q_ends->size == k_ends->size, "the ends of sequences do not fit query and key");
    EM_REQUIRE(!pse, "pse of variable lengths is not in the emulator");
    EM_REQUIRE(sparse >= 0 && sparse <= 8, "sparseMode %lld is not in the emulator", (long long)sparse);
    int64_t longest[2] = {0, 0}, bits = 0, q = 0, k = 0;
    for (uint64_t b = 0; b < q_ends->size; q = q_ends->values[b], k = k_ends->values[b], b++) {
        int64_t queries = q_ends->values[b] - q, keys = k_ends->values[b] - k;
        EM_REQUIRE(keys || !queries, "a sequence of queries has no keys");
        int64_t mode = mode_of(sparse, q_ends->values, k_ends->values, (int64_t)q_ends->size, (int64_t)b);
        EM_REQUIRE(mode != 3 || queries <= keys, "sparseMode 3 wants no more queries than keys");
        EM_REQUIRE(sparse < 7 || mode != 4 || (before >= keys && after >= queries - keys && (sparse == 8 || after <= 0)), "preTokens or nextTokens are none of sparseMode %lld",
                   (long long)sparse);
        if (queries > longest[0]) longest[0] = queries;
        if (keys > longest[1]) longest[1] = keys;
        bits += heads * queries * keys;
    }
    EM_REQUIRE(keep > 0 && keep <= 1, "keepProb must be within (0, 1]");
    if (drop) {
        ES_DTYPE(drop, ES_DT(ACL_UINT8));
        EM_REQUIRE(em_numel(drop) * 8 >= bits, "dropMask has fewer bits than there are scores");
    }
    const bool compressed = (sparse >= 2 && sparse <= 4) || sparse >= 7;
    EM_REQUIRE(mask || !compressed, "sparseMode %lld needs attenMask", (long long)sparse);
    if (mask) {
        EM_REQUIRE(es_in(mask->dtype, ES_BOOL | ES_DT(ACL_UINT8)), "attenMask has dtype %d, which is not supported", mask->dtype);
        EM_REQUIRE(mask->ndim >= 2 && mask->ndim <= 4, "attenMask must have 2 to 4 dimensions");
        const int64_t *last = mask->dims + mask->ndim - 2;
        if (compressed) EM_REQUIRE(last[0] == COMPRESSED && last[1] == COMPRESSED, "attenMask of a compressed mode must be 2048 x 2048");
        else if (sparse != 6) EM_REQUIRE(last[0] == longest[0] && last[1] == longest[1], "attenMask does not end with the longest lengths");
    }
    const aclTensor *sums[] = {top, sum};
    int64_t dims[3] = {query->dims[0], heads, 8};
    for (int s = 0; s < 2; s++) {
        EM_NOT_NULL(sums[s]);
        ES_DTYPE(sums[s], ES_DT(ACL_FLOAT));
        EM_REQUIRE(es_has_shape(sums[s], 3, dims), "softmaxMax and softmaxSum must be [T, N, 8]");
    }
    return 0;
}

EM_OP(aclnnFlashAttentionVarLenScoreV2, const aclTensor *query, const aclTensor *key, const aclTensor *value, const aclTensor *realShiftOptional,
      const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional, const aclIntArray *prefixOptional,
      const aclIntArray *actualSeqQLenOptional, const aclIntArray *actualSeqKvLenOptional, const aclIntArray *qStartIdxOptional, const aclIntArray *kvStartIdxOptional,
      double scaleValue, double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, char *inputLayout, int64_t innerPrecise, int64_t sparseMode,
      int64_t pseType, const aclTensor *softmaxMaxOut, const aclTensor *softmaxSumOut, const aclTensor *softmaxOutOut, const aclTensor *attentionOutOut) {
    EM_BEGIN(aclnnFlashAttentionVarLenScoreV2);
    (void)softmaxOutOut, (void)qStartIdxOptional, (void)kvStartIdxOptional;
    TRY(check_varlen(ex, query, key, value, realShiftOptional, dropMaskOptional, attenMaskOptional, actualSeqQLenOptional, actualSeqKvLenOptional, headNum, inputLayout,
                     preTokens, nextTokens, sparseMode, keepProb, softmaxMaxOut, softmaxSumOut));
    EM_REQUIRE(!paddingMaskOptional, "paddingMask is not supported");
    EM_NOT_NULL(attentionOutOut);
    ES_SAME_DTYPE(query, attentionOutOut);
    int64_t dims[3] = {query->dims[0], headNum, value->dims[2]};
    EM_REQUIRE(es_has_shape(attentionOutOut, 3, dims), "attentionOut does not have the query's shape with the value's width");
    em_tensor(ex, query), em_tensor(ex, key), em_tensor(ex, value), em_tensor(ex, NULL), em_tensor(ex, dropMaskOptional), em_tensor(ex, attenMaskOptional);
    em_tensor(ex, softmaxMaxOut), em_tensor(ex, softmaxSumOut), em_tensor(ex, attentionOutOut);
    em_array(ex, prefixOptional), em_array(ex, actualSeqQLenOptional), em_array(ex, actualSeqKvLenOptional);
    em_real(ex, scaleValue), em_real(ex, keepProb);
    em_integer(ex, preTokens), em_integer(ex, nextTokens), em_integer(ex, headNum), em_integer(ex, innerPrecise), em_integer(ex, sparseMode), em_integer(ex, pseType);
    em_text(ex, inputLayout);
    return em_ready(ex, varlen_kernel, 512);
}

EM_OP(aclnnFlashAttentionUnpaddingScoreGradV2, const aclTensor *query, const aclTensor *keyIn, const aclTensor *value, const aclTensor *dy,
      const aclTensor *pseShiftOptional, const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional,
      const aclTensor *softmaxMaxOptional, const aclTensor *softmaxSumOptional, const aclTensor *softmaxInOptional, const aclTensor *attentionInOptional,
      const aclIntArray *prefixOptional, const aclIntArray *actualSeqQLenOptional, const aclIntArray *actualSeqKvLenOptional, const aclIntArray *qStartIdxOptional,
      const aclIntArray *kvStartIdxOptional, double scaleValue, double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, char *inputLayout,
      int64_t innerPrecise, int64_t sparseMode, int64_t pseType, const aclTensor *dqOut, const aclTensor *dkOut, const aclTensor *dvOut, const aclTensor *dpseOut) {
    EM_BEGIN(aclnnFlashAttentionUnpaddingScoreGradV2);
    (void)softmaxInOptional, (void)qStartIdxOptional, (void)kvStartIdxOptional, (void)dpseOut;
    TRY(check_varlen(ex, query, keyIn, value, pseShiftOptional, dropMaskOptional, attenMaskOptional, actualSeqQLenOptional, actualSeqKvLenOptional, headNum, inputLayout,
                     preTokens, nextTokens, sparseMode, keepProb, softmaxMaxOptional, softmaxSumOptional));
    EM_REQUIRE(!paddingMaskOptional, "paddingMask is not supported");
    const aclTensor *pairs[][2] = {{query, dqOut}, {keyIn, dkOut}, {value, dvOut}};
    for (int k = 0; k < 3; k++) {
        EM_NOT_NULL(pairs[k][1]);
        ES_SAME_SHAPE(pairs[k][0], pairs[k][1]);
        ES_SAME_DTYPE(query, pairs[k][1]);
    }
    EM_NOT_NULL(dy);
    EM_NOT_NULL(attentionInOptional);
    ES_SAME_DTYPE(query, dy);
    ES_SAME_SHAPE(dy, attentionInOptional);
    em_tensor(ex, query), em_tensor(ex, keyIn), em_tensor(ex, value), em_tensor(ex, NULL), em_tensor(ex, dropMaskOptional), em_tensor(ex, attenMaskOptional);
    em_tensor(ex, dy), em_tensor(ex, softmaxMaxOptional), em_tensor(ex, softmaxSumOptional), em_tensor(ex, attentionInOptional);
    em_tensor(ex, dqOut), em_tensor(ex, dkOut), em_tensor(ex, dvOut), em_tensor(ex, NULL);
    em_array(ex, prefixOptional), em_array(ex, actualSeqQLenOptional), em_array(ex, actualSeqKvLenOptional);
    em_real(ex, scaleValue), em_real(ex, keepProb);
    em_integer(ex, preTokens), em_integer(ex, nextTokens), em_integer(ex, headNum), em_integer(ex, innerPrecise), em_integer(ex, sparseMode), em_integer(ex, pseType);
    em_text(ex, inputLayout);
    return em_ready(ex, varlen_grad_kernel, 512);
}
