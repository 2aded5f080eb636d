/* Lines: see lines.h. What is cast, or lies with gaps, goes through a chunk that stays in the first cache; all else is read and written where it lies. */
#include "lines.h"

#define CHUNK 1024  /* elements, of which five operands and the result fit the first cache */
#define SHORTEST 16 /* elements of a line that are worth its own call of the loop */
#define SHORT 256   /* elements of a line that is put together with the next ones, though an operand is repeated */
#define SHORT_TRUTHS 32 /* elements of lines for which numpy's comparisons take longer */
#define SPREAD 256  /* bytes of a line over which an element is not written out for it */
#define FARTHEST 64 /* bytes between elements that are gathered here: what lies farther is turned by tiles */

int line_operand(LineOperand *operand, PyArrayObject *array, int ndim, const npy_intp *dims)
{
    operand->data = PyArray_BYTES(array);
    operand->item = PyArray_ITEMSIZE(array);
    return broadcast_strides(array, ndim, dims, operand->strides);
}

/* Whether dimension d + 1 follows d in all operands. */
static int follows(const Lines *lines, int d, int next)
{
    for (int k = 0; k <= lines->count; k++) {
        const LineOperand *operand = &lines->operand[k];
        if (operand->strides[d] != operand->strides[next] * lines->dims[next]) {
            return 0;
        }
    }
    return 1;
}

/* The d-th dimension from the last, as far as an array has elements of its own there: 1 where it is repeated. */
static npy_intp own_dim(PyArrayObject *array, int d)
{
    const int at = PyArray_NDIM(array) - d;
    return at < 0 || PyArray_STRIDE(array, at) == 0 ? 1 : PyArray_DIM(array, at);
}

static npy_intp own_size(PyArrayObject *array)
{
    npy_intp size = 1;
    for (int d = 1; d <= PyArray_NDIM(array); d++) {
        size *= own_dim(array, d);
    }
    return size;
}

/* How many elements lie side by side in which the smaller array goes on, or is repeated. */
static npy_intp line_length(PyArrayObject *large, PyArrayObject *small)
{
    npy_intp length = 1;
    int goes_on = -1;
    for (int d = 1; d <= PyArray_NDIM(large); d++) {
        const npy_intp size = own_dim(large, d);
        const int same = own_dim(small, d) == size;
        if (size > 1 && goes_on >= 0 && same != goes_on) {
            break;
        }
        goes_on = size > 1 ? same : goes_on;
        length *= size;
    }
    return length;
}

int lines_repeat(PyObject *const *operands, int count, int truths)
{
    PyArrayObject *large = NULL, *small = NULL;
    npy_intp most = 0, least = 0;
    for (int k = 0; k < count; k++) {
        PyArrayObject *array = (PyArrayObject *)operands[k];
        if (!is_array(operands[k]) || PyArray_NDIM(array) == 0) {
            continue;
        }
        const npy_intp size = own_size(array);
        if (large == NULL || size > most) {
            large = array;
            most = size;
        }
        if (small == NULL || size < least) {
            small = array;
            least = size;
        }
    }
    return most >= RELEASE_GIL && least < most && (!truths || line_length(large, small) < SHORT_TRUTHS);
}

/* Dimensions in the order in which the result lies, so that a result that is laid out as a transposed operand is has its lines too. */
static void order_by_result(Lines *lines)
{
    const npy_intp *steps = lines->operand[lines->count].strides;
    for (int d = 1; d < lines->ndim; d++) {
        for (int at = d; at > 0 && steps[at - 1] < steps[at] && steps[at - 1] > 0; at--) {
            for (int k = 0; k <= lines->count; k++) {
                npy_intp *strides = lines->operand[k].strides, moved = strides[at];
                strides[at] = strides[at - 1];
                strides[at - 1] = moved;
            }
            const npy_intp size = lines->dims[at];
            lines->dims[at] = lines->dims[at - 1];
            lines->dims[at - 1] = size;
        }
    }
}

static void put_together(Lines *lines)
{
    int ndim = 0;
    order_by_result(lines);
    for (int k = 0; k < lines->count; k++) {
        if (lines->operand[k].item == 0) {
            memset(lines->operand[k].strides, 0, sizeof(lines->operand[k].strides));
        }
    }
    for (int d = 0; d < lines->ndim; d++) {
        if (lines->dims[d] == 1) {
            continue;
        }
        int at = ndim;
        lines->dims[at] = lines->dims[d];
        for (int k = 0; k <= lines->count; k++) {
            lines->operand[k].strides[at] = lines->operand[k].strides[d];
        }
        if (at > 0 && follows(lines, at - 1, at)) {
            lines->dims[at - 1] *= lines->dims[at];
            for (int k = 0; k <= lines->count; k++) {
                lines->operand[k].strides[at - 1] = lines->operand[k].strides[at];
            }
            continue;
        }
        ndim++;
    }
    if (ndim == 0) {
        lines->dims[0] = 1;
        for (int k = 0; k <= lines->count; k++) {
            lines->operand[k].strides[0] = lines->operand[k].item;
        }
        ndim = 1;
    }
    lines->ndim = ndim;
}

