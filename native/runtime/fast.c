/* Fast: a callable that stands before a generated function or method, and the road that its calls take.
 *
 * It holds the paths of the function's overloads, in the order in which they are tried. The first that the arguments fit runs: by a short cut where
 * it has one, by its plan, or, of a composite operator, by the function behind it. Whatever does not fit is left to the Python function, called
 * with the very arguments.
 */
#include "npu.h"
#include "making.h"

/* ------------------------------------------------------------------------------------------------------------- calling */

static Recordable recordable(const Path *path)
{
    return (Recordable){path->op,      (const Blocked *)path->loops_of_op, path->blocks, path->roles, path->params, path->numbers, path->is_view,
                        path->run == run_kernel ? path->fast : NULL};
}

/* What `function`, which looks at a call as a whole, says of one: function(first, second, operators, positional arguments, named ones, form). */
static PyObject *ask(PyObject *function, PyObject *first, PyObject *second, Fast *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *ops = PyTuple_New(self->count), *given = PyTuple_New(n), *named = PyDict_New(), *found = NULL;
    int built = ops != NULL && given != NULL && named != NULL;
    for (int i = 0; built && i < self->count; i++) {
        PyTuple_SET_ITEM(ops, i, Py_NewRef(self->paths[i].op));
    }
    for (Py_ssize_t i = 0; built && i < n; i++) {
        PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    }
    for (Py_ssize_t i = 0; built && kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        built = PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), args[n + i]) == 0;
    }
    if (built) {
        found = PyObject_CallFunctionObjArgs(function, first, second, ops, given, named, self->form, NULL);
    }
    Py_XDECREF(ops);
    Py_XDECREF(given);
    Py_XDECREF(named);
    return found;
}

