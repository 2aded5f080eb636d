/* Products of float16 and bfloat16 matrices with few vectors: each element of the matrix is read once and becomes float32 in a register, since memory
 * is what such a product waits for. Larger ones are worth a copy in float32 and the BLAS.
 */
#include "../runtime/plan.h"
#include "product.h"

#define MOST_VECTORS 8 /* with more, the BLAS */
#define TOGETHER 4     /* vectors that meet an element of the matrix at once */

/* ------------------------------------------------------------------------------------------------------------ portable */

static void plain_row(Row widen, const npy_uint16 *row, const float *const *vector, int vectors, npy_intp n, float *out, npy_intp step)
{
    float space[512];
    double sum[TOGETHER] = {0};
    for (npy_intp first = 0; first < n; first += 512) {
        npy_intp count = n - first < 512 ? n - first : 512;
        widen((char *)space, 4, (const char *)(row + first), 2, count);
        for (int v = 0; v < vectors; v++) {
            float part[8] = {0};
            for (npy_intp i = 0; i < count; i++) {
                part[i & 7] += space[i] * vector[v][first + i];
            }
            sum[v] += ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
        }
    }
    for (int v = 0; v < vectors; v++) {
        out[v * step] = (float)sum[v];
    }
}

/* -------------------------------------------------------------------------------------------------------------- AVX2 */

#if HAS_WIDE
#include <immintrin.h>

#define HALF_WIDE __attribute__((target("avx2,fma,bmi2,f16c")))
#define LOAD_F16(at) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(at)))
#define LOAD_B16(at) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(at))), 16))

