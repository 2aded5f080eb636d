/* Gradients of shrinking activations, functions that have no kin among the pointwise ones, losses of pairs. */
#include "ops_pointwise.h"

static double digamma(double x) {
    if (x == 0) return copysign(INFINITY, -x);
    if (x < 0) {
        if (x == floor(x)) return NAN;
        return digamma(1 - x) - M_PI / tan(M_PI * x);
    }
    double sum = 0;
    for (; x < 10; x++) sum -= 1 / x;
    double y = 1 / (x * x);
    return sum + log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
}

static double log2_add_exp2(double a, double b) {
    if (isinf(a) && a == b) return a;
    double larger = a > b ? a : b;
    return isnan(a) || isnan(b) ? NAN : larger + log1p(exp2(-fabs(a - b))) / M_LN2;
}

KERNEL_R(shrink_kernel, 2, b >= -r0 && b <= r0 ? 0 : a)
KERNEL_R(digamma_kernel, 1, digamma(a))
KERNEL_R(log_add_exp2_kernel, 2, log2_add_exp2(a, b))

#define SHRINK(NAME)                                                                                                   \
    EM_OP(NAME, const aclTensor *gradOutput, const aclTensor *self, const aclScalar *lambd, aclTensor *gradInput) {     \
        EM_BEGIN(NAME);                                                                                                \
        EM_NOT_NULL(lambd);                                                                                            \
        TRY(pw_check2(ex, gradOutput, self, gradInput, D_FLOATS, D_FLOATS, TO_CASTABLE));                              \
        TRY(pw_add_real(ex, lambd));                                                                                   \
        return em_ready(ex, shrink_kernel, 0);                                                                         \
    }
SHRINK(aclnnSoftshrinkBackward)
SHRINK(aclnnHardshrinkBackward)

EM_OP(aclnnDigamma, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnDigamma);
    TRY(pw_check1(ex, self, out, D_COMMON, D_REALS, TO_FLOAT));
    return em_ready(ex, digamma_kernel, 0);
}

EM_OP(aclnnLogAddExp2, const aclTensor *self, const aclTensor *other, aclTensor *out) {
    EM_BEGIN(aclnnLogAddExp2);
    TRY(pw_check2(ex, self, other, out, D_FLOATS, D_FLOATS, TO_CASTABLE));
    return em_ready(ex, log_add_exp2_kernel, 0);
}
