/* Copies of arrays, in their dtype or another one: the kernels of `_backends/cpu/ops/conversion.py`, and `clone`.
 *
 * Values that a type does not hold become what C's conversion makes of them, as in numpy.
 */
#include "making.h"

typedef void (*CastLoop)(const char *source, npy_intp from_step, char *target, npy_intp to_step, npy_intp n);

enum { BOOL, INT8, UINT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BFLOAT16, KINDS };

static inline npy_uint16 round_to_bfloat16(float x)
{
    union {
        float value;
        npy_uint32 bits;
    } of = {x};
    npy_uint32 rounded = (of.bits + 0x7FFF + ((of.bits >> 16) & 1)) >> 16, quiet = (of.bits >> 31 << 15) | 0x7FC0;
    return (npy_uint16)(x != x ? quiet : rounded);
}

static inline float from_bfloat16(npy_uint16 x)
{
    union {
        npy_uint32 bits;
        float value;
    } of = {(npy_uint32)x << 16};
    return of.value;
}

#define AS_IT_IS(x) (x)
#define NONZERO(x) ((x) != 0)

#define FROM npy_bool
#define LOAD(x) ((x) != 0)
#define IS_TRUE NONZERO
#define CAST_NAME(name) bool_##name
#include "cast_loops.h"

#define FROM npy_int8
#define LOAD AS_IT_IS
#define IS_TRUE NONZERO
#define CAST_NAME(name) int8_##name
#include "cast_loops.h"

#define FROM npy_uint8
#define LOAD AS_IT_IS
#define IS_TRUE NONZERO
#define CAST_NAME(name) uint8_##name
#include "cast_loops.h"

#define FROM npy_int16
#define LOAD AS_IT_IS
#define IS_TRUE NONZERO
#define CAST_NAME(name) int16_##name
#include "cast_loops.h"

#define FROM npy_int32
#define LOAD AS_IT_IS
#define IS_TRUE NONZERO
#define CAST_NAME(name) int32_##name
#include "cast_loops.h"

#define FROM npy_int64
#define LOAD AS_IT_IS
#define IS_TRUE NONZERO
#define CAST_NAME(name) int64_##name
#include "cast_loops.h"

#define FROM float
#define LOAD AS_IT_IS
#define IS_TRUE NONZERO
#define CAST_NAME(name) float32_##name
#include "cast_loops.h"

#define FROM double
#define LOAD AS_IT_IS
#define IS_TRUE NONZERO
#define CAST_NAME(name) float64_##name
#include "cast_loops.h"

#define FROM npy_uint16
#define LOAD(x) from_bfloat16(x)
#define IS_TRUE(x) (((x) & 0x7FFF) != 0)
#define CAST_NAME(name) bfloat16_##name
#include "cast_loops.h"

static const CastLoop *const tables[KINDS] = {
    bool_table, int8_table, uint8_table, int16_table, int32_table, int64_table, float32_table, float64_table, bfloat16_table,
};

/* The number of a dtype in the tables; -1 for all others. */
static int kind_of(PyArray_Descr *descr)
{
    if (descr == S.descr32) {
        return FLOAT32;
    }
    if (descr == M.bfloat16) {
        return BFLOAT16;
    }
    if (descr->byteorder == '>') {
        return -1;
    }
    switch (descr->type_num) {
    case NPY_BOOL:
        return BOOL;
    case NPY_BYTE:
        return INT8;
    case NPY_UBYTE:
        return UINT8;
    case NPY_SHORT:
        return INT16;
    case NPY_INT:
        return INT32;
    case NPY_LONG:
        return sizeof(npy_long) == 8 ? INT64 : -1;
    case NPY_DOUBLE:
        return FLOAT64;
    default:
        return -1;
    }
}

#define MOVE(type)                                                                                                                         \
    for (npy_intp i = 0; i < n; i++, source += from_step, target += to_step) {                                                             \
        *(type *)target = *(const type *)source;                                                                                           \
    }                                                                                                                                      \
    return

