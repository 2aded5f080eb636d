/* What the parts of the emulator share: descriptors as the host makes them, calls as kernels see them, and how an operator is defined.
 *
 * The emulator is a shared library with the C ABI of CANN's libascendcl, libnnopbase and libopapi. Operators are written from the documentation of each
 * aclnn function, never from the bindings that they test.
 *
 * Note [Device addresses]
 * Device memory is one range of address space that the host may not touch (PROT_NONE), mapped a second time, readable, at an address that only the
 * emulator knows. What the host holds is an address of the first mapping: reading it crashes. Kernels and copies translate (em_host_address).
 *
 * Note [Two phases]
 * EM_OP defines aclnnX's first phase; its body checks the arguments as the documentation says, adds each to the executor in its own order, and ends with
 * em_ready(ex, kernel, workspace bytes). Tensors' geometry is copied then (descriptors may be destroyed once phase two has returned). Phase two, the same for all,
 * puts the kernel on the stream. It runs on the stream's own thread.
 *
 * Note [Dtypes of the chip]
 * What EM_OP defines is the operator's own first phase. Where schema/aclnn_dtypes.tsv says which dtypes the chip's takes, the exported function is another one
 * (dtypes.c, which is generated), that refuses all others with 161002 and calls it; else it is the function itself, by a weak alias.
 */
#ifndef MINDTORCH_EMULATOR_H
#define MINDTORCH_EMULATOR_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EM_API __attribute__((visibility("default")))
#define EM_MAX_DIMS 8

typedef int aclError;
typedef int32_t aclnnStatus;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;
typedef int aclDataType;
typedef int aclFormat;

enum {
    ACL_DT_UNDEFINED = -1, ACL_FLOAT = 0, ACL_FLOAT16 = 1, ACL_INT8 = 2, ACL_INT32 = 3, ACL_UINT8 = 4, ACL_INT16 = 6, ACL_UINT16 = 7, ACL_UINT32 = 8,
    ACL_INT64 = 9, ACL_UINT64 = 10, ACL_DOUBLE = 11, ACL_BOOL = 12, ACL_COMPLEX64 = 16, ACL_COMPLEX128 = 17, ACL_BF16 = 27
};
enum { ACL_FORMAT_NCHW = 0, ACL_FORMAT_ND = 2, ACL_FORMAT_NCDHW = 30, ACL_FORMAT_NCL = 47 };
enum {
    ACL_SUCCESS = 0, ACLNN_ERR_PARAM_NULLPTR = 161001, ACLNN_ERR_PARAM_INVALID = 161002, ACLNN_ERR_RUNTIME_ERROR = 361001, ACLNN_ERR_INNER = 561000,
    ACLNN_ERR_INNER_NULLPTR = 561103
};

/* Descriptors: what aclCreateX gives the host. */

typedef struct aclTensor {
    uint32_t magic;
    int ndim;
    int64_t dims[EM_MAX_DIMS];
    int64_t strides[EM_MAX_DIMS]; /* in elements */
    int64_t offset;               /* in elements, from data */
    aclDataType dtype;
    aclFormat format;
    int storage_ndim;
    int64_t storage_dims[EM_MAX_DIMS];
    void *data;                   /* a device address; NULL only for a tensor without elements */
} aclTensor;

typedef struct aclScalar {
    uint32_t magic;
    aclDataType dtype;
    double real, imag; /* the value, whatever the dtype ... */
    int64_t integer;   /* ... exactly, for integral dtypes */
} aclScalar;

typedef struct aclIntArray { uint32_t magic; uint64_t size; int64_t *values; } aclIntArray;
typedef struct aclFloatArray { uint32_t magic; uint64_t size; float *values; } aclFloatArray;
typedef struct aclBoolArray { uint32_t magic; uint64_t size; bool *values; } aclBoolArray;
typedef struct aclTensorList { uint32_t magic; uint64_t size; aclTensor **items; } aclTensorList;
typedef struct aclScalarList { uint32_t magic; uint64_t size; aclScalar **items; } aclScalarList;
typedef struct aclOpExecutor aclOpExecutor;

