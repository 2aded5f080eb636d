/* A layer of an LSTM over all steps: products by the BLAS, but those with the hidden weights, which go step by step and have few rows. */
#include "kinds.h"
#include "blas.h"
#include "elementary.h"
#include "gemm.h"

#define LOOPS "recurrent_loops.h"
#include "variants.h"


typedef struct {
    PyArrayObject *x, *w_ih, *w_hh, *b_ih, *b_hh, *hx, *cx;
    npy_intp steps, batch, features, width;
    int item, reverse;
} Layer;

static void clear_layer(Layer *of)
{
    PyArrayObject **const arrays[] = {&of->x, &of->w_ih, &of->w_hh, &of->b_ih, &of->b_hh, &of->hx, &of->cx};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        Py_CLEAR(*arrays[i]);
    }
}

/* A dense array of a float width and shape; NULL to decline, or with an exception. */
static PyArrayObject *dense(PyObject *object, int item, int ndim, const npy_intp *dims)
{
    PyArrayObject *array = (PyArrayObject *)object;
    if (!is_array(object) || float_width(array) != item || PyArray_NDIM(array) != ndim || !PyArray_ISALIGNED(array) ||
        !PyArray_CompareLists(PyArray_DIMS(array), dims, ndim)) {
        return NULL;
    }
    return contiguous_of(array);
}

/* input, w_ih, w_hh, b_ih, b_hh, hx, cx; 0 to decline, or with an exception. */
static int read_layer(PyObject *const *args, PyObject *reverse, Layer *of)
{
    memset(of, 0, sizeof(*of));
    of->reverse = as_flag(reverse);
    of->item = is_array(args[0]) ? float_width((PyArrayObject *)args[0]) : 0;
    if (!of->item || PyArray_NDIM((PyArrayObject *)args[0]) != 3 || !is_array(args[5]) || PyArray_NDIM((PyArrayObject *)args[5]) != 2 ||
        of->reverse < 0 || PyArray_SIZE((PyArrayObject *)args[0]) == 0 || PyArray_SIZE((PyArrayObject *)args[5]) == 0 || !has_blas()) {
        return 0;
    }
    const npy_intp *dims = PyArray_DIMS((PyArrayObject *)args[0]);
    of->steps = dims[0], of->batch = dims[1], of->features = dims[2], of->width = PyArray_DIM((PyArrayObject *)args[5], 1);
    const npy_intp gates = 4 * of->width, state[2] = {of->batch, of->width};
    return (of->x = dense(args[0], of->item, 3, dims)) != NULL &&
           (of->w_ih = dense(args[1], of->item, 2, (npy_intp[]){gates, of->features})) != NULL &&
           (of->w_hh = dense(args[2], of->item, 2, (npy_intp[]){gates, of->width})) != NULL &&
           (of->b_ih = dense(args[3], of->item, 1, &gates)) != NULL && (of->b_hh = dense(args[4], of->item, 1, &gates)) != NULL &&
           (of->hx = dense(args[5], of->item, 2, state)) != NULL && (of->cx = dense(args[6], of->item, 2, state)) != NULL;
}

static char *at_row(PyArrayObject *array, npy_intp row, npy_intp row_bytes)
{
    return PyArray_BYTES(array) + row * row_bytes;
}

/* The hidden weights for products of each step: packed where float32 is multiplied by packed matrices, else in dense rows. `row` is memory for a
 * row of gates. */
typedef struct {
    npy_intp depth, n;
    int packed;
    char *data, *row;
    PyObject *memory; /* an array, whose elements begin at a cache line */
} Hidden;

