/* What nn.Module and nn.Parameter do all the time: attributes, calls without hooks, parameters of plain tensors.
 *
 * Each function stands before the Python one of its name (nn/modules/module.py, nn/parameter.py), which does all else and raises all errors.
 */
#include "making.h"

#define HOOK_TABLES 8

static struct {
    PyTypeObject *module, *parameter;
    PyObject *get, *set, *call, *make;  /* the Python functions */
    PyObject *read;                     /* what stands before `get`: whether a class has another one */
    PyObject *register_parameter;       /* that of Module */
    PyObject *hooks[HOOK_TABLES];       /* dicts of hooks for all modules, which calls look at */
    PyObject *on_parameter, *on_module; /* those for registrations */
    Py_ssize_t at_extras, at_variable;  /* slots of Node and AccumulateGrad */
    PyObject *none;                     /* () */
    getattrofunc usual;                 /* the look-up of classes with a `__getattr__` */
    /* interned names */
    PyObject *parameters, *buffers, *modules, *forward, *compiled, *get_name, *set_name, *lookup_name, *register_name;
    PyObject *own_hooks[4];
} L;

/* The dict of an instance (borrowed); NULL where there is none, without an exception. */
static PyObject *dict_of(PyObject *self)
{
    PyObject *dict = PyObject_GenericGetDict(self, NULL);
    if (dict == NULL) {
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF(dict); /* the instance holds it */
    return dict;
}

/* One of the dicts of members, when it is a plain one; borrowed. */
static PyObject *members_of(PyObject *dict, PyObject *kind)
{
    PyObject *members = PyDict_GetItemWithError(dict, kind);
    return members != NULL && (PyDict_CheckExact(members) || PyODict_CheckExact(members)) ? members : NULL;
}

/* ------------------------------------------------------------------------------------------------------------ attributes */

static PyObject *module_getattr(PyObject *self, PyObject *name)
{
    PyObject *dict = dict_of(self);
    PyObject *const kinds[] = {L.parameters, L.buffers, L.modules};
    for (int i = 0; dict != NULL && i < 3; i++) {
        PyObject *members = members_of(dict, kinds[i]);
        PyObject *value = members == NULL ? NULL : PyDict_GetItemWithError(members, name);
        if (value != NULL) {
            return Py_NewRef(value);
        }
        if (members == NULL || PyErr_Occurred()) {
            PyErr_Clear();
            break;
        }
    }
    PyObject *const given[] = {self, name};
    return PyObject_Vectorcall(L.get, given, 2, NULL);
}

/* The look-up of attributes as a whole: what `object` finds, else a member. It saves the exception between the two. */
static PyObject *module_getattro(PyObject *self, PyObject *name)
{
    if (_PyType_Lookup(Py_TYPE(self), name) == NULL) {
        PyObject *dict = dict_of(self), *value = dict == NULL ? NULL : PyDict_GetItemWithError(dict, name);
        if (value != NULL) {
            return Py_NewRef(value);
        }
        return PyErr_Occurred() ? NULL : module_getattr(self, name);
    }
    PyObject *value = PyObject_GenericGetAttr(self, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return module_getattr(self, name);
    }
    return value;
}

/* Gives a class that look-up, unless it has one of its own. Python takes it away again when somebody sets `__getattr__`, here or in a base. */
static void adopt(PyTypeObject *type)
{
    if (type->tp_getattro == L.usual && _PyType_Lookup(type, L.get_name) == L.read &&
        _PyType_Lookup(type, L.lookup_name) == _PyType_Lookup(&PyBaseObject_Type, L.lookup_name)) {
        type->tp_getattro = module_getattro;
    }
}

PyObject *adopt_module(PyObject *module, PyObject *cls)
{
    (void)module;
    if (L.module != NULL && PyType_Check(cls) && PyType_IsSubtype((PyTypeObject *)cls, L.module)) {
        adopt((PyTypeObject *)cls);
    }
    Py_RETURN_NONE;
}

/* Types whose instances are no members of a module, whatever their names. */
static int is_plain_value(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyUnicode_Type || value == Py_None ||
           type == &PyTuple_Type || type == &PyList_Type || type == &PyDict_Type || type == &PyFunction_Type || type == &PySet_Type;
}

/* Whether a name is none of a member's: 1, 0, or -1 with an exception. */
static int is_free(PyObject *dict, PyObject *name)
{
    PyObject *const kinds[] = {L.parameters, L.buffers, L.modules};
    for (int i = 0; i < 3; i++) {
        PyObject *members = members_of(dict, kinds[i]);
        if (members == NULL) {
            return PyErr_Occurred() ? -1 : 0;
        }
        int found = PyDict_Contains(members, name);
        if (found) {
            return found < 0 ? -1 : 0;
        }
    }
    return 1;
}

/* Whether the classes behind Module in the order of resolution leave attributes to `object`; the last answers are kept. */
static int sets_as_object(PyTypeObject *type)
{
    static struct {
        PyTypeObject *type;
        unsigned int version;
    } known[64];
    size_t place = ((size_t)type >> 5) % 64;
    if (known[place].type == type && known[place].version == type->tp_version_tag && type->tp_version_tag) {
        return 1;
    }
    PyObject *order = type->tp_mro;
    int behind = 0;
    for (Py_ssize_t i = 0; order != NULL && i < PyTuple_GET_SIZE(order); i++) {
        PyTypeObject *one = (PyTypeObject *)PyTuple_GET_ITEM(order, i);
        if (behind && one != &PyBaseObject_Type) {
            PyObject *own = PyObject_GetAttrString((PyObject *)one, "__dict__");
            int sets = own == NULL || PyMapping_HasKey(own, L.set_name);
            Py_XDECREF(own);
            if (sets) {
                PyErr_Clear();
                return 0;
            }
        }
        behind |= one == L.module;
    }
    if (!behind) {
        return 0;
    }
    known[place].type = type;
    known[place].version = type->tp_version_tag;
    return 1;
}

/* A name that `_check_name` of Module accepts for something new. */
static int is_new_name(PyObject *self, PyObject *name)
{
    if (!PyUnicode_CheckExact(name) || PyUnicode_GET_LENGTH(name) == 0 ||
        PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1) != -1) {
        return 0;
    }
    return _PyType_Lookup(Py_TYPE(self), name) == NULL && _PyType_Lookup(Py_TYPE(self), L.get_name) == L.read;
}

