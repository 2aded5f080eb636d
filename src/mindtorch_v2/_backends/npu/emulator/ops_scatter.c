/* Putting elements at indices: scatter, index_add, index_copy, index_fill, put, one_hot. */

#include "ops_shape.h"

enum { REPLACE, ADD, MULTIPLY };

static void combine(EsNumbers into, int64_t at, EsNumbers from, int64_t position, int64_t reduce) {
    if (into.whole) {
        int64_t *x = &into.integers[at], y = from.integers[position];
        *x = reduce == ADD ? *x + y : reduce == MULTIPLY ? *x * y : y;
    } else {
        double *x = &into.reals[at], y = from.reals[position];
        *x = reduce == ADD ? *x + y : reduce == MULTIPLY ? *x * y : y;
    }
}

/* tensors: self, index, src (absent: the scalar), out; integers: dim, reduce. */
static void scatter_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *index = &call->tensor[1], *src = &call->tensor[2], *out = &call->tensor[3];
    int dim = (int)call->integer[0], ndim = self->ndim;
    bool whole = es_whole(self->dtype), fine = true;
    int64_t *indices = em_read_integers(index), at[EM_MAX_DIMS] = {0}, value_integer;
    double value_real;
    EsNumbers into = es_numbers(self, whole), from = {.whole = whole};
    EmTensor packed = es_packed(self->dtype, ndim, self->dims, NULL), source = {0};
    if (src->present) {
        from = es_numbers(src, whole);
        source = es_packed(src->dtype, ndim, src->dims, NULL);
    } else {
        value_real = call->scalar[0].real;
        value_integer = es_whole(call->scalar[0].dtype) ? call->scalar[0].integer : (int64_t)value_real;
        from.reals = &value_real;
        from.integers = &value_integer;
    }
    for (int64_t i = 0; i < index->numel && fine; i++, es_next(ndim, index->dims, at)) {
        int64_t found = es_plain_index(call, indices[i], ndim ? self->dims[dim] : 1), to = 0, position = 0;
        fine = found >= 0;
        for (int d = 0; d < ndim; d++) {
            to += (d == dim ? found : at[d]) * packed.strides[d];
            position += at[d] * source.strides[d];
        }
        if (fine) combine(into, to, from, position, call->integer[1]);
    }
    if (fine) es_put_numbers(out, into);
    es_free_numbers(into);
    if (src->present) es_free_numbers(from);
    free(indices);
}

static aclnnStatus scatter(aclOpExecutor *ex, const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *src, const aclScalar *value,
                           int64_t reduce, const aclTensor *out) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(index);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_COMMON);
    ES_SAME_DTYPE(self, out);
    ES_SAME_SHAPE(self, out);
    ES_DTYPE(index, ES_INDICES);
    EM_REQUIRE(reduce >= REPLACE && reduce <= MULTIPLY, "reduce must be 0, 1 or 2, not %lld", (long long)reduce);
    EM_REQUIRE(self->ndim == index->ndim, "self and index differ in their number of dimensions");
    ES_DIM(at, dim, self);
    if (src) {
        ES_SAME_DTYPE(self, src);
        EM_REQUIRE(self->ndim == src->ndim, "self and src differ in their number of dimensions");
    }
    for (int d = 0; d < self->ndim && em_numel(index); d++) {
        EM_REQUIRE(!src || index->dims[d] <= src->dims[d], "index is larger than src in dimension %d", d);
        EM_REQUIRE(d == at || index->dims[d] <= self->dims[d], "index is larger than self in dimension %d", d);
    }
    em_tensor(ex, self);
    em_tensor(ex, index);
    em_tensor(ex, src);
    em_tensor(ex, out);
    em_scalar(ex, value);
    em_integer(ex, at);
    em_integer(ex, reduce);
    return em_ready(ex, scatter_kernel, 0);
}

