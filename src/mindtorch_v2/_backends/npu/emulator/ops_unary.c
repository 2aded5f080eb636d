/* Functions of one tensor: rounding, powers, logarithms, trigonometry, signs, and questions about values. */
#include "ops_pointwise.h"

static double sinc(double x) { return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x); }

static double complex complex_sinc(double complex x) { return x == 0 ? 1 : csin(M_PI * x) / (M_PI * x); }

static double complex complex_sign(double complex x) { return x == 0 ? 0 : x / cabs(x); }

static double fraction(double x) { return isinf(x) ? NAN : x - trunc(x); }

/* The inverse of erf: an approximation to start with, then Newton's steps, which double its digits. */
static double erfinv(double y) {
    if (!(fabs(y) < 1)) return fabs(y) == 1 ? copysign(INFINITY, y) : NAN;
    double logarithm = log1p(-y * y), middle = 2 / (M_PI * 0.147) + logarithm / 2;
    double x = copysign(sqrt(sqrt(middle * middle - logarithm / 0.147) - middle), y);
    for (int step = 0; step < 4 && y != 0; step++) {
        /* erfc keeps the digits of y near 1 */
        double error = fabs(y) < 0.5 ? erf(x) - y : copysign(1, y) * ((1 - fabs(y)) - erfc(fabs(x)));
        x -= error * sqrt(M_PI) / 2 * exp(x * x);
    }
    return x;
}

/* Half to even after scaling by 10^decimals. */
static double round_decimals(double x, int64_t decimals) {
    if (!decimals || !isfinite(x)) return nearbyint(x);
    double scale = pow(10, fabs((double)decimals));
    return decimals > 0 ? nearbyint(x * scale) / scale : nearbyint(x / scale) * scale;
}

static int64_t round_integer(int64_t x, int64_t decimals) {
    return decimals >= 0 ? x : (int64_t)round_decimals((double)x, decimals);
}

static double logit(double x, double eps) {
    if (eps >= 0 && x < eps) x = eps;
    if (eps >= 0 && x > 1 - eps) x = 1 - eps;
    return log(x / (1 - x));
}

static double nan_to_num(double x, double nan, double posinf, double neginf) {
    return isnan(x) ? nan : isinf(x) ? (x > 0 ? posinf : neginf) : x;
}

static int64_t absolute(int64_t x) { return x < 0 ? WRAP(-U(x)) : x; }

/* Kernels: reals; with integers; with complex numbers. */
KERNEL_R(acos_kernel, 1, acos(a))
KERNEL_R(acosh_kernel, 1, acosh(a))
KERNEL_R(asin_kernel, 1, asin(a))
KERNEL_R(asinh_kernel, 1, asinh(a))
KERNEL_R(atan_kernel, 1, atan(a))
KERNEL_R(atanh_kernel, 1, atanh(a))
KERNEL_R(cosh_kernel, 1, cosh(a))
KERNEL_R(erf_kernel, 1, erf(a))
KERNEL_R(erfc_kernel, 1, erfc(a))
KERNEL_R(erfinv_kernel, 1, erfinv(a))
KERNEL_R(exp2_kernel, 1, exp2(a))
KERNEL_R(expm1_kernel, 1, expm1(a))
KERNEL_R(log1p_kernel, 1, log1p(a))
KERNEL_R(logit_kernel, 1, logit(a, r0))
KERNEL_R(lgamma_kernel, 1, lgamma(a))
KERNEL_R(sigmoid_kernel, 1, pw_sigmoid(a))
KERNEL_RC(cos_kernel, 1, cos(a), ccos(a))
KERNEL_RC(exp_kernel, 1, exp(a), cexp(a))
KERNEL_RC(log_kernel, 1, log(a), clog(a))
KERNEL_RC(log10_kernel, 1, log10(a), clog(a) / M_LN10)
KERNEL_RC(log2_kernel, 1, log2(a), clog(a) / M_LN2)
KERNEL_RC(reciprocal_kernel, 1, 1 / a, 1 / a)
KERNEL_RC(rsqrt_kernel, 1, 1 / sqrt(a), 1 / csqrt(a))
KERNEL_RC(sin_kernel, 1, sin(a), csin(a))
KERNEL_RC(sinc_kernel, 1, sinc(a), complex_sinc(a))
KERNEL_RC(sinh_kernel, 1, sinh(a), csinh(a))
KERNEL_RC(sqrt_kernel, 1, sqrt(a), csqrt(a))
KERNEL_RC(tan_kernel, 1, tan(a), ctan(a))
KERNEL_RC(tanh_kernel, 1, tanh(a), ctanh(a))
KERNEL_RC(real_kernel, 1, a, creal(a))
KERNEL_RIC(abs_kernel, 1, fabs(a), absolute(a), cabs(a))
KERNEL_RI(ceil_kernel, 1, ceil(a), a)
KERNEL_RI(floor_kernel, 1, floor(a), a)
KERNEL_RI(frac_kernel, 1, fraction(a), 0)
KERNEL_RI(round_kernel, 1, nearbyint(a), a)
KERNEL_RI(round_decimals_kernel, 1, round_decimals(a, i0), round_integer(a, i0))
KERNEL_RI(trunc_kernel, 1, trunc(a), a)
KERNEL_RI(square_kernel, 1, a * a, WRAP(U(a) * U(a)))
KERNEL_RI(nan_to_num_kernel, 1, nan_to_num(a, r0, r1, r2), a)
KERNEL_RIC(neg_kernel, 1, -a, WRAP(-U(a)), -a)
KERNEL_RIC(sign_kernel, 1, pw_sign(a), (a > 0) - (a < 0), complex_sign(a))
KERNEL_TRUTH(signbit_kernel, 1, signbit(a) != 0, a < 0, 0)
KERNEL_TRUTH(isfinite_kernel, 1, isfinite(a) != 0, 1, isfinite(creal(a)) && isfinite(cimag(a)))
KERNEL_TRUTH(isinf_kernel, 1, isinf(a) != 0, 0, isinf(creal(a)) || isinf(cimag(a)))
KERNEL_TRUTH(isneginf_kernel, 1, isinf(a) && a < 0, 0, 0)
KERNEL_TRUTH(isposinf_kernel, 1, isinf(a) && a > 0, 0, 0)

