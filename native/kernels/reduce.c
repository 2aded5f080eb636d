/* Reductions that take each element to a running result: sums, products, extremes, truth, counts. */
#include "../runtime/extents.h"
#include "reduce.h"

#define LOOPS "reduce_loops.h"
#include "variants.h"
#define LOOPS "reduce_loops.h"
#include "integer_variants.h"

/* ----------------------------------------------------------------------------------------------------------- operators */

#define ROW_TABLE(name) static const RowLoop name##_each[KINDS][3] = ALL_KINDS(name##_row)
#define COLUMN_TABLE(name) static const ColumnLoop name##_columns[KINDS][3] = ALL_KINDS(name##_columns)
#define FINISH_TABLE(name) static const Finish name##_table[KINDS][3] = ALL_KINDS(name)

ROW_TABLE(sum);
static const RowsLoop sum_rows_table[KINDS][3] = ALL_KINDS(sum_rows);
ROW_TABLE(product);
ROW_TABLE(largest);
ROW_TABLE(smallest);
ROW_TABLE(any);
ROW_TABLE(all);
ROW_TABLE(count);
COLUMN_TABLE(sum);
COLUMN_TABLE(product);
COLUMN_TABLE(largest);
COLUMN_TABLE(smallest);
COLUMN_TABLE(any);
COLUMN_TABLE(all);
COLUMN_TABLE(count);
FINISH_TABLE(finish_sum);
FINISH_TABLE(finish_same);

enum { SUM, PRODUCT, LARGEST, SMALLEST, ANY, ALL, COUNT };

static const unsigned char type_numbers[KINDS] = {NPY_FLOAT32, NPY_FLOAT64, NPY_INT64, NPY_INT32, NPY_INT16, NPY_INT8, NPY_UINT8, NPY_BOOL};

/* A state that every element is at least as good as. */
static void start_extreme(Pass *pass, int kind, int smallest)
{
    switch (kind) {
    case KIND_FLOAT:
        pass->start.single = smallest ? NPY_INFINITYF : -NPY_INFINITYF;
        break;
    case KIND_DOUBLE:
        pass->start.real = smallest ? NPY_INFINITY : -NPY_INFINITY;
        break;
    case KIND_INT64:
        pass->start.whole = smallest ? NPY_MAX_INT64 : NPY_MIN_INT64;
        break;
    case KIND_INT32:
        pass->start.whole32 = smallest ? NPY_MAX_INT32 : NPY_MIN_INT32;
        break;
    case KIND_INT16:
        pass->start.whole16 = smallest ? NPY_MAX_INT16 : NPY_MIN_INT16;
        break;
    case KIND_INT8:
        pass->start.whole8 = smallest ? NPY_MAX_INT8 : NPY_MIN_INT8;
        break;
    default:
        pass->start.bytes[0] = smallest ? NPY_MAX_UINT8 : 0;
    }
}

RowLoop merge_of_sums(void)
{
    return sum_each[KIND_DOUBLE][S.vectors];
}

ColumnLoop join_of_sums(void)
{
#if HAS_WIDE
    return CHOOSE64(join_sums);
#else
    return join_sums_double_plain;
#endif
}

void largest_pass(Pass *pass, int kind)
{
    pass->merge = largest_each[kind][S.vectors];
    pass->join = largest_columns[kind][S.vectors];
    pass->row = largest_each[kind][S.vectors];
    pass->columns = largest_columns[kind][S.vectors];
    pass->size = kind_size(kind);
    start_extreme(pass, kind, 0);
}

void count_pass(Pass *pass, int kind)
{
    pass->merge = sum_each[KIND_INT64][S.vectors];
    pass->join = sum_columns[KIND_INT64][S.vectors];
    pass->row = count_each[kind][S.vectors];
    pass->columns = count_columns[kind][S.vectors];
    pass->size = sizeof(npy_int64);
    pass->start.whole = 0;
}

