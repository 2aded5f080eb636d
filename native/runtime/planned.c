/* Run: a call by its plan. Operands are cast as the plan says; the operator's loop, numpy's loop or the kernel computes; the results are laid out,
 * made tensors and recorded.
 */
#include "extents.h"
#include "plan.h"

static void given_clear(Given *given)
{
    for (int i = 0; i < given->count; i++) {
        Py_DECREF(given->owned[i]);
    }
}

static int own(Given *given, int at, PyObject *made)
{
    if (made == NULL) {
        return 0;
    }
    given->owned[given->count++] = made;
    given->value[at] = made;
    return 1;
}

static int needs_cast(const Plan *plan, PyArrayObject *array)
{
    return PyArray_DESCR(array) != plan->compute && (PyArray_DESCR(array)->type_num != plan->compute->type_num || !PyArray_ISNOTSWAPPED(array));
}

static PyObject *array_list(const Plan *plan, int cast, PyObject *list, int *history)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyObject *item = PyList_GET_ITEM(list, i), *array = item;
        if (item != Py_None) {
            *history |= may_have_history(item);
            array = (PyObject *)array_of(item);
            if (array == NULL) {
                Py_CLEAR(made);
                break;
            }
            if (cast && needs_cast(plan, (PyArrayObject *)array)) {
                array = (PyObject *)converted((PyArrayObject *)array, plan->compute);
                if (array == NULL) {
                    Py_CLEAR(made);
                    break;
                }
                PyList_SET_ITEM(made, i, array);
                continue;
            }
        }
        PyList_SET_ITEM(made, i, Py_NewRef(array));
    }
    return made;
}

/* 0 declines, or with an exception fails. */
static int give(const Path *path, const Plan *plan, const Bound *bound, Given *given, int as_it_is)
{
    given->value = given->slots + 1;
    given->count = 0;
    given->history = 0;
    given->uncast = 0;
    for (int i = 0; i < path->params; i++) {
        PyObject *value = bound->value[i];
        char kind = path->kinds[i];
        int cast = plan->compute != NULL && path->casts[i] && !as_it_is;
        given->value[i] = value;
        if (value == Py_None) {
            continue;
        }
        if ((kind == 'T' || kind == 'N') && is_plain(value)) {
            PyArrayObject *array = array_of(value);
            if (array == NULL) {
                return 0;
            }
            if (may_have_history(value)) {
                if (plan->constants >> i & 1) {
                    return 0; /* refused in PyTorch's words */
                }
                given->history = 1;
            }
            if (cast && needs_cast(plan, array) && !has_slabs(path, plan, PyArray_SIZE(array))) {
                if (!own(given, i, (PyObject *)converted(array, plan->compute))) {
                    return 0;
                }
            }
            else {
                given->uncast |= (unsigned)(cast && needs_cast(plan, array)) << i;
                own(given, i, Py_NewRef((PyObject *)array)); /* Python code may give the tensor another payload meanwhile */
            }
        }
        else if (kind == 'V' || kind == 'v') {
            if (!own(given, i, array_list(plan, cast, value, &given->history))) {
                return 0;
            }
        }
        else if (cast && (kind == 'N' || kind == 'S' || kind == 'F')) {
            if (!own(given, i, (PyObject *)number_array(value, plan->compute))) {
                return 0;
            }
        }
    }
    return 1;
}

/* -------------------------------------------------------------------------------------------------------------- results */

PyArrayObject *empty_result(const Result *result)
{
    if (result->contiguous) {
        return (PyArrayObject *)new_array(result->ndim, result->dims, result->descr);
    }
    npy_intp reach = PyDataType_ELSIZE(result->descr), bytes = reach;
    for (int d = 0; d < result->ndim; d++) {
        bytes *= result->dims[d];
        reach += (result->dims[d] - 1) * result->strides[d];
    }
    if (bytes != reach) {
        return NULL; /* not dense: Python makes these */
    }
    return (PyArrayObject *)buffer_array(result->ndim, result->dims, result->strides, result->descr, (size_t)bytes, 0);
}

static int has_shape(PyArrayObject *array, const Result *result)
{
    return PyArray_NDIM(array) == result->ndim && PyArray_CompareLists(PyArray_DIMS(array), result->dims, result->ndim);
}

