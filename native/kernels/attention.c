/* Scaled dot product attention and its gradients: few queries, as models have them that write one word after the other, row by row; others in blocks of
 * queries whose scores stay in the cache, with products by the BLAS.
 */
#include "../runtime/extents.h"
#include "../runtime/plan.h"

#include "few_vectors.h"
#include "blas.h"
#include <math.h>

#define SMALL_ATTENTION 524288 /* multiplications of the scores of a head up to which the loop serves */
#define SMALL_QUERIES 16

#define LOOPS "attention_loops.h"
#include "variants.h"

/* Whether an array has four dimensions, of which the last is dense, and is aligned; the bytes of an element then. */
static int is_heads(PyObject *object, int width)
{
    PyArrayObject *array = (PyArrayObject *)object;
    if (!width || PyArray_NDIM(array) != 4 || !(PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED) || PyArray_SIZE(array) == 0) {
        return 0;
    }
    for (int d = 0; d < 4; d++) {
        if (PyArray_STRIDE(array, d) % width) {
            return 0;
        }
    }
    return PyArray_DIM(array, 3) == 1 || PyArray_STRIDE(array, 3) == width ? width : 0;
}

/* The same of floats; 4 or 8 then. */
static int head_width(PyObject *object)
{
    return is_array(object) ? is_heads(object, float_width((PyArrayObject *)object)) : 0;
}

typedef struct {
    const char *data;
    npy_intp steps[4]; /* in bytes; 0 where it is broadcast */
    int is_bool;
} Mask;

