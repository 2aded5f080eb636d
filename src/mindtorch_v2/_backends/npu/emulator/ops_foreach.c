/* Operators of lists of tensors, and the step of AdamW. */
#include "ops_pointwise.h"

#define ACLNN_ERR_INNER_TILING_ERROR 561002 /* what lists report for shapes, numbers of tensors and mixed dtypes */

#define D_LIST (D_FLOATS | D_I32)
#define D_LIST_SMALL (D_LIST | D_I16 | D_I8 | D_U8)

/* The lists' dtypes and shapes; they are added to the executor. Tensors: those of each list, then the number's (if there is one), then the output's. */
static aclnnStatus check_lists(aclOpExecutor *ex, int count, const aclTensorList *const *lists, const aclTensor *number, bool has_number, const aclTensorList *out,
                               uint32_t set, bool same_shape) {
    for (int l = 0; l < count; l++)
        if (!lists[l]) return em_fail(ex, ACLNN_ERR_PARAM_NULLPTR, "list %d is NULL", l);
    EM_NOT_NULL(out);
    if (has_number) EM_NOT_NULL(number);
    EM_REQUIRE(lists[0]->size > 0, "the list is empty");
    aclDataType dtype = lists[0]->items[0]->dtype;
    EM_REQUIRE(pw_is(dtype, set), "the list has dtype %d, which is not supported", dtype);
    for (int l = 0; l <= count; l++) {
        const aclTensorList *list = l == count ? out : lists[l];
        if (list->size != lists[0]->size) return em_fail(ex, ACLNN_ERR_INNER_TILING_ERROR, "the lists differ in size");
        EM_REQUIRE(list->items[0]->dtype == dtype, "the lists differ in dtype");
        for (uint64_t t = 0; t < list->size; t++) {
            if (list->items[t]->dtype != dtype) return em_fail(ex, ACLNN_ERR_INNER_TILING_ERROR, "a list has several dtypes");
            if (same_shape && !em_same_shape(list->items[t], lists[0]->items[t])) return em_fail(ex, ACLNN_ERR_INNER_TILING_ERROR, "tensor %d differs in shape", (int)t);
        }
    }
    if (has_number) {
        bool integer = em_is_integral(dtype);
        bool fits = integer ? number->dtype == ACL_INT32 : dtype == ACL_BF16 ? number->dtype == ACL_FLOAT : number->dtype == dtype;
        EM_REQUIRE(fits, "the number has dtype %d, which does not go with the lists' %d", number->dtype, dtype);
        if (em_numel(number) != 1) return em_fail(ex, ACLNN_ERR_INNER_TILING_ERROR, "the number has %lld elements", (long long)em_numel(number));
    }
    for (int l = 0; l < count; l++) em_list(ex, lists[l]);
    if (has_number) em_tensor(ex, number);
    em_list(ex, out);
    em_integer(ex, count);
    return 0;
}

/* For each tensor of the lists: a, b, c are elements of up to three lists, s is the number. */
#define EACH(NAME, HAS_NUMBER, REAL, INTEGER)                                                                              \
    static void NAME(EmCall *call) {                                                                                       \
        int size = call->list_size[0], lists = (int)call->integer[0];                                                      \
        const EmTensor *number = HAS_NUMBER == 1 ? &call->tensor[lists * size] : NULL;                                         \
        for (int t = 0; t < size; t++) {                                                                                   \
            const EmTensor *out = &call->tensor[lists * size + (HAS_NUMBER == 1) + t];                                          \
            if (em_is_integral(out->dtype)) EACH_LOOP(HAS_NUMBER, int64_t, em_read_integers, em_write_integers, INTEGER);              \
            else EACH_LOOP(HAS_NUMBER, double, em_read_reals, em_write_reals, REAL);                                                   \
        }                                                                                                                  \
    }
