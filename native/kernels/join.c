/* Joining and rearranging: the kernels of `_backends/cpu/ops/shape.py`, and triangles. */
#include "move.h"
#include "making.h"

/* The arrays of a list or tuple, when all are movable and of one dtype; their number, or -1. */
static Py_ssize_t arrays_of(PyObject *list, PyObject ***items)
{
    if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list)) {
        return -1;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
    *items = PySequence_Fast_ITEMS(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyArrayObject *array = movable((*items)[i]);
        if (array == NULL || !same_kind(array, (PyArrayObject *)(*items)[0])) {
            return -1;
        }
    }
    return count;
}

/* Whether cat leaves an array out: one dimension without elements. */
static int is_left_out(PyObject *item)
{
    return PyArray_NDIM((PyArrayObject *)item) == 1 && PyArray_DIM((PyArrayObject *)item, 0) == 0;
}

static void put_one(PyArrayObject *array, char *to, const npy_intp *strides, Row row)
{
    move(PyArray_NDIM(array), PyArray_DIMS(array), to, strides, PyArray_BYTES(array), PyArray_STRIDES(array), row);
}

#define MOST_JOINED 64
#define SHORTEST_PIECE 16 /* bytes; shorter pieces go array by array */

/* Dense arrays side by side, place by place, so that the result is written once from its beginning to its end. */
typedef struct {
    Py_ssize_t count;
    const char *from[MOST_JOINED];
    npy_intp bytes[MOST_JOINED], total; /* of a piece of each, and of all */
    char *to;
} Pieces;