EM_OP(aclnnScatter, const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *src, int64_t reduce, aclTensor *out) {
    EM_BEGIN(aclnnScatter);
    EM_NOT_NULL(src);
    return scatter(ex, self, dim, index, src, NULL, reduce, out);
}

EM_OP(aclnnScatterValue, const aclTensor *self, int64_t dim, const aclTensor *index, const aclScalar *value, int64_t reduce, aclTensor *out) {
    EM_BEGIN(aclnnScatterValue);
    EM_NOT_NULL(value);
    return scatter(ex, self, dim, index, NULL, value, reduce, out);
}

EM_OP(aclnnScatterAdd, const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *src, aclTensor *out) {
    EM_BEGIN(aclnnScatterAdd);
    EM_NOT_NULL(src);
    return scatter(ex, self, dim, index, src, NULL, ADD, out);
}

/* Of the reductions that are declared (0 replace, 1 add, 2 multiply, 3 max, 4 min, 5 mean) the documentation offers for these chips float32, add and includeSelf alone. */
EM_OP(aclnnScatterReduce, const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *src, int64_t reduce, bool includeSelf, aclTensor *out) {
    EM_BEGIN(aclnnScatterReduce);
    EM_NOT_NULL(self);
    EM_NOT_NULL(src);
    EM_REQUIRE(reduce == ADD && includeSelf && self->dtype == ACL_FLOAT, "this chip only adds float32 to what self holds");
    return scatter(ex, self, dim, index, src, NULL, reduce, out);
}

EM_OP(aclnnInplaceScatter, aclTensor *selfRef, int64_t dim, const aclTensor *index, const aclTensor *src, int64_t reduce) {
    EM_BEGIN(aclnnInplaceScatter);
    EM_NOT_NULL(src);
    return scatter(ex, selfRef, dim, index, src, NULL, reduce, selfRef);
}

EM_OP(aclnnInplaceScatterValue, aclTensor *selfRef, int64_t dim, const aclTensor *index, const aclScalar *value, int64_t reduce) {
    EM_BEGIN(aclnnInplaceScatterValue);
    EM_NOT_NULL(value);
    return scatter(ex, selfRef, dim, index, NULL, value, reduce, selfRef);
}

/* out = self with rows of source added or put at index. tensors: self, index, source, out, a second out; integers: dim, whether to add; scalar: alpha. */
static void index_rows_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *index = &call->tensor[1], *source = &call->tensor[2], *out = &call->tensor[3], *second = &call->tensor[4];
    int dim = (int)call->integer[0];
    bool whole = es_whole(self->dtype), fine = true;
    int64_t outer = es_product(self->dims, 0, dim), size = self->ndim ? self->dims[dim] : 1, inner = self->ndim ? es_product(self->dims, dim + 1, self->ndim) : 1;
    int64_t *indices = em_read_integers(index), count = index->numel;
    EsNumbers into = es_numbers(self, whole), from = es_numbers(source, whole);
    const aclScalar *alpha = &call->scalar[0];
    if (call->integer[1])
        for (int64_t i = 0; i < source->numel; i++) {
            if (whole) from.integers[i] *= es_whole(alpha->dtype) ? alpha->integer : (int64_t)alpha->real;
            else from.reals[i] *= alpha->real;
        }
    for (int64_t i = 0; i < count && fine; i++) fine = es_plain_index(call, indices[i], size) >= 0;
    for (int64_t o = 0; o < outer && fine; o++)
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = 0; k < inner; k++) combine(into, (o * size + indices[i]) * inner + k, from, (o * count + i) * inner + k, call->integer[1] ? ADD : REPLACE);
    if (fine) es_put_numbers(out, into);
    if (fine && second->present) es_put_numbers(second, into);
    es_free_numbers(into);
    es_free_numbers(from);
    free(indices);
}

