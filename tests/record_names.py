"""Records from PyTorch where its classes and functions say they are, and a plain pickle of modules: tests/mindtorch_v2/data/places.json, plain_pickle.bin.

make record
"""

from __future__ import annotations

import importlib
import json
import pickle
import types
import warnings
from collections import defaultdict
from pathlib import Path

import torch

DATA = Path(__file__).resolve().parent / "mindtorch_v2" / "data"
MODULES = """
    torch torch.amp torch.autograd torch.autograd.anomaly_mode torch.autograd.forward_ad torch.autograd.function torch.autograd.functional
    torch.autograd.grad_mode torch.autograd.graph torch.distributions torch.distributions.constraints torch.distributions.transforms torch.func
    torch.functional torch.futures torch.fx torch.hub torch.library torch.nn torch.nn.attention torch.nn.functional torch.nn.init
    torch.nn.modules.module torch.nn.parameter torch.nn.utils torch.nn.utils.parametrize torch.nn.utils.prune torch.nn.utils.rnn torch.optim
    torch.optim.lr_scheduler torch.optim.optimizer torch.optim.swa_utils torch.overrides torch.quasirandom torch.random torch.return_types
    torch.serialization torch.signal.windows torch.storage torch.testing torch.torch_version torch.utils._pytree torch.utils._python_dispatch
    torch.utils.checkpoint torch.utils.data torch.utils.data.dataloader torch.utils.data.distributed torch.utils.hooks torch.utils.weak
""".split()


def places() -> dict[str, dict[str, str]]:
    """By module, and by the module that its classes and Python functions say they are of: their names, with blanks between."""
    found: dict[str, dict[str, str]] = {}
    for name in MODULES:
        module = importlib.import_module(name)
        by_place: dict[str, list[str]] = defaultdict(list)
        for member, value in sorted(vars(module).items()):
            if member.startswith("__") or not isinstance(value, type | types.FunctionType):
                continue
            if value.__module__.partition(".")[0] == "torch":
                by_place[value.__module__].append(member)
        found[name] = {place: " ".join(names) for place, names in sorted(by_place.items())}
    return found


def modules() -> torch.nn.Module:
    """Modules whose pickles name functions, hooks and tensors of several kinds."""
    torch.manual_seed(0)
    encoder = torch.nn.TransformerEncoderLayer(4, 2, 8, activation=torch.nn.functional.gelu, batch_first=True)
    made = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.LSTM(4, 2), encoder)
    made.register_buffer("ones", torch.ones(2, dtype=torch.bfloat16))
    made.size, made.where, made.kind = torch.Size([2]), torch.device("cpu"), torch.float64
    made[0].bias.requires_grad_(False)
    return made


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    text = json.dumps(places(), indent=1)
    (DATA / "places.json").write_text(text + "\n", encoding="utf-8")
    (DATA / "plain_pickle.bin").write_bytes(pickle.dumps(modules(), 2))
