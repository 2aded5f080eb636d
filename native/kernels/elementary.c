/* Loops of elementary functions, most of them of float32, in vectors of 512 bits, by instructions that C has no words for: scaling by powers of two, exponents and
 * mantissas, permutations as tables, and first approximations of reciprocals and roots. `block_loops.c` takes them where the processor has them;
 * elsewhere the functions of vecmath.h are as near.
 *
 * The coefficients come from weighted minimax fits in 40 digits. Largest errors: exp and log 0.54 ulp, tanh and erf 1.3 ulp, sigmoid and silu 2 ulp; roots
 * are the nearest number. A tail of fewer elements than a vector goes through the same instructions: see Note [The same bits].
 */
#include "elementary.h"

#if HAS_WIDE
#include <immintrin.h>

#include "elementary_tables.h"

#define VECTOR WIDEST static inline __attribute__((always_inline)) __m512
#define VECTOR_OF_DOUBLES WIDEST static inline __attribute__((always_inline)) __m512d
#define ALL(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define LESS_FMA(a, b, c) _mm512_fnmadd_ps(a, b, c) /* c - a b */
#define MAGNITUDE(x) _mm512_abs_ps(x)

/* The sixteenth roots of two, rounded, and what the rounding left. */
static const float roots[16] __attribute__((aligned(64))) = {1.0f,        1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f,
                                                              1.29683959f, 1.35425556f, 1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f,
                                                              1.68179286f, 1.75625217f, 1.8340081f,  1.91520655f};
static const float rests[16] __attribute__((aligned(64))) = {
    0.0f,           4.83347016e-08f,  -1.30775399e-08f, 5.38622231e-08f, 3.79763527e-08f,  4.4968381e-08f,   -4.01899953e-08f, -1.01233493e-08f,
    2.4203235e-08f, -4.50089885e-08f, 8.07090483e-09f,  9.83621717e-09f, -2.47553267e-08f, -9.23577037e-09f, -1.1239278e-08f,  9.84532811e-09f};

/* v = (16 k + j) ln 2 / 16 + r: exp(v) = 2^k 2^(j / 16) (1 + r + r^2 Q(r)). Of v within 200. */
VECTOR exponential_within(__m512 v)
{
    __m512 shifted = FMA(v, ALL(23.0831207f), ALL(12582912.0f)), n = _mm512_sub_ps(shifted, ALL(12582912.0f));
    __m512 r = LESS_FMA(n, ALL(1.99663656e-06f), LESS_FMA(n, ALL(0.0433197021f), v));
    __m512i j = _mm512_castps_si512(shifted);
    __m512 root = _mm512_permutexvar_ps(j, _mm512_load_ps(roots)), rest = _mm512_permutexvar_ps(j, _mm512_load_ps(rests));
    __m512 q = FMA(ALL(0.166670442f), r, ALL(0.500016212f));
    __m512 p = FMA(_mm512_mul_ps(q, r), r, r);
    return _mm512_scalef_ps(_mm512_add_ps(FMA(root, p, rest), root), _mm512_mul_ps(n, ALL(0.0625f)));
}

/* Processors' own minima and maxima give the second operand where one is NaN. */
VECTOR float_nearest_exponential(__m512 x)
{
    return exponential_within(_mm512_max_ps(ALL(-110.0f), _mm512_min_ps(ALL(90.0f), x)));
}

