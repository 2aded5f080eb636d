/* Included for each type and processor. Matrices lie row by row, `wide` elements from row to row; the larger steps are products. */

#if IS_DOUBLE
#define WIDTH 8
#define WORD npy_uint64
#define SIZE_BITS 0x7FFFFFFFFFFFFFFFULL
#define INFINITE_BITS 0x7FF0000000000000ULL
#else
#define WIDTH 4
#define WORD npy_uint32
#define SIZE_BITS 0x7FFFFFFFU
#define INFINITE_BITS 0x7F800000U
#endif

/* The first of the largest by size, or the first NaN. Sizes compare as their bits do. */
static TARGET npy_intp NAME(largest)(const T *x, npy_intp n)
{
    WORD most = 0;
    for (npy_intp i = 0; i < n; i++) {
        WORD bits;
        memcpy(&bits, x + i, sizeof(bits));
        bits &= SIZE_BITS;
        most = bits > most ? bits : most;
    }
    for (npy_intp i = 0; i < n; i++) {
        WORD bits;
        memcpy(&bits, x + i, sizeof(bits));
        bits &= SIZE_BITS;
        if (bits == most || bits > INFINITE_BITS) {
            return i;
        }
    }
    return 0;
}

/* A few columns, which are copied so that each lies by itself. Rows are swapped as a whole. */
static TARGET void NAME(panel)(T *lu, npy_intp rows, npy_intp wide, npy_intp start, npy_intp stop, npy_int32 *pivots, npy_int32 *info, T *space)
{
    const npy_intp high = rows - start, count = stop - start;
    for (npy_intp i = 0; i < high; i++) {
        for (npy_intp k = 0; k < count; k++) {
            space[k * high + i] = lu[(start + i) * wide + start + k];
        }
    }
    for (npy_intp j = 0; j < count && j < high; j++) {
        T *restrict column = space + j * high;
        const npy_intp chosen = j + NAME(largest)(column + j, high - j);
        pivots[start + j] = (npy_int32)(start + chosen + 1);
        if (chosen != j) {
            T *head = lu + (start + j) * wide, *other = lu + (start + chosen) * wide;
            for (npy_intp k = 0; k < wide; k++) {
                const T moved = head[k];
                head[k] = other[k];
                other[k] = moved;
            }
            for (npy_intp k = 0; k < count; k++) {
                const T moved = space[k * high + j];
                space[k * high + j] = space[k * high + chosen];
                space[k * high + chosen] = moved;
            }
        }
        const T by = column[j];
        if (by == 0) {
            *info = *info ? *info : (npy_int32)(start + j + 1);
        }
        else {
            for (npy_intp i = j + 1; i < high; i++) {
                column[i] /= by;
            }
        }
        for (npy_intp k = j + 1; k < count; k++) {
            T *restrict target = space + k * high;
            const T factor = target[j];
            for (npy_intp i = j + 1; i < high; i++) {
                target[i] -= factor * column[i];
            }
        }
    }
    for (npy_intp i = 0; i < high; i++) {
        for (npy_intp k = 0; k < count; k++) {
            lu[(start + i) * wide + start + k] = space[k * high + i];
        }
    }
}

/* x (n rows of m) becomes a^-1 x; the elements of a are `row` and `column` elements apart. */
static TARGET void NAME(substitute)(const T *a, npy_intp row, npy_intp column, T *x, npy_intp wide, npy_intp n, npy_intp m, int upper, int unit)
{
    if (n > TOGETHER) {
        const npy_intp half = (n / 2 + 7) / 8 * 8, rest = n - half;
        const T *last = a + half * (row + column);
        if (upper) {
            NAME(substitute)(last, row, column, x + half * wide, wide, rest, m, upper, unit);
            subtract_product(WIDTH, half, m, rest, a + half * column, row, column, x + half * wide, wide, x, wide);
            NAME(substitute)(a, row, column, x, wide, half, m, upper, unit);
        }
        else {
            NAME(substitute)(a, row, column, x, wide, half, m, upper, unit);
            subtract_product(WIDTH, rest, m, half, a + half * row, row, column, x, wide, x + half * wide, wide);
            NAME(substitute)(last, row, column, x + half * wide, wide, rest, m, upper, unit);
        }
        return;
    }
    for (npy_intp step = 0; step < n; step++) {
        const npy_intp i = upper ? n - 1 - step : step, from = upper ? i + 1 : 0, to = upper ? n : i;
        T *restrict target = x + i * wide;
        for (npy_intp j = from; j < to; j++) {
            const T factor = a[i * row + j * column];
            const T *restrict source = x + j * wide;
            for (npy_intp k = 0; k < m; k++) {
                target[k] -= factor * source[k];
            }
        }
        const T by = a[i * (row + column)];
        for (npy_intp k = 0; !unit && k < m; k++) {
            target[k] /= by;
        }
    }
}

