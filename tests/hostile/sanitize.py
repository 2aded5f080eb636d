"""The extension and the emulator under sanitizers, with hostile files and calls: `sanitize.py [FILES [CALLS [THREADED CALLS]]]`, as `make sanitize` runs it.

AddressSanitizer and UndefinedBehaviorSanitizer see the files, the calls (a tenth of them with tensors on the emulated NPU), and loops that are spread over threads;
ThreadSanitizer sees calls of four threads, and those loops. Ends with 1 where one of them has something to say.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from build import build, environment

HERE = Path(__file__).parent
JOBS = int(os.environ.get("JOBS", "2"))


def run(kind: str, *arguments: str, **variables: str) -> bool:
    """Run a program of this folder under a sanitizer; whether it ended without a word of it."""
    place = build(kind, JOBS)
    done = subprocess.run(
        [sys.executable, str(HERE / arguments[0]), *arguments[1:]],
        env=environment(kind, place) | variables,
        capture_output=True,
        text=True,
    )
    said = [line for line in done.stderr.splitlines() if "runtime error" in line or "Sanitizer: " in line]
    print(kind, " ".join([*arguments, *variables]), done.stdout.strip()[-2000:], flush=True)
    if done.returncode or said:
        print(done.stderr[-20_000:], file=sys.stderr)
    return not done.returncode and not said


def main(files: int = 300, calls: int = 1500, threaded: int = 600) -> int:
    npu = {"MINDTORCH_NPU_EMULATOR": "1", "HOSTILE_DEVICE": "npu"}
    good = [
        run("address", "files.py", "1", str(files)),
        run("address", "calls.py", "a", str(calls)),
        run("address", "calls.py", "n", str(calls // 10), **npu),
        run("address", "threads.py", str(5 + threaded // 50)),
        run("thread", "calls.py", "t", str(threaded), "4"),
        run("thread", "calls.py", "u", str(threaded // 10), "4", **npu),
        run("thread", "threads.py", str(5 + threaded // 50)),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
