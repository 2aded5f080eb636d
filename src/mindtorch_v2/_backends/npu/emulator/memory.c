/* Device memory (Note [Device addresses]), pinned host memory, copies.
 *
 * Note [Blocks]
 * A device has twice its memory as addresses, so that fragmentation is the allocator's of the host and not this one's; what counts is the sum of blocks. Between
 * blocks are unused addresses. Each block has a serial number: queued work remembers it, and notices when its memory was freed, also when another block took its place.
 *
 * Note [Poison]
 * New and freed memory is filled with EM_POISON. Of blocks beyond POISONED bytes only the beginning is; their pages go back to the system instead, so that a test of
 * large blocks needs no memory.
 *
 * Note [Reserved addresses]
 * Above the addresses that aclrtMalloc gives are those that aclrtReserveMemAddress does (RESERVED times the memory). Physical memory counts from aclrtMallocPhysical on; mapped, it is a block without
 * room of its own, and what is used may go on over neighbours that are mapped too. It is mapped as a whole and once, and unmapped before it is freed; addresses are released when nothing is mapped there.
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
#define PAGE ((size_t)2 << 20) /* the granularity of physical memory */
#define RESERVED 12
#define MOST_RESERVED 64

typedef struct Physical { int device; size_t size; uintptr_t at; } Physical; /* at: where it is mapped, or 0 */
typedef struct Reserved { uintptr_t address; size_t size; } Reserved;
typedef struct Block { uintptr_t address; size_t size, room; uint64_t serial; Physical *memory; /* that is mapped there */ } Block;
typedef struct Blocks { Block *items; size_t count, capacity, used; } Blocks;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Blocks device_blocks[EM_MAX_DEVICES]; /* each sorted by address */
static Blocks host_blocks;                   /* not sorted */
static uint64_t next_serial = 1;
static size_t span, mallocs;                 /* addresses of one device, and how many of them aclrtMalloc has */
static Reserved reserved[EM_MAX_DEVICES][MOST_RESERVED];
static char *device_view, *host_view;

aclError em_memory_start(void) {
    const size_t page = (size_t)2 << 20;
    mallocs = (2 * em_state.memory + 2 * page) / page * page;
    span = mallocs + RESERVED * ((em_state.memory + page) / page * page);
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
    memset(reserved, 0, sizeof reserved);
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
    uint64_t sum = block ? block->serial : 0;
    if (block && !found && block->memory) { /* mapped: on into the neighbours */
        const Blocks *blocks = &device_blocks[device_of(address)];
        const Block *end = blocks->items + blocks->count, *last = block;
        uintptr_t wanted = (uintptr_t)address + bytes;
        while (last->address + last->size < wanted && last + 1 < end && last[1].memory && last[1].address == last->address + last->size) sum += (++last)->serial;
        found = last->address + last->size >= wanted;
    }
    if (found && device) *device = device_of(address);
    if (found && serial) *serial = sum;
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
        fits = end + room <= base + mallocs;
    }
    if (!fits) {
        size_t used = blocks->used;
        pthread_mutex_unlock(&lock);
        return em_error(RT_OUT_OF_MEMORY, "aclrtMalloc: out of memory on device %d: %zu bytes are asked for, %zu of %zu are in use", device, size, used, em_state.memory);
    }
    insert(blocks, at, (Block){end, size, room, next_serial++, NULL});
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
    bool found = block && block->address == (uintptr_t)devPtr && !block->memory;
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

/* Note [Reserved addresses] */

