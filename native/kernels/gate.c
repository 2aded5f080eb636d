/* Halves of an array, one of which lets through of the other what its logistic function says: by the loops of operators, in blocks that stay in the
 * first cache. */
#include "blocks.h"
#include "kinds.h"

static BlockLoop loop_named(const char *name, int width)
{
    for (int i = 0; i < block_count; i++) {
        if (strcmp(block_entries[i].name, name) == 0) {
            return block_loop(i, width, 0);
        }
    }
    return NULL;
}

/* Rows of `half` elements of each half, one behind the other. */
typedef struct {
    BlockLoop sigmoid, multiply, slope;
    npy_intp half, item;
    const char *x, *grad; /* the latter NULL forward */
    char *out;
} Gate;

static void some_rows(void *work, npy_intp begin, npy_intp end)
{
    const Gate *all = work;
    double gate[BLOCK];
    for (npy_intp row = begin; row < end; row++) {
        const npy_intp bytes = all->half * all->item;
        const char *first = all->x + 2 * row * bytes;
        for (npy_intp i = 0; i < all->half; i += BLOCK, first += BLOCK * all->item) {
            const npy_intp n = all->half - i < BLOCK ? all->half - i : BLOCK, at = row * bytes + i * all->item;
            all->sigmoid((const void *const[]){first + bytes}, gate, n);
            if (all->grad == NULL) {
                all->multiply((const void *const[]){first, gate}, all->out + at, n);
                continue;
            }
            char *to = all->out + 2 * row * bytes + i * all->item, *second = to + bytes;
            all->multiply((const void *const[]){all->grad + at, gate}, to, n);
            all->multiply((const void *const[]){all->grad + at, first}, second, n);
            all->slope((const void *const[]){second, gate}, second, n);
        }
    }
}

static PyObject *gated(PyObject *grad, PyObject *object, PyObject *dim)
{
    PyArrayObject *x = (PyArrayObject *)object;
    const int width = dense_width(object), at = width ? as_dim(dim, PyArray_NDIM(x)) : -1;
    if (at < 0 || PyArray_DIM(x, at) % 2 || !PyArray_SIZE(x)) {
        return NULL;
    }
    npy_intp dims[MAX_DIMS], half = 1, rows = 1;
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        dims[d] = PyArray_DIM(x, d) / (d == at ? 2 : 1);
        *(d < at ? &rows : &half) *= dims[d];
    }
    if (grad != NULL && (dense_width(grad) != width || PyArray_NDIM((PyArrayObject *)grad) != PyArray_NDIM(x) ||
                         !PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)grad), dims, PyArray_NDIM(x)))) {
        return NULL;
    }
    Gate all = {loop_named("loop_sigmoid", width), loop_named("loop_mul_Tensor", width), loop_named("loop_sigmoid_backward", width), half, width,
                PyArray_BYTES(x), grad == NULL ? NULL : PyArray_BYTES((PyArrayObject *)grad), NULL};
    PyObject *out = all.sigmoid == NULL || all.multiply == NULL || all.slope == NULL ? NULL
                    : grad == NULL                                                   ? new_array(PyArray_NDIM(x), dims, PyArray_DESCR(x))
                                                                                     : new_like(x);
    if (out != NULL) {
        all.out = PyArray_BYTES((PyArrayObject *)out);
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        in_parts(some_rows, &all, rows, grain_of(8 * half));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

/* glu(self, dim) */
static PyObject *glu_kernel(PyObject *const *args)
{
    return gated(NULL, args[0], args[1]);
}

/* glu_backward(grad_output, self, dim) */
static PyObject *glu_backward_kernel(PyObject *const *args)
{
    return gated(args[0], args[1], args[2]);
}

const KernelEntry gate_kernels[] = {
    {"nn.glu", glu_kernel, HALVES},
    {"nn.glu_backward", glu_backward_kernel, HALVES},
    {NULL, NULL},
};
