"""A store for `init_process_group("fake", store=FakeStore(), rank=..., world_size=...)`, a group of any size in one process."""

from __future__ import annotations

from ....distributed import HashStore


class FakeStore(HashStore):
    """A store that no other process has."""
