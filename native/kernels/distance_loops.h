/* Distances of all pairs of rows, for a type T and a processor; see distance.c. */
#if IS_DOUBLE
#define FABS fabs
#define POW pow
#else
#define FABS fabsf
#define POW powf
#endif

#define LANES 8

/* The sum of the powers of the differences of two rows, or their maximum; in LANES sums, so that it is vectorised. */
#define ADD_UP(name, start, step)                                                                                                          \
    INLINED T NAME(name)(const T *restrict a, const T *restrict b, npy_intp n)                                                             \
    {                                                                                                                                      \
        T sums[LANES] = {0}, total = 0;                                                                                                    \
        npy_intp i = 0;                                                                                                                    \
        for (; i + LANES <= n; i += LANES) {                                                                                               \
            for (int l = 0; l < LANES; l++) {                                                                                              \
                const T d = FABS(a[i + l] - b[i + l]), sum = sums[l];                                                                      \
                sums[l] = step;                                                                                                            \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (int l = 0; i < n; i++, l++) {                                                                                                 \
            const T d = FABS(a[i] - b[i]), sum = sums[l];                                                                                  \
            sums[l] = step;                                                                                                                \
        }                                                                                                                                  \
        for (int l = 0; l < LANES; l++) {                                                                                                  \
            const T d = sums[l], sum = total;                                                                                              \
            total = start;                                                                                                                 \
        }                                                                                                                                  \
        return total;                                                                                                                      \
    }

ADD_UP(count_unlike, sum + d, sum + (d != 0))
ADD_UP(sum_sizes, sum + d, sum + d)
ADD_UP(sum_squares, sum + d, sum + d * d)
ADD_UP(largest, d > sum || d != d ? d : sum, d > sum || d != d ? d : sum)

static TARGET void NAME(distances)(const void *points, npy_intp rows, npy_intp n, double p, void *out)
{
    T *to = out;
    for (npy_intp i = 0; i < rows; i++) {
        const T *a = (const T *)points + i * n;
        for (npy_intp j = i + 1; j < rows; j++) {
            const T *b = (const T *)points + j * n;
            if (p == 2) {
                const T sum = NAME(sum_squares)(a, b, n);
                *to++ = IS_DOUBLE ? (T)sqrt((double)sum) : (T)sqrtf((float)sum);
            }
            else if (p == 1) {
                *to++ = NAME(sum_sizes)(a, b, n);
            }
            else if (p == 0) {
                *to++ = NAME(count_unlike)(a, b, n);
            }
            else if (isinf(p)) {
                *to++ = NAME(largest)(a, b, n);
            }
            else {
                T sum = 0;
                for (npy_intp k = 0; k < n; k++) {
                    sum += POW(FABS(a[k] - b[k]), (T)p);
                }
                *to++ = POW(sum, (T)(1 / p));
            }
        }
    }
}

/* `out` is zero before. */
static TARGET void NAME(distances_backward)(const void *grad, const void *points, npy_intp rows, npy_intp n, double p, const void *lengths, void *out)
{
    const T *g = grad, *length = lengths;
    for (npy_intp i = 0; i < rows; i++) {
        const T *a = (const T *)points + i * n;
        T *of_a = (T *)out + i * n;
        for (npy_intp j = i + 1; j < rows; j++, g++, length++) {
            const T *restrict b = (const T *)points + j * n;
            T *restrict of_b = (T *)out + j * n;
            if (p == 0 || *length == 0) {
                continue;
            }
            if (p == 2) {
                const T scale = *g / *length;
                for (npy_intp k = 0; k < n; k++) {
                    const T share = scale * (a[k] - b[k]);
                    of_a[k] += share;
                    of_b[k] -= share;
                }
                continue;
            }
            const T scale = p == 1 || isinf(p) ? *g : *g / POW(*length, (T)(p - 1));
            for (npy_intp k = 0; k < n; k++) {
                const T d = a[k] - b[k], size = FABS(d);
                T share = d > 0 ? scale : d < 0 ? -scale : d * 0;
                if (isinf(p)) {
                    share = size == *length ? share : 0;
                }
                else if (p != 1 && d != 0) {
                    share *= POW(size, (T)(p - 1));
                }
                of_a[k] += share;
                of_b[k] -= share;
            }
        }
    }
}

#undef FABS
#undef POW
#undef LANES
#undef ADD_UP
