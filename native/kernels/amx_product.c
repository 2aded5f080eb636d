/* Products of bfloat16 matrices by the tiles of processors that have them (AMX): 16 rows by 16 columns are summed in float32, 32 elements of k at a time.
 *
 * Rows of a are copied so that 16 of them, of 32 elements, follow each other; of b, two elements of k lie side by side for each of 32 columns. What is
 * beyond the matrices is zero.
 */
#include "../runtime/extents.h"
#include "gemm.h"
#include "product.h"

#if HAS_WIDE && defined(__linux__) && (!defined(__GNUC__) || defined(__clang__) || __GNUC__ >= 11)
#define HAS_AMX 1
#else
#define HAS_AMX 0
#endif

#if HAS_AMX
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")))
#define REQUEST_PERMISSION 0x1023 /* ARCH_REQ_XCOMP_PERM of arch_prctl(2) */
#define TILE_DATA 18
#define DEPTH 32             /* elements of k that a tile has */
#define SIDE 32              /* rows and columns of a block of the result: two tiles each way */
#define LEAST_PRODUCTS 32768 /* below, conversions to float32 are as quick */
#define LEAST_ROWS 4

/* The system saves tiles only for processes that have asked. */
static int has_amx(void)
{
    static int answer = -1;
    if (answer < 0) {
        unsigned a, b, c, d;
        const int built = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1);
        answer = built && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
    }
    return answer && S.vectors == 2;
}

typedef struct {
    const npy_uint16 *a, *b; /* as they are */
    npy_intp m, n, k, a_row, a_k, b_row, b_column, steps; /* strides in elements; steps of DEPTH */
    npy_uint16 *rows;        /* a as tiles: block, step, row */
    npy_uint16 *columns;     /* b as tiles: block, pair, column */
    const float *shift;      /* n elements, or NULL */
    char *result;            /* dense */
    int width;               /* bytes of its elements: of bfloat16, or of float32 */
} Tiles;

/* Blocks of SIDE rows of a. */
static void some_blocks_of_rows(void *work, npy_intp begin, npy_intp end)
{
    const Tiles *t = work;
    for (npy_intp i = begin * SIDE; i < end * SIDE; i++) {
        npy_uint16 *to = t->rows + (i / SIDE * t->steps * SIDE + i / 16 % 2 * 16 + i % 16) * DEPTH;
        for (npy_intp s = 0; s < t->steps; s++, to += SIDE * DEPTH) {
            const npy_intp left = i < t->m ? t->k - s * DEPTH : 0, some = left < DEPTH ? left : DEPTH;
            const npy_uint16 *from = t->a + i * t->a_row + s * DEPTH * t->a_k;
            if (t->a_k == 1 && some > 0) {
                memcpy(to, from, (size_t)some * 2);
            }
            else {
                for (npy_intp p = 0; p < some; p++) {
                    to[p] = from[p * t->a_k];
                }
            }
            memset(to + some, 0, (size_t)(DEPTH - some) * 2);
        }
    }
}

/* Blocks of SIDE columns of b. */
WIDEST static void some_blocks_of_columns(void *work, npy_intp begin, npy_intp end)
{
    const Tiles *t = work;
    for (npy_intp block = begin; block < end; block++) {
        const npy_intp j = block * SIDE, some = t->n - j < SIDE ? t->n - j : SIDE, pairs = t->steps * DEPTH / 2;
        npy_uint16 *to = t->columns + block * pairs * SIDE * 2;
        const npy_uint16 *from = t->b + j * t->b_column;
        npy_intp p = 0;
        if (t->b_row == 1 && t->b_column % 2 == 0 && (size_t)from % 4 == 0) { /* pairs are words, which are turned as floats are */
            p = t->k / 2;
            for (npy_intp half = 0; half < SIDE; half += 16) {
                const npy_intp rows = some - half < 0 ? 0 : some - half < 16 ? some - half : 16;
                turn((const float *)(from + half * t->b_column), t->b_column / 2, rows, p, (float *)(to + half * 2), SIDE, 16);
            }
        }
        for (; p < pairs; p++) {
            const npy_uint16 *first = from + 2 * p * t->b_row, *second = first + t->b_row;
            npy_uint16 *pair = to + p * SIDE * 2;
            const npy_intp both = 2 * p + 1 < t->k ? some : 0, one = 2 * p < t->k ? some : 0;
            if (t->b_column == 1 && both == SIDE) {
                for (npy_intp i = 0; i < SIDE; i++) {
                    pair[2 * i] = first[i];
                    pair[2 * i + 1] = second[i];
                }
                continue;
            }
            for (npy_intp i = 0; i < SIDE; i++) {
                pair[2 * i] = i < one ? first[i * t->b_column] : 0;
                pair[2 * i + 1] = i < both ? second[i * t->b_column] : 0;
            }
        }
    }
}

/* Rounds to the nearest bfloat16, ties to even; NaN stays NaN. */
AMX static inline void put_row(const float *sums, const float *shift, char *to, int width, npy_intp n)
{
    for (npy_intp j = 0; j < n; j += 16) {
        const __mmask16 mask = n - j < 16 ? (__mmask16)((1U << (n - j)) - 1) : 0xFFFF;
        __m512 x = _mm512_loadu_ps(sums + j);
        if (shift != NULL) {
            x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, shift + j));
        }
        if (width == 4) {
            _mm512_mask_storeu_ps((float *)to + j, mask, x);
            continue;
        }
        const __m512i bits = _mm512_castps_si512(x), odd = _mm512_and_epi32(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
        rounded = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_epi32(0x7FC0));
        _mm512_mask_cvtepi32_storeu_epi16((npy_uint16 *)to + j, mask, rounded);
    }
}

