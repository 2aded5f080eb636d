/* What the operators that are not pointwise share: sets of dtypes, checks of shapes, and tensors seen as lines.
 *
 * Note [Lines]
 * A kernel that works along dimensions sees the tensor with these moved to the end (es_last, es_lines): reading such a view gives one contiguous line after the other,
 * and writing to the view of the output puts the results back where they belong, whatever the strides.
 *
 * Note [Packed elements]
 * Operators that only move elements do so on packed bytes (es_pack, es_unpack), so that every dtype keeps all its bits.
 */
#ifndef MINDTORCH_EMULATOR_OPS_SHAPE_H
#define MINDTORCH_EMULATOR_OPS_SHAPE_H

#include "emulator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#define ES_FAST __attribute__((optimize("O3")))
#else
#define ES_FAST
#endif

#define ES_DT(code) (1u << (code))
#define ES_FLOATS (ES_DT(ACL_FLOAT) | ES_DT(ACL_FLOAT16) | ES_DT(ACL_BF16))
#define ES_REALS (ES_FLOATS | ES_DT(ACL_DOUBLE))
#define ES_INDICES (ES_DT(ACL_INT32) | ES_DT(ACL_INT64))
#define ES_INTS (ES_INDICES | ES_DT(ACL_INT8) | ES_DT(ACL_INT16) | ES_DT(ACL_UINT8))
#define ES_BOOL ES_DT(ACL_BOOL)
#define ES_COMMON (ES_REALS | ES_INTS | ES_BOOL)
#define ES_COMPLEX (ES_DT(ACL_COMPLEX64) | ES_DT(ACL_COMPLEX128))
#define ES_ANY (ES_COMMON | ES_COMPLEX | ES_DT(ACL_UINT16) | ES_DT(ACL_UINT32) | ES_DT(ACL_UINT64))

#define ES_INDEX_ERROR 507015

static inline bool es_in(aclDataType dtype, uint32_t set) { return dtype >= 0 && dtype < 32 && (set >> dtype & 1); }
/* Whether elements are computed as int64. */
static inline bool es_whole(aclDataType dtype) { return em_is_integral(dtype) || dtype == ACL_BOOL; }

#define ES_DTYPE(tensor, set) EM_REQUIRE(es_in((tensor)->dtype, set), "%s has dtype %d, which is not supported", #tensor, (tensor)->dtype)
#define ES_SAME_DTYPE(a, b) EM_REQUIRE((a)->dtype == (b)->dtype, "%s and %s differ in dtype (%d, %d)", #a, #b, (a)->dtype, (b)->dtype)
#define ES_SAME_SHAPE(a, b) EM_REQUIRE(em_same_shape(a, b), "%s and %s differ in shape", #a, #b)
#define ES_RANK(tensor, count) EM_REQUIRE((tensor)->ndim == (count), "%s must have %d dimensions, not %d", #tensor, (int)(count), (tensor)->ndim)
#define ES_CUBE(type) EM_REQUIRE((type) >= 0 && (type) <= 3, "cubeMathType must be 0 to 3, not %d", (int)(type))
/* Chips that multiply float16 only take float32 where cubeMathType lets them lower it. */
#define ES_CUBE_OF(type, dtype)                                                                                                     \
    ES_CUBE(type);                                                                                                                  \
    EM_REQUIRE((dtype) != ACL_FLOAT || (type) != 0 || em_chip_multiplies_float32(), "cubeMathType 0 keeps float32, which this chip cannot multiply")
/* Declares `name`: the dimension counted from the front. */
#define ES_DIM(name, dim, tensor)                   \
    int name = es_wrap((dim), (tensor)->ndim);      \
    EM_REQUIRE(name >= 0, "dim %lld is out of range for %d dimensions", (long long)(dim), (tensor)->ndim)

static inline int es_wrap(int64_t dim, int ndim) {
    int count = ndim ? ndim : 1;
    if (dim < -count || dim >= count) return -1;
    return (int)(dim < 0 ? dim + count : dim);
}

static inline int64_t es_product(const int64_t *dims, int from, int to) {
    int64_t product = 1;
    for (int d = from; d < to; d++) product *= dims[d];
    return product;
}

static inline bool es_has_shape(const aclTensor *tensor, int ndim, const int64_t *dims) {
    if (tensor->ndim != ndim) return false;
    for (int d = 0; d < ndim; d++)
        if (tensor->dims[d] != dims[d]) return false;
    return true;
}

/* Marks the dimensions of an array; an empty or absent one means all. False: out of range or twice. */
static inline bool es_mark(const int64_t *dims, int64_t size, int ndim, bool *marked) {
    for (int d = 0; d < EM_MAX_DIMS; d++) marked[d] = size == 0;
    for (int64_t i = 0; i < size; i++) {
        int dim = es_wrap(dims[i], ndim);
        if (dim < 0 || marked[dim]) return false;
        marked[dim] = true;
    }
    return true;
}

/* Whether out has the shape of self with the marked dimensions reduced. */
static inline bool es_reduced(const aclTensor *self, const bool *marked, bool keep, const aclTensor *out) {
    int64_t dims[EM_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < self->ndim; d++) {
        if (!marked[d]) dims[ndim++] = self->dims[d];
        else if (keep) dims[ndim++] = 1;
    }
    return es_has_shape(out, ndim, dims);
}

/* See Note [Lines]. Tensors without dimensions get one. */
static inline EmTensor es_lines(const EmTensor *tensor, const bool *marked, int64_t *lines, int64_t *length) {
    EmTensor view = *tensor;
    int at = 0;
    *lines = *length = 1;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < tensor->ndim; d++) {
            if (marked[d] != (pass == 1)) continue;
            view.dims[at] = tensor->dims[d];
            view.strides[at++] = tensor->strides[d];
            *(pass ? length : lines) *= tensor->dims[d];
        }
    return view;
}

