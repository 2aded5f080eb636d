/* The places that indices mean, and reading and writing there. */
#include "places.h"

static int room_for(Places *places)
{
    places->offset = places->few;
    if (places->count > FEW_PLACES) {
        places->offset = PyMem_RawMalloc((size_t)places->count * sizeof(npy_intp));
        if (places->offset == NULL) {
            PyErr_NoMemory();
            return 0;
        }
    }
    return 1;
}

void forget_places(Places *places)
{
    if (places->offset != places->few) {
        PyMem_RawFree(places->offset);
    }
}

/* One of the arrays of an index: positions along a dimension, or what a mask found. */
typedef struct {
    PyArrayObject *array;
    int dim, width, ndim;
    npy_intp size, stride; /* of the dimension; in bytes */
    npy_intp found;        /* of a mask: how many */
    npy_intp *offsets;     /* of a mask: where, in bytes */
} Part;

/* The number of elements of a mask that are set; with `offsets`, where they lie in an array with `strides` for the mask's dimensions. */
static npy_intp scan_mask(PyArrayObject *mask, const npy_intp *strides, npy_intp *offsets)
{
    int ndim = PyArray_NDIM(mask);
    npy_intp at[MAX_DIMS] = {0}, found = 0, offset = 0, n = size_of(mask);
    const char *bytes = PyArray_BYTES(mask);
    if (n == 0) {
        return 0;
    }
    npy_intp width = PyArray_DIM(mask, ndim - 1), step = PyArray_STRIDE(mask, ndim - 1), stride = strides[ndim - 1];
    for (npy_intp row = 0; row < n / width; row++) {
        if (offsets == NULL) {
            for (npy_intp i = 0; i < width; i++) {
                found += bytes[i * step] != 0;
            }
        }
        else {
            for (npy_intp i = 0; i < width; i++) {
                if (bytes[i * step]) {
                    offsets[found++] = offset + i * stride;
                }
            }
        }
        for (int d = ndim - 2; d >= 0; d--) {
            bytes += PyArray_STRIDE(mask, d);
            offset += strides[d];
            if (++at[d] < PyArray_DIM(mask, d)) {
                break;
            }
            at[d] = 0;
            bytes -= PyArray_STRIDE(mask, d) * PyArray_DIM(mask, d);
            offset -= strides[d] * PyArray_DIM(mask, d);
        }
    }
    return found;
}

/* Adds a part's offsets, broadcast to the places' shape; 0 when one is out of range. */
static int add_part(const Part *part, Places *places)
{
    npy_intp at[MAX_DIMS] = {0}, strides[MAX_DIMS] = {0};
    int ndim = places->ndim, missing = ndim - part->ndim;
    const char *from = part->offsets != NULL ? (const char *)part->offsets : PyArray_BYTES(part->array);
    for (int d = missing; d < ndim; d++) {
        npy_intp n = part->offsets != NULL ? part->found : PyArray_DIM(part->array, d - missing);
        strides[d] = n == 1 ? 0 : part->offsets != NULL ? (npy_intp)sizeof(npy_intp) : PyArray_STRIDE(part->array, d - missing);
    }
    npy_intp width = ndim ? places->dims[ndim - 1] : 1, step = ndim ? strides[ndim - 1] : 0;
    npy_intp *to = places->offset;
    for (npy_intp row = 0; row < places->count / width; row++, to += width) {
        for (npy_intp i = 0; i < width; i++) {
            npy_int64 position = index_at(from + i * step, part->width);
            if (part->offsets == NULL) {
                position += position < 0 ? part->size : 0;
                if ((npy_uint64)position >= (npy_uint64)part->size) {
                    return 0;
                }
                position *= part->stride;
            }
            to[i] += position;
        }
        for (int d = ndim - 2; d >= 0; d--) {
            from += strides[d];
            if (++at[d] < places->dims[d]) {
                break;
            }
            at[d] = 0;
            from -= strides[d] * places->dims[d];
        }
    }
    return 1;
}

/* The shape to which a dimension of the places broadcasts with another; 0 when it does not. */
static int widen(Places *places, int d, npy_intp n)
{
    if (n != 1 && places->dims[d] != 1 && n != places->dims[d]) {
        return 0;
    }
    places->dims[d] = n == 1 ? places->dims[d] : n;
    return 1;
}

