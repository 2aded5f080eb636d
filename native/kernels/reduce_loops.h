/* Reductions; included for each type and processor.
 *
 * NAME(sum_row) and its like take n elements, `stride` bytes apart, to the running result at `state`; NAME(sum_columns) and its like n rows of
 * `inner` neighbours each, whose results stand side by side at `state`.
 */
#ifdef INTEGER
#define TOTAL npy_int64
#define IS_NAN(x) 0
#else
#include "lanes.h"
#define TOTAL double
#define IS_NAN(x) ((x) != (x))
#endif

#define AT(x, i, stride) (*(const T *)((x) + (i) * (stride)))
#define DENSE ((npy_intp)sizeof(T))
#define FACTORS 128 /* that are multiplied before their product goes to the total */
#define PART 4096 /* elements between two looks at what is found already */

/* --- sums and products */

static TARGET void NAME(sum_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    TOTAL total = 0;
#ifdef INTEGER
    if (stride == DENSE && sizeof(T) < 4) {
        /* Short sums first: they vectorise well. */
        for (npy_intp start = 0; start < n; start += PART) {
            const T *part = (const T *)x + start;
            npy_intp count = n - start < PART ? n - start : PART;
            npy_int32 sum = 0;
            for (npy_intp i = 0; i < count; i++) {
                sum += part[i];
            }
            total += sum;
        }
    }
    else if (stride == DENSE) {
        const T *all = (const T *)x;
        for (npy_intp i = 0; i < n; i++) {
            total += (npy_int64)all[i];
        }
    }
    else {
        for (npy_intp i = 0; i < n; i++) {
            total += (npy_int64)AT(x, i, stride);
        }
    }
#else
    if (stride == DENSE) {
        total = NAME(sum_of)((const T *)x, n);
    }
    else {
        npy_intp i = 0;
        while (i + 4 <= n) {
            npy_intp stop = i + PART < n ? i + PART : n;
            double a = 0, b = 0, c = 0, d = 0;
            for (; i + 4 <= stop; i += 4) {
                a += AT(x, i, stride);
                b += AT(x, i + 1, stride);
                c += AT(x, i + 2, stride);
                d += AT(x, i + 3, stride);
            }
            total += (a + b) + (c + d);
        }
        for (; i < n; i++) {
            total += AT(x, i, stride);
        }
    }
#endif
    *(TOTAL *)state += total;
}

/* The sums of rows that begin `step` bytes apart. */
static TARGET void NAME(sum_rows)(const char *x, npy_intp rows, npy_intp step, npy_intp n, npy_intp stride, void *state)
{
    TOTAL *total = state;
#ifndef INTEGER
    for (; stride == DENSE && rows > 0; rows--, x += step) {
        *total++ += NAME(sum_of)((const T *)x, n);
    }
#endif
    for (npy_intp r = 0; r < rows; r++, x += step) {
        NAME(sum_row)(x, n, stride, total + r, NULL);
    }
}

static TARGET void NAME(sum_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    TOTAL *total = state;
#ifdef INTEGER
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            total[i] += row[i];
        }
    }
#else
    T block[COLUMNS];
    for (npy_intp start = 0; start < n; start += SUM_ROWS, x += SUM_ROWS * stride) {
        npy_intp count = n - start < SUM_ROWS ? n - start : SUM_ROWS, k = 0;
        for (npy_intp i = 0; i < inner; i++) {
            block[i] = 0;
        }
        for (; k + 4 <= count; k += 4) {
            const T *a = (const T *)(x + k * stride), *b = (const T *)(x + (k + 1) * stride);
            const T *c = (const T *)(x + (k + 2) * stride), *d = (const T *)(x + (k + 3) * stride);
            for (npy_intp i = 0; i < inner; i++) {
                block[i] += (a[i] + b[i]) + (c[i] + d[i]);
            }
        }
        for (; k < count; k++) {
            const T *a = (const T *)(x + k * stride);
            for (npy_intp i = 0; i < inner; i++) {
                block[i] += a[i];
            }
        }
        for (npy_intp i = 0; i < inner; i++) {
            total[i] += block[i];
        }
    }
#endif
}

#if !defined(INTEGER) && IS_DOUBLE
/* One row after the other. */
static TARGET void NAME(join_sums)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    double *restrict total = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const double *restrict row = (const double *)x;
        for (npy_intp i = 0; i < inner; i++) {
            total[i] += row[i];
        }
    }
}
#endif

#ifdef INTEGER
#define PRODUCT npy_uint64 /* products wrap, which signed numbers of C may not */
#else
#define PRODUCT T
#endif

