"""What an operation asks of a GPU: launches, bytes, multiplications, and a lower bound of the time that these take.

A launch is counted for each operation that writes something, whatever number of kernels PyTorch starts for it; the
sorted writes of deterministic algorithms are counted as what they are. The bound is that of a roofline for an H100.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

BYTES_PER_S = 2.8e12
# By what is multiplied: halves, attention's halves, float32.
HALVES_PER_S, ATTENTION_PER_S, FLOATS_PER_S = 700e12, 450e12, 50e12
LAUNCH_S = 2e-6
# Writes to places that tensors name. Deterministic ones sort the places first (aten/native/cuda/Indexing.cu).
SORTED = frozenset(
    ["index_put", "index_put_", "_index_put_impl_", "index_copy", "index_copy_", "index_add", "index_add_"]
)
SORTED_LAUNCHES = 12
# They read as much as they write, not all that they are given.
GATHERS = frozenset(["embedding", "index", "index_select", "gather", "_unsafe_index"])
# PyTorch's own list (torch.use_deterministic_algorithms), of what a language model may ask for.
NEVER_DETERMINISTIC = frozenset(["put_", "histc", "kthvalue", "nll_loss2d_forward"])
RUNNING_SUMS = frozenset(["cumsum", "cumsum_"])


@dataclass(frozen=True)
class Kernel:
    """An operation of PyTorch's."""

    func: Any
    name: str
    overload: str
    is_mutable: bool
    is_composite: bool


@dataclass
class Launched:
    """By the name of the operation."""

    times: Counter[str] = field(default_factory=Counter)
    num_bytes: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    # Storages of which a copy of the whole is counted.
    watched: frozenset[int] = frozenset()
    num_whole_copies: int = 0

    def count(self, kernel: Kernel, given: Sequence[Tensor], found: Any, args: Sequence[Any]) -> None:
        results = [
            each for each in (found if isinstance(found, (list, tuple)) else [found]) if isinstance(each, Tensor)
        ]
        if not kernel.is_mutable and (kernel.name.startswith(("empty", "new_empty")) or is_view(given, results)):
            return
        launches = 1
        num_bytes = sum(map(size_of, given)) + sum(
            size_of(each) for each in results if all(each is not g for g in given)
        )
        if kernel.name in GATHERS:
            num_bytes = 2 * sum(map(size_of, results))
        elif kernel.name in SORTED:
            written = next((each for each in reversed(args) if isinstance(each, Tensor)), given[-1])
            launches, num_bytes = self._sorted(kernel, args, size_of(given[0]), 3 * size_of(written))
        self._watch(given, results)
        self.add(kernel.name, given, launches, num_bytes, multiplications(kernel.name, args))

    def add(self, name: str, given: Sequence[Tensor], launches: int, num_bytes: float, work: float) -> None:
        at_most = ATTENTION_PER_S if "attention" in name else HALVES_PER_S
        if any(each.dtype == torch.float32 for each in given[:3]):
            at_most = FLOATS_PER_S
        self.times[name] += launches
        self.num_bytes[name] += int(num_bytes)
        self.seconds[name] += max(num_bytes / BYTES_PER_S, work / at_most) + LAUNCH_S * launches

    def _sorted(self, kernel: Kernel, args: Sequence[Any], table_bytes: int, num_bytes: int) -> tuple[int, int]:
        if not torch.are_deterministic_algorithms_enabled():
            return 1, num_bytes
        if "index_put" in kernel.name and are_scattered(args[1]):
            # All of the table is transposed into a copy, and back.
            self.num_whole_copies += 1
            return SORTED_LAUNCHES + 2, num_bytes + 4 * table_bytes
        return SORTED_LAUNCHES, num_bytes

    def _watch(self, given: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        for each in given:
            storage = each.untyped_storage()
            is_whole = storage._cdata in self.watched and size_of(each) >= storage.nbytes()
            if is_whole and any(size_of(result) >= size_of(each) and result is not each for result in results):
                self.num_whole_copies += 1


def is_view(given: Sequence[Tensor], results: Sequence[Tensor]) -> bool:
    """Or a number alone."""
    storages = {each.untyped_storage()._cdata for each in given}
    return all(each.untyped_storage()._cdata in storages for each in results)


def size_of(tensor: Tensor) -> int:
    return tensor.numel() * tensor.itemsize


def are_scattered(indices: Sequence[Tensor | None]) -> bool:
    """The indexed dimensions are no neighbours."""
    places = [place for place, index in enumerate(indices) if index is not None]
    return len(places) > 1 and places != list(range(places[0], places[-1] + 1))


def multiplications(name: str, args: Sequence[Any]) -> float:
    """And additions."""
    if name in ("mm", "addmm", "addmm_"):
        left, right = args[:2] if name == "mm" else args[1:3]
        return 2.0 * left.shape[0] * left.shape[1] * right.shape[1]
    if name in ("bmm", "baddbmm"):
        left, right = args[:2] if name == "bmm" else args[1:3]
        return 2.0 * left.shape[0] * left.shape[1] * left.shape[2] * right.shape[2]
    if "_attention" in name:
        is_backward = "backward" in name
        query, key = args[1:3] if is_backward else args[:2]
        return (10.0 if is_backward else 4.0) * query.numel() * key.shape[2]
    return 0.0


def refuse(name: str, args: Sequence[Any], kwargs: dict[str, Any], given: Sequence[Tensor]) -> None:
    """As CUDA's kernels do."""
    if not torch.are_deterministic_algorithms_enabled():
        return
    dtype = kwargs.get("dtype") or given[0].dtype if given else torch.long
    if name in NEVER_DETERMINISTIC or (name in RUNNING_SUMS and dtype.is_floating_point):
        raise RuntimeError(f"{name} does not have a deterministic implementation on CUDA")
