/* Included by gemm.c for each type, as wide_variants.h says.
 *
 * A tile of the result, of up to MOST_ROWS rows and two vectors, stays in registers while k goes by: for each k two vectors of b and one element of a for
 * each row. The vectors of b are whole; what of the last one is no column is not stored.
 */

/* What the tiles of a block share. Row i of a is `a_row` elements on, or lies beside those before it; then its element p is `a_k` on. Row p of b is `b_row`
 * on. */
typedef struct {
    npy_intp k, a_row, a_k, b_row, c_row, old_row;
    T alpha, beta;
    const T *next; /* comes into the second cache meanwhile: so many pairs of lines, `next_row` from each other, for each CHUNK of k, `next_step` further */
    npy_intp lines, next_row, next_step, quiet; /* but none where no more than so much is left of k */
} NAME(Block);

#define FETCH(VECTORS, from)                                                                                                               \
    _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) {                                                                            \
        _mm_prefetch((const char *)((from) + j * LANES), _MM_HINT_T0);                                                                     \
    }

/* c (rows, columns of the mask) = alpha * a b + beta * old + bias. What is there of c comes into the first cache while k goes by, a row at a time: many
 * lines at once would hold up those of a. */
#define TILE(name, R, VECTORS, PACKED)                                                                                                     \
    WIDEST static void NAME(name)(const NAME(Block) *s, const T *a, const T *b, T *c, const T *old, const T *bias, MASK mask)              \
    {                                                                                                                                      \
        const npy_intp a_row = PACKED ? 1 : s->a_row, a_k = PACKED ? s->a_k : 1, b_row = s->b_row, c_row = s->c_row, chunk = PACKED ? CHUNK : s->k;\
        V sum[R][VECTORS];                                                                                                                 \
        _Pragma("GCC unroll 14") for (int i = 0; i < R; i++) {                                                                             \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) {                                                                    \
                sum[i][j] = F(setzero)();                                                                                                  \
            }                                                                                                                              \
        }                                                                                                                                  \
        npy_intp row = PACKED ? R + 2 - (s->k + CHUNK - 1) / CHUNK : R;                                                                    \
        const T *fetched = c, *next = s->next;                                                                                             \
        _Pragma("GCC unroll 1") for (npy_intp i = 0; i < R && i < row; i++, fetched += c_row) {                                            \
            FETCH(VECTORS, fetched)                                                                                                        \
        }                                                                                                                                  \
        for (npy_intp left = s->k; left > 0; left -= chunk, row++) {                                                                       \
            _Pragma("GCC unroll 1") for (npy_intp p = left < chunk ? left : chunk; p > 0; p--)                                             \
            {                                                                                                                              \
                V right[VECTORS];                                                                                                          \
                _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) {                                                                \
                    right[j] = F(loadu)(b + j * LANES);                                                                                    \
                }                                                                                                                          \
                if (!(PACKED)) {                                                                                                           \
                    FETCH(VECTORS, b + SOON / R * b_row)                                                                                   \
                    if (R > 5 && VECTORS > 1) { /* rows may begin within lines */                                                          \
                        _mm_prefetch((const char *)(b + SOON / R * b_row + VECTORS * LANES - 1), _MM_HINT_T0);                             \
                    }                                                                                                                      \
                }                                                                                                                          \
                b += b_row;                                                                                                                \
                _Pragma("GCC unroll 14") for (int i = 0; i < R; i++)                                                                       \
                {                                                                                                                          \
                    const V one = F(set1)(a[i * a_row]);                                                                                   \
                    _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) {                                                            \
                        sum[i][j] = F(fmadd)(one, right[j], sum[i][j]);                                                                    \
                    }                                                                                                                      \
                }                                                                                                                          \
                a += a_k;                                                                                                                  \
            }                                                                                                                              \
            if (PACKED) {                                                                                                                  \
                if (row >= 0 && row < R) {                                                                                                 \
                    FETCH(VECTORS, fetched)                                                                                                \
                    fetched += c_row;                                                                                                      \
                }                                                                                                                          \
                const T *line = next;                                                                                                      \
                _Pragma("GCC unroll 1") for (npy_intp i = left > s->quiet ? s->lines : 0; i > 0; i--, line += s->next_row) {               \
                    _mm_prefetch((const char *)line, _MM_HINT_T1);                                                                         \
                    _mm_prefetch((const char *)line + 64, _MM_HINT_T1);                                                                    \
                }                                                                                                                          \
                next += s->next_step;                                                                                                      \
            }                                                                                                                              \
        }                                                                                                                                  \
        const V alpha = F(set1)(s->alpha), beta = F(set1)(s->beta);                                                                        \
        V added[VECTORS];                                                                                                                  \
        _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) {                                                                        \
            added[j] = F(maskz_loadu)(j == VECTORS - 1 ? mask : (MASK)-1, bias + j * LANES);                                               \
        }                                                                                                                                  \
        _Pragma("GCC unroll 14") for (int i = 0; i < R; i++, c += c_row, old += s->old_row)                                                \
        {                                                                                                                                  \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) {                                                                    \
                const MASK part = j == VECTORS - 1 ? mask : (MASK)-1;                                                                      \
                const V before = F(fmadd)(beta, F(maskz_loadu)(part, old + j * LANES), added[j]);                                          \
                F(mask_storeu)(c + j * LANES, part, F(fmadd)(alpha, sum[i][j], before));                                                   \
            }                                                                                                                              \
        }                                                                                                                                  \
    }
