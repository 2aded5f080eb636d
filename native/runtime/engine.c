/* The walk over the tape, as `_Run` of _autograd/engine.py does it in Python, which serves without the extension.
 *
 * Order, sums and ownership of gradients are decided here; what few programs have (hooks, retained gradients, anomaly mode, gradients that
 * must be cast or reduced, other payloads) goes to functions of engine.py, which both walks share.
 */
#include "walk.h"

EngineState E;

static _Thread_local Run *running = NULL;
static long long walks = 0; /* how many have been started; counted under the lock that Python takes */

/* Starts with the gradients of the tensors; what the walk adds to `grads` holds the memory of those that the caller gave. */
static int start(Run *run, PyObject *tensors, PyObject *grads)
{
    /* First all nodes, then gradients: a visit that holds one may not move, as a visit that is added may make them all do. */
    for (int arriving = 0; arriving < 2; arriving++) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); i++) {
            PyObject *edge = edge_of(PyTuple_GET_ITEM(tensors, i));
            if (edge == Py_None) {
                PyErr_SetString(PyExc_RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn");
            }
            if (edge == NULL || edge == Py_None) {
                Py_XDECREF(edge);
                return -1;
            }
            PyObject *node = PyTuple_GET_ITEM(edge, 0);
            Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(edge, 1));
            int failed = !arriving ? explore(run, node) < 0
                                   : arrive(run, &run->visits[find_visit(run, node)], number, Py_NewRef(PyTuple_GET_ITEM(grads, i))) < 0;
            Py_DECREF(edge);
            if (failed) {
                return -1;
            }
        }
    }
    return 0;
}

static int find_inputs(Run *run, PyObject *inputs)
{
    run->input_count = PyTuple_GET_SIZE(inputs);
    size_t space = (size_t)(run->input_count ? run->input_count : 1);
    run->inputs = PyMem_Malloc(space * sizeof(int));
    run->numbers = PyMem_Malloc(space * sizeof(Py_ssize_t));
    if (run->inputs == NULL || run->numbers == NULL) {
        run->input_count = 0;
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < run->input_count; i++) {
        PyObject *edge = edge_of(PyTuple_GET_ITEM(inputs, i));
        if (edge == NULL) {
            return -1;
        }
        run->inputs[i] = edge == Py_None ? -1 : find_visit(run, PyTuple_GET_ITEM(edge, 0));
        run->numbers[i] = edge == Py_None ? 0 : PyLong_AsSsize_t(PyTuple_GET_ITEM(edge, 1));
        Py_DECREF(edge);
    }
    mark_wanted(run);
    return 0;
}

static int walk(Run *run, PyObject *inputs)
{
    for (int i = run->ordered - 1; i >= 0; i--) {
        int v = run->order[i];
        run->at = i;
        Visit *visit = &run->visits[v];
        if (visit->held == NULL || (inputs != Py_None && !visit->wanted)) {
            continue;
        }
        if (run_node(run, v) < 0) {
            return -1;
        }
    }
    return 0;
}

/* run_backward(tensors, grads, inputs or None, accumulate, retain_graph, create_graph, anomaly): a list of what arrived at the inputs. */
PyObject *run_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 7 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[0]) != PyTuple_GET_SIZE(args[1]) ||
        !(args[2] == Py_None || PyTuple_Check(args[2])) || E.ops == NULL) {
        PyErr_SetString(PyExc_TypeError, "run_backward takes tensors, their gradients, inputs, and four flags");
        return NULL;
    }
    PyObject *const groups[2] = {args[0], args[2]};
    for (int g = 0; g < 2; g++) {
        for (Py_ssize_t i = 0; groups[g] != Py_None && i < PyTuple_GET_SIZE(groups[g]); i++) {
            if (!PyObject_TypeCheck(PyTuple_GET_ITEM(groups[g], i), S.tensor)) {
                PyErr_Format(PyExc_TypeError, "%R is no tensor", PyTuple_GET_ITEM(groups[g], i));
                return NULL;
            }
        }
    }
    if (forget_results() < 0) {
        return NULL;
    }
    Run run = {0};
    run.accumulate = PyObject_IsTrue(args[3]);
    run.keep = PyObject_IsTrue(args[4]);
    run.create = PyObject_IsTrue(args[5]);
    run.anomaly = PyObject_IsTrue(args[6]);
    PyObject *results = PyList_New(0);
    for (Py_ssize_t i = 0; results != NULL && args[2] != Py_None && i < PyTuple_GET_SIZE(args[2]); i++) {
        if (PyList_Append(results, Py_None) < 0) {
            Py_CLEAR(results);
        }
    }
    run.results = results;
    run.number = ++walks;
    run.outer = running;
    running = &run;
    if (results == NULL || start(&run, args[0], args[1]) < 0 || (args[2] != Py_None && find_inputs(&run, args[2]) < 0) ||
        walk(&run, args[2]) < 0) {
        Py_CLEAR(results);
    }
    running = run.outer;
    end_run(&run);
    return results;
}

