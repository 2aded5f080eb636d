/* Variances, norms and logarithms of sums; included for each type and processor. Sums are kept in double throughout. */
#include "lanes.h"
#include "vecmath.h"

#define AT(x, i, stride) (*(const T *)((x) + (i) * (stride)))
#define MAGNITUDE(x) (IS_DOUBLE ? (T)__builtin_fabs(x) : (T)__builtin_fabsf((float)(x)))
#define DENSE ((npy_intp)sizeof(T))
#define CHUNK 1024 /* elements whose exponentials or magnitudes are still in the cache when they are reduced */

typedef double NAME(Wide) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(Narrow) __attribute__((vector_size(VECTOR_BYTES / sizeof(double) * sizeof(T))));
#define WIDE_STEP ((npy_intp)(VECTOR_BYTES / sizeof(double)))

/* As many elements as a vector of double has. */
static inline __attribute__((always_inline)) TARGET NAME(Wide) NAME(widened)(const T *from)
{
    NAME(Narrow) narrow;
    memcpy(&narrow, from, sizeof(narrow));
    return __builtin_convertvector(narrow, NAME(Wide));
}

#ifndef MOMENTS_ONCE
#define MOMENTS_ONCE
static inline double number(double v)
{
    return v == v ? v : 0;
}
#endif

/* Zeros in the place of NaN. */
static inline __attribute__((always_inline)) TARGET NAME(Wide) NAME(numbers)(NAME(Wide) v)
{
    return (NAME(Wide))((__typeof__(v == v))v & (v == v));
}

