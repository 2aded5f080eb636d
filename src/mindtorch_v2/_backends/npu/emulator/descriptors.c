/* Descriptors: tensors, scalars, arrays and lists, as the host makes and destroys them. See Note [Registry]. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x41434c00, DEAD = 0xdead0000 }; /* MAGIC + kind */

static bool create_shape(int *ndim, int64_t dims[EM_MAX_DIMS], const int64_t *given, uint64_t count, const char *what) {
    if (count > EM_MAX_DIMS || (count && !given)) {
        em_error(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor: %s: %llu dimensions (NULL, or more than %d)", what, (unsigned long long)count, EM_MAX_DIMS);
        return false;
    }
    *ndim = (int)count;
    for (int d = 0; d < *ndim; d++) {
        dims[d] = given[d];
        if (dims[d] < 0) {
            em_error(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor: %s: the size of dimension %d is negative", what, d);
            return false;
        }
    }
    return true;
}

static bool fill_tensor(aclTensor *tensor, const int64_t *dims, uint64_t ndim, aclDataType dtype, const int64_t *strides, int64_t offset, aclFormat format,
                        const int64_t *storage, uint64_t storage_ndim, void *data) {
    *tensor = (aclTensor){.magic = MAGIC + EM_TENSOR, .offset = offset, .dtype = dtype, .format = format, .data = data};
    if (!em_item_size(dtype)) {
        em_error(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor: unknown dtype %d", dtype);
        return false;
    }
    if ((uintptr_t)data % EM_ALIGNMENT) {
        em_error(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor: the data at %p are not aligned to %d bytes", data, EM_ALIGNMENT);
        return false;
    }
    if (offset < 0) {
        em_error(ACLNN_ERR_PARAM_INVALID, "aclCreateTensor: the offset is negative");
        return false;
    }
    if (!create_shape(&tensor->ndim, tensor->dims, dims, ndim, "view") || !create_shape(&tensor->storage_ndim, tensor->storage_dims, storage, storage_ndim, "storage"))
        return false;
    int64_t next = 1;
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        tensor->strides[d] = strides ? strides[d] : next;
        next *= tensor->dims[d];
    }
    return true;
}

EM_API aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride, int64_t offset, aclFormat format,
                                  const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData) {
    aclTensor *tensor = em_new(sizeof *tensor);
    if (!fill_tensor(tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum, tensorData)) {
        free(tensor);
        return NULL;
    }
    em_register(EM_TENSOR, tensor);
    return tensor;
}

EM_API aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride, int64_t offset,
                                 aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum, void *tensorDataAddr) {
    REQUIRE_ACL(em_is_live(EM_TENSOR, tensor), ACLNN_ERR_PARAM_NULLPTR, "aclInitTensor: %p is no live aclTensor", (void *)tensor);
    aclTensor filled;
    if (!fill_tensor(&filled, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum, tensorDataAddr)) return ACLNN_ERR_PARAM_INVALID;
    *tensor = filled;
    return 0;
}

EM_API aclScalar *aclCreateScalar(void *value, aclDataType dataType) {
    if (!value || !em_item_size(dataType)) {
        em_error(ACLNN_ERR_PARAM_INVALID, "aclCreateScalar: value is NULL, or unknown dtype %d", dataType);
        return NULL;
    }
    aclScalar *scalar = em_new(sizeof *scalar);
    char bytes[16]; /* the value may lie at any address */
    memcpy(bytes, value, em_item_size(dataType));
    EmTensor one = {.present = true, .numel = 1, .dtype = dataType, .data = bytes};
    double complex *whole = em_read_complex(&one);
    int64_t *integer = em_read_integers(&one);
    *scalar = (aclScalar){.magic = MAGIC + EM_SCALAR, .dtype = dataType, .real = creal(*whole), .imag = cimag(*whole), .integer = *integer};
    free(whole), free(integer);
    em_register(EM_SCALAR, scalar);
    return scalar;
}

/* Arrays have one layout: magic, size, values. */
static void *create_array(int kind, const void *values, uint64_t size, size_t item) {
    if (size && !values) {
        em_error(ACLNN_ERR_PARAM_NULLPTR, "an array of %llu values without values", (unsigned long long)size);
        return NULL;
    }
    aclIntArray *array = em_new(sizeof *array);
    array->magic = (uint32_t)(MAGIC + kind), array->size = size;
    array->values = em_new(size ? size * item : 1);
    if (size) memcpy(array->values, values, size * item);
    em_register(kind, array);
    return array;
}

_Static_assert(sizeof(aclIntArray) == sizeof(aclFloatArray) && sizeof(aclIntArray) == sizeof(aclBoolArray) && sizeof(aclIntArray) == sizeof(aclTensorList) &&
                   sizeof(aclIntArray) == sizeof(aclScalarList) && offsetof(aclIntArray, values) == offsetof(aclTensorList, items),
               "arrays and lists have one layout");

EM_API aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size) { return create_array(EM_INT_ARRAY, value, size, sizeof *value); }
EM_API aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size) { return create_array(EM_FLOAT_ARRAY, value, size, sizeof *value); }
EM_API aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size) { return create_array(EM_BOOL_ARRAY, value, size, sizeof *value); }

