/* Kernels of division with a remainder, of integers and floats. Python refuses an integer division by zero in PyTorch's words. */
#include "../runtime/plan.h"

#include <math.h>

#include "blocks.h"

#define DIVISION(bits)                                                                                                              \
    static void floor_divide_##bits(char **args, const npy_intp *n, const npy_intp *steps, void *data)                              \
    {                                                                                                                               \
        char *left = args[0], *right = args[1], *out = args[2];                                                                     \
        (void)data;                                                                                                                 \
        for (npy_intp i = 0; i < *n; i++, left += steps[0], right += steps[1], out += steps[2]) {                                   \
            npy_int##bits a = *(npy_int##bits *)left, b = *(npy_int##bits *)right;                                                  \
            if (b == -1) {                                                                                                          \
                *(npy_int##bits *)out = (npy_int##bits)(0 - (npy_uint##bits)a); /* the lowest number has no opposite */             \
                continue;                                                                                                           \
            }                                                                                                                       \
            npy_int##bits quotient = a / b;                                                                                         \
            *(npy_int##bits *)out = quotient - (a % b != 0 && (a < 0) != (b < 0));                                                  \
        }                                                                                                                           \
    }                                                                                                                               \
    static void remainder_##bits(char **args, const npy_intp *n, const npy_intp *steps, void *data)                                 \
    {                                                                                                                               \
        char *left = args[0], *right = args[1], *out = args[2];                                                                     \
        (void)data;                                                                                                                 \
        for (npy_intp i = 0; i < *n; i++, left += steps[0], right += steps[1], out += steps[2]) {                                   \
            npy_int##bits a = *(npy_int##bits *)left, b = *(npy_int##bits *)right;                                                  \
            npy_int##bits rest = b == -1 ? 0 : a % b;                                                                               \
            *(npy_int##bits *)out = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;                                           \
        }                                                                                                                           \
    }                                                                                                                               \
    static void fmod_##bits(char **args, const npy_intp *n, const npy_intp *steps, void *data)                                      \
    {                                                                                                                               \
        char *left = args[0], *right = args[1], *out = args[2];                                                                     \
        (void)data;                                                                                                                 \
        for (npy_intp i = 0; i < *n; i++, left += steps[0], right += steps[1], out += steps[2]) {                                   \
            npy_int##bits b = *(npy_int##bits *)right;                                                                              \
            *(npy_int##bits *)out = b == -1 ? 0 : *(npy_int##bits *)left % b;                                                       \
        }                                                                                                                           \
    }

DIVISION(64)
DIVISION(32)

#define LOOPS "modulo_loops.h"
#include "variants.h"

/* Whether an element is zero. */
static int has_zero(PyArrayObject *array, int bits)
{
    npy_intp n = PyArray_SIZE(array);
    const char *data = PyArray_BYTES(array);
    for (npy_intp i = 0; i < n; i++) {
        if (bits == 64 ? ((const npy_int64 *)data)[i] == 0 : ((const npy_int32 *)data)[i] == 0) {
            return 1;
        }
    }
    return 0;
}

/* (self, other, out): both of one type, the divisor of integers contiguous. Loops of int64, int32, float32 and float64. */
static PyObject *divide(PyObject *const *args, const PyUFuncGenericFunction *loops)
{
    if (!is_array(args[0]) || !is_array(args[1])) {
        return NULL;
    }
    PyArrayObject *operand[2] = {(PyArrayObject *)args[0], (PyArrayObject *)args[1]};
    int type = PyArray_DESCR(operand[0])->type_num, bits = type == NPY_INT64 ? 64 : type == NPY_INT32 ? 32 : 0, width = float_width(operand[0]);
    const PyUFuncGenericFunction run = bits ? loops[bits == 32] : width ? loops[width == 4 ? 2 : 3] : NULL;
    if (run == NULL || PyArray_DESCR(operand[1]) != PyArray_DESCR(operand[0]) || !PyArray_ISBEHAVED_RO(operand[0]) || !PyArray_ISBEHAVED_RO(operand[1]) ||
        (bits && (!is_contiguous(operand[1]) || has_zero(operand[1], bits)))) {
        return NULL;
    }
    npy_intp dims[MAX_DIMS];
    int ndim = PyArray_NDIM(operand[0]) > PyArray_NDIM(operand[1]) ? PyArray_NDIM(operand[0]) : PyArray_NDIM(operand[1]);
    if (ndim > MAX_DIMS) {
        return NULL;
    }
    for (int d = 0; d < ndim; d++) {
        dims[d] = 1;
        for (int k = 0; k < 2; k++) {
            int at = d - (ndim - PyArray_NDIM(operand[k]));
            npy_intp size = at < 0 ? 1 : PyArray_DIM(operand[k], at);
            if (size != 1 && dims[d] != 1 && size != dims[d]) {
                return NULL;
            }
            dims[d] = size == 1 ? dims[d] : size;
        }
    }
    PyArrayObject *out;
    if (args[2] == Py_None) {
        out = (PyArrayObject *)new_array(ndim, dims, PyArray_DESCR(operand[0]));
        if (out == NULL) {
            return NULL;
        }
    }
    else {
        out = (PyArrayObject *)args[2];
        if (!is_array(args[2]) || PyArray_DESCR(out) != PyArray_DESCR(operand[0]) || PyArray_NDIM(out) != ndim || !PyArray_ISBEHAVED(out) ||
            !PyArray_CompareLists(PyArray_DIMS(out), dims, ndim)) {
            return NULL;
        }
        for (int k = 0; k < 2; k++) {
            int same = PyArray_BYTES(operand[k]) == PyArray_BYTES(out) && PyArray_SAMESHAPE(operand[k], out) &&
                       PyArray_CompareLists(PyArray_STRIDES(operand[k]), PyArray_STRIDES(out), ndim);
            if (!same && arrays_meet(operand[k], out)) {
                return NULL;
            }
        }
        Py_INCREF((PyObject *)out);
    }
    const Loop loop = {run, NULL};
    iterate(&loop, 2, operand, out);
    return (PyObject *)out;
}

static PyObject *floor_divide_kernel(PyObject *const *args)
{
    return divide(args, (PyUFuncGenericFunction[]){floor_divide_64, floor_divide_32, CHOOSE32(floor_divide_run), CHOOSE64(floor_divide_run)});
}

static PyObject *remainder_kernel(PyObject *const *args)
{
    return divide(args, (PyUFuncGenericFunction[]){remainder_64, remainder_32, CHOOSE32(remainder_run), CHOOSE64(remainder_run)});
}

static PyObject *fmod_kernel(PyObject *const *args)
{
    return divide(args, (PyUFuncGenericFunction[]){fmod_64, fmod_32, CHOOSE32(fmod_run), CHOOSE64(fmod_run)});
}

/* Of floats alone: self, other, rounding_mode, out. */
static PyObject *div_mode_kernel(PyObject *const *args)
{
    if (!is_array(args[0]) || !float_width((PyArrayObject *)args[0]) || !PyUnicode_CheckExact(args[2]) || !PyUnicode_CompareWithASCIIString(args[2], "floor") == 0) {
        return NULL;
    }
    return floor_divide_kernel((PyObject *[]){args[0], args[1], args[3]});
}

const KernelEntry divide_kernels[] = {
    {"pointwise.floor_divide", floor_divide_kernel},
    {"pointwise.remainder", remainder_kernel},
    {"pointwise.fmod", fmod_kernel},
    {"pointwise.div_mode", div_mode_kernel},
    {NULL, NULL},
};
