/* HCCL between processes of one machine: collectives and messages as tasks of streams.
 *
 * Note [Ranks meet]
 * A root info holds the name of a folder in memory. Call number n of a communicator is what each rank puts there as `n.RANK`, whole at once (by renaming): what the call is, and its
 * elements. A rank takes what it needs of the others, then says so by `n.RANK.done`; who sees all of these first removes the files. Message number n from a rank to another is
 * `SOURCE.TARGET.n`, which the receiver removes. Ranks that wait give up after HCCL_EXEC_TIMEOUT seconds, and calls that do not fit each other fail on all of them.
 */
#include "runtime.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int HcclResult, HcclDataType, HcclReduceOp;
typedef struct HcclRootInfo { char internal[4108]; } HcclRootInfo;
typedef struct Comm { uint32_t magic, ranks, rank; char folder[256]; uint64_t calls, *sent, *received; } Comm;
typedef Comm *HcclComm;

enum { HCCL_SUCCESS = 0, HCCL_E_PARA = 1, HCCL_E_PTR = 2, HCCL_E_NOT_SUPPORT = 5, HCCL_E_RUNTIME = 15, COMM = 0x4843434c, HCCL_TIMEOUT = 507018 };
enum { SUM, PROD, MAX, MIN, NO_OP = -1 };
enum { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, SCATTER, BARRIER, SEND, RECEIVE };
static const char *const names[] = {"HcclAllReduce", "HcclReduce", "HcclBroadcast", "HcclAllGather", "HcclReduceScatter", "HcclAlltoAllV", "HcclScatter", "HcclBarrier", "HcclSend",
                                    "HcclRecv"};
/* Of HcclDataType: int8, int16, int32, fp16, fp32, int64, uint64, uint8, uint16, uint32, fp64, bfp16. */
static const aclDataType dtypes[] = {ACL_INT8, ACL_INT16, ACL_INT32, ACL_FLOAT16, ACL_FLOAT, ACL_INT64, ACL_UINT64, ACL_UINT8, ACL_UINT16, ACL_UINT32, ACL_DOUBLE, ACL_BF16};

typedef struct Head { int32_t kind, dtype, op, root; uint64_t count; } Head; /* what all ranks must say alike; the count is 0 where they may differ */

typedef struct Call {
    EmTask task;
    Comm *comm;
    Head head;
    EmRange from, to;         /* device memory; bytes of 0: none */
    uint64_t number, *counts; /* counts: of AlltoAllV, four lists of as many as there are ranks */
    uint32_t peer;
} Call;

static size_t item_of(HcclDataType dtype) { return em_item_size(dtypes[dtype]); }

static double limit(void) {
    const char *text = getenv("HCCL_EXEC_TIMEOUT");
    double seconds = text && *text ? atof(text) : 0;
    return seconds > 0 ? seconds : 1800;
}

static bool wait_for(const char *path) {
    const uint64_t until = em_now() + (uint64_t)(limit() * 1e9);
    for (useconds_t pause = 20; access(path, F_OK); pause = pause < 2000 ? pause * 2 : pause) {
        if (em_now() > until) return false;
        usleep(pause);
    }
    return true;
}

static bool put(const char *path, const Head *head, const void *more, size_t more_bytes, const void *elements, size_t bytes) {
    char temporary[400];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen(temporary, "wb");
    if (!file) return false;
    bool fine = fwrite(head, sizeof *head, 1, file) == 1 && (!more_bytes || fwrite(more, more_bytes, 1, file) == 1) && (!bytes || fwrite(elements, bytes, 1, file) == 1);
    return !fclose(file) && fine && !rename(temporary, path);
}

/* The contents behind the head, freed by free(); NULL when it cannot be read. */
static char *get(const char *path, Head *head, size_t *bytes) {
    struct stat status;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status)) {
        if (file) fclose(file);
        return NULL;
    }
    *bytes = (size_t)status.st_size - sizeof *head;
    char *contents = malloc(*bytes + 1);
    if (!contents) abort();
    bool fine = fread(head, sizeof *head, 1, file) == 1 && (!*bytes || fread(contents, *bytes, 1, file) == 1);
    fclose(file);
    if (fine) return contents;
    free(contents);
    return NULL;
}

