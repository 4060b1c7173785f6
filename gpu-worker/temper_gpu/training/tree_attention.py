"""Attention over a tree, in the form of transformers' attention functions, with stock models: block by block, or in
one kernel where a GPU has one (tree_kernel.py).

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
from transformers import AttentionInterface

from temper_gpu.training.last_layer import scattered
from temper_gpu.training.packing import Block, SegmentTree, block_keys, plan_blocks
from temper_gpu.training.tree_kernel import Kernel, attend_in_one, block_mask

# By its name in a model's config. transformers makes no masks for an attention that it does not know.
TREE_ATTENTION = "temper_tree"

Held = TypeVar("Held")


@dataclass(frozen=True)
class TreePlan:
    """Of one micro-batch, for all layers of a model."""

    tree: SegmentTree
    # Of each layer.
    windows: list[int | None]
    # What computes a block: transformers' eager attention where a model has more than scores and a mask (sinks, caps).
    is_eager: bool
    # Whether the backward pass computes layers again.
    is_recomputed: bool
    # The tokens whose queries the last layer has, by their places, in order; None: all.
    asking_S: Tensor | None = None
    # What computes all blocks at once.
    kernel: Kernel | None = None
    # Made once for all layers, and for those that are computed again.
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
        # Of all tokens: those that ask nothing are zeros, and have no gradient.
        make_mask = partial(block_mask, tree_plan.tree, window, query_1HTD.shape[2], query_1HTD.device)
        mask = tree_plan.held(("kernel", window), make_mask)
        return attend_in_one(tree_plan.kernel, query_1HTD, key_1HTD, value_1HTD, mask, scaling), None
    blocks = tree_plan.blocks[window]
    sizes = [len(block) for block in blocks]
    # One node of the graph for all pieces: each slice of its own would add a gradient of the whole row.
    queries, keys, values = (tensor.split(sizes, 2) for tensor in (query_1HTD, key_1HTD, value_1HTD))
    asking_S = tree_plan.asking_S if module.layer_idx == len(tree_plan.windows) - 1 else None
    of = (window, asking_S is not None)
    asked = tree_plan.held(("asked", *of), lambda: _asked_blocks(blocks, asking_S, query_1HTD.device))
    outputs = []
    for index, block, asked_Q, places_Q in asked:
        seen = (*block.before, index)
        make = Mask(tree_plan.tree, blocks, block, asked_Q, window, query_1HTD.dtype, query_1HTD.device)
        mask = make if make.device.type in REMADE_ON else HeldMask(make, tree_plan, ("mask", index, *of))
        asking = queries[index] if places_Q is None else queries[index].index_select(2, places_Q)
        given = asking, [keys[at] for at in seen], [values[at] for at in seen]
        if tree_plan.is_eager:
            outputs.append(_eager(module, *given, mask, scaling, options))
        else:
            outputs.append(_fused(*given, mask, scaling, tree_plan.is_recomputed))
    attended_1QHD = torch.cat(outputs, 1)
    if asking_S is None:
        return attended_1QHD, None
    places_S = tree_plan.held("places", lambda: asking_S.to(query_1HTD.device))
    return scattered(attended_1QHD[0], places_S, query_1HTD.shape[2])[None], None


def _asked_blocks(
    blocks: tuple[Block, ...], asking_S: Tensor | None, device: torch.device
) -> list[tuple[int, Block, Tensor, Tensor | None]]:
    """Those with queries: their number, the queries' places in the row and, on the device, in the block; None: all."""
    found = []
    for index, block in enumerate(blocks):
        asked_Q = block.queries_Q(asking_S)
        if len(asked_Q):
            is_whole = len(asked_Q) == len(block)
            found.append((index, block, asked_Q, None if is_whole else (asked_Q - block.start).to(device)))
    return found


def attend_tree(
    kernel: Kernel | None, tree: SegmentTree, window: int | None, query: Tensor, key: Tensor, value: Tensor
) -> Tensor:
    """Of a single layer."""
    plan = TreePlan(tree, [window], False, False, kernel=kernel)
    return tree_attention(SimpleNamespace(layer_idx=0), query, key, value, None, query.shape[-1] ** -0.5, plan)[0]


AttentionInterface.register(TREE_ATTENTION, tree_attention)  # pyright: ignore[reportArgumentType]


# Where the masks of all blocks, kept, would weigh as much as their scores. A GPU holds them once for all layers, a few
# bytes of each token, because to make one takes many kernels there, or a copy that it waits for.
REMADE_ON = ("cpu",)
# Of a row of a mask, in numbers: kernels of GPUs copy a mask whose rows begin anywhere.
ALIGNED_KEYS = 8


@dataclass(frozen=True)
class Mask:
    """Made where it is read."""

    tree: SegmentTree
    blocks: tuple[Block, ...]
    block: Block
    # By their places in the row.
    queries_Q: Tensor
    window: int | None
    dtype: torch.dtype
    device: torch.device

    @property
    def is_causal(self) -> bool:
        """The same as none, where the device has a causal kernel."""
        return self.block.is_causal and len(self.queries_Q) == len(self.block)

    def make(self) -> Tensor:
        """To be added to scores. Without a window, a query sees all keys of the blocks before its own."""
        keys_K = block_keys(self.blocks, self.block)
        hidden = torch.finfo(self.dtype).min
        padding = 0 if self.device.type in REMADE_ON else -len(keys_K) % ALIGNED_KEYS
        added_QK = torch.zeros(len(self.queries_Q), len(keys_K) + padding, dtype=self.dtype)[:, : len(keys_K)]
        first = 0 if self.window is not None else len(keys_K) - len(self.block)
        added_QK[:, first:].masked_fill_(~self.tree.mask_QK(self.queries_Q, keys_K[first:], self.window), hidden)
        return _whole_rows(added_QK, padding).to(self.device)[None, None, :, : len(keys_K)]


def _whole_rows(sliced_QK: Tensor, padding: int) -> Tensor:
    """With what lies between its rows, so that a copy keeps their places."""
    num_rows, width = sliced_QK.shape
    return sliced_QK.as_strided((num_rows, width + padding), (width + padding, 1))


@dataclass(frozen=True)
class HeldMask:
    """Made once."""

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
    """The backward pass copies keys and values together once more, block by block: the copies of all blocks would weigh
    more than their tokens."""
    if is_recomputed:
        # A layer that is computed again keeps its tensors by hooks of its own, and hooks do not nest. It lets go of
        # tensors that are arguments, but not of those in lists.
        again: Any = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
        return again(partial(_attend, mask, scaling, None), query, *keys, *values)
    kept = Kept()
    with torch.autograd.graph.saved_tensors_hooks(kept.pack, kept.unpack):
        return _attend(mask, scaling, kept, query, *keys, *values)


class Kept:
    """What the backward pass makes again instead of keeping it."""

    def __init__(self) -> None:
        self._makers: dict[int, Callable[[], Tensor]] = {}

    def made(self, make: Callable[[], Tensor]) -> Tensor:
        tensor = make()
        self._makers[tensor.data_ptr()] = make
        return tensor

    def pack(self, tensor: Tensor) -> Tensor | Callable[[], Tensor]:
        """A kernel may keep a view: those of GPUs keep a mask for all heads."""
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