/* Fills in the loops of an operator; gives the type of its results. */
static int choose_reducer(int operator, int kind, Reducer *with)
{
    const int v = S.vectors, floats = is_float_kind(kind);
    const npy_intp item = kind_size(kind);
    int state = kind, type = kind;
    static const RowLoop (*const pass_of[])[3] = {sum_each, product_each, largest_each, smallest_each, any_each, all_each};
    Pass *pass = &with->first;
    memset(with, 0, sizeof(Reducer));
    switch (operator) {
    case SUM:
        pass->row = sum_each[kind][v];
        pass->rows = sum_rows_table[kind][v];
        pass->columns = sum_columns[kind][v];
        pass->join = floats ? join_of_sums() : sum_columns[KIND_INT64][v];
        pass->unit = floats ? SUM_ROWS : 0;
        state = floats ? KIND_DOUBLE : KIND_INT64;
        type = floats ? kind : KIND_INT64;
        break;
    case PRODUCT:
        pass->row = product_each[kind][v];
        pass->columns = product_columns[kind][v];
        pass->join = floats ? NULL : product_columns[KIND_INT64][v];
        state = type = floats ? kind : KIND_INT64;
        pass->start.whole = 1;
        if (kind == KIND_FLOAT) {
            pass->start.single = 1;
        }
        else if (kind == KIND_DOUBLE) {
            pass->start.real = 1;
        }
        break;
    case LARGEST:
    case SMALLEST:
        pass->row = operator == LARGEST ? largest_each[kind][v] : smallest_each[kind][v];
        pass->columns = operator == LARGEST ? largest_columns[kind][v] : smallest_columns[kind][v];
        pass->join = pass->columns;
        start_extreme(pass, kind, operator == SMALLEST);
        break;
    case ANY:
    case ALL:
        pass->row = operator == ANY ? any_each[kind][v] : all_each[kind][v];
        pass->columns = operator == ANY ? any_columns[kind][v] : all_columns[kind][v];
        pass->join = (operator == ANY ? any_columns : all_columns)[KIND_BOOL][v];
        state = type = KIND_BOOL;
        pass->start.bytes[0] = operator == ALL;
        break;
    default:
        pass->row = count_each[kind][v];
        pass->columns = count_columns[kind][v];
        pass->join = sum_columns[KIND_INT64][v];
        state = type = KIND_INT64;
    }
    pass->size = kind_size(state);
    pass->merge = operator == COUNT ? sum_each[state][v] : pass_of[operator][state][v];
    with->finish = operator == SUM ? finish_sum_table[kind][v] : finish_same_table[type][v];
    with->item = item;
    with->out_item = kind_size(type);
    return type_numbers[type];
}

/* The operator over the dimensions of the bits `mask`, divided by `by` (0 for the number of elements). */
static PyObject *reduced(int operator, PyArrayObject *x, int kind, Row widen, int mask, int keepdim, double by)
{
    Reduction plan;
    Reducer with;
    plan_reduction(x, mask, keepdim, 0, &plan);
    if (!plan.n && (operator == LARGEST || operator == SMALLEST)) {
        return NULL;
    }
    PyObject *out = new_numbers(plan.ndim, plan.dims, choose_reducer(operator, kind, &with));
    if (out == NULL || !plan.count) {
        return out;
    }
    if (widen != NULL) {
        with.widen = widen;
        with.item = 2;
    }
    int large = PyArray_SIZE(x) >= RELEASE_GIL;
    PyThreadState *thread = large ? PyEval_SaveThread() : NULL;
    reduce_array(&plan, &with, PyArray_DATA(x), PyArray_DATA((PyArrayObject *)out), NULL, by ? by : (double)plan.n);
    if (large) {
        PyEval_RestoreThread(thread);
    }
    return out;
}

