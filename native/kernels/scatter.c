/* Elements along a dimension: gather and scatter. */
#include "places.h"

typedef npy_uint16 __attribute__((aligned(1), may_alias)) Item2;
typedef npy_uint32 __attribute__((aligned(1), may_alias)) Item4;
typedef npy_uint64 __attribute__((aligned(1), may_alias)) Item8;
typedef npy_int16 __attribute__((aligned(1), may_alias)) Int2;
typedef npy_int32 __attribute__((aligned(1), may_alias)) Int4;
typedef npy_int64 __attribute__((aligned(1), may_alias)) Int8;
typedef float __attribute__((aligned(1), may_alias)) Float4;
typedef double __attribute__((aligned(1), may_alias)) Float8;
typedef struct {
    Item8 first, second;
} Item16;

/* What goes over one row of the index: element i of it says how many times `scale` bytes lie before its place, which moves by `step`. */
typedef struct {
    const char *index;
    npy_intp index_step, scale, step, other_step, n, size;
    int width;
} Line;

/* Along the last dimension, everything one behind the other. */
static inline int is_usual(const Line *line, npy_intp item)
{
    return line->width == 8 && line->index_step == 8 && line->step == 0 && line->other_step == item;
}

/* One position for a whole row, as of an index that is expanded. */
static inline int is_one_row(const Line *line, npy_intp item)
{
    return line->index_step == 0 && line->step == item && line->other_step == item;
}

/* y[i] = x at its place; 0 when one is out of range. */
#define GATHER(name, T)                                                                                                                    \
    static int name(const Line *line, char *x, char *y)                                                                                    \
    {                                                                                                                                      \
        if (is_usual(line, sizeof(T))) {                                                                                                   \
            const Index8 *index = (const Index8 *)line->index;                                                                             \
            npy_intp scale = line->scale, n = line->n, size = line->size;                                                                  \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                npy_int64 position = index[i];                                                                                             \
                if ((npy_uint64)position >= (npy_uint64)size) {                                                                            \
                    return 0;                                                                                                              \
                }                                                                                                                          \
                ((T *)y)[i] = *(const T *)(x + position * scale);                                                                          \
            }                                                                                                                              \
            return 1;                                                                                                                      \
        }                                                                                                                                  \
        if (is_one_row(line, sizeof(T))) {                                                                                                 \
            npy_int64 position = index_at(line->index, line->width);                                                                       \
            if ((npy_uint64)position >= (npy_uint64)line->size) {                                                                          \
                return 0;                                                                                                                  \
            }                                                                                                                              \
            memcpy(y, x + position * line->scale, (size_t)line->n * sizeof(T));                                                            \
            return 1;                                                                                                                      \
        }                                                                                                                                  \
        for (npy_intp i = 0; i < line->n; i++) {                                                                                           \
            npy_int64 position = index_at(line->index + i * line->index_step, line->width);                                                \
            if ((npy_uint64)position >= (npy_uint64)line->size) {                                                                          \
                return 0;                                                                                                                  \
            }                                                                                                                              \
            *(T *)(y + i * line->other_step) = *(const T *)(x + position * line->scale + i * line->step);                                  \
        }                                                                                                                                  \
        return 1;                                                                                                                          \
    }

/* What happens to x at its place and y[i]; the index has been looked at. */
#define SCATTER(name, T, statement)                                                                                                        \
    static int name(const Line *line, char *x, char *y)                                                                                    \
    {                                                                                                                                      \
        if (is_usual(line, sizeof(T))) {                                                                                                   \
            const Index8 *index = (const Index8 *)line->index;                                                                             \
            npy_intp scale = line->scale, n = line->n;                                                                                     \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                T *to = (T *)(x + index[i] * scale);                                                                                       \
                const T from = ((const T *)y)[i];                                                                                          \
                statement;                                                                                                                 \
            }                                                                                                                              \
            return 1;                                                                                                                      \
        }                                                                                                                                  \
        if (is_one_row(line, sizeof(T))) {                                                                                                 \
            T *row = (T *)(x + index_at(line->index, line->width) * line->scale);                                                          \
            for (npy_intp i = 0; i < line->n; i++) {                                                                                       \
                T *to = row + i;                                                                                                           \
                const T from = ((const T *)y)[i];                                                                                          \
                statement;                                                                                                                 \
            }                                                                                                                              \
            return 1;                                                                                                                      \
        }                                                                                                                                  \
        for (npy_intp i = 0; i < line->n; i++) {                                                                                           \
            npy_int64 position = index_at(line->index + i * line->index_step, line->width);                                                \
            T *to = (T *)(x + position * line->scale + i * line->step);                                                                    \
            const T from = *(const T *)(y + i * line->other_step);                                                                         \
            statement;                                                                                                                     \
        }                                                                                                                                  \
        return 1;                                                                                                                          \
    }

GATHER(gather1, npy_uint8)
GATHER(gather2, Item2)
GATHER(gather4, Item4)
GATHER(gather8, Item8)
GATHER(gather16, Item16)

SCATTER(set1, npy_uint8, *to = from)
SCATTER(set2, Item2, *to = from)
SCATTER(set4, Item4, *to = from)
SCATTER(set8, Item8, *to = from)
SCATTER(set16, Item16, *to = from)

