/* Shifts of integers, by a number or element by element. Those by less than nothing or by the whole width leave nothing, or the sign. */
#include "kinds.h"

#define LEFT(type, unsigned_type, bits, x, by) ((type)((by) < 0 || (by) >= (bits) ? 0 : (unsigned_type)((unsigned_type)(x) << (by))))
#define RIGHT(type, unsigned_type, bits, x, by) ((type)((by) < 0 || (by) >= (bits) ? (x) >> ((bits) - 1) : (x) >> (by)))
#define RIGHT_UNSIGNED(type, unsigned_type, bits, x, by) ((type)((by) >= (bits) ? 0 : (x) >> (by)))

/* The same of narrow types as a product, which vectors have of them too. */
#define LEFT_NARROW(type, unsigned_type, bits, x, by)                                                                                      \
    ((type)((unsigned_type)(x) * (unsigned)((by) < 0 || (by) >= (bits) ? 0 : (unsigned_type)(1u << (by)))))

/* By one number compilers make vectors of the loop, since what is said of the number leaves it. */
#define SHIFTED(type, unsigned_type, bits, shift)                                                                                          \
    if (!step) {                                                                                                                           \
        const type one = *(const type *)by;                                                                                                \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            ((type *)to)[i] = shift(type, unsigned_type, bits, ((const type *)from)[i], one);                                              \
        }                                                                                                                                  \
        break;                                                                                                                             \
    }                                                                                                                                      \
    for (npy_intp i = 0; i < n; i++) {                                                                                                     \
        ((type *)to)[i] = shift(type, unsigned_type, bits, ((const type *)from)[i], ((const type *)by)[i * step]);                         \
    }                                                                                                                                      \
    break

/* self, other, out */
static PyObject *shifted(PyObject *const *args, int left)
{
    int kind = kind_of(args[0]);
    PyArrayObject *x = (PyArrayObject *)args[0], *other = (PyArrayObject *)args[1];
    if (kind < KIND_INT64 || kind > KIND_UINT8 || kind_of(args[1]) != kind || !is_contiguous(x) || !is_contiguous(other)) {
        return NULL;
    }
    const int number = PyArray_NDIM(other) == 0;
    if (!number && !PyArray_SAMESHAPE(x, other)) {
        return NULL;
    }
    PyArrayObject *given = (PyArrayObject *)args[2];
    if (args[2] != Py_None && (kind_of(args[2]) != kind || !is_contiguous(given) || !PyArray_ISWRITEABLE(given) || !PyArray_SAMESHAPE(given, x))) {
        return NULL;
    }
    PyObject *made = args[2] == Py_None ? new_like(x) : Py_NewRef(args[2]);
    if (made == NULL) {
        return NULL;
    }
    const npy_intp n = PyArray_SIZE(x), step = !number;
    const void *from = PyArray_DATA(x), *by = PyArray_DATA(other);
    void *to = PyArray_DATA((PyArrayObject *)made);
    switch (kind * 2 + left) {
    case KIND_INT64 * 2:
        SHIFTED(npy_int64, npy_uint64, 64, RIGHT);
    case KIND_INT64 * 2 + 1:
        SHIFTED(npy_int64, npy_uint64, 64, LEFT);
    case KIND_INT32 * 2:
        SHIFTED(npy_int32, npy_uint32, 32, RIGHT);
    case KIND_INT32 * 2 + 1:
        SHIFTED(npy_int32, npy_uint32, 32, LEFT);
    case KIND_INT16 * 2:
        SHIFTED(npy_int16, npy_uint16, 16, RIGHT);
    case KIND_INT16 * 2 + 1:
        SHIFTED(npy_int16, npy_uint16, 16, LEFT_NARROW);
    case KIND_INT8 * 2:
        SHIFTED(npy_int8, npy_uint8, 8, RIGHT);
    case KIND_INT8 * 2 + 1:
        SHIFTED(npy_int8, npy_uint8, 8, LEFT_NARROW);
    case KIND_UINT8 * 2:
        SHIFTED(npy_uint8, npy_uint8, 8, RIGHT_UNSIGNED);
    default:
        SHIFTED(npy_uint8, npy_uint8, 8, LEFT_NARROW);
    }
    return made;
}

static PyObject *left_kernel(PyObject *const *args)
{
    return shifted(args, 1);
}

static PyObject *right_kernel(PyObject *const *args)
{
    return shifted(args, 0);
}

const KernelEntry shift_kernels[] = {
    {"pointwise.left_shift", left_kernel},
    {"pointwise.right_shift", right_kernel},
    {NULL, NULL},
};
