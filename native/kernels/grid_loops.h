/* Sampling at the places of a grid, for a type T and a processor; see grid.c. */

#if IS_DOUBLE
#define FLOOR floor
#define FABS fabs
#define FMOD fmod
#define RINT rint
#else
#define FLOOR floorf
#define FABS fabsf
#define FMOD fmodf
#define RINT rintf
#endif

/* The neighbours of one place along one dimension: places (-1 outside), weights, and the slopes of the weights. */
typedef struct {
    npy_intp place[4];
    T weight[4], slope[4];
} NAME(Taps);

/* `place` folded into [low, low + span]; `sign` becomes that of the slope there. */
INLINED T NAME(reflect)(T place, T low, T span, T *sign)
{
    if (span <= 0) {
        *sign = 0;
        return 0;
    }
    T away = place - low;
    *sign = away < 0 ? -1 : 1;
    away = FABS(away);
    T turns = FLOOR(away / span), rest = away - turns * span;
    if (FMOD(turns, 2) == 0) {
        return rest + low;
    }
    *sign = -*sign;
    return span - rest + low;
}

/* Where the padding moves a place to. NaN goes where PyTorch's comparisons send it: to the first element, or of volumes to the last one. */
INLINED T NAME(pad)(T place, npy_intp size, const Sampling *s, T *slope)
{
    *slope = 1;
    if (s->padding == ZEROS) {
        return place;
    }
    if (s->padding == REFLECTION) {
        place = NAME(reflect)(place, s->corners ? 0 : (T)-0.5, (T)(s->corners ? size - 1 : size), slope);
    }
    const T last = (T)(size - 1);
    if (!(place > 0 && place < last)) {
        *slope = 0;
    }
    if (place != place) {
        return s->dims == 2 ? 0 : last;
    }
    return place < 0 ? 0 : place > last ? last : place;
}

INLINED npy_intp NAME(element)(T place, npy_intp size)
{
    return place >= 0 && place <= (T)(size - 1) ? (npy_intp)place : -1;
}

INLINED void NAME(find_taps)(T at, npy_intp size, const Sampling *s, NAME(Taps) *taps)
{
    const T half = s->corners ? (T)(size - 1) / 2 : (T)size / 2;
    T place = (at + 1) * half, slope;
    if (!s->corners) {
        place -= (T)0.5;
    }
    if (s->mode == BICUBIC) {
        const T a = (T)-0.75, base = FLOOR(place), part = place - base;
        for (int k = 0; k < 4; k++) {
            const T x = FABS(part - (T)(k - 1)), toward = k > 1 ? -half : half;
            if (k == 1 || k == 2) {
                taps->weight[k] = ((a + 2) * x - (a + 3)) * x * x + 1;
                taps->slope[k] = (3 * (a + 2) * x - 2 * (a + 3)) * x * toward;
            }
            else {
                taps->weight[k] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
                taps->slope[k] = ((3 * a * x - 10 * a) * x + 8 * a) * toward;
            }
            taps->place[k] = NAME(element)(NAME(pad)(base + (T)(k - 1), size, s, &slope), size);
        }
        return;
    }
    place = NAME(pad)(place, size, s, &slope);
    if (s->dims == 3 && !(FABS(place) < (T)2147483648.0)) {
        place = -100;
    }
    if (s->mode == NEAREST) {
        taps->place[0] = NAME(element)(RINT(place), size);
        taps->weight[0] = 1;
        taps->slope[0] = 0;
        return;
    }
    const T low = FLOOR(place), part = place - low;
    taps->place[0] = NAME(element)(low, size);
    taps->place[1] = NAME(element)(low + 1, size);
    taps->weight[0] = 1 - part;
    taps->weight[1] = part;
    taps->slope[0] = -slope * half;
    taps->slope[1] = slope * half;
}

/* The combinations of neighbours of up to CHUNK places: elements of the plane (the first one where they are outside), weights, and slopes by
 * dimension. Loops over them go on to a multiple of LANES, where the last places are none. */
