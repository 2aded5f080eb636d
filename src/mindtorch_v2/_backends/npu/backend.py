"""Makes NPUs usable to the dispatcher, when there are any."""

from __future__ import annotations

from ..._dispatch import backends, dispatcher
from . import is_available, unavailable_reason

__all__: list[str] = []


class _NPU:
    """The backend. Its parts are imported with the first tensor on a device."""

    def __init__(self) -> None:
        from ._leases import undisturbed
        from .combined import find
        from .copies import copy, to_host
        from .creation import empty, place
        from .plans import connect, quick
        from .run import run, run_into, supports

        self.empty, self.place, self.copy, self.to_host = (
            undisturbed(empty),
            place,
            undisturbed(copy),
            undisturbed(to_host),
        )
        self.run, self.run_into, self.supports = undisturbed(run), undisturbed(run_into), supports
        self.combine = find
        connect()
        dispatcher.QUICK[:] = [quick]


if not is_available():
    raise RuntimeError(f"npu: {unavailable_reason()}")
backends.register("npu", _NPU())
