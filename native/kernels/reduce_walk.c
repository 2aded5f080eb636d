/* What runs the loops of a reduction over an array: over rows, over columns side by side, over long rows in pieces, and on several threads. */
#include "../runtime/extents.h"
#include "reduce.h"
#include "gemm.h"

/* A copy of a known size is an instruction, of any other a call. */
#define FILL(size)                                                  \
    for (npy_intp i = 0; i < count; i++) {                          \
        memcpy(states + i * (size), pass->start.bytes, (size));     \
    }                                                               \
    break

static inline void start_states(const Pass *pass, char *states, npy_intp count)
{
    switch (pass->size) {
    case 1:
        memset(states, pass->start.bytes[0], (size_t)count);
        break;
    case 2:
        FILL(2);
    case 4:
        FILL(4);
    case 8:
        FILL(8);
    default:
        FILL((size_t)pass->size);
    }
}

typedef struct {
    const Reduction *plan;
    Axis along;  /* the innermost reduced axis */
    int outer;   /* the other ones */
    int is_cut;  /* whether the threads share the elements of each result: see Note [Rows in units] */
} Walk;

#define WIDENED 4096 /* elements of half types that become float32 at a time */

static void pass_row(const Pass *pass, Row widen, const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    float space[WIDENED];
    if (widen == NULL) {
        pass->row(x, n, stride, state, context);
        return;
    }
    for (; n > 0; n -= WIDENED, x += WIDENED * stride) {
        widen((char *)space, 4, x, stride, n < WIDENED ? n : WIDENED);
        pass->row((const char *)space, n < WIDENED ? n : WIDENED, 4, state, context);
    }
}

static void pass_columns(const Pass *pass, Row widen, const char *x, npy_intp n, npy_intp stride, npy_intp inner, void *state, const void *context)
{
    float space[WIDENED];
    if (widen == NULL) {
        pass->columns(x, n, stride, inner, state, context);
        return;
    }
    for (npy_intp rows = WIDENED / inner; n > 0; n -= rows) {
        rows = rows < n ? rows : n;
        for (npy_intp r = 0; r < rows; r++, x += stride) {
            widen((char *)(space + r * inner), 4, x, 2, inner);
        }
        pass->columns((const char *)space, rows, inner * 4, inner, state, context);
    }
}

/* Note [Long sums in pieces]. One long row is taken in pieces that its length alone decides, whatever the number of threads, and the pieces' states
 * become one in their order. */
#define PIECE 131072
#define MOST_PIECES 512

typedef struct {
    const Pass *pass;
    Row widen;
    const char *x;
    npy_intp n, stride, piece;
    char *states;
    const void *context;
} Pieces;

static void pass_pieces(void *work, npy_intp begin, npy_intp end)
{
    const Pieces *all = work;
    for (npy_intp i = begin; i < end; i++) {
        npy_intp first = i * all->piece, n = all->n - first < all->piece ? all->n - first : all->piece;
        pass_row(all->pass, all->widen, all->x + first * all->stride, n, all->stride, all->states + i * all->pass->size, all->context);
    }
}

static void pass_long_row(const Pass *pass, Row widen, const char *x, npy_intp n, npy_intp stride, void *state, const void *context)
{
    double states[MOST_PIECES];
    npy_intp piece = (n + MOST_PIECES - 1) / MOST_PIECES;
    piece = piece < PIECE ? PIECE : (piece + WIDENED - 1) / WIDENED * WIDENED;
    const npy_intp count = (n + piece - 1) / piece;
    Pieces all = {pass, widen, x, n, stride, piece, (char *)states, context};
    start_states(pass, (char *)states, count);
    in_parts(pass_pieces, &all, count, 1);
    pass->merge((const char *)states, count, pass->size, state, context);
}

/* Note [Rows in units]. Where there are few results of many elements each, threads share the elements: rows go to memory that is read in one stream, as
 * they do on one thread, while columns of their own would be read in snatches. A unit of rows has a state of its own, and states are joined in the order
 * of the rows. Extremes and whole numbers are joined whatever the units are; sums of floats where the loop of one thread adds a sum to the total, so
 * that the bits are the same. */
#define STATES (1 << 20) /* bytes of states that are kept until they are joined */