/* Whether the array's memory is its own, and not a part of what the kernel computed. */
static int is_whole(PyArrayObject *array)
{
    PyObject *base = PyArray_BASE(array);
    return base == NULL || !PyArray_Check(base) || PyArray_NBYTES((PyArrayObject *)base) == PyArray_NBYTES(array);
}

/* A kernel's result in the dtype and strides of the plan; takes over the reference. */
static PyObject *laid_out(PyObject *made, const Result *result)
{
    if (!PyArray_Check(made)) {
        PyObject *array = PyArray_FromAny(made, NULL, 0, 0, 0, NULL);
        Py_DECREF(made);
        if (array == NULL) {
            return NULL;
        }
        made = array;
    }
    PyArrayObject *array = (PyArrayObject *)made;
    if (!has_shape(array, result)) {
        Py_DECREF(made);
        return NULL; /* a fault of rule or kernel, of which Python tells */
    }
    if (is_array(made) && PyArray_DESCR(array)->type_num == result->descr->type_num && PyArray_ISNOTSWAPPED(array) && is_whole(array) &&
        PyArray_CompareLists(PyArray_STRIDES(array), result->strides, result->ndim)) {
        return made;
    }
    PyArrayObject *target = empty_result(result);
    if (target != NULL && copy_into(target, array) < 0) {
        Py_CLEAR(target);
    }
    Py_DECREF(made);
    return (PyObject *)target;
}

/* -------------------------------------------------------------------------------------------------------------- kernels */

/* The kernel, with numpy's warnings off; `out` is an array or NULL. */
static PyObject *call_kernel(const Path *path, const Plan *plan, Given *given, PyArrayObject *out)
{
    PyObject *made = kernel_try(plan->kernel, given->value, path->params, out);
    if (made != NULL || PyErr_Occurred()) {
        return made;
    }
    PyObject *memory, *token = PyContextVar_Set(S.errors, S.quiet);
    if (token == NULL) {
        return NULL;
    }
    if (enter_buffers(given->value, path->params, &memory) < 0) {
        goto done;
    }
    PyObject *names = NULL;
    if (out != NULL) {
        given->value[path->params] = (PyObject *)out;
        names = S.out_names;
        if (PyObject_TypeCheck(plan->kernel, &PyUFunc_Type)) {
            PyObject *args[MAX_PARAMS + 3];
            memcpy(args + 1, given->value, sizeof(PyObject *) * (size_t)(path->params + 1));
            args[path->params + 2] = S.unsafe;
            made = PyObject_Vectorcall(plan->kernel, args + 1, (size_t)path->params | PY_VECTORCALL_ARGUMENTS_OFFSET, S.out_casting_names);
            goto done;
        }
    }
    made = PyObject_Vectorcall(plan->kernel, given->value, (size_t)path->params | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
done:;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyContextVar_Reset(S.errors, token) < 0) {
        PyErr_Clear();
    }
    if (leave_buffers(memory) < 0) {
        PyErr_Clear();
    }
    Py_DECREF(token);
    PyErr_Restore(type, value, traceback);
    return made;
}

/* Whether `target` may be handed to the kernel to write to. */
static int may_take_out(const Plan *plan, PyArrayObject *target)
{
    if (!plan->takes_out) {
        return 0;
    }
    int type = PyArray_DESCR(target)->type_num;
    return plan->compute == NULL || plan->compute->type_num == type || type == NPY_BOOL || PyObject_TypeCheck(plan->kernel, &PyUFunc_Type);
}

int compute_into(const Path *path, const Plan *plan, const Bound *bound, Given *given, PyArrayObject *target)
{
    if (given->uncast) {
        return compute_slabs(path, plan, bound, given, target);
    }
    if (plan->blocked != NULL) {
        PyObject *made = blocked_apply(plan->blocked, given->value, path->params, plan->half ? NULL : target);
        if (made != NULL) {
            int failed = plan->half && copy_into(target, (PyArrayObject *)made) < 0;
            Py_DECREF(made);
            return !failed;
        }
        if (PyErr_Occurred()) {
            return 0;
        }
    }
    if (plan->loop.call != NULL && has_defaults(path, path->ufunc_operands, bound->value)) {
        PyArrayObject *operand[2];
        int count = path->ufunc_operands;
        for (int k = 0; k < count; k++) {
            operand[path->reflected && !path->swaps ? count - 1 - k : k] = (PyArrayObject *)given->value[k];
        }
        if (!plan->half) {
            iterate(&plan->loop, count, operand, target);
            return 1;
        }
        PyArrayObject *wide = (PyArrayObject *)new_array(PyArray_NDIM(target), PyArray_DIMS(target), plan->compute);
        if (wide == NULL) {
            return 0;
        }
        iterate(&plan->loop, count, operand, wide);
        int failed = copy_into(target, wide) < 0;
        Py_DECREF((PyObject *)wide);
        return !failed;
    }
    if (may_take_out(plan, target)) {
        PyObject *made = call_kernel(path, plan, given, target);
        Py_XDECREF(made);
        return made != NULL;
    }
    PyObject *made = call_kernel(path, plan, given, NULL);
    if (made != NULL && !PyArray_Check(made)) {
        PyObject *array = PyArray_FromAny(made, NULL, 0, 0, 0, NULL);
        Py_SETREF(made, array);
    }
    int failed = made == NULL || copy_into(target, (PyArrayObject *)made) < 0;
    Py_XDECREF(made);
    return !failed;
}

