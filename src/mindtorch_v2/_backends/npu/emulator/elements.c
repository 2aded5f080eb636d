/* Elements of tensors: reading and writing with conversion, shapes, promotion, random numbers. */
#include "runtime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Half-precision formats, as bits. From double at once, so that nothing is rounded twice. */

static inline uint16_t to_bits16(double value, int mantissa, int bias) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 63 << 15);
    const uint16_t infinity = (uint16_t)((2 * bias + 1) << mantissa);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 1024) return sign | infinity | (fraction ? 1u << (mantissa - 1) : 0);
    if (exponent > bias) return sign | infinity;
    if (exponent < -bias - mantissa) return sign; /* below half of the least number */
    int shift = 52 - mantissa;
    uint64_t high = 0;
    if (exponent < 1 - bias) {
        fraction |= UINT64_C(1) << 52;
        shift += 1 - bias - exponent;
    } else {
        high = (uint64_t)(exponent + bias) << mantissa;
    }
    uint64_t kept = fraction >> shift, rest = fraction & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    return (uint16_t)(sign | (high + kept)); /* a carry goes into the exponent, and from the largest number to infinity */
}

static inline float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31, fraction = half & 1023, bits;
    float value;
    if (exponent == 31) {
        bits = sign | 0x7f800000 | fraction << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float bf16_to_float(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t double_to_half(double value) { return to_bits16(value, 10, 15); }
static inline uint16_t double_to_bf16(double value) { return to_bits16(value, 7, 127); }

EM_API float aclFloat16ToFloat(aclFloat16 value) { return half_to_float(value); }
EM_API aclFloat16 aclFloatToFloat16(float value) { return double_to_half(value); }

/* To integers as C truncates; what has no integer gives the most negative one. */
static inline int64_t to_integer(double value) {
    if (value >= -0x1p63 && value < 0x1p63) return (int64_t)value;
    if (value >= 0x1p63 && value < 0x1p64) return (int64_t)(uint64_t)value;
    return INT64_MIN;
}

/* Shapes and dtypes */

size_t em_item_size(aclDataType dtype) {
    switch (dtype) {
    case ACL_INT8: case ACL_UINT8: case ACL_BOOL: return 1;
    case ACL_FLOAT16: case ACL_BF16: case ACL_INT16: case ACL_UINT16: return 2;
    case ACL_FLOAT: case ACL_INT32: case ACL_UINT32: return 4;
    case ACL_INT64: case ACL_UINT64: case ACL_DOUBLE: case ACL_COMPLEX64: return 8;
    case ACL_COMPLEX128: return 16;
    default: return 0;
    }
}

bool em_is_floating(aclDataType dtype) { return dtype == ACL_FLOAT || dtype == ACL_FLOAT16 || dtype == ACL_BF16 || dtype == ACL_DOUBLE; }
bool em_is_complex(aclDataType dtype) { return dtype == ACL_COMPLEX64 || dtype == ACL_COMPLEX128; }
bool em_is_integral(aclDataType dtype) { return em_item_size(dtype) && dtype != ACL_BOOL && !em_is_floating(dtype) && !em_is_complex(dtype); }

static bool is_unsigned(aclDataType dtype) { return dtype == ACL_UINT8 || dtype == ACL_UINT16 || dtype == ACL_UINT32 || dtype == ACL_UINT64; }

static aclDataType promote_integers(aclDataType a, aclDataType b) {
    size_t size_a = em_item_size(a), size_b = em_item_size(b);
    if (is_unsigned(a) == is_unsigned(b)) return size_a >= size_b ? a : b;
    aclDataType without = is_unsigned(a) ? a : b, with = is_unsigned(a) ? b : a;
    size_t size = em_item_size(without);
    if (em_item_size(with) > size) return with;
    return size == 1 ? ACL_INT16 : size == 2 ? ACL_INT32 : ACL_INT64;
}

aclDataType em_promote(aclDataType a, aclDataType b) {
    if (a == b || b == ACL_DT_UNDEFINED) return a;
    if (a == ACL_DT_UNDEFINED) return b;
    if (em_is_complex(a) || em_is_complex(b)) {
        bool wide = a == ACL_COMPLEX128 || b == ACL_COMPLEX128 || a == ACL_DOUBLE || b == ACL_DOUBLE;
        return wide ? ACL_COMPLEX128 : ACL_COMPLEX64;
    }
    if (em_is_floating(a) && em_is_floating(b)) {
        if (a == ACL_DOUBLE || b == ACL_DOUBLE) return ACL_DOUBLE;
        return ACL_FLOAT; /* float32 and a half, or both halves */
    }
    if (em_is_floating(a)) return a;
    if (em_is_floating(b)) return b;
    if (a == ACL_BOOL) return b;
    if (b == ACL_BOOL) return a;
    return promote_integers(a, b);
}

int64_t em_numel(const aclTensor *tensor) {
    int64_t count = 1;
    for (int d = 0; d < tensor->ndim; d++) count *= tensor->dims[d];
    return count;
}

bool em_same_shape(const aclTensor *a, const aclTensor *b) {
    return a->ndim == b->ndim && !memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof *a->dims);
}

bool em_broadcasts(const aclTensor *a, const aclTensor *b, const aclTensor *out) {
    int ndim = b && b->ndim > a->ndim ? b->ndim : a->ndim;
    if (out->ndim != ndim) return false;
    for (int d = 0; d < ndim; d++) {
        int in_a = d - (ndim - a->ndim), in_b = b ? d - (ndim - b->ndim) : -1;
        int64_t size_a = in_a < 0 ? 1 : a->dims[in_a], size_b = in_b < 0 ? 1 : b->dims[in_b];
        if (size_a != size_b && size_a != 1 && size_b != 1) return false;
        if (out->dims[d] != (size_a == 1 ? size_b : size_a)) return false;
    }
    return true;
}

EmTensor em_expand(const EmTensor *tensor, int ndim, const int64_t *dims) {
    EmTensor seen = *tensor;
    seen.ndim = ndim;
    seen.numel = 1;
    for (int d = 0; d < ndim; d++) {
        int from = d - (ndim - tensor->ndim);
        seen.dims[d] = dims[d];
        seen.strides[d] = from < 0 || (tensor->dims[from] == 1 && dims[d] != 1) ? 0 : tensor->strides[from];
        seen.numel *= dims[d];
    }
    return seen;
}

int em_dim(const EmTensor *tensor, int64_t dim) {
    int64_t found = dim < 0 ? dim + (tensor->ndim ? tensor->ndim : 1) : dim;
    return (int)found;
}

/* Rows: the last dimensions that one stride walks through, `length` elements `step` bytes apart; `start` moves over the others. */
typedef struct Rows {
    const EmTensor *tensor;
    int outer;
    int64_t length, step, item, left;
    int64_t index[EM_MAX_DIMS];
    char *start;
} Rows;

static bool rows_begin(Rows *rows, const EmTensor *tensor) {
    *rows = (Rows){.tensor = tensor, .item = (int64_t)em_item_size(tensor->dtype), .left = tensor->numel, .length = 1, .start = tensor->data};
    int64_t stride = 1;
    int d = tensor->ndim;
    while (d > 0 && tensor->dims[d - 1] == 1) d--;
    if (d > 0) {
        stride = tensor->strides[d - 1];
        rows->length = tensor->dims[--d];
        for (; d > 0 && (tensor->dims[d - 1] == 1 || tensor->strides[d - 1] == stride * rows->length); d--) rows->length *= tensor->dims[d - 1];
    }
    rows->outer = d;
    rows->step = stride * rows->item;
    return rows->left > 0;
}

static bool rows_next(Rows *rows) {
    rows->left -= rows->length;
    if (rows->left <= 0) return false;
    for (int d = rows->outer - 1; d >= 0; d--) {
        int64_t step = rows->tensor->strides[d] * rows->item;
        rows->start += step;
        if (++rows->index[d] < rows->tensor->dims[d]) break;
        rows->start -= step * rows->tensor->dims[d];
        rows->index[d] = 0;
    }
    return true;
}

/* For each element: `p` points to it, `k` is its row-major position. */
#define EACH(TYPE, ...)                                                              \
    do {                                                                             \
        int64_t k = 0;                                                               \
        do {                                                                         \
            TYPE *p = (TYPE *)rows.start;                                            \
            if (rows.step == (int64_t)sizeof(TYPE))                                  \
                for (int64_t n = rows.length; n; n--, k++, p++) { __VA_ARGS__; }     \
            else                                                                     \
                for (int64_t n = rows.length; n; n--, k++, p = (TYPE *)((char *)p + rows.step)) { __VA_ARGS__; } \
        } while (rows_next(&rows));                                                  \
    } while (0)

#define CASES_OF_REALS(DO)                                                           \
    DO(ACL_FLOAT, float, *p)                                                         \
    DO(ACL_DOUBLE, double, *p)                                                       \
    DO(ACL_FLOAT16, uint16_t, half_to_float(*p))                                     \
    DO(ACL_BF16, uint16_t, bf16_to_float(*p))
#define CASES_OF_INTEGERS(DO)                                                        \
    DO(ACL_INT8, int8_t, *p)                                                         \
    DO(ACL_UINT8, uint8_t, *p)                                                       \
    DO(ACL_INT16, int16_t, *p)                                                       \
    DO(ACL_UINT16, uint16_t, *p)                                                     \
    DO(ACL_INT32, int32_t, *p)                                                       \
    DO(ACL_UINT32, uint32_t, *p)                                                     \
    DO(ACL_INT64, int64_t, *p)                                                       \
    DO(ACL_UINT64, uint64_t, *p)                                                     \
    DO(ACL_BOOL, uint8_t, *p != 0)

static void *elements(int64_t count, size_t size) {
    void *memory = malloc((count > 0 ? (size_t)count : 1) * size);
    if (!memory) abort();
    return memory;
}

#define REAL_CASE(DTYPE, TYPE, VALUE) case DTYPE: EACH(TYPE, values[k] = VALUE); break;
#define COMPLEX_CASES(PART)                                                          \
    case ACL_COMPLEX64: EACH(float complex, values[k] = PART(*p)); break;            \
    case ACL_COMPLEX128: EACH(double complex, values[k] = PART(*p)); break;
#define WHOLE(value) (value)

double *em_read_reals(const EmTensor *tensor) {
    double *values = elements(tensor->numel, sizeof *values);
    Rows rows;
    if (!rows_begin(&rows, tensor)) return values;
    switch (tensor->dtype) {
        CASES_OF_REALS(REAL_CASE)
        CASES_OF_INTEGERS(REAL_CASE)
        COMPLEX_CASES(creal)
    }
    return values;
}

float *em_read_floats(const EmTensor *tensor) {
    float *values = elements(tensor->numel, sizeof *values);
    Rows rows;
    if (!rows_begin(&rows, tensor)) return values;
#define FLOAT_CASE(DTYPE, TYPE, VALUE) case DTYPE: EACH(TYPE, values[k] = (float)(VALUE)); break;
    switch (tensor->dtype) {
        CASES_OF_REALS(FLOAT_CASE)
        CASES_OF_INTEGERS(FLOAT_CASE)
        COMPLEX_CASES((float)creal)
    }
    return values;
}

int64_t *em_read_integers(const EmTensor *tensor) {
    int64_t *values = elements(tensor->numel, sizeof *values);
    Rows rows;
    if (!rows_begin(&rows, tensor)) return values;
#define TRUNCATED_CASE(DTYPE, TYPE, VALUE) case DTYPE: EACH(TYPE, values[k] = to_integer(VALUE)); break;
#define INTEGER_CASE(DTYPE, TYPE, VALUE) case DTYPE: EACH(TYPE, values[k] = (int64_t)(VALUE)); break;
    switch (tensor->dtype) {
        CASES_OF_REALS(TRUNCATED_CASE)
        CASES_OF_INTEGERS(INTEGER_CASE)
        case ACL_COMPLEX64: EACH(float complex, values[k] = to_integer(creal(*p))); break;
        case ACL_COMPLEX128: EACH(double complex, values[k] = to_integer(creal(*p))); break;
    }
    return values;
}

double complex *em_read_complex(const EmTensor *tensor) {
    double complex *values = elements(tensor->numel, sizeof *values);
    Rows rows;
    if (!rows_begin(&rows, tensor)) return values;
    switch (tensor->dtype) {
        CASES_OF_REALS(REAL_CASE)
        CASES_OF_INTEGERS(REAL_CASE)
        COMPLEX_CASES(WHOLE)
    }
    return values;
}

/* Writing: VALUE is of the source's type; REAL gives a double of it, INTEGER an int64_t, TRUTH whether it is not zero, COMPLEX the whole. */
#define WRITE_CASES(REAL, INTEGER, TRUTH, COMPLEX)                                               \
    switch (tensor->dtype) {                                                                     \
    case ACL_FLOAT: EACH(float, *p = (float)(REAL)); break;                                      \
    case ACL_DOUBLE: EACH(double, *p = (double)(REAL)); break;                                   \
    case ACL_FLOAT16: EACH(uint16_t, *p = double_to_half((double)(REAL))); break;                \
    case ACL_BF16: EACH(uint16_t, *p = double_to_bf16((double)(REAL))); break;                   \
    case ACL_INT8: EACH(int8_t, *p = (int8_t)(INTEGER)); break;                                  \
    case ACL_UINT8: EACH(uint8_t, *p = (uint8_t)(INTEGER)); break;                               \
    case ACL_INT16: EACH(int16_t, *p = (int16_t)(INTEGER)); break;                               \
    case ACL_UINT16: EACH(uint16_t, *p = (uint16_t)(INTEGER)); break;                            \
    case ACL_INT32: EACH(int32_t, *p = (int32_t)(INTEGER)); break;                               \
    case ACL_UINT32: EACH(uint32_t, *p = (uint32_t)(INTEGER)); break;                            \
    case ACL_INT64: EACH(int64_t, *p = (INTEGER)); break;                                        \
    case ACL_UINT64: EACH(uint64_t, *p = (uint64_t)(INTEGER)); break;                            \
    case ACL_BOOL: EACH(uint8_t, *p = (TRUTH)); break;                                           \
    case ACL_COMPLEX64: EACH(float complex, *p = (float complex)(COMPLEX)); break;               \
    case ACL_COMPLEX128: EACH(double complex, *p = (double complex)(COMPLEX)); break;            \
    }

void em_write_reals(const EmTensor *tensor, const double *values) {
    Rows rows;
    if (!rows_begin(&rows, tensor)) return;
    WRITE_CASES(values[k], to_integer(values[k]), values[k] != 0, values[k])
}

void em_write_floats(const EmTensor *tensor, const float *values) {
    Rows rows;
    if (!rows_begin(&rows, tensor)) return;
    WRITE_CASES(values[k], to_integer(values[k]), values[k] != 0, values[k])
}

void em_write_integers(const EmTensor *tensor, const int64_t *values) {
    Rows rows;
    if (!rows_begin(&rows, tensor)) return;
    WRITE_CASES(values[k], values[k], values[k] != 0, values[k])
}

void em_write_complex(const EmTensor *tensor, const double complex *values) {
    Rows rows;
    if (!rows_begin(&rows, tensor)) return;
    WRITE_CASES(creal(values[k]), to_integer(creal(values[k])), values[k] != 0, values[k])
}

char *em_at(const EmTensor *tensor, int64_t position) {
    int64_t offset = 0;
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        offset += position % tensor->dims[d] * tensor->strides[d];
        position /= tensor->dims[d];
    }
    return tensor->data + offset * (int64_t)em_item_size(tensor->dtype);
}

