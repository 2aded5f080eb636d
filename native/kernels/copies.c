/* Copies of arrays, also to another dtype, and what writes a part of an array of zeros: the derivatives of views. */
#include "../runtime/extents.h"
#include "move.h"
#include "making.h"

/* An uninitialised array in the memory order of another. */
static PyArrayObject *made_like(PyArrayObject *array, PyArray_Descr *descr)
{
    if (PyArray_IS_C_CONTIGUOUS(array)) {
        return (PyArrayObject *)new_array(PyArray_NDIM(array), PyArray_DIMS(array), descr);
    }
    return (PyArrayObject *)buffer_like(array, NPY_KEEPORDER, descr);
}

/* A copy of `source` as `descr`, in `out` (NULL or None: a new array of the same order). */
static PyObject *copied(PyObject *source, PyArray_Descr *descr, PyObject *out)
{
    PyArrayObject *self = movable(source);
    if (self == NULL || descr == NULL) {
        return NULL;
    }
    if (out != NULL && out != Py_None) {
        return is_array(out) && PyArray_SAMESHAPE((PyArrayObject *)out, self) && move_into((PyArrayObject *)out, self) ? Py_NewRef(out) : NULL;
    }
    if (row_between(PyArray_DESCR(self), descr) == NULL) {
        return NULL;
    }
    PyArrayObject *made = made_like(self, descr);
    if (made != NULL && !move_into(made, self)) {
        Py_CLEAR(made);
    }
    return (PyObject *)made;
}

/* self, memory_format, out. */
static PyObject *clone_kernel(PyObject *const *args)
{
    return is_array(args[0]) ? copied(args[0], PyArray_DESCR((PyArrayObject *)args[0]), args[2]) : NULL;
}

/* self, dtype, layout, device, pin_memory, non_blocking, memory_format, out. */
static PyObject *to_copy_kernel(PyObject *const *args)
{
    if (!is_array(args[0])) {
        return NULL;
    }
    return copied(args[0], args[1] == Py_None ? PyArray_DESCR((PyArrayObject *)args[0]) : descr_of(args[1]), args[7]);
}

/* self, src, non_blocking: writes to self. */
static PyObject *copy_into_kernel(PyObject *const *args)
{
    if (!is_array(args[0]) || !is_array(args[1])) {
        return NULL;
    }
    return move_into((PyArrayObject *)args[0], (PyArrayObject *)args[1]) ? Py_NewRef(args[0]) : NULL;
}

/* self, src, non_blocking: `src` in the order of self. */
static PyObject *copy_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]);
    if (self == NULL || !is_array(args[1])) {
        return NULL;
    }
    PyArrayObject *made = made_like(self, PyArray_DESCR(self));
    if (made != NULL && !move_into(made, (PyArrayObject *)args[1])) {
        Py_CLEAR(made);
    }
    return (PyObject *)made;
}

/* ------------------------------------------------------------------------------------------------- parts of arrays of zeros */

typedef struct {
    PyArrayObject *grad;
    int ndim;
    npy_intp dims[MAX_DIMS], strides[MAX_DIMS], size;
    PyArrayObject *out; /* new, contiguous, zeros */
} Part;

/* Zeros of the sizes in args[1] and the dtype of args[0]; 0 to decline (or with an exception). */
static int begin_part(PyObject *const *args, Part *part)
{
    part->grad = movable(args[0]);
    part->ndim = sizes_of(args[1], part->dims);
    if (part->grad == NULL || part->ndim < 0) {
        return 0;
    }
    part->out = (PyArrayObject *)new_array(part->ndim, part->dims, PyArray_DESCR(part->grad));
    if (part->out == NULL) {
        return 0;
    }
    for (int d = 0; d < part->ndim; d++) {
        part->strides[d] = PyArray_STRIDE(part->out, d);
    }
    part->size = PyArray_NBYTES(part->out);
    memset(PyArray_DATA(part->out), 0, (size_t)part->size);
    return 1;
}

/* Writes the gradient to the part of the result that dims and strides say. */
static PyObject *finish_part(Part *part, int ndim, npy_intp offset)
{
    npy_intp from[MAX_DIMS];
    Row row = row_of_size(PyArray_ITEMSIZE(part->grad));
    if (row == NULL || !broadcast_strides(part->grad, ndim, part->dims, from)) {
        Py_DECREF(part->out);
        return NULL;
    }
    move_freely(ndim, part->dims, PyArray_BYTES(part->out) + offset, part->strides, PyArray_BYTES(part->grad), from, row);
    return (PyObject *)part->out;
}

static void drop_dim(Part *part, int dim)
{
    for (int d = dim; d + 1 < part->ndim; d++) {
        part->dims[d] = part->dims[d + 1];
        part->strides[d] = part->strides[d + 1];
    }
}

/* grad_output, input_sizes, dim, index. */
static PyObject *select_backward_kernel(PyObject *const *args)
{
    Part part;
    Py_ssize_t index;
    if (!as_index(args[3], &index) || !begin_part(args, &part)) {
        return NULL;
    }
    int dim = part.ndim ? as_dim(args[2], part.ndim) : -1;
    if (dim < 0 || index < -part.dims[dim] || index >= part.dims[dim]) {
        Py_DECREF(part.out);
        return NULL;
    }
    npy_intp offset = (index < 0 ? index + part.dims[dim] : index) * part.strides[dim];
    drop_dim(&part, dim);
    return finish_part(&part, part.ndim - 1, offset);
}