static inline EmTensor es_last(const EmTensor *tensor, int64_t dim, int64_t *lines, int64_t *length) {
    bool marked[EM_MAX_DIMS] = {false};
    marked[es_wrap(dim, tensor->ndim)] = true;
    return es_lines(tensor, marked, lines, length);
}

/* A tensor over packed memory. */
static inline EmTensor es_packed(aclDataType dtype, int ndim, const int64_t *dims, void *data) {
    EmTensor tensor = {.present = true, .ndim = ndim, .numel = es_product(dims, 0, ndim), .dtype = dtype, .data = data};
    int64_t stride = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        tensor.dims[d] = dims[d];
        tensor.strides[d] = stride;
        stride *= dims[d];
    }
    return tensor;
}

static inline void *es_alloc(int64_t count, size_t size) {
    void *memory = calloc((size_t)(count > 0 ? count : 1), size);
    if (!memory) abort();
    return memory;
}
static inline double *es_doubles(int64_t count) { return es_alloc(count, sizeof(double)); }
static inline int64_t *es_int64s(int64_t count) { return es_alloc(count, sizeof(int64_t)); }

/* The next row-major position; false after the last. */
static inline bool es_next(int ndim, const int64_t *dims, int64_t *at) {
    for (int d = ndim - 1; d >= 0; d--) {
        if (++at[d] < dims[d]) return true;
        at[d] = 0;
    }
    return false;
}

static inline void es_move(const EmTensor *tensor, char *packed, bool into_tensor) {
    size_t size = em_item_size(tensor->dtype);
    if (!tensor->numel) return;
    int64_t at[EM_MAX_DIMS] = {0}, last = tensor->ndim ? tensor->dims[tensor->ndim - 1] : 1;
    int64_t step = tensor->ndim ? tensor->strides[tensor->ndim - 1] : 1;
    int outer = tensor->ndim ? tensor->ndim - 1 : 0;
    do {
        char *element = tensor->data;
        for (int d = 0; d < outer; d++) element += at[d] * tensor->strides[d] * (int64_t)size;
        if (step == 1) {
            memcpy(into_tensor ? element : packed, into_tensor ? packed : element, size * (size_t)last);
            packed += size * (size_t)last;
        } else {
            for (int64_t i = 0; i < last; i++, packed += size, element += step * (int64_t)size)
                memcpy(into_tensor ? element : packed, into_tensor ? packed : element, size);
        }
    } while (es_next(outer, tensor->dims, at));
}

/* See Note [Packed elements]. The elements in row-major order, converted to `dtype`; freed by free(). */
static inline char *es_pack(const EmTensor *tensor, aclDataType dtype) {
    char *packed = es_alloc(tensor->numel, em_item_size(dtype));
    if (tensor->dtype == dtype) {
        es_move(tensor, packed, false);
        return packed;
    }
    EmTensor copy = es_packed(dtype, tensor->ndim, tensor->dims, packed);
    if (em_is_complex(tensor->dtype) || em_is_complex(dtype)) {
        double complex *values = em_read_complex(tensor);
        em_write_complex(&copy, values);
        free(values);
    } else if (es_whole(tensor->dtype)) {
        int64_t *values = em_read_integers(tensor);
        em_write_integers(&copy, values);
        free(values);
    } else {
        double *values = em_read_reals(tensor);
        em_write_reals(&copy, values);
        free(values);
    }
    return packed;
}
static inline void es_unpack(const EmTensor *tensor, char *packed) { es_move(tensor, packed, true); }

/* An index into `size`, negative ones counted from the end; -1 after telling that it is out of range. */
static inline int64_t es_index(EmCall *call, int64_t index, int64_t size) {
    if (index >= -size && index < size) return index < 0 ? index + size : index;
    em_kernel_failed(call, ES_INDEX_ERROR, "%s: index %lld is out of range for size %lld", call->name, (long long)index, (long long)size);
    return -1;
}

/* The same where negative indices are out of range too. */
static inline int64_t es_plain_index(EmCall *call, int64_t index, int64_t size) {
    return es_index(call, index < 0 ? -size - 1 : index, size);
}

/* Numbers of a tensor, as int64 where its dtype is integral or bool. */
typedef struct EsNumbers { bool whole; double *reals; int64_t *integers; } EsNumbers;

static inline EsNumbers es_numbers(const EmTensor *tensor, bool whole) {
    EsNumbers numbers = {.whole = whole};
    if (whole) numbers.integers = em_read_integers(tensor);
    else numbers.reals = em_read_reals(tensor);
    return numbers;
}
static inline void es_put_numbers(const EmTensor *tensor, EsNumbers numbers) {
    if (numbers.whole) em_write_integers(tensor, numbers.integers);
    else em_write_reals(tensor, numbers.reals);
}
static inline void es_free_numbers(EsNumbers numbers) {
    free(numbers.reals);
    free(numbers.integers);
}

/* Numbers of a scalar as one element of a dtype. */
static inline void es_scalar_bytes(const aclScalar *scalar, aclDataType dtype, char *bytes) {
    EmTensor one = es_packed(dtype, 0, NULL, bytes);
    double complex value = scalar->real + scalar->imag * I;
    if (em_is_complex(dtype)) em_write_complex(&one, &value);
    else if (es_whole(dtype) && es_whole(scalar->dtype)) em_write_integers(&one, &scalar->integer);
    else em_write_reals(&one, &scalar->real);
}

#endif
