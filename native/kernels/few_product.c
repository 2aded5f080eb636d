/* Products of matrices one of which has few rows or columns, in float32: those of float16 and bfloat16, of which larger ones are worth a copy in float32 and the
 * BLAS, and those of float32 that wait for memory, which the BLAS does not ask for far enough ahead.
 */
#include "few_vectors.h"
#include "product.h"

#define MOST_OF_FLOATS 16 /* vectors by a matrix that needs no copy otherwise */

/* The matrix of a product, and what its vectors are read by. */
typedef struct {
    FewVectors few;
    npy_intp item;        /* bytes of an element */
    int right;            /* whether it is the right one */
    npy_intp vector, next; /* bytes between the vectors of the other one, and between their elements */
} Sides;

/* Whether one side has few vectors and the other elements side by side, of which there are `vectors` and `rows`. */
static int by_side(Sides *sides, int right, npy_intp vectors, npy_intp k, npy_intp rows, const npy_intp *matrix, const npy_intp *other)
{
    const npy_intp item = sides->item;
    const int along = matrix[0] == item || k == 1, summed = !along && (matrix[1] == item || rows == 1);
    if (vectors > (item == 4 ? MOST_OF_FLOATS : MOST_VECTORS) || (!along && !summed)) {
        return 0;
    }
    sides->right = right;
    sides->few.vectors = (int)vectors;
    sides->few.summed_rows = summed;
    sides->few.rows = summed ? k : rows;
    sides->few.n = summed ? rows : k;
    sides->few.apart = summed ? matrix[0] : matrix[1];
    sides->vector = other[1];
    sides->next = other[0];
    return 1;
}

PyObject *few_sums(const Product *p)
{
    Row widen;
    const npy_intp total = p->count * p->m * p->n, a[2] = {p->a[1], p->a[0]};
    Sides sides = {.item = PyArray_ITEMSIZE(p->left)};
    FewVectors *few = &sides.few;
    if (kind_widened((PyObject *)p->left, &widen) != KIND_FLOAT || PyArray_DESCR(p->left) != PyArray_DESCR(p->right) || !total || !p->k) {
        return NULL;
    }
    few->element = widen == NULL ? ELEMENT_F32 : PyArray_DESCR(p->left) == S.descr_bfloat16 ? ELEMENT_B16 : ELEMENT_F16;
    widen = widen == NULL ? row_of_size(sizeof(float)) : widen;
    if (!has_few_vectors(few->element) ||
        !((p->m <= p->n && by_side(&sides, 1, p->m, p->k, p->n, p->b, a)) || by_side(&sides, 0, p->n, p->k, p->m, a, p->b) ||
          by_side(&sides, 1, p->m, p->k, p->n, p->b, a))) {
        return NULL;
    }
    const npy_intp rows = few->summed_rows ? few->n : few->rows, numbers = few->vectors * p->k;
    const int turned = !sides.right && few->vectors > 1;
    float *space = PyMem_RawMalloc((size_t)(numbers * (few->summed_rows ? 2 : 1) + (turned ? rows * few->vectors : 0)) * sizeof(float));
    PyObject *out = space == NULL ? PyErr_NoMemory() : new_array(p->ndim, p->dims, S.descr32);
    if (out == NULL) {
        PyMem_RawFree(space);
        return NULL;
    }
    few->x = space;
    few->factors = space + numbers;
    const char *left = PyArray_BYTES(p->left), *right = PyArray_BYTES(p->right);
    float *result = PyArray_DATA((PyArrayObject *)out);
    npy_intp at[MAX_DIMS] = {0};
    PyThreadState *thread = total * p->k >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp i = 0; i < p->count; i++, result += p->m * p->n) {
        for (int v = 0; v < few->vectors; v++) {
            widen((char *)(space + v * p->k), 4, (sides.right ? left : right) + v * sides.vector, sides.next, p->k);
        }
        few->matrix = sides.right ? right : left;
        few->out = turned ? few->factors + (few->summed_rows ? numbers : 0) : result;
        by_few_vectors(few);
        for (npy_intp r = 0; turned && r < rows; r++) {
            for (int v = 0; v < few->vectors; v++) {
                result[r * few->vectors + v] = few->out[v * rows + r];
            }
        }
        advance(p, at, &left, &right);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    PyMem_RawFree(space);
    return out;
}