/* The columns from `start` to `stop`, halves after each other; nothing is taken from those behind. */
static TARGET void NAME(factor)(T *lu, npy_intp rows, npy_intp wide, npy_intp start, npy_intp stop, npy_int32 *pivots, npy_int32 *info, T *space)
{
    if (start >= rows) {
        return;
    }
    if (stop - start <= PANEL) {
        NAME(panel)(lu, rows, wide, start, stop, pivots, info, space);
        return;
    }
    const npy_intp middle = start + (stop - start + 15) / 16 * 8, done = middle < rows ? middle - start : rows - start;
    NAME(factor)(lu, rows, wide, start, middle, pivots, info, space);
    T *corner = lu + start * wide;
    NAME(substitute)(corner + start, wide, 1, corner + middle, wide, done, stop - middle, 0, 1);
    if (middle < rows) {
        T *below = lu + middle * wide;
        subtract_product(WIDTH, rows - middle, stop - middle, done, below + start, wide, 1, corner + middle, wide, below + middle, wide);
        NAME(factor)(lu, rows, wide, middle, stop, pivots, info, space);
    }
}

/* c (n, n) less the product of the transpose of u (k rows of n) with u, on and above the diagonal; some of what is below is written to. */
static void NAME(subtract_square)(T *c, npy_intp wide, npy_intp n, const T *u, npy_intp k)
{
    if (n <= 4 * TOGETHER) {
        subtract_product(WIDTH, n, n, k, u, 1, wide, u, wide, c, wide);
        return;
    }
    const npy_intp half = (n / 2 + 15) / 16 * 16, rest = n - half;
    NAME(subtract_square)(c, wide, half, u, k);
    subtract_product(WIDTH, half, rest, k, u, 1, wide, u + half, wide, c + half, wide);
    NAME(subtract_square)(c + half * (wide + 1), wide, rest, u + half, k);
}

/* The upper triangle becomes the factor u of a = u^T u; 0 for a matrix that is not positive definite, or has NaN. */
static TARGET int NAME(cholesky)(T *a, npy_intp wide, npy_intp n)
{
    if (n > TOGETHER) {
        const npy_intp half = (n / 2 + 7) / 8 * 8;
        if (!NAME(cholesky)(a, wide, half)) {
            return 0;
        }
        NAME(substitute)(a, 1, wide, a + half, wide, half, n - half, 0, 0);
        NAME(subtract_square)(a + half * (wide + 1), wide, n - half, a + half, half);
        return NAME(cholesky)(a + half * (wide + 1), wide, n - half);
    }
    for (npy_intp j = 0; j < n; j++) {
        T *restrict row = a + j * wide;
        for (npy_intp k = 0; k < j; k++) {
            const T *restrict before = a + k * wide;
            const T factor = before[j];
            for (npy_intp i = j; i < n; i++) {
                row[i] -= factor * before[i];
            }
        }
        if (!(row[j] > 0)) {
            return 0;
        }
        const T root = IS_DOUBLE ? sqrt(row[j]) : sqrtf(row[j]);
        row[j] = root;
        for (npy_intp i = j + 1; i < n; i++) {
            row[i] /= root;
        }
    }
    return 1;
}

#undef WIDTH
#undef WORD
#undef SIZE_BITS
#undef INFINITE_BITS
