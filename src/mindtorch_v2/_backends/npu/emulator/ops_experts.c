/* Mixtures of experts: tokens sorted by their expert and put back, and products of groups of rows. */

#include "ops_shape.h"

#define TRY(call) do { aclnnStatus tried = (call); if (tried) return tried; } while (0)

/* The positions that sort `keys`, equal ones in their order; freed by free(). */
static int64_t *sorted_places(const int64_t *keys, int64_t count) {
    int64_t *places = es_int64s(count), *other = es_int64s(count);
    for (int64_t i = 0; i < count; i++) places[i] = i;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t from = 0; from < count; from += 2 * width) {
            int64_t middle = from + width < count ? from + width : count, end = from + 2 * width < count ? from + 2 * width : count;
            for (int64_t a = from, b = middle, k = from; k < end; k++)
                other[k] = b >= end || (a < middle && keys[places[a]] <= keys[places[b]]) ? places[a++] : places[b++];
        }
        int64_t *swap = places;
        places = other, other = swap;
    }
    free(other);
    return places;
}

static void copy_row(const EmTensor *from, int64_t source, const EmTensor *to, int64_t target) {
    EmTensor a = *from, b = *to;
    a.ndim = b.ndim = 1;
    a.numel = a.dims[0] = b.numel = b.dims[0] = from->dims[1];
    a.strides[0] = from->strides[1], b.strides[0] = to->strides[1];
    size_t item = em_item_size(from->dtype);
    a.data += source * from->strides[0] * (int64_t)item, b.data += target * to->strides[0] * (int64_t)item;
    char *packed = es_pack(&a, from->dtype);
    es_unpack(&b, packed);
    free(packed);
}

/* tensors: x, rows, experts, then the rows in order, where each went, and the experts in order. */
static void init_routing_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t count = t[2].numel, tokens = t[0].dims[0];
    int64_t *rows = em_read_integers(&t[1]), *experts = em_read_integers(&t[2]), *places = sorted_places(experts, count);
    int64_t *went = es_int64s(count), *ordered = es_int64s(count);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows[places[i]];
        ordered[i] = experts[places[i]];
        if (row < 0 || row >= count) {
            em_kernel_failed(call, ES_INDEX_ERROR, "%s: row %lld is out of range", call->name, (long long)row);
            break;
        }
        went[row] = i;
        if (i < t[3].dims[0]) copy_row(&t[0], row % tokens, &t[3], i);
    }
    em_write_integers(&t[4], went);
    em_write_integers(&t[5], ordered);
    free(rows), free(experts), free(places), free(went), free(ordered);
}

EM_OP(aclnnMoeInitRouting, const aclTensor *x, const aclTensor *rowIdx, const aclTensor *expertIdx, int64_t activeNum, const aclTensor *expandedXOut,
      const aclTensor *expandedRowIdxOut, const aclTensor *expandedExpertIdxOut) {
    EM_BEGIN(aclnnMoeInitRouting);
    const aclTensor *all[] = {x, rowIdx, expertIdx, expandedXOut, expandedRowIdxOut, expandedExpertIdxOut};
    for (int k = 0; k < 6; k++) EM_NOT_NULL(all[k]);
    ES_DTYPE(x, ES_FLOATS);
    ES_SAME_DTYPE(x, expandedXOut);
    for (int k = 1; k < 6; k++) EM_REQUIRE(k == 3 || all[k]->dtype == ACL_INT32, "indices must be int32");
    for (int k = 0; k < 3; k++) EM_REQUIRE(all[k]->ndim == 2, "x, rowIdx and expertIdx must have 2 dimensions");
    ES_SAME_SHAPE(rowIdx, expertIdx);
    EM_REQUIRE(x->dims[0] == rowIdx->dims[0], "x and rowIdx differ in rows");
    EM_REQUIRE(activeNum >= 0, "activeNum is negative");
    int64_t count = em_numel(rowIdx), active = activeNum < x->dims[0] ? activeNum : x->dims[0], dims[2] = {active * rowIdx->dims[1], x->dims[1]};
    EM_REQUIRE(es_has_shape(expandedXOut, 2, dims), "expandedXOut does not have the shape of the active rows");
    EM_REQUIRE(es_has_shape(expandedRowIdxOut, 1, &count) && es_has_shape(expandedExpertIdxOut, 1, &count), "an index output does not have N * K elements");
    for (int k = 0; k < 6; k++) em_tensor(ex, all[k]);
    return em_ready(ex, init_routing_kernel, 0);
}