/* 0 to decline. */
static int read_mask(PyObject *object, const npy_intp *dims, int width, Mask *mask)
{
    mask->data = NULL;
    if (object == Py_None) {
        return 1;
    }
    if (!is_array(object)) {
        return 0;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    int ndim = PyArray_NDIM(array);
    mask->is_bool = PyArray_DESCR(array) == S.descr_bool;
    if (ndim > 4 || (!mask->is_bool && float_width(array) != width) || !(PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED)) {
        return 0;
    }
    npy_intp item = PyArray_ITEMSIZE(array);
    for (int d = 0; d < 4; d++) {
        int at = d - (4 - ndim);
        npy_intp n = at < 0 ? 1 : PyArray_DIM(array, at);
        if (n != 1 && n != dims[d]) {
            return 0;
        }
        mask->steps[d] = n == 1 ? 0 : PyArray_STRIDE(array, at);
        if (mask->steps[d] % item) {
            return 0;
        }
    }
    mask->data = PyArray_BYTES(array);
    return 1;
}

#define BLOCK_SCORES 32768 /* computed at a time */

/* What both directions read: the operands, and where a head of each begins. */
typedef struct {
    PyArrayObject *q, *k, *v;
    npy_intp batch, heads, queries, keys, width;
    npy_intp rows; /* of a block */
    int item, causal, by_rows;
    double scale;
    Mask mask;
} Attention;

static char *head_of(PyArrayObject *array, npy_intp b, npy_intp h)
{
    return PyArray_BYTES(array) + b * PyArray_STRIDE(array, 0) + h * PyArray_STRIDE(array, 1);
}

static npy_intp row_step(const Attention *a, PyArrayObject *array)
{
    return PyArray_STRIDE(array, 2) / a->item;
}

/* Whether the BLAS takes the heads of an array as matrices. */
static int is_matrix(const Attention *a, PyArrayObject *array)
{
    return PyArray_DIM(array, 2) == 1 || row_step(a, array) >= a->width;
}

/* Sizes, scale and mask, where `floats` is the bytes of what is computed in. 0 to decline. */
static int read_sizes(PyObject *query, PyObject *key, PyObject *value, PyObject *causal, PyObject *mask, PyObject *scale, int floats, Attention *a)
{
    a->causal = as_flag(causal);
    if (a->causal < 0) {
        return 0;
    }
    a->q = (PyArrayObject *)query, a->k = (PyArrayObject *)key, a->v = (PyArrayObject *)value;
    for (int d = 0; d < 4; d++) {
        if (PyArray_DIM(a->k, d) != PyArray_DIM(a->v, d) || (d != 2 && PyArray_DIM(a->k, d) != PyArray_DIM(a->q, d))) {
            return 0;
        }
    }
    a->batch = PyArray_DIM(a->q, 0), a->heads = PyArray_DIM(a->q, 1), a->queries = PyArray_DIM(a->q, 2), a->width = PyArray_DIM(a->q, 3);
    a->keys = PyArray_DIM(a->k, 2);
    a->item = floats;
    a->scale = 1 / sqrt((double)a->width);
    if (scale != Py_None) {
        if (!PyFloat_CheckExact(scale)) {
            return 0;
        }
        a->scale = PyFloat_AS_DOUBLE(scale);
    }
    const npy_intp dims[4] = {a->batch, a->heads, a->queries, a->keys};
    return read_mask(mask, dims, floats, &a->mask);
}

/* 0 to decline. */
static int read_attention(PyObject *query, PyObject *key, PyObject *value, PyObject *causal, PyObject *mask, PyObject *scale, Attention *a)
{
    const int item = head_width(query);
    if (!item || head_width(key) != item || head_width(value) != item || !read_sizes(query, key, value, causal, mask, scale, item, a)) {
        return 0;
    }
    a->by_rows = a->queries <= SMALL_QUERIES && a->queries * a->keys * a->width <= SMALL_ATTENTION;
    a->rows = BLOCK_SCORES / a->keys < 16 ? 16 : BLOCK_SCORES / a->keys;
    a->rows = a->rows < a->queries ? a->rows : a->queries;
    return a->by_rows || (has_blas() && is_matrix(a, a->q) && is_matrix(a, a->k) && is_matrix(a, a->v));
}

static npy_intp seen_by(const Attention *a, npy_intp row)
{
    return a->causal && row + 1 < a->keys ? row + 1 : a->keys;
}

/* The mask of a query, or NULL. */
static const char *mask_of(const Attention *a, npy_intp b, npy_intp h, npy_intp row)
{
    const Mask *mask = &a->mask;
    return mask->data == NULL ? NULL : mask->data + b * mask->steps[0] + h * mask->steps[1] + row * mask->steps[2];
}

static npy_intp mask_step(const Attention *a)
{
    return a->mask.data == NULL ? 0 : a->mask.steps[3] / (a->mask.is_bool ? 1 : a->item);
}

/* One head; `scratch` has room for the scores of a block, and for a number of each of its rows. */
static void attend_head(const Attention *a, npy_intp b, npy_intp h, PyArrayObject *out, char *sums, char *scratch)
{
    const char *q = head_of(a->q, b, h), *k = head_of(a->k, b, h), *v = head_of(a->v, b, h);
    char *o = head_of(out, b, h);
    const npy_intp of_q = PyArray_STRIDE(a->q, 2), of_o = PyArray_STRIDE(out, 2);
    if (a->by_rows) {
        for (npy_intp r = 0; r < a->queries; r++) {
            CHOOSE(attend, a->item, q + r * of_q, k, row_step(a, a->k), v, row_step(a, a->v), mask_of(a, b, h, r), mask_step(a), a->mask.is_bool,
                   o + r * of_o, sums + r * a->item, scratch, seen_by(a, r), a->width, a->scale);
        }
        return;
    }
    char *totals = scratch + a->rows * a->keys * a->item;
    for (npy_intp r = 0; r < a->queries; r += a->rows) {
        const npy_intp rows = a->queries - r < a->rows ? a->queries - r : a->rows, keys = seen_by(a, r + rows - 1);
        multiply(a->item, 0, 1, rows, keys, a->width, a->scale, q + r * of_q, of_q / a->item, k, row_step(a, a->k), 0, scratch, keys);
        CHOOSE(weigh_rows, a->item, scratch, rows, keys, seen_by(a, r), mask_of(a, b, h, r), a->mask.steps[2], mask_step(a), a->mask.is_bool,
               sums + r * a->item, totals);
        multiply(a->item, 0, 0, rows, a->width, keys, 1, scratch, keys, v, row_step(a, a->v), 0, o + r * of_o, of_o / a->item);
        CHOOSE(divide_rows, a->item, o + r * of_o, of_o / a->item, rows, a->width, totals);
    }
}

typedef struct {
    const Attention *a;
    PyArrayObject *out;
    char *sums;
    int failed; /* memory was missing; atomic */
} Forward;

static void attend_heads(void *work, npy_intp begin, npy_intp end)
{
    Forward *all = work;
    const Attention *a = all->a;
    char *scratch = PyMem_RawMalloc((size_t)((a->rows * a->keys + a->rows) * a->item));
    if (scratch == NULL) {
        __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (npy_intp i = begin; i < end; i++) {
        attend_head(a, i / a->heads, i % a->heads, all->out, all->sums + i * a->queries * a->item, scratch);
    }
    PyMem_RawFree(scratch);
}

/* Heads that are worth a thread. */
static npy_intp heads_of_part(const Attention *a)
{
    return grain_of(a->queries * a->keys * (a->width / 4 + 1));
}

/* The mask, or a copy of one of half precision in the query's type, which the query was cast to. A new reference. */
static PyObject *mask_like(PyObject *mask, PyObject *query)
{
    if (!is_array(mask) || !float_width((PyArrayObject *)query)) {
        return Py_NewRef(mask);
    }
    if (!is_half_type(PyArray_DESCR((PyArrayObject *)mask))) {
        return Py_NewRef(mask);
    }
    return (PyObject *)converted((PyArrayObject *)mask, PyArray_DESCR((PyArrayObject *)query));
}

/* Memory in the order of the query, unless that is expanded: its dimensions of no stride would be the last ones of the memory. */
static PyObject *new_output(PyArrayObject *q)
{
    NPY_ORDER order = NPY_KEEPORDER;
    for (int d = 0; d < 3; d++) {
        order = PyArray_DIM(q, d) > 1 && PyArray_STRIDE(q, d) == 0 ? NPY_CORDER : order;
    }
    return buffer_like(q, order, NULL);
}

static PyObject *attention_of(PyObject *const *args, PyObject *mask)
{
    Attention a;
    if (!read_attention(args[0], args[1], args[2], args[4], mask, args[6], &a)) {
        return NULL;
    }
    PyObject *out = new_output(a.q), *logsum = new_array(3, (npy_intp[]){a.batch, a.heads, a.queries}, PyArray_DESCR(a.q));
    PyObject *both = NULL;
    if (out != NULL && logsum != NULL && (a.by_rows || is_matrix(&a, (PyArrayObject *)out))) {
        Forward all = {&a, (PyArrayObject *)out, PyArray_BYTES((PyArrayObject *)logsum), 0};
        PyThreadState *thread = a.batch * a.heads * a.queries * a.keys >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        (a.by_rows ? in_parts : in_parts_of_products)(attend_heads, &all, a.batch * a.heads, heads_of_part(&a));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        both = all.failed ? PyErr_NoMemory() : PyTuple_Pack(2, out, logsum);
    }
    Py_XDECREF(out);
    Py_XDECREF(logsum);
    return both;
}

/* Few queries against keys and values of half types, which are read once, as they are. */
typedef struct {
    Forward of;
    int element;
    Row widen, narrow;
} HalfForward;

static void attend_half_head(const HalfForward *all, npy_intp b, npy_intp h, char *sums, float *scratch)
{
    const Attention *a = all->of.a;
    const npy_intp queries = a->queries, keys = a->keys, width = a->width;
    float *scores = scratch, *factors = scores + queries * keys, *rows = factors + queries * keys, *totals = rows + queries * width;
    const char *q = head_of(a->q, b, h);
    char *out = head_of(all->of.out, b, h);
    for (npy_intp r = 0; r < queries; r++) {
        all->widen((char *)(rows + r * width), 4, q + r * PyArray_STRIDE(a->q, 2), 2, width);
    }
    for (npy_intp i = 0; i < queries * width; i++) {
        rows[i] *= (float)a->scale;
    }
    FewVectors few = {.element = all->element, .matrix = head_of(a->k, b, h), .rows = keys, .n = width, .apart = PyArray_STRIDE(a->k, 2),
                      .vectors = (int)queries, .x = rows, .out = scores};
    by_few_vectors(&few);
    CHOOSE(weigh_rows, 4, scores, queries, keys, seen_by(a, 0), mask_of(a, b, h, 0), a->mask.steps[2], mask_step(a), a->mask.is_bool, sums, totals);
    few.matrix = head_of(a->v, b, h);
    few.apart = PyArray_STRIDE(a->v, 2);
    few.summed_rows = 1;
    few.x = scores;
    few.factors = factors;
    few.out = rows;
    by_few_vectors(&few);
    CHOOSE(divide_rows, 4, rows, width, queries, width, totals);
    for (npy_intp r = 0; r < queries; r++) {
        all->narrow(out + r * PyArray_STRIDE(all->of.out, 2), 2, (const char *)(rows + r * width), 4, width);
    }
}

static void attend_half_heads(void *work, npy_intp begin, npy_intp end)
{
    HalfForward *all = work;
    const Attention *a = all->of.a;
    float *scratch = PyMem_RawMalloc((size_t)(a->queries * (2 * a->keys + a->width + 1)) * sizeof(float));
    if (scratch == NULL) {
        __atomic_store_n(&all->of.failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (npy_intp i = begin; i < end; i++) {
        attend_half_head(all, i / a->heads, i % a->heads, all->of.sums + i * a->queries * (npy_intp)sizeof(float), scratch);
    }
    PyMem_RawFree(scratch);
}

static PyObject *half_attention_of(PyObject *const *args, PyObject *given)
{
    Attention a;
    HalfForward all = {.of = {.a = &a}};
    PyArray_Descr *descr = PyArray_DESCR((PyArrayObject *)args[0]);
    for (int k = 0; k < 3; k++) {
        if (!is_array(args[k]) || PyArray_DESCR((PyArrayObject *)args[k]) != descr || kind_widened(args[k], &all.widen) != KIND_FLOAT || all.widen == NULL ||
            !is_heads(args[k], 2)) {
            return NULL;
        }
    }
    all.element = descr == S.descr_bfloat16 ? ELEMENT_B16 : ELEMENT_F16;
    all.narrow = row_between(S.descr32, descr);
    if (!has_few_vectors(all.element) || all.narrow == NULL || PyArray_DIM((PyArrayObject *)args[0], 2) > MOST_VECTORS) {
        return NULL;
    }
    PyObject *mask = is_array(given) && PyArray_DESCR((PyArrayObject *)given) == descr ? (PyObject *)converted((PyArrayObject *)given, S.descr32) : Py_NewRef(given);
    PyObject *both = NULL, *out = NULL, *logsum = NULL;
    if (mask != NULL && read_sizes(args[0], args[1], args[2], args[4], mask, args[6], 4, &a)) {
        out = new_output(a.q);
        logsum = new_array(3, (npy_intp[]){a.batch, a.heads, a.queries}, S.descr32);
    }
    if (out != NULL && logsum != NULL) {
        all.of.out = (PyArrayObject *)out;
        all.of.sums = PyArray_BYTES((PyArrayObject *)logsum);
        PyThreadState *thread = a.batch * a.heads * a.queries * a.keys * a.width >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        in_parts(attend_half_heads, &all, a.batch * a.heads, heads_of_part(&a));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        both = all.of.failed ? PyErr_NoMemory() : PyTuple_Pack(2, out, logsum);
    }
    Py_XDECREF(mask);
    Py_XDECREF(out);
    Py_XDECREF(logsum);
    return both;
}

/* query, key, value, dropout_p, is_causal, attn_mask, scale. */
static PyObject *flash_attention_kernel(PyObject *const *args)
{
    if (is_array(args[0]) && PyArray_ITEMSIZE((PyArrayObject *)args[0]) == 2) {
        return half_attention_of(args, args[5]);
    }
    PyObject *mask = is_array(args[0]) ? mask_like(args[5], args[0]) : Py_NewRef(args[5]);
    PyObject *made = mask == NULL ? NULL : attention_of(args, mask);
    Py_XDECREF(mask);
    return made;
}

/* What is saved of a call and what is found: `grads` are the gradients of query, key and value. */
typedef struct {
    PyArrayObject *grad, *out, *logsum, *grads[3];
    const Attention *a;
    int failed; /* memory was missing; atomic */
} Backward;

static void clear_rows(char *rows, npy_intp first, npy_intp end, npy_intp step, size_t bytes)
{
    for (npy_intp s = first; s < end; s++) {
        memset(rows + s * step, 0, bytes);
    }
}

static void attend_head_back(const Attention *a, const Backward *of, npy_intp b, npy_intp h, char *scratch)
{
    const char *q = head_of(a->q, b, h), *k = head_of(a->k, b, h), *v = head_of(a->v, b, h), *g = head_of(of->grad, b, h), *o = head_of(of->out, b, h);
    const char *sums = head_of(of->logsum, b, h);
    char *to_q = head_of(of->grads[0], b, h), *to_k = head_of(of->grads[1], b, h), *to_v = head_of(of->grads[2], b, h);
    const npy_intp of_q = PyArray_STRIDE(a->q, 2), of_g = PyArray_STRIDE(of->grad, 2), of_o = PyArray_STRIDE(of->out, 2);
    const npy_intp of_sums = PyArray_STRIDE(of->logsum, 2), into_q = PyArray_STRIDE(of->grads[0], 2), into_k = PyArray_STRIDE(of->grads[1], 2);
    const npy_intp item = a->item, k_step = row_step(a, a->k), v_step = row_step(a, a->v), k_to = into_k / item;
    /* The last queries come first: they see the most keys, whose gradients they write; others add to them. */
    const npy_intp step = a->by_rows ? 1 : a->rows, last = (a->queries - 1) / step * step, most = seen_by(a, a->queries - 1);
    clear_rows(to_k, most, a->keys, into_k, (size_t)(a->width * item));
    clear_rows(to_v, most, a->keys, into_k, (size_t)(a->width * item));
    for (npy_intp r = last; r >= 0; r -= step) {
        const npy_intp rows = a->queries - r < step ? a->queries - r : step, keys = seen_by(a, r + rows - 1);
        const double added = r != last;
        if (a->by_rows) {
            CHOOSE(attend_back, item, g + r * of_g, q + r * of_q, k, k_step, v, v_step, o + r * of_o, sums + r * of_sums, mask_of(a, b, h, r),
                   mask_step(a), a->mask.is_bool, to_q + r * into_q, to_k, k_to, to_v, k_to, !added, scratch, keys, a->width, a->scale);
            continue;
        }
        char *inner = scratch + a->rows * a->keys * item;
        multiply((int)item, 0, 1, rows, keys, a->width, a->scale, q + r * of_q, of_q / item, k, k_step, 0, scratch, keys);
        multiply((int)item, 0, 1, rows, keys, a->width, 1, g + r * of_g, of_g / item, v, v_step, 0, inner, keys);
        CHOOSE(unweigh_rows, item, scratch, inner, rows, keys, seen_by(a, r), mask_of(a, b, h, r), a->mask.steps[2], mask_step(a), a->mask.is_bool,
               sums + r * of_sums, of_sums / item, g + r * of_g, of_g / item, o + r * of_o, of_o / item, a->width, a->scale);
        multiply((int)item, 1, 0, keys, a->width, rows, 1, scratch, keys, g + r * of_g, of_g / item, added, to_v, k_to);
        multiply((int)item, 0, 0, rows, a->width, keys, 1, inner, keys, k, k_step, 0, to_q + r * into_q, into_q / item);
        multiply((int)item, 1, 0, keys, a->width, rows, 1, inner, keys, q + r * of_q, of_q / item, added, to_k, k_to);
    }
}

static void attend_heads_back(void *work, npy_intp begin, npy_intp end)
{
    Backward *of = work;
    const Attention *a = of->a;
    char *scratch = PyMem_RawMalloc((size_t)(2 * a->rows * a->keys * a->item));
    if (scratch == NULL) {
        __atomic_store_n(&of->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (npy_intp i = begin; i < end; i++) {
        attend_head_back(a, of, i / a->heads, i % a->heads, scratch);
    }
    PyMem_RawFree(scratch);
}

/* Memory for the gradient of `like`, (batch, heads, length, width), in the order (batch, length, heads, width). */
static PyObject *by_position(PyArrayObject *like)
{
    const npy_intp *dims = PyArray_DIMS(like);
    PyObject *made = new_array(4, (npy_intp[]){dims[0], dims[2], dims[1], dims[3]}, PyArray_DESCR(like));
    PyObject *view = made == NULL ? NULL : PyArray_SwapAxes((PyArrayObject *)made, 1, 2);
    Py_XDECREF(made);
    return view;
}

static int is_like(PyObject *object, const Attention *a)
{
    return head_width(object) == a->item && PyArray_SAMESHAPE((PyArrayObject *)object, a->q);
}

static PyObject *attention_back(PyObject *const *args, PyObject *mask)
{
    if (is_array(args[0]) && PyArray_NDIM((PyArrayObject *)args[0]) == 4 && !head_width(args[0])) {
        PyObject *dense = (PyObject *)contiguous_of((PyArrayObject *)args[0]), *made = NULL; /* the gradient of a sum is one number everywhere */
        if (dense != NULL && head_width(dense)) {
            PyObject *const given[10] = {dense, args[1], args[2], args[3], args[4], args[5], args[6], args[7], args[8], args[9]};
            made = attention_back(given, mask);
        }
        Py_XDECREF(dense);
        return made;
    }
    Attention a;
    if (!read_attention(args[1], args[2], args[3], args[7], mask, args[9], &a) || !is_like(args[0], &a) || !is_like(args[4], &a)) {
        return NULL;
    }
    Backward of = {(PyArrayObject *)args[0], (PyArrayObject *)args[4], (PyArrayObject *)args[5], {NULL, NULL, NULL}, &a, 0};
    if (!is_array(args[5]) || float_width(of.logsum) != a.item || PyArray_NDIM(of.logsum) != 3 || !PyArray_ISALIGNED(of.logsum) ||
        PyArray_DIM(of.logsum, 0) != a.batch || PyArray_DIM(of.logsum, 1) != a.heads || PyArray_DIM(of.logsum, 2) != a.queries ||
        (!a.by_rows && !is_matrix(&a, of.grad))) {
        return NULL;
    }
    PyArrayObject *const sources[3] = {a.q, a.k, a.v};
    PyObject *made = PyTuple_New(3);
    for (int i = 0; made != NULL && i < 3; i++) {
        PyObject *grad = by_position(sources[i]);
        if (grad == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, i, grad);
        of.grads[i] = (PyArrayObject *)grad;
    }
    if (made != NULL) {
        PyThreadState *thread = a.batch * a.heads * a.queries * a.keys >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        (a.by_rows ? in_parts : in_parts_of_products)(attend_heads_back, &of, a.batch * a.heads, heads_of_part(&a) / 2 + 1);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        if (of.failed) {
            Py_DECREF(made);
            return PyErr_NoMemory();
        }
    }
    return made;
}

/* grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale. */
static PyObject *flash_attention_backward_kernel(PyObject *const *args)
{
    PyObject *mask = is_array(args[1]) ? mask_like(args[8], args[1]) : Py_NewRef(args[8]);
    PyObject *made = mask == NULL ? NULL : attention_back(args, mask);
    Py_XDECREF(mask);
    return made;
}

const KernelEntry attention_kernels[] = {
    {"attention.flash_attention", flash_attention_kernel, HALVES},
    {"attention.flash_attention_backward", flash_attention_backward_kernel},
    {NULL, NULL},
};
