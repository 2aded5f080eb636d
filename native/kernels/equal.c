/* Whether two arrays hold the same: `equal` of plain CPU tensors of one dtype, up to the first block that differs. */
#include "kinds.h"
#include "equal.h"

#define BLOCK 1024 /* elements that are compared without a look at the result */

typedef int (*Same)(const char *a, const char *b, npy_intp n);

#define SAME(name, T)                                                                                                                      \
    static int name(const char *first, const char *second, npy_intp n)                                                                     \
    {                                                                                                                                      \
        const T *a = (const T *)first, *b = (const T *)second;                                                                             \
        int same = 1;                                                                                                                      \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            same &= a[i] == b[i];                                                                                                          \
        }                                                                                                                                  \
        return same;                                                                                                                       \
    }

SAME(same1, npy_uint8)
SAME(same2, npy_uint16)
SAME(same4, npy_uint32)
SAME(same8, npy_uint64)
SAME(same_float, float)
SAME(same_double, double)

/* Half types by their bits: zeros of both signs are equal, and what is above `infinity` is NaN. */
static inline int same_half(const npy_uint16 *a, const npy_uint16 *b, npy_intp n, unsigned infinity)
{
    int same = 1;
    for (npy_intp i = 0; i < n; i++) {
        unsigned x = a[i] & 0x7fffu;
        same &= ((a[i] == b[i]) & (x <= infinity)) | (((a[i] | b[i]) & 0x7fff) == 0);
    }
    return same;
}

static int same_float16(const char *a, const char *b, npy_intp n)
{
    return same_half((const npy_uint16 *)a, (const npy_uint16 *)b, n, 0x7c00u);
}

static int same_bfloat16(const char *a, const char *b, npy_intp n)
{
    return same_half((const npy_uint16 *)a, (const npy_uint16 *)b, n, 0x7f80u);
}

static Same same_of(PyArray_Descr *descr)
{
    if (descr == S.descr_bfloat16) {
        return same_bfloat16;
    }
    switch (descr->type_num) {
    case NPY_FLOAT:
        return same_float;
    case NPY_DOUBLE:
        return same_double;
    case NPY_HALF:
        return same_float16;
    case NPY_BOOL:
    case NPY_INT8:
    case NPY_UINT8:
        return same1;
    case NPY_INT16:
    case NPY_UINT16:
        return same2;
    case NPY_INT32:
    case NPY_UINT32:
        return same4;
    case NPY_INT64:
    case NPY_UINT64:
        return same8;
    default:
        return NULL;
    }
}

static int all_same(Same same, const char *a, const char *b, npy_intp n, npy_intp item)
{
    for (npy_intp start = 0; start < n; start += BLOCK) {
        npy_intp count = n - start < BLOCK ? n - start : BLOCK;
        if (!same(a + start * item, b + start * item, count)) {
            return 0;
        }
    }
    return 1;
}

int arrays_equal(PyArrayObject *a, PyArrayObject *b)
{
    Same same = is_movable(a) && is_movable(b) && same_kind(a, b) ? same_of(PyArray_DESCR(a)) : NULL;
    if (same == NULL) {
        return -1;
    }
    if (!PyArray_SAMESHAPE(a, b)) {
        return 0;
    }
    PyArrayObject *one = contiguous_of(a), *other = one == NULL ? NULL : contiguous_of(b);
    int equal = -1;
    if (other != NULL) {
        npy_intp n = PyArray_SIZE(a);
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        equal = all_same(same, PyArray_BYTES(one), PyArray_BYTES(other), n, PyArray_ITEMSIZE(a));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF((PyObject *)one);
    Py_XDECREF((PyObject *)other);
    return equal;
}
