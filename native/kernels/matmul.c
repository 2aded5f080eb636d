/* Products of matrices: small ones by loops, since a call of the BLAS costs more than they do; large float ones by loops of our own where the processor
 * has vectors of 512 bits, else by the BLAS that numpy carries, without Python between. What is neither (large batches, large integers) is left to
 * numpy. */
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "blocks.h"
#include "gemm.h"
#include "../runtime/plan.h"
#include "product.h"

#define SMALL_PRODUCT 512 /* elements of the right matrix, and half the multiplications, up to which the loop serves */

#define LOOPS "matmul_loops.h"
#include "variants.h"

/* Reads the operands; `transposed` when the right one is given as (n, k). 0 to decline. */
static int read_product(PyObject *left_object, PyObject *right_object, int transposed, Product *p)
{
    if (!is_array(left_object) || !is_array(right_object)) {
        return 0;
    }
    PyArrayObject *left = (PyArrayObject *)left_object, *right = (PyArrayObject *)right_object;
    int dims_a = PyArray_NDIM(left), dims_b = PyArray_NDIM(right);
    if (PyArray_TYPE(left) != PyArray_TYPE(right) || !(PyArray_FLAGS(left) & PyArray_FLAGS(right) & NPY_ARRAY_ALIGNED) || !dims_a || !dims_b ||
        dims_a > MAX_DIMS - 1 || dims_b > MAX_DIMS - 1) {
        return 0;
    }
    p->left = left;
    p->right = right;
    const npy_intp *shape_a = PyArray_DIMS(left), *shape_b = PyArray_DIMS(right);
    const npy_intp *steps_a = PyArray_STRIDES(left), *steps_b = PyArray_STRIDES(right);
    p->k = shape_a[dims_a - 1];
    p->a[1] = steps_a[dims_a - 1];
    p->m = dims_a > 1 ? shape_a[dims_a - 2] : 1;
    p->a[0] = dims_a > 1 ? steps_a[dims_a - 2] : 0;
    int inner = dims_b == 1 || transposed ? dims_b - 1 : dims_b - 2, outer = transposed ? dims_b - 2 : dims_b - 1;
    p->b[0] = steps_b[inner];
    p->n = dims_b > 1 ? shape_b[outer] : 1;
    p->b[1] = dims_b > 1 ? steps_b[outer] : 0;
    if (shape_b[inner] != p->k) {
        return 0;
    }
    int batch_a = dims_a > 2 ? dims_a - 2 : 0, batch_b = dims_b > 2 ? dims_b - 2 : 0;
    if (batch_a && !batch_b && dims_b == 2 && is_contiguous(left) && p->k) { /* the rows of all matrices follow each other */
        npy_intp rows = PyArray_SIZE(left) / p->k;
        for (int d = 0; d < dims_a - 1; d++) {
            p->dims[d] = shape_a[d];
        }
        p->dims[dims_a - 1] = p->n;
        p->ndim = dims_a;
        p->m = rows;
        p->a[0] = p->k * PyArray_ITEMSIZE(left);
        p->a[1] = PyArray_ITEMSIZE(left);
        p->batch = 0;
        p->count = 1;
        return 1;
    }
    p->batch = batch_a > batch_b ? batch_a : batch_b;
    p->count = 1;
    for (int d = 0; d < p->batch; d++) {
        int at_a = d - (p->batch - batch_a), at_b = d - (p->batch - batch_b);
        npy_intp size_a = at_a < 0 ? 1 : shape_a[at_a], size_b = at_b < 0 ? 1 : shape_b[at_b];
        if (size_a != size_b && size_a != 1 && size_b != 1) {
            return 0;
        }
        p->dims[d] = size_a == 1 ? size_b : size_a;
        p->batch_a[d] = size_a == 1 ? 0 : steps_a[at_a];
        p->batch_b[d] = size_b == 1 ? 0 : steps_b[at_b];
        p->count *= p->dims[d];
    }
    p->ndim = p->batch;
    if (dims_a > 1) {
        p->dims[p->ndim++] = p->m;
    }
    if (dims_b > 1) {
        p->dims[p->ndim++] = p->n;
    }
    return 1;
}

