"""Where the storages of a file go: tags such as "cpu" and "npu:0", and what `map_location` makes of them."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

from .._device import STANDS_FOR, device, placed
from .._storage import MetaStorage, UntypedStorage

_registry: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """Teach `save` and `load` a kind of device.

    tagger: the tag of a storage, or None for one of another device. deserializer: a storage in CPU memory and a tag to the storage on that
    device, or None for another one's tag. Lower priorities are asked first.
    """
    bisect.insort(_registry, (priority, tagger, deserializer), key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """The tag of a storage. RuntimeError when no registered device knows it."""
    for _, tagger, _ in _registry:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {_kind(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage brought to where its tag says. RuntimeError when no registered device knows the tag."""
    for _, _, deserializer in _registry:
        moved = deserializer(storage, location)
        if moved is not None:
            return moved
    raise RuntimeError(f"don't know how to restore data location of {_kind(storage)} (tagged with {location})")


def _kind(storage: Any) -> str:
    cls = UntypedStorage if isinstance(storage, UntypedStorage) else type(storage)
    return f"{cls.__module__}.{cls.__qualname__}"


def restorer(map_location: Any) -> Callable[[Any, str], Any]:
    """The function that brings a storage with its tag to its place: `torch.load`'s argument in all its forms."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        target = map_location.decode("ascii") if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, target)
    if isinstance(map_location, device):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def restore(storage: Any, location: str) -> Any:
        moved = map_location(storage, location)
        return default_restore_location(storage, location) if moved is None else moved

    return restore


def validate_cuda_device(location: str) -> int:
    """RuntimeError: there is no CUDA device."""
    raise RuntimeError(
        "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a "
        "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
    )


def _is(kind: str) -> Callable[[Any], str | None]:
    return lambda storage: kind if storage.device.type == kind else None


def _to_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _to_cuda(storage: Any, location: str) -> Any:
    if not location.startswith("cuda"):
        return None
    return storage.to(device=placed(location)) if "cuda" in STANDS_FOR else validate_cuda_device(location)


def _to_meta(storage: Any, location: str) -> Any:
    if location != "meta":
        return None
    return storage if storage.device.type == "meta" else MetaStorage(storage.nbytes())


register_package(10, _is("cpu"), _to_cpu)
register_package(20, _is("cuda"), _to_cuda)


def _npu_location(storage: Any) -> str | None:
    return str(storage.device) if storage.device.type == "npu" else None


def _to_npu(storage: Any, location: str) -> Any:
    return storage.to(device=location) if location.startswith("npu") else None


register_package(21, _npu_location, _to_npu)
register_package(22, _is("meta"), _to_meta)
