/* What masks choose: where, masked_fill, masked_select. */
#include "places.h"
#include "plan.h"

#define OPERANDS 4 /* the result, the condition, what it chooses from */

typedef struct {
    npy_intp size, step[OPERANDS];
} Dim;

typedef void (*Choice)(char *const *at, const npy_intp *step, npy_intp n);

/* Without a branch, which a processor would guess wrongly half of the time. */
#define EITHER(T, condition, one, other) (T)((other) ^ (((one) ^ (other)) & (T)(-(T)((condition) != 0))))

/* n elements; those of the usual ways to lie in memory by loops that can be vectorised. */
#define CHOICE(name, T)                                                                                                                    \
    static void name(char *const *at, const npy_intp *step, npy_intp n)                                                                    \
    {                                                                                                                                      \
        const npy_intp item = sizeof(T);                                                                                                   \
        const npy_uint8 *condition = (const npy_uint8 *)at[1];                                                                             \
        T *y = (T *)at[0];                                                                                                                 \
        const T *a = (const T *)at[2], *b = (const T *)at[3];                                                                              \
        if (step[0] == item && step[1] == 1 && step[2] == item && step[3] == item) {                                                       \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                T one = a[i], other = b[i];                                                                                                \
                y[i] = EITHER(T, condition[i], one, other);                                                                                         \
            }                                                                                                                              \
        }                                                                                                                                  \
        else if (step[0] == item && step[1] == 1 && step[2] == 0 && step[3] == item) {                                                     \
            T one = *a;                                                                                                                    \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                T other = b[i];                                                                                                            \
                y[i] = EITHER(T, condition[i], one, other);                                                                                         \
            }                                                                                                                              \
        }                                                                                                                                  \
        else if (step[0] == item && step[1] == 1 && step[2] == item && step[3] == 0) {                                                     \
            T other = *b;                                                                                                                  \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                T one = a[i];                                                                                                              \
                y[i] = EITHER(T, condition[i], one, other);                                                                                         \
            }                                                                                                                              \
        }                                                                                                                                  \
        else {                                                                                                                             \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                *(T *)(at[0] + i * step[0]) =                                                                                              \
                    condition[i * step[1]] ? *(const T *)(at[2] + i * step[2]) : *(const T *)(at[3] + i * step[3]);                        \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

typedef npy_uint16 __attribute__((aligned(1), may_alias)) Item2;
typedef npy_uint32 __attribute__((aligned(1), may_alias)) Item4;
typedef npy_uint64 __attribute__((aligned(1), may_alias)) Item8;
typedef struct {
    Item8 first, second;
} Item16;

CHOICE(choose1, npy_uint8)
CHOICE(choose2, Item2)
CHOICE(choose4, Item4)
CHOICE(choose8, Item8)

static void choose16(char *const *at, const npy_intp *step, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++) {
        *(Item16 *)(at[0] + i * step[0]) = *(const Item16 *)(at[1][i * step[1]] ? at[2] + i * step[2] : at[3] + i * step[3]);
    }
}

static Choice choice_of(npy_intp item)
{
    return item == 1 ? choose1 : item == 2 ? choose2 : item == 4 ? choose4 : item == 8 ? choose8 : item == 16 ? choose16 : NULL;
}

/* Dimensions of more than one element, those in which the result steps farthest first, with neighbours that follow each other put together. */
static int dims_of(int ndim, const npy_intp *sizes, npy_intp strides[OPERANDS][MAX_DIMS], Dim *dims)
{
    int count = 0, last = 0;
    for (int d = 0; d < ndim; d++) {
        if (sizes[d] == 1) {
            continue;
        }
        Dim dim = {.size = sizes[d]};
        for (int k = 0; k < OPERANDS; k++) {
            dim.step[k] = strides[k][d];
        }
        int place = count++;
        for (; place > 0 && magnitude_of(dims[place - 1].step[0]) < magnitude_of(dim.step[0]); place--) {
            dims[place] = dims[place - 1];
        }
        dims[place] = dim;
    }
    for (int d = 1; d < count; d++) {
        int follows = 1;
        for (int k = 0; k < OPERANDS; k++) {
            follows &= dims[last].step[k] == dims[d].step[k] * dims[d].size;
        }
        if (follows) {
            dims[d].size *= dims[last].size;
            dims[last] = dims[d];
        }
        else {
            dims[++last] = dims[d];
        }
    }
    return count ? last + 1 : 0;
}

