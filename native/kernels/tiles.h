/* Tiles of a result that stay in registers, for processors with vectors of 512 bits: up to 14 rows by two vectors fill 28 of 32. */
#ifndef MINDTORCH_TILES_H
#define MINDTORCH_TILES_H

#include <immintrin.h>

#include "native.h"

#define MOST_ROWS 14 /* of a tile */
#define AHEAD 8      /* rows of the right matrix that are fetched ahead */

/* f(rows), for the tiles that there are. */
#define TILE_ROWS(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(10) f(12) f(14)

/* The rows of the next tile. */
static inline npy_intp tile_rows(npy_intp left)
{
    return left >= MOST_ROWS ? MOST_ROWS : left > 8 ? left & ~(npy_intp)1 : left;
}

#endif
