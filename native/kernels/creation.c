/* New arrays of constants, and filling in place: of the kernels of `_backends/cpu/ops/creation.py`.
 *
 * A value that the dtype does not hold as it is (an integer out of its range, a complex number) is left to numpy.
 */
#include "../runtime/plan.h"
#include "../runtime/extents.h"
#include "making.h"
#include <math.h>

#define CLEAR_UP_TO ((npy_intp)1 << 26) /* bytes; above, memory that the system gives is not cleared again */

/* ---------------------------------------------------------------------------------------------------------------- values */

typedef struct {
    int size;
    union {
        char bytes[16];
        npy_uint16 half;
        npy_uint32 word;
        npy_uint64 wide;
    } as;
    int zero; /* all bits are */
} Value;

static npy_uint16 to_bfloat16(float x)
{
    union {
        float value;
        npy_uint32 bits;
    } of = {x};
    if (x != x) {
        return (npy_uint16)((of.bits >> 31 << 15) | 0x7FC0);
    }
    return (npy_uint16)((of.bits + 0x7FFF + ((of.bits >> 16) & 1)) >> 16);
}

static int encode_double(PyArray_Descr *descr, double x, Value *value)
{
    if (descr == S.descr32) {
        float single = (float)x;
        memcpy(value->as.bytes, &single, 4);
        return 1;
    }
    if (descr == S.descr64) {
        memcpy(value->as.bytes, &x, 8);
        return 1;
    }
    if (descr == M.bfloat16 && ((double)(float)x == x || x != x)) {
        value->as.half = to_bfloat16((float)x);
        return 1;
    }
    return 0;
}

#define ENCODE_INTEGER(type, least, most)                                                                                                  \
    do {                                                                                                                                   \
        if (x < (least) || x > (most)) {                                                                                                   \
            return 0;                                                                                                                      \
        }                                                                                                                                  \
        type number = (type)x;                                                                                                             \
        memcpy(value->as.bytes, &number, sizeof(number));                                                                                  \
        return 1;                                                                                                                          \
    } while (0)

static int encode_integer(PyArray_Descr *descr, npy_int64 x, Value *value)
{
    switch (descr->type_num) {
    case NPY_BYTE:
        ENCODE_INTEGER(npy_int8, NPY_MIN_INT8, NPY_MAX_INT8);
    case NPY_UBYTE:
        ENCODE_INTEGER(npy_uint8, 0, NPY_MAX_UINT8);
    case NPY_SHORT:
        ENCODE_INTEGER(npy_int16, NPY_MIN_INT16, NPY_MAX_INT16);
    case NPY_INT:
        ENCODE_INTEGER(npy_int32, NPY_MIN_INT32, NPY_MAX_INT32);
    case NPY_LONG:
        ENCODE_INTEGER(npy_long, NPY_MIN_LONG, NPY_MAX_LONG);
    default:
        /* Numbers that double precision holds, so that there is one rounding. */
        return x >= -((npy_int64)1 << 53) && x <= (npy_int64)1 << 53 && encode_double(descr, (double)x, value);
    }
}

/* A bool, int or float as an element of a dtype; 0 to decline. */
static int encode(PyArray_Descr *descr, PyObject *number, Value *value)
{
    value->size = (int)PyDataType_ELSIZE(descr);
    if (value->size > 8 || descr->byteorder == '>') {
        return 0;
    }
    value->as.wide = 0;
    int known = 0;
    if (PyFloat_CheckExact(number)) {
        double x = PyFloat_AS_DOUBLE(number);
        if (descr->type_num == NPY_BOOL) {
            value->as.bytes[0] = x != 0;
            known = 1;
        }
        else {
            known = encode_double(descr, x, value) || (x == floor(x) && fabs(x) < 1e15 && encode_integer(descr, (npy_int64)x, value));
        }
    }
    else if (PyBool_Check(number) || PyLong_CheckExact(number)) {
        int overflow;
        long long x = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (descr->type_num == NPY_BOOL && !overflow) {
            value->as.bytes[0] = x != 0;
            known = 1;
        }
        else {
            known = !overflow && encode_integer(descr, x, value);
        }
    }
    value->zero = value->as.wide == 0;
    return known;
}