/* Calls: what a kernel sees, on the stream's thread. */

typedef struct EmTensor {
    bool present;  /* false: an optional tensor that was NULL */
    int ndim;
    int64_t dims[EM_MAX_DIMS];
    int64_t strides[EM_MAX_DIMS];
    int64_t numel;
    aclDataType dtype;
    char *data;    /* the first element, at an address that may be read and written */
    aclTensor *descriptor; /* only for em_set_view_shape */
} EmTensor;

typedef struct EmInts { bool present; int size; int64_t values[64]; } EmInts; /* of an aclIntArray or aclBoolArray */

typedef struct EmCall {
    const char *name;
    int tensors, scalars, arrays, integers, reals, texts;
    EmTensor *tensor;      /* in the order of em_tensor and em_list calls; a list adds its items one after the other */
    aclScalar *scalar;     /* copies; dtype ACL_DT_UNDEFINED for an optional one that was NULL */
    EmInts *array;
    int64_t *integer;
    double *real;
    char **text;
    int *list_size;        /* of each em_list */
    char *workspace;       /* readable, as large as em_ready asked for */
} EmCall;

typedef void (*EmKernel)(EmCall *call);

/* First phase. Each returns a status; 0 is success. A failure is remembered for aclGetRecentErrMsg. */

aclnnStatus em_begin(const char *name, aclOpExecutor **executor, uint64_t *workspace_size);
void em_tensor(aclOpExecutor *ex, const aclTensor *tensor);            /* NULL: an optional tensor that is absent */
void em_list(aclOpExecutor *ex, const aclTensorList *list);
void em_scalar(aclOpExecutor *ex, const aclScalar *scalar);
void em_array(aclOpExecutor *ex, const aclIntArray *array);
void em_bools(aclOpExecutor *ex, const aclBoolArray *array);
void em_integer(aclOpExecutor *ex, int64_t value);
void em_real(aclOpExecutor *ex, double value);
void em_text(aclOpExecutor *ex, const char *text);
aclnnStatus em_ready(aclOpExecutor *ex, EmKernel kernel, uint64_t workspace_bytes);
/* Give up: the executor is deleted, the message (printf) is for aclGetRecentErrMsg. Returns `status`. */
aclnnStatus em_fail(aclOpExecutor *ex, aclnnStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether the chip refuses a descriptor's dtype (a bit for each one it takes): remembered as an error. NULL and what is no live object are left to the operator. */
bool em_refuses_tensor(const char *function, const char *parameter, const aclTensor *tensor, uint32_t taken);
bool em_refuses_scalar(const char *function, const char *parameter, const aclScalar *scalar, uint32_t taken);
/* The status of a refusal; neither executor nor workspace are given. */
aclnnStatus em_refused(uint64_t *workspace_size, aclOpExecutor **executor);

/* Second phase, the same for every operator. */
aclnnStatus em_launch(const char *name, void *workspace, uint64_t workspace_size, aclOpExecutor *executor, aclrtStream stream);

/* EM_OP(aclnnAdd, const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out) { EM_BEGIN(aclnnAdd); ...; return em_ready(ex, k, 0); }
 * The parameters are those of the C prototype, in its order and with its types, without the trailing workspaceSize and executor. */
#define EM_OP(name, ...)                                                                                                                        \
    EM_API aclnnStatus name(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream) {                             \
        return em_launch(#name, workspace, workspaceSize, executor, stream);                                                                    \
    }                                                                                                                                           \
    aclnnStatus name##Body(__VA_ARGS__, uint64_t *workspaceSize, aclOpExecutor **executor);                                                     \
    EM_API aclnnStatus name##GetWorkspaceSize(__VA_ARGS__, uint64_t *workspaceSize, aclOpExecutor **executor) __attribute__((weak, alias(#name "Body"))); \
    aclnnStatus name##Body(__VA_ARGS__, uint64_t *workspaceSize, aclOpExecutor **executor)
#define EM_BEGIN(name)                                                  \
    aclOpExecutor *ex = NULL;                                           \
    do {                                                                \
        aclnnStatus begun = em_begin(#name, executor, workspaceSize);   \
        if (begun) return begun;                                        \
        ex = *executor;                                                 \
    } while (0)
/* Checks of the first phase: EM_REQUIRE(self->dtype == out->dtype, "self and out differ in dtype") gives 161002; EM_NOT_NULL 161001. */
#define EM_NOT_NULL(pointer) do { if (!(pointer)) return em_fail(ex, ACLNN_ERR_PARAM_NULLPTR, "%s is NULL", #pointer); } while (0)
#define EM_REQUIRE(condition, ...) do { if (!(condition)) return em_fail(ex, ACLNN_ERR_PARAM_INVALID, __VA_ARGS__); } while (0)

/* Shapes (first phase) */

int64_t em_numel(const aclTensor *tensor);
bool em_same_shape(const aclTensor *a, const aclTensor *b);
/* Whether a and b broadcast to out's shape (b may be NULL). */
bool em_broadcasts(const aclTensor *a, const aclTensor *b, const aclTensor *out);
bool em_is_floating(aclDataType dtype);  /* float16, bfloat16, float32, float64 */
bool em_is_integral(aclDataType dtype);  /* not bool */
bool em_is_complex(aclDataType dtype);
/* PyTorch's promotion of two dtypes. */
aclDataType em_promote(aclDataType a, aclDataType b);
/* Whether the chip of this run computes with the dtype (310P has no bf16). EM_OP bodies need not ask: em_ready does, for every tensor. */
bool em_chip_has(aclDataType dtype);
/* Whether the chip's products take float32 as it is (910A and 310P do not). */
bool em_chip_multiplies_float32(void);
size_t em_item_size(aclDataType dtype);

/* Elements (kernels) */

/* A contiguous copy of all elements in row-major order, converted; freed by free(). Of 0 elements: a pointer that may be freed. */
double *em_read_reals(const EmTensor *tensor);
int64_t *em_read_integers(const EmTensor *tensor);
double complex *em_read_complex(const EmTensor *tensor);
float *em_read_floats(const EmTensor *tensor);
/* The reverse: elements in row-major order into the tensor, rounded to its dtype (bool: not zero; integers: truncated as C does, wrapped to their size). */
void em_write_reals(const EmTensor *tensor, const double *values);
void em_write_integers(const EmTensor *tensor, const int64_t *values);
void em_write_complex(const EmTensor *tensor, const double complex *values);
void em_write_floats(const EmTensor *tensor, const float *values);
/* The same tensor seen with `dims` by broadcasting: strides of 0. */
EmTensor em_expand(const EmTensor *tensor, int ndim, const int64_t *dims);
/* Byte address of the element at a row-major position. */
char *em_at(const EmTensor *tensor, int64_t position);
double em_get(const EmTensor *tensor, int64_t position);
void em_set(const EmTensor *tensor, int64_t position, double value);
/* Negative dims count from the end. */
int em_dim(const EmTensor *tensor, int64_t dim);
/* A failure inside a kernel (an index out of range): it surfaces when the stream is synchronised, as code 507015 or the given one. */
void em_kernel_failed(EmCall *call, aclError code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A data-dependent result: the view shape that aclGetViewShape will give for the descriptor of call->tensor[index]. */
void em_set_view_shape(EmCall *call, int index, int ndim, const int64_t *dims);

/* A counter-based random stream (Philox 4x32-10): `count` uniform numbers in [0, 1) for a seed and an offset. */
void em_uniform(uint64_t seed, uint64_t offset, int64_t count, double *values);

/* Device address to the address that the emulator may read. NULL for NULL. Aborts, with a message, for an address that is no live device memory. */
void *em_host_address(const void *device, size_t bytes);

#endif
