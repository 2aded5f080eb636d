/* Fourier transforms of as many lines as a vector has elements, side by side: see fourier_lines.c. Included for each type and processor.
 *
 * A number is a row of real parts and a row of imaginary parts, STEP elements each, one of every line.
 */
#include "lanes.h"
#if VECTOR_BYTES == 64
#include "turn.h"
#if IS_DOUBLE
#define REGISTER __m512d
#define TRANSPOSE transpose_double
#else
#define REGISTER __m512
#define TRANSPOSE transpose_float
#endif
#endif

typedef struct {
    V re, im;
} NAME(Pair);

#define PAIR NAME(Pair)
#define LANES static inline __attribute__((always_inline)) TARGET

LANES PAIR NAME(pair)(const T *rows, npy_intp i)
{
    return (PAIR){NAME(load)(rows + 2 * i * STEP), NAME(load)(rows + (2 * i + 1) * STEP)};
}

LANES void NAME(put_pair)(T *rows, npy_intp i, PAIR x)
{
    memcpy(rows + 2 * i * STEP, &x.re, sizeof(V));
    memcpy(rows + (2 * i + 1) * STEP, &x.im, sizeof(V));
}

LANES PAIR NAME(plus)(PAIR a, PAIR b)
{
    return (PAIR){a.re + b.re, a.im + b.im};
}

LANES PAIR NAME(less)(PAIR a, PAIR b)
{
    return (PAIR){a.re - b.re, a.im - b.im};
}

/* a - i b: the forward direction turns that way. */
LANES PAIR NAME(less_turned)(PAIR a, PAIR b)
{
    return (PAIR){a.re + b.im, a.im - b.re};
}

LANES PAIR NAME(plus_turned)(PAIR a, PAIR b)
{
    return (PAIR){a.re - b.im, a.im + b.re};
}

LANES PAIR NAME(times)(T factor, PAIR a)
{
    return (PAIR){factor * a.re, factor * a.im};
}

/* The product with a root of unity, unless that is 1 (`last`). */
LANES PAIR NAME(turned)(PAIR a, const T *w, int last)
{
    return last ? a : (PAIR){w[0] * a.re - w[1] * a.im, w[0] * a.im + w[1] * a.re};
}

/* Butterflies of one radix: from x[q + s (p + k m)] to y[q + s (r p + k)], turned by w^(p k). */
#define FOR_BUTTERFLIES(radix)                                                                                                             \
    for (npy_intp p = 0; p < m; p++, w += 2 * (radix - 1))                                                                                 \
        for (npy_intp q = 0; q < s; q++)
#define IN(k) NAME(pair)(x, q + s * (p + (k) * m))
#define OUT(radix, k, value) NAME(put_pair)(y, q + s * ((radix) * p + (k)), k ? NAME(turned)(value, w + 2 * ((k)-1), last) : (value))

LANES void NAME(by_two)(const T *x, T *y, npy_intp m, npy_intp s, const T *w, int last)
{
    FOR_BUTTERFLIES(2)
    {
        PAIR a = IN(0), b = IN(1);
        OUT(2, 0, NAME(plus)(a, b));
        OUT(2, 1, NAME(less)(a, b));
    }
}

LANES void NAME(by_three)(const T *x, T *y, npy_intp m, npy_intp s, const T *w, int last)
{
    FOR_BUTTERFLIES(3)
    {
        PAIR a = IN(0), b = IN(1), c = IN(2), sum = NAME(plus)(b, c);
        PAIR level = NAME(plus)(a, NAME(times)((T)-0.5, sum)), slope = NAME(times)((T)0.86602540378443864676, NAME(less)(b, c));
        OUT(3, 0, NAME(plus)(a, sum));
        OUT(3, 1, NAME(less_turned)(level, slope));
        OUT(3, 2, NAME(plus_turned)(level, slope));
    }
}

/* A transform of four. */
LANES void NAME(four)(PAIR a, PAIR b, PAIR c, PAIR d, PAIR *to)
{
    PAIR even = NAME(plus)(a, c), odd = NAME(less)(a, c), even2 = NAME(plus)(b, d), odd2 = NAME(less)(b, d);
    to[0] = NAME(plus)(even, even2);
    to[1] = NAME(less_turned)(odd, odd2);
    to[2] = NAME(less)(even, even2);
    to[3] = NAME(plus_turned)(odd, odd2);
}

