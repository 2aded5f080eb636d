/* The loops of few_vectors.c, included for each kind of elements and each set of vectors: V of LANES floats, elements of ITEM bytes, AT(place) and
 * SOME(place, count), which makes the rest zeros. */

/* The sums along APART rows with `vectors` vectors: sums[vector * APART + row]. */
static inline __attribute__((always_inline)) TARGET void NAME(meet)(const char *const *row, const float *x, npy_intp n, float *sums, const int vectors)
{
    V sum[APART][TOGETHER];
    npy_intp i = 0;
    for (int r = 0; r < APART; r++) {
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = ZERO;
        }
    }
    for (; i + LANES <= n; i += LANES) {
        V with[TOGETHER];
        for (int v = 0; v < vectors; v++) {
            with[v] = LOAD(x + v * n + i);
        }
        for (int r = 0; r < APART; r++) {
            const char *at = row[r] + i * ITEM;
            const V element = AT(at);
            __builtin_prefetch(at + AHEAD);
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = FUSED_ADD(element, with[v], sum[r][v]);
            }
        }
    }
    if (i < n) {
        for (int r = 0; r < APART; r++) {
            const V element = SOME(row[r] + i * ITEM, (int)(n - i));
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = FUSED_ADD(element, LOAD_SOME(x + v * n + i, (int)(n - i)), sum[r][v]);
            }
        }
    }
    for (int v = 0; v < vectors; v++) {
        const V four[APART] = {sum[0][v], sum[1][v], sum[2][v], sum[3][v]};
        ADD_UP(four, sums + v * APART);
    }
}

/* One, two or TOGETHER vectors. */
static TARGET void NAME(along)(const char *const *row, const float *x, npy_intp n, float *sums, int vectors)
{
    if (vectors == 1) {
        NAME(meet)(row, x, n, sums, 1);
    }
    else if (vectors < TOGETHER) {
        NAME(meet)(row, x, n, sums, 2);
    }
    else {
        NAME(meet)(row, x, n, sums, TOGETHER);
    }
}

/* `count` rows, each times its factor (count of them for each vector), are added to `out`, which has n sums for each vector. */
static inline __attribute__((always_inline)) TARGET void NAME(add)(const char *const *row, const float *factors, npy_intp n, float *out,
                                                                   int vectors, const int count)
{
    npy_intp j = 0;
#if LANES == 16
    for (; count == OVER && j + 2 * LANES <= n; j += 2 * LANES) { /* registers for two vectors of each row */
        V element[OVER][2];
        for (int r = 0; r < count; r++) {
            element[r][0] = AT(row[r] + j * ITEM);
            element[r][1] = AT(row[r] + (j + LANES) * ITEM);
            __builtin_prefetch(row[r] + j * ITEM + AHEAD);
        }
        for (int v = 0; v < vectors; v++) {
            float *to = out + v * n + j;
            V low = LOAD(to), high = LOAD(to + LANES);
            for (int r = 0; r < count; r++) {
                const V factor = EACH(factors[v * count + r]);
                low = FUSED_ADD(element[r][0], factor, low);
                high = FUSED_ADD(element[r][1], factor, high);
            }
            STORE(to, low);
            STORE(to + LANES, high);
        }
    }
#endif
    for (; j + LANES <= n; j += LANES) {
        V element[OVER];
        for (int r = 0; r < count; r++) {
            element[r] = AT(row[r] + j * ITEM);
            __builtin_prefetch(row[r] + j * ITEM + AHEAD);
        }
        for (int v = 0; v < vectors; v++) {
            V sum = LOAD(out + v * n + j);
            for (int r = 0; r < count; r++) {
                sum = FUSED_ADD(element[r], EACH(factors[v * count + r]), sum);
            }
            STORE(out + v * n + j, sum);
        }
    }
    if (j < n) {
        for (int v = 0; v < vectors; v++) {
            V sum = LOAD_SOME(out + v * n + j, (int)(n - j));
            for (int r = 0; r < count; r++) {
                sum = FUSED_ADD(SOME(row[r] + j * ITEM, (int)(n - j)), EACH(factors[v * count + r]), sum);
            }
            STORE_SOME(out + v * n + j, (int)(n - j), sum);
        }
    }
}

static TARGET void NAME(over)(const char *const *row, const float *factors, npy_intp n, float *out, int vectors, int count)
{
    if (count == OVER) {
        NAME(add)(row, factors, n, out, vectors, OVER);
    }
    else {
        NAME(add)(row, factors, n, out, vectors, 1);
    }
}

#undef NAME
#undef ITEM
#undef AT
#undef SOME
