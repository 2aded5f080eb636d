"""Saves one checkpoint after the other in a folder, every other one in the background, and says which are complete; goes on from what is there."""

import itertools
import sys
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp

folder = Path(sys.argv[1])
start = 0
if (folder / ".metadata").exists():
    state = {"step": 0}
    dcp.load(state, checkpoint_id=folder)
    start = state["step"]
for step in itertools.count(start + 1):
    state = {"step": step, "x": torch.full((300, 100), float(step)), "y": torch.full((7,), -float(step))}
    if step % 2:
        dcp.save(state, checkpoint_id=folder)
    else:
        dcp.async_save(state, checkpoint_id=folder).result()
    print(step, flush=True)
