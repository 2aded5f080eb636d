/* Fused attention with its gradient, and attention for inference: in double, rounded once.
 *
 * Note [Layouts of attention]
 * Whatever the layout, a kernel sees [batch, heads, length, width]: strides say where an element lies, so H = heads * width is two dimensions of one.
 *
 * Note [Rows that are masked whole]
 * A masked score is the number MASKED, not minus infinity: a row of nothing else gives all keys the same weight. With invalid rows on (innerPrecise 2, or sparse mode
 * 3 with more queries than keys) such a row is zero; its sum is infinite, so that the gradient finds weights of zero.
 */

#include "ops_shape.h"

#define MASKED (-0x1p127) /* exact as a float, in which the largest scores are kept */
#define COMPRESSED 2048 /* rows and columns of the mask of sparse modes 2, 3, 4 and 6 */

typedef struct Layout { int64_t batch, heads, length, width; } Layout;

/* Where the dimensions of a layout are: batch, heads (-1: within H), length, width. */
static bool places_of(const char *layout, int at[4]) {
    static const struct { const char *name; int at[4]; } known[] = {{"BSH", {0, -1, 1, 2}}, {"SBH", {1, -1, 0, 2}}, {"BSND", {0, 2, 1, 3}}, {"BNSD", {0, 1, 2, 3}}};
    for (size_t k = 0; layout && k < sizeof known / sizeof *known; k++)
        if (!strcmp(known[k].name, layout)) {
            memcpy(at, known[k].at, sizeof known[k].at);
            return true;
        }
    return false;
}

/* The sizes of a tensor in a layout; `heads` or else `width` is known where both are one dimension. */
static bool sizes_of(const char *layout, int ndim, const int64_t *dims, int64_t heads, int64_t width, Layout *found) {
    int at[4];
    if (!places_of(layout, at) || ndim != (at[1] < 0 ? 3 : 4)) return false;
    int64_t last = dims[at[3]];
    *found = (Layout){dims[at[0]], at[1] < 0 ? heads : dims[at[1]], dims[at[2]], last};
    if (at[1] >= 0) return true;
    if (!heads) {
        if (width <= 0 || last % width) return false;
        found->heads = last / width;
    }
    if (!found->heads || last % found->heads) return false;
    found->width = last / found->heads;
    return true;
}

static EmTensor by_heads(const EmTensor *tensor, const char *layout, Layout sizes) {
    int at[4];
    places_of(layout, at);
    EmTensor view = *tensor;
    int64_t step = tensor->strides[at[3]];
    view.ndim = 4;
    int64_t dims[4] = {sizes.batch, sizes.heads, sizes.length, sizes.width};
    int64_t strides[4] = {tensor->strides[at[0]], at[1] < 0 ? step * sizes.width : tensor->strides[at[1]], tensor->strides[at[2]], step};
    memcpy(view.dims, dims, sizeof dims);
    memcpy(view.strides, strides, sizeof strides);
    return view;
}

typedef struct Attention {
    Layout query, key, value;
    int64_t group; /* heads of the query for each of the key's */
    double *q, *k, *v, *pse;
    int64_t *mask, *drop;
    EmInts prefix, query_lengths, key_lengths;
    double scale, keep;
    int64_t before, after, sparse, pse_first;
    bool invalid_rows;
} Attention;

static double *spread_reals(const EmTensor *tensor, const int64_t *dims) {
    EmTensor wide = em_expand(tensor, 4, dims);
    return em_read_reals(&wide);
}

static int64_t length_of(const EmInts *lengths, int64_t batch, int64_t all) {
    if (!lengths->present || !lengths->size) return all;
    return lengths->values[lengths->size == 1 ? 0 : batch];
}

static bool visible(const Attention *a, int64_t b, int64_t n, int64_t i, int64_t j) {
    if (j >= length_of(&a->key_lengths, b, a->key.length)) return false;
    if (!a->mask && a->sparse != 2 && a->sparse != 3 && a->sparse != 4 && a->sparse != 6) return true;
    int64_t shifted = i + length_of(&a->key_lengths, b, a->key.length) - length_of(&a->query_lengths, b, a->query.length);
    bool given = a->mask && a->sparse != 2 && a->sparse != 3 && a->sparse != 4 && a->sparse != 6;
    if (given && a->mask[((b * a->query.heads + n) * a->query.length + i) * a->key.length + j]) return false;
    switch (a->sparse) {
        case 0: return j - i <= a->after && i - j <= a->before;
        case 2: return j <= i;
        case 3: return j <= shifted;
        case 4: return j - shifted <= a->after && shifted - j <= a->before;
        case 6: return j <= shifted || (b < a->prefix.size && j < a->prefix.values[b]);
        default: return true;
    }
}

