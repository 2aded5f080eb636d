/* Integers between two bounds, and their signs: numpy takes ten times as long where a bound is a number. */
#include "kinds.h"
#include "../runtime/parts.h"

#define LOOPS "bounds_loops.h"
#include "integer_variants.h"

typedef void (*Bound)(const void *from, void *to, npy_intp n, const void *low, const void *high);

#define OF_KINDS(name)                                                                                                                     \
    {                                                                                                                                      \
        [KIND_INT64] = INTEGER_ROW(name, int64), [KIND_INT32] = INTEGER_ROW(name, int32), [KIND_INT16] = INTEGER_ROW(name, int16),         \
        [KIND_INT8] = INTEGER_ROW(name, int8), [KIND_UINT8] = INTEGER_ROW(name, uint8)                                                     \
    }
static const Bound bounds[KINDS][3] = OF_KINDS(bound), signs[KINDS][3] = OF_KINDS(sign);

typedef struct {
    Bound run;
    const char *x;
    char *out;
    npy_intp item;
    const void *low, *high;
} Bounding;

static void bound_part(void *work, npy_intp begin, npy_intp end)
{
    const Bounding *all = work;
    all->run(all->x + begin * all->item, all->out + begin * all->item, end - begin, all->low, all->high);
}

/* A bound: None, or an array of the kind without dimensions, as the road makes them of numbers. 0 for all else. */
static int read_bound(PyObject *object, int kind, const void **bound)
{
    if (object != Py_None && (kind_of(object) != kind || PyArray_NDIM((PyArrayObject *)object) != 0)) {
        return 0;
    }
    *bound = object == Py_None ? NULL : PyArray_DATA((PyArrayObject *)object);
    return 1;
}

/* `target` may be self, or None. */
static PyObject *bounded(const Bound (*table)[3], PyObject *self, const void *low, const void *high, PyObject *target)
{
    const int kind = kind_of(self);
    PyArrayObject *x = (PyArrayObject *)self, *given = (PyArrayObject *)target;
    if (!is_contiguous(x)) {
        return NULL;
    }
    if (target != Py_None && (kind_of(target) != kind || !is_contiguous(given) || !PyArray_SAMESHAPE(given, x) || !PyArray_ISWRITEABLE(given) ||
                              (given != x && may_overlap(given, x)))) {
        return NULL;
    }
    PyObject *made = target == Py_None ? new_like(x) : Py_NewRef(target);
    if (made == NULL) {
        return NULL;
    }
    const npy_intp n = PyArray_SIZE(x);
    Bounding all = {table[kind][S.vectors], PyArray_BYTES(x), PyArray_BYTES((PyArrayObject *)made), PyArray_ITEMSIZE(x), low, high};
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    in_parts(bound_part, &all, n, grain_of(1));
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return made;
}

static inline int is_integers(PyObject *self)
{
    const int kind = kind_of(self);
    return kind >= KIND_INT64 && kind <= KIND_UINT8;
}

static PyObject *clamped(PyObject *self, PyObject *low, PyObject *high, PyObject *target)
{
    const int kind = kind_of(self);
    const void *least, *most;
    return is_integers(self) && read_bound(low, kind, &least) && read_bound(high, kind, &most) ? bounded(bounds, self, least, most, target) : NULL;
}

/* self, low, high, out */
static PyObject *clamp_kernel(PyObject *const *args)
{
    return clamped(args[0], args[1], args[2], args[3]);
}

/* self, low, out */
static PyObject *clamp_min_kernel(PyObject *const *args)
{
    return clamped(args[0], args[1], Py_None, args[2]);
}

/* self, high, out */
static PyObject *clamp_max_kernel(PyObject *const *args)
{
    return clamped(args[0], Py_None, args[1], args[2]);
}

/* self, out */
static PyObject *relu_kernel(PyObject *const *args)
{
    static const npy_int64 zero = 0; /* of every kind */
    return is_integers(args[0]) ? bounded(bounds, args[0], &zero, NULL, args[1]) : NULL;
}

/* self, out */
static PyObject *sign_kernel(PyObject *const *args)
{
    return is_integers(args[0]) ? bounded(signs, args[0], NULL, NULL, args[1]) : NULL;
}

const KernelEntry bound_kernels[] = {
    {"kernels.clamp_Tensor", clamp_kernel},
    {"pointwise.clamp_min", clamp_min_kernel},
    {"pointwise.clamp_max", clamp_max_kernel},
    {"kernels.relu", relu_kernel},
    {"pointwise.sign", sign_kernel},
    {NULL, NULL},
};