typedef struct {
    npy_uint8 palette, start, zero[14];
    npy_uint16 bytes[16];
    npy_uint8 rows[16];
} Shapes;

/* Blocks of SIDE columns of the result. */
AMX static void some_results(void *work, npy_intp begin, npy_intp end)
{
    const Tiles *t = work;
    Shapes shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shapes.bytes[i] = 64;
        shapes.rows[i] = 16;
    }
    float sums[SIDE * SIDE] __attribute__((aligned(64)));
    _tile_loadconfig(&shapes);
    for (npy_intp block = begin; block < end; block++) {
        const npy_intp columns = t->n - block * SIDE < SIDE ? t->n - block * SIDE : SIDE;
        for (npy_intp i = 0; i < t->m; i += SIDE) {
            const npy_uint16 *a = t->rows + i * t->steps * DEPTH, *b = t->columns + block * t->steps * DEPTH * SIDE;
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
            for (npy_intp s = 0; s < t->steps; s++, a += SIDE * DEPTH, b += SIDE * DEPTH) {
                _tile_loadd(4, a, 64);
                _tile_loadd(5, a + 16 * DEPTH, 64);
                _tile_loadd(6, b, SIDE * 4);
                _tile_loadd(7, b + 32, SIDE * 4);
                _tile_dpbf16ps(0, 4, 6);
                _tile_dpbf16ps(1, 4, 7);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
            _tile_stored(0, sums, SIDE * 4);
            _tile_stored(1, sums + 16, SIDE * 4);
            _tile_stored(2, sums + 16 * SIDE, SIDE * 4);
            _tile_stored(3, sums + 16 * SIDE + 16, SIDE * 4);
            for (npy_intp r = i; r < t->m && r < i + SIDE; r++) {
                put_row(sums + (r - i) * SIDE, t->shift == NULL ? NULL : t->shift + block * SIDE, t->result + (r * t->n + block * SIDE) * t->width,
                        t->width, columns);
            }
        }
    }
    _tile_release();
}

static int in_elements(const npy_intp *steps, npy_intp *found)
{
    found[0] = steps[0] / 2;
    found[1] = steps[1] / 2;
    return steps[0] % 2 == 0 && steps[1] % 2 == 0;
}

PyObject *amx_product(const Product *p, PyObject *added, PyArray_Descr *descr)
{
    Tiles t = {.m = p->m, .n = p->n, .k = p->k, .steps = (p->k + DEPTH - 1) / DEPTH, .width = (int)PyDataType_ELSIZE(descr)};
    npy_intp a[2], b[2];
    if (PyArray_DESCR(p->left) != S.descr_bfloat16 || PyArray_DESCR(p->right) != S.descr_bfloat16 || p->m < LEAST_ROWS || !p->count || !p->k ||
        p->m * p->n * p->k < LEAST_PRODUCTS || !in_elements(p->a, a) || !in_elements(p->b, b) || !has_amx()) {
        return NULL;
    }
    if (added != Py_None && (!is_array(added) || PyArray_DESCR((PyArrayObject *)added) != S.descr_bfloat16 ||
                             PyArray_NDIM((PyArrayObject *)added) != 1 || PyArray_DIM((PyArrayObject *)added, 0) != p->n)) {
        return NULL;
    }
    t.a_row = a[0], t.a_k = a[1], t.b_row = b[0], t.b_column = b[1];
    const npy_intp high = (p->m + SIDE - 1) / SIDE, wide = (p->n + SIDE - 1) / SIDE;
    const npy_intp of_rows = high * SIDE * t.steps * DEPTH, of_columns = wide * SIDE * t.steps * DEPTH;
    npy_uint16 *space = scratch_take((size_t)(of_rows + of_columns + 2 * p->n) * sizeof(npy_uint16));
    PyObject *out = space == NULL ? PyErr_NoMemory() : new_array(p->ndim, p->dims, descr);
    if (out == NULL) {
        scratch_give(space);
        return NULL;
    }
    t.rows = space;
    t.columns = space + of_rows;
    float *shift = (float *)(t.columns + of_columns);
    for (npy_intp j = 0; added != Py_None && j < p->n; j++) {
        const npy_uint32 bits = (npy_uint32) * (const npy_uint16 *)(PyArray_BYTES((PyArrayObject *)added) + j * PyArray_STRIDE((PyArrayObject *)added, 0))
                                << 16;
        memcpy(shift + j, &bits, 4);
    }
    t.shift = added == Py_None ? NULL : shift;
    const char *left = PyArray_BYTES(p->left), *right = PyArray_BYTES(p->right);
    npy_intp at[MAX_DIMS] = {0};
    PyThreadState *thread = PyEval_SaveThread();
    for (npy_intp i = 0; i < p->count; i++) {
        const int same_a = i && (const npy_uint16 *)left == t.a, same_b = i && (const npy_uint16 *)right == t.b;
        t.a = (const npy_uint16 *)left;
        t.b = (const npy_uint16 *)right;
        t.result = PyArray_BYTES((PyArrayObject *)out) + i * p->m * p->n * t.width;
        if (!same_a) {
            in_parts(some_blocks_of_rows, &t, high, grain_of(t.steps * DEPTH * SIDE / 8));
        }
        if (!same_b) {
            in_parts(some_blocks_of_columns, &t, wide, grain_of(t.steps * DEPTH * SIDE / 4));
        }
        in_parts(some_results, &t, wide, grain_of(high * t.steps * SIDE * DEPTH / 8));
        advance(p, at, &left, &right);
    }
    PyEval_RestoreThread(thread);
    scratch_give(space);
    return out;
}
#else
PyObject *amx_product(const Product *p, PyObject *added, PyArray_Descr *descr)
{
    (void)p;
    (void)added;
    (void)descr;
    return NULL;
}
#endif
