/* Choosing, masking and copying elements. */
#include "ops_pointwise.h"

KERNEL_RIC(where_kernel, 3, a != 0 ? b : c, a ? b : c, a != 0 ? b : c)
KERNEL_RIC(masked_fill_kernel, 2, b != 0 ? s0 : a, b ? s0 : a, b != 0 ? s0 : a)
KERNEL_RIC(masked_fill_tensor_kernel, 3, b != 0 ? c : a, b ? c : a, b != 0 ? c : a)
KERNEL_RIC(copy_kernel, 1, a, a, a)

EM_OP(aclnnSWhere, const aclTensor *condition, const aclTensor *self, const aclTensor *other, aclTensor *out) {
    EM_BEGIN(aclnnSWhere);
    EM_NOT_NULL(condition);
    EM_NOT_NULL(self);
    EM_NOT_NULL(other);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(condition->dtype, D_BOOL | D_U8), "the condition is neither bool nor uint8");
    EM_REQUIRE(pw_converts(em_promote(self->dtype, other->dtype), out->dtype), "the result's dtype does not convert to the output's");
    TRY(pw_check3(ex, condition, self, other, out, D_ALL, D_ALL, TO_ANY));
    return em_ready(ex, where_kernel, 0);
}

#define D_FILLED (D_FLOATS | D_I8 | D_I32 | D_I64 | D_BOOL)

EM_OP(aclnnInplaceMaskedFillScalar, aclTensor *selfRef, const aclTensor *mask, const aclScalar *value) {
    EM_BEGIN(aclnnInplaceMaskedFillScalar);
    EM_NOT_NULL(selfRef);
    EM_NOT_NULL(mask);
    EM_NOT_NULL(value);
    EM_REQUIRE(mask->dtype == ACL_BOOL, "the mask is not bool");
    TRY(pw_check2(ex, selfRef, mask, selfRef, D_FILLED, D_FILLED, TO_ANY));
    TRY(pw_add_number(ex, value, selfRef->dtype));
    return em_ready(ex, masked_fill_kernel, 0);
}

EM_OP(aclnnInplaceMaskedFillTensor, aclTensor *selfRef, const aclTensor *mask, const aclTensor *value) {
    EM_BEGIN(aclnnInplaceMaskedFillTensor);
    EM_NOT_NULL(selfRef);
    EM_NOT_NULL(mask);
    EM_NOT_NULL(value);
    EM_REQUIRE(mask->dtype == ACL_BOOL, "the mask is not bool");
    EM_REQUIRE(value->ndim == 0, "the value has dimensions");
    EM_REQUIRE(pw_converts(value->dtype, selfRef->dtype), "the value's dtype does not convert to selfRef's");
    TRY(pw_check3(ex, selfRef, mask, value, selfRef, D_FILLED, D_FILLED, TO_ANY));
    return em_ready(ex, masked_fill_tensor_kernel, 0);
}

/* The bytes of all elements in row-major order: for moving elements of any dtype unchanged. */
static char *read_bytes(const EmTensor *tensor, size_t size) {
    char *bytes = pw_allocate(tensor->numel, size);
    for (int64_t k = 0; k < tensor->numel; k++) memcpy(bytes + (size_t)k * size, em_at(tensor, k), size);
    return bytes;
}

static void masked_scatter_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *source = &call->tensor[2];
    size_t size = em_item_size(self->dtype);
    int64_t *mask = pw_integers_as(&call->tensor[1], self), next = 0, wanted = 0;
    for (int64_t k = 0; k < self->numel; k++) wanted += mask[k] != 0;
    if (wanted > source->numel) {
        em_kernel_failed(call, 0, "the mask selects %lld elements, the source has %lld", (long long)wanted, (long long)source->numel);
    } else {
        char *bytes = read_bytes(source, size);
        for (int64_t k = 0; k < self->numel; k++)
            if (mask[k]) memcpy(em_at(self, k), bytes + (size_t)next++ * size, size);
        free(bytes);
    }
    free(mask);
}

