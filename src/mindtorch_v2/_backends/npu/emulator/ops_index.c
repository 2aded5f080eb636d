/* Taking elements by index: rows, gathered elements, PyTorch's indexing with tensors, and the gradient of embeddings. */

#include "ops_shape.h"

/* out[o, i, :] = self[o, index[i], :]. tensors: self, index, out; integer: dim. Any shape of index stands for the dimension. */
static void select_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *index = &call->tensor[1], *out = &call->tensor[2];
    int dim = (int)call->integer[0];
    int64_t outer = es_product(self->dims, 0, dim), size = self->ndim ? self->dims[dim] : 1, inner = self->ndim ? es_product(self->dims, dim + 1, self->ndim) : 1;
    size_t bytes = em_item_size(self->dtype) * (size_t)inner;
    char *from = es_pack(self, self->dtype), *into = es_alloc(out->numel, em_item_size(out->dtype));
    int64_t *indices = em_read_integers(index);
    bool fine = true;
    for (int64_t i = 0; i < index->numel && fine; i++) fine = es_plain_index(call, indices[i], size) >= 0;
    for (int64_t o = 0; o < outer && fine; o++)
        for (int64_t i = 0; i < index->numel; i++)
            memcpy(into + (size_t)(o * index->numel + i) * bytes, from + (size_t)(o * size + indices[i]) * bytes, bytes);
    if (fine) es_unpack(out, into);
    free(from);
    free(into);
    free(indices);
}

EM_OP(aclnnIndexSelect, const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out) {
    EM_BEGIN(aclnnIndexSelect);
    EM_NOT_NULL(self);
    EM_NOT_NULL(index);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    ES_DTYPE(index, ES_INDICES);
    EM_REQUIRE(index->ndim <= 1, "index must have one dimension");
    ES_DIM(at, dim, self);
    int64_t dims[EM_MAX_DIMS];
    memcpy(dims, self->dims, sizeof dims);
    if (self->ndim) dims[at] = em_numel(index);
    EM_REQUIRE(es_has_shape(out, self->ndim, dims), "out does not have the shape of the selection");
    em_tensor(ex, self);
    em_tensor(ex, index);
    em_tensor(ex, out);
    em_integer(ex, at);
    return em_ready(ex, select_kernel, 0);
}

EM_OP(aclnnEmbedding, const aclTensor *weight, const aclTensor *indices, const aclTensor *out) {
    EM_BEGIN(aclnnEmbedding);
    EM_NOT_NULL(weight);
    EM_NOT_NULL(indices);
    EM_NOT_NULL(out);
    ES_DTYPE(weight, ES_ANY);
    ES_SAME_DTYPE(weight, out);
    ES_DTYPE(indices, ES_INDICES);
    ES_RANK(weight, 2);
    EM_REQUIRE(indices->ndim < EM_MAX_DIMS, "indices has too many dimensions");
    int64_t dims[EM_MAX_DIMS];
    memcpy(dims, indices->dims, sizeof dims);
    dims[indices->ndim] = weight->dims[1];
    EM_REQUIRE(es_has_shape(out, indices->ndim + 1, dims), "out does not have the shape of indices and one row");
    em_tensor(ex, weight);
    em_tensor(ex, indices);
    em_tensor(ex, out);
    em_integer(ex, 0);
    return em_ready(ex, select_kernel, 0);
}

/* tensors: grad, indices, out; integers: the row without gradient (-1: none), whether to divide by frequency. */
static void embedding_backward_kernel(EmCall *call) {
    const EmTensor *grad = &call->tensor[0], *indices = &call->tensor[1], *out = &call->tensor[2];
    int64_t rows = out->dims[0], width = out->dims[1], *index = em_read_integers(indices), *counts = es_int64s(rows);
    double *gradients = em_read_reals(grad), *sums = es_doubles(out->numel);
    bool fine = true;
    for (int64_t i = 0; i < indices->numel && fine; i++) {
        fine = es_plain_index(call, index[i], rows) >= 0;
        if (fine) counts[index[i]]++;
    }
    for (int64_t i = 0; i < indices->numel && fine; i++) {
        if (index[i] == call->integer[0]) continue;
        double scale = call->integer[1] ? (double)counts[index[i]] : 1;
        for (int64_t j = 0; j < width; j++) sums[index[i] * width + j] += gradients[i * width + j] / scale;
    }
    if (fine) em_write_reals(out, sums);
    free(index);
    free(counts);
    free(gradients);
    free(sums);
}

