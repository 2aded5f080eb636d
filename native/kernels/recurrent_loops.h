/* The elements of an LSTM's steps, and their derivatives; included for each type and processor. */
#include "lanes.h"
#include "pointwise_math.h"

#ifndef RECURRENT_ONCE
#define RECURRENT_ONCE
#define PANEL (VECTOR_BYTES == 64 ? 4 : 2) /* vectors of a row of the result that are summed together */
#define ROWS 4
#endif

/* Four rows (or fewer, then some twice) of a product, in columns of a panel: c += a b, where b's rows lie one below the other. */
static inline __attribute__((always_inline)) TARGET void NAME(panel)(const T *const *a, const T *b, npy_intp b_row, T *const *c, npy_intp depth)
{
    V sum[ROWS][PANEL];
    for (int r = 0; r < ROWS; r++) {
        for (int v = 0; v < PANEL; v++) {
            sum[r][v] = NAME(load)(c[r] + v * STEP);
        }
    }
    for (npy_intp p = 0; p < depth; p++, b += b_row) {
        V right[PANEL];
        for (int v = 0; v < PANEL; v++) {
            right[v] = NAME(load)(b + v * STEP);
        }
        for (int r = 0; r < ROWS; r++) {
            const V left = NAME(all)(a[r][p]);
            for (int v = 0; v < PANEL; v++) {
                sum[r][v] += left * right[v];
            }
        }
    }
    for (int r = 0; r < ROWS; r++) {
        for (int v = 0; v < PANEL; v++) {
            memcpy(c[r] + v * STEP, &sum[r][v], sizeof(V));
        }
    }
}

/* c (m, n) += a (m, depth) b (depth, n), all dense: for few rows, where a BLAS spends its time on packing b. */
static TARGET void NAME(few_rows)(const void *left, const void *right, void *result, npy_intp m, npy_intp depth, npy_intp n)
{
    const T *a = left, *b = right;
    T *c = result;
    const npy_intp wide = n - n % (PANEL * STEP);
    for (npy_intp column = 0; column < wide; column += PANEL * STEP) {
        for (npy_intp row = 0; row < m; row += ROWS) {
            const T *from[ROWS];
            T *to[ROWS];
            for (int r = 0; r < ROWS; r++) {
                const npy_intp at = row + r < m ? row + r : m - 1; /* the last one again, to the same end */
                from[r] = a + at * depth;
                to[r] = c + at * n + column;
            }
            NAME(panel)(from, b + column, n, to, depth);
        }
    }
    for (npy_intp row = 0; wide < n && row < m; row++) {
        for (npy_intp p = 0; p < depth; p++) {
            const T by = a[row * depth + p];
            for (npy_intp j = wide; j < n; j++) {
                c[row * n + j] += by * b[p * n + j];
            }
        }
    }
}

/* The logistic function and the hyperbolic tangent of n elements. Loops of one function each are those that compilers vectorise. */
static TARGET void NAME(sigmoids)(const T *from, T *to, npy_intp n)
{
#if VECTOR_BYTES == 64 && !IS_DOUBLE
    sigmoid_float_by_hand((const void *const[]){from}, to, n);
#else
    for (npy_intp i = 0; i < n; i++) {
        to[i] = NAME(sigmoid)(from[i]);
    }
#endif
}

static TARGET void NAME(tanhs)(const T *from, T *to, npy_intp n)
{
#if VECTOR_BYTES == 64 && !IS_DOUBLE
    tanh_float_by_hand((const void *const[]){from}, to, n);
#else
    for (npy_intp i = 0; i < n; i++) {
        to[i] = NAME(tanh)(from[i]);
    }
#endif
}

/* One step of a row. `gates` holds what enters the gates (input, forget, cell, output) and is given their values. */
static TARGET void NAME(lstm_step)(void *given, const void *cell_before, void *cell_after, void *hidden, npy_intp width)
{
    T *gates = given, *restrict after = cell_after, *restrict h = hidden;
    const T *before = cell_before;
    NAME(sigmoids)(gates, gates, 2 * width);
    NAME(tanhs)(gates + 2 * width, gates + 2 * width, width);
    NAME(sigmoids)(gates + 3 * width, gates + 3 * width, width);
    const T *restrict enter = gates, *restrict forget = gates + width, *restrict cell = gates + 2 * width, *restrict out = gates + 3 * width;
    for (npy_intp d = 0; d < width; d++) {
        after[d] = forget[d] * before[d] + enter[d] * cell[d];
    }
    NAME(tanhs)(after, h, width);
    for (npy_intp d = 0; d < width; d++) {
        h[d] *= out[d];
    }
}

/* From the gradient of a step's output and of its cell, which becomes that of the cell before, the gradient of what entered the gates. */
static TARGET void NAME(lstm_step_back)(const void *gate_values, const void *cell_before, const void *cell_after, const void *of_hidden,
                                        void *of_cell, void *of_gates, npy_intp width)
{
    const T *enter = gate_values, *forget = enter + width, *cell = forget + width, *out = cell + width, *before = cell_before, *gh = of_hidden;
    T *gc = of_cell, *to_enter = of_gates, *to_forget = to_enter + width, *to_cell = to_forget + width, *to_out = to_cell + width;
    NAME(tanhs)(cell_after, to_out, width);
    _Pragma("GCC ivdep") for (npy_intp d = 0; d < width; d++) {
        const T curved = to_out[d], given = gc[d] + gh[d] * out[d] * (1 - curved * curved);
        to_enter[d] = given * cell[d] * enter[d] * (1 - enter[d]);
        to_forget[d] = given * before[d] * forget[d] * (1 - forget[d]);
        to_cell[d] = given * enter[d] * (1 - cell[d] * cell[d]);
        to_out[d] = gh[d] * curved * out[d] * (1 - out[d]);
        gc[d] = given * forget[d];
    }
}

static TARGET void NAME(add_to_row)(void *target, const void *source, npy_intp n)
{
    T *to = target;
    const T *from = source;
    for (npy_intp i = 0; i < n; i++) {
        to[i] += from[i];
    }
}

static TARGET void NAME(sum_of_rows)(const void *rows, npy_intp count, npy_intp n, void *target)
{
    T *to = target;
    const T *row = rows;
    for (npy_intp i = 0; i < n; i++) {
        to[i] = 0;
    }
    for (npy_intp r = 0; r < count; r++, row += n) {
        for (npy_intp i = 0; i < n; i++) {
            to[i] += row[i];
        }
    }
}
