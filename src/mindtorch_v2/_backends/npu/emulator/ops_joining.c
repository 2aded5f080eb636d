/* Operators that put elements elsewhere: joining, flipping, rolling, repeating, triangles, diagonals, permuting. */

#include "ops_shape.h"

/* tensors: the list, then out; integers: dim, whether the tensors are stacked. */
static void cat_kernel(EmCall *call) {
    EmTensor out = call->tensor[call->tensors - 1];
    int dim = (int)call->integer[0], count = call->list_size[0];
    bool stack = call->integer[1];
    char **packed = es_alloc(count, sizeof(char *));
    for (int i = 0; i < count; i++) packed[i] = es_pack(&call->tensor[i], out.dtype);
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        EmTensor part = out;
        int64_t size = stack ? 1 : call->tensor[i].dims[dim];
        if (!stack && call->tensor[i].ndim == 1 && call->tensor[i].numel == 0) size = 0;
        if (size) {
            part.dims[dim] = size;
            part.numel = out.dims[dim] ? out.numel / out.dims[dim] * size : 0;
            part.data += at * out.strides[dim] * (int64_t)em_item_size(out.dtype);
            es_unpack(&part, packed[i]);
            at += size;
        }
        free(packed[i]);
    }
    free(packed);
}

EM_OP(aclnnCat, const aclTensorList *tensors, int64_t dim, aclTensor *out) {
    EM_BEGIN(aclnnCat);
    EM_NOT_NULL(tensors);
    EM_NOT_NULL(out);
    ES_DTYPE(out, ES_ANY);
    EM_REQUIRE(tensors->size > 0, "there are no tensors to join");
    ES_DIM(at, dim, out);
    int64_t total = 0;
    for (uint64_t i = 0; i < tensors->size; i++) {
        const aclTensor *tensor = tensors->items[i];
        EM_NOT_NULL(tensor);
        ES_DTYPE(tensor, ES_ANY);
        EM_REQUIRE(em_promote(tensor->dtype, out->dtype) == out->dtype, "tensor %d has a dtype that out's does not hold", (int)i);
        if (tensor->ndim == 1 && em_numel(tensor) == 0) continue;
        EM_REQUIRE(tensor->ndim == out->ndim, "tensor %d has another number of dimensions than out", (int)i);
        for (int d = 0; d < out->ndim; d++) EM_REQUIRE(d == at || tensor->dims[d] == out->dims[d], "tensor %d differs from out in dimension %d", (int)i, d);
        total += tensor->ndim ? tensor->dims[at] : 1;
    }
    EM_REQUIRE(out->ndim >= 1, "tensors without dimensions cannot be joined");
    EM_REQUIRE(total == out->dims[at], "out does not have the size of the joined tensors");
    em_list(ex, tensors);
    em_tensor(ex, out);
    em_integer(ex, at);
    em_integer(ex, false);
    return em_ready(ex, cat_kernel, 0);
}

EM_OP(aclnnStack, const aclTensorList *tensors, int64_t dim, aclTensor *out) {
    EM_BEGIN(aclnnStack);
    EM_NOT_NULL(tensors);
    EM_NOT_NULL(out);
    ES_DTYPE(out, ES_ANY);
    EM_REQUIRE(tensors->size > 0, "there are no tensors to stack");
    ES_DIM(at, dim, out);
    EM_REQUIRE(out->ndim >= 1 && out->dims[at] == (int64_t)tensors->size, "out does not have a place for each tensor");
    for (uint64_t i = 0; i < tensors->size; i++) {
        const aclTensor *tensor = tensors->items[i];
        EM_NOT_NULL(tensor);
        ES_DTYPE(tensor, ES_ANY);
        EM_REQUIRE(em_promote(tensor->dtype, out->dtype) == out->dtype, "tensor %d has a dtype that out's does not hold", (int)i);
        EM_REQUIRE(tensor->ndim + 1 == out->ndim, "tensor %d does not have one dimension less than out", (int)i);
        for (int d = 0; d < tensor->ndim; d++) EM_REQUIRE(tensor->dims[d] == out->dims[d + (d >= at)], "tensor %d differs from out in dimension %d", (int)i, d);
    }
    em_list(ex, tensors);
    em_tensor(ex, out);
    em_integer(ex, at);
    em_integer(ex, true);
    return em_ready(ex, cat_kernel, 0);
}

