"""The former place of functions of `torch.hub`, and of the progress bar that it showed."""

from __future__ import annotations

from typing import Any

from ..hub import _get_torch_home, load_state_dict_from_url, load_state_dict_from_url as load_url  # noqa: F401  (names of the former place)

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    try:
        from tqdm import tqdm  # type: ignore[import-not-found]  (an extra of the program's own)
    except ImportError as error:
        raise AttributeError(f"{__name__}.tqdm is tqdm's, which is not installed", name=name) from error
    return tqdm