#ifndef INTEGER
#define WIDE_STEP ((npy_intp)(VECTOR_BYTES / sizeof(double)))
typedef double NAME(Factors) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(Narrow) __attribute__((vector_size(VECTOR_BYTES / sizeof(double) * sizeof(T))));

static inline __attribute__((always_inline)) TARGET NAME(Factors) NAME(factors)(const T *from)
{
    NAME(Narrow) narrow;
    memcpy(&narrow, from, sizeof(narrow));
    return __builtin_convertvector(narrow, NAME(Factors));
}

/* The product of n elements that lie side by side, in float64, where that of many floats has its place. */
static inline __attribute__((always_inline)) TARGET double NAME(product_of)(const T *x, npy_intp n)
{
    NAME(Factors) one = {0};
    one += 1.0;
    NAME(Factors) p = one, q = one, r = one, s = one;
    npy_intp i = 0;
    for (; i + 4 * WIDE_STEP <= n; i += 4 * WIDE_STEP) {
        FETCH_AHEAD(x + i, 4 * WIDE_STEP);
        p *= NAME(factors)(x + i);
        q *= NAME(factors)(x + i + WIDE_STEP);
        r *= NAME(factors)(x + i + 2 * WIDE_STEP);
        s *= NAME(factors)(x + i + 3 * WIDE_STEP);
    }
    p = (p * q) * (r * s);
    double lanes[VECTOR_BYTES / sizeof(double)], product = 1;
    memcpy(lanes, &p, sizeof(p));
    for (int half = (int)WIDE_STEP / 2; half; half /= 2) {
        for (int k = 0; k < half; k++) {
            lanes[k] *= lanes[k + half];
        }
    }
    for (; i < n; i++) {
        product *= x[i];
    }
    return lanes[0] * product;
}
#undef WIDE_STEP
#endif

static TARGET void NAME(product_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    PRODUCT total = *(PRODUCT *)state;
    npy_intp i = 0;
#ifndef INTEGER
    if (stride == (npy_intp)sizeof(T) && n >= 4 * (npy_intp)STEP) {
        double whole = NAME(product_of)((const T *)x, n);
        /* Infinities and NaN leave no zero; what floats make of zero in float64 is none in float32. */
        if ((isnormal(whole) && isnormal(total * whole)) || (sizeof(T) == 4 && whole == 0)) {
            *(T *)state = (T)(total * whole);
            return;
        }
    }
#endif
    while (i + 4 <= n) {
        /* Few at a time: products of many elements run to zero or infinity, where the order matters. */
        npy_intp stop = i + FACTORS < n ? i + FACTORS : n;
#ifndef INTEGER
        if (stride == (npy_intp)sizeof(T) && i + 4 * (npy_intp)STEP <= stop) {
            total = (T)(total * NAME(product_of)((const T *)x + i, stop - i));
            i = stop;
            continue;
        }
#endif
        PRODUCT a = 1, b = 1, c = 1, d = 1;
        for (; i + 4 <= stop; i += 4) {
            a *= AT(x, i, stride);
            b *= AT(x, i + 1, stride);
            c *= AT(x, i + 2, stride);
            d *= AT(x, i + 3, stride);
        }
        total *= (a * b) * (c * d);
    }
    for (; i < n; i++) {
        total *= AT(x, i, stride);
    }
    *(PRODUCT *)state = total;
}

static TARGET void NAME(product_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    PRODUCT *total = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            total[i] *= row[i];
        }
    }
}

static TARGET void NAME(finish_sum)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    (void)context, (void)second, (void)n;
#ifdef INTEGER
    (void)by;
    memcpy(output, state, (size_t)count * sizeof(npy_int64));
#else
    const double *total = state;
    T *out = output;
    if (by == 1) {
        for (npy_intp i = 0; i < count; i++) {
            out[i] = (T)total[i];
        }
        return;
    }
    for (npy_intp i = 0; i < count; i++) {
        out[i] = (T)(total[i] / by);
    }
#endif
}

static TARGET void NAME(finish_same)(const void *state, const void *context, void *output, void *second, npy_intp count, double n, double by)
{
    (void)context, (void)second, (void)n, (void)by;
    memcpy(output, state, (size_t)count * sizeof(T));
}

/* --- extremes */

#ifdef INTEGER
#define BETTER(kept, next, smallest) ((smallest ? (next) < (kept) : (next) > (kept)) ? (next) : (kept))
#else
#define BETTER(kept, next, smallest) NAME(better_one)(kept, next, smallest)
#endif

