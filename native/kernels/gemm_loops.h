/* Included once for each type: T, LANES elements in a vector V, and the intrinsics F(name) of its width.
 *
 * A tile of the result, of up to ROWS rows and two vectors, stays in registers while k goes by: for each k two vectors of b and one element of a for
 * each row. Loads and stores of the last vector have a mask.
 */

/* c (rows, columns of the mask) = alpha * a b + beta * c + bias. Row i of a is `a_row` elements on, its element p `a_k` further; row p of b `b_row`. */
#define TILE(name, R, VECTORS, A_ROW, A_K)                                                                                                 \
    WIDEST static void NAME(name)(const Gemm *g, npy_intp k, const T *a, npy_intp a_row, const T *b, npy_intp b_row, T *c, MASK mask,      \
                                  const T *bias)                                                                                           \
    {                                                                                                                                      \
        V sum[R][VECTORS];                                                                                                                 \
        _Pragma("GCC unroll 14") for (int i = 0; i < R; i++) {                                                                             \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) {                                                                    \
                sum[i][j] = F(setzero)();                                                                                                  \
            }                                                                                                                              \
        }                                                                                                                                  \
        (void)a_row;                                                                                                                       \
        for (npy_intp p = 0; p < k; p++) {                                                                                                 \
            V right[VECTORS];                                                                                                              \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS - 1; j++) {                                                                \
                right[j] = F(loadu)(b + j * LANES);                                                                                        \
            }                                                                                                                              \
            right[VECTORS - 1] = F(maskz_loadu)(mask, b + (VECTORS - 1) * LANES);                                                          \
            for (int j = 0; j < VECTORS; j++) {                                                                                            \
                _mm_prefetch((const char *)(b + AHEAD * b_row + j * LANES), _MM_HINT_T0);                                                  \
            }                                                                                                                              \
            b += b_row;                                                                                                                    \
            _Pragma("GCC unroll 14") for (int i = 0; i < R; i++)                                                                           \
            {                                                                                                                              \
                const V left = F(set1)(a[i * (A_ROW)]);                                                                                    \
                _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) {                                                                \
                    sum[i][j] = F(fmadd)(left, right[j], sum[i][j]);                                                                       \
                }                                                                                                                          \
            }                                                                                                                              \
            a += A_K;                                                                                                                      \
        }                                                                                                                                  \
        const V alpha = F(set1)((T)g->alpha), beta = F(set1)((T)g->beta);                                                                  \
        _Pragma("GCC unroll 14") for (int i = 0; i < R; i++, c += g->c_row)                                                                \
        {                                                                                                                                  \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) {                                                                    \
                const MASK part = j == VECTORS - 1 ? mask : (MASK)-1;                                                                      \
                V value = F(mul)(alpha, sum[i][j]);                                                                                        \
                if (g->beta != 0) {                                                                                                        \
                    value = F(fmadd)(beta, F(maskz_loadu)(part, c + j * LANES), value);                                                    \
                }                                                                                                                          \
                if (bias != NULL) {                                                                                                        \
                    value = F(add)(value, F(maskz_loadu)(part, bias + j * LANES));                                                         \
                }                                                                                                                          \
                F(mask_storeu)(c + j * LANES, part, value);                                                                                \
            }                                                                                                                              \
        }                                                                                                                                  \
    }
