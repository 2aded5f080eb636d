/* Distances of all pairs of rows, for a type T and a processor; see distance.c. */
#if IS_DOUBLE
#define FABS fabs
#define POW pow
#else
#define FABS fabsf
#define POW powf
#endif

#define LANES 8

/* The sum of the powers of the differences of two rows, or their maximum; in LANES sums, so that it is vectorised. Past the rows' ends stand zeros. */
#define ADD_UP(name, start, step)                                                                                                          \
    INLINED T NAME(name)(const T *restrict a, const T *restrict b, npy_intp n)                                                             \
    {                                                                                                                                      \
        T sums[LANES] = {0}, total = 0, left[2][LANES] = {{0}};                                                                            \
        const npy_intp whole = n & -(npy_intp)LANES;                                                                                       \
        for (npy_intp i = 0; i < n; i += LANES) {                                                                                          \
            if (i == whole) {                                                                                                              \
                for (npy_intp l = 0; l < n - whole; l++) {                                                                                 \
                    left[0][l] = a[l];                                                                                                     \
                    left[1][l] = b[l];                                                                                                     \
                }                                                                                                                          \
                a = left[0];                                                                                                               \
                b = left[1];                                                                                                               \
            }                                                                                                                              \
            for (int l = 0; l < LANES; l++) {                                                                                              \
                const T d = FABS(a[l] - b[l]), sum = sums[l];                                                                              \
                sums[l] = step;                                                                                                            \
            }                                                                                                                              \
            a += LANES;                                                                                                                    \
            b += LANES;                                                                                                                    \
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

static TARGET __attribute__((noinline)) T NAME(distance)(const T *a, const T *b, npy_intp n, double p)
{
    if (p == 2) {
        const T sum = NAME(sum_squares)(a, b, n);
        return IS_DOUBLE ? (T)sqrt((double)sum) : (T)sqrtf((float)sum);
    }
    if (p == 1) {
        return NAME(sum_sizes)(a, b, n);
    }
    if (p == 0) {
        return NAME(count_unlike)(a, b, n);
    }
    if (isinf(p)) {
        return NAME(largest)(a, b, n);
    }
    T sum = 0;
    for (npy_intp k = 0; k < n; k++) {
        sum += POW(FABS(a[k] - b[k]), (T)p);
    }
    return POW(sum, (T)(1 / p));
}

/* Of all pairs of rows, */
static TARGET void NAME(distances)(const void *points, npy_intp rows, npy_intp n, double p, void *out)
{
    T *to = out;
    for (npy_intp i = 0; i < rows; i++) {
        for (npy_intp j = i + 1; j < rows; j++) {
            *to++ = NAME(distance)((const T *)points + i * n, (const T *)points + j * n, n, p);
        }
    }
}

/* and of the rows of one array from those of another. */
static TARGET void NAME(distances_between)(const void *first, npy_intp rows, const void *second, npy_intp others, npy_intp n, double p, void *out)
{
    T *to = out;
    for (npy_intp i = 0; i < rows; i++) {
        for (npy_intp j = 0; j < others; j++) {
            *to++ = NAME(distance)((const T *)first + i * n, (const T *)second + j * n, n, p);
        }
    }
}

#define SHARES(share)                                                                                                                      \
    for (npy_intp k = 0; k < n; k++) {                                                                                                     \
        const T d = a[k] - b[k], part = share;                                                                                             \
        of_a[k] += part;                                                                                                                   \
        if (of_b != NULL) {                                                                                                                \
            of_b[k] -= part;                                                                                                               \
        }                                                                                                                                  \
    }

/* Adds the gradient of a pair's distance to that of `a`, and takes it from that of `b` where there is one. */
static TARGET __attribute__((noinline)) void NAME(add_share)(T grad, T length, const T *restrict a, const T *restrict b, npy_intp n, double p, T *restrict of_a, T *restrict of_b)
{
    if (p == 0 || length == 0) {
        return;
    }
    if (p == 2) {
        const T scale = grad / length;
        SHARES(scale * d);
        return;
    }
    if (p == 1) {
        SHARES(d > 0 ? grad : d < 0 ? -grad : d * 0);
        return;
    }
    if (isinf(p)) {
        SHARES(FABS(d) == length ? (d > 0 ? grad : d < 0 ? -grad : d * 0) : 0);
        return;
    }
    const T scale = grad / POW(length, (T)(p - 1));
    SHARES(d == 0 ? 0 : (d > 0 ? scale : -scale) * POW(FABS(d), (T)(p - 1)));
}

/* `out` is zero before. */
static TARGET void NAME(distances_backward)(const void *grad, const void *points, npy_intp rows, npy_intp n, double p, const void *lengths, void *out)
{
    const T *g = grad, *length = lengths;
    for (npy_intp i = 0; i < rows; i++) {
        for (npy_intp j = i + 1; j < rows; j++, g++, length++) {
            NAME(add_share)(*g, *length, (const T *)points + i * n, (const T *)points + j * n, n, p, (T *)out + i * n, (T *)out + j * n);
        }
    }
}

/* The gradient of the first rows; `out` is zero before. */
static TARGET void NAME(between_backward)(const void *grad, const void *first, npy_intp rows, const void *second, npy_intp others, npy_intp n, double p,
                                          const void *lengths, void *out)
{
    const T *g = grad, *length = lengths;
    for (npy_intp i = 0; i < rows; i++) {
        for (npy_intp j = 0; j < others; j++, g++, length++) {
            NAME(add_share)(*g, *length, (const T *)first + i * n, (const T *)second + j * n, n, p, (T *)out + i * n, NULL);
        }
    }
}

#undef FABS
#undef POW
#undef LANES
#undef ADD_UP
#undef SHARES
