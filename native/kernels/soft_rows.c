#include "soft_rows.h"

/* Bytes of rows that are not worth vectors of their own. */
#define SHORTEST 32
#define SHORTEST_OF_LOGARITHMS 96

#if HAS_WIDE
#include "wide_math.h"

#define T float
#define V __m512
#define MASK __mmask16
#define LANES 16
#define NAME(name) name##_float
#define F(name) _mm512_##name##_ps
#define EXPONENTIAL(v) exponential_within(NOT_VANISHING(v, VANISHES), v)
#define FIRST _mm512_cvtss_f32
#define LOGARITHM(x) float_log(_mm512_set1_ps((float)(x)))
#include "soft_rows_loops.h"
#undef T
#undef V
#undef MASK
#undef LANES
#undef NAME
#undef F
#undef EXPONENTIAL
#undef LOGARITHM
#undef FIRST

#define T double
#define V __m512d
#define MASK __mmask8
#define LANES 8
#define NAME(name) name##_double
#define F(name) _mm512_##name##_pd
#define EXPONENTIAL(v) double_exponential_within(DOUBLES_NOT_VANISHING(v), v)
#define FIRST _mm512_cvtsd_f64
#define LOGARITHM(x) _mm512_set1_pd(log(x))
#include "soft_rows_loops.h"

int soft_rows_serve(int width, npy_intp n, int logarithm)
{
    return S.vectors == 2 && (n == 1 || n * width > (logarithm ? SHORTEST_OF_LOGARITHMS : SHORTEST));
}

void soft_rows(int width, int logarithm, const void *x, void *out, npy_intp rows, npy_intp n)
{
    if (width == 4) {
        soft_rows_float(x, out, rows, n, logarithm);
    }
    else {
        soft_rows_double(x, out, rows, n, logarithm);
    }
}

void soft_rows_backward(int width, int logarithm, const void *gradient, const void *y, void *out, npy_intp rows, npy_intp n)
{
    if (width == 4) {
        soft_rows_backward_float(gradient, y, out, rows, n, logarithm);
    }
    else {
        soft_rows_backward_double(gradient, y, out, rows, n, logarithm);
    }
}

void log_sums(int width, const void *x, npy_intp step, void *out, npy_intp rows, npy_intp n)
{
    if (width == 4) {
        log_sums_float(x, step, out, rows, n);
    }
    else {
        log_sums_double(x, step, out, rows, n);
    }
}
#else
int soft_rows_serve(int width, npy_intp n, int logarithm)
{
    (void)width, (void)n, (void)logarithm;
    return 0;
}

void soft_rows(int width, int logarithm, const void *x, void *out, npy_intp rows, npy_intp n)
{
    (void)width, (void)logarithm, (void)x, (void)out, (void)rows, (void)n;
}

void soft_rows_backward(int width, int logarithm, const void *gradient, const void *y, void *out, npy_intp rows, npy_intp n)
{
    (void)width, (void)logarithm, (void)gradient, (void)y, (void)out, (void)rows, (void)n;
}

void log_sums(int width, const void *x, npy_intp step, void *out, npy_intp rows, npy_intp n)
{
    (void)width, (void)x, (void)step, (void)out, (void)rows, (void)n;
}
#endif
