/* Fused operators of transformers: a sum with its norm, rotary embeddings, gated activations, and products of int8 with their scales. In double, rounded once. */

#include "ops_shape.h"

static bool ends_with(const aclTensor *tensor, const aclTensor *end) {
    if (tensor->ndim < end->ndim) return false;
    return es_has_shape(end, end->ndim, tensor->dims + tensor->ndim - end->ndim);
}

/* tensors: x1, x2, gamma, y, rstd, x. The norm is of the sum as its dtype holds it. */
static void add_rms_norm_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t size = t[2].numel, lines = t[4].numel;
    double *x = em_read_reals(&t[0]), *other = em_read_reals(&t[1]), *gamma = em_read_reals(&t[2]), *rstd = es_doubles(lines);
    for (int64_t i = 0; i < t[0].numel; i++) x[i] += other[i];
    em_write_reals(&t[5], x);
    for (int64_t l = 0; l < lines; l++) {
        double squares = 0, *line = x + l * size;
        for (int64_t i = 0; i < size; i++) squares += line[i] * line[i];
        rstd[l] = size ? 1 / sqrt(squares / (double)size + call->real[0]) : 0;
        for (int64_t i = 0; i < size; i++) line[i] *= rstd[l] * gamma[i];
    }
    em_write_reals(&t[3], x);
    em_write_reals(&t[4], rstd);
    free(x), free(other), free(gamma), free(rstd);
}

EM_OP(aclnnAddRmsNorm, const aclTensor *x1, const aclTensor *x2, const aclTensor *gamma, double epsilon, aclTensor *yOut, aclTensor *rstdOut, aclTensor *xOut) {
    EM_BEGIN(aclnnAddRmsNorm);
    const aclTensor *all[] = {x1, x2, yOut, xOut};
    for (int k = 0; k < 4; k++) EM_NOT_NULL(all[k]);
    EM_NOT_NULL(gamma);
    EM_NOT_NULL(rstdOut);
    ES_DTYPE(x1, ES_FLOATS);
    for (int k = 1; k < 4; k++) EM_REQUIRE(all[k]->dtype == x1->dtype && em_same_shape(all[k], x1), "x1, x2, yOut and xOut differ in dtype or shape");
    ES_SAME_DTYPE(x1, gamma);
    ES_DTYPE(rstdOut, ES_DT(ACL_FLOAT));
    EM_REQUIRE(gamma->ndim >= 1 && ends_with(x1, gamma), "gamma's shape is not the end of x1's");
    EM_REQUIRE(em_numel(rstdOut) == es_product(x1->dims, 0, x1->ndim - gamma->ndim), "rstdOut does not have a number per line");
    em_tensor(ex, x1), em_tensor(ex, x2), em_tensor(ex, gamma), em_tensor(ex, yOut), em_tensor(ex, rstdOut), em_tensor(ex, xOut);
    em_real(ex, epsilon);
    return em_ready(ex, add_rms_norm_kernel, 0);
}

/* Rotary embeddings: the partner of element i of a line of `width`, and its sign in the rotated line. */
static int64_t partner(int64_t i, int64_t width, int64_t mode, double *sign) {
    if (mode == 0) {
        *sign = i < width / 2 ? -1 : 1;
        return i < width / 2 ? i + width / 2 : i - width / 2;
    }
    *sign = i % 2 ? 1 : -1;
    return i % 2 ? i - 1 : i + 1;
}

static void rotary_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    EmTensor wide_cos = em_expand(&t[1], t[0].ndim, t[0].dims), wide_sin = em_expand(&t[2], t[0].ndim, t[0].dims);
    double *x = em_read_reals(&t[0]), *cosine = em_read_reals(&wide_cos), *sine = em_read_reals(&wide_sin), *out = es_doubles(t[0].numel);
    int64_t width = t[0].dims[t[0].ndim - 1];
    for (int64_t i = 0; i < t[0].numel; i++) {
        double sign;
        int64_t place = i % width, other = partner(place, width, call->integer[0], &sign);
        out[i] = x[i] * cosine[i] + sign * x[i - place + other] * sine[i];
    }
    em_write_reals(&t[3], out);
    free(x), free(cosine), free(sine), free(out);
}