LANES void NAME(by_four)(const T *x, T *y, npy_intp m, npy_intp s, const T *w, int last)
{
    FOR_BUTTERFLIES(4)
    {
        PAIR sums[4];
        NAME(four)(IN(0), IN(1), IN(2), IN(3), sums);
        OUT(4, 0, sums[0]);
        OUT(4, 1, sums[1]);
        OUT(4, 2, sums[2]);
        OUT(4, 3, sums[3]);
    }
}

/* Two transforms of four, the second one's turned by eighths of the circle. */
LANES void NAME(by_eight)(const T *x, T *y, npy_intp m, npy_intp s, const T *w, int last)
{
    const T half = (T)0.70710678118654752440;
    FOR_BUTTERFLIES(8)
    {
        PAIR sums[2][4];
        for (int part = 0; part < 2; part++) {
            NAME(four)(IN(part), IN(part + 2), IN(part + 4), IN(part + 6), sums[part]);
        }
        PAIR o = sums[1][1], p3 = sums[1][3];
        PAIR first = NAME(times)(half, (PAIR){o.re + o.im, o.im - o.re}), third = NAME(times)(half, (PAIR){p3.im - p3.re, -(p3.re + p3.im)});
        OUT(8, 0, NAME(plus)(sums[0][0], sums[1][0]));
        OUT(8, 1, NAME(plus)(sums[0][1], first));
        OUT(8, 2, NAME(less_turned)(sums[0][2], sums[1][2]));
        OUT(8, 3, NAME(plus)(sums[0][3], third));
        OUT(8, 4, NAME(less)(sums[0][0], sums[1][0]));
        OUT(8, 5, NAME(less)(sums[0][1], first));
        OUT(8, 6, NAME(plus_turned)(sums[0][2], sums[1][2]));
        OUT(8, 7, NAME(less)(sums[0][3], third));
    }
}

LANES void NAME(by_five)(const T *x, T *y, npy_intp m, npy_intp s, const T *w, int last)
{
    const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410, s1 = (T)0.95105651629515357212, s2 = (T)0.58778525229247312917;
    FOR_BUTTERFLIES(5)
    {
        PAIR a = IN(0), b = IN(1), c = IN(2), d = IN(3), e = IN(4);
        PAIR outer = NAME(plus)(b, e), inner = NAME(plus)(c, d), steep = NAME(less)(b, e), flat = NAME(less)(c, d);
        PAIR level = NAME(plus)(a, NAME(plus)(NAME(times)(c1, outer), NAME(times)(c2, inner)));
        PAIR level2 = NAME(plus)(a, NAME(plus)(NAME(times)(c2, outer), NAME(times)(c1, inner)));
        PAIR slope = NAME(plus)(NAME(times)(s1, steep), NAME(times)(s2, flat));
        PAIR slope2 = NAME(less)(NAME(times)(s2, steep), NAME(times)(s1, flat));
        OUT(5, 0, NAME(plus)(a, NAME(plus)(outer, inner)));
        OUT(5, 1, NAME(less_turned)(level, slope));
        OUT(5, 2, NAME(less_turned)(level2, slope2));
        OUT(5, 3, NAME(plus_turned)(level2, slope2));
        OUT(5, 4, NAME(plus_turned)(level, slope));
    }
}

/* Of any radix, by its definition: `roots` are those of unity of that order. */
LANES void NAME(by_any)(const T *x, T *y, npy_intp r, npy_intp m, npy_intp s, const T *w, const T *roots)
{
    PAIR a[MOST_RADIX];
    for (npy_intp p = 0; p < m; p++, w += 2 * (r - 1)) {
        for (npy_intp q = 0; q < s; q++) {
            for (npy_intp k = 0; k < r; k++) {
                a[k] = IN(k);
            }
            for (npy_intp k = 0; k < r; k++) {
                PAIR sum = a[0];
                for (npy_intp j = 1, at = k; j < r; j++, at = at + k >= r ? at + k - r : at + k) {
                    sum = NAME(plus)(sum, NAME(turned)(a[j], roots + 2 * at, 0));
                }
                NAME(put_pair)(y, q + s * (r * p + k), k ? NAME(turned)(sum, w + 2 * (k - 1), 0) : sum);
            }
        }
    }
}

