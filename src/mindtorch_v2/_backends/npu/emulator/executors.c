/* Executors: what the first phase collects, and how the second puts it on a stream. See Note [Two phases].
 *
 * Note [Addresses of a call]
 * Where a tensor's elements lie is checked three times: when the call is put on the stream (an error), when it runs, and when it has run (both abort: memory that
 * was freed under a call is what must not be forgiven).
 */
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Argument { bool present; aclTensor tensor; aclTensor *descriptor; } Argument;

typedef struct Many { void *items; int count, capacity; } Many;

struct aclOpExecutor {
    uint32_t magic;
    char name[96];
    aclOpExecutor **slot; /* where the first phase stores the executor and the size; only until it has ended */
    uint64_t *size_slot;
    bool ready, repeatable;
    aclnnStatus status; /* what em_tensor and its like found wrong; em_ready tells */
    EmKernel kernel;
    uint64_t workspace;
    Many tensors, scalars, arrays, integers, reals, texts, lists;
};

typedef struct Launch {
    EmTask task;
    aclOpExecutor *executor; /* own copy */
    EmRange *ranges;         /* of each tensor */
    char **data;
    EmRange workspace;
    aclError fail;           /* a fault: the kernel fails with this code */
    int64_t slow;            /* a fault: microseconds */
} Launch;

enum { MAGIC = 0x45584543, DEAD = 0xdead };

static void *add(Many *many, size_t size) {
    if (many->count == many->capacity) {
        many->capacity = many->capacity ? 2 * many->capacity : 4;
        many->items = realloc(many->items, (size_t)many->capacity * size);
        if (!many->items) abort();
    }
    void *item = (char *)many->items + (size_t)many->count++ * size;
    memset(item, 0, size);
    return item;
}

#define ADD(MANY, TYPE) ((TYPE *)add(&(MANY), sizeof(TYPE)))
#define ITEM(MANY, TYPE, INDEX) (&((TYPE *)(MANY).items)[INDEX])

static void delete_contents(aclOpExecutor *ex) {
    for (int t = 0; t < ex->texts.count; t++) free(*ITEM(ex->texts, char *, t));
    Many *all[] = {&ex->tensors, &ex->scalars, &ex->arrays, &ex->integers, &ex->reals, &ex->texts, &ex->lists};
    for (size_t m = 0; m < sizeof all / sizeof *all; m++) free(all[m]->items);
    memset(&ex->tensors, 0, sizeof *ex - offsetof(aclOpExecutor, tensors));
    ex->magic = DEAD;
}

static bool delete_executor(aclOpExecutor *ex) {
    if (!em_unregister(EM_EXECUTOR, ex)) return false;
    delete_contents(ex);
    em_discard(ex);
    return true;
}

/* First phase */

aclnnStatus em_begin(const char *name, aclOpExecutor **executor, uint64_t *workspace_size) {
    REQUIRE_ACL(em_state.initialised, ACLNN_ERR_RUNTIME_ERROR, "%s: aclInit was not called", name);
    REQUIRE_ACL(executor && workspace_size, ACLNN_ERR_PARAM_NULLPTR, "%s: executor or workspaceSize is NULL", name);
    *executor = NULL;
    *workspace_size = 0;
    int64_t code;
    if (em_fault("phase1", name, &code)) return em_error(code ? (aclnnStatus)code : ACLNN_ERR_PARAM_INVALID, "%s: failed in the first phase (a fault that was asked for)", name);
    aclOpExecutor *ex = em_new(sizeof *ex);
    ex->magic = MAGIC;
    ex->slot = executor;
    ex->size_slot = workspace_size;
    snprintf(ex->name, sizeof ex->name, "%s", name);
    em_register(EM_EXECUTOR, ex);
    *executor = ex;
    return 0;
}

static void wrong(aclOpExecutor *ex, aclnnStatus status, const char *what) {
    if (!ex->status) ex->status = em_error(status, "%s: %s", ex->name, what);
}

void em_tensor(aclOpExecutor *ex, const aclTensor *tensor) {
    Argument *argument = ADD(ex->tensors, Argument);
    if (!tensor) return;
    if (!em_is_live(EM_TENSOR, tensor)) {
        wrong(ex, ACLNN_ERR_INNER_NULLPTR, "a tensor is no live aclTensor (destroyed before?)");
        return;
    }
    *argument = (Argument){true, *tensor, (aclTensor *)tensor};
}