static aclnnStatus check_rotary(aclOpExecutor *ex, const aclTensor *x, const aclTensor *cos, const aclTensor *sin, int64_t mode) {
    EM_NOT_NULL(x);
    EM_NOT_NULL(cos);
    EM_NOT_NULL(sin);
    ES_DTYPE(x, ES_FLOATS);
    ES_SAME_DTYPE(x, cos);
    ES_SAME_DTYPE(x, sin);
    ES_RANK(x, 4);
    ES_RANK(cos, 4);
    ES_SAME_SHAPE(cos, sin);
    if (mode != 0 && mode != 1) return em_fail(ex, 561002, "mode must be 0 or 1");
    if (x->dims[3] % 2 || x->dims[3] > 1024 || cos->dims[3] != x->dims[3]) return em_fail(ex, 561002, "the last dimensions do not fit");
    for (int d = 0; d < 3; d++)
        if (cos->dims[d] != 1 && cos->dims[d] != x->dims[d]) return em_fail(ex, 561002, "cos does not broadcast to x");
    return 0;
}

#define TRY(call) do { aclnnStatus tried = (call); if (tried) return tried; } while (0)

EM_OP(aclnnRotaryPositionEmbedding, const aclTensor *x, const aclTensor *cos, const aclTensor *sin, int64_t mode, aclTensor *out) {
    EM_BEGIN(aclnnRotaryPositionEmbedding);
    TRY(check_rotary(ex, x, cos, sin, mode));
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(x, out);
    ES_SAME_SHAPE(x, out);
    em_tensor(ex, x), em_tensor(ex, cos), em_tensor(ex, sin), em_tensor(ex, out);
    em_integer(ex, mode);
    return em_ready(ex, rotary_kernel, 0);
}

static void write_summed(const EmTensor *target, const EmTensor *whole, const double *values) {
    double *sums = es_doubles(target->numel);
    int64_t at[EM_MAX_DIMS] = {0}, index = 0;
    if (whole->numel) do {
        int64_t place = 0;
        for (int d = 0; d < whole->ndim; d++) place = place * target->dims[d] + (target->dims[d] == 1 ? 0 : at[d]);
        sums[place] += values[index++];
    } while (es_next(whole->ndim, whole->dims, at));
    em_write_reals(target, sums);
    free(sums);
}

/* tensors: dy, cos, sin, x, dx, dcos, dsin. */
static void rotary_grad_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    EmTensor wide_cos = em_expand(&t[1], t[0].ndim, t[0].dims), wide_sin = em_expand(&t[2], t[0].ndim, t[0].dims);
    double *dy = em_read_reals(&t[0]), *cosine = em_read_reals(&wide_cos), *sine = em_read_reals(&wide_sin), *x = t[3].present ? em_read_reals(&t[3]) : NULL;
    double *dx = es_doubles(t[0].numel), *dcos = es_doubles(t[0].numel), *dsin = es_doubles(t[0].numel);
    int64_t width = t[0].dims[t[0].ndim - 1];
    for (int64_t i = 0; i < t[0].numel; i++) {
        double sign;
        int64_t other = i - i % width + partner(i % width, width, call->integer[0], &sign);
        dx[i] += dy[i] * cosine[i];
        dx[other] += sign * dy[i] * sine[i];
        if (x) dcos[i] = dy[i] * x[i], dsin[i] = sign * dy[i] * x[other];
    }
    em_write_reals(&t[4], dx);
    if (x) write_summed(&t[5], &t[0], dcos), write_summed(&t[6], &t[0], dsin);
    free(dy), free(cosine), free(sine), free(x), free(dx), free(dcos), free(dsin);
}