static inline void copy_piece(char *to, const char *from, npy_intp n)
{
    if (n > 64) {
        memcpy(to, from, (size_t)n);
    }
    else if (n >= 32) { /* the two halves may overlap */
        memcpy(to, from, 32);
        memcpy(to + n - 32, from + n - 32, 32);
    }
    else {
        memcpy(to, from, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    }
}

static void join_part(void *work, npy_intp begin, npy_intp end)
{
    const Pieces *all = work;
    char *to = all->to + begin * all->total;
    for (npy_intp place = begin; place < end; place++) {
        for (Py_ssize_t i = 0; i < all->count; i++) {
            copy_piece(to, all->from[i] + place * all->bytes[i], all->bytes[i]);
            to += all->bytes[i];
        }
    }
}

/* Whether dense arrays were joined behind their first dimension, place by place. */
static int join_pieces(PyObject **items, Py_ssize_t count, int dim, PyArrayObject *out)
{
    Pieces all = {.count = 0, .to = PyArray_BYTES(out)};
    npy_intp places = 1;
    for (int d = 0; d < dim; d++) {
        places *= PyArray_DIM(out, d);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyArrayObject *array = (PyArrayObject *)items[i];
        if (is_left_out(items[i]) || !PyArray_SIZE(array)) {
            continue;
        }
        const npy_intp bytes = PyArray_NBYTES(array) / places;
        if (all.count == MOST_JOINED || bytes < SHORTEST_PIECE || !is_contiguous(array)) {
            return 0;
        }
        all.from[all.count] = PyArray_BYTES(array);
        all.bytes[all.count++] = bytes;
        all.total += bytes;
    }
    in_parts(join_part, &all, places, grain_of(all.total / PyArray_ITEMSIZE(out)));
    return 1;
}

/* tensors, dim. */
static PyObject *cat_kernel(PyObject *const *args)
{
    PyObject **items;
    Py_ssize_t count = arrays_of(args[0], &items);
    PyArrayObject *first = NULL;
    npy_intp dims[MAX_DIMS];
    int dim = -1, ndim = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyArrayObject *array = (PyArrayObject *)items[i];
        if (is_left_out(items[i])) {
            continue;
        }
        if (first == NULL) {
            first = array;
            ndim = PyArray_NDIM(first);
            dim = ndim ? as_dim(args[1], ndim) : -1;
            if (dim < 0) {
                return NULL;
            }
            copy_dims(dims, PyArray_DIMS(first), ndim);
            continue;
        }
        if (PyArray_NDIM(array) != ndim) {
            return NULL;
        }
        for (int d = 0; d < ndim; d++) {
            if (d != dim && PyArray_DIM(array, d) != dims[d]) {
                return NULL;
            }
        }
        dims[dim] += PyArray_DIM(array, dim);
    }
    Row row = first == NULL ? NULL : row_of_size(PyArray_ITEMSIZE(first));
    PyArrayObject *out = row == NULL ? NULL : (PyArrayObject *)new_array(ndim, dims, PyArray_DESCR(first));
    if (out == NULL) {
        return NULL;
    }
    char *to = PyArray_BYTES(out);
    const npy_intp *strides = PyArray_STRIDES(out);
    npy_intp n = size_of(out);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    const int joined = dim > 0 && n && join_pieces(items, count, dim, out);
    for (Py_ssize_t i = 0; i < count && n && !joined; i++) {
        PyArrayObject *array = (PyArrayObject *)items[i];
        npy_intp length = is_left_out(items[i]) ? 0 : PyArray_DIM(array, dim);
        if (length) {
            put_one(array, to, strides, row);
            to += length * strides[dim];
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return (PyObject *)out;
}

/* tensors, dim. */
static PyObject *stack_kernel(PyObject *const *args)
{
    PyObject **items;
    Py_ssize_t count = arrays_of(args[0], &items);
    if (count < 1) {
        return NULL;
    }
    PyArrayObject *first = (PyArrayObject *)items[0];
    int ndim = PyArray_NDIM(first), dim = ndim < MAX_DIMS ? as_dim(args[1], ndim + 1) : -1;
    Row row = row_of_size(PyArray_ITEMSIZE(first));
    if (dim < 0 || row == NULL) {
        return NULL;
    }
    npy_intp dims[MAX_DIMS], strides[MAX_DIMS];
    for (Py_ssize_t i = 1; i < count; i++) {
        if (!PyArray_SAMESHAPE((PyArrayObject *)items[i], first)) {
            return NULL;
        }
    }
    for (int d = 0; d <= ndim; d++) {
        dims[d] = d == dim ? count : PyArray_DIM(first, d - (d > dim));
    }
    PyArrayObject *out = (PyArrayObject *)new_array(ndim + 1, dims, PyArray_DESCR(first));
    if (out == NULL) {
        return NULL;
    }
    for (int d = 0; d < ndim; d++) {
        strides[d] = PyArray_STRIDE(out, d + (d >= dim));
    }
    npy_intp n = size_of(out);
    char *to = PyArray_BYTES(out);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (Py_ssize_t i = 0; i < count && n; i++) {
        put_one((PyArrayObject *)items[i], to + i * PyArray_STRIDE(out, dim), strides, row);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return (PyObject *)out;
}

/* self, repeats. The result is seen as (repeat, size) pairs, of which the source steps along the sizes alone. */
static PyObject *repeat_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]);
    npy_intp repeats[MAX_DIMS], dims[MAX_DIMS], pairs[2 * MAX_DIMS], to[2 * MAX_DIMS], from[2 * MAX_DIMS];
    int ndim = sizes_of(args[1], repeats);
    Row row = self == NULL ? NULL : row_of_size(PyArray_ITEMSIZE(self));
    if (row == NULL || ndim < PyArray_NDIM(self)) {
        return NULL;
    }
    int missing = ndim - PyArray_NDIM(self);
    for (int d = 0; d < ndim; d++) {
        npy_intp n = d < missing ? 1 : PyArray_DIM(self, d - missing);
        pairs[2 * d] = repeats[d];
        pairs[2 * d + 1] = n;
        dims[d] = repeats[d] * n;
        from[2 * d] = 0;
        from[2 * d + 1] = d < missing ? 0 : PyArray_STRIDE(self, d - missing);
    }
    PyArrayObject *out = (PyArrayObject *)new_array(ndim, dims, PyArray_DESCR(self));
    if (out == NULL) {
        return NULL;
    }
    for (int d = 0; d < ndim; d++) {
        to[2 * d + 1] = PyArray_STRIDE(out, d);
        to[2 * d] = to[2 * d + 1] * pairs[2 * d + 1];
    }
    move_freely(2 * ndim, pairs, PyArray_BYTES(out), to, PyArray_BYTES(self), from, row);
    return (PyObject *)out;
}

/* The dimensions in a tuple or list as bits; 0 when some are out of range or come twice. */
static int dim_set(PyObject *given, int ndim, unsigned *set)
{
    if (!PyTuple_CheckExact(given) && !PyList_CheckExact(given)) {
        return 0;
    }
    *set = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); i++) {
        int dim = as_dim(PySequence_Fast_GET_ITEM(given, i), ndim);
        if (dim < 0 || (*set & (1u << dim))) {
            return 0;
        }
        *set |= 1u << dim;
    }
    return 1;
}

/* self, dims. */
static PyObject *flip_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]);
    unsigned set;
    Row row = self == NULL ? NULL : row_of_size(PyArray_ITEMSIZE(self));
    if (row == NULL || !PyArray_NDIM(self) || !dim_set(args[1], PyArray_NDIM(self), &set)) {
        return NULL;
    }
    PyArrayObject *out = (PyArrayObject *)new_like(self);
    if (out == NULL || size_of(self) == 0) {
        return (PyObject *)out;
    }
    npy_intp from[MAX_DIMS];
    const char *start = PyArray_BYTES(self);
    for (int d = 0; d < PyArray_NDIM(self); d++) {
        from[d] = PyArray_STRIDE(self, d);
        if (set & (1u << d)) {
            start += (PyArray_DIM(self, d) - 1) * from[d];
            from[d] = -from[d];
        }
    }
    move_freely(PyArray_NDIM(self), PyArray_DIMS(self), PyArray_BYTES(out), PyArray_STRIDES(out), start, from, row);
    return (PyObject *)out;
}

