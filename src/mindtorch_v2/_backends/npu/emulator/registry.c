/* The table of live objects, see Note [Registry]. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>

enum { QUARANTINE = 1024 };

typedef struct Entry { const void *object; int kind; } Entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Entry *entries; /* open addressing; a free place has object NULL */
static size_t capacity, used;
static int64_t counts[EM_KINDS];
static void *quarantine[QUARANTINE];
static size_t next;

void *em_new(size_t size) {
    void *memory = calloc(1, size);
    if (!memory) {
        fputs("emulator: out of host memory\n", stderr);
        abort();
    }
    return memory;
}

static size_t place(const void *object) { return (size_t)((uintptr_t)object >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20 & (capacity - 1); }

static Entry *find(int kind, const void *object) {
    if (!object || !capacity) return NULL;
    for (size_t k = place(object); entries[k].object; k = (k + 1) & (capacity - 1))
        if (entries[k].object == object) return entries[k].kind == kind ? &entries[k] : NULL;
    return NULL;
}

static void store(Entry entry) {
    size_t k = place(entry.object);
    while (entries[k].object) k = (k + 1) & (capacity - 1);
    entries[k] = entry;
}

void em_register(int kind, void *object) {
    pthread_mutex_lock(&lock);
    if (2 * (used + 1) > capacity) {
        Entry *before = entries;
        size_t size = capacity;
        capacity = capacity ? 2 * capacity : 256;
        entries = em_new(capacity * sizeof *entries);
        for (size_t k = 0; k < size; k++)
            if (before[k].object) store(before[k]);
        free(before);
    }
    store((Entry){object, kind});
    used++;
    counts[kind]++;
    pthread_mutex_unlock(&lock);
}

bool em_is_live(int kind, const void *object) {
    pthread_mutex_lock(&lock);
    bool found = find(kind, object) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

bool em_unregister(int kind, const void *object) {
    pthread_mutex_lock(&lock);
    Entry *entry = find(kind, object);
    if (entry) {
        size_t hole = (size_t)(entry - entries);
        entry->object = NULL;
        used--;
        counts[kind]--;
        for (size_t k = (hole + 1) & (capacity - 1); entries[k].object; k = (k + 1) & (capacity - 1)) { /* those behind may belong before the hole */
            Entry moved = entries[k];
            entries[k].object = NULL;
            store(moved);
        }
    }
    pthread_mutex_unlock(&lock);
    return entry != NULL;
}

int64_t em_count(int kind) {
    pthread_mutex_lock(&lock);
    int64_t count = counts[kind];
    pthread_mutex_unlock(&lock);
    return count;
}

void *em_some(int kind) {
    const void *object = NULL;
    pthread_mutex_lock(&lock);
    for (size_t k = 0; k < capacity && counts[kind] && !object; k++)
        if (entries[k].object && entries[k].kind == kind) object = entries[k].object;
    pthread_mutex_unlock(&lock);
    return (void *)object;
}

void em_discard(void *object) {
    pthread_mutex_lock(&lock);
    void *oldest = quarantine[next];
    quarantine[next] = object;
    next = (next + 1) % QUARANTINE;
    pthread_mutex_unlock(&lock);
    free(oldest);
}

void em_discard_all(void) {
    for (int k = 0; k < QUARANTINE; k++) em_discard(NULL);
    pthread_mutex_lock(&lock);
    if (!used) {
        free(entries);
        entries = NULL;
        capacity = 0;
    }
    pthread_mutex_unlock(&lock);
}
