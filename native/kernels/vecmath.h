/* Elementary functions that compilers vectorise: polynomials without branches. Included, by the files of loops, for each type and processor.
 *
 * The coefficients come from weighted minimax fits in 50 digits. NaN goes through all of them; infinities give the limits, and zeros keep their
 * sign. Largest errors: exponential, exp2, log and log1p 1 ulp, nearest_exponential of float two thirds; error_function, expm1 and tanh 2 ulp; without
 * fused products up to half an ulp more.
 *
 * Note [Fused products]. A polynomial says where product and sum are one operation, so that it does not depend on what a compiler contracts.
 */

#if defined(__FP_FAST_FMA) || FUSED
#define FMA(a, b, c) (IS_DOUBLE ? (T)__builtin_fma(a, b, c) : (T)__builtin_fmaf(a, b, c))
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

#if IS_DOUBLE
#define CONSTANT(of_double, of_float) of_double
#define MAGNITUDE(x) __builtin_fabs(x)
#define SIGNED_AS(magnitude, x) __builtin_copysign(magnitude, x)
typedef union {
    double value;
    npy_int64 bits;
} NAME(Bits);
#else
#define CONSTANT(of_double, of_float) of_float
#define MAGNITUDE(x) __builtin_fabsf(x)
#define SIGNED_AS(magnitude, x) __builtin_copysignf(magnitude, x)
typedef union {
    float value;
    npy_int32 bits;
} NAME(Bits);
#endif

/* x y + z, rounded once where the processor does so in one operation, as sums with factors are in PyTorch. */
INLINED T NAME(fused)(T x, T y, T z)
{
    return FMA(x, y, z);
}

/* 2^n in two factors, so that neither overflows and subnormal products come out. `shifted` is n + 1.5 * 2^52 (2^23 for float). */
INLINED void NAME(power_of_two)(NAME(Bits) shifted, T *low, T *high)
{
    NAME(Bits) first, second;
#if IS_DOUBLE
    /* Unsigned, since NaN gives any bits here. */
    npy_int64 whole = (npy_int64)((npy_uint64)shifted.bits - 0x4338000000000000ULL);
    npy_int64 half = (npy_int64)(((npy_uint64)whole + 2048) >> 1) - 1024;
    first.bits = (npy_int64)(((npy_uint64)half + 1023) << 52);
    second.bits = (npy_int64)(((npy_uint64)whole - (npy_uint64)half + 1023) << 52);
#else
    npy_int32 whole = (npy_int32)((npy_uint32)shifted.bits - 0x4B400000U);
    npy_int32 half = whole >> 1;
    first.bits = (npy_int32)(((npy_uint32)half + 127) << 23);
    second.bits = (npy_int32)(((npy_uint32)whole - (npy_uint32)half + 127) << 23);
#endif
    *low = first.value;
    *high = second.value;
}

/* 1 / x of a power of two. */
INLINED T NAME(inverse_power)(T x)
{
    NAME(Bits) of;
    of.value = x;
    of.bits = CONSTANT((npy_int64)(0x7FE0000000000000ULL - (npy_uint64)of.bits), (npy_int32)(0x7F000000U - (npy_uint32)of.bits));
    return of.value;
}

#define ROUNDER CONSTANT(6755399441055744.0, 12582912.0f)