/* The last stage of a transform turns nothing. */
#define BY_RADIX(radix, by)                                                                                                                \
    case radix:                                                                                                                            \
        if (m == 1) {                                                                                                                      \
            NAME(by)(x, y, m, s, w, 1);                                                                                                    \
        }                                                                                                                                  \
        else {                                                                                                                             \
            NAME(by)(x, y, m, s, w, 0);                                                                                                    \
        }                                                                                                                                  \
        break

/* Stockham's transform: from one room to the other for each factor, in order at the end. Where the result is. */
static TARGET T *NAME(transform)(const Points *plan, T *x, T *y)
{
    npy_intp m = plan->n, s = 1;
    const T *w = plan->turns;
    for (int stage = 0; stage < plan->stages; stage++) {
        const npy_intp r = plan->radix[stage];
        m /= r;
        switch (r) {
            BY_RADIX(2, by_two);
            BY_RADIX(3, by_three);
            BY_RADIX(4, by_four);
            BY_RADIX(5, by_five);
            BY_RADIX(8, by_eight);
        default:
            NAME(by_any)(x, y, r, m, s, w, (const T *)plan->turns + plan->roots[stage]);
        }
        w += 2 * m * (r - 1);
        s *= r;
        T *other = x;
        x = y;
        y = other;
    }
    return x;
}

/* ------------------------------------------------------------------------------------------------- from and to memory
 *
 * Elements of lines that lie one behind the other become rows, and back. `flip` is 1 to exchange real and imaginary parts, which makes the inverse of a
 * transform: elements 2 k and 2 k + 1 change places.
 */

/* Element j of line l goes to rows[(j ^ flip) * to_step + l]. */
LANES void NAME(turn_in)(const T *from, npy_intp line, npy_intp lines, npy_intp count, T *rows, npy_intp to_step, int flip)
{
    npy_intp j = 0;
#if VECTOR_BYTES == 64
    for (; lines == STEP && j + STEP <= count; j += STEP) {
        REGISTER r[STEP];
        for (int l = 0; l < STEP; l++) {
            r[l] = (REGISTER)NAME(load)(from + l * line + j);
        }
        TRANSPOSE(r);
        for (int k = 0; k < STEP; k++) {
            memcpy(rows + ((j + k) ^ flip) * to_step, &r[k], sizeof(V));
        }
    }
#endif
    for (; j < count; j++) {
        T *row = rows + (j ^ flip) * to_step;
        for (npy_intp l = 0; l < lines; l++) {
            row[l] = from[l * line + j];
        }
        for (npy_intp l = lines; l < STEP; l++) {
            row[l] = 0;
        }
    }
}

/* The reverse, times `scale`. */
LANES void NAME(turn_out)(const T *rows, npy_intp from_step, int flip, T *to, npy_intp line, npy_intp lines, npy_intp count, T scale)
{
    npy_intp j = 0;
#if VECTOR_BYTES == 64
    for (; lines == STEP && j + STEP <= count; j += STEP) {
        REGISTER r[STEP];
        for (int k = 0; k < STEP; k++) {
            r[k] = (REGISTER)(NAME(load)(rows + ((j + k) ^ flip) * from_step) * scale);
        }
        TRANSPOSE(r);
        for (int l = 0; l < STEP; l++) {
            memcpy(to + l * line + j, &r[l], sizeof(V));
        }
    }
#endif
    for (; j < count; j++) {
        const T *row = rows + (j ^ flip) * from_step;
        for (npy_intp l = 0; l < lines; l++) {
            to[l * line + j] = row[l] * scale;
        }
    }
}

/* Lines side by side: the numbers of a place lie together, `place` elements behind those of the one before. */
LANES void NAME(split_in)(const T *restrict from, npy_intp place, npy_intp lines, npy_intp count, T *rows, int flip)
{
    for (npy_intp k = 0; k < count; k++, from += place, rows += 2 * STEP) {
        T *restrict re = rows + flip * STEP, *restrict im = rows + !flip * STEP;
        if (lines == STEP) {
            for (npy_intp l = 0; l < STEP; l++) {
                re[l] = from[2 * l];
                im[l] = from[2 * l + 1];
            }
            continue;
        }
        memset(rows, 0, 2 * STEP * sizeof(T));
        for (npy_intp l = 0; l < lines; l++) {
            re[l] = from[2 * l];
            im[l] = from[2 * l + 1];
        }
    }
}

