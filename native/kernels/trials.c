/* Zeros and ones: Bernoulli's trials, and dropout. */
#include "stream.h"
#include <math.h>

#define LOOPS "trial_loops.h"
#include "variants.h"

#define TWO_53 9007199254740992.0

/* 4 for float32, 8 for float64, when the array is contiguous and may be written to; 0 to decline. */
static int target_width(PyObject *object)
{
    return is_array(object) && PyArray_ISWRITEABLE((PyArrayObject *)object) ? dense_width(object) : 0;
}

#define TRIALS(type)                                                                                                                       \
    for (npy_intp i = 0; i < part; i++) {                                                                                                  \
        ((type *)out)[start + i] = (type)(((npy_int64)(draws[2 * i] & 0x1FFFFF) << 32 | draws[2 * i + 1]) < limit);                         \
    }                                                                                                                                      \
    break

static int takes_trials(int type)
{
    return type == NPY_BOOL || type == NPY_BYTE || type == NPY_UBYTE || type == NPY_SHORT || type == NPY_INT || type == NPY_LONG ||
           type == NPY_FLOAT || type == NPY_DOUBLE;
}

static npy_int64 limit_of(double p)
{
    return (npy_int64)ceil(p * TWO_53);
}

static void trials_into(Stream *stream, PyArrayObject *array, double p)
{
    npy_intp n = PyArray_SIZE(array);
    char *out = PyArray_DATA(array);
    int type = PyArray_TYPE(array);
    npy_int64 limit = limit_of(p);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    npy_uint32 draws[STREAM_BLOCK];
    for (npy_intp start = 0; start < n; start += STREAM_BLOCK / 2) {
        npy_intp part = n - start < STREAM_BLOCK / 2 ? n - start : STREAM_BLOCK / 2;
        stream_draws(stream, draws, 2 * part);
        switch (type) {
        case NPY_FLOAT:
        case NPY_DOUBLE:
            CHOOSE(trials, type == NPY_FLOAT ? 4 : 8, draws, (void *)(out + start * (type == NPY_FLOAT ? 4 : 8)), part, limit);
            break;
        case NPY_LONG:
            TRIALS(npy_long);
        case NPY_INT:
            TRIALS(npy_int);
        case NPY_SHORT:
            TRIALS(npy_short);
        default:
            TRIALS(npy_byte);
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

/* self, p, generator */
static PyObject *bernoulli_float_kernel(PyObject *const *args)
{
    double p;
    PyArrayObject *array = (PyArrayObject *)args[0];
    if (!is_array(args[0]) || !is_contiguous(array) || !PyArray_ISWRITEABLE(array) || !PyArray_ISNOTSWAPPED(array) ||
        !takes_trials(PyArray_TYPE(array)) || !as_double(args[1], &p) || !(p >= 0 && p <= 1)) {
        return NULL;
    }
    Stream *stream = take_stream(args[2]);
    if (stream == NULL) {
        return NULL;
    }
    trials_into(stream, array, p);
    give_stream(stream);
    return Py_NewRef(args[0]);
}

/* Probabilities of an array of floats: a draw of their own precision for each. 0 when one is none, before anything is drawn. */
static PyObject *bernoulli_of(PyArrayObject *p, PyArrayObject *target, PyObject *generator)
{
    int width = float_width(p);
    if (width && !is_contiguous(p)) { /* expanded, as distributions do it */
        PyArrayObject *copy = (PyArrayObject *)PyArray_NewCopy(p, NPY_CORDER);
        PyObject *made = copy == NULL ? NULL : bernoulli_of(copy, target, generator);
        Py_XDECREF((PyObject *)copy);
        return made;
    }
    npy_intp n = PyArray_SIZE(p);
    const char *data = PyArray_DATA(p);
    if (!width || !n) {
        return NULL;
    }
    for (npy_intp i = 0; i < n; i++) {
        double value = width == 8 ? ((const double *)data)[i] : ((const float *)data)[i];
        if (!(value >= 0 && value <= 1)) {
            return NULL;
        }
    }
    Stream *stream = take_stream(generator);
    if (stream == NULL) {
        return NULL;
    }
    PyObject *made = target == NULL ? new_like(p) : Py_NewRef(target);
    if (made != NULL) {
        char *out = PyArray_DATA((PyArrayObject *)made);
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        double block[1024];
        for (npy_intp start = 0; start < n; start += 1024) {
            npy_intp part = n - start < 1024 ? n - start : 1024;
            draw_units(stream, (char *)block, part, width);
            for (npy_intp i = 0; i < part; i++) {
                if (width == 8) {
                    ((double *)out)[start + i] = block[i] < ((const double *)data)[start + i];
                }
                else {
                    ((float *)out)[start + i] = ((float *)block)[i] < ((const float *)data)[start + i];
                }
            }
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    give_stream(stream);
    return made;
}

/* self, generator */
static PyObject *bernoulli_kernel(PyObject *const *args)
{
    return is_array(args[0]) ? bernoulli_of((PyArrayObject *)args[0], NULL, args[1]) : NULL;
}

/* self, p, generator */
static PyObject *bernoulli_tensor_kernel(PyObject *const *args)
{
    if (!target_width(args[0]) || !is_array(args[1]) || target_width(args[0]) != dense_width(args[1]) ||
        !PyArray_SAMESHAPE((PyArrayObject *)args[0], (PyArrayObject *)args[1])) {
        return NULL;
    }
    return bernoulli_of((PyArrayObject *)args[1], (PyArrayObject *)args[0], args[2]);
}

/* self, p, generator */
static PyObject *bernoulli_p_kernel(PyObject *const *args)
{
    double p;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!is_array(args[0]) || !PyArray_ISNOTSWAPPED(x) || !takes_trials(PyArray_TYPE(x)) || !as_double(args[1], &p) || !(p >= 0 && p <= 1)) {
        return NULL;
    }
    Stream *stream = take_stream(args[2]);
    if (stream == NULL) {
        return NULL;
    }
    PyObject *made = new_like(x);
    if (made != NULL) {
        trials_into(stream, (PyArrayObject *)made, p);
    }
    give_stream(stream);
    return made;
}

/* input, p, train */
static PyObject *native_dropout_kernel(PyObject *const *args)
{
    double p;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int width = dense_width(args[0]);
    if (!width || args[2] == Py_False || !as_double(args[1], &p) || !(p > 0 && p <= 1) || !PyArray_SIZE(x)) {
        return NULL;
    }
    PyObject *out = new_like(x), *mask = out == NULL ? NULL : new_array(PyArray_NDIM(x), PyArray_DIMS(x), S.descr_bool);
    Stream *stream = mask == NULL ? NULL : take_stream(Py_None);
    PyObject *made = stream == NULL ? NULL : PyTuple_Pack(2, out, mask);
    if (made != NULL) {
        npy_intp n = PyArray_SIZE(x);
        const char *data = PyArray_DATA(x);
        char *result = PyArray_DATA((PyArrayObject *)out);
        npy_bool *kept = PyArray_DATA((PyArrayObject *)mask);
        double keep = 1.0 - p, factor = keep != 0 ? 1.0 / keep : 0.0;
        npy_int64 limit = limit_of(keep);
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        npy_uint32 draws[STREAM_BLOCK];
        for (npy_intp start = 0; start < n; start += STREAM_BLOCK / 2) {
            npy_intp part = n - start < STREAM_BLOCK / 2 ? n - start : STREAM_BLOCK / 2;
            stream_draws(stream, draws, 2 * part);
            CHOOSE(drop, width, draws, (const void *)(data + start * width), (void *)(result + start * width), kept + start, part, limit, factor);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    if (stream != NULL) {
        give_stream(stream);
    }
    Py_XDECREF(out);
    Py_XDECREF(mask);
    return made;
}

const KernelEntry trial_kernels[] = {
    {"random.bernoulli_float", bernoulli_float_kernel},
    {"random.bernoulli_tensor", bernoulli_tensor_kernel},
    {"random.bernoulli", bernoulli_kernel},
    {"random.bernoulli_p", bernoulli_p_kernel},
    {"random.native_dropout", native_dropout_kernel},
    {NULL, NULL},
};