#define EACH_LOOP(HAS_NUMBER, TYPE, READ, WRITE, EXPRESSION)                                                                           \
    do {                                                                                                                   \
        TYPE *x[3] = {0}, *of_number = number ? READ(number) : NULL;                                                       \
        TYPE *results = pw_allocate(out->numel, sizeof *results), s = of_number ? of_number[0] : HAS_NUMBER == 2 ? (TYPE)call->real[0] : 0;                       \
        for (int l = 0; l < lists; l++) x[l] = READ(&call->tensor[l * size + t]);                                          \
        for (int64_t k = 0; k < out->numel; k++) {                                                                         \
            const TYPE a = x[0][k], b = x[1] ? x[1][k] : 0, c = x[2] ? x[2][k] : 0;                                        \
            (void)a, (void)b, (void)c, (void)s;                                                                            \
            results[k] = EXPRESSION;                                                                                       \
        }                                                                                                                  \
        WRITE(out, results);                                                                                               \
        free(x[0]), free(x[1]), free(x[2]), free(of_number), free(results);                                                \
    } while (0)

EACH(add_scalar_kernel, 1, a + s, WRAP(U(a) + U(s)))
EACH(add_list_kernel, 1, a + b * s, WRAP(U(a) + U(b) * U(s)))
EACH(mul_scalar_kernel, 1, a * s, WRAP(U(a) * U(s)))
EACH(mul_list_kernel, 0, a * b, WRAP(U(a) * U(b)))
EACH(sqrt_kernel, 0, sqrt(a), a)
EACH(addcmul_kernel, 1, a + b * c * s, WRAP(U(a) + U(b) * U(c) * U(s)))
EACH(addcdiv_kernel, 1, a + b / c * s, a)

EM_OP(aclnnForeachAddScalar, const aclTensorList *x, const aclTensor *scalar, const aclTensorList *out) {
    EM_BEGIN(aclnnForeachAddScalar);
    TRY(check_lists(ex, 1, &x, scalar, true, out, D_LIST_SMALL, true));
    return em_ready(ex, add_scalar_kernel, 0);
}

EM_OP(aclnnForeachAddList, const aclTensorList *x1, const aclTensorList *x2, const aclTensor *alpha, aclTensorList *out) {
    EM_BEGIN(aclnnForeachAddList);
    const aclTensorList *lists[] = {x1, x2};
    TRY(check_lists(ex, 2, lists, alpha, true, out, D_LIST_SMALL, true));
    return em_ready(ex, add_list_kernel, 0);
}

EM_OP(aclnnForeachMulScalar, const aclTensorList *x, const aclTensor *scalar, const aclTensorList *out) {
    EM_BEGIN(aclnnForeachMulScalar);
    TRY(check_lists(ex, 1, &x, scalar, true, out, D_LIST, true));
    return em_ready(ex, mul_scalar_kernel, 0);
}

EM_OP(aclnnForeachMulList, const aclTensorList *x1, const aclTensorList *x2, aclTensorList *out) {
    EM_BEGIN(aclnnForeachMulList);
    const aclTensorList *lists[] = {x1, x2};
    TRY(check_lists(ex, 2, lists, NULL, false, out, D_LIST_SMALL, true));
    return em_ready(ex, mul_list_kernel, 0);
}

EM_OP(aclnnForeachSqrt, const aclTensorList *x, aclTensorList *out) {
    EM_BEGIN(aclnnForeachSqrt);
    TRY(check_lists(ex, 1, &x, NULL, false, out, D_FLOATS, true));
    return em_ready(ex, sqrt_kernel, 0);
}

EM_OP(aclnnForeachAddcmulScalar, const aclTensorList *x1, const aclTensorList *x2, const aclTensorList *x3, const aclTensor *scalar, const aclTensorList *out) {
    EM_BEGIN(aclnnForeachAddcmulScalar);
    const aclTensorList *lists[] = {x1, x2, x3};
    TRY(check_lists(ex, 3, lists, scalar, true, out, D_LIST, true));
    return em_ready(ex, addcmul_kernel, 0);
}