/* The scores of a row, MASKED where nothing may be seen. True when there is something to see. */
static bool row_of_scores(const Attention *a, int64_t b, int64_t n, int64_t i, double *scores) {
    const double *q = a->q + ((b * a->query.heads + n) * a->query.length + i) * a->query.width;
    const double *keys = a->k + (b * a->key.heads + n / a->group) * a->key.length * a->key.width;
    bool any = false;
    for (int64_t j = 0; j < a->key.length; j++) {
        scores[j] = MASKED;
        if (!visible(a, b, n, i, j)) continue;
        any = true;
        double dot = 0, shift = a->pse ? a->pse[((b * a->query.heads + n) * a->query.length + i) * a->key.length + j] : 0;
        for (int64_t d = 0; d < a->query.width; d++) dot += q[d] * keys[j * a->key.width + d];
        scores[j] = a->pse_first ? a->scale * (dot + shift) : a->scale * dot + shift;
    }
    return any;
}

static double kept(const Attention *a, int64_t b, int64_t n, int64_t i, int64_t j) {
    if (!a->drop) return 1;
    int64_t bit = ((b * a->query.heads + n) * a->query.length + i) * a->key.length + j;
    return (a->drop[bit / 8] >> (bit % 8) & 1) / a->keep;
}

static void read_attention(Attention *a, const EmTensor *t, const char *layout, int64_t heads) {
    sizes_of(layout, t[0].ndim, t[0].dims, heads, 0, &a->query);
    sizes_of(layout, t[1].ndim, t[1].dims, 0, a->query.width, &a->key);
    int at[4];
    places_of(layout, at);
    sizes_of(layout, t[2].ndim, t[2].dims, at[1] < 0 ? a->key.heads : 0, 0, &a->value);
    a->group = a->query.heads / a->key.heads;
    EmTensor q = by_heads(&t[0], layout, a->query), k = by_heads(&t[1], layout, a->key), v = by_heads(&t[2], layout, a->value);
    a->q = em_read_reals(&q), a->k = em_read_reals(&k), a->v = em_read_reals(&v);
    int64_t whole[4] = {a->query.batch, a->query.heads, a->query.length, a->key.length};
    if (t[3].present) a->pse = spread_reals(&t[3], whole);
    if (t[4].present) a->drop = em_read_integers(&t[4]);
    if (t[5].present && a->sparse != 2 && a->sparse != 3 && a->sparse != 4 && a->sparse != 6) {
        EmTensor wide = em_expand(&t[5], 4, whole);
        a->mask = em_read_integers(&wide);
    }
    if (!t[5].present) a->sparse = a->sparse > 4 ? 1 : 0, a->before = a->after = INT64_MAX / 2;
}

static void free_attention(Attention *a) { free(a->q), free(a->k), free(a->v), free(a->pse), free(a->mask), free(a->drop); }

/* One row of the result; the largest score and the sum of the weights. */
static void attend(const Attention *a, int64_t b, int64_t n, int64_t i, double *scores, double *line, double *top, double *sum) {
    bool any = row_of_scores(a, b, n, i, scores);
    *top = scores[0], *sum = 0;
    for (int64_t j = 1; j < a->key.length; j++) *top = fmax(*top, scores[j]);
    for (int64_t j = 0; j < a->key.length; j++) *sum += exp(scores[j] - *top);
    if (!any && a->invalid_rows) *sum = INFINITY;
    const double *values = a->v + (b * a->value.heads + n / a->group) * a->value.length * a->value.width;
    for (int64_t d = 0; d < a->value.width; d++) line[d] = 0;
    for (int64_t j = 0; j < a->key.length; j++) {
        double weight = exp(scores[j] - *top) / *sum * kept(a, b, n, i, j);
        for (int64_t d = 0; d < a->value.width; d++) line[d] += weight * values[j * a->value.width + d];
    }
}