LANES void NAME(join_out)(const T *rows, int flip, T *restrict to, npy_intp place, npy_intp lines, npy_intp count, T scale)
{
    for (npy_intp k = 0; k < count; k++, to += place, rows += 2 * STEP) {
        const T *restrict re = rows + flip * STEP, *restrict im = rows + !flip * STEP;
        if (lines == STEP) {
            for (npy_intp l = 0; l < STEP; l++) {
                to[2 * l] = re[l] * scale;
                to[2 * l + 1] = im[l] * scale;
            }
            continue;
        }
        for (npy_intp l = 0; l < lines; l++) {
            to[2 * l] = re[l] * scale;
            to[2 * l + 1] = im[l] * scale;
        }
    }
}

/* Rows of reals, which stand `to_step` apart. */
LANES void NAME(copy_in)(const T *from, npy_intp place, npy_intp lines, npy_intp count, T *rows, npy_intp to_step)
{
    for (npy_intp k = 0; k < count; k++) {
        for (npy_intp l = 0; l < STEP; l++) {
            rows[k * to_step + l] = l < lines ? from[k * place + l] : 0;
        }
    }
}

LANES void NAME(copy_out)(const T *rows, npy_intp from_step, T *to, npy_intp place, npy_intp lines, npy_intp count, T scale)
{
    for (npy_intp k = 0; k < count; k++) {
        for (npy_intp l = 0; l < lines; l++) {
            to[k * place + l] = rows[k * from_step + l] * scale;
        }
    }
}

/* The numbers of some lines: of `inner` that lie side by side, or of whole lines where that is 1. */
LANES void NAME(numbers_in)(const T *x, npy_intp count, npy_intp inner, npy_intp lines, T *rows, int flip)
{
    if (inner == 1) {
        NAME(turn_in)(x, 2 * count, lines, 2 * count, rows, STEP, flip);
    }
    else {
        NAME(split_in)(x, 2 * inner, lines, count, rows, flip);
    }
}

LANES void NAME(numbers_out)(const T *rows, int flip, T *x, npy_intp count, npy_intp inner, npy_intp lines, T scale)
{
    if (inner == 1) {
        NAME(turn_out)(rows, STEP, flip, x, 2 * count, lines, 2 * count, scale);
    }
    else {
        NAME(join_out)(rows, flip, x, 2 * inner, lines, count, scale);
    }
}

/* ------------------------------------------------------------------------------------------------------------- lines */

/* Numbers (outer, n, inner), in place. */
static TARGET void NAME(complex_lines)(const Points *plan, void *data, npy_intp outer, npy_intp inner, int inverse, double by, void *room)
{
    const npy_intp n = plan->n, sets = inner == 1 ? 1 : outer, lines = inner == 1 ? outer : inner;
    T *x = data, *rows = room, *others = rows + 2 * n * STEP;
    for (npy_intp o = 0; o < sets; o++, x += 2 * n * inner) {
        for (npy_intp i = 0; i < lines; i += STEP) {
            const npy_intp some = lines - i < STEP ? lines - i : STEP;
            T *place = x + 2 * i * (inner == 1 ? n : 1);
            NAME(numbers_in)(place, n, inner, some, rows, inverse);
            for (npy_intp k = 0; inner > 1 && k < n; k++) { /* the next ones, too far apart for the processor to foresee */
                __builtin_prefetch(place + 2 * (STEP + k * inner));
                __builtin_prefetch(place + 2 * (STEP + k * inner) + 64 / sizeof(T));
            }
            NAME(numbers_out)(NAME(transform)(plan, rows, others), inverse, place, n, inner, some, (T)by);
        }
    }
}

/* Two reals make one number: a line is the real part, the one STEP lines behind it the imaginary one. Of Z = A + i B, as A and B are symmetric,
 * A[k] = (Z[k] + conj Z[n - k]) / 2 and B[k] = -i (Z[k] - conj Z[n - k]) / 2. To numbers (outer, kept, inner). */
