/* The start and the end, devices, contexts, versions, errors, and settings.
 *
 * Note [Threads and devices]
 * A thread has no device until it sets one: calls that need it give 107002. Initialising anew makes all threads forget theirs.
 */
#include "runtime.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

EmState em_state;
_Thread_local const char *em_running;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local EmContext *current;
static _Thread_local uint64_t current_generation;
static _Thread_local char message[1024], given[1024];
static _Thread_local aclError last_error;
static int64_t system_options[3];
static int saturation_mode = 1;

aclError em_error(aclError code, const char *format, ...) {
    char text[sizeof message - 32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(message, sizeof message, "E%d: %s", code, text);
    last_error = code;
    return code;
}

void em_die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("emulator: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stderr);
    abort();
}

EM_API const char *aclGetRecentErrMsg(void) {
    if (!*message) return NULL;
    memcpy(given, message, sizeof given);
    *message = 0;
    return given;
}

EM_API aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
    (void)level;
    return last_error;
}

EM_API aclError aclrtGetLastError(aclrtLastErrLevel level) {
    aclError error = aclrtPeekAtLastError(level);
    last_error = 0;
    return error;
}

/* Settings by environment */

static const char *setting(const char *name, const char *otherwise) {
    char key[64];
    snprintf(key, sizeof key, "MINDTORCH_NPU_EMULATOR_%s", name);
    const char *value = getenv(key);
    return value && *value ? value : otherwise;
}

static bool number(const char *name, const char *otherwise, uint64_t *value) {
    const char *text = setting(name, otherwise);
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return !errno && !*end && *text != '-';
}

static aclError read_settings(void) {
    uint64_t devices, memory;
    REQUIRE_ACL(number("DEVICES", "2", &devices) && devices <= EM_MAX_DEVICES, RT_PARAM_INVALID, "MINDTORCH_NPU_EMULATOR_DEVICES is no number from 0 to %d",
                EM_MAX_DEVICES);
    REQUIRE_ACL(number("MEMORY", "1073741824", &memory) && memory >= 512 && memory <= (uint64_t)1 << 40, RT_PARAM_INVALID,
                "MINDTORCH_NPU_EMULATOR_MEMORY is no number of bytes");
    em_state.devices = (int)devices;
    em_state.memory = memory;
    snprintf(em_state.soc, sizeof em_state.soc, "%s", setting("SOC", "Ascend910B1"));
    snprintf(em_state.cann, sizeof em_state.cann, "%s", setting("CANN", "8.5"));
    em_state.trace = strcmp(setting("TRACE", "0"), "0") != 0;
    em_state.sticky = strcmp(setting("STICKY", "1"), "0") != 0;
    return 0;
}

bool em_chip_has(aclDataType dtype) {
    if (dtype == ACL_BF16) return strncmp(em_state.soc, "Ascend310", 9) && strncmp(em_state.soc, "Ascend910A", 10);
    return em_item_size(dtype) != 0;
}

bool em_chip_multiplies_float32(void) { return strncmp(em_state.soc, "Ascend310", 9) && strncmp(em_state.soc, "Ascend910A", 10); }

/* Start and end */

