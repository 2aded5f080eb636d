/* Products of float matrices, for processors with vectors of 512 bits.
 *
 * As in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a block of b, DEEP rows of COLUMNS columns, is copied so that
 * it stays in the second cache and is read in order; tiles of the result stay in registers. A block that is small, or of few rows of a, is read where
 * it lies, and so are the rows of a unless copying them is worth it.
 */
#include "gemm.h"

#define COLUMNS 512         /* of a block of b */
#define DEEP 256            /* rows of a block of b: those of a tile are 32 KiB of the first cache */
#define DIRECT_BYTES 262144 /* a block of b within so many bytes is read where it lies */
#define WORTH_PACKING 192   /* columns for which the rows of a are copied */
#define PRODUCTS_EACH 65536 /* multiplications that are worth a thread, by a vector of 16 */

#if HAS_WIDE
#include "tiles.h"
#include "turn.h"

#define T float
#define V __m512
#define MASK __mmask16
#define LANES 16
#define NAME(name) name##_float
#define F(name) _mm512_##name##_ps
#include "gemm_loops.h"
#undef T
#undef V
#undef MASK
#undef LANES
#undef NAME
#undef F

#define T double
#define V __m512d
#define MASK __mmask8
#define LANES 8
#define NAME(name) name##_double
#define F(name) _mm512_##name##_pd
#include "gemm_loops.h"

typedef struct {
    const Gemm *g;
    int width, by_rows;
} Parts;

static void some_rows_or_columns(void *work, npy_intp begin, npy_intp end)
{
    const Parts *all = work;
    const npy_intp from = all->by_rows ? begin : 0, to = all->by_rows ? end : all->g->m;
    const npy_intp first = all->by_rows ? 0 : begin, last = all->by_rows ? all->g->n : end;
    (all->width == 4 ? part_float : part_double)(all->g, from, to, first, last);
}

void pack_turned(const float *b, npy_intp b_column, npy_intp columns, npy_intp k, float *to)
{
    pack_block_float(b, 1, b_column, columns, k, to);
}

void pack_columns(const float *b, npy_intp b_row, npy_intp columns, npy_intp k, float *to)
{
    pack_block_float(b, b_row, 1, columns, k, to);
}

void gemm_packed(const Gemm *g)
{
    rows_by_block_float(g, g->m, g->n, g->k, g->a, g->b, 0, 1, g->c, g->bias, NULL);
}

void pack_rows(const float *a, npy_intp a_row, npy_intp rows, npy_intp k, float *to)
{
    pack_rows_float(a, a_row, 1, rows, k, to);
}

void turn(const float *from, npy_intp row, npy_intp rows, npy_intp k, float *to, npy_intp step, npy_intp kept)
{
    turn_float(from, row, rows, k, to, step, kept);
}

void turn_doubles(const double *from, npy_intp row, npy_intp rows, npy_intp k, double *to, npy_intp step, npy_intp kept)
{
    turn_double(from, row, rows, k, to, step, kept);
}

int gemm_serves(const Gemm *g)
{
    return S.vectors == 2 && g->m > 1 && g->n > 3 && (g->b_column == 1 || g->m > 7);
}

void gemm(int width, const Gemm *g)
{
    Parts all = {g, width, g->m > g->n};
    const npy_intp n = all.by_rows ? g->m : g->n, unit = all.by_rows ? MOST_ROWS : 128 / width;
    const npy_intp products = g->m * g->n * g->k / (n > 0 ? n : 1) / 16 * unit; /* of a unit */
    in_parts(some_rows_or_columns, &all, n, unit * (products < PRODUCTS_EACH ? PRODUCTS_EACH / (products + 1) + 1 : 1));
}
#else
int gemm_serves(const Gemm *g)
{
    (void)g;
    return 0;
}

void gemm(int width, const Gemm *g)
{
    (void)width;
    (void)g;
}
#endif
