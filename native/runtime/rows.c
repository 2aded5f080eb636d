/* Calls over parts of their operands, one part after the other: see Note [Rows] in `_dispatch/pipeline/rows.py`, which says what is called.
 *
 * Operands are numbered: the sources from outside, then the results of the calls, then the windows into results.
 */
#include "pipeline.h"

#define MOST_ARGS 24

/* The members of the tuples that rows.py makes: of a source, a window, a call, what a call gives, and a chain, which stands in place of names. */
enum { SOURCE_ARRAY, SOURCE_DTYPE, SOURCE_DROPS, SOURCE_MOVES, SOURCE_SIZE };
enum { WINDOW_OF, WINDOW_SHAPE, WINDOW_STRIDE, WINDOW_OFFSET, WINDOW_DTYPE, WINDOW_SIZE };
enum { CALL_FUNCTION, CALL_ARGS, CALL_NAMES, CALL_RESULTS, CALL_TAKES_OUT, CALL_RELEASES, CALL_SIZE };
enum { RESULT_NUMBER, RESULT_TARGET, RESULT_DTYPE, RESULT_SIZE };
enum { CHAIN_WIDTH, CHAIN_SHAPE, CHAIN_STEPS, CHAIN_TEMPORARIES, CHAIN_NUMBERS, CHAIN_SIZE };

typedef struct {
    PyObject *sources, *windows, *calls;
    Py_ssize_t source_count, result_count, window_count, call_count;
    PyObject **operands;       /* owned, NULL where there is none (yet) */
    npy_intp place[MAX_DIMS];  /* of the dimensions before the cut */
    int at;                    /* the dimension that is cut */
    npy_intp first, rows;      /* the part of it */
} Parts;

static int wrong(const char *what)
{
    PyErr_Format(PyExc_ValueError, "run_rows: %s", what);
    return -1;
}

/* The part of an array of which `drops` are its dimensions before the cut: for each that of the place, -1 where it has one element there. */
static PyObject *part_of(const Parts *parts, PyArrayObject *array, PyObject *drops, int moves)
{
    int gone = (int)PyTuple_GET_SIZE(drops), ndim = PyArray_NDIM(array) - gone;
    char *data = PyArray_BYTES(array);
    if (ndim < 0 || ndim > MAX_DIMS || (moves && ndim == 0)) {
        wrong("a source with fewer dimensions than it is cut by");
        return NULL;
    }
    for (int d = 0; d < gone; d++) {
        Py_ssize_t at;
        if (!as_index(PyTuple_GET_ITEM(drops, d), &at) || at >= parts->at) {
            wrong("no such dimension");
            return NULL;
        }
        if (at >= 0) {
            if (parts->place[at] >= PyArray_DIM(array, d)) {
                wrong("a source is smaller than the lead");
                return NULL;
            }
            data += parts->place[at] * PyArray_STRIDE(array, d);
        }
    }
    npy_intp dims[MAX_DIMS];
    memcpy(dims, PyArray_DIMS(array) + gone, sizeof(npy_intp) * (size_t)ndim);
    if (moves) {
        if (parts->first + parts->rows > dims[0]) {
            wrong("a source is smaller than the lead");
            return NULL;
        }
        data += parts->first * PyArray_STRIDE(array, gone);
        dims[0] = parts->rows;
    }
    return new_view(array, ndim, dims, PyArray_STRIDES(array) + gone, data);
}

static int take_sources(Parts *parts)
{
    for (Py_ssize_t i = 0; i < parts->source_count; i++) {
        PyObject *source = PyTuple_GET_ITEM(parts->sources, i);
        PyObject *view = part_of(parts, (PyArrayObject *)PyTuple_GET_ITEM(source, SOURCE_ARRAY), PyTuple_GET_ITEM(source, SOURCE_DROPS),
                                 PyTuple_GET_ITEM(source, SOURCE_MOVES) == Py_True);
        PyObject *tensor = view == NULL ? NULL : make_tensor(view, PyTuple_GET_ITEM(source, SOURCE_DTYPE));
        if (tensor == NULL) {
            return -1;
        }
        Py_XSETREF(parts->operands[i], tensor);
    }
    return 0;
}

