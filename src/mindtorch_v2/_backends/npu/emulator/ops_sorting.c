/* Order: extremes with positions, medians, sorting, the largest k, running results, searching, distinct elements, positions that are not zero. NaN counts as greatest. */

#include "ops_shape.h"

typedef struct Entry { double real; int64_t integer, index; } Entry;

static int order(const Entry *a, const Entry *b) {
    bool x = isnan(a->real), y = isnan(b->real);
    if (x || y) return x - y;
    if (a->real != b->real) return a->real < b->real ? -1 : 1;
    return a->integer < b->integer ? -1 : a->integer > b->integer;
}
/* Ties keep their order: every sort is stable. */
static int ascending(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    int found = order(x, y);
    return found ? found : x->index < y->index ? -1 : x->index > y->index;
}
static int descending(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    int found = order(y, x);
    return found ? found : x->index < y->index ? -1 : x->index > y->index;
}

/* The elements in row-major order; `index` is the position in the line of `length`. */
static Entry *read_entries(const EmTensor *tensor, int64_t length) {
    EsNumbers numbers = es_numbers(tensor, es_whole(tensor->dtype));
    Entry *entries = es_alloc(tensor->numel, sizeof(Entry));
    for (int64_t i = 0; i < tensor->numel; i++)
        entries[i] = (Entry){numbers.whole ? 0 : numbers.reals[i], numbers.whole ? numbers.integers[i] : 0, length ? i % length : 0};
    es_free_numbers(numbers);
    return entries;
}

/* Writes `count` entries to values and indices, either of which may be absent. */
static void write_entries(const Entry *entries, int64_t count, const EmTensor *values, const EmTensor *indices) {
    int64_t *integers = es_int64s(count);
    double *reals = es_doubles(count);
    bool whole = values && es_whole(values->dtype);
    for (int64_t i = 0; i < count; i++) {
        reals[i] = entries[i].real;
        integers[i] = whole ? entries[i].integer : 0;
    }
    if (values && whole) em_write_integers(values, integers);
    else if (values) em_write_reals(values, reals);
    for (int64_t i = 0; i < count; i++) integers[i] = entries[i].index;
    if (indices) em_write_integers(indices, integers);
    free(integers);
    free(reals);
}

/* Note [Along a dimension]
 * tensors: self, values (may be absent), indices (may be absent); integers: kind, dim, then what the kind needs. */
enum { SORT, SORT_DOWN, TOP, BOTTOM, FIRST_GREATEST, FIRST_LEAST, MEDIAN, KTH, RUNNING_MAX, RUNNING_MIN };

/* Sorts or searches one line; returns how many entries of it count. */
static int64_t arrange(Entry *line, int64_t length, int kind, int64_t k) {
    Entry found;
    switch (kind) {
    case SORT:
    case SORT_DOWN: qsort(line, (size_t)length, sizeof(Entry), kind == SORT ? ascending : descending); return length;
    case TOP:
    case BOTTOM: qsort(line, (size_t)length, sizeof(Entry), kind == BOTTOM ? ascending : descending); return k;
    case FIRST_GREATEST:
    case FIRST_LEAST:
        found = line[0];
        for (int64_t i = 1; i < length && !isnan(found.real); i++)
            if (isnan(line[i].real) || (kind == FIRST_GREATEST ? order(&line[i], &found) > 0 : order(&line[i], &found) < 0)) found = line[i];
        line[0] = found;
        return 1;
    case MEDIAN:
        for (int64_t i = 0; i < length; i++)
            if (isnan(line[i].real)) {
                line[0] = line[i];
                return 1;
            }
        k = (length - 1) / 2 + 1;
        /* fall through */
    case KTH:
        qsort(line, (size_t)length, sizeof(Entry), ascending);
        line[0] = line[k - 1];
        return 1;
    default: /* the latest of equal extremes */
        for (int64_t i = 1; i < length; i++) {
            int side = kind == RUNNING_MAX ? order(&line[i], &line[i - 1]) : order(&line[i - 1], &line[i]);
            bool stays = isnan(line[i - 1].real) && !isnan(line[i].real);
            if (kind == RUNNING_MIN && isnan(line[i].real)) side = 1;
            if (stays || side < 0) line[i] = line[i - 1];
        }
        return length;
    }
}