/* Writes `view`, which aliases self's memory, to out. */
static void copy_view(const EmTensor *view, const EmTensor *out) {
    char *packed = es_pack(view, out->dtype);
    es_unpack(out, packed);
    free(packed);
}

static aclnnStatus moved(aclOpExecutor *ex, const aclTensor *self, const aclIntArray *array, aclTensor *out, EmKernel kernel) {
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_array(ex, array);
    return em_ready(ex, kernel, 0);
}

static void flip_kernel(EmCall *call) {
    EmTensor view = call->tensor[0];
    for (int i = 0; i < call->array[0].size && view.ndim; i++) {
        int dim = em_dim(&view, call->array[0].values[i]);
        if (view.numel) view.data += (view.dims[dim] - 1) * view.strides[dim] * (int64_t)em_item_size(view.dtype);
        view.strides[dim] = -view.strides[dim];
    }
    copy_view(&view, &call->tensor[1]);
}

EM_OP(aclnnFlip, const aclTensor *self, const aclIntArray *dims, aclTensor *out) {
    EM_BEGIN(aclnnFlip);
    EM_NOT_NULL(self);
    EM_NOT_NULL(dims);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    ES_SAME_SHAPE(self, out);
    bool marked[EM_MAX_DIMS];
    EM_REQUIRE(es_mark(dims->values, (int64_t)dims->size, self->ndim, marked), "a dimension is out of range or named twice");
    return moved(ex, self, dims, out, flip_kernel);
}

static void permute_kernel(EmCall *call) {
    EmTensor view = call->tensor[0];
    for (int d = 0; d < view.ndim; d++) {
        int from = em_dim(&call->tensor[0], call->array[0].values[d]);
        view.dims[d] = call->tensor[0].dims[from];
        view.strides[d] = call->tensor[0].strides[from];
    }
    copy_view(&view, &call->tensor[1]);
}

EM_OP(aclnnPermute, const aclTensor *self, const aclIntArray *dims, aclTensor *out) {
    EM_BEGIN(aclnnPermute);
    EM_NOT_NULL(self);
    EM_NOT_NULL(dims);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    bool marked[EM_MAX_DIMS];
    EM_REQUIRE((int)dims->size == self->ndim && es_mark(dims->values, (int64_t)dims->size, self->ndim, marked), "dims is no permutation");
    int64_t shape[EM_MAX_DIMS];
    for (int d = 0; d < self->ndim; d++) shape[d] = self->dims[es_wrap(dims->values[d], self->ndim)];
    EM_REQUIRE(es_has_shape(out, self->ndim, shape), "out does not have the permuted shape");
    return moved(ex, self, dims, out, permute_kernel);
}

/* arrays: shifts, dims; without dims the flattened elements are rolled. */
static void roll_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out = &call->tensor[1];
    size_t bytes = em_item_size(self->dtype);
    char *from = es_pack(self, self->dtype), *into = es_alloc(self->numel, bytes);
    int64_t flat = self->numel, offsets[EM_MAX_DIMS] = {0}, at[EM_MAX_DIMS] = {0};
    bool all = call->array[1].size == 0;
    const int64_t *dims = all ? &flat : self->dims;
    int ndim = all ? 1 : self->ndim;
    for (int i = 0; i < call->array[0].size && flat; i++) {
        int dim = all ? 0 : em_dim(self, call->array[1].values[i]);
        if (ndim) offsets[dim] = ((offsets[dim] + call->array[0].values[i]) % dims[dim] + dims[dim]) % dims[dim];
    }
    for (int64_t i = 0; i < flat; i++, es_next(ndim, dims, at)) {
        int64_t to = 0;
        for (int d = 0; d < ndim; d++) to = to * dims[d] + (at[d] + offsets[d]) % dims[d];
        memcpy(into + (size_t)to * bytes, from + (size_t)i * bytes, bytes);
    }
    es_unpack(out, into);
    free(from);
    free(into);
}