static int in_items(npy_intp *steps, int width)
{
    if (steps[0] % width || steps[1] % width) {
        return 0;
    }
    steps[0] /= width;
    steps[1] /= width;
    return 1;
}

static PyObject *small_floats(Product *p, int width, const void *bias)
{
    npy_intp m = p->m, n = p->n, a[2] = {p->a[0], p->a[1]}, b[2] = {p->b[0], p->b[1]};
    const char *left = PyArray_BYTES(p->left), *right = PyArray_BYTES(p->right);
    int swapped = n == 1 && m > 1 && bias == NULL; /* a column: its elements side by side, as a row times the transposed matrix */
    if (swapped) {
        n = m;
        m = 1;
        a[0] = 0, a[1] = p->b[0];
        b[0] = p->a[1], b[1] = p->a[0];
    }
    if (p->k * n > SMALL_PRODUCT || m * p->k * n > 2 * SMALL_PRODUCT || !in_items(a, width) || !in_items(b, width)) {
        return NULL;
    }
    PyObject *out = new_array(p->ndim, p->dims, PyArray_DESCR(p->left));
    if (out == NULL) {
        return NULL;
    }
    char *result = PyArray_BYTES((PyArrayObject *)out);
    npy_intp at[MAX_DIMS] = {0};
    PyThreadState *thread = p->count * m * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; i < p->count; i++, result += m * n * width) {
        CHOOSE(small_product, width, swapped ? right : left, a, swapped ? left : right, b, bias, result, m, p->k, n);
        advance(p, at, &left, &right);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return out;
}

#define SECOND_CACHE (2 << 20) /* bytes of a matrix that it holds */
#define FEW_ROWS 16 /* for which a BLAS spends its time on packing the right matrix */

typedef struct {
    const Product *p;
    int width;
    npy_intp a_row, b_row;
    char *result;
} FewRows;

static void few_rows_part(void *work, npy_intp begin, npy_intp end)
{
    const FewRows *all = work;
    const Product *p = all->p;
    CHOOSE(few_by_rows, all->width, PyArray_BYTES(p->left), all->a_row, PyArray_BYTES(p->right) + begin * all->b_row * all->width, all->b_row,
           all->result + begin * all->width, p->n, p->m, p->k, end - begin);
}