/* A kernel that writes to its argument: `target` has the argument's elements, and gets the result. */
static int mutate(const Path *path, const Plan *plan, Given *given, PyArrayObject *target)
{
    PyArrayObject *place = (PyArrayObject *)given->value[path->mutates];
    if (PyArray_DESCR(place)->type_num == PyArray_DESCR(target)->type_num) {
        given->value[path->mutates] = (PyObject *)target;
        PyObject *made = call_kernel(path, plan, given, NULL);
        Py_XDECREF(made);
        return made != NULL;
    }
    PyArrayObject *copy = (PyArrayObject *)PyArray_NewCopy(place, NPY_KEEPORDER); /* half types, which the kernel sees as float32 */
    if (copy == NULL) {
        return 0;
    }
    given->value[path->mutates] = (PyObject *)copy;
    PyObject *made = call_kernel(path, plan, given, NULL);
    int failed = made == NULL || !PyArray_Check(made) || copy_into(target, (PyArrayObject *)made) < 0;
    Py_XDECREF(made);
    Py_DECREF((PyObject *)copy);
    return !failed;
}

/* ---------------------------------------------------------------------------------------------------------------- forms */

PyObject *finish_call(const Path *path, const Bound *bound, PyObject *made, int history)
{
    if (made != NULL && history && path->records) {
        made = record_call(path->op, made, bound->value, path->params);
    }
    if (made != NULL && bound->requires_grad) {
        PyObject *done = PyObject_CallMethod(made, "requires_grad_", "O", Py_True);
        Py_DECREF(made);
        made = done;
    }
    return made;
}

/* A kernel's result in the dtype of the plan, of a shape that only the elements tell; takes over the reference. */
static PyObject *as_found(PyObject *data, const Result *result)
{
    Py_INCREF(result->descr);
    Py_SETREF(data, PyArray_FromAny(data, result->descr, 0, 0, (result->contiguous ? NPY_ARRAY_C_CONTIGUOUS : 0) | NPY_ARRAY_FORCECAST, NULL));
    if (data != NULL && !is_whole((PyArrayObject *)data)) {
        Py_SETREF(data, PyArray_NewCopy((PyArrayObject *)data, NPY_KEEPORDER));
    }
    return data;
}

static PyObject *run_fresh(const Path *path, const Plan *plan, const Bound *bound, Given *given)
{
    const Result *result = &plan->result[0];
    PyObject *data = NULL;
    if (path->mutates >= 0) {
        PyArrayObject *target = empty_result(result), *source = array_of(bound->value[path->mutates]);
        if (target != NULL && (source == NULL || copy_into(target, source) < 0 || !mutate(path, plan, given, target))) {
            Py_CLEAR(target);
        }
        data = (PyObject *)target;
    }
    else if (plan->how == PLAN_ONE && (plan->loop.call != NULL || plan->blocked != NULL || plan->takes_out || given->uncast)) {
        PyArrayObject *target = empty_result(result);
        if (target != NULL && !compute_into(path, plan, bound, given, target)) {
            Py_CLEAR(target);
        }
        data = (PyObject *)target;
    }
    else {
        data = call_kernel(path, plan, given, NULL);
        if (data != NULL) {
            data = result->unknown ? as_found(data, result) : laid_out(data, result);
        }
    }
    if (data == NULL) {
        return NULL;
    }
    return finish_call(path, bound, make_result(data, result->dtype), given->history);
}

