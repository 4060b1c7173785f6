"""Plans whose passes are traced: of the shapes of Qwen2.5-7B-Instruct, and of tiny models beside their passes."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from temper_gpu.engine.embedded import needs as embedded
from temper_gpu.engine.embedded.needs import capacity_of, decode_bytes, pass_bytes, prefill_bytes, trial_module
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import sizes_for
from temper_gpu.engine.vllm.settings import VllmSettings
from temper_gpu.engine.vllm.switching import plan_release
from temper_gpu.model.layers import expert_layers
from temper_gpu.model.live_bytes import peak_bytes
from temper_gpu.model.memory_plan import count_parameters
from temper_gpu.process import needs
from temper_gpu.training.needs import MicroBatches
from temper_gpu.training.policy import TrainablePolicy
from tests.process.test_plan import CONFIGS, CPU, DTYPES, GIB, LORA, QWEN_7B, random_base, shape_of, training
from tests.training.samples import train_config


@pytest.fixture(scope="module", autouse=True)
def shapes_computed_once() -> Iterator[None]:
    """Several tests plan the same sizes."""
    traced, passed = MicroBatches._traced, embedded.pass_bytes
    found: dict[tuple[Any, ...], int] = {}

    def trace_once(batches: MicroBatches, *options: Any) -> int:
        rest = [getattr(batches, field.name) for field in dataclasses.fields(batches) if field.name != "config"]
        key = (batches.config.to_json_string(), repr(rest), *options)
        return found[key] if key in found else found.setdefault(key, traced(batches, *options))

    def pass_once(model: PreTrainedModel, dtype: torch.dtype, settings: EmbeddedSettings, *options: Any) -> int:
        sizes = (settings.max_pass_tokens, settings.max_slots)
        key = (model.config.to_json_string(), dtype, *sizes, *options)
        return found[key] if key in found else found.setdefault(key, passed(model, dtype, settings, *options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MicroBatches, "_traced", trace_once)
        patch.setattr(embedded, "pass_bytes", pass_once)
        yield


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


@pytest.mark.parametrize("recomputes", [False, True])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(kind, torch.float32) for kind in CONFIGS] + [("dense", torch.bfloat16), ("experts", torch.bfloat16)],
)
def test_a_micro_batch_takes_what_is_reckoned_without_numbers(
    kind: str, dtype: torch.dtype, recomputes: bool, monkeypatch: pytest.MonkeyPatch
):
    """Experts: tokens take any of them here, and the same ones where it is reckoned."""
    monkeypatch.setattr(TrainablePolicy, "recomputes", lambda self, num_tokens: recomputes)
    config = CONFIGS[kind]
    train = training(TrainablePolicy(random_base(config, dtype), LORA))
    model = shape_of(config)
    planned, real = MicroBatches(config, dtype, LORA, 100).num_bytes(model, recomputes), peak_bytes(train)
    assert real * 0.99 <= planned <= real * (1.1 if expert_layers(model) else 1.01)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["dense", "experts", "one dense layer", "sinks"])
def test_a_forward_pass_takes_what_is_reckoned_without_numbers(kind: str, dtype: torch.dtype):
    """All layers are run here, and few are reckoned."""
    base, settings = random_base(CONFIGS[kind], dtype), EmbeddedSettings(max_slots=32)
    merged, sizes = dtype == torch.float32, sizes_for(base.num_parameters, settings.max_pass_tokens, CPU)
    module = trial_module(base, merged)
    with torch.inference_mode():
        real = max(prefill_bytes(module, base, sizes, 128), decode_bytes(module, base, sizes, 32))
    planned = pass_bytes(shape_of(base.config), dtype, settings, 128, merged, CPU)
    assert planned == pytest.approx(real, rel=0.05)
