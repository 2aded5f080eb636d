"""CPU time, modules and memory of an import, against PyTorch: each in fresh processes, taken in turn.

python benchmarks/import_time.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

CODE = """
import json, resource, sys, time
start = time.process_time()
import {module}
{module}.nn
used = time.process_time() - start
print(json.dumps([used, len(sys.modules), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def sample(module: str) -> list[float]:
    """[CPU seconds, modules, peak MiB] of importing a module in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(module=module)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for name in ("mindtorch_v2", "torch"):  # fill the page cache and write byte code
        sample(name)
    taken: dict[str, list[list[float]]] = {"mindtorch_v2": [], "torch": []}
    for _ in range(rounds):
        for name in taken:
            taken[name].append(sample(name))
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in taken.items()}
    print(f"{'':14} {'CPU time':>10} {'modules':>8} {'peak memory':>12}")
    for name, (seconds, modules, mebibytes) in medians.items():
        print(f"{name:14} {seconds * 1000:7.0f} ms {modules:8.0f} {mebibytes:8.0f} MiB")
    ratios = [a / b for a, b in zip(medians["mindtorch_v2"], medians["torch"])]
    print(f"{'ratio':14} {ratios[0]:10.2f} {ratios[1]:8.2f} {ratios[2]:12.2f}")


if __name__ == "__main__":
    main()
