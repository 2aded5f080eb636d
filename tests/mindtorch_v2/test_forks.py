"""Forks and signals at random moments. `FORKS=200`, `DISTURBED=200` make more of them."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from _fresh import run

import mindtorch_v2 as torch
from mindtorch_v2 import _forks, _imports, _state
from mindtorch_v2._dispatch.pipeline.schedule import Step

PROGRAMS = Path(__file__).parent / "programs"
FORKS = int(os.environ.get("FORKS", "3"))
DISTURBED = int(os.environ.get("DISTURBED", "4"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


def test_every_lock_is_guarded() -> None:
    """A lock that no fork knows of may be held for ever in a child."""
    own = {
        "_forks.py",
        "_backends/npu/allocator.py",  # a child cannot use the device, and forgets them by a hook of its own
        "_backends/npu/runtime.py",
        "distributed/_tcp_store.py",  # a child makes its own connection
    }
    made = re.compile(
        r"threading\.(Lock|RLock|Condition|Semaphore)\((?!_forks\.lock)|ThreadPoolExecutor|[^.]\bCondition\(\)"
    )
    source = Path(torch.__file__).parent
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if "_torch_proxy" not in path.parts and made.search(path.read_text(encoding="utf-8"))
    }
    assert found <= own, found - own


def test_forks_of_threads_that_work() -> None:
    done = run([str(PROGRAMS / "forks.py"), str(FORKS), "1"], timeout=600 + 10 * FORKS)
    print(done.stderr)  # where a child hung, as a whole
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["outcomes"] == {"ended": FORKS} and not found["failures"], found
    assert found["grown"] < 16 << 20, found


def test_signals_in_a_first_use() -> None:
    """At random moments, by a timer."""
    for seed in range(DISTURBED):
        done = run([str(PROGRAMS / "signals.py"), str(seed)])
        assert done.returncode == 0, (seed, done.stderr[-2000:])


@pytest.mark.parametrize("how", [[], ["raise"], ["serve"]], ids=["computes", "raises", "as torch"])
def test_signals_at_chosen_instructions_of_a_first_use(how: list[str]) -> None:
    """Of Python's import system, and of the library itself."""
    done = run([str(PROGRAMS / "injected.py"), "1", str(DISTURBED), *how], timeout=600 + 10 * DISTURBED)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert sum(found["places"].values()) == DISTURBED and not found["failed"], found


def in_child(function: object) -> int:
    """The exit status of a forked child that calls a function: 0 where that returns True."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        code = 1
        try:
            code = 0 if function() is True else 2  # type: ignore[operator]
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def test_a_lock_that_is_kept_is_free_in_a_child_which_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_forks, "PATIENCE", 0.2)
    told = []

    class Owner:
        def cut(self) -> None:
            told.append(True)

    owner = Owner()
    lock = _forks.lock(on_cut=owner.cut)
    taken, end = threading.Event(), threading.Event()

    def keep() -> None:
        with lock:
            taken.set()
            end.wait()

    thread = threading.Thread(target=keep)
    thread.start()
    taken.wait()
    assert in_child(lambda: lock.acquire(timeout=0) and told == [True]) == 0
    end.set()
    thread.join()
    assert in_child(lambda: lock.acquire(timeout=0) and told == []) == 0
    with lock:  # the holder itself forks
        assert in_child(lambda: lock.acquire(timeout=0) and told == []) == 0


def test_a_fork_waits_for_what_another_thread_does() -> None:
    lock = _forks.lock()
    seen = [0]
    taken = threading.Event()

    def change() -> None:
        with lock:
            seen[0] += 1
            taken.set()
            time.sleep(0.2)
            seen[0] += 1

    thread = threading.Thread(target=change)
    thread.start()
    taken.wait()
    assert in_child(lambda: seen[0] == 2) == 0
    thread.join()


def test_what_other_threads_entered_is_not_special_in_a_child() -> None:
    plain = bool(_state.PLAIN)
    entered, end = threading.Event(), threading.Event()

    def stay() -> None:
        with torch.device("meta"), torch.autocast("cpu"), torch.inference_mode():
            entered.set()
            end.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    entered.wait()
    try:
        assert not _state.PLAIN
        assert in_child(lambda: bool(_state.PLAIN) is plain) == 0
    finally:
        end.set()
        thread.join()


def test_a_child_that_is_cut_off_from_a_flush_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_forks, "PATIENCE", 0.1)
    begun, end = threading.Event(), threading.Event()
    made: list[torch.Tensor] = []

    def work() -> None:
        with torch.pipeline():
            y = torch.ones(3) * 2
            made.append(y)
            recorder = _state.TLS.pipeline
            with recorder.lock:
                recorder.running = [Step(list(recorder.entries))]
                begun.set()
                end.wait()
                recorder.running = []

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()

    def child() -> bool:
        with pytest.raises(RuntimeError, match="forked while a thread that is gone"):
            made[0].tolist()
        return True

    try:
        assert in_child(child) == 0
    finally:
        end.set()
        thread.join()
    assert made[0].tolist() == [2, 2, 2]


def test_handlers_wait_for_the_outermost_import() -> None:
    came = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    try:

        def outer() -> int:
            os.kill(os.getpid(), signal.SIGUSR1)
            _imports.undisturbed(lambda: os.kill(os.getpid(), signal.SIGUSR1))
            time.sleep(0.01)
            return len(came)

        assert _imports.undisturbed(outer) == 0
        until = time.monotonic() + 5
        while not came and time.monotonic() < until:
            time.sleep(0.01)
        assert came and set(came) == {signal.SIGUSR1}  # two that wait may come as one, as signals do
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_child_imports_what_another_thread_was_importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock, and the half of it that is there, are of a thread that the child does not have."""
    monkeypatch.setattr(_forks, "PATIENCE", 0.1)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "imported_slowly.py").write_text("import time\nBEGUN = True\ntime.sleep(1)\nDONE = True\n")
    thread = threading.Thread(target=importlib.import_module, args=("imported_slowly",))
    thread.start()
    while not hasattr(sys.modules.get("imported_slowly"), "BEGUN"):
        time.sleep(0.01)
    status = in_child(lambda: importlib.import_module("imported_slowly").DONE)
    thread.join()
    assert status == 0
    assert importlib.import_module("imported_slowly").DONE
