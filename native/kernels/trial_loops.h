/* Trials of one probability; included for each type and processor. */

/* Zeros and ones: a pair of draws of 53 bits each, below a limit. */
static TARGET void NAME(trials)(const npy_uint32 *restrict draws, T *restrict out, npy_intp n, npy_int64 limit)
{
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (T)(((npy_int64)(draws[2 * i] & 0x1FFFFF) << 32 | draws[2 * i + 1]) < limit);
    }
}

/* Dropout of a block: the mask, and x * (0 or factor). */
static TARGET void NAME(drop)(const npy_uint32 *restrict draws, const T *restrict x, T *restrict out, npy_bool *restrict mask, npy_intp n,
                              npy_int64 limit, double scale)
{
    T factor = (T)scale;
    for (npy_intp i = 0; i < n; i++) {
        npy_bool kept = ((npy_int64)(draws[2 * i] & 0x1FFFFF) << 32 | draws[2 * i + 1]) < limit;
        mask[i] = kept;
        out[i] = x[i] * (kept ? factor : (T)0);
    }
}
