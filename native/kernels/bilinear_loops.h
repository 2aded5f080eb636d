/* Bilinear resizing with PyTorch's roundings; included for each type and processor.
 *
 * Note [Bilinear roundings]
 * PyTorch keeps places and weights in the tensor's own type, and multiplies and adds by fused operations, in one of three orders. Of up to three channels, of
 * results whose two sizes add up to at most 128, and where channels are innermost, it multiplies the two weights of each of the four neighbours first and adds
 * the products: vectors of 32 bytes of channels from the lower neighbours on, the channels beyond from the right upper one on. All others it interpolates in two
 * rows and then between them. The bits matter where images are rounded to bytes afterwards. `_blend` of `upsample.py` says the same.
 */
#if IS_DOUBLE && (defined(__FP_FAST_FMA) || FUSED)
#define FUSE(a, b, c) __builtin_fma(a, b, c)
#elif IS_DOUBLE /* a call of the mathematical library for each would take too long */
#define FUSE(a, b, c) ((a) * (b) + (c))
#elif defined(__FP_FAST_FMAF) || FUSED
#define FUSE(a, b, c) __builtin_fmaf(a, b, c)
#else
#define FUSE(a, b, c) ((float)((double)(a) * (double)(b) + (double)(c)))
#endif

static TARGET void NAME(places)(npy_intp size, npy_intp out, double factor, int corners, npy_intp *low, npy_intp *high, void *near, void *far)
{
    T *w0 = near, *w1 = far, scale = 1;
    if (corners) {
        scale = out > 1 ? (T)(size - 1) / (T)(out - 1) : 0;
    }
    else {
        scale = factor > 0 ? (T)(1.0 / factor) : (T)size / (T)out;
    }
    for (npy_intp i = 0; i < out; i++) {
        T at = corners ? scale * (T)i : FUSE(scale, (T)i + (T)0.5, (T)-0.5);
        at = size == out ? (T)i : at < 0 ? 0 : at;
        low[i] = (npy_intp)at < size ? (npy_intp)at : size - 1;
        high[i] = low[i] + (low[i] < size - 1 && size != out);
        T part = at - (T)low[i];
        w1[i] = part < 0 ? 0 : part > 1 ? 1 : part;
        w0[i] = (T)1 - w1[i];
    }
}

/* One row of the result from the two rows of the image between which it lies; `which` is its weight. */
static TARGET void NAME(blend)(const void *upper, const void *lower, void *row, npy_intp n, const npy_intp *restrict low, const npy_intp *restrict high,
                               const void *near, const void *far, const void *upper_weight, const void *lower_weight, npy_intp which, int order)
{
    const T *restrict a = upper, *restrict b = lower, *restrict w0 = near, *restrict w1 = far;
    T *restrict y = row, h0 = ((const T *)upper_weight)[which], h1 = ((const T *)lower_weight)[which];
    if (order == BY_ROWS) {
        for (npy_intp i = 0; i < n; i++) {
            T above = FUSE(a[low[i]], w0[i], a[high[i]] * w1[i]), below = FUSE(b[low[i]], w0[i], b[high[i]] * w1[i]);
            below *= h1;
            y[i] = FUSE(above, h0, below);
        }
    }
    else if (order == LOWER_FIRST) {
        for (npy_intp i = 0; i < n; i++) {
            T sum = b[low[i]] * (h1 * w0[i]);
            sum = FUSE(b[high[i]], h1 * w1[i], sum);
            sum = FUSE(a[high[i]], h0 * w1[i], sum);
            y[i] = FUSE(a[low[i]], h0 * w0[i], sum);
        }
    }
    else {
        for (npy_intp i = 0; i < n; i++) {
            T sum = a[high[i]] * (h0 * w1[i]);
            sum = FUSE(a[low[i]], h0 * w0[i], sum);
            sum = FUSE(b[low[i]], h1 * w0[i], sum);
            y[i] = FUSE(b[high[i]], h1 * w1[i], sum);
        }
    }
}
#undef FUSE
