/* Fourier transforms of many lines at once, and of long ones as matrices, in their own precision.
 *
 * Note [Lines side by side]. A vector holds one element of as many lines as it has room for, so that a transform is the same instructions for all of
 * them, without exchanges between its elements (fourier_loops.h). A line alone is a matrix whose columns and rows are such lines. Numbers of points
 * with a prime factor above MOST_RADIX, and long lines that have no two factors, are numpy's.
 */
#include "fourier.h"
#include "kinds.h"

#define MOST_RADIX 31
#define MOST_STAGES 32
#define MOST_LINE 4096 /* points of a line that goes through whole */
#define KEPT 16        /* tables of so many numbers of points are kept */

typedef struct {
    npy_intp n;
    int width, users, stages;
    int radix[MOST_STAGES];
    npy_intp roots[MOST_STAGES]; /* of an odd radix: where its roots of unity are in `turns` */
    void *turns;                 /* of each stage w^(p k), p below m and k from 1 below the radix, as in fourier_loops.h */
    /* Of a long line: rows times columns, whose own tables these are. */
    npy_intp height;
} Points;

#define LOOPS "fourier_loops.h"
#include "variants.h"

static Points *kept[KEPT]; /* used with the GIL */

static void put_root(void *to, int width, npy_intp at, npy_intp k, npy_intp n)
{
    const Number root = root_of_unity(k % n, n);
    if (width == 4) {
        ((float *)to)[at] = (float)root.re;
        ((float *)to)[at + 1] = (float)-root.im;
    }
    else {
        ((double *)to)[at] = root.re;
        ((double *)to)[at + 1] = -root.im;
    }
}

/* The factors of n, eights first, but two fours instead of eight and two; 0 where one is above MOST_RADIX. */
static int factors_of(npy_intp n, int *radix)
{
    int count = 0;
    for (int r = 8; n > 1; r = r == 8 ? 4 : r == 4 ? 2 : r == 2 ? 3 : r + 2) {
        if (r > MOST_RADIX) {
            return 0;
        }
        for (; n % r == 0 && !(r == 8 && n % 16 == 0 && n % 32); n /= r) {
            radix[count++] = r;
        }
    }
    return count;
}

static void free_points(Points *points)
{
    PyMem_RawFree(points->turns);
    PyMem_RawFree(points);
}

/* The table of lines of n points; where `height` is given, that of the turns between the columns and the rows of one long line. */
static Points *make_points(npy_intp n, int width, npy_intp height)
{
    Points *points = PyMem_RawCalloc(1, sizeof(Points));
    if (points == NULL) {
        return NULL;
    }
    points->n = n;
    points->width = width;
    points->height = height;
    npy_intp count = n;
    if (!height) {
        points->stages = factors_of(n, points->radix);
        count = 0;
        npy_intp m = n;
        for (int stage = 0; stage < points->stages; stage++) {
            m /= points->radix[stage];
            count += m * (points->radix[stage] - 1);
        }
        for (int stage = 0; stage < points->stages; stage++) {
            points->roots[stage] = 2 * count;
            count += points->radix[stage];
        }
    }
    points->turns = PyMem_RawMalloc((size_t)(count ? count : 1) * 2 * (size_t)width);
    if (points->turns == NULL) {
        free_points(points);
        return NULL;
    }
    npy_intp at = 0, m = n;
    for (npy_intp k = 0; height && k < height; k++) {
        for (npy_intp j = 0; j < n / height; j++, at += 2) {
            put_root(points->turns, width, at, j * k, n);
        }
    }
    for (int stage = 0; stage < points->stages; stage++) {
        const npy_intp r = points->radix[stage], of = m;
        m /= r;
        for (npy_intp p = 0; p < m; p++) {
            for (npy_intp k = 1; k < r; k++, at += 2) {
                put_root(points->turns, width, at, p * k, of);
            }
        }
    }
    for (int stage = 0; stage < points->stages; stage++) {
        for (npy_intp k = 0; k < points->radix[stage]; k++, at += 2) {
            put_root(points->turns, width, at, k, points->radix[stage]);
        }
    }
    return points;
}

