/* Eigenvalues and vectors of small symmetric matrices; included for each type and processor. Rows begin `room` elements apart, a multiple of a vector,
 * and what lies behind their end is 0.
 */
#include "lanes.h"

/* y = sum of x[i] times row i, of `rows` rows, in whole vectors of the columns from `begin` to `end`. */
static TARGET void NAME(rows_added)(const T *a, npy_intp room, const T *x, npy_intp rows, T *y, npy_intp begin, npy_intp end)
{
    memset(y + begin, 0, (size_t)(end - begin) * sizeof(T));
    npy_intp i = 0;
    for (; i + 4 <= rows; i += 4, a += 4 * room) {
        const V p = NAME(all)(x[i]), q = NAME(all)(x[i + 1]), r = NAME(all)(x[i + 2]), s = NAME(all)(x[i + 3]);
        for (npy_intp j = begin; j < end; j += STEP) {
            const V sum = (NAME(load)(y + j) + p * NAME(load)(a + j) + q * NAME(load)(a + room + j)) +
                          (r * NAME(load)(a + 2 * room + j) + s * NAME(load)(a + 3 * room + j));
            memcpy(y + j, &sum, sizeof(V));
        }
    }
    for (; i < rows; i++, a += room) {
        const V p = NAME(all)(x[i]);
        for (npy_intp j = begin; j < end; j += STEP) {
            const V sum = NAME(load)(y + j) + p * NAME(load)(a + j);
            memcpy(y + j, &sum, sizeof(V));
        }
    }
}

/* Row i loses x[i] y + z[i] w. */
static TARGET void NAME(rows_less)(T *a, npy_intp room, const T *x, const T *y, const T *z, const T *w, npy_intp rows, npy_intp begin, npy_intp end)
{
    for (npy_intp i = 0; i < rows; i++, a += room) {
        const V p = NAME(all)(x[i]), q = NAME(all)(z[i]);
        for (npy_intp j = begin; j < end; j += STEP) {
            const V left = NAME(load)(a + j) - p * NAME(load)(y + j) - q * NAME(load)(w + j);
            memcpy(a + j, &left, sizeof(V));
        }
    }
}

/* A whole symmetric matrix becomes one of three diagonals by Householder's reflections: row k keeps, behind the diagonal, the vector of its own, whose
 * factor is taus[k]. `space` is two rows. */
static TARGET void NAME(tridiagonal)(T *a, npy_intp n, npy_intp room, double *diagonal, double *beside, T *taus, T *space)
{
    T *v = space, *w = space + room;
    memset(space, 0, (size_t)(2 * room) * sizeof(T));
    for (npy_intp k = 0; k < n; k++) {
        T *row = a + k * room, *x = row + k + 1;
        const npy_intp m = n - k - 1, begin = (k + 1) / STEP * STEP;
        double tail = 0, dot = 0;
        diagonal[k] = row[k];
        taus[k] = 0;
        for (npy_intp i = 1; i < m; i++) {
            tail += (double)x[i] * x[i];
        }
        if (m) {
            beside[k] = x[0];
        }
        if (tail < 1e-60) { /* nothing, beside elements about 1, and squares that lose digits */
            continue;
        }
        const double alpha = x[0], size = sqrt(alpha * alpha + tail), beta = alpha < 0 ? size : -size, scale = 1 / (alpha - beta);
        const T tau = (T)((beta - alpha) / beta);
        taus[k] = tau;
        beside[k] = beta;
        for (npy_intp i = 1; i < m; i++) {
            x[i] = (T)(x[i] * scale);
        }
        x[0] = 1;
        memset(v + begin, 0, (size_t)(k + 1 - begin) * sizeof(T));
        memcpy(v + k + 1, x, (size_t)m * sizeof(T));
        NAME(rows_added)(a + (k + 1) * room, room, x, m, w, begin, room);
        for (npy_intp i = k + 1; i < n; i++) {
            w[i] *= tau;
            dot += (double)w[i] * v[i];
        }
        const T half = (T)(dot * tau / 2);
        for (npy_intp i = k + 1; i < n; i++) {
            w[i] -= half * v[i];
        }
        memset(w + begin, 0, (size_t)(k + 1 - begin) * sizeof(T));
        NAME(rows_less)(a + (k + 1) * room, room, v + k + 1, w, w + k + 1, v, m, begin, room);
    }
}

