/* Device memory (Note [Device addresses]), pinned host memory, copies.
 *
 * Note [Blocks]
 * A device has twice its memory as addresses, so that fragmentation is the allocator's of the host and not this one's; what counts is the sum of blocks. Between
 * blocks are unused addresses. Each block has a serial number: queued work remembers it, and notices when its memory was freed, also when another block took its place.
 *
 * Note [Poison]
 * New and freed memory is filled with EM_POISON. Of blocks beyond POISONED bytes only the beginning is; their pages go back to the system instead, so that a test of
 * large blocks needs no memory.
 */
#include "runtime.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULE ((size_t)512)
#define POISONED ((size_t)64 << 20)

typedef struct Block { uintptr_t address; size_t size, room; uint64_t serial; } Block;
typedef struct Blocks { Block *items; size_t count, capacity, used; } Blocks;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Blocks device_blocks[EM_MAX_DEVICES]; /* each sorted by address */
static Blocks host_blocks;                   /* not sorted */
static uint64_t next_serial = 1;
static size_t span;                          /* addresses of one device */
static char *device_view, *host_view;

aclError em_memory_start(void) {
    const size_t page = (size_t)2 << 20;
    span = (2 * em_state.memory + 2 * page) / page * page;
    size_t all = span * (size_t)em_state.devices;
    int file = memfd_create("mindtorch-npu", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)all)) return em_error(RT_RESOURCE, "no memory for %d devices of %zu bytes", em_state.devices, em_state.memory);
    void *outside = mmap(NULL, all, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    void *inside = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    if (outside == MAP_FAILED || inside == MAP_FAILED) return em_error(RT_RESOURCE, "no address space for %zu bytes", all);
    device_view = outside, host_view = inside;
    madvise(inside, all, MADV_DONTDUMP);
    return 0;
}

void em_memory_stop(void) {
    size_t all = span * (size_t)em_state.devices;
    for (int d = 0; d < EM_MAX_DEVICES; d++) {
        free(device_blocks[d].items);
        device_blocks[d] = (Blocks){0};
    }
    for (size_t b = 0; b < host_blocks.count; b++)
        if (host_blocks.items[b].room) free((void *)host_blocks.items[b].address);
    free(host_blocks.items);
    host_blocks = (Blocks){0};
    munmap(device_view, all);
    munmap(host_view, all);
    device_view = host_view = NULL;
}

static void insert(Blocks *blocks, size_t at, Block block) {
    if (blocks->count == blocks->capacity) {
        blocks->capacity = blocks->capacity ? 2 * blocks->capacity : 16;
        blocks->items = realloc(blocks->items, blocks->capacity * sizeof *blocks->items);
        if (!blocks->items) abort();
    }
    memmove(blocks->items + at + 1, blocks->items + at, (blocks->count - at) * sizeof *blocks->items);
    blocks->items[at] = block;
    blocks->count++;
    blocks->used += block.room;
}

static void erase(Blocks *blocks, size_t at) {
    blocks->used -= blocks->items[at].room;
    blocks->count--;
    memmove(blocks->items + at, blocks->items + at + 1, (blocks->count - at) * sizeof *blocks->items);
}

bool em_is_device_address(const void *address) {
    return device_view && (const char *)address >= device_view && (const char *)address < device_view + span * (size_t)em_state.devices;
}

static int device_of(const void *address) { return (int)((size_t)((const char *)address - device_view) / span); }
static char *inside(const void *address) { return host_view + ((const char *)address - device_view); }

/* The block that an address is in; needs the lock. */
static Block *block_at(const void *address) {
    if (!em_is_device_address(address)) return NULL;
    Blocks *blocks = &device_blocks[device_of(address)];
    size_t low = 0, high = blocks->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks->items[middle].address <= (uintptr_t)address) low = middle + 1;
        else high = middle;
    }
    if (!low) return NULL;
    Block *block = &blocks->items[low - 1];
    return (uintptr_t)address - block->address < block->size ? block : NULL;
}

bool em_find_block(const void *address, size_t bytes, int *device, uint64_t *serial) {
    pthread_mutex_lock(&lock);
    Block *block = block_at(address);
    bool found = block && bytes <= block->size - ((uintptr_t)address - block->address);
    if (found && device) *device = device_of(address);
    if (found && serial) *serial = block->serial;
    pthread_mutex_unlock(&lock);
    return found;
}

void *em_host_address(const void *device, size_t bytes) {
    if (!device) return NULL;
    if (!em_find_block(device, bytes, NULL, NULL)) em_die("%s uses %zu bytes at %p, which is no live device memory: freed while in use?", em_running, bytes, device);
    return inside(device);
}

