"""Signals at chosen instructions of a first use: `injected.py SEED COUNT [raise] [serve]`. Prints how many children failed, and how, as JSON.

A process that has imported the library, and used nothing of it, forks a child for each signal. A child counts lines and calls of the library, and instructions of Python's
import system, and sends itself a signal at one of them, whose handler computes with tensors (or raises, once). Then everything works, and no module is there twice.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import traceback
from collections import Counter
from types import FrameType, ModuleType
from typing import Any

import mindtorch_v2 as torch

if "serve" in sys.argv:
    from mindtorch_v2._torch_proxy import install

    install()

from signals import PARTS

IMPORTING = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
HERE = os.path.dirname(torch.__file__)
INTERRUPT = signal.getsignal(signal.SIGINT)  # which is ignored in the background of a shell
WINDOW = ("_find_and_load", "_find_and_load_unlocked", "_load_unlocked", "_find_spec", "module_from_spec", "find_spec")
"""Functions of the import system in which a module is neither absent nor there."""


class Disturbance:
    """Sends a signal at the `at`-th event."""

    def __init__(self, at: int, inside: bool) -> None:
        self.at = at
        self.inside = inside  # of the import system, or else anywhere in the library
        self.count = 0
        self.seen: set[tuple] = set()  # lines of the library: each counts once
        self.where = ""

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """The trace function."""
        name = frame.f_code.co_filename
        if name in IMPORTING:
            frame.f_trace_opcodes = self.inside and frame.f_code.co_name in WINDOW
        elif not name.startswith(HERE) or frame.f_code.co_name == "<module>" or self.inside:
            return self.trace if not name.startswith(HERE) else None
        line = frame.f_code, frame.f_lineno, event
        if not self.inside:
            if line in self.seen:
                return self.trace
            self.seen.add(line)
        self.count += 1
        if self.count == self.at:
            sys.settrace(None)
            frame.f_trace = None
            self.where = f"{name.rpartition('/')[2]}:{frame.f_lineno} {frame.f_code.co_name} {event}"
            signal.raise_signal(signal.SIGUSR1)
        return self.trace


def disturbed(at: int, inside: bool, raises: bool, seed: str) -> tuple[int, str]:
    """Use everything for the first time; the number of events, and where the signal came."""
    pick = random.Random(seed)
    order = pick.sample(PARTS, len(PARTS))
    came = 0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        sys.settrace(None)
        if raises:
            raise TimeoutError("disturbed")
        with torch.enable_grad(), torch.inference_mode(False):
            for part in pick.sample(PARTS, 3):
                part()

    signal.signal(signal.SIGUSR1, handler)
    disturbance = Disturbance(at, inside)
    for part in order:
        sys.settrace(disturbance.trace if not disturbance.where else None)
        try:
            part()
        except TimeoutError:
            assert raises
        finally:
            sys.settrace(None)
    assert came == (disturbance.where != ""), came
    assert signal.getsignal(signal.SIGUSR1) is handler
    assert signal.getsignal(signal.SIGINT) is INTERRUPT
    for part in PARTS:
        part()
    check_modules()
    return disturbance.count, disturbance.where


def check_modules() -> None:
    """No module of the library has been run twice."""
    names: Counter[str] = Counter()
    for one in gc.get_objects():
        place = getattr(one, "__file__", None) if type(one) is ModuleType else None
        if place is not None and place.startswith(HERE):
            names[place] += 1
    twice = [name for name, count in names.items() if count > 1]
    assert not twice, twice


def child(at: int, inside: bool, raises: bool, seed: str) -> dict[str, Any]:
    """What `disturbed` says in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        signal.setitimer(
            signal.ITIMER_PROF, 100
        )  # of its own time, and the system's: the machine may have other things to do
        try:
            count, where = disturbed(at, inside, raises, seed)
            said: dict[str, Any] = {"count": count, "where": where}
        except BaseException as error:  # noqa: BLE001 (told)
            sys.settrace(None)
            said = {"failed": "".join(traceback.format_exception(error))[-3000:]}
        os.write(write, json.dumps(said).encode())
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else {"failed": "the process ended"}


def main(seed: int, count: int, raises: bool) -> None:
    """Disturb so many children."""
    pick = random.Random(seed)
    failures = []
    events: dict[bool, int] = {}
    places: Counter[str] = Counter()
    for number in range(count):
        inside = number % 2 == 0
        order = f"{seed} {number // 8}"
        if number % 8 < 2:  # another order of the parts
            first = child(0, inside, raises, order)
            if "failed" in first:
                failures.append(first["failed"])
                break
            events[inside] = first["count"]
        found = child(pick.randrange(1, events[inside] + 1), inside, raises, order)
        if "failed" in found:
            failures.append(found["failed"])
        else:
            places[found["where"].partition(":")[0]] += 1
    print(json.dumps({"events": events, "failed": failures, "places": places}, indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), "raise" in sys.argv)
