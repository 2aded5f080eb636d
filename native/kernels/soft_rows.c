#include "soft_rows.h"

/* Bytes of rows that are not worth vectors of their own. */
#define SHORTEST 32
#define SHORTEST_OF_LOGARITHMS 96

#if HAS_WIDE
#include "wide_math.h"

/* Of what is not above zero. */
VECTOR exponential_float(__m512 x)
{
    return exponential_within(NOT_VANISHING(x, VANISHES), x);
}

VECTOR_OF_DOUBLES exponential_double(__m512d x)
{
    return double_exponential_within(DOUBLES_NOT_VANISHING(x), x);
}

WIDEST static inline float logarithm_float(double x)
{
    return _mm512_cvtss_f32(float_log(_mm512_set1_ps((float)x)));
}

WIDEST static inline double logarithm_double(double x)
{
    return log(x);
}

#define LOOPS "soft_rows_loops.h"
#include "wide_variants.h"

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