/* tensors: tokens, experts, then the permuted tokens and where each went. */
static void permute_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t count = t[1].numel, topk = t[1].ndim == 2 ? t[1].dims[1] : 1;
    int64_t *experts = em_read_integers(&t[1]), *places = sorted_places(experts, count), *went = es_int64s(count);
    for (int64_t i = 0; i < count; i++) {
        went[places[i]] = i;
        if (i < t[2].dims[0]) copy_row(&t[0], places[i] / topk, &t[2], i);
    }
    em_write_integers(&t[3], went);
    free(experts), free(places), free(went);
}

static int64_t out_tokens(int64_t count, int64_t wanted) {
    if (wanted <= 0) wanted += count;
    return wanted < 0 ? 0 : wanted < count ? wanted : count;
}

EM_OP(aclnnMoeTokenPermute, const aclTensor *tokens, const aclTensor *indices, int64_t numOutTokens, bool paddedMode, const aclTensor *permuteTokensOut,
      const aclTensor *sortedIndicesOut) {
    EM_BEGIN(aclnnMoeTokenPermute);
    EM_NOT_NULL(tokens);
    EM_NOT_NULL(indices);
    EM_NOT_NULL(permuteTokensOut);
    EM_NOT_NULL(sortedIndicesOut);
    EM_REQUIRE(!paddedMode, "paddedMode is not supported");
    ES_DTYPE(tokens, ES_FLOATS);
    ES_SAME_DTYPE(tokens, permuteTokensOut);
    ES_DTYPE(indices, ES_INDICES);
    ES_DTYPE(sortedIndicesOut, ES_DT(ACL_INT32));
    ES_RANK(tokens, 2);
    EM_REQUIRE((indices->ndim == 1 || indices->ndim == 2) && indices->dims[0] == tokens->dims[0], "indices do not fit the tokens");
    EM_REQUIRE(indices->ndim == 1 || indices->dims[1] <= 512, "indices have more than 512 experts for a token");
    int64_t count = em_numel(indices), dims[2] = {out_tokens(count, numOutTokens), tokens->dims[1]};
    EM_REQUIRE(es_has_shape(permuteTokensOut, 2, dims), "permuteTokensOut does not have the shape of the permuted tokens");
    EM_REQUIRE(es_has_shape(sortedIndicesOut, 1, &count), "sortedIndicesOut does not have a number for each index");
    em_tensor(ex, tokens), em_tensor(ex, indices), em_tensor(ex, permuteTokensOut), em_tensor(ex, sortedIndicesOut);
    return em_ready(ex, permute_kernel, 0);
}

/* Sums of topk rows each, with weights: of `rows` [.., width], of which `where` says one each; those behind the last were dropped. */
static double *gathered(const double *rows, int64_t have, const int64_t *where, const double *weights, int64_t tokens, int64_t topk, int64_t width) {
    double *sums = es_doubles(tokens * width);
    for (int64_t k = 0; k < tokens * topk; k++) {
        if (where[k] < 0 || where[k] >= have) continue;
        for (int64_t d = 0; d < width; d++) sums[k / topk * width + d] += rows[where[k] * width + d] * (weights ? weights[k] : 1);
    }
    return sums;
}

static void permute_grad_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t topk = call->integer[0], width = t[0].dims[1];
    double *grad = em_read_reals(&t[0]);
    int64_t *where = em_read_integers(&t[1]);
    double *sums = gathered(grad, t[0].dims[0], where, NULL, t[1].numel / topk, topk, width);
    em_write_reals(&t[2], sums);
    free(grad), free(where), free(sums);
}

