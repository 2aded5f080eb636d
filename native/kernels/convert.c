/* Elements of one dtype as those of another, and numbers as arrays: what casts operands and results. Pairs of everyday dtypes have loops here; numpy does
 * the rest.
 */
#include "../runtime/plan.h"

typedef void (*Conversion)(const void *from, void *to, npy_intp n);

#define CONVERSION(name, from_type, to_type)                                  \
    static void name(const void *from, void *to, npy_intp n)                  \
    {                                                                         \
        const from_type *x = from;                                            \
        to_type *y = to;                                                      \
        for (npy_intp i = 0; i < n; i++) {                                    \
            y[i] = (to_type)x[i];                                             \
        }                                                                     \
    }

CONVERSION(bool_to_float, npy_bool, float)
CONVERSION(bool_to_double, npy_bool, double)
CONVERSION(bool_to_int64, npy_bool, npy_int64)
CONVERSION(bool_to_int32, npy_bool, npy_int32)
CONVERSION(uint8_to_float, npy_uint8, float)
CONVERSION(uint8_to_int64, npy_uint8, npy_int64)
CONVERSION(int32_to_float, npy_int32, float)
CONVERSION(int32_to_double, npy_int32, double)
CONVERSION(int32_to_int64, npy_int32, npy_int64)
CONVERSION(int64_to_float, npy_int64, float)
CONVERSION(int64_to_double, npy_int64, double)
CONVERSION(float_to_double, float, double)
CONVERSION(double_to_float, double, float)

static void bfloat16_to_float(const void *from, void *to, npy_intp n)
{
    const uint16_t *x = from;
    uint32_t *y = to;
    for (npy_intp i = 0; i < n; i++) {
        y[i] = (uint32_t)x[i] << 16;
    }
}

/* To the nearest, ties to even; a NaN becomes the quiet one of its sign. */
static void float_to_bfloat16(const void *from, void *to, npy_intp n)
{
    const uint32_t *x = from;
    uint16_t *y = to;
    for (npy_intp i = 0; i < n; i++) {
        uint32_t bits = x[i];
        uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
        uint32_t nan = ((bits >> 16) & 0x8000u) | 0x7fc0u;
        y[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
    }
}

static Conversion conversion(PyArray_Descr *from, PyArray_Descr *to)
{
    int target = to->type_num;
    if (S.descr_bfloat16 != NULL) {
        if (from == S.descr_bfloat16) {
            return target == NPY_FLOAT ? bfloat16_to_float : NULL;
        }
        if (to == S.descr_bfloat16) {
            return from->type_num == NPY_FLOAT ? float_to_bfloat16 : NULL;
        }
    }
    switch (from->type_num) {
    case NPY_BOOL:
        return target == NPY_FLOAT ? bool_to_float : target == NPY_DOUBLE ? bool_to_double : target == NPY_INT64 ? bool_to_int64 : target == NPY_INT32 ? bool_to_int32 : NULL;
    case NPY_UINT8:
        return target == NPY_FLOAT ? uint8_to_float : target == NPY_INT64 ? uint8_to_int64 : NULL;
    case NPY_INT32:
        return target == NPY_FLOAT ? int32_to_float : target == NPY_DOUBLE ? int32_to_double : target == NPY_INT64 ? int32_to_int64 : NULL;
    case NPY_INT64:
        return target == NPY_FLOAT ? int64_to_float : target == NPY_DOUBLE ? int64_to_double : NULL;
    case NPY_FLOAT:
        return target == NPY_DOUBLE ? float_to_double : NULL;
    case NPY_DOUBLE:
        return target == NPY_FLOAT ? double_to_float : NULL;
    default:
        return NULL;
    }
}

int copy_into(PyArrayObject *target, PyArrayObject *source)
{
    if (is_contiguous(target) && is_contiguous(source) && PyArray_SAMESHAPE(target, source) && PyArray_ISNOTSWAPPED(source)) {
        Conversion convert = conversion(PyArray_DESCR(source), PyArray_DESCR(target));
        npy_intp n = PyArray_SIZE(target);
        if (convert != NULL) {
            PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
            convert(PyArray_DATA(source), PyArray_DATA(target), n);
            if (thread != NULL) {
                PyEval_RestoreThread(thread);
            }
            return 0;
        }
        if (PyArray_DESCR(source) == PyArray_DESCR(target)) {
            memmove(PyArray_DATA(target), PyArray_DATA(source), (size_t)PyArray_NBYTES(target));
            return 0;
        }
    }
    return PyArray_CopyInto(target, source);
}

PyArrayObject *converted(PyArrayObject *array, PyArray_Descr *descr)
{
    PyArrayObject *made;
    if (is_contiguous(array)) {
        made = (PyArrayObject *)new_array(PyArray_NDIM(array), PyArray_DIMS(array), descr);
    }
    else {
        Py_INCREF(descr);
        made = (PyArrayObject *)PyArray_NewLikeArray(array, NPY_KEEPORDER, descr, 0);
    }
    if (made != NULL && copy_into(made, array) < 0) {
        Py_CLEAR(made);
    }
    return made;
}

PyArrayObject *number_array(PyObject *number, PyArray_Descr *descr)
{
    union {
        npy_bool truth;
        npy_uint8 u8;
        npy_int8 i8;
        npy_int16 i16;
        npy_int32 i32;
        npy_int64 i64;
        float f;
        double d;
    } value;
    int type = descr->type_num, overflow = 0;
    memset(&value, 0, sizeof(value));
    if (type == NPY_FLOAT || type == NPY_DOUBLE) {
        double wide = PyFloat_CheckExact(number) ? PyFloat_AS_DOUBLE(number) : PyLong_Check(number) ? PyLong_AsDouble(number) : NAN;
        if (PyErr_Occurred() || PyComplex_Check(number)) {
            PyErr_Clear();
            return NULL;
        }
        if (type == NPY_FLOAT) {
            value.f = (float)wide;
        }
        else {
            value.d = wide;
        }
    }
    else if (PyLong_Check(number) && type >= NPY_BOOL && type <= NPY_LONGLONG) {
        long long whole = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (overflow) {
            return NULL;
        }
        switch (PyDataType_ELSIZE(descr)) {
        case 1:
            value.i8 = (npy_int8)(type == NPY_BOOL ? whole != 0 : whole);
            break;
        case 2:
            value.i16 = (npy_int16)whole;
            break;
        case 4:
            value.i32 = (npy_int32)whole;
            break;
        default:
            value.i64 = whole;
        }
    }
    else {
        return NULL;
    }
    PyObject *made = new_array(0, NULL, descr);
    if (made != NULL) {
        memcpy(PyArray_DATA((PyArrayObject *)made), &value, (size_t)PyDataType_ELSIZE(descr));
    }
    return (PyArrayObject *)made;
}
