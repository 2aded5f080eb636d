/* Sine and cosine of float64 in vectors of 512 bits, in place of numpy's loops, which go element by element.
 *
 * x = n pi/2 + r + rest with |r| at most pi/4: pi/2 in three parts, of which the product of n and the first is taken from x
 * without a rounding. The parity of n chooses between the two series, its second bit the sign. What is beyond FAR, where n has too many digits, and what
 * is no number numpy's own loop computes. Largest error: 0.8 ulp.
 */
#include "waves.h"

#if HAS_WIDE
#include <immintrin.h>

#define FAR 1e8
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
VECTOR wave(__m512d x, int quarters)
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

WIDEST static inline __attribute__((always_inline)) __mmask8 is_far(__m512d x)
{
    return _mm512_cmp_pd_mask(_mm512_abs_pd(x), ALL(FAR), _CMP_NLE_UQ);
}

/* Eight elements from `x` on, or `some` of them. */
WIDEST static inline __attribute__((always_inline)) void eight(const double *x, double *y, npy_intp some, int quarters, const Loop *numpy)
{
    const __mmask8 mask = (__mmask8)((1u << some) - 1);
    __m512d value = _mm512_maskz_loadu_pd(mask, x);
    __m512d made = wave(value, quarters);
    if (quarters == 0) { /* the sign of zeros */
        made = _mm512_mask_mov_pd(made, _mm512_cmp_pd_mask(value, _mm512_setzero_pd(), _CMP_EQ_OQ), value);
    }
    _mm512_mask_storeu_pd(y, mask, made);
    const __mmask8 far = is_far(value);
    if (__builtin_expect(far, 0)) { /* these alone: an element has the same bits whatever its neighbours are */
        double from[8], to[8];
        npy_intp count = 8, step[2] = {8, 8};
        char *args[2] = {(char *)from, (char *)to};
        _mm512_storeu_pd(from, value);
        numpy->call(args, &count, step, numpy->data);
        _mm512_mask_storeu_pd(y, far, _mm512_loadu_pd(to));
    }
}

/* Elements that do not lie side by side go through a buffer, so that they get the same bits. */
WIDEST static inline __attribute__((always_inline)) void run(char **args, npy_intp left, const npy_intp *steps, int quarters, const Loop *numpy)
{
    const char *x = args[0];
    char *y = args[1];
    for (; left > 0; left -= 8, x += 8 * steps[0], y += 8 * steps[1]) {
        const npy_intp some = left < 8 ? left : 8;
        if (steps[0] == 8 && steps[1] == 8) {
            eight((const double *)x, (double *)y, some, quarters, numpy);
            continue;
        }
        double from[8], to[8];
        for (npy_intp i = 0; i < some; i++) {
            memcpy(&from[i], x + i * steps[0], 8);
        }
        eight(from, to, some, quarters, numpy);
        for (npy_intp i = 0; i < some; i++) {
            memcpy(y + i * steps[1], &to[i], 8);
        }
    }
}

#define LOOP(name, quarters)                                                                                                               \
    static Loop numpy_##name;                                                                                                              \
    WIDEST static void name##_loop(char **args, const npy_intp *dims, const npy_intp *steps, void *data)                                   \
    {                                                                                                                                      \
        const Loop *numpy = data;                                                                                                          \
        if (S.vectors < 2) {                                                                                                               \
            numpy->call(args, dims, steps, numpy->data);                                                                                   \
            return;                                                                                                                        \
        }                                                                                                                                  \
        run(args, dims[0], steps, quarters, numpy);                                                                                        \
    }

LOOP(sin, 0)
LOOP(cos, 1)

Loop wave_loop(const char *ufunc, Loop numpy)
{
    if (strcmp(ufunc, "sin") == 0) {
        numpy_sin = numpy;
        return (Loop){sin_loop, &numpy_sin};
    }
    if (strcmp(ufunc, "cos") == 0) {
        numpy_cos = numpy;
        return (Loop){cos_loop, &numpy_cos};
    }
    return numpy;
}
#else
Loop wave_loop(const char *ufunc, Loop numpy)
{
    (void)ufunc;
    return numpy;
}
#endif
