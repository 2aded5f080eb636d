/* Products of float matrices, for processors with vectors of 512 bits.
 *
 * As in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a block of a, DEEP columns of its rows, is copied so that it
 * stays in the second cache and is read in order; panels of b, of two vectors of columns, are copied one after the other into the first; tiles of the
 * result stay in registers. What is copied next is fetched meanwhile. A b that is small or meets few rows is read where it lies, and then the rows of a
 * are too, as are those that meet few columns.
 */
#include "../runtime/extents.h"
#include "gemm.h"

#define DEEP 384            /* rows of a panel of b, or fewer: so that the blocks of k are even */
#define CHUNK 16            /* of k, a line's of floats: after each some lines are fetched */
#define A_BYTES 786432      /* of a block of a that is copied */
#define SOON 112            /* multiplications, of two vectors each, until what is fetched of a row of b is there */
#define DIRECT_BYTES 262144 /* a block of b within so many bytes is read where it lies */
#define WORTH_PACKING 192   /* columns for which the rows of a are copied */
#define PRODUCTS_EACH 65536 /* multiplications that are worth a thread, by a vector of 16 */

#if HAS_WIDE
#include "tiles.h"
#include "turn.h"

#define LOOPS "gemm_loops.h"
#include "wide_variants.h"

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
    Block_float s = {g->k, g->a_row, 1, 0, g->c_row, 0, (float)g->alpha, (float)g->beta, NULL, 0, 0, 0, 0};
    const Next_float none = {g->b, 0, 0, 0, 0, NULL};
    for (npy_intp j = 0; j < g->n; j += 32) {
        const npy_intp columns = g->n - j < 32 ? g->n - j : 32, vectors = columns > 16 ? 2 : 1;
        s.b_row = vectors * 16;
        by_panel_float(&s, g->m, g->a, 1, NULL, 0, (const float *)g->b + j * g->k, (int)vectors, (float *)g->c + j, g->beta != 0,
                       g->bias == NULL ? NULL : (const float *)g->bias + j, (__mmask16)((1U << (columns - (vectors - 1) * 16)) - 1), &none);
    }
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
    npy_intp units = products < PRODUCTS_EACH ? PRODUCTS_EACH / (products + 1) + 1 : 1;
    const npy_intp few = n / unit / (4 * part_threads); /* each part packs for itself */
    units = units < few ? few : units;
    in_parts(some_rows_or_columns, &all, n, unit * units);
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
