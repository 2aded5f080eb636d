/* What kernels that make arrays ask: which dtype, which shape. */
#include "making.h"

Making M;

PyArray_Descr *descr_of(PyObject *dtype)
{
    if (dtype == Py_None && M.dtypes != NULL) {
        dtype = PyDict_GetItem(M.dtypes, M.default_);
    }
    if (dtype == NULL || M.dtype == NULL || !Py_IS_TYPE(dtype, M.dtype)) {
        return NULL;
    }
    PyObject *descr = SLOT(dtype, M.at_np);
    return descr != NULL && PyArray_DescrCheck(descr) ? (PyArray_Descr *)descr : NULL;
}

int sizes_of(PyObject *sizes, npy_intp *dims)
{
    if (!PyTuple_Check(sizes) && !PyList_Check(sizes)) {
        return -1;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(sizes);
    PyObject **items = PySequence_Fast_ITEMS(sizes);
    npy_intp count = 1;
    if (n > MAX_DIMS) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!as_index(items[i], &dims[i]) || dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count)) {
            return -1;
        }
    }
    return count >> 40 ? -1 : (int)n; /* more than there is memory: numpy's function says so */
}

PyObject *connect_making(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"dtype", "namespace", "bfloat16", "kinds", NULL};
    PyObject *dtype, *namespace, *bfloat16, *kinds;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!O!", keywords, &PyType_Type, &dtype, &PyDict_Type, &namespace, &PyArrayDescr_Type,
                                     &bfloat16, &PyDict_Type, &kinds)) {
        return NULL;
    }
    const Slot of_dtype[] = {{"np", &M.at_np}, {NULL, NULL}};
    if (find_slots(dtype, of_dtype) < 0) {
        return NULL;
    }
    if (install_size() < 0) {
        return NULL;
    }
    Py_XSETREF(M.kinds, Py_NewRef(kinds));
    Py_XSETREF(M.dtypes, Py_NewRef(namespace));
    Py_XSETREF(M.bfloat16, (PyArray_Descr *)Py_NewRef(bfloat16));
    Py_XSETREF(M.dtype, (PyTypeObject *)Py_NewRef(dtype));
    Py_RETURN_NONE;
}

PyObject *use_stream(PyObject *module, PyObject *stream)
{
    (void)module;
    Py_XSETREF(M.stream, Py_NewRef(stream));
    Py_RETURN_NONE;
}

int start_making(void)
{
    M.pipeline = PyUnicode_InternFromString("pipeline");
    M.made_engine = PyUnicode_InternFromString("_made_engine");
    M.default_ = PyUnicode_InternFromString("_default");
    return M.pipeline == NULL || M.made_engine == NULL || M.default_ == NULL ? -1 : 0;
}
