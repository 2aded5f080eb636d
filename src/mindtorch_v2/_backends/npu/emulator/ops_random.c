/* Random numbers: distributions, dropout and its masks of bits, samples and permutations. All come from em_uniform by the call's seed and offset. */
#include "ops_pointwise.h"

static double *uniforms(const EmCall *call, int64_t count) {
    double *values = pw_allocate(count, sizeof *values);
    em_uniform((uint64_t)call->integer[0], (uint64_t)call->integer[1], count, values);
    return values;
}

/* How many of a random number's binary digits the dtype keeps, so that rounding never reaches the upper bound. */
static double shorten(aclDataType dtype, double uniform) {
    int digits = dtype == ACL_FLOAT ? 24 : dtype == ACL_FLOAT16 ? 11 : dtype == ACL_BF16 ? 8 : 53;
    return ldexp(floor(ldexp(uniform, digits)), -digits);
}

static void uniform_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    double *values = uniforms(call, self->numel), from = call->real[0], to = call->real[1];
    for (int64_t k = 0; k < self->numel; k++) values[k] = from + shorten(self->dtype, values[k]) * (to - from);
    em_write_reals(self, values);
    free(values);
}

EM_OP(aclnnInplaceUniform, const aclTensor *selfRef, double from, double to, uint64_t seed, uint64_t offset) {
    EM_BEGIN(aclnnInplaceUniform);
    EM_NOT_NULL(selfRef);
    EM_REQUIRE(pw_is(selfRef->dtype, D_REALS | D_INTS), "selfRef has dtype %d, which is not supported", selfRef->dtype);
    EM_REQUIRE(from <= to, "from is above to");
    em_tensor(ex, selfRef);
    em_integer(ex, (int64_t)seed), em_integer(ex, (int64_t)offset);
    em_real(ex, from), em_real(ex, to);
    return em_ready(ex, uniform_kernel, 0);
}

/* Box-Muller's pairs. */
static void normal_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    int64_t count = self->numel + self->numel % 2;
    double *values = uniforms(call, count), mean = call->real[0], deviation = call->real[1];
    for (int64_t k = 0; k < count; k += 2) {
        double radius = sqrt(-2 * log1p(-values[k])), angle = 2 * M_PI * values[k + 1];
        values[k] = mean + deviation * radius * cos(angle);
        values[k + 1] = mean + deviation * radius * sin(angle);
    }
    em_write_reals(self, values);
    free(values);
}

EM_OP(aclnnInplaceNormal, const aclTensor *selfRef, float mean, float std, int64_t seed, int64_t offset) {
    EM_BEGIN(aclnnInplaceNormal);
    EM_NOT_NULL(selfRef);
    EM_REQUIRE(pw_is(selfRef->dtype, D_REALS), "selfRef has dtype %d, which is not supported", selfRef->dtype);
    EM_REQUIRE(std >= 0, "std is negative");
    em_tensor(ex, selfRef);
    em_integer(ex, seed), em_integer(ex, offset);
    em_real(ex, mean), em_real(ex, std);
    return em_ready(ex, normal_kernel, 0);
}

static uint64_t bits64(const double *pair) { return (uint64_t)(pair[0] * 4294967296.0) << 32 | (uint64_t)(pair[1] * 4294967296.0); }

static void random_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    double *values = uniforms(call, 2 * self->numel);
    int64_t from = call->integer[2], *results = pw_allocate(self->numel, sizeof *results);
    uint64_t range = U(call->integer[3]) - U(from);
    for (int64_t k = 0; k < self->numel; k++) results[k] = WRAP(U(from) + bits64(&values[2 * k]) % range);
    em_write_integers(self, results);
    free(values), free(results);
}

EM_OP(aclnnInplaceRandom, const aclTensor *selfRef, int64_t from, int64_t to, int64_t seed, int64_t offset) {
    EM_BEGIN(aclnnInplaceRandom);
    EM_NOT_NULL(selfRef);
    EM_REQUIRE(pw_is(selfRef->dtype, D_NUMBERS), "selfRef has dtype %d, which is not supported", selfRef->dtype);
    EM_REQUIRE(from < to, "from is not below to");
    em_tensor(ex, selfRef);
    em_integer(ex, seed), em_integer(ex, offset);
    em_integer(ex, from), em_integer(ex, to);
    return em_ready(ex, random_kernel, 0);
}

