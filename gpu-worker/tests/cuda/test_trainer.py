"""A training step as a GPU computes it, on a fake one: the CPU's loss, gradient and weights, in float32.

Trees are computed in blocks here, because FlexAttention's kernel is for halves: test_tree_kernel.py has its numbers,
and test_ceilings.py its launches. fake_gpu.py says what cannot be seen here."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from temper_gpu.contract import LoraConfig
from temper_gpu.model.four_bit import pack_layers
from temper_gpu.model.models import BaseModel
from temper_gpu.training.groups import Group
from temper_gpu.training.metrics import Metrics
from temper_gpu.training.optimizers import OptimizerKind, initial_optimizer_tensors
from temper_gpu.training.platform import repeatable
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import ALONE, Ranks
from temper_gpu.training.step import train_step
from tests.cuda.fake_gpu import FakeGpu, on_gpu
from tests.training.agreement import first_moments, require_same_gradients
from tests.training.samples import STEADY, lora, sampled_groups, tiny_base, train_config

COMPARED = ("loss", "gradNorm", "entropy", "logprobK3")


@cache
def groups() -> list[Group]:
    return sampled_groups("p", shared=24, num_attempts=6)


def in_4_bits(base: BaseModel) -> BaseModel:
    packed = pack_layers(base.instantiate("sdpa"), torch.device("cpu"))
    tensors = {name: tensor for name, tensor in base.tensors.items() if name not in packed}
    return replace(base, tensors=tensors, packed=packed)


def step(
    base: BaseModel,
    packing: str,
    is_recomputed: bool,
    adapter: LoraConfig | None,
    kind: OptimizerKind,
    ranks: Ranks = ALONE,
) -> tuple[Metrics, dict[str, Tensor], dict[str, Tensor]]:
    optimizer = STEADY.model_copy(update={"kind": kind})
    config = train_config(
        packing=packing, lora=adapter, optimizer=optimizer, micro_batch_tokens=256, max_logprob_mismatch=1e9
    )
    policy = TrainablePolicy(base, adapter, ranks, kind)
    policy.recomputes = lambda num_tokens: is_recomputed
    generator = torch.Generator().manual_seed(1)
    start = {name: torch.randn(p.shape, generator=generator) * 0.05 for name, p in policy.parameters.items()}
    if adapter is None:
        start = {name: tensor.detach().cpu().clone() for name, tensor in policy.parameters.items()}
    policy.load(start, initial_optimizer_tensors(start))
    with repeatable(base.device):
        metrics = train_step(policy, "p", groups(), config, 1e-2, seed="s")
    assert any(not torch.equal(tensor, start[name]) for name, tensor in policy.adapter_tensors().items())
    return metrics, policy.adapter_tensors(), policy.optimizer_tensors()


@pytest.mark.parametrize(
    ("packing", "is_recomputed", "adapter", "kind", "is_packed"),
    [
        pytest.param("rows", False, lora(), None, False, id="rows"),
        pytest.param("tree", False, lora(), None, False, id="tree"),
        pytest.param("tree", True, lora(), None, False, id="tree-recomputed"),
        pytest.param("tree", False, lora(), None, True, id="4-bits"),
        pytest.param("rows", False, None, None, False, id="all-weights"),
        pytest.param("rows", True, lora(256), "adamw_8bit", False, id="8-bit-adamw"),
    ],
)
def test_a_step_has_the_cpus_numbers(
    packing: str, is_recomputed: bool, adapter: LoraConfig | None, kind: OptimizerKind, is_packed: bool
):
    given, base = (packing, is_recomputed, adapter, kind), tiny_base()
    if is_packed:
        base = in_4_bits(base)
    wanted, weights, state = step(base, *given)
    with FakeGpu(has_numbers=True) as gpu:
        found, weights_there, state_there = step(on_gpu(base), *given)
    assert gpu.launched.times.total() > 500
    for key in COMPARED:
        assert found[key] == pytest.approx(wanted[key], rel=1e-5, abs=1e-7), key
    for key in ("computedTokens", "sharedTokens"):
        assert found.get(key) == wanted.get(key)
    assert (found.get("sharedTokens", 0) > 0) == (packing == "tree")
    if kind is None:
        require_same_gradients(first_moments(state_there), first_moments(state))
    for name, tensor in weights.items():
        torch.testing.assert_close(weights_there[name], tensor, rtol=1e-5, atol=1e-6)