EM_API aclError aclInit(const char *configPath) {
    (void)configPath;
    pthread_mutex_lock(&lock);
    aclError status = em_state.initialised ? em_error(ACL_ERROR_REPEAT_INITIALIZE, "aclInit: called before") : read_settings();
    if (!status && em_state.devices) status = em_memory_start();
    if (!status) {
        for (int d = 0; d < EM_MAX_DEVICES; d++) em_state.primary[d] = (EmContext){.device = d, .primary = true};
        memset(em_state.peer, 0, sizeof em_state.peer);
        memset(system_options, 0, sizeof system_options);
        em_state.generation++;
        em_state.initialised = true;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void report(int64_t count, const char *what) {
    if (count) fprintf(stderr, "emulator: leaked at aclFinalize: %lld %s\n", (long long)count, what);
}

EM_API aclError aclFinalize(void) {
    pthread_mutex_lock(&lock);
    if (!em_state.initialised) {
        pthread_mutex_unlock(&lock);
        return em_error(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize: called before, or without aclInit");
    }
    const struct { const int64_t count; const char *what; } left[] = {
        {em_count(EM_TENSOR), "aclTensor"}, {em_count(EM_SCALAR), "aclScalar"},
        {em_count(EM_INT_ARRAY) + em_count(EM_FLOAT_ARRAY) + em_count(EM_BOOL_ARRAY), "arrays"},
        {em_count(EM_TENSOR_LIST) + em_count(EM_SCALAR_LIST), "lists"}, {em_count(EM_EXECUTOR), "executors"}, {em_count(EM_STREAM), "streams"},
        {em_count(EM_EVENT), "events"}, {em_count(EM_CONTEXT), "contexts"}, {em_device_blocks(), "blocks of device memory"},
        {em_host_blocks(), "blocks of pinned host memory"},
    };
    for (size_t k = 0; k < sizeof left / sizeof *left; k++) report(left[k].count, left[k].what);
    em_streams_stop(); /* queued work still needs memory, descriptors and events */
    for (void *event; (event = em_some(EM_EVENT));) aclrtDestroyEvent(event);
    for (void *executor; (executor = em_some(EM_EXECUTOR));) aclDestroyAclOpExecutor(executor);
    em_destroy_descriptors();
    for (void *context; (context = em_some(EM_CONTEXT));) {
        em_unregister(EM_CONTEXT, context);
        em_discard(context);
    }
    if (em_state.devices) em_memory_stop();
    em_discard_all();
    em_state.initialised = false;
    pthread_mutex_unlock(&lock);
    return 0;
}

aclError em_need_init(void) {
    REQUIRE_ACL(em_state.initialised, ACL_ERROR_UNINITIALIZE, "aclInit was not called");
    return 0;
}

/* Devices and contexts */

EmContext *em_current_context(void) {
    if (!current || current_generation != em_state.generation) return NULL;
    return current;
}

aclError em_need_device(int *device) {
    TRY_ACL(em_need_init());
    EmContext *context = em_current_context();
    REQUIRE_ACL(context && (context->primary || em_is_live(EM_CONTEXT, context)), RT_CONTEXT_NULL, "the thread has no device: aclrtSetDevice was not called");
    *device = context->device;
    return 0;
}

static void enter(EmContext *context) {
    current = context;
    current_generation = em_state.generation;
}

static aclError check_device(int64_t device) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(device >= 0 && device < em_state.devices, RT_INVALID_DEVICE, "there is no device %lld; there are %d", (long long)device, em_state.devices);
    return 0;
}

EM_API aclError aclrtSetDevice(int32_t deviceId) {
    TRY_ACL(check_device(deviceId));
    enter(&em_state.primary[deviceId]);
    return 0;
}

EM_API aclError aclrtGetDevice(int32_t *deviceId) {
    int device;
    REQUIRE_ACL(deviceId, RT_PARAM_INVALID, "aclrtGetDevice: deviceId is NULL");
    TRY_ACL(em_need_device(&device));
    *deviceId = device;
    return 0;
}

EM_API aclError aclrtResetDevice(int32_t deviceId) {
    TRY_ACL(check_device(deviceId));
    em_forget_failures(deviceId);
    em_release_default_stream(&em_state.primary[deviceId]);
    if (em_current_context() == &em_state.primary[deviceId]) current = NULL;
    return 0;
}

EM_API aclError aclrtResetDeviceForce(int32_t deviceId) { return aclrtResetDevice(deviceId); }

EM_API aclError aclrtGetDeviceCount(uint32_t *count) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(count, RT_PARAM_INVALID, "aclrtGetDeviceCount: count is NULL");
    *count = (uint32_t)em_state.devices;
    return 0;
}

EM_API aclError aclrtGetRunMode(aclrtRunMode *runMode) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(runMode, RT_PARAM_INVALID, "aclrtGetRunMode: runMode is NULL");
    *runMode = 1; /* the program runs on the host */
    return 0;
}

EM_API const char *aclrtGetSocName(void) { return em_state.initialised && em_state.devices ? em_state.soc : NULL; }

EM_API aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus) {
    TRY_ACL(check_device(deviceId));
    REQUIRE_ACL(deviceStatus, RT_PARAM_INVALID, "aclrtQueryDeviceStatus: deviceStatus is NULL");
    *deviceStatus = 0;
    return 0;
}

enum { L2_CACHE = 192 << 20 };

EM_API aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value) {
    TRY_ACL(check_device(deviceId));
    REQUIRE_ACL(value, RT_PARAM_INVALID, "aclrtGetDeviceInfo: value is NULL");
    switch (attr) {
    case 1: *value = 6; return 0;              /* cores of AI CPU */
    case 101: case 102: *value = 24; return 0; /* AI and cube cores */
    case 201: *value = 48; return 0;           /* vector cores */
    case 301: *value = (int64_t)em_state.memory; return 0;
    case 302: *value = L2_CACHE; return 0;
    case 402: *value = deviceId; return 0;
    case 501: *value = 0; return 0;
    default: return em_error(RT_NOT_SUPPORTED, "aclrtGetDeviceInfo: attribute %d is not known", attr);
    }
}