aclError em_range(EmRange *range, const void *address, size_t bytes, int device, const char *what) {
    int found = 0;
    *range = (EmRange){address, bytes, 0};
    REQUIRE_ACL(em_find_block(address, bytes, &found, &range->serial), RT_PARAM_INVALID, "%s: %zu bytes at %p are no live device memory", what, bytes, address);
    REQUIRE_ACL(found == device || em_state.peer[device][found], RT_NO_PERMISSION, "%s: %p is memory of device %d, to which device %d has no access", what, address,
                found, device);
    return 0;
}

void *em_translate(const EmRange *range, const char *what) {
    uint64_t serial = 0;
    if (!em_find_block(range->address, range->bytes, NULL, &serial) || serial != range->serial)
        em_die("%s uses %zu bytes at %p on a stream, but this device memory was freed before it was done", what, range->bytes, range->address);
    return inside(range->address);
}

static void poison(char *memory, size_t size) { memset(memory, EM_POISON, size < POISONED ? size : POISONED); }

EM_API aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy) {
    int device;
    (void)policy;
    TRY_ACL(em_need_device(&device));
    REQUIRE_ACL(devPtr, RT_PARAM_INVALID, "aclrtMalloc: devPtr is NULL");
    *devPtr = NULL;
    REQUIRE_ACL(size, RT_PARAM_INVALID, "aclrtMalloc: size is 0");
    int64_t code = RT_OUT_OF_MEMORY;
    if (em_fault("malloc", "", &code)) return em_error(code ? (aclError)code : RT_OUT_OF_MEMORY, "aclrtMalloc: %zu bytes on device %d: out of memory (a fault that was asked for)", size, device);
    size_t room = (size + GRANULE - 1) / GRANULE * GRANULE;
    pthread_mutex_lock(&lock);
    Blocks *blocks = &device_blocks[device];
    uintptr_t base = (uintptr_t)device_view + span * (size_t)device, end = base + GRANULE;
    size_t at = 0;
    bool fits = room >= size && blocks->used + room <= em_state.memory;
    if (fits) {
        for (; at < blocks->count; at++) {
            if (blocks->items[at].address >= end + room + GRANULE) break;
            end = blocks->items[at].address + blocks->items[at].room + GRANULE;
        }
        fits = end + room <= base + span;
    }
    if (!fits) {
        size_t used = blocks->used;
        pthread_mutex_unlock(&lock);
        return em_error(RT_OUT_OF_MEMORY, "aclrtMalloc: out of memory on device %d: %zu bytes are asked for, %zu of %zu are in use", device, size, used, em_state.memory);
    }
    insert(blocks, at, (Block){end, size, room, next_serial++});
    poison(inside((void *)end), room);
    pthread_mutex_unlock(&lock);
    *devPtr = (void *)end;
    return 0;
}

EM_API aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy) { return aclrtMalloc(devPtr, size, policy); }
EM_API aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy) { return aclrtMalloc(devPtr, size, policy); }

EM_API aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg) {
    (void)cfg;
    return aclrtMalloc(devPtr, size, policy);
}

EM_API aclError aclrtFree(void *devPtr) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(devPtr, RT_PARAM_INVALID, "aclrtFree: devPtr is NULL");
    pthread_mutex_lock(&lock);
    Block *block = block_at(devPtr);
    bool found = block && block->address == (uintptr_t)devPtr;
    if (found) {
        Blocks *blocks = &device_blocks[device_of(devPtr)];
        if (block->room > POISONED) madvise(inside(devPtr), block->room / 4096 * 4096, MADV_REMOVE);
        poison(inside(devPtr), block->room);
        erase(blocks, (size_t)(block - blocks->items));
    }
    pthread_mutex_unlock(&lock);
    REQUIRE_ACL(found, RT_PARAM_INVALID, "aclrtFree: %p is no live block (freed before, or not of aclrtMalloc)", devPtr);
    return 0;
}

EM_API aclError aclrtFreeWithDevSync(void *devPtr) {
    TRY_ACL(aclrtSynchronizeDevice());
    return aclrtFree(devPtr);
}