/* A table that is held until `let_go`; with the GIL. */
static Points *hold(npy_intp n, int width, npy_intp height)
{
    static unsigned next;
    for (int i = 0; i < KEPT; i++) {
        if (kept[i] != NULL && kept[i]->n == n && kept[i]->width == width && kept[i]->height == height) {
            kept[i]->users++;
            return kept[i];
        }
    }
    Points *points = make_points(n, width, height);
    if (points == NULL) {
        return NULL;
    }
    points->users = 1;
    for (int tries = 0; tries < KEPT; tries++, next++) {
        Points **place = &kept[next % KEPT];
        if (*place == NULL || (*place)->users == 0) {
            if (*place != NULL) {
                free_points(*place);
            }
            *place = points;
            next++;
            return points;
        }
    }
    return points; /* in use by others, all of them: this one lives for one call */
}

static void let_go(Points *points)
{
    if (points == NULL || --points->users) {
        return;
    }
    for (int i = 0; i < KEPT; i++) {
        if (kept[i] == points) {
            return;
        }
    }
    free_points(points);
}

/* The largest factor of n that is not above its root, of which both parts go through as lines, as n has small factors; 0 without one. */
static npy_intp height_of(npy_intp n)
{
    npy_intp best = 0;
    for (npy_intp k = 4; k * k <= n; k++) {
        if (n % k == 0 && n / k <= MOST_LINE) {
            best = k;
        }
    }
    return best;
}

/* ------------------------------------------------------------------------------------------------------------- calls */

/* How the lines of one dimension are transformed. */
typedef struct {
    npy_intp n, outer, inner;
    int width, alone;
    Points *points, *rows, *turns; /* of lines; or of the columns, the rows and what is between them */
    Points *folds;                 /* of lines of reals that go as half as many numbers: w^k, behind as many ones */
    void *room, *matrix;
    PyThreadState *thread; /* where the GIL is released */
} Way;

static npy_intp step_of(int width)
{
    return (S.vectors == 2 ? 64 : S.vectors == 1 ? 32 : 16) / width;
}

static void leave(Way *way)
{
    if (way->thread != NULL) {
        PyEval_RestoreThread(way->thread);
    }
    let_go(way->points);
    let_go(way->rows);
    let_go(way->turns);
    let_go(way->folds);
    PyMem_RawFree(way->room);
    PyMem_RawFree(way->matrix);
}

static void release_gil(Way *way, npy_intp elements)
{
    way->thread = elements >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
}

/* 0 to decline; with the GIL. `together`: lines that one vector's element stands for; where these are two, none goes alone. */
static int prepare(Way *way, npy_intp outer, npy_intp n, npy_intp inner, int width, int together)
{
    int radix[MOST_STAGES];
    const npy_intp lines = inner == 1 ? outer : inner, step = step_of(width) * together;
    *way = (Way){.n = n, .outer = outer, .inner = inner, .width = width};
    if (n < 2 || !factors_of(n, radix)) {
        return 0;
    }
    const npy_intp height = inner == 1 && (n > MOST_LINE || lines * 4 <= step) && n >= 16 ? height_of(n) : 0, reach = height ? n / height : n;
    way->alone = height != 0;
    if (way->alone ? together > 1 : n > MOST_LINE) {
        return 0;
    }
    way->points = hold(way->alone ? height : n, width, 0);
    way->room = PyMem_RawMalloc((size_t)reach * 6 * (size_t)step_of(width) * (size_t)width);
    int ready = way->points != NULL && way->room != NULL;
    if (way->alone && ready) {
        ready = (way->rows = hold(reach, width, 0)) != NULL && (way->turns = hold(n, width, height)) != NULL &&
                (way->matrix = PyMem_RawMalloc((size_t)n * 2 * (size_t)width)) != NULL;
    }
    if (!ready) {
        leave(way);
    }
    return ready;
}