/* Over all elements: self. */
static PyObject *over_all(int operator, PyObject *const *args, double by)
{
    Row widen;
    int kind = kind_widened(args[0], &widen);
    if (kind < 0 || (by != 1 && !is_float_kind(kind))) {
        return NULL;
    }
    return reduced(operator, (PyArrayObject *)args[0], kind, widen, (1 << PyArray_NDIM((PyArrayObject *)args[0])) - 1, 0, by);
}

/* Over dimensions: self, dim, keepdim. */
static PyObject *over_dims(int operator, PyObject *const *args, double by)
{
    Row widen;
    int kind = kind_widened(args[0], &widen), keepdim = as_flag(args[2]);
    if (kind < 0 || keepdim < 0 || (by != 1 && !is_float_kind(kind))) {
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)args[0];
    int mask = dims_of(args[1], PyArray_NDIM(x));
    return mask < 0 ? NULL : reduced(operator, x, kind, widen, mask, keepdim, by);
}

static PyObject *sum_kernel(PyObject *const *args)
{
    return over_all(SUM, args, 1);
}

static PyObject *sum_dim_kernel(PyObject *const *args)
{
    return over_dims(SUM, args, 1);
}

static PyObject *mean_kernel(PyObject *const *args)
{
    return over_all(SUM, args, 0);
}

static PyObject *mean_dim_kernel(PyObject *const *args)
{
    return over_dims(SUM, args, 0);
}

static PyObject *prod_kernel(PyObject *const *args)
{
    return over_all(PRODUCT, args, 1);
}

static PyObject *prod_dim_kernel(PyObject *const *args)
{
    return over_dims(PRODUCT, args, 1);
}

static PyObject *max_kernel(PyObject *const *args)
{
    return over_all(LARGEST, args, 1);
}

static PyObject *min_kernel(PyObject *const *args)
{
    return over_all(SMALLEST, args, 1);
}

static PyObject *amax_kernel(PyObject *const *args)
{
    return over_dims(LARGEST, args, 1);
}

static PyObject *amin_kernel(PyObject *const *args)
{
    return over_dims(SMALLEST, args, 1);
}

static PyObject *aminmax_kernel(PyObject *const *args)
{
    PyObject *least = over_dims(SMALLEST, args, 1);
    return least == NULL ? NULL : pair_of(least, over_dims(LARGEST, args, 1));
}

static PyObject *any_kernel(PyObject *const *args)
{
    return over_all(ANY, args, 1);
}

static PyObject *all_kernel(PyObject *const *args)
{
    return over_all(ALL, args, 1);
}

/* An empty list of dimensions reduces nothing: what the Python function is for. */
static int names_none(PyObject *dim)
{
    return dim != Py_None && !PyLong_CheckExact(dim) && PySequence_Size(dim) == 0;
}

static PyObject *any_dim_kernel(PyObject *const *args)
{
    return names_none(args[1]) ? NULL : over_dims(ANY, args, 1);
}

static PyObject *all_dim_kernel(PyObject *const *args)
{
    return names_none(args[1]) ? NULL : over_dims(ALL, args, 1);
}

/* self, dim. */
static PyObject *count_nonzero_kernel(PyObject *const *args)
{
    PyObject *given[] = {args[0], args[1], Py_False};
    return over_dims(COUNT, given, 1);
}

/* ---------------------------------------------------------------------------------------------------- places of extremes */

typedef npy_intp (*PlaceLoop)(const char *x, npy_intp n, npy_intp stride);
typedef void (*PlacesLoop)(const char *x, npy_intp n, npy_intp stride, npy_intp inner, npy_int64 *places, void *values);

typedef void (*JoinPlaces)(const void *values, const npy_int64 *places, npy_intp start, npy_intp inner, void *best, npy_int64 *best_places);

static const PlaceLoop largest_place_table[KINDS][3] = ALL_KINDS(largest_place);
static const PlaceLoop smallest_place_table[KINDS][3] = ALL_KINDS(smallest_place);
static const PlacesLoop largest_places_table[KINDS][3] = ALL_KINDS(largest_places);
static const PlacesLoop smallest_places_table[KINDS][3] = ALL_KINDS(smallest_places);
static const JoinPlaces join_largest_table[KINDS][3] = ALL_KINDS(join_largest);
static const JoinPlaces join_smallest_table[KINDS][3] = ALL_KINDS(join_smallest);