static bool all_live(int kind, const void *const *items, uint64_t size) {
    for (uint64_t k = 0; k < size; k++)
        if (!items || !em_is_live(kind, items[k])) {
            em_error(ACLNN_ERR_PARAM_INVALID, "a list's item %llu is no live %s", (unsigned long long)k, kind == EM_TENSOR ? "aclTensor" : "aclScalar");
            return false;
        }
    return true;
}

EM_API aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size) {
    return all_live(EM_TENSOR, (const void *const *)value, size) ? create_array(EM_TENSOR_LIST, value, size, sizeof *value) : NULL;
}

EM_API aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size) {
    return all_live(EM_SCALAR, (const void *const *)value, size) ? create_array(EM_SCALAR_LIST, value, size, sizeof *value) : NULL;
}

/* Destroying. NULL is allowed. */

static aclnnStatus destroy(int kind, const void *object, const char *name) {
    if (!object) return 0;
    REQUIRE_ACL(em_unregister(kind, object), ACLNN_ERR_PARAM_INVALID, "aclDestroy%s: %p is no live acl%s (destroyed before, or something else)", name, object, name);
    *(uint32_t *)object = DEAD;
    if (kind >= EM_INT_ARRAY) em_discard(((aclIntArray *)object)->values);
    em_discard((void *)object);
    return 0;
}

EM_API aclnnStatus aclDestroyTensor(const aclTensor *tensor) { return destroy(EM_TENSOR, tensor, "Tensor"); }
EM_API aclnnStatus aclDestroyScalar(const aclScalar *scalar) { return destroy(EM_SCALAR, scalar, "Scalar"); }
EM_API aclnnStatus aclDestroyIntArray(const aclIntArray *array) { return destroy(EM_INT_ARRAY, array, "IntArray"); }
EM_API aclnnStatus aclDestroyFloatArray(const aclFloatArray *array) { return destroy(EM_FLOAT_ARRAY, array, "FloatArray"); }
EM_API aclnnStatus aclDestroyBoolArray(const aclBoolArray *array) { return destroy(EM_BOOL_ARRAY, array, "BoolArray"); }

/* A list and its items; the status of the first failure. */
static aclnnStatus destroy_list(int kind, int item_kind, const void *object, const char *name, const char *item_name) {
    aclnnStatus first = 0;
    if (object && em_is_live(kind, object)) {
        const aclTensorList *list = object;
        for (uint64_t k = 0; k < list->size; k++) {
            aclnnStatus status = destroy(item_kind, list->items[k], item_name);
            if (!first) first = status;
        }
    }
    aclnnStatus status = destroy(kind, object, name);
    return first ? first : status;
}