/* Of `turned` weights the rows become columns. `data` is NULL with an exception. */
static Hidden prepare_hidden(const Layer *of, int turned)
{
    const npy_intp gates = 4 * of->width, item = of->item;
    Hidden made = {turned ? of->width : gates, turned ? gates : of->width, HAS_WIDE && S.vectors == 2 && item == 4, NULL, NULL, NULL};
    const void *weights = PyArray_BYTES(of->w_hh);
    if (!turned && !made.packed) {
        made.data = PyArray_BYTES(of->w_hh);
        return made;
    }
    const npy_intp room = made.depth * ((made.n + 31) / 32 * 32);
    const npy_intp count = room + gates;
    made.memory = new_array(1, &count, PyArray_DESCR(of->x));
    if (made.memory == NULL) {
        return made;
    }
    made.data = PyArray_BYTES((PyArrayObject *)made.memory);
    made.row = made.data + room * item;
#if HAS_WIDE
    if (made.packed) {
        if (turned) {
            pack_turned(weights, of->width, made.n, made.depth, (float *)made.data);
        }
        else {
            pack_columns(weights, of->width, made.n, made.depth, (float *)made.data);
        }
        return made;
    }
#endif
    const npy_intp sides[2] = {of->width, gates}, by_row[2] = {gates * item, item}, by_column[2] = {item, of->width * item};
    move(2, sides, made.data, by_row, weights, by_column, row_of_size(item));
    return made;
}

/* c (m, n) += a (m, depth) times the hidden weights. */
static void add_hidden(const Hidden *by, int item, const void *a, void *c, npy_intp m)
{
#if HAS_WIDE
    if (by->packed) {
        gemm_packed(&(Gemm){a, by->data, c, NULL, m, by->n, by->depth, by->depth, 1, 0, 1, by->n, 1, 1});
        return;
    }
#endif
    CHOOSE(few_rows, item, a, (const void *)by->data, c, m, by->depth, by->n);
}

/* What enters the gates of all steps but by the states: `row` is memory for the sum of the biases. */
static void enter_gates(const Layer *of, char *row, char *space)
{
    const npy_intp rows = of->steps * of->batch, gates = 4 * of->width, item = of->item;
    const Gemm all = {PyArray_BYTES(of->x), PyArray_BYTES(of->w_ih), space, row, rows, gates, of->features, of->features, 1, 1, of->features, gates, 1, 0};
    memcpy(row, PyArray_BYTES(of->b_ih), (size_t)(gates * item));
    CHOOSE(add_to_row, item, row, PyArray_BYTES(of->b_hh), gates);
    if (gemm_serves(&all)) {
        gemm((int)item, &all);
        return;
    }
    for (npy_intp i = 0; i < rows; i++) {
        memcpy(space + i * gates * item, row, (size_t)(gates * item));
    }
    multiply((int)item, 0, 1, rows, gates, of->features, 1, PyArray_BYTES(of->x), of->features, PyArray_BYTES(of->w_ih), of->features, 1, space, gates);
}

/* The workspace holds the gates of all steps, (steps, batch, 4 width), then the cells, (steps, batch, width). */
static void run_layer(const Layer *of, char *output, char *last_h, char *last_c, char *space, const Hidden *hidden)
{
    const npy_intp n = of->batch, width = of->width, gates = 4 * width, item = of->item, state = n * width * item, entering = n * gates * item;
    char *cells = space + of->steps * entering;
    enter_gates(of, hidden->row, space);
    const char *h = PyArray_BYTES(of->hx), *c = PyArray_BYTES(of->cx);
    for (npy_intp i = 0; i < of->steps; i++) {
        const npy_intp t = of->reverse ? of->steps - 1 - i : i;
        char *own = space + t * entering;
        add_hidden(hidden, of->item, h, own, n);
        for (npy_intp row = 0; row < n; row++) {
            const npy_intp at = row * width * item;
            CHOOSE(lstm_step, item, own + row * gates * item, c + at, cells + t * state + at, output + t * state + at, width);
        }
        h = output + t * state;
        c = cells + t * state;
    }
    memcpy(last_h, h, (size_t)state);
    memcpy(last_c, c, (size_t)state);
}

