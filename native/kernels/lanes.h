/* Vectors of the processor, and reductions of contiguous elements over them. Included, by the files of loops, for each type and processor.
 *
 * Sums are kept in four vectors that are emptied into a double now and then, so that long sums keep their digits.
 */
#ifndef LANES_ONCE
#define LANES_ONCE

#include "whole_vectors.h"

#define V NAME(Vector)
#define STEP ((npy_intp)(VECTOR_BYTES / sizeof(T)))
#define SUM_BLOCK 8192

/* What lies a kilobyte behind n elements that are read now: loops that do much with each wait for memory otherwise. */
#define FETCH_AHEAD(from, n)                                                                                                              \
    do {                                                                                                                                   \
        for (npy_intp ahead_ = 0; ahead_ < (n) * (npy_intp)sizeof(*(from)); ahead_ += 64) {                                                \
            __builtin_prefetch((const char *)(from) + 1024 + ahead_);                                                                      \
        }                                                                                                                                  \
    } while (0)

#if defined(__clang__)
#define ROLLED _Pragma("clang loop unroll(disable)")
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define ROLLED _Pragma("GCC unroll 1") /* of the elements after the last vector: compilers would write out fifteen */
#define UNROLLED _Pragma("GCC unroll 8")
#endif

/* Of n elements, at `a` and `b`, in whole vectors: the statement makes `made`, for the results, of `p` and `q`; `at` is their place. What is left goes
 * through a vector of its own: see Note [Whole vectors]. What the statement reads by `at` has room up to a multiple of STEP. */
#define EACH(n, a, b, results, ...)                                                                                                        \
    do {                                                                                                                                   \
        T left_[2][VECTOR_BYTES / sizeof(T)];                                                                                              \
        const T *p_ = (a), *q_ = (b);                                                                                                      \
        T *to_ = (results);                                                                                                                \
        const npy_intp n_ = (n);                                                                                                           \
        const size_t rest_ = (size_t)(n_ & (STEP - 1)) * sizeof(T);                                                                          \
        for (npy_intp done_ = 0, count_ = n_;;) {                                                                                          \
            const npy_intp some_ = count_ & -STEP;                                                                                         \
            INDEPENDENT for (npy_intp l_ = 0; l_ < some_; l_++)                                                                            \
            {                                                                                                                              \
                const npy_intp at = done_ + l_;                                                                                            \
                const T p = p_[l_], q = q_[l_];                                                                                            \
                T made;                                                                                                                    \
                (void)at, (void)q;                                                                                                         \
                __VA_ARGS__;                                                                                                               \
                to_[l_] = made;                                                                                                            \
            }                                                                                                                              \
            if (to_ == left_[0]) {                                                                                                         \
                GIVE_REST(VECTOR_BYTES)((results) + done_, to_, rest_);                                                                    \
                break;                                                                                                                     \
            }                                                                                                                              \
            done_ = some_;                                                                                                                 \
            if (done_ == n_) {                                                                                                             \
                break;                                                                                                                     \
            }                                                                                                                              \
            TAKE_REST(VECTOR_BYTES)(left_[0], p_ + done_, rest_);                                                                          \
            TAKE_REST(VECTOR_BYTES)(left_[1], q_ + done_, rest_);                                                                          \
            p_ = to_ = left_[0];                                                                                                           \
            q_ = left_[1];                                                                                                                 \
            count_ = STEP;                                                                                                                 \
        }                                                                                                                                  \
    } while (0)

/* `total` (a double) becomes the sum of n terms: VECTOR is the term of the elements at j of a vector, SCALAR that of the element at j. */
#define SUM_OVER(total, n, VECTOR, SCALAR)                                                                                                \
    do {                                                                                                                                   \
        double sum_ = 0;                                                                                                                   \
        npy_intp i_ = 0, n_ = (n);                                                                                                         \
        while (i_ + STEP <= n_) {                                                                                                          \
            npy_intp end_ = i_ + SUM_BLOCK < n_ ? i_ + SUM_BLOCK : n_;                                                                     \
            V a_ = {0}, b_ = {0}, c_ = {0}, d_ = {0};                                                                                      \
            npy_intp j;                                                                                                                    \
            for (; i_ + 4 * STEP <= end_; i_ += 4 * STEP) {                                                                                \
                j = i_;                                                                                                                    \
                a_ += VECTOR;                                                                                                              \
                j = i_ + STEP;                                                                                                             \
                b_ += VECTOR;                                                                                                              \
                j = i_ + 2 * STEP;                                                                                                         \
                c_ += VECTOR;                                                                                                              \
                j = i_ + 3 * STEP;                                                                                                         \
                d_ += VECTOR;                                                                                                              \
            }                                                                                                                              \
            for (; i_ + STEP <= end_; i_ += STEP) {                                                                                        \
                j = i_;                                                                                                                    \
                a_ += VECTOR;                                                                                                              \
            }                                                                                                                              \
            sum_ += NAME(folded)((a_ + b_) + (c_ + d_));                                                                                   \
        }                                                                                                                                  \
        ROLLED for (; i_ < n_; i_++)                                                                                                       \
        {                                                                                                                                  \
            npy_intp j = i_;                                                                                                               \
            sum_ += SCALAR;                                                                                                                \
        }                                                                                                                                  \
        (total) = sum_;                                                                                                                    \
    } while (0)
