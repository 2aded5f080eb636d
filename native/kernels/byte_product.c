/* Products of few vectors with a matrix of bytes that has a scale for each row: each byte is read once and becomes float32 in a register, since memory is what
 * such a product waits for. The Python kernel of `matmul.py` says the same; larger products are left to it, and to the BLAS.
 */
#include "../runtime/plan.h"
#include "kinds.h"

#define MOST_VECTORS 8
#define TOGETHER 4 /* vectors that meet an element of the matrix at once */
#define ROWS 4     /* rows that meet an element of the vectors at once */

/* `vectors` (at most TOGETHER) sums of a row of n bytes, which is followed by none that may be read. */
typedef void (*ByteRow)(const npy_int8 *row, const float *const *vector, int vectors, npy_intp n, float *sums);

static void plain_row(const npy_int8 *row, const float *const *vector, int vectors, npy_intp n, float *sums)
{
    for (int v = 0; v < vectors; v++) {
        float part[8] = {0};
        for (npy_intp i = 0; i < n; i++) {
            part[i & 7] += (float)row[i] * vector[v][i];
        }
        sums[v] = ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
    }
}

#if HAS_WIDE
#include <immintrin.h>

#define BYTES_WIDE __attribute__((target("avx2,fma")))
#define BYTES_WIDEST __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))