/* `total` becomes the sum of TERM(v) over the elements v of a row, which may be vectors or numbers. */
#define WIDE_SUM(total, x, n, stride, TERM)                                                                                               \
    do {                                                                                                                                   \
        double sum_ = 0;                                                                                                                   \
        npy_intp i_ = 0, n_ = (n);                                                                                                         \
        if ((stride) == DENSE) {                                                                                                           \
            const T *row_ = (const T *)(x);                                                                                                \
            NAME(Wide) a_ = {0}, b_ = {0}, c_ = {0}, d_ = {0};                                                                             \
            for (; i_ + 4 * WIDE_STEP <= n_; i_ += 4 * WIDE_STEP) {                                                                        \
                FETCH_AHEAD(row_ + i_, 4 * WIDE_STEP);                                                                                     \
                NAME(Wide) p_ = NAME(widened)(row_ + i_), q_ = NAME(widened)(row_ + i_ + WIDE_STEP);                                       \
                NAME(Wide) r_ = NAME(widened)(row_ + i_ + 2 * WIDE_STEP), s_ = NAME(widened)(row_ + i_ + 3 * WIDE_STEP);                   \
                a_ += TERM(p_);                                                                                                            \
                b_ += TERM(q_);                                                                                                            \
                c_ += TERM(r_);                                                                                                            \
                d_ += TERM(s_);                                                                                                            \
            }                                                                                                                              \
            a_ = (a_ + b_) + (c_ + d_);                                                                                                    \
            for (int k_ = 0; k_ < (int)WIDE_STEP; k_++) {                                                                                  \
                sum_ += a_[k_];                                                                                                            \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (; i_ < n_; i_++) {                                                                                                            \
            double v_ = AT(x, i_, stride);                                                                                                 \
            sum_ += TERM(v_);                                                                                                              \
        }                                                                                                                                  \
        (total) = sum_;                                                                                                                    \
    } while (0)

#define ITSELF(v) (v)
#define NUMBER(v) _Generic((v), NAME(Wide): NAME(numbers), double: number)(v)
#define SQUARE(v) ((v) * (v))
#define DEVIATION(v) (((v)-mean) * ((v)-mean))

/* Adds TERM(v) of the elements v of n rows to the totals of their columns, row after row; TERM may read `i`. Four rows of float32 at a
 * time: the totals, which have twice their bytes, are read and written less often. */
#define ADD_ROWS(total, x, n, stride, inner, TERM)                                                                                         \
    do {                                                                                                                                   \
        npy_intp k_ = 0;                                                                                                                   \
        for (; !IS_DOUBLE && k_ + 4 <= (n); k_ += 4, (x) += 4 * (stride)) {                                                                \
            const T *restrict a_ = (const T *)(x), *restrict b_ = (const T *)((x) + (stride));                                             \
            const T *restrict c_ = (const T *)((x) + 2 * (stride)), *restrict d_ = (const T *)((x) + 3 * (stride));                        \
            for (npy_intp i = 0; i < (inner); i++) {                                                                                       \
                double sum_ = (total)[i];                                                                                                  \
                const double p_ = a_[i], q_ = b_[i], r_ = c_[i], s_ = d_[i];                                                               \
                sum_ += TERM(p_);                                                                                                          \
                sum_ += TERM(q_);                                                                                                          \
                sum_ += TERM(r_);                                                                                                          \
                sum_ += TERM(s_);                                                                                                          \
                (total)[i] = sum_;                                                                                                         \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (; k_ < (n); k_++, (x) += (stride)) {                                                                                          \
            const T *restrict row_ = (const T *)(x);                                                                                       \
            for (npy_intp i = 0; i < (inner); i++) {                                                                                       \
                const double v_ = row_[i];                                                                                                 \
                (total)[i] += TERM(v_);                                                                                                    \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)
#define DEVIATION_OF(v) (((v)-means[i]) * ((v)-means[i]))

static TARGET void NAME(plain_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    double total;
    WIDE_SUM(total, x, n, stride, ITSELF);
    *(double *)state += total;
}

static TARGET void NAME(plain_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    double *restrict total = state;
    ADD_ROWS(total, x, n, stride, inner, ITSELF);
}

static TARGET void NAME(number_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    double total;
    WIDE_SUM(total, x, n, stride, NUMBER);
    *(double *)state += total;
}

static TARGET void NAME(number_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    double *restrict total = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *restrict row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            total[i] += row[i] == row[i] ? row[i] : 0;
        }
    }
}

static TARGET void NAME(square_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    double total;
    WIDE_SUM(total, x, n, stride, SQUARE);
    *(double *)state += total;
}

static TARGET void NAME(square_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    double *restrict total = state;
    ADD_ROWS(total, x, n, stride, inner, SQUARE);
}

/* The context is the mean. */
static TARGET void NAME(deviation_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    const double mean = *(const double *)context;
    double total;
    WIDE_SUM(total, x, n, stride, DEVIATION);
    *(double *)state += total;
}

static TARGET void NAME(deviation_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    const double *restrict means = context;
    double *restrict total = state;
    ADD_ROWS(total, x, n, stride, inner, DEVIATION_OF);
}

static TARGET void NAME(magnitude_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    T part[CHUNK];
    double total = 0;
    for (npy_intp start = 0; start < n; start += CHUNK, x += CHUNK * stride) {
        npy_intp count = n - start < CHUNK ? n - start : CHUNK;
        for (npy_intp i = 0; i < count; i++) {
            part[i] = MAGNITUDE(AT(x, i, stride));
        }
        total += NAME(sum_of)(part, count);
    }
    *(double *)state += total;
}

static TARGET void NAME(magnitude_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    double *restrict total = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *restrict row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            total[i] += MAGNITUDE(row[i]);
        }
    }
}

static inline __attribute__((always_inline)) TARGET void NAME(extreme_magnitude_row)(const char *x, npy_intp n, npy_intp stride, void *state,
                                                                                     int smallest)
{
    T part[CHUNK], best = *(T *)state;
    for (npy_intp start = 0; start < n; start += CHUNK, x += CHUNK * stride) {
        npy_intp count = n - start < CHUNK ? n - start : CHUNK;
        for (npy_intp i = 0; i < count; i++) {
            part[i] = MAGNITUDE(AT(x, i, stride));
        }
        best = NAME(better_one)(best, NAME(extreme)(part, count, smallest), smallest);
    }
    *(T *)state = best;
}

static inline __attribute__((always_inline)) TARGET void NAME(extreme_magnitude_columns)(const char *x, npy_intp n, npy_intp stride,
                                                                                         npy_intp inner, void *state, int smallest)
{
    T *restrict best = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *restrict row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            T kept = best[i], next = MAGNITUDE(row[i]);
            best[i] = NAME(better_one)(kept, next, smallest);
        }
    }
}

