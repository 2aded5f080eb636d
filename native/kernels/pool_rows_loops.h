/* Included for each type and processor; see pool_rows.c. */

#if IS_DOUBLE
#define PLACE npy_int64
#else
#define PLACE npy_int32
#endif

/* One element of each of `count` windows, which are `step` apart: chosen without branches, as later elements are in PyTorch. */
INLINED void NAME(meet)(const T *restrict x, npy_intp step, npy_intp count, PLACE first, T *restrict top, PLACE *restrict place)
{
    for (npy_intp i = 0; i < count; i++) {
        const T value = x[i * step];
        const int more = (value > top[i]) | (value != value) | (place[i] < 0);
        top[i] = more ? value : top[i];
        place[i] = more ? first + (PLACE)(i * step) : place[i];
    }
}

/* One plane. */
static TARGET void NAME(max_rows)(const void *plane, const Windows *w, void *output, npy_int64 *index)
{
    const T *x = plane;
    T *best = output;
    T top[BLOCK];
    PLACE place[BLOCK];
    for (npy_intp oz = 0; oz < w->out[0]; oz++) {
        const npy_intp z0 = oz * w->stride[0] - w->padding[0];
        npy_intp zf, zt, yf, yt;
        places_inside(z0, w->in[0], w->kernel[0], w->dilation[0], &zf, &zt);
        for (npy_intp oy = 0; oy < w->out[1]; oy++, best += w->out[2], index += w->out[2]) {
            const npy_intp y0 = oy * w->stride[1] - w->padding[1];
            places_inside(y0, w->in[1], w->kernel[1], w->dilation[1], &yf, &yt);
            for (npy_intp from = 0; from < w->out[2]; from += BLOCK) {
                const npy_intp to = from + BLOCK < w->out[2] ? from + BLOCK : w->out[2], step = w->stride[2];
                for (npy_intp i = 0; i < to - from; i++) {
                    top[i] = -(T)INFINITY;
                    place[i] = -1;
                }
                for (npy_intp kz = zf; kz < zt; kz++) {
                    for (npy_intp ky = yf; ky < yt; ky++) {
                        const npy_intp row = ((z0 + kz * w->dilation[0]) * w->in[1] + y0 + ky * w->dilation[1]) * w->in[2];
                        for (npy_intp kx = 0; kx < w->kernel[2]; kx++) {
                            const npy_intp offset = kx * w->dilation[2] - w->padding[2];
                            npy_intp low, high;
                            windows_among(w, offset, from, to, &low, &high);
                            const npy_intp first = row + offset + low * step, at = low - from;
                            if (step == 1) {
                                NAME(meet)(x + first, 1, high - low, (PLACE)first, top + at, place + at);
                            }
                            else if (step == 2) {
                                NAME(meet)(x + first, 2, high - low, (PLACE)first, top + at, place + at);
                            }
                            else {
                                NAME(meet)(x + first, step, high - low, (PLACE)first, top + at, place + at);
                            }
                        }
                    }
                }
                for (npy_intp i = 0; i < to - from; i++) {
                    best[from + i] = top[i];
                    index[from + i] = place[i];
                }
            }
        }
    }
}

/* An element of each of `count` windows, which are `step` apart, to their sums, or to it what each has to share. */
static __attribute__((noinline)) TARGET void NAME(share)(void *first, npy_intp step, npy_intp count, double *restrict sum, const void *shares, int spread)
{
    T *restrict x = first;
    const T *restrict share = shares;
    if (spread) {
        for (npy_intp i = 0; i < count; i++) {
            x[i * step] += share[i];
        }
    }
    else if (step == 1) {
        for (npy_intp i = 0; i < count; i++) {
            sum[i] += (double)x[i];
        }
    }
    else if (step == 2) {
        for (npy_intp i = 0; i < count; i++) {
            sum[i] += (double)x[2 * i];
        }
    }
    else {
        for (npy_intp i = 0; i < count; i++) {
            sum[i] += (double)x[i * step];
        }
    }
}

#undef PLACE