static void along_kernel(EmCall *call) {
    int64_t lines, length, ignored, dim = call->integer[1], at = 0;
    int kind = (int)call->integer[0];
    const EmTensor *self = &call->tensor[0];
    EmTensor view = es_last(self, dim, &lines, &length), outputs[2];
    Entry *entries = read_entries(&view, length);
    for (int64_t l = 0; l < lines && length; l++) {
        int64_t count = arrange(entries + l * length, length, kind, call->integer[2]);
        memmove(entries + at, entries + l * length, (size_t)count * sizeof(Entry));
        at += count;
    }
    for (int i = 0; i < 2; i++) {
        const EmTensor *out = &call->tensor[1 + i];
        outputs[i] = out->present && out->ndim == self->ndim ? es_last(out, dim, &lines, &ignored) : *out;
    }
    write_entries(entries, at, outputs[0].present ? &outputs[0] : NULL, outputs[1].present ? &outputs[1] : NULL);
    free(entries);
}

/* `size`: of the dimension in the outputs; -1: it is reduced, kept as 1 or dropped. */
static aclnnStatus along(aclOpExecutor *ex, int kind, const aclTensor *self, int64_t dim, int64_t size, bool keep, int64_t k, const aclTensor *values,
                         const aclTensor *indices, uint32_t positions) {
    ES_DTYPE(self, ES_COMMON);
    ES_DIM(at, dim, self);
    const aclTensor *outputs[2] = {values, indices};
    EM_REQUIRE(!values || values->dtype == self->dtype, "the values have another dtype than self");
    EM_REQUIRE(!indices || es_in(indices->dtype, positions), "the indices have a dtype that is not supported");
    if (size < 0) EM_REQUIRE(!self->ndim || self->dims[at] > 0, "a dimension without elements has no extreme");
    for (int i = 0; i < 2; i++) {
        if (!outputs[i]) continue;
        int64_t dims[EM_MAX_DIMS];
        bool marked[EM_MAX_DIMS] = {false};
        marked[at] = true;
        memcpy(dims, self->dims, sizeof dims);
        dims[at] = size;
        EM_REQUIRE(size < 0 ? es_reduced(self, marked, keep, outputs[i]) : es_has_shape(outputs[i], self->ndim, dims), "an output does not have the result's shape");
    }
    em_tensor(ex, self);
    em_tensor(ex, values);
    em_tensor(ex, indices);
    em_integer(ex, kind);
    em_integer(ex, at);
    em_integer(ex, k);
    return em_ready(ex, along_kernel, 0);
}

static int64_t length_of(const aclTensor *self, int64_t dim) {
    int at = es_wrap(dim, self->ndim);
    return at >= 0 && self->ndim ? self->dims[at] : 1;
}

EM_OP(aclnnSort, const aclTensor *self, bool stable, int64_t dim, bool descending, aclTensor *valuesOut, aclTensor *indicesOut) {
    EM_BEGIN(aclnnSort);
    (void)stable;
    EM_NOT_NULL(self);
    EM_NOT_NULL(valuesOut);
    EM_NOT_NULL(indicesOut);
    return along(ex, descending ? SORT_DOWN : SORT, self, dim, length_of(self, dim), true, 0, valuesOut, indicesOut, ES_DT(ACL_INT64));
}

EM_OP(aclnnArgsort, const aclTensor *self, int64_t dim, bool descending, aclTensor *out) {
    EM_BEGIN(aclnnArgsort);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_REQUIRE(self->dtype != ACL_BOOL, "self is bool, which cannot be sorted");
    return along(ex, descending ? SORT_DOWN : SORT, self, dim, length_of(self, dim), true, 0, NULL, out, ES_DT(ACL_INT64));
}

EM_OP(aclnnTopk, const aclTensor *self, int64_t k, int64_t dim, bool largest, bool sorted, aclTensor *valuesOut, aclTensor *indicesOut) {
    EM_BEGIN(aclnnTopk);
    (void)sorted;
    EM_NOT_NULL(self);
    EM_NOT_NULL(valuesOut);
    EM_NOT_NULL(indicesOut);
    EM_REQUIRE(self->dtype != ACL_BOOL, "self has dtype %d, which is not supported", self->dtype);
    EM_REQUIRE(k >= 0 && k <= length_of(self, dim), "k is out of range");
    return along(ex, largest ? TOP : BOTTOM, self, dim, k, true, k, valuesOut, indicesOut, ES_DT(ACL_INT64));
}

