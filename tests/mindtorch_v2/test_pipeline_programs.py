"""Programs of operators from the whole schema give the same in a pipeline as without one: elements bit for bit, geometry, memory that is shared,
versions, history, gradients, errors and random numbers.

`PROGRAMS=10000` runs more of them than a usual run. A seed draws nine tenths, Hypothesis the others.
"""

from __future__ import annotations

import os
import random
import re
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from _pipeline_drawing import ROWS, draw_program
from _pipeline_programs import (
    Program,
    leaves,
    smallest_problem,
)
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from strategies import Picker, Row, draw_case, seeded
from strategies.outcomes import ERRORS

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import ops
from mindtorch_v2._dispatch.pipeline import schedule
from mindtorch_v2._dispatch.pipeline.recorder import Recorder
from mindtorch_v2._dispatch.pipeline.values import Value

PROGRAMS = int(os.environ.get("PROGRAMS", "300"))
SHARES = 10
"""Tests that the seeded programs are spread over."""
LINES = 20
SETTINGS = settings(
    max_examples=max(PROGRAMS // 10, 1),
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),  # failing programs are made small line by line
    suppress_health_check=list(HealthCheck),
)


def check(program: Program) -> None:
    problem = smallest_problem(program)
    assert problem is None, problem


def apart(function: Callable[[], Any]) -> Any:
    """What a function gives in a thread, which has no pipeline of its own: the programs say where theirs begin."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result()


@pytest.mark.parametrize("share", range(SHARES))
def test_seeded_programs(share: int) -> None:
    def run() -> None:
        for number in range(share, PROGRAMS - PROGRAMS // 10, SHARES):
            check(draw_program(Picker(random.Random(f"program {number}").randint), LINES))

    apart(run)


@st.composite
def programs(draw: Any) -> Program:
    """Programs that are half as long, so that Hypothesis does not run out of choices."""
    return draw_program(Picker(lambda low, high: draw(st.integers(low, high))), LINES // 2)


def test_explored_programs() -> None:
    @SETTINGS
    @given(programs())
    def explore(program: Program) -> None:
        check(program)

    apart(explore)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_every_operator_with_a_kernel_is_recorded(device: str) -> None:
    """Composites call others; views of what is there, and shapes that the data decide, have nothing to wait for."""
    rows = [
        row for row in ROWS if row.is_ruled and not row.is_inplace and not {"view", "data_dependent"} & set(row.tags)
    ]
    never = {row.name for row in rows if not any(_is_recorded(row, number, device) for number in range(40))}
    assert len(rows) > 400
    assert not never


def _is_recorded(row: Row, number: int, device: str) -> bool:
    case = draw_case(seeded(f"{row.name}{number}", valid=True), row)
    positional, keywords = case.build(torch, device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.pipeline():
                made = list(leaves(getattr(ops, row.base_name)(*positional, **keywords)))
                return bool(made) and all(tensor._pending for tensor in made)
        except ERRORS:
            return False


def test_programs_come_from_the_whole_schema() -> None:
    def draw() -> str:
        pickers = [Picker(random.Random(f"program {number}").randint) for number in range(600)]
        return "\n".join(draw_program(pick, LINES).show() for pick in pickers)

    text = apart(draw)
    called = set(re.findall(r"ops\.(\w+?)_?\(", text))
    names = {row.base_name.rstrip("_") for row in ROWS}
    assert len(called & names) > 0.9 * len(names)
    for mark in (
        "out=",
        "del ",
        ".backward()",
        ".tolist()",
        "fuse=False",
        "max_ops=",
        "device='meta'",
        "] = ",
        "manual_seed",
    ):
        assert mark in text, mark


FAULTS = {
    "readers are not waited for": (Recorder, "before_write", lambda self, payload: None),
    "random numbers are drawn late": (Recorder, "flush_random", lambda self: None),
    "writes to views are forgotten": (schedule, "root_of", lambda item: item),
    "what others hold is not kept": (Value, "is_held", lambda self: False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_made_small(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs are worth their time: with a fault in the pipeline, some of a few hundred fail, and few lines are left of them."""
    monkeypatch.setattr(*FAULTS[fault])

    def find() -> str | None:
        for number in range(2000):
            program = draw_program(Picker(random.Random(f"program {number}").randint), LINES)
            try:
                problem = smallest_problem(program)
            except Exception as error:  # noqa: BLE001 (a fault may break the comparison itself)
                problem = repr(error)
            if problem is not None:
                return problem
        return None

    problem = apart(find)
    assert problem is not None
    assert len(problem.splitlines()) < 60
