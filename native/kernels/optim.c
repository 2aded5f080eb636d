/* Steps of Adam and SGD in place: on the arrays of one parameter, and on all parameters of a group. */
#include "native.h"
#include <math.h>

#define root_float_plain sqrtf
#define root_float_wide sqrtf
#define root_float_widest sqrtf
#define root_double_plain sqrt
#define root_double_wide sqrt
#define root_double_widest sqrt

#define LOOPS "optim_loops.h"
#include "variants.h"

/* The common item size of dense writable arrays of one shape, of which `constant` need not be writable; 0 to decline. */
static int common_width(PyObject *const *arrays, int count, int constant)
{
    int width = dense_width(arrays[0]);
    for (int i = 0; width && i < count; i++) {
        PyArrayObject *array = (PyArrayObject *)arrays[i];
        if (dense_width(arrays[i]) != width || !PyArray_SAMESHAPE((PyArrayObject *)arrays[0], array)) {
            return 0;
        }
        if (i != constant && !(PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE)) {
            return 0;
        }
        for (int k = 0; k < i; k++) {
            if (PyArray_SIZE(array) && PyArray_DATA(array) == PyArray_DATA((PyArrayObject *)arrays[k])) {
                return 0;
            }
        }
    }
    return width;
}

static int read_numbers(PyObject *const *args, int count, double *values)
{
    for (int i = 0; i < count; i++) {
        if (PyFloat_CheckExact(args[i])) {
            values[i] = PyFloat_AS_DOUBLE(args[i]);
        }
        else if (PyLong_CheckExact(args[i])) {
            values[i] = PyLong_AsDouble(args[i]);
            if (values[i] == -1 && PyErr_Occurred()) {
                PyErr_Clear();
                return 0;
            }
        }
        else {
            return 0;
        }
    }
    return 1;
}

/* The elements of a parameter; what an optimizer lacks is NULL. */
typedef struct {
    int is_adam, width, nesterov;
    char *param, *mean, *square; /* SGD's buffer is the mean */
    const char *grad;
    const double *v;
} Elements;

