/* Means of windows and what their gradients spread; included for float and double as T. */

/* Forward (`spread` 0): the mean of each window of x to out. Backward: the gradient in out of each window is spread over x. */
static void NAME(means)(void *plane, const Windows *w, int cells, int padded, double by, void *means, npy_intp planes, int spread)
{
    T *x = plane, *out = means;
    const npy_intp height = w->in[1], width = w->in[2];
    for (npy_intp p = 0; p < planes; p++, x += volume(w->in)) {
        for (npy_intp oz = 0; oz < w->out[0]; oz++) {
            npy_intp zf, zt, yf, yt, xf, xt;
            npy_intp depth = places_of(w, cells, padded, 0, oz, &zf, &zt);
            for (npy_intp oy = 0; oy < w->out[1]; oy++) {
                npy_intp rows = depth * places_of(w, cells, padded, 1, oy, &yf, &yt);
                for (npy_intp ox = 0; ox < w->out[2]; ox++, out++) {
                    npy_intp counted = rows * places_of(w, cells, padded, 2, ox, &xf, &xt);
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