/* A window into the part of a result. */
static PyObject *window_of(const Parts *parts, PyObject *window)
{
    Py_ssize_t of, offset;
    npy_intp dims[MAX_DIMS], strides[MAX_DIMS];
    int ndim, same;
    PyArrayObject *array = NULL;
    if (as_index(PyTuple_GET_ITEM(window, WINDOW_OF), &of) && of >= parts->source_count && of < parts->source_count + parts->result_count &&
        parts->operands[of] != NULL) {
        array = array_of(parts->operands[of]);
    }
    if (array == NULL || !is_contiguous(array) || !as_index(PyTuple_GET_ITEM(window, WINDOW_OFFSET), &offset) ||
        !read_dims(PyTuple_GET_ITEM(window, WINDOW_SHAPE), &ndim, dims + 1) || !read_dims(PyTuple_GET_ITEM(window, WINDOW_STRIDE), &same, strides) ||
        same != ndim + 1) {
        wrong("a window into what is no array");
        return NULL;
    }
    npy_intp item = PyArray_ITEMSIZE(array), reach = offset;
    dims[0] = parts->rows;
    for (int d = 0; d < same; d++) {
        reach += dims[d] > 0 && strides[d] >= 0 ? (dims[d] - 1) * strides[d] : PyArray_SIZE(array);
        strides[d] *= item;
    }
    if (offset < 0 || reach >= PyArray_SIZE(array)) {
        wrong("a window leaves its value");
        return NULL;
    }
    PyObject *view = new_view(array, same, dims, strides, PyArray_BYTES(array) + offset * item);
    return view == NULL ? NULL : make_tensor(view, PyTuple_GET_ITEM(window, WINDOW_DTYPE));
}

/* An operand by its number; borrowed. */
static PyObject *operand_at(Parts *parts, PyObject *number)
{
    Py_ssize_t at, made = parts->source_count + parts->result_count;
    if (!as_index(number, &at) || at < 0 || at >= made + parts->window_count) {
        wrong("no such operand");
        return NULL;
    }
    if (at >= made && parts->operands[at] == NULL) {
        parts->operands[at] = window_of(parts, PyTuple_GET_ITEM(parts->windows, at - made));
    }
    if (parts->operands[at] == NULL && !PyErr_Occurred()) {
        wrong("an operand is read that is not there");
    }
    return parts->operands[at];
}

/* An argument (a new reference): the operand of a number, a list of those of a tuple, what a list of one holds. */
static PyObject *argument_of(Parts *parts, PyObject *item)
{
    if (PyLong_CheckExact(item)) {
        return Py_XNewRef(operand_at(parts, item));
    }
    if (PyList_CheckExact(item) && PyList_GET_SIZE(item) == 1) {
        return Py_NewRef(PyList_GET_ITEM(item, 0));
    }
    if (!PyTuple_CheckExact(item)) {
        wrong("an argument is a number, a tuple of numbers, or a list of one value");
        return NULL;
    }
    PyObject *list = PyList_New(PyTuple_GET_SIZE(item));
    for (Py_ssize_t i = 0; list != NULL && i < PyTuple_GET_SIZE(item); i++) {
        PyObject *one = operand_at(parts, PyTuple_GET_ITEM(item, i));
        if (one == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, Py_NewRef(one));
    }
    return list;
}

/* Copies a result to its part of the array that keeps it. */
static int keep(PyObject *result, PyArrayObject *target)
{
    PyArrayObject *array = Py_TYPE(result) == S.tensor ? array_of(result) : NULL;
    if (array == NULL) {
        return wrong("a call gave what is no array");
    }
    return PyArray_CopyInto(target, array);
}

/* The part of a target that is computed now, or NULL with an exception. */
static PyObject *part_of_target(const Parts *parts, PyArrayObject *array)
{
    npy_intp dims[MAX_DIMS];
    int ndim = PyArray_NDIM(array) - parts->at;
    char *data = PyArray_BYTES(array);
    for (int d = 0; d < parts->at; d++) {
        data += parts->place[d] * PyArray_STRIDE(array, d);
    }
    data += parts->first * PyArray_STRIDE(array, parts->at);
    memcpy(dims, PyArray_DIMS(array) + parts->at, sizeof(npy_intp) * (size_t)ndim);
    dims[0] = parts->rows;
    return new_view(array, ndim, dims, PyArray_STRIDES(array) + parts->at, data);
}

