/* Exponentials and logarithms in vectors of 512 bits, by instructions that C has no words for; see elementary.c. */
#ifndef MINDTORCH_WIDE_MATH_H
#define MINDTORCH_WIDE_MATH_H

#include <immintrin.h>
#include <math.h>

#include "native.h"

#define VECTOR WIDEST static inline __attribute__((always_inline)) __m512
#define VECTOR_OF_DOUBLES WIDEST static inline __attribute__((always_inline)) __m512d
#define ALL(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define LESS_FMA(a, b, c) _mm512_fnmadd_ps(a, b, c) /* c - a b */
#define MAGNITUDE(x) _mm512_abs_ps(x)
#define DOUBLES(x) _mm512_set1_pd(x)

/* The sixteenth roots of two, rounded, and what the rounding left. */
static const float roots[16] __attribute__((aligned(64))) = {1.0f,        1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f,
                                                              1.29683959f, 1.35425556f, 1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f,
                                                              1.68179286f, 1.75625217f, 1.8340081f,  1.91520655f};
static const float rests[16] __attribute__((aligned(64))) = {
    0.0f,           4.83347016e-08f,  -1.30775399e-08f, 5.38622231e-08f, 3.79763527e-08f,  4.4968381e-08f,   -4.01899953e-08f, -1.01233493e-08f,
    2.4203235e-08f, -4.50089885e-08f, 8.07090483e-09f,  9.83621717e-09f, -2.47553267e-08f, -9.23577037e-09f, -1.1239278e-08f,  9.84532811e-09f};

/* v = (k + j / 16) ln 2 + r: exp(v) = 2^k 2^(j / 16) (1 + r + r^2 Q(r)), and scaling leaves out the fraction of n. Of v up to 90; zero where it is not `near`: what is hidden by -inf is
 * frequent, and results that underflow take many times as long. */
VECTOR exponential_within(__mmask16 near, __m512 x)
{
    __m512 v = _mm512_maskz_mov_ps(near, x);
    __m512 shifted = FMA(v, ALL(1.44269502f), ALL(786432.0f)), n = _mm512_sub_ps(shifted, ALL(786432.0f));
    __m512 r = LESS_FMA(n, ALL(3.19461849e-05f), LESS_FMA(n, ALL(0.693115234f), v));
    __m512i j = _mm512_castps_si512(shifted);
    __m512 root = _mm512_permutexvar_ps(j, _mm512_load_ps(roots)), rest = _mm512_permutexvar_ps(j, _mm512_load_ps(rests));
    __m512 q = FMA(ALL(0.166670442f), r, ALL(0.500016212f));
    __m512 p = FMA(_mm512_mul_ps(q, r), r, r);
    return _mm512_maskz_scalef_ps(near, _mm512_add_ps(FMA(root, p, rest), root), n);
}

/* Where the exponential is at least half of the least number, or NaN. */
#define NOT_VANISHING(x, bound) _mm512_cmp_ps_mask(x, bound, _CMP_NLT_UQ)
#define VANISHES ALL(-104.0f)

#define DOUBLES_NOT_VANISHING(x) _mm512_cmp_pd_mask(x, DOUBLES(-746.0), _CMP_NLT_UQ)

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

/* As exponential_within, of x up to 710; the series is Taylor's, since r is at most ln 2 / 32. */
VECTOR_OF_DOUBLES double_exponential_within(__mmask8 near, __m512d x)
{
    __m512d v = _mm512_maskz_mov_pd(near, x);
    __m512d shifted = _mm512_fmadd_pd(v, DOUBLES(23.083120654223414), DOUBLES(6755399441055744.0)), n = _mm512_sub_pd(shifted, DOUBLES(6755399441055744.0));
    __m512d r = _mm512_fnmadd_pd(n, DOUBLES(1.4494042586539372e-18), _mm512_fnmadd_pd(n, DOUBLES(0.04332169878499658), v));
    __m512i j = _mm512_castpd_si512(shifted);
    __m512d root = double_of(double_roots, j), rest = double_of(double_rests, j);
    __m512d q = _mm512_fmadd_pd(_mm512_fmadd_pd(DOUBLES(1.0 / 5040), r, DOUBLES(1.0 / 720)), r, DOUBLES(1.0 / 120));
    q = _mm512_fmadd_pd(_mm512_fmadd_pd(_mm512_fmadd_pd(q, r, DOUBLES(1.0 / 24)), r, DOUBLES(1.0 / 6)), r, DOUBLES(0.5));
    __m512d p = _mm512_fmadd_pd(_mm512_mul_pd(q, r), r, r);
    return _mm512_maskz_scalef_pd(near, _mm512_add_pd(_mm512_fmadd_pd(root, p, rest), root), _mm512_mul_pd(n, DOUBLES(0.0625)));
}

#endif