static int shape_of_parts(Part *parts, int count, Places *places)
{
    places->ndim = 0;
    for (int i = 0; i < count; i++) {
        places->ndim = parts[i].ndim > places->ndim ? parts[i].ndim : places->ndim;
    }
    for (int d = 0; d < places->ndim; d++) {
        places->dims[d] = 1;
    }
    for (int i = 0; i < count; i++) {
        for (int d = 0; d < parts[i].ndim; d++) {
            npy_intp n = parts[i].width == 8 && is_mask(parts[i].array) ? parts[i].found : PyArray_DIM(parts[i].array, d);
            if (!widen(places, places->ndim - parts[i].ndim + d, n)) {
                return 0;
            }
        }
    }
    places->count = PyArray_MultiplyList(places->dims, places->ndim);
    return 1;
}

/* Reads the list: the parts, and the dimensions of self that stay. Their number, or -1 to decline. */
static int read_indices(PyArrayObject *self, PyObject *indices, Part *parts, Places *places)
{
    if (!PyList_CheckExact(indices) && !PyTuple_CheckExact(indices)) {
        return -1;
    }
    int count = 0, dim = 0, ndim = PyArray_NDIM(self), apart = 0, last = -1;
    int kept[MAX_DIMS], before = 0, stay = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(indices); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(indices, i);
        if (dim >= ndim || count == MAX_DIMS) {
            return -1;
        }
        if (item == Py_None) {
            kept[stay++] = dim++;
            continue;
        }
        PyArrayObject *array = movable(item);
        if (array == NULL) {
            return -1;
        }
        Part *part = &parts[count];
        *part = (Part){.array = array, .dim = dim, .ndim = PyArray_NDIM(array), .size = PyArray_DIM(self, dim), .stride = PyArray_STRIDE(self, dim)};
        apart |= count && last != i - 1;
        last = (int)i;
        if (count++ == 0) {
            before = stay;
        }
        if (!is_mask(array)) {
            part->width = index_width(array);
            if (part->width == 0) {
                return -1;
            }
            dim++;
            continue;
        }
        if (part->ndim < 1 || dim + part->ndim > ndim) {
            return -1;
        }
        for (int d = 0; d < part->ndim; d++) {
            if (PyArray_DIM(array, d) != PyArray_DIM(self, dim + d)) {
                return -1;
            }
        }
        dim += part->ndim;
        part->ndim = 1;
        part->width = 8;
        part->found = scan_mask(array, PyArray_STRIDES(self) + part->dim, NULL);
    }
    while (dim < ndim) {
        kept[stay++] = dim++;
    }
    places->outer = apart ? 0 : before;
    places->inner = stay - places->outer;
    for (int i = 0; i < stay; i++) {
        npy_intp n = PyArray_DIM(self, kept[i]), stride = PyArray_STRIDE(self, kept[i]);
        if (i < places->outer) {
            places->outer_dims[i] = n;
            places->outer_strides[i] = stride;
        }
        else {
            places->inner_dims[i - places->outer] = n;
            places->inner_strides[i - places->outer] = stride;
        }
    }
    return count;
}

int find_places(PyArrayObject *self, PyObject *indices, Places *places)
{
    Part parts[MAX_DIMS];
    places->offset = places->few;
    int count = read_indices(self, indices, parts, places);
    if (count < 1 || !shape_of_parts(parts, count, places) || places->outer + places->ndim + places->inner > MAX_DIMS || !room_for(places)) {
        return 0;
    }
    if (places->count == 0) {
        return count == 1; /* several parts: numpy checks the positions of those that have some */
    }
    if (count == 1 && is_mask(parts[0].array)) {
        scan_mask(parts[0].array, PyArray_STRIDES(self) + parts[0].dim, places->offset);
        return 1;
    }
    int good = 1;
    memset(places->offset, 0, (size_t)places->count * sizeof(npy_intp));
    for (int i = 0; i < count && good; i++) {
        if (is_mask(parts[i].array)) {
            parts[i].offsets = PyMem_RawMalloc((size_t)(parts[i].found ? parts[i].found : 1) * sizeof(npy_intp));
            if (parts[i].offsets == NULL) {
                PyErr_NoMemory();
                good = 0;
                break;
            }
            scan_mask(parts[i].array, PyArray_STRIDES(self) + parts[i].dim, parts[i].offsets);
        }
        good = add_part(&parts[i], places);
        PyMem_RawFree(parts[i].offsets);
    }
    if (!good) {
        forget_places(places);
    }
    return good;
}