static void choose_all(Choice choose, char **at, const Dim *dims, int count)
{
    if (count <= 1) {
        const npy_intp none[OPERANDS] = {0};
        choose(at, count ? dims->step : none, count ? dims->size : 1);
        return;
    }
    char *here[OPERANDS];
    memcpy(here, at, sizeof(here));
    for (npy_intp i = 0; i < dims->size; i++) {
        choose_all(choose, here, dims + 1, count - 1);
        for (int k = 0; k < OPERANDS; k++) {
            here[k] += dims->step[k];
        }
    }
}

int choose_into(PyArrayObject *out, PyArrayObject *condition, PyArrayObject *a, PyArrayObject *b)
{
    PyArrayObject *const operands[OPERANDS] = {out, condition, a, b};
    npy_intp strides[OPERANDS][MAX_DIMS];
    char *at[OPERANDS];
    Dim dims[MAX_DIMS];
    int ndim = PyArray_NDIM(out);
    Choice choose = choice_of(PyArray_ITEMSIZE(out));
    if (choose == NULL || !is_mask(condition) || !(PyArray_FLAGS(out) & NPY_ARRAY_WRITEABLE)) {
        return 0;
    }
    for (int k = 0; k < OPERANDS; k++) {
        if (!broadcast_strides(operands[k], ndim, PyArray_DIMS(out), strides[k])) {
            return 0;
        }
        at[k] = PyArray_BYTES(operands[k]);
    }
    npy_intp n = size_of(out);
    if (n) {
        int count = dims_of(ndim, PyArray_DIMS(out), strides, dims);
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        choose_all(choose, at, dims, count);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return 1;
}

/* The shape to which arrays broadcast; the number of dimensions, or -1. */
static int common_shape(PyArrayObject *const *arrays, int count, npy_intp *dims)
{
    int ndim = 0;
    for (int i = 0; i < count; i++) {
        ndim = PyArray_NDIM(arrays[i]) > ndim ? PyArray_NDIM(arrays[i]) : ndim;
    }
    for (int d = 0; d < ndim; d++) {
        dims[d] = 1;
        for (int i = 0; i < count; i++) {
            int from = d - (ndim - PyArray_NDIM(arrays[i]));
            npy_intp n = from < 0 ? 1 : PyArray_DIM(arrays[i], from);
            if (n != 1 && dims[d] != 1 && n != dims[d]) {
                return -1;
            }
            dims[d] = n == 1 ? dims[d] : n;
        }
    }
    return ndim;
}

/* condition, self, other. */
static PyObject *where_kernel(PyObject *const *args)
{
    PyArrayObject *const arrays[3] = {movable(args[0]), movable(args[1]), movable(args[2])};
    npy_intp dims[MAX_DIMS];
    if (arrays[0] == NULL || arrays[1] == NULL || arrays[2] == NULL || !is_mask(arrays[0]) || !same_kind(arrays[1], arrays[2])) {
        return NULL;
    }
    int ndim = common_shape(arrays, 3, dims);
    PyArrayObject *out = ndim < 0 || choice_of(PyArray_ITEMSIZE(arrays[1])) == NULL ? NULL : (PyArrayObject *)new_array(ndim, dims, PyArray_DESCR(arrays[1]));
    if (out != NULL && !choose_into(out, arrays[0], arrays[1], arrays[2])) {
        Py_CLEAR(out);
    }
    return (PyObject *)out;
}

/* self, mask, value, out. */
static PyObject *masked_fill_kernel(PyObject *const *args)
{
    PyArrayObject *const arrays[2] = {movable(args[0]), movable(args[1])};
    npy_intp dims[MAX_DIMS];
    char element[16];
    const int of_array = is_array(args[2]) && PyArray_NDIM((PyArrayObject *)args[2]) == 0;
    if (arrays[0] == NULL || arrays[1] == NULL || !is_mask(arrays[1]) ||
        !(of_array ? PyArray_ITEMSIZE(arrays[0]) <= 16 : element_of(args[2], PyArray_DESCR(arrays[0]), element))) {
        return NULL;
    }
    int ndim = common_shape(arrays, 2, dims);
    if (ndim < 0 || choice_of(PyArray_ITEMSIZE(arrays[0])) == NULL) {
        return NULL;
    }
    PyArrayObject *out = args[3] == Py_None ? (PyArrayObject *)new_array(ndim, dims, PyArray_DESCR(arrays[0])) : movable(Py_NewRef(args[3]));
    PyArrayObject *value = out == NULL ? NULL : (PyArrayObject *)new_array(0, NULL, PyArray_DESCR(arrays[0]));
    int done = 0;
    if (value != NULL && same_kind(out, arrays[0]) && PyArray_NDIM(out) == ndim && PyArray_CompareLists(PyArray_DIMS(out), dims, ndim)) {
        int apart = (args[0] == args[3] || !may_overlap(out, arrays[0])) && !may_overlap(out, arrays[1]);
        if (of_array) {
            apart = apart && copy_into(value, (PyArrayObject *)args[2]) >= 0;
        }
        else {
            memcpy(PyArray_DATA(value), element, (size_t)PyArray_ITEMSIZE(value));
        }
        done = apart && choose_into(out, arrays[1], value, arrays[0]);
    }
    Py_XDECREF(value);
    if (!done) {
        if (out == NULL && args[3] != Py_None) {
            Py_DECREF(args[3]);
        }
        Py_CLEAR(out);
    }
    return (PyObject *)out;
}

/* self, mask, value: what the function of this name takes. */
static PyObject *fast_masked_fill_kernel(PyObject *const *args)
{
    if (!is_array(args[0]) || !is_array(args[1]) || !PyFloat_CheckExact(args[2])) {
        return NULL;
    }
    PyArrayObject *self = (PyArrayObject *)args[0], *mask = (PyArrayObject *)args[1];
    if (!float_width(self) || !is_contiguous(self) || !PyArray_NDIM(self) || PyArray_TYPE(mask) != NPY_BOOL || !PyArray_SAMESHAPE(self, mask)) {
        return NULL;
    }
    PyObject *const all[4] = {args[0], args[1], args[2], Py_None};
    return masked_fill_kernel(all);
}

/* --------------------------------------------------------------------------------------------------------------- choosing */

#define COMPACT(name, T)                                                                                                                   \
    static void name(char *to, const char *from, const npy_uint8 *mask, npy_intp count)                                                    \
    {                                                                                                                                      \
        T *y = (T *)to;                                                                                                                    \
        const T *x = (const T *)from;                                                                                                      \
        npy_intp done = 0;                                                                                                                 \
        for (npy_intp i = 0; done < count; i++) {                                                                                          \
            y[done] = x[i];                                                                                                                \
            done += mask[i] != 0;                                                                                                          \
        }                                                                                                                                  \
    }

COMPACT(compact1, npy_uint8)
COMPACT(compact2, Item2)
COMPACT(compact4, Item4)
COMPACT(compact8, Item8)
COMPACT(compact16, Item16)

static npy_intp count_set(const npy_uint8 *mask, npy_intp n)
{
    npy_intp count = 0;
    while (n > 0) {
        npy_intp part = n < 4096 ? n : 4096;
        npy_uint32 some = 0; /* narrow, so that more of them fit a vector */
        for (npy_intp i = 0; i < part; i++) {
            some += mask[i] != 0;
        }
        count += some;
        mask += part;
        n -= part;
    }
    return count;
}

PyObject *picked(PyArrayObject *self, PyArrayObject *mask)
{
    npy_intp item = PyArray_ITEMSIZE(self), n = size_of(self);
    if (choice_of(item) == NULL) {
        return NULL;
    }
    const npy_uint8 *bits = PyArray_DATA(mask);
    npy_intp count = count_set(bits, n);
    PyArrayObject *out = (PyArrayObject *)new_array(1, &count, PyArray_DESCR(self));
    if (out == NULL) {
        return NULL;
    }
    void (*const compact)(char *, const char *, const npy_uint8 *, npy_intp) =
        item == 1 ? compact1 : item == 2 ? compact2 : item == 4 ? compact4 : item == 8 ? compact8 : compact16;
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    compact(PyArray_BYTES(out), PyArray_BYTES(self), bits, count);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return (PyObject *)out;
}

/* self, mask. */
static PyObject *masked_select_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]), *mask = movable(args[1]);
    if (self == NULL || mask == NULL || !is_mask(mask) || !PyArray_SAMESHAPE(self, mask) || !PyArray_NDIM(self)) {
        return NULL;
    }
    return PyArray_IS_C_CONTIGUOUS(self) && PyArray_IS_C_CONTIGUOUS(mask) ? picked(self, mask) : NULL;
}