EM_OP(aclnnMaxDim, const aclTensor *self, int64_t dim, bool keepdim, aclTensor *out, aclTensor *indices) {
    EM_BEGIN(aclnnMaxDim);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_NOT_NULL(indices);
    return along(ex, FIRST_GREATEST, self, dim, -1, keepdim, 0, out, indices, ES_INDICES);
}

EM_OP(aclnnMinDim, const aclTensor *self, int64_t dim, bool keepdim, aclTensor *out, aclTensor *indices) {
    EM_BEGIN(aclnnMinDim);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_NOT_NULL(indices);
    return along(ex, FIRST_LEAST, self, dim, -1, keepdim, 0, out, indices, ES_INDICES);
}

EM_OP(aclnnArgMax, const aclTensor *self, int64_t dim, bool keepdim, aclTensor *out) {
    EM_BEGIN(aclnnArgMax);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    return along(ex, FIRST_GREATEST, self, dim, -1, keepdim, 0, NULL, out, ES_INDICES);
}

EM_OP(aclnnArgMin, const aclTensor *self, int64_t dim, bool keepdim, aclTensor *out) {
    EM_BEGIN(aclnnArgMin);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    return along(ex, FIRST_LEAST, self, dim, -1, keepdim, 0, NULL, out, ES_INDICES);
}

EM_OP(aclnnMedianDim, const aclTensor *self, int64_t dim, bool keepDim, aclTensor *valuesOut, aclTensor *indicesOut) {
    EM_BEGIN(aclnnMedianDim);
    EM_NOT_NULL(self);
    EM_NOT_NULL(valuesOut);
    EM_NOT_NULL(indicesOut);
    return along(ex, MEDIAN, self, dim, -1, keepDim, 0, valuesOut, indicesOut, ES_DT(ACL_INT64));
}

EM_OP(aclnnKthvalue, const aclTensor *self, int64_t k, int64_t dim, bool keepdim, aclTensor *valuesOut, aclTensor *indicesOut) {
    EM_BEGIN(aclnnKthvalue);
    EM_NOT_NULL(self);
    EM_NOT_NULL(valuesOut);
    EM_NOT_NULL(indicesOut);
    EM_REQUIRE(k >= 1 && k <= length_of(self, dim), "k is out of range");
    return along(ex, KTH, self, dim, -1, keepdim, k, valuesOut, indicesOut, ES_DT(ACL_INT64));
}

EM_OP(aclnnCummax, const aclTensor *self, int64_t dim, aclTensor *valuesOut, aclTensor *indicesOut) {
    EM_BEGIN(aclnnCummax);
    EM_NOT_NULL(self);
    EM_NOT_NULL(valuesOut);
    EM_NOT_NULL(indicesOut);
    EM_REQUIRE(self->ndim > 0, "self must have a dimension");
    return along(ex, RUNNING_MAX, self, dim, length_of(self, dim), true, 0, valuesOut, indicesOut, ES_INDICES);
}

EM_OP(aclnnCummin, const aclTensor *self, int64_t dim, aclTensor *valuesOut, aclTensor *indicesOut) {
    EM_BEGIN(aclnnCummin);
    EM_NOT_NULL(self);
    EM_NOT_NULL(valuesOut);
    EM_NOT_NULL(indicesOut);
    return along(ex, RUNNING_MIN, self, dim, length_of(self, dim), true, 0, valuesOut, indicesOut, ES_INDICES);
}

static void median_kernel(EmCall *call) {
    Entry *entries = read_entries(&call->tensor[0], call->tensor[0].numel);
    arrange(entries, call->tensor[0].numel, MEDIAN, 0);
    write_entries(entries, 1, &call->tensor[1], NULL);
    free(entries);
}

EM_OP(aclnnMedian, const aclTensor *self, aclTensor *valuesOut) {
    EM_BEGIN(aclnnMedian);
    EM_NOT_NULL(self);
    EM_NOT_NULL(valuesOut);
    ES_DTYPE(self, ES_COMMON);
    ES_SAME_DTYPE(self, valuesOut);
    ES_RANK(valuesOut, 0);
    EM_REQUIRE(em_numel(self) > 0, "a tensor without elements has no median");
    em_tensor(ex, self);
    em_tensor(ex, valuesOut);
    return em_ready(ex, median_kernel, 0);
}