EM_OP(aclnnRotaryPositionEmbeddingGrad, const aclTensor *dy, const aclTensor *cos, const aclTensor *sin, const aclTensor *xOptional, int64_t mode, const aclTensor *dxOut,
      const aclTensor *dcosOut, const aclTensor *dsinOut) {
    EM_BEGIN(aclnnRotaryPositionEmbeddingGrad);
    TRY(check_rotary(ex, dy, cos, sin, mode));
    EM_NOT_NULL(dxOut);
    EM_NOT_NULL(dcosOut);
    EM_NOT_NULL(dsinOut);
    if (xOptional) {
        ES_SAME_DTYPE(dy, xOptional);
        ES_SAME_SHAPE(dy, xOptional);
    }
    ES_SAME_DTYPE(dy, dxOut);
    ES_SAME_SHAPE(dy, dxOut);
    ES_SAME_SHAPE(cos, dcosOut);
    ES_SAME_SHAPE(sin, dsinOut);
    em_tensor(ex, dy), em_tensor(ex, cos), em_tensor(ex, sin), em_tensor(ex, xOptional), em_tensor(ex, dxOut), em_tensor(ex, dcosOut), em_tensor(ex, dsinOut);
    em_integer(ex, mode);
    return em_ready(ex, rotary_grad_kernel, 0);
}

/* Swiglu: silu of the first half along dim, times the second. */
typedef struct Halves { int64_t outer, half; } Halves; /* lines in front, and elements of half a line */

static Halves halves_of(const EmTensor *x, int64_t dim) {
    int at = es_wrap(dim, x->ndim);
    return (Halves){es_product(x->dims, 0, at), es_product(x->dims, at, x->ndim) / 2};
}

static void swiglu_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    Halves h = halves_of(&t[0], call->integer[0]);
    double *x = em_read_reals(&t[0]), *out = es_doubles(t[1].numel);
    for (int64_t o = 0; o < h.outer; o++)
        for (int64_t i = 0; i < h.half; i++) {
            double a = x[o * 2 * h.half + i], b = x[(o * 2 + 1) * h.half + i];
            out[o * h.half + i] = a / (1 + exp(-a)) * b;
        }
    em_write_reals(&t[1], out);
    free(x), free(out);
}

static aclnnStatus check_swiglu(aclOpExecutor *ex, const aclTensor *x, const aclTensor *half, int64_t dim) {
    EM_NOT_NULL(x);
    EM_NOT_NULL(half);
    ES_DTYPE(x, ES_FLOATS);
    ES_SAME_DTYPE(x, half);
    EM_REQUIRE(x->ndim >= 1, "x must have a dimension");
    ES_DIM(at, dim, x);
    EM_REQUIRE(x->dims[at] % 2 == 0, "the dimension to halve is odd");
    int64_t dims[EM_MAX_DIMS];
    memcpy(dims, x->dims, sizeof dims);
    dims[at] /= 2;
    EM_REQUIRE(es_has_shape(half, x->ndim, dims), "the result is not half of x");
    return 0;
}

EM_OP(aclnnSwiGlu, const aclTensor *x, int64_t dim, const aclTensor *out) {
    EM_BEGIN(aclnnSwiGlu);
    TRY(check_swiglu(ex, x, out, dim));
    em_tensor(ex, x), em_tensor(ex, out);
    em_integer(ex, dim);
    return em_ready(ex, swiglu_kernel, 0);
}

static void swiglu_grad_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    Halves h = halves_of(&t[1], call->integer[0]);
    double *dy = em_read_reals(&t[0]), *x = em_read_reals(&t[1]);
    for (int64_t o = 0; o < h.outer; o++)
        for (int64_t i = 0; i < h.half; i++) {
            double *a = &x[o * 2 * h.half + i], *b = &x[(o * 2 + 1) * h.half + i], s = 1 / (1 + exp(-*a)), grad = dy[o * h.half + i];
            double first = grad * *b * s * (1 + *a * (1 - s)), second = grad * *a * s;
            *a = first, *b = second;
        }
    em_write_reals(&t[2], x);
    free(dy), free(x);
}

EM_OP(aclnnSwiGluGrad, const aclTensor *yGrad, const aclTensor *x, int64_t dim, const aclTensor *out) {
    EM_BEGIN(aclnnSwiGluGrad);
    TRY(check_swiglu(ex, x, yGrad, dim));
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(x, out);
    ES_SAME_SHAPE(x, out);
    em_tensor(ex, yGrad), em_tensor(ex, x), em_tensor(ex, out);
    em_integer(ex, dim);
    return em_ready(ex, swiglu_grad_kernel, 0);
}

