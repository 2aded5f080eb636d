"""What is active in a thread, and the one set that fast paths look at.

Note [The special state]
`PLAIN` holds the tensor classes that generated fast paths may treat without asking further questions. While something
special is active in any thread (a default device, a function mode, pipeline, saved-tensor hooks) the set is
empty, so the one membership test that a fast path makes anyway answers both questions. The dispatcher then looks at the
thread's own state. While pipelines are all that is special, `RECORDED` holds the classes instead: what a thread records, if it has a
pipeline, needs no further questions either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from . import _forks

PLAIN: set[type] = set()
RECORDED: set[type] = set()
SPECS: dict = {}
"""What rules have said of calls that pipelines recorded, by operator and geometry of the arguments. See `forget_rules`."""
FORGETTERS: list[Callable[[], Any]] = []
"""What else remembers answers of rules: called when they are cleared."""
WAITING: list[Callable[[], Any]] = []
"""What runs that a device has left for later; see `run_recorded`."""
DISPATCHING: set[type] = set()
"""The classes that take over operators by `__torch_dispatch__`; see _dispatch/below.py."""
serves_torch = False
"""Whether the module `torch` is this library: what is pickled then bears PyTorch's names, and PyTorch reads it."""
SPARSE: set[str] = set()
"""The sparse layouts that there are tensors of; see _dispatch/sparse.py."""
PROFILED: set = set()
"""The recordings of profilers that are on, in any thread; see _profiling/recording.py."""
_plain_classes: set[type] = set()
_lock = _forks.lock()
_special = 0
_everywhere = 0  # the part of it that is of no thread
_pipelines = 0


class ThreadState(threading.local):
    """State of one thread; the class attributes are what a new thread starts with."""

    grad_enabled: bool = True
    inference: bool = False
    default_device: Any = None  # of set_default_device
    device_stack: tuple = ()  # of `with torch.device(...)`: each with the default that was set outside of it
    function_modes: tuple = ()
    torch_function_enabled: bool = True
    saved_tensor_hooks: tuple = ()
    anomaly: bool = False
    backward_pass: Any = None  # the pass that is walked in Python
    hooks_refusal: str | None = None  # why saved-tensor hooks must not be entered
    whole_backward: bool = True  # whether all backward passes that are running go to every leaf
    final_callbacks: tuple = ()  # to be called at the end of the backward pass that is running
    autocast: Any = None  # the amp module's record of what is enabled
    pipeline: Any = None  # the recorder of the active pipelines; see _dispatch/pipeline/
    recorder: Any = None  # that recorder, kept for the thread's next pipeline
    observer: Any = None  # see _dispatch/observer.py
    profiler: Any = None  # the recording of this thread's profiler; see _profiling/recording.py
    exporting: Any = None  # what records a program for `torch.export`; see export/_recording.py
    attention_backends: Any = None  # those that `sdpa_kernel` allows, by number; None for all
    tangents: Any = None  # of the dual level that is entered; see _autograd/forward.py
    special: int = 0  # how often this thread is in `_special`
    inferring: int = 0  # how many inference modes it has entered, where the extension counts those of all threads
    casting: int = 0  # the same of autocasts
    transforms: int = 0  # how many function transforms are running a function
    dispatch_modes: tuple = ()  # see _dispatch/below.py
    # of which tensors a rule wants that no gradient is wanted, while it is shown geometries
    undifferentiable: list | None = None


TLS = ThreadState()


def forget_rules() -> None:
    """Forget what rules have said: they may say something else from now on."""
    SPECS.clear()
    for forget in FORGETTERS:
        forget()


def register_plain(cls: type) -> None:
    """Let fast paths treat `cls` as a plain tensor class."""
    with _lock:
        _plain_classes.add(cls)
        _show_classes()


def _show_classes() -> None:
    PLAIN.clear()
    RECORDED.clear()
    if not _special:
        (RECORDED if _pipelines else PLAIN).update(_plain_classes)


def enter_special(everywhere: bool = False) -> None:
    """Send every call to the dispatcher until the matching `leave_special`. everywhere: for what is of no thread, and stays in a forked child."""
    global _special, _everywhere
    with _lock:
        _special += 1
        if everywhere:
            _everywhere += 1
        else:
            TLS.special += 1
        _show_classes()


def leave_special(everywhere: bool = False) -> None:
    """End one `enter_special`."""
    global _special, _everywhere
    with _lock:
        _special -= 1
        if everywhere:
            _everywhere -= 1
        else:
            TLS.special -= 1
        _show_classes()


def special_only_by(count: int) -> bool:
    """Whether no more than so many `enter_special`, and no pipeline, make the state special."""
    return _special == count and not _pipelines


def runs_plainly(cls: type) -> bool:
    """Whether nothing but pipelines and profilers may be special for tensors of a class: what is no operator, and writes to memory, need not ask anything else."""
    return cls in PLAIN or cls in RECORDED or (_special == len(PROFILED) > 0 and cls in _plain_classes)


def enter_pipeline() -> None:
    """`enter_special` of a pipeline."""
    global _pipelines
    with _lock:
        _pipelines += 1
        if _pipelines == 1:
            _show_classes()


def leave_pipeline() -> None:
    """End one `enter_pipeline`."""
    global _pipelines
    with _lock:
        _pipelines -= 1
        if not _pipelines:
            _show_classes()


@_forks.in_child
def _count_again() -> None:
    """Of the threads that something was special in, one is left."""
    global _special, _pipelines
    _special = _everywhere + TLS.special
    _pipelines = int(TLS.pipeline is not None)
    _show_classes()


def run_recorded() -> None:
    """Run what a pipeline of this thread has recorded, or a device left for later: called before anything that can tell whether it has run."""
    if TLS.pipeline is not None:
        TLS.pipeline.flush()
    for settle in WAITING:
        settle()


def is_plain_class(cls: type) -> bool:
    """Whether `cls` is a class without behaviour of its own, special state or not."""
    return cls in _plain_classes