/* v = n ln 2 + r: returns exp(r) - 1 = r + r^2 Q(r), and n + ROUNDER. */
INLINED T NAME(reduced_exponential)(T v, NAME(Bits) *whole)
{
    NAME(Bits) shifted;
    shifted.value = FMA(v, CONSTANT(1.4426950408889634, 1.44269504f), ROUNDER);
    T n = shifted.value - ROUNDER;
    T r = FMA(-n, CONSTANT(0.6931471803691238, 0.693145752f), v);
    r = FMA(-n, CONSTANT(1.9082149292705877e-10, 1.42860677e-6f), r);
#if IS_DOUBLE
    T q = 2.0826533961037020e-9;
    q = FMA(q, r, 2.5112144432827847e-8);
    q = FMA(q, r, 2.7557582803514963e-7);
    q = FMA(q, r, 2.7557234558972452e-6);
    q = FMA(q, r, 2.4801586924525943e-5);
    q = FMA(q, r, 1.9841269896680747e-4);
    q = FMA(q, r, 1.3888888889117269e-3);
    q = FMA(q, r, 8.3333333333169171e-3);
    q = FMA(q, r, 4.1666666666666089e-2);
    q = FMA(q, r, 1.6666666666666684e-1);
    q = FMA(q, r, 5.0000000000000000e-1);
#else
    T q = 1.38144671e-3f;
    q = FMA(q, r, 8.36878041e-3f);
    q = FMA(q, r, 4.16683942e-2f);
    q = FMA(q, r, 1.66665201e-1f);
    q = FMA(q, r, 4.99999934e-1f);
#endif
    *whole = shifted;
    return FMA(q * r, r, r);
}

/* The same, with 2^n in two factors. */
INLINED T NAME(exponential_parts)(T v, T *low, T *high)
{
    NAME(Bits) whole;
    T p = NAME(reduced_exponential)(v, &whole);
    NAME(power_of_two)(whole, low, high);
    return p;
}

/* What is hidden by -inf is frequent, and products that underflow take many times as long: these are not computed. */
#define VANISHES CONSTANT(-746.0, -104.0f)

INLINED T NAME(exponential)(T x)
{
    int vanishes = x < VANISHES;
    T v = vanishes ? 0 : x;
    v = v > CONSTANT(710.0, 89.0f) ? CONSTANT(710.0, 89.0f) : v;
    T low, high, p = NAME(exponential_parts)(v, &low, &high), result = (p + 1) * low * high;
    return vanishes ? 0 : result;
}

#if IS_DOUBLE
INLINED T NAME(nearest_exponential)(T x)
{
    return NAME(exponential)(x);
}
#else
/* v = n ln 2 + r + lost, exp(r) = 1 + r + r^2 Q(r): what the roundings of r and of 1 + r leave is added to the small part, so that one result in sixty is
 * not the nearest, and none is two thirds of an ulp away. */
INLINED T NAME(nearest_exponential)(T x)
{
    int vanishes = x < VANISHES;
    T v = vanishes ? 0 : x;
    v = v > 89.0f ? 89.0f : v;
    NAME(Bits) shifted;
    shifted.value = FMA(v, 1.44269504f, ROUNDER);
    T n = shifted.value - ROUNDER;
    T first = FMA(-n, 0.693145752f, v), second = n * 1.42860677e-6f;
    T r = first - second, lost = (first - r) - second;
    T q = 1.99133254e-4f;
    q = FMA(q, r, 1.3935488e-3f);
    q = FMA(q, r, 8.33327509e-3f);
    q = FMA(q, r, 4.16664593e-2f);
    q = FMA(q, r, 1.66666672e-1f);
    q = FMA(q, r, 0.5f);
    T sum = 1 + r, rest = ((1 - sum) + r) + lost, low, high;
    NAME(power_of_two)(shifted, &low, &high);
    T result = (sum + FMA(q * r, r, rest)) * low * high;
    return vanishes ? 0 : result;
}
#endif

/* exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1). */
INLINED T NAME(expm1)(T x)
{
    T v = x < -60 ? -60 : x;
    v = v > CONSTANT(710.0, 89.0f) ? CONSTANT(710.0, 89.0f) : v;
    T low, high, p = NAME(exponential_parts)(v, &low, &high);
    T result = FMA(p, low, low - NAME(inverse_power)(high)) * high;
    return x == 0 ? x : result;
}

