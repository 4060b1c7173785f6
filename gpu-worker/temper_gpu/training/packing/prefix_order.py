"""Orders rows so that those with a common prefix are adjacent.

It is the order of the plan, by the first row of each branch: the same rows give the same order, and the same bytes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple


class Placed(NamedTuple):
    # Index of the row in the plan.
    index: int
    length: int
    # Length of the prefix shared with the row before. No earlier row shares more.
    num_shared: int


@dataclass
class _Node:
    """Tokens from `start` to `stop` of `ids`, common to all rows that end here or below."""

    ids: list[int]
    start: int
    stop: int
    rows: list[int] = field(default_factory=list)
    # Children by first token, in order of the plan.
    children: dict[int, "_Node"] = field(default_factory=dict)


def order_by_prefix(sequences: Sequence[list[int]]) -> list[Placed]:
    root = _Node([], 0, 0)
    for row, ids in enumerate(sequences):
        _insert(root, row, ids)
    return [Placed(row, len(sequences[row]), shared) for row, shared in _walk(root)]


def _insert(root: _Node, row: int, ids: list[int]) -> None:
    node = root
    while len(ids) > node.stop:
        first = ids[node.stop]
        child = node.children.get(first)
        if child is None:
            child = node.children[first] = _Node(ids, node.stop, len(ids))
        else:
            shared = _num_shared(child, ids)
            if shared < child.stop:
                above = _Node(ids, node.stop, shared, children={child.ids[shared]: child})
                child.start = shared
                child = node.children[first] = above
        node = child
    node.rows.append(row)


def _num_shared(node: _Node, ids: list[int]) -> int:
    start, stop = node.start, min(node.stop, len(ids))
    if node.ids[start:stop] == ids[start:stop]:
        return stop
    return bisect_left(range(stop), True, lo=start, key=lambda at: node.ids[start : at + 1] != ids[start : at + 1])


def _walk(root: _Node) -> Iterator[tuple[int, int]]:
    """Walks without recursion: an attempt may fork thousands of times."""
    waiting = [(root, 0)]
    while waiting:
        node, shared = waiting.pop()
        for row in node.rows:
            yield row, shared
            shared = node.stop
        children = list(node.children.values())
        waiting.extend((child, node.stop) for child in children[:0:-1])
        waiting.extend((child, shared) for child in children[:1])


def deal_by_prefix(placed: Sequence[Placed], max_tokens: int) -> list[list[Placed]]:
    """Micro-batches of at most `max_tokens`, counting shared tokens once; a longer row goes alone. Branches stay
    together if they fit. Largest first, so that a lack of memory shows at once."""
    added = [0, *accumulate(row.length - row.num_shared for row in placed)]
    parts: list[list[Placed]] = []
    sizes: list[int] = []
    for at, stop in enumerate(_branch_stops(placed)):
        row = placed[at]
        branch = added[stop] - added[at]
        wanted = branch if row.num_shared + branch <= max_tokens else row.length - row.num_shared
        if not parts or sizes[-1] + wanted > max_tokens:
            parts.append([])
            sizes.append(0)
            row = row._replace(num_shared=0)
        parts[-1].append(row)
        sizes[-1] += row.length - row.num_shared
    return [parts[index] for index in sorted(range(len(parts)), key=lambda index: -sizes[index])]


def _branch_stops(placed: Sequence[Placed]) -> list[int]:
    """For each row: the ends of later rows' prefixes that are longer than the prefix it shares with the row before."""
    stops = [len(placed)] * len(placed)
    open_rows: list[int] = []
    for at, row in enumerate(placed):
        while open_rows and row.num_shared <= placed[open_rows[-1]].num_shared:
            stops[open_rows.pop()] = at
        open_rows.append(at)
    return stops
