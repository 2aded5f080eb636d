/* Elementary functions that compilers vectorise: polynomials without branches. Included, by the files of loops, for each type and processor.
 *
 * The coefficients come from weighted minimax fits in 50 digits. NaN goes through all of them; infinities give the limits. Largest errors:
 * exponential 1 ulp, error function 2 ulp.
 */

#if IS_DOUBLE

/* exp(x): x = n ln 2 + r, exp(r) = 1 + r + r^2 Q(r), and 2^n in two steps so that subnormal results come out. */
static inline TARGET T NAME(exponential)(T x)
{
    T v = x < -746.0 ? -746.0 : x;
    v = v > 710.0 ? 710.0 : v;
    union {
        double value;
        npy_int64 bits;
    } shifted, low, high;
    shifted.value = v * 1.4426950408889634 + 6755399441055744.0;
    T n = shifted.value - 6755399441055744.0;
    T r = v - n * 0.6931471803691238;
    r -= n * 1.9082149292705877e-10;
    T q = 2.0826533961037020e-9;
    q = q * r + 2.5112144432827847e-8;
    q = q * r + 2.7557582803514963e-7;
    q = q * r + 2.7557234558972452e-6;
    q = q * r + 2.4801586924525943e-5;
    q = q * r + 1.9841269896680747e-4;
    q = q * r + 1.3888888889117269e-3;
    q = q * r + 8.3333333333169171e-3;
    q = q * r + 4.1666666666666089e-2;
    q = q * r + 1.6666666666666684e-1;
    q = q * r + 5.0000000000000000e-1;
    T p = (q * r) * r + r;
    p += 1.0;
    npy_int64 whole = shifted.bits - 0x4338000000000000LL;
    npy_int64 half = (npy_int64)((npy_uint64)(whole + 2048) >> 1) - 1024;
    low.bits = (npy_int64)((npy_uint64)(half + 1023) << 52);
    high.bits = (npy_int64)((npy_uint64)(whole - half + 1023) << 52);
    return p * low.value * high.value;
}

#else

static inline TARGET T NAME(exponential)(T x)
{
    T v = x < -104.0f ? -104.0f : x;
    v = v > 89.0f ? 89.0f : v;
    union {
        float value;
        npy_int32 bits;
    } shifted, low, high;
    shifted.value = v * 1.44269504f + 12582912.0f;
    T n = shifted.value - 12582912.0f;
    T r = v - n * 0.693145752f;
    r -= n * 1.42860677e-6f;
    T q = 1.38144671e-3f;
    q = q * r + 8.36878041e-3f;
    q = q * r + 4.16683942e-2f;
    q = q * r + 1.66665201e-1f;
    q = q * r + 4.99999934e-1f;
    T p = (q * r) * r + r;
    p += 1.0f;
    npy_int32 whole = shifted.bits - 0x4B400000;
    npy_int32 half = whole >> 1;
    low.bits = (npy_int32)((npy_uint32)(half + 127) << 23);
    high.bits = (npy_int32)((npy_uint32)(whole - half + 127) << 23);
    return p * low.value * high.value;
}

/* The normal distribution beyond |x|, and exp(-x^2/2): the first is the second times t P(t), t = 1 / (1 + 0.28 |x|). */
static inline TARGET T NAME(upper_tail)(T magnitude, T *density)
{
    T e = NAME(exponential)(-0.5f * (magnitude * magnitude));
    T t = 1.0f / (magnitude * 0.28f + 1.0f);
    T p = -1.30666171e-2f;
    p = p * t + 9.22847445e-2f;
    p = p * t - 2.43010057e-1f;
    p = p * t + 2.77217540e-1f;
    p = p * t - 1.46770057e-1f;
    p = p * t + 1.40393493e-1f;
    p = p * t + 6.30012327e-2f;
    p = p * t + 1.06925697e-1f;
    p = p * t + 1.11302697e-1f;
    p = p * t + 1.11721333e-1f;
    *density = e;
    T tail = p * t * e;
    return magnitude > 30.0f ? 0.0f : tail;
}

static inline TARGET T NAME(error_function)(T x)
{
    T a = x < 0 ? -x : x;
    T square = x * x;
    T q = -9.64152246e-6f;
    q = q * square + 1.12569501e-4f;
    q = q * square - 8.48282914e-4f;
    q = q * square + 5.22094545e-3f;
    q = q * square - 2.68654000e-2f;
    q = q * square + 1.12837820e-1f;
    q = q * square - 3.76126384e-1f;
    q = q * square + 1.12837917f;
    T density;
    T large = 1.0f - 2.0f * NAME(upper_tail)(a * 1.41421356f, &density);
    large = x < 0 ? -large : large;
    return a < 1.0f ? q * x : large;
}

#endif