/* Few results, whose elements the threads share: those of a piece have places of its own. See Note [Rows in units]. */
typedef struct {
    PlaceLoop row;
    PlacesLoop many;
    const char *x;
    npy_intp n, stride, inner, item, rows; /* so many rows are a piece */
    npy_int64 *places;
    char *values;
} Pieces;

static void find_in_pieces(void *work, npy_intp begin, npy_intp end)
{
    const Pieces *all = work;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp start = i * all->rows, n = all->n - start < all->rows ? all->n - start : all->rows;
        const char *x = all->x + start * all->stride;
        npy_int64 *places = all->places + i * all->inner;
        char *values = all->values + i * all->inner * all->item;
        if (all->inner > 1) {
            all->many(x, n, all->stride, all->inner, places, values);
        }
        else {
            *places = all->row(x, n, all->stride);
            memcpy(values, x + *places * all->stride, (size_t)all->item);
        }
    }
}

/* Of `inner` results side by side; 0 where memory is missing. */
static int find_by_pieces(Pieces all, JoinPlaces join, npy_int64 *places, char *values)
{
    const npy_intp least = grain_of(all.inner), fair = all.n / (8 * (npy_intp)part_threads);
    all.rows = least > fair ? least : fair;
    const npy_intp count = (all.n + all.rows - 1) / all.rows, size = all.inner * all.item;
    all.places = scratch_take((size_t)(count * (all.inner * (npy_intp)sizeof(npy_int64) + size)));
    if (all.places == NULL) {
        return 0;
    }
    all.values = (char *)(all.places + count * all.inner);
    in_parts(find_in_pieces, &all, count, 1);
    for (npy_intp i = 1; i < count; i++) {
        join(all.values + i * size, all.places + i * all.inner, i * all.rows, all.inner, all.values, all.places);
    }
    memcpy(places, all.places, (size_t)all.inner * sizeof(npy_int64));
    if (values != NULL) {
        memcpy(values, all.values, (size_t)size);
    }
    scratch_give(all.places);
    return 1;
}

/* Places, and values unless that is NULL, of the extremes along the one axis that the plan reduces. */
static void find_places(const Reduction *plan, int kind, int smallest, int is_cut, const char *x, npy_int64 *places, char *values)
{
    const PlaceLoop row = (smallest ? smallest_place_table : largest_place_table)[kind][S.vectors];
    const PlacesLoop many = (smallest ? smallest_places_table : largest_places_table)[kind][S.vectors];
    const JoinPlaces join = (smallest ? join_smallest_table : join_largest_table)[kind][S.vectors];
    const npy_intp item = kind_size(kind), columns = plan->n < NPY_MAX_INT32 ? columns_of(plan, item) : 1;
    const Axis along = plan->reduced_count ? plan->reduced[0] : (Axis){1, item};
    const int kept = plan->kept_count - (columns > 1);
    npy_intp at[MAX_DIMS];
    if (columns == 1 && are_short(plan, item)) {
        npy_uint64 space[4096];
        const npy_intp step = plan->kept_count ? plan->kept[0].stride : 0, most = (npy_intp)sizeof(space) / (item * plan->n);
        for (npy_intp done = 0, rows; done < plan->count; done += rows) {
            rows = plan->count - done < most ? plan->count - done : most;
            rows = rows < COLUMNS ? rows : COLUMNS;
            turn_rows(space, x + done * step, rows, step, plan->n, item);
            many((const char *)space, plan->n, rows * item, rows, places + done, values == NULL ? NULL : values + done * item);
        }
        return;
    }
    clear_places(at, kept);
    for (npy_intp done = 0; done < plan->count; done += columns) {
        for (npy_intp start = 0; start < columns; start += COLUMNS) {
            const npy_intp inner = columns - start < COLUMNS ? columns - start : COLUMNS;
            const Pieces all = {.row = row, .many = many, .x = x + start * item, .n = along.size, .stride = along.stride, .inner = inner, .item = item};
            npy_int64 *found = places + start;
            char *kept_values = values == NULL ? NULL : values + start * item;
            if (is_cut && find_by_pieces(all, join, found, kept_values)) {
                continue;
            }
            if (columns > 1) {
                many(all.x, along.size, along.stride, inner, found, kept_values);
                continue;
            }
            *found = row(x, along.size, along.stride);
            if (values != NULL) {
                memcpy(values, x + *found * along.stride, (size_t)item);
            }
        }
        places += columns;
        values += values == NULL ? 0 : columns * item;
        x = next_place(plan->kept, kept, at, x);
    }
}

