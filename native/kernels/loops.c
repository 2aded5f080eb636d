/* Pointwise operations by the loops of numpy's own ufuncs, without the ufunc machinery around them.
 *
 * A ufunc's table of loops is part of numpy's public interface (PyUFuncObject). The loops are numpy's vectorised ones, so that results are
 * numpy's to the last bit. Floating-point flags are not looked at: as in PyTorch, nothing warns of a division by zero.
 */
#include "../runtime/plan.h"
#include "waves.h"

int find_loops(PyObject *ufunc, int to_bool, Loop *loops)
{
    if (!PyObject_TypeCheck(ufunc, &PyUFunc_Type)) {
        return 0;
    }
    PyUFuncObject *table = (PyUFuncObject *)ufunc;
    if (table->nout != 1 || table->nin < 1 || table->nin > 2 || table->functions == NULL || table->core_enabled) {
        return 0;
    }
    const char wanted[2] = {NPY_FLOAT, NPY_DOUBLE};
    for (int kind = 0; kind < 2; kind++) {
        loops[kind].call = NULL;
        for (int i = 0; i < table->ntypes; i++) {
            const char *types = table->types + i * (table->nin + 1);
            int fits = types[0] == wanted[kind] && (table->nin == 1 || types[1] == wanted[kind]);
            if (fits && types[table->nin] == (to_bool ? NPY_BOOL : wanted[kind])) {
                loops[kind].call = table->functions[i];
                loops[kind].data = table->data == NULL ? NULL : (void *)table->data[i];
                break;
            }
        }
        if (loops[kind].call == NULL) {
            return 0;
        }
    }
    loops[1] = wave_loop(table->name, loops[1]);
    return 1;
}

typedef struct {
    const Loop *loop;
    char **args;
    const npy_intp *steps;
    int operands; /* and the result */
} LoopRun;

static void run_part(void *work, npy_intp begin, npy_intp end)
{
    const LoopRun *run = work;
    char *args[3];
    npy_intp count = end - begin;
    for (int k = 0; k < run->operands; k++) {
        args[k] = run->args[k] + begin * run->steps[k];
    }
    run->loop->call(args, &count, run->steps, run->loop->data);
}

static inline void run_loop(const Loop *loop, int operands, char **args, npy_intp count, const npy_intp *steps)
{
    if (count >= RELEASE_GIL) {
        LoopRun run = {loop, args, steps, operands};
        Py_BEGIN_ALLOW_THREADS
        in_parts(run_part, &run, count, PART_ELEMENTS);
        Py_END_ALLOW_THREADS
    }
    else {
        loop->call(args, &count, steps, loop->data);
    }
}

static inline PyObject *new_result(int ndim, const npy_intp *dims, PyArray_Descr *descr, int to_bool)
{
    return new_array(ndim, dims, to_bool ? S.descr_bool : descr);
}

PyObject *loop_unary(const Loop *loops, int to_bool, PyArrayObject *x)
{
    int width = float_width(x);
    npy_intp count = PyArray_SIZE(x);
    if (!width || !is_contiguous(x) || !count) {
        return NULL;
    }
    PyObject *out = new_result(PyArray_NDIM(x), PyArray_DIMS(x), PyArray_DESCR(x), to_bool);
    if (out == NULL) {
        return NULL;
    }
    char *args[2] = {PyArray_BYTES(x), PyArray_BYTES((PyArrayObject *)out)};
    npy_intp steps[2] = {width, to_bool ? 1 : width};
    run_loop(&loops[width == 8], 2, args, count, steps);
    return out;
}

