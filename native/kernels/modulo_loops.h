/* Remainders of float divisions. Included, by divide.c, for each type and processor.
 *
 * Where the quotient has no more digits than T and one operation multiplies and subtracts, the remainder is exact: only by rounding up to a whole number
 * can the quotient be one too large, and then one divisor is added. All others are left to the C library, element by element.
 */

#include "ieee.h"

#define SOME 256 /* elements whose quotients are looked at together */

INLINED T NAME(library_fmod)(T a, T b)
{
    return IS_DOUBLE ? (T)fmod(a, b) : (T)fmodf((float)a, (float)b);
}

/* The remainder that has the sign of a, for all elements; these at once where their quotients allow it. */
static TARGET void NAME(remainders)(const T *a, const T *b, T *restrict rest, npy_intp n)
{
    int simple = FUSED;
#if FUSED
    for (npy_intp i = 0; i < n; i++) {
        T q = NAME(trunc)(a[i] / b[i]);
        T r = IS_DOUBLE ? (T)__builtin_fma(-q, b[i], a[i]) : (T)__builtin_fmaf((float)-q, (float)b[i], (float)a[i]);
        int beyond = (r != 0) & ((r < 0) != (a[i] < 0));
        r += beyond ? NAME(copysign)(b[i], a[i]) : (T)0;
        rest[i] = NAME(copysign)(r, a[i]);
        simple &= (NAME(fabs)(q) < (T)(IS_DOUBLE ? 4503599627370496.0 : 8388608.0)) & (NAME(fabs)(b[i]) < (T)INFINITY);
    }
#endif
    for (npy_intp i = 0; i < n && !simple; i++) {
        rest[i] = NAME(library_fmod)(a[i], b[i]);
    }
}

/* Of a remainder that has the sign of a: that with the sign of b, and the quotient rounded down. */
INLINED T NAME(turned_remainder)(T rest, T b)
{
    int other_way = (rest != 0) & ((b < 0) != (rest < 0));
    return other_way ? rest + b : rest;
}

INLINED T NAME(lower_quotient)(T a, T b, T rest)
{
    int other_way = (rest != 0) & ((b < 0) != (rest < 0));
    T quotient = (a - rest) / b - (other_way ? (T)1 : (T)0), whole = NAME(floor)(quotient);
    whole += quotient - whole > (T)0.5 ? (T)1 : (T)0;
    T found = quotient != 0 ? whole : NAME(copysign)((T)0, a / b);
    return b == 0 ? a / b : found;
}

#define MODULO(name, expression)                                                                                                           \
    static TARGET void NAME(name)(char **args, const npy_intp *count, const npy_intp *steps, void *data)                                   \
    {                                                                                                                                      \
        (void)data;                                                                                                                        \
        T space[3][SOME];                                                                                                                  \
        const int dense = steps[0] == sizeof(T) && steps[1] == sizeof(T) && steps[2] == sizeof(T);                                         \
        for (npy_intp from = 0; from < *count; from += SOME) {                                                                             \
            const npy_intp n = *count - from < SOME ? *count - from : SOME;                                                                \
            const T *a = (const T *)(args[0] + from * steps[0]), *b = (const T *)(args[1] + from * steps[1]);                              \
            T *out = (T *)(args[2] + from * steps[2]), *rests = space[2];                                                                  \
            if (!dense) {                                                                                                                  \
                for (npy_intp i = 0; i < n; i++) {                                                                                         \
                    space[0][i] = *(const T *)((const char *)a + i * steps[0]);                                                            \
                    space[1][i] = *(const T *)((const char *)b + i * steps[1]);                                                            \
                }                                                                                                                          \
                a = space[0];                                                                                                              \
                b = space[1];                                                                                                              \
            }                                                                                                                              \
            NAME(remainders)(a, b, rests, n);                                                                                              \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                rests[i] = expression;                                                                                                     \
            }                                                                                                                              \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                *(T *)((char *)out + i * steps[2]) = rests[i];                                                                             \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

MODULO(fmod_run, rests[i])
MODULO(remainder_run, NAME(turned_remainder)(rests[i], b[i]))
MODULO(floor_divide_run, NAME(lower_quotient)(a[i], b[i], rests[i]))

#undef SOME
#undef MODULO
