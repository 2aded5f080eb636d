/* Comparison, logic, bits and bounds. */
#include "ops_pointwise.h"

static int64_t is_close(double a, double b, double rtol, double atol, int64_t equal_nan) {
    if (a == b || (equal_nan && isnan(a) && isnan(b))) return 1;
    return isfinite(a) && isfinite(b) && fabs(a - b) <= atol + fabs(rtol * b);
}

static double clamp(double x, double low, double high, int64_t bounds) {
    if (bounds & 1) x = pw_maximum(x, low);
    return bounds & 2 ? pw_minimum(x, high) : x;
}

static int64_t clamp_integer(int64_t x, int64_t low, int64_t high, int64_t bounds) {
    if (bounds & 1 && x < low) x = low;
    return bounds & 2 && x > high ? high : x;
}

#define COMPARISON(NAME, OPERATOR)                                                     \
    KERNEL_TRUTH(NAME##_kernel, 2, a OPERATOR b, a OPERATOR b, creal(a) OPERATOR creal(b)) \
    KERNEL_TRUTH(NAME##_scalar_kernel, 1, a OPERATOR s0, a OPERATOR s0, creal(a) OPERATOR creal(s0))
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)
KERNEL_TRUTH(eq_kernel, 2, a == b, a == b, a == b)
KERNEL_TRUTH(eq_scalar_kernel, 1, a == s0, a == s0, a == s0)
KERNEL_TRUTH(ne_kernel, 2, a != b, a != b, a != b)
KERNEL_TRUTH(ne_scalar_kernel, 1, a != s0, a != s0, a != s0)
KERNEL_TRUTH(is_close_kernel, 2, is_close(a, b, r0, r1, i0), is_close((double)a, (double)b, r0, r1, i0), 0)
#define TRUTH(x) ((x) != 0)
KERNEL_TRUTH(logical_and_kernel, 2, TRUTH(a) && TRUTH(b), TRUTH(a) && TRUTH(b), TRUTH(a) && TRUTH(b))
KERNEL_TRUTH(logical_or_kernel, 2, TRUTH(a) || TRUTH(b), TRUTH(a) || TRUTH(b), TRUTH(a) || TRUTH(b))
KERNEL_TRUTH(logical_xor_kernel, 2, TRUTH(a) != TRUTH(b), TRUTH(a) != TRUTH(b), TRUTH(a) != TRUTH(b))
KERNEL_TRUTH(logical_not_kernel, 1, !TRUTH(a), !TRUTH(a), !TRUTH(a))
KERNEL_I(and_kernel, 2, a & b)
KERNEL_I(ands_kernel, 1, a & s0)
KERNEL_I(or_kernel, 2, a | b)
KERNEL_I(ors_kernel, 1, a | s0)
KERNEL_I(xor_kernel, 2, a ^ b)
KERNEL_I(xors_kernel, 1, a ^ s0)
KERNEL_I(not_kernel, 1, common == ACL_BOOL ? !a : ~a)
KERNEL_RI(clamp_kernel, 1, clamp(a, s0, s1, i0), clamp_integer(a, s0, s1, i0))
KERNEL_RI(clamp_min_tensor_kernel, 2, pw_maximum(a, b), a > b ? a : b)
KERNEL_RI(clamp_max_tensor_kernel, 2, pw_minimum(a, b), a < b ? a : b)
KERNEL_RI(clamp_tensor_kernel, 3, clamp(a, b, c, 3), clamp_integer(a, b, c, 3))

#define COMPARE(NAME, IN, TENSORS, NUMBER)                                                              \
    EM_OP(aclnn##NAME##Tensor, const aclTensor *self, const aclTensor *other, aclTensor *out) {         \
        EM_BEGIN(aclnn##NAME##Tensor);                                                                  \
        TRY(pw_check2(ex, self, other, out, IN, D_ALL, TO_BOOL));                                       \
        return em_ready(ex, TENSORS, 0);                                                                \
    }                                                                                                   \
    EM_OP(aclnn##NAME##Scalar, const aclTensor *self, const aclScalar *other, aclTensor *out) {         \
        EM_BEGIN(aclnn##NAME##Scalar);                                                                  \
        TRY(pw_check1s(ex, self, other, out, IN, D_ALL, TO_BOOL));                                      \
        return em_ready(ex, NUMBER, 0);                                                                 \
    }
COMPARE(Eq, D_NUMBERS | D_UNSIGNED, eq_kernel, eq_scalar_kernel)
COMPARE(Ne, D_NUMBERS | D_UNSIGNED, ne_kernel, ne_scalar_kernel)
COMPARE(Lt, D_COMMON | D_UNSIGNED, lt_kernel, lt_scalar_kernel)
COMPARE(Le, D_COMMON | D_UNSIGNED, le_kernel, le_scalar_kernel)
COMPARE(Gt, D_COMMON | D_UNSIGNED, gt_kernel, gt_scalar_kernel)
COMPARE(Ge, D_COMMON | D_UNSIGNED, ge_kernel, ge_scalar_kernel)

EM_OP(aclnnIsClose, const aclTensor *self, const aclTensor *other, double rtol, double atol, bool equalNan, aclTensor *out) {
    EM_BEGIN(aclnnIsClose);
    EM_NOT_NULL(self);
    EM_NOT_NULL(other);
    EM_REQUIRE(self->dtype == other->dtype, "self and other differ in dtype");
    TRY(pw_check2(ex, self, other, out, D_COMMON, D_BOOL, TO_BOOL));
    em_real(ex, rtol);
    em_real(ex, atol);
    em_integer(ex, equalNan);
    return em_ready(ex, is_close_kernel, 0);
}

/* One truth value: whether the shapes and all elements are equal. */
static void equal_kernel(EmCall *call) {
    const EmTensor *a = &call->tensor[0], *b = &call->tensor[1];
    bool equal = a->ndim == b->ndim && !memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof *a->dims);
    if (equal && pw_kind(em_promote(a->dtype, b->dtype)) == KIND_INTEGER) {
        int64_t *x = em_read_integers(a), *y = em_read_integers(b);
        for (int64_t k = 0; k < a->numel && equal; k++) equal = x[k] == y[k];
        free(x), free(y);
    } else if (equal) {
        double *x = em_read_reals(a), *y = em_read_reals(b);
        for (int64_t k = 0; k < a->numel && equal; k++) equal = x[k] == y[k];
        free(x), free(y);
    }
    int64_t result = equal;
    em_write_integers(&call->tensor[2], &result);
}

EM_OP(aclnnEqual, const aclTensor *self, const aclTensor *other, aclTensor *out) {
    EM_BEGIN(aclnnEqual);
    EM_NOT_NULL(self);
    EM_NOT_NULL(other);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(self->dtype, D_COMMON | D_UNSIGNED) && pw_is(other->dtype, D_COMMON | D_UNSIGNED), "the dtypes are not supported");
    EM_REQUIRE(out->dtype == ACL_BOOL && out->ndim == 1 && out->dims[0] == 1, "out is not one bool of shape [1]");
    em_tensor(ex, self);
    em_tensor(ex, other);
    em_tensor(ex, out);
    return em_ready(ex, equal_kernel, 0);
}

#define LOGICAL(NAME, KERNEL)                                                                       \
    EM_OP(aclnnLogical##NAME, const aclTensor *self, const aclTensor *other, aclTensor *out) {      \
        EM_BEGIN(aclnnLogical##NAME);                                                               \
        TRY(pw_check2(ex, self, other, out, D_NUMBERS, D_NUMBERS, TO_BOOL));                        \
        return em_ready(ex, KERNEL, 0);                                                             \
    }
LOGICAL(And, logical_and_kernel)
LOGICAL(Or, logical_or_kernel)
LOGICAL(Xor, logical_xor_kernel)

EM_OP(aclnnLogicalNot, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnLogicalNot);
    TRY(pw_check1(ex, self, out, D_NUMBERS, D_NUMBERS, TO_BOOL));
    return em_ready(ex, logical_not_kernel, 0);
}

#define BITWISE(NAME, IN, TENSORS, NUMBER)                                                                              \
    EM_OP(aclnnBitwise##NAME##Tensor, const aclTensor *self, const aclTensor *other, aclTensor *out) {                  \
        EM_BEGIN(aclnnBitwise##NAME##Tensor);                                                                           \
        TRY(pw_check2(ex, self, other, out, IN, D_ALL, TO_CASTABLE));                                                   \
        return em_ready(ex, TENSORS, 0);                                                                                \
    }                                                                                                                   \
    EM_OP(aclnnBitwise##NAME##Scalar, const aclTensor *self, const aclScalar *other, aclTensor *out) {                  \
        EM_BEGIN(aclnnBitwise##NAME##Scalar);                                                                           \
        EM_NOT_NULL(other);                                                                                             \
        EM_REQUIRE(pw_is(other->dtype, IN), "the number's dtype %d is neither integral nor bool", other->dtype);        \
        TRY(pw_check1s(ex, self, other, out, IN, D_ALL, TO_CASTABLE));                                                  \
        return em_ready(ex, NUMBER, 0);                                                                                 \
    }
BITWISE(And, D_INTS | D_BOOL | DT(ACL_UINT16), and_kernel, ands_kernel)
BITWISE(Or, D_INTS | D_BOOL | D_UNSIGNED, or_kernel, ors_kernel)
BITWISE(Xor, D_INTS | D_BOOL | D_UNSIGNED, xor_kernel, xors_kernel)

EM_OP(aclnnBitwiseNot, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnBitwiseNot);
    TRY(pw_check1(ex, self, out, D_INTS | D_BOOL, D_INTS | D_BOOL, TO_SAME));
    return em_ready(ex, not_kernel, 0);
}

/* Bounds: of one tensor by numbers, either of which may be missing; by tensors. */
static aclnnStatus clamp_numbers(aclOpExecutor *ex, const aclTensor *self, const aclScalar *low, const aclScalar *high, const aclTensor *out) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    if (!low && !high) return em_fail(ex, ACLNN_ERR_PARAM_NULLPTR, "both bounds are NULL");
    EM_REQUIRE(!low || pw_is(low->dtype, D_COMMON), "the lower bound's dtype is not supported");
    EM_REQUIRE(!high || pw_is(high->dtype, D_COMMON), "the upper bound's dtype is not supported");
    aclDataType number = !low ? high->dtype : !high ? low->dtype : em_promote(low->dtype, high->dtype);
    TRY(pw_check(ex, 1, &self, number, out, D_COMMON & ~D_BOOL, D_COMMON & ~D_BOOL, TO_CASTABLE));
    em_scalar(ex, low);
    em_scalar(ex, high);
    em_integer(ex, (low ? 1 : 0) | (high ? 2 : 0));
    return em_ready(ex, clamp_kernel, 0);
}

EM_OP(aclnnClamp, const aclTensor *self, const aclScalar *clipValueMin, const aclScalar *clipValueMax, aclTensor *out) {
    EM_BEGIN(aclnnClamp);
    return clamp_numbers(ex, self, clipValueMin, clipValueMax, out);
}

EM_OP(aclnnClampMin, const aclTensor *self, const aclScalar *clipValueMin, aclTensor *out) {
    EM_BEGIN(aclnnClampMin);
    return clamp_numbers(ex, self, clipValueMin, NULL, out);
}

EM_OP(aclnnClampMax, const aclTensor *self, const aclScalar *clipValueMax, aclTensor *out) {
    EM_BEGIN(aclnnClampMax);
    return clamp_numbers(ex, self, NULL, clipValueMax, out);
}

static aclnnStatus clamp_tensors(aclOpExecutor *ex, const aclTensor *self, const aclTensor *low, const aclTensor *high, const aclTensor *out) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    if (!low && !high) return em_fail(ex, ACLNN_ERR_PARAM_NULLPTR, "both bounds are NULL");
    EM_REQUIRE(self->dtype != ACL_BOOL, "self is bool");
    if (low && high) TRY(pw_check3(ex, self, low, high, out, D_COMMON, D_COMMON & ~D_BOOL, TO_CASTABLE));
    else TRY(pw_check2(ex, self, low ? low : high, out, D_COMMON, D_COMMON & ~D_BOOL, TO_CASTABLE));
    return em_ready(ex, low && high ? clamp_tensor_kernel : low ? clamp_min_tensor_kernel : clamp_max_tensor_kernel, 0);
}

EM_OP(aclnnClampTensor, const aclTensor *self, const aclTensor *clipValueMin, const aclTensor *clipValueMax, aclTensor *out) {
    EM_BEGIN(aclnnClampTensor);
    return clamp_tensors(ex, self, clipValueMin, clipValueMax, out);
}

EM_OP(aclnnClampMinTensor, const aclTensor *self, const aclTensor *clipValueMin, aclTensor *out) {
    EM_BEGIN(aclnnClampMinTensor);
    return clamp_tensors(ex, self, clipValueMin, NULL, out);
}

EM_OP(aclnnClampMaxTensor, const aclTensor *self, const aclTensor *max, aclTensor *out) {
    EM_BEGIN(aclnnClampMaxTensor);
    return clamp_tensors(ex, self, NULL, max, out);
}
