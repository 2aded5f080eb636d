/* Slabs: a pointwise call whose operands are cast, part by part, so that what is cast never leaves the cache. */
#include "plan.h"
#include "../kernels/move.h"

#define PYTHON_SLAB 131072 /* elements that are worth a call of a kernel in Python */

int has_slabs(const Path *path, const Plan *plan)
{
    return (path->pointwise || plan->blocked != NULL) && path->mutates < 0 && plan->how == PLAN_ONE && plan->compute != NULL && !plan->result[0].unknown && strpbrk(path->kinds, "Vv") == NULL;
}

/* The part of an operand that a slab of the result is made of: from `first` on along dimension `at`, one place of those before it. */
static PyObject *slab_of(PyArrayObject *array, int ndim, int at, const npy_intp *place, npy_intp first, npy_intp length)
{
    const int lacks = ndim - PyArray_NDIM(array);
    char *data = PyArray_BYTES(array);
    npy_intp dims[MAX_DIMS], strides[MAX_DIMS];
    int count = 0;
    for (int d = lacks < 0 ? 0 : lacks; d < ndim; d++) {
        npy_intp size = PyArray_DIM(array, d - lacks), stride = size == 1 ? 0 : PyArray_STRIDE(array, d - lacks);
        data += stride * (d < at ? place[d] : d == at ? first : 0);
        if (d >= at) {
            dims[count] = d == at && size != 1 ? length : size;
            strides[count++] = stride;
        }
    }
    return new_view(array, count, dims, strides, data);
}

#define CHUNK 1024 /* elements whose casts fit the first cache, with those of five operands */

/* What runs over chunks of cast elements: a loop of the block interpreter or of numpy. */
typedef struct {
    FlatLoop flat;
    const Loop *loop;
    const char *from[BLOCK_SOURCES]; /* NULL for a number */
    npy_intp item[BLOCK_SOURCES];
    Row cast[BLOCK_SOURCES]; /* NULL where the elements are cast already */
    char *to;
    npy_intp to_item;
    Row store; /* NULL where the loop writes the result itself */
} Chunks;

static void run_chunks(void *work, npy_intp begin, npy_intp end)
{
    const Chunks *c = work;
    float space[BLOCK_SOURCES + 1][CHUNK];
    const void *source[BLOCK_SOURCES];
    for (npy_intp first = begin; first < end; first += CHUNK) {
        npy_intp count = end - first < CHUNK ? end - first : CHUNK, steps[BLOCK_SOURCES + 1];
        for (int k = 0; k < c->flat.count; k++) {
            const char *from = c->from[k] == NULL ? NULL : c->from[k] + first * c->item[k];
            source[k] = from == NULL ? (const void *)&c->flat.number[k] : from;
            steps[k] = from == NULL ? 0 : 4;
            if (from != NULL && c->cast[k] != NULL) {
                source[k] = space[k];
                if (k > 0 && c->from[k] == c->from[0] && c->cast[0] == c->cast[k]) {
                    source[k] = source[0];
                }
                else {
                    c->cast[k]((char *)space[k], 4, from, c->item[k], count);
                }
            }
        }
        char *to = c->to + first * c->to_item, *made = c->store == NULL ? to : (char *)space[BLOCK_SOURCES];
        if (c->loop == NULL) {
            c->flat.loop(source, made, count);
        }
        else {
            char *args[BLOCK_SOURCES + 1];
            for (int k = 0; k < c->flat.count; k++) {
                args[k] = (char *)source[k];
            }
            args[c->flat.count] = made;
            steps[c->flat.count] = c->store == NULL ? c->to_item : 4;
            c->loop->call(args, &count, steps, c->loop->data);
        }
        if (c->store != NULL) {
            c->store(to, c->to_item, made, 4, count);
        }
    }
}

