/* Views: what `ops/view.py` does for plain arrays, with the strides of the rules. See Note [Strides of small sizes] there. */
#include "views.h"

typedef struct {
    int ndim;
    npy_intp dims[MAX_DIMS + 1], strides[MAX_DIMS + 1];
} Geometry;

/* 0 for arrays that are left to Python: without elements, or of too many dimensions. */
static int geometry_of(PyObject *object, Geometry *g)
{
    if (!is_array(object)) {
        return 0;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    g->ndim = PyArray_NDIM(array);
    if (g->ndim > MAX_DIMS || PyArray_SIZE(array) == 0) {
        return 0;
    }
    for (int d = 0; d < g->ndim; d++) {
        g->dims[d] = PyArray_DIM(array, d);
        g->strides[d] = PyArray_STRIDE(array, d);
    }
    return 1;
}

static PyObject *as_view(PyArrayObject *array, const Geometry *g, npy_intp offset)
{
    return new_view(array, g->ndim, g->dims, g->strides, PyArray_BYTES(array) + offset);
}

static void insert(Geometry *g, int at, npy_intp n, npy_intp stride)
{
    for (int d = g->ndim; d > at; d--) {
        g->dims[d] = g->dims[d - 1];
        g->strides[d] = g->strides[d - 1];
    }
    g->dims[at] = n;
    g->strides[at] = stride;
    g->ndim++;
}

static void drop(Geometry *g, int at)
{
    for (int d = at; d + 1 < g->ndim; d++) {
        g->dims[d] = g->dims[d + 1];
        g->strides[d] = g->strides[d + 1];
    }
    g->ndim--;
}

static void fill_contiguous(Geometry *g, npy_intp item)
{
    for (int d = g->ndim - 1; d >= 0; d--) {
        g->strides[d] = item;
        item *= g->dims[d];
    }
}

/* Whether the strides are those of a fresh array, also along dimensions of size 1. */
static int is_canonical(const Geometry *g, npy_intp item)
{
    for (int d = g->ndim - 1; d >= 0; d--) {
        if (g->strides[d] != item) {
            return 0;
        }
        item *= g->dims[d];
    }
    return 1;
}

/* The items of a tuple of ints; -1 when it is something else. */
static int read_ints(PyObject *object, npy_intp *values)
{
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) > MAX_DIMS) {
        return -1;
    }
    int count = (int)PyTuple_GET_SIZE(object);
    for (int i = 0; i < count; i++) {
        Py_ssize_t value;
        if (!as_index(PyTuple_GET_ITEM(object, i), &value)) {
            return -1;
        }
        values[i] = value;
    }
    return count;
}

static PyObject *view_kernel(PyObject *const *args)
{
    Geometry g, wanted;
    if (!geometry_of(args[0], &g)) {
        return NULL;
    }
    PyArrayObject *self = (PyArrayObject *)args[0];
    npy_intp item = PyArray_ITEMSIZE(self), total = PyArray_SIZE(self), known = 1;
    wanted.ndim = read_ints(args[1], wanted.dims);
    if (wanted.ndim < 0 || !is_canonical(&g, item)) {
        return NULL;
    }
    int unknown = -1;
    for (int d = 0; d < wanted.ndim; d++) {
        npy_intp n = wanted.dims[d];
        if (n == -1 && unknown < 0) {
            unknown = d;
        }
        else if (n <= 0 || n > total / known) {
            return NULL;
        }
        else {
            known *= n;
        }
    }
    if (unknown >= 0) {
        wanted.dims[unknown] = total / known;
        known *= wanted.dims[unknown];
    }
    if (known != total) {
        return NULL;
    }
    fill_contiguous(&wanted, item);
    return as_view(self, &wanted, 0);
}

static PyObject *transpose_kernel(PyObject *const *args)
{
    Geometry g;
    if (!geometry_of(args[0], &g) || g.ndim == 0) {
        return NULL;
    }
    int a = as_dim(args[1], g.ndim), b = as_dim(args[2], g.ndim);
    if (a < 0 || b < 0) {
        return NULL;
    }
    npy_intp n = g.dims[a], stride = g.strides[a];
    g.dims[a] = g.dims[b];
    g.strides[a] = g.strides[b];
    g.dims[b] = n;
    g.strides[b] = stride;
    return as_view((PyArrayObject *)args[0], &g, 0);
}