typedef struct {
    const Walk *walk;
    const Pass *pass;
    Row widen;
    const char *x;
    npy_intp inner, n;    /* results side by side, and the rows of each */
    npy_intp rows, whole; /* rows of a unit, and of what is widened at a time: units end with it */
    npy_intp first;       /* unit of those whose states are there */
    char *states, *joined;
    npy_intp count;
    const char *context;
} Units;

static npy_intp start_of_unit(const Units *all, npy_intp unit)
{
    const npy_intp each = (all->whole + all->rows - 1) / all->rows, start = unit / each * all->whole + unit % each * all->rows;
    return start < all->n ? start : all->n;
}

static void pass_units(void *work, npy_intp begin, npy_intp end)
{
    const Units *all = work;
    const Pass *pass = all->pass;
    const Axis along = all->walk->along;
    for (npy_intp i = begin; i < end; i++) {
        char *states = all->states + i * all->inner * pass->size;
        start_states(pass, states, all->inner);
        if (all->inner > 1) {
            const npy_intp start = start_of_unit(all, all->first + i), rows = start_of_unit(all, all->first + i + 1) - start;
            pass_columns(pass, all->widen, all->x + start * along.stride, rows, along.stride, all->inner, states, all->context);
        }
        else {
            const char *x = all->x;
            npy_intp left = all->first + i;
            for (int d = all->walk->outer - 1; d >= 0; d--) {
                const Axis axis = all->walk->plan->reduced[d];
                x += left % axis.size * axis.stride;
                left /= axis.size;
            }
            pass_row(pass, all->widen, x, along.size, along.stride, states, all->context);
        }
    }
}

/* All states of some columns. */
static void join_units(void *work, npy_intp begin, npy_intp end)
{
    const Units *all = work;
    const npy_intp size = all->pass->size;
    all->pass->join(all->states + begin * size, all->count, all->inner * size, end - begin, all->joined + begin * size, NULL);
}

/* 0 where memory is missing. `times` are the rows of one result, which lie anywhere; the columns of several ones lie side by side. */
static int walk_units(const Walk *walk, const Pass *pass, Row widen, const char *x, npy_intp times, npy_intp inner, char *states, const char *context)
{
    Units all = {.walk = walk, .pass = pass, .widen = widen, .x = x, .inner = inner, .joined = states, .context = context};
    all.n = inner > 1 ? walk->along.size : times;
    all.rows = inner == 1 ? 1 : pass->unit;
    if (all.rows == 0) { /* few of them: each costs a state */
        const npy_intp least = grain_of(inner), fair = all.n / (8 * (npy_intp)part_threads);
        all.rows = least > fair ? least : fair;
    }
    all.whole = widen != NULL && pass->unit > 0 && inner > 1 ? WIDENED / inner : all.n;
    const npy_intp room = STATES / (inner * pass->size);
    npy_intp units = (all.n + all.whole - 1) / all.whole * ((all.whole + all.rows - 1) / all.rows);
    all.states = scratch_take((size_t)((units < room ? units : room) * inner * pass->size));
    if (all.states == NULL) {
        return 0;
    }
    for (; units > 0; units -= all.count, all.first += all.count) {
        all.count = units < room ? units : room;
        in_parts(pass_units, &all, all.count, grain_of(inner > 1 ? all.rows * inner : walk->along.size));
        if (all.count * inner < PART_ELEMENTS / 2) {
            join_units(&all, 0, inner);
        }
        else {
            in_shares(join_units, &all, inner, 64, 64);
        }
    }
    scratch_give(all.states);
    return 1;
}

static void walk_pass(const Walk *walk, const Pass *pass, Row widen, const char *x, npy_intp inner, char *states, const void *context)
{
    npy_intp at[MAX_DIMS], times = 1;
    start_states(pass, states, inner);
    clear_places(at, walk->outer);
    for (int d = 0; d < walk->outer; d++) {
        times *= walk->plan->reduced[d].size;
    }
    if (walk->is_cut && (inner == 1) == (times > 1) && walk_units(walk, pass, widen, x, times, inner, states, context)) {
        return;
    }
    for (; times > 0; times--) {
        if (inner == 1 && pass->merge != NULL && walk->along.size > PIECE) {
            pass_long_row(pass, widen, x, walk->along.size, walk->along.stride, states, context);
        }
        else if (inner == 1) {
            pass_row(pass, widen, x, walk->along.size, walk->along.stride, states, context);
        }
        else {
            pass_columns(pass, widen, x, walk->along.size, walk->along.stride, inner, states, context);
        }
        if (times > 1) {
            x = next_place(walk->plan->reduced, walk->outer, at, x);
        }
    }
}

