/* The module `mindtorch_v2._native`: its types, its kernels by name, and `connect`, which tells it the package's classes. */
#define NATIVE_IMPORTS_NUMPY
#include "../kernels/blas.h"
#include "making.h"
#include "npu.h"
#include "stream.h"
#include "windows.h"

#include "block_interface.h"

static const KernelEntry *const tables[] = {
    view_kernels, reduce_kernels, matmul_kernels, softmax_kernels, norm_kernels, embedding_kernels, loss_kernels, attention_kernels, optim_kernels,
    random_kernels, trial_kernels, draw_kernels, continuous_kernels, creation_kernels, range_kernels, copy_kernels, join_kernels, index_kernels, scatter_kernels, mask_kernels, fourier_kernels, shift_kernels, half_kernels, triangle_kernels,
    pool_kernels, moment_kernels, scan_kernels, bound_kernels, order_kernels, divide_kernels, conv_kernels, channel_kernels,
    resize_kernels, grid_kernels, distance_kernels, byte_product_kernels, special_kernels, rank_kernels, recurrent_kernels, topk_kernels, unique_kernels, pad_kernels, patch_kernels, factor_kernels, eigen_kernels, gate_kernels, inverse_kernels, NULL,
};

const KernelEntry *find_entry(const char *name)
{
    for (const KernelEntry *const *table = tables; *table != NULL; table++) {
        for (const KernelEntry *entry = *table; entry->name != NULL; entry++) {
            if (strcmp(entry->name, name) == 0) {
                return entry;
            }
        }
    }
    return NULL;
}

Kernel find_kernel(const char *name)
{
    const KernelEntry *entry = find_entry(name);
    return entry == NULL ? NULL : entry->call;
}

static PyObject *kernel_names(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *names = PyList_New(0);
    for (const KernelEntry *const *table = tables; names != NULL && *table != NULL; table++) {
        for (const KernelEntry *entry = *table; entry->name != NULL; entry++) {
            PyObject *name = PyUnicode_FromString(entry->name);
            if (name == NULL || PyList_Append(names, name) < 0) {
                Py_XDECREF(name);
                Py_CLEAR(names);
                return NULL;
            }
            Py_DECREF(name);
        }
    }
    return names;
}

/* (name, kinds of the operands, whether the result is bool) of each loop, by its number. */
static PyObject *loops(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *made = PyTuple_New(block_count);
    for (int i = 0; made != NULL && i < block_count; i++) {
        const BlockEntry *entry = &block_entries[i];
        PyObject *row = Py_BuildValue("(ssO)", entry->name, entry->kinds, entry->to_bool ? Py_True : Py_False);
        if (row == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, i, row);
    }
    return made;
}

static int take_type(PyObject *value, PyTypeObject **place)
{
    if (!PyType_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%R is no class", value);
        return -1;
    }
    *place = (PyTypeObject *)Py_NewRef(value);
    return 0;
}

static int widest_vectors(void)
{
#if HAS_WIDE
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
        /* Processors with VBMI2 run long vectors at full clock; the first ones with AVX-512 do not. */
        if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vbmi2")) {
            return 2;
        }
        return 1;
    }
#endif
    return 0;
}