/* The numbers of the walks that run in this thread, the innermost first. */
PyObject *running_walks(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *numbers = PyList_New(0);
    for (Run *run = running; numbers != NULL && run != NULL; run = run->outer) {
        PyObject *number = PyLong_FromLongLong(run->number);
        if (number == NULL || PyList_Append(numbers, number) < 0) {
            Py_CLEAR(numbers);
        }
        Py_XDECREF(number);
    }
    return numbers;
}

static int executes(const Run *run, int v)
{
    return v >= 0 && (!run->input_count || (run->visits[v].wanted && !ends_at(run, v)));
}

/* Whether the innermost walk runs a node; None for a leaf whose gradient it only captures. */
PyObject *walk_executes(PyObject *module, PyObject *node)
{
    (void)module;
    int v = running == NULL ? -1 : find_visit(running, node);
    if (v >= 0 && Py_TYPE(node) == S.accumulate && ends_at(running, v)) {
        Py_RETURN_NONE;
    }
    return PyBool_FromLong(running != NULL && executes(running, v));
}

/* The nodes that the innermost walk still runs, in their order. */
PyObject *walk_remaining(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *nodes = PyList_New(0);
    for (int i = running == NULL ? -1 : running->at; nodes != NULL && i >= 0; i--) {
        int v = running->order[i];
        if (executes(running, v) && PyList_Append(nodes, running->visits[v].node) < 0) {
            Py_CLEAR(nodes);
        }
    }
    return nodes;
}

/* What Tensor.backward does for one plain float without any arguments but retain_graph: None when it did not. */
PyObject *quick_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 2 || E.ops == NULL || is_watched() || !is_plain(args[0]) || array_of(args[0]) == NULL) {
        Py_RETURN_FALSE;
    }
    PyArrayObject *array = array_of(args[0]);
    if (PyArray_SIZE(array) != 1 || !float_width(array) || !is_contiguous(array)) {
        Py_RETURN_FALSE;
    }
    PyObject *edge = edge_of(args[0]);
    if (edge == NULL) {
        return NULL;
    }
    int without = edge == Py_None;
    Py_DECREF(edge);
    PyObject *anomaly = without ? NULL : PyObject_GetAttr(S.tls, E.anomaly);
    if (anomaly == NULL) {
        return without ? Py_NewRef(Py_False) : NULL;
    }
    PyObject *ones = new_like(array);
    if (ones != NULL && float_width(array) == 4) {
        *(float *)PyArray_DATA((PyArrayObject *)ones) = 1;
    }
    else if (ones != NULL) {
        *(double *)PyArray_DATA((PyArrayObject *)ones) = 1;
    }
    PyObject *grad = ones == NULL ? NULL : make_tensor(ones, SLOT(args[0], S.at_dtype));
    PyObject *grads = grad == NULL ? NULL : PyTuple_Pack(1, grad);
    Py_XDECREF(grad);
    PyObject *tensors = grads == NULL ? NULL : PyTuple_Pack(1, args[0]);
    PyObject *enabled = tensors == NULL ? NULL : PyObject_GetAttr(S.tls, S.grad_enabled);
    PyObject *results = NULL;
    if (enabled != NULL && PyObject_SetAttr(S.tls, S.grad_enabled, Py_False) == 0) {
        PyObject *const given[7] = {tensors, grads, Py_None, Py_True, args[1], Py_False, anomaly};
        results = run_backward(NULL, given, 7);
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (PyObject_SetAttr(S.tls, S.grad_enabled, enabled) < 0) {
            Py_CLEAR(results);
        }
        if (type != NULL) {
            PyErr_Restore(type, value, traceback);
        }
    }
    Py_DECREF(anomaly);
    Py_XDECREF(grads);
    Py_XDECREF(tensors);
    Py_XDECREF(enabled);
    if (results == NULL) {
        return NULL;
    }
    Py_DECREF(results);
    Py_RETURN_TRUE;
}

