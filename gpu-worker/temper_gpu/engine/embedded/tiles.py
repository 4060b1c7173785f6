"""Plans which tokens of a pass are attended together. A token's keys and shapes follow from its own request
(attention.py). The slots of other requests decide only which keys are read in place and which are copied first.

Shapes: R rows of a tile (one slot each), C queries of a row, M tokens of a pass.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from temper_gpu.engine.embedded.attention import CHUNK, num_keys_of
from temper_gpu.engine.embedded.pieces import Piece

# Bounds the scores of one tile of prefill: rows x queries x keys.
MAX_TILE_SCORES = 1 << 19
# Rows of the smallest slot table, the one for padding included.
MIN_TABLE_ROWS = 4
# Number of requests with the same prompt prefix that attend to a chunk together. A single one is a tile of as many
# queries.
SHARING = 4
# Rows that are not one after another are copied together first.
GATHER = 3


@dataclass(frozen=True)
class TilePlan:
    # The slot of each row.
    slots: list[int]
    first_key: int
    num_keys: int
    num_queries: int
    # Smallest position of its tokens.
    first_position: int
    # Each row's tokens in the pass. The rest of its queries are padding.
    tokens: list[np.ndarray]


@dataclass(frozen=True)
class PassPlan:
    """Every token is in one tile of `own`, and in one tile for each whole chunk before it."""

    own: list[TilePlan]
    # Blocks by chunk, in the order in which they are added.
    chunks: list[TilePlan]


def plan_prefill(pieces: list[Piece]) -> PassPlan:
    firsts = np.cumsum([0, *(len(piece.tokens) for piece in pieces)])
    own: dict[tuple[int, int, int], list[int]] = {}
    chunks: dict[tuple[int, int], list[int]] = {}
    for index, piece in enumerate(pieces):
        first_key = chunk_start(piece.start)
        own.setdefault((piece.size, first_key, num_keys_of(piece.start + piece.size - first_key)), []).append(index)
        for chunk in range(first_key // CHUNK):
            chunks.setdefault((chunk, piece.slot), []).append(index)

    def plan(members: list[int], first_key: int, num_keys: int) -> list[TilePlan]:
        """No more than a tile may hold."""
        size = pieces[members[0]].size
        most = max(1, MAX_TILE_SCORES // (size * num_keys))
        parts = [members[start : start + most] for start in range(0, len(members), most)]
        return [
            TilePlan(
                [pieces[index].slot for index in part],
                first_key,
                num_keys,
                size,
                min(pieces[index].start for index in part),
                [np.arange(firsts[index], firsts[index + 1]) for index in part],
            )
            for part in parts
        ]

    return PassPlan(
        [tile for (_, first, count), members in own.items() for tile in plan(members, first, count)],
        [tile for chunk, slot in sorted(chunks) for tile in plan(chunks[chunk, slot], chunk * CHUNK, CHUNK)],
    )


def plan_decode(slots: list[int], positions: list[int], prefixes: Sequence[Sequence[Hashable]]) -> PassPlan:
    """One query of each of these ascending slots, at its position. `prefixes` name the whole chunks of each slot's
    prompt: equal names have equal keys."""
    own: dict[tuple[int, int], list[int]] = {}
    answered: dict[int, list[int]] = {}
    prompted: dict[int, dict[Hashable, list[int]]] = {}
    for index, position in enumerate(positions):
        first_key = chunk_start(position)
        own.setdefault((first_key, num_keys_of(position + 1 - first_key)), []).append(index)
        for chunk, name in enumerate(prefixes[index]):
            prompted.setdefault(chunk, {}).setdefault(name, []).append(index)
        for chunk in range(len(prefixes[index]), first_key // CHUNK):
            answered.setdefault(chunk, []).append(index)

    def plan(rows: list[list[int]], first_key: int, num_keys: int, num_queries: int) -> TilePlan:
        tokens = [np.array(row) for row in rows]
        first_position = min(positions[index] for row in rows for index in row)
        return TilePlan([slots[row[0]] for row in rows], first_key, num_keys, num_queries, first_position, tokens)

    chunks: list[TilePlan] = []
    for chunk in sorted(prompted.keys() | answered.keys()):
        groups = prompted.get(chunk, {}).values()
        shared = [group[start : start + SHARING] for group in groups for start in range(0, len(group), SHARING)]
        alone = [[index] for index in answered.get(chunk, [])]
        chunks += [plan(rows, chunk * CHUNK, CHUNK, size) for rows, size in ((shared, SHARING), (alone, 1)) if rows]
    own_tiles = [plan([[index] for index in members], *keys, 1) for keys, members in own.items()]
    return PassPlan(own_tiles, chunks)


def chunk_start(position: int) -> int:
    return position // CHUNK * CHUNK


@dataclass(frozen=True)
class Placed:
    """Access to the rows of a tile in the slot table."""

    # Adjacent slots in place, or slots to copy.
    slots: slice | list[int]
    num_rows: int
    # Places of the requested rows among them.
    rows: list[int]


def place(slots: list[int]) -> Placed:
    """Computes unneeded rows between them if that costs less than copying."""
    first, last, count = slots[0], slots[-1], len(slots)
    if len(set(slots)) == 1:
        return Placed(slice(first, first + 1), count, list(range(count)))
    step = slots[1] - first
    if step > 0 and slots == list(range(first, last + 1, step)):
        return Placed(slice(first, last + 1, step), count, list(range(count)))
    if last - first < GATHER * count and slots == sorted(set(slots)):
        return Placed(slice(first, last + 1), last - first + 1, [slot - first for slot in slots])
    return Placed(slots, count, list(range(count)))
