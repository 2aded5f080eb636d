/* What the parts of the emulator's runtime share, and operators do not need: state, errors, the registry of live objects, streams' tasks, device memory.
 *
 * Note [Registry]
 * Every object that the host holds (descriptors, executors, streams, events, contexts) is in a table of live objects by its kind. What is not in the table
 * is never dereferenced, so that a second destroy, or a pointer to something else, is an error. Released objects stay unused for a while, lest a new one
 * takes their address at once.
 */
#ifndef MINDTORCH_EMULATOR_RUNTIME_H
#define MINDTORCH_EMULATOR_RUNTIME_H

#include "emulator.h"

#include <pthread.h>

#define EM_MAX_DEVICES 16
#define EM_POISON 0xFF /* NaN as floating numbers of every size, -1 as integers */
#define EM_ALIGNMENT 32

typedef int aclrtMemcpyKind, aclrtMemMallocPolicy, aclrtMemAttr, aclrtEventStatus, aclrtEventRecordedStatus, aclrtEventWaitStatus, aclrtStreamStatus, aclrtRunMode;
typedef int aclrtDevAttr, aclDeviceInfo, aclSysParamOpt, aclCannAttr, aclrtLastErrLevel, aclrtStreamAttr, aclrtDeviceStatus, aclrtDevFeatureType;
typedef int aclrtHostRegisterType, aclrtMemGranularityOptions, aclCANNPackageName, aclrtCallbackBlockType, aclrtFloatOverflowMode;
typedef void *aclrtDrvMemHandle;
typedef uint16_t aclFloat16;
typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *args);
typedef struct aclrtExceptionInfo aclrtExceptionInfo;
typedef void (*aclrtExceptionInfoCallback)(aclrtExceptionInfo *exceptionInfo);
typedef struct aclrtMallocConfig aclrtMallocConfig;
typedef struct aclrtUtilizationInfo aclrtUtilizationInfo;
typedef struct aclrtMemUsageInfo aclrtMemUsageInfo;
typedef struct aclrtPhysicalMemProp { int handleType, allocationType, memAttr; struct { uint32_t id; int type; } location; uint64_t reserve; } aclrtPhysicalMemProp;
typedef union aclrtStreamAttrValue { uint64_t failureMode; uint32_t overflowSwitch, userCustomTag, cacheOpInfoSwitch, priority; uint32_t reserve[4]; } aclrtStreamAttrValue;
typedef struct aclrtUuid { char bytes[16]; } aclrtUuid;
typedef struct aclrtPtrAttributes { struct { uint32_t id; int type; } location; uint32_t pageSize, rsv[4]; } aclrtPtrAttributes;
typedef struct aclCANNPackageVersion {
    char version[128], majorVersion[64], minorVersion[64], releaseVersion[64], patchVersion[64], reserved[128];
} aclCANNPackageVersion;

enum {
    ACL_ERROR_UNINITIALIZE = 100001, ACL_ERROR_REPEAT_INITIALIZE = 100002, ACL_ERROR_REPEAT_FINALIZE = 100037, RT_PARAM_INVALID = 107000,
    RT_INVALID_DEVICE = 107001, RT_CONTEXT_NULL = 107002, RT_STREAM_CONTEXT = 107003, RT_TIMESTAMP_INVALID = 107006, RT_TIMESTAMP_REVERSAL = 107007,
    RT_STREAM_SUBSCRIBE = 107011, RT_THREAD_SUBSCRIBE = 107012, RT_NO_CALLBACK_THREAD = 107015, RT_INVALID_HANDLE = 107017, RT_NOT_SUPPORTED = 207000,
    RT_OUT_OF_MEMORY = 207001, RT_RESOURCE = 207005, RT_NO_PERMISSION = 207006, RT_EVENT_NOT_COMPLETE = 507006, RT_REPORT_TIMEOUT = 507012,
    RT_KERNEL_EXCEPTION = 507015, RT_STREAM_TIMEOUT = 507046, RT_EVENT_TIMEOUT = 507047
};
enum { COPY_H2H, COPY_H2D, COPY_D2H, COPY_D2D, COPY_DEFAULT };
enum { EVENT_SYNC = 1, EVENT_CAPTURE = 2, EVENT_TIME_LINE = 8 };

typedef struct EmStream EmStream;
typedef struct EmContext { int device; bool primary; EmStream *default_stream; } EmContext;

typedef struct EmState {
    bool initialised;
    int devices;
    size_t memory;        /* of each device */
    char soc[32], cann[16];
    bool trace, sticky;   /* sticky: the error of a kernel is told by every synchronisation until the device is reset */
    uint64_t generation;  /* counts initialisations: threads forget their device with each */
    bool peer[EM_MAX_DEVICES][EM_MAX_DEVICES];
    EmContext primary[EM_MAX_DEVICES];
} EmState;
extern EmState em_state;

