/* What the host's part of a call costs in the emulator itself, to be taken off what is measured. */
#include "emulator.h"

#include <time.h>

aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride, int64_t offset, aclFormat format,
                           const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData);
aclScalar *aclCreateScalar(void *value, aclDataType dataType);
aclnnStatus aclDestroyTensor(const aclTensor *tensor);
aclnnStatus aclDestroyScalar(const aclScalar *scalar);
aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out, uint64_t *workspaceSize,
                                     aclOpExecutor **executor);
aclnnStatus aclnnAdd(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

static int64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The emulator's own share of the host's work for x + y of [4, 4]: nanoseconds of this thread for `count` times the calls that a host makes, from descriptors to their end.
 * Calls follow each other after `pause` nanoseconds, which are not counted: a stream that is done with its work has to be woken, as it is between a host's calls. */
EM_API int64_t emHostShare(void *x, void *y, void *out, aclrtStream stream, int64_t count, int64_t pause) {
    const int64_t dims[] = {4, 4}, strides[] = {4, 1}, stored[] = {16}, one = 1;
    int64_t spent = 0;
    for (int64_t n = 0; n < count; n++) {
        int64_t until = now(CLOCK_MONOTONIC) + pause;
        while (now(CLOCK_MONOTONIC) < until) {}
        aclTensor *made[3];
        void *data[] = {x, y, out};
        int64_t from = now(CLOCK_THREAD_CPUTIME_ID);
        for (int t = 0; t < 3; t++) made[t] = aclCreateTensor(dims, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, stored, 1, data[t]);
        aclScalar *alpha = aclCreateScalar((void *)&one, ACL_INT64);
        uint64_t size;
        aclOpExecutor *executor;
        if (aclnnAddGetWorkspaceSize(made[0], made[1], alpha, made[2], &size, &executor) || aclnnAdd(NULL, 0, executor, stream)) return -1;
        for (int t = 0; t < 3; t++) aclDestroyTensor(made[t]);
        aclDestroyScalar(alpha);
        spent += now(CLOCK_THREAD_CPUTIME_ID) - from;
    }
    return spent;
}
