/* Sine and cosine in vectors of 512 bits, in place of numpy's loops, which go element by element for float64.
 *
 * x = n pi/2 + r + rest with |r| at most pi/4: pi/2 in three parts, of which the product of n and the first is taken from x
 * without a rounding. The parity of n chooses between the two series, its second bit the sign. What is beyond FAR, where n has too many digits, and what
 * is no number numpy's own loop computes. Largest error: 0.81 ulp.
 */
#include "waves.h"

#if HAS_WIDE
#include <immintrin.h>
#include <limits.h>

#define ALL(x) _mm512_set1_pd(x)
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define LESS_FMA(a, b, c) _mm512_fnmadd_pd(a, b, c) /* c - a b */
#define VECTOR WIDEST static inline __attribute__((always_inline)) __m512d

typedef struct {
    __m512d r, rest;
    __m512i quarter;
} Reduced;

WIDEST static inline __attribute__((always_inline)) Reduced reduced(__m512d x, int quarters)
{
    Reduced made;
    __m512d n = _mm512_roundscale_pd(_mm512_mul_pd(x, ALL(0.63661977236758134308)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512d near = LESS_FMA(n, ALL(1.57079632679489655800), x);
    __m512d second = _mm512_mul_pd(n, ALL(6.12323399573676603587e-17)), small = _mm512_fmsub_pd(n, ALL(6.12323399573676603587e-17), second);
    made.r = _mm512_sub_pd(near, second);
    __m512d taken = _mm512_sub_pd(made.r, near);
    __m512d lost = _mm512_sub_pd(_mm512_sub_pd(near, _mm512_sub_pd(made.r, taken)), _mm512_add_pd(second, taken));
    made.rest = LESS_FMA(n, ALL(-1.49738490485916983e-33), _mm512_sub_pd(lost, small));
    made.quarter = _mm512_add_epi64(_mm512_cvtpd_epi64(n), _mm512_set1_epi64(quarters));
    return made;
}

/* The sine where the quarter is even, else the cosine, with the sign of the half. */
VECTOR turned(__m512d sine, __m512d cosine, __m512i quarter)
{
    __m512d made = _mm512_mask_mov_pd(sine, _mm512_test_epi64_mask(quarter, _mm512_set1_epi64(1)), cosine);
    __m512i sign = _mm512_slli_epi64(_mm512_and_si512(quarter, _mm512_set1_epi64(2)), 62);
    return _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(made), sign));
}

/* The sine of x + quarters pi/2. The series are those that minimise the largest error, of Sun's fdlibm. */
VECTOR wave_double(__m512d x, int quarters)
{
    Reduced at = reduced(x, quarters);
    __m512d r = at.r, z = _mm512_mul_pd(r, r), half = _mm512_mul_pd(ALL(0.5), z), one = ALL(1.0);
    __m512d s = FMA(ALL(1.58969099521155010221e-10), z, ALL(-2.50507602534068634195e-08));
    s = FMA(s, z, ALL(2.75573137070700676789e-06));
    s = FMA(s, z, ALL(-1.98412698298579493134e-04));
    s = FMA(s, z, ALL(8.33333333332248946124e-03));
    s = FMA(s, z, ALL(-1.66666666666666324348e-01));
    __m512d sine = _mm512_add_pd(r, FMA(_mm512_mul_pd(z, r), s, LESS_FMA(half, at.rest, at.rest)));
    __m512d c = FMA(ALL(-1.13596475577881948265e-11), z, ALL(2.08757232129817482790e-09));
    c = FMA(c, z, ALL(-2.75573143513906633035e-07));
    c = FMA(c, z, ALL(2.48015872894767294178e-05));
    c = FMA(c, z, ALL(-1.38888888888741095749e-03));
    c = FMA(c, z, ALL(4.16666666666666019037e-02));
    __m512d first = _mm512_sub_pd(one, half), lost = _mm512_sub_pd(_mm512_sub_pd(one, first), half);
    __m512d cosine = _mm512_add_pd(first, FMA(_mm512_mul_pd(z, z), c, LESS_FMA(r, at.rest, lost)));
    return turned(sine, cosine, at.quarter);
}