BYTES_WIDE static inline float lanes_sum(__m256 x)
{
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

#define EIGHT(at) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(at))))
#define SIXTEEN(at) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(at))))

#define BY_COUNT(function)                                                                                                                 \
    switch (vectors) {                                                                                                                     \
    case 1:                                                                                                                                \
        function(row, vector, 1, n, sums);                                                                                                 \
        break;                                                                                                                             \
    case 2:                                                                                                                                \
        function(row, vector, 2, n, sums);                                                                                                 \
        break;                                                                                                                             \
    case 3:                                                                                                                                \
        function(row, vector, 3, n, sums);                                                                                                 \
        break;                                                                                                                             \
    default:                                                                                                                               \
        function(row, vector, TOGETHER, n, sums);                                                                                          \
    }

/* The last elements, fewer than a vector. */
static inline float rest_of(const npy_int8 *row, const float *x, npy_intp from, npy_intp n)
{
    float sum = 0;
    for (npy_intp i = from; i < n; i++) {
        sum += (float)row[i] * x[i];
    }
    return sum;
}

/* Inlined with a number of vectors that the compiler knows, so that the sums stay in registers. */
BYTES_WIDE static inline __attribute__((always_inline)) void wide_sums(const npy_int8 *row, const float *const *vector, const int vectors, npy_intp n,
                                                                       float *sums)
{
    npy_intp i = 0;
    if (vectors == 1) {
        const float *x = vector[0];
        __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
        for (; i + 32 <= n; i += 32) {
            a = _mm256_fmadd_ps(EIGHT(row + i), _mm256_loadu_ps(x + i), a);
            b = _mm256_fmadd_ps(EIGHT(row + i + 8), _mm256_loadu_ps(x + i + 8), b);
            c = _mm256_fmadd_ps(EIGHT(row + i + 16), _mm256_loadu_ps(x + i + 16), c);
            d = _mm256_fmadd_ps(EIGHT(row + i + 24), _mm256_loadu_ps(x + i + 24), d);
        }
        sums[0] = lanes_sum(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d))) + rest_of(row, x, i, n);
        return;
    }
    __m256 sum[2 * TOGETHER];
    for (int v = 0; v < 2 * TOGETHER; v++) {
        sum[v] = _mm256_setzero_ps();
    }
    for (; i + 16 <= n; i += 16) {
        const __m256 low = EIGHT(row + i), high = EIGHT(row + i + 8);
        for (int v = 0; v < vectors; v++) {
            sum[v] = _mm256_fmadd_ps(low, _mm256_loadu_ps(vector[v] + i), sum[v]);
            sum[TOGETHER + v] = _mm256_fmadd_ps(high, _mm256_loadu_ps(vector[v] + i + 8), sum[TOGETHER + v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        sums[v] = lanes_sum(_mm256_add_ps(sum[v], sum[TOGETHER + v])) + rest_of(row, vector[v], i, n);
    }
}

BYTES_WIDE static void wide_row(const npy_int8 *row, const float *const *vector, int vectors, npy_intp n, float *sums)
{
    BY_COUNT(wide_sums);
}

BYTES_WIDEST static inline __attribute__((always_inline)) void widest_sums(const npy_int8 *row, const float *const *vector, const int vectors, npy_intp n,
                                                                           float *sums)
{
    npy_intp i = 0;
    if (vectors == 1) {
        const float *x = vector[0];
        __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
        for (; i + 64 <= n; i += 64) {
            a = _mm512_fmadd_ps(SIXTEEN(row + i), _mm512_loadu_ps(x + i), a);
            b = _mm512_fmadd_ps(SIXTEEN(row + i + 16), _mm512_loadu_ps(x + i + 16), b);
            c = _mm512_fmadd_ps(SIXTEEN(row + i + 32), _mm512_loadu_ps(x + i + 32), c);
            d = _mm512_fmadd_ps(SIXTEEN(row + i + 48), _mm512_loadu_ps(x + i + 48), d);
        }
        sums[0] = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d))) + rest_of(row, x, i, n);
        return;
    }
    __m512 sum[TOGETHER];
    for (int v = 0; v < TOGETHER; v++) {
        sum[v] = _mm512_setzero_ps();
    }
    for (; i + 16 <= n; i += 16) {
        const __m512 weight = SIXTEEN(row + i);
        for (int v = 0; v < vectors; v++) {
            sum[v] = _mm512_fmadd_ps(weight, _mm512_loadu_ps(vector[v] + i), sum[v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        sums[v] = _mm512_reduce_add_ps(sum[v]) + rest_of(row, vector[v], i, n);
    }
}

/* Four rows, so that an element of the vectors, which may not fit the first cache, is loaded once for them; the sums are those of widest_row. */
BYTES_WIDEST static inline __attribute__((always_inline)) void widest_tile(const npy_int8 *row, const float *const *vector, const int vectors, npy_intp n,
                                                                           float *sums)
{
    __m512 sum[ROWS][TOGETHER];
    npy_intp i = 0;
    for (int r = 0; r < ROWS; r++) {
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = _mm512_setzero_ps();
        }
    }
    for (; i + 16 <= n; i += 16) {
        __m512 x[TOGETHER];
        for (int v = 0; v < vectors; v++) {
            x[v] = _mm512_loadu_ps(vector[v] + i);
        }
        for (int r = 0; r < ROWS; r++) {
            const __m512 weight = SIXTEEN(row + r * n + i);
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = _mm512_fmadd_ps(weight, x[v], sum[r][v]);
            }
        }
    }
    for (int r = 0; r < ROWS; r++) {
        for (int v = 0; v < vectors; v++) {
            sums[r * TOGETHER + v] = _mm512_reduce_add_ps(sum[r][v]) + rest_of(row + r * n, vector[v], i, n);
        }
    }
}

BYTES_WIDEST static void widest_rows(const npy_int8 *row, const float *const *vector, int vectors, npy_intp n, float *sums)
{
    BY_COUNT(widest_tile);
}

BYTES_WIDEST static void widest_row(const npy_int8 *row, const float *const *vector, int vectors, npy_intp n, float *sums)
{
    BY_COUNT(widest_sums);
}
#endif

static ByteRow row_for_processor(void)
{
#if HAS_WIDE
    if (S.vectors > 0) {
        return S.vectors > 1 ? widest_row : wide_row;
    }
#endif
    return plain_row;
}

