/* Further elementary functions, of those of vecmath.h. Included, by pointwise_math.h, for each type and processor. Largest errors with fused products:
 * log10 1 ulp, erfc, atanh and hypot 2 ulp, inverse_error_function 3 ulp. */

#if defined(__FP_FAST_FMA) || FUSED
#define FMA(a, b, c) (IS_DOUBLE ? (T)__builtin_fma(a, b, c) : (T)__builtin_fmaf(a, b, c))
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#define CONSTANT(of_double, of_float) (IS_DOUBLE ? (T)(of_double) : (T)(of_float))

/* log(1 + f) of log10(2^k (1 + f)) in two parts, times log10(e) in two parts; k log10(2) in two parts, the first of few bits. */
INLINED T NAME(log10)(T x)
{
    int tiny = x < CONSTANT(2.2250738585072014e-308, 1.17549435e-38f);
    T k, m = NAME(mantissa)(tiny ? x * CONSTANT(18014398509481984.0, 33554432.0f) : x, &k);
    k = tiny ? k - CONSTANT(54.0, 25.0f) : k;
    T f = m - 1, rest;
    T high = NAME(logarithm_in_parts)(f, &rest);
    T product = high * CONSTANT(0.4342944819032518, 0.4342944920063019f);
    T lost = FMA(high, CONSTANT(0.4342944819032518, 0.4342944920063019f), -product);
    T whole = FMA(k, CONSTANT(0.30102999566361177, 0.301025390625f), product);
    lost += FMA(k, CONSTANT(0.30102999566361177, 0.301025390625f), -whole) + product;
    T low = FMA(k, CONSTANT(3.694239077158931e-13, 4.605038981195214e-06f), lost);
    low = FMA(high, CONSTANT(1.098319650216765e-17, -1.0103050118726742e-08f), low);
    T result = whole + FMA(rest, CONSTANT(0.4342944819032518, 0.4342944920063019f), low);
    result = x < (T)INFINITY ? result : x;
    return x > 0 ? result : x == 0 ? -(T)INFINITY : (T)NAN;
}

/* log1p(2 |x| / (1 - |x|)) / 2. */
INLINED T NAME(atanh)(T x)
{
    T a = NAME(fabs)(x), twice = a + a;
    T argument = a < CONSTANT(0.5, 0.5f) ? twice + twice * a / (1 - a) : twice / (1 - a);
    return NAME(copysign)(CONSTANT(0.5, 0.5f) * NAME(log1p)(argument), x);
}

/* In double, where no square of a float overflows; of doubles that are large or small, multiples by a power of two. */
INLINED T NAME(hypot)(T x, T y)
{
    T a = NAME(fabs)(x), b = NAME(fabs)(y);
    int infinite = (a == (T)INFINITY) | (b == (T)INFINITY);
#if IS_DOUBLE
    T most = a > b ? a : b;
    T scale = most > 1e150 ? 2.409919865102884e-181 : most < 1e-150 ? 4.149515568880993e+180 : 1.0;
    a *= scale;
    b *= scale;
    T result = NAME(sqrt)(FMA(a, a, b * b)) / scale;
#else
    T result = (T)__builtin_sqrt((double)a * a + (double)b * b);
#endif
    return infinite ? (T)INFINITY : result;
}

/* exp(-x^2), with what the rounded square leaves. */
INLINED T NAME(bell)(T x)
{
    T square = x * x;
#if FUSED
    T lost = FMA(x, x, -square);
#else
    NAME(Bits) head; /* half of the digits, whose square is exact */
    head.value = x;
    head.bits &= ~(__typeof__(head.bits))CONSTANT(0x7FFFFFF, 0xFFF);
    T lost = (head.value * head.value - square) + (x - head.value) * (x + head.value);
#endif
    return NAME(exponential)(-square) * (1 - lost);
}

/* Beyond 1/2, where it is exp(-x^2) times a smooth function. */
INLINED T NAME(erfc_tail)(T a)
{
#if IS_DOUBLE
    T s = 1 / (a + 2);
    T p = 253.76351520214612;
    p = FMA(p, s, 343.7799727221089);
    p = FMA(p, s, 322.9170646463383);
    p = FMA(p, s, 219.3328056192377);
    p = FMA(p, s, 130.54039076813535);
    p = FMA(p, s, 62.004743758213245);
    p = FMA(p, s, 22.202836123285724);
    p = FMA(p, s, 9.233385849161145);
    p = FMA(p, s, 1.232608892679039);
    p = FMA(p, s, 0.5641895835448195);
    T q = 23.390565919408672;
    q = FMA(q, s, 9.55337054156057);
    q = FMA(q, s, 78.00734241355025);
    q = FMA(q, s, 44.317505185216014);
    q = FMA(q, s, 51.893615206322124);
    q = FMA(q, s, 43.06124154074677);
    q = FMA(q, s, 8.714370196243198);
    q = FMA(q, s, 12.49626561105886);
    q = FMA(q, s, 0.18474237764787949);
    q = FMA(q, s, 1.0);
    T tail = p / q * s * NAME(bell)(a > 27.5 ? 27.5 : a);
    return a > 27.5 ? 0 : tail;
#else
    T tail = 2 * NAME(tail_factor)(a * 1.41421356f) * NAME(bell)(a > 11.0f ? 11.0f : a);
    return a > 11.0f ? 0.0f : tail;
#endif
}

INLINED T NAME(erfc)(T x)
{
    T a = NAME(fabs)(x), tail = NAME(erfc_tail)(a);
    T far = x < 0 ? 2 - tail : tail, near = 1 - NAME(error_function)(x);
    return a < CONSTANT(0.5, 0.5f) ? near : far;
}

/* One of Halley's steps towards erf(y) = a, in the tail on erfc, where 1 - a is exact. */
INLINED T NAME(closer_inverse)(T y, T a)
{
    T near = a - NAME(error_function)(y), far = NAME(erfc_tail)(y) - (1 - a), difference = a < CONSTANT(0.5, 0.5f) ? near : far;
    T step = difference * NAME(exponential)(y * y) * CONSTANT(0.8862269254527580, 0.8862269254527580f), bend = y * step;
    return y + step / (1 - (bend < CONSTANT(0.5, 0.5f) ? bend : CONSTANT(0.5, 0.5f)));
}

/* Winitzki's closed form starts within 2e-3, steps treble the digits. */
INLINED T NAME(inverse_error_function)(T x)
{
    T a = NAME(fabs)(x), w = NAME(log)((1 - a) * (1 + a));
    T b = CONSTANT(4.330746750799873, 4.330746750799873f) + CONSTANT(0.5, 0.5f) * w;
    T difference = NAME(sqrt)(b * b - w * CONSTANT(6.802721088435375, 6.802721088435375f)) - b;
    T y = NAME(sqrt)(difference > 0 ? difference : 0); /* below zero by rounding */
    y = NAME(closer_inverse)(y, a);
#if IS_DOUBLE
    y = NAME(closer_inverse)(y, a);
#endif
    T inside = NAME(copysign)(y, x), edge = a == 1 ? NAME(copysign)((T)INFINITY, x) : (T)NAN;
    return a < 1 ? inside : edge;
}

#undef FMA
#undef CONSTANT
