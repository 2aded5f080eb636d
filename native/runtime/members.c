/* Members of Tensor in C: what asks for no operator. Each stands before the Python member of its name, which answers for tensors
 * that are no plain CPU ones, for arguments that are not the usual, and for all errors.
 */
#include "making.h"
#include "../kernels/move.h"

/* The Python members, by the numbers of the tables below. */
enum {
    SIZE, STRIDE, NUMEL, NELEMENT, DEVICE, REQUIRES_GRAD, GRAD, IS_LEAF, DATA, REQUIRES_GRAD_, DETACH_, IS_CONTIGUOUS, TO, CPU, TYPE_AS, NUMPY,
    IS_FLOATING_POINT, IS_COMPLEX, IS_CPU, IS_CUDA, FLOAT, DOUBLE, HALF, BFLOAT16, INT, LONG, SHORT, CHAR, BYTE, BOOL, DETACH, CONTIGUOUS, COUNT
};
static PyObject *fallbacks[COUNT];
static PyObject *to_copy, *dtype_keyword; /* the operator, and its keywords */
static PyObject *casts[COUNT];

static PyObject *by_python(int number, PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *given[12];
    Py_ssize_t all = count + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    if (all > 11) {
        PyErr_SetString(PyExc_TypeError, "too many arguments");
        return NULL;
    }
    given[0] = self;
    copy_objects(given + 1, args, all);
    return PyObject_Vectorcall(fallbacks[number], given, (size_t)(count + 1), kwnames);
}

static PyObject *get_by_python(int number, PyObject *self)
{
    PyObject *getter = PyObject_GetAttrString(fallbacks[number], "fget");
    PyObject *value = getter == NULL ? NULL : PyObject_CallOneArg(getter, self);
    Py_XDECREF(getter);
    return value;
}

static int set_by_python(int number, PyObject *self, PyObject *value)
{
    return Py_TYPE(fallbacks[number])->tp_descr_set(fallbacks[number], self, value);
}

static int is_plain_array(PyObject *self)
{
    return !is_special() && is_plain(self) && array_of(self) != NULL;
}

/* ------------------------------------------------------------------------------------------------------------- geometry */

static PyObject *call_size(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyArrayObject *array = array_of(self);
    if (array != NULL && kwnames == NULL) {
        if (count == 0) {
            return make_size(array);
        }
        int dim = count == 1 ? as_dim(args[0], PyArray_NDIM(array)) : -1;
        if (dim >= 0) {
            return PyLong_FromSsize_t(PyArray_DIM(array, dim));
        }
    }
    return by_python(SIZE, self, args, count, kwnames);
}

static PyObject *call_stride(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyArrayObject *array = array_of(self);
    if (array != NULL && kwnames == NULL && PyArray_SIZE(array)) {
        npy_intp steps[NPY_MAXDIMS], item = PyArray_ITEMSIZE(array);
        int ndim = PyArray_NDIM(array), dim = count == 1 ? as_dim(args[0], ndim) : -1;
        if (count == 0) {
            for (int d = 0; d < ndim; d++) {
                steps[d] = PyArray_STRIDE(array, d) / item;
            }
            return tuple_of(ndim, steps);
        }
        if (dim >= 0) {
            return PyLong_FromSsize_t(PyArray_STRIDE(array, dim) / item);
        }
    }
    return by_python(STRIDE, self, args, count, kwnames);
}

static PyObject *call_numel(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyArrayObject *array = array_of(self);
    return array != NULL ? PyLong_FromSsize_t(PyArray_SIZE(array)) : by_python(NUMEL, self, NULL, 0, NULL);
}

static PyObject *call_is_contiguous(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyArrayObject *array = array_of(self);
    if (array != NULL && kwnames == NULL && count == 0) {
        return PyBool_FromLong(PyArray_IS_C_CONTIGUOUS(array));
    }
    return by_python(IS_CONTIGUOUS, self, args, count, kwnames);
}

