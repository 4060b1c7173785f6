"""Peak memory of a computation: the bytes that its tensors allocate are counted."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


def peak_bytes(compute: Callable[[], object]) -> int:
    """Peak bytes of the tensors that `compute` makes. Earlier tensors do not count."""
    with LiveBytes() as live:
        compute()
    return live.most


class LiveBytes(TorchDispatchMode):
    """Bytes of live storages, which several tensors may share, from their creation until they are freed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._held: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        new = [storage for storage in _storages(made) if storage._cdata not in self._held]
        if new:
            # A view, or what was changed in place.
            given = {storage._cdata for storage in _storages((args, kwargs))}
            for storage in new:
                if storage._cdata not in given | self._held:
                    self._hold(storage)
        return made

    def _hold(self, storage: Any) -> None:
        key, num_bytes = storage._cdata, storage.nbytes()
        self._held.add(key)
        self.now += num_bytes
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._free, key, num_bytes)

    def _free(self, key: int, num_bytes: int) -> None:
        self._held.discard(key)
        self.now -= num_bytes


def _storages(values: Any) -> Iterator[Any]:
    """Storages of all tensors among the values of an operation. Torch's `tree_leaves` is slower."""
    if isinstance(values, Tensor):
        yield values.untyped_storage()
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _storages(value)
    elif isinstance(values, dict):
        yield from _storages(list(values.values()))
