/* Tensors as the extension makes and reads them. */
#include "native.h"
#include <structmember.h>

State S;

/* Where a `__slots__` entry of a class lies in its instances; -1 with an exception when there is no such slot. */
static Py_ssize_t slot_offset(PyObject *type, const char *name)
{
    PyObject *descriptor = PyObject_GetAttrString(type, name);
    if (descriptor == NULL) {
        return -1;
    }
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
        offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }
    else {
        PyErr_Format(PyExc_TypeError, "%s is no slot of %R", name, type);
    }
    Py_DECREF(descriptor);
    return offset;
}

int find_slots(PyObject *type, const Slot *slots)
{
    for (; slots->name != NULL; slots++) {
        *slots->place = slot_offset(type, slots->name);
        if (*slots->place < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *tuple_of(int count, const npy_intp *numbers)
{
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made != NULL && i < count; i++) {
        PyObject *number = PyLong_FromSsize_t(numbers[i]);
        if (number == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, i, number);
    }
    return made;
}

PyObject *make_tensor(PyObject *data, PyObject *kind)
{
    PyObject *made = S.tensor->tp_alloc(S.tensor, 0);
    if (made == NULL) {
        Py_DECREF(data);
        return NULL;
    }
    SLOT(made, S.at_data) = data;
    SLOT(made, S.at_dtype) = Py_NewRef(kind);
    SLOT(made, S.at_node) = Py_NewRef(Py_None);
    SLOT(made, S.at_base) = Py_NewRef(Py_None);
    SLOT(made, S.at_rare) = Py_NewRef(Py_None);
    return made;
}

int reads_inference(void)
{
    PyObject *value = PyObject_GetAttr(S.tls, S.inference);
    if (value == NULL) {
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(value);
    return value == Py_True;
}

PyObject *mark_inference(PyObject *tensor)
{
    PyObject *rare = tensor == NULL ? NULL : need_rare(tensor);
    if (rare == NULL) {
        Py_XDECREF(tensor);
        return NULL;
    }
    set_slot(rare, S.at_inference, Py_NewRef(Py_True));
    return tensor;
}

PyObject *make_result(PyObject *data, PyObject *kind)
{
    PyObject *made = make_tensor(data, kind);
    return infers() ? mark_inference(made) : made;
}

PyObject *make_size(PyArrayObject *array)
{
    int ndim = PyArray_NDIM(array);
    PyObject *size = S.size->tp_alloc(S.size, ndim);
    if (size == NULL) {
        return NULL;
    }
    for (int i = 0; i < ndim; i++) {
        PyObject *item = PyLong_FromSsize_t(PyArray_DIM(array, i));
        if (item == NULL) {
            Py_DECREF(size);
            return NULL;
        }
        PyTuple_SET_ITEM(size, i, item);
    }
    return size;
}

/* 1, 0, or -1 with an exception. */
int grad_enabled(void)
{
    PyObject *value = PyObject_GetAttr(S.tls, S.grad_enabled);
    if (value == NULL) {
        return -1;
    }
    int enabled = value == Py_True ? 1 : PyObject_IsTrue(value);
    Py_DECREF(value);
    return enabled;
}

/* `op.record(made, *args)`: takes over the reference to `made`. */
PyObject *record_call(PyObject *op, PyObject *made, PyObject *const *args, Py_ssize_t count)
{
    PyObject *record = PyObject_GetAttr(op, S.record);
    if (record == NULL || record == Py_None) {
        Py_XDECREF(record);
        if (record == NULL) {
            Py_DECREF(made);
            return NULL;
        }
        return made;
    }
    PyObject *result;
    if (Py_IS_TYPE(record, &RecorderType)) {
        result = recorder_run(record, made, args, count, 1);
    }
    else {
        PyObject *given[MAX_PARAMS + 2];
        given[1] = made;
        for (Py_ssize_t i = 0; i < count; i++) {
            given[i + 2] = args[i];
        }
        result = PyObject_Vectorcall(record, given + 1, (size_t)(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    Py_DECREF(record);
    Py_DECREF(made);
    return result;
}

/* The tensor that counts the versions of this one: its base, or what it was detached from. */
PyObject *counter_of(PyObject *tensor)
{
    for (;;) {
        PyObject *above = SLOT(tensor, S.at_base);
        if (above == NULL || above == Py_None) {
            PyObject *rare = rare_of(tensor);
            above = rare == NULL ? Py_None : SLOT(rare, S.at_shares);
            if (above == Py_None) {
                return tensor;
            }
        }
        tensor = above;
    }
}

/* As Rare.__init__ makes one. */
PyObject *need_rare(PyObject *tensor)
{
    PyObject *rare = rare_of(tensor);
    if (rare != NULL) {
        return rare;
    }
    rare = S.rare->tp_alloc(S.rare, 0);
    if (rare == NULL) {
        return NULL;
    }
    SLOT(rare, S.at_count) = Py_NewRef(S.zero);
    SLOT(rare, S.at_number) = Py_NewRef(S.zero);
    SLOT(rare, S.at_epoch) = Py_NewRef(S.zero);
    SLOT(rare, S.at_shares) = Py_NewRef(Py_None);
    SLOT(rare, S.at_grad) = Py_NewRef(Py_None);
    SLOT(rare, S.at_retains) = Py_NewRef(Py_False);
    SLOT(rare, S.at_multi_view) = Py_NewRef(Py_False);
    SLOT(rare, S.at_inference) = Py_NewRef(Py_False);
    set_slot(tensor, S.at_rare, rare);
    return rare;
}

/* As `given_away` in Python; -1 with an exception. */
int give_away(PyObject *tensor)
{
    PyObject *keeper = counter_of(tensor), *node = SLOT(keeper, S.at_node);
    return node != NULL && node != Py_None && need_rare(keeper) == NULL ? -1 : 0;
}

/* Counts one change in place; -1 with an exception. A node that made the tensor and saved anything hears of the first: Note [Versions of results] in
 * `keeping.py`. */
int bump_version(PyObject *tensor)
{
    PyObject *keeper = counter_of(tensor), *rare = need_rare(keeper);
    PyObject *before = rare == NULL ? NULL : SLOT(rare, S.at_count);
    PyObject *next = before == NULL ? NULL : PyNumber_Add(before, S.one), *node = SLOT(keeper, S.at_node);
    if (next == NULL) {
        return -1;
    }
    PyObject *saved = before == S.zero && node != NULL && PyObject_TypeCheck(node, S.node) ? SLOT(node, S.at_saved) : NULL;
    set_slot(rare, S.at_count, next);
    if (saved != NULL && PyList_Check(saved)) {
        PyObject *done = PyObject_CallMethodOneArg(node, S.note_written, keeper);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    return 0;
}

/* Makes a fresh tensor a view of `source`, with the history of Note [Views and history]; takes over the reference to `made`. */
PyObject *finish_view(PyObject *made, PyObject *source, PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    PyObject *base = SLOT(source, S.at_base);
    if (base == NULL || base == Py_None) {
        base = source;
    }
    set_slot(made, S.at_base, Py_NewRef(base));
    int floating = is_differentiable(SLOT(made, S.at_dtype));
    if (is_inference(base)) {
        return mark_inference(made);
    }
    if (!may_have_history(source)) {
        if (floating) {
            set_slot(made, S.at_node, Py_NewRef(S.view));
        }
        return made;
    }
    int enabled = grad_enabled();
    if (enabled <= 0) {
        PyObject *done = enabled < 0 ? NULL : infers() ? PyObject_CallFunction(S.mark_views, "(O)O", made, source) : Py_NewRef(Py_None);
        if (done == NULL) {
            Py_CLEAR(made);
        }
        Py_XDECREF(done);
        return made;
    }
    made = record_call(op, made, args, count);
    if (made != NULL && floating && Py_TYPE(made) == S.tensor && SLOT(made, S.at_node) == Py_None) {
        set_slot(made, S.at_node, Py_NewRef(S.view));
    }
    return made;
}

PyObject *new_view_as(PyArrayObject *source, PyArray_Descr *descr, int ndim, const npy_intp *dims, const npy_intp *strides, char *data)
{
    Py_INCREF(descr);
    int flags = PyArray_FLAGS(source) & NPY_ARRAY_WRITEABLE;
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, strides, data, flags, NULL);
    if (view == NULL) {
        return NULL;
    }
    Py_INCREF(source);
    if (PyArray_SetBaseObject((PyArrayObject *)view, (PyObject *)source) < 0) {
        Py_DECREF(view);
        return NULL;
    }
    return view;
}

PyObject *new_view(PyArrayObject *source, int ndim, const npy_intp *dims, const npy_intp *strides, char *data)
{
    return new_view_as(source, PyArray_DESCR(source), ndim, dims, strides, data);
}

/* ----------------------------------------------------------------------------------------------------------- attributes */

/* Attributes of Tensor that are read all the time. For payloads that are no arrays they ask the payload, as the Python ones do. */

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    PyArrayObject *array = array_of(self);
    if (array != NULL) {
        return make_size(array);
    }
    PyObject *data = SLOT(self, S.at_data);
    if (data == NULL) {
        PyErr_SetString(PyExc_AttributeError, "_payload");
        return NULL;
    }
    PyObject *shape = PyObject_GetAttr(data, S.shape);
    if (shape == NULL) {
        return NULL;
    }
    PyObject *size = PyObject_CallOneArg((PyObject *)S.size, shape);
    Py_DECREF(shape);
    return size;
}

static PyObject *get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *kind = SLOT(self, S.at_dtype);
    if (kind == NULL) {
        PyErr_SetString(PyExc_AttributeError, "_dtype");
        return NULL;
    }
    return Py_NewRef(kind);
}

static PyObject *get_ndim(PyObject *self, void *closure)
{
    (void)closure;
    PyArrayObject *array = array_of(self);
    if (array != NULL) {
        return PyLong_FromLong(PyArray_NDIM(array));
    }
    PyObject *data = SLOT(self, S.at_data);
    if (data == NULL) {
        PyErr_SetString(PyExc_AttributeError, "_payload");
        return NULL;
    }
    return PyObject_GetAttrString(data, "ndim");
}

static PyObject *call_dim(PyObject *self, PyObject *unused)
{
    (void)unused;
    return get_ndim(self, NULL);
}

/* A field of Rare as an attribute of Tensor. */
typedef struct {
    Py_ssize_t *place;
    PyObject *initial;
} Field;

static PyObject *get_field(PyObject *self, void *closure)
{
    const Field *field = closure;
    PyObject *rare = rare_of(self);
    PyObject *value = rare == NULL ? field->initial : SLOT(rare, *field->place);
    return Py_NewRef(value != NULL ? value : S.zero);
}

static int set_field(PyObject *self, PyObject *value, void *closure)
{
    const Field *field = closure;
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "this attribute of a tensor cannot be deleted");
        return -1;
    }
    PyObject *rare = need_rare(self);
    if (rare == NULL) {
        return -1;
    }
    set_slot(rare, *field->place, Py_NewRef(value));
    return 0;
}

/* What is set of an attribute that may only be read, whose name is the closure. */
int refuse_write(PyObject *self, PyObject *value, void *closure)
{
    (void)self, (void)value;
    PyErr_Format(PyExc_AttributeError, "attribute '%s' of 'torch._C.TensorBase' objects is not writable", (const char *)closure);
    return -1;
}

/* A method of tensors, by the name that it has in PyTorch: there the class below Tensor has it. */
PyObject *base_method(PyTypeObject *type, PyMethodDef *method)
{
    PyObject *descriptor = PyDescr_NewMethod(type, method);
    if (descriptor != NULL) {
        PyObject *name = PyUnicode_FromFormat("TensorBase.%s", method->ml_name);
        if (name == NULL) {
            Py_DECREF(descriptor);
            return NULL;
        }
        Py_XSETREF(((PyDescrObject *)descriptor)->d_qualname, name);
    }
    return descriptor;
}

/* An initial value of NULL stands for 0. */
static Field count = {&S.at_count, NULL}, number = {&S.at_number, NULL}, epoch = {&S.at_epoch, NULL}, shares = {&S.at_shares, Py_None},
             grad = {&S.at_grad, Py_None}, retains = {&S.at_retains, Py_False}, multi_view = {&S.at_multi_view, Py_False},
             inference = {&S.at_inference, Py_False};

static PyGetSetDef getters[] = {
    {"_v", get_field, set_field, NULL, &count},
    {"_nr", get_field, set_field, NULL, &number},
    {"_epoch", get_field, set_field, NULL, &epoch},
    {"_shares", get_field, set_field, NULL, &shares},
    {"_grad", get_field, set_field, NULL, &grad},
    {"_retains", get_field, set_field, NULL, &retains},
    {"_multi_view", get_field, set_field, NULL, &multi_view},
    {"_inference", get_field, set_field, NULL, &inference},
    {"shape", get_shape, refuse_write, "The size of each dimension, a torch.Size.", "shape"},
    {"dtype", get_dtype, refuse_write, "The type of the elements.", "dtype"},
    {"ndim", get_ndim, refuse_write, "The number of dimensions.", "ndim"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"dim", call_dim, METH_NOARGS, "dim($self, /)\n--\n\nThe number of dimensions."},
    {"ndimension", call_dim, METH_NOARGS, "ndimension($self, /)\n--\n\nThe number of dimensions."},
    {NULL, NULL, 0, NULL},
};

int install_attributes(PyObject *tensor)
{
    for (PyGetSetDef *getter = getters; getter->name != NULL; getter++) {
        PyObject *descriptor = PyDescr_NewGetSet((PyTypeObject *)tensor, getter);
        if (descriptor == NULL || PyObject_SetAttrString(tensor, getter->name, descriptor) < 0) {
            Py_XDECREF(descriptor);
            return -1;
        }
        Py_DECREF(descriptor);
    }
    for (PyMethodDef *method = methods; method->ml_name != NULL; method++) {
        PyObject *descriptor = base_method((PyTypeObject *)tensor, method);
        if (descriptor == NULL || PyObject_SetAttrString(tensor, method->ml_name, descriptor) < 0) {
            Py_XDECREF(descriptor);
            return -1;
        }
        Py_DECREF(descriptor);
    }
    return 0;
}