static PyObject *call_contiguous(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    if (count == 0 && kwnames == NULL && is_plain_array(self) && PyArray_IS_C_CONTIGUOUS(array_of(self))) {
        return Py_NewRef(self);
    }
    if (count == 0 && kwnames == NULL && is_plain_array(self) && !may_have_history(self) && PyArray_SIZE(array_of(self))) {
        PyArrayObject *array = array_of(self);
        PyArrayObject *copy = is_movable(array) ? (PyArrayObject *)new_like(array) : NULL;
        if (copy != NULL && move_into(copy, array)) {
            return make_result((PyObject *)copy, SLOT(self, S.at_dtype));
        }
        Py_XDECREF(copy);
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    return by_python(CONTIGUOUS, self, args, count, kwnames);
}

static PyObject *get_device(PyObject *self, void *closure)
{
    (void)closure;
    return array_of(self) != NULL ? Py_NewRef(S.cpu) : get_by_python(DEVICE, self);
}

static PyObject *get_is_cpu(PyObject *self, void *closure)
{
    (void)closure;
    return array_of(self) != NULL ? Py_NewRef(Py_True) : get_by_python(IS_CPU, self);
}

static PyObject *get_is_cuda(PyObject *self, void *closure)
{
    (void)closure;
    return array_of(self) != NULL ? Py_NewRef(Py_False) : get_by_python(IS_CUDA, self);
}

/* -------------------------------------------------------------------------------------------------------------- gradient */

/* 1, 0, or -1 for a view that has to ask what became of its base. */
static int has_history(PyObject *self)
{
    PyObject *node = SLOT(self, S.at_node), *base = SLOT(self, S.at_base);
    if (node == Py_None) {
        return 0;
    }
    if (node == S.view && base != NULL && base != Py_None && SLOT(base, S.at_node) == Py_None &&
        rare_number(base, S.at_epoch) == rare_number(self, S.at_epoch)) {
        return 0;
    }
    return node != NULL && base == Py_None ? 1 : -1;
}

static PyObject *get_requires_grad(PyObject *self, void *closure)
{
    (void)closure;
    int known = has_history(self);
    return known >= 0 ? PyBool_FromLong(known) : get_by_python(REQUIRES_GRAD, self);
}

/* Whether the tensor is a leaf for certain: no view that has to look at its base. */
static int is_leaf(PyObject *self)
{
    PyObject *node = SLOT(self, S.at_node);
    return node == Py_None || (node != NULL && Py_IS_TYPE(node, S.accumulate));
}

static PyObject *get_is_leaf(PyObject *self, void *closure)
{
    (void)closure;
    return SLOT(self, S.at_node) == Py_None || (SLOT(self, S.at_base) == Py_None && is_leaf(self)) ? Py_NewRef(Py_True)
                                                                                                   : get_by_python(IS_LEAF, self);
}

static int set_requires_grad(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    return set_by_python(REQUIRES_GRAD, self, value);
}

static PyObject *get_grad(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *rare = rare_of(self), *grad = rare == NULL ? Py_None : SLOT(rare, S.at_grad);
    return grad != Py_None || is_leaf(self) || SLOT(self, S.at_node) == S.view ? Py_NewRef(grad) : get_by_python(GRAD, self);
}

static int set_grad(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (value == Py_None) {
        PyObject *rare = rare_of(self);
        if (rare != NULL) {
            set_slot(rare, S.at_grad, Py_NewRef(Py_None));
        }
        return 0;
    }
    return set_by_python(GRAD, self, value);
}

static PyObject *get_data(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *data = SLOT(self, S.at_data), *kind = SLOT(self, S.at_dtype);
    if (data == NULL || kind == NULL) {
        return get_by_python(DATA, self);
    }
    if (give_away(self) < 0) {
        return NULL;
    }
    PyObject *made = make_tensor(Py_NewRef(data), kind);
    return is_inference(self) ? mark_inference(made) : made;
}

static int set_data(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    return set_by_python(DATA, self, value);
}

static PyObject *call_requires_grad_(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    if (kwnames == NULL && (count == 0 || (count == 1 && PyBool_Check(args[0]))) && SLOT(self, S.at_base) == Py_None) {
        PyObject *node = SLOT(self, S.at_node);
        int wanted = count == 0 || args[0] == Py_True;
        if (wanted && node == Py_None && is_differentiable(SLOT(self, S.at_dtype)) && !is_inference(self)) {
            node = new_accumulate(self);
            if (node == NULL) {
                return NULL;
            }
            set_slot(self, S.at_node, node);
            return Py_NewRef(self);
        }
        if (wanted ? node != NULL && Py_IS_TYPE(node, S.accumulate) : is_leaf(self)) {
            set_slot(self, S.at_node, Py_NewRef(wanted ? node : Py_None));
            return Py_NewRef(self);
        }
    }
    return by_python(REQUIRES_GRAD_, self, args, count, kwnames);
}

static PyObject *call_detach_(PyObject *self, PyObject *unused)
{
    (void)unused;
    /* A tangent is forgotten, too, and a node is told. */
    if (PySet_GET_SIZE(S.plain) == 0 || SLOT(self, S.at_base) != Py_None || !is_leaf(self)) {
        return by_python(DETACH_, self, NULL, 0, NULL);
    }
    set_slot(self, S.at_node, Py_NewRef(Py_None));
    return Py_NewRef(self);
}

/* The same array; `_shares` says whose version counts. */
static PyObject *call_detach(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!is_plain_array(self)) {
        return by_python(DETACH, self, NULL, 0, NULL);
    }
    PyObject *made = make_tensor(Py_NewRef(SLOT(self, S.at_data)), SLOT(self, S.at_dtype));
    PyObject *rare = made == NULL ? NULL : need_rare(made);
    if (rare == NULL) {
        Py_XDECREF(made);
        return NULL;
    }
    set_slot(rare, S.at_shares, Py_NewRef(self));
    return is_inference(self) ? mark_inference(made) : made;
}

