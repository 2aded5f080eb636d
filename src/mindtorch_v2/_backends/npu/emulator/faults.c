/* What tests may ask of the emulator, and what CANN does not have: faults on demand, counts of live objects and of launches, a test operator. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Fault { char what[128]; int64_t count, value; } Fault;
typedef struct Launches { char name[96]; int64_t count; } Launches;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Fault faults[64];
static int fault_count;
static Launches launches[2048];
static int launch_count;

/* The next `count` times (-1: until cleared) that `what` comes, it fails, with `value` where it has a meaning. A count of 0 takes a fault back. */
EM_API void emFault(const char *what, int64_t count, int64_t value) {
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < fault_count && strcmp(faults[at].what, what)) at++;
    if (at == fault_count) {
        if (fault_count == sizeof faults / sizeof *faults) em_die("too many faults are asked for");
        fault_count++;
    }
    snprintf(faults[at].what, sizeof faults[at].what, "%s", what);
    faults[at].count = count;
    faults[at].value = value;
    pthread_mutex_unlock(&lock);
}

EM_API void emClearFaults(void) {
    pthread_mutex_lock(&lock);
    fault_count = 0;
    pthread_mutex_unlock(&lock);
}

bool em_fault(const char *what, const char *name, int64_t *value) {
    bool found = false;
    pthread_mutex_lock(&lock);
    if (fault_count) {
        char key[128];
        snprintf(key, sizeof key, "%s%s%s", what, *name ? ":" : "", name);
        for (int f = 0; f < fault_count; f++)
            if (faults[f].count && !strcmp(faults[f].what, key)) {
                if (faults[f].count > 0) faults[f].count--;
                *value = faults[f].value;
                found = true;
            }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void em_count_launch(const char *name) {
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < launch_count && strcmp(launches[at].name, name)) at++;
    if (at == launch_count) {
        if (launch_count == sizeof launches / sizeof *launches) em_die("too many operators");
        snprintf(launches[launch_count++].name, sizeof launches->name, "%s", name);
    }
    launches[at].count++;
    pthread_mutex_unlock(&lock);
}

/* How often an operator was put on a stream; "" is all. */
EM_API int64_t emLaunches(const char *op) {
    int64_t count = 0;
    pthread_mutex_lock(&lock);
    for (int at = 0; at < launch_count; at++)
        if (!*op || !strcmp(launches[at].name, op)) count += launches[at].count;
    pthread_mutex_unlock(&lock);
    return count;
}

/* How many are alive; -1 for an unknown word. */
EM_API int64_t emLive(const char *what) {
    if (!strcmp(what, "tensors")) return em_count(EM_TENSOR);
    if (!strcmp(what, "scalars")) return em_count(EM_SCALAR);
    if (!strcmp(what, "arrays")) return em_count(EM_INT_ARRAY) + em_count(EM_FLOAT_ARRAY) + em_count(EM_BOOL_ARRAY);
    if (!strcmp(what, "lists")) return em_count(EM_TENSOR_LIST) + em_count(EM_SCALAR_LIST);
    if (!strcmp(what, "executors")) return em_count(EM_EXECUTOR);
    if (!strcmp(what, "streams")) return em_count(EM_STREAM);
    if (!strcmp(what, "events")) return em_count(EM_EVENT);
    if (!strcmp(what, "physical")) return em_count(EM_PHYSICAL);
    if (!strcmp(what, "device_blocks")) return em_device_blocks();
    if (!strcmp(what, "device_bytes")) return em_device_bytes();
    if (!strcmp(what, "host_blocks")) return em_host_blocks();
    if (!strcmp(what, "threads")) return em_threads();
    return -1;
}

/* Random numbers as operators get them: for tests of the generator. */
EM_API void emUniform(uint64_t seed, uint64_t offset, int64_t count, double *values) { em_uniform(seed, offset, count, values); }

/* A test operator: out = self, converted; it asks for `workspace` bytes, and fills them. */

static void copy_elements(EmCall *call) {
    if (call->integer[0]) memset(call->workspace, 1, (size_t)call->integer[0]);
    if (em_is_complex(call->tensor[0].dtype)) {
        double complex *values = em_read_complex(&call->tensor[0]);
        em_write_complex(&call->tensor[1], values);
        free(values);
    } else if (em_is_floating(call->tensor[0].dtype)) {
        double *values = em_read_reals(&call->tensor[0]);
        em_write_reals(&call->tensor[1], values);
        free(values);
    } else {
        int64_t *values = em_read_integers(&call->tensor[0]);
        em_write_integers(&call->tensor[1], values);
        free(values);
    }
}

EM_OP(emCopy, const aclTensor *self, int64_t workspace, aclTensor *out) {
    EM_BEGIN(emCopy);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_REQUIRE(em_same_shape(self, out), "self and out differ in shape");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, workspace);
    return em_ready(ex, copy_elements, (uint64_t)workspace);
}

/* A test operator with a result whose shape is known afterwards: the first `count` elements of a vector. */

static void take_elements(EmCall *call) {
    double *values = em_read_reals(&call->tensor[0]);
    EmTensor out = em_expand(&call->tensor[1], 1, call->integer);
    em_write_reals(&out, values);
    free(values);
    em_set_view_shape(call, 1, 1, call->integer);
}

EM_OP(emTake, const aclTensor *self, int64_t count, aclTensor *out) {
    EM_BEGIN(emTake);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_REQUIRE(self->ndim == 1 && em_same_shape(self, out) && count >= 0 && count <= self->dims[0], "vectors of one size, and a count within it");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, count);
    return em_ready(ex, take_elements, 0);
}