/* Quantisation of activations: each line divided by its largest size over 127. tensors: x, smooth, groups, y, scale; integer: 0 a token, 1 the tensor, 2 a channel. */
static void dynamic_quant_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    int64_t width = t[0].dims[t[0].ndim - 1], lines = width ? t[0].numel / width : 0, experts = t[2].present ? t[2].numel : 1;
    int64_t rows = t[0].ndim > 1 ? t[0].dims[t[0].ndim - 2] : 1, mode = call->integer[0];
    double *x = em_read_reals(&t[0]), *smooth = t[1].present ? em_read_reals(&t[1]) : NULL, *scale = es_doubles(t[4].numel);
    int64_t *groups = t[2].present ? em_read_integers(&t[2]) : NULL;
    for (int64_t l = 0, expert = 0; l < lines; l++) {
        while (groups && expert < experts - 1 && l >= groups[expert]) expert++;
        for (int64_t i = 0; i < width; i++) {
            double *value = &x[l * width + i];
            if (smooth) *value *= smooth[expert * width + i];
            int64_t place = mode == 0 ? l : mode == 1 ? 0 : l / rows * width + i;
            scale[place] = fmax(scale[place], fabs(*value) / 127);
        }
    }
    for (int64_t k = 0; k < t[0].numel; k++) {
        int64_t l = k / width, place = mode == 0 ? l : mode == 1 ? 0 : l / rows * width + k % width;
        x[k] = scale[place] > 0 ? rint(x[k] / scale[place]) : 0;
    }
    em_write_reals(&t[3], x);
    em_write_reals(&t[4], scale);
    free(x), free(smooth), free(scale), free(groups);
}

static aclnnStatus dynamic_quant(aclOpExecutor *ex, const aclTensor *x, const aclTensor *smooth, const aclTensor *groups, const aclTensor *y, const aclTensor *scale,
                                 int mode) {
    EM_NOT_NULL(x);
    EM_NOT_NULL(y);
    EM_NOT_NULL(scale);
    ES_DTYPE(x, ES_DT(ACL_FLOAT16) | ES_DT(ACL_BF16));
    ES_DTYPE(y, ES_DT(ACL_INT8));
    ES_DTYPE(scale, ES_DT(ACL_FLOAT));
    ES_SAME_SHAPE(x, y);
    EM_REQUIRE(x->ndim >= 2, "x must have at least 2 dimensions");
    if (smooth) ES_SAME_DTYPE(x, smooth);
    if (groups) {
        EM_NOT_NULL(smooth);
        ES_DTYPE(groups, ES_DT(ACL_INT32));
        ES_RANK(groups, 1);
    }
    EM_REQUIRE(!smooth || em_numel(smooth) == x->dims[x->ndim - 1] * (groups ? em_numel(groups) : 1), "smoothScales does not have a number for each channel");
    int64_t whole[EM_MAX_DIMS], one = 1;
    memcpy(whole, x->dims, sizeof whole);
    if (mode == 2) whole[x->ndim - 2] = x->dims[x->ndim - 1];
    EM_REQUIRE(mode == 1 ? es_has_shape(scale, 1, &one) : es_has_shape(scale, x->ndim - 1, whole), "scale does not have the shape of its mode");
    em_tensor(ex, x), em_tensor(ex, smooth), em_tensor(ex, groups), em_tensor(ex, y), em_tensor(ex, scale);
    em_integer(ex, mode);
    return em_ready(ex, dynamic_quant_kernel, 0);
}

EM_OP(aclnnDynamicQuant, const aclTensor *x, const aclTensor *smoothScalesOptional, const aclTensor *yOut, const aclTensor *scaleOut) {
    EM_BEGIN(aclnnDynamicQuant);
    return dynamic_quant(ex, x, smoothScalesOptional, NULL, yOut, scaleOut, 0);
}

EM_OP(aclnnDynamicQuantV2, const aclTensor *x, const aclTensor *smoothScalesOptional, const aclTensor *groupIndexOptional, int64_t dstType, const aclTensor *yOut,
      const aclTensor *scaleOut, const aclTensor *offsetOut) {
    EM_BEGIN(aclnnDynamicQuantV2);
    EM_REQUIRE(dstType == ACL_INT8, "dstType must be int8");
    EM_REQUIRE(!offsetOut, "offsets are not in the emulator");
    return dynamic_quant(ex, x, smoothScalesOptional, groupIndexOptional, yOut, scaleOut, 0);
}