#define LANES 16
#define UP_TO_LANES(count) (((count) + LANES - 1) & -(npy_intp)LANES)
typedef struct {
    T grid[2 * CHUNK], grad[CHUNK];
    npy_int32 element[MOST_TAPS][CHUNK], outside[MOST_TAPS][CHUNK];
    T weight[MOST_TAPS][CHUNK], slope[3][MOST_TAPS][CHUNK];
    T share[MOST_TAPS][CHUNK]; /* the sum over channels of gradients times elements */
} NAME(Chunk);

static TARGET void NAME(find_chunk)(const T *grid, npy_intp count, const Sampling *s, int backward, NAME(Chunk) *chunk)
{
    const int dims = s->dims, each = s->mode == BICUBIC ? 4 : s->mode == NEAREST ? 1 : 2;
    NAME(Taps) lines[3];
    for (int k = 0; k < s->taps; k++) {
        for (npy_intp p = count; p < UP_TO_LANES(count); p++) {
            chunk->outside[k][p] = -1;
            chunk->element[k][p] = 0;
            chunk->weight[k][p] = 0;
        }
    }
    for (npy_intp p = 0; p < count; p++, grid += dims) {
        for (int d = 0; d < dims; d++) {
            NAME(find_taps)(grid[dims - 1 - d], s->sizes[d], s, &lines[d]);
        }
        for (int k = 0; k < s->taps; k++) {
            npy_intp element = 0;
            T weight = 1, slope[3] = {1, 1, 1};
            for (int d = dims - 1, left = k, step = 1; d >= 0; d--) {
                const int tap = each == 2 ? left & 1 : each == 4 ? left & 3 : 0;
                left = each == 2 ? left >> 1 : left >> 2;
                const npy_intp at = lines[d].place[tap];
                element = at < 0 || element < 0 ? -1 : element + at * step;
                step *= (int)s->sizes[d];
                weight *= lines[d].weight[tap];
                for (int e = 0; e < dims && backward; e++) {
                    slope[e] *= e == d ? lines[d].slope[tap] : lines[d].weight[tap];
                }
            }
            chunk->outside[k][p] = element < 0 ? -1 : 0;
            chunk->element[k][p] = element < 0 ? 0 : (npy_int32)element;
            chunk->weight[k][p] = weight;
            for (int e = 0; e < dims && backward; e++) {
                chunk->slope[e][k][p] = slope[e];
            }
        }
    }
}

/* The same for the four neighbours of places in an image that is not reflected, without branches: `backward` is a constant where it is inlined. Without
 * a border no place is beyond the bounds. */
INLINED void NAME(squares)(const T *restrict grid, npy_intp count, const Sampling *s, int backward, NAME(Chunk) *restrict chunk)
{
    const T wide = (T)s->sizes[1], high = (T)s->sizes[0], edge = s->corners ? 0 : (T)0.5;
    const T to_x = s->corners ? (wide - 1) / 2 : wide / 2, to_y = s->corners ? (high - 1) / 2 : high / 2;
    const int border = s->padding == BORDER;
    const T least = border ? 0 : -(T)INFINITY, most_x = border ? wide - 1 : (T)INFINITY, most_y = border ? high - 1 : (T)INFINITY;
    const npy_int32 width = (npy_int32)s->sizes[1];
    for (npy_intp p = 0; p < UP_TO_LANES(count); p++) {
        T x = (grid[2 * p] + 1) * to_x - edge, y = (grid[2 * p + 1] + 1) * to_y - edge;
        const T slope_x = (x > least) & (x < most_x) ? to_x : 0, slope_y = (y > least) & (y < most_y) ? to_y : 0;
        x = x > least ? x : least; /* NaN too */
        x = x > most_x ? most_x : x;
        y = y > least ? y : least;
        y = y > most_y ? most_y : y;
        const T left = FLOOR(x), top = FLOOR(y), part_x = x - left, part_y = y - top, rest_x = 1 - part_x, rest_y = 1 - part_y;
        const int in_left = (left >= 0) & (left <= wide - 1), in_right = (left >= -1) & (left <= wide - 2);
        const int in_top = (top >= 0) & (top <= high - 1), in_bottom = (top >= -1) & (top <= high - 2);
        const npy_int32 first = (npy_int32)(in_left | in_right ? left : 0), line = (npy_int32)(in_top | in_bottom ? top : 0);
        const npy_int32 at = line * width + first, below = at + width;
        chunk->outside[0][p] = -!(in_left & in_top);
        chunk->outside[1][p] = -!(in_right & in_top);
        chunk->outside[2][p] = -!(in_left & in_bottom);
        chunk->outside[3][p] = -!(in_right & in_bottom);
        chunk->element[0][p] = in_left & in_top ? at : 0;
        chunk->element[1][p] = in_right & in_top ? at + 1 : 0;
        chunk->element[2][p] = in_left & in_bottom ? below : 0;
        chunk->element[3][p] = in_right & in_bottom ? below + 1 : 0;
        chunk->weight[0][p] = rest_x * rest_y;
        chunk->weight[1][p] = part_x * rest_y;
        chunk->weight[2][p] = rest_x * part_y;
        chunk->weight[3][p] = part_x * part_y;
        if (backward) {
            chunk->slope[1][0][p] = -slope_x * rest_y;
            chunk->slope[1][1][p] = slope_x * rest_y;
            chunk->slope[1][2][p] = -slope_x * part_y;
            chunk->slope[1][3][p] = slope_x * part_y;
            chunk->slope[0][0][p] = rest_x * -slope_y;
            chunk->slope[0][1][p] = part_x * -slope_y;
            chunk->slope[0][2][p] = rest_x * slope_y;
            chunk->slope[0][3][p] = part_x * slope_y;
        }
    }
}

