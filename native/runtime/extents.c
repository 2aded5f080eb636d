/* Extents: runs of pages that the system gave and that nobody uses, kept for the next who asks, since a page that is had anew must be cleared.
 *
 * They are sorted by address; neighbours are one extent. Who asks is given the end of the smallest that suffices, on the side that was freed last, whose
 * memory is most likely still in the cache. Any run of pages can be given back to the system, whatever calls of mmap it came by.
 *
 * Note [What is kept]. As many bytes as were in use at most so far and are not now: a program that does again what it did has all of its memory at hand, and
 * never holds more than it used at its peak; but 16 MiB in any case, for what is freed and taken in another order. Beyond, and when the system has none left,
 * the extents that were freed longest ago are given back. So is what nobody needed for two periods, the least that was kept during both, by the next call
 * that frees: a program that is done with large arrays does not sit on their memory.
 *
 * Note [Nobody waits]. The list is behind a flag that is tried, never waited for: who finds it set asks the system. So a process that was forked while another
 * thread had the flag goes on without kept memory, rather than not at all.
 *
 * Note [Growing downwards]. New memory comes in huge pages, where there are such, and is asked for right below what was had last. So arrays of 3 MiB lie side
 * by side, and share the huge page between them. What is left of a huge page is kept like freed memory, for it has been touched with the rest.
 */
#include "extents.h"

#if defined(_WIN32)

size_t extent_page(void)
{
    return 0;
}

char *extent_take(size_t size, char **dirty)
{
    (void)size;
    (void)dirty;
    return NULL;
}

void extent_give(char *start, size_t size)
{
    (void)start;
    (void)size;
}

void extent_limit(size_t limit)
{
    (void)limit;
}

ExtentCounts extent_counts(void)
{
    return (ExtentCounts){0};
}

void extent_age(void) {}

#else

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define KEPT_ALWAYS (16 * MEBIBYTE)
#define EXTENTS 4096
#define HUGE_PAGE (2 * MEBIBYTE)
#define PERIOD 8 /* seconds */

typedef struct {
    char *start;
    size_t size;
    unsigned long freed; /* when, as a number that grows */
    int low;             /* whether the lower end was freed last */
} Extent;

static struct {
    int busy, count;
    size_t kept, used, most;
    size_t least[2]; /* that was kept at a time, in this period and in the one before */
    long period;
    unsigned long frees;
    char *lowest; /* of the memory that was had last */
    Extent list[EXTENTS];
} memory; /* zeros, so that it takes no room in the file */
static size_t most_kept = AUTOMATIC;