static void read_options(Attention *a, const EmCall *call) {
    a->prefix = call->array[0];
    a->scale = call->real[0], a->keep = call->real[1];
    a->before = call->integer[0], a->after = call->integer[1], a->sparse = call->integer[4], a->pse_first = call->integer[5] == 1;
}

/* tensors: query, key, value, pse, drop mask, mask, then softmaxMax, softmaxSum, attention. Integers: preTokens, nextTokens, heads, innerPrecise, sparse mode, pseType. */
static void attention_kernel(EmCall *call) {
    Attention a = {0};
    read_options(&a, call);
    bool right = a.sparse == 3;
    read_attention(&a, call->tensor, call->text[0], call->integer[2]);
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
    EmTensor result = by_heads(&call->tensor[8], call->text[0], shape);
    em_write_reals(&call->tensor[6], tops);
    em_write_reals(&call->tensor[7], sums);
    em_write_reals(&result, out);
    free(out), free(tops), free(sums), free(scores);
    free_attention(&a);
}

static aclnnStatus check_attention(aclOpExecutor *ex, const aclTensor *query, const aclTensor *key, const aclTensor *value, const aclTensor *pse, const aclTensor *mask,
                                   int64_t heads, const char *layout, int64_t sparse, uint32_t set, Layout *q, Layout *k, Layout *v) {
    EM_NOT_NULL(query);
    EM_NOT_NULL(key);
    EM_NOT_NULL(value);
    EM_NOT_NULL(layout);
    ES_DTYPE(query, set);
    ES_SAME_DTYPE(query, key);
    ES_SAME_DTYPE(query, value);
    EM_REQUIRE(heads > 0, "headNum must be positive");
    EM_REQUIRE(sizes_of(layout, query->ndim, query->dims, heads, 0, q), "query does not fit the layout %s with %lld heads", layout, (long long)heads);
    EM_REQUIRE(q->heads == heads, "query has %lld heads, not %lld", (long long)q->heads, (long long)heads);
    EM_REQUIRE(sizes_of(layout, key->ndim, key->dims, 0, q->width, k), "key does not fit the layout %s", layout);
    EM_REQUIRE(sizes_of(layout, value->ndim, value->dims, k->heads, 0, v), "value does not fit the layout %s", layout);
    EM_REQUIRE(q->width == k->width && k->width >= v->width && q->width <= 768, "the widths of query, key and value do not fit each other");
    EM_REQUIRE(q->batch == k->batch && k->batch == v->batch, "query, key and value differ in batches");
    EM_REQUIRE(k->heads == v->heads && k->length == v->length, "key and value differ in heads or length");
    EM_REQUIRE(k->heads && q->heads % k->heads == 0, "the query's heads are no multiple of the key's");
    EM_REQUIRE(k->length > 0, "there are no keys");
    if (pse) {
        ES_SAME_DTYPE(query, pse);
        ES_RANK(pse, 4);
        EM_REQUIRE((pse->dims[0] == q->batch || pse->dims[0] == 1) && pse->dims[1] == q->heads && (pse->dims[2] == q->length || pse->dims[2] == 1) && pse->dims[3] == k->length,
                   "the shape of pse is none of [B, N, S, S], [B, N, 1, Skv] and [1, N, S, S]");
    }
    EM_REQUIRE(sparse >= 0 && sparse <= 6, "sparseMode must be 0 to 6, not %lld", (long long)sparse);
    if (mask) {
        EM_REQUIRE(es_in(mask->dtype, ES_BOOL | ES_DT(ACL_UINT8) | (set & ES_DT(ACL_FLOAT) ? 0 : ES_DT(ACL_INT8))), "attenMask has dtype %d, which is not supported", mask->dtype);
        EM_REQUIRE(mask->ndim >= 2 && mask->ndim <= 4, "attenMask must have 2 to 4 dimensions");
        const int64_t *last = mask->dims + mask->ndim - 2;
        if (sparse == 2 || sparse == 3 || sparse == 4) EM_REQUIRE(last[0] == COMPRESSED && last[1] == COMPRESSED, "attenMask of a compressed mode must be 2048 x 2048");
        else if (sparse != 6) {
            EM_REQUIRE(last[0] == q->length && last[1] == k->length, "attenMask's shape does not end with the lengths of query and key");
            for (int d = 0; d < mask->ndim - 2; d++)
                EM_REQUIRE(mask->dims[d] == 1 || mask->dims[d] == (mask->ndim - d == 4 ? q->batch : mask->ndim == 3 ? q->batch : q->heads), "attenMask's shape is not supported");
        }
    } else EM_REQUIRE(sparse < 2 || sparse > 4, "sparseMode %lld needs attenMask", (long long)sparse);
    return 0;
}

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

