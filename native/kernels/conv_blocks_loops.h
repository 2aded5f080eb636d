/* Patches of a block of windows; included for each type and processor.
 *
 * A block is the windows from `from` up to `to` of the rows from `first` up to `last`, where a row is one of the result's, numbered through its planes.
 */

/* EACH_PART runs ROW for each row of a block and place of the kernel. There `at` is the element of the plane that the window 0 of the row has at this
 * place, `step` the stride, the windows from `low` up to `high` have one, and `part` is where the patches of the row are (of window `from`).
 */
#define EACH_PART(ROW)                                                                                                                     \
    for (npy_intp a = 0; a < w->kernel[0]; a++) {                                                                                          \
        for (npy_intp b = 0; b < w->kernel[1]; b++) {                                                                                      \
            for (npy_intp c = 0; c < w->kernel[2]; c++) {                                                                                  \
                const npy_intp step = w->stride[2], at2 = c * w->dilation[2] - w->padding[2];                                              \
                npy_intp low, high;                                                                                                        \
                windows_inside(at2, w->in[2], w->out[2], step, &low, &high);                                                               \
                low = low < from ? from : low > to ? to : low;                                                                             \
                high = high > to ? to : high < low ? low : high;                                                                           \
                for (npy_intp r = first; r < last; r++, part += to - from) {                                                               \
                    const npy_intp at0 = r / w->out[1] * w->stride[0] + a * w->dilation[0] - w->padding[0];                                \
                    const npy_intp at1 = r % w->out[1] * w->stride[1] + b * w->dilation[1] - w->padding[1];                                \
                    const int inside = at0 >= 0 && at0 < w->in[0] && at1 >= 0 && at1 < w->in[1] && low < high;                             \
                    const npy_intp at = (at0 * w->in[1] + at1) * w->in[2] + at2;                                                           \
                    ROW                                                                                                                    \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

static TARGET void NAME(pack)(const Windows *w, const void *planes, npy_intp channels, npy_intp plane, npy_intp first, npy_intp last, npy_intp from,
                              npy_intp to, void *patches)
{
    const T *x = planes;
    T *part = patches;
    for (npy_intp i = 0; i < channels; i++, x += plane) {
        EACH_PART(
            if (!inside) {
                memset(part, 0, (size_t)(to - from) * sizeof(T));
                continue;
            }
            for (npy_intp k = from; k < low; k++) {
                part[k - from] = 0;
            }
            if (step == 1) {
                for (npy_intp k = low; k < high; k++) {
                    part[k - from] = x[at + k];
                }
            } else {
                for (npy_intp k = low; k < high; k++) {
                    part[k - from] = x[at + k * step];
                }
            }
            for (npy_intp k = high; k < to; k++) {
                part[k - from] = 0;
            })
    }
}

static TARGET void NAME(fill)(const void *value, void *output, npy_intp n)
{
    const T one = *(const T *)value;
    T *out = output;
    for (npy_intp i = 0; i < n; i++) {
        out[i] = one;
    }
}

/* The adjoint: patches are added to their elements. */
static TARGET void NAME(unpack)(const Windows *w, const void *patches, npy_intp channels, npy_intp plane, npy_intp first, npy_intp last,
                                npy_intp from, npy_intp to, void *planes)
{
    const T *part = patches;
    T *x = planes;
    for (npy_intp i = 0; i < channels; i++, x += plane) {
        EACH_PART(
            if (inside && step == 1) {
                for (npy_intp k = low; k < high; k++) {
                    x[at + k] += part[k - from];
                }
            } else if (inside) {
                for (npy_intp k = low; k < high; k++) {
                    x[at + k * step] += part[k - from];
                }
            })
    }
}

#undef EACH_PART

static TARGET void NAME(add_each)(void *target, const void *more, npy_intp n)
{
    T *restrict to = target;
    const T *restrict from = more;
    for (npy_intp i = 0; i < n; i++) {
        to[i] += from[i];
    }
}
