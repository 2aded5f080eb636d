/* Bind: the arguments of a call in the order and of the types that the schema says.
 *
 * Kinds of parameters: T tensor, N tensor for which a number may stand, V list of tensors, v list of tensors or None, I int, L list of ints,
 * F float, B bool, S number, X str, D dtype, C device, G generator, O an object taken as it is (layout, memory format), R list of floats (which
 * Python reads), ? what Python has to look at.
 * An argument either fits, or certainly does not (so that the next overload is tried), or Python decides: numpy's numbers, tensors that stand
 * for numbers, subclasses, whatever has __torch_function__.
 */
#include "plan.h"

static int same_name(PyObject *a, PyObject *b)
{
    return a == b || (PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_Compare(a, b) == 0);
}

void bound_clear(Bound *bound)
{
    for (int i = 0; i < bound->owned_count; i++) {
        Py_DECREF(bound->owned[i]);
    }
    bound->owned_count = 0;
}

/* Takes over the reference. */
static int keep(Bound *bound, int at, PyObject *made)
{
    if (made == NULL) {
        PyErr_Clear();
        return UNKNOWN;
    }
    if (bound->owned_count == MAX_OWNED) {
        Py_DECREF(made);
        return UNKNOWN;
    }
    bound->owned[bound->owned_count++] = made;
    bound->value[at] = made;
    return FITS;
}

/* Whether an object is of a type that Python itself has, and so means what it is. */
static int is_builtin(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    return object == Py_None || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyUnicode_Type ||
           type == &PyTuple_Type || type == &PyList_Type || type == &PyComplex_Type || type == &PyDict_Type || type == &PySlice_Type;
}

/* Whether a whole number has a place in 64 bits; one that has none is refused in Python, in PyTorch's words. */
static inline int is_word(PyObject *number)
{
    int overflow;
    (void)PyLong_AsLongLongAndOverflow(number, &overflow);
    return !overflow;
}

static int is_number(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    return type == &PyLong_Type ? is_word(object) : type == &PyFloat_Type || type == &PyBool_Type || type == &PyComplex_Type;
}

/* Whether an object is one of numpy's numbers, each of which stands for Python's of its value. */
static inline int is_numpy_number(PyObject *object)
{
    return PyArray_IsScalar(object, Number) || PyArray_IsScalar(object, Bool);
}

static int otherwise(PyObject *object)
{
    if (PyLong_CheckExact(object) && !is_word(object)) {
        return UNKNOWN;
    }
    return is_builtin(object) || Py_TYPE(object) == S.tensor || is_numpy_number(object) ? UNFIT : UNKNOWN;
}

/* Takes Python's number for numpy's, where the parameter takes numbers of that kind. */
static int take_numpy_number(char kind, int at, PyObject *value, Bound *bound)
{
    int fits = kind == 'I' ? PyArray_IsScalar(value, Integer) : kind == 'B' ? PyArray_IsScalar(value, Bool) : kind != 'F' || !PyArray_IsScalar(value, Bool);
    if (!fits || (kind == 'F' && PyArray_IsScalar(value, ComplexFloating))) {
        return UNFIT;
    }
    PyObject *number = kind == 'F' ? PyNumber_Float(value) : PyObject_CallMethod(value, "item", NULL);
    if (number != NULL && !is_number(number)) { /* longer than Python's */
        Py_CLEAR(number);
    }
    return keep(bound, at, number);
}

/* A tuple of ints of Python's and numpy's whole numbers; NULL, maybe with an exception, when one is anything else. */
static PyObject *whole_numbers(PyObject *const *items, Py_ssize_t count)
{
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyObject *number = PyLong_CheckExact(items[i]) ? Py_NewRef(items[i]) : PyArray_IsScalar(items[i], Integer) ? PyNumber_Long(items[i]) : NULL;
        if (number == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, i, number);
    }
    return made;
}

