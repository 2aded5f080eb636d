/* Pipeline mode in the extension: recording pointwise calls on contiguous float tensors, and running a flush that is one chain of them. All else
 * is left to `_dispatch/pipeline/`, whose objects these functions make and read.
 */
#ifndef MINDTORCH_PIPELINE_H
#define MINDTORCH_PIPELINE_H

#include "blocks.h"

/* What recording needs of an operator that a function stands for. */
typedef struct {
    PyObject *op;
    const Blocked *blocked; /* its loops */
    PyObject *blocks;       /* the tuple of their records */
    const char *roles;      /* of the parameters, as in fast.c */
    int params, numbers, is_view;
    PyObject *fast; /* the kernel of its fast path, or NULL */
} Recordable;

/* The recorder of this thread's pipelines (a new reference), or NULL: there is none, something else is special too, or an exception. */
INTERNAL PyObject *pipeline_recorder(void);

/* Whether only such calls wait as cannot fail whatever their elements are. */
INTERNAL int recorder_is_careful(PyObject *recorder);
/* Makes real a tensor, and those of a list or tuple, that may be pending; -1 with what their operators raised. */
INTERNAL int settle_argument(PyObject *argument);

/* The pending tensor of a call; NULL without an exception declines. `history`: whether an operand may have one. */
INTERNAL PyObject *pipeline_record(PyObject *recorder, const Recordable *call, PyObject *const *bound, int *history);

/* Operator and geometry of the arguments (a new reference); NULL declines. */
INTERNAL PyObject *recall_key(PyObject *recorder, const Recordable *call, PyObject *const *bound);
/* The pending tensor of a call whose like was recorded before; of a view without its base and history. NULL without an exception declines. */
INTERNAL PyObject *recall(PyObject *recorder, const Recordable *call, PyObject *key, PyObject *const *bound, int *history);
/* Remembers what the dispatcher recorded for a call. */
INTERNAL void recall_learn(PyObject *recorder, const Recordable *call, PyObject *key, PyObject *const *bound, PyObject *result);

/* Parts of recording. `make_entry` takes over `args`, `append_entry` the entry, of which it returns the pending tensor. */
INTERNAL int is_recorded_tensor(PyObject *object); /* of a class that is recorded without further questions */
INTERNAL int read_dims(PyObject *tuple, int *ndim, npy_intp *dims);
INTERNAL int is_dense(int ndim, const npy_intp *dims, const npy_intp *strides);
INTERNAL int recorder_has_room(PyObject *recorder, npy_intp nbytes);
INTERNAL PyObject *make_entry(PyObject *recorder, PyObject *op, PyObject *args, PyObject *fast, PyObject *spec, PyObject *shape, PyObject *stride,
                              PyObject *kind);
INTERNAL PyObject *append_entry(PyObject *recorder, PyObject *entry);

INTERNAL PyObject *connect_pipeline(PyObject *module, PyObject *args, PyObject *kwargs);
INTERNAL PyObject *run_chain(PyObject *module, PyObject *entries);
INTERNAL PyObject *run_rows(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* Slots of the classes of `_pending` and `_dispatch/pipeline/values`. */
typedef struct {
    int ready;
    PyTypeObject *recorder, *entry, *pending, *storage, *spec, *block, *window;
    PyObject *recorded; /* the set of Note [The special state] */
    PyObject *specs;    /* the dict of recall.c */
    PyObject *homes;    /* what the paths of this package's files begin with */
    PyObject *settled;  /* the function of `_pending` */
    PyObject *zero, *run, *pipeline, *lasti, *empty;
    Py_ssize_t pending_shape, pending_stride, pending_dtype, pending_offset, pending_storage, pending_settled;
    Py_ssize_t storage_value, storage_device, storage_writes;
    Py_ssize_t value_dtype, value_error, value_holder, value_kept, value_payload, value_recorder, value_shape, value_step, value_stride;
    Py_ssize_t entry_args, entry_block, entry_code, entry_fast, entry_form, entry_op, entry_parts, entry_pipe, entry_place, entry_spec, entry_target, entry_where;
    Py_ssize_t spec_shape, spec_dtype, spec_stride, spec_compute;
    Py_ssize_t window_value, window_shape, window_stride, window_dtype, window_offset;
    Py_ssize_t block_opcode, block_operands;
    Py_ssize_t recorder_entries, recorder_pipes, recorder_bytes, recorder_max_ops, recorder_max_bytes, recorder_foreign,
        recorder_careful;
} Pipeline;

extern INTERNAL Pipeline P;

/* Whether pipelines are all that is special, so that what is no call to record may take its short cut. */
static inline int is_recording(void)
{
    return P.ready && PySet_GET_SIZE(P.recorded) != 0;
}

#endif