EM_API aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags) {
    int device;
    int64_t code = RT_NOT_SUPPORTED;
    TRY_ACL(em_need_device(&device));
    if (em_fault("reserve", "", &code)) return em_error(code ? (aclError)code : RT_NOT_SUPPORTED, "aclrtReserveMemAddress: not supported (a fault that was asked for)");
    REQUIRE_ACL(virPtr && size && !alignment && !expectPtr && flags <= 1, RT_PARAM_INVALID, "aclrtReserveMemAddress: virPtr is NULL, size or alignment is wrong, or flags are unknown");
    size_t room = (size + PAGE - 1) / PAGE * PAGE;
    uintptr_t base = ((uintptr_t)device_view + span * (size_t)device + mallocs + PAGE - 1) / PAGE * PAGE, end = (uintptr_t)device_view + span * ((size_t)device + 1);
    pthread_mutex_lock(&lock);
    int slot = 0;
    while (slot < MOST_RESERVED && reserved[device][slot].size) slot++;
    for (int r = 0; r < MOST_RESERVED; r++) {
        const Reserved *one = &reserved[device][r];
        if (one->size && one->address < base + room && base < one->address + one->size) base = one->address + one->size + PAGE, r = -1;
    }
    bool fits = slot < MOST_RESERVED && base + room <= end;
    if (fits) reserved[device][slot] = (Reserved){base, room};
    pthread_mutex_unlock(&lock);
    REQUIRE_ACL(fits, RT_RESOURCE, "aclrtReserveMemAddress: no %zu bytes of addresses on device %d", size, device);
    *virPtr = (void *)base;
    return 0;
}

/* The reservation that a range lies in; needs the lock. */
static Reserved *reservation(const void *address, size_t size) {
    for (int r = 0; em_is_device_address(address) && r < MOST_RESERVED; r++) {
        Reserved *one = &reserved[device_of(address)][r];
        if (one->size && (uintptr_t)address >= one->address && (uintptr_t)address + size <= one->address + one->size) return one;
    }
    return NULL;
}

/* Whether anything is mapped in a range; needs the lock. */
static bool is_mapped(uintptr_t address, size_t size) {
    const Blocks *blocks = &device_blocks[device_of((void *)address)];
    for (size_t b = 0; b < blocks->count; b++)
        if (blocks->items[b].address < address + size && address < blocks->items[b].address + blocks->items[b].size) return true;
    return false;
}

EM_API aclError aclrtReleaseMemAddress(void *virPtr) {
    TRY_ACL(em_need_init());
    pthread_mutex_lock(&lock);
    Reserved *one = reservation(virPtr, 1);
    bool known = one && one->address == (uintptr_t)virPtr, busy = known && is_mapped(one->address, one->size);
    if (known && !busy) *one = (Reserved){0};
    pthread_mutex_unlock(&lock);
    REQUIRE_ACL(known, RT_PARAM_INVALID, "aclrtReleaseMemAddress: %p was not reserved", virPtr);
    REQUIRE_ACL(!busy, RT_PARAM_INVALID, "aclrtReleaseMemAddress: memory is mapped behind %p", virPtr);
    return 0;
}

static aclError check_prop(const aclrtPhysicalMemProp *prop, const char *name) {
    REQUIRE_ACL(prop && !prop->handleType && !prop->allocationType && !prop->reserve, RT_PARAM_INVALID, "%s: prop is NULL, or has unknown types", name);
    REQUIRE_ACL(prop->location.type == 1 && (int)prop->location.id < em_state.devices, RT_PARAM_INVALID, "%s: location %d of type %d is no device", name, (int)prop->location.id,
                prop->location.type);
    REQUIRE_ACL(prop->memAttr == 4 || prop->memAttr == 13, RT_PARAM_INVALID, "%s: memory of attribute %d cannot be mapped", name, prop->memAttr);
    return 0;
}