/* input, w_ih, w_hh, b_ih, b_hh, hx, cx, reverse */
static PyObject *layer_kernel(PyObject *const *args)
{
    Layer of;
    PyObject *made = NULL;
    if (read_layer(args, args[7], &of)) {
        PyArray_Descr *descr = PyArray_DESCR(of.x);
        const npy_intp state[2] = {of.batch, of.width}, output[3] = {of.steps, of.batch, of.width}, space = of.steps * of.batch * of.width * 5;
        const Hidden hidden = prepare_hidden(&of, 1);
        PyObject *parts[4] = {new_array(3, output, descr), new_array(2, state, descr), new_array(2, state, descr), new_array(1, &space, descr)};
        if (hidden.data != NULL && parts[0] != NULL && parts[1] != NULL && parts[2] != NULL && parts[3] != NULL) {
            PyThreadState *thread = space >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
            run_layer(&of, PyArray_BYTES((PyArrayObject *)parts[0]), PyArray_BYTES((PyArrayObject *)parts[1]),
                      PyArray_BYTES((PyArrayObject *)parts[2]), PyArray_BYTES((PyArrayObject *)parts[3]), &hidden);
            if (thread != NULL) {
                PyEval_RestoreThread(thread);
            }
            made = PyTuple_Pack(4, parts[0], parts[1], parts[2], parts[3]);
        }
        Py_XDECREF(hidden.memory);
        for (int i = 0; i < 4; i++) {
            Py_XDECREF(parts[i]);
        }
    }
    clear_layer(&of);
    return made;
}

/* What came for the outputs and the last states, each or NULL, and what was saved. */
typedef struct {
    PyArrayObject *output, *space, *of_output, *of_h, *of_c;
} Came;

/* `gates` is memory for the gradients of what entered the gates of all steps; `of_h` and `of_c` become those of the first states. */
static void run_layer_back(const Layer *of, const Came *came, const Hidden *hidden, char *gates, char *of_h, char *of_c, PyArrayObject *const *grads)
{
    const npy_intp n = of->batch, width = of->width, wide = 4 * width, item = of->item, state = n * width * item, entering = n * wide * item;
    const char *space = PyArray_BYTES(came->space), *cells = space + of->steps * entering;
    char *first = PyArray_BYTES(grads[2]);
    for (npy_intp i = 0; i < of->steps; i++) {
        const npy_intp t = of->reverse ? i : of->steps - 1 - i, before = of->reverse ? t + 1 : t - 1;
        const int begins = i == of->steps - 1;
        if (came->of_output != NULL) {
            CHOOSE(add_to_row, item, of_h, at_row(came->of_output, t, state), n * width);
        }
        const char *c = begins ? PyArray_BYTES(of->cx) : cells + before * state, *h = begins ? PyArray_BYTES(of->hx) : at_row(came->output, before, state);
        for (npy_intp row = 0; row < n; row++) {
            const npy_intp at = row * width * item, wide_at = row * wide * item;
            CHOOSE(lstm_step_back, item, space + t * entering + wide_at, c + at, cells + t * state + at, of_h + at, of_c + at,
                   gates + t * entering + wide_at, width);
        }
        memset(of_h, 0, (size_t)state);
        add_hidden(hidden, of->item, gates + t * entering, of_h, n);
        if (begins) { /* the first step's part of the hidden weights' gradient, which has no output before it */
            multiply((int)item, 1, 0, wide, width, n, 1, gates + t * entering, wide, h, width, 0, first, width);
        }
    }
    const npy_intp later = (of->steps - 1) * n;
    if (later) {
        multiply((int)item, 1, 0, wide, width, later, 1, gates + (of->reverse ? 0 : entering), wide,
                 PyArray_BYTES(came->output) + (of->reverse ? state : 0), width, 1, first, width);
    }
    const npy_intp rows = of->steps * n;
    multiply((int)item, 0, 0, rows, of->features, wide, 1, gates, wide, PyArray_BYTES(of->w_ih), of->features, 0, PyArray_BYTES(grads[0]), of->features);
    multiply((int)item, 1, 0, wide, of->features, rows, 1, gates, wide, PyArray_BYTES(of->x), of->features, 0, PyArray_BYTES(grads[1]), of->features);
    CHOOSE(sum_of_rows, item, gates, rows, wide, PyArray_BYTES(grads[3]));
    memcpy(PyArray_BYTES(grads[4]), PyArray_BYTES(grads[3]), (size_t)(wide * item));
}

