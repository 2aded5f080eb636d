/* Streams: a queue and a thread each.
 *
 * Note [Failures]
 * A kernel's failure is remembered by its stream; the next synchronisation of the stream, or of its device, gives the code, and then the stream is as new.
 * With the failure mode "stop", work that is behind the failure is skipped until then.
 */
#include "runtime.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct EmStream {
    int device;
    int32_t id;
    uint32_t priority, flags;
    uint64_t failure_mode, subscriber;
    bool subscribed, quit;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    EmTask *first, *last;
    uint64_t submitted, completed, aborted; /* numbers of tasks; those up to `aborted` are skipped */
    aclError error;
    char message[512];
    EmStream *next; /* in the list of all streams */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static EmStream *all;
static int32_t next_id;
static int64_t threads;
static _Thread_local EmStream *mine; /* the stream whose thread this is */

enum { PRIORITIES = 8, STOP_ON_FAILURE = 1 };

uint64_t em_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void em_condition(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec em_deadline(int32_t timeout) {
    uint64_t end = em_now() + (timeout > 0 ? (uint64_t)timeout : 0) * UINT64_C(1000000);
    return (struct timespec){(time_t)(end / 1000000000), (long)(end % 1000000000)};
}

bool em_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int32_t timeout, const struct timespec *deadline) {
    if (timeout < 0) {
        pthread_cond_wait(condition, lock);
        return true;
    }
    return pthread_cond_timedwait(condition, lock, deadline) != ETIMEDOUT;
}

void em_free_task(EmTask *task) { free(task); }
int em_stream_device(const EmStream *stream) { return stream->device; }
bool em_stream_subscribed(const EmStream *stream) { return stream->subscribed; }
uint64_t em_stream_subscriber(const EmStream *stream) { return stream->subscriber; }

void em_stream_subscribe(EmStream *stream, uint64_t thread) {
    stream->subscribed = thread != 0;
    stream->subscriber = thread;
}

bool em_aborted(EmStream *stream, const EmTask *task) {
    pthread_mutex_lock(&stream->lock);
    bool aborted = task->number <= stream->aborted;
    pthread_mutex_unlock(&stream->lock);
    return aborted;
}

void em_stream_failed(aclError code, const char *message) {
    if (!mine) em_die("%s failed outside of a stream: %s", em_running, message);
    pthread_mutex_lock(&mine->lock);
    if (!mine->error) {
        mine->error = code;
        snprintf(mine->message, sizeof mine->message, "%s", message);
    }
    pthread_mutex_unlock(&mine->lock);
}

static void *work(void *argument) {
    EmStream *stream = mine = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (!stream->first && !stream->quit) pthread_cond_wait(&stream->work, &stream->lock);
        EmTask *task = stream->first;
        if (!task) break;
        stream->first = task->next;
        if (!stream->first) stream->last = NULL;
        const bool stopped = stream->error && stream->failure_mode == STOP_ON_FAILURE;
        const bool run = task->always || (task->number > stream->aborted && !stopped);
        const uint64_t number = task->number;
        pthread_mutex_unlock(&stream->lock);
        em_running = task->name;
        if (run) task->run(stream, task);
        em_running = NULL;
        task->release(task);
        pthread_mutex_lock(&stream->lock);
        stream->completed = number;
        pthread_cond_broadcast(&stream->done);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

uint64_t em_enqueue(EmStream *stream, EmTask *task) {
    pthread_mutex_lock(&stream->lock);
    uint64_t number = task->number = ++stream->submitted;
    task->next = NULL;
    if (stream->last) stream->last->next = task;
    else stream->first = task;
    stream->last = task;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    return number;
}

void em_wait_for(EmStream *stream, uint64_t number) {
    pthread_mutex_lock(&stream->lock);
    while (stream->completed < number) pthread_cond_wait(&stream->done, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
}

static aclError create(EmStream **result, int device, uint32_t priority, uint32_t flags, int kind) {
    EmStream *stream = em_new(sizeof *stream);
    stream->device = device, stream->priority = priority, stream->flags = flags;
    pthread_mutex_init(&stream->lock, NULL);
    em_condition(&stream->work);
    em_condition(&stream->done);
    sigset_t none, before;
    sigfillset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before); /* signals are for the program's threads */
    int failed = pthread_create(&stream->thread, NULL, work, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(stream);
        return em_error(RT_RESOURCE, "a stream's thread cannot be started: %s", strerror(failed));
    }
    pthread_mutex_lock(&list_lock);
    stream->id = next_id++;
    stream->next = all;
    all = stream;
    threads++;
    pthread_mutex_unlock(&list_lock);
    em_register(kind, stream);
    *result = stream;
    return 0;
}

/* The stream is not registered any more: end its thread when its work is done. */
static void end(EmStream *stream) {
    pthread_mutex_lock(&stream->lock);
    stream->quit = true;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&list_lock);
    for (EmStream **at = &all; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    threads--;
    pthread_mutex_unlock(&list_lock);
    pthread_cond_destroy(&stream->work);
    pthread_cond_destroy(&stream->done);
    pthread_mutex_destroy(&stream->lock);
    em_discard(stream);
}

void em_streams_stop(void) {
    for (EmStream *stream; (stream = em_some(EM_STREAM));) em_unregister(EM_STREAM, stream), end(stream);
    for (EmStream *stream; (stream = em_some(EM_DEFAULT_STREAM));) em_unregister(EM_DEFAULT_STREAM, stream), end(stream);
}

void em_release_default_stream(EmContext *context) {
    EmStream *stream = context->default_stream;
    context->default_stream = NULL;
    if (stream && em_unregister(EM_DEFAULT_STREAM, stream)) end(stream);
}

int64_t em_threads(void) {
    pthread_mutex_lock(&list_lock);
    int64_t count = threads;
    pthread_mutex_unlock(&list_lock);
    return count;
}

static aclError default_stream(EmStream **stream) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    EmContext *context = em_current_context();
    aclError status = 0;
    pthread_mutex_lock(&lock);
    if (!context->default_stream) status = create(&context->default_stream, context->device, 0, 0, EM_DEFAULT_STREAM);
    *stream = context->default_stream;
    pthread_mutex_unlock(&lock);
    return status;
}