/* What a kernel made, one result or several; takes over the reference. */
static PyObject *finish_several(const Path *path, const Plan *plan, const Bound *bound, const Given *given, PyObject *computed)
{
    PyObject *items = computed == NULL ? NULL : PySequence_Fast(computed, "a kernel returned no sequence");
    Py_XDECREF(computed);
    if (items == NULL) {
        return NULL;
    }
    PyObject *made = NULL;
    if (PySequence_Fast_GET_SIZE(items) != plan->count) {
        PyErr_SetString(PyExc_RuntimeError, "internal: a kernel returned another number of results than its rule says");
    }
    else {
        made = plan->cls->tp_alloc(plan->cls, plan->count);
    }
    for (int i = 0; made != NULL && i < plan->count; i++) {
        PyObject *tensor = Py_NewRef(Py_None);
        if (!plan->result[i].absent) {
            PyObject *data = Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
            data = plan->result[i].unknown ? as_found(data, &plan->result[i]) : laid_out(data, &plan->result[i]);
            Py_SETREF(tensor, data == NULL ? NULL : make_result(data, plan->result[i].dtype));
        }
        if (tensor == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, i, tensor);
    }
    Py_DECREF(items);
    return finish_call(path, bound, made, given->history);
}

static PyObject *run_several(const Path *path, const Plan *plan, const Bound *bound, Given *given)
{
    return finish_several(path, plan, bound, given, call_kernel(path, plan, given, NULL));
}

static int has_half(const Path *path, const Bound *bound)
{
    for (int i = 0; i < path->params; i++) {
        PyArrayObject *array = path->casts[i] && is_plain(bound->value[i]) ? array_of(bound->value[i]) : NULL;
        if (array != NULL && is_half_type(PyArray_DESCR(array))) {
            return 1;
        }
    }
    return 0;
}

/* A kernel in C that takes half types as they are, if it takes these. */
static PyObject *run_halves(const Path *path, const Plan *plan, const Bound *bound, Given *given)
{
    PyObject *made = kernel_try(plan->kernel, given->value, path->params, NULL);
    if (made == NULL || plan->how == PLAN_SEVERAL) {
        return made == NULL ? NULL : finish_several(path, plan, bound, given, made);
    }
    made = laid_out(made, &plan->result[0]);
    return made == NULL ? NULL : finish_call(path, bound, make_result(made, plan->result[0].dtype), given->history);
}

static PyObject *view_of(PyArrayObject *source, const Result *result)
{
    return new_view_as(source, result->descr, result->ndim, result->dims, result->strides, PyArray_BYTES(source) + result->offset);
}

static PyObject *run_view(const Path *path, const Plan *plan, const Bound *bound, PyArrayObject *source)
{
    PyObject *data = view_of(source, &plan->result[0]);
    PyObject *made = data == NULL ? NULL : make_tensor(data, plan->result[0].dtype);
    return made == NULL ? NULL : finish_view(made, bound->value[0], path->op, bound->value, path->params);
}

/* Several views, which share one node when there is a history. */
static PyObject *run_views(const Path *path, const Plan *plan, const Bound *bound, PyArrayObject *source)
{
    PyObject *whole = bound->value[0], *base = SLOT(whole, S.at_base);
    base = base == NULL || base == Py_None ? whole : base;
    const int history = may_have_history(whole), recorded = history ? grad_enabled() : 0, marked = is_inference(base);
    if (history && infers()) {
        return NULL; /* each becomes a leaf of its own */
    }
    PyObject *made = recorded < 0 ? NULL : PyTuple_New(plan->count);
    for (int i = 0; made != NULL && i < plan->count; i++) {
        PyObject *data = view_of(source, &plan->result[i]);
        PyObject *view = data == NULL ? NULL : make_tensor(data, plan->result[i].dtype);
        if (view != NULL) {
            set_slot(view, S.at_base, Py_NewRef(base));
            view = marked ? mark_inference(view) : view;
        }
        if (view == NULL || PyObject_SetAttr(view, S.multi_view, Py_True) < 0) {
            Py_XDECREF(view);
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, i, view);
    }
    if (made != NULL && recorded) {
        made = record_call(path->op, made, bound->value, path->params);
    }
    for (int i = 0; made != NULL && (recorded || !history) && i < plan->count; i++) {
        PyObject *view = PyTuple_GET_ITEM(made, i);
        if (SLOT(view, S.at_node) == Py_None && is_differentiable(SLOT(view, S.at_dtype))) {
            set_slot(view, S.at_node, Py_NewRef(S.view));
        }
    }
    return made;
}

