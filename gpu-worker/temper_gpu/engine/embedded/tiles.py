"""Which tokens of a pass are attended together: rows of nearly the same number of keys, so that a long one costs its
own work.

Shapes: R rows of a tile (one slot each), C queries of a row, M tokens of a pass.
"""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from temper_gpu.engine.embedded.attention import KEY_BLOCK, MIN_MATRICES
from temper_gpu.engine.embedded.pieces import Piece

# Bounds the scores of one tile of prefill: rows x queries x keys.
MAX_TILE_SCORES = 1 << 19
MIN_TILE_ROWS = 4
# What a tile costs beside its work, in key blocks, and a key block, in rows.
TILE_BLOCKS, BLOCK_ROWS = 4, 8
# Rows that are not one after another are copied together first.
GATHER = 3


@dataclass(frozen=True)
class TilePlan:
    # First slot of rows that are one after another, or the slot of each row that is used.
    slots: int | list[int]
    num_rows: int
    num_queries: int
    num_keys: int
    # For each row that is used: (row, its first token in the pass, number of tokens).
    runs: list[tuple[int, int, int]]


def plan_prefill(pieces: list[Piece]) -> list[TilePlan]:
    """Pieces of one size, of nearly the same number of keys, no more than a tile may hold."""
    firsts = np.cumsum([0, *(len(piece.tokens) for piece in pieces)]).tolist()
    order = sorted(range(len(pieces)), key=lambda index: (pieces[index].size, pieces[index].num_keys))
    plans: list[TilePlan] = []

    def add(members: list[int]) -> None:
        longest = pieces[members[-1]]
        runs = [(row, firsts[index], len(pieces[index].tokens)) for row, index in enumerate(members)]
        slots = [pieces[index].slot for index in members]
        plans.append(TilePlan(slots, whole_rows(len(members)), longest.size, longest.num_keys, runs))

    for queries, group in groupby(order, key=lambda index: pieces[index].size):
        members: list[int] = []
        for index in group:
            num_keys = pieces[index].num_keys
            most = max(MAX_TILE_SCORES, MIN_TILE_ROWS * queries * num_keys)
            if members and (len(members) + 1) * queries * num_keys > most:
                add(members)
                members = []
            members.append(index)
        add(members)
    return plans


def plan_decode(slots: list[int], positions: list[int], num_slots: int, key_heads: int) -> list[TilePlan]:
    """One query of each of these slots, which ascend, at its position."""
    blocks = [position // KEY_BLOCK + 1 for position in positions]
    # A row is as many matrices as there are key heads.
    least = -(-MIN_MATRICES // key_heads)
    return [_plan_rows(slots, blocks, members, num_slots, least) for members in _parts(slots, blocks)]


def _plan_rows(slots: list[int], blocks: list[int], members: list[int], num_slots: int, least: int) -> TilePlan:
    taken, num_keys = [slots[index] for index in members], KEY_BLOCK * max(blocks[index] for index in members)
    if _is_gathered(taken):
        runs = [(row, index, 1) for row, index in enumerate(members)]
        return TilePlan(taken, max(least, len(taken)), 1, num_keys, runs)
    num_rows = max(least, taken[-1] - taken[0] + 1)
    first = min(taken[0], num_slots + 1 - num_rows)
    runs = [(slots[index] - first, index, 1) for index in members]
    return TilePlan(first, num_rows, 1, num_keys, runs)


def _parts(slots: list[int], blocks: list[int]) -> list[list[int]]:
    """The cheapest way to part the tokens by their number of key blocks."""
    levels: dict[int, list[int]] = {}
    for index, num_blocks in enumerate(blocks):
        levels.setdefault(_level(num_blocks), []).append(index)
    ordered = [levels[level] for level in sorted(levels)]
    # For the first n levels: what they cost at least, and how they are parted.
    best: list[tuple[float, list[list[int]]]] = [(0, [])]
    for end in range(1, len(ordered) + 1):
        options = []
        for start in range(end):
            members = sorted(index for level in ordered[start:end] for index in level)
            cost, parts = best[start]
            options.append((cost + _cost(slots, blocks, members), [*parts, members]))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1][1]


def _level(num_blocks: int) -> int:
    """1, 2, 3, 4-5, 6-7, 8-11, 12-15 …: within one nobody waits long for another."""
    length = num_blocks.bit_length()
    return 2 * length + (num_blocks >> max(0, length - 2) & 1)


def _cost(slots: list[int], blocks: list[int], members: list[int]) -> float:
    taken = [slots[index] for index in members]
    rows = GATHER * len(taken) if _is_gathered(taken) else taken[-1] - taken[0] + 1
    return (TILE_BLOCKS + max(blocks[index] for index in members)) * (BLOCK_ROWS + rows)


def _is_gathered(slots: list[int]) -> bool:
    return slots[-1] - slots[0] >= GATHER * len(slots)


def whole_rows(num_rows: int) -> int:
    return -(-num_rows // MIN_TILE_ROWS) * MIN_TILE_ROWS
