"""Numbers by hand: with log μ = −1, log π = −1 + ln ρ for the ratio ρ that a case needs."""

from functools import partial
from math import log
from typing import get_args

import pytest
import torch
from torch import Tensor

from temper_gpu import contract
from temper_gpu.contract import CispoLoss, ImportanceSamplingLoss, LossConfig, PpoLoss
from temper_gpu.training.losses import find_loss
from temper_gpu.training.packing import MicroBatch, Segment, SegmentTree

pytestmark = pytest.mark.numerics

CISPO_5 = CispoLoss(name="cispo", epsilon_low=1, epsilon_high=4, dual_clip=None)
PPO_28 = PpoLoss(name="ppo", epsilon_low=0.2, epsilon_high=0.28, dual_clip=3)
PPO_SINGLE = PPO_28.model_copy(update={"dual_clip": None})
IMPORTANCE_SAMPLING = ImportanceSamplingLoss(name="importance_sampling", epsilon_low=0, epsilon_high=0, dual_clip=None)
# By name, as the contract has them.
[UNION, _] = get_args(LossConfig.__value__)
MEMBERS: dict[str, type] = {get_args(member.model_fields["name"].annotation)[0]: member for member in get_args(UNION)}


def batch_of(sampled_logprobs_N: Tensor, advantages_N: Tensor) -> MicroBatch:
    """All of the tokens are sampled, by one sequence."""
    places_N = torch.arange(len(advantages_N))
    return MicroBatch(
        token_ids_BT=torch.zeros(1, len(advantages_N) + 1, dtype=torch.long),
        positions_BT=torch.arange(len(advantages_N) + 1)[None],
        attention=SegmentTree((Segment(0, 0, len(advantages_N) + 1),)),
        sources_N=places_N,
        targets_N=torch.zeros_like(places_N),
        sequences_N=torch.zeros_like(places_N),
        num_sequences=1,
        sampled_logprobs_N=sampled_logprobs_N,
        temperatures_N=torch.ones_like(advantages_N),
        weighted_advantages_N=advantages_N,
    )


def loss_of(config: LossConfig, logprobs_N: Tensor, sampled_N: Tensor, advantages_N: Tensor) -> Tensor:
    return find_loss(config).function(batch_of(sampled_N, advantages_N), logprobs_N).loss_N


def of(config: LossConfig, ratio: float, advantage: float) -> tuple[float, float, bool]:
    """Loss, its derivative by log π, and whether the token was clipped."""
    logprobs_N = torch.tensor([log(ratio) - 1], dtype=torch.float64, requires_grad=True)
    sampled_N, advantages_N = torch.tensor([[-1.0], [advantage]], dtype=torch.float64)
    result = find_loss(config).function(batch_of(sampled_N, advantages_N), logprobs_N)
    [slope] = torch.autograd.grad(result.loss_N.sum(), logprobs_N)
    return result.loss_N.item(), slope.item(), bool(result.metrics["clippedShare"].item())


@pytest.mark.parametrize(
    ("config", "ratio", "advantage", "expected", "slope", "is_clipped"),
    [
        (CISPO_5, 2.0, 0.5, -2 * 0.5 * (log(2) - 1), -1.0, False),
        (CISPO_5, 8.0, 0.5, -5 * 0.5 * (log(8) - 1), -2.5, True),  # held at 1 + 4, and still a gradient
        (CISPO_5, 0.1, -1.0, 0.1 * (log(0.1) - 1), 0.1, False),  # 1 − 1 = 0 is no bound for a ratio
        (PPO_28, 1.1, 2.0, -2.2, -2.2, False),
        (PPO_28, 1.5, 2.0, -1.28 * 2, 0.0, True),
        (PPO_28, 0.5, 2.0, -1.0, -1.0, False),  # a good token that became rarer is pulled back
        (PPO_28, 0.5, -2.0, 1.6, 0.0, True),
        (PPO_28, 2.0, -2.0, 4.0, 4.0, False),
        (PPO_28, 4.0, -2.0, 6.0, 0.0, True),  # dual clip: 3 · 2
        (PPO_SINGLE, 4.0, -2.0, 8.0, 8.0, False),
        (IMPORTANCE_SAMPLING, 4.0, -2.0, 8.0, 8.0, False),
    ],
)
def test_loss_by_hand(
    config: LossConfig, ratio: float, advantage: float, expected: float, slope: float, is_clipped: bool
):
    value, derivative, clipped = of(config, ratio, advantage)
    assert value == pytest.approx(expected)
    assert derivative == pytest.approx(slope)
    assert clipped == is_clipped


@pytest.mark.parametrize("config", [PPO_28, IMPORTANCE_SAMPLING])
def test_gradients_are_the_finite_differences(config: LossConfig):
    generator = torch.Generator().manual_seed(1)
    draws = torch.randn(2, 50, dtype=torch.float64, generator=generator)
    logprobs_N, sampled_N, advantages_N = draws[0] - 2, draws[0] - 2 - 0.3 * draws[1], draws.prod(0)
    loss = partial(loss_of, config, sampled_N=sampled_N, advantages_N=advantages_N)
    torch.autograd.gradcheck(loss, logprobs_N.requires_grad_(), eps=1e-7)


def test_cispos_gradient_is_that_of_its_weighted_log_probability():
    """−w · log π with w = clip(ρ) · A held fixed: by finite differences of log π alone."""
    logprobs_N = torch.tensor([-0.5, -2.0, -1.0], dtype=torch.float64)
    sampled_N = torch.tensor([-3.0, -1.0, -1.1], dtype=torch.float64)
    advantages_N = torch.tensor([1.0, -0.5, 0.25], dtype=torch.float64)
    weights_N = (logprobs_N - sampled_N).exp().clamp(0, 5) * advantages_N
    step = 1e-6
    slopes_N = -(weights_N * (logprobs_N + step) - weights_N * (logprobs_N - step)) / (2 * step)
    moving_N = logprobs_N.clone().requires_grad_()
    [gradient_N] = torch.autograd.grad(loss_of(CISPO_5, moving_N, sampled_N, advantages_N).sum(), moving_N)
    torch.testing.assert_close(gradient_N, slopes_N, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("config", [CISPO_5, PPO_28, IMPORTANCE_SAMPLING])
def test_a_weight_folded_into_the_advantage_scales_the_loss(config: LossConfig):
    generator = torch.Generator().manual_seed(2)
    logprobs_N, sampled_N, advantages_N = torch.randn(3, 20, dtype=torch.float64, generator=generator)
    weighted = loss_of(config, logprobs_N, sampled_N, advantages_N * 0.125)
    torch.testing.assert_close(weighted, loss_of(config, logprobs_N, sampled_N, advantages_N) * 0.125)


def test_the_union_of_the_contract_has_every_loss_of_the_contract():
    assert set(MEMBERS.values()) == {member for name, member in vars(contract).items() if name.endswith("Loss")}


@pytest.mark.parametrize("name", MEMBERS)
def test_every_loss_of_the_contract_has_its_row_with_the_metrics_that_it_says(name: str):
    config = next(config for config in (CISPO_5, PPO_28, IMPORTANCE_SAMPLING) if config.name == name)
    loss = find_loss(config)
    losses = loss.function(batch_of(torch.full((3,), -1.0), torch.tensor([1.0, -1.0, 0.5])), torch.full((3,), -1.0))
    assert isinstance(config, MEMBERS[name])
    assert loss.function.func.__name__ == name
    assert tuple(losses.metrics) == loss.metrics
    assert {tensor.shape for tensor in (losses.loss_N, *losses.metrics.values())} == {(3,)}
