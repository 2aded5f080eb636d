/* Few vectors by a matrix of float16, bfloat16, bytes or float32, which lies either way round: memory is what such a product waits for.
 *
 * Rows that meet the vectors together lie far from each other: a processor fetches ahead along each of some streams, and one stream does not take all
 * that its memory gives (measured on a Xeon of 2023: 10 GB/s by one, 15 by four that are asked for 1 KiB ahead). What an element of the result is
 * summed of, and in which order, depends on the matrix's sizes alone.
 */
#include "few_vectors.h"

#define TOGETHER 4 /* vectors that meet an element of the matrix at once */
#define APART 4    /* rows that are summed at once */
#define OVER 8     /* rows that are added at once */
#define AHEAD 1024 /* bytes */
#define WINDOW 8192 /* sums that stay in the first cache while rows are added to them */

/* The sums along APART rows with one, two or TOGETHER vectors: sums[vector * APART + row]. */
typedef void (*Along)(const char *const *row, const float *x, npy_intp n, float *sums, int vectors);
/* One row or OVER rows, each times its factors, added to `out`. */
typedef void (*Over)(const char *const *row, const float *factors, npy_intp n, float *out, int vectors, int count);

/* ------------------------------------------------------------------------------------------------------------ portable */

typedef float Four __attribute__((vector_size(16)));
typedef npy_int32 FourBits __attribute__((vector_size(16)));
typedef npy_uint16 FourWords __attribute__((vector_size(8)));
typedef npy_int8 FourBytes __attribute__((vector_size(4)));

static inline Four four(const void *at, int count)
{
    Four x = {0};
    memcpy(&x, at, (size_t)count * sizeof(float));
    return x;
}

static inline Four four_b16(const char *at, int count)
{
    FourWords words = {0};
    memcpy(&words, at, (size_t)count * 2);
    return (Four)(__builtin_convertvector(words, FourBits) << 16);
}

static inline Four four_i8(const char *at, int count)
{
    FourBytes bytes = {0};
    memcpy(&bytes, at, (size_t)count);
    return __builtin_convertvector(bytes, Four);
}

static void plain_sums(const Four *x, float *sums)
{
    for (int r = 0; r < APART; r++) {
        sums[r] = (x[r][0] + x[r][2]) + (x[r][1] + x[r][3]);
    }
}

#define TARGET
#define V Four
#define LANES 4
#define ZERO ((Four){0})
#define LOAD(at) four(at, 4)
#define STORE(at, x) memcpy(at, &(x), sizeof(Four))
#define EACH(x) ((Four){0} + (x))
#define FUSED_ADD(a, b, c) ((a) * (b) + (c))
#define LOAD_SOME(at, count) four(at, count)
#define STORE_SOME(at, count, x) memcpy(at, &(x), (size_t)(count) * sizeof(float))
#define ADD_UP plain_sums

#define NAME(name) b16_plain_##name
#define ITEM 2
#define AT(at) four_b16(at, 4)
#define SOME(at, count) four_b16(at, count)
#include "few_vectors_loops.h"

#define NAME(name) i8_plain_##name
#define ITEM 1
#define AT(at) four_i8(at, 4)
#define SOME(at, count) four_i8(at, count)
#include "few_vectors_loops.h"

#if HAS_WIDE
#undef TARGET
#undef V
#undef LANES
#undef ZERO
#undef LOAD
#undef STORE
#undef EACH
#undef FUSED_ADD
#undef LOAD_SOME
#undef STORE_SOME
#undef ADD_UP

#include <immintrin.h>

/* ---------------------------------------------------------------------------------------------------------------- AVX2 */

#define TARGET __attribute__((target("avx2,fma,bmi2,f16c")))
#define V __m256
#define LANES 8
#define ZERO _mm256_setzero_ps()
#define LOAD(at) _mm256_loadu_ps(at)
#define STORE(at, x) _mm256_storeu_ps(at, x)
#define EACH(x) _mm256_set1_ps(x)
#define FUSED_ADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MASK(count) _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define LOAD_SOME(at, count) _mm256_maskload_ps(at, MASK(count))
#define STORE_SOME(at, count, x) _mm256_maskstore_ps(at, MASK(count), x)
#define ADD_UP wide_sums