static void fail(Call *call, aclError code, const char *what, int rank) {
    char message[400];
    snprintf(message, sizeof message, "%s: rank %u: %s %d", call->task.name, call->comm->rank, what, rank);
    em_stream_failed(code, message);
}

/* Elementwise, in the order of ranks: integers as such, others in double, rounded to the dtype with every step as a ring does. */
static void reduce_into(char *total, const char *part, uint64_t count, HcclDataType dtype, HcclReduceOp op) {
    aclDataType kind = dtypes[dtype];
    int64_t dims[] = {(int64_t)count}, one = 1;
    EmTensor a = {.present = true, .ndim = 1, .numel = dims[0], .dtype = kind, .data = total}, b = a;
    a.dims[0] = b.dims[0] = dims[0], a.strides[0] = b.strides[0] = one, b.data = (char *)part;
    if (em_is_integral(kind)) {
        int64_t *x = em_read_integers(&a), *y = em_read_integers(&b);
        for (uint64_t k = 0; k < count; k++) {
            uint64_t p = (uint64_t)x[k], q = (uint64_t)y[k];
            bool less = kind == ACL_UINT64 ? p < q : x[k] < y[k];
            x[k] = op == SUM ? (int64_t)(p + q) : op == PROD ? (int64_t)(p * q) : (op == MAX) == less ? y[k] : x[k];
        }
        em_write_integers(&a, x);
        free(x), free(y);
    } else {
        double *x = em_read_reals(&a), *y = em_read_reals(&b);
        for (uint64_t k = 0; k < count; k++) x[k] = op == SUM ? x[k] + y[k] : op == PROD ? x[k] * y[k] : (op == MAX) == (x[k] < y[k]) ? y[k] : x[k];
        em_write_reals(&a, x);
        free(x), free(y);
    }
}

static void place(Call *call, char *to, uint32_t other, const char *contents, size_t bytes, uint32_t *done) {
    Comm *comm = call->comm;
    const size_t item = item_of(call->head.dtype), part = call->head.count * item;
    switch (call->head.kind) {
        case ALL_REDUCE:
        case REDUCE:
            if (!(*done)++) memcpy(to, contents, part);
            else reduce_into(to, contents, call->head.count, call->head.dtype, call->head.op);
            break;
        case REDUCE_SCATTER:
            if (!(*done)++) memcpy(to, contents + comm->rank * part, part);
            else reduce_into(to, contents + comm->rank * part, call->head.count, call->head.dtype, call->head.op);
            break;
        case BROADCAST: memcpy(to, contents, part); break;
        case SCATTER: memcpy(to, contents + comm->rank * part, part); break;
        case ALL_GATHER: memcpy(to + other * part, contents, part); break;
        case ALL_TO_ALL: {
            const uint64_t *theirs = (const uint64_t *)contents; /* counts and places of what they send */
            const uint64_t *mine = call->counts + 2 * comm->ranks;
            size_t head = 2 * comm->ranks * sizeof *theirs;
            uint64_t sent = theirs[comm->rank], start = theirs[comm->ranks + comm->rank];
            if (sent != mine[other] || head + (start + sent) * item > bytes) fail(call, RT_KERNEL_EXCEPTION, "takes another number of elements than is given by rank", (int)other);
            else memcpy(to + mine[comm->ranks + other] * item, contents + head + start * item, sent * item);
            break;
        }
        default: break;
    }
}

static bool needs(const Call *call, uint32_t other) {
    switch (call->head.kind) {
        case BROADCAST:
        case SCATTER: return other == (uint32_t)call->head.root;
        default: return true;
    }
}

static void path_of(char *path, size_t room, const Call *call, uint32_t rank, const char *suffix) {
    snprintf(path, room, "%s/%llu.%u%s", call->comm->folder, (unsigned long long)call->number, rank, suffix);
}

/* Who finds that all have taken what they need removes the files. */
static void clear(Call *call) {
    char path[400];
    path_of(path, sizeof path, call, call->comm->rank, ".done");
    FILE *mark = fopen(path, "wb");
    if (mark) fclose(mark);
    for (uint32_t r = 0; r < call->comm->ranks; r++) {
        path_of(path, sizeof path, call, r, ".done");
        if (access(path, F_OK)) return;
    }
    for (uint32_t r = 0; r < call->comm->ranks; r++) {
        path_of(path, sizeof path, call, r, "");
        unlink(path);
        path_of(path, sizeof path, call, r, ".done");
        unlink(path);
    }
}

