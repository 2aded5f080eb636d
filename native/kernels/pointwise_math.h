/* Functions of one element that the schema's `block` expressions call beside those of ieee.h and vecmath.h. Included, by the files of loops, for
 * each type and processor.
 */
#include "ieee.h"
#include "vecmath.h"
#include "further_math.h"

#define CONSTANT(of_double, of_float) (IS_DOUBLE ? (T)(of_double) : (T)(of_float))

/* Note [Choices]. By bits, since compilers turn nested choices into branches, and loops with branches have no vectors. */
INLINED T NAME(chosen)(int first, T a, T b)
{
    NAME(Bits) one, other;
    one.value = a;
    other.value = b;
    __typeof__(one.bits) mask = -(__typeof__(one.bits))first;
    one.bits = (one.bits & mask) | (other.bits & ~mask);
    return one.value;
}

/* NaN where one of the operands is; the second one of equal zeros, as processors' own instructions do. */
INLINED T NAME(larger)(T a, T b)
{
    return NAME(chosen)((a > b) | (a != a), a, b);
}

INLINED T NAME(smaller)(T a, T b)
{
    return NAME(chosen)((a < b) | (a != a), a, b);
}

/* From exp(-|x|), which neither overflows nor loses small results. */
INLINED T NAME(sigmoid)(T x)
{
    T e = NAME(exponential)(-NAME(fabs)(x));
    T sum = 1 + e, lost = e < UNFELT ? 0 : e - (sum - 1);
    return NAME(quotient)(x < 0 ? e : (T)1, sum, lost);
}

INLINED T NAME(silu)(T x)
{
    return x / (1 + NAME(exponential)(-x));
}

INLINED T NAME(silu_slope)(T x)
{
    T s = NAME(sigmoid)(x);
    return s * (1 + x * (1 - s));
}

/* tanh(log(1 + exp(x))) = n / (n + 2), n = e (e + 2), e = exp(x): exact where it does not overflow. */
INLINED T NAME(tanh_of_softplus)(T x)
{
    T e = NAME(exponential)(x > 20 ? (T)20 : x);
    T n = e * (e + 2);
    return n / (n + 2);
}

INLINED T NAME(mish_slope)(T x)
{
    T t = NAME(tanh_of_softplus)(x);
    return t + x * NAME(sigmoid)(x) * (1 - t * t);
}

#define TAIL_ENDS 13.13f /* where x times the tail is less than the least normal number, and products underflow, which take many times as long */

INLINED T NAME(gelu)(T x)
{
#if IS_DOUBLE
    return x * 0.5 * (1 + NAME(error_function)(x * 0.7071067811865476));
#else
    T a = NAME(fabs)(x), above = x < 0 ? 0.0f : x;
    a = a > TAIL_ENDS ? TAIL_ENDS : a;
    T below = x < -a ? x : -a; /* -inf times zero is NaN, as in PyTorch */
    return above + below * NAME(near_tail)(a, TAIL_ENDS);
#endif
}

INLINED T NAME(gelu_slope)(T x)
{
#if IS_DOUBLE
    T below = 0.5 * (1 + NAME(error_function)(x * 0.7071067811865476)), density = NAME(exponential)(-0.5 * (x * x));
#else
    T a = NAME(fabs)(x), density;
    T tail = NAME(upper_tail)(a > TAIL_ENDS ? 30.0f : a, &density);
    T below = x < 0 ? tail : 1.0f - tail;
#endif
    T bump = x * density * CONSTANT(0.3989422804014327, 0.39894228f);
    T slope = below + bump;
    return x != x ? x : slope;
}

#undef TAIL_ENDS

#define LINE CONSTANT(0.7978845608028654, 0.79788456f)
#define CUBE CONSTANT(0.044715, 0.044715f)

/* 0.5 (1 + tanh u) is the logistic function of 2 u. */
INLINED T NAME(gelu_tanh)(T x)
{
    return x / (1 + NAME(exponential)(-2 * LINE * x * (1 + CUBE * (x * x))));
}

INLINED T NAME(gelu_tanh_slope)(T x)
{
    T square = x * x;
    T e = NAME(exponential)(-2 * LINE * x * (1 + CUBE * square));
    T s = 1 / (1 + e);
    T bump = e > CONSTANT(1e150, 1e18f) ? (T)0 : e * s * s;
    return s + bump * x * (2 * LINE) * (1 + 3 * CUBE * square);
}

#undef LINE
#undef CUBE
#undef CONSTANT
