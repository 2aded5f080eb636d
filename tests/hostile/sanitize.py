"""The extension and the emulator under sanitizers, with hostile files and calls: `sanitize.py [FILES [CALLS [THREADED CALLS]]]`, as `make sanitize` runs it.

AddressSanitizer and UndefinedBehaviorSanitizer see the files, the calls (a tenth of them with tensors on the emulated NPU), and loops that are spread over threads;
ThreadSanitizer sees calls of four threads, and those loops. Ends with 1 where one of them has something to say.

Work is done in slices, each a process of its own, and what is done stands in `build/sanitize/done.json`: `RESUME=1` goes on from there, `MINUTES=60` ends after so many minutes with what came
of it so far.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from build import ROOT, build, environment

HERE = Path(__file__).parent
JOBS = int(os.environ.get("JOBS", "2"))
DONE = ROOT / "build" / "sanitize" / "done.json"
SLICE_SECONDS = 1800
NPU = {"MINDTORCH_NPU_EMULATOR": "1", "HOSTILE_DEVICE": "npu"}


class Part:
    """A program of this folder under a sanitizer, which takes a seed and a range of numbers."""

    def __init__(
        self, kind: str, program: str, seed: str, count: int, slice_: int, *more: str, **variables: str
    ) -> None:
        self.kind, self.program, self.seed, self.count, self.slice = kind, program, seed, count, slice_
        self.more, self.variables = more, variables
        self.name = " ".join([kind, program, seed, *more, *variables.values()])

    def run(self, first: int, end: int) -> dict[str, Any]:
        """What came of a slice: the program's counts, and what it or the sanitizer found wrong."""
        place = build(self.kind, JOBS)
        command = [sys.executable, str(HERE / self.program), self.seed, f"{first}:{end}", *self.more]
        try:
            done = subprocess.run(
                command,
                env=environment(self.kind, place) | self.variables,
                capture_output=True,
                text=True,
                timeout=SLICE_SECONDS,
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            code, out = -1, ""
            err = (late.stderr or b"").decode(errors="replace") + f"\nhangs: more than {SLICE_SECONDS} s"
        said = [line for line in err.splitlines() if "runtime error" in line or "Sanitizer: " in line]
        try:
            found = json.loads(out.strip().splitlines()[-1])
        except (IndexError, ValueError):
            found = {}
        problems = [*found.get("problems", []), *found.get("failures", []), *said]
        if code and not problems:
            problems = [f"ended with {code}"]
        if problems:
            print(err[-20_000:], file=sys.stderr, flush=True)
        outcomes = found.get("outcomes") or found.get("rounds") or {}
        reached = max(
            (int(line[1:]) + 1 for line in err.splitlines() if line[:1] == "@" and line[1:].isdigit()), default=end
        )
        return {"outcomes": outcomes, "problems": problems, "reached": end if found else max(reached, first + 1)}


def parts(files: int, calls: int, threaded: int) -> list[Part]:
    return [
        Part("address", "files.py", "1", files, 1000),
        Part("address", "further.py", "1", files // 10, 500),
        Part("address", "calls.py", "a", calls, 1000),
        Part("address", "calls.py", "n", calls // 10, 500, "1", **NPU),
        Part("address", "extremes.py", "e", calls // 5, 1000),
        Part("address", "threads.py", "r", 5 + threaded // 50, 40),
        Part("thread", "calls.py", "t", threaded, 400, "4"),
        Part("thread", "calls.py", "u", threaded // 10, 200, "4", **NPU),
        Part("thread", "threads.py", "r", 5 + threaded // 50, 40),
    ]


def main(files: int = 300, calls: int = 1500, threaded: int = 600) -> int:
    until = time.monotonic() + 60 * float(os.environ.get("MINUTES", "inf"))
    state: dict[str, Any] = {}
    if os.environ.get("RESUME") == "1" and DONE.exists():
        state = json.loads(DONE.read_text())
    DONE.parent.mkdir(parents=True, exist_ok=True)
    todo = parts(files, calls, threaded)
    for part in todo:
        state.setdefault(part.name, {"reached": 0, "outcomes": {}, "problems": [], "seconds": 0})
    while time.monotonic() < until:
        # The one that is least far, so that all have had their share when the time is over.
        part = min(todo, key=lambda part: state[part.name]["reached"] / part.count)
        have = state[part.name]
        if have["reached"] >= part.count:
            break
        first, begun = have["reached"], time.monotonic()
        found = part.run(first, min(first + part.slice, part.count))
        have["outcomes"] = dict(Counter(have["outcomes"]) + Counter(found["outcomes"]))
        have["problems"] += found["problems"]
        have["reached"] = found["reached"]
        have["seconds"] = round(have["seconds"] + time.monotonic() - begun)
        DONE.write_text(json.dumps(state))
        print(f"{part.name}: {have['reached']} of {part.count}", *found["problems"][:5], sep="\n  ", flush=True)
    print()
    for part in todo:
        have = state[part.name]
        print(
            f"{part.name}: {have['reached']} of {part.count} in {have['seconds']} s, {len(have['problems'])} problems; {have['outcomes']}"
        )
    good = all(not state[part.name]["problems"] and state[part.name]["reached"] >= part.count for part in todo)
    print("nothing found" if good else "not all done, or not all well", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