static TARGET void NAME(find_squares)(const T *restrict grid, npy_intp count, const Sampling *s, int backward, NAME(Chunk) *restrict chunk)
{
    if (count < CHUNK) {
        memset(chunk->grid, 0, sizeof(chunk->grid));
        grid = memcpy(chunk->grid, grid, 2 * (size_t)count * sizeof(T));
    }
    if (backward) {
        NAME(squares)(grid, count, s, 1, chunk);
    }
    else {
        NAME(squares)(grid, count, s, 0, chunk);
    }
}

static TARGET void NAME(find)(const T *grid, npy_intp count, const Sampling *s, int backward, NAME(Chunk) *chunk)
{
    (s->dims == 2 && s->mode == BILINEAR && s->padding != REFLECTION ? NAME(find_squares) : NAME(find_chunk))(grid, count, s, backward, chunk);
}

/* The elements of a plane for the places of a vector from p on, 0 outside: what is outside is not read. */
#if VECTOR_BYTES == 64
#define GATHERED ((npy_intp)(64 / sizeof(T)))
INLINED void NAME(gather_some)(const T *restrict plane, npy_intp p, int taps, const NAME(Chunk) *restrict chunk, T *restrict out)
{
#if IS_DOUBLE
    __m512d total = _mm512_setzero_pd();
    for (int k = 0; k < taps; k++) {
        const __m256i outside = _mm256_loadu_si256((const __m256i *)&chunk->outside[k][p]), element = _mm256_loadu_si256((const __m256i *)&chunk->element[k][p]);
        const __m512d value = _mm512_mask_i32gather_pd(_mm512_setzero_pd(), _mm256_testn_epi32_mask(outside, outside), element, plane, 8);
        total = _mm512_fmadd_pd(value, _mm512_loadu_pd(&chunk->weight[k][p]), total);
    }
    _mm512_storeu_pd(out, total);
#else
    __m512 total = _mm512_setzero_ps();
    for (int k = 0; k < taps; k++) {
        const __m512i outside = _mm512_loadu_si512(&chunk->outside[k][p]), element = _mm512_loadu_si512(&chunk->element[k][p]);
        const __m512 value = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), _mm512_testn_epi32_mask(outside, outside), element, plane, 4);
        total = _mm512_fmadd_ps(value, _mm512_loadu_ps(&chunk->weight[k][p]), total);
    }
    _mm512_storeu_ps(out, total);
#endif
}
#else
#define GATHERED LANES
INLINED void NAME(gather_some)(const T *restrict plane, npy_intp p, int taps, const NAME(Chunk) *restrict chunk, T *restrict out)
{
    for (npy_intp i = 0; i < LANES; i++) {
        T total = 0;
        for (int k = 0; k < taps; k++) {
            const T value = plane[chunk->element[k][p + i]];
            total += (chunk->outside[k][p + i] ? 0 : value) * chunk->weight[k][p + i];
        }
        out[i] = total;
    }
}
#endif

