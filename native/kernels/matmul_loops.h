/* Products of small matrices; included for each type and processor. */
#include "lanes.h"

/* out (m, n) = a (m, k) times b (k, n), plus a row vector if there is one. Steps in elements; `b` is gathered to rows first. */
static TARGET void NAME(small_product)(const void *left, const npy_intp *step_a, const void *right, const npy_intp *step_b,
                                       const void *added, void *output, npy_intp m, npy_intp k, npy_intp n)
{
    const T *a = left, *b = right, *bias = added;
    T *out = output;
    T rows[SMALL_PRODUCT];
    if (step_b[1] != 1 || step_b[0] != n) {
        for (npy_intp p = 0; p < k; p++) {
            for (npy_intp j = 0; j < n; j++) {
                rows[p * n + j] = b[p * step_b[0] + j * step_b[1]];
            }
        }
        b = rows;
    }
    for (npy_intp i = 0; i < m; i++, out += n) {
        const T *row = a + i * step_a[0];
        if (k == 0) {
            for (npy_intp j = 0; j < n; j++) {
                out[j] = 0;
            }
        }
        for (npy_intp p = 0; p < k; p++) {
            const T factor = row[p * step_a[1]];
            const T *other = b + p * n;
            if (p == 0) {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] = factor * other[j];
                }
            }
            else {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] += factor * other[j];
                }
            }
        }
        if (bias != NULL) {
            for (npy_intp j = 0; j < n; j++) {
                out[j] += bias[j];
            }
        }
    }
}

/* A row vector is added to each row of `output` (m, n). */
static TARGET void NAME(add_row)(void *output, const void *row, npy_intp m, npy_intp n)
{
    T *out = output;
    const T *added = row;
    for (npy_intp i = 0; i < m; i++, out += n) {
        for (npy_intp j = 0; j < n; j++) {
            out[j] += added[j];
        }
    }
}

/* output = alpha * output + beta * added, where beta 0 ignores `added`, even where it is not finite. */
static TARGET void NAME(blend)(void *output, const void *input, const npy_intp *sizes, const npy_intp *steps, double beta, double alpha)
{
    T *out = output;
    const T scale = (T)alpha, share = (T)beta;
    npy_intp n = sizes[2], step = steps[2];
    for (npy_intp h = 0; h < sizes[0]; h++) {
        for (npy_intp i = 0; i < sizes[1]; i++, out += n) {
            const T *added = (const T *)input + h * steps[0] + i * steps[1];
            if (alpha != 1) {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] *= scale;
                }
            }
            if (beta == 0) {
                continue;
            }
            if (step == 1) {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] += share * added[j];
                }
            }
            else {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] += share * added[j * step];
                }
            }
        }
    }
}

/* --- few rows by a matrix whose rows lie along the sums, as weights of linear layers do */

#define FEW 4                                  /* rows of the left matrix that meet rows of the right one together */
#define MET (VECTOR_BYTES == 64 ? 4 : 2)       /* rows of the right one */

#if VECTOR_BYTES == 64 && !IS_DOUBLE
/* The sums of four vectors. */
static inline __attribute__((always_inline)) TARGET __m128 NAME(four_sums)(__m512 a, __m512 b, __m512 c, __m512 d)
{
    const __m512 first = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const __m512 second = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    const __m512d x = _mm512_castps_pd(first), y = _mm512_castps_pd(second);
    const __m512 all = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/* Some rows by some columns, which stay in registers; beyond the last column that one again. */
static inline __attribute__((always_inline)) TARGET void NAME(meet_some)(const float *a, npy_intp a_row, const float *b, npy_intp b_row, float *out,
                                                                         npy_intp out_row, npy_intp k, npy_intp left, const int rows, const int columns)
{
    __m512 sum[4][8];
    const float *right[8];
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < columns; c++) {
            sum[r][c] = _mm512_setzero_ps();
        }
    }
    for (int c = 0; c < columns; c++) {
        right[c] = b + (c < left ? c : left - 1) * b_row;
    }
    for (npy_intp p = 0; p < k; p += 16) {
        const __mmask16 mask = k - p < 16 ? (__mmask16)((1u << (k - p)) - 1) : (__mmask16)-1;
        __m512 x[4];
        for (int r = 0; r < rows; r++) {
            x[r] = _mm512_maskz_loadu_ps(mask, a + r * a_row + p);
        }
        for (int c = 0; c < columns; c++) {
            const __m512 y = _mm512_maskz_loadu_ps(mask, right[c] + p);
            for (int r = 0; r < rows; r++) {
                sum[r][c] = _mm512_fmadd_ps(x[r], y, sum[r][c]);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < columns && c < left; c += 4) {
            const __mmask8 mask = left - c < 4 ? (__mmask8)((1u << (left - c)) - 1) : 15;
            _mm_mask_storeu_ps(out + r * out_row + c, mask, NAME(four_sums)(sum[r][c], sum[r][c + 1], sum[r][c + 2], sum[r][c + 3]));
        }
    }
}

