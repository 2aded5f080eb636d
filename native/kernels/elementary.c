/* Loops of elementary functions, most of them of float32, in vectors of 512 bits, by instructions that C has no words for: scaling by powers of two, exponents and
 * mantissas, permutations as tables, and first approximations of reciprocals and roots. `block_loops.c` takes them where the processor has them;
 * elsewhere the functions of vecmath.h are as near.
 *
 * The coefficients come from weighted minimax fits in 40 digits. Largest errors: exp and log 0.54 ulp, tanh and erf 1.3 ulp, sigmoid and silu 2 ulp; roots
 * are the nearest number. A tail of fewer elements than a vector goes through the same instructions: see Note [The same bits].
 */
#include "elementary.h"

#if HAS_WIDE
#include "elementary_tables.h"
#include "wide_math.h"

/* Processors' own minima give the second operand where one is NaN. */
VECTOR float_nearest_exponential(__m512 x)
{
    return exponential_within(NOT_VANISHING(x, VANISHES), _mm512_min_ps(ALL(90.0f), x));
}

/* exp(-|x|), and 0 where it is nothing beside 1 and x is above zero. */
VECTOR exponential_beside_one(__m512 x, __mmask16 below)
{
    __m512 v = _mm512_or_ps(x, ALL(-0.0f));
    return exponential_within(NOT_VANISHING(v, _mm512_mask_mov_ps(ALL(-30.0f), below, VANISHES)), v);
}

VECTOR reciprocal(__m512 x)
{
    __m512 r = _mm512_rcp14_ps(x);
    return FMA(LESS_FMA(x, r, ALL(1.0f)), r, r);
}

/* a / (b + lost) where b was rounded by `lost`, and neither is too large or too small. */
VECTOR quotient(__m512 a, __m512 b, __m512 lost)
{
    __m512 r = reciprocal(b), q = _mm512_mul_ps(a, r);
    return FMA(LESS_FMA(q, lost, LESS_FMA(q, b, a)), r, q);
}

VECTOR signed_as(__m512 magnitude, __m512 x)
{
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(_mm512_castps_si512(magnitude), _mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF), 0xE4));
}

/* 1 + e for sigmoids, and what that loses: nothing of an e that is UNFELT, as in vecmath.h. */
VECTOR beside_one(__m512 e, __m512 *lost)
{
    __m512 one = ALL(1.0f), felt = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(e, ALL(9.31322575e-10f), _CMP_NLT_UQ), e), sum = _mm512_add_ps(one, felt);
    *lost = _mm512_sub_ps(felt, _mm512_sub_ps(sum, one));
    return sum;
}

VECTOR float_sigmoid(__m512 x)
{
    __mmask16 below = _mm512_movepi32_mask(_mm512_castps_si512(x));
    __m512 lost, e = exponential_beside_one(x, below), sum = beside_one(e, &lost);
    return quotient(_mm512_mask_mov_ps(ALL(1.0f), below, e), sum, lost);
}

/* x / (1 + exp(-x)), from exp(-|x|). Zeros keep their sign, and infinities have no remainder. */
VECTOR float_silu(__m512 x)
{
    __mmask16 below = _mm512_movepi32_mask(_mm512_castps_si512(x));
    __m512 lost, e = exponential_beside_one(x, below), sum = beside_one(e, &lost), above = _mm512_mask_mul_ps(x, below, x, e);
    __m512 r = reciprocal(sum), q = _mm512_mul_ps(above, r);
    __mmask16 usual = ~_mm512_fpclass_ps_mask(q, 0x1E);
    return _mm512_mask3_fmadd_ps(LESS_FMA(q, lost, LESS_FMA(q, sum, above)), r, q, usual);
}

/* An odd function whose value is 1 beyond the last interval. */
VECTOR by_octaves(const Octaves *of, __m512 x)
{
    __m512 a = _mm512_min_ps(ALL(of->last), MAGNITUDE(x));
    __m512i at = _mm512_srli_epi32(_mm512_castps_si512(_mm512_max_ps(ALL(of->first), a)), 21);
#define OF_INTERVAL(table) _mm512_permutex2var_ps(_mm512_loadu_ps(table), at, _mm512_loadu_ps((table) + 16))
    __m512 d = _mm512_sub_ps(a, OF_INTERVAL(of->middles)), p = OF_INTERVAL(of->coefficients[5]);
    for (int k = 4; k >= 1; k--) {
        p = FMA(p, d, OF_INTERVAL(of->coefficients[k]));
    }
    __m512 level = OF_INTERVAL(of->coefficients[0]);
    p = FMA(p, d, of->rest == 0 ? level : FMA(d, ALL(of->rest), level));
#undef OF_INTERVAL
    return signed_as(p, x);
}

