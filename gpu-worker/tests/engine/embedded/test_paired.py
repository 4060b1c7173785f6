"""A decode pass as a GPU computes it, on a CPU: the numbers of the tiles that a CPU computes, in few operations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import Gemma2Config, GptOssConfig, PreTrainedConfig, Qwen2Config

from temper_gpu.engine.embedded import forward, kv_cache, paired
from temper_gpu.engine.embedded.activations import instantiate
from temper_gpu.engine.embedded.attention import CHUNK
from temper_gpu.engine.embedded.forward import Forward
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.model.models import BaseModel
from tests.engine.embedded.test_families import EXPERTS, LOCAL_AND_GLOBAL, NO_IDS
from tests.engine.embedded.tiny import CONFIGS, SHAPE, random_base

KINDS: dict[str, Callable[[], PreTrainedConfig]] = {
    "qwen2": CONFIGS["qwen2"],
    "odd": CONFIGS["odd"],
    "windows and capped scores": lambda: Gemma2Config(**SHAPE, **LOCAL_AND_GLOBAL, **NO_IDS, head_dim=16),
    "sinks": lambda: GptOssConfig(
        **SHAPE, **LOCAL_AND_GLOBAL, **NO_IDS, **EXPERTS, num_local_experts=4, head_dim=16, rope_parameters=None
    ),
}
# On both sides of chunks' ends.
POSITIONS = (0, 5, 255, 256, 300, 511, 512, 700, 40)


@contextmanager
def as_on_a_gpu(is_gpu: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        if is_gpu:
            patched.setattr(forward, "PAIRED_ON", ("cpu",))
            patched.setattr(kv_cache, "FLAT_ON", ("cpu",))
        yield


class Counted(TorchDispatchMode):
    """Each is one kernel of a GPU, about; views are none."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += not function.is_view
        return function(*args, **(kwargs or {}))


class Decoding:
    """Tokens in slots whose keys are random."""

    def __init__(self, base: BaseModel, positions: tuple[int, ...], num_slots: int = 20) -> None:
        self.base = base
        self.positions = np.array(positions)
        self.slots = np.arange(len(positions)) * 2
        self.tokens = np.arange(len(positions)) + 3
        self.num_slots = num_slots
        self.model = instantiate(base)
        self.counted = Counted()

    def logits(self, is_gpu: bool, chosen: slice = slice(None), size: int = 16) -> tuple[Tensor, list[Tensor]]:
        """Of these slots, and what is stored."""
        cache = SlotCache(self.base.config, self.base.dtype, self.base.device)
        cache.resize(self.num_slots, int(self.positions.max()) + 1)
        generator = torch.Generator().manual_seed(0)
        for table in cache.tables:
            table[..., : cache._head_size] = torch.randn(table[..., : cache._head_size].shape, generator=generator)
        slots, prefixes = self.slots[chosen], [()] * len(self.slots[chosen])
        with torch.inference_mode(), as_on_a_gpu(is_gpu), self.counted:
            where = Forward(cache, Sizes((size,), 0.0), self.base.device)
            found = where.decode(self.model, slots, self.tokens[chosen], self.positions[chosen], prefixes)
        return found[: len(slots)], [table[slots] for table in cache.tables]


@pytest.mark.numerics
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_have_the_numbers_of_tiles(kind: str):
    decoding = Decoding(random_base(kind, KINDS[kind]()), POSITIONS)
    (wanted, stored), (found, stored_too) = decoding.logits(False), decoding.logits(True)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    for one, other in zip(stored, stored_too, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.numerics
def test_neighbours_and_the_size_of_a_part_change_nothing(monkeypatch: pytest.MonkeyPatch):
    decoding = Decoding(random_base("qwen2", KINDS["qwen2"]()), POSITIONS)
    together, _ = decoding.logits(True)
    alone = [decoding.logits(True, slice(index, index + 1))[0] for index in range(len(POSITIONS))]
    torch.testing.assert_close(torch.cat(alone), together, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(paired, "MAX_PAIRS", 3)
    torch.testing.assert_close(decoding.logits(True)[0], together, rtol=1e-5, atol=1e-5)


def test_chunks_cost_a_gpu_one_operation_each_not_a_tile_each():
    """By layer: two passes that differ in their layers alone, so that what is made once for all is left out."""
    positions = tuple(range(300, 2300, 200))
    tiles, pairs = (in_each_layer(positions, is_gpu) for is_gpu in (False, True))
    assert pairs <= 0.3 * tiles
    one_more = in_each_layer((*positions[:-1], positions[-1] + CHUNK), True)
    assert one_more - pairs <= 1


def in_each_layer(positions: tuple[int, ...], is_gpu: bool) -> float:
    few, many = (count(num_layers, positions, is_gpu) for num_layers in (2, 6))
    return (many - few) / 4


def count(num_layers: int, positions: tuple[int, ...], is_gpu: bool) -> int:
    config = Qwen2Config(**{**SHAPE, "num_hidden_layers": num_layers})
    decoding = Decoding(random_base("counted", config), positions)
    decoding.logits(is_gpu)
    return decoding.counted.count