/* out (m, n) = left (m, k) times the transposed right (n, k), whose rows lie so many elements apart; rows of out go two, three or four at a time. */
static TARGET void NAME(few_by_rows)(const void *left, npy_intp a_row, const void *right, npy_intp b_row, void *result, npy_intp out_row,
                                     npy_intp m, npy_intp k, npy_intp n)
{
    const float *a = left, *b = right;
    float *out = result;
    for (npy_intp j = 0; j < n;) {
        const npy_intp width = m == 2 ? 8 : 4;
        for (npy_intp i = 0; i < m;) {
            const npy_intp rest = m - i, rows = rest > 4 && rest < 7 ? 3 : rest > 4 ? 4 : rest;
            const float *x = a + i * a_row, *y = b + j * b_row;
            float *to = out + i * out_row + j;
            if (width == 8) {
                NAME(meet_some)(x, a_row, y, b_row, to, out_row, k, n - j, 2, 8);
            }
            else if (rows == 4) {
                NAME(meet_some)(x, a_row, y, b_row, to, out_row, k, n - j, 4, 4);
            }
            else if (rows == 3) {
                NAME(meet_some)(x, a_row, y, b_row, to, out_row, k, n - j, 3, 4);
            }
            else if (rows == 2) {
                NAME(meet_some)(x, a_row, y, b_row, to, out_row, k, n - j, 2, 4);
            }
            else {
                NAME(meet_some)(x, a_row, y, b_row, to, out_row, k, n - j, 1, 4);
            }
            i += rows;
        }
        j += width;
    }
}
#else
static inline __attribute__((always_inline)) TARGET void NAME(meet)(const T *const *a, const T *const *b, npy_intp k, T sums[FEW][MET])
{
    V sum[FEW][MET];
    memset(sum, 0, sizeof(sum));
    npy_intp p = 0;
    for (; p + STEP <= k; p += STEP) {
        V left[FEW];
        for (int r = 0; r < FEW; r++) {
            left[r] = NAME(load)(a[r] + p);
        }
        for (int c = 0; c < MET; c++) {
            const V right = NAME(load)(b[c] + p);
            for (int r = 0; r < FEW; r++) {
                sum[r][c] += left[r] * right;
            }
        }
    }
    for (int r = 0; r < FEW; r++) {
        for (int c = 0; c < MET; c++) {
            sums[r][c] = NAME(added_up)(sum[r][c]);
            for (npy_intp i = p; i < k; i++) {
                sums[r][c] += a[r][i] * b[c][i];
            }
        }
    }
}

/* out (m, n) = left (m, k) times the transposed right (n, k), whose rows lie so many elements apart. */
static TARGET void NAME(few_by_rows)(const void *left, npy_intp a_row, const void *right, npy_intp b_row, void *result, npy_intp out_row,
                                     npy_intp m, npy_intp k, npy_intp n)
{
    T *out = result;
    for (npy_intp j = 0; j < n; j += MET) {
        for (npy_intp i = 0; i < m; i += FEW) {
            const T *a[FEW], *b[MET];
            T sums[FEW][MET];
            /* Beyond the last row that one again. */
            for (int r = 0; r < FEW; r++) {
                a[r] = (const T *)left + (i + r < m ? i + r : m - 1) * a_row;
            }
            for (int c = 0; c < MET; c++) {
                b[c] = (const T *)right + (j + c < n ? j + c : n - 1) * b_row;
            }
            NAME(meet)(a, b, k, sums);
            for (int r = 0; r < FEW && i + r < m; r++) {
                for (int c = 0; c < MET && j + c < n; c++) {
                    out[(i + r) * out_row + j + c] = sums[r][c];
                }
            }
        }
    }
}
#endif

static TARGET void NAME(outer_rows)(const void *left, const void *right, void *result, npy_intp m, npy_intp n)
{
    const T *a = left, *restrict b = right;
    T *restrict out = result;
    for (npy_intp i = 0; i < m; i++, out += n) {
        const T factor = a[i];
        for (npy_intp j = 0; j < n; j++) {
            out[j] = factor * b[j];
        }
    }
}

#undef FEW
#undef MET
