"""CPU time, modules and memory of an import, against PyTorch: each in fresh processes, taken in turn.

Two lines for each: the import alone, and the import with a first use of `nn` and of an operator, which mindtorch_v2 imports only then.

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
{use}
used = time.process_time() - start
print(json.dumps([used, len(sys.modules), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


USES = {"import": "", "import, nn, ones(2) + 1": "{module}.nn.Linear; {module}.ones(2) + 1"}
LIMIT = 0.15


def sample(module: str, use: str) -> list[float]:
    """[CPU seconds, modules, peak MiB] of importing a module in a fresh process."""
    code = CODE.format(module=module, use=use.format(module=module))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    names = ("mindtorch_v2", "torch")
    for name in names:  # fill the page cache and write byte code
        sample(name, USES["import, nn, ones(2) + 1"])
    for label, use in USES.items():
        taken: dict[str, list[list[float]]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in names:
                taken[name].append(sample(name, use))
        medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in taken.items()}
        print(f"{label:26} {'CPU time':>10} {'modules':>8} {'peak memory':>12}")
        for name, (seconds, modules, mebibytes) in medians.items():
            print(f"  {name:24} {seconds * 1000:7.0f} ms {modules:8.0f} {mebibytes:8.0f} MiB")
        ratios = [a / b for a, b in zip(medians["mindtorch_v2"], medians["torch"])]
        mark = "" if use else f"  ok (limit {LIMIT})" if ratios[0] <= LIMIT else f"  above {LIMIT}"
        print(f"  {'ratio':24} {ratios[0]:10.2f} {ratios[1]:8.2f} {ratios[2]:12.2f}{mark}\n")


if __name__ == "__main__":
    main()