/* A bound of a slice within [0, n]; 0 when it is no int. */
static int bound_of(PyObject *given, npy_intp n, npy_intp absent, npy_intp *bound)
{
    Py_ssize_t value = absent;
    if (given != Py_None && !as_index(given, &value)) {
        return 0;
    }
    value += value < 0 ? n : 0;
    *bound = value < 0 ? 0 : value > n ? n : value;
    return 1;
}

/* grad_output, input_sizes, dim, start, end, step. */
static PyObject *slice_backward_kernel(PyObject *const *args)
{
    Part part;
    Py_ssize_t step;
    npy_intp start, end;
    if (!as_index(args[5], &step) || step < 1 || !begin_part(args, &part)) {
        return NULL;
    }
    int dim = part.ndim ? as_dim(args[2], part.ndim) : -1;
    if (dim < 0 || !bound_of(args[3], part.dims[dim], 0, &start) || !bound_of(args[4], part.dims[dim], part.dims[dim], &end)) {
        Py_DECREF(part.out);
        return NULL;
    }
    npy_intp offset = start * part.strides[dim];
    part.dims[dim] = end > start ? (end - start - 1) / step + 1 : 0;
    part.strides[dim] *= part.dims[dim] > 1 ? step : 1;
    return finish_part(&part, part.ndim, offset);
}

/* Leaves two dimensions out for their diagonal, which comes last; the offset in bytes to its first element. */
static npy_intp to_diagonal(Part *part, int dim1, int dim2, Py_ssize_t offset)
{
    npy_intp rows = part->dims[dim1], columns = part->dims[dim2], down = part->strides[dim1], right = part->strides[dim2];
    npy_intp length = offset >= 0 ? (columns - offset < rows ? columns - offset : rows) : (rows + offset < columns ? rows + offset : columns);
    int first = dim1 < dim2 ? dim1 : dim2, second = dim1 < dim2 ? dim2 : dim1;
    drop_dim(part, second);
    part->ndim--;
    drop_dim(part, first);
    part->dims[part->ndim - 1] = length < 0 ? 0 : length;
    part->strides[part->ndim - 1] = down + right;
    return length <= 0 ? 0 : offset >= 0 ? offset * right : -offset * down;
}

/* grad_output, input_sizes, offset, dim1, dim2. */
static PyObject *diagonal_backward_kernel(PyObject *const *args)
{
    Part part;
    Py_ssize_t offset;
    if (!as_offset(args[2], &offset) || !begin_part(args, &part)) {
        return NULL;
    }
    int dim1 = part.ndim < 2 ? -1 : as_dim(args[3], part.ndim), dim2 = part.ndim < 2 ? -1 : as_dim(args[4], part.ndim);
    if (dim1 < 0 || dim2 < 0 || dim1 == dim2) {
        Py_DECREF(part.out);
        return NULL;
    }
    npy_intp start = to_diagonal(&part, dim1, dim2, offset);
    return finish_part(&part, part.ndim, start);
}

/* self, offset, dim1, dim2. */
static PyObject *diag_embed_kernel(PyObject *const *args)
{
    Part part;
    PyArrayObject *self = movable(args[0]);
    Py_ssize_t offset;
    if (self == NULL || PyArray_NDIM(self) < 1 || PyArray_NDIM(self) + 1 > MAX_DIMS || !as_offset(args[1], &offset)) {
        return NULL;
    }
    int ndim = PyArray_NDIM(self) + 1, dim1 = as_dim(args[2], ndim), dim2 = as_dim(args[3], ndim);
    if (dim1 < 0 || dim2 < 0 || dim1 == dim2) {
        return NULL;
    }
    for (int d = 0, from = 0; d < ndim; d++) {
        part.dims[d] = d == dim1 || d == dim2 ? PyArray_DIM(self, ndim - 2) + (offset < 0 ? -offset : offset) : PyArray_DIM(self, from++);
    }
    part.grad = self;
    part.ndim = ndim;
    part.out = (PyArrayObject *)new_array(ndim, part.dims, PyArray_DESCR(self));
    if (part.out == NULL) {
        return NULL;
    }
    copy_dims(part.strides, PyArray_STRIDES(part.out), ndim);
    memset(PyArray_DATA(part.out), 0, (size_t)PyArray_NBYTES(part.out));
    npy_intp start = to_diagonal(&part, dim1, dim2, offset);
    return finish_part(&part, part.ndim, start);
}

const KernelEntry copy_kernels[] = {
    {"view.clone", clone_kernel},
    {"conversion.to_copy", to_copy_kernel},
    {"conversion.copy_", copy_into_kernel},
    {"conversion.copy", copy_kernel},
    {"view.select_backward", select_backward_kernel},
    {"view.slice_backward", slice_backward_kernel},
    {"view.diagonal_backward", diagonal_backward_kernel},
    {"shape.diag_embed", diag_embed_kernel},
    {NULL, NULL},
};
