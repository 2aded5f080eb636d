/* Tiles of a result that stay in registers, for processors with vectors of 512 bits: up to 14 rows by two vectors fill 28 of 32. */
#ifndef MINDTORCH_TILES_H
#define MINDTORCH_TILES_H

#include <immintrin.h>

#include "native.h"

#define MOST_ROWS 14 /* of a tile */
#define AHEAD 8      /* rows of the right matrix that are fetched ahead */

/* f(rows), for the tiles that there are. */
#define TILE_ROWS(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(10) f(12) f(14)

/* The rows of the next tile, so that the last ones have about as many: a tile of one or two rows takes as long as one of several. */
static inline npy_intp tile_rows(npy_intp left)
{
    static const signed char next[2 * MOST_ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 5, 10, 6, 12, 7, 14, 8, 8, 10, 10, 12, 10, 14, 12, 8, 12, 10, 14, 12};
    return left < 2 * MOST_ROWS ? next[left] : MOST_ROWS;
}

#endif
