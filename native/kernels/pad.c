/* Padding by what an array has: mirrored at its edges, or the edge repeated; and the gradients of both. */
#include "kinds.h"

typedef struct {
    int ndim, padded; /* dimensions from `padded` on have no padding */
    int mirrored;
    npy_intp size[MAX_DIMS], before[MAX_DIMS], wide[MAX_DIMS]; /* of the array, and of the padded one */
    npy_intp step[MAX_DIMS], wide_step[MAX_DIMS];              /* bytes from one index to the next, both contiguous */
    npy_intp block;                                            /* bytes of an index of the last padded dimension */
} Padding;

/* Where the index i of the padded array comes from. */
static inline npy_intp source_of(const Padding *p, int d, npy_intp i)
{
    npy_intp at = i - p->before[d], n = p->size[d];
    if (p->mirrored) {
        at = at < 0 ? -at : at;
        return at >= n ? 2 * (n - 1) - at : at;
    }
    return at < 0 ? 0 : at >= n ? n - 1 : at;
}

/* 0 for arguments that are Python's: self or its gradient, of the shape before padding, and the padding. */
static int read_padding(int ndim, const npy_intp *shape, npy_intp item, PyObject *given, int mirrored, Padding *p)
{
    PyObject *items = PyTuple_Check(given) || PyList_Check(given) ? PySequence_Fast(given, "") : NULL;
    Py_ssize_t count = items == NULL ? 1 : PySequence_Fast_GET_SIZE(items);
    if (items == NULL || count % 2 || count / 2 > ndim || ndim > MAX_DIMS) {
        Py_XDECREF(items);
        return 0;
    }
    p->ndim = ndim;
    p->padded = 0;
    p->mirrored = mirrored;
    int fits = 1;
    for (int d = 0; d < ndim; d++) {
        Py_ssize_t before = 0, after = 0, at = 2 * (ndim - 1 - d);
        if (at < count) {
            fits &= as_index(PySequence_Fast_GET_ITEM(items, at), &before) && as_index(PySequence_Fast_GET_ITEM(items, at + 1), &after);
        }
        p->size[d] = shape[d];
        p->before[d] = before;
        fits &= shape[d] > 0 && before < NPY_MAX_INT32 && before > -NPY_MAX_INT32 && after < NPY_MAX_INT32 && after > -NPY_MAX_INT32;
        fits &= !mirrored || (before < shape[d] && after < shape[d]);
        p->wide[d] = shape[d] + before + after;
        fits &= p->wide[d] > 0;
        if (before || after) {
            p->padded = d + 1;
        }
    }
    Py_DECREF(items);
    npy_intp step = item, wide = item;
    p->block = item;
    for (int d = ndim - 1; d >= 0; d--) {
        p->step[d] = step;
        p->wide_step[d] = wide;
        step *= p->size[d];
        wide *= p->wide[d];
        if (d + 1 == p->padded) {
            p->block = p->step[d];
        }
    }
    return fits && p->padded > 0;
}

static void fill_padded(const Padding *p, int d, const char *x, char *out)
{
    if (d + 1 < p->padded) {
        for (npy_intp i = 0; i < p->wide[d]; i++) {
            fill_padded(p, d + 1, x + source_of(p, d, i) * p->step[d], out + i * p->wide_step[d]);
        }
        return;
    }
    npy_intp first = p->before[d] > 0 ? p->before[d] : 0, last = p->before[d] + p->size[d];
    last = last > p->wide[d] ? p->wide[d] : last;
    first = first > p->wide[d] ? p->wide[d] : first;
    if (last > first) {
        memcpy(out + first * p->block, x + (first - p->before[d]) * p->block, (size_t)((last - first) * p->block));
    }
    else {
        last = first;
    }
    for (npy_intp i = 0; i < p->wide[d]; i++) {
        if (i == first) {
            i = last;
            if (i == p->wide[d]) {
                break;
            }
        }
        const char *from = x + source_of(p, d, i) * p->block;
        if (p->block == 4) {
            memcpy(out + i * 4, from, 4);
        }
        else if (p->block == 8) {
            memcpy(out + i * 8, from, 8);
        }
        else {
            memcpy(out + i * p->block, from, (size_t)p->block);
        }
    }
}

