/* Activations element by element; included for each type and processor. */
#include "vecmath.h"

#define EACH(name, expression)                                                                                                             \
    static TARGET void NAME(name)(const void *input, void *output, npy_intp n)                                                             \
    {                                                                                                                                      \
        const T *in = input;                                                                                                               \
        T *out = output;                                                                                                                   \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            T x = in[i];                                                                                                                   \
            out[i] = expression;                                                                                                           \
        }                                                                                                                                  \
    }

#define EACH_WITH_GRAD(name, expression)                                                                                                   \
    static TARGET void NAME(name)(const void *gradient, const void *input, void *output, npy_intp n)                                       \
    {                                                                                                                                      \
        const T *grad = gradient, *in = input;                                                                                             \
        T *out = output;                                                                                                                   \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            T x = in[i], g = grad[i];                                                                                                      \
            out[i] = expression;                                                                                                           \
        }                                                                                                                                  \
    }

static inline TARGET T NAME(logistic)(T x)
{
    return 1 / (1 + NAME(exponential)(-x));
}

static inline TARGET T NAME(silu_slope)(T x)
{
    T s = NAME(logistic)(x);
    return s * (1 + x * (1 - s));
}

EACH(relu_each, x < 0 ? 0 : x)
EACH(sigmoid_each, NAME(logistic)(x))
EACH(silu_each, x / (1 + NAME(exponential)(-x)))
EACH_WITH_GRAD(silu_backward_each, g *NAME(silu_slope)(x))
EACH_WITH_GRAD(threshold_zero_each, x <= 0 ? 0 : g)
EACH_WITH_GRAD(sigmoid_backward_each, g *x *(1 - x))
EACH_WITH_GRAD(tanh_backward_each, g *(1 - x * x))

#if !IS_DOUBLE

static inline TARGET T NAME(gelu)(T x)
{
    T a = x < 0 ? -x : x, density;
    T tail = NAME(upper_tail)(a, &density);
    T off = a > 30.0f ? 0.0f : a * tail;
    return x < 0 ? x * tail : x - off;
}

static inline TARGET T NAME(gelu_slope)(T x)
{
    T a = x < 0 ? -x : x, density;
    T tail = NAME(upper_tail)(a, &density);
    T below = x < 0 ? tail : 1.0f - tail;
    T bump = x * density * 0.39894228f;
    T slope = below + bump;
    return x != x ? x : slope;
}

#define GELU_LINE 0.79788456f
#define GELU_CUBE 0.044715f

/* 0.5 (1 + tanh u) is the logistic function of 2 u. */
static inline TARGET T NAME(gelu_tanh)(T x)
{
    return x / (1.0f + NAME(exponential)(-2 * GELU_LINE * x * (1.0f + GELU_CUBE * (x * x))));
}

static inline TARGET T NAME(gelu_tanh_slope)(T x)
{
    T square = x * x;
    T e = NAME(exponential)(-2 * GELU_LINE * x * (1.0f + GELU_CUBE * square));
    T s = 1.0f / (1.0f + e);
    T bump = e > 1e18f ? 0.0f : e * s * s;
    return s + bump * x * (2 * GELU_LINE) * (1.0f + 3 * GELU_CUBE * square);
}

EACH(erf_each, NAME(error_function)(x))
EACH(gelu_each, NAME(gelu)(x))
EACH(gelu_tanh_each, NAME(gelu_tanh)(x))
EACH_WITH_GRAD(gelu_backward_each, g *NAME(gelu_slope)(x))
EACH_WITH_GRAD(gelu_tanh_backward_each, g *NAME(gelu_tanh_slope)(x))

#undef GELU_LINE
#undef GELU_CUBE
#endif

#undef EACH
#undef EACH_WITH_GRAD
