/* What the pointwise operators share: sets of dtypes, checks of the first phase, and kernels made from an expression for each kind of number.
 *
 * Note [Kinds]
 * A kernel computes in one of three kinds, chosen by its inputs' common dtype: double, int64_t (also for bool) or double complex. KERNEL's expressions name the
 * inputs a, b, c, the scalars s0, s1, s2 and the real arguments r0, r1, r2; all inputs are read before the output is written, as they may share memory.
 *
 * Note [Conversion of results]
 * A result may be asked for in another dtype than the inputs' common one, as CANN's page on conversions says: integers to integers, floating and complex numbers,
 * floating numbers to all but bool, complex to complex and floating numbers, bool to everything.
 */
#ifndef MINDTORCH_EMULATOR_OPS_POINTWISE_H
#define MINDTORCH_EMULATOR_OPS_POINTWISE_H

#include "emulator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sets of dtypes, as the documentation lists them for an argument. */
#define DT(code) (1u << (code))
#define D_F32 DT(ACL_FLOAT)
#define D_F16 DT(ACL_FLOAT16)
#define D_BF16 DT(ACL_BF16)
#define D_F64 DT(ACL_DOUBLE)
#define D_I8 DT(ACL_INT8)
#define D_U8 DT(ACL_UINT8)
#define D_I16 DT(ACL_INT16)
#define D_I32 DT(ACL_INT32)
#define D_I64 DT(ACL_INT64)
#define D_BOOL DT(ACL_BOOL)
#define D_COMPLEX (DT(ACL_COMPLEX64) | DT(ACL_COMPLEX128))
#define D_UNSIGNED (DT(ACL_UINT16) | DT(ACL_UINT32) | DT(ACL_UINT64))
#define D_HALVES (D_F16 | D_BF16)
#define D_FLOATS (D_F32 | D_HALVES)
#define D_REALS (D_FLOATS | D_F64)
#define D_INTS (D_I8 | D_U8 | D_I16 | D_I32 | D_I64)
#define D_COMMON (D_REALS | D_INTS | D_BOOL)
#define D_NUMBERS (D_COMMON | D_COMPLEX)
#define D_ALL (D_NUMBERS | D_UNSIGNED)

/* How an output's dtype follows from the inputs' common one. */
enum {
    TO_SAME,     /* it is the same */
    TO_CASTABLE, /* it can be converted to it */
    TO_FLOAT,    /* integers and bool give floating numbers; others convert; it is floating or complex */
    TO_QUOTIENT, /* integers and bool give floating numbers, which convert to it */
    TO_BOOL,     /* a truth value: anything that bool converts to */
    TO_ANY,      /* the documentation names no relation */
    TO_EQUAL     /* the inputs' dtypes are equal too */
};

enum { KIND_REAL, KIND_INTEGER, KIND_COMPLEX };

#define TRY(expression)                    \
    do {                                   \
        aclnnStatus tried = (expression);  \
        if (tried) return tried;           \
    } while (0)

static inline bool pw_is(aclDataType dtype, uint32_t set) { return dtype >= 0 && dtype < 32 && (set >> dtype & 1); }

static inline bool pw_converts(aclDataType from, aclDataType to) {
    if (from == to || from == ACL_BOOL) return true;
    if (to == ACL_BOOL) return false;
    if (em_is_complex(from)) return em_is_complex(to) || em_is_floating(to);
    return true;
}

/* The dtype of a tensor's dtype with a number: the tensor's, unless the number is of a higher kind. */
static inline aclDataType pw_with_scalar(aclDataType tensor, aclDataType scalar) {
    if (em_is_complex(tensor)) return tensor;
    if (em_is_complex(scalar)) return tensor == ACL_DOUBLE ? ACL_COMPLEX128 : ACL_COMPLEX64;
    if (em_is_floating(tensor)) return tensor;
    if (em_is_floating(scalar)) return ACL_FLOAT;
    if (em_is_integral(tensor) || scalar == ACL_BOOL) return tensor;
    return em_is_integral(scalar) ? ACL_INT64 : tensor;
}