/* The product of the reflections, transposed: row c of q has what column c of it has. `a` is lost, `space` a row. */
static TARGET void NAME(reflections)(T *a, npy_intp n, npy_intp room, const T *taus, T *q, T *space)
{
    memset(q, 0, (size_t)(n * room) * sizeof(T));
    for (npy_intp k = n - 1; k >= 0; k--) {
        q[k * (room + 1)] = 1;
        T *x = a + k * room + k + 1;
        const npy_intp m = n - k - 1, begin = (k + 1) / STEP * STEP;
        if (taus[k] != 0) {
            NAME(rows_added)(q + (k + 1) * room, room, x, m, space, begin, room);
            const V tau = NAME(all)(taus[k]);
            for (npy_intp j = begin; j < room; j += STEP) {
                const V scaled = tau * NAME(load)(space + j);
                memcpy(space + j, &scaled, sizeof(V));
            }
            T *to = q + (k + 1) * room;
            for (npy_intp i = 0; i < m; i++, to += room) {
                const V p = NAME(all)(x[i]);
                for (npy_intp j = begin; j < room; j += STEP) {
                    const V left = NAME(load)(to + j) - p * NAME(load)(space + j);
                    memcpy(to + j, &left, sizeof(V));
                }
            }
        }
    }
    for (npy_intp i = 0; i < n; i++) {
        for (npy_intp j = 0; j < n; j++) {
            a[j * room + i] = q[i * room + j];
        }
    }
}

/* Rotations of rows i and i + 1, for i from last - 1 down to first, in some vectors of each row. */
static inline __attribute__((always_inline)) TARGET void NAME(turned_vectors)(T *a, npy_intp room, npy_intp first, npy_intp last, const T *turns, int vectors)
{
    V carried[4];
    for (int v = 0; v < vectors; v++) {
        carried[v] = NAME(load)(a + last * room + v * STEP);
    }
    for (npy_intp i = last - 1; i >= first; i--, turns += 2) {
        const V c = NAME(all)(turns[0]), s = NAME(all)(turns[1]);
        for (int v = 0; v < vectors; v++) {
            T *at = a + i * room + v * STEP;
            const V x = NAME(load)(at), below = s * x + c * carried[v];
            carried[v] = c * x - s * carried[v];
            memcpy(at + room, &below, sizeof(V));
        }
    }
    for (int v = 0; v < vectors; v++) {
        memcpy(a + first * room + v * STEP, &carried[v], sizeof(V));
    }
}

/* Sweeps of rotations, of which `spans` has the first and the last row, one after the other in some columns that stay in the first cache. */
static TARGET void NAME(turned)(T *a, npy_intp room, const npy_intp *spans, npy_intp sweeps, const T *turns)
{
    for (npy_intp j = 0, vectors; j < room; j += vectors * STEP) {
        vectors = room - j < 2 * STEP ? 1 : room - j < 4 * STEP ? 2 : 4;
        const T *next = turns;
        for (npy_intp i = 0; i < sweeps; i++) {
            const npy_intp first = spans[2 * i], last = spans[2 * i + 1];
            if (vectors == 4) {
                NAME(turned_vectors)(a + j, room, first, last, next, 4);
            }
            else if (vectors == 2) {
                NAME(turned_vectors)(a + j, room, first, last, next, 2);
            }
            else {
                NAME(turned_vectors)(a + j, room, first, last, next, 1);
            }
            next += 2 * (last - first);
        }
    }
}

/* The eigenvalues of a matrix of three diagonals, in any order, by the implicit QL method; rows of `a` (unless it is NULL) turn with it. 0 if that does
 * not end. `turns` has room for SWEEPS times n rotations. */