void em_list(aclOpExecutor *ex, const aclTensorList *list) {
    int *size = ADD(ex->lists, int);
    if (!list) return;
    if (!em_is_live(EM_TENSOR_LIST, list)) {
        wrong(ex, ACLNN_ERR_INNER_NULLPTR, "a list is no live aclTensorList");
        return;
    }
    *size = (int)list->size;
    for (uint64_t k = 0; k < list->size; k++) em_tensor(ex, list->items[k]);
}

void em_scalar(aclOpExecutor *ex, const aclScalar *scalar) {
    aclScalar *copy = ADD(ex->scalars, aclScalar);
    if (scalar) *copy = *scalar; /* operators pass scalars of their own, which are not registered */
    else copy->dtype = ACL_DT_UNDEFINED;
}

static EmInts *add_array(aclOpExecutor *ex, const void *array, uint64_t size, int kind) {
    EmInts *ints = ADD(ex->arrays, EmInts);
    if (!array) return NULL;
    if (!em_is_live(kind, array) || size > sizeof ints->values / sizeof *ints->values) {
        wrong(ex, ACLNN_ERR_PARAM_INVALID, "an array is not live, or has more than 64 values");
        return NULL;
    }
    ints->present = true;
    ints->size = (int)size;
    return ints;
}

void em_array(aclOpExecutor *ex, const aclIntArray *array) {
    EmInts *ints = add_array(ex, array, array ? array->size : 0, EM_INT_ARRAY);
    if (ints) memcpy(ints->values, array->values, array->size * sizeof *array->values);
}

void em_bools(aclOpExecutor *ex, const aclBoolArray *array) {
    EmInts *ints = add_array(ex, array, array ? array->size : 0, EM_BOOL_ARRAY);
    for (int k = 0; ints && k < ints->size; k++) ints->values[k] = array->values[k];
}

void em_integer(aclOpExecutor *ex, int64_t value) { *ADD(ex->integers, int64_t) = value; }
void em_real(aclOpExecutor *ex, double value) { *ADD(ex->reals, double) = value; }

void em_text(aclOpExecutor *ex, const char *text) {
    char *copy = text ? strdup(text) : NULL;
    *ADD(ex->texts, char *) = copy;
}

aclnnStatus em_fail(aclOpExecutor *ex, aclnnStatus status, const char *format, ...) {
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (!em_is_live(EM_EXECUTOR, ex)) return em_error(status, "%s", message);
    em_error(status, "%s: %s", ex->name, message);
    if (ex->slot) *ex->slot = NULL;
    delete_executor(ex);
    return status;
}

/* The first and the last element, from the data's address, in elements. False when the tensor has none. */
static bool extent(const aclTensor *tensor, int64_t *first, int64_t *last) {
    *first = *last = tensor->offset;
    for (int d = 0; d < tensor->ndim; d++) {
        if (!tensor->dims[d]) return false;
        int64_t reach = (tensor->dims[d] - 1) * tensor->strides[d];
        *(reach < 0 ? first : last) += reach;
    }
    return true;
}

static const char *what_is_wrong(const aclTensor *tensor) {
    if (!em_chip_has(tensor->dtype)) return "a tensor has a dtype that the chip does not have";
    int64_t first, last, stored = tensor->storage_ndim ? 1 : INT64_MAX;
    if (!extent(tensor, &first, &last)) return NULL;
    if (!tensor->data) return "a tensor has elements, but no data";
    for (int d = 0; d < tensor->storage_ndim; d++) stored *= tensor->storage_dims[d];
    return first < 0 || last >= stored ? "a tensor's elements are not within its storage" : NULL;
}

aclnnStatus em_ready(aclOpExecutor *ex, EmKernel kernel, uint64_t workspace_bytes) {
    for (int t = 0; t < ex->tensors.count && !ex->status; t++) {
        const Argument *argument = ITEM(ex->tensors, Argument, t);
        const char *problem = argument->present ? what_is_wrong(&argument->tensor) : NULL;
        if (problem) wrong(ex, ACLNN_ERR_PARAM_INVALID, problem);
    }
    if (ex->status) {
        aclnnStatus status = ex->status; /* its message is there */
        *ex->slot = NULL;
        delete_executor(ex);
        return status;
    }
    ex->kernel = kernel;
    ex->workspace = workspace_bytes;
    ex->ready = true;
    int64_t nonsense = 0;
    *ex->size_slot = em_fault("workspace", ex->name, &nonsense) ? (uint64_t)nonsense : workspace_bytes;
    ex->slot = NULL;
    ex->size_slot = NULL;
    return 0;
}