static PyObject *connect(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"tensor",       "rare", "size", "plain",     "tls",     "node",    "accumulate", "saved_output",  "view",
                               "live_node", "keep", "cpu",  "float32", "float64", "bool_",   "int64",      "differentiable", "memory_format", "strided", NULL};
    PyObject *tensor, *rare, *size, *plain, *tls, *node, *accumulate, *saved_output, *view, *live_node, *kept, *cpu, *f32, *f64, *boolean, *i64, *kinds, *memory_format, *strided;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO!OOOOOOOOOOOOO!OO", keywords, &tensor, &rare, &size, &PySet_Type, &plain, &tls, &node,
                                     &accumulate, &saved_output, &view, &live_node, &kept, &cpu, &f32, &f64, &boolean, &i64, &PyTuple_Type,
                                     &kinds, &memory_format, &strided)) {
        return NULL;
    }
    if (S.ready) {
        PyErr_SetString(PyExc_RuntimeError, "the extension is connected already");
        return NULL;
    }
    if (take_type(tensor, &S.tensor) < 0 || take_type(rare, &S.rare) < 0 || take_type(size, &S.size) < 0 || take_type(memory_format, &S.memory_format) < 0 ||
        take_type(node, &S.node) < 0 ||
        take_type(accumulate, &S.accumulate) < 0 || take_type(saved_output, &S.saved_output) < 0) {
        return NULL;
    }
    const Slot of_tensor[] = {{"_payload", &S.at_data}, {"_dtype", &S.at_dtype}, {"_node", &S.at_node},
                              {"_base", &S.at_base}, {"_rare", &S.at_rare},   {NULL, NULL}};
    const Slot of_rare[] = {{"version", &S.at_count}, {"number", &S.at_number},   {"epoch", &S.at_epoch},
                            {"shares", &S.at_shares}, {"grad", &S.at_grad},       {"retains", &S.at_retains},
                            {"multi_view", &S.at_multi_view}, {"inference", &S.at_inference}, {NULL, NULL}};
    const Slot of_node[] = {{"edges", &S.at_edges}, {"saved", &S.at_saved}, {"consts", &S.at_consts}, {"outputs", &S.at_outputs}, {NULL, NULL}};
    const Slot of_saved[] = {{"payload", &S.at_payload}, {"dtype", &S.at_kind},   {"reference", &S.at_reference},
                             {"version", &S.at_saved_version}, {"number", &S.at_saved_number}, {"record", &S.at_record}, {NULL, NULL}};
    if (find_slots(tensor, of_tensor) < 0 || find_slots(rare, of_rare) < 0 || find_slots(node, of_node) < 0 || find_slots(saved_output, of_saved) < 0) {
        return NULL;
    }
    S.differentiable_count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kinds) && i < MAX_DTYPES; i++) {
        S.differentiable[S.differentiable_count++] = Py_NewRef(PyTuple_GET_ITEM(kinds, i));
    }
    S.plain = Py_NewRef(plain);
    S.tls = Py_NewRef(tls);
    S.strided = Py_NewRef(strided);
    S.view = Py_NewRef(view);
    S.live_node = Py_NewRef(live_node);
    S.keep = Py_NewRef(kept);
    S.cpu = Py_NewRef(cpu);
    S.float32 = Py_NewRef(f32);
    S.float64 = Py_NewRef(f64);
    S.bool_ = Py_NewRef(boolean);
    S.int64 = Py_NewRef(i64);
    if (install_attributes(tensor) < 0) {
        return NULL;
    }
    S.ready = 1;
    Py_RETURN_NONE;
}

/* Takes the widest vectors that are at most of a level and that the processor has, and returns their level. */
static PyObject *use_vectors(PyObject *module, PyObject *limit)
{
    (void)module;
    long level = PyLong_AsLong(limit);
    if (level == -1 && PyErr_Occurred()) {
        return NULL;
    }
    int has = widest_vectors();
    S.vectors = level < 0 ? 0 : level < has ? (int)level : has;
    return PyLong_FromLong(S.vectors);
}

/* Lets loops take so many threads, and the BLAS too if asked; returns the number that loops take. */
static PyObject *use_threads(PyObject *module, PyObject *args)
{
    (void)module;
    int count, with_blas;
    if (!PyArg_ParseTuple(args, "ip", &count, &with_blas)) {
        return NULL;
    }
    if (with_blas) {
        use_blas_threads(count);
    }
    return PyLong_FromLong(use_part_threads(count));
}