/* Short lines as one, where each operand goes on in the next line, is the same there, or is one element in each of them. */
static void join_short(Lines *lines)
{
    const int last = lines->ndim - 1;
    lines->period = 0;
    lines->tiled = lines->spread = 0;
    if (last == 0 || lines->dims[last] > SHORT) {
        return;
    }
    unsigned tiled = 0, spread = 0;
    for (int k = 0; k <= lines->count; k++) {
        const LineOperand *operand = &lines->operand[k];
        const npy_intp outer = operand->strides[last - 1], inner = operand->strides[last];
        if (outer == inner * lines->dims[last]) {
            continue;
        }
        const npy_intp step = outer == 0 ? inner : outer;
        if (k == lines->count || (outer && inner) || step < 0 || step > FARTHEST || (step != operand->item && operand->cast == NULL)) {
            return;
        }
        *(outer == 0 ? &tiled : &spread) |= 1u << k;
    }
    if (spread && lines->dims[last] * lines->width >= SPREAD) {
        return;
    }
    lines->period = lines->dims[last];
    lines->tiled = tiled;
    lines->spread = spread;
    lines->dims[last - 1] *= lines->period;
    for (int k = 0; k <= lines->count; k++) {
        npy_intp *strides = lines->operand[k].strides;
        strides[last - 1] = strides[strides[last] == 0 ? last - 1 : last];
    }
    lines->ndim = last;
}

int lines_fit(Lines *lines)
{
    put_together(lines);
    join_short(lines);
    const int last = lines->ndim - 1;
    if (last > 0 && lines->dims[last] < SHORTEST) {
        return 0;
    }
    unsigned numbers = 0, repeated = 0;
    for (int k = 0; k < lines->count; k++) {
        const LineOperand *operand = &lines->operand[k];
        const npy_intp step = operand->strides[last];
        if ((lines->tiled | lines->spread) >> k & 1) {
            continue;
        }
        if (step < 0 || step > FARTHEST || (step && step != operand->item && operand->cast == NULL)) {
            return 0;
        }
        numbers |= (unsigned)(operand->item == 0) << k;
        repeated |= (unsigned)(operand->item && step == 0) << k;
    }
    const LineOperand *result = &lines->operand[lines->count];
    if (result->strides[last] != result->item) {
        return 0;
    }
    lines->fixed = numbers | repeated;
    lines->filled = 0;
    if (lines->ufunc != NULL) {
        return 1;
    }
    lines->loop = block_loop(lines->opcode, lines->width, lines->fixed);
    for (int k = 0; k < lines->count && lines->loop == NULL; k++) { /* fewer of them as numbers */
        if (lines->fixed >> k & 1) {
            lines->fixed &= ~(1u << k);
            lines->filled |= 1u << k;
            lines->loop = block_loop(lines->opcode, lines->width, lines->fixed);
        }
    }
    return lines->loop != NULL;
}

/* One element, again and again. */
static void fill(char *to, const char *from, int width, npy_intp n)
{
    if (width == 4) {
        npy_uint32 value;
        memcpy(&value, from, 4);
        for (npy_intp i = 0; i < n; i++) {
            ((npy_uint32 *)to)[i] = value;
        }
    }
    else {
        npy_uint64 value;
        memcpy(&value, from, 8);
        for (npy_intp i = 0; i < n; i++) {
            ((npy_uint64 *)to)[i] = value;
        }
    }
}

typedef struct {
    /* Not a whole number of pages from each other, in which they would claim the same places of the first cache. */
    char chunk[BLOCK_SOURCES + 1][(CHUNK + SHORT) * sizeof(double) + 320] __attribute__((aligned(64)));
    double value[BLOCK_SOURCES];
    const char *from[BLOCK_SOURCES]; /* of the line's first element */
    char *to;
} Space;

/* The elements of a short line again and again, `count` of them. */
static void tile(char *to, const LineOperand *operand, const char *from, npy_intp step, int width, npy_intp period, npy_intp count)
{
    if (operand->cast == NULL) {
        memcpy(to, from, (size_t)(period * width));
    }
    else {
        operand->cast(to, width, from, step, period);
    }
    for (npy_intp made = period; made < count; made += period) {
        const npy_intp next = period < count - made ? period : count - made;
        memcpy(to + made * width, to, (size_t)(next * width));
    }
}

/* Each element of a column as often as a short line is long: `count` of them, from `first` on. */
static void spread(char *to, const LineOperand *operand, const char *from, npy_intp step, int width, npy_intp period, npy_intp first, npy_intp count)
{
    double values[CHUNK / 2 + 2];
    const npy_intp begin = first / period, lines = (first + count - 1) / period - begin + 1;
    const char *value = from + begin * step;
    if (operand->cast != NULL) {
        operand->cast((char *)values, width, value, step, lines);
        value = (const char *)values;
    }
    for (npy_intp left = period - first % period; count > 0; value += width, count -= left, to += left * width, left = period) {
        left = left < count ? left : count;
        fill(to, value, width, left);
    }
}

