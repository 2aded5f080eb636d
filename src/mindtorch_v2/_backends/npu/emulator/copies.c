/* Copies and fills: at once, or on a stream. The range of a copy of rows (2d) reaches from its first byte to its last. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

typedef struct Side { bool device, pinned; EmRange range; } Side;

typedef struct Copy {
    EmTask task;
    Side to, from;
    size_t to_pitch, from_pitch, width, height;
    bool fill;
    int value;
} Copy;

static char *reach(const Side *side, const char *what) {
    if (side->device) return em_translate(&side->range, what);
    if (side->pinned && !em_is_pinned(side->range.address, side->range.bytes))
        em_die("%s uses %zu bytes at %p on a stream, but this pinned memory was freed before it was done", what, side->range.bytes, side->range.address);
    return (char *)side->range.address;
}

static void run_copy(EmStream *stream, EmTask *task) {
    (void)stream;
    const Copy *copy = (const Copy *)task;
    char *to = reach(&copy->to, task->name);
    if (copy->fill) {
        memset(to, copy->value, copy->width);
    } else {
        char *from = reach(&copy->from, task->name);
        for (size_t row = 0; row < copy->height; row++) memmove(to + row * copy->to_pitch, from + row * copy->from_pitch, copy->width);
        reach(&copy->from, task->name); /* freed meanwhile? */
    }
    reach(&copy->to, task->name);
}

static aclError check_side(Side *side, bool device, const void *address, size_t bytes, int current, const char *name, const char *which) {
    REQUIRE_ACL(address, RT_PARAM_INVALID, "%s: %s is NULL", name, which);
    *side = (Side){.device = device, .range = {address, bytes, 0}};
    if (device) return em_range(&side->range, address, bytes, current, name);
    REQUIRE_ACL(!em_is_device_address(address), RT_PARAM_INVALID, "%s: %s (%p) is device memory, but the kind of copy says host", name, which, address);
    side->pinned = em_is_pinned(address, bytes);
    return 0;
}

static aclError prepare(Copy *copy, void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind, const char *name) {
    int device;
    TRY_ACL(em_need_device(&device));
    if (kind == COPY_DEFAULT) kind = em_is_device_address(dst) ? (em_is_device_address(src) ? COPY_D2D : COPY_H2D) : em_is_device_address(src) ? COPY_D2H : COPY_H2H;
    if (kind == 6 || kind == 7) kind = COPY_D2D; /* within a device, and between devices */
    REQUIRE_ACL(kind >= COPY_H2H && kind <= COPY_D2D, RT_PARAM_INVALID, "%s: unknown kind %d", name, kind);
    REQUIRE_ACL(width <= dpitch && width <= spitch, RT_PARAM_INVALID, "%s: a width of %zu is more than a pitch", name, width);
    *copy = (Copy){.task = {.name = name, .run = run_copy, .release = em_free_task}, .to_pitch = dpitch, .from_pitch = spitch, .width = width, .height = height};
    TRY_ACL(check_side(&copy->to, kind == COPY_H2D || kind == COPY_D2D, dst, dpitch * (height - 1) + width, device, name, "dst"));
    return check_side(&copy->from, kind == COPY_D2H || kind == COPY_D2D, src, spitch * (height - 1) + width, device, name, "src");
}

static aclError enqueue(const Copy *copy, aclrtStream handle) {
    EmStream *stream;
    TRY_ACL(em_stream(handle, &stream));
    Copy *queued = em_new(sizeof *queued);
    *queued = *copy;
    uint64_t number = em_enqueue(stream, &queued->task);
    const bool pageable = (!copy->to.device && !copy->to.pinned) || (!copy->fill && !copy->from.device && !copy->from.pinned);
    if (pageable) em_wait_for(stream, number);
    return 0;
}

static aclError copy_now(Copy *copy, const char *name) {
    const char *before = em_running;
    em_running = name;
    run_copy(NULL, &copy->task);
    em_running = before;
    return 0;
}

EM_API aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
    Copy copy;
    REQUIRE_ACL(count <= destMax, RT_PARAM_INVALID, "aclrtMemcpy: %zu bytes are more than dst has (%zu)", count, destMax);
    if (!count) return em_need_init();
    TRY_ACL(prepare(&copy, dst, count, src, count, count, 1, kind, "aclrtMemcpy"));
    return copy_now(&copy, "aclrtMemcpy");
}

EM_API aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream) {
    Copy copy;
    REQUIRE_ACL(count <= destMax, RT_PARAM_INVALID, "aclrtMemcpyAsync: %zu bytes are more than dst has (%zu)", count, destMax);
    if (!count) return em_need_init();
    TRY_ACL(prepare(&copy, dst, count, src, count, count, 1, kind, "aclrtMemcpyAsync"));
    REQUIRE_ACL(copy.to.device || copy.from.device, RT_NOT_SUPPORTED, "aclrtMemcpyAsync: copies from host to host are not supported on a stream");
    return enqueue(&copy, stream);
}

EM_API aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind) {
    Copy copy;
    if (!width || !height) return em_need_init();
    TRY_ACL(prepare(&copy, dst, dpitch, src, spitch, width, height, kind, "aclrtMemcpy2d"));
    return copy_now(&copy, "aclrtMemcpy2d");
}

EM_API aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
    Copy copy;
    if (!width || !height) return em_need_init();
    TRY_ACL(prepare(&copy, dst, dpitch, src, spitch, width, height, kind, "aclrtMemcpy2dAsync"));
    REQUIRE_ACL(copy.to.device || copy.from.device, RT_NOT_SUPPORTED, "aclrtMemcpy2dAsync: copies from host to host are not supported on a stream");
    return enqueue(&copy, stream);
}

static aclError prepare_fill(Copy *copy, void *dst, size_t room, int32_t value, size_t count, const char *name) {
    int device;
    TRY_ACL(em_need_device(&device));
    REQUIRE_ACL(count <= room, RT_PARAM_INVALID, "%s: %zu bytes are more than devPtr has (%zu)", name, count, room);
    *copy = (Copy){.task = {.name = name, .run = run_copy, .release = em_free_task}, .width = count, .fill = true, .value = value};
    return check_side(&copy->to, em_is_device_address(dst), dst, count, device, name, "devPtr");
}

EM_API aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) {
    Copy copy;
    if (!count) return em_need_init();
    TRY_ACL(prepare_fill(&copy, devPtr, maxCount, value, count, "aclrtMemset"));
    return copy_now(&copy, "aclrtMemset");
}

EM_API aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
    Copy copy;
    if (!count) return em_need_init();
    TRY_ACL(prepare_fill(&copy, devPtr, maxCount, value, count, "aclrtMemsetAsync"));
    return enqueue(&copy, stream);
}
