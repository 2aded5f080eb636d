"""Programs of operators from the whole schema give the same in a pipeline as without one: elements bit for bit, geometry, memory that is shared,
versions, history, gradients, errors and random numbers.

`PROGRAMS=10000` runs more of them than a usual run. A seed draws nine tenths, Hypothesis the others.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from _pipeline_drawing import draw_program
from _pipeline_programs import (
    Program,
    smallest_problem,
)
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from strategies import Picker

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


@pytest.mark.parametrize("share", range(SHARES))
def test_seeded_programs(share: int) -> None:
    for number in range(share, PROGRAMS - PROGRAMS // 10, SHARES):
        check(draw_program(Picker(random.Random(f"program {number}").randint), LINES))


@st.composite
def programs(draw: Any) -> Program:
    """Programs that are half as long, so that Hypothesis does not run out of choices."""
    return draw_program(Picker(lambda low, high: draw(st.integers(low, high))), LINES // 2)


def test_explored_programs() -> None:
    @SETTINGS
    @given(programs())
    def explore(program: Program) -> None:
        check(program)

    explore()
