/* What fused attention, its gradient and attention for inference share: in double, rounded once.
 *
 * Note [Layouts of attention]
 * Whatever the layout, a kernel sees [batch, heads, length, width]: strides say where an element lies, so H = heads * width is two dimensions of one.
 *
 * Note [Rows that are masked whole]
 * A masked score is the number MASKED, not minus infinity: a row of nothing else gives all keys the same weight. With invalid rows on (innerPrecise 2, or sparse mode
 * 3 with more queries than keys) such a row is zero; its sum is infinite, so that the gradient finds weights of zero.
 */

#ifndef EM_OPS_ATTENTION_H
#define EM_OPS_ATTENTION_H

#include "ops_shape.h"

#define MASKED (-0x1p127) /* exact as a float, in which the largest scores are kept */
#define COMPRESSED 2048 /* rows and columns of the mask of sparse modes 2, 3, 4 and 6 */

typedef struct Layout { int64_t batch, heads, length, width; } Layout;

/* Where the dimensions of a layout are: batch, heads (-1: within H), length, width. */
static inline bool places_of(const char *layout, int at[4]) {
    static const struct { const char *name; int at[4]; } known[] = {{"BSH", {0, -1, 1, 2}}, {"SBH", {1, -1, 0, 2}}, {"BSND", {0, 2, 1, 3}}, {"BNSD", {0, 1, 2, 3}}};
    for (size_t k = 0; layout && k < sizeof known / sizeof *known; k++)
        if (!strcmp(known[k].name, layout)) {
            memcpy(at, known[k].at, sizeof known[k].at);
            return true;
        }
    return false;
}

/* The sizes of a tensor in a layout; `heads` or else `width` is known where both are one dimension. */
static inline bool sizes_of(const char *layout, int ndim, const int64_t *dims, int64_t heads, int64_t width, Layout *found) {
    int at[4] = {0};
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

static inline EmTensor by_heads(const EmTensor *tensor, const char *layout, Layout sizes) {
    int at[4] = {0};
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
    int64_t before, after, sparse, pse_first, first_bit; /* the drop mask's bit of the first score */
    bool invalid_rows;
} Attention;

static inline double *spread_reals(const EmTensor *tensor, const int64_t *dims) {
    EmTensor wide = em_expand(tensor, 4, dims);
    return em_read_reals(&wide);
}

static inline int64_t length_of(const EmInts *lengths, int64_t batch, int64_t all) {
    if (!lengths->present || !lengths->size) return all;
    return lengths->values[lengths->size == 1 ? 0 : batch];
}

static inline bool visible(const Attention *a, int64_t b, int64_t n, int64_t i, int64_t j) {
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
static inline bool row_of_scores(const Attention *a, int64_t b, int64_t n, int64_t i, double *scores) {
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

static inline double kept(const Attention *a, int64_t b, int64_t n, int64_t i, int64_t j) {
    if (!a->drop) return 1;
    int64_t bit = a->first_bit + ((b * a->query.heads + n) * a->query.length + i) * a->key.length + j;
    return (a->drop[bit / 8] >> (bit % 8) & 1) / a->keep;
}

static inline void read_attention(Attention *a, const EmTensor *t, const char *layout, int64_t heads) {
    sizes_of(layout, t[0].ndim, t[0].dims, heads, 0, &a->query);
    sizes_of(layout, t[1].ndim, t[1].dims, 0, a->query.width, &a->key);
    int at[4] = {0};
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

static inline void free_attention(Attention *a) { free(a->q), free(a->k), free(a->v), free(a->pse), free(a->mask), free(a->drop); }

/* One row of the result; the largest score and the sum of the weights. */
static inline void attend(const Attention *a, int64_t b, int64_t n, int64_t i, double *scores, double *line, double *top, double *sum) {
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

static inline void read_options(Attention *a, const EmCall *call) {
    a->prefix = call->array[0];
    a->scale = call->real[0], a->keep = call->real[1];
    a->before = call->integer[0], a->after = call->integer[1], a->sparse = call->integer[4], a->pse_first = call->integer[5] == 1;
}

static inline aclnnStatus check_attention(aclOpExecutor *ex, const aclTensor *query, const aclTensor *key, const aclTensor *value, const aclTensor *pse, const aclTensor *mask,
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

#define TRY(call) do { aclnnStatus tried = (call); if (tried) return tried; } while (0)

/* One call, or one sequence of a call of variable lengths: which one, and the drop mask's bit of its first score. */
void em_attend(const EmCall *call, const EmTensor *t, const char *layout, int64_t sequence, int64_t first_bit);
void em_attend_grad(const EmCall *call, const EmTensor *t, const char *layout, int64_t sequence, int64_t first_bit);

#endif