EM_OP(aclnnInplaceMaskedScatter, aclTensor *selfRef, const aclTensor *mask, const aclTensor *source) {
    EM_BEGIN(aclnnInplaceMaskedScatter);
    EM_NOT_NULL(selfRef);
    EM_NOT_NULL(mask);
    EM_NOT_NULL(source);
    EM_REQUIRE(pw_is(selfRef->dtype, D_COMMON), "selfRef has dtype %d, which is not supported", selfRef->dtype);
    EM_REQUIRE(pw_is(mask->dtype, D_BOOL | D_U8), "the mask is neither bool nor uint8");
    EM_REQUIRE(source->dtype == selfRef->dtype, "source and selfRef differ in dtype");
    EM_REQUIRE(pw_expands(mask, selfRef), "the mask does not broadcast to selfRef");
    em_tensor(ex, selfRef);
    em_tensor(ex, mask);
    em_tensor(ex, source);
    return em_ready(ex, masked_scatter_kernel, 0);
}

/* The output has room for all elements; what was selected is at its start, and its shape becomes their number. */
static void masked_select_kernel(EmCall *call) {
    const EmTensor *out = &call->tensor[2];
    EmTensor like = {.ndim = call->integers};
    if (like.ndim) memcpy(like.dims, call->integer, (size_t)like.ndim * sizeof *like.dims);
    size_t size = em_item_size(out->dtype);
    EmTensor seen = em_expand(&call->tensor[0], like.ndim, like.dims);
    char *bytes = read_bytes(&seen, size);
    int64_t *mask = pw_integers_as(&call->tensor[1], &like), found = 0;
    for (int64_t k = 0; k < seen.numel; k++)
        if (mask[k]) memcpy(em_at(out, found++), bytes + (size_t)k * size, size);
    em_set_view_shape(call, 2, 1, &found);
    free(bytes), free(mask);
}

EM_OP(aclnnMaskedSelect, const aclTensor *self, const aclTensor *mask, aclTensor *out) {
    EM_BEGIN(aclnnMaskedSelect);
    EM_NOT_NULL(self);
    EM_NOT_NULL(mask);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(self->dtype, D_COMMON), "self has dtype %d, which is not supported", self->dtype);
    EM_REQUIRE(pw_is(mask->dtype, D_BOOL | D_U8), "the mask is neither bool nor uint8");
    EM_REQUIRE(out->dtype == self->dtype, "out and self differ in dtype");
    const aclTensor *both[] = {self, mask};
    int ndim;
    int64_t dims[EM_MAX_DIMS], numel = 1;
    EM_REQUIRE(pw_broadcast(2, both, &ndim, dims), "self and mask do not broadcast");
    for (int d = 0; d < ndim; d++) numel *= dims[d];
    EM_REQUIRE(out->ndim == 1 && out->dims[0] == numel, "out is not one-dimensional with as many elements as self and mask have");
    em_tensor(ex, self);
    em_tensor(ex, mask);
    em_tensor(ex, out);
    for (int d = 0; d < ndim; d++) em_integer(ex, dims[d]);
    return em_ready(ex, masked_select_kernel, 0);
}

EM_OP(aclnnCast, const aclTensor *self, const aclDataType dtype, aclTensor *out) {
    EM_BEGIN(aclnnCast);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_REQUIRE(out->dtype == dtype, "out has dtype %d, not %d", out->dtype, dtype);
    EM_REQUIRE(em_same_shape(self, out), "self and out differ in shape");
    TRY(pw_check1(ex, self, out, D_ALL, D_ALL, TO_ANY));
    return em_ready(ex, copy_kernel, 0);
}

static bool is_contiguous(const aclTensor *tensor) {
    int64_t expected = 1;
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        if (tensor->dims[d] != 1 && tensor->strides[d] != expected) return false;
        expected *= tensor->dims[d];
    }
    return true;
}

EM_OP(aclnnInplaceCopy, aclTensor *selfRef, const aclTensor *src) {
    EM_BEGIN(aclnnInplaceCopy);
    EM_NOT_NULL(selfRef);
    EM_NOT_NULL(src);
    EM_REQUIRE(pw_is(selfRef->dtype, D_ALL) && pw_is(src->dtype, D_ALL), "the dtypes are not supported");
    EM_REQUIRE(pw_expands(src, selfRef), "src does not broadcast to selfRef");
    /* documented: complex numbers are copied to complex numbers only when selfRef is contiguous */
    EM_REQUIRE(!em_is_complex(selfRef->dtype) || !em_is_complex(src->dtype) || is_contiguous(selfRef), "a complex selfRef is not contiguous");
    em_tensor(ex, src);
    em_tensor(ex, selfRef);
    return em_ready(ex, copy_kernel, 0);
}