VECTOR float_tanh(__m512 x)
{
    return by_octaves(&octaves_of_tanh, x);
}

VECTOR float_error_function(__m512 x)
{
    return by_octaves(&octaves_of_erf, x);
}

/* The normal distribution beyond `magnitude` in units of exp(-x^2/2), as tail_factor of vecmath.h. */
VECTOR tail_factor(__m512 magnitude)
{
    __m512 t = reciprocal(FMA(magnitude, ALL(0.278f), ALL(1.0f)));
    __m512 p = FMA(ALL(0.0244417656f), t, ALL(-0.0935661346f));
    p = FMA(p, t, ALL(0.0918952972f));
    p = FMA(p, t, ALL(0.00117787602f));
    p = FMA(p, t, ALL(0.06513004f));
    p = FMA(p, t, ALL(0.0877351686f));
    p = FMA(p, t, ALL(0.101199381f));
    p = FMA(p, t, ALL(0.111091927f));
    p = FMA(p, t, ALL(0.11089471f));
    return _mm512_mul_ps(p, t);
}

/* x P(x^2) without the first x, where |x| is less than 1. */
VECTOR error_function_near(__m512 square)
{
    __m512 q = FMA(ALL(-9.64152246e-6f), square, ALL(1.12569501e-4f));
    q = FMA(q, square, ALL(-8.48282914e-4f));
    q = FMA(q, square, ALL(5.22094545e-3f));
    q = FMA(q, square, ALL(-2.68654000e-2f));
    q = FMA(q, square, ALL(1.12837820e-1f));
    q = FMA(q, square, ALL(-3.76126384e-1f));
    return FMA(q, square, ALL(1.28379167e-1f));
}

VECTOR float_erfc(__m512 x)
{
    __m512 one = ALL(1.0f), a = _mm512_min_ps(ALL(11.0f), MAGNITUDE(x)), square = _mm512_mul_ps(a, a), lost = _mm512_fmsub_ps(a, a, square);
    __m512 v = _mm512_sub_ps(ALL(0.0f), square), bell = exponential_within(NOT_VANISHING(v, VANISHES), v);
    __m512 tail = _mm512_mul_ps(tail_factor(_mm512_mul_ps(a, ALL(1.41421356f))), LESS_FMA(bell, lost, bell));
    tail = _mm512_add_ps(tail, tail);
    __m512 far = _mm512_mask_sub_ps(tail, _mm512_movepi32_mask(_mm512_castps_si512(x)), ALL(2.0f), tail);
    __m512 near = _mm512_sub_ps(one, FMA(error_function_near(square), x, x));
    return _mm512_mask_mov_ps(near, _mm512_cmp_ps_mask(a, ALL(0.5f), _CMP_GE_OQ), far);
}

/* x times the part of the normal distribution that lies below x; of -inf NaN, as in PyTorch. What is beyond |x| is the factor times exp(-x^2 / 2), as
 * exponential_within, of r = -s / 2 and without what the rounding of roots left. Far from zero the product is less than the least normal number. */
VECTOR float_gelu(__m512 x)
{
    __m512 y = _mm512_min_ps(ALL(14.0f), x), a = MAGNITUDE(y), square = _mm512_mul_ps(a, a);
    __mmask16 near = _mm512_cmp_ps_mask(a, ALL(13.13f), _CMP_LT_OQ), above = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLE_UQ);
    __m512 shifted = FMA(square, ALL(-0.72134751f), ALL(786432.0f)), n = _mm512_sub_ps(shifted, ALL(786432.0f));
    __m512 s = FMA(n, ALL(6.38923698e-05f), FMA(n, ALL(1.386230468f), square));
    __m512 root = _mm512_permutexvar_ps(_mm512_castps_si512(shifted), _mm512_load_ps(roots));
    __m512 p = _mm512_mul_ps(FMA(FMA(ALL(-0.0208338052f), s, ALL(0.125004053f)), s, ALL(-0.5f)), s);
    __m512 beyond = _mm512_mul_ps(_mm512_mul_ps(y, tail_factor(a)), _mm512_maskz_scalef_ps(near, FMA(root, p, root), n));
    return _mm512_mask_sub_ps(beyond, above, x, beyond);
}

