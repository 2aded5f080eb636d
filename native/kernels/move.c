/* Copies between arrays of any strides, of the same dtype or of different ones. */
#include "move.h"
#include "making.h"

#define TILE 16    /* elements of each side of a transposition's tiles: their lines stay in the first cache */

/* Elements may lie at any address. */
typedef npy_uint8 Item1;
typedef npy_uint16 __attribute__((aligned(1), may_alias)) Item2;
typedef npy_uint32 __attribute__((aligned(1), may_alias)) Item4;
typedef npy_uint64 __attribute__((aligned(1), may_alias)) Item8;
typedef struct {
    Item8 first, second;
} Item16;

/* Up to SHORT bytes, which a call would take longer for than the copy; what 8 bytes leave over by the last 8, which overlap. */
#define SHORT 64
static inline void copy_few(char *to, const char *from, npy_intp bytes)
{
    if (bytes >= 8) {
        for (npy_intp i = 0; i + 8 <= bytes; i += 8) {
            memcpy(to + i, from + i, 8);
        }
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    }
    else if (bytes >= 4) {
        npy_uint32 first, last;
        memcpy(&first, from, 4);
        memcpy(&last, from + bytes - 4, 4);
        memcpy(to, &first, 4);
        memcpy(to + bytes - 4, &last, 4);
    }
    else {
        for (npy_intp i = 0; i < bytes; i++) {
            to[i] = from[i];
        }
    }
}

#if HAS_WIDE
#define REVERSED(name, T)                                                                                                                  \
    WIDE static void name(char *to, const char *from, npy_intp n)                                                                          \
    {                                                                                                                                      \
        T *restrict y = (T *)to;                                                                                                           \
        const T *restrict x = (const T *)from - (n - 1);                                                                                   \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            y[i] = x[n - 1 - i];                                                                                                           \
        }                                                                                                                                  \
    }

REVERSED(reversed1, Item1)
REVERSED(reversed2, Item2)
#endif

/* Small elements backwards from `from` on, where the processor has instructions for that; 0 where it has not. */
static inline int are_reversed(char *to, const char *from, npy_intp n, size_t item)
{
#if HAS_WIDE
    if (item <= 2 && S.vectors > 0) {
        (item == 1 ? reversed1 : reversed2)(to, from, n);
        return 1;
    }
#endif
    (void)to, (void)from, (void)n, (void)item;
    return 0;
}

#define ROW(name, T)                                                                                                                       \
    static void name(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)                                         \
    {                                                                                                                                      \
        if (to_step == sizeof(T)) {                                                                                                        \
            T *y = (T *)to;                                                                                                                \
            if (from_step == sizeof(T)) {                                                                                                  \
                if (n * (npy_intp)sizeof(T) > SHORT) {                                                                                     \
                    memcpy(to, from, (size_t)n * sizeof(T));                                                                               \
                }                                                                                                                          \
                else {                                                                                                                     \
                    copy_few(to, from, n * (npy_intp)sizeof(T));                                                                           \
                }                                                                                                                          \
                return;                                                                                                                    \
            }                                                                                                                              \
            if (from_step == 0) {                                                                                                          \
                T value = *(const T *)from;                                                                                                \
                for (npy_intp i = 0; i < n; i++) {                                                                                         \
                    y[i] = value;                                                                                                          \
                }                                                                                                                          \
                return;                                                                                                                    \
            }                                                                                                                              \
            if (from_step == -(npy_intp)sizeof(T)) {                                                                                       \
                if (are_reversed(to, from, n, sizeof(T))) {                                                                                \
                    return;                                                                                                                \
                }                                                                                                                          \
                const T *x = (const T *)from;                                                                                              \
                for (npy_intp i = 0; i < n; i++) {                                                                                         \
                    y[i] = x[-i];                                                                                                          \
                }                                                                                                                          \
                return;                                                                                                                    \
            }                                                                                                                              \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                y[i] = *(const T *)(from + i * from_step);                                                                                 \
            }                                                                                                                              \
            return;                                                                                                                        \
        }                                                                                                                                  \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            *(T *)(to + i * to_step) = *(const T *)(from + i * from_step);                                                                 \
        }                                                                                                                                  \
    }