EM_OP(aclnnMoeTokenPermuteGrad, const aclTensor *permutedOutputGrad, const aclTensor *sortedIndices, int64_t numTopk, bool paddedMode, aclTensor *out) {
    EM_BEGIN(aclnnMoeTokenPermuteGrad);
    EM_NOT_NULL(permutedOutputGrad);
    EM_NOT_NULL(sortedIndices);
    EM_NOT_NULL(out);
    EM_REQUIRE(!paddedMode, "paddedMode is not supported");
    ES_DTYPE(permutedOutputGrad, ES_FLOATS);
    ES_SAME_DTYPE(permutedOutputGrad, out);
    ES_DTYPE(sortedIndices, ES_DT(ACL_INT32));
    ES_RANK(permutedOutputGrad, 2);
    ES_RANK(sortedIndices, 1);
    EM_REQUIRE(numTopk > 0 && numTopk <= 512, "numTopk must be 1 to 512");
    int64_t dims[2] = {em_numel(sortedIndices) / numTopk, permutedOutputGrad->dims[1]};
    EM_REQUIRE(es_has_shape(out, 2, dims), "out does not have the shape of the tokens");
    em_tensor(ex, permutedOutputGrad), em_tensor(ex, sortedIndices), em_tensor(ex, out);
    em_integer(ex, numTopk);
    return em_ready(ex, permute_grad_kernel, 0);
}

/* tensors: permuted tokens, where each is, weights, out. */
static void unpermute_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t topk = t[2].present ? t[2].dims[1] : 1;
    double *rows = em_read_reals(&t[0]), *weights = t[2].present ? em_read_reals(&t[2]) : NULL;
    int64_t *where = em_read_integers(&t[1]);
    double *sums = gathered(rows, t[0].dims[0], where, weights, t[1].numel / topk, topk, t[0].dims[1]);
    em_write_reals(&t[3], sums);
    free(rows), free(weights), free(where), free(sums);
}

static aclnnStatus check_unpermute(aclOpExecutor *ex, const aclTensor *tokens, const aclTensor *sorted, const aclTensor *probs, bool padded, const aclTensor *out) {
    EM_NOT_NULL(tokens);
    EM_NOT_NULL(sorted);
    EM_NOT_NULL(out);
    EM_REQUIRE(!padded, "paddedMode is not supported");
    ES_DTYPE(tokens, ES_FLOATS);
    ES_SAME_DTYPE(tokens, out);
    ES_DTYPE(sorted, ES_DT(ACL_INT32));
    ES_RANK(tokens, 2);
    ES_RANK(sorted, 1);
    int64_t topk = 1;
    if (probs) {
        ES_DTYPE(probs, ES_FLOATS);
        ES_RANK(probs, 2);
        topk = probs->dims[1];
        EM_REQUIRE(topk > 0 && topk <= 512 && em_numel(probs) == em_numel(sorted), "probs do not fit the indices");
    }
    int64_t dims[2] = {em_numel(sorted) / topk, tokens->dims[1]};
    EM_REQUIRE(es_has_shape(out, 2, dims), "the unpermuted tokens do not have their shape");
    return 0;
}

EM_OP(aclnnMoeTokenUnpermute, const aclTensor *permutedTokens, const aclTensor *sortedIndices, const aclTensor *probsOptional, bool paddedMode,
      const aclIntArray *restoreShapeOptional, aclTensor *out) {
    EM_BEGIN(aclnnMoeTokenUnpermute);
    (void)restoreShapeOptional;
    TRY(check_unpermute(ex, permutedTokens, sortedIndices, probsOptional, paddedMode, out));
    em_tensor(ex, permutedTokens), em_tensor(ex, sortedIndices), em_tensor(ex, probsOptional), em_tensor(ex, out);
    return em_ready(ex, unpermute_kernel, 0);
}