#define MOVER(name, type)                                                                                                                  \
    static void name(const char *source, npy_intp from_step, char *target, npy_intp to_step, npy_intp n)                                  \
    {                                                                                                                                      \
        if (from_step == sizeof(type) && to_step == sizeof(type)) {                                                                        \
            memcpy(target, source, (size_t)n * sizeof(type));                                                                              \
            return;                                                                                                                        \
        }                                                                                                                                  \
        MOVE(type);                                                                                                                        \
    }

typedef struct {
    npy_uint64 low, high;
} Wide;

MOVER(move1, npy_uint8)
MOVER(move2, npy_uint16)
MOVER(move4, npy_uint32)
MOVER(move8, npy_uint64)
MOVER(move16, Wide)

/* The loop from one dtype to another; NULL where numpy has to do it. */
static CastLoop loop_of(PyArray_Descr *from, PyArray_Descr *to)
{
    if (from == to && !PyDataType_REFCHK(from)) {
        switch (PyDataType_ELSIZE(from)) {
        case 1:
            return from->type_num == NPY_BOOL ? tables[BOOL][BOOL] : move1;
        case 2:
            return move2;
        case 4:
            return move4;
        case 8:
            return move8;
        case 16:
            return move16;
        default:
            return NULL;
        }
    }
    int a = kind_of(from), b = kind_of(to);
    return a < 0 || b < 0 ? NULL : tables[a][b];
}

typedef struct {
    npy_intp size, from, to;
} Axis;

static void copy_axes(CastLoop loop, const Axis *axes, int count, const char *source, char *target)
{
    if (count == 1) {
        loop(source, axes->from, target, axes->to, axes->size);
        return;
    }
    for (npy_intp i = 0; i < axes->size; i++) {
        copy_axes(loop, axes + 1, count - 1, source + i * axes->from, target + i * axes->to);
    }
}

#define TILE 16

/* Two axes that are quick in the source and in the target: in tiles, so that the lines of the cache serve for all of their elements. */
static void copy_tiles(CastLoop loop, const Axis *axes, const char *source, char *target)
{
    for (npy_intp i = 0; i < axes[0].size; i += TILE) {
        npy_intp rows = axes[0].size - i < TILE ? axes[0].size - i : TILE;
        for (npy_intp j = 0; j < axes[1].size; j += TILE) {
            npy_intp columns = axes[1].size - j < TILE ? axes[1].size - j : TILE;
            for (npy_intp r = i; r < i + rows; r++) {
                loop(source + r * axes[0].from + j * axes[1].from, axes[1].from, target + r * axes[0].to + j * axes[1].to, axes[1].to, columns);
            }
        }
    }
}