/* A NaN on either side stays, as in numpy's extrema. */
#define REDUCTIONS(name, T)                                                                                                                \
    SCATTER(name##_add, T, *to += from)                                                                                                    \
    SCATTER(name##_multiply, T, *to *= from)                                                                                               \
    SCATTER(name##_largest, T, *to = *to >= from || *to != *to ? *to : from)                                                               \
    SCATTER(name##_smallest, T, *to = *to <= from || *to != *to ? *to : from)

REDUCTIONS(float, Float4)
REDUCTIONS(double, Float8)
REDUCTIONS(int32, Int4)
REDUCTIONS(int64, Int8)
REDUCTIONS(int16, Int2)
REDUCTIONS(int8, npy_int8)
REDUCTIONS(uint8, npy_uint8)
/* Sums of truths are whether one holds, products whether all do. */
#define bool_add uint8_largest
#define bool_multiply uint8_smallest
#define bool_largest uint8_largest
#define bool_smallest uint8_smallest

typedef int (*Over)(const Line *line, char *x, char *y);

static Over by_size(npy_intp item, int writes)
{
    switch (item) {
    case 1:
        return writes ? set1 : gather1;
    case 2:
        return writes ? set2 : gather2;
    case 4:
        return writes ? set4 : gather4;
    case 8:
        return writes ? set8 : gather8;
    case 16:
        return writes ? set16 : gather16;
    default:
        return NULL;
    }
}

/* Runs over all rows of an index along `dim` of x; y has strides for the dimensions of the index. 0 when a position is out of range. */
static int over_all(Over over, PyArrayObject *x, int dim, PyArrayObject *index, char *y, const npy_intp *y_strides)
{
    int ndim = PyArray_NDIM(index), last = ndim - 1;
    npy_intp at[MAX_DIMS] = {0}, n = size_of(index), steps[MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        steps[d] = d == dim ? 0 : PyArray_STRIDE(x, d);
    }
    Line line = {PyArray_BYTES(index), PyArray_STRIDE(index, last), PyArray_STRIDE(x, dim), steps[last],
                 y_strides[last],      PyArray_DIM(index, last),    PyArray_DIM(x, dim),    index_width(index)};
    char *from = PyArray_BYTES(x);
    for (npy_intp row = 0; row < n / line.n; row++) {
        if (!over(&line, from, y)) {
            return 0;
        }
        for (int d = last - 1; d >= 0; d--) {
            line.index += PyArray_STRIDE(index, d);
            from += steps[d];
            y += y_strides[d];
            if (++at[d] < PyArray_DIM(index, d)) {
                break;
            }
            at[d] = 0;
            line.index -= PyArray_STRIDE(index, d) * PyArray_DIM(index, d);
            from -= steps[d] * PyArray_DIM(index, d);
            y -= y_strides[d] * PyArray_DIM(index, d);
        }
    }
    return 1;
}

/* Arguments self, dim, index: whether they are what the loops take, and the dimension. */
static int along_dim(PyObject *const *args, PyArrayObject **self, PyArrayObject **index)
{
    *self = movable(args[0]);
    *index = movable(args[2]);
    if (*self == NULL || *index == NULL || !index_width(*index)) {
        return -1;
    }
    int ndim = PyArray_NDIM(*self), dim = ndim && PyArray_NDIM(*index) == ndim ? as_dim(args[1], ndim) : -1;
    for (int d = 0; d < ndim && dim >= 0; d++) {
        if (d != dim && PyArray_DIM(*index, d) > PyArray_DIM(*self, d)) {
            return -1;
        }
    }
    return dim;
}

/* self, dim, index, sparse_grad. */
static PyObject *gather_kernel(PyObject *const *args)
{
    PyArrayObject *self, *index;
    int dim = along_dim(args, &self, &index);
    Over over = dim < 0 ? NULL : by_size(PyArray_ITEMSIZE(self), 0);
    if (over == NULL) {
        return NULL;
    }
    PyArrayObject *out = (PyArrayObject *)new_array(PyArray_NDIM(index), PyArray_DIMS(index), PyArray_DESCR(self));
    npy_intp n = out == NULL ? 0 : size_of(out);
    if (n == 0) {
        return (PyObject *)out;
    }
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    int good = over_all(over, self, dim, index, PyArray_BYTES(out), PyArray_STRIDES(out));
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (!good) {
        Py_CLEAR(out);
    }
    return (PyObject *)out;
}

static int look(const Line *line, char *x, char *y)
{
    (void)x;
    (void)y;
    int bad = 0;
    if (line->index_step == 0) {
        return (npy_uint64)index_at(line->index, line->width) < (npy_uint64)line->size;
    }
    if (line->width == 8 && line->index_step == 8) {
        const Index8 *position = (const Index8 *)line->index;
        for (npy_intp i = 0; i < line->n; i++) {
            bad |= (npy_uint64)position[i] >= (npy_uint64)line->size;
        }
        return !bad;
    }
    for (npy_intp i = 0; i < line->n; i++) {
        bad |= (npy_uint64)index_at(line->index + i * line->index_step, line->width) >= (npy_uint64)line->size;
    }
    return !bad;
}

/* Writes from `source` (strides for the index's dimensions) where the index says; nothing when a position is out of range. */
static PyObject *scattered(PyObject *const *args, Over over, char *source, const npy_intp *strides)
{
    PyArrayObject *self, *index;
    int dim = along_dim(args, &self, &index);
    if (dim < 0 || over == NULL || !(PyArray_FLAGS(self) & NPY_ARRAY_WRITEABLE)) {
        return NULL;
    }
    npy_intp n = size_of(index);
    if (n == 0) {
        return Py_NewRef(args[0]);
    }
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    int good = over_all(look, self, dim, index, source, strides) && over_all(over, self, dim, index, source, strides);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return good ? Py_NewRef(args[0]) : NULL;
}

/* The same from an array that is at least as large as the index in every dimension. */
static PyObject *scattered_array(PyObject *const *args, Over over)
{
    PyArrayObject *self = movable(args[0]), *index = movable(args[2]), *source = movable(args[3]);
    if (self == NULL || index == NULL || source == NULL || over == NULL || !same_kind(self, source) ||
        PyArray_NDIM(source) != PyArray_NDIM(index) || may_overlap(self, source) || may_overlap(self, index)) {
        return NULL;
    }
    for (int d = 0; d < PyArray_NDIM(index); d++) {
        if (PyArray_DIM(index, d) > PyArray_DIM(source, d)) {
            return NULL;
        }
    }
    return scattered(args, over, PyArray_BYTES(source), PyArray_STRIDES(source));
}

/* self, dim, index, src. */
static PyObject *scatter_src_kernel(PyObject *const *args)
{
    return is_array(args[0]) ? scattered_array(args, by_size(PyArray_ITEMSIZE((PyArrayObject *)args[0]), 1)) : NULL;
}

/* self, dim, index, value. */
static PyObject *scatter_value_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]), *index = movable(args[2]);
    npy_intp nowhere[MAX_DIMS] = {0};
    char element[16];
    if (self == NULL || index == NULL || may_overlap(self, index) || !element_of(args[3], PyArray_DESCR(self), element)) {
        return NULL;
    }
    return scattered(args, by_size(PyArray_ITEMSIZE(self), 1), element, nowhere);
}

#define CHOOSE_FOR(operation)                                                                                                              \
    (type == NPY_FLOAT    ? float_##operation                                                                                              \
     : type == NPY_DOUBLE ? double_##operation                                                                                             \
     : type == NPY_INT64  ? int64_##operation                                                                                              \
     : type == NPY_INT32  ? int32_##operation                                                                                              \
     : type == NPY_INT16  ? int16_##operation                                                                                              \
     : type == NPY_INT8   ? int8_##operation                                                                                               \
     : type == NPY_UINT8  ? uint8_##operation                                                                                              \
     : type == NPY_BOOL   ? bool_##operation                                                                                               \
                          : NULL)

/* The reduction of a name, for an array's dtype. */
static Over reduction_of(PyObject *array, PyObject *name)
{
    if (!is_array(array) || !PyUnicode_Check(name)) {
        return NULL;
    }
    int type = PyArray_TYPE((PyArrayObject *)array);
    if (PyUnicode_CompareWithASCIIString(name, "sum") == 0 || PyUnicode_CompareWithASCIIString(name, "add") == 0) {
        return CHOOSE_FOR(add);
    }
    if (PyUnicode_CompareWithASCIIString(name, "prod") == 0 || PyUnicode_CompareWithASCIIString(name, "multiply") == 0) {
        return CHOOSE_FOR(multiply);
    }
    if (PyUnicode_CompareWithASCIIString(name, "amax") == 0) {
        return CHOOSE_FOR(largest);
    }
    return PyUnicode_CompareWithASCIIString(name, "amin") == 0 ? CHOOSE_FOR(smallest) : NULL;
}

/* self, dim, index, src. */
static PyObject *scatter_add_kernel(PyObject *const *args)
{
    if (!is_array(args[0])) {
        return NULL;
    }
    int type = PyArray_TYPE((PyArrayObject *)args[0]);
    return scattered_array(args, CHOOSE_FOR(add));
}

/* self, dim, index, src, reduce. */
static PyObject *scatter_reduce_kernel(PyObject *const *args)
{
    return scattered_array(args, reduction_of(args[0], args[4]));
}

/* self, dim, index, src, reduce, include_self. */
static PyObject *scatter_reduce_two_kernel(PyObject *const *args)
{
    return args[5] == Py_True ? scattered_array(args, reduction_of(args[0], args[4])) : NULL;
}

const KernelEntry scatter_kernels[] = {
    {"indexing.gather", gather_kernel},
    {"indexing.scatter_src", scatter_src_kernel},
    {"indexing.scatter_value", scatter_value_kernel},
    {"indexing.scatter_add_", scatter_add_kernel},
    {"indexing.scatter_reduce", scatter_reduce_kernel},
    {"indexing.scatter_reduce_", scatter_reduce_two_kernel},
    {NULL, NULL},
};