TARGET static void wide_sums(const __m256 *x, float *sums)
{
    const __m256 all = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
    _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
}

TARGET static inline __m128i some_words(const char *at, int count)
{
    npy_uint16 rest[8] = {0};
    memcpy(rest, at, (size_t)count * 2);
    return _mm_loadu_si128((const __m128i *)rest);
}

TARGET static inline __m128i some_bytes(const char *at, int count)
{
    npy_uint8 rest[8] = {0};
    memcpy(rest, at, (size_t)count);
    return _mm_loadl_epi64((const __m128i *)rest);
}

#define NAME(name) f16_wide_##name
#define ITEM 2
#define AT(at) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at)))
#define SOME(at, count) _mm256_cvtph_ps(some_words(at, count))
#include "few_vectors_loops.h"

#define NAME(name) b16_wide_##name
#define ITEM 2
#define SHIFTED(x) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16))
#define AT(at) SHIFTED(_mm_loadu_si128((const __m128i *)(at)))
#define SOME(at, count) SHIFTED(some_words(at, count))
#include "few_vectors_loops.h"

#define NAME(name) i8_wide_##name
#define ITEM 1
#define AT(at) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(at))))
#define SOME(at, count) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(some_bytes(at, count)))
#include "few_vectors_loops.h"

#define NAME(name) f32_wide_##name
#define ITEM 4
#define AT(at) LOAD((const float *)(at))
#define SOME(at, count) LOAD_SOME((const float *)(at), count)
#include "few_vectors_loops.h"

#undef TARGET
#undef V
#undef LANES
#undef ZERO
#undef LOAD
#undef STORE
#undef EACH
#undef FUSED_ADD
#undef MASK
#undef LOAD_SOME
#undef STORE_SOME
#undef ADD_UP
#undef SHIFTED

/* ------------------------------------------------------------------------------------------------------------- AVX-512 */

#define TARGET WIDEST
#define V __m512
#define LANES 16
#define ZERO _mm512_setzero_ps()
#define LOAD(at) _mm512_loadu_ps(at)
#define STORE(at, x) _mm512_storeu_ps(at, x)
#define EACH(x) _mm512_set1_ps(x)
#define FUSED_ADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#define MASK(count) ((__mmask16)((1u << (count)) - 1))
#define LOAD_SOME(at, count) _mm512_maskz_loadu_ps(MASK(count), at)
#define STORE_SOME(at, count, x) _mm512_mask_storeu_ps(at, MASK(count), x)
#define ADD_UP widest_sums