/* One of the 2^k pieces into which k rolled dimensions fall goes to its place; then the next. */
static void roll_pieces(PyArrayObject *self, PyArrayObject *out, const npy_intp *shifts, int dim, npy_intp *dims, char *to, const char *from, Row row)
{
    int ndim = PyArray_NDIM(self);
    while (dim < ndim && shifts[dim] == 0) {
        dim++;
    }
    if (dim == ndim) {
        move(ndim, dims, to, PyArray_STRIDES(out), from, PyArray_STRIDES(self), row);
        return;
    }
    npy_intp n = PyArray_DIM(self, dim), shift = shifts[dim], there = PyArray_STRIDE(out, dim), here = PyArray_STRIDE(self, dim);
    dims[dim] = n - shift;
    roll_pieces(self, out, shifts, dim + 1, dims, to + shift * there, from, row);
    dims[dim] = shift;
    roll_pieces(self, out, shifts, dim + 1, dims, to, from + (n - shift) * here, row);
    dims[dim] = n;
}

/* The numbers of an int, or of a tuple or list of ints; -1 when it is something else. */
static int numbers_of(PyObject *given, npy_intp *numbers)
{
    Py_ssize_t value;
    if (as_index(given, &value)) {
        numbers[0] = value;
        return 1;
    }
    if ((!PyTuple_CheckExact(given) && !PyList_CheckExact(given)) || PySequence_Fast_GET_SIZE(given) > MAX_DIMS) {
        return -1;
    }
    int count = (int)PySequence_Fast_GET_SIZE(given);
    for (int i = 0; i < count; i++) {
        if (!as_index(PySequence_Fast_GET_ITEM(given, i), &value)) {
            return -1;
        }
        numbers[i] = value;
    }
    return count;
}

static npy_intp wrapped_shift(npy_intp shift, npy_intp n)
{
    shift = n ? shift % n : 0;
    return shift < 0 ? shift + n : shift;
}

/* self, shifts, dims; without dims the elements move along all of them. */
static PyObject *roll_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]);
    Row row = self == NULL ? NULL : row_of_size(PyArray_ITEMSIZE(self));
    npy_intp by[MAX_DIMS], along[MAX_DIMS], shifts[MAX_DIMS] = {0}, dims[MAX_DIMS];
    int given = numbers_of(args[1], by), named = numbers_of(args[2], along);
    if (row == NULL || given < 1 || named < 0 || (named ? named != given : given != 1 || !PyArray_IS_C_CONTIGUOUS(self))) {
        return NULL;
    }
    int ndim = PyArray_NDIM(self);
    for (int i = 0; i < named; i++) {
        npy_intp dim = along[i] < 0 ? along[i] + ndim : along[i];
        if (dim < 0 || dim >= ndim) {
            return NULL;
        }
        shifts[dim] = wrapped_shift(shifts[dim] + wrapped_shift(by[i], PyArray_DIM(self, dim)), PyArray_DIM(self, dim));
    }
    PyArrayObject *out = (PyArrayObject *)new_like(self);
    npy_intp n = size_of(self);
    if (out == NULL || n == 0) {
        return (PyObject *)out;
    }
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (named == 0) {
        npy_intp item = PyArray_ITEMSIZE(self), shift = wrapped_shift(by[0], n);
        memcpy(PyArray_BYTES(out) + shift * item, PyArray_BYTES(self), (size_t)((n - shift) * item));
        memcpy(PyArray_BYTES(out), PyArray_BYTES(self) + (n - shift) * item, (size_t)(shift * item));
    }
    else {
        copy_dims(dims, PyArray_DIMS(self), ndim);
        roll_pieces(self, out, shifts, 0, dims, PyArray_BYTES(out), PyArray_BYTES(self), row);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return (PyObject *)out;
}