/* A reshape that no view can be: a copy. */
static PyObject *run_reshaped(const Path *path, const Plan *plan, const Bound *bound, PyArrayObject *source)
{
    PyArrayObject *copy = (PyArrayObject *)new_like(source);
    if (copy == NULL || copy_into(copy, source) < 0) {
        Py_XDECREF((PyObject *)copy);
        return NULL;
    }
    PyObject *data = view_of(copy, &plan->result[0]);
    Py_DECREF((PyObject *)copy);
    PyObject *made = data == NULL ? NULL : make_result(data, SLOT(bound->value[0], S.at_dtype));
    return finish_call(path, bound, made, may_have_history(bound->value[0]));
}

static int list_meets(PyObject *list, PyArrayObject *target)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *item = PyList_GET_ITEM(list, i);
        PyArrayObject *array = item == Py_None ? NULL : array_of(item);
        if (item != Py_None && (array == NULL || arrays_meet(array, target))) {
            return 1;
        }
    }
    return 0;
}

/* Whether an array may be written to while the arguments are read: none shares its memory, but as the very same elements. */
static int is_apart(const Path *path, const Bound *bound, PyObject *written, PyArrayObject *target)
{
    for (int i = 0; i < path->params; i++) {
        PyObject *value = bound->value[i];
        if (path->kinds[i] == 'V' || path->kinds[i] == 'v') {
            if (list_meets(value, target)) {
                return 0;
            }
            continue;
        }
        if ((path->kinds[i] != 'T' && path->kinds[i] != 'N') || (value == written && (i == 0 || path->pointwise)) || !is_plain(value)) {
            continue;
        }
        PyArrayObject *array = array_of(value);
        if (array == NULL) {
            return 0;
        }
        int same = path->pointwise && PyArray_BYTES(array) == PyArray_BYTES(target) && PyArray_SAMESHAPE(array, target) &&
                   PyArray_DESCR(array) == PyArray_DESCR(target) && PyArray_CompareLists(PyArray_STRIDES(array), PyArray_STRIDES(target), PyArray_NDIM(target));
        if (!same && arrays_meet(array, target)) {
            return 0;
        }
    }
    for (int d = 0; d < PyArray_NDIM(target); d++) {
        if (PyArray_STRIDE(target, d) == 0 && PyArray_DIM(target, d) > 1) {
            return 0; /* refused in PyTorch's words */
        }
    }
    return PyArray_ISWRITEABLE(target);
}

/* Whether PyTorch casts from one dtype to the other where an operator writes in place; both real, bfloat16 among them. */
static int holds(PyArray_Descr *target, PyArray_Descr *source)
{
    int to = PyTypeNum_ISBOOL(target->type_num) ? 0 : PyTypeNum_ISINTEGER(target->type_num) ? 1 : 2;
    int from = PyTypeNum_ISBOOL(source->type_num) ? 0 : PyTypeNum_ISINTEGER(source->type_num) ? 1 : 2;
    return from <= to && !PyTypeNum_ISCOMPLEX(target->type_num) && !PyTypeNum_ISCOMPLEX(source->type_num);
}

/* The result, which has another dtype, in `target`. */
static int cast_into(const Path *path, const Plan *plan, const Bound *bound, Given *given, PyArrayObject *target)
{
    PyArrayObject *made = empty_result(&plan->result[0]);
    int done = made != NULL && compute_into(path, plan, bound, given, made) && copy_into(target, made) >= 0;
    Py_XDECREF((PyObject *)made);
    return done;
}

/* `squeeze_` and its kin: a tensor without history becomes the view. */
static PyObject *become_view(const Plan *plan, PyObject *tensor, PyArrayObject *source)
{
    if (plan->how != PLAN_VIEW || SLOT(tensor, S.at_dtype) != plan->result[0].dtype || may_have_history(tensor) || !may_change(tensor, NULL)) {
        return NULL;
    }
    PyObject *data = view_of(source, &plan->result[0]);
    if (data == NULL) {
        return NULL;
    }
    set_slot(tensor, S.at_data, data);
    return bump_version(tensor) < 0 ? NULL : Py_NewRef(tensor);
}

