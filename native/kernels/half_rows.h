/* Rows of float16 and bfloat16 from and to float32, and by way of it all other dtypes. A part of move.c, after its other rows. */
#ifndef MINDTORCH_HALF_ROWS_H
#define MINDTORCH_HALF_ROWS_H

#include <immintrin.h>

/* float16: processors with AVX2 convert it from and to float32; numpy does it for others. */

__attribute__((target("avx2,f16c"))) static void f16_to_f32(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)
{
    npy_intp i = 0;
    if (to_step == 4 && from_step == 2) {
        for (; i + 8 <= n; i += 8) {
            _mm256_storeu_ps((float *)(to + 4 * i), _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + 2 * i))));
        }
    }
    for (; i < n; i++) {
        *(T_F32 *)(to + i * to_step) = _cvtsh_ss(*(const T_B16 *)(from + i * from_step));
    }
}

__attribute__((target("avx2,f16c"))) static void f32_to_f16(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)
{
    npy_intp i = 0;
    if (to_step == 2 && from_step == 4) {
        for (; i + 8 <= n; i += 8) {
            _mm_storeu_si128((__m128i *)(to + 2 * i), _mm256_cvtps_ph(_mm256_loadu_ps((const float *)(from + 4 * i)), _MM_FROUND_TO_NEAREST_INT));
        }
    }
    for (; i < n; i++) {
        *(T_B16 *)(to + i * to_step) = _cvtss_sh(*(const T_F32 *)(from + i * from_step), _MM_FROUND_TO_NEAREST_INT);
    }
}

/* All other dtypes by way of float32, as PyTorch goes. */
#define VIA 256 /* elements at a time */
#define INTO_HALF(KIND, name, NARROW)                                                                                                      \
    static void name(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)                                         \
    {                                                                                                                                      \
        float space[VIA];                                                                                                                  \
        for (; n > 0; n -= VIA, to += VIA * to_step, from += VIA * from_step) {                                                            \
            KIND##_to_F32((char *)space, 4, from, from_step, n < VIA ? n : VIA);                                                           \
            NARROW(to, to_step, (const char *)space, 4, n < VIA ? n : VIA);                                                                \
        }                                                                                                                                  \
    }
#define BETWEEN_F16(KIND)                                                                                                                  \
    static void F16_to_##KIND(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)                                \
    {                                                                                                                                      \
        float space[VIA];                                                                                                                  \
        for (; n > 0; n -= VIA, to += VIA * to_step, from += VIA * from_step) {                                                            \
            f16_to_f32((char *)space, 4, from, from_step, n < VIA ? n : VIA);                                                              \
            F32_to_##KIND(to, to_step, (const char *)space, 4, n < VIA ? n : VIA);                                                         \
        }                                                                                                                                  \
    }                                                                                                                                      \
                                                                                                                                           \
    INTO_HALF(KIND, KIND##_to_F16, f32_to_f16)

BETWEEN_F16(BOOL)
BETWEEN_F16(U8)
BETWEEN_F16(I8)
BETWEEN_F16(I16)
BETWEEN_F16(I32)
BETWEEN_F16(I64)
BETWEEN_F16(F64)
BETWEEN_F16(B16)

static const Row from_f16[KIND_F16] = {F16_to_BOOL, F16_to_U8, F16_to_I8, F16_to_I16, F16_to_I32, F16_to_I64, f16_to_f32, F16_to_F64, F16_to_B16};
static const Row into_f16[KIND_F16] = {BOOL_to_F16, U8_to_F16, I8_to_F16, I16_to_F16, I32_to_F16, I64_to_F16, f32_to_f16, F64_to_F16, B16_to_F16};

WIDE static void wide_f32_to_b16(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)
{
    const __m256i half = _mm256_set1_epi32(0x7fff), one = _mm256_set1_epi32(1), quiet = _mm256_set1_epi32(0x7fc0), sign = _mm256_set1_epi32(0x8000);
    npy_intp i = 0;
    for (; to_step == 2 && from_step == 4 && i + 16 <= n; i += 16) {
        __m256i part[2];
        for (int k = 0; k < 2; k++) {
            const __m256 x = _mm256_loadu_ps((const float *)(from + 4 * i) + 8 * k);
            const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
            const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, half), _mm256_and_si256(high, one)), 16);
            const __m256i nan = _mm256_or_si256(_mm256_and_si256(high, sign), quiet);
            part[k] = _mm256_blendv_epi8(rounded, nan, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
        }
        _mm256_storeu_si256((__m256i *)(to + 2 * i), _mm256_permute4x64_epi64(_mm256_packus_epi32(part[0], part[1]), 0xd8));
    }
    F32_to_B16(to + i * to_step, to_step, from + i * from_step, from_step, n - i);
}

WIDE static void wide_b16_to_f32(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)
{
    npy_intp i = 0;
    for (; to_step == 4 && from_step == 2 && i + 8 <= n; i += 8) {
        const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(from + 2 * i)));
        _mm256_storeu_si256((__m256i *)(to + 4 * i), _mm256_slli_epi32(wide, 16));
    }
    B16_to_F32(to + i * to_step, to_step, from + i * from_step, from_step, n - i);
}