/* self, pad, value. Negative padding leaves something out. */
static PyObject *constant_pad_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]);
    Row row = self == NULL ? NULL : row_of_size(PyArray_ITEMSIZE(self));
    npy_intp pad[2 * MAX_DIMS], dims[MAX_DIMS], inner[MAX_DIMS], nowhere[MAX_DIMS] = {0};
    char element[16] = {0};
    if (row == NULL || (!PyTuple_CheckExact(args[1]) && !PyList_CheckExact(args[1])) || !element_of(args[2], PyArray_DESCR(self), element)) {
        return NULL;
    }
    int ndim = PyArray_NDIM(self), count = (int)PySequence_Fast_GET_SIZE(args[1]);
    if (count % 2 || count > 2 * ndim) {
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        Py_ssize_t value;
        if (!as_index(PySequence_Fast_GET_ITEM(args[1], i), &value)) {
            return NULL;
        }
        pad[i] = value;
    }
    npy_intp ahead = 0; /* of the source's part, in bytes */
    for (int d = 0; d < ndim; d++) {
        int at = 2 * (ndim - 1 - d);
        npy_intp before = at < count ? pad[at] : 0, after = at < count ? pad[at + 1] : 0, n = PyArray_DIM(self, d);
        inner[d] = n + (before < 0 ? before : 0) + (after < 0 ? after : 0);
        dims[d] = n + before + after;
        if (inner[d] < 0 || dims[d] < 0) {
            return NULL;
        }
        ahead += before < 0 ? -before * PyArray_STRIDE(self, d) : 0;
    }
    PyArrayObject *out = (PyArrayObject *)new_array(ndim, dims, PyArray_DESCR(self));
    if (out == NULL) {
        return NULL;
    }
    npy_intp start = 0;
    for (int d = 0; d < ndim; d++) {
        int at = 2 * (ndim - 1 - d);
        start += at < count && pad[at] > 0 ? pad[at] * PyArray_STRIDE(out, d) : 0;
    }
    move_freely(ndim, dims, PyArray_BYTES(out), PyArray_STRIDES(out), element, nowhere, row);
    move_freely(ndim, inner, PyArray_BYTES(out) + start, PyArray_STRIDES(out), PyArray_BYTES(self) + ahead, PyArray_STRIDES(self), row);
    return (PyObject *)out;
}

/* ------------------------------------------------------------------------------------------------------------- triangles */

/* self, diagonal: each row is copied up to the diagonal (lower) or from it on, the rest is zero. */
static PyObject *triangle(PyObject *const *args, int lower)
{
    PyArrayObject *self = movable(args[0]);
    Py_ssize_t diagonal;
    Row row = self == NULL ? NULL : row_of_size(PyArray_ITEMSIZE(self));
    if (row == NULL || PyArray_NDIM(self) < 2 || !as_offset(args[1], &diagonal)) {
        return NULL;
    }
    PyArrayObject *out = (PyArrayObject *)new_like(self);
    npy_intp n = size_of(self);
    if (out == NULL || n == 0) {
        return (PyObject *)out;
    }
    int ndim = PyArray_NDIM(self);
    npy_intp rows = PyArray_DIM(self, ndim - 2), columns = PyArray_DIM(self, ndim - 1), item = PyArray_ITEMSIZE(self);
    npy_intp down = PyArray_STRIDE(self, ndim - 2), right = PyArray_STRIDE(self, ndim - 1), at[MAX_DIMS] = {0};
    const char *from = PyArray_BYTES(self);
    char *to = PyArray_BYTES(out);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp matrix = 0; matrix < n / (rows * columns); matrix++) {
        const char *x = from;
        for (npy_intp r = 0; r < rows; r++, to += columns * item, x += down) {
            npy_intp edge = r + diagonal + (lower ? 1 : 0); /* columns that belong to the lower part */
            edge = edge < 0 ? 0 : edge > columns ? columns : edge;
            if (lower) {
                row(to, item, x, right, edge);
                memset(to + edge * item, 0, (size_t)((columns - edge) * item));
            }
            else {
                memset(to, 0, (size_t)(edge * item));
                row(to + edge * item, item, x + edge * right, right, columns - edge);
            }
        }
        for (int d = ndim - 3; d >= 0; d--) {
            from += PyArray_STRIDE(self, d);
            if (++at[d] < PyArray_DIM(self, d)) {
                break;
            }
            at[d] = 0;
            from -= PyArray_STRIDE(self, d) * PyArray_DIM(self, d);
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return (PyObject *)out;
}

static PyObject *tril_kernel(PyObject *const *args)
{
    return triangle(args, 1);
}

static PyObject *triu_kernel(PyObject *const *args)
{
    return triangle(args, 0);
}

const KernelEntry join_kernels[] = {
    {"shape.cat", cat_kernel},
    {"shape.stack", stack_kernel},
    {"shape.repeat", repeat_kernel},
    {"shape.flip", flip_kernel},
    {"shape.roll", roll_kernel},
    {"shape.constant_pad_nd", constant_pad_kernel},
    {"creation.tril", tril_kernel},
    {"creation.triu", triu_kernel},
    {NULL, NULL},
};
