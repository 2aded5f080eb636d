/* From draws to numbers; included for each type and processor. The roundings are those of Note [Single precision] in `_random/boxmuller.py`
 * and Note [Contracted products] in `_random/arithmetic.py`: a product and a sum that are one operation are written so. */

#if IS_DOUBLE
#define FUSE(a, b, c) __builtin_fma(a, b, c)
#elif defined(__FP_FAST_FMAF) || FUSED
#define FUSE(a, b, c) __builtin_fmaf(a, b, c)
#else
#define FUSE(a, b, c) ((float)((double)(a) * (double)(b) + (double)(c)))
#endif

/* 0 <= u < 1: a draw of 24 bits for float, a pair of draws of 53 bits for double. */
static TARGET void NAME(unit)(const npy_uint32 *restrict draws, T *restrict out, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++) {
#if IS_DOUBLE
        out[i] = (double)((npy_int64)(draws[2 * i] & 0x1FFFFF) << 32 | draws[2 * i + 1]) * (1.0 / 9007199254740992.0);
#else
        out[i] = (float)(npy_int32)(draws[i] & 0xFFFFFF) * (1.0f / 16777216.0f);
#endif
    }
}

/* x * factor + shift with one rounding; what came up to `last` becomes `shift`. */
static TARGET void NAME(stretch)(void *target, npy_intp n, double factor, double shift, double last)
{
    T *x = target, a = (T)factor, b = (T)shift, end = (T)last;
    for (npy_intp i = 0; i < n; i++) {
        T y = FUSE(x[i], a, b);
        x[i] = y == end ? b : y;
    }
}

static TARGET void NAME(affine)(void *target, npy_intp n, double factor, double shift)
{
    T *x = target, a = (T)factor, b = (T)shift;
    for (npy_intp i = 0; i < n; i++) {
        x[i] = FUSE(x[i], a, b);
    }
}

#if !IS_DOUBLE
/* log(u) for 0 < u <= 1, normal numbers. */
INLINED float NAME(log_single)(float u)
{
    union {
        float value;
        npy_int32 bits;
    } of = {u};
    float e = (float)((of.bits >> 23) - 126);
    of.bits = (of.bits & 0x7FFFFF) | 0x3F000000;
    float mantissa = of.value;
    int below = mantissa < 0.707106781186547524f;
    e -= below ? 1.0f : 0.0f;
    float x = mantissa * (below ? 2.0f : 1.0f) - 1.0f; /* exact */
    float y = FUSE(x, 7.0376836292e-2f, -1.1514610310e-1f);
    y = FUSE(y, x, 1.1676998740e-1f);
    y = FUSE(y, x, -1.2420140846e-1f);
    y = FUSE(y, x, 1.4249322787e-1f);
    y = FUSE(y, x, -1.6668057665e-1f);
    y = FUSE(y, x, 2.0000714765e-1f);
    y = FUSE(y, x, -2.4999993993e-1f);
    y = FUSE(y, x, 3.3333331174e-1f);
    y = y * x;
    float z = x * x;
    y = FUSE(y, z, e * -2.12194440e-4f);
    y = FUSE(z, -0.5f, y);                         /* the product is exact */
    return FUSE(e, 0.693359375f, x + y); /* here too */
}

INLINED void NAME(sincos_single)(float theta, float *sine, float *cosine)
{
    npy_int32 j = ((npy_int32)(theta * 1.27323954473516f) + 1) & ~1;
    float y = (float)j;
    theta = FUSE(y, -0.78515625f, theta); /* exact products */
    theta = FUSE(y, -2.4187564849853515625e-4f, theta);
    theta = FUSE(y, -3.77489497744594108e-8f, theta);
    float z = theta * theta;
    float c = FUSE(z, 2.443315711809948e-5f, -1.388731625493765e-3f);
    c = FUSE(c, z, 4.166664568298827e-2f);
    c = c * z;
    float s = FUSE(z, -1.9515295891e-4f, 8.3321608736e-3f);
    s = FUSE(s, z, -1.6666654611e-1f);
    s = s * z;
    s = FUSE(s, theta, theta);
    c = FUSE(c, z, z * -0.5f);
    c = c + 1.0f;
    union {
        float value;
        npy_int32 bits;
    } first = {j & 2 ? c : s}, second = {j & 2 ? s : c};
    first.bits ^= (npy_int32)((npy_uint32)(j & 4) << 29);
    second.bits ^= (npy_int32)((npy_uint32)(~(j - 2) & 4) << 29);
    *sine = first.value;
    *cosine = second.value;
}
#endif

/* Blocks of 16 uniforms, in place: (u1 * 8, u2 * 8) becomes (cosine part * 8, sine part * 8). */
static TARGET void NAME(normal_blocks)(T *x, npy_intp blocks)
{
    for (npy_intp b = 0; b < blocks; b++, x += 16) {
        for (int i = 0; i < 8; i++) {
#if IS_DOUBLE
            double radius = sqrt(-2 * log(1 - x[i])), theta = 2 * 3.14159265358979323846 * x[i + 8];
            double cosine = cos(theta), sine = sin(theta);
#else
            float radius = __builtin_sqrtf(-2 * NAME(log_single)(1 - x[i])), sine, cosine;
            NAME(sincos_single)(x[i + 8] * 6.283185307179586f, &sine, &cosine);
#endif
            x[i] = radius * cosine;
            x[i + 8] = radius * sine;
        }
    }
}

#undef FUSE