HALF_WIDE static inline float lanes_sum(__m256 x)
{
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

/* The last elements, fewer than a vector, come padded with zeros. */
#define WIDE_ROWS(name, LOAD)                                                                                                              \
    HALF_WIDE static void name##_one(const npy_uint16 *row, const float *const *vector, npy_intp n, float *out, npy_intp step)             \
    {                                                                                                                                      \
        const float *x = vector[0];                                                                                                        \
        __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;                                                                               \
        npy_intp i = 0;                                                                                                                    \
        (void)step;                                                                                                                        \
        for (; i + 32 <= n; i += 32) {                                                                                                     \
            a = _mm256_fmadd_ps(LOAD(row + i), _mm256_loadu_ps(x + i), a);                                                                 \
            b = _mm256_fmadd_ps(LOAD(row + i + 8), _mm256_loadu_ps(x + i + 8), b);                                                         \
            c = _mm256_fmadd_ps(LOAD(row + i + 16), _mm256_loadu_ps(x + i + 16), c);                                                       \
            d = _mm256_fmadd_ps(LOAD(row + i + 24), _mm256_loadu_ps(x + i + 24), d);                                                       \
        }                                                                                                                                  \
        for (; i + 8 <= n; i += 8) {                                                                                                       \
            a = _mm256_fmadd_ps(LOAD(row + i), _mm256_loadu_ps(x + i), a);                                                                 \
        }                                                                                                                                  \
        if (i < n) {                                                                                                                       \
            npy_uint16 rest[8] = {0};                                                                                                      \
            memcpy(rest, row + i, (size_t)(n - i) * 2);                                                                                    \
            b = _mm256_fmadd_ps(LOAD(rest), _mm256_loadu_ps(x + i), b);                                                                    \
        }                                                                                                                                  \
        *out = lanes_sum(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));                                                         \
    }                                                                                                                                      \
                                                                                                                                           \
    HALF_WIDE static void name##_four(const npy_uint16 *row, const float *const *vector, npy_intp n, float *out, npy_intp step)            \
    {                                                                                                                                      \
        __m256 sum[2 * TOGETHER];                                                                                                          \
        npy_intp i = 0;                                                                                                                    \
        for (int v = 0; v < 2 * TOGETHER; v++) {                                                                                           \
            sum[v] = _mm256_setzero_ps();                                                                                                  \
        }                                                                                                                                  \
        for (; i + 16 <= n; i += 16) {                                                                                                     \
            const __m256 low = LOAD(row + i), high = LOAD(row + i + 8);                                                                    \
            for (int v = 0; v < TOGETHER; v++) {                                                                                           \
                sum[v] = _mm256_fmadd_ps(low, _mm256_loadu_ps(vector[v] + i), sum[v]);                                                     \
                sum[TOGETHER + v] = _mm256_fmadd_ps(high, _mm256_loadu_ps(vector[v] + i + 8), sum[TOGETHER + v]);                          \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (; i < n; i += 8) {                                                                                                            \
            npy_uint16 rest[8] = {0};                                                                                                      \
            memcpy(rest, row + i, (size_t)(n - i < 8 ? n - i : 8) * 2);                                                                    \
            const __m256 last = LOAD(rest);                                                                                                \
            for (int v = 0; v < TOGETHER; v++) {                                                                                           \
                sum[v] = _mm256_fmadd_ps(last, _mm256_loadu_ps(vector[v] + i), sum[v]);                                                    \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (int v = 0; v < TOGETHER; v++) {                                                                                               \
            out[v * step] = lanes_sum(_mm256_add_ps(sum[v], sum[TOGETHER + v]));                                                           \
        }                                                                                                                                  \
    }

WIDE_ROWS(f16, LOAD_F16)
WIDE_ROWS(b16, LOAD_B16)
#endif

/* ------------------------------------------------------------------------------------------------------------ the walk */

/* One matrix of `rows` rows, which lie `apart` bytes from each other, times vectors: out[r * to_row + v * to_vector]. */
static void rows_by_vectors(Row widen, int bfloat, const char *matrix, npy_intp apart, npy_intp rows, npy_intp n, const float *const *vector,
                            int vectors, float *out, npy_intp to_row, npy_intp to_vector)
{
    for (npy_intp r = 0; r < rows; r++) {
        const npy_uint16 *row = (const npy_uint16 *)(matrix + r * apart);
        for (int v = 0; v < vectors;) {
            float *to = out + r * to_row + v * to_vector;
            const int many = vectors - v >= TOGETHER;
#if HAS_WIDE
            if (S.vectors > 0) {
                (many ? bfloat ? b16_four : f16_four : bfloat ? b16_one : f16_one)(row, vector + v, n, to, to_vector);
                v += many ? TOGETHER : 1;
                continue;
            }
#endif
            plain_row(widen, row, vector + v, many ? TOGETHER : 1, n, to, to_vector);
            v += many ? TOGETHER : 1;
        }
    }
}

typedef struct {
    Row widen;
    int bfloat, vectors;
    const char *matrix;
    npy_intp apart, n;
    const float *const *vector;
    float *out;
    npy_intp to_row, to_vector;
} HalfRows;

static void half_part(void *work, npy_intp begin, npy_intp end)
{
    const HalfRows *all = work;
    rows_by_vectors(all->widen, all->bfloat, all->matrix + begin * all->apart, all->apart, end - begin, all->n, all->vector, all->vectors,
                    all->out + begin * all->to_row, all->to_row, all->to_vector);
}

PyObject *half_product(const Product *p, PyObject *added)
{
    Row widen;
    npy_intp k = p->k, padded = (k + 7) / 8 * 8, total = p->count * p->m * p->n;
    /* The matrix has its elements side by side along k; the vectors are what the other one has few of. */
    const int right = p->b[0] == 2 && p->m <= MOST_VECTORS, left = !right && p->a[1] == 2 && p->n <= MOST_VECTORS;
    if (kind_widened((PyObject *)p->left, &widen) < 0 || widen == NULL || PyArray_DESCR(p->left) != PyArray_DESCR(p->right) || (!right && !left) ||
        !total || !k) {
        return NULL;
    }
    if (added != Py_None && (!is_array(added) || PyArray_DESCR((PyArrayObject *)added) != PyArray_DESCR(p->left) || PyArray_NDIM((PyArrayObject *)added) != 1 ||
                             PyArray_DIM((PyArrayObject *)added, 0) != p->n)) {
        return NULL;
    }
    const int vectors = (int)(right ? p->m : p->n);
    float *space = PyMem_RawCalloc((size_t)(vectors * padded), sizeof(float));
    PyObject *out = space == NULL ? PyErr_NoMemory() : new_array(p->ndim, p->dims, S.descr32);
    if (out == NULL) {
        PyMem_RawFree(space);
        return NULL;
    }
    const float *vector[MOST_VECTORS];
    for (int v = 0; v < vectors; v++) {
        vector[v] = space + v * padded;
    }
    const char *a = PyArray_BYTES(p->left), *b = PyArray_BYTES(p->right);
    float *result = PyArray_DATA((PyArrayObject *)out);
    npy_intp at[MAX_DIMS] = {0};
    PyThreadState *thread = total * k >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; i < p->count; i++, result += p->m * p->n) {
        for (int v = 0; v < vectors; v++) {
            widen((char *)vector[v], 4, right ? a + v * p->a[0] : b + v * p->b[1], right ? p->a[1] : p->b[0], k);
        }
        HalfRows all = {widen, PyArray_DESCR(p->left) == S.descr_bfloat16, vectors, right ? b : a, right ? p->b[1] : p->a[0], k, vector, result,
                        right ? 1 : p->n, right ? p->n : 1};
        in_parts(half_part, &all, right ? p->n : p->m, grain_of(k * (vectors + 1) / 2));
        if (added != Py_None) {
            for (npy_intp j = 0; j < p->n; j++) {
                float one;
                widen((char *)&one, 4, PyArray_BYTES((PyArrayObject *)added) + j * PyArray_STRIDE((PyArrayObject *)added, 0), 2, 1);
                for (npy_intp r = 0; r < p->m; r++) {
                    result[r * p->n + j] += one;
                }
            }
        }
        advance(p, at, &a, &b);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    PyMem_RawFree(space);
    Py_SETREF(out, (PyObject *)converted((PyArrayObject *)out, PyArray_DESCR(p->left))); /* no short cut casts what a kernel gives */
    return out;
}