EM_OP(aclnnRoll, const aclTensor *x, const aclIntArray *shifts, const aclIntArray *dims, aclTensor *out) {
    EM_BEGIN(aclnnRoll);
    EM_NOT_NULL(x);
    EM_NOT_NULL(shifts);
    EM_NOT_NULL(dims);
    EM_NOT_NULL(out);
    ES_DTYPE(x, ES_ANY);
    ES_SAME_DTYPE(x, out);
    ES_SAME_SHAPE(x, out);
    EM_REQUIRE(shifts->size == dims->size || (shifts->size == 1 && dims->size == 0), "shifts and dims differ in size");
    for (uint64_t i = 0; i < dims->size; i++) EM_REQUIRE(es_wrap(dims->values[i], x->ndim) >= 0, "a dimension is out of range");
    em_tensor(ex, x);
    em_tensor(ex, out);
    em_array(ex, shifts);
    em_array(ex, dims);
    return em_ready(ex, roll_kernel, 0);
}

static void repeat_kernel(EmCall *call) {
    EmTensor self = call->tensor[0], out = call->tensor[1];
    size_t bytes = em_item_size(self.dtype);
    char *from = es_pack(&self, self.dtype), *into = es_alloc(out.numel, bytes);
    int64_t at[EM_MAX_DIMS] = {0};
    int front = out.ndim - self.ndim;
    for (int64_t i = 0; i < out.numel; i++, es_next(out.ndim, out.dims, at)) {
        int64_t source = 0;
        for (int d = 0; d < self.ndim; d++) source = source * self.dims[d] + at[front + d] % self.dims[d];
        memcpy(into + (size_t)i * bytes, from + (size_t)source * bytes, bytes);
    }
    es_unpack(&out, into);
    free(from);
    free(into);
}

EM_OP(aclnnRepeat, const aclTensor *self, const aclIntArray *repeats, aclTensor *out) {
    EM_BEGIN(aclnnRepeat);
    EM_NOT_NULL(self);
    EM_NOT_NULL(repeats);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    EM_REQUIRE((int)repeats->size >= self->ndim && repeats->size <= EM_MAX_DIMS, "repeats must have a number for each dimension, and at most %d", EM_MAX_DIMS);
    EM_REQUIRE(repeats->size <= 4, "repeats has %d numbers, but at most 4 are supported", (int)repeats->size);
    int64_t dims[EM_MAX_DIMS];
    for (int d = 0; d < (int)repeats->size; d++) {
        int own = d - ((int)repeats->size - self->ndim);
        EM_REQUIRE(repeats->values[d] >= 0, "a number of repeats is negative");
        dims[d] = repeats->values[d] * (own >= 0 ? self->dims[own] : 1);
    }
    EM_REQUIRE(es_has_shape(out, (int)repeats->size, dims), "out does not have the shape of the repeated tensor");
    return moved(ex, self, repeats, out, repeat_kernel);
}

/* integers: the diagonal, whether what is above it stays. */
static void triangle_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    size_t bytes = em_item_size(self->dtype);
    char *packed = es_pack(self, self->dtype);
    int64_t rows = self->dims[self->ndim - 2], columns = self->dims[self->ndim - 1], diagonal = call->integer[0];
    for (int64_t i = 0; i < self->numel; i++) {
        int64_t offset = i % columns - i / columns % rows;
        if (call->integer[1] ? offset < diagonal : offset > diagonal) memset(packed + (size_t)i * bytes, 0, bytes);
    }
    es_unpack(&call->tensor[1], packed);
    free(packed);
}

static aclnnStatus triangle(aclOpExecutor *ex, const aclTensor *self, int64_t diagonal, bool upper, aclTensor *out) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    ES_SAME_SHAPE(self, out);
    EM_REQUIRE(self->ndim >= 2, "self must have at least 2 dimensions");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, diagonal);
    em_integer(ex, upper);
    return em_ready(ex, triangle_kernel, 0);
}

EM_OP(aclnnTril, const aclTensor *self, int64_t diagonal, aclTensor *out) {
    EM_BEGIN(aclnnTril);
    return triangle(ex, self, diagonal, false, out);
}

EM_OP(aclnnTriu, const aclTensor *self, int64_t diagonal, aclTensor *out) {
    EM_BEGIN(aclnnTriu);
    return triangle(ex, self, diagonal, true, out);
}

/* The diagonal of a matrix as a view of it. */
static EmTensor diagonal_of(EmTensor matrix, int64_t diagonal, int64_t length) {
    int64_t row = diagonal < 0 ? -diagonal : 0, column = diagonal > 0 ? diagonal : 0;
    if (length) matrix.data += (row * matrix.strides[0] + column * matrix.strides[1]) * (int64_t)em_item_size(matrix.dtype);
    matrix.strides[0] += matrix.strides[1];
    matrix.dims[0] = matrix.numel = length;
    matrix.ndim = 1;
    return matrix;
}