static int take_ints(const Path *path, int at, PyObject *value, Bound *bound)
{
    if (PyLong_CheckExact(value)) {
        int size = path->sizes[at];
        if (size <= 0) {
            return UNFIT;
        }
        if (!is_word(value)) {
            return UNKNOWN;
        }
        PyObject *made = PyTuple_New(size);
        for (int i = 0; made != NULL && i < size; i++) {
            PyTuple_SET_ITEM(made, i, Py_NewRef(value));
        }
        return keep(bound, at, made);
    }
    int is_tuple = PyTuple_Check(value);
    if (!is_tuple && !PyList_CheckExact(value)) {
        return is_builtin(value) ? UNFIT : UNKNOWN;
    }
    Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(value) : PyList_GET_SIZE(value);
    PyObject **items = is_tuple ? ((PyTupleObject *)value)->ob_item : ((PyListObject *)value)->ob_item;
    int numpy = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!PyLong_CheckExact(items[i])) {
            if (!PyArray_IsScalar(items[i], Integer)) {
                return is_builtin(items[i]) ? UNFIT : UNKNOWN;
            }
            numpy = 1;
        }
        else if (!is_word(items[i])) {
            return UNKNOWN;
        }
    }
    if (count == 1 && path->sizes[at] > 1) {
        return UNKNOWN; /* it may stand for all of them */
    }
    if (numpy) {
        return keep(bound, at, whole_numbers(items, count));
    }
    if (PyTuple_CheckExact(value)) {
        return FITS;
    }
    return keep(bound, at, is_tuple ? PyTuple_GetSlice(value, 0, count) : PyList_AsTuple(value));
}

/* A copy of a list of plain tensors: the caller may change his. */
static int take_tensors(const Path *path, int at, PyObject *value, Bound *bound)
{
    int is_tuple = PyTuple_CheckExact(value);
    if (!is_tuple && !PyList_CheckExact(value)) {
        return is_builtin(value) ? UNFIT : UNKNOWN;
    }
    Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(value) : PyList_GET_SIZE(value);
    PyObject **items = is_tuple ? ((PyTupleObject *)value)->ob_item : ((PyListObject *)value)->ob_item;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!is_plain(items[i]) && !(items[i] == Py_None && path->kinds[at] == 'v')) {
            return otherwise(items[i]);
        }
    }
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyList_SET_ITEM(made, i, Py_NewRef(items[i]));
    }
    return keep(bound, at, made);
}

static int take(const Path *path, int at, PyObject *value, Bound *bound)
{
    if (value == Py_None && path->kinds[at] != '?') {
        if (path->optional[at]) {
            return FITS;
        }
        return path->required[at] ? UNFIT : UNKNOWN; /* some forms take None for the default */
    }
    switch (path->kinds[at]) {
    case 'T':
        return is_plain(value) ? FITS : otherwise(value);
    case 'N':
        return is_plain(value) || is_number(value) ? FITS : is_numpy_number(value) ? take_numpy_number('S', at, value, bound) : otherwise(value);
    case 'V':
    case 'v':
        return take_tensors(path, at, value, bound);
    case 'I':
        return PyLong_CheckExact(value) ? (is_word(value) ? FITS : UNKNOWN) : is_builtin(value) ? UNFIT : is_numpy_number(value) ? take_numpy_number('I', at, value, bound) : UNKNOWN;
    case 'L':
        return take_ints(path, at, value, bound);
    case 'F':
        if (PyFloat_CheckExact(value)) {
            return FITS;
        }
        if (PyLong_Check(value)) { /* bools too */
            return keep(bound, at, PyNumber_Float(value));
        }
        return is_builtin(value) ? UNFIT : is_numpy_number(value) ? take_numpy_number('F', at, value, bound) : UNKNOWN;
    case 'B':
        return PyBool_Check(value) ? FITS : is_builtin(value) ? UNFIT : is_numpy_number(value) ? take_numpy_number('B', at, value, bound) : UNKNOWN;
    case 'S':
        return is_number(value) ? FITS : PyLong_CheckExact(value) ? UNKNOWN : is_builtin(value) ? UNFIT : is_numpy_number(value) ? take_numpy_number('S', at, value, bound) : UNKNOWN;
    case 'X':
        return PyUnicode_CheckExact(value) ? FITS : is_builtin(value) ? UNFIT : UNKNOWN;
    case 'D':
        return Py_TYPE(value) == Py_TYPE(S.float32) ? FITS : is_builtin(value) ? UNFIT : UNKNOWN;
    case 'C':
        if (value == S.cpu) {
            return FITS;
        }
        if (PyUnicode_CheckExact(value) && PyUnicode_CompareWithASCIIString(value, "cpu") == 0) {
            bound->value[at] = S.cpu;
            return FITS;
        }
        if (Z.device != NULL && (PyUnicode_CheckExact(value) ? PyUnicode_CompareWithASCIIString(value, "meta") == 0
                                                             : Py_TYPE(value) == Py_TYPE(S.cpu) && PyObject_RichCompareBool(value, Z.device, Py_EQ) == 1)) {
            bound->value[at] = Z.device;
            return FITS;
        }
        return UNKNOWN;
    case 'O':
        return is_builtin(value) ? UNFIT : Py_TYPE(value) == S.memory_format || value == S.strided ? FITS : UNKNOWN;
    case 'G':
        return Py_TYPE(value) == S.generator ? FITS : is_builtin(value) ? UNFIT : UNKNOWN;
    case 'R': /* a list of floats, which one number is not */
        return is_number(value) ? UNFIT : UNKNOWN;
    default:
        return UNKNOWN;
    }
}