ROW(copy1, Item1)
ROW(copy2, Item2)
ROW(copy4, Item4)
ROW(copy8, Item8)
ROW(copy16, Item16)

Row row_of_size(npy_intp item)
{
    switch (item) {
    case 1:
        return copy1;
    case 2:
        return copy2;
    case 4:
        return copy4;
    case 8:
        return copy8;
    case 16:
        return copy16;
    default:
        return NULL;
    }
}

/* ------------------------------------------------------------------------------------------------------------- conversions */

/* The dtypes that have conversions here, by number. */
enum { KIND_BOOL, KIND_U8, KIND_I8, KIND_I16, KIND_I32, KIND_I64, KIND_F32, KIND_F64, KIND_B16, KIND_F16, KINDS };

static int kind_of(PyArray_Descr *descr)
{
    switch (descr->type_num) {
    case NPY_BOOL:
        return KIND_BOOL;
    case NPY_UINT8:
        return KIND_U8;
    case NPY_INT8:
        return KIND_I8;
    case NPY_INT16:
        return KIND_I16;
    case NPY_INT32:
        return KIND_I32;
    case NPY_INT64:
        return KIND_I64;
    case NPY_FLOAT:
        return KIND_F32;
    case NPY_DOUBLE:
        return KIND_F64;
    case NPY_HALF:
        return KIND_F16;
    default:
        return M.bfloat16 != NULL && descr->type_num == M.bfloat16->type_num ? KIND_B16 : -1;
    }
}

#define LOOSE __attribute__((aligned(1), may_alias))
typedef npy_uint8 T_BOOL;
typedef npy_uint8 T_U8;
typedef npy_int8 T_I8;
typedef npy_int16 LOOSE T_I16;
typedef npy_int32 LOOSE T_I32;
typedef npy_int64 LOOSE T_I64;
typedef float LOOSE T_F32;
typedef double LOOSE T_F64;
typedef npy_uint16 LOOSE T_B16;

typedef union {
    float value;
    npy_uint32 bits;
} Bits;

static inline float from_b16(npy_uint16 x)
{
    Bits made = {.bits = (npy_uint32)x << 16};
    return made.value;
}