/* tensors: self, out; integers: dim, whether to multiply. */
static void running_kernel(EmCall *call) {
    int64_t lines, length;
    EmTensor self = es_last(&call->tensor[0], call->integer[0], &lines, &length), out = es_last(&call->tensor[1], call->integer[0], &lines, &length);
    bool multiply = call->integer[1];
    EsNumbers numbers = es_numbers(&self, es_whole(self.dtype) && es_whole(out.dtype));
    for (int64_t i = 0; i < self.numel; i++) {
        if (i % length == 0) continue;
        if (numbers.whole) {
            uint64_t x = (uint64_t)numbers.integers[i - 1], y = (uint64_t)numbers.integers[i];
            numbers.integers[i] = (int64_t)(multiply ? x * y : x + y);
        } else {
            numbers.reals[i] = multiply ? numbers.reals[i - 1] * numbers.reals[i] : numbers.reals[i - 1] + numbers.reals[i];
        }
    }
    es_put_numbers(&out, numbers);
    es_free_numbers(numbers);
}

static aclnnStatus running(aclOpExecutor *ex, const aclTensor *self, int64_t dim, aclDataType dtype, bool multiply, aclTensor *out) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_COMMON);
    ES_DTYPE(out, ES_COMMON);
    ES_SAME_SHAPE(self, out);
    EM_REQUIRE(out->dtype == dtype, "out does not have the dtype asked for");
    ES_DIM(at, dim, self);
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, at);
    em_integer(ex, multiply);
    return em_ready(ex, running_kernel, 0);
}

EM_OP(aclnnCumsum, const aclTensor *self, int64_t dim, aclDataType dtype, aclTensor *out) {
    EM_BEGIN(aclnnCumsum);
    return running(ex, self, dim, dtype, false, out);
}

/* The dimension is a scalar here. */
EM_OP(aclnnCumprod, const aclTensor *input, const aclScalar *dim, const aclDataType dtype, aclTensor *out) {
    EM_BEGIN(aclnnCumprod);
    EM_NOT_NULL(dim);
    return running(ex, input, es_whole(dim->dtype) ? dim->integer : (int64_t)dim->real, dtype, true, out);
}

/* tensors: the sequences, the values, sorter, out; integer: whether equal elements stand before the position. */
static void search_kernel(EmCall *call) {
    const EmTensor *sequence = &call->tensor[0], *values = &call->tensor[1], *sorter = &call->tensor[2], *out = &call->tensor[3];
    int64_t length = sequence->dims[sequence->ndim - 1], per_line = sequence->ndim == 1 || !values->ndim ? values->numel : values->dims[values->ndim - 1];
    int64_t *positions = es_int64s(values->numel), *sort = sorter->present ? em_read_integers(sorter) : NULL;
    double *sorted = em_read_reals(sequence), *wanted = em_read_reals(values);
    for (int64_t i = 0; i < values->numel; i++) {
        int64_t base = i / per_line * length, low = 0, high = length;
        while (low < high) {
            int64_t middle = low + (high - low) / 2, at = sort ? sort[base + middle] : middle;
            if (at < 0 || at >= length) {
                em_kernel_failed(call, ES_INDEX_ERROR, "aclnnSearchSorted: sorter is out of range");
                goto done;
            }
            Entry here = {sorted[base + at], 0, 0}, want = {wanted[i], 0, 0};
            int side = order(&here, &want);
            if (side < 0 || (side == 0 && call->integer[0])) low = middle + 1;
            else high = middle;
        }
        positions[i] = low;
    }
    em_write_integers(out, positions);
done:
    free(positions);
    free(sort);
    free(sorted);
    free(wanted);
}

EM_OP(aclnnSearchSorted, const aclTensor *sortedSequence, const aclTensor *self, const bool outInt32, const bool right, const aclTensor *sorter, aclTensor *out) {
    EM_BEGIN(aclnnSearchSorted);
    EM_NOT_NULL(sortedSequence);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(sortedSequence, ES_COMMON);
    ES_SAME_DTYPE(sortedSequence, self);
    EM_REQUIRE(out->dtype == (outInt32 ? ACL_INT32 : ACL_INT64), "out has another dtype than outInt32 asks for");
    ES_SAME_SHAPE(self, out);
    EM_REQUIRE(sortedSequence->ndim >= 1, "sortedSequence must have dimensions");
    if (sortedSequence->ndim > 1) {
        EM_REQUIRE(sortedSequence->ndim == self->ndim, "sortedSequence and self differ in their number of dimensions");
        for (int d = 0; d + 1 < self->ndim; d++) EM_REQUIRE(sortedSequence->dims[d] == self->dims[d], "sortedSequence and self differ in dimension %d", d);
    }
    if (sorter) {
        ES_SAME_SHAPE(sortedSequence, sorter);
        ES_DTYPE(sorter, ES_DT(ACL_INT64));
    }
    em_tensor(ex, sortedSequence);
    em_tensor(ex, self);
    em_tensor(ex, sorter);
    em_tensor(ex, out);
    em_integer(ex, right);
    return em_ready(ex, search_kernel, 0);
}

