"""Which rank computes what, and in what pieces their gradients are added."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from temper_gpu.training.packing import Packing, Row
from temper_gpu.training.ranks import ALONE, Alone
from temper_gpu.training.ranks import joined as joined_module
from temper_gpu.training.ranks.joined import chunked
from temper_gpu.training.ranks.turns import deal_shares, plan_turns
from temper_gpu.training.tokens import Layout, pack_for_ranks


@given(st.lists(st.integers(1, 50), max_size=20), st.integers(1, 5))
def test_shares_hold_every_place_once_in_order_and_are_even(sizes: list[int], count: int):
    shares = deal_shares(sizes, count)
    assert sorted(place for share in shares for place in share) == list(range(len(sizes)))
    assert all(share == sorted(share) for share in shares)
    loads = [sum(sizes[place] for place in share) for share in shares]
    assert max(loads) - min(loads) <= max(sizes, default=0)


@pytest.mark.parametrize("packing", ["rows", "tree"])
def test_every_rank_has_something_to_compute(packing: Packing):
    """Of four attempts on each of two prompts."""
    rows = [Row([*[n % 2] * 20, n, 2, 3], "attempt", [22], [0.0], [1.0], [0.0]) for n in range(8)]
    for num_ranks in (1, 2, 3, 9):
        batches = pack_for_ranks(rows, 1, Layout(packing, 10**6, torch.device("cpu"), num_ranks))
        assert min(num_ranks, len(rows)) <= len(batches) <= len(rows)
        assert sum(len(batch.targets_N) for batch in batches) == len(rows)
        # More than two ranks have a part of a prompt each.
        assert any(batch.num_shared_tokens for batch in batches) == (packing == "tree" and num_ranks <= 2)


def test_alone_a_process_has_all_of_it():
    tensor = torch.ones(3)
    assert [turn.batch for turn in plan_turns(ALONE, ["a", "b"], len)] == ["a", "b"]
    assert ALONE.gather(tensor)[0] is ALONE.add(tensor) is tensor


def test_gradients_go_in_chunks_of_a_bounded_size(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(joined_module, "MOST_AT_ONCE", 10)
    parameters = [nn.Parameter(torch.zeros(size)) for size in (4, 6, 1, 20, 3)]
    assert [[p.numel() for p in chunk] for chunk in chunked(parameters)] == [[4, 6], [1], [20], [3]]


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=12), st.integers(1, 4))
def test_ranks_with_parts_take_as_many_turns_forward_and_back_and_each_micro_batch_counts_once(
    batches: list[tuple[int, bool]], count: int
):
    places = list(range(len(batches)))
    whole, parts = (
        [
            plan_turns(Seat(rank, count, shards), places, lambda p: batches[p][0], lambda p: batches[p][1])
            for rank in range(count)
        ]
        for shards in (False, True)
    )
    assert len({tuple(turn.goes_back for turn in turns) for turns in parts}) == 1
    for own, turns in zip(whole, parts, strict=True):
        assert [turn.batch for turn in turns if turn.counts] == [turn.batch for turn in own]
        assert [turn.trains for turn in turns if turn.counts] == [batches[turn.batch][1] for turn in own]
        assert not any(turn.trains and not turn.goes_back for turn in turns)
    assert sorted(turn.batch for turns in whole for turn in turns) == places


class Seat(Alone):
    def __init__(self, rank: int, count: int, shards: bool) -> None:
        self.rank, self.count, self.shards = rank, count, shards