/* What a reset of the device does about failures that were not told. */
void em_forget_failures(int device);

/* Errors: em_error remembers code and message for this thread, and returns the code. em_die is for what must not be forgiven. */
aclError em_error(aclError code, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void em_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern _Thread_local const char *em_running; /* the operator or copy that this thread of a stream runs */

/* The thread's device: an error when the library is not initialised, or the thread has none. */
aclError em_need_init(void);
aclError em_need_device(int *device);
EmContext *em_current_context(void);
#define TRY_ACL(expression)               \
    do {                                  \
        aclError tried = (expression);    \
        if (tried) return tried;          \
    } while (0)
#define REQUIRE_ACL(condition, code, ...) do { if (!(condition)) return em_error(code, __VA_ARGS__); } while (0)

/* See Note [Registry] */
enum {
    EM_TENSOR, EM_SCALAR, EM_INT_ARRAY, EM_FLOAT_ARRAY, EM_BOOL_ARRAY, EM_TENSOR_LIST, EM_SCALAR_LIST, EM_EXECUTOR, EM_STREAM, EM_DEFAULT_STREAM, EM_EVENT,
    EM_CONTEXT, EM_PHYSICAL, EM_KINDS
};
void *em_new(size_t size);                        /* zeroed memory, never NULL */
void em_register(int kind, void *object);
bool em_is_live(int kind, const void *object);
bool em_unregister(int kind, const void *object); /* false: it was not live */
void em_discard(void *object);                    /* free, after a while */
void em_discard_all(void);                        /* what is in quarantine */
int64_t em_count(int kind);
void *em_some(int kind);                          /* any live object, or NULL */
void em_destroy_descriptors(void);                /* all that are left, at the end */

/* Device memory */
aclError em_memory_start(void);
void em_memory_stop(void);
bool em_is_device_address(const void *address);   /* of any device, live or not */
bool em_find_block(const void *address, size_t bytes, int *device, uint64_t *serial);
bool em_is_pinned(const void *address, size_t bytes);
int64_t em_device_blocks(void);
int64_t em_device_bytes(void);
int64_t em_host_blocks(void);
/* A range that queued work uses: remembered when it is put on the stream, translated when it runs. Aborts when the block is not the one it was. */
typedef struct EmRange { const void *address; size_t bytes; uint64_t serial; } EmRange;
aclError em_range(EmRange *range, const void *address, size_t bytes, int device, const char *what);
void *em_translate(const EmRange *range, const char *what);

/* Streams: a task is put on a stream and runs on its thread; `release` follows, also when it was skipped. */
typedef struct EmTask EmTask;
struct EmTask {
    EmTask *next;
    uint64_t number;
    const char *name;
    bool always;                 /* run also when the stream is aborted: others wait for it */
    void (*run)(EmStream *stream, EmTask *task);
    void (*release)(EmTask *task); /* frees the task, too */
};
aclError em_stream(aclrtStream handle, EmStream **stream); /* NULL: the current default stream */
int em_stream_device(const EmStream *stream);
uint64_t em_enqueue(EmStream *stream, EmTask *task);
void em_wait_for(EmStream *stream, uint64_t number);
bool em_aborted(EmStream *stream, const EmTask *task);
void em_stream_failed(aclError code, const char *message); /* of the stream whose thread this is */
void em_streams_stop(void);                                /* all, when their work is done */
void em_release_default_stream(EmContext *context);
int64_t em_threads(void);
void em_free_task(EmTask *task);
bool em_stream_subscribed(const EmStream *stream);
void em_stream_subscribe(EmStream *stream, uint64_t thread);
uint64_t em_stream_subscriber(const EmStream *stream);
/* Wait for a condition until `timeout` milliseconds from now (-1: for ever). em_deadline gives the moment; em_wait false when it has passed. */
struct timespec em_deadline(int32_t timeout);
bool em_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int32_t timeout, const struct timespec *deadline);
void em_condition(pthread_cond_t *condition);
uint64_t em_now(void); /* nanoseconds */
void em_events_wake(void);

/* CANN's functions that other parts call, too */
EM_API aclError aclrtSynchronizeDevice(void);
EM_API aclError aclrtDestroyEvent(aclrtEvent event);
EM_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor);

/* Faults: whether one is set for `what` and this name; it is used up. */
bool em_fault(const char *what, const char *name, int64_t *value);
void em_count_launch(const char *name);

#endif