/* Second phase */

static void release_launch(EmTask *task) {
    Launch *launch = (Launch *)task;
    delete_contents(launch->executor);
    free(launch->executor);
    free(launch->ranges);
    free(launch->data);
    free(launch);
}

static void describe(EmTensor *seen, const Argument *argument, char *data) {
    *seen = (EmTensor){.present = argument->present};
    if (!argument->present) return;
    const aclTensor *tensor = &argument->tensor;
    seen->ndim = tensor->ndim;
    memcpy(seen->dims, tensor->dims, sizeof seen->dims);
    memcpy(seen->strides, tensor->strides, sizeof seen->strides);
    seen->numel = em_numel(tensor);
    seen->dtype = tensor->dtype;
    seen->descriptor = argument->descriptor;
    int64_t first, last;
    if (data && extent(tensor, &first, &last)) seen->data = data + (tensor->offset - first) * (int64_t)em_item_size(tensor->dtype);
}

static char *translate(const Launch *launch, int index) {
    return launch->ranges[index].address ? em_translate(&launch->ranges[index], launch->task.name) : NULL;
}

static void run_launch(EmStream *stream, EmTask *task) {
    (void)stream;
    Launch *launch = (Launch *)task;
    aclOpExecutor *ex = launch->executor;
    if (launch->slow > 0) {
        struct timespec pause = {launch->slow / 1000000, launch->slow % 1000000 * 1000};
        nanosleep(&pause, NULL);
    }
    EmCall call = {.name = ex->name, .tensors = ex->tensors.count, .scalars = ex->scalars.count, .arrays = ex->arrays.count, .integers = ex->integers.count,
                   .reals = ex->reals.count, .texts = ex->texts.count, .scalar = ex->scalars.items, .array = ex->arrays.items, .integer = ex->integers.items,
                   .real = ex->reals.items, .text = ex->texts.items, .list_size = ex->lists.items};
    call.tensor = em_new((size_t)(call.tensors + 1) * sizeof *call.tensor);
    for (int t = 0; t < call.tensors; t++) describe(&call.tensor[t], ITEM(ex->tensors, Argument, t), translate(launch, t));
    if (ex->workspace) call.workspace = em_translate(&launch->workspace, task->name);
    if (launch->fail) em_kernel_failed(&call, launch->fail, "the kernel failed (a fault that was asked for)");
    else ex->kernel(&call);
    for (int t = 0; t < call.tensors; t++) translate(launch, t);
    if (ex->workspace) em_translate(&launch->workspace, task->name);
    free(call.tensor);
}

/* The ranges that a call uses, in memory that the stream's device reaches. */
static aclnnStatus find_ranges(Launch *launch, int device) {
    aclOpExecutor *ex = launch->executor;
    launch->ranges = em_new((size_t)(ex->tensors.count + 1) * sizeof *launch->ranges);
    for (int t = 0; t < ex->tensors.count; t++) {
        const Argument *argument = ITEM(ex->tensors, Argument, t);
        int64_t first, last, item = (int64_t)em_item_size(argument->tensor.dtype);
        if (!argument->present || !extent(&argument->tensor, &first, &last)) continue;
        if (em_range(&launch->ranges[t], (char *)argument->tensor.data + first * item, (size_t)((last - first + 1) * item), device, ex->name))
            return ACLNN_ERR_RUNTIME_ERROR; /* with em_range's message */
    }
    return 0;
}

static aclnnStatus check_launch(Launch *launch, const char *name, void *workspace, uint64_t size, aclrtStream handle, EmStream **stream) {
    aclOpExecutor *ex = launch->executor;
    REQUIRE_ACL(!strcmp(ex->name, name), ACLNN_ERR_INNER, "%s: the executor is of %s", name, ex->name);
    REQUIRE_ACL(ex->ready, ACLNN_ERR_INNER, "%s: the first phase did not succeed", name);
    if (em_stream(handle, stream)) return ACLNN_ERR_RUNTIME_ERROR;
    const int device = em_stream_device(*stream);
    if (ex->workspace) {
        REQUIRE_ACL(workspace, ACLNN_ERR_PARAM_NULLPTR, "%s: the workspace is NULL, but %llu bytes are needed", name, (unsigned long long)ex->workspace);
        REQUIRE_ACL(size >= ex->workspace, ACLNN_ERR_PARAM_INVALID, "%s: the workspace has %llu bytes, but %llu are needed", name, (unsigned long long)size,
                    (unsigned long long)ex->workspace);
        REQUIRE_ACL((uintptr_t)workspace % EM_ALIGNMENT == 0, ACLNN_ERR_PARAM_INVALID, "%s: the workspace is not aligned to %d bytes", name, EM_ALIGNMENT);
        if (em_range(&launch->workspace, workspace, size, device, name)) return ACLNN_ERR_RUNTIME_ERROR;
    }
    return find_ranges(launch, device);
}