/* 1 when the assignment is done, 0 to leave it to Python, -1 with an exception. */
static int assign(PyObject *self, PyObject *name, PyObject *value)
{
    PyObject *dict = dict_of(self);
    if (dict == NULL) {
        return 0;
    }
    if (is_plain_value(value)) {
        int freely = is_free(dict, name);
        if (freely <= 0 || !sets_as_object(Py_TYPE(self))) {
            return freely < 0 ? -1 : 0;
        }
        return PyObject_GenericSetAttr(self, name, value) < 0 ? -1 : 1;
    }
    PyObject *kind;
    if (Py_IS_TYPE(value, L.parameter)) {
        PyObject *node = SLOT(value, S.at_node);
        int leaf = node == Py_None || (node != NULL && Py_IS_TYPE(node, S.accumulate));
        if (!leaf || PyDict_GET_SIZE(L.on_parameter) || _PyType_Lookup(Py_TYPE(self), L.register_name) != L.register_parameter) {
            return 0;
        }
        kind = L.parameters;
    }
    else if (PyType_IsSubtype(Py_TYPE(value), L.module) && !PyDict_GET_SIZE(L.on_module)) {
        kind = L.modules;
    }
    else {
        return 0;
    }
    PyObject *members = members_of(dict, kind);
    int there = members == NULL ? 0 : PyDict_Contains(members, name);
    if (members == NULL || there < 0) {
        return there < 0 || PyErr_Occurred() ? -1 : 0;
    }
    if (!there) { /* a new member, of a name that nothing else has */
        int freely = is_free(dict, name);
        int held = freely > 0 ? PyDict_Contains(dict, name) : 0;
        if (freely <= 0 || held) {
            return freely < 0 || held < 0 ? -1 : 0;
        }
        if (kind == L.parameters && !is_new_name(self, name)) {
            return 0;
        }
    }
    return PyObject_SetItem(members, name, value) < 0 ? -1 : 1; /* which keeps the order of an OrderedDict */
}

static PyObject *module_setattr(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count == 2) {
        int status = assign(self, args[0], args[1]);
        if (status) {
            return status < 0 ? NULL : Py_NewRef(Py_None);
        }
    }
    PyObject *given[4] = {self, count > 0 ? args[0] : NULL, count > 1 ? args[1] : NULL, count > 2 ? args[2] : NULL};
    return PyObject_Vectorcall(L.set, given, (size_t)(count < 3 ? count : 3) + 1, NULL);
}

/* ----------------------------------------------------------------------------------------------------------------- calls */