EM_OP(aclnnDynamicQuantV3, const aclTensor *x, const aclTensor *smoothScalesOptional, const aclTensor *groupIndexOptional, int64_t dstType, bool isSymmetrical,
      const char *quantMode, const aclTensor *yOut, const aclTensor *scaleOut, const aclTensor *offsetOut) {
    EM_BEGIN(aclnnDynamicQuantV3);
    EM_NOT_NULL(quantMode);
    EM_REQUIRE(dstType == ACL_INT8, "dstType must be int8");
    EM_REQUIRE(isSymmetrical && !offsetOut, "offsets are not in the emulator");
    int mode = !strcmp(quantMode, "pertoken") ? 0 : !strcmp(quantMode, "pertensor") ? 1 : !strcmp(quantMode, "perchannel") ? 2 : -1;
    EM_REQUIRE(mode >= 0, "quantMode '%s' is not known", quantMode);
    return dynamic_quant(ex, x, smoothScalesOptional, groupIndexOptional, yOut, scaleOut, mode);
}

/* The factor that a scale holds: an int64 or uint64 has the bits of a float in its lower half. */
static double scale_at(const double *reals, const int64_t *bits, int64_t index) {
    if (reals) return reals[index];
    uint32_t low = (uint32_t)bits[index];
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

/* tensors: x1, x2, scale, offset, scales of tokens, bias, out. integers: transposed x1, x2. */
static void quant_matmul_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    EmTensor a = t[0], b = t[1];
    const EmTensor *out = &t[6];
    for (int s = 0; s < 2; s++) {
        EmTensor *side = s ? &b : &a;
        if (!call->integer[s]) continue;
        int n = side->ndim;
        int64_t d = side->dims[n - 1], step = side->strides[n - 1];
        side->dims[n - 1] = side->dims[n - 2], side->strides[n - 1] = side->strides[n - 2];
        side->dims[n - 2] = d, side->strides[n - 2] = step;
    }
    int64_t rows = a.dims[a.ndim - 2], inner = a.dims[a.ndim - 1], columns = b.dims[b.ndim - 1], size = rows * columns, batches = out->numel / (size ? size : 1);
    int64_t dims_a[EM_MAX_DIMS], dims_b[EM_MAX_DIMS];
    memcpy(dims_a, out->dims, sizeof dims_a), memcpy(dims_b, out->dims, sizeof dims_b);
    dims_a[out->ndim - 1] = inner, dims_b[out->ndim - 2] = inner;
    EmTensor wide_a = em_expand(&a, out->ndim, dims_a), wide_b = em_expand(&b, out->ndim, dims_b);
    int64_t *x = em_read_integers(&wide_a), *y = em_read_integers(&wide_b), *bits = es_whole(t[2].dtype) ? em_read_integers(&t[2]) : NULL;
    double *scale = bits ? NULL : em_read_reals(&t[2]), *offset = t[3].present ? em_read_reals(&t[3]) : NULL, *token = t[4].present ? em_read_reals(&t[4]) : NULL;
    double *bias = t[5].present ? em_read_reals(&t[5]) : NULL, *result = es_doubles(out->numel);
    bool whole_bias = t[5].present && t[5].dtype == ACL_INT32;
    for (int64_t n = 0; n < batches; n++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                int64_t sum = 0;
                for (int64_t k = 0; k < inner; k++) sum += x[(n * rows + i) * inner + k] * y[(n * inner + k) * columns + j];
                double value = (double)sum + (bias && whole_bias ? bias[(t[5].numel > columns ? n * columns : 0) + j] : 0);
                if (out->dtype != ACL_INT32) value *= scale_at(scale, bits, t[2].numel == 1 ? 0 : j);
                if (token) value *= token[i];
                if (bias && !whole_bias) value += bias[(t[5].numel > columns ? n * columns : 0) + j];
                if (offset) value += offset[t[3].numel == 1 ? 0 : j];
                if (out->dtype == ACL_INT8) value = fmin(fmax(rint(value), -128), 127);
                result[(n * rows + i) * columns + j] = value;
            }
    em_write_reals(out, result);
    free(x), free(y), free(bits), free(scale), free(offset), free(token), free(bias), free(result);
}