static aclnnStatus index_rows(aclOpExecutor *ex, const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *source, const aclScalar *alpha,
                              const aclTensor *out, const aclTensor *second) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(index);
    EM_NOT_NULL(source);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_COMMON);
    ES_SAME_DTYPE(self, source);
    ES_SAME_DTYPE(self, out);
    ES_SAME_SHAPE(self, out);
    ES_DTYPE(index, ES_INDICES);
    EM_REQUIRE(index->ndim <= 1, "index must have one dimension");
    ES_DIM(at, dim, self);
    EM_REQUIRE(source->ndim == self->ndim, "self and source differ in their number of dimensions");
    for (int d = 0; d < self->ndim; d++) EM_REQUIRE(source->dims[d] == (d == at ? em_numel(index) : self->dims[d]), "source does not fit in dimension %d", d);
    em_tensor(ex, self);
    em_tensor(ex, index);
    em_tensor(ex, source);
    em_tensor(ex, out);
    em_tensor(ex, second);
    em_scalar(ex, alpha);
    em_integer(ex, at);
    em_integer(ex, alpha != NULL);
    return em_ready(ex, index_rows_kernel, 0);
}

EM_OP(aclnnIndexAdd, const aclTensor *self, const int64_t dim, const aclTensor *index, const aclTensor *source, const aclScalar *alpha, aclTensor *out) {
    EM_BEGIN(aclnnIndexAdd);
    EM_NOT_NULL(alpha);
    return index_rows(ex, self, dim, index, source, alpha, out, NULL);
}

EM_OP(aclnnIndexCopy, aclTensor *selfRef, int64_t dim, const aclTensor *index, const aclTensor *source, aclTensor *outRef) {
    EM_BEGIN(aclnnIndexCopy);
    return index_rows(ex, selfRef, dim, index, source, NULL, outRef, NULL);
}

/* tensors: self, out, index (absent: the array); integer: dim; scalar: value. */
static void index_fill_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out = &call->tensor[1], *index = &call->tensor[2];
    int dim = (int)call->integer[0];
    int64_t outer = es_product(self->dims, 0, dim), size = self->ndim ? self->dims[dim] : 1, inner = self->ndim ? es_product(self->dims, dim + 1, self->ndim) : 1;
    int64_t count = index->present ? index->numel : call->array[0].size, *indices = index->present ? em_read_integers(index) : es_int64s(count);
    if (!index->present) memcpy(indices, call->array[0].values, (size_t)count * sizeof(int64_t));
    size_t bytes = em_item_size(self->dtype);
    char *packed = es_pack(self, self->dtype), value[16];
    es_scalar_bytes(&call->scalar[0], self->dtype, value);
    bool fine = true;
    for (int64_t i = 0; i < count && fine; i++) fine = (indices[i] = es_index(call, indices[i], size)) >= 0;
    for (int64_t o = 0; o < outer && fine; o++)
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = 0; k < inner; k++) memcpy(packed + (size_t)((o * size + indices[i]) * inner + k) * bytes, value, bytes);
    if (fine) es_unpack(out, packed);
    free(packed);
    free(indices);
}

static aclnnStatus index_fill(aclOpExecutor *ex, const aclTensor *self, int64_t dim, const aclTensor *index, const aclIntArray *array, const aclScalar *value,
                              aclTensor *out) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(value);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    ES_SAME_SHAPE(self, out);
    ES_DIM(at, dim, self);
    if (index) {
        ES_DTYPE(index, ES_INDICES);
        EM_REQUIRE(index->ndim <= 1, "index must have one dimension");
    }
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_tensor(ex, index);
    em_array(ex, array);
    em_scalar(ex, value);
    em_integer(ex, at);
    return em_ready(ex, index_fill_kernel, 0);
}

EM_OP(aclnnIndexFill, const aclTensor *self, int64_t dim, const aclTensor *index, const aclScalar *value, aclTensor *out) {
    EM_BEGIN(aclnnIndexFill);
    EM_NOT_NULL(index);
    return index_fill(ex, self, dim, index, NULL, value, out);
}