static void run_collective(EmStream *stream, EmTask *task) {
    (void)stream;
    Call *call = (Call *)task;
    Comm *comm = call->comm;
    char path[400], *from = call->from.bytes ? em_translate(&call->from, task->name) : NULL, *to = call->to.bytes ? em_translate(&call->to, task->name) : NULL;
    const bool counted = call->head.kind == ALL_TO_ALL;
    path_of(path, sizeof path, call, comm->rank, "");
    if (!put(path, &call->head, call->counts, counted ? 2 * comm->ranks * sizeof(uint64_t) : 0, from, call->from.bytes)) {
        fail(call, RT_KERNEL_EXCEPTION, "cannot write its elements, error", errno);
        return;
    }
    char *result = call->to.bytes ? malloc(call->to.bytes) : NULL;
    if (result) memcpy(result, to, call->to.bytes);
    uint32_t done = 0;
    bool fine = true;
    for (uint32_t other = 0; other < comm->ranks && fine; other++) {
        Head head;
        size_t bytes;
        if (!needs(call, other)) continue;
        path_of(path, sizeof path, call, other, "");
        if (!wait_for(path)) {
            fail(call, HCCL_TIMEOUT, "waited in vain for rank", (int)other);
            fine = false;
            break;
        }
        char *contents = get(path, &head, &bytes);
        if (!contents || memcmp(&head, &call->head, sizeof head)) {
            fail(call, RT_KERNEL_EXCEPTION, "another call is made by rank", (int)other);
            fine = false;
        } else if (result && (call->head.kind != REDUCE || comm->rank == (uint32_t)call->head.root)) place(call, result, other, contents, bytes, &done);
        free(contents);
    }
    if (fine && result) memcpy(to, result, call->to.bytes);
    free(result);
    clear(call);
}

static void run_message(EmStream *stream, EmTask *task) {
    (void)stream;
    Call *call = (Call *)task;
    Comm *comm = call->comm;
    const bool sends = call->head.kind == SEND;
    char path[400], *here = call->from.bytes ? em_translate(&call->from, task->name) : NULL;
    snprintf(path, sizeof path, "%s/%u.%u.%llu", comm->folder, sends ? comm->rank : call->peer, sends ? call->peer : comm->rank, (unsigned long long)call->number);
    if (sends) {
        if (!put(path, &call->head, NULL, 0, here, call->from.bytes)) fail(call, RT_KERNEL_EXCEPTION, "cannot write its elements, error", errno);
        return;
    }
    Head head;
    size_t bytes;
    if (!wait_for(path)) {
        fail(call, HCCL_TIMEOUT, "waited in vain for rank", (int)call->peer);
        return;
    }
    char *contents = get(path, &head, &bytes);
    if (!contents || bytes != call->from.bytes || head.dtype != call->head.dtype) fail(call, RT_KERNEL_EXCEPTION, "takes another message than is sent by rank", (int)call->peer);
    else if (bytes) memcpy(here, contents, bytes);
    free(contents);
    unlink(path);
}

static void release(EmTask *task) {
    free(((Call *)task)->counts);
    free(task);
}

static HcclResult refuse(HcclResult result, const char *name, const char *what) {
    em_error(RT_PARAM_INVALID, "%s: %s", name, what);
    return result;
}

static HcclResult begin(Comm *comm, Head head, const void *from, size_t from_bytes, void *to, size_t to_bytes, uint32_t peer, uint64_t *counts, aclrtStream handle) {
    const char *name = names[head.kind];
    EmStream *stream;
    Call *call = em_new(sizeof *call);
    call->counts = counts;
    if (!comm || comm->magic != COMM || head.dtype < 0 || head.dtype >= (int)(sizeof dtypes / sizeof *dtypes) || head.root >= (int)comm->ranks || peer >= comm->ranks) {
        release(&call->task);
        return refuse(HCCL_E_PARA, name, "no communicator, or a dtype, root or rank out of range");
    }
    *call = (Call){.task = {.name = name, .run = head.kind >= SEND ? run_message : run_collective, .release = release}, .comm = comm, .head = head, .peer = peer, .counts = counts};
    if (em_stream(handle, &stream) || (from_bytes && em_range(&call->from, from, from_bytes, em_stream_device(stream), name)) ||
        (to_bytes && em_range(&call->to, to, to_bytes, em_stream_device(stream), name))) {
        release(&call->task);
        return HCCL_E_RUNTIME; /* its message is there */
    }
    call->number = head.kind == SEND ? comm->sent[peer]++ : head.kind == RECEIVE ? comm->received[peer]++ : comm->calls++;
    em_count_launch(name);
    em_enqueue(stream, &call->task);
    return HCCL_SUCCESS;
}