static TARGET void NAME(real_lines)(const Points *plan, const void *reals, void *numbers, npy_intp outer, npy_intp inner, npy_intp kept, double by, void *room)
{
    const npy_intp n = plan->n, sets = inner == 1 ? 1 : outer, lines = inner == 1 ? outer : inner;
    const T *x = reals;
    T *y = numbers, *rows = room, *others = rows + 2 * n * STEP;
    for (npy_intp o = 0; o < sets; o++, x += n * inner, y += 2 * kept * inner) {
        for (npy_intp i = 0; i < lines; i += 2 * STEP) {
            const npy_intp left = lines - i, first = left < STEP ? left : STEP, second = left < STEP ? 0 : left < 2 * STEP ? left - STEP : STEP;
            if (inner == 1) {
                NAME(turn_in)(x + i * n, n, first, n, rows, 2 * STEP, 0);
                NAME(turn_in)(x + (i + first) * n, n, second, n, rows + STEP, 2 * STEP, 0);
            }
            else {
                NAME(copy_in)(x + i, inner, first, n, rows, 2 * STEP);
                NAME(copy_in)(x + i + first, inner, second, n, rows + STEP, 2 * STEP);
            }
            const T *z = NAME(transform)(plan, rows, others);
            T *made = z == rows ? others : rows;
            const npy_intp step = inner == 1 ? 2 * kept : 2;
            for (int part = 0; part < (second ? 2 : 1); part++) {
                for (npy_intp k = 0; k < kept; k++) {
                    PAIR a = NAME(pair)(z, k), b = NAME(pair)(z, k ? n - k : 0);
                    NAME(put_pair)(made, k, part ? (PAIR){a.im + b.im, b.re - a.re} : (PAIR){a.re + b.re, a.im - b.im});
                }
                NAME(numbers_out)(made, 0, y + (i + part * first) * step, kept, inner, part ? second : first, (T)(0.5 * by));
            }
        }
    }
}

/* The reverse: of Z[k] = A[k] + i B[k] the inverse is a + i b. The imaginary parts of what is its own twin do not count. From (outer, n / 2 + 1, inner). */
static TARGET void NAME(lines_to_real)(const Points *plan, const void *numbers, void *reals, npy_intp outer, npy_intp inner, double by, void *room)
{
    const npy_intp n = plan->n, half = n / 2 + 1, sets = inner == 1 ? 1 : outer, lines = inner == 1 ? outer : inner;
    const T *x = numbers;
    T *y = reals, *rows = room, *others = rows + 2 * n * STEP, *halves = others + 2 * n * STEP;
    for (npy_intp o = 0; o < sets; o++, x += 2 * half * inner, y += n * inner) {
        for (npy_intp i = 0; i < lines; i += 2 * STEP) {
            const npy_intp left = lines - i, first = left < STEP ? left : STEP, second = left < STEP ? 0 : left < 2 * STEP ? left - STEP : STEP;
            const npy_intp step = inner == 1 ? 2 * half : 2;
            NAME(numbers_in)(x + i * step, half, inner, first, others, 0);
            NAME(numbers_in)(x + (i + first) * step, half, inner, second, halves, 0);
            for (npy_intp k = 0; k < half; k++) {
                PAIR a = NAME(pair)(others, k), b = NAME(pair)(halves, k);
                if (k == 0 || 2 * k == n) {
                    a.im = b.im = NAME(all)(0);
                }
                /* Real and imaginary parts change places, so that the transform is the inverse. */
                NAME(put_pair)(rows, k, (PAIR){a.im + b.re, a.re - b.im});
                if (k && 2 * k != n) {
                    NAME(put_pair)(rows, n - k, (PAIR){b.re - a.im, a.re + b.im});
                }
            }
            const T *z = NAME(transform)(plan, rows, others);
            if (inner == 1) {
                NAME(turn_out)(z + STEP, 2 * STEP, 0, y + i * n, n, first, n, (T)by);
                NAME(turn_out)(z, 2 * STEP, 0, y + (i + first) * n, n, second, n, (T)by);
            }
            else {
                NAME(copy_out)(z + STEP, 2 * STEP, y + i, inner, first, n, (T)by);
                NAME(copy_out)(z, 2 * STEP, y + i + first, inner, second, n, (T)by);
            }
        }
    }
}

/* One long line of rows * columns numbers, as a matrix: transforms of its columns, turned by `turns` (of row k and column j w^(j k)), are those of
 * which the rows' transforms, read by columns, are the result. `between` holds the matrix; from and to may be the same. */
