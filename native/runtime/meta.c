/* Run on the meta device: a plan's geometries over storages that have a size and no memory. */
#include "plan.h"

MetaState Z;

PyObject *connect_meta(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"payload", "storage", "device", NULL};
    PyObject *payload, *storage, *device;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO", keywords, &PyType_Type, &payload, &storage, &device)) {
        return NULL;
    }
    const Slot slots[] = {{"shape", &Z.at_shape},   {"stride", &Z.at_stride},   {"dtype", &Z.at_dtype},
                          {"offset", &Z.at_offset}, {"storage", &Z.at_storage}, {NULL, NULL}};
    if (find_slots(payload, slots) < 0) {
        return NULL;
    }
    Z.storage = Py_NewRef(storage);
    Z.device = Py_NewRef(device);
    Z.payload = (PyTypeObject *)Py_NewRef(payload);
    Py_RETURN_NONE;
}

/* Takes over `offset` and `storage`. */
static PyObject *make_payload(const MetaResult *result, PyObject *kind, PyObject *offset, PyObject *storage)
{
    PyObject *made = offset == NULL || storage == NULL ? NULL : Z.payload->tp_alloc(Z.payload, 0);
    if (made == NULL) {
        Py_XDECREF(offset);
        Py_XDECREF(storage);
        return NULL;
    }
    SLOT(made, Z.at_shape) = Py_NewRef(result->shape);
    SLOT(made, Z.at_stride) = Py_NewRef(result->stride);
    SLOT(made, Z.at_dtype) = Py_NewRef(kind);
    SLOT(made, Z.at_offset) = offset;
    SLOT(made, Z.at_storage) = storage;
    return made;
}

static PyObject *fresh(const MetaResult *result)
{
    PyObject *payload = make_payload(result, result->dtype, PyLong_FromLong(0), PyObject_CallOneArg(Z.storage, result->nbytes));
    return payload == NULL ? NULL : make_result(payload, result->dtype);
}

static PyObject *view_of(PyObject *whole, const MetaResult *result)
{
    PyObject *source = SLOT(whole, S.at_data);
    PyObject *offset = PyNumber_Add(SLOT(source, Z.at_offset), result->nbytes); /* of a view: the step from the first element */
    PyObject *payload = make_payload(result, SLOT(source, Z.at_dtype), offset, Py_NewRef(SLOT(source, Z.at_storage)));
    return payload == NULL ? NULL : make_tensor(payload, SLOT(whole, S.at_dtype));
}

static int has_history(const Path *path, const Bound *bound)
{
    int found = 0;
    for (int i = 0; i < path->params; i++) {
        PyObject *value = bound->value[i];
        if (PyList_CheckExact(value)) {
            for (Py_ssize_t k = 0; k < PyList_GET_SIZE(value); k++) {
                PyObject *item = PyList_GET_ITEM(value, k);
                found |= is_plain(item) && may_have_history(item);
            }
        }
        else if ((path->kinds[i] == 'T' || path->kinds[i] == 'N') && is_plain(value)) {
            found |= may_have_history(value);
        }
    }
    return found;
}

PyObject *run_meta(const Path *path, const Plan *plan, const Bound *bound)
{
    if (path->inplace || bound->out != NULL) {
        return NULL;
    }
    if (plan->how == PLAN_VIEW) {
        PyObject *made = view_of(bound->value[0], &plan->meta[0]);
        return made == NULL ? NULL : finish_view(made, bound->value[0], path->op, bound->value, path->params);
    }
    PyObject *made = NULL;
    if (plan->how == PLAN_ONE) {
        made = fresh(&plan->meta[0]);
    }
    else if (plan->how == PLAN_SEVERAL) {
        made = plan->cls->tp_alloc(plan->cls, plan->count);
        for (int i = 0; made != NULL && i < plan->count; i++) {
            PyObject *tensor = plan->meta[i].shape == NULL ? Py_NewRef(Py_None) : fresh(&plan->meta[i]);
            if (tensor == NULL) {
                Py_CLEAR(made);
                break;
            }
            PyTuple_SET_ITEM(made, i, tensor);
        }
    }
    return made == NULL ? NULL : finish_call(path, bound, made, has_history(path, bound));
}