static bool known(HcclDataType dtype) { return dtype >= 0 && dtype < (int)(sizeof dtypes / sizeof *dtypes); }
#define KNOWN(NAME, DTYPE) do { if (!known(DTYPE)) return refuse(HCCL_E_PARA, NAME, "the dtype is unknown"); } while (0)

EM_API HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo) {
    if (!rootInfo) return refuse(HCCL_E_PTR, "HcclGetRootInfo", "rootInfo is NULL");
    memset(rootInfo, 0, sizeof *rootInfo);
    const char *folder = getenv("TMPDIR");
    if (!folder || access(folder, W_OK)) folder = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    snprintf(rootInfo->internal, 200, "%.150s/mindtorch_hccl_XXXXXX", folder);
    return mkdtemp(rootInfo->internal) ? HCCL_SUCCESS : refuse(HCCL_E_RUNTIME, "HcclGetRootInfo", "no folder for the ranks to meet can be made");
}

EM_API HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm) {
    if (!rootInfo || !comm) return refuse(HCCL_E_PTR, "HcclCommInitRootInfo", "an argument is NULL");
    if (!nRanks || rank >= nRanks || access(rootInfo->internal, W_OK)) return refuse(HCCL_E_PARA, "HcclCommInitRootInfo", "no such rank, or no root info");
    Comm *made = em_new(sizeof *made);
    *made = (Comm){.magic = COMM, .ranks = nRanks, .rank = rank, .sent = em_new(nRanks * sizeof(uint64_t)), .received = em_new(nRanks * sizeof(uint64_t))};
    snprintf(made->folder, sizeof made->folder, "%.200s", rootInfo->internal);
    *comm = made;
    return HCCL_SUCCESS;
}

/* The last rank removes the folder; others find it in use. */
EM_API HcclResult HcclCommDestroy(HcclComm comm) {
    if (!comm || comm->magic != COMM) return refuse(HCCL_E_PARA, "HcclCommDestroy", "no communicator");
    char path[400];
    snprintf(path, sizeof path, "%s/left.%u", comm->folder, comm->rank);
    FILE *mark = fopen(path, "wb");
    if (mark) fclose(mark);
    bool last = true;
    for (uint32_t r = 0; r < comm->ranks && last; r++) {
        snprintf(path, sizeof path, "%s/left.%u", comm->folder, r);
        last = !access(path, F_OK);
    }
    DIR *folder = last ? opendir(comm->folder) : NULL;
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        if (*entry->d_name == '.') continue;
        snprintf(path, sizeof path, "%s/%.100s", comm->folder, entry->d_name);
        unlink(path);
    }
    if (folder) closedir(folder), rmdir(comm->folder);
    comm->magic = 0;
    free(comm->sent), free(comm->received), free(comm);
    return HCCL_SUCCESS;
}

EM_API HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize) {
    if (!comm || !rankSize) return refuse(HCCL_E_PTR, "HcclGetRankSize", "an argument is NULL");
    *rankSize = comm->ranks;
    return HCCL_SUCCESS;
}

EM_API HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank) {
    if (!comm || !rank) return refuse(HCCL_E_PTR, "HcclGetRankId", "an argument is NULL");
    *rank = comm->rank;
    return HCCL_SUCCESS;
}

static bool reduces(HcclReduceOp op, HcclDataType dtype) { return op >= SUM && op <= MIN && known(dtype) && dtypes[dtype] != ACL_DOUBLE && !(op == PROD && dtypes[dtype] == ACL_INT16); }

EM_API HcclResult HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op, HcclComm comm, aclrtStream stream) {
    if (!reduces(op, dataType)) return refuse(HCCL_E_NOT_SUPPORT, "HcclAllReduce", "the reduction of this dtype is not supported");
    size_t bytes = count * item_of(dataType);
    return begin(comm, (Head){ALL_REDUCE, dataType, op, 0, count}, sendBuf, bytes, recvBuf, bytes, 0, NULL, stream);
}