EM_OP(aclnnEmbeddingDenseBackward, const aclTensor *grad, const aclTensor *indices, uint64_t numWeights, uint64_t paddingIdx, bool scaleGradByFreq,
      const aclTensor *out) {
    EM_BEGIN(aclnnEmbeddingDenseBackward);
    EM_NOT_NULL(grad);
    EM_NOT_NULL(indices);
    EM_NOT_NULL(out);
    ES_DTYPE(grad, ES_REALS);
    ES_SAME_DTYPE(grad, out);
    ES_DTYPE(indices, ES_INDICES);
    EM_REQUIRE(grad->ndim >= 1, "grad must have dimensions");
    int64_t width = grad->dims[grad->ndim - 1], dims[2] = {(int64_t)numWeights, width};
    EM_REQUIRE(em_numel(grad) == em_numel(indices) * width, "grad does not have a row for each of indices");
    EM_REQUIRE(es_has_shape(out, 2, dims), "out does not have the shape of the weight");
    em_tensor(ex, grad);
    em_tensor(ex, indices);
    em_tensor(ex, out);
    em_integer(ex, (int64_t)paddingIdx);
    em_integer(ex, scaleGradByFreq);
    return em_ready(ex, embedding_backward_kernel, 0);
}

/* tensors: self, index, out; integer: dim. */
static void gather_kernel(EmCall *call) {
    EmTensor self = call->tensor[0], index = call->tensor[1], out = call->tensor[2];
    int dim = (int)call->integer[0], ndim = self.ndim;
    size_t bytes = em_item_size(self.dtype);
    char *from = es_pack(&self, self.dtype), *into = es_alloc(out.numel, bytes);
    int64_t *indices = em_read_integers(&index), at[EM_MAX_DIMS] = {0};
    EmTensor packed = es_packed(self.dtype, ndim, self.dims, from);
    bool fine = true;
    for (int64_t i = 0; i < index.numel && fine; i++, es_next(ndim, index.dims, at)) {
        int64_t found = es_plain_index(call, indices[i], ndim ? self.dims[dim] : 1), position = 0;
        fine = found >= 0;
        for (int d = 0; d < ndim; d++) position += (d == dim ? found : at[d]) * packed.strides[d];
        if (fine) memcpy(into + (size_t)i * bytes, from + (size_t)position * bytes, bytes);
    }
    if (fine) es_unpack(&out, into);
    free(from);
    free(into);
    free(indices);
}

EM_OP(aclnnGather, const aclTensor *self, const int64_t dim, const aclTensor *index, aclTensor *out) {
    EM_BEGIN(aclnnGather);
    EM_NOT_NULL(self);
    EM_NOT_NULL(index);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    ES_DTYPE(index, ES_INDICES);
    ES_SAME_SHAPE(index, out);
    EM_REQUIRE(self->ndim == index->ndim, "self and index differ in their number of dimensions");
    ES_DIM(at, dim, self);
    for (int d = 0; d < self->ndim; d++) EM_REQUIRE(d == at || index->dims[d] <= self->dims[d], "index is larger than self in dimension %d", d);
    em_tensor(ex, self);
    em_tensor(ex, index);
    em_tensor(ex, out);
    em_integer(ex, at);
    return em_ready(ex, gather_kernel, 0);
}

static void take_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *index = &call->tensor[1], *out = &call->tensor[2];
    size_t bytes = em_item_size(self->dtype);
    char *from = es_pack(self, self->dtype), *into = es_alloc(out->numel, bytes);
    int64_t *indices = em_read_integers(index);
    bool fine = true;
    for (int64_t i = 0; i < index->numel && fine; i++) {
        int64_t found = es_index(call, indices[i], self->numel);
        fine = found >= 0;
        if (fine) memcpy(into + (size_t)i * bytes, from + (size_t)found * bytes, bytes);
    }
    if (fine) es_unpack(out, into);
    free(from);
    free(into);
    free(indices);
}

