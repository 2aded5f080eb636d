/* Sampling of images and volumes at the places of a grid. The Python kernels of `grid.py` say the same.
 *
 * The neighbours of a chunk of places are found once, and serve all channels.
 */
#include "../runtime/extents.h"
#include "kinds.h"
#include "making.h"
#include "norm.h"
#if HAS_WIDE
#include <immintrin.h>
#endif
#include <math.h>

#define CHUNK 64 /* places */
#define MOST_TAPS 16

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

typedef struct {
    int dims, mode, padding, corners, taps; /* `taps` neighbours of each place */
    npy_intp batch, channels, sizes[3], volume, places;
} Sampling;

#define LOOPS "grid_loops.h"
#include "variants.h"

/* input, grid, interpolation mode, padding mode, whether corners are aligned; 0 to decline. */
static int read_sampling(PyObject *const *args, int dims, Sampling *s)
{
    if (!is_array(args[0]) || !is_array(args[1])) {
        return 0;
    }
    PyArrayObject *input = (PyArrayObject *)args[0], *grid = (PyArrayObject *)args[1];
    Py_ssize_t mode, padding;
    s->dims = dims;
    s->corners = as_flag(args[4]);
    if (!as_index(args[2], &mode) || !as_index(args[3], &padding) || mode < 0 || mode > (dims == 2 ? BICUBIC : NEAREST) || padding < 0 ||
        padding > REFLECTION || s->corners < 0 || PyArray_NDIM(input) != dims + 2 || PyArray_NDIM(grid) != dims + 2 || !PyArray_SIZE(input) ||
        !PyArray_SIZE(grid) || !float_width(input) || float_width(grid) != float_width(input) || PyArray_DIM(grid, dims + 1) != dims ||
        PyArray_DIM(grid, 0) != PyArray_DIM(input, 0)) {
        return 0;
    }
    s->mode = (int)mode;
    s->padding = (int)padding;
    s->taps = mode == NEAREST ? 1 : mode == BICUBIC ? 16 : 1 << dims;
    s->batch = PyArray_DIM(input, 0);
    s->channels = PyArray_DIM(input, 1);
    s->volume = s->places = 1;
    for (int d = 0; d < dims; d++) {
        s->sizes[d] = PyArray_DIM(input, d + 2);
        s->volume *= s->sizes[d];
        s->places *= PyArray_DIM(grid, d + 1);
    }
    return s->volume < NPY_MAX_INT32; /* elements of a plane are counted in 32 bits, for the sake of vectors */
}

static PyObject *sample(PyObject *const *args, int dims)
{
    Sampling s;
    if (!read_sampling(args, dims, &s)) {
        return NULL;
    }
    npy_intp shape[MAX_DIMS] = {s.batch, s.channels};
    for (int d = 0; d < dims; d++) {
        shape[d + 2] = PyArray_DIM((PyArrayObject *)args[1], d + 1);
    }
    PyArrayObject *input = contiguous_of((PyArrayObject *)args[0]);
    PyArrayObject *grid = input == NULL ? NULL : contiguous_of((PyArrayObject *)args[1]);
    PyObject *out = grid == NULL ? NULL : new_array(dims + 2, shape, PyArray_DESCR(input));
    if (out != NULL) {
        const void *from = PyArray_DATA(input), *at = PyArray_DATA(grid);
        void *to = PyArray_DATA((PyArrayObject *)out);
        int width = float_width(input), done;
        PyThreadState *thread = PyArray_SIZE((PyArrayObject *)out) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        done = width == 8 ? CHOOSE64(sample)(from, at, &s, to) : CHOOSE32(sample)(from, at, &s, to);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        if (!done) {
            Py_CLEAR(out);
            PyErr_NoMemory();
        }
    }
    Py_XDECREF((PyObject *)input);
    Py_XDECREF((PyObject *)grid);
    return out;
}

static PyObject *zeros_like(PyArrayObject *like)
{
    PyObject *made = new_like(like);
    if (made != NULL) {
        memset(PyArray_DATA((PyArrayObject *)made), 0, (size_t)PyArray_NBYTES((PyArrayObject *)made));
    }
    return made;
}

/* grad, the arguments of `sample`, and which of both gradients are wanted; that of the grid is always there, as in PyTorch. */
static PyObject *sample_backward(PyObject *const *args, int dims)
{
    Sampling s;
    PyObject *mask = args[6];
    if (!read_sampling(args + 1, dims, &s) || !is_array(args[0]) || (!PyTuple_CheckExact(mask) && !PyList_CheckExact(mask)) || Py_SIZE(mask) != 2) {
        return NULL;
    }
    PyArrayObject *given = (PyArrayObject *)args[0];
    int wanted = as_flag(PySequence_Fast_GET_ITEM(mask, 0));
    if (wanted < 0 || float_width(given) != float_width((PyArrayObject *)args[1]) || PyArray_NDIM(given) != dims + 2 ||
        PyArray_SIZE(given) != s.batch * s.channels * s.places) {
        return NULL;
    }
    PyArrayObject *grad = contiguous_of(given);
    PyArrayObject *input = grad == NULL ? NULL : contiguous_of((PyArrayObject *)args[1]);
    PyArrayObject *grid = input == NULL ? NULL : contiguous_of((PyArrayObject *)args[2]);
    PyObject *of_grid = grid == NULL ? NULL : zeros_like(grid);
    PyObject *of_input = of_grid == NULL ? NULL : wanted ? zeros_like(input) : Py_NewRef(Py_None);
    int done = of_input != NULL;
    if (done) {
        const void *up = PyArray_DATA(grad), *from = PyArray_DATA(input), *at = PyArray_DATA(grid);
        void *first = wanted ? PyArray_DATA((PyArrayObject *)of_input) : NULL, *second = PyArray_DATA((PyArrayObject *)of_grid);
        int width = float_width(input);
        PyThreadState *thread = PyArray_SIZE(grad) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        done = width == 8 ? CHOOSE64(sample_backward)(up, from, at, &s, first, second)
                          : CHOOSE32(sample_backward)(up, from, at, &s, first, second);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        if (!done) {
            PyErr_NoMemory();
        }
    }
    Py_XDECREF((PyObject *)grad);
    Py_XDECREF((PyObject *)input);
    Py_XDECREF((PyObject *)grid);
    if (!done) {
        Py_CLEAR(of_grid);
        Py_CLEAR(of_input);
    }
    return pair_of(of_input, of_grid);
}

#define KERNELS(dims)                                                                                                                      \
    static PyObject *sample##dims##d_kernel(PyObject *const *args)                                                                         \
    {                                                                                                                                      \
        return sample(args, dims);                                                                                                         \
    }                                                                                                                                      \
    static PyObject *sample##dims##d_backward_kernel(PyObject *const *args)                                                                \
    {                                                                                                                                      \
        return sample_backward(args, dims);                                                                                                \
    }

KERNELS(2)
KERNELS(3)

const KernelEntry grid_kernels[] = {
    {"grid.grid_sampler_2d", sample2d_kernel},
    {"grid.grid_sampler_3d", sample3d_kernel},
    {"grid.grid_sampler_2d_backward", sample2d_backward_kernel},
    {"grid.grid_sampler_3d_backward", sample3d_backward_kernel},
    {NULL, NULL},
};