EM_API HcclResult HcclReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream) {
    if (!reduces(op, dataType)) return refuse(HCCL_E_NOT_SUPPORT, "HcclReduce", "the reduction of this dtype is not supported");
    size_t bytes = count * item_of(dataType);
    return begin(comm, (Head){REDUCE, dataType, op, (int)root, count}, sendBuf, bytes, recvBuf, comm && comm->rank == root ? bytes : 0, 0, NULL, stream);
}

EM_API HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm, aclrtStream stream) {
    KNOWN("HcclBroadcast", dataType);
    size_t bytes = count * item_of(dataType);
    const bool here = comm && comm->rank == root;
    return begin(comm, (Head){BROADCAST, dataType, NO_OP, (int)root, count}, buf, here ? bytes : 0, buf, here ? 0 : bytes, 0, NULL, stream);
}

EM_API HcclResult HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
    KNOWN("HcclAllGather", dataType);
    size_t bytes = sendCount * item_of(dataType);
    return begin(comm, (Head){ALL_GATHER, dataType, NO_OP, 0, sendCount}, sendBuf, bytes, recvBuf, comm ? bytes * comm->ranks : 0, 0, NULL, stream);
}

EM_API HcclResult HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm, aclrtStream stream) {
    if (!reduces(op, dataType)) return refuse(HCCL_E_NOT_SUPPORT, "HcclReduceScatter", "the reduction of this dtype is not supported");
    size_t bytes = recvCount * item_of(dataType);
    return begin(comm, (Head){REDUCE_SCATTER, dataType, op, 0, recvCount}, sendBuf, comm ? bytes * comm->ranks : 0, recvBuf, bytes, 0, NULL, stream);
}

EM_API HcclResult HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root, HcclComm comm, aclrtStream stream) {
    KNOWN("HcclScatter", dataType);
    size_t bytes = recvCount * item_of(dataType);
    return begin(comm, (Head){SCATTER, dataType, NO_OP, (int)root, recvCount}, sendBuf, comm && comm->rank == root ? bytes * comm->ranks : 0, recvBuf, bytes, 0, NULL, stream);
}

EM_API HcclResult HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls, HcclDataType sendType, const void *recvBuf, const void *recvCounts,
                                const void *rdispls, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    if (!comm || comm->magic != COMM || !sendCounts || !sdispls || !recvCounts || !rdispls) return refuse(HCCL_E_PTR, "HcclAlltoAllV", "an argument is NULL");
    if (!known(sendType) || sendType != recvType) return refuse(HCCL_E_PARA, "HcclAlltoAllV", "the dtypes differ, or are unknown");
    const uint64_t *lists[] = {sendCounts, sdispls, recvCounts, rdispls};
    uint64_t *counts = em_new(4 * comm->ranks * sizeof *counts), ends[2] = {0, 0};
    for (int l = 0; l < 4; l++) memcpy(counts + (size_t)l * comm->ranks, lists[l], comm->ranks * sizeof *counts);
    for (int side = 0; side < 2; side++)
        for (uint32_t r = 0; r < comm->ranks; r++)
            if (lists[2 * side][r] && lists[2 * side][r] + lists[2 * side + 1][r] > ends[side]) ends[side] = lists[2 * side][r] + lists[2 * side + 1][r];
    return begin(comm, (Head){ALL_TO_ALL, sendType, NO_OP, 0, 0}, sendBuf, ends[0] * item_of(sendType), (void *)recvBuf, ends[1] * item_of(sendType), 0, counts, stream);
}

EM_API HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) { return begin(comm, (Head){BARRIER, 0, NO_OP, 0, 0}, NULL, 0, NULL, 0, 0, NULL, stream); }

EM_API HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm, aclrtStream stream) {
    KNOWN("HcclSend", dataType);
    return begin(comm, (Head){SEND, dataType, NO_OP, 0, count}, sendBuf, count * item_of(dataType), NULL, 0, destRank, NULL, stream);
}

EM_API HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm, aclrtStream stream) {
    KNOWN("HcclRecv", dataType);
    return begin(comm, (Head){RECEIVE, dataType, NO_OP, 0, count}, recvBuf, count * item_of(dataType), NULL, 0, srcRank, NULL, stream);
}