/* `count` elements of a line, from `first` on. */
static void run_chunk(const Lines *lines, Space *space, npy_intp first, npy_intp count)
{
    const int last = lines->ndim - 1, width = lines->width;
    const void *source[BLOCK_SOURCES];
    npy_intp steps[BLOCK_SOURCES + 1];
    for (int k = 0; k < lines->count; k++) {
        const LineOperand *operand = &lines->operand[k];
        source[k] = lines->filled >> k & 1 ? (const void *)space->chunk[k] : (const void *)space->from[k];
        steps[k] = lines->fixed >> k & 1 ? 0 : width;
        if ((lines->fixed | lines->filled) >> k & 1) {
            continue;
        }
        if (lines->tiled >> k & 1) {
            source[k] = space->chunk[k] + first % lines->period * width;
            continue;
        }
        if (lines->spread >> k & 1) {
            spread(space->chunk[k], operand, space->from[k], operand->strides[last], width, lines->period, first, count);
            source[k] = space->chunk[k];
            continue;
        }
        const char *from = space->from[k] + first * operand->strides[last];
        source[k] = from;
        if (operand->cast == NULL) {
            continue;
        }
        if (k > 0 && from == (const char *)space->from[0] + first * lines->operand[0].strides[last] && operand->cast == lines->operand[0].cast &&
            operand->strides[last] == lines->operand[0].strides[last] && !((lines->fixed | lines->filled | lines->tiled | lines->spread) & 1)) {
            source[k] = source[0];
            continue;
        }
        operand->cast(space->chunk[k], width, from, operand->strides[last], count);
        source[k] = space->chunk[k];
    }
    const LineOperand *result = &lines->operand[lines->count];
    char *to = space->to + first * result->item, *made = result->cast == NULL ? to : space->chunk[BLOCK_SOURCES];
    if (lines->ufunc == NULL) {
        lines->loop(source, made, count);
    }
    else {
        char *args[BLOCK_SOURCES + 1];
        for (int k = 0; k < lines->count; k++) {
            args[k] = (char *)source[k];
        }
        args[lines->count] = made;
        steps[lines->count] = lines->result_item;
        lines->ufunc->call(args, &count, steps, lines->ufunc->data);
    }
    if (result->cast != NULL) {
        result->cast(to, result->item, made, lines->result_item, count);
    }
}

/* Where the line begins, of each operand and the result. */
typedef struct {
    npy_intp place[MAX_DIMS];
    const char *from[BLOCK_SOURCES + 1];
} Place;

static void next_line(const Lines *lines, Place *at)
{
    for (int d = lines->ndim - 2; d >= 0; d--) {
        const npy_intp back = ++at->place[d] == lines->dims[d] ? lines->dims[d] : 0;
        for (int k = 0; k <= lines->count; k++) {
            at->from[k] += (1 - back) * lines->operand[k].strides[d];
        }
        if (!back) {
            return;
        }
        at->place[d] = 0;
    }
}

/* The elements `begin` to `end`, in the order of the lines. */
static void some_lines(void *work, npy_intp begin, npy_intp end)
{
    const Lines *lines = work;
    const npy_intp length = lines->dims[lines->ndim - 1];
    const unsigned still = lines->fixed | lines->filled;
    Space space;
    Place at;
    npy_intp first = begin % length, line = begin / length;
    for (int k = 0; k <= lines->count; k++) {
        at.from[k] = lines->operand[k].data;
    }
    for (int d = lines->ndim - 2; d >= 0; d--) {
        at.place[d] = line % lines->dims[d];
        line /= lines->dims[d];
        for (int k = 0; k <= lines->count; k++) {
            at.from[k] += at.place[d] * lines->operand[k].strides[d];
        }
    }
    while (begin < end) {
        const npy_intp stop = end - begin < length - first ? first + (end - begin) : length;
        begin += stop - first;
        for (int k = 0; k < lines->count; k++) {
            const LineOperand *operand = &lines->operand[k];
            space.from[k] = at.from[k];
            if (lines->tiled >> k & 1) {
                const npy_intp most = stop - first + lines->period < CHUNK + lines->period ? stop - first + lines->period : CHUNK + lines->period;
                tile(space.chunk[k], operand, space.from[k], operand->strides[lines->ndim - 1], lines->width, lines->period, most);
            }
            if (!(still >> k & 1)) {
                continue;
            }
            if (operand->cast != NULL) {
                operand->cast((char *)&space.value[k], 0, space.from[k], 0, 1);
                space.from[k] = (const char *)&space.value[k];
            }
            if (lines->filled >> k & 1) {
                fill(space.chunk[k], space.from[k], lines->width, stop - first < CHUNK ? stop - first : CHUNK);
            }
        }
        space.to = (char *)at.from[lines->count];
        for (; first < stop; first += CHUNK) {
            run_chunk(lines, &space, first, stop - first < CHUNK ? stop - first : CHUNK);
        }
        first = 0;
        next_line(lines, &at);
    }
}

void lines_run(const Lines *lines)
{
    npy_intp n = 1;
    for (int d = 0; d < lines->ndim; d++) {
        n *= lines->dims[d];
    }
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    in_parts(some_lines, (void *)lines, n, PART_ELEMENTS / 2);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}