static TARGET int NAME(values_of)(double *d, double *e, npy_intp n, T *a, npy_intp room, T *turns)
{
    npy_intp spans[2 * SWEEPS], sweeps = 0;
    T *turn = turns;
    const double least = IS_DOUBLE ? 0x1p-53 : 0x1p-26;
    e[n - 1] = 0;
    for (npy_intp l = 0; l < n; l++) {
        for (int tries = 0;; tries++) {
            npy_intp m = l;
            while (m < n - 1 && fabs(e[m]) > least * (fabs(d[m]) + fabs(d[m + 1]))) {
                m++;
            }
            if (m == l) {
                break;
            }
            if (tries == 50) {
                return 0;
            }
            double g = (d[l + 1] - d[l]) / (2 * e[l]), r = sqrt(g * g + 1), s = 1, c = 1, p = 0;
            g = d[m] - d[l] + e[l] / (g < 0 ? g - r : g + r);
            npy_intp i = m - 1;
            for (; i >= l; i--, turn += 2) {
                const double f = s * e[i], b = c * e[i], square = f * f + g * g;
                if (square < 1e-300) { /* nothing, beside numbers about 1 */
                    e[i + 1] = 0;
                    d[i + 1] -= p;
                    break;
                }
                r = sqrt(square);
                e[i + 1] = r;
                const double by = r * (1 / square); /* at the same time as the root */
                s = f * by;
                c = g * by;
                turn[0] = (T)c;
                turn[1] = (T)s;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
            }
            spans[2 * sweeps] = i + 1;
            spans[2 * sweeps + 1] = m;
            if (++sweeps == SWEEPS || a == NULL) {
                if (a != NULL) {
                    NAME(turned)(a, room, spans, sweeps, turns);
                }
                sweeps = 0;
                turn = turns;
            }
            if (i < l) {
                d[l] -= p;
                e[l] = g;
            }
            e[m] = 0;
        }
    }
    if (a != NULL) {
        NAME(turned)(a, room, spans, sweeps, turns);
    }
    return 1;
}

/* The eigenvalues of a dense symmetric matrix, of which the rows have their parts up to the diagonal (with `upper` those from there on), in rising
 * order, and the vectors, each in a row of `vectors` unless that is NULL. `space` as small_space says. 0 to decline. */
static TARGET int NAME(small_eigen)(const void *matrix, npy_intp n, int upper, void *values, void *vectors, void *space)
{
    const T *from = matrix;
    const npy_intp room = ((n + STEP - 1) / STEP | 1) * STEP; /* rows that lie a power of two apart would share sets of the cache */
    T *a = space, *q = a + n * room, *work = q + n * room, *taus = work + 2 * room, *turns = taus + room;
    double *d = (double *)(turns + 2 * SWEEPS * room), *e = d + n, largest = 0;
    int finite = 1;
    for (npy_intp i = 0; i < n; i++) {
        for (npy_intp j = upper ? i : 0; j < (upper ? n : i + 1); j++) {
            const double size = fabs((double)from[i * n + j]);
            largest = size > largest ? size : largest;
            finite &= size <= DBL_MAX; /* neither infinite nor NaN */
        }
    }
    if (!finite) {
        return 0;
    }
    int exponent = 0;
    frexp(largest, &exponent);
    const int most = IS_DOUBLE ? 1000 : 120; /* a power of two that there is */
    const T scale = (T)ldexp(1, -exponent < most ? -exponent : most); /* so that squares are in the range */
    for (npy_intp i = 0; i < n; i++) {
        for (npy_intp j = upper ? i : 0; j < (upper ? n : i + 1); j++) {
            a[i * room + j] = a[j * room + i] = from[i * n + j] * scale;
        }
        memset(a + i * room + n, 0, (size_t)(room - n) * sizeof(T));
    }
    NAME(tridiagonal)(a, n, room, d, e, taus, work);
    if (vectors != NULL) {
        NAME(reflections)(a, n, room, taus, q, work);
    }
    if (!NAME(values_of)(d, e, n, vectors != NULL ? a : NULL, room, turns)) {
        return 0;
    }
    T *to = values;
    for (npy_intp k = 0; k < n; k++) { /* the least of those that are left */
        npy_intp least = 0;
        for (npy_intp i = 1; i < n; i++) {
            least = d[i] < d[least] ? i : least;
        }
        to[k] = (T)(d[least] / scale);
        d[least] = INFINITY;
        if (vectors != NULL) {
            memcpy((T *)vectors + k * n, a + least * room, (size_t)n * sizeof(T));
        }
    }
    return 1;
}
