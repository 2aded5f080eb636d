/* Scaled dot product attention of few queries, as models have them that write one word after the other. Larger ones are left to the BLAS. */
#include "native.h"
#include <math.h>

#define SMALL_ATTENTION 262144 /* multiplications of the scores up to which the loop serves */
#define SMALL_QUERIES 16

#define LOOPS "attention_loops.h"
#include "variants.h"

/* Whether an array has four dimensions, of which the last is dense, and is aligned; 4 or 8 then. */
static int head_width(PyObject *object)
{
    PyArrayObject *array = (PyArrayObject *)object;
    int width = is_array(object) ? float_width(array) : 0;
    if (!width || PyArray_NDIM(array) != 4 || !(PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED) || PyArray_SIZE(array) == 0) {
        return 0;
    }
    for (int d = 0; d < 4; d++) {
        if (PyArray_STRIDE(array, d) % width) {
            return 0;
        }
    }
    return PyArray_DIM(array, 3) == 1 || PyArray_STRIDE(array, 3) == width ? width : 0;
}

typedef struct {
    const char *data;
    npy_intp steps[4]; /* in bytes; 0 where it is broadcast */
    int is_bool;
} Mask;

/* 0 to decline. */
static int read_mask(PyObject *object, const npy_intp *dims, int width, Mask *mask)
{
    mask->data = NULL;
    if (object == Py_None) {
        return 1;
    }
    if (!is_array(object)) {
        return 0;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    int ndim = PyArray_NDIM(array);
    mask->is_bool = PyArray_DESCR(array) == S.descr_bool;
    if (ndim > 4 || (!mask->is_bool && float_width(array) != width) || !(PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED)) {
        return 0;
    }
    npy_intp item = PyArray_ITEMSIZE(array);
    for (int d = 0; d < 4; d++) {
        int at = d - (4 - ndim);
        npy_intp n = at < 0 ? 1 : PyArray_DIM(array, at);
        if (n != 1 && n != dims[d]) {
            return 0;
        }
        mask->steps[d] = n == 1 ? 0 : PyArray_STRIDE(array, at);
        if (mask->steps[d] % item) {
            return 0;
        }
    }
    mask->data = PyArray_BYTES(array);
    return 1;
}

/* query, key, value, dropout_p, is_causal, attn_mask, scale. */
static PyObject *flash_attention_kernel(PyObject *const *args)
{
    PyArrayObject *q = (PyArrayObject *)args[0], *k = (PyArrayObject *)args[1], *v = (PyArrayObject *)args[2];
    int width = head_width(args[0]);
    if (!width || head_width(args[1]) != width || head_width(args[2]) != width || !PyBool_Check(args[4])) {
        return NULL;
    }
    npy_intp batch = PyArray_DIM(q, 0), heads = PyArray_DIM(q, 1), queries = PyArray_DIM(q, 2), deep = PyArray_DIM(q, 3);
    npy_intp keys = PyArray_DIM(k, 2);
    for (int d = 0; d < 4; d++) {
        if (PyArray_DIM(k, d) != PyArray_DIM(v, d) || (d != 2 && PyArray_DIM(k, d) != PyArray_DIM(q, d))) {
            return NULL;
        }
    }
    if (queries > SMALL_QUERIES || batch * heads * queries * keys * deep > SMALL_ATTENTION) {
        return NULL;
    }
    double scale = 1 / sqrt((double)deep);
    if (args[6] != Py_None) {
        if (!PyFloat_CheckExact(args[6])) {
            return NULL;
        }
        scale = PyFloat_AS_DOUBLE(args[6]);
    }
    const npy_intp dims[4] = {batch, heads, queries, keys};
    Mask mask = {0};
    if (!read_mask(args[5], dims, width, &mask)) {
        return NULL;
    }
    /* In the order of the query, unless that is expanded: its dimensions of no stride would be the last ones of the memory. */
    NPY_ORDER order = NPY_KEEPORDER;
    for (int d = 0; d < 3; d++) {
        order = PyArray_DIM(q, d) > 1 && PyArray_STRIDE(q, d) == 0 ? NPY_CORDER : order;
    }
    PyObject *out = PyArray_NewLikeArray(q, order, NULL, 0), *logsum = new_array(3, dims, PyArray_DESCR(q));
    void *scratch = PyMem_RawMalloc((size_t)(keys * width));
    PyObject *both = out == NULL || logsum == NULL || scratch == NULL ? NULL : PyTuple_Pack(2, out, logsum);
    if (both == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        goto done;
    }
    PyArrayObject *o = (PyArrayObject *)out;
    char *sums = PyArray_BYTES((PyArrayObject *)logsum);
    for (npy_intp b = 0; b < batch; b++) {
        for (npy_intp h = 0; h < heads; h++) {
            const char *of_k = PyArray_BYTES(k) + b * PyArray_STRIDE(k, 0) + h * PyArray_STRIDE(k, 1);
            const char *of_v = PyArray_BYTES(v) + b * PyArray_STRIDE(v, 0) + h * PyArray_STRIDE(v, 1);
            for (npy_intp r = 0; r < queries; r++, sums += width) {
                npy_intp reach = args[4] == Py_True && r + 1 < keys ? r + 1 : keys;
                const char *seen = mask.data;
                if (seen != NULL) {
                    seen += b * mask.steps[0] + h * mask.steps[1] + r * mask.steps[2];
                }
                npy_intp step = seen == NULL ? 0 : mask.steps[3] / (mask.is_bool ? 1 : width);
                CHOOSE(attend, width, PyArray_BYTES(q) + b * PyArray_STRIDE(q, 0) + h * PyArray_STRIDE(q, 1) + r * PyArray_STRIDE(q, 2), of_k,
                       PyArray_STRIDE(k, 2) / width, of_v, PyArray_STRIDE(v, 2) / width, seen, step, mask.is_bool,
                       PyArray_BYTES(o) + b * PyArray_STRIDE(o, 0) + h * PyArray_STRIDE(o, 1) + r * PyArray_STRIDE(o, 2), sums, scratch, reach,
                       deep, scale);
            }
        }
    }
done:
    PyMem_RawFree(scratch);
    Py_XDECREF(out);
    Py_XDECREF(logsum);
    return both;
}

const KernelEntry attention_kernels[] = {
    {"attention.flash_attention", flash_attention_kernel},
    {NULL, NULL},
};