/* Shapes: the broadcast one of `count` tensors (NULL ones are skipped); false when they do not broadcast. */
static inline bool pw_broadcast(int count, const aclTensor *const *tensors, int *ndim, int64_t *dims) {
    *ndim = 0;
    for (int t = 0; t < count; t++)
        if (tensors[t] && tensors[t]->ndim > *ndim) *ndim = tensors[t]->ndim;
    for (int d = 0; d < *ndim; d++) dims[d] = 1;
    for (int t = 0; t < count; t++) {
        if (!tensors[t]) continue;
        for (int d = 0; d < tensors[t]->ndim; d++) {
            int64_t size = tensors[t]->dims[d], *into = &dims[*ndim - tensors[t]->ndim + d];
            if (size == 1 || size == *into) continue;
            if (*into != 1) return false;
            *into = size;
        }
    }
    return true;
}

static inline bool pw_has_shape(const aclTensor *tensor, int ndim, const int64_t *dims) {
    return tensor->ndim == ndim && !memcmp(tensor->dims, dims, (size_t)ndim * sizeof *dims);
}

static inline bool pw_expands(const aclTensor *tensor, const aclTensor *to) {
    const aclTensor *both[] = {tensor, to};
    int ndim;
    int64_t dims[EM_MAX_DIMS];
    return pw_broadcast(2, both, &ndim, dims) && pw_has_shape(to, ndim, dims);
}

/* Check the output of `count` inputs (and of a number's dtype, or ACL_DT_UNDEFINED), and add inputs and output to the executor in that order. */
static inline aclnnStatus pw_check(aclOpExecutor *ex, int count, const aclTensor *const *inputs, aclDataType number, const aclTensor *out, uint32_t in_set,
                                   uint32_t out_set, int rule) {
    for (int t = 0; t < count; t++)
        if (!inputs[t]) return em_fail(ex, ACLNN_ERR_PARAM_NULLPTR, "input %d is NULL", t);
    if (!out) return em_fail(ex, ACLNN_ERR_PARAM_NULLPTR, "the output is NULL");
    aclDataType common = inputs[0]->dtype;
    for (int t = 0; t < count; t++) {
        EM_REQUIRE(pw_is(inputs[t]->dtype, in_set), "input %d has dtype %d, which is not supported", t, inputs[t]->dtype);
        EM_REQUIRE(rule != TO_EQUAL || inputs[t]->dtype == common, "inputs differ in dtype: %d and %d", common, inputs[t]->dtype);
        common = em_promote(common, inputs[t]->dtype);
    }
    if (number != ACL_DT_UNDEFINED) common = pw_with_scalar(common, number);
    EM_REQUIRE(pw_is(out->dtype, out_set), "the output has dtype %d, which is not supported", out->dtype);
    if ((rule == TO_FLOAT || rule == TO_QUOTIENT) && !em_is_floating(common) && !em_is_complex(common)) common = ACL_FLOAT;
    if (rule == TO_FLOAT) EM_REQUIRE(em_is_floating(out->dtype) || em_is_complex(out->dtype), "the output has dtype %d, which is not floating", out->dtype);
    if (rule == TO_SAME || rule == TO_EQUAL) EM_REQUIRE(out->dtype == common, "the output has dtype %d, not %d", out->dtype, common);
    if (rule == TO_CASTABLE || rule == TO_FLOAT || rule == TO_QUOTIENT)
        EM_REQUIRE(pw_converts(common, out->dtype), "dtype %d does not convert to the output's %d", common, out->dtype);
    int ndim;
    int64_t dims[EM_MAX_DIMS];
    EM_REQUIRE(pw_broadcast(count, inputs, &ndim, dims), "the inputs' shapes do not broadcast");
    EM_REQUIRE(pw_has_shape(out, ndim, dims), "the output's shape is not the inputs' broadcast shape");
    for (int t = 0; t < count; t++) em_tensor(ex, inputs[t]);
    em_tensor(ex, out);
    return 0;
}

static inline aclnnStatus pw_check1(aclOpExecutor *ex, const aclTensor *self, const aclTensor *out, uint32_t in, uint32_t to, int rule) {
    return pw_check(ex, 1, &self, ACL_DT_UNDEFINED, out, in, to, rule);
}

