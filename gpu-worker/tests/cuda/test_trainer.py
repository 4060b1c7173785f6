"""A training step as a GPU computes it, on a fake one: the CPU's loss, gradient and weights, in float32.

Trees are computed in blocks here, because FlexAttention's kernel is for halves: test_tree_kernel.py has its
numbers. fake_gpu.py says what cannot be seen here."""

from dataclasses import dataclass, field, replace
from functools import cache

import pytest
import torch
from torch import Tensor

from temper_gpu.contract import LoraConfig
from temper_gpu.model.four_bit import pack_layers
from temper_gpu.model.models import BaseModel
from temper_gpu.training.groups import Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.lora_layers import joins_halves
from temper_gpu.training.metrics import Metrics
from temper_gpu.training.optimizers import OptimizerKind, initial_optimizer_tensors
from temper_gpu.training.platform import repeatable
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import ALONE, Ranks
from temper_gpu.training.step import train_step
from tests.cuda.fake_gpu import GPU, FakeGpu, on_gpu
from tests.training.agreement import first_moments, require_same_gradients
from tests.training.samples import STEADY, lora, sampled_groups, tiny_base, train_config


@cache
def groups() -> list[Group]:
    return sampled_groups("p", shared=24, num_attempts=6)


def in_4_bits(base: BaseModel) -> BaseModel:
    packed = pack_layers(base.instantiate("sdpa"), torch.device("cpu"))
    tensors = {name: tensor for name, tensor in base.tensors.items() if name not in packed}
    return replace(base, tensors=tensors, packed=packed)


@dataclass(frozen=True)
class Way:
    packing: str
    is_recomputed: bool = False
    adapter: LoraConfig | None = field(default_factory=lora)
    optimizer: OptimizerKind = "adamw"
    is_in_4_bits: bool = False


def step(base: BaseModel, way: Way, ranks: Ranks = ALONE) -> tuple[Metrics, dict[str, Tensor], dict[str, Tensor]]:
    """Metrics, what was trained, and the optimizer's state."""
    optimizer = STEADY.model_copy(update={"kind": way.optimizer})
    options = {"packing": way.packing, "lora": way.adapter, "optimizer": optimizer}
    config = train_config(micro_batch_tokens=256, max_logprob_mismatch=1e9, **options)
    policy = TrainablePolicy(base, way.adapter, ranks, way.optimizer)
    policy.recomputes = lambda num_tokens: way.is_recomputed
    start = {name: parameter.detach().cpu().clone() for name, parameter in policy.parameters.items()}
    if way.adapter is not None:
        generator = torch.Generator().manual_seed(1)
        start = {name: torch.randn(tensor.shape, generator=generator) * 0.05 for name, tensor in start.items()}
    policy.load(start, initial_optimizer_tensors(start))
    with repeatable(base.device):
        metrics = train_step(policy, StepInputs("p", groups(), config, 1e-2, seed="s"))
    trained = policy.adapter_tensors()
    assert any(not torch.equal(tensor, start[name]) for name, tensor in trained.items())
    return metrics, trained, policy.optimizer_tensors()


def require_same_numbers(found: Metrics, wanted: Metrics) -> None:
    for key in ("loss", "gradNorm", "entropy", "logprobK3"):
        assert found[key] == pytest.approx(wanted[key], rel=1e-5, abs=1e-7), key
    for key in ("computedTokens", "sharedTokens"):
        assert found[key] == wanted[key]


WAYS = {
    "rows": Way("rows"),
    "tree": Way("tree"),
    "tree, layers computed again": Way("tree", is_recomputed=True),
    "base model in 4 bits": Way("tree", is_in_4_bits=True),
    "all weights": Way("rows", adapter=None),
    "AdamW in 8 bits": Way("rows", True, lora(256), "adamw_8bit"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_step_has_the_cpus_numbers(way: Way):
    base = in_4_bits(tiny_base()) if way.is_in_4_bits else tiny_base()
    wanted, trained, state = step(base, way)
    with FakeGpu() as gpu:
        found, trained_there, state_there = step(on_gpu(base), way)
    assert gpu.launched.total() > 500
    require_same_numbers(found, wanted)
    assert (found["sharedTokens"] > 0) == (way.packing == "tree")
    if way.optimizer == "adamw":
        require_same_gradients(first_moments(state_there), first_moments(state))
    for name, tensor in trained.items():
        torch.testing.assert_close(trained_there[name], tensor, rtol=1e-5, atol=1e-6)


def test_a_gpu_alone_computes_adapters_of_halves_in_halves():
    assert [joins_halves(device) for device in (GPU, torch.device("cpu"))] == [True, False]
