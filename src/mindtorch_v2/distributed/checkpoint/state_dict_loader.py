"""Loading, under the name by which programs import it."""

from __future__ import annotations

from ._loading import load as load, load_state_dict as load_state_dict

__all__ = ["load", "load_state_dict"]