static inline __attribute__((always_inline)) TARGET T NAME(best_of)(const T *x, npy_intp n, int smallest)
{
#ifdef INTEGER
    T best = x[0];
    for (npy_intp i = 1; i < n; i++) {
        best = BETTER(best, x[i], smallest);
    }
    return best;
#else
    return NAME(extreme)(x, n, smallest);
#endif
}

static inline __attribute__((always_inline)) TARGET void NAME(extreme_row)(const char *x, npy_intp n, npy_intp stride, void *state, int smallest)
{
    T best = *(T *)state;
    if (stride == DENSE) {
        T found = NAME(best_of)((const T *)x, n, smallest);
        best = BETTER(best, found, smallest);
    }
    else {
        for (npy_intp i = 0; i < n; i++) {
            T next = AT(x, i, stride);
            best = BETTER(best, next, smallest);
        }
    }
    *(T *)state = best;
}

static inline __attribute__((always_inline)) TARGET void NAME(extreme_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner,
                                                                               void *state, int smallest)
{
    T *restrict best = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *restrict row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            T kept = best[i], next = row[i];
            best[i] = BETTER(kept, next, smallest);
        }
    }
}

static TARGET void NAME(largest_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    NAME(extreme_row)(x, n, stride, state, 0);
}

static TARGET void NAME(smallest_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    NAME(extreme_row)(x, n, stride, state, 1);
}

static TARGET void NAME(largest_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    NAME(extreme_columns)(x, n, stride, inner, state, 0);
}

static TARGET void NAME(smallest_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    NAME(extreme_columns)(x, n, stride, inner, state, 1);
}

/* --- truth and counts */

/* Whether some element of a part is zero (`wanted` 0) or is not (1). */
static inline __attribute__((always_inline)) TARGET int NAME(part_has)(const T *x, npy_intp n, int wanted)
{
    T found = 0;
    for (npy_intp i = 0; i < n; i++) {
        found = (T)(found + (T)((x[i] != 0) == wanted));
        if (sizeof(T) == 1 && found) { /* a count would wrap */
            return 1;
        }
    }
    return found != 0;
}

static inline __attribute__((always_inline)) TARGET void NAME(truth_row)(const char *x, npy_intp n, npy_intp stride, void *state, int wanted)
{
    unsigned char *known = state; /* starts as !wanted */
    if (*known == wanted) {
        return;
    }
    if (stride == DENSE && sizeof(T) == 1) {
        const unsigned char *bytes = (const unsigned char *)x;
        npy_intp i = 0;
        if (wanted) {
            for (; i + 64 <= n; i += 64) {
                unsigned char found = 0;
                for (int k = 0; k < 64; k++) {
                    found |= bytes[i + k];
                }
                if (found) {
                    *known = 1;
                    return;
                }
            }
        }
        else if (n && memchr(x, 0, (size_t)n) != NULL) {
            *known = 0;
            return;
        }
        for (; wanted && i < n; i++) {
            if (bytes[i]) {
                *known = 1;
                return;
            }
        }
    }
    else if (stride == DENSE) {
        for (npy_intp start = 0; start < n; start += 256) {
            if (NAME(part_has)((const T *)x + start, n - start < 256 ? n - start : 256, wanted)) {
                *known = (unsigned char)wanted;
                return;
            }
        }
    }
    else {
        for (npy_intp i = 0; i < n; i++) {
            if ((AT(x, i, stride) != 0) == wanted) {
                *known = (unsigned char)wanted;
                return;
            }
        }
    }
}

static TARGET void NAME(any_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    NAME(truth_row)(x, n, stride, state, 1);
}

static TARGET void NAME(all_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    NAME(truth_row)(x, n, stride, state, 0);
}

static TARGET void NAME(any_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    unsigned char *restrict known = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *restrict row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            known[i] |= row[i] != 0;
        }
    }
}

static TARGET void NAME(all_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    unsigned char *restrict known = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *restrict row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            known[i] &= row[i] != 0;
        }
    }
}

static TARGET void NAME(count_row)(const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    (void)context;
    npy_int64 total = 0;
    if (stride == DENSE) {
        for (npy_intp start = 0; start < n; start += PART) {
            const T *part = (const T *)x + start;
            npy_intp length = n - start < PART ? n - start : PART;
            npy_int32 found = 0;
            for (npy_intp i = 0; i < length; i++) {
                found += part[i] != 0;
            }
            total += found;
        }
    }
    else {
        for (npy_intp i = 0; i < n; i++) {
            total += AT(x, i, stride) != 0;
        }
    }
    *(npy_int64 *)state += total;
}