#define TILES(R)                                                                                                                           \
    TILE(packed_##R##_1, R, 1, 1, R)                                                                                                       \
    TILE(packed_##R##_2, R, 2, 1, R)                                                                                                       \
    TILE(direct_##R##_1, R, 1, a_row, 1)                                                                                                   \
    TILE(direct_##R##_2, R, 2, a_row, 1)

TILE_ROWS(TILES)

typedef void (*NAME(Tile))(const Gemm *, npy_intp, const T *, npy_intp, const T *, npy_intp, T *, MASK, const T *);

#define ENTRY(R) [R] = {{NAME(packed_##R##_1), NAME(packed_##R##_2)}, {NAME(direct_##R##_1), NAME(direct_##R##_2)}},
static const NAME(Tile) NAME(tiles)[MOST_ROWS + 1][2][2] = {TILE_ROWS(ENTRY)};
#undef ENTRY

/* to[p * step + i] = from[i * row + p] for k elements of `rows` rows, at most LANES; what is beyond them becomes 0, up to `step` or LANES. */
WIDEST static void NAME(turn)(const T *from, npy_intp row, npy_intp rows, npy_intp k, T *to, npy_intp step, npy_intp kept)
{
    const MASK keep = (MASK)(((npy_uint32)1 << kept) - 1);
    for (npy_intp p = 0; p < k; p += LANES) {
        const npy_intp some = k - p < LANES ? k - p : LANES;
        const MASK mask = (MASK)(((npy_uint32)1 << some) - 1);
        V line[LANES];
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
        {
            line[i] = i < rows ? F(maskz_loadu)(mask, from + i * row + p) : F(setzero)();
        }
        NAME(transpose)(line);
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
        {
            if (i < some) {
                F(mask_storeu)(to + (p + i) * step, keep, line[i]);
            }
        }
    }
}

/* Rows of a, R at a time, as the tiles read them: p by p. */
WIDEST static void NAME(pack_rows)(const T *a, npy_intp a_row, npy_intp a_k, npy_intp rows, npy_intp k, T *to)
{
    if (a_k == 1 && rows <= LANES) {
        NAME(turn)(a, a_row, rows, k, to, rows, rows);
    }
    else if (a_k == 1) {
        NAME(turn)(a, a_row, LANES, k, to, rows, LANES);
        NAME(turn)(a + LANES * a_row, a_row, rows - LANES, k, to + LANES, rows, rows - LANES);
    }
    else if (a_row == 1) {
        const npy_intp last = rows > LANES ? LANES : 0;
        const MASK mask = (MASK)(((npy_uint32)1 << (rows - last)) - 1);
        for (npy_intp p = 0; p < k; p++, a += a_k, to += rows) {
            if (last) {
                F(storeu)(to, F(loadu)(a));
            }
            F(mask_storeu)(to + last, mask, F(maskz_loadu)(mask, a + last));
        }
    }
    else {
        for (npy_intp p = 0; p < k; p++) {
            for (npy_intp i = 0; i < rows; i++) {
                to[p * rows + i] = a[p * a_k + i * a_row];
            }
        }
    }
}

/* A block of b as the tiles read it: two vectors of columns (the last columns may be one), p by p, then the next two. */
WIDEST static void NAME(pack_block)(const T *b, npy_intp b_row, npy_intp b_column, npy_intp columns, npy_intp k, T *to)
{
    const npy_intp both = 2 * LANES, whole = columns / both * both, rest = columns - whole, wide = rest > LANES ? both : LANES;
    if (b_column == 1) { /* whole rows, since what lies in a row is fetched together */
        const npy_intp last = wide - LANES;
        const MASK mask = (MASK)(((npy_uint32)1 << (rest - last)) - 1);
        for (npy_intp p = 0; p < k; p++, b += b_row) {
            _mm_prefetch((const char *)(b + 4 * b_row), _MM_HINT_T0);
            for (npy_intp j = 0; j < whole; j += both) {
                F(storeu)(to + j * k + p * both, F(loadu)(b + j));
                F(storeu)(to + j * k + p * both + LANES, F(loadu)(b + j + LANES));
            }
            if (rest) {
                T *end = to + whole * k + p * wide;
                if (last) {
                    F(storeu)(end, F(loadu)(b + whole));
                }
                F(storeu)(end + last, F(maskz_loadu)(mask, b + whole + last));
            }
        }
        return;
    }
    for (npy_intp j = 0; j < columns; j += both) {
        const npy_intp some = columns - j < both ? columns - j : both, room = some > LANES ? both : LANES;
        T *panel = to + j * k;
        if (b_row == 1) {
            for (npy_intp i = 0; i < room; i += LANES) {
                NAME(turn)(b + (j + i) * b_column, b_column, some - i < LANES ? some - i : LANES, k, panel + i, room, LANES);
            }
            continue;
        }
        for (npy_intp p = 0; p < k; p++) {
            for (npy_intp i = 0; i < room; i++) {
                panel[p * room + i] = i < some ? b[p * b_row + (j + i) * b_column] : 0;
            }
        }
    }
}

/* A block of b, packed or where it lies, by all rows of a, a tile's at a time; `space` takes these where they are to be packed. */
static void NAME(rows_by_block)(const Gemm *g, npy_intp m, npy_intp n, npy_intp k, const T *a, const T *b, npy_intp b_row, int packed, T *c,
                                const T *bias, T *space)
{
    for (npy_intp i = 0; i < m;) {
        const npy_intp rows = tile_rows(m - i);
        const T *left = a + i * g->a_row;
        if (space != NULL) {
            NAME(pack_rows)(left, g->a_row, g->a_k, rows, k, space);
            left = space;
        }
        for (npy_intp j = 0; j < n; j += 2 * LANES) {
            const npy_intp columns = n - j < 2 * LANES ? n - j : 2 * LANES, vectors = columns > LANES ? 2 : 1;
            const MASK mask = (MASK)(((npy_uint32)1 << (columns - (vectors - 1) * LANES)) - 1);
            NAME(tiles)[rows][space == NULL][vectors - 1](g, k, left, g->a_row, packed ? b + j * k : b + j, packed ? vectors * LANES : b_row,
                                                              c + i * g->c_row + j, mask, bias == NULL ? NULL : bias + j);
        }
        i += rows;
    }
}

/* What there is no memory for packing for. */
static void NAME(part_in_place)(const Gemm *g, npy_intp from, npy_intp to, npy_intp begin, npy_intp end)
{
    for (npy_intp i = from; i < to; i++) {
        for (npy_intp j = begin; j < end; j++) {
            T sum = 0, *c = (T *)g->c + i * g->c_row + j;
            for (npy_intp p = 0; p < g->k; p++) {
                sum += ((const T *)g->a)[i * g->a_row + p * g->a_k] * ((const T *)g->b)[p * g->b_row + j * g->b_column];
            }
            sum = (T)g->alpha * sum + (g->beta != 0 ? (T)g->beta * *c : 0);
            *c = g->bias != NULL ? sum + ((const T *)g->bias)[j] : sum;
        }
    }
}

/* The columns `begin` to `end` of the rows `from` to `to`. */
static void NAME(part)(const Gemm *all, npy_intp from, npy_intp to, npy_intp begin, npy_intp end)
{
    Gemm g = *all;
    const npy_intp m = to - from, size = sizeof(T), both = 2 * LANES;
    const npy_intp blocks = g.k > DEEP ? (g.k + DEEP - 1) / DEEP : 1, deep = (g.k + blocks - 1) / blocks;
    const npy_intp wide = end - begin < COLUMNS ? end - begin : COLUMNS;
    const int b_packed = g.b_column != 1 || (m > 3 * MOST_ROWS && deep * g.b_row * size > DIRECT_BYTES);
    /* Rows that lie a page apart would share one set of the first cache. */
    const int a_packed = g.a_k != 1 || (wide > WORTH_PACKING && m > 4) || (g.a_row * size) % 1024 == 0;
    const npy_intp for_a = a_packed ? (MOST_ROWS * deep + both) / both * both : 0;
    const npy_intp for_b = b_packed ? (wide + both - 1) / both * both * deep : 0;
    T *space = NULL;
    if (for_a + for_b && (space = aligned_alloc(64, (size_t)((for_a + for_b) * size + 63) / 64 * 64)) == NULL) {
        NAME(part_in_place)(all, from, to, begin, end);
        return;
    }
    T *block = space + for_a;
    for (npy_intp first = begin; first < end; first += COLUMNS) {
        const npy_intp n = end - first < COLUMNS ? end - first : COLUMNS;
        npy_intp p = 0;
        g.beta = all->beta;
        do { /* once where k is 0 */
            const npy_intp k = g.k - p < deep ? g.k - p : deep;
            const T *b = (const T *)g.b + p * g.b_row + first * g.b_column;
            if (b_packed) {
                NAME(pack_block)(b, g.b_row, g.b_column, n, k, block);
            }
            NAME(rows_by_block)(&g, m, n, k, (const T *)g.a + from * g.a_row + p * g.a_k, b_packed ? block : b, g.b_row, b_packed,
                                (T *)g.c + from * g.c_row + first, p + k < g.k || g.bias == NULL ? NULL : (const T *)g.bias + first,
                                a_packed ? space : NULL);
            g.beta = 1;
            p += k;
        } while (p < g.k);
    }
    free(space);
}
