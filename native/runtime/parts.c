/* The pool: threads that sleep until a loop is spread. The caller computes too; it waits for threads that have begun, never for one that has not.
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
#define PARTS_EACH 4 /* so that a thread that is held up leaves its share to the others */
#define TURNS 2000   /* looks at threads that are about to end, before the caller sleeps */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int started;  /* threads that there are */
    int wanted;   /* threads that may still join the loop */
    int inside;   /* threads that have joined it; atomic for a look */
    int taken;    /* whether a loop is spread; atomic */
    LoopPart part;
    void *work;
    npy_intp n, step, next; /* `next` is atomic */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static __thread int inside_part;

static void run_parts(void)
{
    inside_part = 1;
    for (;;) {
        npy_intp begin = __atomic_fetch_add(&pool.next, pool.step, __ATOMIC_RELAXED);
        if (begin >= pool.n) {
            break;
        }
        pool.part(pool.work, begin, pool.n - begin < pool.step ? pool.n : begin + pool.step);
    }
    inside_part = 0;
}

static void *work_for_ever(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.wanted == 0) {
            pthread_cond_wait(&pool.wake, &pool.lock);
        }
        pool.wanted--;
        __atomic_add_fetch(&pool.inside, 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&pool.lock);
        run_parts();
        pthread_mutex_lock(&pool.lock);
        if (__atomic_sub_fetch(&pool.inside, 1, __ATOMIC_RELEASE) == 0) {
            pthread_cond_signal(&pool.done);
        }
    }
    return NULL;
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
    pool.started = pool.wanted = pool.inside = pool.taken = 0;
    inside_part = 0;
}

/* Has so many threads in the pool, if the system gives them; under the lock. */
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
    npy_intp pieces = n / grain, most = (npy_intp)part_threads * PARTS_EACH;
    pieces = pieces < most ? pieces : most;
    npy_intp step = (n + pieces - 1) / pieces;
    step = (step + grain - 1) / grain * grain;
    int helpers = part_threads - 1;
    helpers = (npy_intp)helpers < pieces - 1 ? helpers : (int)(pieces - 1);
    pthread_mutex_lock(&pool.lock);
    if (pool.started < helpers) {
        start_threads(helpers);
    }
    pool.part = part;
    pool.work = work;
    pool.n = n;
    pool.step = step;
    pool.next = 0;
    pool.wanted = helpers < pool.started ? helpers : pool.started;
    if (pool.wanted == pool.started) {
        pthread_cond_broadcast(&pool.wake);
    }
    else {
        for (int i = 0; i < pool.wanted; i++) {
            pthread_cond_signal(&pool.wake);
        }
    }
    pthread_mutex_unlock(&pool.lock);
    run_parts();
    pthread_mutex_lock(&pool.lock);
    pool.wanted = 0;
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < TURNS && __atomic_load_n(&pool.inside, __ATOMIC_ACQUIRE); i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    pthread_mutex_lock(&pool.lock);
    while (__atomic_load_n(&pool.inside, __ATOMIC_ACQUIRE)) {
        pthread_cond_wait(&pool.done, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
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