static void bernoulli_kernel(EmCall *call) {
    const EmTensor *out = &call->tensor[0];
    double *values = uniforms(call, out->numel), probability = call->real[0];
    for (int64_t k = 0; k < out->numel; k++) values[k] = values[k] < probability;
    em_write_reals(out, values);
    free(values);
}

static aclnnStatus bernoulli(aclOpExecutor *ex, const aclTensor *self, const aclScalar *prob, int64_t seed, int64_t offset, const aclTensor *out) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(prob);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(self->dtype, D_COMMON), "self has dtype %d, which is not supported", self->dtype);
    EM_REQUIRE(self->dtype == out->dtype && em_same_shape(self, out), "self and out differ in dtype or shape");
    EM_REQUIRE(pw_is(prob->dtype, D_REALS), "prob has dtype %d, which is not floating", prob->dtype);
    EM_REQUIRE(prob->real >= 0 && prob->real <= 1, "prob is not from 0 to 1");
    em_tensor(ex, out);
    em_integer(ex, seed), em_integer(ex, offset);
    em_real(ex, prob->real);
    return em_ready(ex, bernoulli_kernel, 0);
}

EM_OP(aclnnBernoulli, const aclTensor *self, const aclScalar *prob, int64_t seed, int64_t offset, aclTensor *out) {
    EM_BEGIN(aclnnBernoulli);
    return bernoulli(ex, self, prob, seed, offset, out);
}

EM_OP(aclnnInplaceBernoulli, const aclTensor *selfRef, const aclScalar *prob, int64_t seed, int64_t offset) {
    EM_BEGIN(aclnnInplaceBernoulli);
    return bernoulli(ex, selfRef, prob, seed, offset, selfRef);
}

/* Masks have a bit for each element, the lowest first, rounded up to 128; a set bit keeps the element. */
static int64_t mask_bytes(int64_t elements) { return (elements + 127) / 128 * 16; }

static bool kept(const int64_t *mask, int64_t element) { return mask[element / 8] >> element % 8 & 1; }

static void write_mask(const EmTensor *mask, EmCall *call, double probability) {
    double *values = uniforms(call, mask->numel * 8);
    int64_t *bytes = pw_allocate(mask->numel, sizeof *bytes);
    for (int64_t k = 0; k < mask->numel * 8; k++) bytes[k / 8] |= (int64_t)(values[k] < 1 - probability) << k % 8;
    em_write_integers(mask, bytes);
    free(values), free(bytes);
}

/* Elements kept are multiplied by `scale`, the others are 0; no mask: all are kept. */
static void apply_mask(const EmTensor *self, const EmTensor *mask, double scale, const EmTensor *out) {
    double *x = em_read_reals(self);
    int64_t *bits = mask ? em_read_integers(mask) : NULL;
    for (int64_t k = 0; k < self->numel; k++) x[k] = scale == 0 || (bits && !kept(bits, k)) ? 0 : x[k] * scale;
    em_write_reals(out, x);
    free(x), free(bits);
}

static void dropout_kernel(EmCall *call) {
    double probability = call->real[0];
    const EmTensor *self = &call->tensor[0], *out = &call->tensor[1], *mask = &call->tensor[2];
    if (!call->integer[2] || probability == 0) apply_mask(self, NULL, 1, out);
    else if (probability == 1) apply_mask(self, NULL, 0, out);
    else {
        write_mask(mask, call, probability);
        apply_mask(self, mask, 1 / (1 - probability), out);
    }
}

static aclnnStatus check_masked(aclOpExecutor *ex, const aclTensor *self, const aclTensor *mask, const aclTensor *out) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(mask);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(self->dtype, D_FLOATS) && pw_is(out->dtype, D_FLOATS), "the dtypes are not supported");
    EM_REQUIRE(mask->dtype == ACL_UINT8, "the mask is not uint8");
    EM_REQUIRE(em_same_shape(self, out), "the shapes of input and output differ");
    EM_REQUIRE(em_numel(mask) == mask_bytes(em_numel(self)), "the mask has %lld bytes, not %lld", (long long)em_numel(mask), (long long)mask_bytes(em_numel(self)));
    return 0;
}

