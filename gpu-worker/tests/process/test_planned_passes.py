"""Planned memory of passes: of real models' shapes, and of tiny models beside what their passes allocate."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel, Qwen2Config, Qwen3Config, Qwen3MoeConfig

from temper_gpu.contract import LoraConfig
from temper_gpu.engine.embedded.adapted import AdaptedModel
from temper_gpu.engine.embedded.attention import KEY_BLOCK
from temper_gpu.engine.embedded.forward import Forward
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.needs import capacity_of, pass_bytes
from temper_gpu.engine.embedded.pieces import cut, piece_size
from temper_gpu.engine.embedded.sampling import sample_rows, uniforms
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import Sizes, sizes_for
from temper_gpu.engine.embedded.tiles import MIN_TABLE_ROWS
from temper_gpu.engine.vllm.settings import VllmSettings
from temper_gpu.engine.vllm.switching import plan_release
from temper_gpu.model.memory_plan import count_parameters
from temper_gpu.model.models import BaseModel
from temper_gpu.process import needs
from temper_gpu.training.needs import MicroBatches
from temper_gpu.training.policy import TrainablePolicy
from tests.live_bytes import peak_bytes
from tests.process.test_plan import CONFIGS, CPU, DTYPES, GIB, LORA, QWEN_7B, random_base, shape_of, training
from tests.training.samples import train_config


def test_7b_in_bfloat16_fits_on_80_gb_by_default_with_conversations_of_32k(monkeypatch: pytest.MonkeyPatch):
    model, gpu, context = shape_of(QWEN_7B), torch.device("cuda"), 32768
    # What CUDA says of an H100 or A100 of 80 GB.
    monkeypatch.setattr(needs, "total_bytes", lambda device: int(79.1 * GIB))
    settings = EmbeddedSettings(kv_cache_bytes=needs.default_kv_cache_bytes(gpu))
    machine = needs.Machine(gpu, torch.bfloat16, settings)
    plan = needs.plan_all(model, machine, needs.USUAL_LORA, context, 16384)
    assert plan.num_bytes < 79 * GIB
    capacity = capacity_of(model, torch.bfloat16, settings, context, CPU)
    assert (capacity.longest_request, capacity.requests_at_once) == (32768, 7)
    assert count_parameters(model) == 7_615_616_512


@pytest.mark.parametrize(
    ("total", "num_tokens", "recomputes"), [(140, 8192, False), (79, 4096, False), (31, 8192, True)]
)
def test_a_gpu_keeps_the_layers_of_a_smaller_micro_batch_rather_than_compute_a_large_one_again(
    total: int, num_tokens: int, recomputes: bool, monkeypatch: pytest.MonkeyPatch
):
    """In bfloat16, with a quarter of the GPU for keys and values."""
    for name in ("total_bytes", "free_bytes"):
        monkeypatch.setattr(needs, name, lambda device: total << 30)
    settings = EmbeddedSettings(kv_cache_bytes=total << 28)
    machine = needs.Machine(torch.device("cuda", 0), torch.bfloat16, settings)
    rows = needs.RowLengths(32768)
    found, plan = needs.fit_micro_batch(shape_of(QWEN_7B), machine, LORA, rows, 16384, False)
    assert (found, plan.recomputes) == (num_tokens, recomputes)
    assert plan.num_bytes <= total << 30


@pytest.mark.parametrize(
    ("total", "num_tokens", "release"), [(140, 8192, "nothing"), (79, 4096, "cache"), (140, 16384, "all")]
)
def test_what_vllm_releases_for_a_step_of_seven_billion_parameters(total: int, num_tokens: int, release: str):
    """Beside the trainer's weights, with a quarter of the GPU for keys and values."""
    model, cache = shape_of(QWEN_7B), total * GIB // 4
    machine = needs.Machine(torch.device("cuda", 0), torch.bfloat16, VllmSettings("", "", kv_cache_bytes=cache))
    config = train_config(lora=LORA, micro_batch_tokens=num_tokens)
    need, holds = needs.switching_needs(model, machine, config)
    assert (holds.cache, need.kept > need.recomputed) == (cache, True)
    free = total * GIB - needs.plan_serving(model, machine, LORA, None).num_bytes
    assert plan_release(free, holds, need).release == release


