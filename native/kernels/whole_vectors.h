/* What is left after the whole vectors of a loop, moved to a vector of its own and back.
 *
 * Note [Whole vectors]. A loop goes over whole vectors of its processor. The elements after them are moved to a vector of their own, of which the same
 * loop computes all: what compilers write for the rest, narrower vectors and then single elements, is longer than the loop itself, and slower.
 */
#ifndef MINDTORCH_WHOLE_VECTORS_H
#define MINDTORCH_WHOLE_VECTORS_H

#include <string.h>

#include "native.h"

#if HAS_WIDE
#include <immintrin.h>
#endif

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* TAKE_REST(vector)(to, from, bytes) reads fewer bytes than a vector has, in whole floats, and puts zeros after them; GIVE_REST(vector) writes them. */
#define TAKE_REST(vector) TAKE_REST_(vector)
#define TAKE_REST_(vector) take_##vector
#define GIVE_REST(vector) GIVE_REST_(vector)
#define GIVE_REST_(vector) give_##vector
#define MOVES static inline __attribute__((always_inline)) void

MOVES take_16(void *to, const void *from, size_t bytes)
{
    memset(to, 0, 16);
    memcpy(to, from, bytes);
}

MOVES give_16(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

#if HAS_WIDE
/* Of eight floats the first ones. */
#define FIRST_OF_8(bytes) _mm256_cmpgt_epi32(_mm256_set1_epi32((int)((bytes) / 4)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define FIRST_OF_16(bytes) ((__mmask16)_bzhi_u32(0xFFFF, (unsigned)((bytes) / 4)))

WIDE MOVES take_32(void *to, const void *from, size_t bytes)
{
    _mm256_storeu_si256(to, _mm256_maskload_epi32(from, FIRST_OF_8(bytes)));
}

WIDE MOVES give_32(void *to, const void *from, size_t bytes)
{
    _mm256_maskstore_epi32(to, FIRST_OF_8(bytes), _mm256_loadu_si256(from));
}

WIDEST MOVES take_64(void *to, const void *from, size_t bytes)
{
    _mm512_storeu_si512(to, _mm512_maskz_loadu_epi32(FIRST_OF_16(bytes), from));
}

WIDEST MOVES give_64(void *to, const void *from, size_t bytes)
{
    _mm512_mask_storeu_epi32(to, FIRST_OF_16(bytes), _mm512_loadu_si512(from));
}
#undef FIRST_OF_8
#undef FIRST_OF_16
#endif
#undef MOVES

#endif
