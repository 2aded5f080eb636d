"""`torch.__config__`: how the library was built, in words."""

from __future__ import annotations

import platform

import numpy

from . import version
from ._threads import get_num_threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The parts of the library and their versions, one a line. No BLAS of PyTorch's, MKL or CUDA is among them."""
    return (
        f"mindtorch_v2 {version.__version__} with:\n"
        f"  - Python {platform.python_version()}\n"
        f"  - numpy {numpy.__version__}\n"
        "  - Build settings: USE_CUDA=OFF, USE_MKL=OFF, USE_MKLDNN=OFF, USE_OPENMP=OFF, USE_DISTRIBUTED=OFF\n"
    )


def parallel_info() -> str:
    """How many threads there are."""
    return f"Parallel:\n\tget_num_threads() : {get_num_threads()}\n"


def _cxx_flags() -> str:
    """No flags: nothing of PyTorch's in C++ was compiled."""
    return ""