/* The items of a repeatable executor are copied; its tensors are read again, for their addresses may have changed. */
static void copy_many(Many *to, const Many *from, size_t size) {
    *to = (Many){em_new((size_t)(from->count + 1) * size), from->count, from->count + 1};
    if (from->count) memcpy(to->items, from->items, (size_t)from->count * size);
}

static aclOpExecutor *copy_executor(const aclOpExecutor *ex) {
    aclOpExecutor *copy = em_new(sizeof *copy);
    *copy = *ex;
    copy_many(&copy->tensors, &ex->tensors, sizeof(Argument));
    copy_many(&copy->scalars, &ex->scalars, sizeof(aclScalar));
    copy_many(&copy->arrays, &ex->arrays, sizeof(EmInts));
    copy_many(&copy->integers, &ex->integers, sizeof(int64_t));
    copy_many(&copy->reals, &ex->reals, sizeof(double));
    copy_many(&copy->texts, &ex->texts, sizeof(char *));
    copy_many(&copy->lists, &ex->lists, sizeof(int));
    for (int t = 0; t < copy->texts.count; t++) {
        char **text = ITEM(copy->texts, char *, t);
        if (*text) *text = strdup(*text);
    }
    return copy;
}

/* What an executor holds goes to the launch; the executor is deleted. */
static aclOpExecutor *take_executor(aclOpExecutor *ex) {
    aclOpExecutor *taken = em_new(sizeof *taken);
    *taken = *ex;
    memset(&ex->tensors, 0, sizeof *ex - offsetof(aclOpExecutor, tensors));
    delete_executor(ex);
    return taken;
}

static aclnnStatus refresh_tensors(aclOpExecutor *ex) {
    for (int t = 0; t < ex->tensors.count; t++) {
        Argument *argument = ITEM(ex->tensors, Argument, t);
        if (!argument->present) continue;
        REQUIRE_ACL(em_is_live(EM_TENSOR, argument->descriptor), ACLNN_ERR_INNER_NULLPTR, "%s: tensor %d of a repeatable executor was destroyed", ex->name, t);
        argument->tensor.data = argument->descriptor->data;
    }
    return 0;
}

aclnnStatus em_launch(const char *name, void *workspace, uint64_t workspace_size, aclOpExecutor *executor, aclrtStream stream) {
    REQUIRE_ACL(executor, ACLNN_ERR_PARAM_NULLPTR, "%s: executor is NULL", name);
    REQUIRE_ACL(em_is_live(EM_EXECUTOR, executor), ACLNN_ERR_INNER_NULLPTR,
                "%s: %p is no live executor: it was run or destroyed before, which uses memory after its release", name, (void *)executor);
    const bool repeatable = executor->repeatable;
    EmStream *on = NULL;
    Launch *launch = em_new(sizeof *launch);
    launch->executor = repeatable ? copy_executor(executor) : take_executor(executor);
    launch->task = (EmTask){.name = launch->executor->name, .run = run_launch, .release = release_launch};
    aclnnStatus status = repeatable ? refresh_tensors(launch->executor) : 0;
    int64_t value = 0;
    if (!status) status = check_launch(launch, name, workspace, workspace_size, stream, &on);
    if (!status && em_fault("phase2", name, &value)) {
        status = em_error(value ? (aclnnStatus)value : ACLNN_ERR_RUNTIME_ERROR, "%s: failed in the second phase (a fault that was asked for)", name);
    }
    if (status) {
        release_launch(&launch->task);
        return status;
    }
    if (em_fault("kernel", name, &value)) launch->fail = value ? (aclError)value : RT_KERNEL_EXCEPTION;
    if (em_fault("slow", name, &value)) launch->slow = value;
    em_count_launch(name);
    if (em_state.trace) fprintf(stderr, "emulator: %s on device %d\n", name, em_stream_device(on));
    em_enqueue(on, &launch->task);
    return 0;
}

void em_kernel_failed(EmCall *call, aclError code, const char *format, ...) {
    char message[400], whole[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole, "%s: %s", call->name, message);
    em_stream_failed(code ? code : RT_KERNEL_EXCEPTION, whole);
}