static PyObject *module_call(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    Py_ssize_t all = count + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *small[8], **given = all < 8 ? small : PyMem_Malloc((size_t)(all + 1) * sizeof(*given));
    if (given == NULL) {
        return PyErr_NoMemory();
    }
    given[0] = self;
    copy_objects(given + 1, args, all);
    PyObject *dict = dict_of(self);
    int plain = dict != NULL && PyDict_GetItemWithError(dict, L.compiled) == NULL;
    for (int i = 0; plain && i < 4; i++) {
        PyObject *hooks = PyDict_GetItemWithError(dict, L.own_hooks[i]);
        plain = hooks != NULL && PyDict_Check(hooks) && PyDict_GET_SIZE(hooks) == 0;
    }
    for (int i = 0; plain && i < HOOK_TABLES && L.hooks[i] != NULL; i++) {
        plain = PyDict_GET_SIZE(L.hooks[i]) == 0;
    }
    PyErr_Clear();
    PyObject *result;
    if (plain) {
        result = PyObject_VectorcallMethod(L.forward, given, (size_t)count + 1, kwnames);
    }
    else {
        result = PyObject_Vectorcall(L.call, given, (size_t)count + 1, kwnames);
    }
    if (given != small) {
        PyMem_Free(given);
    }
    return result;
}

/* ------------------------------------------------------------------------------------------------------------ parameters */

/* The end of the tape at a leaf, as AccumulateGrad.__init__ makes it. */
PyObject *new_accumulate(PyObject *variable)
{
    if (L.none == NULL) {
        return PyObject_CallOneArg((PyObject *)S.accumulate, variable);
    }
    PyObject *reference = PyWeakref_NewRef(variable, NULL);
    PyObject *node = reference == NULL ? NULL : S.accumulate->tp_alloc(S.accumulate, 0);
    if (node == NULL) {
        Py_XDECREF(reference);
        return NULL;
    }
    SLOT(node, S.at_edges) = Py_NewRef(L.none);
    SLOT(node, S.at_outputs) = Py_NewRef(L.none);
    SLOT(node, S.at_saved) = Py_NewRef(Py_None);
    SLOT(node, S.at_consts) = Py_NewRef(Py_None);
    SLOT(node, L.at_extras) = Py_NewRef(Py_None);
    SLOT(node, L.at_variable) = reference;
    return node;
}

/* Parameter(data, requires_grad=True) of a plain tensor. */
static PyObject *make_parameter(PyObject *cls, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    PyObject *data = count ? args[0] : NULL, *wanted = count == 2 ? args[1] : Py_True;
    int fits = cls == (PyObject *)L.parameter && (count == 1 || count == 2) && count + named <= 2 &&
               (Py_TYPE(data) == S.tensor || Py_TYPE(data) == L.parameter);
    if (fits && named) {
        fits = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "requires_grad") == 0;
        wanted = args[count];
    }
    if (fits && PyBool_Check(wanted) && (wanted == Py_False || is_differentiable(SLOT(data, S.at_dtype)))) {
        PyObject *made = give_away(data) < 0 ? NULL : L.parameter->tp_alloc(L.parameter, 0);
        if (made == NULL) {
            return NULL;
        }
        SLOT(made, S.at_data) = Py_NewRef(SLOT(data, S.at_data));
        SLOT(made, S.at_dtype) = Py_NewRef(SLOT(data, S.at_dtype));
        SLOT(made, S.at_base) = Py_NewRef(Py_None);
        SLOT(made, S.at_rare) = Py_NewRef(Py_None);
        SLOT(made, S.at_node) = wanted == Py_True ? new_accumulate(made) : Py_NewRef(Py_None);
        if (SLOT(made, S.at_node) == NULL) {
            Py_CLEAR(made);
        }
        return made;
    }
    PyObject *given[8] = {cls};
    if (count + named > 7) {
        PyErr_SetString(PyExc_TypeError, "Parameter() takes from 1 to 3 positional arguments");
        return NULL;
    }
    copy_objects(given + 1, args, count + named);
    return PyObject_Vectorcall(L.make, given, (size_t)count + 1, kwnames);
}

/* ------------------------------------------------------------------------------------------------------------- connection */

static PyMethodDef getattr_method = {"__getattr__", module_getattr, METH_O, "__getattr__($self, name, /)\n--\n\nA parameter, buffer or submodule."};
static PyMethodDef setattr_method = {"__setattr__", (PyCFunction)(void (*)(void))module_setattr, METH_FASTCALL,
                                      "__setattr__($self, name, value, /)\n--\n\nSet an attribute; parameters and modules become members."};
