"""How much a GPU is asked to do for one pass of a model with Qwen2.5-7B's shapes, in bfloat16 with an adapter on each
layer: a change that makes GPUs slower is seen on a machine without one.

Two or three layers are walked, on tensors without numbers, and reckoned up to 28. Bounds are a little above what was
found. So are lower ones at half of them, because a fake GPU that has come apart counts nothing. Times are those of a
roofline (kernels.py), and leave out what a processor needs to start all this. fake_gpu.py says what cannot be seen."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import pytest
import torch
from transformers import Qwen2Config

from temper_gpu.contract import LoraConfig
from temper_gpu.engine.embedded.adapted import AdaptedModel
from temper_gpu.engine.embedded.forward import Forward
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.pieces import cut
from temper_gpu.engine.embedded.sampling import sample, uniforms
from temper_gpu.engine.embedded.sizes import sizes_for
from temper_gpu.model.models import BaseModel
from temper_gpu.model.outlines import without_numbers
from temper_gpu.training import tree_kernel
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import Packing, Row, pack
from temper_gpu.training.platform import between_steps, repeatable
from temper_gpu.training.policy import TrainablePolicy
from tests.cuda.attention import FlexAttention
from tests.cuda.fake_gpu import GPU, INSIDE, FakeGpu, behind, storage_of

LAYERS, PARAMETERS = 28, 7_615_616_512
GIB = 1 << 30
# Eight attempts at one prompt.
ATTEMPTS, PROMPT, ANSWER = 8, 512, 1536
SLOTS, CAPACITY = 64, 4096


@dataclass(frozen=True)
class Asked:
    """Of a GPU. Copies and waits hold up the processor."""

    launches: float
    gib: float
    seconds: float
    waits: float
    copies: float
    whole_tables: float


DECODE = Asked(launches=2_600, gib=36, seconds=0.019, waits=2, copies=10, whole_tables=0)
PREFILL = Asked(launches=25_000, gib=210, seconds=0.16, waits=0, copies=50, whole_tables=0)
ROWS = Asked(launches=8_800, gib=2_050, seconds=1.75, waits=1, copies=9, whole_tables=0)
TREE = Asked(launches=9_200, gib=1_700, seconds=1.4, waits=0, copies=16, whole_tables=0)
BLOCKS = Asked(launches=46_000, gib=2_150, seconds=1.6, waits=0, copies=58, whole_tables=0)


def require_within(bounds: Asked, found: Asked) -> None:
    for name in ("launches", "gib", "seconds", "waits", "copies", "whole_tables"):
        assert getattr(found, name) <= getattr(bounds, name), f"more {name} than before: {found}"
    for name in ("launches", "gib", "seconds"):
        assert getattr(found, name) >= getattr(bounds, name) / 2, (
            f"few {name}; if that is right, lower the bound: {found}"
        )


def asked_of(gpu: FakeGpu) -> Asked:
    launched = gpu.launched
    return Asked(
        launched.times.total(),
        launched.num_bytes.total() / GIB,
        sum(launched.seconds.values()),
        gpu.waits.total(),
        gpu.copies.total(),
        launched.num_whole_copies,
    )


def reckoned(few: int, walk: Callable[[int], FakeGpu]) -> Asked:
    """Each further layer asks for as much as the one that was walked last."""
    one, more = asked_of(walk(few)), asked_of(walk(few + 1))
    values = {
        each.name: getattr(one, each.name) + (getattr(more, each.name) - getattr(one, each.name)) * (LAYERS - few)
        for each in fields(Asked)
    }
    return Asked(**values)


def outline(num_layers: int) -> BaseModel:
    config = Qwen2Config(
        vocab_size=152064,
        hidden_size=3584,
        intermediate_size=18944,
        num_hidden_layers=num_layers,
        num_attention_heads=28,
        num_key_value_heads=4,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
    )
    return without_numbers(config, torch.bfloat16, INSIDE)


def engine(num_layers: int, run: Callable[[AdaptedModel, Forward], None]) -> FakeGpu:
    between_steps(GPU)
    with FakeGpu(has_numbers=False) as gpu, torch.inference_mode():
        base, sizes = outline(num_layers), sizes_for(PARAMETERS, None, GPU)
        model = AdaptedModel(base, sizes, "any")
        model.place_trial(["adapter"])
        cache = SlotCache(base.config, base.dtype, base.device)
        cache.resize(SLOTS, CAPACITY)
        gpu.launched.watched = frozenset(storage_of(behind(table)) for table in cache.tables)
        gpu.forget()
        run(model, Forward(cache, sizes, base.device))
    return gpu


def decode(model: AdaptedModel, forward: Forward) -> None:
    positions = np.sort(np.random.default_rng(0).integers(300, 2300, SLOTS))
    module = model.for_pass([("adapter", 1)] * SLOTS)
    logits = forward.decode(module, np.arange(SLOTS), np.zeros(SLOTS, dtype=np.int64), positions, [[]] * SLOTS)
    sample(logits, [1.0] * SLOTS, uniforms([0] * SLOTS, [0] * SLOTS))


def prefill(model: AdaptedModel, forward: Forward) -> None:
    """A whole prompt, as long as the largest pass."""
    num_tokens = forward.sizes.largest
    pieces = cut(np.zeros(num_tokens + 1, dtype=np.int64), 0, 0, num_tokens)
    forward.prefill(model.for_pass([("adapter", num_tokens)]), pieces)


def micro_batch(num_layers: int, packing: Packing, has_kernel: bool, patched: pytest.MonkeyPatch) -> FakeGpu:
    """Forward and backward, layers computed again. `has_kernel`: of trees; else they are computed in blocks."""
    prompt = list(range(100, 100 + PROMPT))
    places = list(range(PROMPT, PROMPT + ANSWER))
    ones = [1.0] * ANSWER
    rows = [Row(prompt + [1000 + a] * ANSWER, "attempt", places, ones, ones, ones) for a in range(ATTEMPTS)]
    seen = PROMPT**2 / 2 + ATTEMPTS * (ANSWER * PROMPT + ANSWER**2 / 2)
    with FakeGpu(has_numbers=False) as gpu, repeatable(GPU):
        patched.setattr(tree_kernel, "_compiled", lambda: FlexAttention(gpu, int(seen)))
        policy = TrainablePolicy(outline(num_layers), LoraConfig(rank=16, alpha=32, target_modules=None))
        if not has_kernel:
            policy.tree_kernel = None
        policy.recomputes = lambda num_tokens: True
        start = {name: torch.zeros(parameter.shape) for name, parameter in policy.parameters.items()}
        policy.load(start, initial_optimizer_tensors(start))
        # Asked before anything is counted.
        assert policy.knows_trees and policy.knows_last_layer
        assert (policy.tree_kernel is not None) == has_kernel
        for parameter in policy.parameters.values():
            parameter.grad = torch.zeros_like(parameter)
        gpu.forget()
        [batch] = pack(rows, 1, ATTEMPTS * (PROMPT + ANSWER), GPU, packing)
        policy.log_probabilities(batch).logprobs_N.sum().backward()
    assert batch.attention.is_chains == (packing == "rows")
    return gpu


def test_a_decode_pass_of_64_requests():
    require_within(DECODE, reckoned(1, lambda num_layers: engine(num_layers, decode)))


def test_a_prefill_pass_of_2048_tokens():
    require_within(PREFILL, reckoned(1, lambda num_layers: engine(num_layers, prefill)))


@pytest.mark.parametrize(
    ("packing", "has_kernel", "bounds"),
    [
        pytest.param("rows", True, ROWS, id="rows"),
        pytest.param("tree", True, TREE, id="tree"),
        pytest.param("tree", False, BLOCKS, id="tree in blocks"),
    ],
)
def test_a_micro_batch_of_16384_tokens(
    packing: Packing, has_kernel: bool, bounds: Asked, monkeypatch: pytest.MonkeyPatch
):
    """In a tree, 12,792 of them are computed."""
    walk = partial(micro_batch, packing=packing, has_kernel=has_kernel, patched=monkeypatch)
    require_within(bounds, reckoned(2, walk))
