"""Attention over a tree for stock models, as a transformers attention function: block by block, or in one kernel on a
GPU that has one (tree_kernel.py).

Shapes: H heads, D head size, T tokens of the row, Q queries and K keys of a block.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_utils import AttentionInterface

from temper_gpu.training.packing import Block, SegmentTree, block_keys, plan_blocks
from temper_gpu.training.tree_kernel import Kernel, attend_in_one, block_mask

# Name of this attention in a model's config. transformers makes no masks for an attention that it does not know.
TREE_ATTENTION = "temper_tree"

Held = TypeVar("Held")


@dataclass(frozen=True)
class TreePlan:
    tree: SegmentTree
    # Windows by layer.
    windows: list[int | None]
    # Eager attention computes blocks if a model has more than scores and a mask (sinks, caps).
    is_eager: bool
    # Whether the backward pass recomputes layers.
    is_recomputed: bool
    # The kernel for all blocks at once.
    kernel: Kernel | None = None
    # Tensors that all layers share, recomputed ones included.
    _held: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def held(self, key: object, make: Callable[[], Held]) -> Held:
        if key not in self._held:
            self._held[key] = make()
        return self._held[key]

    @cached_property
    def blocks(self) -> dict[int | None, tuple[Block, ...]]:
        return {window: plan_blocks(self.tree, window) for window in set(self.windows)}


def tree_attention(
    module: Any,
    query_1HTD: Tensor,
    key_1HTD: Tensor,
    value_1HTD: Tensor,
    _attention_mask: object,
    scaling: float,
    tree_plan: TreePlan,
    **options: Any,
) -> tuple[Tensor, None]:
    window = tree_plan.windows[module.layer_idx]
    if tree_plan.kernel is not None:
        make_mask = partial(block_mask, tree_plan.tree, window, query_1HTD.shape[2], query_1HTD.device)
        mask = tree_plan.held(("kernel", window), make_mask)
        return attend_in_one(tree_plan.kernel, query_1HTD, key_1HTD, value_1HTD, mask, scaling), None
    blocks = tree_plan.blocks[window]
    sizes = [len(block) for block in blocks]
    # A single node of the graph splits all pieces: separate slices would each add a gradient of the whole row.
    queries, keys, values = (tensor.split(sizes, 2) for tensor in (query_1HTD, key_1HTD, value_1HTD))
    outputs = []
    for index, block in enumerate(blocks):
        seen = (*block.before, index)
        make = Mask(tree_plan.tree, blocks, block, window, query_1HTD.dtype, query_1HTD.device)
        mask = make if make.device.type in REMADE_ON else HeldMask(make, tree_plan, ("mask", index, window))
        given = queries[index], [keys[at] for at in seen], [values[at] for at in seen]
        if tree_plan.is_eager:
            outputs.append(_eager(module, *given, mask, scaling, options))
        else:
            outputs.append(_fused(*given, mask, scaling, tree_plan.is_recomputed))
    return torch.cat(outputs, 1), None


def attend_tree(
    kernel: Kernel | None, tree: SegmentTree, window: int | None, query: Tensor, key: Tensor, value: Tensor
) -> Tensor:
    plan = TreePlan(tree, [window], False, False, kernel=kernel)
    return tree_attention(SimpleNamespace(layer_idx=0), query, key, value, None, query.shape[-1] ** -0.5, plan)[0]


AttentionInterface.register(TREE_ATTENTION, tree_attention)


# Masks of all blocks would take as much memory as their scores if a CPU kept them. A GPU keeps them once for all
# layers, at a few bytes per token, because making one takes many kernels or a copy that it waits for.
REMADE_ON = ("cpu",)
# Alignment of a mask's rows, in numbers: GPU kernels copy masks with other row starts.
ALIGNED_KEYS = 8


@dataclass(frozen=True)
class Mask:
    """A mask that is made each time it is read."""

    tree: SegmentTree
    blocks: tuple[Block, ...]
    block: Block
    window: int | None
    dtype: torch.dtype
    device: torch.device

    @property
    def is_causal(self) -> bool:
        """True if the device's causal kernel can replace the mask."""
        return self.block.is_causal

    def make(self) -> Tensor:
        """A mask that is added to scores. Without a window, a query sees all keys of the blocks before its own."""
        keys_K = block_keys(self.blocks, self.block)
        hidden = torch.finfo(self.dtype).min
        padding = 0 if self.device.type in REMADE_ON else -len(keys_K) % ALIGNED_KEYS
        queries_Q = torch.arange(self.block.start, self.block.stop)
        added_QK = torch.zeros(len(queries_Q), len(keys_K) + padding, dtype=self.dtype)[:, : len(keys_K)]
        first = 0 if self.window is not None else len(keys_K) - len(self.block)
        added_QK[:, first:].masked_fill_(~self.tree.mask_QK(queries_Q, keys_K[first:], self.window), hidden)
        return _whole_rows(added_QK, padding).to(self.device)[None, None, :, : len(keys_K)]