EM_OP(aclnnTake, const aclTensor *self, const aclTensor *index, aclTensor *out) {
    EM_BEGIN(aclnnTake);
    EM_NOT_NULL(self);
    EM_NOT_NULL(index);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    ES_DTYPE(index, ES_INDICES);
    ES_SAME_SHAPE(index, out);
    em_tensor(ex, self);
    em_tensor(ex, index);
    em_tensor(ex, out);
    return em_ready(ex, take_kernel, 0);
}

/* Note [Indexing with tensors]
 * An index without elements stands for a whole dimension, as the host has no other way to say so in a list (NULL is understood too). A mask of bools covers as many
 * dimensions as it has, and becomes one list of positions for each. The indices broadcast; their dimensions stand where they were when they are neighbours, else in front. */
typedef struct Place { bool defined; int ndim; int64_t dims[EM_MAX_DIMS]; int64_t *values; } Place;

/* The shape of self[places]; false when the indices do not broadcast or it has too many dimensions. `first`: where the indices' own dimensions stand. */
static bool indexed_shape(int self_ndim, const int64_t *self_dims, const Place *places, int *ndim, int64_t *dims, int *own_ndim, int64_t *own, int *first) {
    int start = -1, end = -1, defined = 0;
    *own_ndim = 0;
    for (int p = 0; p < self_ndim; p++) {
        if (!places[p].defined) continue;
        if (start < 0) start = p;
        end = p;
        defined++;
        if (places[p].ndim > *own_ndim) *own_ndim = places[p].ndim;
    }
    for (int d = 0; d < *own_ndim; d++) own[d] = 1;
    for (int p = 0; p < self_ndim; p++) {
        if (!places[p].defined) continue;
        for (int d = 0; d < places[p].ndim; d++) {
            int64_t size = places[p].dims[d], *into = &own[*own_ndim - places[p].ndim + d];
            if (size != *into && size != 1 && *into != 1) return false;
            if (size != 1) *into = size;
        }
    }
    *first = defined && end - start + 1 == defined ? start : 0;
    if (*own_ndim + self_ndim - defined > EM_MAX_DIMS) return false;
    *ndim = 0;
    for (int p = 0; p < self_ndim; p++) {
        for (int d = 0; defined && p == *first && d < *own_ndim; d++) dims[(*ndim)++] = own[d];
        if (!places[p].defined) dims[(*ndim)++] = self_dims[p];
    }
    return true;
}

/* The places of a list of index tensors; false when a mask does not fit or a list is too long (a failure is told). */
static bool read_places(EmCall *call, const EmTensor *self, const EmTensor *index, int count, Place *places) {
    int at = 0;
    for (int i = 0; i < count; i++, index++) {
        bool mask = index->present && (index->dtype == ACL_BOOL || index->dtype == ACL_UINT8);
        if (!index->present || index->numel == 0) {
            at++;
            continue;
        }
        int covers = mask ? index->ndim : 1;
        if (at + covers > self->ndim) {
            em_kernel_failed(call, ES_INDEX_ERROR, "%s: too many indices", call->name);
            return false;
        }
        int64_t *values = em_read_integers(index);
        if (!mask) {
            for (int64_t k = 0; k < index->numel; k++)
                if ((values[k] = es_index(call, values[k], self->dims[at])) < 0) {
                    free(values);
                    return false;
                }
            places[at].defined = true;
            places[at].ndim = index->ndim;
            memcpy(places[at].dims, index->dims, sizeof index->dims);
            places[at++].values = values;
            continue;
        }
        int64_t found = 0, position[EM_MAX_DIMS] = {0};
        for (int d = 0; d < covers; d++)
            if (index->dims[d] != self->dims[at + d]) {
                em_kernel_failed(call, ES_INDEX_ERROR, "%s: a mask has another shape than what it covers", call->name);
                free(values);
                return false;
            }
        for (int64_t k = 0; k < index->numel; k++) found += values[k] != 0;
        for (int d = 0; d < covers; d++) places[at + d] = (Place){.defined = true, .ndim = 1, .dims = {found}, .values = es_int64s(found)};
        found = 0;
        for (int64_t k = 0; k < index->numel; k++, es_next(covers, index->dims, position)) {
            if (!values[k]) continue;
            for (int d = 0; d < covers; d++) places[at + d].values[found] = position[d];
            found++;
        }
        free(values);
        at += covers;
    }
    return true;
}