typedef struct {
    const Reduction *plan;
    int kind, smallest;
    const char *x;
    npy_int64 *places;
    char *values;
} Finding;

static void find_part(void *work, npy_intp begin, npy_intp end)
{
    const Finding *all = work;
    Reduction plan = *all->plan;
    const npy_intp each = plan.count / plan.kept[0].size;
    plan.kept[0].size = end - begin;
    plan.count = each * (end - begin);
    find_places(&plan, all->kind, all->smallest, 0, all->x + begin * plan.kept[0].stride, all->places + begin * each,
                all->values == NULL ? NULL : all->values + begin * each * kind_size(all->kind));
}

static void find_all(const Finding *all, npy_intp item)
{
    const Reduction *plan = all->plan;
    const npy_intp columns = columns_of(plan, item), each = plan->kept_count && plan->count ? plan->n * plan->count / plan->kept[0].size : 0;
    const npy_intp least = grain_of(each);
    if (part_threads > 1 && shares_elements(plan, columns)) {
        find_places(plan, all->kind, all->smallest, 1, all->x, all->places, all->values);
    }
    else if (!each) {
        find_places(plan, all->kind, all->smallest, 0, all->x, all->places, all->values);
    }
    else if (plan->kept_count == 1 && columns > 1) {
        in_shares(find_part, (void *)all, plan->kept[0].size, 16, least < 64 ? 64 : least);
    }
    else {
        in_parts(find_part, (void *)all, plan->kept[0].size, least);
    }
}

/* The places (and values, for `pair`) along dimension `at` of x; along none when it has none. */
static PyObject *extreme_places(PyArrayObject *x, int kind, int mask, int keepdim, int smallest, int pair)
{
    Reduction plan;
    plan_reduction(x, mask, keepdim, 1, &plan);
    if (!plan.n || plan.reduced_count > 1) {
        return NULL;
    }
    PyObject *places = new_numbers(plan.ndim, plan.dims, NPY_INT64);
    PyObject *values = places != NULL && pair ? new_array(plan.ndim, plan.dims, PyArray_DESCR(x)) : NULL;
    if (places == NULL || (pair && values == NULL)) {
        Py_XDECREF(places);
        return NULL;
    }
    npy_int64 *found = PyArray_DATA((PyArrayObject *)places);
    char *kept = pair ? PyArray_DATA((PyArrayObject *)values) : NULL;
    PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    Finding all = {&plan, kind, smallest, PyArray_DATA(x), found, kept};
    find_all(&all, kind_size(kind));
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return pair ? pair_of(values, places) : places;
}

/* self, dim or None, keepdim. */
static PyObject *place_kernel(PyObject *const *args, int smallest, int pair)
{
    int kind = kind_of(args[0]), keepdim = as_flag(args[2]);
    if (kind < 0 || keepdim < 0 || (pair && !PyLong_CheckExact(args[1]))) {
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)args[0];
    int mask = dims_of(args[1], PyArray_NDIM(x));
    if (mask < 0) {
        return NULL;
    }
    return extreme_places(x, kind, mask, keepdim, smallest, pair);
}

