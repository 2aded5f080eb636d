/* Events.
 *
 * Note [Recordings]
 * Each record gives the event a new number, which the stream's thread reports as done. Who waits remembers the number of the moment. A queued task keeps the event
 * alive: its memory goes with the last of them.
 */
#include "runtime.h"

#include <stdlib.h>

typedef struct EmEvent {
    int device, references;
    uint32_t id, flags;
    bool extended; /* made with aclrtCreateEventExWithFlag, whose flags are binding */
    uint64_t recorded, done, waiting, time;
} EmEvent;

typedef struct EventTask { EmTask task; EmEvent *event; uint64_t number; int32_t timeout; } EventTask;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all events */
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t next_id;
enum { EVENTS = 65536 };

static void prepare(void) { em_condition(&changed); }

void em_events_wake(void) {
    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static aclError create(aclrtEvent *event, uint32_t flags, bool extended) {
    int device;
    TRY_ACL(em_need_device(&device));
    REQUIRE_ACL(event, RT_PARAM_INVALID, "aclrtCreateEvent: event is NULL");
    REQUIRE_ACL(flags && flags < 128, RT_PARAM_INVALID, "aclrtCreateEvent: unknown flags %u", flags);
    pthread_once(&once, prepare);
    EmEvent *made = em_new(sizeof *made);
    *made = (EmEvent){.device = device, .references = 1, .flags = flags, .extended = extended};
    pthread_mutex_lock(&lock);
    made->id = next_id++;
    pthread_mutex_unlock(&lock);
    em_register(EM_EVENT, made);
    *event = made;
    return 0;
}

EM_API aclError aclrtCreateEvent(aclrtEvent *event) { return create(event, EVENT_SYNC | EVENT_CAPTURE | EVENT_TIME_LINE, false); }
EM_API aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) { return create(event, flag, false); }
EM_API aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) { return create(event, flag, true); }

static void drop(EmEvent *event) {
    pthread_mutex_lock(&lock);
    bool last = --event->references == 0;
    pthread_mutex_unlock(&lock);
    if (last) em_discard(event);
}

static aclError find(aclrtEvent handle, EmEvent **event) {
    *event = NULL;
    TRY_ACL(em_need_init());
    REQUIRE_ACL(em_is_live(EM_EVENT, handle), RT_INVALID_HANDLE, "%p is no live event (destroyed before?)", handle);
    *event = handle;
    return 0;
}

EM_API aclError aclrtDestroyEvent(aclrtEvent event) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(event, RT_PARAM_INVALID, "aclrtDestroyEvent: event is NULL");
    REQUIRE_ACL(em_unregister(EM_EVENT, event), RT_INVALID_HANDLE, "aclrtDestroyEvent: %p is no live event (destroyed before?)", event);
    drop(event);
    return 0;
}

static void release(EmTask *task) {
    drop(((EventTask *)task)->event);
    free(task);
}

/* A task of an event; needs the lock. */
static EventTask *new_task(EmEvent *event, const char *name, void (*run)(EmStream *, EmTask *)) {
    EventTask *task = em_new(sizeof *task);
    *task = (EventTask){.task = {.name = name, .run = run, .release = release}, .event = event, .number = event->recorded, .timeout = -1};
    event->references++;
    return task;
}

static void run_record(EmStream *stream, EmTask *task) {
    (void)stream;
    EventTask *record = (EventTask *)task;
    pthread_mutex_lock(&lock);
    if (record->number > record->event->done) record->event->done = record->number;
    record->event->time = em_now();
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

EM_API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    EmEvent *found;
    EmStream *on;
    TRY_ACL(find(event, &found));
    TRY_ACL(em_stream(stream, &on));
    REQUIRE_ACL(found->device == em_stream_device(on), RT_STREAM_CONTEXT, "aclrtRecordEvent: the event is of device %d, the stream of device %d", found->device,
                em_stream_device(on));
    pthread_mutex_lock(&lock);
    found->recorded++;
    EventTask *task = new_task(found, "aclrtRecordEvent", run_record);
    pthread_mutex_unlock(&lock);
    task->task.always = true;
    em_enqueue(on, &task->task);
    return 0;
}

static void run_wait(EmStream *stream, EmTask *task) {
    EventTask *wait = (EventTask *)task;
    struct timespec deadline = em_deadline(wait->timeout);
    bool in_time = true;
    pthread_mutex_lock(&lock);
    wait->event->waiting++;
    while (wait->event->done < wait->number && in_time) {
        pthread_mutex_unlock(&lock);
        bool aborted = em_aborted(stream, task);
        pthread_mutex_lock(&lock);
        if (aborted) break;
        if (wait->event->done < wait->number) in_time = em_wait(&changed, &lock, wait->timeout, &deadline);
    }
    wait->event->waiting--;
    pthread_mutex_unlock(&lock);
    if (!in_time) em_stream_failed(RT_EVENT_TIMEOUT, "a stream waited too long for an event");
}