/* One plane at the places of a chunk; `taps` may be a constant where it is inlined. */
INLINED void NAME(gather)(const T *restrict plane, npy_intp count, int taps, const NAME(Chunk) *restrict chunk, T *restrict out)
{
    T room[GATHERED];
    for (npy_intp p = 0; p < count; p += GATHERED) {
        const int whole = p + GATHERED <= count;
        NAME(gather_some)(plane, p, taps, chunk, whole ? out + p : room);
        if (!whole) {
            memcpy(out + p, room, (size_t)(count - p) * sizeof(T));
        }
    }
}

static TARGET int NAME(sample)(const T *input, const T *grid, const Sampling *s, T *out)
{
    NAME(Chunk) *chunk = scratch_take(sizeof(*chunk));
    if (chunk == NULL) {
        return 0;
    }
    for (npy_intp n = 0; n < s->batch; n++) {
        for (npy_intp first = 0; first < s->places; first += CHUNK) {
            const npy_intp count = s->places - first < CHUNK ? s->places - first : CHUNK;
            NAME(find)(grid + (n * s->places + first) * s->dims, count, s, 0, chunk);
            for (npy_intp c = 0; c < s->channels; c++) {
                const T *plane = input + (n * s->channels + c) * s->volume;
                T *to = out + (n * s->channels + c) * s->places + first;
                if (s->taps == 4) {
                    NAME(gather)(plane, count, 4, chunk, to);
                }
                else {
                    NAME(gather)(plane, count, s->taps, chunk, to);
                }
            }
        }
    }
    scratch_give(chunk);
    return 1;
}

/* `of_input` (zeros before, or NULL) and `of_grid` (zeros before) are what the gradients are added to. */
static TARGET int NAME(sample_backward)(const T *grad, const T *input, const T *grid, const Sampling *s, T *of_input, T *of_grid)
{
    NAME(Chunk) *chunk = scratch_take(sizeof(*chunk));
    if (chunk == NULL) {
        return 0;
    }
    const int dims = s->dims;
    memset(chunk->grad, 0, sizeof(chunk->grad));
    for (npy_intp n = 0; n < s->batch; n++) {
        for (npy_intp first = 0; first < s->places; first += CHUNK) {
            const npy_intp count = s->places - first < CHUNK ? s->places - first : CHUNK, at = n * s->places + first;
            NAME(find)(grid + at * dims, count, s, 1, chunk);
            memset(chunk->share, 0, sizeof(chunk->share));
            for (npy_intp c = 0; c < s->channels; c++) {
                const npy_intp plane = (n * s->channels + c) * s->volume;
                const T *from = grad + (n * s->channels + c) * s->places + first;
                if (count < CHUNK) {
                    from = memcpy(chunk->grad, from, (size_t)count * sizeof(T));
                }
                for (int k = 0; k < s->taps; k++) {
                    const npy_int32 *element = chunk->element[k], *outside = chunk->outside[k];
                    for (npy_intp p = 0; p < count && of_input != NULL; p++) {
                        if (!outside[p]) {
                            of_input[plane + element[p]] += from[p] * chunk->weight[k][p];
                        }
                    }
                    for (npy_intp p = 0; p < UP_TO_LANES(count); p++) {
                        const T value = input[plane + element[p]];
                        chunk->share[k][p] += from[p] * (outside[p] ? 0 : value);
                    }
                }
            }
            for (int d = 0; d < dims && s->mode != NEAREST; d++) {
                for (npy_intp p = 0; p < count; p++) {
                    T total = 0;
                    for (int k = 0; k < s->taps; k++) {
                        total += chunk->share[k][p] * chunk->slope[d][k][p];
                    }
                    of_grid[(at + p) * dims + dims - 1 - d] = total;
                }
            }
        }
    }
    scratch_give(chunk);
    return 1;
}

#undef FLOOR
#undef FABS
#undef FMOD
#undef RINT
#undef LANES
#undef UP_TO_LANES
#undef GATHERED