EM_OP(aclnnDropout, const aclTensor *input, double p, bool train, int64_t seed, int64_t offset, aclTensor *out, aclTensor *maskOut) {
    EM_BEGIN(aclnnDropout);
    TRY(check_masked(ex, input, maskOut, out));
    EM_REQUIRE(maskOut->ndim == 1, "the mask is not one-dimensional");
    EM_REQUIRE(p >= 0 && p <= 1, "p is not from 0 to 1");
    em_tensor(ex, input), em_tensor(ex, out), em_tensor(ex, maskOut);
    em_integer(ex, seed), em_integer(ex, offset), em_integer(ex, train);
    em_real(ex, p);
    return em_ready(ex, dropout_kernel, 0);
}

/* A scale of 1 keeps everything, whatever the mask says. */
static void dropout_gradient_kernel(EmCall *call) {
    double scale = call->real[0];
    apply_mask(&call->tensor[0], scale == 1 ? NULL : &call->tensor[1], scale, &call->tensor[2]);
}

EM_OP(aclnnDropoutBackward, const aclTensor *gradOutput, const aclTensor *mask, double scale, aclTensor *out) {
    EM_BEGIN(aclnnDropoutBackward);
    TRY(check_masked(ex, gradOutput, mask, out));
    EM_REQUIRE(scale == 0 || scale >= 1, "scale is neither 0 nor at least 1");
    em_tensor(ex, gradOutput), em_tensor(ex, mask), em_tensor(ex, out);
    em_real(ex, scale);
    return em_ready(ex, dropout_gradient_kernel, 0);
}

static void mask_kernel(EmCall *call) { write_mask(&call->tensor[0], call, call->real[0]); }

EM_OP(aclnnDropoutGenMask, const aclIntArray *shape, double prob, int64_t seed, int64_t offset, aclTensor *out) {
    EM_BEGIN(aclnnDropoutGenMask);
    EM_NOT_NULL(shape);
    EM_NOT_NULL(out);
    EM_REQUIRE(out->dtype == ACL_UINT8, "out is not uint8");
    EM_REQUIRE(prob >= 0 && prob <= 1, "prob is not from 0 to 1");
    int64_t elements = 1;
    for (uint64_t d = 0; d < shape->size; d++) elements *= shape->values[d];
    EM_REQUIRE(out->ndim == 1 && out->dims[0] == mask_bytes(elements), "out is not one-dimensional of %lld bytes", (long long)mask_bytes(elements));
    em_tensor(ex, out);
    em_integer(ex, seed), em_integer(ex, offset);
    em_real(ex, prob);
    return em_ready(ex, mask_kernel, 0);
}

static void do_mask_kernel(EmCall *call) {
    double probability = call->real[0];
    apply_mask(&call->tensor[0], probability == 0 ? NULL : &call->tensor[1], probability == 1 ? 0 : 1 / (1 - probability), &call->tensor[2]);
}

EM_OP(aclnnDropoutDoMask, const aclTensor *self, const aclTensor *mask, double prob, aclTensor *out) {
    EM_BEGIN(aclnnDropoutDoMask);
    TRY(check_masked(ex, self, mask, out));
    EM_REQUIRE(prob >= 0 && prob <= 1, "prob is not from 0 to 1");
    em_tensor(ex, self), em_tensor(ex, mask), em_tensor(ex, out);
    em_real(ex, prob);
    return em_ready(ex, do_mask_kernel, 0);
}

/* With replacement: the class whose part of the row's sum the number falls into. */
static int64_t draw(const double *weights, int64_t classes, double sum, double uniform) {
    double below = 0, wanted = uniform * sum;
    int64_t last = 0;
    for (int64_t c = 0; c < classes; c++) {
        if (!(weights[c] > 0)) continue;
        last = c;
        below += weights[c];
        if (wanted < below) return c;
    }
    return last;
}