/* aclnn's name, the names of its parameters, the output's constness, dtypes read and written, how they relate, the kernel. */
#define UNARY(NAME, SELF, OUT, CONST, IN, TO, RULE, KERNEL)                  \
    EM_OP(aclnn##NAME, const aclTensor *SELF, CONST aclTensor *OUT) {        \
        EM_BEGIN(aclnn##NAME);                                               \
        TRY(pw_check1(ex, SELF, OUT, IN, TO, RULE));                         \
        return em_ready(ex, KERNEL, 0);                                      \
    }

#define D_NUMBERS_OUT (D_REALS | D_COMPLEX)

UNARY(Abs, self, out, , D_COMMON | D_COMPLEX, D_COMMON, TO_ANY, abs_kernel)
UNARY(Acos, input, out, , D_COMMON, D_REALS, TO_FLOAT, acos_kernel)
UNARY(Acosh, self, out, , D_COMMON, D_REALS, TO_FLOAT, acosh_kernel)
UNARY(Asin, self, out, , D_COMMON, D_REALS, TO_FLOAT, asin_kernel)
UNARY(Asinh, input, out, , D_COMMON, D_REALS, TO_FLOAT, asinh_kernel)
UNARY(Atan, input, out, , D_COMMON, D_REALS, TO_FLOAT, atan_kernel)
UNARY(Atanh, input, out, , D_COMMON, D_REALS, TO_FLOAT, atanh_kernel)
UNARY(Ceil, self, out, , D_REALS, D_REALS, TO_SAME, ceil_kernel)
UNARY(Cos, input, out, , D_NUMBERS, D_NUMBERS_OUT, TO_FLOAT, cos_kernel)
UNARY(Cosh, self, out, , D_COMMON, D_REALS, TO_FLOAT, cosh_kernel)
UNARY(Erf, self, out, , D_REALS | D_BOOL | D_I64, D_REALS, TO_FLOAT, erf_kernel)
UNARY(Erfc, self, out, , D_REALS | D_BOOL | D_I64, D_REALS | D_BOOL | D_I64, TO_FLOAT, erfc_kernel)
UNARY(Erfinv, self, out, , D_FLOATS | D_INTS | D_BOOL, D_FLOATS, TO_FLOAT, erfinv_kernel)
UNARY(Exp, self, out, , D_REALS | D_COMPLEX | D_BOOL | D_I64, D_NUMBERS_OUT, TO_FLOAT, exp_kernel)
UNARY(Exp2, self, out, , D_COMMON, D_REALS, TO_FLOAT, exp2_kernel)
UNARY(Expm1, self, out, , D_FLOATS | D_I64 | D_BOOL, D_REALS, TO_FLOAT, expm1_kernel)
UNARY(Floor, self, out, , D_REALS | D_INTS | D_UNSIGNED, D_REALS | D_INTS | D_UNSIGNED, TO_CASTABLE, floor_kernel)
UNARY(Frac, input, out, , D_FLOATS | D_INTS, D_FLOATS | D_INTS, TO_SAME, frac_kernel)
UNARY(Lgamma, self, out, , D_F32 | D_F16 | D_F64, D_F32 | D_F16 | D_F64, TO_SAME, lgamma_kernel)
UNARY(Log, self, out, , D_NUMBERS, D_NUMBERS_OUT, TO_FLOAT, log_kernel)
UNARY(Log10, self, out, , D_NUMBERS, D_FLOATS | D_COMPLEX, TO_FLOAT, log10_kernel)
UNARY(Log1p, self, out, , D_COMMON, D_REALS, TO_FLOAT, log1p_kernel)
UNARY(Log2, self, out, const, D_NUMBERS, D_NUMBERS_OUT, TO_FLOAT, log2_kernel)
UNARY(Neg, self, out, , D_REALS | D_COMPLEX | D_I8 | D_I32 | D_I64, D_REALS | D_COMPLEX | D_I8 | D_I32 | D_I64, TO_CASTABLE, neg_kernel)
UNARY(Reciprocal, self, out, , D_NUMBERS, D_NUMBERS_OUT, TO_FLOAT, reciprocal_kernel)
UNARY(Round, self, out, , D_REALS | D_I32 | D_I64, D_REALS | D_I32 | D_I64, TO_SAME, round_kernel)
UNARY(Rsqrt, self, out, , D_NUMBERS, D_NUMBERS_OUT, TO_FLOAT, rsqrt_kernel)
UNARY(Sigmoid, self, out, , D_FLOATS, D_FLOATS, TO_SAME, sigmoid_kernel)
UNARY(Sign, self, result, , D_REALS | D_COMPLEX | D_BOOL | D_I32 | D_I64, D_REALS | D_COMPLEX | D_BOOL | D_I32 | D_I64, TO_SAME, sign_kernel)
UNARY(Signbit, self, out, , D_COMMON | D_UNSIGNED, D_BOOL, TO_BOOL, signbit_kernel)
UNARY(Sin, self, out, , D_NUMBERS, D_NUMBERS_OUT, TO_FLOAT, sin_kernel)
UNARY(Sinc, self, out, , D_COMMON, D_REALS, TO_FLOAT, sinc_kernel)
UNARY(Sinh, self, out, , D_NUMBERS, D_NUMBERS_OUT, TO_FLOAT, sinh_kernel)
UNARY(Sqrt, self, out, , D_NUMBERS, D_NUMBERS_OUT, TO_FLOAT, sqrt_kernel)
UNARY(Square, self, out, , D_FLOATS | D_I32 | D_I64, D_FLOATS | D_I32 | D_I64, TO_SAME, square_kernel)
UNARY(Tan, self, out, , D_NUMBERS, D_NUMBERS_OUT, TO_FLOAT, tan_kernel)
UNARY(Tanh, self, out, , D_FLOATS | D_INTS | D_BOOL, D_FLOATS, TO_FLOAT, tanh_kernel)
UNARY(Trunc, self, out, , D_FLOATS, D_FLOATS, TO_SAME, trunc_kernel)
UNARY(Real, self, out, , D_COMPLEX | D_F32 | D_F16, D_F32 | D_F16 | D_F64, TO_CASTABLE, real_kernel)
UNARY(IsFinite, self, out, , D_COMMON, D_BOOL, TO_BOOL, isfinite_kernel)
UNARY(IsInf, x, out, const, D_COMMON, D_BOOL, TO_BOOL, isinf_kernel)
UNARY(IsNegInf, self, out, , D_COMMON, D_BOOL, TO_BOOL, isneginf_kernel)
UNARY(IsPosInf, self, out, , D_COMMON, D_BOOL, TO_BOOL, isposinf_kernel)

EM_OP(aclnnRoundDecimals, const aclTensor *self, int64_t decimals, aclTensor *out) {
    EM_BEGIN(aclnnRoundDecimals);
    TRY(pw_check1(ex, self, out, D_REALS | D_I32 | D_I64, D_REALS | D_I32 | D_I64, TO_SAME));
    em_integer(ex, decimals);
    return em_ready(ex, round_decimals_kernel, 0);
}

EM_OP(aclnnLogit, const aclTensor *input, double eps, const aclTensor *out) {
    EM_BEGIN(aclnnLogit);
    TRY(pw_check1(ex, input, out, D_FLOATS, D_FLOATS, TO_SAME));
    em_real(ex, eps);
    return em_ready(ex, logit_kernel, 0);
}

EM_OP(aclnnNanToNum, const aclTensor *self, float nan, float posinf, float neginf, aclTensor *out) {
    EM_BEGIN(aclnnNanToNum);
    TRY(pw_check1(ex, self, out, D_FLOATS | D_INTS | D_BOOL, D_FLOATS | D_INTS | D_BOOL, TO_SAME));
    em_real(ex, nan);
    em_real(ex, posinf);
    em_real(ex, neginf);
    return em_ready(ex, nan_to_num_kernel, 0);
}