/* Of x that is not above zero. */
VECTOR exponential_below(__m512 x)
{
    return exponential_within(_mm512_max_ps(ALL(-110.0f), x));
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

VECTOR float_sigmoid(__m512 x)
{
    __m512 one = ALL(1.0f), e = exponential_below(_mm512_or_ps(x, ALL(-0.0f))), sum = _mm512_add_ps(one, e);
    __m512 above = _mm512_mask_mov_ps(one, _mm512_movepi32_mask(_mm512_castps_si512(x)), e);
    return quotient(above, sum, _mm512_sub_ps(e, _mm512_sub_ps(sum, one)));
}

/* x / (1 + exp(-x)), from exp(-|x|). Zeros keep their sign, and infinities have no remainder. */
VECTOR float_silu(__m512 x)
{
    __m512 one = ALL(1.0f), e = exponential_below(_mm512_or_ps(x, ALL(-0.0f))), sum = _mm512_add_ps(one, e);
    __m512 above = _mm512_mask_mul_ps(x, _mm512_movepi32_mask(_mm512_castps_si512(x)), x, e);
    __m512 r = reciprocal(sum), q = _mm512_mul_ps(above, r), lost = _mm512_sub_ps(e, _mm512_sub_ps(sum, one));
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

/* x = 2^k (1 + f) with f from -1/4 to 1/2; what k ln 2 + f leaves is added to the small part. The exponent of zero is -inf, of infinity inf; the mantissa
 * of what is negative is NaN. */
VECTOR float_log(__m512 x)
{
    __m512 one = ALL(1.0f), m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan), k = _mm512_getexp_ps(x);
    k = _mm512_mask_add_ps(k, _mm512_cmp_ps_mask(m, one, _CMP_LT_OQ), k, one);
    __m512 f = _mm512_sub_ps(m, one);
    __m512 q = FMA(ALL(-0.045121204f), f, ALL(0.10469738f));
    q = FMA(q, f, ALL(-0.13163997f));
    q = FMA(q, f, ALL(0.14478253f));
    q = FMA(q, f, ALL(-0.16646987f));
    q = FMA(q, f, ALL(0.19990821f));
    q = FMA(q, f, ALL(-0.25000104f));
    q = FMA(q, f, ALL(0.3333345f));
    q = FMA(q, f, ALL(-0.5f));
    __m512 whole = FMA(k, ALL(0.693115234f), f), lost = _mm512_sub_ps(f, LESS_FMA(k, ALL(0.693115234f), whole));
    __m512 small = FMA(_mm512_mul_ps(f, f), q, FMA(k, ALL(3.19461849e-05f), lost));
    __m512 result = _mm512_add_ps(whole, small);
    /* Infinite exponents leave NaN in `lost`. */
    __mmask16 edge = _mm512_cmp_ps_mask(MAGNITUDE(k), ALL((float)INFINITY), _CMP_EQ_OQ) & ~_mm512_cmp_ps_mask(x, ALL(0.0f), _CMP_LT_OQ);
    return _mm512_mask_mov_ps(result, edge, k);
}

/* The normal distribution beyond `magnitude` in units of exp(-x^2/2), as tail_factor of vecmath.h. */
VECTOR tail_factor(__m512 magnitude)
{
    __m512 t = reciprocal(FMA(magnitude, ALL(0.28f), ALL(1.0f)));
    __m512 p = FMA(ALL(-1.30666171e-2f), t, ALL(9.22847445e-2f));
    p = FMA(p, t, ALL(-2.43010057e-1f));
    p = FMA(p, t, ALL(2.77217540e-1f));
    p = FMA(p, t, ALL(-1.46770057e-1f));
    p = FMA(p, t, ALL(1.40393493e-1f));
    p = FMA(p, t, ALL(6.30012327e-2f));
    p = FMA(p, t, ALL(1.06925697e-1f));
    p = FMA(p, t, ALL(1.11302697e-1f));
    p = FMA(p, t, ALL(1.11721333e-1f));
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
    __m512 bell = exponential_below(_mm512_sub_ps(ALL(0.0f), square));
    __m512 tail = _mm512_mul_ps(tail_factor(_mm512_mul_ps(a, ALL(1.41421356f))), LESS_FMA(bell, lost, bell));
    tail = _mm512_add_ps(tail, tail);
    __m512 far = _mm512_mask_sub_ps(tail, _mm512_movepi32_mask(_mm512_castps_si512(x)), ALL(2.0f), tail);
    __m512 near = _mm512_sub_ps(one, FMA(error_function_near(square), x, x));
    return _mm512_mask_mov_ps(near, _mm512_cmp_ps_mask(a, ALL(0.5f), _CMP_GE_OQ), far);
}

/* As gelu of pointwise_math.h: what is above zero, and the tail times what is not above -|x|, so that -inf gives NaN as in PyTorch. */
VECTOR float_gelu(__m512 x)
{
    __m512 zero = ALL(0.0f), a = _mm512_min_ps(ALL(14.4f), MAGNITUDE(x));
    __m512 above = _mm512_max_ps(zero, x), below = _mm512_min_ps(_mm512_sub_ps(zero, a), x);
    __m512 tail = _mm512_mul_ps(tail_factor(a), exponential_below(_mm512_mul_ps(ALL(-0.5f), _mm512_mul_ps(a, a))));
    return FMA(below, tail, above);
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

#undef ALL
#undef FMA
#define ALL(x) _mm512_set1_pd(x)
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)

static const double double_roots[16] __attribute__((aligned(64))) = {
    1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916,
    1.189207115002721, 1.241857812073484, 1.2968395546510096, 1.3542555469368927,
    1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
    1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474};
static const double double_rests[16] __attribute__((aligned(64))) = {
    0.0, 8.551889705537965e-17, -3.046782079812471e-17, 8.912812676025408e-17,
    3.982015231465646e-17, 4.658027591836937e-17, 2.5382502794888315e-17, 7.70094837980299e-17,
    -9.667293313452913e-17, -3.483994556892796e-17, 7.949834809697621e-17, 2.4707192569797888e-17,
    8.199010020581497e-17, 2.960140695448873e-17, 3.283107224245627e-17, -1.0619946056195963e-16};

VECTOR_OF_DOUBLES double_of(const double *table, __m512i j)
{
    return _mm512_permutex2var_pd(_mm512_load_pd(table), j, _mm512_load_pd(table + 8));
}

/* As exponential_within; the series is Taylor's, since r is at most ln 2 / 32. */
VECTOR_OF_DOUBLES double_nearest_exponential(__m512d x)
{
    __m512d v = _mm512_max_pd(ALL(-746.0), _mm512_min_pd(ALL(710.0), x));
    __m512d shifted = FMA(v, ALL(23.083120654223414), ALL(6755399441055744.0)), n = _mm512_sub_pd(shifted, ALL(6755399441055744.0));
    __m512d r = _mm512_fnmadd_pd(n, ALL(1.4494042586539372e-18), _mm512_fnmadd_pd(n, ALL(0.04332169878499658), v));
    __m512i j = _mm512_castpd_si512(shifted);
    __m512d root = double_of(double_roots, j), rest = double_of(double_rests, j);
    __m512d q = FMA(FMA(ALL(1.0 / 5040), r, ALL(1.0 / 720)), r, ALL(1.0 / 120));
    q = FMA(FMA(FMA(q, r, ALL(1.0 / 24)), r, ALL(1.0 / 6)), r, ALL(0.5));
    __m512d p = FMA(_mm512_mul_pd(q, r), r, r);
    return _mm512_scalef_pd(_mm512_add_pd(FMA(root, p, rest), root), _mm512_mul_pd(n, ALL(0.0625)));
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