/* Without: classes by the time at which each one's exponential clock, which runs at its weight, rings. */
static void draw_distinct(const double *weights, const double *uniform, int64_t classes, int64_t samples, int64_t *results) {
    double *times = pw_allocate(classes, sizeof *times);
    for (int64_t c = 0; c < classes; c++) times[c] = -log1p(-uniform[c]) / weights[c];
    for (int64_t s = 0; s < samples; s++) {
        int64_t first = -1;
        for (int64_t c = 0; c < classes; c++)
            if (!isnan(times[c]) && (first < 0 || times[c] < times[first])) first = c;
        results[s] = first < 0 ? 0 : first;
        if (first >= 0) times[first] = NAN;
    }
    free(times);
}

static void multinomial_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out = &call->tensor[1];
    int64_t samples = call->integer[2], replacement = call->integer[3], classes = self->dims[self->ndim - 1];
    int64_t rows = self->ndim == 2 ? self->dims[0] : 1, per_row = replacement ? samples : classes;
    double *weights = em_read_reals(self), *values = uniforms(call, rows * per_row);
    int64_t *results = pw_allocate(out->numel, sizeof *results);
    bool failed = false;
    for (int64_t row = 0; row < rows && !failed; row++) {
        double sum = 0, *of_row = weights + row * classes;
        for (int64_t c = 0; c < classes; c++) {
            failed |= !(of_row[c] >= 0) || isinf(of_row[c]);
            sum += of_row[c];
        }
        failed |= !(sum > 0);
        if (failed) break;
        for (int64_t s = 0; replacement && s < samples; s++) results[row * samples + s] = draw(of_row, classes, sum, values[row * per_row + s]);
        if (!replacement) draw_distinct(of_row, values + row * per_row, classes, samples, results + row * samples);
    }
    if (failed) em_kernel_failed(call, 0, "a row of probabilities has a negative or infinite one, or only zeros");
    else em_write_integers(out, results);
    free(weights), free(values), free(results);
}

EM_OP(aclnnMultinomial, const aclTensor *self, int64_t numsamples, bool replacement, int64_t seed, int64_t offset, aclTensor *out) {
    EM_BEGIN(aclnnMultinomial);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(self->dtype, D_REALS), "self has dtype %d, which is not supported", self->dtype);
    EM_REQUIRE(out->dtype == ACL_INT64, "out is not int64");
    EM_REQUIRE(self->ndim == 1 || self->ndim == 2, "self has %d dimensions, not 1 or 2", self->ndim);
    EM_REQUIRE(out->ndim == self->ndim, "out and self differ in their number of dimensions");
    int64_t classes = self->dims[self->ndim - 1];
    EM_REQUIRE(numsamples > 0, "numsamples is not positive");
    EM_REQUIRE(replacement || numsamples <= classes, "there are fewer classes than samples");
    EM_REQUIRE(classes <= 1 << 24, "there are more than 2^24 classes");
    EM_REQUIRE(out->dims[out->ndim - 1] == numsamples && (self->ndim == 1 || out->dims[0] == self->dims[0]), "out's shape does not fit");
    em_tensor(ex, self), em_tensor(ex, out);
    em_integer(ex, seed), em_integer(ex, offset), em_integer(ex, numsamples), em_integer(ex, replacement);
    return em_ready(ex, multinomial_kernel, 0);
}

static void permutation_kernel(EmCall *call) {
    const EmTensor *out = &call->tensor[0];
    double *values = uniforms(call, out->numel);
    int64_t *results = pw_allocate(out->numel, sizeof *results);
    for (int64_t k = 0; k < out->numel; k++) results[k] = k;
    for (int64_t k = out->numel - 1; k > 0; k--) {
        int64_t other = (int64_t)(values[k] * (double)(k + 1)), moved = results[k];
        results[k] = results[other];
        results[other] = moved;
    }
    em_write_integers(out, results);
    free(values), free(results);
}

EM_OP(aclnnRandperm, int64_t n, int64_t seed, int64_t offset, aclTensor *out) {
    EM_BEGIN(aclnnRandperm);
    EM_NOT_NULL(out);
    EM_REQUIRE(n >= 0, "n is negative");
    EM_REQUIRE(pw_is(out->dtype, D_REALS | D_INTS), "out has dtype %d, which is not supported", out->dtype);
    EM_REQUIRE(out->ndim == 1 && out->dims[0] == n, "out's shape is not [n]");
    em_tensor(ex, out);
    em_integer(ex, seed), em_integer(ex, offset);
    return em_ready(ex, permutation_kernel, 0);
}