aclError em_stream(aclrtStream handle, EmStream **stream) {
    int device;
    TRY_ACL(em_need_device(&device));
    if (!handle) return default_stream(stream);
    REQUIRE_ACL(em_is_live(EM_STREAM, handle) || em_is_live(EM_DEFAULT_STREAM, handle), RT_INVALID_HANDLE, "%p is no live stream", handle);
    *stream = handle;
    REQUIRE_ACL((*stream)->device == device, RT_STREAM_CONTEXT, "the stream is of device %d, but the thread's device is %d", (*stream)->device, device);
    return 0;
}

static aclError synchronize(EmStream *stream, int32_t timeout) {
    struct timespec deadline = em_deadline(timeout);
    char message[sizeof stream->message];
    if (stream == mine) return em_error(RT_PARAM_INVALID, "a stream cannot wait for itself");
    pthread_mutex_lock(&stream->lock);
    const uint64_t number = stream->submitted;
    while (stream->completed < number)
        if (!em_wait(&stream->done, &stream->lock, timeout, &deadline)) {
            pthread_mutex_unlock(&stream->lock);
            return em_error(RT_STREAM_TIMEOUT, "the stream is not done after %d ms", timeout);
        }
    aclError error = stream->error;
    if (!em_state.sticky) stream->error = 0;
    memcpy(message, stream->message, sizeof message);
    pthread_mutex_unlock(&stream->lock);
    return error ? em_error(error, "%s", message) : 0;
}

EM_API aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    int device;
    TRY_ACL(em_need_device(&device));
    EmStream *streams[1024];
    int count = 0;
    pthread_mutex_lock(&list_lock);
    for (EmStream *stream = all; stream && count < 1024; stream = stream->next)
        if (stream->device == device) streams[count++] = stream;
    pthread_mutex_unlock(&list_lock);
    aclError first = 0;
    for (int s = 0; s < count; s++) {
        aclError error = synchronize(streams[s], timeout);
        if (error && !first) first = error;
    }
    return first;
}

void em_forget_failures(int device) {
    pthread_mutex_lock(&list_lock);
    for (EmStream *stream = all; stream; stream = stream->next)
        if (stream->device == device) {
            pthread_mutex_lock(&stream->lock);
            stream->error = 0;
            pthread_mutex_unlock(&stream->lock);
        }
    pthread_mutex_unlock(&list_lock);
}

EM_API aclError aclrtSynchronizeDevice(void) { return aclrtSynchronizeDeviceWithTimeout(-1); }

EM_API aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    int device;
    TRY_ACL(em_need_device(&device));
    REQUIRE_ACL(stream, RT_PARAM_INVALID, "aclrtCreateStream: stream is NULL");
    REQUIRE_ACL(priority < PRIORITIES, RT_PARAM_INVALID, "aclrtCreateStreamWithConfig: the priority is %u, and not from 0 to 7", priority);
    REQUIRE_ACL(flag < 64, RT_PARAM_INVALID, "aclrtCreateStreamWithConfig: unknown flags %u", flag);
    EmStream *made;
    TRY_ACL(create(&made, device, priority, flag, EM_STREAM));
    *stream = made;
    return 0;
}

EM_API aclError aclrtCreateStream(aclrtStream *stream) { return aclrtCreateStreamWithConfig(stream, 0, 0); }

static aclError abort_stream(EmStream *stream) {
    pthread_mutex_lock(&stream->lock);
    stream->aborted = stream->submitted;
    pthread_mutex_unlock(&stream->lock);
    em_events_wake();
    return 0;
}

