/* What the files of the extension share: the classes it works on, tensors, arrays, and the tables of kernels.
 *
 * The extension shortens calls; it decides nothing. Everything it does not recognise goes to the Python function that it stands before, so
 * that results, errors and overrides are the same with and without it.
 */
#ifndef MINDTORCH_NATIVE_H
#define MINDTORCH_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mindtorch_native_array
#define PY_UFUNC_UNIQUE_SYMBOL mindtorch_native_ufunc
#ifndef NATIVE_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include "parts.h"

/* Counts changes of what `_dispatch/native.py` and the extension tell each other; a build of another count is not used. */
#define INTERFACE 17

#define MAX_DIMS 16
#define MAX_PARAMS 16
#define MAX_DTYPES 32
#define RELEASE_GIL 32768 /* elements from which a loop runs without the GIL */

#define BUFFER_FROM 262144 /* bytes from which memory is of pages that are kept (buffers.c) */
#define ALIGNED_FROM 1024  /* bytes from which it begins at a cache line: vectors that lie across two lines take twice as long to read */

#define INTERNAL __attribute__((visibility("hidden")))

/* Variants of the loops that gain by wide vectors, chosen at run time: plain, for AVX2 with FMA, and for the later AVX-512. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAS_WIDE 1
#define WIDE __attribute__((target("avx2,fma,bmi2")))
#if defined(__clang__)
#define WIDEST __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2"), min_vector_width(512)))
#else
#define WIDEST __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,prefer-vector-width=512")))
#endif
/* What serves the processors without AVX2 alone, twenty years old: right, and small. */
#if !defined(__clang__)
#define PLAIN __attribute__((optimize("O2")))
#endif
#else
#define HAS_WIDE 0
#endif
#ifndef PLAIN
#define PLAIN
#endif

/* ---------------------------------------------------------------------------------------------------------------- state */

typedef struct {
    int ready;
    PyTypeObject *tensor; /* the class Tensor */
    PyTypeObject *other;  /* the last other class that was found in `plain` (Parameter) */
    PyTypeObject *memory_format;
    PyObject *strided; /* the only layout of tensors that C makes */
    PyTypeObject *size;   /* torch.Size */
    PyTypeObject *rare; /* what most tensors never have: see Note [Rare attributes] in _tensor.py */
    PyTypeObject *node, *accumulate, *saved_output, *recomputed;
    PyObject *plain; /* the set of Note [The special state] */
    PyObject *tls;
    PyObject *view; /* the sentinel VIEW */
    PyObject *cpu;
    PyObject *live_node, *keep;
    PyObject *float32, *float64, *bool_, *int64;
    PyObject *differentiable[MAX_DTYPES]; /* dtypes whose tensors have a history */
    int differentiable_count;
    PyArray_Descr *descr32, *descr64, *descr_bool;
    Py_ssize_t at_data, at_dtype, at_node, at_base, at_rare;    /* slots of Tensor */
    Py_ssize_t at_count, at_number, at_epoch, at_shares, at_grad, at_retains, at_multi_view, at_inference; /* slots of Rare */
    Py_ssize_t at_edges, at_saved, at_consts, at_outputs;       /* slots of Node */
    Py_ssize_t at_payload, at_kind, at_reference, at_saved_version, at_saved_number, at_record; /* slots of SavedOutput */
    int vectors; /* 0 plain, 1 WIDE, 2 WIDEST */
    /* the road (fast.h): what makes plans, which count they are of, numpy's setting of warnings and the one without any */
    PyObject *learn, *refusal, *errors, *quiet;
    Py_ssize_t epoch_of_plans;
    PyArray_Descr *descr_bfloat16;
    PyTypeObject *generator;
    int inferring, casting;          /* how many inference modes and autocasts are entered, in all threads */
    PyObject *mark_views, *cast;     /* what gives views of inference mode their history, and casts arguments under autocast */
    PyObject *profile;               /* what is asked about calls while a profiler is on, else NULL */
    PyObject *out_names, *out_casting_names, *unsafe, *multi_view;
    /* interned names */
    PyObject *grad_enabled, *inference, *autocast, *record, *shape, *dtype;
    PyObject *zero, *one, *note_written, *unpack;
} State;

extern INTERNAL State S;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* Takes over the reference to `value`. */
static inline void set_slot(PyObject *object, Py_ssize_t offset, PyObject *value)
{
    PyObject *before = SLOT(object, offset);
    SLOT(object, offset) = value;
    Py_XDECREF(before);
}