static PyObject *t_kernel(PyObject *const *args)
{
    Geometry g;
    if (!geometry_of(args[0], &g) || g.ndim > 2) {
        return NULL;
    }
    if (g.ndim == 2) {
        npy_intp n = g.dims[0], stride = g.strides[0];
        g.dims[0] = g.dims[1];
        g.strides[0] = g.strides[1];
        g.dims[1] = n;
        g.strides[1] = stride;
    }
    return as_view((PyArrayObject *)args[0], &g, 0);
}

static PyObject *permute_kernel(PyObject *const *args)
{
    Geometry g, permuted;
    npy_intp order[MAX_DIMS];
    if (!geometry_of(args[0], &g) || read_ints(args[1], order) != g.ndim) {
        return NULL;
    }
    unsigned seen = 0;
    permuted.ndim = g.ndim;
    for (int d = 0; d < g.ndim; d++) {
        npy_intp from = order[d] < 0 ? order[d] + g.ndim : order[d];
        if (from < 0 || from >= g.ndim || (seen >> from & 1)) {
            return NULL;
        }
        seen |= 1u << from;
        permuted.dims[d] = g.dims[from];
        permuted.strides[d] = g.strides[from];
    }
    return as_view((PyArrayObject *)args[0], &permuted, 0);
}

PyObject *view_unsqueeze(PyArrayObject *array, int dim)
{
    Geometry g;
    if (!geometry_of((PyObject *)array, &g) || g.ndim == MAX_DIMS) {
        return NULL;
    }
    insert(&g, dim, 1, dim == g.ndim ? PyArray_ITEMSIZE(array) : g.dims[dim] * g.strides[dim]);
    return as_view(array, &g, 0);
}

static PyObject *unsqueeze_kernel(PyObject *const *args)
{
    PyArrayObject *self = (PyArrayObject *)args[0];
    int dim = as_dim(args[1], PyArray_NDIM(self) + 1);
    return dim < 0 ? NULL : view_unsqueeze(self, dim);
}

static PyObject *squeeze_dim_kernel(PyObject *const *args)
{
    Geometry g;
    if (!geometry_of(args[0], &g)) {
        return NULL;
    }
    int dim = g.ndim ? as_dim(args[1], g.ndim) : -1;
    if (dim < 0) {
        return NULL;
    }
    if (g.dims[dim] == 1) {
        drop(&g, dim);
    }
    return as_view((PyArrayObject *)args[0], &g, 0);
}

PyObject *view_select(PyArrayObject *array, int dim, Py_ssize_t index)
{
    Geometry g;
    if (!geometry_of((PyObject *)array, &g) || dim >= g.ndim || index < -g.dims[dim] || index >= g.dims[dim]) {
        return NULL;
    }
    npy_intp offset = (index < 0 ? index + g.dims[dim] : index) * g.strides[dim];
    drop(&g, dim);
    return as_view(array, &g, offset);
}

static PyObject *select_kernel(PyObject *const *args)
{
    PyArrayObject *self = (PyArrayObject *)args[0];
    Py_ssize_t index;
    int dim = PyArray_NDIM(self) ? as_dim(args[1], PyArray_NDIM(self)) : -1;
    return dim < 0 || !as_index(args[2], &index) ? NULL : view_select(self, dim, index);
}

/* A bound of a slice, clamped to [0, n]; 0 when it is no int. */
static int as_bound(PyObject *object, npy_intp n, npy_intp absent, npy_intp *bound)
{
    Py_ssize_t value;
    if (object == Py_None) {
        *bound = absent;
        return 1;
    }
    if (!as_index(object, &value)) {
        return 0;
    }
    if (value < 0) {
        value += n;
    }
    *bound = value < 0 ? 0 : value > n ? n : value;
    return 1;
}

#define FAR (1LL << 31) /* steps whose strides in bytes are numbers of 64 bits for certain */