static PyObject *argmax_kernel(PyObject *const *args)
{
    return place_kernel(args, 0, 0);
}

static PyObject *argmin_kernel(PyObject *const *args)
{
    return place_kernel(args, 1, 0);
}

static PyObject *max_dim_kernel(PyObject *const *args)
{
    return place_kernel(args, 0, 1);
}

static PyObject *min_dim_kernel(PyObject *const *args)
{
    return place_kernel(args, 1, 1);
}

/* ---------------------------------------------------------------------------------------------------------- fast paths
 *
 * Fast paths come before all checks, and give results of the operand's dtype: self, dtype, or self, dim, keepdim, dtype.
 */

static PyObject *sum_fast(PyObject *const *args)
{
    return args[1] == Py_None && dense_width(args[0]) ? sum_kernel(args) : NULL;
}

static PyObject *mean_fast(PyObject *const *args)
{
    return args[1] == Py_None && dense_width(args[0]) ? mean_kernel(args) : NULL;
}

static PyObject *sum_dim_fast(PyObject *const *args)
{
    return args[3] == Py_None && dense_width(args[0]) ? sum_dim_kernel(args) : NULL;
}

static PyObject *mean_dim_fast(PyObject *const *args)
{
    return args[3] == Py_None && dense_width(args[0]) ? mean_dim_kernel(args) : NULL;
}

static int is_number_array(PyObject *object)
{
    int kind = kind_of(object);
    return (is_float_kind(kind) || kind == KIND_INT64) && is_contiguous((PyArrayObject *)object);
}

static PyObject *max_fast(PyObject *const *args)
{
    return is_number_array(args[0]) ? max_kernel(args) : NULL;
}

static PyObject *min_fast(PyObject *const *args)
{
    return is_number_array(args[0]) ? min_kernel(args) : NULL;
}

static PyObject *truth_fast(PyObject *const *args)
{
    return kind_of(args[0]) == KIND_BOOL ? all_kernel(args) : NULL;
}

static PyObject *some_fast(PyObject *const *args)
{
    return kind_of(args[0]) == KIND_BOOL ? any_kernel(args) : NULL;
}

const KernelEntry reduce_kernels[] = {
    {"reduction.sum", sum_kernel, HALVES},
    {"reduction.sum_dim", sum_dim_kernel, HALVES},
    {"reduction.mean", mean_kernel, HALVES},
    {"reduction.mean_dim", mean_dim_kernel, HALVES},
    {"reduction.prod", prod_kernel, HALVES},
    {"reduction.prod_dim", prod_dim_kernel, HALVES},
    {"reduction.max", max_kernel, HALVES},
    {"reduction.min", min_kernel, HALVES},
    {"reduction.amax", amax_kernel, HALVES},
    {"reduction.amin", amin_kernel, HALVES},
    {"reduction.aminmax", aminmax_kernel, HALVES},
    {"reduction.any", any_kernel, HALVES},
    {"reduction.all", all_kernel, HALVES},
    {"reduction.any_dim", any_dim_kernel, HALVES},
    {"reduction.all_dim", all_dim_kernel, HALVES},
    {"reduction.count_nonzero", count_nonzero_kernel, HALVES},
    {"reduction.argmax", argmax_kernel},
    {"reduction.argmin", argmin_kernel},
    {"reduction.max_dim", max_dim_kernel},
    {"reduction.min_dim", min_dim_kernel},
    {"reduction.sum_fast", sum_fast},
    {"reduction.mean_fast", mean_fast},
    {"reduction.sum_dim_fast", sum_dim_fast},
    {"reduction.mean_dim_fast", mean_dim_fast},
    {"reduction.max_fast", max_fast},
    {"reduction.min_fast", min_fast},
    {"reduction.truth_fast", truth_fast},
    {"reduction.some_fast", some_fast},
    {NULL, NULL},
};
