/* Fourier transforms: of few points in double precision by mixed radix, of more by fourier_lines.c; what that declines is numpy's. normalization: 0 none,
 * 1 by the root of the number of points, 2 by that number.
 */
#include "fourier.h"
#include "kinds.h"
#include <math.h>

#define MOST_POINTS 512
#define MOST_STEPS 8192 /* about what a call of numpy's takes besides */

/* exp(2 pi i k / n): the angle is taken back to an eighth of the circle, so that the axes and the diagonals are exact. */
Number root_of_unity(npy_intp k, npy_intp n)
{
    npy_intp a = 8 * k;
    int below = a > 4 * n, left, steep;
    a = below ? 8 * n - a : a;
    left = a > 2 * n;
    a = left ? 4 * n - a : a;
    steep = a > n;
    a = steep ? 2 * n - a : a;
    double angle = 2 * 3.14159265358979323846 * (double)a / (8.0 * (double)n), x = cos(angle), y = sin(angle);
    Number root = steep ? (Number){y, x} : (Number){x, y};
    root.re = left ? -root.re : root.re;
    root.im = below ? -root.im : root.im;
    return root;
}

static npy_intp smallest_factor(npy_intp n)
{
    for (npy_intp p = 2; p * p <= n; p++) {
        if (n % p == 0) {
            return p;
        }
    }
    return n;
}

/* Steps for each point of a transform of n. */
static npy_intp steps_of(npy_intp n)
{
    npy_intp steps = 1;
    while (n > 1) {
        npy_intp p = smallest_factor(n);
        steps += p;
        n /= p;
    }
    return steps;
}

/* out[q] = sum of in[r * step] * roots[r * q], for the roots of order n * skip. `room` holds as many numbers as the smallest factors of n. */
static void transform(npy_intp n, const Number *in, npy_intp step, Number *out, const Number *roots, npy_intp skip, Number *room)
{
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    const npy_intp p = smallest_factor(n), m = n / p, order = n * skip;
    for (npy_intp r = 0; r < p; r++) {
        transform(m, in + r * step, step * p, out + r * m, roots, skip * p, room);
    }
    for (npy_intp k = 0; k < m; k++) {
        for (npy_intp q = 0; q < p; q++) {
            Number sum = out[k];
            npy_intp turn = (k + q * m) * skip, at = 0;
            for (npy_intp r = 1; r < p; r++) {
                at += turn;
                at = at >= order ? at - order : at;
                const Number w = roots[at], x = out[r * m + k];
                sum.re += w.re * x.re - w.im * x.im;
                sum.im += w.re * x.im + w.im * x.re;
            }
            room[q] = sum;
        }
        for (npy_intp q = 0; q < p; q++) {
            out[k + q * m] = room[q];
        }
    }
}

/* All lines of one dimension, in place; dims are those of `data`. */
static void along(Number *data, int ndim, const npy_intp *dims, int dim, int forward)
{
    Number roots[MOST_POINTS], line[MOST_POINTS], room[MOST_POINTS];
    const npy_intp n = dims[dim];
    npy_intp inner = 1, outer = 1;
    for (int d = 0; d < ndim; d++) {
        *(d < dim ? &outer : &inner) *= d == dim ? 1 : dims[d];
    }
    for (npy_intp k = 0; k < n; k++) {
        roots[k] = root_of_unity(k, n);
        roots[k].im = forward ? -roots[k].im : roots[k].im;
    }
    for (npy_intp o = 0; o < outer; o++) {
        for (npy_intp i = 0; i < inner; i++) {
            Number *from = data + o * n * inner + i;
            transform(n, from, inner, line, roots, 1, room);
            for (npy_intp k = 0; k < n; k++) {
                from[k * inner] = line[k];
            }
        }
    }
}

/* What a transform works on. */
typedef struct {
    int ndim, count;
    npy_intp dims[MAX_DIMS];
    int over[MAX_DIMS]; /* the dimensions */
    Number *data;
    double scale;
} Work;

static npy_intp points_of(const Work *work)
{
    npy_intp n = 1;
    for (int d = 0; d < work->ndim; d++) {
        n *= work->dims[d];
    }
    return n;
}