/* A call in float32 of arrays that all lie as `target`, of n elements, and numbers; 0 where it is none. */
static int compute_chunks(const Path *path, const Plan *plan, const Bound *bound, const Given *given, PyArrayObject *target)
{
    Chunks c = {.to = PyArray_BYTES(target), .to_item = PyArray_ITEMSIZE(target)};
    unsigned arrays = 0;
    if (plan->compute != S.descr32 || !PyArray_ISALIGNED(target)) {
        return 0;
    }
    for (int i = 0; i < path->params; i++) {
        arrays |= (unsigned)(is_array(given->value[i]) && PyArray_NDIM((PyArrayObject *)given->value[i]) > 0) << i;
    }
    if (plan->blocked != NULL && blocked_flat(plan->blocked, given->value, path->params, arrays, &c.flat)) {
        c.store = row_between(S.descr32, PyArray_DESCR(target));
    }
    else if (plan->loop.call != NULL && has_defaults(path, path->ufunc_operands, bound->value)) {
        c.loop = &plan->loop;
        c.flat.count = path->ufunc_operands;
        for (int k = 0; k < c.flat.count; k++) {
            int at = path->reflected && !path->swaps ? c.flat.count - 1 - k : k, number = !(arrays >> at & 1);
            c.flat.operand[k] = number ? -1 : at;
            if (number && (!is_array(given->value[at]) || PyArray_DESCR((PyArrayObject *)given->value[at]) != S.descr32)) {
                return 0;
            }
            c.flat.number[k] = number ? *(const float *)PyArray_DATA((PyArrayObject *)given->value[at]) : 0;
        }
        c.store = plan->half ? row_between(S.descr32, PyArray_DESCR(target)) : NULL;
    }
    else {
        return 0;
    }
    for (int k = 0; k < c.flat.count; k++) {
        int at = c.flat.operand[k];
        if (at >= 0) {
            PyArrayObject *array = (PyArrayObject *)given->value[at];
            c.from[k] = PyArray_BYTES(array);
            c.item[k] = PyArray_ITEMSIZE(array);
            c.cast[k] = given->uncast >> at & 1 ? row_between(PyArray_DESCR(array), S.descr32) : NULL;
            if (c.cast[k] == NULL && PyArray_DESCR(array) != S.descr32) {
                return 0;
            }
        }
    }
    if (c.store == NULL && (c.loop == NULL || plan->half)) {
        return 0;
    }
    PyThreadState *thread = PyEval_SaveThread();
    in_parts(run_chunks, &c, PyArray_SIZE(target), PART_ELEMENTS / 2);
    PyEval_RestoreThread(thread);
    return 1;
}

/* Slabs of operands are cast, and the result of each is computed, so that what is cast never leaves the cache. */
int compute_slabs(const Path *path, const Plan *plan, const Bound *bound, const Given *given, PyArrayObject *target)
{
    const npy_intp most = plan->loop.call != NULL || plan->blocked != NULL ? SLAB : PYTHON_SLAB, total = PyArray_SIZE(target);
    npy_intp dims[MAX_DIMS], place[MAX_DIMS] = {0}, inner = 1;
    int ndim = PyArray_NDIM(target), flat = is_contiguous(target);
    for (int i = 0; i < path->params; i++) {
        PyObject *value = given->value[i];
        flat &= !is_array(value) || PyArray_NDIM((PyArrayObject *)value) == 0 ||
                (is_contiguous((PyArrayObject *)value) && PyArray_SAMESHAPE((PyArrayObject *)value, target));
    }
    if (flat && compute_chunks(path, plan, bound, given, target)) {
        return 1;
    }
    copy_dims(dims, PyArray_DIMS(target), ndim);
    if (flat) {
        ndim = 1;
        dims[0] = total;
    }
    int at = ndim - 1;
    for (; at > 0 && inner * dims[at] <= most; at--) {
        inner *= dims[at];
    }
    const npy_intp length = inner >= most ? 1 : most / inner;
    Given part = *given;
    PyObject *whole[MAX_PARAMS + 1];
    int done = 1, arrays = 0, which[MAX_PARAMS + 1];
    part.value = part.slots + 1;
    part.uncast = 0;
    for (int i = 0; i <= path->params; i++) { /* the last one is the result */
        PyObject *value = i < path->params ? given->value[i] : (PyObject *)target;
        if (is_array(value) && PyArray_NDIM((PyArrayObject *)value)) {
            npy_intp stride = PyArray_ITEMSIZE((PyArrayObject *)value);
            which[arrays] = i;
            whole[arrays] = flat ? new_view((PyArrayObject *)value, 1, dims, &stride, PyArray_BYTES((PyArrayObject *)value)) : Py_NewRef(value);
            done &= whole[arrays++] != NULL;
        }
    }
    for (npy_intp left = total; left > 0 && done;) {
        for (npy_intp first = 0; first < dims[at] && done; first += length) {
            const npy_intp count = dims[at] - first < length ? dims[at] - first : length;
            PyObject *made[MAX_PARAMS + 1];
            int ready = 0;
            for (; ready < arrays; ready++) {
                PyObject *slab = slab_of((PyArrayObject *)whole[ready], ndim, at, place, first, count);
                if (slab != NULL && which[ready] < path->params && given->uncast >> which[ready] & 1) {
                    Py_SETREF(slab, (PyObject *)converted((PyArrayObject *)slab, plan->compute));
                }
                if (slab == NULL) {
                    break;
                }
                made[ready] = slab;
                part.value[which[ready]] = slab;
            }
            done = ready == arrays && compute_into(path, plan, bound, &part, (PyArrayObject *)made[arrays - 1]);
            while (ready > 0) {
                Py_DECREF(made[--ready]);
            }
            left -= count * inner;
        }
        for (int d = at - 1; d >= 0; d--) {
            if (++place[d] < dims[d]) {
                break;
            }
            place[d] = 0;
        }
    }
    while (arrays > 0) {
        Py_XDECREF(whole[--arrays]);
    }
    return done;
}