/* 2^x = 2^n (1 + r P(r)). */
INLINED T NAME(exp2)(T x)
{
    T v = x < CONSTANT(-1080.0, -152.0f) ? CONSTANT(-1080.0, -152.0f) : x;
    v = v > CONSTANT(1024.0, 128.0f) ? CONSTANT(1024.0, 128.0f) : v;
    NAME(Bits) shifted;
    shifted.value = v + ROUNDER;
    T r = v - (shifted.value - ROUNDER), low, high;
    NAME(power_of_two)(shifted, &low, &high);
#if IS_DOUBLE
    T p = 4.4566749832698136e-10;
    p = FMA(p, r, 7.0725861595137081e-9);
    p = FMA(p, r, 1.0178051729349389e-7);
    p = FMA(p, r, 1.3215442586740476e-6);
    p = FMA(p, r, 1.5252733853281571e-5);
    p = FMA(p, r, 1.5403530441738348e-4);
    p = FMA(p, r, 1.3333558146395997e-3);
    p = FMA(p, r, 9.6181291076068865e-3);
    p = FMA(p, r, 5.5504108664821659e-2);
    p = FMA(p, r, 2.4022650695910097e-1);
    p = FMA(p, r, 6.9314718055994529e-1);
#else
    T p = 1.54697002e-4f;
    p = FMA(p, r, 1.33908680e-3f);
    p = FMA(p, r, 9.61803086e-3f);
    p = FMA(p, r, 5.55035695e-2f);
    p = FMA(p, r, 2.40226507e-1f);
    p = FMA(p, r, 6.93147182e-1f);
#endif
    return FMA(p, r, (T)1) * low * high;
}

/* a / (b + lost), where b was rounded by `lost`; what the rounded quotient leaves is added to it. */
INLINED T NAME(quotient)(T a, T b, T lost)
{
#if FUSED
    T inverse = 1 / b, q = a * inverse;
    return FMA(FMA(-q, b, a) - q * lost, inverse, q);
#else
    (void)lost;
    return a / b;
#endif
}

/* tanh |x| = t / (t + 2), t = exp(2 |x|) - 1. */
INLINED T NAME(tanh)(T x)
{
    T a = MAGNITUDE(x);
    a = a > CONSTANT(20.0, 10.0f) ? CONSTANT(20.0, 10.0f) : a;
    NAME(Bits) power;
    T p = NAME(reduced_exponential)(2 * a, &power);
#if IS_DOUBLE
    power.bits = (npy_int64)((npy_uint64)power.bits << 52) + 0x3FF0000000000000LL;
#else
    power.bits = (npy_int32)((npy_uint32)power.bits << 23) + 0x3F800000;
#endif
    T t = FMA(p, power.value, power.value - 1);
    T sum = t + 2;
    return SIGNED_AS(NAME(quotient)(t, sum, t - (sum - 2)), x);
}

/* log(1 + f) = f - f^2/2 + s (f^2/2 + R), s = f / (2 + f), where 1 + f is within sqrt(1/2) and sqrt(2): f, and what is to be taken off and added. */
INLINED T NAME(logarithm_terms)(T f, T *s, T *half)
{
    T z;
    *s = f / (2 + f);
    *half = CONSTANT(0.5, 0.5f) * f * f;
    z = *s * *s;
#if IS_DOUBLE
    T r = 1.47960955146526990e-1;
    r = FMA(r, z, 1.53140368863899645e-1);
    r = FMA(r, z, 1.81835648230139452e-1);
    r = FMA(r, z, 2.22221985643795361e-1);
    r = FMA(r, z, 2.85714287424655655e-1);
    r = FMA(r, z, 3.99999999994143651e-1);
    r = FMA(r, z, 6.66666666666673402e-1);
#else
    T r = 2.35822618e-1f;
    r = FMA(r, z, 2.85373032e-1f);
    r = FMA(r, z, 4.00003344e-1f);
    r = FMA(r, z, 6.66666627e-1f);
#endif
    return FMA(r, z, *half);
}

