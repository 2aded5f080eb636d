/* Reductions of rows of contiguous elements; included for each type and processor. */

#define LANES 16

/* Pairwise: long sums keep their digits, as numpy's and PyTorch's do. */
static TARGET T NAME(pairwise)(const T *x, npy_intp n)
{
    if (n > 512) {
        npy_intp half = n / 2 & ~(npy_intp)(LANES - 1);
        return NAME(pairwise)(x, half) + NAME(pairwise)(x + half, n - half);
    }
    T total = 0;
    npy_intp i = 0;
    if (n >= LANES) {
        T lanes[LANES];
        for (int k = 0; k < LANES; k++) {
            lanes[k] = x[k];
        }
        for (i = LANES; i + LANES <= n; i += LANES) {
            for (int k = 0; k < LANES; k++) {
                lanes[k] += x[i + k];
            }
        }
        for (int step = LANES / 2; step; step /= 2) {
            for (int k = 0; k < step; k++) {
                lanes[k] += lanes[k + step];
            }
        }
        total = lanes[0];
    }
    for (; i < n; i++) {
        total += x[i];
    }
    return total;
}

/* out[r] = the sum of row r, divided by `by`. */
static TARGET void NAME(sum_rows)(const void *input, void *output, npy_intp rows, npy_intp width, double by)
{
    const T *x = input;
    T *out = output;
    for (npy_intp r = 0; r < rows; r++) {
        T total = NAME(pairwise)(x + r * width, width);
        out[r] = by == 1 ? total : total / (T)by;
    }
}

/* out[o, i] = the sum of x[o, :, i] over a short dimension, divided by `by`. */
static TARGET void NAME(sum_columns)(const void *input, void *output, npy_intp outer, npy_intp n, npy_intp inner, double by)
{
    const T *x = input;
    T *out = output;
    for (npy_intp o = 0; o < outer; o++, out += inner) {
        for (npy_intp i = 0; i < inner; i++) {
            out[i] = x[i];
        }
        x += inner;
        for (npy_intp k = 1; k < n; k++, x += inner) {
            for (npy_intp i = 0; i < inner; i++) {
                out[i] += x[i];
            }
        }
        if (by != 1) {
            for (npy_intp i = 0; i < inner; i++) {
                out[i] /= (T)by;
            }
        }
    }
}

/* The largest element; NaN when there is one. */
static TARGET void NAME(max_all)(const void *input, void *output, npy_intp n)
{
    const T *x = input;
    T best = x[0];
    npy_intp i = 0;
    if (n >= LANES) {
        T lanes[LANES];
        for (int k = 0; k < LANES; k++) {
            lanes[k] = x[k];
        }
        for (i = LANES; i + LANES <= n; i += LANES) {
            for (int k = 0; k < LANES; k++) {
                T v = x[i + k];
                lanes[k] = v > lanes[k] || v != v ? v : lanes[k];
            }
        }
        for (int k = 0; k < LANES; k++) {
            best = lanes[k] > best || lanes[k] != lanes[k] ? lanes[k] : best;
        }
    }
    for (; i < n; i++) {
        best = x[i] > best || x[i] != x[i] ? x[i] : best;
    }
    *(T *)output = best;
}

/* The smallest element; NaN when there is one. */
static TARGET void NAME(min_all)(const void *input, void *output, npy_intp n)
{
    const T *x = input;
    T best = x[0];
    npy_intp i = 0;
    if (n >= LANES) {
        T lanes[LANES];
        for (int k = 0; k < LANES; k++) {
            lanes[k] = x[k];
        }
        for (i = LANES; i + LANES <= n; i += LANES) {
            for (int k = 0; k < LANES; k++) {
                T v = x[i + k];
                lanes[k] = v < lanes[k] || v != v ? v : lanes[k];
            }
        }
        for (int k = 0; k < LANES; k++) {
            best = lanes[k] < best || lanes[k] != lanes[k] ? lanes[k] : best;
        }
    }
    for (; i < n; i++) {
        best = x[i] < best || x[i] != x[i] ? x[i] : best;
    }
    *(T *)output = best;
}

#undef LANES
