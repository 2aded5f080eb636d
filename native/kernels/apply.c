/* Blocked: one operator as one loop of the block interpreter, over whatever arguments an eager call has. */
#include "../runtime/plan.h"

#include "lines.h"

#define LARGEST_EXACT_INT 9007199254740992.0

/* ----------------------------------------------------------------------------------------------------------- arguments */

/* The value of a Python number, or of an array without dimensions; 0 when it is neither. */
static int number_of(PyObject *object, double *value)
{
    if (PyFloat_Check(object)) {
        *value = PyFloat_AS_DOUBLE(object);
        return 1;
    }
    if (PyLong_Check(object)) {
        *value = PyLong_AsDouble(object);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return *value <= LARGEST_EXACT_INT && *value >= -LARGEST_EXACT_INT;
    }
    if (!is_array(object) || PyArray_NDIM((PyArrayObject *)object) != 0) {
        return 0;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    float narrow;
    switch (float_width(array)) {
    case 4:
        memcpy(&narrow, PyArray_BYTES(array), 4);
        *value = narrow;
        return 1;
    case 8:
        memcpy(value, PyArray_BYTES(array), 8);
        return 1;
    default:
        return 0;
    }
}

static int is_value(PyObject *object, PyObject *wanted)
{
    double value, other;
    if (object == wanted) {
        return 1;
    }
    if (wanted == Py_None || object == Py_None) {
        return 0;
    }
    if (number_of(wanted, &other)) {
        return number_of(object, &value) && value == other;
    }
    if (PyUnicode_CheckExact(wanted) && PyUnicode_CheckExact(object)) {
        return PyUnicode_Compare(object, wanted) == 0;
    }
    return 0;
}

/* The first alternative that takes the arguments, or NULL. */
static const Alternative *choose(const Blocked *blocked, PyObject *const *args, Py_ssize_t count)
{
    for (int a = 0; a < blocked->count; a++) {
        const Alternative *alternative = &blocked->alternatives[a];
        int fits = 1;
        for (int i = 0; fits && i < alternative->operands; i++) {
            fits = alternative->operand[i] < count && args[alternative->operand[i]] != Py_None;
        }
        for (int i = 0; fits && i < alternative->conditions; i++) {
            fits = alternative->argument[i] < count && is_value(args[alternative->argument[i]], alternative->value[i]);
        }
        if (fits) {
            return alternative;
        }
    }
    return NULL;
}

int blocked_choose(const Blocked *blocked, PyObject *const *args, Py_ssize_t count)
{
    const Alternative *chosen = choose(blocked, args, count);
    return chosen == NULL ? -1 : (int)(chosen - blocked->alternatives);
}

int blocked_to_bool(const Blocked *blocked, int alternative)
{
    return block_entries[blocked->alternatives[alternative].opcode].to_bool;
}

int blocked_flat(const Blocked *blocked, PyObject *const *args, Py_ssize_t count, unsigned arrays, FlatLoop *flat)
{
    const Alternative *alternative = choose(blocked, args, count);
    if (alternative == NULL) {
        return 0;
    }
    flat->opcode = alternative->opcode;
    flat->count = alternative->operands;
    for (int k = 0; k < flat->count; k++) {
        flat->operand[k] = alternative->operand[k];
        if (block_entries[alternative->opcode].kinds[k] == 'T' && arrays >> flat->operand[k] & 1) {
            continue;
        }
        if (!number_of(args[flat->operand[k]], &flat->number[k])) {
            return 0;
        }
        flat->operand[k] = -1;
    }
    return 1;
}

/* The operands of a call: arrays, and the values of numbers. */
typedef struct {
    int count, width, has_bool;
    PyArrayObject *array[BLOCK_SOURCES]; /* NULL for a number */
    double number[BLOCK_SOURCES];
    unsigned numbers; /* mask: numbers, and arrays without dimensions */
    int ndim;
    npy_intp dims[MAX_DIMS];
} Operands;

static int broadcast_with(Operands *operands, PyArrayObject *array)
{
    int ndim = PyArray_NDIM(array);
    if (ndim > MAX_DIMS) {
        return 0;
    }
    if (ndim > operands->ndim) {
        int more = ndim - operands->ndim;
        memmove(operands->dims + more, operands->dims, sizeof(npy_intp) * (size_t)operands->ndim);
        for (int d = 0; d < more; d++) {
            operands->dims[d] = 1;
        }
        operands->ndim = ndim;
    }
    for (int d = 0; d < ndim; d++) {
        npy_intp *wanted = &operands->dims[operands->ndim - ndim + d], has = PyArray_DIM(array, d);
        if (*wanted != has && *wanted != 1 && has != 1) {
            return 0; /* the rule says so in PyTorch's words */
        }
        *wanted = *wanted == 1 ? has : *wanted;
    }
    return 1;
}

/* 0 where one operand is no bool or float array of the others' type and no number, or where they have no elements. */
static int read_operands(const Alternative *alternative, PyObject *const *args, Operands *operands)
{
    const char *kinds = block_entries[alternative->opcode].kinds;
    memset(operands, 0, sizeof(*operands));
    operands->count = alternative->operands;
    for (int k = 0; k < operands->count; k++) {
        PyObject *object = args[alternative->operand[k]];
        if (kinds[k] == 'S' || !is_array(object)) {
            if (!number_of(object, &operands->number[k])) {
                return 0;
            }
            operands->numbers |= 1u << k;
            continue;
        }
        PyArrayObject *array = (PyArrayObject *)object;
        int is_bool = PyArray_DESCR(array)->type_num == NPY_BOOL, width = float_width(array);
        if ((!is_bool && !width) || (width && operands->width && width != operands->width)) {
            return 0;
        }
        operands->width = width ? width : operands->width;
        operands->has_bool |= is_bool;
        operands->numbers |= (unsigned)(PyArray_NDIM(array) == 0) << k;
        operands->array[k] = array;
        if (!broadcast_with(operands, array)) {
            return 0;
        }
    }
    for (int d = 0; d < operands->ndim; d++) {
        if (operands->dims[d] == 0) {
            return 0;
        }
    }
    return operands->width != 0;
}

/* ------------------------------------------------------------------------------------------------------------- running */

/* Whether the array's elements fill one piece of memory, in whatever order of dimensions. */
static int is_one_piece(PyArrayObject *array)
{
    if (!(PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED)) {
        return 0;
    }
    if (PyArray_ISONESEGMENT(array)) {
        return 1;
    }
    int ndim = PyArray_NDIM(array), used[MAX_DIMS] = {0};
    npy_intp reach = PyArray_ITEMSIZE(array);
    for (int round = 0; round < ndim; round++) {
        int next = -1;
        for (int d = 0; d < ndim && next < 0; d++) {
            next = !used[d] && (PyArray_DIM(array, d) == 1 || PyArray_STRIDE(array, d) == reach) ? d : -1;
        }
        if (next < 0) {
            return 0;
        }
        used[next] = 1;
        reach *= PyArray_DIM(array, next);
    }
    return 1;
}

int same_layout(PyArrayObject *a, PyArrayObject *b)
{
    if (!PyArray_SAMESHAPE(a, b) || PyArray_ITEMSIZE(a) != PyArray_ITEMSIZE(b)) {
        return 0;
    }
    return (is_contiguous(a) && is_contiguous(b)) || (PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), PyArray_NDIM(a)) && is_one_piece(a));
}