/* log(2^k (1 + f)) + c, where c is small. */
INLINED T NAME(logarithm_of_parts)(T k, T f, T c)
{
    T s, half, r = NAME(logarithm_terms)(f, &s, &half);
    T rest = FMA(s, r, FMA(k, CONSTANT(1.9082149292705877e-10, 1.42860677e-6f), c));
    return FMA(k, CONSTANT(0.6931471803691238, 0.693145752f), f - (half - rest));
}

/* log(1 + f) and what its rounding leaves. */
INLINED T NAME(logarithm_in_parts)(T f, T *rest)
{
    T s, half, r = NAME(logarithm_terms)(f, &s, &half), high = f - half;
    *rest = FMA(s, r, (f - high) - half);
    return high;
}

/* x = 2^k m with m within sqrt(1/2) and sqrt(2), of a normal positive number. */
INLINED T NAME(mantissa)(T x, T *k)
{
    NAME(Bits) of, exponent, m;
    of.value = x;
#if IS_DOUBLE
    /* There are no conversions of 64-bit integers below AVX-512: the exponent becomes the last bits of 2^52. */
    npy_uint64 moved = (npy_uint64)of.bits + (0x3FF0000000000000ULL - 0x3FE6A09E667F3BCDULL);
    exponent.bits = (npy_int64)((moved >> 52) | 0x4330000000000000ULL);
    *k = exponent.value - (4503599627370496.0 + 1023.0);
    m.bits = (npy_int64)((moved & 0xFFFFFFFFFFFFFULL) + 0x3FE6A09E667F3BCDULL);
#else
    npy_uint32 moved = (npy_uint32)of.bits + (0x3F800000U - 0x3F3504F3U);
    exponent.bits = (npy_int32)((moved >> 23) | 0x4B000000U);
    *k = exponent.value - (8388608.0f + 127.0f);
    m.bits = (npy_int32)((moved & 0x7FFFFFU) + 0x3F3504F3U);
#endif
    return m.value;
}

INLINED T NAME(log)(T x)
{
    int tiny = x < CONSTANT(2.2250738585072014e-308, 1.17549435e-38f);
    T k, m = NAME(mantissa)(tiny ? x * CONSTANT(18014398509481984.0, 33554432.0f) : x, &k);
    T result = NAME(logarithm_of_parts)(tiny ? k - CONSTANT(54.0, 25.0f) : k, m - 1, 0);
    result = x < (T)INFINITY ? result : x;
    return x > 0 ? result : x == 0 ? -(T)INFINITY : (T)NAN;
}

/* What is nothing beside 1, nor is its square beside it: below that squares become less than the least normal number, which processors take many times as
 * long for. */
#define UNFELT CONSTANT(8.673617379884035e-19, 9.31322575e-10f)

/* The logarithm of u = 1 + x, and what u lost. */
INLINED T NAME(log1p)(T x)
{
    T u = 1 + x, k, m = NAME(mantissa)(u, &k), a = MAGNITUDE(x);
    T lost = (x > 1 ? 1 - (u - x) : x - (u - 1)) / u, near = a < UNFELT ? 0 : x;
    T result = NAME(logarithm_of_parts)(k, k == 0 ? near : m - 1, k == 0 ? 0 : lost);
    result = x < (T)INFINITY ? result : x;
    result = a < UNFELT ? x : result;
    return x > -1 ? result : x == -1 ? -(T)INFINITY : (T)NAN;
}

#if IS_DOUBLE