EM_API aclnnStatus aclDestroyTensorList(const aclTensorList *array) { return destroy_list(EM_TENSOR_LIST, EM_TENSOR, array, "TensorList", "Tensor"); }
EM_API aclnnStatus aclDestroyScalarList(const aclScalarList *array) { return destroy_list(EM_SCALAR_LIST, EM_SCALAR, array, "ScalarList", "Scalar"); }

void em_destroy_descriptors(void) {
    for (int kind = EM_TENSOR; kind <= EM_SCALAR_LIST; kind++)
        for (void *object; (object = em_some(kind));) destroy(kind, object, "");
}

/* Questions */

#define LIVE(KIND, OBJECT, RESULT)                                                                                                              \
    do {                                                                                                                                        \
        REQUIRE_ACL((OBJECT) && (RESULT), ACLNN_ERR_PARAM_NULLPTR, "%s: an argument is NULL", __func__);                                        \
        REQUIRE_ACL(em_is_live(KIND, OBJECT), ACLNN_ERR_PARAM_INVALID, "%s: %p is not live", __func__, (const void *)(OBJECT));                 \
    } while (0)

/* CANN gives memory of C++'s new[]; here it is malloc's. */
static aclnnStatus give(const int64_t *values, int count, int64_t **result, uint64_t *size) {
    *result = em_new(count ? (size_t)count * sizeof *values : 1);
    memcpy(*result, values, (size_t)count * sizeof *values);
    *size = (uint64_t)count;
    return 0;
}

EM_API aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum) {
    LIVE(EM_TENSOR, tensor, viewDims && viewDimsNum);
    return give(tensor->dims, tensor->ndim, viewDims, viewDimsNum);
}

EM_API aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims, uint64_t *storageDimsNum) {
    LIVE(EM_TENSOR, tensor, storageDims && storageDimsNum);
    return give(tensor->storage_dims, tensor->storage_ndim, storageDims, storageDimsNum);
}

EM_API aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue, uint64_t *stridesNum) {
    LIVE(EM_TENSOR, tensor, stridesValue && stridesNum);
    return give(tensor->strides, tensor->ndim, stridesValue, stridesNum);
}

EM_API aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset) {
    LIVE(EM_TENSOR, tensor, offset);
    *offset = tensor->offset;
    return 0;
}

EM_API aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format) {
    LIVE(EM_TENSOR, tensor, format);
    *format = tensor->format;
    return 0;
}

EM_API aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType) {
    LIVE(EM_TENSOR, tensor, dataType);
    *dataType = tensor->dtype;
    return 0;
}

EM_API aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr) {
    LIVE(EM_TENSOR, tensor, addr);
    *addr = tensor->data;
    return 0;
}

EM_API aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr) {
    LIVE(EM_TENSOR, tensor, true);
    REQUIRE_ACL((uintptr_t)addr % EM_ALIGNMENT == 0, ACLNN_ERR_PARAM_INVALID, "aclSetRawTensorAddr: %p is not aligned to %d bytes", addr, EM_ALIGNMENT);
    tensor->data = addr;
    return 0;
}

EM_API aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size) {
    LIVE(EM_INT_ARRAY, array, size);
    *size = array->size;
    return 0;
}

EM_API aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size) {
    LIVE(EM_FLOAT_ARRAY, array, size);
    *size = array->size;
    return 0;
}

EM_API aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size) {
    LIVE(EM_BOOL_ARRAY, array, size);
    *size = array->size;
    return 0;
}

EM_API aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList, uint64_t *size) {
    LIVE(EM_TENSOR_LIST, tensorList, size);
    *size = tensorList->size;
    return 0;
}

EM_API aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList, uint64_t *size) {
    LIVE(EM_SCALAR_LIST, scalarList, size);
    *size = scalarList->size;
    return 0;
}