static PyObject *padded(PyObject *const *args, int mirrored)
{
    Padding p;
    PyArrayObject *self = (PyArrayObject *)args[0];
    if (!is_array(args[0]) || PyArray_NDIM(self) > MAX_DIMS || PyDataType_REFCHK(PyArray_DESCR(self)) ||
        !read_padding(PyArray_NDIM(self), PyArray_DIMS(self), PyArray_ITEMSIZE(self), args[1], mirrored, &p)) {
        return NULL;
    }
    PyArrayObject *x = contiguous_of(self);
    PyObject *out = x == NULL ? NULL : new_array(p.ndim, p.wide, PyArray_DESCR(x));
    if (out != NULL) {
        const char *from = PyArray_BYTES(x);
        char *to = PyArray_BYTES((PyArrayObject *)out);
        PyThreadState *thread = PyArray_SIZE((PyArrayObject *)out) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        fill_padded(&p, 0, from, to);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(x);
    return out;
}

/* Each element's gradient goes to where it came from. */
#define GATHER(name, T)                                                                                                                    \
    static void name(const Padding *p, int d, const char *grad, char *out)                                                                 \
    {                                                                                                                                      \
        const npy_intp count = p->block / (npy_intp)sizeof(T);                                                                             \
        for (npy_intp i = 0; i < p->wide[d]; i++) {                                                                                        \
            npy_intp at = source_of(p, d, i);                                                                                              \
            if (d + 1 < p->padded) {                                                                                                       \
                name(p, d + 1, grad + i * p->wide_step[d], out + at * p->step[d]);                                                         \
                continue;                                                                                                                  \
            }                                                                                                                              \
            const T *from = (const T *)(grad + i * p->block);                                                                              \
            T *to = (T *)(out + at * p->block);                                                                                            \
            for (npy_intp k = 0; k < count; k++) {                                                                                         \
                to[k] += from[k];                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

GATHER(gather_float, float)
GATHER(gather_double, double)

/* grad_output, self, padding */
static PyObject *padded_backward(PyObject *const *args, int mirrored)
{
    Padding p;
    int kind = kind_of(args[0]);
    PyArrayObject *grad = (PyArrayObject *)args[0], *self = (PyArrayObject *)args[1];
    if (!is_float_kind(kind) || !is_array(args[1]) || PyArray_NDIM(grad) != PyArray_NDIM(self) ||
        !read_padding(PyArray_NDIM(self), PyArray_DIMS(self), PyArray_ITEMSIZE(grad), args[2], mirrored, &p) ||
        !PyArray_CompareLists(PyArray_DIMS(grad), p.wide, p.ndim)) {
        return NULL;
    }
    PyArrayObject *from = contiguous_of(grad);
    PyObject *out = from == NULL ? NULL : new_array(p.ndim, p.size, PyArray_DESCR(grad));
    if (out != NULL) {
        const char *x = PyArray_BYTES(from);
        char *to = PyArray_BYTES((PyArrayObject *)out);
        PyThreadState *thread = PyArray_SIZE(from) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        memset(to, 0, (size_t)PyArray_NBYTES((PyArrayObject *)out));
        (kind == KIND_FLOAT ? gather_float : gather_double)(&p, 0, x, to);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(from);
    return out;
}

static PyObject *reflection_kernel(PyObject *const *args)
{
    return padded(args, 1);
}

static PyObject *replication_kernel(PyObject *const *args)
{
    return padded(args, 0);
}

static PyObject *reflection_backward_kernel(PyObject *const *args)
{
    return padded_backward(args, 1);
}

static PyObject *replication_backward_kernel(PyObject *const *args)
{
    return padded_backward(args, 0);
}

const KernelEntry pad_kernels[] = {
    {"shape.reflection_pad", reflection_kernel},
    {"shape.replication_pad", replication_kernel},
    {"shape.reflection_pad_backward", reflection_backward_kernel},
    {"shape.replication_pad_backward", replication_backward_kernel},
    {NULL, NULL},
};