static TARGET void NAME(long_line)(const Points *down, const Points *along, const void *line, void *made, const void *turns, int inverse, double by, void *matrix,
                                   void *room)
{
    const npy_intp height = down->n, width = along->n, larger = height > width ? height : width;
    const T *x = line, *w = turns;
    T *y = made, *between = matrix, *rows = room, *others = rows + 2 * larger * STEP;
    for (npy_intp j = 0; j < width; j += STEP) {
        const npy_intp some = width - j < STEP ? width - j : STEP;
        NAME(split_in)(x + 2 * j, 2 * width, some, height, rows, inverse);
        T *z = NAME(transform)(down, rows, others);
        for (npy_intp k = 0; k < height; k++) {
            const T *re = z + 2 * k * STEP, *im = re + STEP, *turn = w + 2 * (k * width + j);
            T *to = between + 2 * (k * width + j);
            for (npy_intp l = 0; l < some; l++) {
                to[2 * l] = re[l] * turn[2 * l] - im[l] * turn[2 * l + 1];
                to[2 * l + 1] = re[l] * turn[2 * l + 1] + im[l] * turn[2 * l];
            }
        }
    }
    for (npy_intp k = 0; k < height; k += STEP) {
        const npy_intp some = height - k < STEP ? height - k : STEP;
        NAME(turn_in)(between + 2 * k * width, 2 * width, some, 2 * width, rows, STEP, 0);
        NAME(join_out)(NAME(transform)(along, rows, others), inverse, y + 2 * k, 2 * height, some, width, (T)by);
    }
}

/* Neighbours of an even line of reals as the parts of half as many numbers: Z of these is E + i O, the transforms of the even and of the odd ones, and
 * X[k] = E[k] + w^k O[k]. In place: `line` has room for n / 2 + 1 numbers, of which the first n / 2 are Z. */
static TARGET void NAME(unfold)(void *numbers, npy_intp n, const void *turns)
{
    T *low = numbers, *high = low + n;
    const T *w = turns, first = low[0], second = low[1];
    low[0] = first + second;
    high[0] = first - second;
    low[1] = high[1] = 0;
    for (npy_intp k = 1; 4 * k <= n; k++) {
        T *a = low + 2 * k, *b = high - 2 * k;
        const T even_re = (a[0] + b[0]) / 2, even_im = (a[1] - b[1]) / 2, odd_re = (a[1] + b[1]) / 2, odd_im = (b[0] - a[0]) / 2;
        const T re = w[2 * k] * odd_re - w[2 * k + 1] * odd_im, im = w[2 * k] * odd_im + w[2 * k + 1] * odd_re;
        a[0] = even_re + re;
        a[1] = even_im + im;
        b[0] = even_re - re;
        b[1] = im - even_im;
    }
}

/* Of `kept` numbers of a line those behind the first half, which are the conjugates of those before them. */
static TARGET void NAME(mirror)(void *line, npy_intp n, npy_intp kept)
{
    T *x = line;
    for (npy_intp k = n / 2 + 1; k < kept; k++) {
        x[2 * k] = x[2 * (n - k)];
        x[2 * k + 1] = -x[2 * (n - k) + 1];
    }
}

/* The reverse, without the halves: Z[k] = X[k] + conj X[h - k] + i w^-k (X[k] - conj X[h - k]). */
static TARGET void NAME(fold)(const void *numbers, void *line, npy_intp n, const void *turns)
{
    const T *low = numbers, *high = low + n, *w = turns;
    T *z = line;
    z[0] = low[0] + high[0];
    z[1] = low[0] - high[0];
    for (npy_intp k = 1; k < n / 2; k++) {
        const T *a = low + 2 * k, *b = high - 2 * k;
        const T re = a[0] - b[0], im = a[1] + b[1];
        z[2 * k] = a[0] + b[0] - (w[2 * k] * im - w[2 * k + 1] * re);
        z[2 * k + 1] = a[1] - b[1] + (w[2 * k] * re + w[2 * k + 1] * im);
    }
}

#undef PAIR
#undef LANES
#undef FOR_BUTTERFLIES
#undef IN
#undef OUT
#undef BY_RADIX
#if VECTOR_BYTES == 64
#undef REGISTER
#undef TRANSPOSE
#endif