/* tensors: permuted tokens, gradient, where each is, weights, the gradients of tokens and of weights. */
static void unpermute_grad_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t topk = t[3].present ? t[3].dims[1] : 1, width = t[0].dims[1], have = t[0].dims[0];
    double *rows = em_read_reals(&t[0]), *grad = em_read_reals(&t[1]), *weights = t[3].present ? em_read_reals(&t[3]) : NULL;
    double *to_rows = es_doubles(t[0].numel), *to_weights = weights ? es_doubles(t[3].numel) : NULL;
    int64_t *where = em_read_integers(&t[2]);
    for (int64_t k = 0; k < t[2].numel; k++) {
        if (where[k] < 0 || where[k] >= have) continue;
        for (int64_t d = 0; d < width; d++) {
            double above = grad[k / topk * width + d];
            to_rows[where[k] * width + d] += above * (weights ? weights[k] : 1);
            if (weights) to_weights[k] += above * rows[where[k] * width + d];
        }
    }
    em_write_reals(&t[4], to_rows);
    if (weights && t[5].present) em_write_reals(&t[5], to_weights);
    free(rows), free(grad), free(weights), free(to_rows), free(to_weights), free(where);
}

EM_OP(aclnnMoeTokenUnpermuteGrad, const aclTensor *permuteTokens, const aclTensor *unpermutedTokensGrad, const aclTensor *sortedIndices, const aclTensor *probsOptional,
      bool paddedMode, const aclIntArray *restoreShapeOptional, aclTensor *permutedTokensGradOut, aclTensor *probsGradOut) {
    EM_BEGIN(aclnnMoeTokenUnpermuteGrad);
    (void)restoreShapeOptional;
    EM_NOT_NULL(unpermutedTokensGrad);
    EM_NOT_NULL(permutedTokensGradOut);
    TRY(check_unpermute(ex, permuteTokens, sortedIndices, probsOptional, paddedMode, unpermutedTokensGrad));
    ES_SAME_DTYPE(permuteTokens, permutedTokensGradOut);
    ES_SAME_SHAPE(permuteTokens, permutedTokensGradOut);
    if (probsOptional) {
        EM_NOT_NULL(probsGradOut);
        ES_SAME_DTYPE(probsOptional, probsGradOut);
        ES_SAME_SHAPE(probsOptional, probsGradOut);
    }
    em_tensor(ex, permuteTokens), em_tensor(ex, unpermutedTokensGrad), em_tensor(ex, sortedIndices), em_tensor(ex, probsOptional), em_tensor(ex, permutedTokensGradOut);
    em_tensor(ex, probsOptional ? probsGradOut : NULL);
    return em_ready(ex, unpermute_grad_kernel, 0);
}

/* Products of groups. Tensors: x, weight, bias and y as lists, then the groups. Integers: group type, group list type, whether y is one tensor. */

static EmTensor part_of(const EmTensor *tensor, int dim, int64_t from, int64_t count) {
    EmTensor part = *tensor;
    part.data += from * tensor->strides[dim] * (int64_t)em_item_size(tensor->dtype);
    part.dims[dim] = count;
    part.numel = 1;
    for (int d = 0; d < part.ndim; d++) part.numel *= part.dims[d];
    return part;
}

static EmTensor without_first(const EmTensor *tensor, int64_t index) {
    EmTensor part = part_of(tensor, 0, index, 1);
    part.ndim--;
    memmove(part.dims, part.dims + 1, sizeof part.dims - sizeof *part.dims);
    memmove(part.strides, part.strides + 1, sizeof part.strides - sizeof *part.strides);
    return part;
}

static void multiply(const EmTensor *x, const EmTensor *weight, const EmTensor *bias, const EmTensor *y) {
    int64_t inner = x->dims[x->ndim - 1], rows = inner ? x->numel / inner : y->numel / (weight->dims[1] ? weight->dims[1] : 1), columns = weight->dims[1];
    double *a = em_read_reals(x), *b = em_read_reals(weight), *more = bias ? em_read_reals(bias) : NULL, *out = es_doubles(rows * columns);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = more ? more[j] : 0;
            for (int64_t k = 0; k < inner; k++) sum += a[i * inner + k] * b[k * columns + j];
            out[i * columns + j] = sum;
        }
    em_write_reals(y, out);
    free(a), free(b), free(more), free(out);
}

