"""Plans: what a program would cost, in operations, traffic and memory, found by running it on the meta device.

`plan` is public as `mindtorch_v2.plan`. The rest: `costs` (what the schema's `flops:` are written with), `values` (masks and lengths that a program decides by),
`recorder` (watches the operators), `result` (the plan and its tables), `page` (the same with drawings), `command` (`python -m mindtorch_v2 plan`).
"""

from __future__ import annotations

from .run import measure, plan

__all__ = ["measure", "plan"]
