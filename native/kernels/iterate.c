/* Iterate: a loop of numpy's over operands of any strides that broadcast to the result. */
#include "../runtime/plan.h"

#define MOST_OPERANDS 2

typedef struct {
    npy_intp size;
    npy_intp step[MOST_OPERANDS + 1]; /* the last is the result's */
} Dim;

/* Dimensions of more than one element, those in which the result steps farthest first, with neighbours that follow each other put together. */
static int dims_of(int operands, PyArrayObject *const *operand, PyArrayObject *out, Dim *dims)
{
    int ndim = PyArray_NDIM(out), count = 0;
    for (int d = 0; d < ndim; d++) {
        Dim dim = {.size = PyArray_DIM(out, d)};
        if (dim.size == 1) {
            continue;
        }
        for (int k = 0; k < operands; k++) {
            int at = d - (ndim - PyArray_NDIM(operand[k]));
            dim.step[k] = at < 0 || PyArray_DIM(operand[k], at) == 1 ? 0 : PyArray_STRIDE(operand[k], at);
        }
        dim.step[operands] = PyArray_STRIDE(out, d);
        int place = count++;
        for (; place > 0 && dims[place - 1].step[operands] < dim.step[operands]; place--) {
            dims[place] = dims[place - 1];
        }
        dims[place] = dim;
    }
    int last = 0;
    for (int d = 1; d < count; d++) {
        int follows = 1;
        for (int k = 0; k <= operands; k++) {
            follows &= dims[last].step[k] == dims[d].step[k] * dims[d].size;
        }
        if (follows) {
            dims[d].size *= dims[last].size;
            dims[last] = dims[d];
        }
        else {
            dims[++last] = dims[d];
        }
    }
    return count ? last + 1 : 0;
}

static void run(const Loop *loop, int operands, char **start, const Dim *dims, int count)
{
    if (count == 0) {
        npy_intp one = 1, steps[MOST_OPERANDS + 1] = {0};
        loop->call(start, &one, steps, loop->data);
        return;
    }
    const Dim *inner = &dims[count - 1];
    npy_intp at[MAX_DIMS] = {0};
    char *place[MOST_OPERANDS + 1];
    memcpy(place, start, sizeof(char *) * (size_t)(operands + 1));
    for (;;) {
        char *args[MOST_OPERANDS + 1];
        memcpy(args, place, sizeof(char *) * (size_t)(operands + 1));
        loop->call(args, &inner->size, inner->step, loop->data);
        int d = count - 2;
        for (; d >= 0; d--) {
            for (int k = 0; k <= operands; k++) {
                place[k] += dims[d].step[k];
            }
            if (++at[d] < dims[d].size) {
                break;
            }
            at[d] = 0;
            for (int k = 0; k <= operands; k++) {
                place[k] -= dims[d].step[k] * dims[d].size;
            }
        }
        if (d < 0) {
            return;
        }
    }
}

typedef struct {
    const Loop *loop;
    int operands, count;
    char *const *start;
    const Dim *dims;
} Iteration;

/* Of the dimension in which the result steps farthest. */
static void run_part(void *work, npy_intp begin, npy_intp end)
{
    const Iteration *all = work;
    Dim dims[MAX_DIMS];
    char *start[MOST_OPERANDS + 1];
    memcpy(dims, all->dims, sizeof(Dim) * (size_t)all->count);
    dims[0].size = end - begin;
    for (int k = 0; k <= all->operands; k++) {
        start[k] = all->start[k] + begin * dims[0].step[k];
    }
    run(all->loop, all->operands, start, dims, all->count);
}

void iterate(const Loop *loop, int operands, PyArrayObject *const *operand, PyArrayObject *out)
{
    Dim dims[MAX_DIMS];
    char *start[MOST_OPERANDS + 1];
    npy_intp n = PyArray_SIZE(out);
    if (n == 0) {
        return;
    }
    for (int k = 0; k < operands; k++) {
        start[k] = PyArray_BYTES(operand[k]);
    }
    start[operands] = PyArray_BYTES(out);
    int count = dims_of(operands, operand, out, dims);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (count == 0) {
        run(loop, operands, start, dims, count);
    }
    else {
        Iteration all = {loop, operands, count, start, dims};
        in_parts(run_part, &all, dims[0].size, grain_of(n / dims[0].size));
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}