/* Reads shape and dimensions; `last` is the size of the last one of these, or 0 for the array's. 0 to decline. */
static int read_work(Work *work, PyObject *object, PyObject *over, npy_intp last)
{
    PyArrayObject *x = (PyArrayObject *)object;
    if (!is_array(object) || !is_contiguous(x) || !PyArray_ISNOTSWAPPED(x) || PyArray_NDIM(x) > MAX_DIMS || !PyTuple_Check(over)) {
        return 0;
    }
    work->ndim = PyArray_NDIM(x);
    work->count = (int)PyTuple_GET_SIZE(over);
    if (work->count == 0 || work->count > work->ndim || PyArray_SIZE(x) == 0) {
        return 0;
    }
    copy_dims(work->dims, PyArray_DIMS(x), work->ndim);
    npy_intp steps = 1;
    for (int i = 0; i < work->count; i++) {
        int dim = as_dim(PyTuple_GET_ITEM(over, i), work->ndim);
        npy_intp size = dim < 0 ? 0 : last && i == work->count - 1 ? last : work->dims[dim];
        if (dim < 0 || size > MOST_POINTS) {
            return 0;
        }
        work->over[i] = dim;
        steps += steps_of(size);
    }
    npy_intp n = points_of(work) * (last ? 2 : 1);
    if (n > MOST_STEPS || n * steps > MOST_STEPS) {
        return 0;
    }
    work->data = PyMem_Malloc((size_t)n * sizeof(Number));
    return work->data != NULL;
}

#define LOAD(type, re_of, im_of)                                                                                                           \
    do {                                                                                                                                   \
        const type *from = PyArray_DATA(x);                                                                                                \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            work->data[i] = (Number){(double)(re_of), (double)(im_of)};                                                                    \
        }                                                                                                                                  \
    } while (0)

static int load(Work *work, PyArrayObject *x)
{
    const npy_intp n = PyArray_SIZE(x);
    switch (PyArray_TYPE(x)) {
    case NPY_FLOAT:
        LOAD(float, from[i], 0);
        return 1;
    case NPY_DOUBLE:
        LOAD(double, from[i], 0);
        return 1;
    case NPY_CFLOAT:
        LOAD(float, from[2 * i], from[2 * i + 1]);
        return 1;
    case NPY_CDOUBLE:
        LOAD(double, from[2 * i], from[2 * i + 1]);
        return 1;
    default:
        return 0;
    }
}

/* The factor, rounded as a number beside an array is. */
static double factor_of(double count, Py_ssize_t normalization, int single)
{
    double scale = normalization == 0 ? 1 : normalization == 1 ? 1 / sqrt(count) : 1 / count;
    return single ? (double)(float)scale : scale;
}

static void set_scale(Work *work, Py_ssize_t normalization, npy_intp last, int single)
{
    double count = 1;
    for (int i = 0; i < work->count; i++) {
        count *= (double)(last && i == work->count - 1 ? last : work->dims[work->over[i]]);
    }
    work->scale = factor_of(count, normalization, single);
}

/* Frees the numbers. */
static PyObject *finish(Work *work, int single, int real)
{
    PyArray_Descr *descr = PyArray_DescrFromType(real ? (single ? NPY_FLOAT : NPY_DOUBLE) : single ? NPY_CFLOAT : NPY_CDOUBLE);
    PyObject *made = new_array(work->ndim, work->dims, descr);
    Py_DECREF(descr);
    if (made != NULL) {
        const npy_intp n = points_of(work), parts = real ? 1 : 2;
        void *to = PyArray_DATA((PyArrayObject *)made);
        for (npy_intp i = 0; i < n * parts; i++) {
            const Number *x = &work->data[i / parts];
            double value = (i % parts ? x->im : x->re) * work->scale;
            if (single) {
                ((float *)to)[i] = (float)value;
            }
            else {
                ((double *)to)[i] = value;
            }
        }
    }
    PyMem_Free(work->data);
    return made;
}

static int is_single(PyArrayObject *x)
{
    return PyArray_TYPE(x) == NPY_FLOAT || PyArray_TYPE(x) == NPY_CFLOAT;
}

/* ------------------------------------------------------------------------------------------------------ many points */

/* An array that lies close, its dimensions, and those of the transform. */
typedef struct {
    PyArrayObject *x;
    int ndim, count, width;
    npy_intp dims[MAX_DIMS];
    int over[MAX_DIMS];
} Many;

/* 0 to decline. Else x is held until `drop`. */
static int read_many(Many *many, PyObject *object, PyObject *over, int numbers)
{
    PyArrayObject *x = (PyArrayObject *)object;
    if (!is_array(object) || !PyArray_ISNOTSWAPPED(x) || PyArray_NDIM(x) > MAX_DIMS || PyArray_SIZE(x) == 0 || !PyTuple_Check(over)) {
        return 0;
    }
    const int type = PyArray_TYPE(x), single = type == (numbers ? NPY_CFLOAT : NPY_FLOAT);
    if (!single && type != (numbers ? NPY_CDOUBLE : NPY_DOUBLE)) {
        return 0;
    }
    many->width = single ? 4 : 8;
    many->ndim = PyArray_NDIM(x);
    many->count = (int)PyTuple_GET_SIZE(over);
    copy_dims(many->dims, PyArray_DIMS(x), many->ndim);
    for (int i = 0; i < many->count; i++) {
        many->over[i] = as_dim(PyTuple_GET_ITEM(over, i), many->ndim);
        if (many->over[i] < 0) {
            return 0;
        }
    }
    many->x = many->count ? (PyArrayObject *)PyArray_GETCONTIGUOUS(x) : NULL;
    return many->x != NULL;
}

