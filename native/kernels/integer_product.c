/* Products of small integer matrices, and of vectors. Larger ones are left to numpy. */
#include "product.h"

#define SMALL_INTEGERS 32768 /* multiplications of matrices up to which a plain loop beats conversions */

#define INTEGER_PRODUCT(name, T, U)                                                                                                        \
    static T name##_dot(const T *a, const T *b, npy_intp k)                                                                                \
    {                                                                                                                                      \
        U sum = 0;                                                                                                                         \
        for (npy_intp p = 0; p < k; p++) {                                                                                                 \
            sum = (U)(sum + (U)((U)a[p] * (U)b[p]));                                                                                       \
        }                                                                                                                                  \
        return (T)sum;                                                                                                                     \
    }                                                                                                                                      \
    static void name(const char *a, const npy_intp *step_a, const char *b, const npy_intp *step_b, char *out, npy_intp m, npy_intp k,      \
                     npy_intp n)                                                                                                           \
    {                                                                                                                                      \
        const int side_by_side = step_a[1] == sizeof(T) && step_b[0] == sizeof(T);                                                         \
        for (npy_intp i = 0; i < m; i++) {                                                                                                 \
            for (npy_intp j = 0; j < n; j++) {                                                                                             \
                const char *left = a + i * step_a[0], *right = b + j * step_b[1];                                                          \
                if (side_by_side) {                                                                                                        \
                    ((T *)out)[i * n + j] = name##_dot((const T *)left, (const T *)right, k);                                              \
                    continue;                                                                                                              \
                }                                                                                                                          \
                U sum = 0;                                                                                                                 \
                for (npy_intp p = 0; p < k; p++, left += step_a[1], right += step_b[0]) {                                                  \
                    sum = (U)(sum + (U)((U) * (const T *)left * (U) * (const T *)right));                                                  \
                }                                                                                                                          \
                ((T *)out)[i * n + j] = (T)sum;                                                                                            \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

/* Unsigned sums of at least 32 bits wrap around as numpy's do. */
INTEGER_PRODUCT(product_int8, npy_int8, npy_uint32)
INTEGER_PRODUCT(product_uint8, npy_uint8, npy_uint32)
INTEGER_PRODUCT(product_int16, npy_int16, npy_uint32)
INTEGER_PRODUCT(product_int32, npy_int32, npy_uint32)
INTEGER_PRODUCT(product_int64, npy_int64, npy_uint64)

typedef void (*IntegerProduct)(const char *, const npy_intp *, const char *, const npy_intp *, char *, npy_intp, npy_intp, npy_intp);

static IntegerProduct integer_product(PyArrayObject *array)
{
    if (!PyArray_ISNOTSWAPPED(array)) {
        return NULL;
    }
    switch (PyArray_TYPE(array)) {
    case NPY_INT8:
        return product_int8;
    case NPY_UINT8:
        return product_uint8;
    case NPY_INT16:
        return product_int16;
    case NPY_INT32:
        return product_int32;
    case NPY_INT64:
        return product_int64;
    default:
        return NULL;
    }
}

/* Whether each element is a product of two lines of memory, of which one serves all. */
static int is_by_lines(const Product *p)
{
    const npy_intp item = PyArray_ITEMSIZE(p->left);
    return (p->m == 1 || p->n == 1) && p->a[1] == item && p->b[0] == item;
}

PyObject *small_integers(const Product *p)
{
    IntegerProduct run = integer_product(p->left);
    if (run == NULL || (p->m * p->k * p->n > SMALL_INTEGERS && !is_by_lines(p))) {
        return NULL;
    }
    PyObject *out = new_array(p->ndim, p->dims, PyArray_DESCR(p->left));
    if (out == NULL) {
        return NULL;
    }
    const char *left = PyArray_BYTES(p->left), *right = PyArray_BYTES(p->right);
    char *result = PyArray_BYTES((PyArrayObject *)out);
    npy_intp at[MAX_DIMS] = {0};
    PyThreadState *thread = p->count * p->m * p->n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; i < p->count; i++, result += p->m * p->n * PyArray_ITEMSIZE(p->left)) {
        run(left, p->a, right, p->b, result, p->m, p->k, p->n);
        advance(p, at, &left, &right);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return out;
}