/* After a TypeError of the Python function: the error in PyTorch's words where the arguments do not fit, else the one there is. */
static void refuse(Fast *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    PyObject *found = ask(S.refusal, error, self->fallback, self, args, n, kwnames);
    if (found == error) {
        PyErr_Restore(kind, error, trace);
    }
    else {
        if (found != NULL) {
            PyErr_SetObject((PyObject *)Py_TYPE(found), found);
        }
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
    Py_XDECREF(found);
}

/* The call by the Python function. */
static PyObject *call_fallback(Fast *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *result = PyObject_Vectorcall(self->fallback, args, nargsf, kwnames);
    if (result == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        refuse(self, args, PyVectorcall_NARGS(nargsf), kwnames);
    }
    return result;
}

/* The pending result of a call in a pipeline. `key` is set where the call may be learnt from. */
static PyObject *run_recorded(const Path *path, PyObject *recorder, PyObject *const *bound, PyObject **key)
{
    if (path->inplace) {
        return NULL;
    }
    const Recordable call = recordable(path);
    int history = 0;
    PyObject *made = path->loops_of_op == NULL ? NULL : pipeline_record(recorder, &call, bound, &history);
    if (made == NULL && !PyErr_Occurred()) {
        if (path->is_view && is_plain(bound[0]) && array_of(bound[0]) != NULL) {
            return path->run(path, bound); /* a view of memory that is there */
        }
        PyObject *found = recall_key(recorder, &call, bound);
        if (found == NULL) {
            return NULL;
        }
        made = recall(recorder, &call, found, bound, &history);
        if (made == NULL && *key == NULL) {
            *key = Py_NewRef(found);
        }
        Py_DECREF(found);
        if (made != NULL && path->is_view) {
            return finish_view(made, bound[0], path->op, bound, path->params);
        }
    }
    return made == NULL || !history || !path->records ? made : record_call(path->op, made, bound, path->params);
}

/* A call that a careful pipeline does not let wait, as without a pipeline. NULL without an exception leaves it to Python. */
static PyObject *run_at_once(Path *path, const Bound *bound)
{
    for (int i = 0; i < path->params; i++) {
        if (bound->value[i] != NULL && settle_argument(bound->value[i]) < 0) {
            return NULL;
        }
    }
    if (bound->out != NULL) {
        return NULL;
    }
    PyObject *result = path->run == NULL ? NULL : path->run(path, bound->value);
    if (result == NULL && path->by == BY_PLAN && !PyErr_Occurred()) {
        result = run_planned(path, bound);
    }
    return result;
}

static PyObject *call_recording(Fast *self, PyObject *recorder, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    Bound bound;
    PyObject *key = NULL, *result = NULL;
    const Path *learnt = NULL;
    bound.owned_count = 0;
    for (int i = 0; i < self->count && result == NULL && learnt == NULL; i++) {
        const Path *path = &self->paths[i];
        int fits = bind_path(path, args, n, kwnames, &bound);
        if (fits == FITS && path->runs_at_once && recorder_is_careful(recorder)) {
            result = run_at_once((Path *)path, &bound);
            bound_clear(&bound);
            break;
        }
        if (fits == FITS && path->run != NULL && bound.out == NULL) {
            result = run_recorded(path, recorder, bound.value, &key);
            learnt = key == NULL ? NULL : path;
        }
        if (PyErr_Occurred()) {
            Py_CLEAR(result);
            goto done;
        }
        if (learnt == NULL) {
            bound_clear(&bound);
        }
        if (fits != UNFIT) {
            break;
        }
    }
    if (result == NULL && !PyErr_Occurred()) {
        result = call_fallback(self, args, nargsf, kwnames);
        if (result != NULL && learnt != NULL) {
            const Recordable call = recordable(learnt);
            recall_learn(recorder, &call, key, bound.value, result);
        }
    }
done:
    bound_clear(&bound);
    Py_XDECREF(key);
    return result;
}

/* Gives the arguments the precision in which autocast lets the operator compute, if it is on in this thread. */
static int cast_arguments(const Path *path, Bound *bound)
{
    PyObject *caster = PyObject_GetAttr(S.tls, S.autocast);
    if (caster == NULL || caster == Py_None) {
        Py_XDECREF(caster);
        PyErr_Clear();
        return FITS;
    }
    PyObject *given = PyTuple_New(path->params);
    for (int i = 0; given != NULL && i < path->params; i++) {
        PyTuple_SET_ITEM(given, i, Py_NewRef(bound->value[i]));
    }
    PyObject *cast = given == NULL ? NULL : PyObject_CallMethodObjArgs(caster, S.cast, path->op, given, NULL);
    Py_DECREF(caster);
    Py_XDECREF(given);
    if (cast == NULL || bound->owned_count == MAX_OWNED) {
        Py_XDECREF(cast);
        return UNKNOWN;
    }
    bound->owned[bound->owned_count++] = cast;
    for (int i = 0; i < path->params; i++) {
        bound->value[i] = PyTuple_GET_ITEM(cast, i);
    }
    return FITS;
}

/* The call by the path that its arguments fit; NULL without an exception leaves it to Python. */
static PyObject *call_path(Fast *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    for (int i = 0; i < self->count; i++) {
        Path *path = &self->paths[i];
        Bound bound;
        PyObject *result = NULL;
        int fits = bind_path(path, args, n, kwnames, &bound);
        if (fits == FITS && S.casting && path->autocast && !path->inplace && bound.out == NULL) {
            fits = cast_arguments(path, &bound);
        }
        if (fits == FITS) {
            if (path->run != NULL && bound.out == NULL) {
                result = path->run(path, bound.value);
            }
            if (result == NULL && N.ready && path->by == BY_PLAN && !PyErr_Occurred()) {
                result = run_launched(path, &bound);
            }
            if (result == NULL && path->by && !PyErr_Occurred()) {
                result = path->by == BY_PLAN ? run_planned(path, &bound) : run_composite(path, &bound);
            }
        }
        bound_clear(&bound);
        if (fits != UNFIT || PyErr_Occurred()) {
            return result;
        }
    }
    return NULL;
}

PyObject *fast_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Fast *self = (Fast *)callable;
    int special = is_special();
    if (special && S.profile != NULL) {
        PyObject *result = ask(S.profile, callable, self->fallback, self, args, PyVectorcall_NARGS(nargsf), kwnames);
        if (result != Py_NotImplemented) {
            return result;
        }
        Py_DECREF(result);
    }
    if (special) {
        PyObject *recorder = S.inferring || S.casting ? NULL : pipeline_recorder();
        if (recorder != NULL) {
            PyObject *result = call_recording(self, recorder, args, nargsf, kwnames);
            Py_DECREF(recorder);
            return result;
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    if (!special || (is_recording() && !S.inferring && !S.casting)) { /* pipelines of other threads change nothing here */
        PyObject *result = call_path(self, args, PyVectorcall_NARGS(nargsf), kwnames);
        if (result != NULL || PyErr_Occurred()) {
            return result;
        }
    }
    return call_fallback(self, args, nargsf, kwnames);
}

/* Whether an argument cannot take over a call: a plain tensor, a builtin value, or a list or tuple of those. */
static int is_ordinary(PyObject *value, int in_list)
{
    PyTypeObject *type = Py_TYPE(value);
    if (is_plain(value) || value == Py_None || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyUnicode_Type ||
        type == M.dtype) {
        return 1;
    }
    if (in_list || (type != &PyList_Type && type != &PyTuple_Type)) {
        return 0;
    }
    PyObject **items = PySequence_Fast_ITEMS(value);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
        if (!is_ordinary(items[i], 1)) {
            return 0;
        }
    }
    return 1;
}

/* A function that is no operator: its fallback; where something may take over the call, `form`, which asks. */
PyObject *front_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Fast *self = (Fast *)callable;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    int ordinary = !is_special();
    for (Py_ssize_t i = 0; ordinary && i < n; i++) {
        ordinary = is_ordinary(args[i], 0);
    }
    return PyObject_Vectorcall(ordinary ? self->fallback : self->form, args, nargsf, kwnames);
}