/* With a number that takes part in the promotion. */
static inline aclnnStatus pw_check1s(aclOpExecutor *ex, const aclTensor *self, const aclScalar *number, const aclTensor *out, uint32_t in, uint32_t to, int rule) {
    EM_NOT_NULL(number);
    EM_REQUIRE(pw_is(number->dtype, D_ALL), "the number has dtype %d, which is not supported", number->dtype);
    TRY(pw_check(ex, 1, &self, number->dtype, out, in, to, rule));
    em_scalar(ex, number);
    return 0;
}

/* A number that takes no part in the promotion (alpha, value): it is converted to `dtype`; to bool from integers too, unlike tensors. */
static inline aclnnStatus pw_add_number(aclOpExecutor *ex, const aclScalar *number, aclDataType dtype) {
    EM_NOT_NULL(number);
    bool converts = pw_converts(number->dtype, dtype) || (dtype == ACL_BOOL && em_is_integral(number->dtype));
    EM_REQUIRE(pw_is(number->dtype, D_ALL) && converts, "a number of dtype %d does not convert to %d", number->dtype, dtype);
    aclScalar converted = *number;
    if (em_is_integral(number->dtype)) converted.real = (double)number->integer;
    else if (em_is_integral(dtype)) converted.integer = (int64_t)number->real;
    if (dtype == ACL_BOOL) converted.real = converted.real != 0;
    if (!em_is_complex(number->dtype)) converted.imag = 0;
    converted.dtype = dtype;
    em_scalar(ex, &converted);
    return 0;
}

static inline double pw_value(const aclScalar *number) { return em_is_integral(number->dtype) ? (double)number->integer : number->real; }

/* A number that is an attribute: it is converted to float. */
static inline aclnnStatus pw_add_real(aclOpExecutor *ex, const aclScalar *number) {
    EM_NOT_NULL(number);
    EM_REQUIRE(pw_is(number->dtype, D_COMMON), "a number of dtype %d does not convert to float", number->dtype);
    em_real(ex, (double)(float)pw_value(number));
    return 0;
}

static inline aclnnStatus pw_check2(aclOpExecutor *ex, const aclTensor *a, const aclTensor *b, const aclTensor *out, uint32_t in, uint32_t to, int rule) {
    const aclTensor *inputs[] = {a, b};
    return pw_check(ex, 2, inputs, ACL_DT_UNDEFINED, out, in, to, rule);
}

static inline aclnnStatus pw_check3(aclOpExecutor *ex, const aclTensor *a, const aclTensor *b, const aclTensor *c, const aclTensor *out, uint32_t in, uint32_t to,
                                    int rule) {
    const aclTensor *inputs[] = {a, b, c};
    return pw_check(ex, 3, inputs, ACL_DT_UNDEFINED, out, in, to, rule);
}

/* Of shapes that may not broadcast: all equal. */
static inline aclnnStatus pw_equal_shapes(aclOpExecutor *ex, const aclTensor *a, const aclTensor *b) {
    if (a && b) EM_REQUIRE(em_same_shape(a, b), "the shapes differ, and are not broadcast");
    return 0;
}

/* Kernels */

static inline void *pw_allocate(int64_t count, size_t size) {
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (!memory) abort();
    return memory;
}

static inline aclDataType pw_common(const EmCall *call, int inputs) {
    aclDataType common = call->tensor[0].dtype;
    for (int t = 1; t < inputs; t++) common = em_promote(common, call->tensor[t].dtype);
    for (int s = 0; s < call->scalars; s++)
        if (call->scalar[s].dtype != ACL_DT_UNDEFINED) common = pw_with_scalar(common, call->scalar[s].dtype);
    return common;
}

static inline int pw_kind(aclDataType dtype) { return em_is_complex(dtype) ? KIND_COMPLEX : em_is_floating(dtype) ? KIND_REAL : KIND_INTEGER; }

/* A value rounded to a dtype, as storing it would. */
static inline double pw_round(aclDataType dtype, double value) {
    char bytes[16] = {0};
    EmTensor one = {.present = true, .ndim = 0, .numel = 1, .dtype = dtype, .data = bytes};
    em_write_reals(&one, &value);
    double *read = em_read_reals(&one), rounded = read[0];
    free(read);
    return rounded;
}