/* ----------------------------------------------------------------------------------------------------------- conversions */

/* The tensor as another dtype, itself if it is of that dtype. */
static PyObject *converted(PyObject *self, PyObject *kind)
{
    if (SLOT(self, S.at_dtype) == kind) {
        return Py_NewRef(self);
    }
    PyObject *const given[] = {self, kind};
    return PyObject_Vectorcall(to_copy, given, 1, dtype_keyword);
}

static int is_cpu(PyObject *device)
{
    return device == S.cpu || (PyUnicode_CheckExact(device) && PyUnicode_CompareWithASCIIString(device, "cpu") == 0);
}

/* What `to` is asked for, when that is a dtype, the CPU, or another CPU tensor: the dtype (borrowed), else NULL. */
static PyObject *target_of(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *kind = NULL;
    int first_is_device = 0;
    if (count > 2) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (Py_IS_TYPE(args[i], M.dtype)) {
            if (i == 1 && !first_is_device) {
                return NULL;
            }
            kind = args[i];
        }
        else if (i == 0 && is_cpu(args[0])) {
            first_is_device = 1;
        }
        else if (i == 0 && count == 1 && is_plain(args[0]) && array_of(args[0]) != NULL) {
            kind = SLOT(args[0], S.at_dtype);
        }
        else {
            return NULL;
        }
    }
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i), *value = args[count + i];
        if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0 && kind == NULL && Py_IS_TYPE(value, M.dtype)) {
            kind = value;
        }
        else if (PyUnicode_CompareWithASCIIString(name, "device") == 0 && is_cpu(value) && count == 0) {
            continue;
        }
        else if (PyUnicode_CompareWithASCIIString(name, "non_blocking") != 0 || !PyBool_Check(value)) {
            return NULL;
        }
    }
    return kind != NULL ? kind : SLOT(self, S.at_dtype);
}

static PyObject *call_to(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *kind = is_plain_array(self) ? target_of(self, args, count, kwnames) : NULL;
    return kind != NULL ? converted(self, kind) : by_python(TO, self, args, count, kwnames);
}

static PyObject *call_cpu(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    return count == 0 && kwnames == NULL && is_plain_array(self) ? Py_NewRef(self) : by_python(CPU, self, args, count, kwnames);
}

static PyObject *call_type_as(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    if (count == 1 && kwnames == NULL && is_plain_array(self) && is_plain(args[0]) && array_of(args[0]) != NULL) {
        return converted(self, SLOT(args[0], S.at_dtype));
    }
    return by_python(TYPE_AS, self, args, count, kwnames);
}

#define CAST(function, number)                                                                                                             \
    static PyObject *function(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)                                  \
    {                                                                                                                                      \
        return count == 0 && kwnames == NULL && is_plain_array(self) ? converted(self, casts[number])                                      \
                                                                     : by_python(number, self, args, count, kwnames);                      \
    }

CAST(call_float, FLOAT)
CAST(call_double, DOUBLE)
CAST(call_half, HALF)
CAST(call_bfloat16, BFLOAT16)
CAST(call_int, INT)
CAST(call_long, LONG)
CAST(call_short, SHORT)
CAST(call_char, CHAR)
CAST(call_byte, BYTE)
CAST(call_bool, BOOL)

static PyObject *call_numpy(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    PyArrayObject *array = array_of(self);
    if (array != NULL && count == 0 && kwnames == NULL && !is_special() && has_history(self) == 0 &&
        PyArray_DESCR(array)->type_num < 256 && descr_of(SLOT(self, S.at_dtype)) != NULL) {
        return give_away(self) < 0 ? NULL : PyArray_View(array, NULL, NULL); /* an object of its own: the user may give it another shape */
    }
    return by_python(NUMPY, self, args, count, kwnames);
}