/* ---------------------------------------------------------------------------------------------------------- connecting */

PyObject *connect_road(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"learn", "refusal", "errors", "quiet", "bfloat16", "generator", "mark_views", NULL};
    PyObject *learn, *refusal, *errors, *quiet, *half, *generator, *mark_views;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!OO!O!O", keywords, &learn, &refusal, &PyContextVar_Type, &errors, &quiet, &PyArrayDescr_Type, &half,
                                     &PyType_Type, &generator, &mark_views)) {
        return NULL;
    }
    S.out_names = Py_BuildValue("(s)", "out");
    S.out_casting_names = Py_BuildValue("(ss)", "out", "casting");
    S.unsafe = PyUnicode_InternFromString("unsafe");
    S.note_written = PyUnicode_InternFromString("note_written");
    S.multi_view = PyUnicode_InternFromString("_multi_view");
    if (S.out_names == NULL || S.out_casting_names == NULL || S.unsafe == NULL || S.note_written == NULL || S.multi_view == NULL) {
        return NULL;
    }
    S.generator = (PyTypeObject *)Py_NewRef(generator);
    S.mark_views = Py_NewRef(mark_views);
    S.learn = Py_NewRef(learn);
    S.refusal = Py_NewRef(refusal);
    S.errors = Py_NewRef(errors);
    S.quiet = Py_NewRef(quiet);
    S.descr_bfloat16 = (PyArray_Descr *)Py_NewRef(half);
    Py_RETURN_NONE;
}

/* One more inference mode or autocast, or one less: (of which, by how much). */
PyObject *count_modes(PyObject *module, PyObject *args)
{
    int inferring, casting;
    (void)module;
    if (!PyArg_ParseTuple(args, "ii", &inferring, &casting)) {
        return NULL;
    }
    S.inferring += inferring;
    S.casting += casting;
    return Py_BuildValue("ii", S.inferring, S.casting);
}

/* While a profiler is on, the function that is asked about each call first, and answers NotImplemented where it has nothing to do with it; else None. */
PyObject *set_profile(PyObject *module, PyObject *function)
{
    (void)module;
    Py_XSETREF(S.profile, function == Py_None ? NULL : Py_NewRef(function));
    Py_RETURN_NONE;
}

PyObject *forget_plans(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    S.epoch_of_plans++;
    Py_RETURN_NONE;
}
