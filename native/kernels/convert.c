/* Elements of one dtype as those of another, and numbers as arrays: what casts operands and results. */
#include "../runtime/extents.h"
#include "../runtime/plan.h"
#include "move.h"

int copy_into(PyArrayObject *target, PyArrayObject *source)
{
    return move_into(target, source) ? 0 : PyArray_CopyInto(target, source);
}

PyArrayObject *converted(PyArrayObject *array, PyArray_Descr *descr)
{
    PyArrayObject *made;
    if (is_contiguous(array)) {
        made = (PyArrayObject *)new_array(PyArray_NDIM(array), PyArray_DIMS(array), descr);
        Row row = is_movable(array) ? row_between(PyArray_DESCR(array), descr) : NULL;
        if (made != NULL && row != NULL) {
            move_row(made, array, row);
            return made;
        }
    }
    else {
        made = (PyArrayObject *)buffer_like(array, NPY_KEEPORDER, descr);
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
        float f, cf[2];
        double d, cd[2];
    } value;
    int type = descr->type_num, overflow = 0;
    if (is_half_type(descr)) { /* by way of float32, as in PyTorch */
        PyArrayObject *wide = number_array(number, S.descr32), *made = wide == NULL ? NULL : converted(wide, descr);
        Py_XDECREF((PyObject *)wide);
        return made;
    }
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
    else if (type == NPY_CFLOAT || type == NPY_CDOUBLE) {
        Py_complex wide = PyComplex_AsCComplex(number);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return NULL;
        }
        if (type == NPY_CFLOAT) {
            value.cf[0] = (float)wide.real;
            value.cf[1] = (float)wide.imag;
        }
        else {
            value.cd[0] = wide.real;
            value.cd[1] = wide.imag;
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
