/* The checksum of records in archives (CRC-32 of the polynomial 0x04C11DB7, bits reflected), by products without carries: blocks of 64 bytes are folded
 * into the next ones, which takes a tenth of the time that tables take. The constants are powers of x modulo the polynomial.
 */
#include "native.h"

#if HAS_WIDE
#include <immintrin.h>

#define FOLDS __attribute__((target("sse4.1,pclmul")))

static npy_uint32 table[256];

static npy_uint32 by_table(npy_uint32 crc, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        crc = table[(crc ^ bytes[i]) & 255] ^ (crc >> 8);
    }
    return crc;
}

FOLDS static inline __m128i folded(__m128i x, __m128i by, __m128i next)
{
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11)), next);
}

/* Of whole blocks of 16 bytes, at least four. */
FOLDS static npy_uint32 by_folds(npy_uint32 crc, const unsigned char *bytes, size_t n)
{
    const __m128i *at = (const __m128i *)bytes, *end = at + n / 16;
    const __m128i by_four = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4), by_one = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i low = _mm_set_epi32(0, -1, 0, -1), last = _mm_set_epi64x(0, 0x0163cd6124), divisor = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    __m128i x[4];
    for (int i = 0; i < 4; i++) {
        x[i] = _mm_loadu_si128(at++);
    }
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
    for (; end - at >= 4; at += 4) {
        for (int i = 0; i < 4; i++) {
            x[i] = folded(x[i], by_four, _mm_loadu_si128(at + i));
        }
    }
    __m128i sum = x[0];
    for (int i = 1; i < 4; i++) {
        sum = folded(sum, by_one, x[i]);
    }
    for (; at < end; at++) {
        sum = folded(sum, by_one, _mm_loadu_si128(at));
    }
    /* From 128 bits to 64, to 32, and the rest of a division (Barrett). */
    sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by_one, 0x10));
    sum = _mm_xor_si128(_mm_srli_si128(sum, 4), _mm_clmulepi64_si128(_mm_and_si128(sum, low), last, 0x00));
    __m128i whole = _mm_clmulepi64_si128(_mm_and_si128(sum, low), divisor, 0x10);
    sum = _mm_xor_si128(sum, _mm_clmulepi64_si128(_mm_and_si128(whole, low), divisor, 0x00));
    return (npy_uint32)_mm_extract_epi32(sum, 1);
}

static int is_ready(void)
{
    if (table[1] == 0 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
        for (npy_uint32 i = 0; i < 256; i++) {
            npy_uint32 crc = i;
            for (int bit = 0; bit < 8; bit++) {
                crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
            }
            table[i] = crc;
        }
    }
    return table[1] != 0;
}

static npy_uint32 checksum_of(const unsigned char *bytes, size_t n, npy_uint32 start)
{
    const size_t whole = n < 64 ? 0 : n - n % 16;
    npy_uint32 crc = ~start;
    if (whole) {
        crc = by_folds(crc, bytes, whole);
    }
    return ~by_table(crc, bytes + whole, n - whole);
}
#endif

/* crc32(buffer, start=0), as zlib's; None where the processor has no such products. */
PyObject *crc32_of(PyObject *module, PyObject *args)
{
    Py_buffer buffer;
    unsigned int start = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*|I:crc32", &buffer, &start)) {
        return NULL;
    }
    PyObject *made = Py_NewRef(Py_None);
#if HAS_WIDE
    if (is_ready()) {
        npy_uint32 crc;
        Py_BEGIN_ALLOW_THREADS
        crc = checksum_of(buffer.buf, (size_t)buffer.len, start);
        Py_END_ALLOW_THREADS
        Py_DECREF(made);
        made = PyLong_FromUnsignedLong(crc);
    }
#endif
    PyBuffer_Release(&buffer);
    return made;
}