/* A gradient of a state, or zeros, as an array that may be written to. */
static PyObject *state_gradient(PyArrayObject *given, const Layer *of)
{
    PyObject *made = new_array(2, (npy_intp[]){of->batch, of->width}, PyArray_DESCR(of->x));
    if (made != NULL) {
        const size_t bytes = (size_t)(of->batch * of->width * of->item);
        if (given == NULL) {
            memset(PyArray_BYTES((PyArrayObject *)made), 0, bytes);
        }
        else {
            memcpy(PyArray_BYTES((PyArrayObject *)made), PyArray_BYTES(given), bytes);
        }
    }
    return made;
}

/* Reads an optional gradient; 0 to decline, or with an exception. */
static int read_came(PyObject *object, const Layer *of, int ndim, const npy_intp *dims, PyArrayObject **to)
{
    *to = object == Py_None ? NULL : dense(object, of->item, ndim, dims);
    return object == Py_None || *to != NULL;
}

/* input, w_ih, w_hh, b_ih, b_hh, hx, cx, output, workspace, grad_output, grad_hy, grad_cy, reverse */
static PyObject *layer_backward_kernel(PyObject *const *args)
{
    Layer of;
    Came came = {NULL, NULL, NULL, NULL, NULL};
    PyObject *made = NULL;
    if (read_layer(args, args[12], &of)) {
        const npy_intp state[2] = {of.batch, of.width}, output[3] = {of.steps, of.batch, of.width}, space = of.steps * of.batch * of.width * 5;
        if (read_came(args[7], &of, 3, output, &came.output) && came.output != NULL && read_came(args[8], &of, 1, &space, &came.space) &&
            came.space != NULL && read_came(args[9], &of, 3, output, &came.of_output) && read_came(args[10], &of, 2, state, &came.of_h) &&
            read_came(args[11], &of, 2, state, &came.of_c)) {
            PyArray_Descr *descr = PyArray_DESCR(of.x);
            const npy_intp gates = 4 * of.width, entering = of.steps * of.batch * gates;
            PyObject *parts[8] = {new_array(3, PyArray_DIMS(of.x), descr),
                                  new_array(2, PyArray_DIMS(of.w_ih), descr),
                                  new_array(2, PyArray_DIMS(of.w_hh), descr),
                                  new_array(1, &gates, descr),
                                  new_array(1, &gates, descr),
                                  state_gradient(came.of_h, &of),
                                  state_gradient(came.of_c, &of),
                                  new_array(1, &entering, descr)};
            const Hidden hidden = prepare_hidden(&of, 0);
            int complete = hidden.data != NULL;
            for (int i = 0; i < 8; i++) {
                complete = complete && parts[i] != NULL;
            }
            if (complete) {
                PyThreadState *thread = space >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
                run_layer_back(&of, &came, &hidden, PyArray_BYTES((PyArrayObject *)parts[7]), PyArray_BYTES((PyArrayObject *)parts[5]),
                               PyArray_BYTES((PyArrayObject *)parts[6]), (PyArrayObject *const *)parts);
                if (thread != NULL) {
                    PyEval_RestoreThread(thread);
                }
                made = PyTuple_Pack(7, parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]);
            }
            Py_XDECREF(hidden.memory);
            for (int i = 0; i < 8; i++) {
                Py_XDECREF(parts[i]);
            }
        }
    }
    Py_XDECREF(came.output);
    Py_XDECREF(came.space);
    Py_XDECREF(came.of_output);
    Py_XDECREF(came.of_h);
    Py_XDECREF(came.of_c);
    clear_layer(&of);
    return made;
}

const KernelEntry recurrent_kernels[] = {
    {"recurrent.forward", layer_kernel},
    {"recurrent.backward", layer_backward_kernel},
    {NULL, NULL},
};