static PyMethodDef call_method = {"__call__", (PyCFunction)(void (*)(void))module_call, METH_FASTCALL | METH_KEYWORDS,
                                   "__call__($self, /, *args, **kwargs)\n--\n\nRun `forward` and the hooks."};
static PyMethodDef make_method = {"__call__", (PyCFunction)(void (*)(void))make_parameter, METH_FASTCALL | METH_KEYWORDS,
                                   "__call__($self, /, *args, **kwargs)\n--\n\nAn instance."};

static int take_name(PyObject **place, const char *name)
{
    *place = PyUnicode_InternFromString(name);
    return *place == NULL;
}

/* Puts a method before the Python one, which goes to `behind`. The new one is borrowed. */
static PyObject *put(PyTypeObject *type, PyMethodDef *method, PyObject **behind)
{
    PyObject *former = PyObject_GetAttrString((PyObject *)type, method->ml_name);
    PyObject *made = former == NULL ? NULL : PyDescr_NewMethod(type, method);
    if (made == NULL || PyObject_SetAttrString((PyObject *)type, method->ml_name, made) < 0) {
        Py_XDECREF(former);
        Py_XDECREF(made);
        return NULL;
    }
    Py_DECREF(made);
    *behind = former;
    return made;
}

/* connect_module(Module, hooks of calls, hooks of parameters, hooks of modules) */
PyObject *connect_module(PyObject *module, PyObject *args)
{
    PyObject *cls, *hooks, *on_parameter, *on_module;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyType_Type, &cls, &PyTuple_Type, &hooks, &on_parameter, &on_module)) {
        return NULL;
    }
    if (!S.ready || L.module != NULL || PyTuple_GET_SIZE(hooks) >= HOOK_TABLES || !PyDict_Check(on_parameter) || !PyDict_Check(on_module)) {
        PyErr_SetString(PyExc_RuntimeError, "connect_module: not now, or not with these");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(hooks); i++) {
        L.hooks[i] = Py_NewRef(PyTuple_GET_ITEM(hooks, i));
    }
    L.on_parameter = Py_NewRef(on_parameter);
    L.on_module = Py_NewRef(on_module);
    static const char *const own[] = {"_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks"};
    int failed = take_name(&L.parameters, "_parameters") || take_name(&L.buffers, "_buffers") || take_name(&L.modules, "_modules") ||
                 take_name(&L.forward, "forward") || take_name(&L.compiled, "_compiled_call_impl") || take_name(&L.get_name, "__getattr__") || take_name(&L.set_name, "__setattr__") ||
                 take_name(&L.lookup_name, "__getattribute__") ||
                 take_name(&L.register_name, "register_parameter");
    for (int i = 0; i < 4 && !failed; i++) {
        failed = take_name(&L.own_hooks[i], own[i]);
    }
    if (failed) {
        return NULL;
    }
    L.register_parameter = PyObject_GetAttr(cls, L.register_name);
    if (L.register_parameter == NULL || put((PyTypeObject *)cls, &call_method, &L.call) == NULL ||
        put((PyTypeObject *)cls, &setattr_method, &L.set) == NULL ||
        (L.read = put((PyTypeObject *)cls, &getattr_method, &L.get)) == NULL) {
        return NULL;
    }
    Py_INCREF(L.read);
    L.module = (PyTypeObject *)Py_NewRef(cls);
    L.usual = L.module->tp_getattro;
    adopt(L.module);
    Py_RETURN_NONE;
}

PyObject *connect_parameter(PyObject *module, PyObject *cls)
{
    (void)module;
    if (!PyType_Check(cls) || !S.ready || L.parameter != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "connect_parameter: not now, or no class");
        return NULL;
    }
    const Slot of_node[] = {{"extras", &L.at_extras}, {NULL, NULL}}, of_leaf[] = {{"reference", &L.at_variable}, {NULL, NULL}};
    if (find_slots((PyObject *)S.node, of_node) < 0 || find_slots((PyObject *)S.accumulate, of_leaf) < 0 ||
        put(Py_TYPE(cls), &make_method, &L.make) == NULL) {
        return NULL;
    }
    L.none = PyTuple_New(0);
    L.parameter = (PyTypeObject *)Py_NewRef(cls);
    return L.none == NULL ? NULL : Py_NewRef(Py_None);
}
