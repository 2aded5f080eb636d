"""The former place of `torch.hub.load_state_dict_from_url`."""

from __future__ import annotations

from typing import Any

__all__ = ["load_url"]


def load_url(url: str, *args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError: nothing is downloaded; load a file with `torch.load`."""
    raise NotImplementedError(f"downloading {url} is not implemented: fetch the file and read it with torch.load")


load_state_dict_from_url = load_url
