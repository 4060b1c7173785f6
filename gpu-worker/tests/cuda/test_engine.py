"""The embedded engine as a GPU runs it, on a fake one: the CPU's tokens, and its log-probabilities but for rounding.

A GPU decodes in pairs, has adapters beside the weights, and joins policies in a pass. fake_gpu.py says what cannot be
seen here."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from temper_gpu.engine.embedded.constraints import Constraints
from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import find_sizes
from temper_gpu.engine.embedded.policies import Policies
from temper_gpu.engine.embedded.requests import Sequence as Running
from temper_gpu.engine.embedded.scheduler import Scheduler
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.interface import Distribution, Generation, GenerationRequest
from temper_gpu.model.detokenizer import Detokenizer
from temper_gpu.model.lora import Adapter
from temper_gpu.model.models import BaseModel
from tests.cuda.fake_gpu import FakeGpu, on_gpu
from tests.engine.embedded.tiny import held, request, tiny_adapter, tiny_base

# The last one's keys are two chunks.
LENGTHS = (3, 20, 70, 300)
EVERYTHING = Distribution(0.9, 40, 0.02, 0.3, 0.4, 1.2, ((3, 5.0), (8, -100.0)))
SCHEMA = (
    '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}'
)
# A base model's answer has none.
Asked = tuple[Adapter | None, GenerationRequest]


def answers(base: BaseModel, asked: Sequence[Asked]) -> tuple[list[Generation], Scheduler]:
    """All at once, in this thread: modes of PyTorch are a thread's own."""
    sizes = Sizes((16, 32, 64, 128), 0.0)
    settings = EmbeddedSettings(num_threads=1, kv_cache_bytes=16 << 20, max_slots=16, gather_s=0.0)
    policies = Policies(base, settings.max_policies, DeviceLock())
    scheduler = Scheduler(base, sizes, policies, settings)
    constraints, detokenizer = Constraints(base), Detokenizer(base.tokenizer)
    running: list[Running] = []
    for adapter, each in asked:
        sha256 = None if adapter is None else adapter.sha256
        if adapter is not None:
            policies.load(held(adapter), 1.0)
        assert policies.use(sha256)
        running.append(Running(sha256, each, time.monotonic() + 600, detokenizer.decode))
        if each.schema is not None:
            running[-1].constraint = constraints.of(each.schema)
            running[-1].begin_again()
        scheduler.enqueue(running[-1])
    with torch.inference_mode():
        while scheduler.has_work():
            scheduler.step()
    return [each.future.result(0) for each in running], scheduler


def require_same(asked: Sequence[Asked]) -> FakeGpu:
    base = tiny_base("qwen2")
    wanted, _ = answers(base, asked)
    with FakeGpu() as gpu:
        found, scheduler = answers(on_gpu(base), asked)
    assert scheduler.counters.decode_passes > 0
    for one, other in zip(found, wanted, strict=True):
        assert (one.token_ids, one.finish_reason) == (other.token_ids, other.finish_reason)
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert [[pair[0] for pair in pairs] for pairs in one.top_logprobs] == [
            [pair[0] for pair in pairs] for pairs in other.top_logprobs
        ]
    return gpu


def test_a_base_model_and_an_adapter_answer_in_shared_passes_as_on_a_cpu():
    torch.use_deterministic_algorithms(False)
    adapter = tiny_adapter(tiny_base("qwen2"), 3)
    asked = [(who, request(seed, length, 8, 0.9)) for seed, length in enumerate(LENGTHS) for who in (None, adapter)]
    gpu = require_same(asked)
    # Decoding in pairs, and an adapter's rows among others'.
    assert gpu.launched["_scaled_dot_product_efficient_attention"] > 0
    assert gpu.launched["index_copy_"] > 0


def test_a_request_with_every_parameter_is_answered_as_on_a_cpu():
    """Whatever algorithms are allowed."""
    torch.use_deterministic_algorithms(True)
    plain = request(5, 20, 24, 0.8)
    full = replace(
        plain,
        distribution=EVERYTHING,
        schema=SCHEMA,
        stop=("7",),
        stop_token_ids=frozenset([261]),
        num_top_logprobs=3,
    )
    free = replace(full, schema=None, seed=6)
    require_same([(None, full), (None, free), (None, replace(free, temperature=0.0)), (None, plain)])


def test_the_proof_at_start_runs():
    """Which sizes it finds depends on this processor's bits."""
    torch.use_deterministic_algorithms(False)
    sizes = Sizes((16, 64), 0.0)
    with FakeGpu() as gpu:
        found = find_sizes(on_gpu(tiny_base("qwen2")), sizes, 16)
    assert set(found.allowed) <= set(sizes.allowed)
    assert gpu.launched["_scaled_dot_product_efficient_attention"] > 0
