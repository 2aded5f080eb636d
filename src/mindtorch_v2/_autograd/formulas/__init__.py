"""The functions that derivatives of the schema call where an expression does not do.

They are written with public operators, so that a derivative can itself be differentiated. One module per family of
operators; each names in `__all__` what schema entries may call.
"""

# ruff: noqa: F403 (the modules' __all__ say what is meant)
from __future__ import annotations

from .fft import *
from .fused import *
from .indexing import *
from .linalg import *
from .loss import *
from .matmul import *
from .nn import *
from .pointwise import *
from .recurrent import *
from .reduction import *
from .shape import *
from .sparse import *
from .view import *
from .vision import *