/* A fact about the dtype: an attribute of the same name. */
static PyObject *call_is_floating_point(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *kind = SLOT(self, S.at_dtype);
    return kind == S.float32 || kind == S.float64 ? Py_NewRef(Py_True) : by_python(IS_FLOATING_POINT, self, NULL, 0, NULL);
}

static PyObject *call_is_complex(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *kind = SLOT(self, S.at_dtype);
    return kind == S.float32 || kind == S.float64 ? Py_NewRef(Py_False) : by_python(IS_COMPLEX, self, NULL, 0, NULL);
}

/* ---------------------------------------------------------------------------------------------------------------- tables */

#define FAST METH_FASTCALL | METH_KEYWORDS
#define METHOD(function) (PyCFunction)(void (*)(void)) function

static PyObject *hash_descriptor(PyTypeObject *type);

static struct {
    int number;
    PyMethodDef method;
} methods[] = {
    {SIZE, {"size", METHOD(call_size), FAST,
      "size($self, /, dim=None)\n--\n\nThe shape, or the size of one dimension. IndexError when `dim` is out of range."}},
    {STRIDE, {"stride", METHOD(call_stride), FAST,
      "stride($self, /, dim=None)\n--\n\nSteps between elements along each dimension, in elements; or along one dimension."}},
    {NUMEL, {"numel", call_numel, METH_NOARGS,
      "numel($self, /)\n--\n\nThe number of elements."}},
    {NELEMENT, {"nelement", call_numel, METH_NOARGS,
      "nelement($self, /)\n--\n\nThe number of elements."}},
    {IS_CONTIGUOUS, {"is_contiguous", METHOD(call_is_contiguous), FAST,
      "is_contiguous($self, /, memory_format=torch.contiguous_format)\n--\n\nWhether the elements lie in memory without gaps in the order of `memory_format`."}},
    {REQUIRES_GRAD_, {"requires_grad_", METHOD(call_requires_grad_), FAST,
      "requires_grad_($self, /, requires_grad=True)\n--\n\nRecord operations on this leaf from now on, or stop doing so. RuntimeError for integer tensors and interior tensors."}},
    {DETACH_, {"detach_", call_detach_, METH_NOARGS,
      "detach_($self, /)\n--\n\nForget the history of this tensor. RuntimeError for a view, whose base would still have one."}},
    {TO, {"to", METHOD(call_to), FAST,
      "to($self, /, *args, **kwargs)\n--\n\nThe tensor in another dtype or on another device; itself when it is already there."}},
    {CPU, {"cpu", METHOD(call_cpu), FAST,
      "cpu($self, /, memory_format=None)\n--\n\nThe tensor on the CPU."}},
    {TYPE_AS, {"type_as", METHOD(call_type_as), FAST,
      "type_as($self, /, other)\n--\n\nThe tensor in the dtype and on the device of `other`."}},
    {NUMPY, {"numpy", METHOD(call_numpy), FAST,
      "numpy($self, /, *, force=False)\n--\n\nThe values as an ndarray that shares the tensor's memory."}},
    {DETACH, {"detach", call_detach, METH_NOARGS, "detach($self, /)\n--\n\nThe same elements without history; changes of one count for the other."}},
    {CONTIGUOUS, {"contiguous", METHOD(call_contiguous), FAST,
      "contiguous($self, /, *, memory_format=torch.contiguous_format)\n--\n\nThe tensor with its elements in order, itself if they are."}},
    {IS_FLOATING_POINT, {"is_floating_point", call_is_floating_point, METH_NOARGS,
      "is_floating_point($self, /)\n--\n\nWhether the dtype is a floating one."}},
    {IS_COMPLEX, {"is_complex", call_is_complex, METH_NOARGS,
      "is_complex($self, /)\n--\n\nWhether the dtype is a complex one."}},
    {FLOAT, {"float", METHOD(call_float), FAST,
      "float($self, /, memory_format=None)\n--\n\nThe tensor as float32."}},
    {DOUBLE, {"double", METHOD(call_double), FAST,
      "double($self, /, memory_format=None)\n--\n\nThe tensor as float64."}},
    {HALF, {"half", METHOD(call_half), FAST,
      "half($self, /, memory_format=None)\n--\n\nThe tensor as float16."}},
    {BFLOAT16, {"bfloat16", METHOD(call_bfloat16), FAST,
      "bfloat16($self, /, memory_format=None)\n--\n\nThe tensor as bfloat16."}},
    {INT, {"int", METHOD(call_int), FAST,
      "int($self, /, memory_format=None)\n--\n\nThe tensor as int32."}},
    {LONG, {"long", METHOD(call_long), FAST,
      "long($self, /, memory_format=None)\n--\n\nThe tensor as int64."}},
    {SHORT, {"short", METHOD(call_short), FAST,
      "short($self, /, memory_format=None)\n--\n\nThe tensor as int16."}},
    {CHAR, {"char", METHOD(call_char), FAST,
      "char($self, /, memory_format=None)\n--\n\nThe tensor as int8."}},
    {BYTE, {"byte", METHOD(call_byte), FAST,
      "byte($self, /, memory_format=None)\n--\n\nThe tensor as uint8."}},
    {BOOL, {"bool", METHOD(call_bool), FAST,
      "bool($self, /, memory_format=None)\n--\n\nThe tensor as bool."}},
};