#endif

typedef T V __attribute__((vector_size(VECTOR_BYTES)));

static inline __attribute__((always_inline)) TARGET V NAME(load)(const T *from)
{
    V vector;
    memcpy(&vector, from, sizeof(V));
    return vector;
}

static inline __attribute__((always_inline)) TARGET V NAME(all)(T value)
{
    V zero = {0};
    return zero + value;
}

/* The sum of the elements, by halves. */
static inline __attribute__((always_inline)) TARGET double NAME(folded)(V vector)
{
    T lanes[VECTOR_BYTES / sizeof(T)];
    memcpy(lanes, &vector, sizeof(V));
    UNROLLED for (int half = (int)STEP / 2; half; half /= 2)
    {
        for (int k = 0; k < half; k++) {
            lanes[k] += lanes[k + half];
        }
    }
    return lanes[0];
}

/* The sum of the elements, in the registers. */
static inline __attribute__((always_inline)) TARGET T NAME(added_up)(V vector)
{
    typedef T Half __attribute__((vector_size(VECTOR_BYTES / 2)));
    Half low, high;
    memcpy(&low, &vector, sizeof(Half));
    memcpy(&high, (const char *)&vector + sizeof(Half), sizeof(Half));
    low += high;
    T lanes[VECTOR_BYTES / 2 / sizeof(T)], sum = 0;
    memcpy(lanes, &low, sizeof(Half));
    for (size_t i = 0; i < sizeof(lanes) / sizeof(T); i++) {
        sum += lanes[i];
    }
    return sum;
}

static inline TARGET double NAME(sum_of)(const T *x, npy_intp n)
{
    double total;
    SUM_OVER(total, n, NAME(load)(x + j), x[j]);
    return total;
}

/* Of two vectors, element by element, the larger or the smaller; NaN where `next` or `kept` is. */
static inline __attribute__((always_inline)) TARGET V NAME(better)(V kept, V next, int smallest)
{
    __typeof__(next > kept) take = (smallest ? next < kept : next > kept) | (next != next);
    return (V)((take & (__typeof__(take))next) | (~take & (__typeof__(take))kept));
}

static inline __attribute__((always_inline)) TARGET T NAME(better_one)(T kept, T next, int smallest)
{
    return (smallest ? next < kept : next > kept) || next != next ? next : kept;
}

/* The largest (or smallest) element; NaN when there is one. */
static inline __attribute__((always_inline)) TARGET T NAME(extreme)(const T *x, npy_intp n, int smallest)
{
    T best = x[0];
    npy_intp i = 0;
    if (n >= 4 * STEP) {
        V a = NAME(load)(x), b = NAME(load)(x + STEP), c = NAME(load)(x + 2 * STEP), d = NAME(load)(x + 3 * STEP);
        for (i = 4 * STEP; i + 4 * STEP <= n; i += 4 * STEP) {
            a = NAME(better)(a, NAME(load)(x + i), smallest);
            b = NAME(better)(b, NAME(load)(x + i + STEP), smallest);
            c = NAME(better)(c, NAME(load)(x + i + 2 * STEP), smallest);
            d = NAME(better)(d, NAME(load)(x + i + 3 * STEP), smallest);
        }
        a = NAME(better)(NAME(better)(a, b, smallest), NAME(better)(c, d, smallest), smallest);
        T lanes[VECTOR_BYTES / sizeof(T)];
        memcpy(lanes, &a, sizeof(V));
        UNROLLED for (int half = (int)STEP / 2; half; half /= 2)
        {
            for (int k = 0; k < half; k++) {
                lanes[k] = NAME(better_one)(lanes[k], lanes[k + half], smallest);
            }
        }
        best = lanes[0];
    }
    ROLLED for (; i < n; i++)
    {
        best = NAME(better_one)(best, x[i], smallest);
    }
    return best;
}