static int run_function(Parts *parts, PyObject *call)
{
    PyObject *args = PyTuple_GET_ITEM(call, CALL_ARGS), *names = PyTuple_GET_ITEM(call, CALL_NAMES);
    PyObject *given[MOST_ARGS + 2], **values = given + 1, *result = NULL, *target = NULL;
    PyObject *gives = PyTuple_GET_ITEM(PyTuple_GET_ITEM(call, CALL_RESULTS), 0), *whole = PyTuple_GET_ITEM(gives, RESULT_TARGET);
    int takes_out = PyTuple_GET_ITEM(call, CALL_TAKES_OUT) == Py_True;
    Py_ssize_t count = 0, named = PyTuple_GET_SIZE(names), total = PyTuple_GET_SIZE(args), number;
    if (total > MOST_ARGS || !as_index(PyTuple_GET_ITEM(gives, RESULT_NUMBER), &number)) {
        return wrong("too many arguments");
    }
    for (; count < total; count++) {
        values[count] = argument_of(parts, PyTuple_GET_ITEM(args, count));
        if (values[count] == NULL) {
            goto done;
        }
    }
    if (whole != Py_None) {
        target = part_of_target(parts, (PyArrayObject *)whole);
        if (target == NULL) {
            goto done;
        }
        if (takes_out) { /* its name is the last one */
            values[count] = make_tensor(Py_NewRef(target), PyTuple_GET_ITEM(gives, RESULT_DTYPE));
            if (values[count] == NULL) {
                goto done;
            }
            count++;
        }
    }
    result = PyObject_Vectorcall(PyTuple_GET_ITEM(call, CALL_FUNCTION), values, (size_t)(count - named) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                 named ? names : NULL);
    if (result != NULL && target != NULL && !takes_out && keep(result, (PyArrayObject *)target) < 0) {
        Py_CLEAR(result);
    }
done:
    while (count > 0) {
        Py_DECREF(values[--count]);
    }
    Py_XDECREF(target);
    if (result == NULL) {
        return -1;
    }
    Py_XSETREF(parts->operands[number], result);
    return 0;
}

/* An operand of a chain, stretched to its shape (a new reference). */
static PyArrayObject *stretched(PyArrayObject *array, int ndim, const npy_intp *dims)
{
    npy_intp strides[MAX_DIMS];
    int lacks = ndim - PyArray_NDIM(array);
    if (PyArray_NDIM(array) == 0 || (lacks == 0 && PyArray_CompareLists(PyArray_DIMS(array), dims, ndim))) {
        return (PyArrayObject *)Py_NewRef((PyObject *)array);
    }
    for (int d = 0; d < ndim; d++) {
        npy_intp size = d < lacks ? 1 : PyArray_DIM(array, d - lacks);
        if (lacks < 0 || (size != 1 && size != dims[d])) {
            wrong("an operand has another shape");
            return NULL;
        }
        strides[d] = size == 1 ? 0 : PyArray_STRIDE(array, d - lacks);
    }
    return (PyArrayObject *)new_view(array, ndim, dims, strides, PyArray_BYTES(array));
}

static int read_steps(PyObject *instructions, BlockStep *step)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(instructions); i++) {
        PyObject *one = PyTuple_GET_ITEM(instructions, i);
        Py_ssize_t value[2 + BLOCK_SOURCES], size = PyTuple_CheckExact(one) ? PyTuple_GET_SIZE(one) : 0;
        if (size < 3 || size > 2 + BLOCK_SOURCES) {
            return wrong("an instruction of another form");
        }
        memset(&step[i], 0, sizeof(*step));
        step[i].count = (int)size - 2;
        for (Py_ssize_t k = 0; k < size; k++) {
            if (!as_index(PyTuple_GET_ITEM(one, k), &value[k]) || value[k] < 0 || value[k] > BLOCK_SLOTS) {
                return wrong("an instruction of another form");
            }
            *(k == 0 ? &step[i].opcode : k == 1 ? &step[i].target : &step[i].sources[k - 2]) = (int)value[k];
        }
    }
    return 0;
}

#define MOST_STEPS 64