static void grouped_kernel(EmCall *call) {
    int xs = call->list_size[0], ws = call->list_size[1], bs = call->list_size[2], ys = call->list_size[3];
    const EmTensor *x = call->tensor, *w = x + xs, *bias = w + ws, *y = bias + bs, *list = y + ys;
    int64_t type = call->integer[0];
    if (type == -1) {
        for (int g = 0; g < xs; g++) multiply(&x[g], &w[g], bs ? &bias[g] : NULL, &y[g]);
        return;
    }
    int64_t groups = list->numel, *numbers = em_read_integers(list), from = 0, total = type == 0 ? x->dims[0] : x->dims[1];
    for (int64_t g = 0; g < groups; g++) {
        int64_t to = call->integer[1] ? from + numbers[g] : numbers[g];
        if (to < from || to > total) {
            em_kernel_failed(call, ES_INDEX_ERROR, "%s: group %lld ends at %lld, which is out of range", call->name, (long long)g, (long long)to);
            break;
        }
        EmTensor weight = type == 2 ? part_of(&w[0], 0, from, to - from) : w[0].ndim == 3 ? without_first(&w[0], g) : w[g];
        EmTensor part = part_of(&x[0], type == 2 ? 1 : 0, from, to - from);
        EmTensor result = type == 2 ? without_first(&y[0], g) : part_of(&y[0], 0, from, to - from);
        EmTensor more = bs ? (bias[0].ndim == 2 ? without_first(&bias[0], g) : bias[g]) : (EmTensor){0};
        multiply(&part, &weight, bs ? &more : NULL, &result);
        from = to;
    }
    free(numbers);
}

static aclnnStatus check_group(aclOpExecutor *ex, const aclTensor *x, const aclTensor *weight, const aclTensor *bias, const aclTensor *y) {
    EM_REQUIRE(weight->ndim == 2 && x->ndim >= 2 && x->dims[x->ndim - 1] == weight->dims[0], "x and weight of a group cannot be multiplied");
    EM_REQUIRE(y->ndim == x->ndim && y->dims[y->ndim - 1] == weight->dims[1], "y of a group does not have the shape of the product");
    EM_REQUIRE(!bias || (bias->ndim == 1 && bias->dims[0] == weight->dims[1]), "bias of a group does not have a number for each column");
    return 0;
}