/* Whether a name that no parameter has may be another spelling of one, which Python knows (resolver.py); else it is another overload's. */
static int is_spelling(PyObject *name)
{
    static const char *const spellings[] = {"axis", "keepdims", "x", "x1", "x2", "a", "input", "self"};
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        if (PyUnicode_CompareWithASCIIString(name, spellings[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Puts the arguments given by name in their places. */
static int take_names(const Path *path, PyObject *const *values, PyObject *kwnames, Py_ssize_t given, Bound *bound)
{
    Py_ssize_t count = PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k), *value = values[k];
        Py_ssize_t at = 0;
        while (at < path->params && !same_name(name, PyTuple_GET_ITEM(path->names, at))) {
            at++;
        }
        if (at == path->params) {
            if (path->has_out && PyUnicode_CompareWithASCIIString(name, "out") == 0) {
                bound->out = value == Py_None ? NULL : value;
                continue;
            }
            if (path->has_requires_grad && PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0 && PyBool_Check(value)) {
                bound->requires_grad = value == Py_True;
                continue;
            }
            return is_spelling(name) ? UNKNOWN : UNFIT;
        }
        if (at < given || bound->value[at] != NULL) {
            return UNKNOWN;
        }
        bound->value[at] = value;
    }
    return FITS;
}

int bind_path(const Path *path, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, Bound *bound)
{
    PyObject **value = bound->value = bound->slots + 1;
    bound->owned_count = 0;
    bound->out = NULL;
    bound->requires_grad = 0;
    Py_ssize_t given = n, list = path->gathers - 1;
    if (list < 0 || n <= list || (n == list + 1 && !(PyLong_CheckExact(args[list]) && path->sizes[list] <= 0))) {
        list = -1;
    }
    if (list >= 0) {
        PyObject *made = whole_numbers(args + list, n - list);
        if (made == NULL) {
            PyErr_Clear();
            return UNKNOWN;
        }
        for (Py_ssize_t i = 0; i < list; i++) {
            value[i] = args[i];
        }
        keep(bound, (int)list, made);
        given = list + 1;
    }
    else if (n > path->positional) {
        return UNFIT;
    }
    else {
        for (Py_ssize_t i = 0; i < n; i++) {
            value[i] = args[i];
        }
    }
    for (Py_ssize_t i = given; i < path->params; i++) {
        value[i] = NULL;
    }
    if (kwnames != NULL && PyTuple_GET_SIZE(kwnames)) {
        int found = take_names(path, args + n, kwnames, given, bound);
        if (found != FITS) {
            return found;
        }
    }
    if (path->swaps) {
        PyObject *one = value[0];
        for (int i = 0; i < path->swaps; i++) {
            value[i] = value[i + 1];
            if (i + 1 >= n) {
                return UNKNOWN;
            }
        }
        value[path->swaps] = one;
    }
    for (int i = 0; i < path->params; i++) {
        if (i == list) {
            continue; /* ints, as they were gathered */
        }
        if (value[i] == NULL) {
            if (path->required[i]) {
                return UNFIT;
            }
            value[i] = PyTuple_GET_ITEM(path->defaults, i);
            continue;
        }
        int found = take(path, i, value[i], bound);
        if (found != FITS) {
            return found;
        }
    }
    return FITS;
}