EM_API aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total) {
    int device;
    TRY_ACL(em_need_device(&device));
    REQUIRE_ACL(free && total, RT_PARAM_INVALID, "aclrtGetMemInfo: free or total is NULL");
    const bool hbm = attr == 1 || attr == 4 || attr == 5, ddr = attr == 0 || attr == 2 || attr == 3, either = attr == 12 || attr == 13;
    REQUIRE_ACL(attr >= 0 && attr <= 17, RT_PARAM_INVALID, "aclrtGetMemInfo: unknown attribute %d", attr);
    *free = *total = 0;
    if (either || (!strncmp(em_state.soc, "Ascend310", 9) ? ddr : hbm)) {
        pthread_mutex_lock(&lock);
        *total = em_state.memory;
        *free = em_state.memory - device_blocks[device].used;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}

/* Host memory that the device reaches. Registered memory has room 0: it is not ours to free. */

EM_API aclError aclrtMallocHost(void **hostPtr, size_t size) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(hostPtr && size, RT_PARAM_INVALID, "aclrtMallocHost: hostPtr is NULL or size is 0");
    size_t room = (size + 4095) / 4096 * 4096;
    void *memory = room < size ? NULL : aligned_alloc(4096, room);
    REQUIRE_ACL(memory, RT_OUT_OF_MEMORY, "aclrtMallocHost: no %zu bytes of host memory", size);
    memset(memory, EM_POISON, size < POISONED ? size : POISONED);
    pthread_mutex_lock(&lock);
    insert(&host_blocks, host_blocks.count, (Block){(uintptr_t)memory, size, room, next_serial++});
    pthread_mutex_unlock(&lock);
    *hostPtr = memory;
    return 0;
}

EM_API aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg) {
    (void)cfg;
    return aclrtMallocHost(ptr, size);
}

/* Take a host block out of the list; false when there is none. */
static bool remove_host(void *address, bool owned) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t b = 0; b < host_blocks.count && !found; b++)
        if (host_blocks.items[b].address == (uintptr_t)address && (host_blocks.items[b].room != 0) == owned) {
            if (owned) poison(address, host_blocks.items[b].size);
            erase(&host_blocks, b);
            found = true;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

EM_API aclError aclrtFreeHost(void *hostPtr) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(hostPtr, RT_PARAM_INVALID, "aclrtFreeHost: hostPtr is NULL");
    REQUIRE_ACL(remove_host(hostPtr, true), RT_PARAM_INVALID, "aclrtFreeHost: %p is no live block (freed before, or not of aclrtMallocHost)", hostPtr);
    free(hostPtr);
    return 0;
}

EM_API aclError aclrtFreeHostWithDevSync(void *hostPtr) {
    TRY_ACL(aclrtSynchronizeDevice());
    return aclrtFreeHost(hostPtr);
}

EM_API aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag) {
    (void)flag;
    TRY_ACL(em_need_init());
    REQUIRE_ACL(ptr && size && !em_is_device_address(ptr), RT_PARAM_INVALID, "aclrtHostRegister: no host memory is given");
    REQUIRE_ACL(!em_is_pinned(ptr, 1), RT_PARAM_INVALID, "aclrtHostRegister: %p is registered already", ptr);
    pthread_mutex_lock(&lock);
    insert(&host_blocks, host_blocks.count, (Block){(uintptr_t)ptr, size, 0, next_serial++});
    pthread_mutex_unlock(&lock);
    return 0;
}

EM_API aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr) {
    REQUIRE_ACL(devPtr, RT_PARAM_INVALID, "aclrtHostRegister: devPtr is NULL");
    TRY_ACL(aclrtHostRegisterV2(ptr, size, (uint32_t)type));
    *devPtr = ptr;
    return 0;
}

EM_API aclError aclrtHostUnregister(void *ptr) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(remove_host(ptr, false), RT_PARAM_INVALID, "aclrtHostUnregister: %p is not registered", ptr);
    return 0;
}

bool em_is_pinned(const void *address, size_t bytes) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t b = 0; b < host_blocks.count && !found; b++) {
        uintptr_t offset = (uintptr_t)address - host_blocks.items[b].address;
        found = offset < host_blocks.items[b].size && bytes <= host_blocks.items[b].size - offset;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

EM_API aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(ptr && attributes, RT_PARAM_INVALID, "aclrtPointerGetAttributes: an argument is NULL");
    *attributes = (aclrtPtrAttributes){.location = {0, 2}, .pageSize = 4096};
    int device = 0;
    if (em_find_block(ptr, 1, &device, NULL)) attributes->location.id = (uint32_t)device, attributes->location.type = 1;
    else if (em_is_pinned(ptr, 1)) attributes->location.type = 0;
    return 0;
}

int64_t em_device_blocks(void) {
    int64_t count = 0;
    pthread_mutex_lock(&lock);
    for (int d = 0; d < EM_MAX_DEVICES; d++) count += (int64_t)device_blocks[d].count;
    pthread_mutex_unlock(&lock);
    return count;
}

int64_t em_device_bytes(void) {
    int64_t bytes = 0;
    pthread_mutex_lock(&lock);
    for (int d = 0; d < EM_MAX_DEVICES; d++) bytes += (int64_t)device_blocks[d].used;
    pthread_mutex_unlock(&lock);
    return bytes;
}

int64_t em_host_blocks(void) {
    pthread_mutex_lock(&lock);
    int64_t count = (int64_t)host_blocks.count;
    pthread_mutex_unlock(&lock);
    return count;
}