static TARGET void NAME(farthest_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    NAME(extreme_magnitude_row)(x, n, stride, state, 0);
}

static TARGET void NAME(farthest_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    NAME(extreme_magnitude_columns)(x, n, stride, inner, state, 0);
}

static TARGET void NAME(nearest_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    NAME(extreme_magnitude_row)(x, n, stride, state, 1);
}

static TARGET void NAME(nearest_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    NAME(extreme_magnitude_columns)(x, n, stride, inner, state, 1);
}

/* The context is what elements are shifted by. */
static TARGET void NAME(exponential_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    const T shift = *(const T *)context;
    T part[CHUNK];
    double total = 0;
    for (npy_intp start = 0; start < n; start += CHUNK, x += CHUNK * stride) {
        npy_intp count = n - start < CHUNK ? n - start : CHUNK;
        if (stride == DENSE) {
            const T *row = (const T *)x;
            EACH(count, row, row, part, made = NAME(exponential)(p - shift));
        }
        else {
            for (npy_intp i = 0; i < count; i++) {
                part[i] = AT(x, i, stride) - shift;
            }
            EACH(count, part, part, part, made = NAME(exponential)(p));
        }
        total += NAME(sum_of)(part, count);
    }
    *(double *)state += total;
}

static TARGET void NAME(exponential_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    const T *restrict shift = context;
    double *restrict total = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *restrict row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            total[i] += NAME(exponential)(row[i] - shift[i]);
        }
    }
}

/* --- what becomes of the states */

static TARGET void NAME(shift_by)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    (void)context, (void)second, (void)n, (void)by;
    const T *largest = state;
    T *out = output;
    for (npy_intp i = 0; i < count; i++) {
        out[i] = MAGNITUDE(largest[i]) == (T)NPY_INFINITY ? 0 : largest[i];
    }
}

static TARGET void NAME(log_of_sum)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    (void)second, (void)n, (void)by;
    const double *total = state;
    const T *shift = context;
    T *out = output;
    for (npy_intp i = 0; i < count; i++) {
        out[i] = (T)(log(total[i]) + shift[i]);
    }
}

/* `by` is the correction. The second result is the mean. */
static TARGET void NAME(variance)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    const double *total = state, *means = context, freedom = n > by ? n - by : 0;
    T *out = output, *mean = second;
    for (npy_intp i = 0; i < count; i++) {
        out[i] = (T)(total[i] / freedom);
    }
    for (npy_intp i = 0; mean != NULL && i < count; i++) {
        mean[i] = (T)means[i];
    }
}

static TARGET void NAME(deviation)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    const double *total = state, *means = context, freedom = n > by ? n - by : 0;
    T *out = output, *mean = second;
    for (npy_intp i = 0; i < count; i++) {
        out[i] = (T)sqrt(total[i] / freedom);
    }
    for (npy_intp i = 0; mean != NULL && i < count; i++) {
        mean[i] = (T)means[i];
    }
}

static TARGET void NAME(root)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    (void)context, (void)second, (void)n, (void)by;
    const double *total = state;
    T *out = output;
    for (npy_intp i = 0; i < count; i++) {
        out[i] = (T)sqrt(total[i]);
    }
}

static TARGET void NAME(narrowed)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    (void)context, (void)second, (void)n, (void)by;
    const double *total = state;
    T *out = output;
    for (npy_intp i = 0; i < count; i++) {
        out[i] = (T)total[i];
    }
}

static TARGET void NAME(counted)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    (void)context, (void)second, (void)n, (void)by;
    const npy_int64 *total = state;
    T *out = output;
    for (npy_intp i = 0; i < count; i++) {
        out[i] = (T)total[i];
    }
}

static TARGET void NAME(as_it_is)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    (void)context, (void)second, (void)n, (void)by;
    memcpy(output, state, (size_t)count * sizeof(T));
}

#undef AT
#undef DENSE
#undef MAGNITUDE
#undef CHUNK
#undef WIDE_STEP
#undef WIDE_SUM
#undef ITSELF
#undef NUMBER
#undef SQUARE
#undef DEVIATION
