/* Products of small matrices; included for each type and processor. */

/* out (m, n) = a (m, k) times b (k, n), plus a row vector if there is one. Steps in elements; `b` is gathered to rows first. */
static TARGET void NAME(small_product)(const void *left, const npy_intp *step_a, const void *right, const npy_intp *step_b,
                                       const void *added, void *output, npy_intp m, npy_intp k, npy_intp n)
{
    const T *a = left, *b = right, *bias = added;
    T *out = output;
    T rows[SMALL_PRODUCT];
    if (step_b[1] != 1 || step_b[0] != n) {
        for (npy_intp p = 0; p < k; p++) {
            for (npy_intp j = 0; j < n; j++) {
                rows[p * n + j] = b[p * step_b[0] + j * step_b[1]];
            }
        }
        b = rows;
    }
    for (npy_intp i = 0; i < m; i++, out += n) {
        const T *row = a + i * step_a[0];
        if (k == 0) {
            for (npy_intp j = 0; j < n; j++) {
                out[j] = 0;
            }
        }
        for (npy_intp p = 0; p < k; p++) {
            const T factor = row[p * step_a[1]];
            const T *other = b + p * n;
            if (p == 0) {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] = factor * other[j];
                }
            }
            else {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] += factor * other[j];
                }
            }
        }
        if (bias != NULL) {
            for (npy_intp j = 0; j < n; j++) {
                out[j] += bias[j];
            }
        }
    }
}

/* A row vector is added to each row of `output` (m, n). */
static TARGET void NAME(add_row)(void *output, const void *row, npy_intp m, npy_intp n)
{
    T *out = output;
    const T *added = row;
    for (npy_intp i = 0; i < m; i++, out += n) {
        for (npy_intp j = 0; j < n; j++) {
            out[j] += added[j];
        }
    }
}

/* output = alpha * output + beta * added, where beta 0 ignores `added`, even where it is not finite. */
static TARGET void NAME(blend)(void *output, const void *input, const npy_intp *sizes, const npy_intp *steps, double beta, double alpha)
{
    T *out = output;
    const T scale = (T)alpha, share = (T)beta;
    npy_intp n = sizes[2], step = steps[2];
    for (npy_intp h = 0; h < sizes[0]; h++) {
        for (npy_intp i = 0; i < sizes[1]; i++, out += n) {
            const T *added = (const T *)input + h * steps[0] + i * steps[1];
            if (alpha != 1) {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] *= scale;
                }
            }
            if (beta == 0) {
                continue;
            }
            if (step == 1) {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] += share * added[j];
                }
            }
            else {
                for (npy_intp j = 0; j < n; j++) {
                    out[j] += share * added[j * step];
                }
            }
        }
    }
}