static PyObject *run_in_place(const Path *path, const Plan *plan, const Bound *bound, Given *given)
{
    PyObject *written = bound->value[0];
    PyArrayObject *target = array_of(written);
    const Result *result = &plan->result[0];
    const int same = target != NULL && SLOT(written, S.at_dtype) == result->dtype;
    if (target == NULL || !(same || (path->mutates < 0 && holds(PyArray_DESCR(target), result->descr))) || !has_shape(target, result) ||
        !is_apart(path, bound, written, target)) {
        return NULL;
    }
    if (given->history) {
        int enabled = grad_enabled();
        if (enabled != 0) {
            return NULL;
        }
    }
    if (!may_change(written, NULL)) {
        return NULL;
    }
    Py_INCREF((PyObject *)target);
    int done = path->mutates == 0 ? mutate(path, plan, given, target) : path->mutates < 0 && (same ? compute_into : cast_into)(path, plan, bound, given, target);
    Py_DECREF((PyObject *)target);
    return !done || bump_version(written) < 0 ? NULL : Py_NewRef(written);
}

static PyObject *run_out(const Path *path, const Plan *plan, const Bound *bound, Given *given)
{
    PyObject *written = bound->out;
    PyArrayObject *target = is_plain(written) ? array_of(written) : NULL;
    const Result *result = &plan->result[0];
    if (target == NULL || path->mutates >= 0 || SLOT(written, S.at_dtype) != result->dtype || !has_shape(target, result) || given->history ||
        may_have_history(written) || !may_change(written, NULL) || !is_apart(path, bound, NULL, target)) {
        return NULL;
    }
    Py_INCREF((PyObject *)target);
    int done = compute_into(path, plan, bound, given, target);
    Py_DECREF((PyObject *)target);
    return !done || bump_version(written) < 0 ? NULL : Py_NewRef(written);
}

static PyObject *run_plan(const Path *path, Plan *plan, const Bound *bound)
{
    if (plan->how >= PLAN_VIEW) {
        PyArrayObject *source = array_of(bound->value[0]);
        if (source == NULL || bound->out != NULL) {
            return NULL;
        }
        if (path->inplace) {
            return become_view(plan, bound->value[0], source);
        }
        return plan->how == PLAN_VIEW ? run_view(path, plan, bound, source)
               : plan->how == PLAN_VIEWS ? run_views(path, plan, bound, source)
                                         : run_reshaped(path, plan, bound, source);
    }
    if ((path->inplace || bound->out != NULL) && plan->how != PLAN_ONE) {
        return NULL;
    }
    Given given;
    PyObject *made = NULL;
    plan->halves = plan->halves && has_half(path, bound); /* a plan is of these dtypes alone */
    if (plan->halves && !path->inplace && bound->out == NULL && path->mutates < 0) {
        if (give(path, plan, bound, &given, 1)) {
            made = run_halves(path, plan, bound, &given);
        }
        given_clear(&given);
        if (made != NULL || PyErr_Occurred()) {
            return made;
        }
    }
    if (give(path, plan, bound, &given, 0)) {
        made = path->inplace              ? run_in_place(path, plan, bound, &given)
               : bound->out != NULL       ? run_out(path, plan, bound, &given)
               : plan->how == PLAN_SEVERAL ? run_several(path, plan, bound, &given)
                                          : run_fresh(path, plan, bound, &given);
    }
    given_clear(&given);
    return made;
}

PyObject *run_planned(Path *path, const Bound *bound)
{
    Plan *plan = plan_of(path, bound);
    if (plan == NULL) {
        return NULL;
    }
    PyObject *made = plan->meta != NULL ? run_meta(path, plan, bound) : run_plan(path, plan, bound);
    plan_release(plan);
    return made;
}

PyObject *run_composite(Path *path, const Bound *bound)
{
    if (bound->out != NULL || bound->requires_grad) {
        return NULL;
    }
    if (path->inplace) {
        PyObject *written = bound->value[0];
        if (path->kinds[0] != 'T' || !is_plain(written)) {
            return NULL; /* the caller's list is given back */
        }
        PyObject *base = SLOT(written, S.at_base);
        if ((is_inference(written) || (base != NULL && base != Py_None && is_inference(base))) && !infers()) {
            return NULL;
        }
    }
    if (path->composite == NULL) {
        path->composite = PyObject_CallMethod(path->op, "composite_function", NULL);
        if (path->composite == NULL) {
            return NULL;
        }
    }
    return PyObject_Vectorcall(path->composite, bound->value, (size_t)path->params | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}
