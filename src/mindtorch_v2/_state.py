"""What is active in a thread, and the one set that fast paths look at.

Note [The special state]
`PLAIN` holds the tensor classes that generated fast paths may treat without asking further questions. While something
special is active in any thread (a default device, a function mode, autocast, pipeline, saved-tensor hooks) the set is
empty, so the one membership test that a fast path makes anyway answers both questions. The dispatcher then looks at the
thread's own state.
"""

from __future__ import annotations

import threading
from typing import Any

PLAIN: set[type] = set()
_plain_classes: set[type] = set()
_lock = threading.Lock()
_special = 0


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
    autocast: Any = None  # the amp module's record of what is enabled
    pipeline: Any = None  # the recorder of the active pipelines; see _dispatch/pipeline/
    observer: Any = None  # see _dispatch/observer.py


TLS = ThreadState()


def register_plain(cls: type) -> None:
    """Let fast paths treat `cls` as a plain tensor class."""
    with _lock:
        _plain_classes.add(cls)
        if not _special:
            PLAIN.add(cls)


def enter_special() -> None:
    """Send every call to the dispatcher until the matching `leave_special`."""
    global _special
    with _lock:
        _special += 1
        PLAIN.clear()


def leave_special() -> None:
    """End one `enter_special`."""
    global _special
    with _lock:
        _special -= 1
        if not _special:
            PLAIN.update(_plain_classes)


def run_recorded() -> None:
    """Run what a pipeline of this thread has recorded: called before anything that can tell whether it has run."""
    if TLS.pipeline is not None:
        TLS.pipeline.flush()


def is_plain_class(cls: type) -> bool:
    """Whether `cls` is a class without behaviour of its own, special state or not."""
    return cls in _plain_classes