int find_slices(PyArrayObject *self, int dim, PyArrayObject *index, Places *places)
{
    int width = index_width(index);
    if (width == 0 || PyArray_NDIM(index) > 1) {
        return 0;
    }
    npy_intp size = PyArray_DIM(self, dim), stride = PyArray_STRIDE(self, dim), step = PyArray_NDIM(index) ? PyArray_STRIDE(index, 0) : 0;
    places->outer = dim;
    places->ndim = 1;
    places->count = places->dims[0] = size_of(index);
    places->inner = PyArray_NDIM(self) - dim - 1;
    for (int d = 0; d < PyArray_NDIM(self); d++) {
        if (d != dim) {
            *(d < dim ? &places->outer_dims[d] : &places->inner_dims[d - dim - 1]) = PyArray_DIM(self, d);
            *(d < dim ? &places->outer_strides[d] : &places->inner_strides[d - dim - 1]) = PyArray_STRIDE(self, d);
        }
    }
    if (!room_for(places)) {
        return 0;
    }
    const char *at = PyArray_BYTES(index);
    for (npy_intp i = 0; i < places->count; i++, at += step) {
        npy_int64 position = index_at(at, width);
        if ((npy_uint64)position >= (npy_uint64)size) {
            forget_places(places);
            return 0;
        }
        places->offset[i] = position * stride;
    }
    return 1;
}

/* ------------------------------------------------------------------------------------------------------- reading, writing */

#define PICK(name, T)                                                                                                                      \
    static void name(const char *from, const npy_intp *offset, char *to, npy_intp n)                                                       \
    {                                                                                                                                      \
        T *y = (T *)to;                                                                                                                    \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            y[i] = *(const T *)(from + offset[i]);                                                                                         \
        }                                                                                                                                  \
    }

typedef npy_uint16 __attribute__((aligned(1), may_alias)) Item2;
typedef npy_uint32 __attribute__((aligned(1), may_alias)) Item4;
typedef npy_uint64 __attribute__((aligned(1), may_alias)) Item8;
typedef struct {
    Item8 first, second;
} Item16;

PICK(pick1, npy_uint8)
PICK(pick2, Item2)
PICK(pick4, Item4)
PICK(pick8, Item8)
PICK(pick16, Item16)

static void pick(npy_intp item, const char *from, const npy_intp *offset, char *to, npy_intp n)
{
    switch (item) {
    case 1:
        pick1(from, offset, to, n);
        break;
    case 2:
        pick2(from, offset, to, n);
        break;
    case 4:
        pick4(from, offset, to, n);
        break;
    case 8:
        pick8(from, offset, to, n);
        break;
    default:
        pick16(from, offset, to, n);
    }
}

/* The next of the outer positions: moves two pointers. */
static void next_outer(const Places *places, npy_intp *at, char **self, const char **other, const npy_intp *other_strides)
{
    for (int d = places->outer - 1; d >= 0; d--) {
        *self += places->outer_strides[d];
        *other += other_strides[d];
        if (++at[d] < places->outer_dims[d]) {
            return;
        }
        at[d] = 0;
        *self -= places->outer_strides[d] * places->outer_dims[d];
        *other -= other_strides[d] * places->outer_dims[d];
    }
}

static int is_dense(const npy_intp *dims, const npy_intp *strides, int ndim, npy_intp item)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (dims[d] != 1 && strides[d] != item) {
            return 0;
        }
        item *= dims[d];
    }
    return 1;
}

PyObject *read_places(PyArrayObject *self, const Places *places)
{
    npy_intp dims[3 * MAX_DIMS], item = PyArray_ITEMSIZE(self);
    Row row = row_of_size(item);
    if (row == NULL) {
        return NULL;
    }
    copy_dims(dims, places->outer_dims, places->outer);
    copy_dims(dims + places->outer, places->dims, places->ndim);
    copy_dims(dims + places->outer + places->ndim, places->inner_dims, places->inner);
    PyArrayObject *out = (PyArrayObject *)new_array(places->outer + places->ndim + places->inner, dims, PyArray_DESCR(self));
    npy_intp n = out == NULL ? 0 : size_of(out);
    if (n == 0) {
        return (PyObject *)out;
    }
    npy_intp outer = PyArray_MultiplyList(places->outer_dims, places->outer), inner = PyArray_MultiplyList(places->inner_dims, places->inner);
    npy_intp at[MAX_DIMS] = {0}, nowhere[MAX_DIMS] = {0}, block = inner * item;
    int dense = is_dense(places->inner_dims, places->inner_strides, places->inner, item);
    char *to = PyArray_BYTES(out), *from = PyArray_BYTES(self);
    const char *unused = NULL;
    const npy_intp *to_strides = PyArray_STRIDES(out) + places->outer + places->ndim;
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp o = 0; o < outer; o++) {
        if (inner == 1) {
            pick(item, from, places->offset, to, places->count);
            to += places->count * item;
        }
        else {
            for (npy_intp k = 0; k < places->count; k++, to += block) {
                if (dense) {
                    memcpy(to, from + places->offset[k], (size_t)block);
                }
                else {
                    move(places->inner, places->inner_dims, to, to_strides, from + places->offset[k], places->inner_strides, row);
                }
            }
        }
        next_outer(places, at, &from, &unused, nowhere);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return (PyObject *)out;
}