/* Rows `first` to `last` of the matrix: out[v * rows + r] for each vector v. */
static void some_rows(const npy_int8 *matrix, const float *scale, npy_intp first, npy_intp last, npy_intp rows, npy_intp n, const float *const *vector,
                      int vectors, float *out)
{
    const ByteRow sum_row = row_for_processor();
    npy_intp r = first;
#if HAS_WIDE
    for (; S.vectors > 1 && vectors > 1 && r + ROWS <= last; r += ROWS) {
        for (int v = 0; v < vectors; v += TOGETHER) {
            float sums[ROWS * TOGETHER];
            const int count = vectors - v < TOGETHER ? vectors - v : TOGETHER;
            /* A lone vector behind others is summed as in widest_row. */
            if (count == 1) {
                for (int i = 0; i < ROWS; i++) {
                    widest_row(matrix + (r + i) * n, vector + v, 1, n, sums + i * TOGETHER);
                }
            }
            else {
                widest_rows(matrix + r * n, vector + v, count, n, sums);
            }
            for (int i = 0; i < ROWS * count; i++) {
                out[(v + i % count) * rows + r + i / count] = sums[i / count * TOGETHER + i % count] * scale[r + i / count];
            }
        }
    }
#endif
    for (; r < last; r++) {
        for (int v = 0; v < vectors; v += TOGETHER) {
            float sums[TOGETHER];
            const int count = vectors - v < TOGETHER ? vectors - v : TOGETHER;
            sum_row(matrix + r * n, vector + v, count, n, sums);
            for (int i = 0; i < count; i++) {
                out[(v + i) * rows + r] = sums[i] * scale[r];
            }
        }
    }
}

/* self, mat2, scales */
static PyObject *byte_product_kernel(PyObject *const *args)
{
    Row widen, widen_scale;
    PyArrayObject *self = (PyArrayObject *)args[0], *matrix = (PyArrayObject *)args[1], *scales = (PyArrayObject *)args[2];
    if (!is_array(args[0]) || !is_array(args[1]) || !is_array(args[2]) || PyArray_NDIM(self) != 2 || PyArray_NDIM(matrix) != 2 ||
        PyArray_NDIM(scales) != 1 || PyArray_DESCR(matrix)->type_num != NPY_BYTE || !is_contiguous(matrix) || !is_contiguous(self) ||
        !is_contiguous(scales) || kind_widened(args[0], &widen) != KIND_FLOAT || kind_widened(args[2], &widen_scale) != KIND_FLOAT) {
        return NULL;
    }
    const npy_intp vectors = PyArray_DIM(self, 0), k = PyArray_DIM(self, 1), rows = PyArray_DIM(matrix, 0);
    if (vectors < 1 || vectors > MOST_VECTORS || k != PyArray_DIM(matrix, 1) || rows != PyArray_DIM(scales, 0) || rows == 0) {
        return NULL;
    }
    const npy_intp dims[2] = {vectors, rows};
    float *space = PyMem_RawMalloc((size_t)(vectors * k + rows + 1) * sizeof(float)), *scale = space + vectors * k;
    PyObject *out = space == NULL ? PyErr_NoMemory() : new_array(2, dims, S.descr32);
    if (out == NULL) {
        PyMem_RawFree(space);
        return NULL;
    }
    const float *vector[MOST_VECTORS];
    for (npy_intp v = 0; v < vectors; v++) {
        vector[v] = space + v * k;
    }
    const npy_intp item = PyArray_ITEMSIZE(self), scale_item = PyArray_ITEMSIZE(scales);
    if (widen != NULL) {
        widen((char *)space, 4, PyArray_BYTES(self), item, vectors * k);
    }
    else {
        memcpy(space, PyArray_DATA(self), (size_t)(vectors * k) * sizeof(float));
    }
    if (widen_scale != NULL) {
        widen_scale((char *)scale, 4, PyArray_BYTES(scales), scale_item, rows);
    }
    else {
        memcpy(scale, PyArray_DATA(scales), (size_t)rows * sizeof(float));
    }
    PyThreadState *thread = rows * k >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    some_rows(PyArray_DATA(matrix), scale, 0, rows, rows, k, vector, (int)vectors, PyArray_DATA((PyArrayObject *)out));
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    PyMem_RawFree(space);
    if (PyArray_DESCR(self) != S.descr32) {
        Py_SETREF(out, (PyObject *)converted((PyArrayObject *)out, PyArray_DESCR(self)));
    }
    return out;
}

const KernelEntry byte_product_kernels[] = {
    {"matmul.weight_int8pack_mm", byte_product_kernel, HALVES},
    {NULL, NULL},
};
