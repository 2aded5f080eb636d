"""What operators do to whole batches of examples, by the words of their entries: `vmap: product(self, mat2, 2, 2)`.

Each function takes the level, and the arguments as the examples show them; what is batched there has the whole batch as `_value`. It returns the
result as the examples show it, or None where they are to run one by one, which also says what is wrong with their arguments. Where an operator is
made of others, those are called with the batched tensors themselves. Each module names in `__all__` what entries may call.
"""

# ruff: noqa: F403 (the modules' __all__ say what is meant)
from __future__ import annotations

from .images import *
from .indices import *
from .layers import *
from .losses import *
from .products import *
from .reductions import *
from .refusals import *
from .views import *