static inline size_t read_size(const size_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

static inline int try_lock(void)
{
    return !__atomic_exchange_n(&memory.busy, 1, __ATOMIC_ACQUIRE);
}

static inline void unlock(void)
{
    __atomic_store_n(&memory.busy, 0, __ATOMIC_RELEASE);
}

/* -------------------------------------------------------------------------------------------------------------- counts */

static void count_used(size_t size)
{
    const size_t used = __atomic_add_fetch(&memory.used, size, __ATOMIC_RELAXED);
    size_t most = read_size(&memory.most);
    while (used > most && !__atomic_compare_exchange_n(&memory.most, &most, used, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* See Note [What is kept]. */
static size_t bound(void)
{
    const size_t limit = read_size(&most_kept), used = read_size(&memory.used), most = read_size(&memory.most);
    return limit != AUTOMATIC ? limit : most > used + KEPT_ALWAYS ? most - used : KEPT_ALWAYS;
}

static void set_kept(size_t kept)
{
    __atomic_store_n(&memory.kept, kept, __ATOMIC_RELAXED);
    if (kept < memory.least[0]) {
        memory.least[0] = kept;
    }
}

/* -------------------------------------------------------------------------------------------------------------- system */

size_t extent_page(void)
{
    static size_t page;
    if (page == 0) {
        page = (size_t)sysconf(_SC_PAGESIZE);
    }
    return page;
}

static inline size_t whole_huge(size_t size)
{
    return (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

/* New memory, or NULL: of huge pages, and at `at` if that is free, where the size allows it. */
static char *map(char *at, size_t size)
{
    const size_t more = size < HUGE_PAGE ? 0 : HUGE_PAGE;
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    char *start = MAP_FAILED;
    if (at != NULL && (start = mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != at && start != MAP_FAILED) {
        munmap(start, size);
        start = MAP_FAILED;
    }
    if (start == MAP_FAILED) {
        start = mmap(NULL, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED) {
            return NULL;
        }
        if (more) { /* huge pages begin at multiples of their size */
            const size_t before = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
            if (before) {
                munmap(start, before);
            }
            if (more > before) {
                munmap(start + before + size, more - before);
            }
            start += before;
        }
    }
#if defined(MADV_HUGEPAGE)
    if (more) {
        madvise(start, size, MADV_HUGEPAGE);
    }
#endif
    return start;
}

/* ---------------------------------------------------------------------------------------------------------------- list */

/* The first extent that begins at `address` or behind it. */
static int place_of(const char *address)
{
    int low = 0, high = memory.count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (memory.list[middle].start < address) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low;
}

static void remove_at(int at)
{
    memory.count--;
    memmove(&memory.list[at], &memory.list[at + 1], (size_t)(memory.count - at) * sizeof(Extent));
}

/* Adds memory to the list; 0 where that is full. */
static int put(char *start, size_t size)
{
    const int at = place_of(start);
    Extent *after = &memory.list[at], *before = after - 1;
    const int joins_before = at > 0 && before->start + before->size == start;
    const int joins_after = at < memory.count && start + size == after->start;
    if (joins_before) {
        before->size += size + (joins_after ? after->size : 0);
        before->freed = memory.frees++;
        before->low = 0;
        if (joins_after) {
            remove_at(at);
        }
    }
    else if (joins_after) {
        *after = (Extent){start, after->size + size, memory.frees++, 1};
    }
    else {
        if (memory.count == EXTENTS) {
            return 0;
        }
        memmove(after + 1, after, (size_t)(memory.count - at) * sizeof(Extent));
        memory.count++;
        *after = (Extent){start, size, memory.frees++, 0};
    }
    set_kept(memory.kept + size);
    return 1;
}

/* Takes `size` bytes off an end of an extent. */
static char *cut(int at, size_t size, int low)
{
    Extent *extent = &memory.list[at];
    char *start = low ? extent->start : extent->start + extent->size - size;
    extent->size -= size;
    extent->start += low ? size : 0;
    if (extent->size == 0) {
        remove_at(at);
    }
    set_kept(memory.kept - size);
    return start;
}

/* Gives back at least `bytes` of what was freed longest ago; of a long extent the end that was, by whole huge pages. */
static void give_back(size_t bytes)
{
    while (bytes > 0 && memory.count > 0) {
        int at = 0;
        for (int i = 1; i < memory.count; i++) {
            at = memory.list[i].freed < memory.list[at].freed ? i : at;
        }
        const Extent extent = memory.list[at];
        size_t part = extent.size;
        if (part > HUGE_PAGE && part - HUGE_PAGE > bytes) {
            const uintptr_t start = (uintptr_t)extent.start, end = start + extent.size;
            part = extent.low ? end - (end - bytes) / HUGE_PAGE * HUGE_PAGE : whole_huge(start + bytes) - start;
        }
        char *from = extent.low ? extent.start + extent.size - part : extent.start;
        if (munmap(from, part) != 0) { /* the system has no room for another hole */
            return;
        }
        if (from == memory.lowest) {
            memory.lowest = part == extent.size ? NULL : from + part;
        }
        cut(at, part, !extent.low);
        bytes -= part < bytes ? part : bytes;
    }
}

static void keep_bound(void)
{
    const size_t most = bound();
    if (memory.kept > most) {
        give_back(memory.kept - most);
    }
}

static void end_period(int passed)
{
    const size_t unused = passed > 1 || memory.least[0] < memory.least[1] ? memory.least[0] : memory.least[1];
    memory.least[1] = memory.least[0] - unused;
    give_back(unused);
    memory.least[0] = memory.kept;
}

static void look_at_clock(void)
{
    struct timespec now;
#if defined(CLOCK_MONOTONIC_COARSE)
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    const long period = (long)(now.tv_sec / PERIOD), passed = period - memory.period;
    if (passed != 0) {
        memory.period = period;
        end_period(passed > 1 ? 2 : 1);
    }
}

/* --------------------------------------------------------------------------------------------------------- take and give */

/* The smallest extent that has `size` bytes, of equal ones the last that was freed; or -1. */
static int best(size_t size)
{
    int best = -1;
    for (int i = 0; i < memory.count; i++) {
        const Extent *extent = &memory.list[i];
        if (extent->size >= size && (best < 0 || extent->size < memory.list[best].size ||
                                     (extent->size == memory.list[best].size && extent->freed > memory.list[best].freed))) {
            best = i;
        }
    }
    return best;
}

/* New memory below the lowest extent, and of that; see Note [Growing downwards]. */
static char *grow(size_t size, char **dirty)
{
    if (size > SIZE_MAX / 4) {
        return NULL;
    }
    const int at = memory.lowest == NULL ? memory.count : place_of(memory.lowest);
    size_t there = at < memory.count && memory.list[at].start == memory.lowest ? memory.list[at].size : 0, had = whole_huge(size - there);
    char *start = map((uintptr_t)memory.lowest > had ? memory.lowest - had : NULL, had);
    if (start != NULL && there && start + had != memory.lowest) { /* somewhere else */
        there = 0;
        if (had < size) {
            munmap(start, had);
            had = whole_huge(size);
            start = map(NULL, had);
        }
    }
    if (start == NULL) {
        return NULL;
    }
    const size_t rest = had + there - size;
    char *made = start + rest;
    *dirty = there ? start + had : made + size;
    if (there) {
        cut(at, there, 1);
    }
    memory.lowest = start;
    if (rest && !put(start, rest)) {
        munmap(start, rest);
        memory.lowest = NULL;
    }
    return made;
}

char *extent_take(size_t size, char **dirty)
{
    char *start = NULL;
    if (!try_lock()) {
        start = map(NULL, size);
        *dirty = start + (start == NULL ? 0 : size);
        if (start != NULL) {
            count_used(size);
        }
        return start;
    }
    const int at = best(size);
    if (at >= 0) {
        start = *dirty = cut(at, size, memory.list[at].low);
        count_used(size);
    }
    else {
        start = grow(size, dirty);
        if (start == NULL && memory.count > 0) {
            give_back(SIZE_MAX);
            start = grow(size, dirty);
        }
        if (start != NULL) {
            count_used(size);
            keep_bound();
        }
    }
    unlock();
    return start;
}

void extent_give(char *start, size_t size)
{
    __atomic_sub_fetch(&memory.used, size, __ATOMIC_RELAXED);
    if (size > bound() || !try_lock()) {
        munmap(start, size);
        return;
    }
    const int done = put(start, size);
    if (done) {
        look_at_clock();
        keep_bound();
    }
    unlock();
    if (!done) {
        munmap(start, size);
    }
}

/* ------------------------------------------------------------------------------------------------------------- settings */

void extent_limit(size_t limit)
{
    if (!try_lock()) {
        return;
    }
    __atomic_store_n(&most_kept, limit, __ATOMIC_RELAXED);
    if (limit == AUTOMATIC) {
        __atomic_store_n(&memory.most, read_size(&memory.used), __ATOMIC_RELAXED);
    }
    keep_bound();
    unlock();
}

ExtentCounts extent_counts(void)
{
    return (ExtentCounts){read_size(&memory.kept), bound(), read_size(&memory.used), read_size(&memory.most)};
}

void extent_age(void)
{
    if (try_lock()) {
        end_period(1);
        unlock();
    }
}

#endif