/* Scalars as kernels use them. Numbers take the precision of the computation: float32, or double for double tensors. */
static inline double pw_real_scalar(const EmCall *call, int index, aclDataType common) {
    if (index >= call->scalars || call->scalar[index].dtype == ACL_DT_UNDEFINED) return 0;
    const aclScalar *scalar = &call->scalar[index];
    double value = em_is_integral(scalar->dtype) ? (double)scalar->integer : scalar->real;
    return common == ACL_DOUBLE || common == ACL_COMPLEX128 ? value : (double)(float)value;
}

static inline int64_t pw_integer_scalar(const EmCall *call, int index) {
    if (index >= call->scalars || call->scalar[index].dtype == ACL_DT_UNDEFINED) return 0;
    const aclScalar *scalar = &call->scalar[index];
    return em_is_integral(scalar->dtype) ? scalar->integer : scalar->dtype == ACL_BOOL ? scalar->real != 0 : (int64_t)scalar->real;
}

static inline double complex pw_complex_scalar(const EmCall *call, int index) {
    if (index >= call->scalars || call->scalar[index].dtype == ACL_DT_UNDEFINED) return 0;
    const aclScalar *scalar = &call->scalar[index];
    return CMPLX(em_is_integral(scalar->dtype) ? (double)scalar->integer : scalar->real, em_is_complex(scalar->dtype) ? scalar->imag : 0);
}

static inline double *pw_reals_as(const EmTensor *tensor, const EmTensor *like) {
    EmTensor seen = em_expand(tensor, like->ndim, like->dims);
    return em_read_reals(&seen);
}

static inline int64_t *pw_integers_as(const EmTensor *tensor, const EmTensor *like) {
    EmTensor seen = em_expand(tensor, like->ndim, like->dims);
    return em_read_integers(&seen);
}

static inline double complex *pw_complex_as(const EmTensor *tensor, const EmTensor *like) {
    EmTensor seen = em_expand(tensor, like->ndim, like->dims);
    return em_read_complex(&seen);
}

static inline double pw_argument(const EmCall *call, int index) { return index < call->reals ? call->real[index] : 0; }
static inline int64_t pw_option(const EmCall *call, int index) { return index < call->integers ? call->integer[index] : 0; }

#define UNUSED_NAMES (void)a, (void)b, (void)c, (void)s0, (void)s1, (void)s2, (void)r0, (void)r1, (void)r2, (void)i0, (void)common

/* One kind's loop: TYPE is what is read, RESULT what is written. `inputs` is 1 to 3; the output is the tensor after them. */
#define PW_LOOP(TYPE, READ, RESULT, WRITE, S0, S1, S2, EXPRESSION)                                                    \
    do {                                                                                                              \
        TYPE *x = READ(&call->tensor[0], out), *y = inputs > 1 ? READ(&call->tensor[1], out) : NULL;                  \
        TYPE *z = inputs > 2 ? READ(&call->tensor[2], out) : NULL;                                                    \
        RESULT *results = pw_allocate(out->numel, sizeof *results);                                                   \
        const TYPE s0 = S0, s1 = S1, s2 = S2;                                                                         \
        for (int64_t k = 0; k < out->numel; k++) {                                                                    \
            const TYPE a = x[k], b = y ? y[k] : 0, c = z ? z[k] : 0;                                                  \
            UNUSED_NAMES;                                                                                             \
            results[k] = (RESULT)(EXPRESSION);                                                                        \
        }                                                                                                             \
        WRITE(out, results);                                                                                          \
        free(x), free(y), free(z), free(results);                                                                     \
    } while (0)
#define PW_PREPARE(INPUTS)                                                                                            \
    const int inputs = INPUTS;                                                                                        \
    const EmTensor *out = &call->tensor[inputs];                                                                      \
    const aclDataType common = pw_common(call, inputs);                                                               \
    const double r0 = pw_argument(call, 0), r1 = pw_argument(call, 1), r2 = pw_argument(call, 2);                     \
    const int64_t i0 = pw_option(call, 0);                                                                            \
    (void)common, (void)r0, (void)r1, (void)r2, (void)i0
#define PW_REALS(RESULT, WRITE, EXPRESSION)                                                                           \
    PW_LOOP(double, pw_reals_as, RESULT, WRITE, pw_real_scalar(call, 0, common), pw_real_scalar(call, 1, common), pw_real_scalar(call, 2, common), EXPRESSION)
