/* Counting elements in bins, and slices that are equal. */

#include "ops_shape.h"

/* tensors: self, out; reals: min, max; integer: bins. Elements outside, and NaN, count nowhere. */
static void histogram_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    int64_t bins = call->integer[0];
    double *x = em_read_reals(self), *counts = es_doubles(bins), low = call->real[0], high = call->real[1];
    bool single = self->dtype == ACL_FLOAT; /* bins of float32 are found in float32 */
    for (int64_t i = 0; i < self->numel; i++) {
        if (!(x[i] >= low && x[i] <= high)) continue;
        int64_t bin = single ? (int64_t)(((float)x[i] - (float)low) / ((float)high - (float)low) * (float)bins) : (int64_t)((x[i] - low) / (high - low) * (double)bins);
        counts[bin == bins ? bins - 1 : bin]++;
    }
    em_write_reals(&call->tensor[1], counts);
    free(x);
    free(counts);
}

static double number(const aclScalar *scalar) { return em_is_integral(scalar->dtype) ? (double)scalar->integer : scalar->real; }

EM_OP(aclnnHistc, const aclTensor *self, int64_t bins, const aclScalar *min, const aclScalar *max, aclTensor *out) {
    EM_BEGIN(aclnnHistc);
    EM_NOT_NULL(self);
    EM_NOT_NULL(min);
    EM_NOT_NULL(max);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_REALS | ES_INTS);
    ES_SAME_DTYPE(self, out);
    EM_REQUIRE(bins > 0 && es_has_shape(out, 1, &bins), "out must have %lld elements", (long long)bins);
    EM_REQUIRE(number(min) < number(max), "min must be below max");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, bins);
    em_real(ex, number(min));
    em_real(ex, number(max));
    return em_ready(ex, histogram_kernel, 0);
}

/* Slices of `width` numbers at places, compared one number after the other; equal ones keep their order. */
typedef struct Slices { EsNumbers numbers; int64_t width; } Slices;

static int compared(const Slices *s, int64_t a, int64_t b) {
    for (int64_t i = 0; i < s->width; i++) {
        if (s->numbers.whole) {
            int64_t x = s->numbers.integers[a * s->width + i], y = s->numbers.integers[b * s->width + i];
            if (x != y) return x < y ? -1 : 1;
        } else {
            double x = s->numbers.reals[a * s->width + i], y = s->numbers.reals[b * s->width + i];
            if (isnan(x) || isnan(y)) {
                if (isnan(x) && isnan(y)) return a < b ? -1 : a > b; /* no two NaN are equal */
                return isnan(x) ? 1 : -1;
            }
            if (x != y) return x < y ? -1 : 1;
        }
    }
    return 0;
}

static void sort_places(const Slices *s, int64_t *places, int64_t *spare, int64_t count) {
    if (count < 2) return;
    int64_t half = count / 2;
    sort_places(s, places, spare, half);
    sort_places(s, places + half, spare, count - half);
    int64_t a = 0, b = half;
    for (int64_t i = 0; i < count; i++) {
        bool first = b >= count || (a < half && compared(s, places[a], places[b]) <= 0);
        spare[i] = places[first ? a++ : b++];
    }
    memcpy(places, spare, (size_t)count * sizeof *places);
}

/* tensors: self, values, inverse, counts; integer: dim, which is the first. */
static void unique_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    int64_t count = self->dims[0], width = count ? self->numel / count : 0, *places = es_int64s(count), *spare = es_int64s(count);
    int64_t *inverse = es_int64s(count), *counts = es_int64s(count), *firsts = es_int64s(count), found = -1;
    Slices slices = {es_numbers(self, es_whole(self->dtype)), width};
    size_t bytes = em_item_size(self->dtype) * (size_t)width;
    char *packed = es_pack(self, self->dtype), *values = es_alloc(count, bytes);
    for (int64_t i = 0; i < count; i++) places[i] = i;
    sort_places(&slices, places, spare, count);
    for (int64_t i = 0; i < count; i++) {
        if (!i || compared(&slices, firsts[found], places[i])) {
            firsts[++found] = places[i];
            memcpy(values + (size_t)found * bytes, packed + (size_t)places[i] * bytes, bytes);
        }
        inverse[places[i]] = found;
        counts[found]++;
    }
    int64_t dims[EM_MAX_DIMS];
    for (int d = 0; d < self->ndim; d++) dims[d] = self->dims[d];
    dims[0] = found + 1;
    es_unpack(&call->tensor[1], values);
    em_write_integers(&call->tensor[2], inverse);
    em_write_integers(&call->tensor[3], counts);
    em_set_view_shape(call, 1, self->ndim, dims);
    em_set_view_shape(call, 3, 1, dims);
    es_free_numbers(slices.numbers);
    free(places), free(spare), free(inverse), free(counts), free(firsts), free(packed), free(values);
}

EM_OP(aclnnUniqueDim, const aclTensor *self, bool sorted, bool returnInverse, int64_t dim, aclTensor *valueOut, aclTensor *inverseOut, aclTensor *countsOut) {
    EM_BEGIN(aclnnUniqueDim);
    (void)sorted; /* the result is sorted in any case */
    (void)returnInverse;
    EM_NOT_NULL(self);
    EM_NOT_NULL(valueOut);
    EM_NOT_NULL(inverseOut);
    EM_NOT_NULL(countsOut);
    ES_DTYPE(self, ES_COMMON);
    ES_SAME_DTYPE(self, valueOut);
    ES_DIM(at, dim, self);
    EM_REQUIRE(at == 0, "the emulator has slices of the first dimension only");
    EM_REQUIRE(self->ndim > 0 && em_same_shape(self, valueOut), "valueOut must be as large as self");
    EM_REQUIRE(inverseOut->dtype == ACL_INT64 && countsOut->dtype == ACL_INT64, "inverseOut and countsOut must be int64");
    EM_REQUIRE(es_has_shape(inverseOut, 1, self->dims) && es_has_shape(countsOut, 1, self->dims), "inverseOut and countsOut must have a number for each slice");
    em_tensor(ex, self);
    em_tensor(ex, valueOut);
    em_tensor(ex, inverseOut);
    em_tensor(ex, countsOut);
    em_integer(ex, at);
    return em_ready(ex, unique_kernel, 0);
}