EM_OP(aclnnGroupedMatmulV4, const aclTensorList *x, const aclTensorList *weight, const aclTensorList *biasOptional, const aclTensorList *scaleOptional,
      const aclTensorList *offsetOptional, const aclTensorList *antiquantScaleOptional, const aclTensorList *antiquantOffsetOptional,
      const aclTensorList *perTokenScaleOptional, const aclTensor *groupListOptional, const aclTensorList *activationInputOptional,
      const aclTensorList *activationQuantScaleOptional, const aclTensorList *activationQuantOffsetOptional, int64_t splitItem, int64_t groupType, int64_t groupListType,
      int64_t actType, aclTensorList *out, aclTensorList *activationFeatureOutOptional, aclTensorList *dynQuantScaleOutOptional) {
    EM_BEGIN(aclnnGroupedMatmulV4);
    EM_NOT_NULL(x);
    EM_NOT_NULL(weight);
    EM_NOT_NULL(out);
    const aclTensorList *more[] = {scaleOptional, offsetOptional, antiquantScaleOptional, antiquantOffsetOptional, perTokenScaleOptional, activationInputOptional,
                                   activationQuantScaleOptional, activationQuantOffsetOptional, activationFeatureOutOptional, dynQuantScaleOutOptional};
    for (size_t k = 0; k < sizeof more / sizeof *more; k++) EM_REQUIRE(!more[k], "quantised groups are not in the emulator");
    EM_REQUIRE(actType == 0, "activations are not in the emulator");
    EM_REQUIRE(groupType == -1 || groupType == 0 || groupType == 2, "groupType must be -1, 0 or 2, not %lld", (long long)groupType);
    EM_REQUIRE(groupListType == 0 || groupListType == 1, "groupListType must be 0 or 1");
    EM_REQUIRE(splitItem >= 0 && splitItem <= 3, "splitItem must be 0 to 3");
    EM_REQUIRE(x->size && x->size <= 128 && weight->size && weight->size <= 128, "lists must have 1 to 128 tensors");
    aclDataType dtype = x->items[0]->dtype;
    const aclTensorList *lists[] = {x, weight, out};
    for (int l = 0; l < 3; l++)
        for (uint64_t k = 0; k < lists[l]->size; k++) EM_REQUIRE(es_in(lists[l]->items[k]->dtype, ES_FLOATS) && lists[l]->items[k]->dtype == dtype, "a dtype is not supported");
    bool biased = biasOptional && biasOptional->size;
    if (biased) {
        aclDataType wanted = dtype == ACL_BF16 ? ACL_FLOAT : dtype;
        for (uint64_t k = 0; k < biasOptional->size; k++) EM_REQUIRE(biasOptional->items[k]->dtype == wanted, "bias has dtype %d, not %d", biasOptional->items[k]->dtype, wanted);
    }
    if (groupType == -1) {
        EM_REQUIRE(x->size == weight->size && out->size == x->size && (!biased || biasOptional->size == x->size), "the lists differ in size");
        EM_REQUIRE(splitItem < 2, "splitItem must be 0 or 1 for lists");
        for (uint64_t k = 0; k < x->size; k++) TRY(check_group(ex, x->items[k], weight->items[k], biased ? biasOptional->items[k] : NULL, out->items[k]));
    } else {
        EM_NOT_NULL(groupListOptional);
        EM_REQUIRE(groupListOptional->dtype == ACL_INT64 && groupListOptional->ndim == 1, "groupList must be one-dimensional and int64");
        EM_REQUIRE(splitItem >= 2, "splitItem must be 2 or 3 where x is split");
        EM_REQUIRE(x->size == 1 && out->size == 1 && x->items[0]->ndim == 2, "x and y must be lists of one tensor of 2 dimensions for x");
        int64_t groups = groupListOptional->dims[0];
        const aclTensor *rows = x->items[0], *result = out->items[0], *first = weight->items[0];
        if (groupType == 2) {
            EM_REQUIRE(!biased, "a bias does not go with groupType 2");
            EM_REQUIRE(weight->size == 1 && first->ndim == 2 && first->dims[0] == rows->dims[1], "x and weight cannot be multiplied");
            EM_REQUIRE(result->ndim == 3 && result->dims[0] == groups && result->dims[1] == rows->dims[0] && result->dims[2] == first->dims[1], "y has another shape");
        } else {
            bool one = weight->size == 1 && first->ndim == 3;
            EM_REQUIRE(one ? first->dims[0] == groups : (int64_t)weight->size == groups, "there are not as many weights as groups");
            for (uint64_t k = 0; k < weight->size; k++) {
                const int64_t *dims = weight->items[k]->dims + (one ? 1 : 0);
                EM_REQUIRE(weight->items[k]->ndim == (one ? 3 : 2) && dims[0] == rows->dims[1] && result->ndim == 2 && result->dims[0] == rows->dims[0] &&
                           result->dims[1] == dims[1], "x, weight and y cannot be multiplied");
            }
            if (biased) EM_REQUIRE(biasOptional->size == weight->size, "bias and weight differ in size");
        }
    }
    em_list(ex, x), em_list(ex, weight), em_list(ex, biased ? biasOptional : NULL), em_list(ex, out);
    em_tensor(ex, groupListOptional);
    em_integer(ex, groupType), em_integer(ex, groupListType), em_integer(ex, splitItem);
    return em_ready(ex, grouped_kernel, 0);
}
