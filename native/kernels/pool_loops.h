/* Maxima of windows; included for each type T, with LOWEST its least value, IS_FLOATING and IS_NAN. */

/* Of one plane: the largest element of each window, and its number in the plane; the last NaN where there is one. */
static void NAME(max_windows)(const T *x, const Windows *w, T *best, npy_int64 *index)
{
    const npy_intp height = w->in[1], width = w->in[2];
    for (npy_intp oz = 0; oz < w->out[0]; oz++) {
        const npy_intp z0 = oz * w->stride[0] - w->padding[0];
        npy_intp zf, zt, yf, yt, xf, xt;
        places_inside(z0, w->in[0], w->kernel[0], w->dilation[0], &zf, &zt);
        for (npy_intp oy = 0; oy < w->out[1]; oy++) {
            const npy_intp y0 = oy * w->stride[1] - w->padding[1];
            places_inside(y0, height, w->kernel[1], w->dilation[1], &yf, &yt);
            for (npy_intp ox = 0; ox < w->out[2]; ox++) {
                const npy_intp x0 = ox * w->stride[2] - w->padding[2], step = w->dilation[2];
                if (x0 >= 0 && x0 + (w->kernel[2] - 1) * step < width) {
                    xf = 0, xt = w->kernel[2];
                }
                else {
                    places_inside(x0, width, w->kernel[2], step, &xf, &xt);
                }
                T top = LOWEST;
                npy_intp at = -1;
                for (npy_intp kz = zf; kz < zt; kz++) {
                    for (npy_intp ky = yf; ky < yt; ky++) {
                        const npy_intp row = ((z0 + kz * w->dilation[0]) * height + y0 + ky * w->dilation[1]) * width + x0;
                        for (npy_intp kx = xf; kx < xt; kx++) {
                            const T value = x[row + kx * step]; /* chosen without branches, which data would make hard to foresee */
                            const int more = (value > top) | IS_NAN(value) | (at < 0);
                            top = more ? value : top;
                            at = more ? row + kx * step : at;
                        }
                    }
                }
                *best++ = top;
                *index++ = at;
            }
        }
    }
}

/* Windows of two by two that touch and lie inside: each row of results from two rows, without branches. */
static void NAME(max_quads)(const T *x, const Windows *w, T *best, npy_int64 *index)
{
    const npy_intp width = w->in[2];
    for (npy_intp oy = 0; oy < w->out[1]; oy++, best += w->out[2], index += w->out[2]) {
        const npy_intp row = 2 * oy * width;
        for (npy_intp ox = 0; ox < w->out[2]; ox++) {
            const npy_intp at = row + 2 * ox;
            T top = x[at];
            npy_intp place = at;
            T value = x[at + 1];
            int more = (value > top) | IS_NAN(value);
            top = more ? value : top, place = more ? at + 1 : place;
            value = x[at + width];
            more = (value > top) | IS_NAN(value);
            top = more ? value : top, place = more ? at + width : place;
            value = x[at + width + 1];
            more = (value > top) | IS_NAN(value);
            best[ox] = more ? value : top, index[ox] = more ? at + width + 1 : place;
        }
    }
}

static void NAME(max_planes)(const void *input, const Windows *w, void *output, npy_int64 *index, npy_intp planes)
{
    const npy_intp cells = volume(w->in), windows = volume(w->out);
    int quads = w->in[0] == 1 && w->kernel[0] == 1 && w->kernel[1] == 2 && w->kernel[2] == 2 && w->stride[1] == 2 && w->stride[2] == 2 &&
                !w->padding[1] && !w->padding[2] && w->dilation[1] == 1 && w->dilation[2] == 1 && w->out[1] * 2 <= w->in[1] &&
                w->out[2] * 2 <= w->in[2];
    for (npy_intp p = 0; p < planes; p++) {
        if (IS_FLOATING && !quads && serves_max_rows(w)) {
            max_rows(sizeof(T), (const T *)input + p * cells, w, (T *)output + p * windows, index + p * windows);
        }
        else if (quads) {
            NAME(max_quads)((const T *)input + p * cells, w, (T *)output + p * windows, index + p * windows);
        }
        else {
            NAME(max_windows)((const T *)input + p * cells, w, (T *)output + p * windows, index + p * windows);
        }
    }
}

/* Like max_planes with windows from floor(i n / out) to ceil((i + 1) n / out); the first NaN where there is one. */
static void NAME(max_cells)(const void *input, const Windows *w, void *output, npy_int64 *index, npy_intp planes)
{
    const T *x = input;
    T *best = output;
    for (npy_intp p = 0; p < planes; p++, x += volume(w->in)) {
        for (npy_intp oz = 0; oz < w->out[0]; oz++) {
            for (npy_intp oy = 0; oy < w->out[1]; oy++) {
                for (npy_intp ox = 0; ox < w->out[2]; ox++) {
                    npy_intp at = -1;
                    T top = LOWEST;
                    for (npy_intp z = CELL_FROM(0, oz); z < CELL_TO(0, oz); z++) {
                        for (npy_intp y = CELL_FROM(1, oy); y < CELL_TO(1, oy); y++) {
                            for (npy_intp i = CELL_FROM(2, ox); i < CELL_TO(2, ox); i++) {
                                const npy_intp place = (z * w->in[1] + y) * w->in[2] + i;
                                if (at < 0 || x[place] > top || (IS_NAN(x[place]) && !IS_NAN(top))) {
                                    top = x[place];
                                    at = place;
                                }
                            }
                        }
                    }
                    *best++ = top;
                    *index++ = at;
                }
            }
        }
    }
}

/* Each window's gradient is added to the element that it came from; 0 for a number that is none of the plane's. */
static int NAME(scatter)(const void *gradient, const npy_int64 *index, npy_intp windows, npy_intp cells, void *output, npy_intp planes)
{
    const T *grad = gradient;
    T *out = output;
    for (npy_intp p = 0; p < planes; p++, out += cells) {
        for (npy_intp i = 0; i < windows; i++, grad++, index++) {
            if (*index < 0 || *index >= cells) {
                return 0;
            }
            out[*index] = (T)(out[*index] + *grad);
        }
    }
    return 1;
}
