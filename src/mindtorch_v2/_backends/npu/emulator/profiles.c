/* Profiles: what CANN 8.1.RC1 does not have, of the functions that the emulator has. Facts of its headers. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

static const char *const newer_than_8_1[] = {
    "aclDumpOpTensors", "aclrtCtxGetCurrentDefaultStream", "aclrtDeviceGetStreamPriorityRange", "aclrtDeviceGetUuid", "aclrtDevicePeerAccessStatus",
    "aclrtFreeHostWithDevSync", "aclrtFreeWithDevSync", "aclrtGetDeviceCapability", "aclrtGetDeviceInfo", "aclrtGetEventAvailNum", "aclrtGetEventId",
    "aclrtGetMemUsageInfo", "aclrtGetStreamAttribute", "aclrtGetStreamAvailableNum", "aclrtHostRegisterV2", "aclrtLaunchHostFunc",
    "aclrtSetStreamAttribute", "aclrtStreamGetFlags", "aclrtStreamGetPriority", "aclrtStreamWaitEventWithTimeout", "aclsysGetVersionNum",
    "aclsysGetVersionStr", "aclnnHeaviside", "aclnnIndexFill", "aclnnLeftShift", "aclnnScatterReduce", "aclnnSquare",
};

/* The profile (MINDTORCH_NPU_EMULATOR_CANN) that lacks a function, or NULL. An operator's two phases have one answer. */
EM_API const char *emMissing(const char *symbol) {
    const char *profile = getenv("MINDTORCH_NPU_EMULATOR_CANN");
    if (!profile || strncmp(profile, "8.1", 3)) return NULL;
    size_t length = strlen(symbol);
    const char *end = strstr(symbol, "GetWorkspaceSize");
    if (end && !strncmp(symbol, "aclnn", 5)) length = (size_t)(end - symbol);
    for (size_t k = 0; k < sizeof newer_than_8_1 / sizeof *newer_than_8_1; k++)
        if (strlen(newer_than_8_1[k]) == length && !strncmp(newer_than_8_1[k], symbol, length)) return "CANN 8.1.RC1";
    return NULL;
}