/* Note [Short rows]. A loop over a few elements costs more than the elements: rows of at most SHORT are turned, so many at a time as TURNED bytes hold, into
 * columns whose loops go through all of them side by side. Their length alone decides, since a row has the same bits without the others. */
#define TURNED 8192

#define TURN(T)                                                                                                                            \
    do {                                                                                                                                   \
        T *column = to;                                                                                                                    \
        for (npy_intp j = 0; j < n; j++, column += rows) {                                                                                 \
            const char *from = x + j * (npy_intp)sizeof(T);                                                                                \
            for (npy_intp r = 0; r < rows; r++, from += step) {                                                                            \
                column[r] = *(const T *)from;                                                                                              \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

static inline __attribute__((always_inline)) void turn_elements(void *to, const char *x, npy_intp rows, npy_intp step, npy_intp n, npy_intp item)
{
    switch (item) {
    case 1:
        TURN(npy_uint8);
        break;
    case 2:
        TURN(npy_uint16);
        break;
    case 4:
        TURN(npy_uint32);
        break;
    default:
        TURN(npy_uint64);
    }
}

/* Rows of n elements that begin `step` bytes apart as columns. */
void turn_rows(void *to, const char *x, npy_intp rows, npy_intp step, npy_intp n, npy_intp item)
{
    switch (n * item == step ? n : 0) { /* the compiler makes vectors of loops over so few that lie close */
    case 2:
        turn_elements(to, x, rows, 2 * item, 2, item);
        return;
    case 3:
        turn_elements(to, x, rows, 3 * item, 3, item);
        return;
    case 4:
        turn_elements(to, x, rows, 4 * item, 4, item);
        return;
    default:
        break;
    }
#if HAS_WIDE
    if (S.vectors > 1 && item >= 4) {
        for (npy_intp r = 0, some; r < rows; r += some, x += some * step) {
            some = rows - r < 64 / item ? rows - r : 64 / item;
            if (item == 4) {
                turn((const float *)x, step / 4, some, n, (float *)to + r, rows, some);
            }
            else {
                turn_doubles((const double *)x, step / 8, some, n, (double *)to + r, rows, some);
            }
        }
        return;
    }
#endif
    turn_elements(to, x, rows, step, n, item);
}

int are_short(const Reduction *plan, npy_intp item)
{
    return plan->reduced_count == 1 && plan->kept_count <= 1 && plan->n >= 2 && plan->n <= SHORT && plan->reduced[0].stride == item && item <= 8 && (item & (item - 1)) == 0;
}

static void reduce_short(const Reduction *plan, const Reducer *with, const char *x, char *out, char *second, char *states, char *context, double by)
{
    npy_uint64 space[TURNED / 8];
    float wide[TURNED / 4];
    const npy_intp n = plan->n, step = plan->kept_count ? plan->kept[0].stride : 0, item = with->widen == NULL ? with->item : 4, most = TURNED / (item * n);
    for (npy_intp done = 0, rows; done < plan->count; done += rows, x += rows * step) {
        const char *columns = (const char *)space;
        rows = plan->count - done < most ? plan->count - done : most;
        rows = rows < COLUMNS ? rows : COLUMNS;
        if (with->widen != NULL) {
            if (step == 2 * n) {
                with->widen((char *)wide, 4, x, 2, rows * n);
            }
            else {
                for (npy_intp r = 0; r < rows; r++) {
                    with->widen((char *)(wide + r * n), 4, x + r * step, 2, n);
                }
            }
            turn_rows(space, (const char *)wide, rows, 4 * n, n, 4);
        }
        else if (rows == 1) { /* a column as it stands */
            columns = x;
        }
        else {
            turn_rows(space, x, rows, step, n, item);
        }
        start_states(&with->first, states, rows);
        with->first.columns(columns, n, rows * item, rows, states, NULL);
        if (with->between != NULL) {
            with->between(states, NULL, context, NULL, rows, (double)n, by);
            start_states(&with->second, states, rows);
            with->second.columns(columns, n, rows * item, rows, states, context);
        }
        with->finish(states, context, out, second, rows, (double)n, by);
        out += rows * with->out_item;
        second += second == NULL ? 0 : rows * with->second_item;
    }
}

/* One row for each result: many of them are finished together, since rows may be short. */
static void reduce_rows(const Reduction *plan, const Reducer *with, Axis along, const char *x, char *out, char *second, char *states, double by)
{
    npy_intp at[MAX_DIMS];
    clear_places(at, plan->kept_count);
    for (npy_intp done = 0; done < plan->count;) {
        npy_intp rows = plan->count - done < COLUMNS ? plan->count - done : COLUMNS;
        start_states(&with->first, states, rows);
        if (with->first.rows != NULL && with->widen == NULL && along.size <= PIECE && plan->kept_count == 1 && plan->n) {
            with->first.rows(x, rows, plan->kept[0].stride, along.size, along.stride, states);
            x += rows * plan->kept[0].stride;
            done += rows;
        }
        else {
            for (npy_intp r = 0; r < rows; r++) {
                if (with->first.merge != NULL && along.size > PIECE) {
                    pass_long_row(&with->first, with->widen, x, along.size, along.stride, states + r * with->first.size, NULL);
                }
                else if (plan->n) {
                    pass_row(&with->first, with->widen, x, along.size, along.stride, states + r * with->first.size, NULL);
                }
                if (++done < plan->count) {
                    x = next_place(plan->kept, plan->kept_count, at, x);
                }
            }
        }
        with->finish(states, NULL, out, second, rows, (double)plan->n, by);
        out += rows * with->out_item;
        second += second == NULL ? 0 : rows * with->second_item;
    }
}

npy_intp columns_of(const Reduction *plan, npy_intp item)
{
    const int kept = plan->kept_count - 1, reduced = plan->reduced_count - 1;
    const int are_taken = kept >= 0 && plan->kept[kept].stride == item && (reduced < 0 || plan->reduced[reduced].stride != item) && plan->kept[kept].size >= 4;
    return are_taken ? plan->kept[kept].size : 1;
}

/* A column behind whole blocks is summed by itself, as a row, but for some columns of more, where it stands among others on one thread. */
static void reduce_kept(const Reduction *plan, const Reducer *with, int is_cut, int are_some, const char *x, char *out, char *second, double by)
{
    double states[COLUMNS], context[COLUMNS]; /* a state has at most eight bytes */
    Walk walk = {plan, {1, 0}, plan->reduced_count ? plan->reduced_count - 1 : 0, is_cut};
    if (plan->reduced_count) {
        walk.along = plan->reduced[walk.outer];
    }
    const npy_intp columns = columns_of(plan, with->item);
    const int kept = plan->kept_count - (columns > 1);
    npy_intp at[MAX_DIMS], done = 0;
    clear_places(at, kept);
    if (columns == 1 && are_short(plan, with->item)) {
        reduce_short(plan, with, x, out, second, (char *)states, (char *)context, by);
        return;
    }
    if (columns == 1 && walk.outer == 0 && with->between == NULL) {
        reduce_rows(plan, with, walk.along, x, out, second, (char *)states, by);
        return;
    }
    while (done < plan->count) {
        for (npy_intp start = 0, inner; start < columns; start += inner) {
            inner = columns - start < COLUMNS ? columns - start : COLUMNS - 16 * (are_some && columns - start == COLUMNS + 1);
            if (plan->n == 0) {
                start_states(&with->first, (char *)states, inner);
            }
            else {
                walk_pass(&walk, &with->first, with->widen, x + start * with->item, inner, (char *)states, NULL);
            }
            if (with->between != NULL) {
                with->between(states, NULL, context, NULL, inner, (double)plan->n, by);
                walk_pass(&walk, &with->second, with->widen, x + start * with->item, inner, (char *)states, context);
            }
            with->finish(states, context, out, second, inner, (double)plan->n, by);
            out += inner * with->out_item;
            second += second == NULL ? 0 : inner * with->second_item;
        }
        done += columns;
        if (done < plan->count) {
            x = next_place(plan->kept, kept, at, x);
        }
    }
}

typedef struct {
    const Reduction *plan;
    const Reducer *with;
    const char *x;
    char *out, *second;
    double by;
    npy_intp size, unit; /* places along the first axis that is kept; they are taken by so many, and those left over with the last of them */
} Reducing;

static void reduce_places(const Reducing *all, int are_some, npy_intp begin, npy_intp end)
{
    Reduction plan = *all->plan;
    const npy_intp each = plan.count / plan.kept[0].size;
    plan.kept[0].size = end - begin;
    plan.count = each * (end - begin);
    reduce_kept(&plan, all->with, 0, are_some, all->x + begin * plan.kept[0].stride, all->out + begin * each * all->with->out_item,
                all->second == NULL ? NULL : all->second + begin * each * all->with->second_item, all->by);
}

/* Whether threads can share the rows of columns that lie side by side. */
static int may_cut(const Pass *pass, Row widen, npy_intp columns)
{
    /* What is widened comes in few rows, whose sums are too many to be kept, but for narrow ones. */
    return pass->join != NULL && pass->unit >= 0 && (pass->unit == 0 || widen == NULL || WIDENED / columns >= pass->unit);
}

int shares_elements(const Reduction *plan, npy_intp columns)
{
    const int kept = plan->kept_count - (columns > 1);
    const npy_intp threads = part_threads, first = kept ? plan->kept[0].size : 1;
    if (plan->count == 0 || plan->n * columns < 4 * PART_ELEMENTS || kept > 1 || (kept && (first >= 4 * threads || first % threads == 0))) {
        return 0;
    }
    return columns == 1 || (columns < threads * COLUMNS && plan->n >= 16 * threads); /* of more columns each thread reads blocks of its own */
}

/* Whether they can be shared. */
static int may_share(const Reduction *plan, const Reducer *with, npy_intp columns)
{
    if (columns > 1) {
        return plan->reduced_count == 1 && may_cut(&with->first, with->widen, columns) &&
               (with->between == NULL || may_cut(&with->second, with->widen, columns));
    }
    const npy_intp length = plan->reduced_count ? plan->reduced[plan->reduced_count - 1].size : 1;
    if (plan->reduced_count > 1) { /* one truth may end the search: bytes are left */
        return with->first.join != NULL && with->first.size > 1 && length >= 64 && length <= (with->widen != NULL ? WIDENED : PIECE);
    }
    return with->first.merge != NULL && length >= 4 * PIECE; /* rows are taken in pieces */
}

static void reduce_part(void *work, npy_intp begin, npy_intp end)
{
    const Reducing *all = work;
    reduce_places(all, all->unit > 1, begin * all->unit, end == all->size / all->unit ? all->size : end * all->unit);
}

static void share_columns(Reducing *all)
{
    const int is_alone = all->size > COLUMNS && all->size % COLUMNS == 1;
    const npy_intp least = grain_of(all->plan->n) / 16;
    all->size -= is_alone;
    all->unit = all->size < 16 ? all->size : 16;
    in_shares(reduce_part, all, all->size / all->unit, 1, least < 4 ? 4 : least);
    if (is_alone) {
        reduce_places(all, 0, all->size, all->size + 1);
    }
}

void reduce_array(const Reduction *plan, const Reducer *with, const char *x, char *out, char *second, double by)
{
    Reducing all = {plan, with, x, out, second, by, plan->kept_count ? plan->kept[0].size : 1, 1};
    const npy_intp columns = columns_of(plan, with->item);
    const int is_cut = part_threads > 1 && shares_elements(plan, columns) && may_share(plan, with, columns);
    if (is_cut || part_threads < 2 || plan->kept_count == 0) {
        reduce_kept(plan, with, is_cut, 0, x, out, second, by);
    }
    else if (plan->kept_count == 1 && columns > 1) {
        share_columns(&all);
    }
    else {
        in_parts(reduce_part, &all, all.size, grain_of(plan->count / all.size * plan->n));
    }
}