EM_OP(aclnnForeachAddcdivScalar, const aclTensorList *x1, const aclTensorList *x2, const aclTensorList *x3, const aclTensor *scalar, aclTensorList *out) {
    EM_BEGIN(aclnnForeachAddcdivScalar);
    const aclTensorList *lists[] = {x1, x2, x3};
    TRY(check_lists(ex, 3, lists, scalar, true, out, D_FLOATS, true));
    return em_ready(ex, addcdiv_kernel, 0);
}

/* The forms whose number is an aclScalar, and those of one list or several alone. */
EACH(add_real_kernel, 2, a + s, WRAP(U(a) + U(s)))
EACH(sub_real_kernel, 2, a - s, WRAP(U(a) - U(s)))
EACH(mul_real_kernel, 2, a * s, WRAP(U(a) * U(s)))
EACH(div_real_kernel, 2, a / s, a)
EACH(add_lists_kernel, 2, a + b * s, WRAP(U(a) + U(b) * U(s)))
EACH(sub_lists_kernel, 2, a - b * s, WRAP(U(a) - U(b) * U(s)))
EACH(addcmul_real_kernel, 2, a + b * c * s, WRAP(U(a) + U(b) * U(c) * U(s)))
EACH(addcdiv_real_kernel, 2, a + b / c * s, a)
EACH(lerp_real_kernel, 2, s < 0.5 ? a + s * (b - a) : b - (b - a) * (1 - s), a)
EACH(div_lists_kernel, 0, a / b, a)
EACH(maximum_lists_kernel, 0, pw_maximum(a, b), a > b ? a : b)
EACH(neg_kernel, 0, -a, WRAP(-U(a)))
EACH(abs_kernel, 0, fabs(a), a)
EACH(exp_kernel, 0, exp(a), a)
EACH(reciprocal_kernel, 0, 1 / a, a)

static aclnnStatus with_real(aclOpExecutor *ex, int count, const aclTensorList *const *lists, const aclScalar *scalar, const aclTensorList *out, uint32_t set, EmKernel kernel) {
    EM_NOT_NULL(scalar);
    TRY(check_lists(ex, count, lists, NULL, false, out, set, true));
    bool integral = em_is_integral(lists[0]->items[0]->dtype);
    EM_REQUIRE(pw_is(scalar->dtype, integral ? D_I64 | D_I32 : D_F32 | D_F64), "the number has dtype %d, which does not go with the lists'", scalar->dtype);
    em_real(ex, pw_value(scalar));
    return em_ready(ex, kernel, 0);
}

#define WITH_REAL(NAME, SET, KERNEL)                                                                              \
    EM_OP(NAME, const aclTensorList *x, const aclScalar *scalar, aclTensorList *out) {                            \
        EM_BEGIN(NAME);                                                                                           \
        return with_real(ex, 1, &x, scalar, out, SET, KERNEL);                                                    \
    }
#define TWO_WITH_REAL(NAME, NUMBER, SET, KERNEL)                                                                  \
    EM_OP(NAME, const aclTensorList *x1, const aclTensorList *x2, const aclScalar *NUMBER, aclTensorList *out) {  \
        EM_BEGIN(NAME);                                                                                           \
        const aclTensorList *lists[] = {x1, x2};                                                                  \
        return with_real(ex, 2, lists, NUMBER, out, SET, KERNEL);                                                 \
    }
#define THREE_WITH_REAL(NAME, SET, KERNEL)                                                                        \
    EM_OP(NAME, const aclTensorList *x1, const aclTensorList *x2, const aclTensorList *x3, const aclScalar *scalar, aclTensorList *out) { \
        EM_BEGIN(NAME);                                                                                           \
        const aclTensorList *lists[] = {x1, x2, x3};                                                              \
        return with_real(ex, 3, lists, scalar, out, SET, KERNEL);                                                 \
    }