EM_API aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
    EmEvent *found;
    EmStream *on;
    TRY_ACL(em_stream(stream, &on));
    TRY_ACL(find(event, &found));
    REQUIRE_ACL(found->flags & EVENT_SYNC, RT_PARAM_INVALID, "aclrtStreamWaitEvent: the event was made without ACL_EVENT_SYNC");
    pthread_mutex_lock(&lock);
    EventTask *task = new_task(found, "aclrtStreamWaitEvent", run_wait);
    pthread_mutex_unlock(&lock);
    task->timeout = timeout;
    em_enqueue(on, &task->task);
    return 0;
}

EM_API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) { return aclrtStreamWaitEventWithTimeout(stream, event, -1); }

EM_API aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
    EmEvent *found;
    EmStream *on;
    TRY_ACL(find(event, &found));
    TRY_ACL(em_stream(stream, &on));
    REQUIRE_ACL(!found->extended, RT_NOT_SUPPORTED, "aclrtResetEvent: not for events of aclrtCreateEventExWithFlag");
    pthread_mutex_lock(&lock);
    found->done = found->recorded;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

static bool is_done(EmEvent *event) {
    pthread_mutex_lock(&lock);
    bool done = event->done >= event->recorded;
    pthread_mutex_unlock(&lock);
    return done;
}

EM_API aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status) {
    EmEvent *found;
    TRY_ACL(find(event, &found));
    REQUIRE_ACL(status, RT_PARAM_INVALID, "aclrtQueryEvent: status is NULL");
    REQUIRE_ACL(!found->extended, RT_NOT_SUPPORTED, "aclrtQueryEvent: not for events of aclrtCreateEventExWithFlag");
    *status = !is_done(found);
    return 0;
}

EM_API aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
    EmEvent *found;
    TRY_ACL(find(event, &found));
    REQUIRE_ACL(status, RT_PARAM_INVALID, "aclrtQueryEventStatus: status is NULL");
    *status = is_done(found);
    return 0;
}

EM_API aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status) {
    EmEvent *found;
    TRY_ACL(find(event, &found));
    REQUIRE_ACL(status, RT_PARAM_INVALID, "aclrtQueryEventWaitStatus: status is NULL");
    REQUIRE_ACL(!found->extended, RT_NOT_SUPPORTED, "aclrtQueryEventWaitStatus: not for events of aclrtCreateEventExWithFlag");
    pthread_mutex_lock(&lock);
    *status = found->waiting != 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

EM_API aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
    EmEvent *found;
    TRY_ACL(find(event, &found));
    struct timespec deadline = em_deadline(timeout);
    bool in_time = true;
    pthread_mutex_lock(&lock);
    const uint64_t number = found->recorded;
    found->references++;
    while (found->done < number && in_time) in_time = em_wait(&changed, &lock, timeout, &deadline);
    pthread_mutex_unlock(&lock);
    drop(found);
    REQUIRE_ACL(in_time, RT_EVENT_TIMEOUT, "aclrtSynchronizeEvent: the event is not done after %d ms", timeout);
    return 0;
}

EM_API aclError aclrtSynchronizeEvent(aclrtEvent event) { return aclrtSynchronizeEventWithTimeout(event, -1); }

/* When a timing event was reached, in nanoseconds. */
static aclError time_of(EmEvent *event, uint64_t *time) {
    REQUIRE_ACL(event->flags & EVENT_TIME_LINE, RT_TIMESTAMP_INVALID, "the event was made without ACL_EVENT_TIME_LINE");
    pthread_mutex_lock(&lock);
    const bool recorded = event->recorded, done = event->done >= event->recorded;
    *time = event->time;
    pthread_mutex_unlock(&lock);
    REQUIRE_ACL(recorded, RT_TIMESTAMP_INVALID, "the event was not recorded");
    REQUIRE_ACL(done, RT_EVENT_NOT_COMPLETE, "the event is not done");
    return 0;
}

EM_API aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent) {
    EmEvent *start, *end;
    uint64_t from, to;
    TRY_ACL(find(startEvent, &start));
    TRY_ACL(find(endEvent, &end));
    REQUIRE_ACL(ms, RT_PARAM_INVALID, "aclrtEventElapsedTime: ms is NULL");
    TRY_ACL(time_of(start, &from));
    TRY_ACL(time_of(end, &to));
    REQUIRE_ACL(from <= to, RT_TIMESTAMP_REVERSAL, "aclrtEventElapsedTime: the end is before the start");
    *ms = (float)((double)(to - from) / 1e6);
    return 0;
}

EM_API aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp) {
    EmEvent *found;
    TRY_ACL(find(event, &found));
    REQUIRE_ACL(timestamp, RT_PARAM_INVALID, "aclrtEventGetTimestamp: timestamp is NULL");
    uint64_t time;
    TRY_ACL(time_of(found, &time));
    *timestamp = time / 1000;
    return 0;
}

EM_API aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId) {
    EmEvent *found;
    TRY_ACL(find(event, &found));
    REQUIRE_ACL(eventId, RT_PARAM_INVALID, "aclrtGetEventId: eventId is NULL");
    *eventId = found->id;
    return 0;
}

EM_API aclError aclrtGetEventAvailNum(uint32_t *eventCount) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(eventCount, RT_PARAM_INVALID, "aclrtGetEventAvailNum: eventCount is NULL");
    *eventCount = (uint32_t)(EVENTS - em_count(EM_EVENT));
    return 0;
}