static TARGET void NAME(count_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    (void)context;
    npy_int64 *restrict total = state;
    for (npy_intp k = 0; k < n; k++, x += stride) {
        const T *restrict row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            total[i] += row[i] != 0;
        }
    }
}

/* --- places of extremes, of one axis */

/* The place of the first best element of x, `stride` bytes apart. */
static inline __attribute__((always_inline)) TARGET npy_intp NAME(place_row)(const char *x, npy_intp n, npy_intp stride, int smallest)
{
    if (stride != DENSE || n <= 32) {
        T best = AT(x, 0, stride);
        npy_intp place = 0;
        for (npy_intp i = 1; i < n && !IS_NAN(best); i++) {
            T next = AT(x, i, stride);
            if ((smallest ? next < best : next > best) || IS_NAN(next)) {
                best = next;
                place = i;
            }
        }
        return place;
    }
    const T *all = (const T *)x;
    T best = all[0];
    npy_intp from = 0;
    for (npy_intp start = 0; start < n && !IS_NAN(best); start += PART) {
        T found = NAME(best_of)(all + start, n - start < PART ? n - start : PART, smallest);
        if ((smallest ? found < best : found > best) || IS_NAN(found)) {
            best = found;
            from = start;
        }
    }
    while (IS_NAN(best) ? !IS_NAN(all[from]) : all[from] != best) {
        from++;
    }
    return from;
}

static TARGET npy_intp NAME(largest_place)(const char *x, npy_intp n, npy_intp stride)
{
    return NAME(place_row)(x, n, stride, 0);
}

static TARGET npy_intp NAME(smallest_place)(const char *x, npy_intp n, npy_intp stride)
{
    return NAME(place_row)(x, n, stride, 1);
}

/* The places of the best elements of `inner` columns; `values` may be NULL. */
static inline __attribute__((always_inline)) TARGET void NAME(place_columns)(const char *x, npy_intp n, npy_intp stride, npy_intp inner,
                                                                             npy_int64 *places, void *values, int smallest)
{
    T best[COLUMNS];
    npy_int32 place[COLUMNS];
    const T *first = (const T *)x;
    for (npy_intp i = 0; i < inner; i++) {
        best[i] = first[i];
        place[i] = 0;
    }
    x += stride;
    for (npy_int32 k = 1; k < n; k++, x += stride) {
        const T *row = (const T *)x;
        for (npy_intp i = 0; i < inner; i++) {
            T kept = best[i], next = row[i];
            int take = (smallest ? next < kept : next > kept) | (IS_NAN(next) & !IS_NAN(kept));
            best[i] = take ? next : kept;
            place[i] = take ? k : place[i];
        }
    }
    for (npy_intp i = 0; i < inner; i++) {
        places[i] = place[i];
    }
    if (values != NULL) {
        memcpy(values, best, (size_t)inner * sizeof(T));
    }
}

/* The best elements of `inner` columns and of rows behind them, which have places of their own from `start` on. */
static inline __attribute__((always_inline)) TARGET void NAME(join_places)(const void *values, const npy_int64 *places, npy_intp start, npy_intp inner,
                                                                           void *best_values, npy_int64 *best_places, int smallest)
{
    const T *later = values;
    T *best = best_values;
    for (npy_intp i = 0; i < inner; i++) {
        T kept = best[i], next = later[i];
        if ((smallest ? next < kept : next > kept) | (IS_NAN(next) & !IS_NAN(kept))) {
            best[i] = next;
            best_places[i] = start + places[i];
        }
    }
}

static TARGET void NAME(join_largest)(const void *values, const npy_int64 *places, npy_intp start, npy_intp inner, void *best, npy_int64 *best_places)
{
    NAME(join_places)(values, places, start, inner, best, best_places, 0);
}

static TARGET void NAME(join_smallest)(const void *values, const npy_int64 *places, npy_intp start, npy_intp inner, void *best, npy_int64 *best_places)
{
    NAME(join_places)(values, places, start, inner, best, best_places, 1);
}

static TARGET void NAME(largest_places)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, npy_int64 *places, void *values)
{
    NAME(place_columns)(x, n, stride, inner, places, values, 0);
}

static TARGET void NAME(smallest_places)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, npy_int64 *places, void *values)
{
    NAME(place_columns)(x, n, stride, inner, places, values, 1);
}

#undef TOTAL
#undef IS_NAN
#undef AT
#undef DENSE
#undef PART
#undef PRODUCT
#undef BETTER
