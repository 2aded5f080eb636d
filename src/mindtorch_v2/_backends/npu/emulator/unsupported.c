/* What an emulated device refuses, as some chips do: dumps. */
#include "runtime.h"

EM_API aclnnStatus aclDumpOpTensors(const char *opType, const char *opName, aclTensor **tensors, size_t inputTensorNum, size_t outputTensorNum, aclrtStream stream) {
    (void)opType, (void)opName, (void)tensors, (void)inputTensorNum, (void)outputTensorNum, (void)stream;
    return em_error(ACLNN_ERR_INNER, "aclDumpOpTensors: the emulated device does not support it");
}