def _whole_rows(sliced_QK: Tensor, padding: int) -> Tensor:
    """Includes the padding between rows, so that a copy keeps their alignment."""
    num_rows, width = sliced_QK.shape
    return sliced_QK.as_strided((num_rows, width + padding), (width + padding, 1))


@dataclass(frozen=True)
class HeldMask:
    """A mask that is made once."""

    mask: Mask
    plan: TreePlan
    key: object

    @property
    def is_causal(self) -> bool:
        return self.mask.is_causal

    def make(self) -> Tensor:
        return self.plan.held(self.key, self.mask.make)


def _eager(
    module: nn.Module,
    query: Tensor,
    keys: list[Tensor],
    values: list[Tensor],
    mask: "Mask | HeldMask",
    scaling: float,
    options: dict[str, Any],
) -> Tensor:
    attend: Callable[..., tuple[Tensor, Tensor]] = sys.modules[type(module).__module__].eager_attention_forward
    return attend(module, query, torch.cat(keys, 2), torch.cat(values, 2), mask.make(), scaling=scaling, **options)[0]


def _fused(
    query: Tensor,
    keys: list[Tensor],
    values: list[Tensor],
    mask: "Mask | HeldMask",
    scaling: float,
    is_recomputed: bool,
) -> Tensor:
    """Gathers keys and values again in the backward pass, block by block: copies for all blocks would need more memory
    than the tokens."""
    if is_recomputed:
        # Recomputed layers keep tensors by hooks of their own, and hooks do not nest. These release tensors that are
        # arguments, but not those in lists.
        again: Any = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
        return again(partial(_attend, mask, scaling, None), query, *keys, *values)
    kept = Kept()
    with torch.autograd.graph.saved_tensors_hooks(kept.pack, kept.unpack):
        return _attend(mask, scaling, kept, query, *keys, *values)


class Kept:
    """Tensors that the backward pass makes again instead of keeping them."""

    def __init__(self) -> None:
        self._makers: dict[int, Callable[[], Tensor]] = {}

    def made(self, make: Callable[[], Tensor]) -> Tensor:
        tensor = make()
        self._makers[tensor.data_ptr()] = make
        return tensor

    def pack(self, tensor: Tensor) -> Tensor | Callable[[], Tensor]:
        """GPU kernels may keep a view: that of a mask for all heads."""
        make = self._makers.get(tensor.data_ptr())
        return tensor if make is None else partial(_as_view, make, tensor.size(), tensor.stride())

    @staticmethod
    def unpack(packed: Tensor | Callable[[], Tensor]) -> Tensor:
        return packed if isinstance(packed, Tensor) else packed()


def _as_view(make: Callable[[], Tensor], size: torch.Size, stride: tuple[int, ...]) -> Tensor:
    return make().as_strided(size, stride)


def _attend(
    mask: "Mask | HeldMask", scaling: float, kept: Kept | None, query: Tensor, *keys_and_values: Tensor
) -> Tensor:
    made = Kept().made if kept is None else kept.made
    half = len(keys_and_values) // 2
    pieces = keys_and_values[:half], keys_and_values[half:]
    num_repeats = query.shape[1] // keys_and_values[0].shape[1]
    key, value = (made(partial(_joined, of_one, num_repeats)) for of_one in pieces)
    added = None if mask.is_causal else made(mask.make)
    out = F.scaled_dot_product_attention(query, key, value, added, scale=scaling, is_causal=added is None)
    return out.transpose(1, 2)


def _joined(pieces: tuple[Tensor, ...], num_repeats: int) -> Tensor:
    joined = pieces[0] if len(pieces) == 1 else torch.cat(pieces, 2)
    return joined if num_repeats == 1 else joined.repeat_interleave(num_repeats, 1)