/* Positions in packed self of every element of self[indices], with the shape of these; NULL after a failure that is told. */
static int64_t *indexed_positions(EmCall *call, const EmTensor *self, const EmTensor *index, int count, int *ndim, int64_t *dims) {
    Place places[EM_MAX_DIMS + 1] = {0};
    int own_ndim, first;
    int64_t own[EM_MAX_DIMS], *positions = NULL;
    if (!read_places(call, self, index, count, places)) goto done;
    if (!indexed_shape(self->ndim, self->dims, places, ndim, dims, &own_ndim, own, &first)) {
        em_kernel_failed(call, ES_INDEX_ERROR, "%s: the indices do not broadcast", call->name);
        goto done;
    }
    EmTensor packed = es_packed(self->dtype, self->ndim, self->dims, NULL);
    int64_t total = es_product(dims, 0, *ndim), at[EM_MAX_DIMS] = {0};
    positions = es_int64s(total);
    for (int64_t i = 0; i < total; i++, es_next(*ndim, dims, at)) {
        int axis = first == 0 ? own_ndim : 0; /* the next dimension of the result that is one of self's own */
        for (int p = 0; p < self->ndim; p++) {
            int64_t chosen;
            if (places[p].defined) {
                int64_t linear = 0;
                for (int d = 0; d < places[p].ndim; d++) {
                    int64_t where = at[first + own_ndim - places[p].ndim + d];
                    linear = linear * places[p].dims[d] + (places[p].dims[d] == 1 ? 0 : where);
                }
                chosen = places[p].values[linear];
            } else {
                if (axis == first && first > 0) axis += own_ndim;
                chosen = at[axis++];
            }
            positions[i] += chosen * packed.strides[p];
        }
    }
done:
    for (int p = 0; p <= EM_MAX_DIMS; p++) free(places[p].values);
    return positions;
}

static bool has_numel(EmCall *call, int ndim, const int64_t *dims, const EmTensor *out) {
    bool same = ndim == out->ndim;
    for (int d = 0; same && d < ndim; d++) same = dims[d] == out->dims[d];
    if (!same) em_kernel_failed(call, ES_INDEX_ERROR, "%s: out does not have the shape of the indexed elements", call->name);
    return same;
}

static void index_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out = &call->tensor[call->tensors - 1];
    int ndim;
    int64_t dims[EM_MAX_DIMS];
    if (out->numel == 0) return;
    int64_t *positions = indexed_positions(call, self, self + 1, call->list_size[0], &ndim, dims);
    if (!positions) return;
    if (has_numel(call, ndim, dims, out)) {
        size_t bytes = em_item_size(self->dtype);
        char *from = es_pack(self, self->dtype), *into = es_alloc(out->numel, bytes);
        for (int64_t i = 0; i < out->numel; i++) memcpy(into + (size_t)i * bytes, from + (size_t)positions[i] * bytes, bytes);
        es_unpack(out, into);
        free(from);
        free(into);
    }
    free(positions);
}