/* self, mask, source, out: the first elements of `source` to the places of the mask, of contiguous arrays. */
static PyObject *masked_scatter_kernel(PyObject *const *args)
{
    PyArrayObject *self = movable(args[0]), *mask = movable(args[1]), *source = movable(args[2]);
    if (self == NULL || mask == NULL || source == NULL || !is_mask(mask) || !PyArray_SAMESHAPE(self, mask) || !same_kind(self, source) ||
        !PyArray_IS_C_CONTIGUOUS(self) || !PyArray_IS_C_CONTIGUOUS(mask) || !PyArray_IS_C_CONTIGUOUS(source)) {
        return NULL;
    }
    const npy_intp n = size_of(self), item = PyArray_ITEMSIZE(self);
    const npy_uint8 *bits = PyArray_DATA(mask);
    if (count_set(bits, n) > size_of(source)) {
        return NULL; /* refused in Python */
    }
    PyArrayObject *out = args[3] == Py_None ? (PyArrayObject *)new_like(self) : movable(Py_NewRef(args[3]));
    if (out == NULL) {
        if (args[3] != Py_None) {
            Py_DECREF(args[3]);
        }
        return NULL;
    }
    if (!same_kind(out, self) || !PyArray_IS_C_CONTIGUOUS(out) || !PyArray_SAMESHAPE(out, self) || may_overlap(out, source) || may_overlap(out, mask)) {
        Py_DECREF(out);
        return NULL;
    }
    char *to = PyArray_DATA(out);
    const char *from = PyArray_DATA(source);
    if (to != PyArray_DATA(self)) {
        memcpy(to, PyArray_DATA(self), (size_t)(n * item));
    }
    for (npy_intp i = 0; i < n; i++) {
        if (bits[i]) {
            memcpy(to + i * item, from, (size_t)item);
            from += item;
        }
    }
    return (PyObject *)out;
}