static int encode_one(PyArray_Descr *descr, Value *value)
{
    value->size = (int)PyDataType_ELSIZE(descr);
    value->as.wide = 0;
    value->zero = 0;
    if (value->size > 8 || descr->byteorder == '>') {
        return 0;
    }
    if (descr->type_num == NPY_BOOL) {
        value->as.bytes[0] = 1;
        return 1;
    }
    if (descr->type_num == NPY_HALF) {
        value->as.half = 0x3C00;
        return 1;
    }
    return encode_integer(descr, 1, value);
}

/* --------------------------------------------------------------------------------------------------------------- filling */

/* `n` equal elements one after the other. */
static void fill_dense(char *out, npy_intp n, const Value *value)
{
    npy_intp bytes = n * value->size;
    if (value->zero || value->size == 1) {
        memset(out, value->as.bytes[0], (size_t)bytes);
    }
    else if (value->size == 2) {
        for (npy_intp i = 0; i < n; i++) {
            ((npy_uint16 *)out)[i] = value->as.half;
        }
    }
    else if (value->size == 4) {
        for (npy_intp i = 0; i < n; i++) {
            ((npy_uint32 *)out)[i] = value->as.word;
        }
    }
    else {
        for (npy_intp i = 0; i < n; i++) {
            ((npy_uint64 *)out)[i] = value->as.wide;
        }
    }
}

/* `n` equal elements, `step` bytes from each other; at any address. */
static void fill_line(char *out, npy_intp n, npy_intp step, const Value *value)
{
    switch (value->size) {
    case 1:
        for (npy_intp i = 0; i < n; i++) {
            out[i * step] = value->as.bytes[0];
        }
        break;
    case 2:
        for (npy_intp i = 0; i < n; i++) {
            memcpy(out + i * step, &value->as.half, 2);
        }
        break;
    case 4:
        for (npy_intp i = 0; i < n; i++) {
            memcpy(out + i * step, &value->as.word, 4);
        }
        break;
    case 8:
        for (npy_intp i = 0; i < n; i++) {
            memcpy(out + i * step, &value->as.wide, 8);
        }
        break;
    default:
        for (npy_intp i = 0; i < n; i++) {
            memcpy(out + i * step, value->as.bytes, (size_t)value->size);
        }
    }
}

static void fill_strided(char *out, int ndim, const npy_intp *dims, const npy_intp *strides, const Value *value)
{
    if (ndim == 0) {
        memcpy(out, value->as.bytes, (size_t)value->size);
    }
    else if (ndim == 1 && strides[0] == value->size) {
        fill_dense(out, dims[0], value);
    }
    else if (ndim == 1) {
        fill_line(out, dims[0], strides[0], value);
    }
    else {
        for (npy_intp i = 0; i < dims[0]; i++) {
            fill_strided(out + i * strides[0], ndim - 1, dims + 1, strides + 1, value);
        }
    }
}