typedef struct {
    const char *name;
    Py_ssize_t *place;
} Slot;

/* -------------------------------------------------------------------------------------------------------------- tensors */

/* Whether the object is a tensor of a class without behaviour of its own, while nothing special is active. */
static inline int is_plain(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type == S.tensor || type == S.other) {
        return 1;
    }
    if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyTuple_Type || object == Py_None) {
        return 0;
    }
    int found = PySet_Contains(S.plain, (PyObject *)type);
    if (found < 0) {
        PyErr_Clear();
        return 0;
    }
    if (found) {
        S.other = type;
    }
    return found;
}

/* The payload when it is a numpy array, else NULL; borrowed. */
static inline PyArrayObject *array_of(PyObject *tensor)
{
    PyObject *data = SLOT(tensor, S.at_data);
    return data != NULL && Py_TYPE(data) == &PyArray_Type ? (PyArrayObject *)data : NULL;
}

/* Sizes or strides. An array without dimensions has no memory of them, which memcpy must not be given, not even for nothing. */
static inline void copy_dims(npy_intp *to, const npy_intp *from, Py_ssize_t count)
{
    if (count > 0) {
        memcpy(to, from, sizeof(npy_intp) * (size_t)count);
    }
}

/* Arguments, likewise. They are borrowed. */
static inline void copy_objects(PyObject **to, PyObject *const *from, Py_ssize_t count)
{
    if (count > 0) {
        memcpy(to, from, sizeof(PyObject *) * (size_t)count);
    }
}

static inline int is_special(void)
{
    return !S.ready || PySet_GET_SIZE(S.plain) == 0;
}

/* The same, or autocast in any thread, which casts what operators get. */
static inline int is_watched(void)
{
    return is_special() || S.casting;
}

static inline int is_differentiable(PyObject *kind)
{
    for (int i = 0; i < S.differentiable_count; i++) {
        if (S.differentiable[i] == kind) {
            return 1;
        }
    }
    return 0;
}

/* Whether recording has to look at a plain tensor at all. A view without history (VIEW) of a base without history has none. */
static inline int may_have_history(PyObject *tensor)
{
    PyObject *node = SLOT(tensor, S.at_node);
    if (node == Py_None || node == NULL) {
        return 0;
    }
    if (node == S.view) {
        PyObject *base = SLOT(tensor, S.at_base);
        if (base != NULL && base != Py_None && SLOT(base, S.at_node) == Py_None) {
            return 0;
        }
    }
    return 1;
}

/* The rare attributes of a tensor (borrowed), or NULL when it has none. */
static inline PyObject *rare_of(PyObject *tensor)
{
    PyObject *rare = SLOT(tensor, S.at_rare);
    return rare == Py_None ? NULL : rare;
}

/* One of the numbers among them, an int that most tensors have as 0; borrowed. */
static inline PyObject *rare_number(PyObject *tensor, Py_ssize_t place)
{
    PyObject *rare = rare_of(tensor);
    return rare == NULL ? S.zero : SLOT(rare, place);
}

static inline int is_inference(PyObject *tensor)
{
    PyObject *rare = rare_of(tensor);
    return rare != NULL && SLOT(rare, S.at_inference) != Py_False;
}

/* Whether this thread is in inference mode. */
INTERNAL int reads_inference(void);
static inline int infers(void)
{
    return S.inferring && reads_inference();
}

INTERNAL PyObject *need_rare(PyObject *tensor); /* borrowed; made if need be */
INTERNAL PyObject *make_tensor(PyObject *data, PyObject *kind); /* steals data */
INTERNAL PyObject *make_result(PyObject *data, PyObject *kind); /* the same of a result with memory of its own: an inference tensor in inference mode */
INTERNAL PyObject *mark_inference(PyObject *tensor);            /* takes over the reference and gives it back */
INTERNAL PyObject *make_size(PyArrayObject *array);
INTERNAL int grad_enabled(void);
INTERNAL PyObject *finish_view(PyObject *made, PyObject *source, PyObject *op, PyObject *const *args, Py_ssize_t count);
INTERNAL PyObject *edge_of(PyObject *tensor); /* (node, output number) or None; a new reference */
INTERNAL PyObject *run_backward(PyObject *module, PyObject *const *args, Py_ssize_t count);
INTERNAL PyObject *running_walks(PyObject *module, PyObject *unused);
INTERNAL PyObject *walk_executes(PyObject *module, PyObject *node);
INTERNAL PyObject *walk_remaining(PyObject *module, PyObject *unused);
INTERNAL PyObject *quick_backward(PyObject *module, PyObject *const *args, Py_ssize_t count);
INTERNAL PyObject *step_group(PyObject *module, PyObject *args);

