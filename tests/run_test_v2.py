"""Run pytest with `import torch` served by mindtorch_v2: `python tests/run_test_v2.py [pytest arguments]`.

Test modules that say `import torch`, such as those of transformers, then test mindtorch_v2.
"""

from __future__ import annotations

import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"


def main(argv: list[str]) -> int:
    """Install the proxy and hand over to pytest; the exit status is pytest's."""
    if SOURCE.is_dir():
        sys.path.insert(0, str(SOURCE))
    from mindtorch_v2._torch_proxy import install

    install()
    import pytest

    return int(pytest.main(argv))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