static EmTensor one_element(const EmTensor *tensor, int64_t position) {
    return (EmTensor){.present = true, .numel = 1, .dtype = tensor->dtype, .data = em_at(tensor, position)};
}

double em_get(const EmTensor *tensor, int64_t position) {
    EmTensor one = one_element(tensor, position);
    double *values = em_read_reals(&one), value = values[0];
    free(values);
    return value;
}

void em_set(const EmTensor *tensor, int64_t position, double value) {
    EmTensor one = one_element(tensor, position);
    em_write_reals(&one, &value);
}

/* Philox 4x32-10 (Salmon et al., 2011): the counter is the block's index and the offset, the key the seed. */

static void philox(uint32_t counter[4], uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53u * counter[0], product1 = (uint64_t)0xCD9E8D57u * counter[2];
        uint32_t next[4] = {(uint32_t)(product1 >> 32) ^ counter[1] ^ key0, (uint32_t)product1, (uint32_t)(product0 >> 32) ^ counter[3] ^ key1,
                            (uint32_t)product0};
        memcpy(counter, next, sizeof next);
        key0 += 0x9E3779B9u, key1 += 0xBB67AE85u;
    }
}

void em_uniform(uint64_t seed, uint64_t offset, int64_t count, double *values) {
    for (int64_t k = 0; k < count; k += 2) {
        uint64_t block = (uint64_t)k / 2;
        uint32_t words[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)offset, (uint32_t)(offset >> 32)};
        philox(words, (uint32_t)seed, (uint32_t)(seed >> 32));
        for (int64_t pair = 0; pair < 2 && k + pair < count; pair++) {
            uint64_t bits = (uint64_t)words[2 * pair] << 32 | words[2 * pair + 1];
            values[k + pair] = (double)(bits >> 11) * 0x1p-53;
        }
    }
}
