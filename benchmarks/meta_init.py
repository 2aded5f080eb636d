"""Building large models on the meta device, against PyTorch: time, and the memory that it adds to a process.

    python benchmarks/meta_init.py [--rounds 5]

transformers' AutoModelForCausalLM.from_config under torch.device("meta"), for Llama's 7 and 405 billion parameters. Each measurement is a fresh process
that has built the model of two layers before; mindtorch_v2 is served as torch by its proxy.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

CODE = """
import gc, json, time
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

def resident():
    with open("/proc/self/statm") as text:
        return int(text.read().split()[1]) * 4096 / 2**20

def build(**sizes):
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(LlamaConfig(**sizes))

sizes = dict({sizes})
build(**dict(sizes, num_hidden_layers=2))
gc.collect()
before, start = resident(), time.process_time()
model = build(**sizes)
used = time.process_time() - start
assert all(p.is_meta for p in model.parameters())
print(json.dumps([used, resident() - before, sum(p.numel() for p in model.parameters())]))
"""
MODELS = {
    "Llama 7B": {
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 32000,
    },
    "Llama 405B": {
        "hidden_size": 16384,
        "intermediate_size": 53248,
        "num_hidden_layers": 126,
        "num_attention_heads": 128,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    },
}
TIME_LIMIT = 1.0
MEMORY_LIMIT = 20  # MiB, for the model of 7 billion parameters
RUNNERS = {"mindtorch_v2": ("-W", "ignore", "-m", "mindtorch_v2", "-c"), "torch": ("-W", "ignore", "-c")}


def sample(library: str, sizes: dict[str, int]) -> list[float]:
    """[CPU seconds, MiB added, parameters] of building a model in a fresh process."""
    code = CODE.replace("{sizes}", repr(sizes))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *RUNNERS[library], code], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for name, sizes in MODELS.items():
        taken: dict[str, list[list[float]]] = {library: [] for library in RUNNERS}
        for _ in range(rounds):
            for library in RUNNERS:
                taken[library].append(sample(library, sizes))
        medians = {library: [statistics.median(column) for column in zip(*rows)] for library, rows in taken.items()}
        count = int(medians["mindtorch_v2"][2])
        assert count == medians["torch"][2], "the models have different sizes"
        print(f"{f'{name}, {count:,} parameters':38} {'CPU time':>10} {'memory added':>13}")
        for library, (seconds, mebibytes, _) in medians.items():
            print(f"  {library:36} {seconds * 1000:7.0f} ms {mebibytes:9.1f} MiB")
        ratio = medians["mindtorch_v2"][0] / medians["torch"][0]
        added = medians["mindtorch_v2"][1]
        marks = [f"ok (limit {TIME_LIMIT})" if ratio <= TIME_LIMIT else f"above {TIME_LIMIT}"]
        if name == "Llama 7B":
            marks.append(
                f"memory ok (limit {MEMORY_LIMIT} MiB)" if added <= MEMORY_LIMIT else f"above {MEMORY_LIMIT} MiB"
            )
        print(f"  {'ratio':36} {ratio:10.2f}  {', '.join(marks)}\n")


if __name__ == "__main__":
    main()