static struct {
    int number;
    PyGetSetDef property;
} properties[] = {
    {DEVICE, {"device", get_device, refuse_write, "Where the elements are.", "device"}},
    {REQUIRES_GRAD, {"requires_grad", get_requires_grad, set_requires_grad, "Whether operations on the tensor are recorded.", NULL}},
    {GRAD, {"grad", get_grad, set_grad, "The gradient that backward passes added up, or None.", NULL}},
    {IS_LEAF, {"is_leaf", get_is_leaf, refuse_write, "Whether no operation that is recorded made the tensor.", "is_leaf"}},
    {DATA, {"data", get_data, set_data, "The same elements without history.", NULL}},
    {IS_CPU, {"is_cpu", get_is_cpu, refuse_write, "Whether the device is the CPU.", "is_cpu"}},
    {IS_CUDA, {"is_cuda", get_is_cuda, refuse_write, "Whether the device is one of CUDA.", "is_cuda"}},
};

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

PyObject *member(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || !PyType_Check(args[0]) || !PyUnicode_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "member(class, name, Python member)");
        return NULL;
    }
    if (!S.ready) {
        PyErr_SetString(PyExc_RuntimeError, "the extension is not connected yet");
        return NULL;
    }
    if (PyUnicode_CompareWithASCIIString(args[1], "__hash__") == 0) {
        return hash_descriptor((PyTypeObject *)args[0]);
    }
    for (size_t i = 0; i < LENGTH(methods); i++) {
        if (PyUnicode_CompareWithASCIIString(args[1], methods[i].method.ml_name) == 0) {
            Py_XSETREF(fallbacks[methods[i].number], Py_NewRef(args[2]));
            return base_method((PyTypeObject *)args[0], &methods[i].method);
        }
    }
    for (size_t i = 0; i < LENGTH(properties); i++) {
        if (PyUnicode_CompareWithASCIIString(args[1], properties[i].property.name) == 0) {
            Py_XSETREF(fallbacks[properties[i].number], Py_NewRef(args[2]));
            return PyDescr_NewGetSet((PyTypeObject *)args[0], &properties[i].property);
        }
    }
    return number_member((PyTypeObject *)args[0], args[1], args[2]);
}

PyObject *connect_casts(PyObject *module, PyObject *args)
{
    PyObject *operator, *kinds;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &operator, &PyDict_Type, &kinds)) {
        return NULL;
    }
    for (size_t i = 0; i < LENGTH(methods); i++) {
        PyObject *kind = PyDict_GetItemString(kinds, methods[i].method.ml_name);
        Py_XSETREF(casts[methods[i].number], Py_XNewRef(kind));
    }
    Py_XSETREF(dtype_keyword, Py_BuildValue("(s)", "dtype"));
    Py_XSETREF(to_copy, Py_NewRef(operator));
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------------------------------------------------------ hash */

static Py_hash_t tensor_hash(PyObject *self)
{
    Py_hash_t hash = (Py_hash_t)(size_t)self; /* id(self) */
    return hash == -1 ? -2 : hash;
}

/* The slot of `__hash__`, which subclasses inherit without a method in between. */
static PyObject *hash_descriptor(PyTypeObject *type)
{
    PyObject *usual = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__hash__");
    PyObject *made = usual == NULL ? NULL : PyDescr_NewWrapper(type, ((PyWrapperDescrObject *)usual)->d_base, (void *)tensor_hash);
    Py_XDECREF(usual);
    return made;
}