/* Checks what can be known of a list before the values of its masks are; `ndim` is -1 when masks leave the shape open. */
static aclnnStatus check_indices(aclOpExecutor *ex, const aclTensor *self, const aclTensorList *indices, int *ndim, int64_t *dims) {
    Place places[EM_MAX_DIMS] = {0};
    bool open = false;
    EM_REQUIRE(self->ndim >= 1, "self must have dimensions");
    EM_REQUIRE(indices->size >= 1 && (int64_t)indices->size <= self->ndim, "there are %d indices for %d dimensions", (int)indices->size,
               self->ndim);
    for (uint64_t i = 0; i < indices->size; i++) {
        const aclTensor *index = indices->items[i];
        if (!index || em_numel(index) == 0) continue;
        ES_DTYPE(index, ES_INDICES | ES_BOOL);
        open |= index->dtype == ACL_BOOL;
        places[i].defined = true;
        places[i].ndim = index->ndim;
        memcpy(places[i].dims, index->dims, sizeof index->dims);
    }
    int own_ndim, first;
    int64_t own[EM_MAX_DIMS];
    *ndim = -1;
    if (!open) EM_REQUIRE(indexed_shape(self->ndim, self->dims, places, ndim, dims, &own_ndim, own, &first), "the indices do not broadcast");
    return ACL_SUCCESS;
}

EM_OP(aclnnIndex, const aclTensor *self, const aclTensorList *indices, aclTensor *out) {
    EM_BEGIN(aclnnIndex);
    EM_NOT_NULL(self);
    EM_NOT_NULL(indices);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_COMMON);
    ES_SAME_DTYPE(self, out);
    int ndim;
    int64_t dims[EM_MAX_DIMS];
    aclnnStatus status = check_indices(ex, self, indices, &ndim, dims);
    if (status) return status;
    EM_REQUIRE(ndim < 0 || em_numel(out) == 0 || es_has_shape(out, ndim, dims), "out does not have the shape of the indexed elements");
    em_tensor(ex, self);
    em_list(ex, indices);
    em_tensor(ex, out);
    return em_ready(ex, index_kernel, 0);
}

/* tensors: self, values, indices ...; integer: whether to accumulate. */
static void index_put_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *values = &call->tensor[1];
    int ndim;
    int64_t dims[EM_MAX_DIMS];
    if (values->numel == 0) return;
    int64_t *positions = indexed_positions(call, self, self + 2, call->list_size[0], &ndim, dims);
    if (!positions) return;
    int64_t total = es_product(dims, 0, ndim);
    bool fits = values->ndim <= ndim;
    for (int d = 1; fits && d <= values->ndim; d++) fits = values->dims[values->ndim - d] == 1 || values->dims[values->ndim - d] == dims[ndim - d];
    if (!fits) {
        em_kernel_failed(call, ES_INDEX_ERROR, "aclnnIndexPutImpl: values do not broadcast to the indexed elements");
    } else if (total) {
        EmTensor spread = em_expand(values, ndim, dims);
        if (call->integer[0]) {
            bool whole = es_whole(self->dtype);
            EsNumbers into = es_numbers(self, whole), from = es_numbers(&spread, whole);
            for (int64_t i = 0; i < total; i++) {
                if (whole) into.integers[positions[i]] += from.integers[i];
                else into.reals[positions[i]] += from.reals[i];
            }
            es_put_numbers(self, into);
            es_free_numbers(into);
            es_free_numbers(from);
        } else {
            size_t bytes = em_item_size(self->dtype);
            char *into = es_pack(self, self->dtype), *from = es_pack(&spread, self->dtype);
            for (int64_t i = 0; i < total; i++) memcpy(into + (size_t)positions[i] * bytes, from + (size_t)i * bytes, bytes);
            es_unpack(self, into);
            free(into);
            free(from);
        }
    }
    free(positions);
}

EM_OP(aclnnIndexPutImpl, aclTensor *selfRef, const aclTensorList *indices, const aclTensor *values, const bool accumulate, const bool unsafe) {
    EM_BEGIN(aclnnIndexPutImpl);
    (void)unsafe;
    EM_NOT_NULL(selfRef);
    EM_NOT_NULL(indices);
    EM_NOT_NULL(values);
    ES_DTYPE(selfRef, ES_COMMON);
    ES_SAME_DTYPE(selfRef, values);
    int ndim;
    int64_t dims[EM_MAX_DIMS];
    aclnnStatus status = check_indices(ex, selfRef, indices, &ndim, dims);
    if (status) return status;
    em_tensor(ex, selfRef);
    em_tensor(ex, values);
    em_list(ex, indices);
    em_integer(ex, accumulate);
    return em_ready(ex, index_put_kernel, 0);
}
