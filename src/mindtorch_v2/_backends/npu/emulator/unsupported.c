/* What an emulated device refuses, as some chips do: addresses that are reserved and mapped to physical memory apart, and dumps. */
#include "runtime.h"

static aclError refuse(const char *name) {
    TRY_ACL(em_need_init());
    return em_error(RT_NOT_SUPPORTED, "%s: the emulated device does not support it", name);
}

EM_API aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags) {
    (void)virPtr, (void)size, (void)alignment, (void)expectPtr, (void)flags;
    return refuse(__func__);
}

EM_API aclError aclrtReleaseMemAddress(void *virPtr) {
    (void)virPtr;
    return refuse(__func__);
}

EM_API aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags) {
    (void)handle, (void)size, (void)prop, (void)flags;
    return refuse(__func__);
}

EM_API aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
    (void)handle;
    return refuse(__func__);
}

EM_API aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    (void)virPtr, (void)size, (void)offset, (void)handle, (void)flags;
    return refuse(__func__);
}

EM_API aclError aclrtUnmapMem(void *virPtr) {
    (void)virPtr;
    return refuse(__func__);
}

EM_API aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option, size_t *granularity) {
    (void)prop, (void)option, (void)granularity;
    return refuse(__func__);
}

EM_API aclnnStatus aclDumpOpTensors(const char *opType, const char *opName, aclTensor **tensors, size_t inputTensorNum, size_t outputTensorNum, aclrtStream stream) {
    (void)opType, (void)opName, (void)tensors, (void)inputTensorNum, (void)outputTensorNum, (void)stream;
    return em_error(ACLNN_ERR_INNER, "aclDumpOpTensors: the emulated device does not support it");
}
