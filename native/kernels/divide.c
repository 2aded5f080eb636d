/* Kernels of division with a remainder, of integers and floats. Python refuses an integer division by zero in PyTorch's words. */
#include "../runtime/plan.h"

#include <math.h>

#include "blocks.h"

enum { FLOORED, REMAINDER, TRUNCATED_REST };

/* Note [Divisions by floats]. Of whole numbers below 2^52 the quotient in double precision is right or rounded up to the whole number above, which the sign of the
 * rest tells; processors divide eight of these in the time of one or two integers. */
#define SMALL ((npy_int64)1 << 52)
#define TOGETHER 512

#if HAS_WIDE
#define BY_FLOATS(bits)                                                                                                                    \
    static inline __attribute__((always_inline)) WIDEST int by_floats_##bits(const npy_int##bits *a, const npy_int##bits *b, npy_intp step, \
                                                                             npy_int##bits *out, npy_intp n, int what)                     \
    {                                                                                                                                      \
        int large = 0;                                                                                                                     \
        for (npy_intp i = 0; bits == 64 && i < n; i++) {                                                                                   \
            large |= ((npy_uint64)a[i] + SMALL > 2 * (npy_uint64)SMALL) | ((npy_uint64)b[i * step] + SMALL > 2 * (npy_uint64)SMALL);       \
        }                                                                                                                                  \
        for (npy_intp i = 0; !large && i < n; i++) {                                                                                       \
            const npy_int64 dividend = a[i], divisor = b[i * step];                                                                        \
            npy_int64 quotient = (npy_int64)__builtin_floor((double)dividend / (double)divisor), rest = dividend - quotient * divisor;     \
            const npy_int64 above = -(npy_int64)((rest != 0) & ((rest ^ divisor) < 0));                                                    \
            quotient += above;                                                                                                             \
            rest += divisor & above;                                                                                                       \
            const npy_int64 towards_zero = rest - (divisor & -(npy_int64)((rest != 0) & ((dividend ^ divisor) < 0)));                      \
            out[i] = (npy_int##bits)(what == FLOORED ? quotient : what == REMAINDER ? rest : towards_zero);                                \
        }                                                                                                                                  \
        return !large;                                                                                                                     \
    }
#define QUICK(name, bits, what)                                                                                                            \
    static WIDEST int name##_quick_##bits(const char *a, const char *b, npy_intp step, char *out, npy_intp n)                              \
    {                                                                                                                                      \
        const npy_int##bits *right = (const npy_int##bits *)b;                                                                             \
        return step ? by_floats_##bits((const npy_int##bits *)a, right, 1, (npy_int##bits *)out, n, what)                                  \
                    : by_floats_##bits((const npy_int##bits *)a, right, 0, (npy_int##bits *)out, n, what);                                 \
    }
#else
#define BY_FLOATS(bits)
#define QUICK(name, bits, what)                                                                                                            \
    static int name##_quick_##bits(const char *a, const char *b, npy_intp step, char *out, npy_intp n)                                     \
    {                                                                                                                                      \
        (void)a, (void)b, (void)step, (void)out, (void)n;                                                                                  \
        return 0;                                                                                                                          \
    }
#endif

/* `result` of a and b; the lowest number divided by -1 has no place. Without branches on the elements, which nobody foresees. */
#define DIVISION(name, bits, what, result)                                                                                                 \
    QUICK(name, bits, what)                                                                                                                \
    static void name##_##bits(char **args, const npy_intp *n, const npy_intp *steps, void *data)                                           \
    {                                                                                                                                      \
        char *left = args[0], *right = args[1], *out = args[2];                                                                            \
        const npy_intp item = sizeof(npy_int##bits);                                                                                       \
        const int quick = S.vectors == 2 && *n >= 8 && steps[0] == item && steps[2] == item && (steps[1] == item || steps[1] == 0);        \
        (void)data;                                                                                                                        \
        for (npy_intp done = 0; done < *n;) {                                                                                              \
            npy_intp some = *n - done < TOGETHER ? *n - done : TOGETHER;                                                                   \
            done += some;                                                                                                                  \
            if (quick && name##_quick_##bits(left, right, steps[1], out, some)) {                                                          \
                left += some * steps[0], right += some * steps[1], out += some * steps[2];                                                 \
                continue;                                                                                                                  \
            }                                                                                                                              \
            for (; some > 0; some--, left += steps[0], right += steps[1], out += steps[2]) {                                               \
                const npy_int##bits a = *(npy_int##bits *)left, b = *(npy_int##bits *)right;                                               \
                if (b == -1) {                                                                                                             \
                    *(npy_int##bits *)out = what == FLOORED ? (npy_int##bits)(0 - (npy_uint##bits)a) : 0;                                  \
                    continue;                                                                                                              \
                }                                                                                                                          \
                const npy_int##bits quotient = a / b, rest = a % b;                                                                        \
                const npy_int##bits crossed = (npy_int##bits)-((rest != 0) & ((rest ^ b) < 0));                                            \
                *(npy_int##bits *)out = (npy_int##bits)(result);                                                                           \
                (void)quotient, (void)crossed;                                                                                             \
            }                                                                                                                              \
        }                                                                                                                                  \
    }
#define DIVISIONS(bits)                                                                                                                    \
    BY_FLOATS(bits)                                                                                                                        \
    DIVISION(floor_divide, bits, FLOORED, quotient + crossed)                                                                              \
    DIVISION(remainder, bits, REMAINDER, rest + (b & crossed))                                                                             \
    DIVISION(fmod, bits, TRUNCATED_REST, rest)

DIVISIONS(64)
DIVISIONS(32)

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
