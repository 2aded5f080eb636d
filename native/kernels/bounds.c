/* Integers between two bounds, and their signs: numpy takes ten times as long where a bound is a number. */
#include "kinds.h"
#include "../runtime/parts.h"

#define LOOPS "bounds_loops.h"
#include "integer_variants.h"

typedef void (*Bound)(const void *from, void *to, npy_intp n, npy_int64 low, npy_int64 high);

#define OF_KINDS(name)                                                                                                                     \
    {                                                                                                                                      \
        [KIND_INT64] = INTEGER_ROW(name, int64), [KIND_INT32] = INTEGER_ROW(name, int32), [KIND_INT16] = INTEGER_ROW(name, int16),         \
        [KIND_INT8] = INTEGER_ROW(name, int8), [KIND_UINT8] = INTEGER_ROW(name, uint8)                                                     \
    }
static const Bound bounds[KINDS][3] = OF_KINDS(bound), signs[KINDS][3] = OF_KINDS(sign);

static const npy_int64 least_of[KINDS] = {[KIND_INT64] = NPY_MIN_INT64, [KIND_INT32] = NPY_MIN_INT32, [KIND_INT16] = NPY_MIN_INT16, [KIND_INT8] = NPY_MIN_INT8};
static const npy_int64 most_of[KINDS] = {
    [KIND_INT64] = NPY_MAX_INT64, [KIND_INT32] = NPY_MAX_INT32, [KIND_INT16] = NPY_MAX_INT16, [KIND_INT8] = NPY_MAX_INT8, [KIND_UINT8] = NPY_MAX_UINT8};

typedef struct {
    Bound run;
    const char *x;
    char *out;
    npy_intp item;
    npy_int64 low, high;
} Bounding;

static void bound_part(void *work, npy_intp begin, npy_intp end)
{
    const Bounding *all = work;
    all->run(all->x + begin * all->item, all->out + begin * all->item, end - begin, all->low, all->high);
}

/* A bound: None (what stands there stays), an integer, or an array of the kind without dimensions. 0 for all else, and for what the kind does not hold. */
static int read_bound(PyObject *object, int kind, npy_int64 *value)
{
    if (object == Py_None) {
        return 1;
    }
    if (PyLong_Check(object)) {
        int overflow;
        *value = PyLong_AsLongLongAndOverflow(object, &overflow);
        return !overflow && *value >= least_of[kind] && *value <= most_of[kind];
    }
    if (kind_of(object) != kind || PyArray_NDIM((PyArrayObject *)object) != 0) {
        return 0;
    }
    const void *data = PyArray_DATA((PyArrayObject *)object);
    switch (kind) {
    case KIND_INT64:
        *value = *(const npy_int64 *)data;
        break;
    case KIND_INT32:
        *value = *(const npy_int32 *)data;
        break;
    case KIND_INT16:
        *value = *(const npy_int16 *)data;
        break;
    case KIND_INT8:
        *value = *(const npy_int8 *)data;
        break;
    default:
        *value = *(const npy_uint8 *)data;
    }
    return 1;
}

/* `out` may be self. */
static PyObject *bounded(const Bound (*table)[3], PyObject *self, PyObject *low, PyObject *high, PyObject *target)
{
    const int kind = kind_of(self);
    if (kind < KIND_INT64 || kind > KIND_UINT8) {
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)self, *given = target == Py_None ? NULL : (PyArrayObject *)target;
    npy_int64 least = least_of[kind], most = most_of[kind];
    if (!read_bound(low, kind, &least) || !read_bound(high, kind, &most) || !is_contiguous(x)) {
        return NULL;
    }
    if (given != NULL && given != x &&
        (kind_of(target) != kind || !is_contiguous(given) || !PyArray_SAMESHAPE(given, x) || may_overlap(given, x))) {
        return NULL;
    }
    if (given != NULL && !PyArray_ISWRITEABLE(given)) {
        return NULL;
    }
    PyObject *made = given == NULL ? new_like(x) : Py_NewRef(target);
    if (made == NULL) {
        return NULL;
    }
    const npy_intp n = PyArray_SIZE(x);
    Bounding all = {table[kind][S.vectors], PyArray_BYTES(x), PyArray_BYTES((PyArrayObject *)made), PyArray_ITEMSIZE(x), least, most};
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    in_parts(bound_part, &all, n, grain_of(1));
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return made;
}

/* self, low, high, out */
static PyObject *clamp_kernel(PyObject *const *args)
{
    return bounded(bounds, args[0], args[1], args[2], args[3]);
}

/* self, low, out */
static PyObject *clamp_min_kernel(PyObject *const *args)
{
    return bounded(bounds, args[0], args[1], Py_None, args[2]);
}

/* self, high, out */
static PyObject *clamp_max_kernel(PyObject *const *args)
{
    return bounded(bounds, args[0], Py_None, args[1], args[2]);
}

/* self, out */
static PyObject *relu_kernel(PyObject *const *args)
{
    PyObject *zero = PyLong_FromLong(0);
    PyObject *made = zero == NULL ? NULL : bounded(bounds, args[0], zero, Py_None, args[1]);
    Py_XDECREF(zero);
    return made;
}

/* self, out */
static PyObject *sign_kernel(PyObject *const *args)
{
    return bounded(signs, args[0], Py_None, Py_None, args[1]);
}

const KernelEntry bound_kernels[] = {
    {"pointwise.clamp", clamp_kernel},
    {"pointwise.clamp_min", clamp_min_kernel},
    {"pointwise.clamp_max", clamp_max_kernel},
    {"pointwise.relu", relu_kernel},
    {"pointwise.sign", sign_kernel},
    {NULL, NULL},
};