/* The numbers of the elements that are not zero; returns how many. Float zeros of both signs are. */
#define FIND(name, T, VALUE)                                                \
    static npy_intp name(const void *from, npy_intp n, npy_int64 *places)   \
    {                                                                       \
        const T *x = from;                                                  \
        npy_intp count = 0, i = 0;                                          \
        for (; i <= n - 8; i += 8) {                                        \
            npy_uint64 word;                                                \
            memcpy(&word, x + i, 8);                                        \
            if (sizeof(T) == 1 && word == 0) {                              \
                continue;                                                   \
            }                                                               \
            for (npy_intp j = i; j < i + 8; j++) {                          \
                places[count] = j;                                          \
                count += VALUE(x[j]) != 0;                                  \
            }                                                               \
        }                                                                   \
        for (; i < n; i++) {                                                \
            places[count] = i;                                              \
            count += VALUE(x[i]) != 0;                                      \
        }                                                                   \
        return count;                                                       \
    }

FIND(find_int8, npy_int8, )
FIND(find_int16, npy_int16, )
FIND(find_int32, npy_int32, )
FIND(find_int64, npy_int64, )
FIND(find_float, float, )
FIND(find_double, double, )
#define MAGNITUDE_BITS(x) ((x)&0x7fff)
FIND(find_half, npy_uint16, MAGNITUDE_BITS)