/* Whether lines of reals go as half as many numbers, one line after the other. */
static int go_halved(npy_intp outer, npy_intp n, npy_intp inner, int width)
{
    return inner == 1 && n % 2 == 0 && n >= 32 && (n > MOST_LINE || outer * 4 <= step_of(width));
}

/* The same for these. Their turns, w^k of n, are those of a matrix of one row beside one of nothing but ones. */
static int prepare_halved(Way *way, npy_intp n, int width)
{
    if (!prepare(way, 1, n / 2, 1, width, 1)) {
        return 0;
    }
    way->folds = hold(n, width, 2);
    if (way->folds == NULL) {
        leave(way);
        return 0;
    }
    return 1;
}

static const void *turns_of_halved(const Way *way)
{
    return (const char *)way->folds->turns + way->folds->n * way->width;
}

static void run_complex(const Way *way, void *data, int inverse, double by)
{
    const int width = way->width;
    if (!way->alone) {
        CHOOSE(complex_lines, width, way->points, data, way->outer, way->inner, inverse, by, way->room);
        return;
    }
    char *line = data;
    for (npy_intp o = 0; o < way->outer; o++, line += way->n * 2 * width) {
        CHOOSE(long_line, width, way->points, way->rows, line, line, way->turns->turns, inverse, by, way->matrix, way->room);
    }
}

/* Numbers (outer, n, inner) of an array that lies close, in place. 0 to decline. */
int fourier_complex(void *data, npy_intp outer, npy_intp n, npy_intp inner, int width, int inverse, double by)
{
    Way way;
    if (!prepare(&way, outer, n, inner, width, 1)) {
        return 0;
    }
    release_gil(&way, outer * n * inner);
    run_complex(&way, data, inverse, by);
    leave(&way);
    return 1;
}

/* Reals (outer, n, inner) to numbers (outer, kept, inner): n / 2 + 1 or all n. */
int fourier_real(const void *reals, void *numbers, npy_intp outer, npy_intp n, npy_intp inner, npy_intp kept_numbers, int width, double by)
{
    Way way;
    const int halved = go_halved(outer, n, inner, width);
    if (!(halved ? prepare_halved(&way, n, width) : prepare(&way, outer, n, inner, width, 2))) {
        return 0;
    }
    release_gil(&way, outer * n * inner);
    for (npy_intp o = 0; halved && o < outer; o++) {
        char *line = (char *)numbers + o * kept_numbers * 2 * width;
        memcpy(line, (const char *)reals + o * n * width, (size_t)(n * width));
        run_complex(&way, line, 0, by);
        CHOOSE(unfold, width, line, n, turns_of_halved(&way));
        CHOOSE(mirror, width, line, n, kept_numbers);
    }
    if (!halved) {
        CHOOSE(real_lines, width, way.points, reals, numbers, outer, inner, kept_numbers, by, way.room);
    }
    leave(&way);
    return 1;
}

/* Numbers (outer, n / 2 + 1, inner) to reals (outer, n, inner). */
int fourier_to_real(const void *numbers, void *reals, npy_intp outer, npy_intp n, npy_intp inner, int width, double by)
{
    Way way;
    const int halved = go_halved(outer, n, inner, width);
    if (!(halved ? prepare_halved(&way, n, width) : prepare(&way, outer, n, inner, width, 2))) {
        return 0;
    }
    release_gil(&way, outer * n * inner);
    for (npy_intp o = 0; halved && o < outer; o++) {
        char *line = (char *)reals + o * n * width;
        CHOOSE(fold, width, (const char *)numbers + o * (n / 2 + 1) * 2 * width, line, n, turns_of_halved(&way));
        run_complex(&way, line, 1, by);
    }
    if (!halved) {
        CHOOSE(lines_to_real, width, way.points, numbers, reals, outer, inner, by, way.room);
    }
    leave(&way);
    return 1;
}