/* To the nearest, ties to even; a NaN becomes the quiet one of its sign. */
static inline npy_uint16 to_b16(float x)
{
    Bits of = {.value = x};
    npy_uint32 rounded = (of.bits + 0x7fffu + ((of.bits >> 16) & 1u)) >> 16, nan = ((of.bits >> 16) & 0x8000u) | 0x7fc0u;
    return (npy_uint16)((of.bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/* READ gives a C number of an element; WRITE an element of a number. Small integers are made of 32-bit ones, as processors do it. */
#define READ_BOOL(x) (x)
#define READ_U8(x) (x)
#define READ_I8(x) (x)
#define READ_I16(x) (x)
#define READ_I32(x) (x)
#define READ_I64(x) (x)
#define READ_F32(x) (x)
#define READ_F64(x) (x)
#define READ_B16(x) from_b16(x)

#define SMALL_BOOL(T, x) (T)(x)
#define SMALL_U8(T, x) (T)(x)
#define SMALL_I8(T, x) (T)(x)
#define SMALL_I16(T, x) (T)(x)
#define SMALL_I32(T, x) (T)(x)
#define SMALL_I64(T, x) (T)(x)
#define SMALL_F32(T, x) (T)(npy_int32)(x)
#define SMALL_F64(T, x) (T)(npy_int32)(x)
#define SMALL_B16(T, x) (T)(npy_int32)(x)

#define WRITE_BOOL(from, x) ((x) != 0)
#define WRITE_U8(from, x) SMALL_##from(npy_uint8, x)
#define WRITE_I8(from, x) SMALL_##from(npy_int8, x)
#define WRITE_I16(from, x) SMALL_##from(npy_int16, x)
#define WRITE_I32(from, x) (npy_int32)(x)
#define WRITE_I64(from, x) (npy_int64)(x)
#define WRITE_F32(from, x) (float)(x)
#define WRITE_F64(from, x) (double)(x)
#define WRITE_B16(from, x) to_b16((float)(x))

#define CONVERT(FROM, TO) CONVERT_BY(FROM, TO, FROM##_to_##TO, )
#define CONVERT_BY(FROM, TO, name, TARGET)                                                                                                 \
    TARGET static void name(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)                                  \
    {                                                                                                                                      \
        if (to_step == sizeof(T_##TO) && from_step == sizeof(T_##FROM)) {                                                                  \
            T_##TO *restrict y = (T_##TO *)to;                                                                                             \
            const T_##FROM *restrict x = (const T_##FROM *)from;                                                                           \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                y[i] = WRITE_##TO(FROM, READ_##FROM(x[i]));                                                                                \
            }                                                                                                                              \
            return;                                                                                                                        \
        }                                                                                                                                  \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            *(T_##TO *)(to + i * to_step) = WRITE_##TO(FROM, READ_##FROM(*(const T_##FROM *)(from + i * from_step)));                      \
        }                                                                                                                                  \
    }

#define CONVERT_TO_ALL(FROM)                                                                                                               \
    CONVERT(FROM, BOOL)                                                                                                                    \
    CONVERT(FROM, U8)                                                                                                                      \
    CONVERT(FROM, I8)                                                                                                                      \
    CONVERT(FROM, I16)                                                                                                                     \
    CONVERT(FROM, I32)                                                                                                                     \
    CONVERT(FROM, I64)                                                                                                                     \
    CONVERT(FROM, F32)                                                                                                                     \
    CONVERT(FROM, F64)                                                                                                                     \
    CONVERT(FROM, B16)

CONVERT_TO_ALL(BOOL)
CONVERT_TO_ALL(U8)
CONVERT_TO_ALL(I8)
CONVERT_TO_ALL(I16)
CONVERT_TO_ALL(I32)
CONVERT_TO_ALL(I64)
CONVERT_TO_ALL(F32)
CONVERT_TO_ALL(F64)
CONVERT_TO_ALL(B16)

#define ALL_OF(FROM)                                                                                                                       \
    {                                                                                                                                      \
        FROM##_to_BOOL, FROM##_to_U8, FROM##_to_I8, FROM##_to_I16, FROM##_to_I32, FROM##_to_I64, FROM##_to_F32, FROM##_to_F64, FROM##_to_B16  \
    }

static const Row conversions[KIND_F16][KIND_F16] = {
    ALL_OF(BOOL), ALL_OF(U8), ALL_OF(I8), ALL_OF(I16), ALL_OF(I32), ALL_OF(I64), ALL_OF(F32), ALL_OF(F64), ALL_OF(B16),
};

#if HAS_WIDE
/* Integers into narrower ones and truths, which plain processors have no instructions for. */
#define NARROW(FROM)                                                                                                                       \
    CONVERT_BY(FROM, BOOL, wide_##FROM##_to_BOOL, WIDE)                                                                                    \
    CONVERT_BY(FROM, U8, wide_##FROM##_to_U8, WIDE)                                                                                        \
    CONVERT_BY(FROM, I8, wide_##FROM##_to_I8, WIDE)                                                                                        \
    CONVERT_BY(FROM, I16, wide_##FROM##_to_I16, WIDE)                                                                                      \
    static const Row narrow_##FROM[] = {                                                                                                   \
        [KIND_BOOL] = wide_##FROM##_to_BOOL, [KIND_U8] = wide_##FROM##_to_U8, [KIND_I8] = wide_##FROM##_to_I8, [KIND_I16] = wide_##FROM##_to_I16};

NARROW(I32)
NARROW(I64)

#include "half_rows.h"
#include "truth_rows.h"
#endif

Row row_between(PyArray_Descr *from, PyArray_Descr *to)
{
    if (from == to || (from->type_num == to->type_num && from->type_num < NPY_OBJECT)) {
        return row_of_size(PyDataType_ELSIZE(from));
    }
    int source = kind_of(from), target = kind_of(to);
    if (source < 0 || target < 0) {
        return NULL;
    }
#if HAS_WIDE
    if (S.vectors > 1 && target == KIND_BOOL && (source == KIND_F32 || source == KIND_F64)) {
        return source == KIND_F32 ? widest_f32_to_bool : widest_f64_to_bool;
    }
    if (S.vectors > 0 && source == KIND_B16 && target == KIND_F32) {
        return S.vectors > 1 ? widest_b16_to_f32 : wide_b16_to_f32;
    }
    if (S.vectors > 0 && target == KIND_B16 && source < KIND_F16) {
        return source == KIND_F32 && S.vectors > 1 ? widest_f32_to_b16 : into_b16[source];
    }
    if (S.vectors > 0 && target <= KIND_I16 && (source == KIND_I32 || source == KIND_I64)) {
        return source == KIND_I32 ? narrow_I32[target] : narrow_I64[target];
    }
    if (source == KIND_F16 || target == KIND_F16) {
        if (S.vectors > 1 && (source == KIND_F32 || target == KIND_F32)) {
            return source == KIND_F32 ? widest_f32_to_f16 : widest_f16_to_f32;
        }
        return S.vectors == 0 ? NULL : source == KIND_F16 ? from_f16[target] : into_f16[source];
    }
#endif
    return source == KIND_F16 || target == KIND_F16 ? NULL : conversions[source][target];
}

/* -------------------------------------------------------------------------------------------------------------------- walk */

typedef struct {
    npy_intp size, to, from;
} Step;

/* The dimensions of more than one element, those in which the target steps farthest first, with neighbours that follow each other put together. */
static int steps_of(int ndim, const npy_intp *dims, const npy_intp *to, const npy_intp *from, Step *steps)
{
    int count = 0;
    for (int d = 0; d < ndim; d++) {
        if (dims[d] == 1) {
            continue;
        }
        Step step = {dims[d], to[d], from[d]};
        int place = count++;
        for (; place > 0 && magnitude_of(steps[place - 1].to) < magnitude_of(step.to); place--) {
            steps[place] = steps[place - 1];
        }
        steps[place] = step;
    }
    int last = 0;
    for (int d = 1; d < count; d++) {
        if (steps[last].to == steps[d].to * steps[d].size && steps[last].from == steps[d].from * steps[d].size) {
            steps[d].size *= steps[last].size;
            steps[last] = steps[d];
        }
        else {
            steps[++last] = steps[d];
        }
    }
    return count ? last + 1 : 0;
}

/* The last two dimensions. Where the source runs along the first of them it is read in tiles, whose lines are read once. */
static void plane(char *to, const char *from, const Step *outer, const Step *inner, int tiled, Row row)
{
    if (!tiled) {
        for (npy_intp j = 0; j < outer->size; j++, to += outer->to, from += outer->from) {
            row(to, inner->to, from, inner->from, inner->size);
        }
        return;
    }
    for (npy_intp j = 0; j < outer->size; j += TILE) {
        npy_intp high = outer->size - j < TILE ? outer->size - j : TILE;
        for (npy_intp i = 0; i < inner->size; i += TILE) {
            npy_intp wide = inner->size - i < TILE ? inner->size - i : TILE;
            char *y = to + j * outer->to + i * inner->to;
            const char *x = from + j * outer->from + i * inner->from;
            for (npy_intp k = 0; k < high; k++, y += outer->to, x += outer->from) {
                row(y, inner->to, x, inner->from, wide);
            }
        }
    }
}

void move(int ndim, const npy_intp *dims, char *to, const npy_intp *to_strides, const char *from, const npy_intp *from_strides, Row row)
{
    Step steps[2 * MAX_DIMS];
    int count = steps_of(ndim, dims, to_strides, from_strides, steps);
    if (count < 2) {
        Step one = {1, 0, 0};
        if (count) {
            one = steps[0];
        }
        row(to, one.to, from, one.from, one.size);
        return;
    }
    /* The dimension along which the source runs comes last but one, unless it is the last. */
    int along = count - 1;
    for (int d = count - 2; d >= 0; d--) {
        if (steps[d].from != 0 && magnitude_of(steps[d].from) < magnitude_of(steps[along].from) && steps[d].size > 3) {
            along = d;
        }
    }
    int tiled = along < count - 1 && steps[count - 1].size >= TILE / 2;
    if (tiled) {
        Step step = steps[along];
        for (int d = along; d < count - 2; d++) {
            steps[d] = steps[d + 1];
        }
        steps[count - 2] = step;
    }
    npy_intp at[2 * MAX_DIMS] = {0};
    for (;;) {
        plane(to, from, &steps[count - 2], &steps[count - 1], tiled, row);
        int d = count - 3;
        for (; d >= 0; d--) {
            to += steps[d].to;
            from += steps[d].from;
            if (++at[d] < steps[d].size) {
                break;
            }
            at[d] = 0;
            to -= steps[d].to * steps[d].size;
            from -= steps[d].from * steps[d].size;
        }
        if (d < 0) {
            return;
        }
    }
}

typedef struct {
    int ndim, at; /* the dimension whose parts are moved */
    const npy_intp *dims, *to_strides, *from_strides;
    char *to;
    const char *from;
    Row row;
} Moving;

static void move_part(void *work, npy_intp begin, npy_intp end)
{
    const Moving *all = work;
    npy_intp dims[2 * MAX_DIMS];
    memcpy(dims, all->dims, sizeof(npy_intp) * (size_t)all->ndim);
    dims[all->at] = end - begin;
    move(all->ndim, dims, all->to + begin * all->to_strides[all->at], all->to_strides, all->from + begin * all->from_strides[all->at],
         all->from_strides, all->row);
}

/* The dimension in which the target steps farthest, if it has enough places for all threads, else the longest. */
static int widest_step(int ndim, const npy_intp *dims, const npy_intp *to_strides)
{
    int far = 0, longest = 0;
    for (int d = 0; d < ndim; d++) {
        if (dims[d] > 1 && (dims[far] == 1 || magnitude_of(to_strides[d]) > magnitude_of(to_strides[far]))) {
            far = d;
        }
        longest = dims[d] > dims[longest] ? d : longest;
    }
    return dims[far] >= 4 * part_threads ? far : longest;
}

#define MOVED_ELEMENTS 131072 /* that are worth two threads */

void move_freely(int ndim, const npy_intp *dims, char *to, const npy_intp *to_strides, const char *from, const npy_intp *from_strides, Row row)
{
    npy_intp n = PyArray_MultiplyList(dims, ndim);
    if (n == 0) {
        return;
    }
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (part_threads < 2 || n < MOVED_ELEMENTS || ndim == 0) {
        move(ndim, dims, to, to_strides, from, from_strides, row);
    }
    else {
        Moving all = {ndim, widest_step(ndim, dims, to_strides), dims, to_strides, from_strides, to, from, row};
        in_parts(move_part, &all, dims[all.at], grain_of(n / dims[all.at]));
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

/* ----------------------------------------------------------------------------------------------------------------- arrays */

int broadcast_strides(PyArrayObject *array, int ndim, const npy_intp *dims, npy_intp *strides)
{
    int missing = ndim - PyArray_NDIM(array);
    if (missing < 0) {
        return 0;
    }
    for (int d = 0; d < ndim; d++) {
        npy_intp n = d < missing ? 1 : PyArray_DIM(array, d - missing);
        if (n != dims[d] && n != 1) {
            return 0;
        }
        strides[d] = n == 1 ? 0 : PyArray_STRIDE(array, d - missing);
    }
    return 1;
}

static void stretch(PyArrayObject *array, const char **low, const char **high)
{
    *low = *high = PyArray_BYTES(array);
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        npy_intp reach = (PyArray_DIM(array, d) - 1) * PyArray_STRIDE(array, d);
        *(reach < 0 ? low : high) += reach;
    }
    *high += PyArray_ITEMSIZE(array);
}

int may_overlap(PyArrayObject *a, PyArrayObject *b)
{
    const char *low_a, *high_a, *low_b, *high_b;
    if (size_of(a) == 0 || size_of(b) == 0) {
        return 0;
    }
    stretch(a, &low_a, &high_a);
    stretch(b, &low_b, &high_b);
    return low_a < high_b && low_b < high_a;
}

typedef struct {
    char *to;
    const char *from;
    npy_intp to_item, from_item;
    Row row;
} RowMoving;

static void move_row_part(void *work, npy_intp begin, npy_intp end)
{
    const RowMoving *all = work;
    all->row(all->to + begin * all->to_item, all->to_item, all->from + begin * all->from_item, all->from_item, end - begin);
}

void move_row(PyArrayObject *target, PyArrayObject *source, Row row)
{
    npy_intp n = PyArray_SIZE(target);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    RowMoving all = {PyArray_BYTES(target), PyArray_BYTES(source), PyArray_ITEMSIZE(target), PyArray_ITEMSIZE(source), row};
    in_parts(move_row_part, &all, n, PART_ELEMENTS);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

int move_into(PyArrayObject *target, PyArrayObject *source)
{
    npy_intp strides[MAX_DIMS];
    if (!is_movable(target) || !is_movable(source) || !(PyArray_FLAGS(target) & NPY_ARRAY_WRITEABLE)) {
        return 0;
    }
    Row row = row_between(PyArray_DESCR(source), PyArray_DESCR(target));
    if (row != NULL && is_contiguous(target) && is_contiguous(source) && PyArray_SAMESHAPE(target, source) && !may_overlap(target, source)) {
        move_row(target, source, row);
        return 1;
    }
    if (row == NULL || !broadcast_strides(source, PyArray_NDIM(target), PyArray_DIMS(target), strides) || may_overlap(target, source)) {
        return 0;
    }
    move_freely(PyArray_NDIM(target), PyArray_DIMS(target), PyArray_BYTES(target), PyArray_STRIDES(target), PyArray_BYTES(source), strides, row);
    return 1;
}

int element_of(PyObject *number, PyArray_Descr *descr, char *element)
{
    int kind = kind_of(descr);
    if (is_array(number)) {
        PyArrayObject *array = (PyArrayObject *)number;
        Row row = PyArray_NDIM(array) || !is_movable(array) ? NULL : row_between(PyArray_DESCR(array), descr);
        if (row != NULL) {
            row(element, 0, PyArray_BYTES(array), 0, 1);
        }
        return row != NULL;
    }
    if (PyFloat_CheckExact(number)) {
        double x = PyFloat_AS_DOUBLE(number);
        if (kind == KIND_F64 || kind == KIND_F32 || kind == KIND_B16) {
            conversions[KIND_F64][kind](element, 0, (const char *)&x, 0, 1);
            return 1;
        }
        if (kind == KIND_BOOL) {
            *element = x != 0;
            return 1;
        }
        if (kind < 0 || kind == KIND_F16 || !(x > -1e9 && x < 1e9) || x != (double)(npy_int32)x) {
            return 0;
        }
        npy_int64 whole = (npy_int64)x, back;
        conversions[KIND_I64][kind](element, 0, (const char *)&whole, 0, 1);
        conversions[kind][KIND_I64]((char *)&back, 0, element, 0, 1);
        return back == whole;
    }
    if (PyBool_Check(number) || PyLong_CheckExact(number)) {
        int overflow;
        npy_int64 x = PyLong_AsLongLongAndOverflow(number, &overflow);
        /* What float32 does not hold is rounded twice on the way to it, which numpy does its own way. */
        if (overflow || kind < 0 || kind == KIND_F16 || ((kind == KIND_F32 || kind == KIND_B16) && magnitude_of(x) > 1 << 24)) {
            return 0;
        }
        conversions[KIND_I64][kind](element, 0, (const char *)&x, 0, 1);
        return 1;
    }
    return 0;
}