static int run_loops(Parts *parts, PyObject *call)
{
    PyObject *inputs = PyTuple_GET_ITEM(call, CALL_ARGS), *chain = PyTuple_GET_ITEM(call, CALL_NAMES), *results = PyTuple_GET_ITEM(call, CALL_RESULTS);
    PyObject *numbers = PyTuple_GET_ITEM(chain, CHAIN_NUMBERS), *instructions = PyTuple_GET_ITEM(chain, CHAIN_STEPS);
    Py_ssize_t width, temporaries, number, in = PyTuple_GET_SIZE(inputs), out = PyTuple_GET_SIZE(results), steps = PyTuple_GET_SIZE(instructions);
    PyArrayObject *arrays[5 * MOST_STEPS + MOST_STEPS];
    double immediates[5 * MOST_STEPS];
    BlockStep step[MOST_STEPS];
    npy_intp dims[MAX_DIMS];
    int ndim, ready = 0, failed = -1;
    if (steps > MOST_STEPS || in > 5 * MOST_STEPS || out > MOST_STEPS || PyTuple_GET_SIZE(numbers) > 5 * MOST_STEPS ||
        !as_index(PyTuple_GET_ITEM(chain, CHAIN_WIDTH), &width) || !as_index(PyTuple_GET_ITEM(chain, CHAIN_TEMPORARIES), &temporaries) ||
        !read_dims(PyTuple_GET_ITEM(chain, CHAIN_SHAPE), &ndim, dims + 1) || ndim + 1 > MAX_DIMS) {
        return wrong("a chain of another form");
    }
    dims[0] = parts->rows;
    ndim++;
    if (read_steps(instructions, step) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++) {
        immediates[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(numbers, i));
        if (immediates[i] == -1.0 && PyErr_Occurred()) {
            return -1;
        }
    }
    for (; ready < in; ready++) {
        PyObject *operand = operand_at(parts, PyTuple_GET_ITEM(inputs, ready));
        PyArrayObject *array = operand == NULL ? NULL : array_of(operand);
        if (array == NULL) {
            wrong("an operand is no array");
            goto done;
        }
        arrays[ready] = stretched(array, ndim, dims);
        if (arrays[ready] == NULL) {
            goto done;
        }
    }
    for (Py_ssize_t i = 0; i < out; i++, ready++) {
        PyObject *gives = PyTuple_GET_ITEM(results, i), *whole = PyTuple_GET_ITEM(gives, RESULT_TARGET), *kind = PyTuple_GET_ITEM(gives, RESULT_DTYPE);
        PyArray_Descr *descr = kind == S.bool_ ? S.descr_bool : width == 8 ? S.descr64 : S.descr32;
        PyObject *made = whole == Py_None ? new_array(ndim, dims, descr) : part_of_target(parts, (PyArrayObject *)whole);
        if (made == NULL) {
            goto done;
        }
        arrays[ready] = (PyArrayObject *)made;
    }
    BlockProgram *program = block_program((int)width, ndim, dims, (int)(in + out), arrays, (int)in, (int)temporaries, (int)PyTuple_GET_SIZE(numbers),
                                          immediates, (int)steps, step);
    if (program == NULL) {
        goto done;
    }
    failed = block_run(program) < 0 ? -1 : 0;
    block_free(program);
    for (Py_ssize_t i = 0; !failed && i < out; i++) {
        PyObject *gives = PyTuple_GET_ITEM(results, i);
        PyObject *tensor = make_tensor(Py_NewRef((PyObject *)arrays[in + i]), PyTuple_GET_ITEM(gives, RESULT_DTYPE));
        if (tensor == NULL || !as_index(PyTuple_GET_ITEM(gives, RESULT_NUMBER), &number)) {
            Py_XDECREF(tensor);
            failed = -1;
            break;
        }
        Py_XSETREF(parts->operands[number], tensor);
    }
done:
    while (ready > 0) {
        Py_DECREF(arrays[--ready]);
    }
    return failed;
}

static int run_call(Parts *parts, Py_ssize_t at)
{
    PyObject *call = PyTuple_GET_ITEM(parts->calls, at), *releases = PyTuple_GET_ITEM(call, CALL_RELEASES);
    int failed = PyTuple_GET_ITEM(call, CALL_FUNCTION) == Py_None ? run_loops(parts, call) : run_function(parts, call);
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(releases); i++) {
        Py_ssize_t which;
        if (as_index(PyTuple_GET_ITEM(releases, i), &which) && which >= 0 && which < parts->source_count + parts->result_count + parts->window_count) {
            Py_CLEAR(parts->operands[which]);
        }
    }
    return failed;
}

/* All parts of the cut dimension, at the present place of those before it. */
static int run_place(Parts *parts, npy_intp length, const npy_intp *lead)
{
    for (parts->first = 0; parts->first < lead[parts->at]; parts->first += length) {
        npy_intp left = lead[parts->at] - parts->first;
        parts->rows = left < length ? left : length;
        int failed = take_sources(parts);
        for (Py_ssize_t i = 0; !failed && i < parts->call_count; i++) {
            failed = run_call(parts, i);
        }
        for (Py_ssize_t i = 0; i < parts->source_count + parts->result_count + parts->window_count; i++) {
            Py_CLEAR(parts->operands[i]);
        }
        if (failed || PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
    return 0;
}

static int check(PyObject *items, Py_ssize_t size)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        if (!PyTuple_CheckExact(item) || PyTuple_GET_SIZE(item) != size) {
            return wrong("a source, window or call of another form");
        }
    }
    return 0;
}