WIDEST static inline __m256i b16_of(__m512 x)
{
    const __m512i half = _mm512_set1_epi32(0x7fff), one = _mm512_set1_epi32(1), quiet = _mm512_set1_epi32(0x7fc0), sign = _mm512_set1_epi32(0x8000);
    const __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, half), _mm512_and_si512(high, one)), 16);
    const __m512i nan = _mm512_or_si512(_mm512_and_si512(high, sign), quiet);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan));
}

/* The same of numbers that are no NaN, in the upper halves. */
WIDEST static inline __m512i b16_above(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x), odd = _mm512_set1_epi32(0x10000), one = _mm512_set1_epi32(1);
    const __m512i raised = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    return _mm512_mask_add_epi32(raised, _mm512_test_epi32_mask(bits, odd), raised, one);
}

/* Two vectors at once. */
WIDEST static inline __m512i b16_of_two(__m512 x, __m512 y)
{
    const __m512i uppers = _mm512_set_epi32(0x3f003d, 0x3b0039, 0x370035, 0x330031, 0x2f002d, 0x2b0029, 0x270025, 0x230021, 0x1f001d, 0x1b0019, 0x170015, 0x130011,
                                      0x0f000d, 0x0b0009, 0x070005, 0x030001);
    if (_mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q)) {
        return _mm512_inserti64x4(_mm512_castsi256_si512(b16_of(x)), b16_of(y), 1);
    }
    return _mm512_permutex2var_epi16(b16_above(x), uppers, b16_above(y));
}

WIDEST static inline __m512i f16_of_two(__m512 x, __m512 y)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)), _mm512_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT), 1);
}

WIDEST static inline __m512 of_b16(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

WIDEST static inline __m256i f16_of(__m512 x)
{
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

WIDEST static inline __m512 of_f16(__m256i x)
{
    return _mm512_cvtph_ps(x);
}

/* What is left over goes by a mask: calls of few elements are frequent. */
#define WIDEST_ROWS(kind, otherwise_from, otherwise_to)                                                                               \
    WIDEST static void widest_f32_to_##kind(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)                   \
    {                                                                                                                                      \
        if (to_step != 2 || from_step != 4) {                                                                                              \
            otherwise_to(to, to_step, from, from_step, n);                                                                                 \
            return;                                                                                                                        \
        }                                                                                                                                  \
        npy_intp i = 0;                                                                                                                    \
        for (; i + 32 <= n; i += 32) {                                                                                                     \
            _mm512_storeu_si512(to + 2 * i, kind##_of_two(_mm512_loadu_ps((const float *)(from + 4 * i)), _mm512_loadu_ps((const float *)(from + 4 * i) + 16))); \
        }                                                                                                                                  \
        for (; i + 16 <= n; i += 16) {                                                                                                     \
            _mm256_storeu_si256((__m256i *)(to + 2 * i), kind##_of(_mm512_loadu_ps((const float *)(from + 4 * i))));                       \
        }                                                                                                                                  \
        if (i < n) {                                                                                                                       \
            const __mmask16 mask = (__mmask16)((1u << (n - i)) - 1);                                                                       \
            _mm256_mask_storeu_epi16(to + 2 * i, mask, kind##_of(_mm512_maskz_loadu_ps(mask, (const float *)(from + 4 * i))));             \
        }                                                                                                                                  \
    }                                                                                                                                      \
                                                                                                                                           \
    WIDEST static void widest_##kind##_to_f32(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)                 \
    {                                                                                                                                      \
        if (to_step != 4 || from_step != 2) {                                                                                              \
            otherwise_from(to, to_step, from, from_step, n);                                                                               \
            return;                                                                                                                        \
        }                                                                                                                                  \
        npy_intp i = 0;                                                                                                                    \
        for (; i + 16 <= n; i += 16) {                                                                                                     \
            _mm512_storeu_ps((float *)(to + 4 * i), of_##kind(_mm256_loadu_si256((const __m256i *)(from + 2 * i))));                       \
        }                                                                                                                                  \
        if (i < n) {                                                                                                                       \
            const __mmask16 mask = (__mmask16)((1u << (n - i)) - 1);                                                                       \
            _mm512_mask_storeu_ps((float *)(to + 4 * i), mask, of_##kind(_mm256_maskz_loadu_epi16(mask, from + 2 * i)));                   \
        }                                                                                                                                  \
    }

WIDEST_ROWS(b16, B16_to_F32, F32_to_B16)
WIDEST_ROWS(f16, f16_to_f32, f32_to_f16)

static void f32_to_b16(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)
{
    (S.vectors > 1 ? widest_f32_to_b16 : wide_f32_to_b16)(to, to_step, from, from_step, n);
}

INTO_HALF(BOOL, BOOL_into_B16, f32_to_b16)
INTO_HALF(U8, U8_into_B16, f32_to_b16)
INTO_HALF(I8, I8_into_B16, f32_to_b16)
INTO_HALF(I16, I16_into_B16, f32_to_b16)
INTO_HALF(I32, I32_into_B16, f32_to_b16)
INTO_HALF(I64, I64_into_B16, f32_to_b16)
INTO_HALF(F64, F64_into_B16, f32_to_b16)

/* From bfloat16 itself there is nothing to convert. */
static const Row into_b16[KIND_F16] = {BOOL_into_B16, U8_into_B16, I8_into_B16, I16_into_B16, I32_into_B16, I64_into_B16, f32_to_b16, F64_into_B16, NULL};

#endif
