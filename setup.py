"""The optional C extension; everything else stands in pyproject.toml.

Without a compiler the package is installed all the same and works by numpy alone.
"""

from pathlib import Path

import numpy
from setuptools import Extension, setup

NATIVE = Path("src/mindtorch_v2/_backends/cpu/native")

setup(
    ext_modules=[
        Extension(
            "mindtorch_v2._native",
            sources=sorted(path.as_posix() for path in NATIVE.glob("*.c")),
            depends=sorted(path.as_posix() for path in NATIVE.glob("*.h")),
            include_dirs=[numpy.get_include()],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"],
            optional=True,
        )
    ]
)