EM_OP(aclnnIndexFillTensor, const aclTensor *self, int64_t dim, const aclIntArray *index, const aclScalar *value, aclTensor *out) {
    EM_BEGIN(aclnnIndexFillTensor);
    EM_NOT_NULL(index);
    return index_fill(ex, self, dim, NULL, index, value, out);
}

static void put_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *index = &call->tensor[1], *source = &call->tensor[2];
    bool whole = es_whole(self->dtype), fine = true;
    int64_t *indices = em_read_integers(index);
    EsNumbers into = es_numbers(self, whole), from = es_numbers(source, whole);
    for (int64_t i = 0; i < index->numel && fine; i++) {
        int64_t found = es_index(call, indices[i], self->numel);
        fine = found >= 0;
        if (fine) combine(into, found, from, i, call->integer[0] ? ADD : REPLACE);
    }
    if (fine) es_put_numbers(self, into);
    es_free_numbers(into);
    es_free_numbers(from);
    free(indices);
}

EM_OP(aclnnInplacePut, aclTensor *selfRef, const aclTensor *index, const aclTensor *source, bool accumulate) {
    EM_BEGIN(aclnnInplacePut);
    EM_NOT_NULL(selfRef);
    EM_NOT_NULL(index);
    EM_NOT_NULL(source);
    ES_DTYPE(selfRef, ES_COMMON);
    ES_SAME_DTYPE(selfRef, source);
    ES_DTYPE(index, ES_INDICES);
    EM_REQUIRE(em_numel(index) == em_numel(source), "index and source differ in their number of elements");
    em_tensor(ex, selfRef);
    em_tensor(ex, index);
    em_tensor(ex, source);
    em_integer(ex, accumulate);
    return em_ready(ex, put_kernel, 0);
}

/* tensors: self, on, off, out; integer: the new axis. */
static void one_hot_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out = &call->tensor[3];
    int axis = (int)call->integer[0];
    int64_t classes = out->dims[axis], inner = es_product(out->dims, axis + 1, out->ndim), *values = em_read_integers(self);
    size_t bytes = em_item_size(out->dtype);
    char *on = es_pack(&call->tensor[1], out->dtype), *off = es_pack(&call->tensor[2], out->dtype), *into = es_alloc(out->numel, bytes);
    for (int64_t i = 0; i < out->numel; i++) {
        bool hot = values[i / (inner * classes) * inner + i % inner] == i / inner % classes;
        memcpy(into + (size_t)i * bytes, hot ? on : off, bytes);
    }
    es_unpack(out, into);
    free(on);
    free(off);
    free(into);
    free(values);
}

EM_OP(aclnnOneHot, const aclTensor *self, int numClasses, const aclTensor *onValue, const aclTensor *offValue, int64_t axis, aclTensor *out) {
    EM_BEGIN(aclnnOneHot);
    EM_NOT_NULL(self);
    EM_NOT_NULL(onValue);
    EM_NOT_NULL(offValue);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_INDICES);
    ES_SAME_DTYPE(onValue, out);
    ES_SAME_DTYPE(offValue, out);
    EM_REQUIRE(numClasses >= 0, "numClasses is negative");
    EM_REQUIRE(em_numel(onValue) == 1 && em_numel(offValue) == 1, "onValue and offValue must have one element");
    EM_REQUIRE(axis >= -1 && axis <= self->ndim && self->ndim < EM_MAX_DIMS, "axis is out of range");
    int at = axis < 0 ? self->ndim : (int)axis;
    int64_t dims[EM_MAX_DIMS];
    for (int d = 0; d <= self->ndim; d++) dims[d] = d == at ? numClasses : self->dims[d - (d > at)];
    EM_REQUIRE(es_has_shape(out, self->ndim + 1, dims), "out does not have self's shape and the classes");
    em_tensor(ex, self);
    em_tensor(ex, onValue);
    em_tensor(ex, offValue);
    em_tensor(ex, out);
    em_integer(ex, at);
    return em_ready(ex, one_hot_kernel, 0);
}
