"""`python -m mindtorch_v2.codegen --schema my_ops/schema --out my_ops/generated`: see Note [Packages of operators] in `codegen/outside.py`."""

from __future__ import annotations

import importlib
import sys

sys.exit(importlib.import_module("mindtorch_v2.codegen.outside").main())