static void around(const Many *many, int dim, npy_intp *outer, npy_intp *inner)
{
    *outer = *inner = 1;
    for (int d = 0; d < many->ndim; d++) {
        *(d < dim ? outer : inner) *= d == dim ? 1 : many->dims[d];
    }
}

static double factor_of_many(const Many *many, Py_ssize_t normalization, npy_intp last)
{
    double count = 1;
    for (int i = 0; i < many->count; i++) {
        count *= (double)(i == many->count - 1 ? last : many->dims[many->over[i]]);
    }
    return factor_of(count, normalization, many->width == 4);
}

static PyObject *made_of(const Many *many, int numbers)
{
    PyArray_Descr *descr = PyArray_DescrFromType(numbers ? (many->width == 4 ? NPY_CFLOAT : NPY_CDOUBLE) : many->width == 4 ? NPY_FLOAT : NPY_DOUBLE);
    PyObject *made = new_array(many->ndim, many->dims, descr);
    Py_DECREF(descr);
    return made;
}

/* Along the first `count` of the dimensions, in place; the factor goes with the last of them. */
static int along_each(const Many *many, int count, void *data, int inverse, double by)
{
    for (int i = 0; i < count; i++) {
        const int dim = many->over[i];
        npy_intp outer, inner;
        around(many, dim, &outer, &inner);
        if (!fourier_complex(data, outer, many->dims[dim], inner, many->width, inverse, i == count - 1 ? by : 1)) {
            return 0;
        }
    }
    return 1;
}

static PyObject *many_to_numbers(PyObject *const *args, Py_ssize_t normalization, int forward)
{
    Many many;
    if (!read_many(&many, args[0], args[1], 1)) {
        return NULL;
    }
    PyObject *made = made_of(&many, 1);
    if (made != NULL) {
        void *data = PyArray_DATA((PyArrayObject *)made);
        memcpy(data, PyArray_DATA(many.x), (size_t)PyArray_NBYTES(many.x));
        if (!along_each(&many, many.count, data, !forward, factor_of_many(&many, normalization, many.dims[many.over[many.count - 1]]))) {
            Py_CLEAR(made);
        }
    }
    Py_DECREF(many.x);
    return made;
}

static PyObject *many_from_reals(PyObject *const *args, Py_ssize_t normalization, int onesided)
{
    Many many;
    if (!read_many(&many, args[0], args[1], 0)) {
        return NULL;
    }
    const int dim = many.over[many.count - 1];
    const npy_intp n = many.dims[dim];
    const double by = factor_of_many(&many, normalization, n);
    npy_intp outer, inner;
    around(&many, dim, &outer, &inner);
    many.dims[dim] = onesided ? n / 2 + 1 : n;
    PyObject *made = made_of(&many, 1);
    if (made != NULL) {
        void *data = PyArray_DATA((PyArrayObject *)made);
        if (!fourier_real(PyArray_DATA(many.x), data, outer, n, inner, many.dims[dim], many.width, many.count == 1 ? by : 1) ||
            !along_each(&many, many.count - 1, data, 0, by)) {
            Py_CLEAR(made);
        }
    }
    Py_DECREF(many.x);
    return made;
}

static PyObject *many_to_reals(PyObject *const *args, Py_ssize_t normalization, npy_intp last)
{
    Many many;
    if (!read_many(&many, args[0], args[1], 1)) {
        return NULL;
    }
    const int dim = many.over[many.count - 1];
    const double by = factor_of_many(&many, normalization, last);
    void *data = PyArray_DATA(many.x), *copy = NULL;
    PyObject *made = NULL;
    if (many.dims[dim] == last / 2 + 1 && (many.count == 1 || (copy = PyMem_RawMalloc((size_t)PyArray_NBYTES(many.x))) != NULL)) {
        if (copy != NULL) {
            data = memcpy(copy, data, (size_t)PyArray_NBYTES(many.x));
        }
        npy_intp outer, inner;
        around(&many, dim, &outer, &inner);
        if (along_each(&many, many.count - 1, data, 1, 1)) {
            many.dims[dim] = last;
            made = made_of(&many, 0);
        }
        if (made != NULL && !fourier_to_real(data, PyArray_DATA((PyArrayObject *)made), outer, last, inner, many.width, by)) {
            Py_CLEAR(made);
        }
    }
    PyMem_RawFree(copy);
    Py_DECREF(many.x);
    return made;
}

/* ------------------------------------------------------------------------------------------------------------ kernels */