int arrays_meet(PyArrayObject *a, PyArrayObject *b)
{
    npy_intp n = PyArray_SIZE(b);
    if (n == 0 || PyArray_SIZE(a) == 0) {
        return 0;
    }
    const char *from[2], *to[2];
    PyArrayObject *both[2] = {a, b};
    for (int k = 0; k < 2; k++) {
        from[k] = to[k] = PyArray_BYTES(both[k]);
        for (int d = 0; d < PyArray_NDIM(both[k]); d++) {
            npy_intp reach = (PyArray_DIM(both[k], d) - 1) * PyArray_STRIDE(both[k], d);
            *(reach < 0 ? &from[k] : &to[k]) += reach;
        }
        to[k] += PyArray_ITEMSIZE(both[k]);
    }
    return from[0] < to[1] && from[1] < to[0];
}

/* Whether the result can be written straight to `out`: each operand is elsewhere, or the very same elements in the same order. */
static int is_fit(const Operands *operands, PyArrayObject *out)
{
    if (!PyArray_ISWRITEABLE(out)) {
        return 0;
    }
    for (int k = 0; k < operands->count; k++) {
        PyArrayObject *array = operands->array[k];
        int same = array != NULL && PyArray_BYTES(array) == PyArray_BYTES(out) && same_layout(array, out);
        if (array != NULL && !same && arrays_meet(array, out)) {
            return 0;
        }
    }
    return 1;
}

/* A loop over all elements, each of `width` bytes; numbers do not move on. */
typedef struct {
    BlockLoop loop;
    const void *const *sources;
    unsigned numbers; /* mask of the sources that are one element */
    int count, width;
    char *target;
} FlatRun;