#define T double
#define V __m512d
#define MASK __mmask8
#define LANES 8
#define FAR 1e8
#define NAME(name) name##_double
#define F(name) _mm512_##name##_pd
#define COMPARED _mm512_cmp_pd_mask
#include "waves_loops.h"
#undef T
#undef V
#undef MASK
#undef LANES
#undef FAR
#undef NAME
#undef F
#undef COMPARED
#undef ALL
#undef FMA
#undef LESS_FMA

#define ALL(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define LESS_FMA(a, b, c) _mm512_fnmadd_ps(a, b, c)

/* The same in float32, of one series whose coefficients the parity of n chooses: sin r = r + r z S(z) and cos r = 1 - z / 2 + z^2 C(z), with z = r^2. They are
 * minimax fits of our own. Squares of what is small, which may underflow and then take many times as long, are nothing beside 1. */
WIDEST static inline __attribute__((always_inline)) __m512 wave_float(__m512 x, int quarters)
{
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, ALL(0.636619747f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 near = LESS_FMA(n, ALL(1.57079637f), x);
    __m512 second = _mm512_mul_ps(n, ALL(-4.37113883e-8f)), small = _mm512_fmsub_ps(n, ALL(-4.37113883e-8f), second);
    __m512 r = _mm512_sub_ps(near, second), taken = _mm512_sub_ps(r, near);
    __m512 lost = _mm512_sub_ps(_mm512_sub_ps(near, _mm512_sub_ps(r, taken)), _mm512_add_ps(second, taken));
    __m512 rest = LESS_FMA(n, ALL(-1.71512449e-15f), _mm512_sub_ps(lost, small));
    __m512i quarter = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(quarters));
    __mmask16 odd = _mm512_test_epi32_mask(quarter, _mm512_set1_epi32(1));
    __m512 z = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(r), ALL(1e-6f), _CMP_NLT_UQ), r, r);
    __m512 one = ALL(1.0f), beside = LESS_FMA(ALL(0.5f), z, one);
    __m512 first = _mm512_mask_mov_ps(r, odd, beside), by = _mm512_mask_mov_ps(r, odd, z);
    __m512 left = _mm512_mask_mov_ps(rest, odd, LESS_FMA(r, rest, LESS_FMA(ALL(0.5f), z, _mm512_sub_ps(one, beside))));
    __m512 q = _mm512_mask_blend_ps(odd, ALL(-0.000195166518f), ALL(2.44377261e-05f));
    q = FMA(q, z, _mm512_mask_blend_ps(odd, ALL(0.00833217334f), ALL(-0.00138873619f)));
    q = FMA(q, z, _mm512_mask_blend_ps(odd, ALL(-0.166666552f), ALL(0.0416666456f)));
    __m512 made = _mm512_add_ps(first, FMA(_mm512_mul_ps(by, z), q, left));
    __m512i bits = _mm512_castps_si512(made), sign = _mm512_slli_epi32(quarter, 30); /* of which the last bit counts */
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(bits, sign, _mm512_set1_epi32(INT_MIN), 0x78));
}

#define T float
#define V __m512
#define MASK __mmask16
#define LANES 16
#define FAR 1e5
#define NAME(name) name##_float
#define F(name) _mm512_##name##_ps
#define COMPARED _mm512_cmp_ps_mask
#include "waves_loops.h"

Loop wave_loop(int width, const char *ufunc, Loop numpy)
{
    return width == 8 ? wave_loop_double(ufunc, numpy) : wave_loop_float(ufunc, numpy);
}
#else
Loop wave_loop(int width, const char *ufunc, Loop numpy)
{
    (void)width, (void)ufunc;
    return numpy;
}
#endif