static aclError destroy(aclrtStream handle, bool force) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(handle, RT_PARAM_INVALID, "aclrtDestroyStream: stream is NULL");
    REQUIRE_ACL(handle != (aclrtStream)mine, RT_PARAM_INVALID, "aclrtDestroyStream: called on the stream's own thread");
    REQUIRE_ACL(em_unregister(EM_STREAM, handle), RT_INVALID_HANDLE, "aclrtDestroyStream: %p is no live stream (destroyed before?)", handle);
    if (force) abort_stream(handle);
    end(handle);
    return 0;
}

EM_API aclError aclrtDestroyStream(aclrtStream stream) { return destroy(stream, false); }
EM_API aclError aclrtDestroyStreamForce(aclrtStream stream) { return destroy(stream, true); }

EM_API aclError aclrtStreamAbort(aclrtStream stream) {
    EmStream *found;
    TRY_ACL(em_stream(stream, &found));
    return abort_stream(found);
}

EM_API aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    EmStream *found;
    TRY_ACL(em_stream(stream, &found));
    return synchronize(found, timeout);
}

EM_API aclError aclrtSynchronizeStream(aclrtStream stream) { return aclrtSynchronizeStreamWithTimeout(stream, -1); }

EM_API aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status) {
    EmStream *found;
    TRY_ACL(em_stream(stream, &found));
    REQUIRE_ACL(status, RT_PARAM_INVALID, "aclrtStreamQuery: status is NULL");
    pthread_mutex_lock(&found->lock);
    *status = found->completed < found->submitted;
    pthread_mutex_unlock(&found->lock);
    return 0;
}

EM_API aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId) {
    EmStream *found;
    TRY_ACL(em_stream(stream, &found));
    REQUIRE_ACL(streamId, RT_PARAM_INVALID, "aclrtStreamGetId: streamId is NULL");
    *streamId = found->id;
    return 0;
}

EM_API aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority) {
    EmStream *found;
    TRY_ACL(em_stream(stream, &found));
    REQUIRE_ACL(priority, RT_PARAM_INVALID, "aclrtStreamGetPriority: priority is NULL");
    *priority = found->priority;
    return 0;
}

EM_API aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags) {
    EmStream *found;
    TRY_ACL(em_stream(stream, &found));
    REQUIRE_ACL(flags, RT_PARAM_INVALID, "aclrtStreamGetFlags: flags is NULL");
    *flags = found->flags;
    return 0;
}

EM_API aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
    EmStream *found;
    TRY_ACL(em_stream(stream, &found));
    REQUIRE_ACL(mode <= STOP_ON_FAILURE, RT_PARAM_INVALID, "aclrtSetStreamFailureMode: unknown mode");
    pthread_mutex_lock(&found->lock);
    found->failure_mode = mode;
    pthread_mutex_unlock(&found->lock);
    return 0;
}

enum { ATTRIBUTE_FAILURE_MODE = 1, ATTRIBUTE_PRIORITY = 5 };

EM_API aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value) {
    REQUIRE_ACL(value, RT_PARAM_INVALID, "aclrtSetStreamAttribute: value is NULL");
    if (stmAttrType == ATTRIBUTE_FAILURE_MODE) return aclrtSetStreamFailureMode(stream, value->failureMode);
    return em_error(RT_NOT_SUPPORTED, "aclrtSetStreamAttribute: attribute %d is not supported", stmAttrType);
}

EM_API aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value) {
    EmStream *found;
    TRY_ACL(em_stream(stream, &found));
    REQUIRE_ACL(value, RT_PARAM_INVALID, "aclrtGetStreamAttribute: value is NULL");
    if (stmAttrType == ATTRIBUTE_FAILURE_MODE) value->failureMode = found->failure_mode;
    else if (stmAttrType == ATTRIBUTE_PRIORITY) value->priority = found->priority;
    else return em_error(RT_NOT_SUPPORTED, "aclrtGetStreamAttribute: attribute %d is not supported", stmAttrType);
    return 0;
}

EM_API aclError aclrtGetStreamAvailableNum(uint32_t *streamCount) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(streamCount, RT_PARAM_INVALID, "aclrtGetStreamAvailableNum: streamCount is NULL");
    *streamCount = (uint32_t)(1024 - em_count(EM_STREAM));
    return 0;
}

EM_API aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(leastPriority && greatestPriority, RT_PARAM_INVALID, "aclrtDeviceGetStreamPriorityRange: an argument is NULL");
    *leastPriority = PRIORITIES - 1, *greatestPriority = 0;
    return 0;
}

EM_API aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream) {
    EmStream *found;
    REQUIRE_ACL(stream, RT_PARAM_INVALID, "aclrtCtxGetCurrentDefaultStream: stream is NULL");
    TRY_ACL(em_stream(NULL, &found));
    *stream = found;
    return 0;
}
