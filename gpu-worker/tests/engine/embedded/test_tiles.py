"""A request costs its own work: what is attended beside it, and the slots that it is moved to."""

import pytest
import torch

from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.prefix_cache import PrefixCache
from temper_gpu.engine.embedded.requests import Sequence
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.embedded.slots import Slots
from temper_gpu.engine.embedded.tiles import SHARING, Placed, TilePlan, place, plan_decode
from tests.engine.embedded.tiny import request


def rows_of(plans: list[TilePlan]) -> list[tuple[list[int], int, int]]:
    """Of each row of each tile: its tokens, its first key and the number of its keys."""
    return [(tokens.tolist(), plan.first_key, plan.num_keys) for plan in plans for tokens in plan.tokens]


def work(positions: list[int]) -> int:
    """Keys that are attended, times rows that are computed."""
    plan = plan_decode(list(range(len(positions))), positions, [()] * len(positions))
    for index, position in enumerate(positions):
        seen = [
            (first, first + count) for tokens, first, count in rows_of([*plan.chunks, *plan.own]) if index in tokens
        ]
        assert [first for first, _ in seen] == [0, *(end for _, end in seen[:-1])]
        assert position < seen[-1][1] <= position + 64
    return sum(place(tile.slots).num_rows * tile.num_keys for tile in (*plan.own, *plan.chunks))


def test_requests_of_like_length_are_one_tile():
    plan = plan_decode(list(range(64)), [130 + index % 40 for index in range(64)], [()] * 64)
    [tile] = plan.own
    assert (place(tile.slots).slots, tile.num_keys, plan.chunks) == (slice(0, 64, 1), 192, [])


@pytest.mark.parametrize("slot", [0, 31, 63])
def test_a_long_neighbour_costs_its_own_work_only(slot: int):
    positions = [40 + index % 8 for index in range(64)]
    alone = work(positions)
    positions[slot] = 1007
    assert work(positions) <= alone + 1024


def test_slots_far_from_each_other_are_copied_and_near_ones_are_not():
    assert place([0, 100, 101]) == Placed([0, 100, 101], 3, [0, 1, 2])
    assert place([4, 5, 7]) == Placed(slice(4, 8), 4, [0, 1, 3])
    assert place([0, 8, 16]) == Placed(slice(0, 17, 8), 3, [0, 1, 2])
    assert place([7, 7]) == Placed(slice(7, 8), 2, [0, 1])
    assert place([9, 3]) == Placed([9, 3], 2, [0, 1])


def test_requests_whose_prompts_begin_alike_attend_to_their_chunks_together():
    """Five with two chunks, one of them with another second one; one alone. An answer's chunk is nobody else's."""
    prefixes = [("a", "b"), ("a", "b"), ("a", "c"), ("a", "b"), ("a", "b"), ("d",)]
    plan = plan_decode(list(range(6)), [600, 530, 520, 800, 513, 520], prefixes)
    assert rows_of(plan.chunks) == [
        *(([0, 1, 2, 3], 0, 256), ([4], 0, 256), ([5], 0, 256)),
        *(([0, 1, 3, 4], 256, 256), ([2], 256, 256), ([5], 256, 256)),
        ([3], 512, 256),
    ]
    assert [tile.num_queries for tile in plan.chunks] == [SHARING, SHARING, 1, 1]
    assert sorted(rows_of(plan.own)) == [
        *(([0], 512, 128), ([1], 512, 32), ([2], 512, 32), ([3], 768, 64), ([4], 512, 32), ([5], 512, 32)),
    ]


def test_those_who_remain_move_into_the_first_slots_with_all_that_is_stored(base):
    cache = SlotCache(base.config, base.dtype, base.device)
    slots = Slots(cache, PrefixCache(cache, 0), Sizes((16,), 0), 16, 1 << 24, 512)
    sequences = [Sequence(None, request(seed, 20, 5), 1e9, lambda _: "") for seed in range(6)]
    assert all(slots.take(sequence) for sequence in sequences)
    cache.values[1][:6] = torch.arange(6.0)[:, None, None, None]
    slots.tokens[:6], slots.positions[:6] = range(10, 16), 20
    for index in (0, 3, 1):
        slots.release(sequences[index], is_clean=True)
    slots.compact()
    assert [sequence.slot for sequence in slots.sequences.values()] == [2, 1, 0]
    for number in (2, 4, 5):
        slot = sequences[number].slot
        assert (slots.tokens[slot], slots.positions[slot]) == (10 + number, 20)
        assert torch.equal(cache.values[1][slot, :, :20], torch.full_like(cache.values[1][slot, :, :20], number))
    assert not slots.positions[3:].any()