static void diag_kernel(EmCall *call) {
    EmTensor self = call->tensor[0], out = call->tensor[1];
    if (self.ndim == 2) {
        EmTensor view = diagonal_of(self, call->integer[0], out.numel);
        copy_view(&view, &out);
        return;
    }
    char *line = es_pack(&self, self.dtype), *zeros = es_alloc(out.numel, em_item_size(out.dtype));
    es_unpack(&out, zeros);
    EmTensor view = diagonal_of(out, call->integer[0], self.numel);
    es_unpack(&view, line);
    free(line);
    free(zeros);
}

EM_OP(aclnnDiag, const aclTensor *self, int64_t diagonal, aclTensor *out) {
    EM_BEGIN(aclnnDiag);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    EM_REQUIRE(self->ndim == 1 || self->ndim == 2, "self must have 1 or 2 dimensions");
    if (self->ndim == 1) {
        int64_t side = self->dims[0] + (diagonal < 0 ? -diagonal : diagonal), dims[2] = {side, side};
        EM_REQUIRE(es_has_shape(out, 2, dims), "out does not have the shape of the matrix");
    } else {
        int64_t rows = self->dims[0] + (diagonal < 0 ? diagonal : 0), columns = self->dims[1] - (diagonal > 0 ? diagonal : 0);
        int64_t length = rows < columns ? rows : columns;
        if (length < 0) length = 0;
        EM_REQUIRE(es_has_shape(out, 1, &length), "out does not have the length of the diagonal");
    }
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, diagonal);
    return em_ready(ex, diag_kernel, 0);
}

/* tensors: self, repeats (absent: the second integer for all), out. */
static void repeat_interleave_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *repeats = &call->tensor[1], *out = &call->tensor[2];
    size_t bytes = em_item_size(self->dtype);
    char *from = es_pack(self, self->dtype), *into = es_alloc(out->numel, bytes);
    int64_t *counts = repeats->present ? em_read_integers(repeats) : NULL, at = 0;
    bool fine = true;
    for (int64_t i = 0; i < self->numel && fine; i++) {
        int64_t count = counts ? counts[repeats->numel == 1 ? 0 : i] : call->integer[0];
        fine = count >= 0 && at + count <= out->numel;
        for (int64_t k = 0; k < count && fine; k++, at++) memcpy(into + (size_t)at * bytes, from + (size_t)i * bytes, bytes);
    }
    if (fine && at == out->numel) es_unpack(out, into);
    else em_kernel_failed(call, ES_INDEX_ERROR, "%s: repeats do not add up to outputSize", call->name);
    free(from);
    free(into);
    free(counts);
}

EM_OP(aclnnRepeatInterleave, const aclTensor *self, const aclTensor *repeats, int64_t outputSize, aclTensor *out) {
    EM_BEGIN(aclnnRepeatInterleave);
    EM_NOT_NULL(self);
    EM_NOT_NULL(repeats);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    ES_DTYPE(repeats, ES_INDICES);
    EM_REQUIRE(repeats->ndim <= 1 && (em_numel(repeats) == 1 || em_numel(repeats) == em_numel(self)), "repeats must have 1 number or one per element");
    EM_REQUIRE(es_has_shape(out, 1, &outputSize), "out does not have outputSize elements");
    em_tensor(ex, self);
    em_tensor(ex, repeats);
    em_tensor(ex, out);
    return em_ready(ex, repeat_interleave_kernel, 0);
}

EM_OP(aclnnRepeatInterleaveInt, const aclTensor *self, int64_t repeats, int64_t outputSize, aclTensor *out) {
    EM_BEGIN(aclnnRepeatInterleaveInt);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    EM_REQUIRE(repeats >= 0 && outputSize == repeats * em_numel(self), "outputSize is not the number of repeated elements");
    EM_REQUIRE(es_has_shape(out, 1, &outputSize), "out does not have outputSize elements");
    em_tensor(ex, self);
    em_tensor(ex, NULL);
    em_tensor(ex, out);
    em_integer(ex, repeats);
    return em_ready(ex, repeat_interleave_kernel, 0);
}