#define ONE_LIST(NAME, SET, KERNEL)                                                                               \
    EM_OP(NAME, const aclTensorList *x, const aclTensorList *out) {                                               \
        EM_BEGIN(NAME);                                                                                           \
        TRY(check_lists(ex, 1, &x, NULL, false, out, SET, true));                                                 \
        return em_ready(ex, KERNEL, 0);                                                                           \
    }

WITH_REAL(aclnnForeachAddScalarV2, D_LIST, add_real_kernel)
WITH_REAL(aclnnForeachSubScalarV2, D_LIST, sub_real_kernel)
WITH_REAL(aclnnForeachMulScalarV2, D_LIST, mul_real_kernel)
WITH_REAL(aclnnForeachDivScalarV2, D_FLOATS, div_real_kernel)
TWO_WITH_REAL(aclnnForeachAddListV2, alpha, D_LIST, add_lists_kernel)
TWO_WITH_REAL(aclnnForeachSubListV2, alpha, D_LIST, sub_lists_kernel)
TWO_WITH_REAL(aclnnForeachLerpScalar, weight, D_FLOATS, lerp_real_kernel)
THREE_WITH_REAL(aclnnForeachAddcmulScalarV2, D_LIST, addcmul_real_kernel)
THREE_WITH_REAL(aclnnForeachAddcdivScalarV2, D_FLOATS, addcdiv_real_kernel)
ONE_LIST(aclnnForeachNeg, D_LIST, neg_kernel)
ONE_LIST(aclnnForeachAbs, D_FLOATS, abs_kernel)
ONE_LIST(aclnnForeachExp, D_FLOATS, exp_kernel)
ONE_LIST(aclnnForeachReciprocal, D_FLOATS, reciprocal_kernel)

EM_OP(aclnnForeachDivList, const aclTensorList *x1, const aclTensorList *x2, aclTensorList *out) {
    EM_BEGIN(aclnnForeachDivList);
    const aclTensorList *lists[] = {x1, x2};
    TRY(check_lists(ex, 2, lists, NULL, false, out, D_FLOATS, true));
    return em_ready(ex, div_lists_kernel, 0);
}

EM_OP(aclnnForeachMaximumList, const aclTensorList *x1, const aclTensorList *x2, const aclTensorList *out) {
    EM_BEGIN(aclnnForeachMaximumList);
    const aclTensorList *lists[] = {x1, x2};
    TRY(check_lists(ex, 2, lists, NULL, false, out, D_LIST, true));
    return em_ready(ex, maximum_lists_kernel, 0);
}

static double norm(const double *x, int64_t count, double order) {
    double result = 0;
    for (int64_t k = 0; k < count; k++) {
        double size = fabs(x[k]);
        if (isinf(order)) result = pw_maximum(result, size);
        else result += order == 2 ? size * size : order == 0 ? size != 0 : pow(size, order);
    }
    return order == 2 ? sqrt(result) : isinf(order) || order == 0 || order == 1 ? result : pow(result, 1 / order);
}

static void norm_kernel(EmCall *call) {
    int size = call->list_size[0];
    for (int t = 0; t < size; t++) {
        double *x = em_read_reals(&call->tensor[t]), result = norm(x, call->tensor[t].numel, call->real[0]);
        em_write_reals(&call->tensor[size + t], &result);
        free(x);
    }
}

EM_OP(aclnnForeachNorm, const aclTensorList *x, const aclScalar *scalar, const aclTensorList *out) {
    EM_BEGIN(aclnnForeachNorm);
    EM_NOT_NULL(scalar);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(scalar->dtype, D_F32 | D_F64 | D_I64), "the order has dtype %d, which is not supported", scalar->dtype);
    for (uint64_t t = 0; t < out->size; t++)
        if (em_numel(out->items[t]) != 1) return em_fail(ex, ACLNN_ERR_INNER_TILING_ERROR, "an output is not one element");
    TRY(check_lists(ex, 1, &x, NULL, false, out, D_FLOATS, false));
    em_real(ex, pw_value(scalar));
    return em_ready(ex, norm_kernel, 0);
}