static void step_part(void *work, npy_intp begin, npy_intp end)
{
    const Elements *all = work;
    const int width = all->width;
    const npy_intp skipped = begin * width, n = end - begin;
    const double *v = all->v;
    char *mean = all->mean == NULL ? NULL : all->mean + skipped;
    if (all->is_adam) {
        CHOOSE(adam_each, width, all->param + skipped, all->grad + skipped, mean, all->square + skipped, n, v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
    }
    else {
        CHOOSE(sgd_each, width, all->param + skipped, all->grad + skipped, mean, n, v[0], v[1], v[2], v[3], all->nesterov);
    }
}

static void step_all(const Elements *all, npy_intp n)
{
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    in_parts(step_part, (void *)all, n, PART_ELEMENTS / 2);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

static void adam_arrays(PyObject *const *args, int width, const double *v)
{
    npy_intp n = PyArray_SIZE((PyArrayObject *)args[0]);
    void *p = PyArray_DATA((PyArrayObject *)args[0]), *m = PyArray_DATA((PyArrayObject *)args[2]);
    void *s = PyArray_DATA((PyArrayObject *)args[3]);
    const void *g = PyArray_DATA((PyArrayObject *)args[1]);
    step_all(&(Elements){1, width, 0, p, m, s, g, v}, n);
}

/* param, grad, mean, square, beta1, beta2, eps, step_size, root, shrink, decay. */
static PyObject *adam_kernel(PyObject *const *args)
{
    double v[7];
    int width = common_width(args, 4, 1);
    if (!width || !read_numbers(args + 4, 7, v)) {
        return NULL;
    }
    adam_arrays(args, width, v);
    return Py_NewRef(Py_True);
}

static void sgd_arrays(PyObject *const *args, int buffered, int width, const double *v, int nesterov)
{
    npy_intp n = PyArray_SIZE((PyArrayObject *)args[0]);
    void *p = PyArray_DATA((PyArrayObject *)args[0]), *b = buffered ? PyArray_DATA((PyArrayObject *)args[2]) : NULL;
    const void *g = PyArray_DATA((PyArrayObject *)args[1]);
    step_all(&(Elements){0, width, nesterov, p, b, NULL, g, v}, n);
}

/* param, grad, buffer or None, lr, momentum, fresh, decay, nesterov. */
static PyObject *sgd_kernel(PyObject *const *args)
{
    double v[4];
    int buffered = args[2] != Py_None;
    int width = common_width(args, buffered ? 3 : 2, 1);
    if (!width || !read_numbers(args + 3, 4, v) || !PyBool_Check(args[7])) {
        return NULL;
    }
    sgd_arrays(args, buffered, width, v, args[7] == Py_True);
    return Py_NewRef(Py_True);
}

/* ---------------------------------------------------------------------------------------------------------------- groups */

/* The array of a plain tensor that a step may read or write, or NULL; borrowed. */
static PyObject *plain_array(PyObject *tensor)
{
    return tensor != NULL && is_plain(tensor) && !is_inference(tensor) ? (PyObject *)array_of(tensor) : NULL;
}

static PyObject *state_entry(PyObject *state, const char *name)
{
    return state != NULL && PyDict_CheckExact(state) ? PyDict_GetItemString(state, name) : NULL;
}

/* The gradient of a parameter, borrowed; NULL when it is None. */
static PyObject *gradient_of(PyObject *param)
{
    PyObject *rare = PyObject_TypeCheck(param, S.tensor) ? rare_of(param) : NULL;
    PyObject *grad = rare == NULL ? Py_None : SLOT(rare, S.at_grad);
    return grad == Py_None ? NULL : grad;
}

/* One more step in a counter: its place, or NULL when it is no number that can be changed in place. */
static PyObject *counted(PyObject *step, double *value)
{
    PyArrayObject *array = (PyArrayObject *)plain_array(step);
    int width = array == NULL || !is_contiguous(array) || PyArray_SIZE(array) != 1 || !PyArray_ISWRITEABLE(array) ? 0 : float_width(array);
    if (!width || may_have_history(step)) {
        return NULL;
    }
    *value = width == 4 ? (double)(*(float *)PyArray_DATA(array) + 1.0f) : *(double *)PyArray_DATA(array) + 1.0;
    return (PyObject *)array;
}

static void store(PyObject *place, double value)
{
    PyArrayObject *array = (PyArrayObject *)place;
    if (float_width(array) == 4) {
        *(float *)PyArray_DATA(array) = (float)value;
    }
    else {
        *(double *)PyArray_DATA(array) = value;
    }
}

/* One parameter of Adam: 1 done, 0 for Python, -1 with an exception. v: beta1, beta2, eps, lr, weight decay. */
static int adam_one(PyObject *param, PyObject *grad, PyObject *state, const double *v, int decoupled)
{
    PyObject *step = state_entry(state, "step"), *mean = state_entry(state, "exp_avg"), *square = state_entry(state, "exp_avg_sq");
    double count;
    PyObject *arrays[4] = {plain_array(param), plain_array(grad), plain_array(mean), plain_array(square)};
    if (arrays[0] == NULL || arrays[1] == NULL || arrays[2] == NULL || arrays[3] == NULL) {
        return 0;
    }
    int width = common_width(arrays, 4, 1);
    PyObject *place = width ? counted(step, &count) : NULL;
    if (place == NULL) {
        return 0;
    }
    double left1 = 1 - pow(v[0], count), left2 = 1 - pow(v[1], count);
    if (left1 == 0 || left2 < 0) {
        return 0;
    }
    const double numbers[7] = {v[0], v[1], v[2], v[3] / left1, sqrt(left2), decoupled ? 1 - v[3] * v[4] : 1, decoupled ? 0 : v[4]};
    store(place, count);
    adam_arrays(arrays, width, numbers);
    return bump_version(step) < 0 || bump_version(param) < 0 || bump_version(mean) < 0 || bump_version(square) < 0 ? -1 : 1;
}

/* One parameter of SGD. v: lr, momentum, fresh, weight decay. */
static int sgd_one(PyObject *param, PyObject *grad, PyObject *state, const double *v, int nesterov)
{
    int buffered = v[1] != 0;
    PyObject *buffer = buffered ? state_entry(state, "momentum_buffer") : NULL;
    PyObject *arrays[3] = {plain_array(param), plain_array(grad), plain_array(buffer)};
    if (arrays[0] == NULL || arrays[1] == NULL || (buffered && arrays[2] == NULL)) {
        return 0;
    }
    int width = common_width(arrays, buffered ? 3 : 2, 1);
    if (!width) {
        return 0;
    }
    sgd_arrays(arrays, buffered, width, v, nesterov);
    return bump_version(param) < 0 || (buffered && bump_version(buffer) < 0) ? -1 : 1;
}

/* step_group(kind, params, state, flag, numbers): steps all parameters of a group that it can, and returns a list of the others with a gradient.
 * kind "adam" (flag decoupled; beta1, beta2, eps, lr, weight decay) or "sgd" (flag nesterov; lr, momentum, fresh, weight decay). */
PyObject *step_group(PyObject *module, PyObject *args)
{
    (void)module;
    const char *kind;
    PyObject *params, *state, *numbers;
    int flag;
    double v[5];
    if (!PyArg_ParseTuple(args, "sO!O!pO!", &kind, &PyList_Type, &params, &PyDict_Type, &state, &flag, &PyTuple_Type, &numbers)) {
        return NULL;
    }
    int adam = strcmp(kind, "adam") == 0, count = adam ? 5 : 4;
    int usable = PyTuple_GET_SIZE(numbers) == count && read_numbers(PySequence_Fast_ITEMS(numbers), count, v) && !is_special();
    PyObject *left = PyList_New(0);
    for (Py_ssize_t i = 0; left != NULL && i < PyList_GET_SIZE(params); i++) {
        PyObject *param = Py_NewRef(PyList_GET_ITEM(params, i)), *grad = gradient_of(param);
        int done = grad == NULL;
        if (usable && !done) {
            PyObject *entries = adam || v[1] != 0 ? PyDict_GetItemWithError(state, param) : NULL;
            if (!PyErr_Occurred()) {
                Py_INCREF(grad);
                Py_XINCREF(entries);
                done = adam ? adam_one(param, grad, entries, v, flag) : sgd_one(param, grad, entries, v, flag);
                Py_DECREF(grad);
                Py_XDECREF(entries);
            }
        }
        if (done < 0 || PyErr_Occurred() || (!done && PyList_Append(left, param) < 0)) {
            Py_CLEAR(left);
        }
        Py_DECREF(param);
    }
    return left;
}

const KernelEntry optim_kernels[] = {
    {"optim.adam_step", adam_kernel},
    {"optim.sgd_step", sgd_kernel},
    {NULL, NULL},
};