/* The first `count` elements of an output whose size depends on the data. */
static EmTensor beginning(EmCall *call, int index, int ndim, const int64_t *dims) {
    em_set_view_shape(call, index, ndim, dims);
    return es_packed(call->tensor[index].dtype, ndim, dims, call->tensor[index].data);
}

/* tensors: self, the distinct values, inverse, counts; integers: whether the last two are wanted. */
static void unique_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    int64_t total = self->numel, found = 0, *inverse = es_int64s(total), *counts = es_int64s(total);
    Entry *entries = read_entries(self, total);
    qsort(entries, (size_t)total, sizeof(Entry), ascending);
    for (int64_t i = 0; i < total; i++) {
        if (i == 0 || isnan(entries[i].real) || order(&entries[i], &entries[found - 1]) != 0) {
            int64_t index = entries[i].index;
            entries[found] = entries[i];
            entries[i].index = index;
            found++;
        }
        inverse[entries[i].index] = found - 1;
        counts[found - 1]++;
    }
    EmTensor values = beginning(call, 1, 1, &found);
    write_entries(entries, found, &values, NULL);
    if (call->integer[0]) em_write_integers(&call->tensor[2], inverse);
    if (call->integer[1]) {
        EmTensor counted = beginning(call, 3, 1, &found);
        em_write_integers(&counted, counts);
    }
    free(inverse);
    free(counts);
    free(entries);
}

EM_OP(aclnnUnique2, const aclTensor *self, bool sorted, bool returnInverse, bool returnCounts, aclTensor *valueOut, aclTensor *inverseOut, aclTensor *countsOut) {
    EM_BEGIN(aclnnUnique2);
    (void)sorted;
    EM_NOT_NULL(self);
    EM_NOT_NULL(valueOut);
    EM_NOT_NULL(inverseOut);
    EM_NOT_NULL(countsOut);
    ES_DTYPE(self, ES_COMMON);
    ES_SAME_DTYPE(self, valueOut);
    ES_DTYPE(inverseOut, ES_DT(ACL_INT64));
    ES_DTYPE(countsOut, ES_DT(ACL_INT64));
    EM_REQUIRE(em_numel(valueOut) >= em_numel(self), "valueOut must have a place for every element");
    if (returnInverse || returnCounts) ES_SAME_SHAPE(self, inverseOut);
    EM_REQUIRE(!returnCounts || em_numel(countsOut) >= em_numel(self), "countsOut must have a place for every element");
    em_tensor(ex, self);
    em_tensor(ex, valueOut);
    em_tensor(ex, inverseOut);
    em_tensor(ex, countsOut);
    em_integer(ex, returnInverse);
    em_integer(ex, returnCounts);
    return em_ready(ex, unique_kernel, 0);
}

static void nonzero_kernel(EmCall *call) {
    EmTensor self = call->tensor[0];
    int64_t at[EM_MAX_DIMS] = {0}, dims[2] = {0, self.ndim}, *positions = es_int64s(self.numel * self.ndim);
    double complex *values = em_read_complex(&self);
    for (int64_t i = 0; i < self.numel; i++, es_next(self.ndim, self.dims, at)) {
        if (values[i] == 0) continue;
        memcpy(positions + dims[0]++ * self.ndim, at, (size_t)self.ndim * sizeof(int64_t));
    }
    EmTensor out = beginning(call, 1, 2, dims);
    em_write_integers(&out, positions);
    free(positions);
    free(values);
}

EM_OP(aclnnNonzero, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnNonzero);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_DTYPE(out, ES_DT(ACL_INT64));
    int64_t dims[2] = {em_numel(self), self->ndim};
    EM_REQUIRE(es_has_shape(out, 2, dims), "out must have a row for every element and a column for every dimension");
    em_tensor(ex, self);
    em_tensor(ex, out);
    return em_ready(ex, nonzero_kernel, 0);
}
