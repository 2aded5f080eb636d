/* Slabs: a pointwise call whose operands are cast, part by part, so that what is cast never leaves the cache. */
#include "plan.h"
#include "../kernels/lines.h"

#define PYTHON_SLAB 131072 /* elements that are worth a call of a kernel in Python */

int has_slabs(const Path *path, const Plan *plan, npy_intp elements)
{
    const npy_intp enough = plan->loop.call != NULL || plan->blocked != NULL ? LINES_FROM : 2 * SLAB;
    return elements >= enough && (path->pointwise || plan->blocked != NULL) && path->mutates < 0 && plan->how == PLAN_ONE && plan->compute != NULL && !plan->result[0].unknown && strpbrk(path->kinds, "Vv") == NULL;
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

/* A call of arrays that lie as lines of `target` do, and numbers; 0 where it is none. */
static int compute_lines(const Path *path, const Plan *plan, const Bound *bound, const Given *given, PyArrayObject *target)
{
    const int width = plan->compute == S.descr32 ? 4 : plan->compute == S.descr64 ? 8 : 0, ndim = PyArray_NDIM(target);
    Lines lines = {.width = width, .ndim = ndim, .result_item = width};
    FlatLoop flat;
    double numbers[BLOCK_SOURCES];
    unsigned arrays = 0;
    if (!width || !PyArray_ISALIGNED(target)) {
        return 0;
    }
    copy_dims(lines.dims, PyArray_DIMS(target), ndim);
    for (int i = 0; i < path->params; i++) {
        arrays |= (unsigned)(is_array(given->value[i]) && PyArray_NDIM((PyArrayObject *)given->value[i]) > 0) << i;
    }
    LineOperand *result = &lines.operand[0];
    if (plan->blocked != NULL && blocked_flat(plan->blocked, given->value, path->params, arrays, &flat)) {
        lines.opcode = flat.opcode;
        result = &lines.operand[flat.count];
        result->cast = PyArray_DESCR(target) == plan->compute ? NULL : row_between(plan->compute, PyArray_DESCR(target));
    }
    else if (plan->loop.call != NULL && has_defaults(path, path->ufunc_operands, bound->value)) {
        lines.ufunc = &plan->loop;
        flat.count = path->ufunc_operands;
        for (int k = 0; k < flat.count; k++) {
            int at = path->reflected && !path->swaps ? flat.count - 1 - k : k, number = !(arrays >> at & 1);
            flat.operand[k] = number ? -1 : at;
            PyArrayObject *value = (PyArrayObject *)given->value[at];
            if (number && (!is_array(given->value[at]) || PyArray_DESCR(value) != plan->compute)) {
                return 0;
            }
            flat.number[k] = !number ? 0 : width == 4 ? *(const float *)PyArray_DATA(value) : *(const double *)PyArray_DATA(value);
        }
        result = &lines.operand[flat.count];
        lines.result_item = plan->half ? width : (int)PyArray_ITEMSIZE(target);
        result->cast = plan->half ? row_between(plan->compute, PyArray_DESCR(target)) : NULL;
    }
    else {
        return 0;
    }
    lines.count = flat.count;
    for (int k = 0; k < flat.count; k++) {
        LineOperand *operand = &lines.operand[k];
        const int at = flat.operand[k];
        if (at < 0) {
            operand->data = number_as(flat.number[k], width, &numbers[k]);
            continue;
        }
        PyArrayObject *array = (PyArrayObject *)given->value[at];
        operand->cast = PyArray_DESCR(array) == plan->compute ? NULL : row_between(PyArray_DESCR(array), plan->compute);
        if ((operand->cast == NULL && (PyArray_DESCR(array) != plan->compute || !PyArray_ISBEHAVED_RO(array))) ||
            !line_operand(operand, array, ndim, PyArray_DIMS(target))) {
            return 0;
        }
    }
    if ((result->cast == NULL && (lines.ufunc == NULL ? PyArray_DESCR(target) != plan->compute : plan->half)) ||
        !line_operand(result, target, ndim, PyArray_DIMS(target)) || !lines_fit(&lines)) {
        return 0;
    }
    lines_run(&lines);
    return 1;
}

/* Slabs of operands are cast, and the result of each is computed, so that what is cast never leaves the cache. */
int compute_slabs(const Path *path, const Plan *plan, const Bound *bound, const Given *given, PyArrayObject *target)
{
    if (compute_lines(path, plan, bound, given, target)) {
        return 1;
    }
    const npy_intp most = plan->loop.call != NULL || plan->blocked != NULL ? SLAB : PYTHON_SLAB, total = PyArray_SIZE(target);
    npy_intp dims[MAX_DIMS], place[MAX_DIMS] = {0}, inner = 1;
    int ndim = PyArray_NDIM(target), flat = is_contiguous(target);
    for (int i = 0; i < path->params; i++) {
        PyObject *value = given->value[i];
        flat &= !is_array(value) || PyArray_NDIM((PyArrayObject *)value) == 0 ||
                (is_contiguous((PyArrayObject *)value) && PyArray_SAMESHAPE((PyArrayObject *)value, target));
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