EM_API aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(handle && !flags, RT_PARAM_INVALID, "aclrtMallocPhysical: handle is NULL, or flags are not 0");
    TRY_ACL(check_prop(prop, "aclrtMallocPhysical"));
    REQUIRE_ACL(size && size % PAGE == 0, RT_PARAM_INVALID, "aclrtMallocPhysical: %zu bytes are no multiple of the granularity", size);
    const int device = (int)prop->location.id;
    int64_t code = RT_OUT_OF_MEMORY;
    if (em_fault("malloc", "", &code)) return em_error(code ? (aclError)code : RT_OUT_OF_MEMORY, "aclrtMallocPhysical: out of memory (a fault that was asked for)");
    Physical *made = em_new(sizeof *made);
    *made = (Physical){device, size, 0};
    pthread_mutex_lock(&lock);
    Blocks *blocks = &device_blocks[device];
    size_t used = blocks->used;
    bool fits = used + size <= em_state.memory;
    if (fits) blocks->used += size;
    pthread_mutex_unlock(&lock);
    if (!fits) {
        free(made);
        return em_error(RT_OUT_OF_MEMORY, "aclrtMallocPhysical: out of memory on device %d: %zu bytes are asked for, %zu of %zu are in use", device, size, used, em_state.memory);
    }
    em_register(EM_PHYSICAL, made);
    *handle = made;
    return 0;
}

EM_API aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(em_is_live(EM_PHYSICAL, handle), RT_PARAM_INVALID, "aclrtFreePhysical: %p is no live memory", handle);
    Physical *memory = handle;
    REQUIRE_ACL(!memory->at, RT_PARAM_INVALID, "aclrtFreePhysical: the memory is mapped at %p", (void *)memory->at);
    em_unregister(EM_PHYSICAL, memory);
    pthread_mutex_lock(&lock);
    device_blocks[memory->device].used -= memory->size;
    pthread_mutex_unlock(&lock);
    free(memory);
    return 0;
}

EM_API aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(em_is_live(EM_PHYSICAL, handle), RT_PARAM_INVALID, "aclrtMapMem: %p is no live memory", handle);
    Physical *memory = handle;
    REQUIRE_ACL(!offset && !flags && size == memory->size && !memory->at, RT_PARAM_INVALID, "aclrtMapMem: memory is mapped as a whole, and once");
    pthread_mutex_lock(&lock);
    bool fits = (uintptr_t)virPtr % PAGE == 0 && reservation(virPtr, size) && device_of(virPtr) == memory->device && !is_mapped((uintptr_t)virPtr, size);
    if (fits) {
        Blocks *blocks = &device_blocks[memory->device];
        size_t at = 0;
        while (at < blocks->count && blocks->items[at].address < (uintptr_t)virPtr) at++;
        insert(blocks, at, (Block){(uintptr_t)virPtr, size, 0, next_serial++, memory});
        memory->at = (uintptr_t)virPtr;
        poison(inside(virPtr), size);
    }
    pthread_mutex_unlock(&lock);
    REQUIRE_ACL(fits, RT_PARAM_INVALID, "aclrtMapMem: %zu bytes at %p are not reserved on device %d, or something is mapped there", size, virPtr, memory->device);
    return 0;
}

EM_API aclError aclrtUnmapMem(void *virPtr) {
    TRY_ACL(em_need_init());
    pthread_mutex_lock(&lock);
    Block *block = block_at(virPtr);
    Physical *memory = block && block->address == (uintptr_t)virPtr ? block->memory : NULL;
    if (memory) {
        Blocks *blocks = &device_blocks[memory->device];
        madvise(inside(virPtr), memory->size, MADV_REMOVE);
        poison(inside(virPtr), memory->size);
        erase(blocks, (size_t)(block - blocks->items));
        memory->at = 0;
    }
    pthread_mutex_unlock(&lock);
    REQUIRE_ACL(memory, RT_PARAM_INVALID, "aclrtUnmapMem: no memory is mapped at %p", virPtr);
    return 0;
}

EM_API aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option, size_t *granularity) {
    (void)option;
    TRY_ACL(em_need_init());
    REQUIRE_ACL(granularity, RT_PARAM_INVALID, "aclrtMemGetAllocationGranularity: granularity is NULL");
    TRY_ACL(check_prop(prop, "aclrtMemGetAllocationGranularity"));
    *granularity = PAGE;
    return 0;
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
    insert(&host_blocks, host_blocks.count, (Block){(uintptr_t)memory, size, room, next_serial++, NULL});
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
    insert(&host_blocks, host_blocks.count, (Block){(uintptr_t)ptr, size, 0, next_serial++, NULL});
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
