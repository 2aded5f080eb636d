/* Rows of truths from float32 and float64, by masks of 512 bits. A part of move.c, after its other rows. */
#ifndef MINDTORCH_TRUTH_ROWS_H
#define MINDTORCH_TRUTH_ROWS_H

#include <immintrin.h>

WIDEST static inline __mmask16 are_true_f32(__mmask16 some, const char *from)
{
    return _mm512_cmp_ps_mask(_mm512_maskz_loadu_ps(some, from), _mm512_setzero_ps(), _CMP_NEQ_UQ);
}

WIDEST static inline __mmask16 are_true_f64(__mmask16 some, const char *from)
{
    const __mmask8 low = _mm512_cmp_pd_mask(_mm512_maskz_loadu_pd((__mmask8)some, from), _mm512_setzero_pd(), _CMP_NEQ_UQ);
    const __mmask8 high = _mm512_cmp_pd_mask(_mm512_maskz_loadu_pd((__mmask8)(some >> 8), from + 64), _mm512_setzero_pd(), _CMP_NEQ_UQ);
    return _mm512_kunpackb(high, low);
}

#define TRUTHS(kind, item, otherwise)                                                                                                      \
    WIDEST static void widest_##kind##_to_bool(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)                \
    {                                                                                                                                      \
        if (to_step != 1 || from_step != (item)) {                                                                                         \
            otherwise(to, to_step, from, from_step, n);                                                                                    \
            return;                                                                                                                        \
        }                                                                                                                                  \
        for (npy_intp i = 0; i < n; i += 16) {                                                                                             \
            const __mmask16 some = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;                                                 \
            _mm_mask_storeu_epi8(to + i, some, _mm_maskz_set1_epi8(are_true_##kind(some, from + i * (item)), 1));                           \
        }                                                                                                                                  \
    }

TRUTHS(f32, 4, F32_to_BOOL)
TRUTHS(f64, 8, F64_to_BOOL)

#endif
