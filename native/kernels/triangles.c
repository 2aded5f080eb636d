/* Indices of triangles of matrices, traces, and complex numbers of two parts. */
#include "making.h"
#include "kinds.h"

/* row, col, offset, dtype, ...: the places below (`lower`) or above a diagonal, row by row. */
static PyObject *indices(PyObject *const *args, int lower)
{
    Py_ssize_t rows, columns, offset;
    PyArray_Descr *descr = descr_of(args[3]);
    if (descr == NULL || descr->type_num != NPY_INT64 || !as_index(args[0], &rows) || !as_index(args[1], &columns) || !as_index(args[2], &offset) ||
        rows < 0 || columns < 0 || rows > 1 << 20 || columns > 1 << 20 || offset < -(1 << 20) || offset > 1 << 20) {
        return NULL;
    }
    npy_intp dims[2] = {2, 0};
    for (npy_intp i = 0; i < rows; i++) {
        npy_intp below = i + offset + lower, kept = below < 0 ? 0 : below > columns ? columns : below;
        dims[1] += lower ? kept : columns - kept;
    }
    PyObject *made = new_array(2, dims, descr);
    if (made != NULL) {
        npy_int64 *row = PyArray_DATA((PyArrayObject *)made), *column = row + dims[1];
        for (npy_intp i = 0; i < rows; i++) {
            npy_intp below = i + offset + lower, kept = below < 0 ? 0 : below > columns ? columns : below;
            for (npy_intp j = lower ? 0 : kept; j < (lower ? kept : columns); j++) {
                *row++ = i;
                *column++ = j;
            }
        }
    }
    return made;
}

static PyObject *tril_indices_kernel(PyObject *const *args)
{
    return indices(args, 1);
}

static PyObject *triu_indices_kernel(PyObject *const *args)
{
    return indices(args, 0);
}

/* self: a matrix; long sums of floats are numpy's, in its order, those of half types in double */
static PyObject *trace_kernel(PyObject *const *args)
{
    Row widen;
    int kind = kind_widened(args[0], &widen);
    PyArrayObject *x = (PyArrayObject *)args[0];
    if ((kind != KIND_FLOAT && kind != KIND_DOUBLE && kind != KIND_INT64) || PyArray_NDIM(x) != 2) {
        return NULL;
    }
    npy_intp n = PyArray_DIM(x, 0) < PyArray_DIM(x, 1) ? PyArray_DIM(x, 0) : PyArray_DIM(x, 1), step = PyArray_STRIDE(x, 0) + PyArray_STRIDE(x, 1);
    if (kind != KIND_INT64 && n >= 8 && widen == NULL) {
        return NULL;
    }
    PyObject *made = new_array(0, NULL, PyArray_DESCR(x));
    if (made == NULL) {
        return NULL;
    }
    const char *from = PyArray_BYTES(x);
    void *to = PyArray_DATA((PyArrayObject *)made);
    float single = 0;
    double wide = 0;
    npy_uint64 whole = 0;
    for (npy_intp i = 0; widen != NULL && i < n; i += 256) {
        float some[256];
        const npy_intp count = n - i < 256 ? n - i : 256;
        widen((char *)some, 4, from + i * step, step, count);
        for (npy_intp k = 0; k < count; k++) {
            wide += some[k];
        }
    }
    for (npy_intp i = 0; widen == NULL && i < n; i++, from += step) {
        if (kind == KIND_FLOAT) {
            single += *(const float *)from;
        }
        else if (kind == KIND_DOUBLE) {
            wide += *(const double *)from;
        }
        else {
            whole += *(const npy_uint64 *)from;
        }
    }
    if (widen != NULL) {
        single = (float)wide;
        row_between(S.descr32, PyArray_DESCR(x))(to, 2, (const char *)&single, 4, 1);
        return made;
    }
    memcpy(to, kind == KIND_FLOAT ? (void *)&single : kind == KIND_DOUBLE ? (void *)&wide : (void *)&whole, (size_t)PyArray_ITEMSIZE(x));
    return made;
}

/* real, imag: contiguous, of one shape */
static PyObject *complex_kernel(PyObject *const *args)
{
    int width = dense_width(args[0]);
    PyArrayObject *real = (PyArrayObject *)args[0], *imag = (PyArrayObject *)args[1];
    if (!width || dense_width(args[1]) != width || !PyArray_SAMESHAPE(real, imag)) {
        return NULL;
    }
    PyObject *made = new_numbers(PyArray_NDIM(real), PyArray_DIMS(real), width == 4 ? NPY_CFLOAT : NPY_CDOUBLE);
    for (npy_intp i = 0; made != NULL && i < PyArray_SIZE(real); i++) {
        if (width == 4) {
            float *to = (float *)PyArray_DATA((PyArrayObject *)made) + 2 * i;
            to[0] = ((const float *)PyArray_DATA(real))[i];
            to[1] = ((const float *)PyArray_DATA(imag))[i];
        }
        else {
            double *to = (double *)PyArray_DATA((PyArrayObject *)made) + 2 * i;
            to[0] = ((const double *)PyArray_DATA(real))[i];
            to[1] = ((const double *)PyArray_DATA(imag))[i];
        }
    }
    return made;
}

const KernelEntry triangle_kernels[] = {
    {"creation.tril_indices", tril_indices_kernel},
    {"creation.triu_indices", triu_indices_kernel},
    {"shape.trace", trace_kernel, HALVES},
    {"pointwise.complex_", complex_kernel},
    {NULL, NULL},
};