static npy_intp places_of_nonzero(PyArrayObject *self, npy_int64 *places)
{
    const void *data = PyArray_DATA(self);
    npy_intp n = PyArray_SIZE(self);
    int type = PyArray_DESCR(self)->type_num;
    if (type == NPY_FLOAT) {
        return find_float(data, n, places);
    }
    if (type == NPY_DOUBLE) {
        return find_double(data, n, places);
    }
    if (is_half_type(PyArray_DESCR(self))) {
        return find_half(data, n, places);
    }
    switch (PyArray_ITEMSIZE(self)) {
    case 1:
        return find_int8(data, n, places);
    case 2:
        return find_int16(data, n, places);
    case 4:
        return find_int32(data, n, places);
    default:
        return find_int64(data, n, places);
    }
}

/* Coordinates in row-major order, (count, ndim), laid out dimension by dimension. */
static PyObject *nonzero_kernel(PyObject *const *args)
{
    PyArrayObject *self = (PyArrayObject *)args[0];
    if (!is_array(args[0]) || !is_contiguous(self) || !PyArray_ISNOTSWAPPED(self)) {
        return NULL;
    }
    int ndim = PyArray_NDIM(self), type = PyArray_DESCR(self)->type_num;
    npy_intp n = PyArray_SIZE(self);
    const int is_known = type <= NPY_ULONGLONG || type == NPY_FLOAT || type == NPY_DOUBLE || is_half_type(PyArray_DESCR(self));
    if (ndim == 0 || ndim > MAX_DIMS || n == 0 || !is_known) {
        return NULL;
    }
    npy_int64 *places = PyMem_RawMalloc(sizeof(npy_int64) * (size_t)(n + 1));
    if (places == NULL) {
        return PyErr_NoMemory();
    }
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    npy_intp count = places_of_nonzero(self, places);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    npy_intp dims[2] = {ndim, count};
    PyArray_Descr *descr = PyArray_DescrFromType(NPY_INT64);
    PyArrayObject *root = (PyArrayObject *)new_array(2, dims, descr);
    Py_DECREF(descr);
    PyObject *made = NULL;
    if (root != NULL) {
        npy_int64 *rows = PyArray_DATA(root);
        for (int d = ndim - 1; d >= 0; d--) {
            const npy_int64 size = PyArray_DIM(self, d);
            npy_int64 first = 0, line = 0; /* places rise, so that lines are counted rather than divided for */
            for (npy_intp i = 0; i < count; i++) {
                while (d && places[i] - first >= size) {
                    first += size;
                    line++;
                }
                rows[d * count + i] = places[i] - first;
                places[i] = line;
            }
        }
        npy_intp shape[2] = {count, ndim}, strides[2] = {sizeof(npy_int64), (npy_intp)sizeof(npy_int64) * (count ? count : 1)};
        made = new_view(root, 2, shape, strides, PyArray_BYTES(root));
        Py_DECREF((PyObject *)root);
    }
    PyMem_RawFree(places);
    return made;
}

const KernelEntry mask_kernels[] = {
    {"indexing.nonzero", nonzero_kernel},
    {"pointwise.where", where_kernel},
    {"indexing.masked_fill", masked_fill_kernel},
    {"indexing.fast_masked_fill", fast_masked_fill_kernel},
    {"indexing.masked_select", masked_select_kernel},
    {"indexing.masked_scatter", masked_scatter_kernel},
    {NULL, NULL},
};
