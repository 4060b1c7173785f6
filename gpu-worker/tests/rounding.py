"""Other roundings: products and sums are added up in another order, as another processor's kernels would.

`TEMPER_ROUNDING=SEED` cuts the inner dimension of each float32 or float64 product, and the summed dimension of each sum
and mean, at a place that its length and the seed decide. PyTorch's own kernels compute both parts, which are then
added. So a process stays repeatable and a row's bits do not depend on its neighbours, as on a processor; from seed to
seed the last bits differ. Attention's kernel, elementwise functions and bfloat16 stay as they are.
"""

import os
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import torch
from torch import Tensor

VARIABLE = "TEMPER_ROUNDING"
Kernel = Callable[..., Tensor]
# Kept for the life of the process: what is registered ends with it.
_libraries: list[torch.library.Library] = []


def perturb_rounding() -> None:
    """As the environment says, before any tensor is computed."""
    seed = os.environ.get(VARIABLE)
    if seed is None or _libraries:
        return
    library = torch.library.Library("aten", "IMPL")
    for name, kernel in _perturbed(seed).items():
        library.impl(name, kernel, "CPU", with_keyset=True)
    _libraries.append(library)


def _perturbed(seed: str) -> dict[str, Kernel]:
    mm, addmm, bmm, baddbmm, total = map(_kernel, ("mm", "addmm", "bmm", "baddbmm", "sum.dim_IntList"))
    summed = _sum(total, seed)
    return {
        "mm": _product(mm, seed),
        "bmm": _product(bmm, seed),
        "addmm": _added(addmm, mm, seed),
        "baddbmm": _added(baddbmm, bmm, seed),
        "sum.dim_IntList": summed,
        "mean.dim": _mean(_kernel("mean.dim"), summed),
    }


def _kernel(name: str) -> Kernel:
    return torch.library.get_kernel(f"aten::{name}", "CPU").call_boxed


def _cut(seed: str, tensor: Tensor, dimension: int) -> tuple[int, int] | None:
    """Lengths of both parts; None for what stays whole."""
    return _parts(seed, tensor.shape[dimension]) if tensor.dtype in (torch.float32, torch.float64) else None


@cache
def _parts(seed: str, length: int) -> tuple[int, int] | None:
    if length < 2:
        return None
    at = Random(f"{seed}/{length}").randint(1, length - 1)
    return at, length - at


def _product(product: Kernel, seed: str) -> Kernel:
    def compute(keys: Any, left: Tensor, right: Tensor) -> Tensor:
        cut = _cut(seed, left, -1)
        if cut is None:
            return product(keys, left, right)
        (a, b), (c, d) = left.split(cut, -1), right.split(cut, -2)
        return product(keys, a, c) + product(keys, b, d)

    return compute


def _added(added: Kernel, product: Kernel, seed: str) -> Kernel:
    """β·first + α·(left @ right)"""

    def compute(keys: Any, first: Tensor, left: Tensor, right: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
        cut = _cut(seed, left, -1)
        if cut is None:
            return added(keys, first, left, right, beta=beta, alpha=alpha)
        (a, b), (c, d) = left.split(cut, -1), right.split(cut, -2)
        return added(keys, first, a, c, beta=beta, alpha=alpha).add_(product(keys, b, d), alpha=alpha)

    return compute


def _sum(total: Kernel, seed: str) -> Kernel:
    def compute(
        keys: Any, tensor: Tensor, dims: list[int] | None, keepdim: bool = False, dtype: torch.dtype | None = None
    ) -> Tensor:
        dimension = max(dims or range(tensor.dim()), key=lambda each: tensor.shape[each], default=0)
        cut = _cut(seed, tensor, dimension) if tensor.dim() and dtype in (None, tensor.dtype) else None
        if cut is None:
            return total(keys, tensor, dims, keepdim, dtype=dtype)
        first, second = (total(keys, part, dims, keepdim) for part in tensor.split(cut, dimension))
        return first + second

    return compute


def _mean(mean: Kernel, summed: Kernel) -> Kernel:
    def compute(
        keys: Any, tensor: Tensor, dims: list[int] | None, keepdim: bool = False, dtype: torch.dtype | None = None
    ) -> Tensor:
        if not tensor.is_floating_point() or dtype not in (None, tensor.dtype) or tensor.numel() == 0:
            return mean(keys, tensor, dims, keepdim, dtype=dtype)
        found = summed(keys, tensor, dims, keepdim)
        return found / (tensor.numel() // max(found.numel(), 1))

    return compute