/* Few rows by a transposed matrix, as a linear layer's; NULL without an exception declines. */
static PyObject *few_rows(Product *p, int width, const void *bias)
{
    npy_intp a[2] = {p->a[0], p->a[1]}, b[2] = {p->b[0], p->b[1]};
    /* From some rows on the tiles are faster, but they copy a right matrix that lies transposed; beyond the second cache the copy costs more. */
    const npy_intp most = S.vectors < 2 ? FEW_ROWS : p->n * p->k * width > SECOND_CACHE ? 12 : width == 4 ? 8 : 7;
    if (p->m < 2 || p->m > most || p->n < 8 || p->k < (p->m > 8 ? 128 : 32) || !in_items(a, width) || !in_items(b, width) || a[1] != 1 || b[0] != 1) {
        return NULL;
    }
    PyObject *out = new_array(p->ndim, p->dims, PyArray_DESCR(p->left));
    if (out != NULL) {
        void *result = PyArray_DATA((PyArrayObject *)out);
        PyThreadState *thread = p->k * p->n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        FewRows all = {p, width, a[0], b[1], result};
        in_parts(few_rows_part, &all, p->n, (grain_of(p->k * (p->m + 1) / 2) + 3) / 4 * 4);
        if (bias != NULL) {
            CHOOSE(add_row, width, result, bias, p->m, p->n);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

typedef struct {
    const Product *p;
    Gemm g;
    int width;
} Batch;

static void some_matrices(void *work, npy_intp begin, npy_intp end)
{
    const Batch *all = work;
    const Product *p = all->p;
    const char *a = PyArray_BYTES(p->left), *b = PyArray_BYTES(p->right);
    npy_intp at[MAX_DIMS] = {0}, left = begin;
    for (int d = p->batch - 1; d >= 0; d--) {
        at[d] = left % p->dims[d];
        left /= p->dims[d];
        a += at[d] * p->batch_a[d];
        b += at[d] * p->batch_b[d];
    }
    Gemm g = all->g;
    for (npy_intp i = begin; i < end; i++) {
        g.a = a;
        g.b = b;
        g.c = (char *)all->g.c + i * g.m * g.n * all->width;
        gemm(all->width, &g);
        advance(p, at, &a, &b);
    }
}

/* Large products by our own loops; NULL without an exception declines. */
static PyObject *own_floats(Product *p, int width, const void *bias)
{
    npy_intp a[2] = {p->a[0], p->a[1]}, b[2] = {p->b[0], p->b[1]};
    if (!in_items(a, width) || !in_items(b, width)) {
        return NULL;
    }
    Batch all = {p, {NULL, NULL, NULL, bias, p->m, p->n, p->k, a[0], a[1], b[0], b[1], p->n, 1, 0}, width};
    if (!gemm_serves(&all.g)) {
        return NULL;
    }
    PyObject *out = new_array(p->ndim, p->dims, PyArray_DESCR(p->left));
    if (out != NULL) {
        all.g.c = PyArray_DATA((PyArrayObject *)out);
        const npy_intp products = p->m * p->n * p->k / 16;
        PyThreadState *thread = p->count * products >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        if (p->count > 1) {
            in_parts(some_matrices, &all, p->count, grain_of(products));
        }
        else {
            some_matrices(&all, 0, 1);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

/* One large product through numpy's BLAS, into memory of ours. */
static PyObject *large_floats(Product *p, int width, const void *bias)
{
    npy_intp left_dims[2] = {p->m, p->k}, right_dims[2] = {p->k, p->n}, out_dims[2] = {p->m, p->n};
    PyObject *out = new_array(p->ndim, p->dims, PyArray_DESCR(p->left)), *matrix = NULL;
    PyObject *left = new_view(p->left, 2, left_dims, p->a, PyArray_BYTES(p->left));
    PyObject *right = new_view(p->right, 2, right_dims, p->b, PyArray_BYTES(p->right));
    if (out != NULL && left != NULL && right != NULL) {
        matrix = new_view((PyArrayObject *)out, 2, out_dims, NULL, PyArray_BYTES((PyArrayObject *)out));
    }
    PyObject *made = matrix == NULL ? NULL : PyArray_MatrixProduct2(left, right, (PyArrayObject *)matrix);
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(matrix);
    if (made == NULL) {
        Py_XDECREF(out);
        return NULL;
    }
    Py_DECREF(made);
    if (bias != NULL) {
        void *result = PyArray_DATA((PyArrayObject *)out);
        PyThreadState *thread = p->m * p->n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        CHOOSE(add_row, width, result, bias, p->m, p->n);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

static int is_half(PyArrayObject *array)
{
    return PyArray_ITEMSIZE(array) == 2 && PyArray_TYPE(array) != NPY_INT16;
}

/* A product of half types that is summed in float32 and rounded once, plus a row (or None). */
static PyObject *half_product(const Product *p, PyObject *added)
{
    PyArrayObject *row = (PyArrayObject *)added;
    if (added != Py_None &&
        (!is_array(added) || PyArray_DESCR(row) != PyArray_DESCR(p->left) || PyArray_NDIM(row) != 1 || PyArray_DIM(row, 0) != p->n)) {
        return NULL;
    }
    PyObject *out = few_sums(p);
    if (out == NULL) {
        return PyErr_Occurred() ? NULL : amx_product(p, added, PyArray_DESCR(p->left));
    }
    if (added != Py_None) {
        PyArrayObject *bias = converted(row, S.descr32);
        if (bias == NULL) {
            Py_DECREF(out);
            return NULL;
        }
        CHOOSE(add_row, 4, PyArray_DATA((PyArrayObject *)out), PyArray_DATA(bias), p->count * p->m, p->n);
        Py_DECREF((PyObject *)bias);
    }
    Py_SETREF(out, (PyObject *)converted((PyArrayObject *)out, PyArray_DESCR(p->left))); /* no short cut casts what a kernel gives */
    return out;
}

/* `left` (..., m, k) times `right` (..., k, n) or, transposed, (n, k); `added` is a row or None. */
static PyObject *product(PyObject *left, PyObject *right, PyObject *added, int transposed)
{
    Product p;
    if (!read_product(left, right, transposed, &p)) {
        return NULL;
    }
    if (is_half(p.left)) {
        return half_product(&p, added);
    }
    int width = float_width(p.left);
    const void *bias = NULL;
    if (added != Py_None) {
        if (!width || dense_width(added) != width || PyArray_NDIM((PyArrayObject *)added) != 1 || PyArray_DIM((PyArrayObject *)added, 0) != p.n) {
            return NULL;
        }
        bias = PyArray_DATA((PyArrayObject *)added);
    }
    if (!width) {
        return small_integers(&p);
    }
    if (float_width(p.right) != width) { /* of another byte order */
        return NULL;
    }
    if (!p.count || !p.m || !p.n || !p.k) {
        return NULL;
    }
    PyObject *out = p.count > 1 ? own_floats(&p, width, bias) : NULL;
    if (out == NULL && !PyErr_Occurred()) {
        out = small_floats(&p, width, bias);
    }
    if (out == NULL && !PyErr_Occurred() && !p.batch && width == 4 && p.m * p.k + p.k * p.n > SECOND_CACHE / width) {
        out = few_sums(&p);
        if (out != NULL && bias != NULL) {
            CHOOSE(add_row, width, PyArray_DATA((PyArrayObject *)out), bias, p.m, p.n);
        }
    }
    if (out == NULL && !PyErr_Occurred() && !p.batch) {
        out = few_rows(&p, width, bias);
    }
    if (out == NULL && !PyErr_Occurred()) {
        out = own_floats(&p, width, bias);
    }
    if (out == NULL && !PyErr_Occurred() && !p.batch && p.ndim >= 2) {
        out = large_floats(&p, width, bias);
    }
    return out;
}

static int has_dims(PyObject *object, int ndim)
{
    return is_array(object) && PyArray_NDIM((PyArrayObject *)object) == ndim;
}

static PyObject *matmul_kernel(PyObject *const *args)
{
    return product(args[0], args[1], Py_None, 0);
}

/* What needs neither vectors as matrices nor broadcasting of batches: the result is contiguous as PyTorch's is. */
static PyObject *fast_matmul_kernel(PyObject *const *args)
{
    if (!is_array(args[0]) || !is_array(args[1])) {
        return NULL;
    }
    PyArrayObject *left = (PyArrayObject *)args[0], *right = (PyArrayObject *)args[1];
    int ndim = PyArray_NDIM(left), same = ndim == PyArray_NDIM(right);
    if (ndim < 2 || (PyArray_NDIM(right) != 2 && !same)) {
        return NULL;
    }
    for (int d = 0; same && d < ndim - 2; d++) {
        if (PyArray_DIM(left, d) != PyArray_DIM(right, d)) {
            return NULL;
        }
    }
    return product(args[0], args[1], Py_None, 0);
}

static PyObject *mm_kernel(PyObject *const *args)
{
    return has_dims(args[0], 2) && has_dims(args[1], 2) ? product(args[0], args[1], Py_None, 0) : NULL;
}

static PyObject *bmm_kernel(PyObject *const *args)
{
    if (!has_dims(args[0], 3) || !has_dims(args[1], 3) ||
        PyArray_DIM((PyArrayObject *)args[0], 0) != PyArray_DIM((PyArrayObject *)args[1], 0)) {
        return NULL;
    }
    return product(args[0], args[1], Py_None, 0);
}

static PyObject *mv_kernel(PyObject *const *args)
{
    return has_dims(args[0], 2) && has_dims(args[1], 1) ? product(args[0], args[1], Py_None, 0) : NULL;
}

static PyObject *dot_kernel(PyObject *const *args)
{
    return has_dims(args[0], 1) && has_dims(args[1], 1) ? product(args[0], args[1], Py_None, 0) : NULL;
}

/* self, vec2, out: contiguous vectors of floats of one dtype. */
static PyObject *outer_kernel(PyObject *const *args)
{
    if (!has_dims(args[0], 1) || !has_dims(args[1], 1)) {
        return NULL;
    }
    PyArrayObject *left = (PyArrayObject *)args[0], *right = (PyArrayObject *)args[1], *out = (PyArrayObject *)args[2];
    const int width = float_width(left);
    npy_intp dims[] = {PyArray_DIM(left, 0), PyArray_DIM(right, 0)};
    if (!width || float_width(right) != width || !is_contiguous(left) || !is_contiguous(right)) {
        return NULL;
    }
    if (args[2] == Py_None) {
        out = (PyArrayObject *)new_array(2, dims, PyArray_DESCR(left));
    }
    else if (!is_array(args[2]) || PyArray_NDIM(out) != 2 || !PyArray_CompareLists(PyArray_DIMS(out), dims, 2) || float_width(out) != width || !is_contiguous(out) ||
             !(PyArray_FLAGS(out) & NPY_ARRAY_WRITEABLE) || arrays_meet(left, out) || arrays_meet(right, out)) {
        return NULL;
    }
    else {
        Py_INCREF((PyObject *)out);
    }
    if (out == NULL) {
        return NULL;
    }
    PyThreadState *thread = dims[0] * dims[1] >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    CHOOSE(outer_rows, width, PyArray_DATA(left), PyArray_DATA(right), PyArray_DATA(out), dims[0], dims[1]);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return (PyObject *)out;
}

static PyObject *linear_kernel(PyObject *const *args)
{
    return has_dims(args[1], 2) ? product(args[0], args[1], args[2], 1) : NULL;
}

/* The sums in float32 of a product of half types. */
static PyObject *half_sums_of(PyObject *left, PyObject *right)
{
    Product p;
    if (!read_product(left, right, 0, &p)) {
        return NULL;
    }
    PyObject *out = few_sums(&p);
    return out != NULL || PyErr_Occurred() ? out : amx_product(&p, Py_None, S.descr32);
}

/* beta * added + alpha * product: self, first, second, beta, alpha; `added` broadcasts. Floats only, half types in float32. */
static PyObject *blended(PyObject *const *args, int first_dims, int second_dims)
{
    if (!has_dims(args[1], first_dims) || !has_dims(args[2], second_dims) || !is_array(args[0])) {
        return NULL;
    }
    PyArrayObject *added = (PyArrayObject *)args[0];
    const int halves = is_half(added), width = halves ? 4 : float_width(added);
    if (!width || (halves ? PyArray_DESCR((PyArrayObject *)args[1]) != PyArray_DESCR(added) : float_width((PyArrayObject *)args[1]) != width) ||
        !(PyArray_FLAGS(added) & NPY_ARRAY_ALIGNED)) {
        return NULL;
    }
    double factors[2];
    for (int i = 0; i < 2; i++) {
        PyObject *number = args[3 + i];
        if (!PyFloat_CheckExact(number) && !PyLong_CheckExact(number)) {
            return NULL;
        }
        factors[i] = PyFloat_AsDouble(number);
        if (factors[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return NULL;
        }
    }
    PyArrayObject *second = (PyArrayObject *)args[2];
    if (!halves && second_dims > 1 && factors[0] == 1 && factors[1] == 1 && PyArray_NDIM(added) == 1 && dense_width(args[0]) == width &&
        PyArray_DIM(added, 0) == PyArray_DIM(second, second_dims - 1)) {
        return product(args[1], args[2], args[0], 0); /* a row, which tiles add as they are stored */
    }
    PyObject *out = halves ? half_sums_of(args[1], args[2]) : product(args[1], args[2], Py_None, 0);
    added = out == NULL ? NULL : halves ? converted(added, S.descr32) : (PyArrayObject *)Py_NewRef(args[0]);
    if (added == NULL) {
        Py_XDECREF(out);
        return NULL;
    }
    PyArrayObject *result = (PyArrayObject *)out;
    int ndim = PyArray_NDIM(result), lacks = ndim - PyArray_NDIM(added);
    npy_intp sizes[3] = {1, 1, 1}, steps[3] = {0, 0, 0};
    int fits = lacks >= 0 && ndim <= 3;
    for (int d = 0; fits && d < ndim; d++) {
        npy_intp size = PyArray_DIM(result, d), given = d < lacks ? 1 : PyArray_DIM(added, d - lacks);
        sizes[3 - ndim + d] = size;
        steps[3 - ndim + d] = given == 1 ? 0 : PyArray_STRIDE(added, d - lacks) / width;
        fits = (given == size || given == 1) && (d < lacks || PyArray_STRIDE(added, d - lacks) % width == 0);
    }
    if (!fits) {
        Py_DECREF((PyObject *)added);
        Py_DECREF(out);
        return NULL;
    }
    PyThreadState *thread = PyArray_SIZE(result) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    CHOOSE(blend, width, PyArray_DATA(result), PyArray_DATA(added), sizes, steps, factors[0], factors[1]);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    Py_DECREF((PyObject *)added);
    if (halves) {
        Py_SETREF(out, (PyObject *)converted(result, PyArray_DESCR((PyArrayObject *)args[0])));
    }
    return out;
}

static PyObject *addmm_kernel(PyObject *const *args)
{
    return blended(args, 2, 2);
}

/* Of a vector and two matrices, without factors. */
static PyObject *fast_addmm_kernel(PyObject *const *args)
{
    for (int i = 3; i < 5; i++) {
        if (!PyLong_CheckExact(args[i]) || PyObject_RichCompareBool(args[i], S.one, Py_EQ) != 1) {
            return NULL;
        }
    }
    return has_dims(args[0], 1) && dense_width(args[0]) ? addmm_kernel(args) : NULL;
}

static PyObject *baddbmm_kernel(PyObject *const *args)
{
    return has_dims(args[0], 3) ? blended(args, 3, 3) : NULL;
}

static PyObject *addmv_kernel(PyObject *const *args)
{
    return blended(args, 2, 1);
}

const KernelEntry matmul_kernels[] = {
    {"matmul.matmul", matmul_kernel, HALVES},
    {"matmul.fast_matmul", fast_matmul_kernel},
    {"matmul.mm", mm_kernel, HALVES},
    {"matmul.fast_mm", mm_kernel},
    {"matmul.bmm", bmm_kernel, HALVES},
    {"matmul.fast_bmm", bmm_kernel},
    {"matmul.mv", mv_kernel, HALVES},
    {"matmul.dot", dot_kernel, HALVES},
    {"matmul.outer", outer_kernel},
    {"matmul.linear", linear_kernel, HALVES},
    {"matmul.fast_linear", linear_kernel},
    {"matmul.addmm", addmm_kernel, HALVES},
    {"matmul.fast_addmm", fast_addmm_kernel},
    {"matmul.baddbmm", baddbmm_kernel, HALVES},
    {"matmul.addmv", addmv_kernel, HALVES},
    {NULL, NULL},
};
