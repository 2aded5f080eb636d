/* NPUs: memory that is lent (leases.c), launches (launching.c), and calls whose launch is known (launched.c). */
#ifndef MINDTORCH_NPU_H
#define MINDTORCH_NPU_H

#include "fast.h"

typedef struct {
    int ready;
    PyTypeObject *block, *payload, *storage;
    Py_ssize_t at_address, at_size, at_requested, at_segment, at_previous, at_next, at_allocated, at_cached, at_uses, at_events, at_born, at_frames; /* Block */
    Py_ssize_t at_stream, at_small;                                   /* Segment */
    Py_ssize_t at_free, at_calls;                                     /* Pool */
    Py_ssize_t at_shape, at_stride, at_dtype, at_offset, at_storage;  /* NpuPayload */
    Py_ssize_t at_where, at_index, at_nbytes, at_lease;               /* NpuStorage */
    Py_ssize_t at_handle;                                             /* Stream */
    PyObject *plans;      /* dict: key of a call -> Planned, or None where there is no plan */
    PyObject *later;      /* (operator, arguments, key): a call that has none yet */
    PyObject *failed;     /* (operator, arguments, result, function, phase, status): raises */
    PyObject *workspace;  /* (operator, function, device, stream, bytes): a lease */
    PyObject *devices, *streams; /* the threads' devices, and their streams by device: `threading.local` */
    PyObject *begins; /* the operators that a composition may begin with: a set */
    PyObject *device_name, *streams_name;
} Npu;

extern INTERNAL Npu N;

/* Memory of the shelf's device, a new reference to a Lease. */
INTERNAL PyObject *lease_of(PyObject *shelf, long long nbytes, PyObject *stream);
/* The address of a lease; 0 for None. -1 with an exception for something else. */
INTERNAL long long address_of_lease(PyObject *lease);

typedef struct Launcher Launcher;
/* What the second phase works in: a lease for so many bytes. */
typedef PyObject *(*Workspace)(const void *context, uint64_t size);
/* Both phases. `numbers`: (address, offset, stored elements) of each tensor. 0; -1 with an exception; else the phase that failed, with its status. `shape`: of a
 * tensor that the function gives one, or NULL. */
INTERNAL int launch_phases(Launcher *self, void *stream, const int64_t *numbers, Workspace workspace, const void *context, int32_t *status, PyObject **shape);
INTERNAL int launcher_tensors(const Launcher *self);

/* The result of a call by its plan; NULL without an exception declines. */
INTERNAL PyObject *run_launched(const Path *path, const Bound *bound);
INTERNAL PyObject *launched(PyObject *module, PyObject *const *args, Py_ssize_t count);
INTERNAL PyObject *connect_npu(PyObject *module, PyObject *args, PyObject *kwargs);
INTERNAL PyObject *disconnect_npu(PyObject *module, PyObject *unused);

extern INTERNAL PyTypeObject ShelfType, LeaseType, CallsType, PlannedType;

#endif