/* The tensor that an entry of `saved` stands for, a new reference; NULL without an exception when Python must look. */
PyObject *unpack_entry(PyObject *node, PyObject *entry)
{
    if (PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 2) {
        PyObject *tensor = PyTuple_GET_ITEM(entry, 0), *version = PyTuple_GET_ITEM(entry, 1);
        if (!PyObject_TypeCheck(tensor, S.tensor)) {
            return NULL;
        }
        PyObject *now = rare_number(counter_of(tensor), S.at_count);
        Py_ssize_t left, right;
        int same = now == version || (as_index(now, &left) && as_index(version, &right) && left == right);
        return same ? Py_NewRef(tensor) : NULL;
    }
    if (Py_TYPE(entry) == S.saved_output) {
        PyObject *reference = SLOT(entry, S.at_reference), *record = SLOT(entry, S.at_record), *keeper = referent(reference);
        int same = 1;
        const int followed = record != NULL && record != Py_None;
        if (followed || keeper != NULL) {
            Py_ssize_t left, right;
            PyObject *now = followed ? SLOT(record, S.at_count) : rare_number(keeper, S.at_count), *version = SLOT(entry, S.at_saved_version);
            same = now == version || (as_index(now, &left) && as_index(version, &right) && left == right);
        }
        Py_XDECREF(keeper);
        if (!same) {
            return NULL;
        }
        PyObject *made = make_tensor(Py_NewRef(SLOT(entry, S.at_payload)), SLOT(entry, S.at_kind)), *number = SLOT(entry, S.at_saved_number);
        if (made != NULL) {
            set_slot(made, S.at_node, Py_NewRef(node));
            if (number != S.zero) {
                PyObject *rare = need_rare(made);
                if (rare == NULL) {
                    Py_DECREF(made);
                    return NULL;
                }
                set_slot(rare, S.at_number, Py_NewRef(number));
            }
        }
        return made;
    }
    if (Py_TYPE(entry) == S.recomputed) {
        PyObject *made = PyObject_CallMethodOneArg(entry, S.unpack, node);
        if (made == NULL) {
            PyErr_Clear(); /* Python computes it once more, and says why it cannot */
        }
        return made;
    }
    if (PyList_CheckExact(entry)) {
        PyObject *all = PyList_New(PyList_GET_SIZE(entry));
        for (Py_ssize_t i = 0; all != NULL && i < PyList_GET_SIZE(entry); i++) {
            PyObject *item = unpack_entry(node, PyList_GET_ITEM(entry, i));
            if (item == NULL) {
                Py_CLEAR(all);
                break;
            }
            PyList_SET_ITEM(all, i, item);
        }
        return all;
    }
    return entry == Py_None ? Py_NewRef(entry) : NULL;
}

static PyObject *unpack(PyObject *node, PyObject *unused)
{
    (void)unused;
    PyObject *saved = SLOT(node, S.at_saved);
    if (saved == NULL || !PyList_CheckExact(saved)) {
        return PyObject_CallOneArg(E.unpack, node);
    }
    Py_INCREF(saved);
    PyObject *made = PyList_New(PyList_GET_SIZE(saved));
    for (Py_ssize_t i = 0; made != NULL && i < PyList_GET_SIZE(saved); i++) {
        PyObject *entry = PyList_GET_ITEM(saved, i);
        PyObject *item = unpack_entry(node, entry);
        if (item == NULL && !PyErr_Occurred()) {
            item = PyObject_CallFunctionObjArgs(E.unpack_one, node, entry, NULL);
        }
        if (item == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyList_SET_ITEM(made, i, item);
    }
    Py_DECREF(saved);
    return made;
}

static PyMethodDef unpack_method = {"unpack", unpack, METH_NOARGS,
                                    "unpack($self, /)\n--\n\nThe saved tensors. RuntimeError when they were freed, or changed in place since."};

/* connect_engine(ops, fit, first, added, before, after, accumulated, check_nan, count_error, release, unpack, unpack_one, add) */
PyObject *connect_engine(PyObject *module, PyObject *args)
{
    (void)module;
    EngineState made = {0};
    PyObject *add;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOOO", &made.ops, &made.fit, &made.first, &made.added, &made.before, &made.after,
                                      &made.accumulated, &made.check_nan, &made.count_error, &made.plain_release, &made.unpack, &made.unpack_one, &add)) {
        return NULL;
    }
    const Slot of_leaf[] = {{"reference", &made.at_leaf}, {"extras", &made.at_extras}, {NULL, NULL}};
    if (find_slots((PyObject *)S.accumulate, of_leaf) < 0) {
        return NULL;
    }
    made.apply = PyUnicode_InternFromString("apply");
    made.release = PyUnicode_InternFromString("release");
    made.anomaly = PyUnicode_InternFromString("anomaly");
    made.sum_dim = find_kernel("reduction.sum_dim_fast");
    made.mm = find_kernel("matmul.fast_mm");
    made.layer_norm = find_kernel("norm.native_layer_norm");
    made.layer_norm_backward = find_kernel("norm.native_layer_norm_backward");
    if (made.apply == NULL || made.release == NULL || made.anomaly == NULL || made.sum_dim == NULL || made.mm == NULL || made.layer_norm == NULL || made.layer_norm_backward == NULL || !find_loops(add, 0, made.add)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_LookupError, "a kernel that the walk needs is not there");
        }
        return NULL;
    }
    PyObject *const kept[] = {made.ops,   made.fit,         made.first,     made.added,       made.before,
                              made.after, made.accumulated, made.check_nan, made.count_error, made.plain_release, made.unpack, made.unpack_one};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        Py_INCREF(kept[i]);
    }
    E = made;
    PyObject *method = PyDescr_NewMethod(S.node, &unpack_method);
    int status = method == NULL ? -1 : PyObject_SetAttrString((PyObject *)S.node, "unpack", method);
    Py_XDECREF(method);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}