/* The value of an exact int or float; 0 when it is something else or too large. */
static int read_number(PyObject *number, double *value)
{
    if (PyFloat_CheckExact(number)) {
        *value = PyFloat_AS_DOUBLE(number);
        return 1;
    }
    if (!PyLong_CheckExact(number)) {
        return 0;
    }
    *value = PyLong_AsDouble(number);
    if (*value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* Whether the memory of two dense arrays meets. */
static int overlaps(PyArrayObject *a, PyArrayObject *b)
{
    const char *from_a = PyArray_BYTES(a), *from_b = PyArray_BYTES(b);
    return from_a < from_b + PyArray_NBYTES(b) && from_b < from_a + PyArray_NBYTES(a);
}

int loop_inplace(const Loop *loops, PyArrayObject *target, PyArrayObject *other, PyObject *number)
{
    int width = float_width(target);
    npy_intp count = PyArray_SIZE(target);
    if (!width || !is_contiguous(target) || !PyArray_ISWRITEABLE(target) || !count) {
        return 0;
    }
    double value;
    float narrow;
    char *data = PyArray_BYTES(target);
    const Loop *loop = &loops[width == 8];
    if (other == NULL && number == NULL) {
        char *args[2] = {data, data};
        npy_intp steps[2] = {width, width};
        run_loop(loop, 2, args, count, steps);
        return 1;
    }
    char *args[3] = {data, NULL, data};
    npy_intp steps[3] = {width, 0, width};
    if (number != NULL) {
        if (!read_number(number, &value)) {
            return 0;
        }
        narrow = (float)value;
        args[1] = width == 8 ? (char *)&value : (char *)&narrow;
    }
    else {
        int same = PyArray_SAMESHAPE(target, other);
        if (PyArray_DESCR(other) != PyArray_DESCR(target) || !is_contiguous(other) || !(same || PyArray_NDIM(other) == 0)) {
            return 0;
        }
        if (overlaps(target, other) && !(same && PyArray_BYTES(other) == data)) {
            return 0;
        }
        args[1] = PyArray_BYTES(other);
        steps[1] = same ? width : 0;
    }
    run_loop(loop, 3, args, count, steps);
    return 1;
}

PyObject *loop_number(const Loop *loops, int to_bool, PyArrayObject *x, PyObject *number, int reflected)
{
    int width = float_width(x);
    npy_intp count = PyArray_SIZE(x);
    if (!width || !is_contiguous(x) || !count) {
        return NULL;
    }
    double value;
    if (!read_number(number, &value) || !has_plain_strides(x)) {
        return NULL;
    }
    PyObject *out = new_result(PyArray_NDIM(x), PyArray_DIMS(x), PyArray_DESCR(x), to_bool);
    if (out == NULL) {
        return NULL;
    }
    float narrow = (float)value;
    char *scalar = width == 8 ? (char *)&value : (char *)&narrow;
    char *result = PyArray_BYTES((PyArrayObject *)out);
    char *args[3] = {PyArray_BYTES(x), scalar, result};
    npy_intp steps[3] = {width, 0, to_bool ? 1 : width};
    if (reflected) {
        args[0] = scalar;
        args[1] = PyArray_BYTES(x);
        steps[0] = 0;
        steps[1] = width;
    }
    run_loop(&loops[width == 8], 3, args, count, steps);
    return out;
}

/* Operands of different shapes or a right one that is not contiguous. Declines where the result would not be contiguous. */
static PyObject *broadcast(const Loop *loop, int to_bool, int width, PyArrayObject *left, PyArrayObject *right)
{
    int ndim_l = PyArray_NDIM(left), ndim_r = PyArray_NDIM(right);
    int ndim = ndim_l > ndim_r ? ndim_l : ndim_r;
    if (ndim > MAX_DIMS || ndim == 0) {
        return NULL;
    }
    npy_intp dims[MAX_DIMS], step_l[MAX_DIMS], step_r[MAX_DIMS], at[MAX_DIMS];
    int stretched = 0;
    for (int d = 0; d < ndim; d++) {
        int from_l = d - (ndim - ndim_l), from_r = d - (ndim - ndim_r);
        npy_intp n_l = from_l < 0 ? 1 : PyArray_DIM(left, from_l), n_r = from_r < 0 ? 1 : PyArray_DIM(right, from_r);
        if (n_l != n_r && n_l != 1 && n_r != 1) {
            return NULL; /* the rule says so in PyTorch's words */
        }
        dims[d] = n_l == 1 ? n_r : n_l;
        step_l[d] = n_l == 1 ? 0 : PyArray_STRIDE(left, from_l);
        step_r[d] = n_r == 1 ? 0 : PyArray_STRIDE(right, from_r);
        stretched |= n_l == 1 && n_r != 1;
        at[d] = 0;
    }
    if ((PyArray_FLAGS(right) & NPY_ARRAY_ALIGNED) == 0 || (stretched && !is_contiguous(right))) {
        return NULL;
    }
    if (PyArray_MultiplyList(dims, ndim) >= RELEASE_GIL) {
        return NULL; /* by a plan, whose own loops read a repeated line once */
    }
    PyObject *out = new_result(ndim, dims, PyArray_DESCR(left), to_bool);
    if (out == NULL) {
        return NULL;
    }
    /* Leading dimensions whose elements follow each other in all operands become one with the last. */
    int inner = ndim - 1;
    npy_intp count = dims[inner];
    while (inner > 0 && step_l[inner - 1] == step_l[ndim - 1] * count && step_r[inner - 1] == step_r[ndim - 1] * count) {
        count *= dims[--inner];
    }
    npy_intp outer = 1;
    for (int d = 0; d < inner; d++) {
        outer *= dims[d];
    }
    npy_intp item = to_bool ? 1 : width;
    npy_intp steps[3] = {step_l[ndim - 1], step_r[ndim - 1], item};
    char *l = PyArray_BYTES(left), *r = PyArray_BYTES(right), *result = PyArray_BYTES((PyArrayObject *)out);
    for (npy_intp row = 0; row < outer; row++) {
        char *args[3] = {l, r, result};
        loop->call(args, &count, steps, loop->data);
        result += count * item;
        for (int d = inner - 1; d >= 0; d--) {
            l += step_l[d];
            r += step_r[d];
            if (++at[d] < dims[d]) {
                break;
            }
            l -= step_l[d] * dims[d];
            r -= step_r[d] * dims[d];
            at[d] = 0;
        }
    }
    return out;
}

PyObject *loop_binary(const Loop *loops, int to_bool, PyArrayObject *left, PyArrayObject *right)
{
    int width = float_width(left);
    if (!width || PyArray_DESCR(right) != PyArray_DESCR(left) || !is_contiguous(left)) {
        return NULL;
    }
    npy_intp count = PyArray_SIZE(left), other = PyArray_SIZE(right);
    if (!count || !other) {
        return NULL;
    }
    const Loop *loop = &loops[width == 8];
    int ndim = PyArray_NDIM(left);
    int scalar = PyArray_NDIM(right) == 0;
    if ((scalar && !has_plain_strides(left)) || (ndim == 0 && !has_plain_strides(right))) {
        return NULL;
    }
    if (!scalar && (!is_contiguous(right) || !PyArray_SAMESHAPE(left, right))) {
        return broadcast(loop, to_bool, width, left, right);
    }
    PyObject *out = new_result(ndim, PyArray_DIMS(left), PyArray_DESCR(left), to_bool);
    if (out == NULL) {
        return NULL;
    }
    char *args[3] = {PyArray_BYTES(left), PyArray_BYTES(right), PyArray_BYTES((PyArrayObject *)out)};
    npy_intp steps[3] = {width, scalar ? 0 : width, to_bool ? 1 : width};
    run_loop(loop, 3, args, count, steps);
    return out;
}
