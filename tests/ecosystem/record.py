"""Record what PyTorch gives for the programs: in an environment with PyTorch and the libraries, `python tests/ecosystem/record.py`. It writes values.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from outcomes import outcomes  # noqa: E402

if __name__ == "__main__":
    import torch

    if "mindtorch" in torch.__version__:
        raise SystemExit("the values are PyTorch's, and this torch is mindtorch_v2")
    import deeper
    import further
    import models
    import sundry
    import tools
    import wider

    file = HERE / "values.json"
    values = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    programs = models.PROGRAMS | tools.PROGRAMS | further.PROGRAMS | wider.PROGRAMS | deeper.PROGRAMS | sundry.PROGRAMS
    for name in sys.argv[1:] or programs:
        values[name] = outcomes(programs[name])
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(values[name])}" for name in sorted(values))
    file.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