#define TRY(call) do { aclnnStatus tried = (call); if (tried) return tried; } while (0)

static aclnnStatus attention(aclOpExecutor *ex, const aclTensor *query, const aclTensor *key, const aclTensor *value, const aclTensor *pse, const aclTensor *drop,
                             const aclTensor *padding, const aclTensor *mask, const aclIntArray *prefix, double scale, double keep, int64_t before, int64_t after,
                             int64_t heads, const char *layout, int64_t precise, int64_t sparse, int64_t pse_type, const aclTensor *top, const aclTensor *sum,
                             const aclTensor *out) {
    Layout q, k, v;
    TRY(check_attention(ex, query, key, value, pse, mask, heads, layout, sparse, ES_FLOATS, &q, &k, &v));
    TRY(check_drop(ex, drop, keep, q, k));
    EM_REQUIRE(!padding, "paddingMask is not supported");
    EM_REQUIRE(pse_type == 0 || pse_type == 1, "pseType %lld is not supported by the emulator", (long long)pse_type);
    TRY(check_sums(ex, top, q));
    TRY(check_sums(ex, sum, q));
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(query, out);
    Layout o;
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
static void attention_grad_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    const char *layout = call->text[0];
    Attention a = {0};
    read_options(&a, call);
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

static aclnnStatus attention_grad(aclOpExecutor *ex, const aclTensor *query, const aclTensor *keyIn, const aclTensor *value, const aclTensor *dy, const aclTensor *pse,
                                  const aclTensor *drop, const aclTensor *padding, const aclTensor *mask, const aclTensor *top, const aclTensor *sum,
                                  const aclTensor *attentionIn, const aclIntArray *prefix, double scale, double keep, int64_t before, int64_t after, int64_t heads,
                                  const char *layout, int64_t precise, int64_t sparse, int64_t pse_type, const aclTensor *dqOut, const aclTensor *dkOut,
                                  const aclTensor *dvOut, const aclTensor *dpseOut) {
    Layout q, k, v;
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

/* Inference. tensors: query, key, value, pse, (no drop mask), mask, attention, logarithms of the sums. Arrays: lengths of queries and of keys. */
static void infer_attention_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    Attention a = {.keep = 1, .scale = call->real[0], .before = call->integer[0], .after = call->integer[1], .sparse = call->integer[3]};
    a.query_lengths = call->array[0], a.key_lengths = call->array[1];
    read_attention(&a, t, call->text[0], call->integer[2]);
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
    EmTensor result = by_heads(&t[6], call->text[0], shape);
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
    Layout q, k, v, o;
    TRY(check_attention(ex, query, key->items[0], value->items[0], pseShift, attenMask, numHeads, inputLayout, sparseMode, ES_DT(ACL_FLOAT16) | ES_DT(ACL_BF16), &q, &k, &v));
    EM_REQUIRE(strcmp(inputLayout, "SBH"), "the layout SBH is not supported");
    EM_REQUIRE(!numKeyValueHeads || numKeyValueHeads == k.heads, "key has %lld heads, not %lld", (long long)k.heads, (long long)numKeyValueHeads);
    EM_REQUIRE(numKeyValueHeads || k.heads == q.heads, "numKeyValueHeads of 0 means as many heads as the query has");
    TRY(check_lengths(ex, actualSeqLengths, q));
    TRY(check_lengths(ex, actualSeqLengthsKv, k));
    ES_SAME_DTYPE(query, attentionOut);
    EM_REQUIRE(sizes_of(inputLayout, attentionOut->ndim, attentionOut->dims, numHeads, 0, &o) && o.batch == q.batch && o.heads == q.heads && o.length == q.length &&
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
