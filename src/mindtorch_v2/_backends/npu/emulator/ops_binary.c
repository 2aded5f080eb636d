/* Arithmetic of two tensors, or of a tensor and a number; and of three. */
#include "ops_pointwise.h"

/* Floor division, the quotient of what Python's modulo leaves. */
static double floor_divide(double a, double b) {
    if (b == 0) return a / b;
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    return quotient == 0 ? copysign(0, a / b) : round(quotient);
}

/* Division of integers by 0 is undefined on the device; here it gives 0, so that the host goes on. */
static int64_t floor_divide_integers(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return WRAP(-U(a));
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static int64_t truncate_divide_integers(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? WRAP(-U(a)) : a / b; }

static double remainder_of(double a, double b) {
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t fmod_integers(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

static int64_t remainder_of_integers(int64_t a, int64_t b) {
    int64_t rest = fmod_integers(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Integers to a negative power are 0, but for 1 and -1. */
static int64_t power_of_integers(int64_t base, int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    uint64_t result = 1, factor = U(base);
    for (; exponent; exponent >>= 1, factor *= factor)
        if (exponent & 1) result *= factor;
    return WRAP(result);
}

static double complex power_of_complex(double complex base, double complex exponent) {
    if (exponent == 0) return 1;
    if (base == 0) return creal(exponent) > 0 ? 0 : CMPLX(NAN, NAN);
    return cpow(base, exponent);
}

static double log_add_exp(double a, double b) {
    if (isinf(a) && a == b) return a;
    double larger = pw_maximum(a, b);
    return larger + log1p(exp(-fabs(a - b)));
}

static double x_log_y(double x, double y) { return isnan(y) ? NAN : x == 0 ? 0 : x * log(y); }

static int64_t common_divisor(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? -U(a) : U(a), y = b < 0 ? -U(b) : U(b);
    while (y) {
        uint64_t rest = x % y;
        x = y, y = rest;
    }
    return WRAP(x);
}

static int64_t left_shift(int64_t a, int64_t bits) { return bits < 0 || bits > 63 ? 0 : WRAP(U(a) << bits); }

static double lerp(double a, double b, double weight) { return fabs(weight) < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight); }

/* With alpha: s0 for tensors, s1 after the number s0. */
KERNEL_RIC(add_kernel, 2, a + s0 * b, WRAP(U(a) + U(s0) * U(b)), a + s0 * b)
KERNEL_RIC(adds_kernel, 1, a + s1 * s0, WRAP(U(a) + U(s1) * U(s0)), a + s1 * s0)
KERNEL_RIC(sub_kernel, 2, a - s0 * b, WRAP(U(a) - U(s0) * U(b)), a - s0 * b)
KERNEL_RIC(subs_kernel, 1, a - s1 * s0, WRAP(U(a) - U(s1) * U(s0)), a - s1 * s0)
KERNEL_RIC(rsub_kernel, 2, b - s0 * a, WRAP(U(b) - U(s0) * U(a)), b - s0 * a)
KERNEL_RIC(rsubs_kernel, 1, s0 - s1 * a, WRAP(U(s0) - U(s1) * U(a)), s0 - s1 * a)
KERNEL_RIC(mul_kernel, 2, a * b, WRAP(U(a) * U(b)), a * b)
KERNEL_RIC(muls_kernel, 1, a * s0, WRAP(U(a) * U(s0)), a * s0)
KERNEL_RC(div_kernel, 2, a / b, a / b)
KERNEL_RC(divs_kernel, 1, a / s0, a / s0)
KERNEL_RI(div_trunc_kernel, 2, trunc(a / b), truncate_divide_integers(a, b))
KERNEL_RI(divs_trunc_kernel, 1, trunc(a / s0), truncate_divide_integers(a, s0))
KERNEL_RI(div_floor_kernel, 2, floor_divide(a, b), floor_divide_integers(a, b))
KERNEL_RI(divs_floor_kernel, 1, floor_divide(a, s0), floor_divide_integers(a, s0))
KERNEL_RI(fmod_kernel, 2, fmod(a, b), fmod_integers(a, b))
KERNEL_RI(fmods_kernel, 1, fmod(a, s0), fmod_integers(a, s0))
KERNEL_RI(remainder_kernel, 2, remainder_of(a, b), remainder_of_integers(a, b))
KERNEL_RI(remainders_kernel, 1, remainder_of(a, s0), remainder_of_integers(a, s0))
KERNEL_RI(remainder_scalar_kernel, 1, remainder_of(s0, a), remainder_of_integers(s0, a))
KERNEL_RIC(pow_kernel, 2, pow(a, b), power_of_integers(a, b), power_of_complex(a, b))
KERNEL_RIC(pows_kernel, 1, pow(a, s0), power_of_integers(a, s0), power_of_complex(a, s0))
KERNEL_RIC(pow_scalar_kernel, 1, pow(s0, a), power_of_integers(s0, a), power_of_complex(s0, a))
KERNEL_RI(maximum_kernel, 2, pw_maximum(a, b), a > b ? a : b)
KERNEL_RI(minimum_kernel, 2, pw_minimum(a, b), a < b ? a : b)
KERNEL_R(atan2_kernel, 2, atan2(a, b))
KERNEL_R(log_add_exp_kernel, 2, log_add_exp(a, b))
KERNEL_R(x_log_y_kernel, 2, x_log_y(a, b))
KERNEL_R(heaviside_kernel, 2, a == 0 ? b : a > 0)
KERNEL_I(gcd_kernel, 2, common_divisor(a, b))
KERNEL_I(left_shift_kernel, 2, left_shift(a, b))
KERNEL_R(lerp_kernel, 3, lerp(a, b, c))
KERNEL_R(lerps_kernel, 2, lerp(a, b, r0))
KERNEL_RI(addcmul_kernel, 3, a + s0 * b * c, WRAP(U(a) + U(s0) * U(b) * U(c)))
KERNEL_RI(addcdiv_kernel, 3, a + s0 * b / c, WRAP(U(a) + U(s0) * U(truncate_divide_integers(b, c))))

/* Two tensors; a tensor and a number; with alpha. */
#define BINARY(NAME, SELF, OTHER, IN, TO, RULE, KERNEL)                                             \
    EM_OP(aclnn##NAME, const aclTensor *SELF, const aclTensor *OTHER, aclTensor *out) {             \
        EM_BEGIN(aclnn##NAME);                                                                      \
        TRY(pw_check2(ex, SELF, OTHER, out, IN, TO, RULE));                                         \
        return em_ready(ex, KERNEL, 0);                                                             \
    }
#define WITH_NUMBER(NAME, SELF, OTHER, CONST, IN, TO, RULE, KERNEL)                                 \
    EM_OP(aclnn##NAME, const aclTensor *SELF, const aclScalar *OTHER, CONST aclTensor *out) {       \
        EM_BEGIN(aclnn##NAME);                                                                      \
        TRY(pw_check1s(ex, SELF, OTHER, out, IN, TO, RULE));                                        \
        return em_ready(ex, KERNEL, 0);                                                             \
    }
#define NUMBER_FIRST(NAME, SELF, OTHER, CONST, IN, TO, RULE, KERNEL)                                \
    EM_OP(aclnn##NAME, const aclScalar *SELF, const aclTensor *OTHER, CONST aclTensor *out) {       \
        EM_BEGIN(aclnn##NAME);                                                                      \
        TRY(pw_check1s(ex, OTHER, SELF, out, IN, TO, RULE));                                        \
        return em_ready(ex, KERNEL, 0);                                                             \
    }
#define WITH_ALPHA(NAME, IN, KERNEL)                                                                                        \
    EM_OP(aclnn##NAME, const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out) {             \
        EM_BEGIN(aclnn##NAME);                                                                                              \
        EM_NOT_NULL(alpha);                                                                                                 \
        TRY(pw_check2(ex, self, other, out, IN, IN, TO_CASTABLE));                                                          \
        TRY(pw_add_number(ex, alpha, em_promote(self->dtype, other->dtype)));                                               \
        return em_ready(ex, KERNEL, 0);                                                                                     \
    }
#define NUMBER_WITH_ALPHA(NAME, IN, KERNEL)                                                                                 \
    EM_OP(aclnn##NAME, const aclTensor *self, const aclScalar *other, const aclScalar *alpha, aclTensor *out) {             \
        EM_BEGIN(aclnn##NAME);                                                                                              \
        EM_NOT_NULL(alpha);                                                                                                 \
        TRY(pw_check1s(ex, self, other, out, IN, IN, TO_CASTABLE));                                                         \
        TRY(pw_add_number(ex, alpha, pw_with_scalar(self->dtype, other->dtype)));                                           \
        return em_ready(ex, KERNEL, 0);                                                                                     \
    }

#define D_MODULO (D_REALS | D_I8 | D_U8 | D_I32 | D_I64)
#define D_REMAINDER (D_REALS | D_I32 | D_I64)

WITH_ALPHA(Add, D_NUMBERS, add_kernel)
WITH_ALPHA(Sub, D_NUMBERS, sub_kernel)
WITH_ALPHA(Rsub, D_NUMBERS & ~D_BOOL, rsub_kernel)
NUMBER_WITH_ALPHA(Adds, D_NUMBERS, adds_kernel)
NUMBER_WITH_ALPHA(Subs, D_NUMBERS, subs_kernel)
NUMBER_WITH_ALPHA(Rsubs, D_NUMBERS & ~D_BOOL, rsubs_kernel)
BINARY(Mul, self, other, D_NUMBERS, D_NUMBERS, TO_CASTABLE, mul_kernel)
WITH_NUMBER(Muls, self, other, , D_NUMBERS, D_NUMBERS, TO_CASTABLE, muls_kernel)
BINARY(Div, self, other, D_NUMBERS, D_NUMBERS, TO_QUOTIENT, div_kernel)
WITH_NUMBER(Divs, self, other, , D_NUMBERS, D_NUMBERS, TO_QUOTIENT, divs_kernel)
BINARY(FloorDivide, self, other, D_COMMON, D_NUMBERS, TO_CASTABLE, div_floor_kernel)
WITH_NUMBER(FloorDivides, self, other, , D_COMMON, D_COMMON, TO_CASTABLE, divs_floor_kernel)
BINARY(FmodTensor, self, other, D_MODULO, D_MODULO, TO_CASTABLE, fmod_kernel)
WITH_NUMBER(FmodScalar, self, other, , D_MODULO, D_MODULO, TO_CASTABLE, fmods_kernel)
BINARY(RemainderTensorTensor, self, other, D_REMAINDER, D_REALS | D_INTS | D_COMPLEX, TO_CASTABLE, remainder_kernel)
WITH_NUMBER(RemainderTensorScalar, self, other, , D_REMAINDER, D_REALS | D_INTS | D_COMPLEX, TO_CASTABLE, remainders_kernel)
NUMBER_FIRST(RemainderScalarTensor, self, other, , D_REMAINDER, D_REMAINDER, TO_CASTABLE, remainder_scalar_kernel)
BINARY(PowTensorTensor, self, exponent, D_NUMBERS, D_ALL, TO_CASTABLE, pow_kernel)
WITH_NUMBER(PowTensorScalar, self, exponent, const, D_NUMBERS, D_ALL, TO_CASTABLE, pows_kernel)
NUMBER_FIRST(PowScalarTensor, self, exponent, const, D_NUMBERS & ~D_BOOL, D_ALL & ~D_BOOL, TO_CASTABLE, pow_scalar_kernel)
BINARY(Maximum, self, other, D_COMMON, D_COMMON, TO_CASTABLE, maximum_kernel)
BINARY(Minimum, self, other, D_COMMON, D_COMMON, TO_CASTABLE, minimum_kernel)
BINARY(Atan2, self, other, D_COMMON, D_REALS, TO_FLOAT, atan2_kernel)
BINARY(LogAddExp, self, other, D_COMMON | D_UNSIGNED, D_FLOATS, TO_FLOAT, log_add_exp_kernel)
BINARY(XLogYTensor, self, other, D_FLOATS | D_INTS | D_BOOL, D_FLOATS | D_INTS | D_BOOL, TO_QUOTIENT, x_log_y_kernel)
BINARY(Heaviside, input, values, D_FLOATS, D_FLOATS, TO_EQUAL, heaviside_kernel)
BINARY(Gcd, self, other, D_INTS, D_INTS | D_UNSIGNED, TO_CASTABLE, gcd_kernel)
BINARY(LeftShift, self, shiftBits, D_INTS | D_UNSIGNED, D_INTS | D_UNSIGNED, TO_CASTABLE, left_shift_kernel)

/* Division with rounding: mode 0 none, 1 towards 0, 2 down. */
EM_OP(aclnnDivMod, const aclTensor *self, const aclTensor *other, int mode, aclTensor *out) {
    EM_BEGIN(aclnnDivMod);
    EM_REQUIRE(mode >= 0 && mode <= 2, "mode is %d, not 0, 1 or 2", mode);
    TRY(pw_check2(ex, self, other, out, D_NUMBERS, D_NUMBERS, mode ? TO_CASTABLE : TO_QUOTIENT));
    EM_REQUIRE(!mode || !em_is_complex(em_promote(self->dtype, other->dtype)), "complex numbers are not rounded");
    return em_ready(ex, mode == 0 ? div_kernel : mode == 1 ? div_trunc_kernel : div_floor_kernel, 0);
}

EM_OP(aclnnDivMods, const aclTensor *self, const aclScalar *other, int mode, aclTensor *out) {
    EM_BEGIN(aclnnDivMods);
    EM_REQUIRE(mode >= 0 && mode <= 2, "mode is %d, not 0, 1 or 2", mode);
    TRY(pw_check1s(ex, self, other, out, D_NUMBERS, D_NUMBERS, mode ? TO_CASTABLE : TO_QUOTIENT));
    EM_REQUIRE(!mode || !em_is_complex(pw_with_scalar(self->dtype, other->dtype)), "complex numbers are not rounded");
    return em_ready(ex, mode == 0 ? divs_kernel : mode == 1 ? divs_trunc_kernel : divs_floor_kernel, 0);
}

EM_OP(aclnnLerp, const aclTensor *self, const aclTensor *end, const aclTensor *weight, aclTensor *out) {
    EM_BEGIN(aclnnLerp);
    TRY(pw_check3(ex, self, end, weight, out, D_FLOATS, D_FLOATS, TO_EQUAL));
    return em_ready(ex, lerp_kernel, 0);
}

EM_OP(aclnnLerps, const aclTensor *self, const aclTensor *end, const aclScalar *weight, aclTensor *out) {
    EM_BEGIN(aclnnLerps);
    EM_NOT_NULL(self);
    EM_NOT_NULL(end);
    EM_REQUIRE(self->dtype == end->dtype, "self and end differ in dtype");
    TRY(pw_check2(ex, self, end, out, D_FLOATS, D_REALS, TO_CASTABLE));
    TRY(pw_add_real(ex, weight));
    return em_ready(ex, lerps_kernel, 0);
}

EM_OP(aclnnAddcmul, const aclTensor *self, const aclTensor *tensor1, const aclTensor *tensor2, const aclScalar *value, aclTensor *out) {
    EM_BEGIN(aclnnAddcmul);
    EM_NOT_NULL(value);
    TRY(pw_check3(ex, self, tensor1, tensor2, out, D_MODULO, D_MODULO, TO_CASTABLE));
    TRY(pw_add_number(ex, value, em_promote(self->dtype, em_promote(tensor1->dtype, tensor2->dtype))));
    return em_ready(ex, addcmul_kernel, 0);
}

EM_OP(aclnnAddcdiv, const aclTensor *self, const aclTensor *tensor1, const aclTensor *tensor2, const aclScalar *value, const aclTensor *out) {
    EM_BEGIN(aclnnAddcdiv);
    EM_NOT_NULL(value);
    TRY(pw_check3(ex, self, tensor1, tensor2, out, D_REALS | D_I64, D_REALS | D_I64, TO_CASTABLE));
    TRY(pw_add_number(ex, value, em_promote(self->dtype, em_promote(tensor1->dtype, tensor2->dtype))));
    return em_ready(ex, addcdiv_kernel, 0);
}
