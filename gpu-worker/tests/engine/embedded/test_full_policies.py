"""Policies all of whose weights are their own, beside adapters and the base model in one engine."""

from collections.abc import Iterator

import pytest
import torch

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.interface import AdapterSource
from temper_gpu.failures import TemperError
from temper_gpu.model.full_weights import FullWeights, initial_weights
from temper_gpu.model.models import BaseModel
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import MicroBatch, Row, pack
from temper_gpu.training.policy import TrainablePolicy
from tests.engine.embedded.tiny import Held, ask, held, open_engine, request, tiny_adapter, tiny_base

LOCK = DeviceLock()
PROMPTS = [request(index, 20 + 30 * index, 12, 1.0 if index % 2 else 0) for index in range(4)]


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def engine(request: pytest.FixtureRequest, bfloat16: BaseModel) -> Iterator[EmbeddedEngine]:
    """With a prefix cache, and tied weights where it is in float32."""
    base = tiny_base("qwen3") if request.param == "float32" else bfloat16
    engine = open_engine(base, LOCK, prefix_cache_bytes=1 << 22, max_pass_tokens=64, max_slots=16)
    yield engine
    engine.close()


def moved(base: BaseModel, seed: int) -> FullWeights:
    """Each weight a little elsewhere."""
    generator = torch.Generator().manual_seed(seed)
    weights = {name: t + 1e-2 * torch.randn(t.shape, generator=generator) for name, t in initial_weights(base).items()}
    return FullWeights(f"{seed:064x}", weights)


def test_a_policy_samples_what_the_trainer_scores(engine: EmbeddedEngine):
    weights = moved(engine.base, 1)
    policy = TrainablePolicy(engine.base, None)
    policy.load(weights.tensors, initial_optimizer_tensors(weights.tensors))
    for asked in PROMPTS[1::2]:
        answer = ask(engine, asked, held(weights))
        ids = [*asked.prompt_token_ids, *answer.token_ids]
        places = list(range(len(asked.prompt_token_ids), len(ids)))
        ones = [1.0] * len(places)
        [batch] = pack([Row(ids, "attempt", places, answer.logprobs, ones, ones)], 1, 1000, policy.device)
        assert mismatch(policy, batch) < (1e-9 if engine.base.dtype == torch.float32 else 1e-3)
        with policy.without_adapter():
            assert mismatch(policy, batch) > 1e-2


@torch.no_grad()
def mismatch(policy: TrainablePolicy, batch: MicroBatch) -> float:
    """k3, as each step measures it."""
    log_ratios_N = policy.log_probabilities(batch).logprobs_N - batch.sampled_logprobs_N
    return (log_ratios_N.exp() - log_ratios_N - 1).mean().item()


def test_policies_of_all_kinds_answer_together_as_each_alone(engine: EmbeddedEngine):
    policies: list[AdapterSource | None] = [None, held(moved(engine.base, 2)), held(tiny_adapter(engine.base, 3))]
    asked = [(policy, prompt) for prompt in PROMPTS for policy in policies]
    alone = [ask(engine, prompt, policy) for policy, prompt in asked]
    with LOCK:
        futures = [engine.submit(policy, prompt, 300) for policy, prompt in asked]
    assert [future.result(300) for future in futures] == alone
    # The same prompt, with different weights.
    assert len({tuple(answer.logprobs) for answer in alone}) == len(alone)


def test_policies_with_weights_of_their_own_make_room_for_each_other(engine: EmbeddedEngine):
    first = ask(engine, PROMPTS[0], held(moved(engine.base, 10)))
    for seed in range(11, 22):
        ask(engine, PROMPTS[0], held(moved(engine.base, seed)))
    assert ask(engine, PROMPTS[0], held(moved(engine.base, 10))) == first
    assert len(engine.health().adapters) <= 8


def test_weights_of_another_model_are_refused(engine: EmbeddedEngine):
    weights = dict(moved(engine.base, 30).tensors)
    weights["x"] = weights.pop(next(iter(weights)))
    wrong = Held("f" * 64, lambda: FullWeights("f" * 64, weights))
    with pytest.raises(TemperError, match="a policy must have all"):
        ask(engine, PROMPTS[0], wrong)
