/* Functions of the host on a stream; and what an emulated device does not do: mapping of physical memory, dumps.
 *
 * Note [Callbacks]
 * aclrtLaunchCallback's functions run on the thread that was subscribed for the stream, inside its aclrtProcessReport; a blocking one holds the stream until then.
 */
#include "runtime.h"

#include <stdlib.h>

typedef struct Callback {
    EmTask task;
    void (*function)(void *);
    void *argument;
    bool blocking, finished;
    uint64_t thread;
    struct Callback *next;
} Callback;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static Callback *reported;

static void prepare(void) { em_condition(&changed); }

static void run_function(EmStream *stream, EmTask *task) {
    (void)stream;
    Callback *callback = (Callback *)task;
    callback->function(callback->argument);
}

EM_API aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args) {
    EmStream *on;
    TRY_ACL(em_stream(stream, &on));
    REQUIRE_ACL(fn, RT_PARAM_INVALID, "aclrtLaunchHostFunc: fn is NULL");
    Callback *callback = em_new(sizeof *callback);
    *callback = (Callback){.task = {.name = "aclrtLaunchHostFunc", .run = run_function, .release = em_free_task}, .function = fn, .argument = args};
    em_enqueue(on, &callback->task);
    return 0;
}

/* On the stream's thread: hand a copy over to the subscribed thread. */
static void run_report(EmStream *stream, EmTask *task) {
    Callback *copy = em_new(sizeof *copy);
    *copy = *(Callback *)task;
    copy->thread = em_stream_subscriber(stream);
    copy->next = NULL;
    pthread_mutex_lock(&lock);
    Callback **end = &reported;
    while (*end) end = &(*end)->next;
    *end = copy;
    pthread_cond_broadcast(&changed);
    const bool blocking = copy->blocking;
    while (blocking && !copy->finished) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (blocking) free(copy);
}

EM_API aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream) {
    EmStream *on;
    TRY_ACL(em_stream(stream, &on));
    REQUIRE_ACL(fn && (blockType == 0 || blockType == 1), RT_PARAM_INVALID, "aclrtLaunchCallback: fn is NULL, or %d is no block type", blockType);
    REQUIRE_ACL(em_stream_subscribed(on), RT_NO_CALLBACK_THREAD, "aclrtLaunchCallback: no thread is subscribed for the stream");
    pthread_once(&once, prepare);
    Callback *callback = em_new(sizeof *callback);
    *callback = (Callback){.task = {.name = "aclrtLaunchCallback", .run = run_report, .release = em_free_task}, .function = fn, .argument = userData, .blocking = blockType == 1};
    em_enqueue(on, &callback->task);
    return 0;
}

EM_API aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
    EmStream *on;
    TRY_ACL(em_stream(stream, &on));
    REQUIRE_ACL(threadId, RT_PARAM_INVALID, "aclrtSubscribeReport: threadId is 0");
    REQUIRE_ACL(!em_stream_subscribed(on), RT_STREAM_SUBSCRIBE, "aclrtSubscribeReport: a thread is subscribed for the stream");
    pthread_once(&once, prepare);
    em_stream_subscribe(on, threadId);
    return 0;
}

EM_API aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
    EmStream *on;
    TRY_ACL(em_stream(stream, &on));
    REQUIRE_ACL(em_stream_subscriber(on) == threadId, RT_THREAD_SUBSCRIBE, "aclrtUnSubscribeReport: the thread is not subscribed for the stream");
    em_stream_subscribe(on, 0);
    return 0;
}

static Callback *take(uint64_t thread) {
    for (Callback **at = &reported; *at; at = &(*at)->next)
        if ((*at)->thread == thread) {
            Callback *callback = *at;
            *at = callback->next;
            return callback;
        }
    return NULL;
}

EM_API aclError aclrtProcessReport(int32_t timeout) {
    TRY_ACL(em_need_init());
    pthread_once(&once, prepare);
    struct timespec deadline = em_deadline(timeout);
    const uint64_t self = (uint64_t)pthread_self();
    bool in_time = true;
    pthread_mutex_lock(&lock);
    Callback *callback = take(self);
    while (!callback && in_time) {
        in_time = em_wait(&changed, &lock, timeout, &deadline);
        callback = take(self);
    }
    pthread_mutex_unlock(&lock);
    REQUIRE_ACL(callback, RT_REPORT_TIMEOUT, "aclrtProcessReport: no callback within %d ms", timeout);
    const bool blocking = callback->blocking;
    callback->function(callback->argument);
    if (!blocking) {
        free(callback);
        return 0;
    }
    pthread_mutex_lock(&lock);
    callback->finished = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

EM_API aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
    (void)callback; /* failures of kernels surface at the next synchronisation only */
    return em_need_init();
}