/* self, dim, normalization, forward */
static PyObject *c2c_kernel(PyObject *const *args)
{
    Work work;
    Py_ssize_t normalization;
    if (!as_index(args[2], &normalization) || !PyBool_Check(args[3])) {
        return NULL;
    }
    if (!read_work(&work, args[0], args[1], 0)) {
        return many_to_numbers(args, normalization, args[3] == Py_True);
    }
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!PyTypeNum_ISCOMPLEX(PyArray_TYPE(x)) || !load(&work, x)) {
        PyMem_Free(work.data);
        return NULL;
    }
    set_scale(&work, normalization, 0, is_single(x));
    for (int i = 0; i < work.count; i++) {
        along(work.data, work.ndim, work.dims, work.over[i], args[3] == Py_True);
    }
    return finish(&work, is_single(x), 0);
}

/* Keeps the first `kept` of n numbers of each line along a dimension. */
static void keep_first(Work *work, int dim, npy_intp kept)
{
    npy_intp inner = 1, n = work->dims[dim], outer = 1;
    for (int d = 0; d < work->ndim; d++) {
        *(d < dim ? &outer : &inner) *= d == dim ? 1 : work->dims[d];
    }
    for (npy_intp o = 1; o < outer; o++) {
        memmove(work->data + o * kept * inner, work->data + o * n * inner, (size_t)(kept * inner) * sizeof(Number));
    }
    work->dims[dim] = kept;
}

/* self, dim, normalization, onesided */
static PyObject *r2c_kernel(PyObject *const *args)
{
    Work work;
    Py_ssize_t normalization;
    if (!as_index(args[2], &normalization) || !PyBool_Check(args[3])) {
        return NULL;
    }
    if (!read_work(&work, args[0], args[1], 0)) {
        return many_from_reals(args, normalization, args[3] == Py_True);
    }
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (PyTypeNum_ISCOMPLEX(PyArray_TYPE(x)) || !load(&work, x)) {
        PyMem_Free(work.data);
        return NULL;
    }
    set_scale(&work, normalization, 0, is_single(x));
    for (int i = work.count - 1; i >= 0; i--) {
        along(work.data, work.ndim, work.dims, work.over[i], 1);
        if (args[3] == Py_True && i == work.count - 1) {
            keep_first(&work, work.over[i], work.dims[work.over[i]] / 2 + 1);
        }
    }
    return finish(&work, is_single(x), 0);
}

/* The whole line of which the first half is given: conjugate symmetric. `from` has h numbers, `to` n of them; both with `inner` between neighbours. */
static void mirror(const Number *from, Number *to, npy_intp n, npy_intp inner)
{
    for (npy_intp k = n - 1; k >= 0; k--) {
        npy_intp twin = k > n / 2 ? n - k : k;
        Number x = from[twin * inner];
        x.im = k == 0 || 2 * k == n ? 0 : k > n / 2 ? -x.im : x.im;
        to[k * inner] = x;
    }
}

/* self, dim, normalization, last_dim_size */
static PyObject *c2r_kernel(PyObject *const *args)
{
    Work work;
    Py_ssize_t normalization, last;
    if (!as_index(args[2], &normalization) || !as_index(args[3], &last) || last < 1) {
        return NULL;
    }
    if (last > MOST_POINTS || !read_work(&work, args[0], args[1], last)) {
        return many_to_reals(args, normalization, last);
    }
    PyArrayObject *x = (PyArrayObject *)args[0];
    const int dim = work.over[work.count - 1];
    Number *whole = NULL;
    if (PyTypeNum_ISCOMPLEX(PyArray_TYPE(x)) && work.dims[dim] == last / 2 + 1 && load(&work, x)) {
        whole = PyMem_Malloc((size_t)(points_of(&work) / work.dims[dim] * last) * sizeof(Number));
    }
    if (whole == NULL) {
        PyMem_Free(work.data);
        return NULL;
    }
    set_scale(&work, normalization, last, is_single(x));
    for (int i = 0; i < work.count - 1; i++) {
        along(work.data, work.ndim, work.dims, work.over[i], 0);
    }
    npy_intp inner = 1, outer = 1, half = work.dims[dim];
    for (int d = 0; d < work.ndim; d++) {
        *(d < dim ? &outer : &inner) *= d == dim ? 1 : work.dims[d];
    }
    for (npy_intp o = 0; o < outer; o++) {
        for (npy_intp i = 0; i < inner; i++) {
            mirror(work.data + o * half * inner + i, whole + o * last * inner + i, last, inner);
        }
    }
    PyMem_Free(work.data);
    work.data = whole;
    work.dims[dim] = last;
    along(work.data, work.ndim, work.dims, dim, 0);
    return finish(&work, is_single(x), 1);
}

const KernelEntry fourier_kernels[] = {
    {"fft.fft_c2c", c2c_kernel},
    {"fft.fft_r2c", r2c_kernel},
    {"fft.fft_c2r", c2r_kernel},
    {NULL, NULL},
};
