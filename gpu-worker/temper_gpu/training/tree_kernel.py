"""Attention over a tree in one kernel on a GPU: PyTorch's FlexAttention, compiled by Triton.

Compilation takes seconds for each row length, so rows are padded to powers of two. Padding costs little, because the
kernel skips blocks of keys that no query of a block sees. A row below the shortest length has few blocks and stays with
them (tree_attention.py).

Shapes: H heads, D head size, T tokens of the row, S of the padded row, N blocks of it.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from temper_gpu.model.memory import is_out_of_memory
from temper_gpu.training.packing import Segment, SegmentTree

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

# The signature of FlexAttention: queries, keys and values, with a block mask.
Kernel = Callable[..., Any]
SHORTEST = 2048
# Queries and keys of one block of the mask.
BLOCK = 128
# Compiled variants: lengths, windows and models, each with and without a gradient. Beyond this limit PyTorch would
# compute all scores.
MOST_KERNELS = 64
# Largest relative difference to the gradient of the blocks. Both round to bfloat16 (measured: 0.006).
FAR = 0.03

log = logging.getLogger(__name__)

Attend = Callable[[Kernel | None, SegmentTree, int | None, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Heads:
    num_queries: int
    num_keys: int
    size: int
    dtype: torch.dtype
    device: torch.device


def padded_length(num_tokens: int) -> int:
    return max(SHORTEST, 1 << (num_tokens - 1).bit_length())


def is_long_enough(num_tokens: int) -> bool:
    return 2 * num_tokens > SHORTEST


def attend_in_one(
    kernel: Kernel, query_1HTD: Tensor, key_1HTD: Tensor, value_1HTD: Tensor, mask: "BlockMask", scaling: float
) -> Tensor:
    """[1, T, H, D]."""
    num_tokens = query_1HTD.shape[2]
    padding = padded_length(num_tokens) - num_tokens
    padded = (F.pad(tensor, (0, 0, 0, padding)) for tensor in (query_1HTD, key_1HTD, value_1HTD))
    attended_1HSD = kernel(*padded, block_mask=mask, scale=scaling, enable_gqa=key_1HTD.shape[1] != query_1HTD.shape[1])
    return attended_1HSD[:, :, :num_tokens].transpose(1, 2)


def block_mask(tree: SegmentTree, window: int | None, num_tokens: int, device: torch.device) -> "BlockMask":
    """Lists full and partial blocks; for partial ones the kernel checks each token."""
    from torch.nn.attention.flex_attention import BlockMask

    length = padded_length(num_tokens)
    # Padding sees itself, so that no query sees nothing.
    ends_S = torch.arange(1, length + 1)
    ends_S[:num_tokens] = tree.ends_T
    depths_S = F.pad(tree.depths_T, (0, length - num_tokens))
    whole_NN, partly_NN = seen_blocks(ends_S, depths_S, window)
    lists = [of.to(device) for blocks_NN in (partly_NN, whole_NN) for of in _as_lists(blocks_NN)]
    sees = _sees(ends_S.int().to(device), depths_S.int().to(device), window)
    return BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=BLOCK, mask_mod=sees, seq_lengths=(length, length))


def seen_blocks(ends_S: Tensor, depths_S: Tensor, window: int | None) -> tuple[Tensor, Tensor]:
    """Blocks of queries × blocks of keys."""
    ends_NB, depths_NB = ends_S.unflatten(0, (-1, BLOCK)), depths_S.unflatten(0, (-1, BLOCK))
    first_N = torch.arange(0, len(ends_S), BLOCK)
    last_N1 = first_N[:, None] + BLOCK - 1
    earlier_NN = first_N < first_N[:, None]
    seen_NN = earlier_NN & (ends_NB.amax(1) > first_N[:, None])
    whole_NN = earlier_NN & (ends_NB.amin(1) > last_N1)
    if window is not None:
        # Partial blocks may turn out empty; the kernel checks each token.
        seen_NN &= depths_NB.amin(1)[:, None] < depths_NB.amax(1) + window
        whole_NN &= depths_NB.amax(1)[:, None] < depths_NB.amin(1) + window
    own_NN = torch.eye(len(first_N), dtype=torch.bool)
    return whole_NN, (seen_NN | own_NN) & ~whole_NN


def _as_lists(blocks_NN: Tensor) -> tuple[Tensor, Tensor]:
    """Counts of each row, and its block numbers first."""
    which_NN = torch.argsort(blocks_NN.int(), dim=1, descending=True, stable=True)
    return blocks_NN.sum(1, dtype=torch.int32)[None, None], which_NN.int()[None, None]


def _sees(ends_S: Tensor, depths_S: Tensor, window: int | None) -> Callable[..., Tensor]:
    def sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) & (query < ends_S[key])

    if window is None:
        return sees
    near = window

    def sees_near(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) & (query < ends_S[key]) & (depths_S[query] < depths_S[key] + near)

    return sees_near


@cache
def _compiled() -> Kernel:
    import torch._dynamo.config
    import torch._inductor.config
    from torch.nn.attention.flex_attention import flex_attention

    torch._dynamo.config.recompile_limit = max(MOST_KERNELS, torch._dynamo.config.recompile_limit)
    # In-process compilation: a few kernels are not worth a pool of processes.
    torch._inductor.config.compile_threads = 1
    return torch.compile(flex_attention, dynamic=False)


def is_capable(heads: Heads) -> bool:
    return heads.device.type == "cuda" and heads.dtype.itemsize == 2


def find_kernel(heads: Heads, windows: Iterable[int | None], attend: Attend) -> Kernel | None:
    """None if blocks compute trees: on a CPU, and in float32 for the CPU's numbers. `attend` computes a tree with a
    kernel, or in blocks without one; the kernel is used if both have the same gradients up to `FAR`."""
    if not is_capable(heads):
        return None

    try:
        far = max(_difference(heads, window, attend) for window in set(windows))
        if far <= FAR:
            return _compiled()
        reason = f"their gradients differ by {far:.2g}"
    except Exception as error:
        # Triton needs a C compiler and lacks some GPUs; PyTorch's compiler raises errors of many types. Lack of memory
        # says nothing about the kernel.
        if is_out_of_memory(error):
            raise
        reason = f"{type(error).__name__}: {str(error)[:300]}"
    log.warning("trees are computed in blocks, FlexAttention does not work here", extra={"reason": reason})
    return None


@torch.enable_grad()
def _difference(heads: Heads, window: int | None, attend: Attend) -> float:
    """Relative difference between the gradients of kernel and blocks, on a small tree."""
    third = SHORTEST // 3
    tree = SegmentTree((Segment(0, 0, third), Segment(0, third, third, 0), Segment(0, 2 * third, third, 0)))
    generator = torch.Generator().manual_seed(0)
    given = [
        torch.randn(1, count, 3 * third, heads.size, generator=generator, dtype=torch.float32)
        .to(heads.device, heads.dtype)
        .requires_grad_()
        for count in (heads.num_queries, heads.num_keys, heads.num_keys)
    ]
    kernels: tuple[Kernel | None, ...] = (_compiled(), None)
    found, wanted = (
        torch.autograd.grad(attend(kernel, tree, window, *given).float().square().sum(), given) for kernel in kernels
    )
    pairs = zip(found, wanted, strict=True)
    return max(float((one.float() - other.float()).norm() / other.float().norm()) for one, other in pairs)