/* target[...] = source, which has strides for each of its dimensions (0 where it is broadcast). */
static void copy_strided(CastLoop loop, PyArrayObject *target, const char *source, const npy_intp *from)
{
    Axis axes[MAX_DIMS];
    int count = 0;
    npy_intp n = PyArray_SIZE(target);
    if (n == 0) {
        return;
    }
    for (int d = 0; d < PyArray_NDIM(target); d++) {
        if (PyArray_DIM(target, d) == 1) {
            continue;
        }
        Axis axis = {PyArray_DIM(target, d), from[d], PyArray_STRIDE(target, d)};
        int at = count++;
        for (; at > 0 && labs(axes[at - 1].to) < labs(axis.to); at--) { /* the target's quickest axis goes last */
            axes[at] = axes[at - 1];
        }
        axes[at] = axis;
    }
    int merged = 0;
    for (int d = 1; d < count; d++) { /* axes that are one in both */
        Axis *before = &axes[merged];
        if (before->from == axes[d].from * axes[d].size && before->to == axes[d].to * axes[d].size) {
            *before = (Axis){before->size * axes[d].size, axes[d].from, axes[d].to};
        }
        else {
            axes[++merged] = axes[d];
        }
    }
    count = count ? merged + 1 : 0;
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (count == 0) {
        loop(source, 0, PyArray_DATA(target), 0, 1);
    }
    else if (count == 2 && labs(axes[0].from) < labs(axes[1].from) && axes[0].from && n > TILE * TILE) {
        copy_tiles(loop, axes, source, PyArray_DATA(target));
    }
    else {
        copy_axes(loop, axes, count, source, PyArray_DATA(target));
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

/* A dense copy in the order of memory of `x`. */
static PyObject *copied(PyArrayObject *x, PyArray_Descr *descr)
{
    CastLoop loop = descr == NULL || PyArray_NDIM(x) > MAX_DIMS || !PyArray_ISALIGNED(x) ? NULL : loop_of(PyArray_DESCR(x), descr);
    if (loop == NULL) {
        return NULL;
    }
    if (PyArray_IS_C_CONTIGUOUS(x)) {
        PyObject *out = new_array(PyArray_NDIM(x), PyArray_DIMS(x), descr);
        npy_intp n = PyArray_SIZE(x);
        if (out != NULL) {
            PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
            loop(PyArray_DATA(x), PyArray_ITEMSIZE(x), PyArray_DATA((PyArrayObject *)out), PyDataType_ELSIZE(descr), n);
            if (thread != NULL) {
                PyEval_RestoreThread(thread);
            }
        }
        return out;
    }
    Py_INCREF(descr);
    PyObject *out = PyArray_NewLikeArray(x, NPY_KEEPORDER, descr, 0);
    if (out != NULL) {
        copy_strided(loop, (PyArrayObject *)out, PyArray_DATA(x), PyArray_STRIDES(x));
    }
    return out;
}

/* self, dtype, layout, device, pin_memory, non_blocking, memory_format */
static PyObject *to_copy_kernel(PyObject *const *args)
{
    PyArrayObject *x = (PyArrayObject *)args[0];
    return !is_array(args[0]) ? NULL : copied(x, args[1] == Py_None ? PyArray_DESCR(x) : descr_of(args[1]));
}

/* self, memory_format */
static PyObject *clone_kernel(PyObject *const *args)
{
    return !is_array(args[0]) ? NULL : copied((PyArrayObject *)args[0], PyArray_DESCR((PyArrayObject *)args[0]));
}

/* Whether two arrays may share memory: by the bounds of what they reach. */
static int may_overlap(PyArrayObject *a, PyArrayObject *b)
{
    const char *low[2], *high[2];
    PyArrayObject *const arrays[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        low[i] = high[i] = PyArray_DATA(arrays[i]);
        for (int d = 0; d < PyArray_NDIM(arrays[i]); d++) {
            npy_intp reach = PyArray_STRIDE(arrays[i], d) * (PyArray_DIM(arrays[i], d) - 1);
            *(reach < 0 ? &low[i] : &high[i]) += reach;
        }
        high[i] += PyArray_ITEMSIZE(arrays[i]);
    }
    return low[0] < high[1] && low[1] < high[0];
}

/* self, src, non_blocking */
static PyObject *copy_kernel(PyObject *const *args)
{
    PyArrayObject *target = (PyArrayObject *)args[0], *source = (PyArrayObject *)args[1];
    if (!is_array(args[0]) || !is_array(args[1]) || !PyArray_ISBEHAVED(target) || !PyArray_ISALIGNED(source)) {
        return NULL;
    }
    int ndim = PyArray_NDIM(target), lead = ndim - PyArray_NDIM(source);
    CastLoop loop = ndim > MAX_DIMS || lead < 0 ? NULL : loop_of(PyArray_DESCR(source), PyArray_DESCR(target));
    if (loop == NULL || (PyArray_SIZE(target) && PyArray_SIZE(source) && may_overlap(target, source))) {
        return NULL;
    }
    npy_intp from[MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        npy_intp size = d < lead ? 1 : PyArray_DIM(source, d - lead);
        if (size != 1 && size != PyArray_DIM(target, d)) {
            return NULL;
        }
        from[d] = size == 1 ? 0 : PyArray_STRIDE(source, d - lead);
    }
    copy_strided(loop, target, PyArray_DATA(source), from);
    return Py_NewRef(args[0]);
}

const KernelEntry conversion_kernels[] = {
    {"conversion.to_copy", to_copy_kernel},
    {"conversion.copy_", copy_kernel},
    {"view.clone", clone_kernel},
    {NULL, NULL},
};
