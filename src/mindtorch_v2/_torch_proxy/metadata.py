"""Package metadata for `importlib.metadata.version("torch")`."""

from __future__ import annotations

import os
from importlib.metadata import Distribution
from pathlib import Path

import mindtorch_v2


class TorchDistribution(Distribution):
    """The distribution `torch`, or another one that is served with it, in the version with which mindtorch_v2 is compatible."""

    def __init__(self, distribution: str = "torch") -> None:
        self.distribution = distribution

    def read_text(self, filename: str) -> str | None:
        """The text of one metadata file, or None when there is no such file."""
        if filename == "METADATA":
            return (
                "Metadata-Version: 2.1\n"
                f"Name: {self.distribution}\n"
                f"Version: {mindtorch_v2.__version__}\n"
                f"Summary: {self.distribution}, served by mindtorch_v2\n"
            )
        if filename == "top_level.txt":
            return f"{self.distribution}\n"
        return None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Where `path` of the distribution would lie: beside the package mindtorch_v2."""
        return Path(mindtorch_v2.__path__[0]).parent / path