static PyMethodDef functions[] = {
    {"use_threads", use_threads, METH_VARARGS, "use_threads(count, with_blas): let loops, and the BLAS, take so many threads; returns how many loops take."},
    {"use_vectors", use_vectors, METH_O, "Use vectors of at most a level (0 plain, 1 AVX2, 2 AVX-512); returns the level in use."},
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS, "Tell the extension the classes it works on."},
    {"connect_road", (PyCFunction)(void (*)(void))connect_road, METH_VARARGS | METH_KEYWORDS, "Tell the extension what makes plans."},
    {"connect_meta", (PyCFunction)(void (*)(void))connect_meta, METH_VARARGS | METH_KEYWORDS, "Tell the extension the classes of the meta device."},
    {"connect_npu", (PyCFunction)(void (*)(void))connect_npu, METH_VARARGS | METH_KEYWORDS, "Tell the extension the classes of NPUs."},
    {"disconnect_npu", disconnect_npu, METH_NOARGS, "Launch nothing any more."},
    {"launched", (PyCFunction)(void (*)(void))launched, METH_FASTCALL, "launched(operator, arguments): a call on an NPU by its plan; None where it has none."},
    {"count_modes", count_modes, METH_VARARGS, "Count inference modes and autocasts that are entered, or left: (of inference, of autocast). Returns both counts."},
    {"set_profile", set_profile, METH_O, "Ask a function about each call while something special is active, until None is given."},
    {"forget_plans", forget_plans, METH_NOARGS, "Forget what rules have said: they may say something else now."},
    {"loops", loops, METH_NOARGS, "The loops of the block interpreter by number: name, kinds of operands (T array or number, S number), to bool."},
    {"connect_pipeline", (PyCFunction)(void (*)(void))connect_pipeline, METH_VARARGS | METH_KEYWORDS, "Tell the extension the classes of pipeline mode."},
    {"run_rows", (PyCFunction)(void (*)(void))run_rows, METH_FASTCALL, "Run calls over parts of their operands, one part after the other."},
    {"run_chain", run_chain, METH_O, "Run entries that are one chain; None when they are not."},
    {"kernel_names", kernel_names, METH_NOARGS, "The names of the kernels that are in C: `module.function` of the Python ones."},
    {"empty", (PyCFunction)(void (*)(void))empty_array, METH_FASTCALL, "empty(shape, dtype): an uninitialised array; a large one in kept memory."},
    {"connect_making", (PyCFunction)(void (*)(void))connect_making, METH_VARARGS | METH_KEYWORDS, "Tell the extension the dtypes."},
    {"crc32", crc32_of, METH_VARARGS, "crc32(buffer, start=0): the checksum that zlib.crc32 gives; None where the processor lacks what makes it quick."},
    {"member", (PyCFunction)(void (*)(void))member, METH_FASTCALL, "member(class, name, Python member): what stands before it, or itself."},
    {"connect_casts", connect_casts, METH_VARARGS, "Tell the extension the operator of conversions, and the dtypes by the methods' names."},
    {"connect_module", connect_module, METH_VARARGS, "Stand before nn.Module's attributes and calls."},
    {"adopt_module", adopt_module, METH_O, "Give a new subclass of nn.Module the quick look-up of attributes."},
    {"connect_parameter", connect_parameter, METH_O, "Stand before nn.Parameter's constructor."},
    {"constructor", (PyCFunction)(void (*)(void))constructor, METH_FASTCALL, "constructor(name, function): what stands before it, or itself."},
    {"use_stream", use_stream, METH_O, "Draw from a Stream where no generator is given."},
    {"keep_buffers", keep_buffers, METH_O, "Keep at most so many bytes of freed memory (None: as before; negative: as many as were in use at most and are not now); returns the bytes kept now and at most, and those in use now and at most."},
    {"age_buffers", age_buffers, METH_NOARGS, "Give back memory as if some seconds had passed in which nobody used it."},
    {"running_walks", running_walks, METH_NOARGS, "Numbers of the walks over the tape that run in this thread, the innermost first."},
    {"walk_executes", walk_executes, METH_O, "Whether the innermost walk runs a node; None for a leaf that it only captures."},
    {"walk_remaining", walk_remaining, METH_NOARGS, "The nodes that the innermost walk still runs."},
    {"quick_backward", (PyCFunction)(void (*)(void))quick_backward, METH_FASTCALL, "Tensor.backward of a plain float; False when it is none."},
    {"step_group", step_group, METH_VARARGS, "Step the parameters of an optimizer's group; a list of those that are left."},
    {"connect_again", connect_again, METH_VARARGS, "Tell the extension who puts results away that are computed again."},
    {"connect_engine", connect_engine, METH_VARARGS, "Tell the extension what the walk over the tape calls."},
    {"run_backward", (PyCFunction)(void (*)(void))run_backward, METH_FASTCALL, "Walk the tape; see engine.py."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mindtorch_v2._native",
    .m_doc = "Short cuts for small operations, and kernels that numpy lacks.",
    .m_size = -1,
    .m_methods = functions,
};

static int intern_names(void)
{
    const char *const names[] = {"grad_enabled", "inference", "autocast", "cast", "record", "shape", "dtype"};
    PyObject **const places[] = {&S.grad_enabled, &S.inference, &S.autocast, &S.cast, &S.record, &S.shape, &S.dtype};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *places[i] = PyUnicode_InternFromString(names[i]);
        if (*places[i] == NULL) {
            return -1;
        }
    }
    S.zero = PyLong_FromLong(0);
    S.one = PyLong_FromLong(1);
    return S.zero == NULL || S.one == NULL ? -1 : 0;
}

PyMODINIT_FUNC PyInit__native(void)
{
    import_array();
    import_umath();
    if (intern_names() < 0 || start_making() < 0) {
        return NULL;
    }
    S.descr32 = PyArray_DescrFromType(NPY_FLOAT);
    S.descr64 = PyArray_DescrFromType(NPY_DOUBLE);
    S.descr_bool = PyArray_DescrFromType(NPY_BOOL);
    S.vectors = widest_vectors();
    if (start_buffers() < 0) {
        return NULL;
    }
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) {
        return NULL;
    }
    PyTypeObject *const types[] = {&FastType, &FastMethodType, &RecorderType, &SubscriptType, &CheckedType, &KernelType, &BlockedType, &ProgramType, &StreamType, &LauncherType,
                                   &CallsType, &PlannedType, &ShelfType, &LeaseType};
    int failed = PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0 || PyModule_AddIntConstant(module, "LOOPS", LOOPS_VERSION) < 0
        || PyModule_AddIntConstant(module, "LAUNCHES", LAUNCHES) < 0;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && !failed; i++) {
        failed = PyModule_AddType(module, types[i]) < 0;
    }
    if (failed) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
