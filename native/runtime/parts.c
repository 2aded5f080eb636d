/* The pool: threads that sleep until a loop is spread. The caller computes too; it waits for threads that have begun, never for one that has not.
 *
 * Note [Joining a loop]. A thread takes as long to wake as many a loop, and loops follow each other closely: threads that have ended look for the next
 * one for a while before they sleep, and find it without a lock, which both sides would queue for. A thread counts itself as inside before it takes one
 * of the places of the loop, and the caller closes these before it looks whether somebody is inside: so a thread either finds the places closed, or is
 * waited for. Whoever goes to sleep says so before a last look, and whoever has something to say looks for sleepers after it.
 *
 * One loop is spread at a time: a loop of another thread of the program, or within a part, runs where it is. Where there are no POSIX threads there is
 * one thread.
 */
#include "native.h"
#include "parts.h"

_Atomic int part_threads = 1;

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define MOST_THREADS 256
#define TURNS 2000     /* looks at threads that are about to end, before the caller sleeps */
#define IDLE_TURNS 400  /* looks for another loop, before a thread sleeps: somewhat longer than waking it takes */

static struct {
    pthread_mutex_t lock; /* of those who sleep */
    pthread_cond_t wake, done;
    int started;  /* threads that there are; of whoever has taken the pool */
    int wanted;   /* threads that may still join the loop; atomic, as are the following */
    int inside;   /* threads that have joined it, or try to */
    int sleeping; /* threads that wait for a loop */
    int waiting;  /* whether the caller sleeps until nobody is inside */
    int taken;    /* whether a loop is spread */
    LoopPart part;
    void *work;
    npy_intp n, grain, shares, next; /* `next` is atomic */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static __thread int inside_part;

/* The next part: a share of what is left, so that one who is late or held up leaves the rest to the others, and small ones in the end, so that all end
 * at once. */
static int claim_part(npy_intp *begin, npy_intp *end)
{
    *begin = __atomic_load_n(&pool.next, __ATOMIC_RELAXED);
    do {
        const npy_intp left = pool.n - *begin, some = left / pool.shares / pool.grain * pool.grain;
        if (left <= 0) {
            return 0;
        }
        *end = some > 0 ? *begin + some : left < pool.grain ? pool.n : *begin + pool.grain;
    } while (!__atomic_compare_exchange_n(&pool.next, begin, *end, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return 1;
}

/* Whoever finds no more parts closes the places. */
static void run_parts(void)
{
    npy_intp begin, end;
    inside_part = 1;
    while (claim_part(&begin, &end)) {
        pool.part(pool.work, begin, end);
    }
    inside_part = 0;
    __atomic_store_n(&pool.wanted, 0, __ATOMIC_SEQ_CST);
}

static inline void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static void leave_loop(void)
{
    if (__atomic_sub_fetch(&pool.inside, 1, __ATOMIC_SEQ_CST) == 0 && __atomic_load_n(&pool.waiting, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
    }
}

/* Whether there was a place in the loop. */
static int join_loop(void)
{
    __atomic_add_fetch(&pool.inside, 1, __ATOMIC_SEQ_CST);
    int places = __atomic_load_n(&pool.wanted, __ATOMIC_SEQ_CST);
    while (places > 0) {
        if (__atomic_compare_exchange_n(&pool.wanted, &places, places - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            return 1;
        }
    }
    leave_loop();
    return 0;
}

static void sleep_until_wanted(void)
{
    pthread_mutex_lock(&pool.lock);
    __atomic_add_fetch(&pool.sleeping, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&pool.wanted, __ATOMIC_SEQ_CST) == 0) {
        pthread_cond_wait(&pool.wake, &pool.lock);
    }
    __atomic_sub_fetch(&pool.sleeping, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool.lock);
}

static void *work_for_ever(void *unused)
{
    (void)unused;
    for (;;) {
        for (int i = 0; i < IDLE_TURNS && __atomic_load_n(&pool.wanted, __ATOMIC_RELAXED) == 0; i++) {
            pause_a_little();
        }
        if (__atomic_load_n(&pool.wanted, __ATOMIC_RELAXED) == 0) {
            sleep_until_wanted();
        }
        if (join_loop()) {
            run_parts();
            leave_loop();
        }
    }
    return NULL;
}

/* Opens the places of the loop, to those who sleep too. */
static void call_threads(int places)
{
    __atomic_store_n(&pool.wanted, places, __ATOMIC_SEQ_CST);
    const int sleeping = __atomic_load_n(&pool.sleeping, __ATOMIC_SEQ_CST);
    if (sleeping > 0) {
        pthread_mutex_lock(&pool.lock);
        for (int i = 0; i < places && i < sleeping; i++) {
            pthread_cond_signal(&pool.wake);
        }
        pthread_mutex_unlock(&pool.lock);
    }
}

static void wait_for_threads(void)
{
    for (int i = 0; i < TURNS && __atomic_load_n(&pool.inside, __ATOMIC_SEQ_CST); i++) {
        pause_a_little();
    }
    if (__atomic_load_n(&pool.inside, __ATOMIC_SEQ_CST) == 0) {
        return;
    }
    pthread_mutex_lock(&pool.lock);
    __atomic_store_n(&pool.waiting, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&pool.inside, __ATOMIC_SEQ_CST)) {
        pthread_cond_wait(&pool.done, &pool.lock);
    }
    __atomic_store_n(&pool.waiting, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool.lock);
}

/* Note [Forks and parts]. A fork waits for the end of a loop that is spread, which needs no lock of Python's, so that the child finds nothing half done.
 * In the child the threads are gone; they are started anew when they are asked for. */
static void before_fork(void)
{
    while (__atomic_exchange_n(&pool.taken, 1, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}

static void after_fork(void)
{
    __atomic_store_n(&pool.taken, 0, __ATOMIC_RELEASE);
}

static void forget_threads(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.started = pool.wanted = pool.inside = pool.sleeping = pool.waiting = pool.taken = 0;
    inside_part = 0;
}

/* Has so many threads in the pool, if the system gives them. */
static void start_threads(int count)
{
    static int registered;
    if (!registered) {
        pthread_atfork(before_fork, after_fork, forget_threads);
        registered = 1;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    while (pool.started < count) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work_for_ever, NULL) != 0) {
            break;
        }
        pthread_detach(thread);
        pool.started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void spread_parts(LoopPart part, void *work, npy_intp n, npy_intp grain)
{
    if (inside_part || __atomic_exchange_n(&pool.taken, 1, __ATOMIC_ACQUIRE)) {
        part(work, 0, n);
        return;
    }
    const npy_intp others = (n - 1) / grain; /* parts, but for one */
    const int helpers = part_threads - 1 < others ? part_threads - 1 : (int)others;
    if (pool.started < helpers) {
        start_threads(helpers);
    }
    pool.part = part;
    pool.work = work;
    pool.n = n;
    pool.grain = grain;
    pool.shares = 2 * (npy_intp)(helpers + 1);
    pool.next = 0;
    call_threads(helpers < pool.started ? helpers : pool.started);
    run_parts();
    wait_for_threads();
    __atomic_store_n(&pool.taken, 0, __ATOMIC_RELEASE);
}

int use_part_threads(int count)
{
    part_threads = count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : count; /* loops of other threads may be reading it */
    return part_threads;
}
#else
void spread_parts(LoopPart part, void *work, npy_intp n, npy_intp grain)
{
    (void)grain;
    part(work, 0, n);
}

int use_part_threads(int count)
{
    (void)count;
    return 1;
}
#endif