/* Tensors: var, m, v, maxGradNorm (which may be absent), grad, step. Reals: lr, beta1, beta2, weightDecay, eps. Integers: amsgrad, maximize. */
static void adamw_kernel(EmCall *call) {
    const EmTensor *var = &call->tensor[0], *largest = &call->tensor[3];
    double lr = call->real[0], beta1 = call->real[1], beta2 = call->real[2], decay = call->real[3], eps = call->real[4];
    bool amsgrad = call->integer[0] != 0;
    double *theta = em_read_reals(var), *m = em_read_reals(&call->tensor[1]), *v = em_read_reals(&call->tensor[2]);
    double *g = em_read_reals(&call->tensor[4]), *step = em_read_reals(&call->tensor[5]), *top = amsgrad ? em_read_reals(largest) : NULL;
    double correction1 = 1 - pow(beta1, step[0]), correction2 = 1 - pow(beta2, step[0]);
    for (int64_t k = 0; k < var->numel; k++) {
        double gradient = call->integer[1] ? -g[k] : g[k];
        m[k] = beta1 * m[k] + (1 - beta1) * gradient;
        v[k] = beta2 * v[k] + (1 - beta2) * gradient * gradient;
        if (top) top[k] = pw_maximum(top[k], v[k]);
        double second = (top ? top[k] : v[k]) / correction2;
        theta[k] = theta[k] * (1 - lr * decay) - lr * (m[k] / correction1) / (sqrt(second) + eps);
    }
    em_write_reals(var, theta);
    em_write_reals(&call->tensor[1], m);
    em_write_reals(&call->tensor[2], v);
    if (top) em_write_reals(largest, top);
    free(theta), free(m), free(v), free(g), free(step), free(top);
}

EM_OP(aclnnApplyAdamWV2, aclTensor *varRef, aclTensor *mRef, aclTensor *vRef, aclTensor *maxGradNormOptionalRef, const aclTensor *grad, const aclTensor *step,
      float lr, float beta1, float beta2, float weightDecay, float eps, bool amsgrad, bool maximize) {
    EM_BEGIN(aclnnApplyAdamWV2);
    const aclTensor *all[] = {varRef, mRef, vRef, grad, step};
    for (int t = 0; t < 5; t++) EM_NOT_NULL(all[t]);
    if (amsgrad) EM_NOT_NULL(maxGradNormOptionalRef);
    for (int t = 0; t < 4; t++) {
        EM_REQUIRE(pw_is(all[t]->dtype, D_FLOATS) && all[t]->dtype == varRef->dtype, "the dtypes differ or are not supported");
        EM_REQUIRE(em_same_shape(all[t], varRef), "the shapes differ");
    }
    EM_REQUIRE(!maxGradNormOptionalRef || maxGradNormOptionalRef->dtype == varRef->dtype, "maxGradNorm's dtype is not varRef's");
    EM_REQUIRE(!amsgrad || em_same_shape(maxGradNormOptionalRef, varRef), "maxGradNorm's shape is not varRef's");
    EM_REQUIRE(pw_is(step->dtype, D_F32 | D_I64) && em_numel(step) == 1, "step is not one element of float32 or int64");
    em_tensor(ex, varRef), em_tensor(ex, mRef), em_tensor(ex, vRef), em_tensor(ex, maxGradNormOptionalRef), em_tensor(ex, grad), em_tensor(ex, step);
    em_real(ex, lr), em_real(ex, beta1), em_real(ex, beta2), em_real(ex, weightDecay), em_real(ex, eps);
    em_integer(ex, amsgrad), em_integer(ex, maximize);
    return em_ready(ex, adamw_kernel, 0);
}