int write_places(PyArrayObject *self, const Places *places, PyArrayObject *values, Row row)
{
    npy_intp dims[3 * MAX_DIMS], strides[3 * MAX_DIMS];
    int ndim = places->outer + places->ndim + places->inner;
    copy_dims(dims, places->outer_dims, places->outer);
    copy_dims(dims + places->outer, places->dims, places->ndim);
    copy_dims(dims + places->outer + places->ndim, places->inner_dims, places->inner);
    if (row == NULL || !(PyArray_FLAGS(self) & NPY_ARRAY_WRITEABLE) || !broadcast_strides(values, ndim, dims, strides) ||
        may_overlap(self, values)) {
        return 0;
    }
    /* The values step evenly from one place to the next. */
    npy_intp step = 0;
    const npy_intp *across = strides + places->outer, *inner_strides = across + places->ndim;
    int known = 0;
    for (int d = places->ndim - 1, reach = 0; d >= 0; d--) {
        if (places->dims[d] == 1) {
            continue;
        }
        if (!known) {
            step = across[d];
            known = 1;
            reach = d;
        }
        else if (across[d] != across[reach] * places->dims[reach]) {
            return 0;
        }
        reach = d;
    }
    npy_intp n = PyArray_MultiplyList(dims, ndim), outer = PyArray_MultiplyList(places->outer_dims, places->outer);
    if (n == 0) {
        return 1;
    }
    npy_intp at[MAX_DIMS] = {0};
    char *to = PyArray_BYTES(self);
    const char *from = PyArray_BYTES(values);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp o = 0; o < outer; o++) {
        const char *value = from;
        for (npy_intp k = 0; k < places->count; k++, value += step) {
            if (places->inner == 0) {
                row(to + places->offset[k], 0, value, 0, 1);
            }
            else if (places->inner == 1) {
                row(to + places->offset[k], places->inner_strides[0], value, inner_strides[0], places->inner_dims[0]);
            }
            else {
                move(places->inner, places->inner_dims, to + places->offset[k], places->inner_strides, value, inner_strides, row);
            }
        }
        next_outer(places, at, &to, &from, strides);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return 1;
}

/* ------------------------------------------------------------------------------------------------------------------ sums */

#define ADD(name, T)                                                                                                                       \
    static void name(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)                                         \
    {                                                                                                                                      \
        if (to_step == sizeof(T) && from_step == sizeof(T)) {                                                                              \
            T *restrict y = (T *)to;                                                                                                       \
            const T *restrict x = (const T *)from;                                                                                         \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                y[i] += x[i];                                                                                                              \
            }                                                                                                                              \
            return;                                                                                                                        \
        }                                                                                                                                  \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            *(T *)(to + i * to_step) += *(const T *)(from + i * from_step);                                                                \
        }                                                                                                                                  \
    }

typedef float __attribute__((aligned(1), may_alias)) LooseFloat;
typedef double __attribute__((aligned(1), may_alias)) LooseDouble;

ADD(add_float, LooseFloat)
ADD(add_double, LooseDouble)
ADD(add1, npy_uint8)
ADD(add2, Item2)
ADD(add4, Item4)
ADD(add8, Item8)

static void add_bool(char *to, npy_intp to_step, const char *from, npy_intp from_step, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++) {
        to[i * to_step] |= from[i * from_step];
    }
}

Row adding_row(PyArray_Descr *descr)
{
    switch (descr->type_num) {
    case NPY_FLOAT:
        return add_float;
    case NPY_DOUBLE:
        return add_double;
    case NPY_BOOL:
        return add_bool;
    case NPY_INT8:
    case NPY_UINT8:
        return add1;
    case NPY_INT16:
        return add2;
    case NPY_INT32:
        return add4;
    case NPY_INT64:
        return add8;
    default:
        return NULL;
    }
}
