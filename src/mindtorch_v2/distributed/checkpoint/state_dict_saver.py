"""Saving, under the name by which programs import it."""

from __future__ import annotations

from ._saving import (
    AsyncCheckpointerType as AsyncCheckpointerType,
    AsyncSaveResponse as AsyncSaveResponse,
    async_save as async_save,
    save as save,
    save_state_dict as save_state_dict,
)

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]