static PyObject *filled(PyObject *array, const Value *value)
{
    PyArrayObject *target = (PyArrayObject *)array;
    if (array == NULL) {
        return NULL;
    }
    npy_intp n = PyArray_SIZE(target);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (PyArray_IS_C_CONTIGUOUS(target) || PyArray_IS_F_CONTIGUOUS(target)) {
        fill_dense(PyArray_DATA(target), n, value);
    }
    else {
        fill_strided(PyArray_DATA(target), PyArray_NDIM(target), PyArray_DIMS(target), PyArray_STRIDES(target), value);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return array;
}

static PyObject *new_zeros(int ndim, const npy_intp *dims, PyArray_Descr *descr)
{
    const size_t bytes = bytes_of(ndim, dims, descr);
    if (bytes > CLEAR_UP_TO) { /* of which untouched pages of the system's are not cleared again */
        return buffer_array(ndim, dims, NULL, descr, bytes, 1);
    }
    PyObject *out = new_array(ndim, dims, descr);
    if (out != NULL) {
        PyThreadState *thread = bytes >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        memset(PyArray_DATA((PyArrayObject *)out), 0, (size_t)bytes);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

/* ------------------------------------------------------------------------------------------------------------- constants */

typedef enum { EMPTY, ZEROS, ONES, FULL } Content;

/* Of a shape; a reference to `descr` is borrowed. */
static PyObject *make(Content content, int ndim, const npy_intp *dims, PyArray_Descr *descr, PyObject *number)
{
    Value value;
    if (ndim < 0 || descr == NULL || PyDataType_REFCHK(descr)) {
        return NULL;
    }
    if (content == EMPTY) {
        return new_array(ndim, dims, descr);
    }
    if (content == ZEROS) {
        return new_zeros(ndim, dims, descr);
    }
    if (content == ONES ? !encode_one(descr, &value) : !encode(descr, number, &value)) {
        return NULL;
    }
    return filled(new_array(ndim, dims, descr), &value);
}

/* Of the shape of an array, and of its order in memory. */
static PyObject *make_like(Content content, PyObject *object, PyObject *dtype, PyObject *number)
{
    PyArrayObject *x = (PyArrayObject *)object;
    PyArray_Descr *descr = !is_array(object) ? NULL : dtype == Py_None ? PyArray_DESCR(x) : descr_of(dtype);
    if (descr == NULL) {
        return NULL;
    }
    if (PyArray_IS_C_CONTIGUOUS(x)) {
        return make(content, PyArray_NDIM(x), PyArray_DIMS(x), descr, number);
    }
    Value value = {.size = (int)PyDataType_ELSIZE(descr), .zero = 1};
    if ((content == ONES && !encode_one(descr, &value)) || (content == FULL && !encode(descr, number, &value))) {
        return NULL;
    }
    PyObject *out = buffer_like(x, NPY_KEEPORDER, descr);
    if (content == EMPTY || out == NULL) {
        return out;
    }
    /* The array is new and dense, so the order of its elements does not matter. */
    fill_dense(PyArray_DATA((PyArrayObject *)out), PyArray_SIZE(x), &value);
    return out;
}

static PyObject *sized(Content content, PyObject *size, PyArray_Descr *descr, PyObject *number)
{
    npy_intp dims[MAX_DIMS];
    return make(content, sizes_of(size, dims), dims, descr, number);
}

/* size, dtype, layout, device, pin_memory */
static PyObject *empty_kernel(PyObject *const *args)
{
    return sized(EMPTY, args[0], descr_of(args[1]), NULL);
}

static PyObject *zeros_kernel(PyObject *const *args)
{
    return sized(ZEROS, args[0], descr_of(args[1]), NULL);
}

static PyObject *ones_kernel(PyObject *const *args)
{
    return sized(ONES, args[0], descr_of(args[1]), NULL);
}

/* size, fill_value, dtype, ... */
static PyObject *full_kernel(PyObject *const *args)
{
    PyObject *dtype = args[2], *number = args[1];
    if (dtype == Py_None && !PyFloat_CheckExact(number)) {
        dtype = PyBool_Check(number) ? S.bool_ : PyLong_CheckExact(number) ? S.int64 : NULL;
    }
    return dtype == NULL ? NULL : sized(FULL, args[0], descr_of(dtype), number);
}

/* s, dtype, ... */
static PyObject *scalar_tensor_kernel(PyObject *const *args)
{
    return make(FULL, 0, NULL, descr_of(args[1]), args[0]);
}

/* self, dtype, layout, device, pin_memory, memory_format */
static PyObject *empty_like_kernel(PyObject *const *args)
{
    return make_like(EMPTY, args[0], args[1], NULL);
}

static PyObject *zeros_like_kernel(PyObject *const *args)
{
    return make_like(ZEROS, args[0], args[1], NULL);
}

static PyObject *ones_like_kernel(PyObject *const *args)
{
    return make_like(ONES, args[0], args[1], NULL);
}

/* self, fill_value, dtype, ... */
static PyObject *full_like_kernel(PyObject *const *args)
{
    return make_like(FULL, args[0], args[2], args[1]);
}

static PyObject *new_of(Content content, PyObject *self, PyObject *size, PyObject *dtype, PyObject *number)
{
    if (!is_array(self)) {
        return NULL;
    }
    return sized(content, size, dtype == Py_None ? PyArray_DESCR((PyArrayObject *)self) : descr_of(dtype), number);
}

/* self, size, dtype, ... */
static PyObject *new_empty_kernel(PyObject *const *args)
{
    return new_of(EMPTY, args[0], args[1], args[2], NULL);
}

static PyObject *new_zeros_kernel(PyObject *const *args)
{
    return new_of(ZEROS, args[0], args[1], args[2], NULL);
}

static PyObject *new_ones_kernel(PyObject *const *args)
{
    return new_of(ONES, args[0], args[1], args[2], NULL);
}

/* self, size, fill_value, dtype, ... */
static PyObject *new_full_kernel(PyObject *const *args)
{
    return new_of(FULL, args[0], args[1], args[3], args[2]);
}

/* -------------------------------------------------------------------------------------------------------------- matrices */

static PyObject *identity(PyObject *rows, PyObject *columns, PyObject *dtype)
{
    Value one;
    npy_intp dims[2];
    PyArray_Descr *descr = descr_of(dtype);
    if (descr == NULL || !as_index(rows, &dims[0]) || !as_index(columns, &dims[1]) || dims[0] < 0 || dims[1] < 0 || dims[0] > 1 << 24 ||
        dims[1] > 1 << 24 || !encode_one(descr, &one)) {
        return NULL;
    }
    PyObject *made = new_zeros(2, dims, descr);
    if (made != NULL) {
        char *out = PyArray_DATA((PyArrayObject *)made);
        for (npy_intp i = 0; i < dims[0] && i < dims[1]; i++) {
            memcpy(out + i * (dims[1] + 1) * one.size, one.as.bytes, (size_t)one.size);
        }
    }
    return made;
}

/* n, dtype, ... */
static PyObject *eye_kernel(PyObject *const *args)
{
    return identity(args[0], args[0], args[1]);
}

/* n, m, dtype, ... */
static PyObject *eye_m_kernel(PyObject *const *args)
{
    return identity(args[0], args[1], args[2]);
}

/* -------------------------------------------------------------------------------------------------------- filling in place */

/* self, value */
static PyObject *fill_kernel(PyObject *const *args)
{
    Value value = {0};
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!is_array(args[0]) || !PyArray_ISBEHAVED(x)) {
        return NULL;
    }
    PyArray_Descr *descr = PyArray_DESCR(x);
    if (is_array(args[1])) {
        PyArrayObject *one = (PyArrayObject *)args[1];
        if (PyArray_NDIM(one) || PyArray_DESCR(one) != descr || PyDataType_ELSIZE(descr) > 8 || PyDataType_REFCHK(descr)) {
            return NULL;
        }
        value.size = (int)PyDataType_ELSIZE(descr);
        memcpy(value.as.bytes, PyArray_DATA(one), (size_t)value.size);
        value.zero = value.as.wide == 0;
    }
    else if (!encode(descr, args[1], &value)) {
        return NULL;
    }
    return filled(Py_NewRef(args[0]), &value);
}

/* self */
static PyObject *zero_kernel(PyObject *const *args)
{
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!is_array(args[0]) || !PyArray_ISBEHAVED(x) || PyDataType_REFCHK(PyArray_DESCR(x)) || PyArray_ITEMSIZE(x) > 16) {
        return NULL;
    }
    Value value = {.size = (int)PyArray_ITEMSIZE(x), .zero = 1};
    return filled(Py_NewRef(args[0]), &value);
}

const KernelEntry creation_kernels[] = {
    {"creation.empty", empty_kernel},
    {"creation.zeros", zeros_kernel},
    {"creation.ones", ones_kernel},
    {"creation.full", full_kernel},
    {"creation.scalar_tensor", scalar_tensor_kernel},
    {"creation.empty_like", empty_like_kernel},
    {"creation.zeros_like", zeros_like_kernel},
    {"creation.ones_like", ones_like_kernel},
    {"creation.full_like", full_like_kernel},
    {"creation.new_empty", new_empty_kernel},
    {"creation.new_zeros", new_zeros_kernel},
    {"creation.new_ones", new_ones_kernel},
    {"creation.new_full", new_full_kernel},
    {"creation.eye", eye_kernel},
    {"creation.eye_m", eye_m_kernel},
    {"creation.fill", fill_kernel},
    {"creation.zero_", zero_kernel},
    {NULL, NULL},
};