#define TILES(R)                                                                                                                           \
    TILE(packed_##R##_1, R, 1, 1)                                                                                                          \
    TILE(packed_##R##_2, R, 2, 1)                                                                                                          \
    TILE(direct_##R##_1, R, 1, 0)                                                                                                          \
    TILE(direct_##R##_2, R, 2, 0)

TILE_ROWS(TILES)

typedef void (*NAME(Tile))(const NAME(Block) *, const T *, const T *, T *, const T *, const T *, MASK);

#define ENTRY(R) [R] = {{NAME(direct_##R##_1), NAME(direct_##R##_2)}, {NAME(packed_##R##_1), NAME(packed_##R##_2)}},
static const NAME(Tile) NAME(tiles)[MOST_ROWS + 1][2][2] = {TILE_ROWS(ENTRY)};
#undef ENTRY

static const T NAME(nothing)[2 * LANES] __attribute__((aligned(64)));

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

/* Rows of a, as a tile reads them: p by p. */
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
        const npy_intp last = rows > LANES ? rows - LANES : rows;
        const MASK mask = (MASK)(((npy_uint32)1 << last) - 1);
        for (npy_intp p = 0; p < k; p++, a += a_k, to += rows) {
            if (rows > LANES) {
                F(storeu)(to, F(loadu)(a));
            }
            F(mask_storeu)(to + rows - last, mask, F(maskz_loadu)(mask, a + rows - last));
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

/* Columns of b as the tiles read them: two vectors of columns (the last may be one), p by p, then the next two. */
WIDEST static void NAME(pack_block)(const T *b, npy_intp b_row, npy_intp b_column, npy_intp columns, npy_intp k, T *to)
{
    const npy_intp both = 2 * LANES;
    for (npy_intp j = 0; j < columns; j += both, to += both * k) {
        const npy_intp some = columns - j < both ? columns - j : both, room = some > LANES ? both : LANES;
        const T *from = b + j * b_column;
        if (b_column == 1) {
            const MASK mask = (MASK)(((npy_uint32)1 << (some - (room - LANES))) - 1);
            for (npy_intp p = 0; p < k; p++, from += b_row) {
                if (room > LANES) {
                    F(storeu)(to + p * both, F(loadu)(from));
                }
                F(storeu)(to + p * room + room - LANES, F(maskz_loadu)(mask, from + room - LANES));
            }
        }
        else if (b_row == 1) {
            for (npy_intp i = 0; i < room; i += LANES) {
                NAME(turn)(from + i * b_column, b_column, some - i < LANES ? some - i : LANES, k, to + i, room, LANES);
            }
        }
        else {
            for (npy_intp p = 0; p < k; p++) {
                for (npy_intp i = 0; i < room; i++) {
                    to[p * room + i] = i < some ? from[p * b_row + i * b_column] : 0;
                }
            }
        }
    }
}

/* The panel of b that is fetched, and packed if it has a place, while tiles are made of another one; k is 0 if there is none. */
typedef struct {
    const T *b;
    npy_intp b_row, b_column, columns, k;
    T *to;
} NAME(Next);

/* A panel of b, of two vectors of columns, by all rows of a block of a; the mask is of the last vector. `packed` rows of a are copied from `a` when their
 * tile is the `first` to need them, while those of the next tile come. Of the next panel a share is copied after each tile, if it has a place, while
 * which it came. */
static void NAME(by_panel)(NAME(Block) *s, npy_intp m, const T *a, npy_intp a_k, T *packed, int first, const T *b, int vectors, T *c, int adds,
                           const T *bias, MASK mask, const NAME(Next) *next)
{
    const npy_intp tiles = (m + MOST_ROWS - 1) / MOST_ROWS, share = (next->k + tiles * CHUNK - 1) / (tiles * CHUNK) * CHUNK;
    const npy_intp chunks = s->k > LANES * CHUNK ? LANES : (s->k + CHUNK - 1) / CHUNK;
    npy_intp p = 0;
    s->old_row = adds ? s->c_row : 0;
    for (npy_intp i = 0; i < m;) {
        const npy_intp rows = tile_rows(m - i), left = m - i - rows, after = left < MOST_ROWS ? left : MOST_ROWS;
        T *to = c + i * s->c_row;
        s->lines = s->quiet = 0;
        if (first && packed != NULL) {
            NAME(pack_rows)(a + i * s->a_row, s->a_row, a_k, rows, s->k, packed + i * s->k);
            s->next = a + (i + rows + (a_k == 1 ? 0 : after - 1)) * s->a_row; /* what lies side by side begins with the last tile's lines */
            s->lines = a_k == 1 || after == 0 ? after : CHUNK;
            s->next_row = a_k == 1 ? s->a_row : a_k;
            s->next_step = a_k == 1 ? CHUNK : CHUNK * a_k;
        }
        else if (p < next->k) {
            s->next = next->b + p * next->b_row;
            s->lines = ((next->b_column == 1 ? share : 2 * LANES) + chunks - 1) / chunks;
            s->next_row = next->b_column == 1 ? next->b_row : next->b_column;
            s->next_step = s->lines * s->next_row;
            s->quiet = s->k - LANES * CHUNK;
        }
        s->a_k = packed != NULL ? rows : a_k;
        NAME(tiles)[rows][packed != NULL || a_k != 1][vectors - 1](s, packed != NULL ? packed + i * s->k : a + i * s->a_row, b, to,
                                                                   adds ? to : NAME(nothing), bias == NULL ? NAME(nothing) : bias, mask);
        if (next->to != NULL && p < next->k) {
            NAME(pack_block)(next->b + p * next->b_row, next->b_row, next->b_column, next->columns, next->k - p < share ? next->k - p : share,
                             next->to + p * (next->columns > LANES ? 2 * LANES : LANES));
        }
        p += share;
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
static void NAME(part)(const Gemm *g, npy_intp from, npy_intp to, npy_intp begin, npy_intp end)
{
    const npy_intp size = sizeof(T), both = 2 * LANES, whole = to - from;
    const npy_intp blocks = g->k > DEEP ? (g->k + DEEP - 1) / DEEP : 1, deep = (g->k + blocks - 1) / blocks;
    const int b_packed = g->b_column != 1 || (whole > 3 * MOST_ROWS && deep * g->b_row * size > DIRECT_BYTES);
    const npy_intp most = b_packed ? A_BYTES / size / (deep > 0 ? deep : 1) : 7 * MOST_ROWS, times = (whole + most - 1) / most;
    const npy_intp even = times > 1 ? whole / times / MOST_ROWS * MOST_ROWS + MOST_ROWS : whole, high = even < whole ? even : whole;
    const int a_packed = (g->a_k != 1 && (g->a_row != 1 || deep * g->a_k * size > DIRECT_BYTES)) || (end - begin > WORTH_PACKING && b_packed);
    const npy_intp for_a = a_packed ? (high * deep + both) / both * both : 0, for_b = b_packed || (end - begin) % LANES ? both * deep : 0;
    T few[1024] __attribute__((aligned(64))), *space = for_a + 2 * for_b > 1024 ? scratch_take((size_t)((for_a + 2 * for_b) * size)) : few;
    if (space == NULL) {
        NAME(part_in_place)(g, from, to, begin, end);
        return;
    }
    T *packed = a_packed ? space : NULL, *panel = space + for_a, *other = panel + for_b;
    NAME(Block) s = {0, g->a_row, 0, 0, g->c_row, 0, (T)g->alpha, 0, NULL, 0, 0, 0, 0};
    int ready = 0; /* whether the panel has been packed */
    for (npy_intp i = from; i < to; i += high) {
        const npy_intp m = to - i < high ? to - i : high;
        npy_intp p = 0;
        do { /* once where k is 0 */
            const npy_intp after = p + deep;
            s.k = after < g->k ? deep : g->k - p;
            s.beta = p ? 1 : (T)g->beta;
            for (npy_intp j = begin; j < end; j += both) {
                const npy_intp columns = end - j < both ? end - j : both, vectors = columns > LANES ? 2 : 1;
                const T *b = (const T *)g->b + p * g->b_row + j * g->b_column, *right = b;
                NAME(Next) next = {b, g->b_row, g->b_column, 0, 0, b_packed ? other : NULL};
                s.b_row = g->b_row;
                if (b_packed || columns % LANES) {
                    if (!ready) {
                        NAME(pack_block)(b, g->b_row, g->b_column, columns, s.k, panel);
                    }
                    right = panel;
                    s.b_row = vectors * LANES;
                }
                if (j + both < end) {
                    next.b = b + both * g->b_column;
                    next.columns = end - j - both < both ? end - j - both : both;
                    next.k = s.k;
                }
                NAME(by_panel)(&s, m, (const T *)g->a + i * g->a_row + p * g->a_k, g->a_k, packed, j == begin, right, (int)vectors,
                               (T *)g->c + i * g->c_row + j, s.beta != 0, after < g->k || g->bias == NULL ? NULL : (const T *)g->bias + j,
                               (MASK)(((npy_uint32)1 << (columns - (vectors - 1) * LANES)) - 1), &next);
                ready = b_packed && next.columns != 0;
                if (ready) {
                    other = panel;
                    panel = next.to;
                }
            }
            p = after;
        } while (p < g->k);
    }
    if (space != few) {
        scratch_give(space);
    }
}