EM_API aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value) {
    TRY_ACL(check_device(deviceId));
    REQUIRE_ACL(value && deviceInfo >= 0 && deviceInfo <= 2, RT_PARAM_INVALID, "aclGetDeviceCapability: value is NULL, or %d is not known", deviceInfo);
    static const int64_t values[] = {24, 48, L2_CACHE};
    *value = values[deviceInfo];
    return 0;
}

EM_API aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType, int32_t *value) {
    (void)devFeatureType;
    TRY_ACL(check_device(deviceId));
    REQUIRE_ACL(value, RT_PARAM_INVALID, "aclrtGetDeviceCapability: value is NULL");
    *value = 0;
    return 0;
}

EM_API aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo) {
    (void)utilizationInfo;
    TRY_ACL(check_device(deviceId));
    return em_error(RT_NOT_SUPPORTED, "aclrtGetDeviceUtilizationRate: an emulated device has no utilisation");
}

EM_API aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum, size_t *outputNum) {
    (void)memUsageInfo, (void)inputNum, (void)outputNum;
    TRY_ACL(check_device(deviceId));
    return em_error(RT_NOT_SUPPORTED, "aclrtGetMemUsageInfo: not supported; aclrtGetMemInfo is");
}

EM_API aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid) {
    TRY_ACL(check_device(deviceId));
    REQUIRE_ACL(uuid, RT_PARAM_INVALID, "aclrtDeviceGetUuid: uuid is NULL");
    memset(uuid, 0, sizeof *uuid);
    memcpy(uuid->bytes, "emulator", 8);
    uuid->bytes[15] = (char)deviceId;
    return 0;
}

EM_API aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId) {
    TRY_ACL(check_device(deviceId));
    REQUIRE_ACL(context, RT_PARAM_INVALID, "aclrtCreateContext: context is NULL");
    EmContext *made = em_new(sizeof *made);
    made->device = deviceId;
    em_register(EM_CONTEXT, made);
    enter(made);
    *context = made;
    return 0;
}

EM_API aclError aclrtDestroyContext(aclrtContext context) {
    TRY_ACL(em_need_init());
    REQUIRE_ACL(em_unregister(EM_CONTEXT, context), RT_INVALID_HANDLE, "aclrtDestroyContext: %p is no live context", context);
    em_release_default_stream(context);
    if (current == context) current = NULL;
    em_discard(context);
    return 0;
}

EM_API aclError aclrtSetCurrentContext(aclrtContext context) {
    TRY_ACL(em_need_init());
    bool known = em_is_live(EM_CONTEXT, context);
    for (int d = 0; d < em_state.devices; d++) known |= context == &em_state.primary[d];
    REQUIRE_ACL(known, RT_INVALID_HANDLE, "aclrtSetCurrentContext: %p is no live context", context);
    enter(context);
    return 0;
}

EM_API aclError aclrtGetCurrentContext(aclrtContext *context) {
    int device;
    REQUIRE_ACL(context, RT_PARAM_INVALID, "aclrtGetCurrentContext: context is NULL");
    TRY_ACL(em_need_device(&device));
    *context = em_current_context();
    return 0;
}

/* Access between devices */

EM_API aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
    TRY_ACL(check_device(deviceId));
    TRY_ACL(check_device(peerDeviceId));
    REQUIRE_ACL(canAccessPeer, RT_PARAM_INVALID, "aclrtDeviceCanAccessPeer: canAccessPeer is NULL");
    *canAccessPeer = deviceId != peerDeviceId;
    return 0;
}

static aclError set_peer(int32_t peer, bool access) {
    int device;
    TRY_ACL(em_need_device(&device));
    TRY_ACL(check_device(peer));
    REQUIRE_ACL(peer != device, RT_PARAM_INVALID, "device %d is no peer of itself", device);
    em_state.peer[device][peer] = access;
    return 0;
}

EM_API aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
    REQUIRE_ACL(!flags, RT_PARAM_INVALID, "aclrtDeviceEnablePeerAccess: flags must be 0");
    return set_peer(peerDeviceId, true);
}

EM_API aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) { return set_peer(peerDeviceId, false); }

EM_API aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t *status) {
    TRY_ACL(check_device(deviceId));
    TRY_ACL(check_device(peerDeviceId));
    REQUIRE_ACL(status, RT_PARAM_INVALID, "aclrtDevicePeerAccessStatus: status is NULL");
    *status = em_state.peer[deviceId][peerDeviceId];
    return 0;
}