static int check_results(PyObject *results, int ndim, const npy_intp *lead, Py_ssize_t first, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); i++) {
        PyObject *gives = PyTuple_GET_ITEM(results, i);
        PyObject *target = PyTuple_CheckExact(gives) && PyTuple_GET_SIZE(gives) == RESULT_SIZE ? PyTuple_GET_ITEM(gives, RESULT_TARGET) : NULL;
        Py_ssize_t number;
        if (target == NULL || !as_index(PyTuple_GET_ITEM(gives, RESULT_NUMBER), &number) || number < first || number >= first + count) {
            return wrong("a result of another form");
        }
        if (target != Py_None && (!is_array(target) || PyArray_NDIM((PyArrayObject *)target) < ndim || PyArray_NDIM((PyArrayObject *)target) > MAX_DIMS ||
                                  !PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)target), lead, ndim))) {
            return wrong("a target has another lead");
        }
    }
    return 0;
}

/* Kinds of members, and that a target has the lead. */
static int check_members(PyObject *sources, PyObject *calls, int ndim, const npy_intp *lead, Py_ssize_t results)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sources); i++) {
        PyObject *source = PyTuple_GET_ITEM(sources, i);
        if (!is_array(PyTuple_GET_ITEM(source, SOURCE_ARRAY)) || !PyTuple_CheckExact(PyTuple_GET_ITEM(source, SOURCE_DROPS))) {
            return wrong("a source is an array");
        }
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(calls); i++) {
        PyObject *call = PyTuple_GET_ITEM(calls, i), *names = PyTuple_GET_ITEM(call, CALL_NAMES), *gives = PyTuple_GET_ITEM(call, CALL_RESULTS);
        int loops = PyTuple_GET_ITEM(call, CALL_FUNCTION) == Py_None;
        if (!PyTuple_CheckExact(PyTuple_GET_ITEM(call, CALL_ARGS)) || !PyTuple_CheckExact(names) || !PyTuple_CheckExact(gives) ||
            !PyTuple_CheckExact(PyTuple_GET_ITEM(call, CALL_RELEASES)) || PyTuple_GET_SIZE(gives) < 1 || (!loops && PyTuple_GET_SIZE(gives) != 1)) {
            return wrong("arguments, names, results and releases are tuples");
        }
        if (loops && (PyTuple_GET_SIZE(names) != CHAIN_SIZE || !PyTuple_CheckExact(PyTuple_GET_ITEM(names, CHAIN_STEPS)) ||
                      !PyTuple_CheckExact(PyTuple_GET_ITEM(names, CHAIN_NUMBERS)))) {
            return wrong("a chain of another form");
        }
        if (check_results(gives, ndim, lead, PyTuple_GET_SIZE(sources), results) < 0) {
            return -1;
        }
    }
    return 0;
}

/* run_rows(sources, windows, calls, results, lead, at, length), where `results` is how many numbers those have: nothing; what it computes is in the targets of the calls. */
PyObject *run_rows(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    npy_intp lead[MAX_DIMS];
    int ndim;
    Py_ssize_t at, length, results;
    if (count != 7 || !PyTuple_CheckExact(args[0]) || !PyTuple_CheckExact(args[1]) || !PyTuple_CheckExact(args[2]) || !read_dims(args[4], &ndim, lead) ||
        !as_index(args[3], &results) || !as_index(args[5], &at) || !as_index(args[6], &length) || results < 1 || at < 0 || at >= ndim || length < 1) {
        PyErr_SetString(PyExc_TypeError, "run_rows(sources, windows, calls, results, lead, at, length)");
        return NULL;
    }
    if (check(args[0], SOURCE_SIZE) < 0 || check(args[1], WINDOW_SIZE) < 0 || check(args[2], CALL_SIZE) < 0 ||
        check_members(args[0], args[2], ndim, lead, results) < 0) {
        return NULL;
    }
    Parts parts = {.sources = args[0], .windows = args[1], .calls = args[2], .at = (int)at};
    parts.source_count = PyTuple_GET_SIZE(args[0]);
    parts.window_count = PyTuple_GET_SIZE(args[1]);
    parts.call_count = PyTuple_GET_SIZE(args[2]);
    parts.result_count = results;
    parts.operands = PyMem_Calloc((size_t)(parts.source_count + parts.result_count + parts.window_count + 1), sizeof(PyObject *));
    if (parts.operands == NULL) {
        return PyErr_NoMemory();
    }
    int failed = 0, done = 0;
    while (!failed && !done) {
        failed = run_place(&parts, length, lead) < 0;
        done = 1;
        for (int d = (int)at - 1; d >= 0; d--) {
            if (++parts.place[d] < lead[d]) {
                done = 0;
                break;
            }
            parts.place[d] = 0;
        }
    }
    PyMem_Free(parts.operands);
    if (failed) {
        return NULL;
    }
    Py_RETURN_NONE;
}