/* Whether aclnn functions can be called from here; see Note [Arguments of whole words] in launching.c. */
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(_WIN32)
#define LAUNCHES 1
#else
#define LAUNCHES 0
#endif
extern INTERNAL PyTypeObject LauncherType;
INTERNAL PyObject *connect_engine(PyObject *module, PyObject *args);
INTERNAL PyObject *crc32_of(PyObject *module, PyObject *args);
INTERNAL PyObject *record_call(PyObject *op, PyObject *made, PyObject *const *args, Py_ssize_t count);
/* Where each slot lies in instances of a class; the last name is NULL. -1 with an exception when there is no such slot. */
INTERNAL int find_slots(PyObject *type, const Slot *slots);
INTERNAL PyObject *tuple_of(int count, const npy_intp *numbers);
INTERNAL PyObject *counter_of(PyObject *tensor); /* borrowed: the tensor refers to it */
INTERNAL int bump_version(PyObject *tensor);
INTERNAL int give_away(PyObject *tensor); /* notes that somebody may write to the memory of a result unseen; -1 with an exception */
/* again.c. What a node has saved may be computed again; and what nodes alone refer to by now is forgotten. -1 with an exception. */
INTERNAL int offer_saved(PyObject *node, PyObject *saved);
INTERNAL int forget_results(void);
INTERNAL PyObject *connect_again(PyObject *module, PyObject *args);

/* What a weak reference refers to, a new reference; NULL, without an exception, when it is gone. */
static inline PyObject *referent(PyObject *reference)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *found;
    if (PyWeakref_GetRef(reference, &found) < 0) {
        PyErr_Clear();
        return NULL;
    }
    return found;
#else
    PyObject *found = PyWeakref_GetObject(reference);
    return found == NULL || found == Py_None ? NULL : Py_NewRef(found);
#endif
}
INTERNAL int install_attributes(PyObject *tensor);
INTERNAL int refuse_write(PyObject *self, PyObject *value, void *closure);
INTERNAL PyObject *base_method(PyTypeObject *type, PyMethodDef *method);

/* --------------------------------------------------------------------------------------------------------------- arrays */

static inline int is_array(PyObject *object)
{
    return Py_TYPE(object) == &PyArray_Type;
}

static inline int is_contiguous(PyArrayObject *array)
{
    const int wanted = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    return (PyArray_FLAGS(array) & wanted) == wanted;
}

/* Whether the dimensions of one element, too, have the strides of a new array. Beside a number they are looked at, and kept. */
static inline int has_plain_strides(PyArrayObject *array)
{
    npy_intp next = PyArray_ITEMSIZE(array);
    for (int d = PyArray_NDIM(array) - 1; d >= 0; d--) {
        if (PyArray_STRIDE(array, d) != next) {
            return 0;
        }
        next *= PyArray_DIM(array, d);
    }
    return 1;
}

/* 4 for float32, 8 for float64, both in native byte order; 0 for all else. */
static inline int float_width(PyArrayObject *array)
{
    PyArray_Descr *descr = PyArray_DESCR(array);
    return descr == S.descr32 ? 4 : descr == S.descr64 ? 8 : 0;
}

/* Like float_width, for contiguous arrays only. */
static inline int dense_width(PyObject *object)
{
    if (!is_array(object) || !is_contiguous((PyArrayObject *)object)) {
        return 0;
    }
    return float_width((PyArrayObject *)object);
}

/* Whether a dtype is float16 or bfloat16. */
static inline int is_half_type(const PyArray_Descr *descr)
{
    return descr->type_num == NPY_HALF || descr == S.descr_bfloat16;
}

/* A new array of so many bytes, from ALIGNED_FROM on in memory of buffers.c: dense, with strides in bytes or, where these are NULL, in C's order, as all
 * zeros are. */
INTERNAL PyObject *buffer_array(int ndim, const npy_intp *dims, const npy_intp *strides, PyArray_Descr *descr, size_t bytes, int zeroed);
INTERNAL PyObject *empty_array(PyObject *module, PyObject *const *args, Py_ssize_t count);
INTERNAL PyObject *keep_buffers(PyObject *module, PyObject *limit);
INTERNAL PyObject *age_buffers(PyObject *module, PyObject *unused);
INTERNAL int start_buffers(void);