EM_OP(aclnnQuantMatmulV4, const aclTensor *x1, const aclTensor *x2, const aclTensor *scale, const aclTensor *offset, const aclTensor *pertokenScaleOptional,
      const aclTensor *bias, bool transposeX1, bool transposeX2, const aclTensor *out) {
    EM_BEGIN(aclnnQuantMatmulV4);
    EM_NOT_NULL(x1);
    EM_NOT_NULL(x2);
    EM_NOT_NULL(scale);
    EM_NOT_NULL(out);
    ES_DTYPE(x1, ES_DT(ACL_INT8));
    ES_DTYPE(x2, ES_DT(ACL_INT8));
    ES_DTYPE(scale, ES_DT(ACL_FLOAT) | ES_DT(ACL_BF16) | ES_DT(ACL_INT64) | ES_DT(ACL_UINT64));
    ES_DTYPE(out, ES_DT(ACL_INT8) | ES_DT(ACL_FLOAT16) | ES_DT(ACL_BF16) | ES_DT(ACL_INT32));
    EM_REQUIRE(x1->ndim >= 2 && x1->ndim <= 6 && x2->ndim >= 2 && x2->ndim <= 6, "x1 and x2 must have 2 to 6 dimensions");
    int64_t rows = x1->dims[x1->ndim - (transposeX1 ? 1 : 2)], inner = x1->dims[x1->ndim - (transposeX1 ? 2 : 1)];
    int64_t columns = x2->dims[x2->ndim - (transposeX2 ? 2 : 1)];
    EM_REQUIRE(inner == x2->dims[x2->ndim - (transposeX2 ? 1 : 2)], "x1 and x2 cannot be multiplied");
    EM_REQUIRE(out->ndim == (x1->ndim > x2->ndim ? x1->ndim : x2->ndim) && out->dims[out->ndim - 2] == rows && out->dims[out->ndim - 1] == columns,
               "out does not have the shape of the product");
    EM_REQUIRE(em_numel(scale) == 1 || em_numel(scale) == columns, "scale has neither one number nor one for each column");
    bool packed = scale->dtype == ACL_INT64 || scale->dtype == ACL_UINT64;
    EM_REQUIRE(out->dtype != ACL_INT8 || packed, "a result of int8 needs a scale of int64 or uint64");
    EM_REQUIRE(out->dtype != ACL_FLOAT16 || packed || pertokenScaleOptional, "a result of float16 needs a scale of int64 or uint64, or scales of tokens");
    EM_REQUIRE(out->dtype != ACL_BF16 || !packed, "a result of bfloat16 needs a scale of bfloat16 or float32");
    if (offset) {
        ES_DTYPE(offset, ES_DT(ACL_FLOAT));
        EM_REQUIRE(out->dtype == ACL_INT8, "offset is for results of int8");
    }
    if (pertokenScaleOptional) {
        ES_DTYPE(pertokenScaleOptional, ES_DT(ACL_FLOAT));
        EM_REQUIRE(em_numel(pertokenScaleOptional) == rows, "the scales of tokens are not one for each row");
        EM_REQUIRE(out->dtype == ACL_FLOAT16 || out->dtype == ACL_BF16, "scales of tokens are for results of float16 and bfloat16");
    }
    if (bias) EM_REQUIRE(bias->dtype == ACL_INT32 || (bias->dtype == ACL_BF16 && out->dtype == ACL_BF16) || (pertokenScaleOptional && es_in(bias->dtype, ES_FLOATS)),
                         "bias has dtype %d, which is not supported here", bias->dtype);
    em_tensor(ex, x1), em_tensor(ex, x2), em_tensor(ex, scale), em_tensor(ex, offset), em_tensor(ex, pertokenScaleOptional), em_tensor(ex, bias), em_tensor(ex, out);
    em_integer(ex, transposeX1), em_integer(ex, transposeX2);
    return em_ready(ex, quant_matmul_kernel, 0);
}
