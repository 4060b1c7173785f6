"""A request costs its own work: what is attended beside it, and the slots that it is moved to."""

import pytest
import torch

from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.prefix_cache import PrefixCache
from temper_gpu.engine.embedded.requests import Sequence
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.embedded.slots import Slots
from temper_gpu.engine.embedded.tiles import plan_decode
from tests.engine.embedded.tiny import request


def work(positions: list[int]) -> int:
    """Keys that are attended, times rows."""
    plans = plan_decode(list(range(len(positions))), positions, 128, 3)
    assert sorted(index for plan in plans for _, index, _ in plan.runs) == list(range(len(positions)))
    for plan in plans:
        assert all(positions[index] < plan.num_keys for _, index, _ in plan.runs)
        assert all(row < plan.num_rows for row, _, _ in plan.runs)
    return sum(plan.num_rows * plan.num_keys for plan in plans)


def test_requests_of_like_length_are_one_tile():
    [plan] = plan_decode(list(range(64)), [100 + index % 40 for index in range(64)], 128, 3)
    assert (plan.slots, plan.num_rows, plan.num_keys) == (0, 64, 144)


@pytest.mark.parametrize("place", [0, 31, 63])
def test_a_long_neighbour_costs_its_own_work_only(place: int):
    positions = [40 + index % 8 for index in range(64)]
    alone = work(positions)
    positions[place] = 1007
    assert work(positions) <= alone + 1008


def test_slots_far_from_each_other_are_gathered():
    for key_heads, num_rows in ((8, 2), (1, 3)):
        [plan] = plan_decode([0, 100], [5, 9], 128, key_heads)
        assert (plan.slots, plan.num_rows, plan.runs) == ([0, 100], num_rows, [(0, 0, 1), (1, 1, 1)])


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