#define PW_INTEGERS(RESULT, WRITE, EXPRESSION)                                                                        \
    PW_LOOP(int64_t, pw_integers_as, RESULT, WRITE, pw_integer_scalar(call, 0), pw_integer_scalar(call, 1), pw_integer_scalar(call, 2), EXPRESSION)
#define PW_COMPLEX(RESULT, WRITE, EXPRESSION)                                                                         \
    PW_LOOP(double complex, pw_complex_as, RESULT, WRITE, pw_complex_scalar(call, 0), pw_complex_scalar(call, 1), pw_complex_scalar(call, 2), EXPRESSION)

/* Kernels of all three kinds, of reals and integers, of reals and complex numbers, and of reals alone (integers are converted). */
#define KERNEL_RIC(NAME, INPUTS, REAL, INTEGER, COMPLEX)                                                              \
    static void NAME(EmCall *call) {                                                                                  \
        PW_PREPARE(INPUTS);                                                                                           \
        if (pw_kind(common) == KIND_COMPLEX) PW_COMPLEX(double complex, em_write_complex, COMPLEX);                   \
        else if (pw_kind(common) == KIND_INTEGER) PW_INTEGERS(int64_t, em_write_integers, INTEGER);                   \
        else PW_REALS(double, em_write_reals, REAL);                                                                  \
    }
#define KERNEL_RI(NAME, INPUTS, REAL, INTEGER)                                                                        \
    static void NAME(EmCall *call) {                                                                                  \
        PW_PREPARE(INPUTS);                                                                                           \
        if (pw_kind(common) == KIND_INTEGER) PW_INTEGERS(int64_t, em_write_integers, INTEGER);                        \
        else PW_REALS(double, em_write_reals, REAL);                                                                  \
    }
#define KERNEL_RC(NAME, INPUTS, REAL, COMPLEX)                                                                        \
    static void NAME(EmCall *call) {                                                                                  \
        PW_PREPARE(INPUTS);                                                                                           \
        if (pw_kind(common) == KIND_COMPLEX) PW_COMPLEX(double complex, em_write_complex, COMPLEX);                   \
        else PW_REALS(double, em_write_reals, REAL);                                                                  \
    }
#define KERNEL_R(NAME, INPUTS, REAL)                                                                                  \
    static void NAME(EmCall *call) {                                                                                  \
        PW_PREPARE(INPUTS);                                                                                           \
        PW_REALS(double, em_write_reals, REAL);                                                                       \
    }
#define KERNEL_I(NAME, INPUTS, INTEGER)                                                                               \
    static void NAME(EmCall *call) {                                                                                  \
        PW_PREPARE(INPUTS);                                                                                           \
        PW_INTEGERS(int64_t, em_write_integers, INTEGER);                                                             \
    }
/* Truth values. A number compared with a floating tensor is rounded to the tensor's dtype first, as stored numbers are. */
#define KERNEL_TRUTH(NAME, INPUTS, REAL, INTEGER, COMPLEX)                                                            \
    static void NAME(EmCall *call) {                                                                                  \
        PW_PREPARE(INPUTS);                                                                                           \
        if (pw_kind(common) == KIND_COMPLEX) PW_COMPLEX(int64_t, em_write_integers, COMPLEX);                         \
        else if (pw_kind(common) == KIND_INTEGER) PW_INTEGERS(int64_t, em_write_integers, INTEGER);                   \
        else                                                                                                          \
            PW_LOOP(double, pw_reals_as, int64_t, em_write_integers, pw_round(common, pw_real_scalar(call, 0, common)), 0, 0, REAL); \
    }

/* Arithmetic of integers that wraps, which C leaves undefined. */
#define WRAP(expression) ((int64_t)(expression))
#define U(value) ((uint64_t)(value))

static inline double pw_sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }
static inline double pw_log1p_exp(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static inline double pw_sign(double x) { return (x > 0) - (x < 0); } /* 0 of NaN */
static inline double pw_maximum(double a, double b) { return isnan(a) || isnan(b) ? NAN : a > b ? a : b; }
static inline double pw_minimum(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b ? a : b; }

#endif
