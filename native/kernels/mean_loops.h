/* Means of windows and what their gradients spread; included for float and double as T. */

/* The elements of window `o` along a dimension, and how many count. */
static inline npy_intp NAME(span)(const Windows *w, int cells, int padded, int d, npy_intp o, npy_intp *from, npy_intp *to)
{
    if (cells) {
        *from = CELL_FROM(d, o);
        *to = CELL_TO(d, o);
        return *to - *from;
    }
    npy_intp start = o * w->stride[d] - w->padding[d], end = start + w->kernel[d];
    npy_intp limit = w->in[d] + w->padding[d], counted = (end < limit ? end : limit) - start;
    *from = start < 0 ? 0 : start;
    *to = end < w->in[d] ? end : w->in[d];
    return padded ? counted : *to - *from;
}

/* Forward (`spread` 0): the mean of each window of x to out. Backward: the gradient in out of each window is spread over x. */
static void NAME(means)(void *plane, const Windows *w, int cells, int padded, double by, void *means, npy_intp planes, int spread)
{
    T *x = plane, *out = means;
    const npy_intp height = w->in[1], width = w->in[2];
    for (npy_intp p = 0; p < planes; p++, x += w->in[0] * height * width) {
        for (npy_intp oz = 0; oz < w->out[0]; oz++) {
            npy_intp zf, zt, yf, yt, xf, xt;
            npy_intp depth = NAME(span)(w, cells, padded, 0, oz, &zf, &zt);
            for (npy_intp oy = 0; oy < w->out[1]; oy++) {
                npy_intp rows = depth * NAME(span)(w, cells, padded, 1, oy, &yf, &yt);
                for (npy_intp ox = 0; ox < w->out[2]; ox++, out++) {
                    npy_intp counted = rows * NAME(span)(w, cells, padded, 2, ox, &xf, &xt);
                    double divisor = by != 0 ? by : (double)counted, sum = 0;
                    T share = spread ? (T)(*out / divisor) : 0;
                    for (npy_intp z = zf; z < zt; z++) {
                        for (npy_intp y = yf; y < yt; y++) {
                            T *row = x + (z * height + y) * width;
                            if (spread) {
                                for (npy_intp i = xf; i < xt; i++) {
                                    row[i] += share;
                                }
                            }
                            else {
                                double parts[4] = {0};
                                npy_intp i = xf;
                                for (; i + 4 <= xt; i += 4) {
                                    for (int k = 0; k < 4; k++) {
                                        parts[k] += row[i + k];
                                    }
                                }
                                for (; i < xt; i++) {
                                    sum += row[i];
                                }
                                sum += (parts[0] + parts[1]) + (parts[2] + parts[3]);
                            }
                        }
                    }
                    if (!spread) {
                        *out = (T)(sum / divisor);
                    }
                }
            }
        }
    }
}
