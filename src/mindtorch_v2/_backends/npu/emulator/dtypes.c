/* The first phase refuses dtypes as the chip does; see Note [Dtypes of the chip]. */
#include "runtime.h"

#include <string.h>

static bool refuses(const char *function, const char *parameter, aclDataType dtype, uint32_t taken) {
    if (!strncmp(em_state.soc, "Ascend950", 9)) return false; /* whose lists are longer, and were not read */
    if (dtype >= 0 && dtype < 32 && (taken >> dtype & 1)) return false;
    em_error(ACLNN_ERR_PARAM_INVALID, "%s: %s has dtype %d, which %s does not take", function, parameter, (int)dtype, em_state.soc);
    return true;
}

bool em_refuses_tensor(const char *function, const char *parameter, const aclTensor *tensor, uint32_t taken) {
    return tensor && em_is_live(EM_TENSOR, tensor) && refuses(function, parameter, tensor->dtype, taken);
}

bool em_refuses_scalar(const char *function, const char *parameter, const aclScalar *scalar, uint32_t taken) {
    return scalar && em_is_live(EM_SCALAR, scalar) && refuses(function, parameter, scalar->dtype, taken);
}

aclnnStatus em_refused(uint64_t *workspace_size, aclOpExecutor **executor) {
    if (workspace_size) *workspace_size = 0;
    if (executor) *executor = NULL;
    return ACLNN_ERR_PARAM_INVALID;
}

#include "dtypes.h"