TARGET static void widest_sums(const __m512 *x, float *sums)
{
    const __m512 first = _mm512_add_ps(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
    const __m512 second = _mm512_add_ps(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
    const __m512d a = _mm512_castps_pd(first), b = _mm512_castps_pd(second);
    const __m512 all = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}

#define NAME(name) f16_widest_##name
#define ITEM 2
#define AT(at) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(at)))
#define SOME(at, count) _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(MASK(count), at))
#include "few_vectors_loops.h"

#define NAME(name) b16_widest_##name
#define ITEM 2
#define SHIFTED(x) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16))
#define AT(at) SHIFTED(_mm256_loadu_si256((const __m256i *)(at)))
#define SOME(at, count) SHIFTED(_mm256_maskz_loadu_epi16(MASK(count), at))
#include "few_vectors_loops.h"

#define NAME(name) i8_widest_##name
#define ITEM 1
#define AT(at) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(at))))
#define SOME(at, count) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(MASK(count), at)))
#include "few_vectors_loops.h"

#define NAME(name) f32_widest_##name
#define ITEM 4
#define AT(at) LOAD((const float *)(at))
#define SOME(at, count) LOAD_SOME((const float *)(at), count)
#include "few_vectors_loops.h"
#endif

/* ------------------------------------------------------------------------------------------------------------ the walk */

static const npy_intp items[ELEMENTS] = {2, 2, 1, 4};
#if HAS_WIDE
#define VARIANTS(kind, name) {kind##_plain_##name, kind##_wide_##name, kind##_widest_##name}
#define WIDE_VARIANTS(kind, name) {NULL, kind##_wide_##name, kind##_widest_##name}
#else
#define VARIANTS(kind, name) {kind##_plain_##name, NULL, NULL}
#define WIDE_VARIANTS(kind, name) {NULL, NULL, NULL}
#endif
static const Along along[ELEMENTS][3] = {WIDE_VARIANTS(f16, along), VARIANTS(b16, along), VARIANTS(i8, along), WIDE_VARIANTS(f32, along)};
static const Over over[ELEMENTS][3] = {WIDE_VARIANTS(f16, over), VARIANTS(b16, over), VARIANTS(i8, over), WIDE_VARIANTS(f32, over)};

int has_few_vectors(int element)
{
    return along[element][S.vectors] != NULL;
}

/* Rows `begin` to `end`, in APART streams; where one has ended, the last row again. */
static void some_rows(void *work, npy_intp begin, npy_intp end)
{
    const FewVectors *all = work;
    const Along run = along[all->element][S.vectors];
    const npy_intp stream = (end - begin + APART - 1) / APART;
    for (npy_intp i = begin; i < begin + stream; i++) {
        const char *row[APART];
        npy_intp at[APART];
        float sums[APART * TOGETHER];
        for (int r = 0; r < APART; r++) {
            at[r] = i + r * stream < end ? i + r * stream : end - 1;
            row[r] = all->matrix + at[r] * all->apart;
        }
        for (int v = 0, count; v < all->vectors; v += count) {
            count = all->vectors - v >= TOGETHER ? TOGETHER : all->vectors - v > 1 ? 2 : 1;
            run(row, all->x + v * all->n, all->n, sums, count);
            for (int c = 0; c < count; c++) {
                for (int r = 0; r < APART; r++) {
                    all->out[(v + c) * all->rows + at[r]] = sums[c * APART + r];
                }
            }
        }
    }
}

/* Places `begin` to `end` of all rows, of which OVER streams are added at once; those that are left over follow one by one. */
static void some_places(void *work, npy_intp begin, npy_intp end)
{
    const FewVectors *all = work;
    const Over run = over[all->element][S.vectors];
    const npy_intp stream = all->rows / OVER, item = items[all->element], window = WINDOW / all->vectors / 64 * 64;
    float sums[WINDOW]; /* side by side: results that lie a power of two apart would share few places of the cache */
    for (npy_intp j = begin; j < end; j += window) {
        const npy_intp n = end - j < window ? end - j : window;
        const float *factors = all->factors;
        memset(sums, 0, (size_t)(n * all->vectors) * sizeof(float));
        for (npy_intp i = 0; i < stream; i++, factors += all->vectors * OVER) {
            const char *row[OVER];
            for (int r = 0; r < OVER; r++) {
                row[r] = all->matrix + (i + r * stream) * all->apart + j * item;
            }
            run(row, factors, n, sums, all->vectors, OVER);
        }
        for (npy_intp i = stream * OVER; i < all->rows; i++, factors += all->vectors) {
            const char *row = all->matrix + i * all->apart + j * item;
            run(&row, factors, n, sums, all->vectors, 1);
        }
        for (int v = 0; v < all->vectors; v++) {
            memcpy(all->out + v * all->n + j, sums + v * n, (size_t)n * sizeof(float));
        }
    }
}

void by_few_vectors(FewVectors *all)
{
    if (!all->summed_rows) {
        in_parts(some_rows, all, all->rows, grain_of(all->n * (all->vectors + 1) / 2));
        return;
    }
    /* Those of the rows that are added at once follow each other, vector by vector. */
    const npy_intp stream = all->rows / OVER;
    float *to = all->factors;
    for (npy_intp i = 0; i < stream; i++) {
        for (int v = 0; v < all->vectors; v++) {
            for (int r = 0; r < OVER; r++) {
                *to++ = all->x[v * all->rows + i + r * stream];
            }
        }
    }
    for (npy_intp i = stream * OVER; i < all->rows; i++) {
        for (int v = 0; v < all->vectors; v++) {
            *to++ = all->x[v * all->rows + i];
        }
    }
    in_parts(some_places, all, all->n, (grain_of(all->rows * (all->vectors + 1) / 2) + 63) / 64 * 64);
}
