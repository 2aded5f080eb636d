/* What half types are is told by their bits: without the sign, those of NaN are above those of infinity, and below these are those of the largest number. */
#include "move.h"

/* self, nan, posinf, neginf, out: 0 and the largest numbers, where nothing else is given. */
static PyObject *nan_to_num_kernel(PyObject *const *args)
{
    PyArrayObject *x = movable(args[0]), *out = args[4] == Py_None ? NULL : movable(args[4]);
    const int bfloat = x != NULL && PyArray_DESCR(x) == S.descr_bfloat16;
    if (x == NULL || (!bfloat && PyArray_TYPE(x) != NPY_HALF) || !is_contiguous(x) || !PyArray_ISALIGNED(x) || args[1] != Py_None || args[2] != Py_None ||
        args[3] != Py_None) {
        return NULL;
    }
    if (args[4] != Py_None && (out == NULL || !same_kind(out, x) || !is_contiguous(out) || !PyArray_ISBEHAVED(out) || !PyArray_SAMESHAPE(out, x) ||
                               (out != x && may_overlap(out, x)))) {
        return NULL;
    }
    PyObject *made = out == NULL ? new_like(x) : Py_NewRef(args[4]);
    if (made == NULL) {
        return NULL;
    }
    const npy_int16 infinity = bfloat ? 0x7F80 : 0x7C00;
    const npy_int16 *from = PyArray_DATA(x);
    npy_int16 *to = PyArray_DATA((PyArrayObject *)made);
    const npy_intp n = PyArray_SIZE(x);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; i < n; i++) {
        const npy_int16 bits = from[i], magnitude = bits & 0x7FFF;
        const npy_int16 number = (npy_int16)(bits - (magnitude == infinity));
        to[i] = magnitude > infinity ? 0 : number;
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return made;
}

const KernelEntry half_kernels[] = {
    {"pointwise.nan_to_num", nan_to_num_kernel},
    {NULL, NULL},
};