/* Near zero x P(x^2); beyond 1 one less exp(-x^2) t P(t), t = 1 / (1 + 0.4 |x|). */
INLINED T NAME(error_function)(T x)
{
    T a = MAGNITUDE(x), square = x * x;
    T q = -7.80119188833826194e-10;
    q = FMA(q, square, 1.37229767707967184e-8);
    q = FMA(q, square, -1.62091757319224839e-7);
    q = FMA(q, square, 1.64475176094993711e-6);
    q = FMA(q, square, -1.49247446535676439e-5);
    q = FMA(q, square, 1.20552953197305843e-4);
    q = FMA(q, square, -8.54832598966141582e-4);
    q = FMA(q, square, 5.22397760742250236e-3);
    q = FMA(q, square, -2.68661706432760730e-2);
    q = FMA(q, square, 1.12837916709452521e-1);
    q = FMA(q, square, -3.76126389031835484e-1);
    q = FMA(q, square, 1.2837916709551257e-1); /* and 1, which is added without rounding it */
    T bounded = a > 6.0 ? 6.0 : a;
    T t = 1 / (1 + 0.4 * bounded);
    T p = 3.07318187777754250e-2;
    p = FMA(p, t, -2.18799313891702485e-1);
    p = FMA(p, t, 6.59896083761773000e-1);
    p = FMA(p, t, -1.06991413234616051);
    p = FMA(p, t, 1.01121551016010480);
    p = FMA(p, t, -6.74073668117854408e-1);
    p = FMA(p, t, 3.99825112464743393e-1);
    p = FMA(p, t, 6.89781423917947261e-3);
    p = FMA(p, t, 1.99348358023111349e-1);
    p = FMA(p, t, 2.03097029619336400e-1);
    p = FMA(p, t, 2.26119501714946658e-1);
    p = FMA(p, t, 2.25655964818800348e-1);
    T large = SIGNED_AS(1 - p * t * NAME(exponential)(-bounded * bounded), x);
    return a < 1 ? FMA(q, x, x) : large;
}

#else

/* t P(t), t = 1 / (1 + 0.28 |x|): the normal distribution beyond |x| in units of exp(-x^2/2). */
INLINED T NAME(tail_factor)(T magnitude)
{
    T t = 1.0f / FMA(magnitude, 0.28f, 1.0f);
    T p = -1.30666171e-2f;
    p = FMA(p, t, 9.22847445e-2f);
    p = FMA(p, t, -2.43010057e-1f);
    p = FMA(p, t, 2.77217540e-1f);
    p = FMA(p, t, -1.46770057e-1f);
    p = FMA(p, t, 1.40393493e-1f);
    p = FMA(p, t, 6.30012327e-2f);
    p = FMA(p, t, 1.06925697e-1f);
    p = FMA(p, t, 1.11302697e-1f);
    p = FMA(p, t, 1.11721333e-1f);
    return p * t;
}

/* The normal distribution beyond |x|, and exp(-x^2/2). */
INLINED T NAME(upper_tail)(T magnitude, T *density)
{
    T e = NAME(exponential)(-0.5f * (magnitude * magnitude));
    *density = e;
    T tail = NAME(tail_factor)(magnitude) * e;
    return magnitude > 30.0f ? 0.0f : tail;
}

/* The same where |x| is less than `end`, and 0 beyond it. */
INLINED T NAME(near_tail)(T magnitude, T end)
{
    int far = magnitude >= end;
    T a = far ? 0 : magnitude, low, high, p = NAME(exponential_parts)(-0.5f * (a * a), &low, &high);
    T tail = NAME(tail_factor)(a) * ((p + 1) * low * high);
    return far ? 0 : tail;
}

INLINED T NAME(error_function)(T x)
{
    T a = MAGNITUDE(x), square = x * x;
    T q = -9.64152246e-6f;
    q = FMA(q, square, 1.12569501e-4f);
    q = FMA(q, square, -8.48282914e-4f);
    q = FMA(q, square, 5.22094545e-3f);
    q = FMA(q, square, -2.68654000e-2f);
    q = FMA(q, square, 1.12837820e-1f);
    q = FMA(q, square, -3.76126384e-1f);
    q = FMA(q, square, 1.28379167e-1f); /* and 1, which is added without rounding it */
    T density;
    T large = SIGNED_AS(FMA(-2.0f, NAME(upper_tail)(a * 1.41421356f, &density), 1.0f), x);
    return a < 1.0f ? FMA(q, x, x) : large;
}

#endif

#undef FMA
#undef CONSTANT
#undef MAGNITUDE
#undef SIGNED_AS
#undef ROUNDER
#undef VANISHES