/* Markstein's steps: s is near the root, h near half its inverse; the last one gives the nearest number. They lose what is subnormal on their way, so
 * that small numbers, and zeros and infinities, whose inverses are none, go by the processor's own root. */
VECTOR float_sqrt(__m512 x)
{
    __m512 half = ALL(0.5f), y = _mm512_rsqrt14_ps(x), s = _mm512_mul_ps(x, y), h = _mm512_mul_ps(y, half);
    __m512 e = LESS_FMA(s, h, half);
    s = FMA(s, e, s);
    h = FMA(h, e, h);
    s = FMA(LESS_FMA(s, s, x), h, s);
    /* Subtracted as bits, what is zero or small, negative, infinite or NaN comes out above the rest. */
    __mmask16 rare = _mm512_cmpge_epu32_mask(_mm512_sub_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x10000000)), _mm512_set1_epi32(0x6F800000));
    return __builtin_expect(rare, 0) ? _mm512_mask_sqrt_ps(s, rare, x) : s;
}

VECTOR_OF_DOUBLES double_sqrt(__m512d x)
{
    __m512d half = _mm512_set1_pd(0.5), y = _mm512_rsqrt14_pd(x), s = _mm512_mul_pd(x, y), h = _mm512_mul_pd(y, half);
    __m512d e = _mm512_fnmadd_pd(s, h, half);
    s = _mm512_fmadd_pd(s, e, s);
    h = _mm512_fmadd_pd(h, e, h);
    e = _mm512_fnmadd_pd(s, h, half);
    s = _mm512_fmadd_pd(s, e, s);
    h = _mm512_fmadd_pd(h, e, h);
    s = _mm512_fmadd_pd(_mm512_fnmadd_pd(s, s, x), h, s);
    __mmask8 rare = _mm512_cmpge_epu64_mask(_mm512_sub_epi64(_mm512_castpd_si512(x), _mm512_set1_epi64(0x1000000000000000)),
                                            _mm512_set1_epi64(0x6FF0000000000000));
    return __builtin_expect(rare, 0) ? _mm512_mask_sqrt_pd(s, rare, x) : s;
}

VECTOR_OF_DOUBLES double_nearest_exponential(__m512d x)
{
    return double_exponential_within(DOUBLES_NOT_VANISHING(x), _mm512_min_pd(DOUBLES(710.0), x));
}

#define LOADED_float(from) _mm512_loadu_ps(from)
#define LOADED_double(from) _mm512_loadu_pd(from)
#define SOME_float(rest, from) _mm512_maskz_loadu_ps((__mmask16)(rest), from)
#define SOME_double(rest, from) _mm512_maskz_loadu_pd((__mmask8)(rest), from)
#define STORED_float(to, x) _mm512_storeu_ps(to, x)
#define STORED_double(to, x) _mm512_storeu_pd(to, x)
#define SOME_STORED_float(to, rest, x) _mm512_mask_storeu_ps(to, (__mmask16)(rest), x)
#define SOME_STORED_double(to, rest, x) _mm512_mask_storeu_pd(to, (__mmask8)(rest), x)
#define DEFINED(function, type)                                                                                                            \
    WIDEST void function##_##type##_by_hand(const void *const *sources, void *target, npy_intp n)                                          \
    {                                                                                                                                      \
        const type *x = sources[0];                                                                                                        \
        type *y = target;                                                                                                                  \
        const npy_intp step = 64 / sizeof(type);                                                                                           \
        npy_intp i = 0;                                                                                                                    \
        for (; i + step <= n; i += step) {                                                                                                 \
            STORED_##type(y + i, type##_##function(LOADED_##type(x + i)));                                                                 \
        }                                                                                                                                  \
        if (i < n) {                                                                                                                       \
            const unsigned rest = (1u << (n - i)) - 1;                                                                                     \
            SOME_STORED_##type(y + i, rest, type##_##function(SOME_##type(rest, x + i)));                                                  \
        }                                                                                                                                  \
    }

BY_HAND(DEFINED)
#endif