/* Options */

static aclError check_option(aclSysParamOpt opt) {
    REQUIRE_ACL(opt >= 0 && opt < (int)(sizeof system_options / sizeof *system_options), RT_PARAM_INVALID, "unknown system parameter %d", opt);
    return 0;
}

EM_API aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
    TRY_ACL(em_need_init());
    TRY_ACL(check_option(opt));
    system_options[opt] = value;
    return 0;
}

EM_API aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value) {
    TRY_ACL(em_need_init());
    TRY_ACL(check_option(opt));
    REQUIRE_ACL(value, RT_PARAM_INVALID, "aclrtGetSysParamOpt: value is NULL");
    *value = system_options[opt];
    return 0;
}

EM_API aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
    int device;
    TRY_ACL(em_need_device(&device));
    return aclrtSetSysParamOpt(opt, value);
}

EM_API aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value) {
    int device;
    TRY_ACL(em_need_device(&device));
    return aclrtGetSysParamOpt(opt, value);
}

EM_API aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
    int device;
    TRY_ACL(em_need_device(&device));
    REQUIRE_ACL(mode == 0 || mode == 1, RT_PARAM_INVALID, "aclrtSetDeviceSatMode: unknown mode %d", mode);
    saturation_mode = mode;
    return 0;
}

EM_API aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode) {
    int device;
    TRY_ACL(em_need_device(&device));
    REQUIRE_ACL(mode, RT_PARAM_INVALID, "aclrtGetDeviceSatMode: mode is NULL");
    *mode = saturation_mode;
    return 0;
}

EM_API aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
    (void)timeout;
    return em_need_init();
}

EM_API aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
    (void)timeout;
    return em_need_init();
}

/* Versions */

EM_API aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion) {
    REQUIRE_ACL(majorVersion && minorVersion && patchVersion, RT_PARAM_INVALID, "aclrtGetVersion: an argument is NULL");
    *majorVersion = 1, *minorVersion = strcmp(setting("CANN", "8.5"), "8.1") ? 17 : 14, *patchVersion = 0;
    return 0;
}

EM_API aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version) {
    REQUIRE_ACL(version && name >= 0 && name <= 7, RT_PARAM_INVALID, "aclsysGetCANNVersion: version is NULL, or package %d is not known", name);
    memset(version, 0, sizeof *version);
    snprintf(version->version, sizeof version->version, "%s.0", setting("CANN", "8.5"));
    snprintf(version->majorVersion, sizeof version->majorVersion, "8");
    snprintf(version->minorVersion, sizeof version->minorVersion, "%s", strchr(version->version, '.') ? (char[2]){version->version[2], 0} : "0");
    snprintf(version->patchVersion, sizeof version->patchVersion, "0");
    return 0;
}

EM_API aclError aclsysGetVersionStr(char *pkgName, char *versionStr) {
    REQUIRE_ACL(pkgName && versionStr, RT_PARAM_INVALID, "aclsysGetVersionStr: an argument is NULL");
    sprintf(versionStr, "%s.0", setting("CANN", "8.5"));
    return 0;
}

EM_API aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum) {
    REQUIRE_ACL(pkgName && versionNum, RT_PARAM_INVALID, "aclsysGetVersionNum: an argument is NULL");
    *versionNum = (int32_t)(strtod(setting("CANN", "8.5"), NULL) * 10 + 0.5) * 1000000;
    return 0;
}

static const aclCannAttr attributes[] = {0, 1, 2};

EM_API aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value) {
    REQUIRE_ACL(value && cannAttr >= 0 && cannAttr <= 2, RT_PARAM_INVALID, "aclGetCannAttribute: value is NULL, or attribute %d is not known", cannAttr);
    *value = cannAttr == 1 ? em_chip_has(ACL_BF16) : 1;
    return 0;
}

EM_API aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num) {
    REQUIRE_ACL(cannAttrList && num, RT_PARAM_INVALID, "aclGetCannAttributeList: an argument is NULL");
    *cannAttrList = attributes;
    *num = sizeof attributes / sizeof *attributes;
    return 0;
}

EM_API size_t aclDataTypeSize(aclDataType dataType) { return em_item_size(dataType); }

/* aclnn's own start and end do nothing: aclInit has done it. */

EM_API aclnnStatus aclnnInit(const char *configPath) {
    (void)configPath;
    return em_state.initialised ? 0 : em_error(ACLNN_ERR_RUNTIME_ERROR, "aclnnInit: aclInit was not called");
}

EM_API aclnnStatus aclnnFinalize(void) { return 0; }