static inline size_t bytes_of(int ndim, const npy_intp *dims, const PyArray_Descr *descr)
{
    size_t bytes = (size_t)PyDataType_ELSIZE(descr);
    for (int d = 0; d < ndim; d++) {
        bytes *= (size_t)dims[d];
    }
    return bytes;
}

static inline PyObject *new_array(int ndim, const npy_intp *dims, PyArray_Descr *descr)
{
    const size_t bytes = bytes_of(ndim, dims, descr);
    if (bytes >= ALIGNED_FROM) {
        return buffer_array(ndim, dims, NULL, descr, bytes, 0);
    }
    Py_INCREF(descr);
    return PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, NULL, NULL, 0, NULL);
}

static inline PyObject *new_like(PyArrayObject *array)
{
    return new_array(PyArray_NDIM(array), PyArray_DIMS(array), PyArray_DESCR(array));
}

/* A view of `source`'s memory; strides in bytes. */
INTERNAL PyObject *new_view(PyArrayObject *source, int ndim, const npy_intp *dims, const npy_intp *strides, char *data);
/* The same in elements of another type. */
INTERNAL PyObject *new_view_as(PyArrayObject *source, PyArray_Descr *descr, int ndim, const npy_intp *dims, const npy_intp *strides, char *data);

/* An exact int that fits; 0 for anything else, without an exception. */
static inline int as_index(PyObject *object, Py_ssize_t *value)
{
    if (!PyLong_CheckExact(object)) {
        return 0;
    }
    *value = PyLong_AsSsize_t(object);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* An int that may be added to a size, and negated; 0 for one that is far from all of them, too. */
static inline int as_offset(PyObject *object, Py_ssize_t *value)
{
    return as_index(object, value) && *value < (Py_ssize_t)1 << 40 && *value > -((Py_ssize_t)1 << 40);
}

/* The value of a float or an int; 0 for anything else. */
static inline int as_double(PyObject *object, double *value)
{
    if (PyFloat_CheckExact(object)) {
        *value = PyFloat_AS_DOUBLE(object);
        return 1;
    }
    Py_ssize_t whole;
    if (!as_index(object, &whole)) {
        return 0;
    }
    *value = (double)whole;
    return 1;
}

/* A dimension number, wrapped; -1 when it is out of range or no int. */
static inline int as_dim(PyObject *object, int ndim)
{
    Py_ssize_t dim;
    if (!as_index(object, &dim) || dim < -ndim || dim >= ndim) {
        return -1;
    }
    return (int)(dim < 0 ? dim + ndim : dim);
}

/* -------------------------------------------------------------------------------------------------------------- kernels */

/* A kernel of a fast path: arguments in schema order, arrays for tensors. Returns an array; NULL without an exception declines. */
typedef PyObject *(*Kernel)(PyObject *const *args);

typedef struct {
    const char *name; /* as the schema's `fast:` names it */
    Kernel call;
    int halves; /* takes float16 and bfloat16 where it computes in float32 */
} KernelEntry;
#define HALVES 1

extern INTERNAL const KernelEntry view_kernels[];
extern INTERNAL const KernelEntry reduce_kernels[];
extern INTERNAL const KernelEntry moment_kernels[];
extern INTERNAL const KernelEntry scan_kernels[];
extern INTERNAL const KernelEntry bound_kernels[];
extern INTERNAL const KernelEntry matmul_kernels[];
extern INTERNAL const KernelEntry softmax_kernels[];
extern INTERNAL const KernelEntry norm_kernels[];
extern INTERNAL const KernelEntry channel_kernels[];
extern INTERNAL const KernelEntry resize_kernels[];
extern INTERNAL const KernelEntry grid_kernels[];
extern INTERNAL const KernelEntry distance_kernels[];
extern INTERNAL const KernelEntry byte_product_kernels[];
extern INTERNAL const KernelEntry embedding_kernels[];
extern INTERNAL const KernelEntry loss_kernels[];
extern INTERNAL const KernelEntry attention_kernels[];
extern INTERNAL const KernelEntry optim_kernels[];
extern INTERNAL const KernelEntry order_kernels[];
extern INTERNAL const KernelEntry factor_kernels[];
extern INTERNAL const KernelEntry eigen_kernels[];
extern INTERNAL const KernelEntry gate_kernels[];
extern INTERNAL const KernelEntry inverse_kernels[];
extern INTERNAL const KernelEntry patch_kernels[];
extern INTERNAL const KernelEntry pad_kernels[];
extern INTERNAL const KernelEntry rank_kernels[];
extern INTERNAL const KernelEntry unique_kernels[];
extern INTERNAL const KernelEntry topk_kernels[];
extern INTERNAL const KernelEntry recurrent_kernels[];
extern INTERNAL const KernelEntry conv_kernels[];
extern INTERNAL const KernelEntry divide_kernels[];
extern INTERNAL const KernelEntry random_kernels[];
extern INTERNAL const KernelEntry trial_kernels[];
extern INTERNAL const KernelEntry draw_kernels[];
extern INTERNAL const KernelEntry continuous_kernels[];
extern INTERNAL const KernelEntry creation_kernels[];
extern INTERNAL const KernelEntry range_kernels[];
extern INTERNAL const KernelEntry copy_kernels[];
extern INTERNAL const KernelEntry join_kernels[];
extern INTERNAL const KernelEntry index_kernels[];
extern INTERNAL const KernelEntry scatter_kernels[];
extern INTERNAL const KernelEntry mask_kernels[];
extern INTERNAL const KernelEntry special_kernels[];
extern INTERNAL const KernelEntry fourier_kernels[];
extern INTERNAL const KernelEntry shift_kernels[];
extern INTERNAL const KernelEntry half_kernels[];
extern INTERNAL const KernelEntry triangle_kernels[];
INTERNAL const KernelEntry *find_entry(const char *name);
INTERNAL Kernel find_kernel(const char *name);
/* Runs a Kernel object's function in C alone, with `out` if it is not NULL; NULL without an exception when it is none or declines. `args` has a place
 * behind the last one. */
INTERNAL PyObject *kernel_try(PyObject *kernel, PyObject **args, int count, PyArrayObject *out);
/* Whether it is one in C that takes half types. */
INTERNAL int kernel_takes_halves(PyObject *kernel);
/* Tells the extension what makes plans. */
INTERNAL PyObject *connect_road(PyObject *module, PyObject *args, PyObject *kwargs);
INTERNAL PyObject *connect_meta(PyObject *module, PyObject *args, PyObject *kwargs);
INTERNAL PyObject *count_modes(PyObject *module, PyObject *args);
INTERNAL PyObject *set_profile(PyObject *module, PyObject *function);
INTERNAL PyObject *forget_plans(PyObject *module, PyObject *unused);

/* ---------------------------------------------------------------------------------------------------------------- types */

extern INTERNAL PyTypeObject FastType, FastMethodType;
extern INTERNAL PyTypeObject RecorderType;
extern INTERNAL PyTypeObject SubscriptType;
extern INTERNAL PyTypeObject CheckedType;
extern INTERNAL PyTypeObject KernelType;

/* Runs a Recorder from C; `fresh` when `out` was just made and has no instance dict. */
INTERNAL PyObject *recorder_run(PyObject *recorder, PyObject *out, PyObject *const *args, Py_ssize_t count, int fresh);

/* The loop of a ufunc for one float width: two operands or one. */
typedef struct {
    PyUFuncGenericFunction call;
    void *data;
} Loop;

/* Fills loops[0] (float32) and loops[1] (float64); 0 when the ufunc has no such loops. */
INTERNAL int find_loops(PyObject *ufunc, int to_bool, Loop *loops);
INTERNAL PyObject *loop_unary(const Loop *loops, int to_bool, PyArrayObject *x);
INTERNAL PyObject *loop_binary(const Loop *loops, int to_bool, PyArrayObject *left, PyArrayObject *right);
/* In place: `other` is an array, or a number's value, or NULL for a ufunc of one operand; 0 to decline. */
INTERNAL int loop_inplace(const Loop *loops, PyArrayObject *target, PyArrayObject *other, PyObject *number);
/* With a number on one side: the right one unless `reflected`. */
INTERNAL PyObject *loop_number(const Loop *loops, int to_bool, PyArrayObject *x, PyObject *number, int reflected);

/* How large a number is without its sign; the least one has no opposite. */
static inline npy_uintp magnitude_of(npy_intp x)
{
    return x < 0 ? 0 - (npy_uintp)x : (npy_uintp)x;
}

#endif
