"""A tree's attention as a few dense products: blocks of queries, each with the keys that some of them attend to.

Small subtrees that begin at the same place are one block, and attend to each other under a mask. A longer segment has
blocks of its own, which all of its continuations attend to. So a shared token's key and value are computed once, and
masks hide little of what is computed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from temper_gpu.training.packing.segments import SegmentTree

# Largest number of queries in a block that needs a mask.
MAX_QUERIES = 256


@dataclass(frozen=True)
class Block:
    """A block of the queries from `start` to `stop` of the row. Its keys are those of `before`, earlier blocks by their
    index in the list, and then its own."""

    start: int
    stop: int
    before: tuple[int, ...]
    # Each query attends to all keys up to its own, so a device with a causal kernel needs no mask.
    is_causal: bool

    def __len__(self) -> int:
        return self.stop - self.start


def plan_blocks(tree: SegmentTree, window: int | None) -> tuple[Block, ...]:
    """Blocks in order of the row, which they cover. `window`: the layer's, in tokens of a sequence."""
    blocks: list[Block] = []
    # Pending work, the next on top: siblings, and the blocks that their sequences begin with.
    waiting: list[tuple[list[int], tuple[int, ...]]] = [(tree.children[None], ())]
    while waiting:
        siblings, before = waiting.pop()
        head, rest = _together(tree, siblings)
        if rest:
            waiting.append((rest, before))
        first, last = tree.segments[head[0]], head[-1]
        if len(head) == 1 and tree.ends[last] - first.start > MAX_QUERIES:
            before = _lay_segment(blocks, first.start, first.stop, before, window)
            if head[0] in tree.children:
                waiting.append((tree.children[head[0]], before))
        else:
            is_chain = len(head) == 1 and tree.ends[last] == first.stop
            blocks.append(Block(first.start, tree.ends[last], before, is_chain and not before and window is None))
    return tuple(blocks) if window is None else tuple(_within(tree, blocks, window))


def _together(tree: SegmentTree, siblings: list[int]) -> tuple[list[int], list[int]]:
    """Splits off the first segments that fit into a block, at least one."""
    start = tree.segments[siblings[0]].start
    count = sum(tree.ends[sibling] - start <= MAX_QUERIES for sibling in siblings)
    return siblings[: max(1, count)], siblings[max(1, count) :]


def _lay_segment(
    blocks: list[Block], start: int, stop: int, before: tuple[int, ...], window: int | None
) -> tuple[int, ...]:
    """Returns the blocks that continuations of the segment attend to."""
    is_causal = not before and window is None
    for first in range(start, stop, stop - start if is_causal else MAX_QUERIES):
        last = stop if is_causal else min(stop, first + MAX_QUERIES)
        blocks.append(Block(first, last, before, is_causal))
        before = (*before, len(blocks) - 1)
    return before


def _within(tree: SegmentTree, blocks: list[Block], window: int) -> Iterator[Block]:
    """Drops keys that no query of a block sees any more."""
    # The last token of a block with successors is the furthest along its sequence.
    lasts = [int(tree.depths_T[block.stop - 1]) for block in blocks]
    for block in blocks:
        first = int(tree.depths_T[block.start])
        near = tuple(index for index in block.before if first - lasts[index] < window)
        yield Block(block.start, block.stop, near, False)


def block_keys(blocks: tuple[Block, ...], block: Block) -> Tensor:
    """The places of its keys in the row, in order."""
    spans = [*(blocks[index] for index in block.before), block]
    return torch.cat([torch.arange(span.start, span.stop) for span in spans])