void em_set_view_shape(EmCall *call, int index, int ndim, const int64_t *dims) {
    aclTensor *descriptor = call->tensor[index].descriptor;
    if (!em_is_live(EM_TENSOR, descriptor)) return; /* who destroyed it does not want to know */
    int64_t next = 1;
    descriptor->ndim = ndim;
    for (int d = ndim - 1; d >= 0; d--) {
        descriptor->dims[d] = dims[d];
        descriptor->strides[d] = next;
        next *= dims[d];
    }
}

/* What the host may do with an executor between the phases */

EM_API aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor) {
    REQUIRE_ACL(executor, ACLNN_ERR_PARAM_NULLPTR, "aclSetAclOpExecutorRepeatable: executor is NULL");
    REQUIRE_ACL(em_is_live(EM_EXECUTOR, executor), ACLNN_ERR_INNER_NULLPTR, "aclSetAclOpExecutorRepeatable: %p is no live executor", (void *)executor);
    int64_t code = 0;
    if (em_fault("repeat", executor->name, &code)) return em_error(ACLNN_ERR_INNER, "aclSetAclOpExecutorRepeatable: %s cannot be repeated (a fault that was asked for)", executor->name);
    executor->repeatable = true;
    return 0;
}

EM_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor) {
    REQUIRE_ACL(executor, ACLNN_ERR_PARAM_NULLPTR, "aclDestroyAclOpExecutor: executor is NULL");
    REQUIRE_ACL(delete_executor(executor), ACLNN_ERR_INNER_NULLPTR, "aclDestroyAclOpExecutor: %p is no live executor: it was run or destroyed before", (void *)executor);
    return 0;
}

static aclnnStatus set_address(aclOpExecutor *ex, aclTensor *tensor, void *addr) {
    REQUIRE_ACL(em_is_live(EM_EXECUTOR, ex) && ex->repeatable, ACLNN_ERR_INNER, "aclSetTensorAddr: no live repeatable executor");
    REQUIRE_ACL(em_is_live(EM_TENSOR, tensor), ACLNN_ERR_PARAM_INVALID, "aclSetTensorAddr: %p is no live aclTensor", (void *)tensor);
    REQUIRE_ACL((uintptr_t)addr % EM_ALIGNMENT == 0, ACLNN_ERR_PARAM_INVALID, "aclSetTensorAddr: %p is not aligned to %d bytes", addr, EM_ALIGNMENT);
    for (int t = 0; t < ex->tensors.count; t++)
        if (ITEM(ex->tensors, Argument, t)->descriptor == tensor) {
            tensor->data = addr;
            return 0;
        }
    return em_error(ACLNN_ERR_PARAM_INVALID, "aclSetTensorAddr: the tensor is none of the executor's");
}

static aclnnStatus set_list_address(aclOpExecutor *ex, size_t index, aclTensorList *list, void *addr) {
    REQUIRE_ACL(em_is_live(EM_TENSOR_LIST, list) && index < list->size, ACLNN_ERR_PARAM_INVALID, "aclSetDynamicTensorAddr: no live list with an item %zu", index);
    return set_address(ex, list->items[index], addr);
}

EM_API aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr) {
    (void)index;
    return set_address(executor, tensor, addr);
}

EM_API aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr) {
    (void)index;
    return set_address(executor, tensor, addr);
}

EM_API aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr) {
    (void)index;
    return set_address(executor, tensor, addr);
}

EM_API aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr) {
    (void)irIndex;
    return set_list_address(executor, relativeIndex, tensors, addr);
}

EM_API aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr) {
    (void)irIndex;
    return set_list_address(executor, relativeIndex, tensors, addr);
}

EM_API aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr) {
    (void)irIndex;
    return set_list_address(executor, relativeIndex, tensors, addr);
}

EM_API aclnnStatus AclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr) {
    (void)index;
    return set_address(executor, tensor, addr);
}

EM_API aclnnStatus AclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr) {
    (void)index;
    return set_address(executor, tensor, addr);
}

EM_API aclnnStatus AclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr) {
    (void)index;
    return set_address(executor, tensor, addr);
}

EM_API aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr) {
    (void)irIndex;
    return set_list_address(executor, relativeIndex, tensors, addr);
}

EM_API aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr) {
    (void)irIndex;
    return set_list_address(executor, relativeIndex, tensors, addr);
}

EM_API aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr) {
    (void)irIndex;
    return set_list_address(executor, relativeIndex, tensors, addr);
}