static void run_part(void *work, npy_intp begin, npy_intp end)
{
    const FlatRun *run = work;
    const void *sources[BLOCK_SOURCES];
    for (int k = 0; k < run->count; k++) {
        sources[k] = (const char *)run->sources[k] + (run->numbers >> k & 1 ? 0 : begin * run->width);
    }
    run->loop(sources, run->target + begin * run->width, end - begin);
}

static void run_loop(const FlatRun *run, npy_intp n)
{
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    in_parts(run_part, (void *)run, n, PART_ELEMENTS / 2);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

/* One loop over all elements, without blocks, where all arrays are laid out like `out`; 0 where they are not. */
static int run_flat(const Alternative *alternative, const Operands *operands, PyArrayObject *out)
{
    BlockLoop loop = block_loop(alternative->opcode, operands->width, operands->numbers);
    if (loop == NULL || operands->has_bool || float_width(out) != operands->width) {
        return 0;
    }
    const void *sources[BLOCK_SOURCES];
    double numbers[BLOCK_SOURCES];
    for (int k = 0; k < operands->count; k++) {
        PyArrayObject *array = operands->array[k];
        if (array == NULL) {
            sources[k] = number_as(operands->number[k], operands->width, &numbers[k]);
            continue;
        }
        int number = operands->numbers >> k & 1;
        if (number ? !is_contiguous(array) : !same_layout(array, out)) {
            return 0;
        }
        sources[k] = PyArray_DATA(array);
    }
    npy_intp n = PyArray_SIZE(out);
    void *target = PyArray_DATA(out);
    run_loop(&(FlatRun){loop, sources, operands->numbers, operands->count, operands->width, target}, n);
    return 1;
}

#define SMALL 256 /* elements up to which operands are copied to the loop's form rather than made a program of */

/* One loop over few elements of operands of any layout and bools, into a contiguous array; 0 where there are more, or no such loop. */
static int run_small(const Alternative *alternative, const Operands *operands, PyArrayObject *out)
{
    BlockLoop loop = block_loop(alternative->opcode, operands->width, operands->numbers);
    PyArray_Descr *descr = operands->width == 4 ? S.descr32 : S.descr64;
    npy_intp n = PyArray_SIZE(out), dense[MAX_DIMS], step = operands->width;
    if (loop == NULL || n > SMALL || !is_contiguous(out)) {
        return 0;
    }
    for (int d = operands->ndim - 1; d >= 0; d--) {
        dense[d] = step;
        step *= operands->dims[d];
    }
    const void *sources[BLOCK_SOURCES];
    double space[BLOCK_SOURCES + 1][SMALL], number;
    for (int k = 0; k < operands->count; k++) {
        PyArrayObject *array = operands->array[k];
        sources[k] = space[k];
        if (array == NULL) {
            number = operands->number[k];
            row_between(S.descr64, descr)((char *)space[k], 0, (const char *)&number, 0, 1);
        }
        else if (operands->numbers >> k & 1) {
            row_between(PyArray_DESCR(array), descr)((char *)space[k], 0, PyArray_BYTES(array), 0, 1);
        }
        else if (float_width(array) && same_layout(array, out)) {
            sources[k] = PyArray_DATA(array);
        }
        else {
            npy_intp strides[MAX_DIMS];
            Row row = row_between(PyArray_DESCR(array), descr);
            if (row == NULL || !broadcast_strides(array, operands->ndim, operands->dims, strides)) {
                return 0;
            }
            move(operands->ndim, operands->dims, (char *)space[k], dense, PyArray_BYTES(array), strides, row);
        }
    }
    if (float_width(out)) {
        loop(sources, PyArray_DATA(out), n);
    }
    else {
        void *truths = space[BLOCK_SOURCES];
        loop(sources, truths, n);
        row_between(descr, S.descr_bool)(PyArray_BYTES(out), 1, truths, operands->width, n);
    }
    return 1;
}

/* Line by line, where operands are repeated along others; 0 where they lie otherwise. `out` has the shape of all. */
static int run_by_lines(const Alternative *alternative, const Operands *operands, PyArrayObject *out)
{
    PyArray_Descr *descr = operands->width == 4 ? S.descr32 : S.descr64;
    Lines lines = {.opcode = alternative->opcode, .count = operands->count, .width = operands->width, .ndim = operands->ndim, .result_item = operands->width};
    double numbers[BLOCK_SOURCES];
    copy_dims(lines.dims, operands->dims, operands->ndim);
    for (int k = 0; k < operands->count; k++) {
        PyArrayObject *array = operands->array[k];
        LineOperand *operand = &lines.operand[k];
        if (array == NULL) {
            operand->data = number_as(operands->number[k], operands->width, &numbers[k]);
            continue;
        }
        operand->cast = PyArray_DESCR(array) == descr ? NULL : row_between(PyArray_DESCR(array), descr);
        if (!line_operand(operand, array, operands->ndim, operands->dims) || (operand->cast == NULL && !PyArray_ISBEHAVED_RO(array))) {
            return 0;
        }
    }
    LineOperand *result = &lines.operand[operands->count];
    result->cast = float_width(out) ? NULL : row_between(descr, PyArray_DESCR(out));
    if (!line_operand(result, out, operands->ndim, operands->dims) || !PyArray_ISALIGNED(out) || !lines_fit(&lines)) {
        return 0;
    }
    lines_run(&lines);
    return 1;
}

/* A view of the array in the shape of the program, with strides of 0 where it is repeated. */
static PyArrayObject *stretched(PyArrayObject *array, int ndim, const npy_intp *dims)
{
    npy_intp strides[MAX_DIMS];
    int more = ndim - PyArray_NDIM(array);
    for (int d = 0; d < ndim; d++) {
        strides[d] = d < more || (PyArray_DIM(array, d - more) == 1 && dims[d] != 1) ? 0 : PyArray_STRIDE(array, d - more);
    }
    return (PyArrayObject *)new_view(array, ndim, dims, strides, PyArray_BYTES(array));
}

/* `out` is contiguous. Returns -1 with an exception. */
static int run_program(const Alternative *alternative, const Operands *operands, PyArrayObject *out)
{
    PyArrayObject *arrays[BLOCK_SOURCES + 1];
    double immediates[BLOCK_SOURCES] = {0};
    int count = 0, numbers = 0, failed = 0;
    BlockStep step = {.opcode = alternative->opcode, .count = operands->count};
    for (int k = 0; k < operands->count && !failed; k++) {
        PyArrayObject *array = operands->array[k];
        if (array == NULL) {
            step.sources[k] = -1 - numbers;
            immediates[numbers++] = operands->number[k];
            continue;
        }
        step.sources[k] = count;
        arrays[count] = PyArray_NDIM(array) == 0 ? (PyArrayObject *)Py_NewRef((PyObject *)array) : stretched(array, operands->ndim, operands->dims);
        failed = arrays[count] == NULL;
        count += !failed;
    }
    step.target = count;
    for (int k = 0; k < operands->count; k++) { /* immediates stand behind the arrays */
        step.sources[k] = step.sources[k] < 0 ? count - step.sources[k] : step.sources[k];
    }
    arrays[count] = out;
    BlockProgram *program = failed ? NULL : block_program(operands->width, operands->ndim, operands->dims, count + 1, arrays, count, 0, numbers,
                                                          immediates, 1, &step);
    for (int i = 0; i < count; i++) {
        Py_DECREF((PyObject *)arrays[i]);
    }
    if (program == NULL) {
        return -1;
    }
    npy_intp done = block_run(program);
    block_free(program);
    return done < 0 ? -1 : 0;
}

/* The most frequent call: contiguous arrays of one shape and type, and numbers. NULL without an exception for all else. */
static PyObject *run_alike(const Alternative *alternative, PyObject *const *args)
{
    const BlockEntry *entry = &block_entries[alternative->opcode];
    const void *sources[BLOCK_SOURCES];
    double numbers[BLOCK_SOURCES];
    PyArrayObject *first = NULL;
    unsigned are_numbers = 0;
    int width = 0;
    for (int k = 0; k < alternative->operands; k++) {
        PyObject *object = args[alternative->operand[k]];
        if (entry->kinds[k] == 'T' && is_array(object)) {
            PyArrayObject *array = (PyArrayObject *)object;
            if (!is_contiguous(array) || (first != NULL && (PyArray_DESCR(array) != PyArray_DESCR(first) || !PyArray_SAMESHAPE(array, first)))) {
                return NULL;
            }
            first = array;
            sources[k] = PyArray_DATA(array);
        }
        else if (number_of(object, &numbers[k])) {
            are_numbers |= 1u << k;
        }
        else {
            return NULL;
        }
    }
    BlockLoop loop = first == NULL || !(width = float_width(first)) ? NULL : block_loop(alternative->opcode, width, are_numbers);
    npy_intp n = loop == NULL ? 0 : PyArray_SIZE(first);
    if (n == 0 || entry->to_bool) {
        return NULL;
    }
    for (int k = 0; k < alternative->operands; k++) {
        if (are_numbers >> k & 1) {
            sources[k] = number_as(numbers[k], width, &numbers[k]);
        }
    }
    PyObject *out = new_like(first);
    if (out == NULL) {
        return NULL;
    }
    void *target = PyArray_DATA((PyArrayObject *)out);
    run_loop(&(FlatRun){loop, sources, are_numbers, alternative->operands, width, target}, n);
    return out;
}

static PyObject *apply_alternative(const Alternative *alternative, PyObject *const *args, PyArrayObject *out)
{
    PyObject *alike = out == NULL ? run_alike(alternative, args) : NULL;
    if (alike != NULL || PyErr_Occurred()) {
        return alike;
    }
    Operands operands;
    if (!read_operands(alternative, args, &operands)) {
        return NULL;
    }
    int to_bool = block_entries[alternative->opcode].to_bool;
    if (out != NULL) {
        int kind = PyArray_DESCR(out)->type_num;
        if (PyArray_NDIM(out) != operands.ndim || !PyArray_CompareLists(PyArray_DIMS(out), operands.dims, operands.ndim) ||
            (to_bool ? kind != NPY_BOOL : float_width(out) != operands.width)) {
            return NULL;
        }
        if (is_fit(&operands, out)) {
            if (run_flat(alternative, &operands, out) || run_small(alternative, &operands, out) || run_by_lines(alternative, &operands, out)) {
                return Py_NewRef((PyObject *)out);
            }
            if (is_contiguous(out)) {
                return run_program(alternative, &operands, out) < 0 ? NULL : Py_NewRef((PyObject *)out);
            }
        }
    }
    PyObject *made = new_array(operands.ndim, operands.dims, to_bool ? S.descr_bool : operands.width == 8 ? S.descr64 : S.descr32);
    if (made == NULL) {
        return NULL;
    }
    if (!run_flat(alternative, &operands, (PyArrayObject *)made) && !run_small(alternative, &operands, (PyArrayObject *)made) &&
        !run_by_lines(alternative, &operands, (PyArrayObject *)made) && run_program(alternative, &operands, (PyArrayObject *)made) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    if (out == NULL) {
        return made;
    }
    int failed = PyArray_CopyInto(out, (PyArrayObject *)made);
    Py_DECREF(made);
    return failed ? NULL : Py_NewRef((PyObject *)out);
}

static int is_half(PyObject *object)
{
    return is_array(object) && is_half_type(PyArray_DESCR((PyArrayObject *)object));
}

#define WORTH_WIDENING 64 /* elements of half types for which numpy, where its loop gives the same, takes longer than a conversion */

/* What is true of half numbers, which float32 holds as they are. NULL without an exception where there are none, or too few. */
static PyObject *tell_of_halves(const Alternative *alternative, PyObject *const *args, Py_ssize_t count, PyArrayObject *out)
{
    PyObject *wide[MAX_PARAMS], *made = NULL;
    npy_intp most = 0;
    for (int k = 0; k < alternative->operands; k++) {
        PyObject *value = args[alternative->operand[k]];
        const npy_intp size = is_half(value) ? PyArray_SIZE((PyArrayObject *)value) : 0;
        most = size > most ? size : most;
    }
    if ((alternative->exact && most < WORTH_WIDENING) || most == 0 || count > MAX_PARAMS) {
        return NULL;
    }
    int failed = 0;
    memcpy(wide, args, (size_t)count * sizeof(PyObject *));
    for (int k = 0; k < alternative->operands && !failed; k++) {
        const int at = alternative->operand[k];
        if (is_half(args[at]) && wide[at] == args[at]) {
            PyObject *array = (PyObject *)converted((PyArrayObject *)args[at], S.descr32);
            failed = array == NULL;
            wide[at] = failed ? args[at] : array;
        }
    }
    if (!failed) {
        made = apply_alternative(alternative, wide, out);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (wide[i] != args[i]) {
            Py_DECREF(wide[i]);
        }
    }
    return made;
}

static int repeats_lines(const Alternative *alternative, PyObject *const *args)
{
    PyObject *operands[BLOCK_SOURCES];
    for (int k = 0; k < alternative->operands; k++) {
        operands[k] = args[alternative->operand[k]];
    }
    return lines_repeat(operands, alternative->operands, block_entries[alternative->opcode].to_bool);
}

PyObject *blocked_apply(const Blocked *blocked, PyObject *const *args, Py_ssize_t count, PyArrayObject *out)
{
    const Alternative *alternative = choose(blocked, args, count);
    if (alternative == NULL) {
        return NULL;
    }
    if (block_entries[alternative->opcode].to_bool) {
        PyObject *told = tell_of_halves(alternative, args, count, out);
        if (told != NULL || PyErr_Occurred()) {
            return told;
        }
    }
    return alternative->exact && !repeats_lines(alternative, args) ? NULL : apply_alternative(alternative, args, out);
}