PyObject *view_slice(PyArrayObject *array, int dim, PyObject *start, PyObject *stop, Py_ssize_t step, int *whole)
{
    Geometry g;
    npy_intp first, last;
    if (!geometry_of((PyObject *)array, &g) || dim >= g.ndim || step < 1 || step >= FAR) {
        return NULL;
    }
    npy_intp n = g.dims[dim];
    if (!as_bound(start, n, 0, &first) || !as_bound(stop, n, n, &last) || first >= last) {
        return NULL; /* a result without elements: numpy's strides are not the rule's */
    }
    if (whole != NULL) {
        Py_ssize_t given = 0;
        *whole = (start == Py_None || (as_index(start, &given) && given == 0)) && last == n && step == 1;
    }
    npy_intp offset = first * g.strides[dim];
    g.dims[dim] = (last - first - 1) / step + 1;
    g.strides[dim] *= step;
    return as_view(array, &g, offset);
}

static PyObject *slice_kernel(PyObject *const *args)
{
    PyArrayObject *self = (PyArrayObject *)args[0];
    Py_ssize_t step;
    int dim = PyArray_NDIM(self) ? as_dim(args[1], PyArray_NDIM(self)) : -1;
    return dim < 0 || !as_index(args[4], &step) ? NULL : view_slice(self, dim, args[2], args[3], step, NULL);
}

static PyObject *expanded(PyObject *const *args, int keeps)
{
    Geometry g, wide;
    if (!geometry_of(args[0], &g)) {
        return NULL;
    }
    wide.ndim = read_ints(args[1], wide.dims);
    if (wide.ndim < g.ndim) {
        return NULL;
    }
    /* A new dimension of size 1 continues those behind it; before a 0-dim tensor there is nothing to continue. */
    npy_intp continued = g.ndim ? PyArray_ITEMSIZE((PyArrayObject *)args[0]) : 0;
    for (int d = wide.ndim - 1; d >= 0; d--) {
        int from = d - (wide.ndim - g.ndim);
        npy_intp have = from < 0 ? 1 : g.dims[from];
        npy_intp stride = from < 0 ? continued : g.strides[from];
        if (wide.dims[d] == -1 && keeps && from >= 0) {
            wide.dims[d] = have;
        }
        if (wide.dims[d] < 1 || (wide.dims[d] != have && have != 1)) {
            return NULL;
        }
        wide.strides[d] = wide.dims[d] == have ? stride : 0;
        continued = wide.dims[d] * wide.strides[d];
    }
    return as_view((PyArrayObject *)args[0], &wide, 0);
}

static PyObject *expand_kernel(PyObject *const *args)
{
    return expanded(args, 1);
}

static PyObject *broadcast_to_kernel(PyObject *const *args)
{
    return expanded(args, 0);
}

/* self, size, stride, storage_offset: from self's own first element, within a contiguous self. */
static PyObject *as_strided_kernel(PyObject *const *args)
{
    Geometry g, wanted;
    npy_intp steps[MAX_DIMS], last = 0;
    if (!geometry_of(args[0], &g) || args[3] != Py_None) {
        return NULL;
    }
    PyArrayObject *self = (PyArrayObject *)args[0];
    npy_intp item = PyArray_ITEMSIZE(self), total = PyArray_SIZE(self);
    wanted.ndim = read_ints(args[1], wanted.dims);
    if (wanted.ndim < 0 || read_ints(args[2], steps) != wanted.ndim || !is_contiguous(self)) {
        return NULL;
    }
    for (int d = 0; d < wanted.ndim; d++) {
        npy_intp n = wanted.dims[d];
        if (n < 1 || steps[d] < 0 || steps[d] > total || n > total + 1) {
            return NULL;
        }
        if (n > 1 && steps[d] > (total - 1 - last) / (n - 1)) {
            return NULL;
        }
        last += (n - 1) * steps[d];
        wanted.strides[d] = steps[d] * item;
    }
    return as_view(self, &wanted, 0);
}

const KernelEntry view_kernels[] = {
    {"view.fast_as_strided", as_strided_kernel},
    {"view.fast_view", view_kernel},
    {"view.fast_transpose", transpose_kernel},
    {"view.fast_t", t_kernel},
    {"view.fast_permute", permute_kernel},
    {"view.fast_unsqueeze", unsqueeze_kernel},
    {"view.fast_squeeze_dim", squeeze_dim_kernel},
    {"view.fast_select", select_kernel},
    {"view.fast_slice", slice_kernel},
    {"view.fast_expand", expand_kernel},
    {"view.fast_broadcast_to", broadcast_to_kernel},
    {NULL, NULL},
};