QWEN: dict[str, Any] = {"vocab_size": 151936, "head_dim": 128}
SHAPES: dict[str, PreTrainedConfig] = {
    "Qwen2.5-7B": QWEN_7B,
    "Qwen2.5-0.5B": Qwen2Config(
        vocab_size=151936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    ),
    "Qwen3-4B": Qwen3Config(
        **QWEN,
        hidden_size=2560,
        intermediate_size=9728,
        num_hidden_layers=36,
        num_attention_heads=32,
        num_key_value_heads=8,
        tie_word_embeddings=False,
    ),
    "Qwen3-30B-A3B": Qwen3MoeConfig(
        **QWEN,
        hidden_size=2048,
        intermediate_size=6144,
        num_hidden_layers=48,
        num_attention_heads=32,
        num_key_value_heads=4,
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=768,
        tie_word_embeddings=False,
    ),
}
# MiB that the trainer's operations allocate for 8,192 tokens, counted on tensors without numbers. Experts: each token
# takes the same ones.
COUNTED = [
    ("Qwen2.5-7B", torch.bfloat16, LORA, False, 47355),
    ("Qwen2.5-7B", torch.bfloat16, LORA, True, 4390),
    ("Qwen2.5-0.5B", torch.float32, LORA, False, 19950),
    ("Qwen2.5-0.5B", torch.float32, LORA, True, 1780),
    ("Qwen2.5-0.5B", torch.bfloat16, LORA, False, 11185),
    ("Qwen2.5-0.5B", torch.bfloat16, LORA, True, 1415),
    ("Qwen3-4B", torch.bfloat16, LORA, False, 43298),
    ("Qwen3-4B", torch.bfloat16, LORA, True, 3271),
    ("Qwen3-4B", torch.bfloat16, None, False, 50318),
    ("Qwen3-4B", torch.bfloat16, None, True, 3867),
    ("Qwen3-30B-A3B", torch.bfloat16, LORA, False, 61415),
    ("Qwen3-30B-A3B", torch.bfloat16, LORA, True, 3023),
]


@pytest.mark.parametrize(("name", "dtype", "lora", "recomputes", "counted"), COUNTED)
def test_a_micro_batch_of_a_real_model_takes_a_little_less_than_what_is_planned(
    name: str, dtype: torch.dtype, lora: LoraConfig | None, recomputes: bool, counted: int
):
    batches = MicroBatches(shape_of(SHAPES[name]), dtype, lora, 8192)
    share = batches.num_bytes(recomputes) / (counted << 20)
    assert 0.95 <= share <= 1.5


@pytest.mark.parametrize("recomputes", [False, True])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(kind, torch.float32) for kind in CONFIGS] + [("dense", torch.bfloat16), ("experts", torch.bfloat16)],
)
def test_a_micro_batch_takes_about_what_is_planned(
    kind: str, dtype: torch.dtype, recomputes: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(TrainablePolicy, "recomputes", lambda self, num_tokens: recomputes)
    train = training(TrainablePolicy(random_base(CONFIGS[kind], dtype), LORA))
    planned = MicroBatches(shape_of(CONFIGS[kind]), dtype, LORA, 100).num_bytes(recomputes)
    assert 0.9 * peak_bytes(train) <= planned <= (2 if recomputes else 1.5) * peak_bytes(train)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["dense", "experts", "one dense layer", "sinks", "window"])
def test_a_forward_pass_takes_no_more_than_about_what_is_planned(kind: str, dtype: torch.dtype):
    """A fused kernel, in float32 on a CPU, takes less."""
    base, settings, context = random_base(CONFIGS[kind], dtype), EmbeddedSettings(max_slots=32), 1024
    sizes, model = sizes_for(base.num_parameters, settings.max_pass_tokens, CPU), AdaptedModel(base)
    module = model.for_pass(None) if dtype == torch.float32 else model.for_trial_pass()
    with torch.inference_mode():
        real = max(prefill_bytes(module, base, sizes, context), decode_bytes(module, base, sizes, 32))
    planned = pass_bytes(shape_of(base.config), dtype, settings, context, CPU)
    assert planned >= 0.8 * real
    assert planned <= 2 * real or dtype == torch.float32


def prefill_bytes(module: PreTrainedModel, base: BaseModel, sizes: Sizes, num_tokens: int) -> int:
    """The end of a prompt this long, which reads the most keys."""
    cache = SlotCache(base.config, base.dtype, base.device)
    cache.resize(MIN_TABLE_ROWS - 1, num_tokens)
    size = piece_size(num_tokens)
    start = max(0, -(-(num_tokens - sizes.largest) // size)) * size
    pieces = cut(np.zeros(num_tokens, dtype=np.int64), 0, start, sizes.largest)
    return peak_bytes(lambda: sample(Forward(cache, sizes, base.device).prefill(module, pieces)))


def decode_bytes(module: PreTrainedModel, base: BaseModel, sizes: Sizes, num_slots: int) -> int:
    """Bytes of decoding all slots: the vocabulary dominates, not the few keys."""
    cache = SlotCache(base.config, base.dtype, base.device)
    cache.resize(num_slots, KEY_BLOCK)
    slots, zeros = np.arange(num_slots), np.zeros(num_slots, dtype=np.int64)
    prefixes = [()] * num_slots
    return peak_bytes(lambda: sample(Forward(cache, sizes, base.device).decode(module, slots, zeros, zeros, prefixes)))


def sample(logits_SV: Tensor) -> None:
    """At a temperature other than 1, which takes a copy."""
    num_rows = len(logits_SV)
    sample_rows(logits_SV, [0.5] * num_rows, uniforms([0] * num_rows, [0] * num_rows))
