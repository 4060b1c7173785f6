"""Numbers by hand: with log μ = −1, log π = −1 + ln ρ for the ratio ρ that a case needs."""

from functools import partial
from math import exp, log
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from temper_gpu import contract
from temper_gpu.contract import (
    CispoLoss,
    DppoLoss,
    GspoLoss,
    ImportanceSamplingLoss,
    LossConfig,
    PpoLoss,
    SapoLoss,
)
from temper_gpu.training.losses import cross_entropy, find_loss
from temper_gpu.training.packing import MicroBatch, Segment, SegmentTree

pytestmark = pytest.mark.numerics

CISPO_5 = CispoLoss(name="cispo", epsilon_low=1, epsilon_high=4)
PPO_28 = PpoLoss(name="ppo", epsilon_low=0.2, epsilon_high=0.28, dual_clip=3)
PPO_SINGLE = PPO_28.model_copy(update={"dual_clip": None})
IMPORTANCE_SAMPLING = ImportanceSamplingLoss(name="importance_sampling")
GSPO = GspoLoss(name="gspo", epsilon_low=3e-4, epsilon_high=4e-4)
DPPO = DppoLoss(name="dppo", max_shift=0.2, log_ratio_penalty=0.125)
SAPO = SapoLoss(name="sapo", tau_positive=1, tau_negative=2)
ALL = [CISPO_5, PPO_28, GSPO, DPPO, SAPO, IMPORTANCE_SAMPLING]
# By name, as the contract has them.
[UNION, _] = get_args(LossConfig.__value__)
MEMBERS: dict[str, type] = {get_args(member.model_fields["name"].annotation)[0]: member for member in get_args(UNION)}


def batch_of(
    sampled_logprobs_N: Tensor, advantages_N: Tensor, weight: float = 1.0, num_sequences: int = 1
) -> MicroBatch:
    """All of the tokens are sampled, by sequences of one length."""
    places_N = torch.arange(len(advantages_N))
    return MicroBatch(
        token_ids_BT=torch.zeros(1, len(advantages_N) + 1, dtype=torch.long),
        positions_BT=torch.arange(len(advantages_N) + 1)[None],
        attention=SegmentTree((Segment(0, 0, len(advantages_N) + 1),)),
        predicting_S=places_N,
        sources_N=places_N,
        targets_N=torch.zeros_like(places_N),
        sequences_N=places_N * num_sequences // max(1, len(places_N)),
        num_sequences=num_sequences,
        places_N=places_N,
        sampled_logprobs_N=sampled_logprobs_N,
        temperatures_N=torch.ones_like(advantages_N),
        weighted_advantages_N=advantages_N * weight,
    )


def loss_of(
    config: LossConfig,
    logprobs_N: Tensor,
    sampled_N: Tensor,
    advantages_N: Tensor,
    weight: float = 1.0,
    num_sequences: int = 1,
) -> Tensor:
    batch = batch_of(sampled_N, advantages_N, weight, num_sequences)
    return find_loss(config).function(batch, logprobs_N).total(torch.full_like(advantages_N, weight))


def of(config: LossConfig, ratio: float, advantage: float) -> tuple[float, float, bool]:
    """Loss, its derivative by log π, and whether the token was clipped."""
    logprobs_N = torch.tensor([log(ratio) - 1], dtype=torch.float64, requires_grad=True)
    sampled_N, advantages_N = torch.tensor([[-1.0], [advantage]], dtype=torch.float64)
    result = find_loss(config).function(batch_of(sampled_N, advantages_N), logprobs_N)
    loss_N = result.total(torch.ones_like(advantages_N))
    [slope] = torch.autograd.grad(loss_N.sum(), logprobs_N)
    return loss_N.item(), slope.item(), bool(result.metrics.get("clippedShare", torch.zeros(1)).item())


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
        (GSPO, 1.0003, 2.0, -2.0006, -2.0006, False),
        (GSPO, 1.5, 2.0, -1.0004 * 2, 0.0, True),
        (GSPO, 0.5, -2.0, 0.9997 * 2, 0.0, True),
        # μ = 1/e. π = 1.5/e moved by 0.184, π = 1.6/e by 0.221: the first stays in the region, the second leaves it.
        (DPPO, 1.5, 2.0, 0.125 * log(1.5) ** 2 - 3.0, 0.25 * log(1.5) - 3.0, False),
        (DPPO, 1.6, 2.0, 0.125 * log(1.6) ** 2, 0.25 * log(1.6), True),
        (DPPO, 1.6, -2.0, 0.125 * log(1.6) ** 2 + 3.2, 0.25 * log(1.6) + 3.2, False),
        (DPPO, 0.25, -2.0, 0.125 * log(0.25) ** 2, 0.25 * log(0.25), True),
        # At ρ = 1, σ = 1/2: (4 / τ) / 2 · A, and the slope of −ρA.
        (SAPO, 1.0, 0.5, -1.0, -0.5, False),
        (SAPO, 1.0, -0.5, 0.5, 0.5, False),
        # σ(ln 3) = 3/4, σ' = 3/16: 4 · 3/4 · A, and 4 · 3/16 · ρ · A.
        (SAPO, 1 + log(3), 0.5, -1.5, -0.375 * (1 + log(3)), False),
        # With τ = 2: 2 · 3/4 · A, and the same 4 · 3/16 · ρ · A.
        (SAPO, 1 + log(3) / 2, -0.5, 0.75, 0.375 * (1 + log(3) / 2), False),
    ],
)
def test_loss_by_hand(
    config: LossConfig, ratio: float, advantage: float, expected: float, slope: float, is_clipped: bool
):
    value, derivative, clipped = of(config, ratio, advantage)
    assert value == pytest.approx(expected)
    assert derivative == pytest.approx(slope)
    assert clipped == is_clipped


@pytest.mark.parametrize(("config", "spread"), [(PPO_28, 0.3), (DPPO, 0.3), (SAPO, 0.3), (IMPORTANCE_SAMPLING, 0.3)])
def test_gradients_are_the_finite_differences(config: LossConfig, spread: float):
    """Of five sequences, some of them clipped."""
    generator = torch.Generator().manual_seed(1)
    draws = torch.randn(2, 50, dtype=torch.float64, generator=generator)
    logprobs_N, sampled_N, advantages_N = draws[0] - 2, draws[0] - 2 - spread * draws[1], draws.prod(0)
    loss = partial(loss_of, config, sampled_N=sampled_N, advantages_N=advantages_N, num_sequences=5)
    torch.autograd.gradcheck(loss, logprobs_N.requires_grad_(), eps=1e-7)


def test_gspos_gradient_is_the_finite_difference_where_all_tokens_of_a_sequence_are_worth_the_same():
    generator = torch.Generator().manual_seed(1)
    draws = torch.randn(2, 50, dtype=torch.float64, generator=generator)
    advantages_N = torch.randn(5, dtype=torch.float64, generator=generator).repeat_interleave(10)
    logprobs_N, sampled_N = draws[0] - 2, draws[0] - 2 - 2e-3 * draws[1]

    def loss(logprobs_N: Tensor) -> Tensor:
        return loss_of(GSPO, logprobs_N, sampled_N, advantages_N, num_sequences=5).sum()

    torch.autograd.gradcheck(loss, logprobs_N.requires_grad_(), eps=1e-7)


@pytest.mark.parametrize("config", ALL)
def test_in_the_first_update_each_token_is_moved_by_its_own_advantage(config: LossConfig):
    """Whatever the loss, and where the turns of a sequence cancel."""
    advantages_N = torch.tensor([1.0, 1.0, -1.0, -1.0, 0.5, -0.25], dtype=torch.float64)
    sampled_N = torch.linspace(-3, -0.5, 6, dtype=torch.float64)
    logprobs_N = sampled_N.clone().requires_grad_()
    loss = loss_of(config, logprobs_N, sampled_N, advantages_N, num_sequences=1).sum()
    [gradient_N] = torch.autograd.grad(loss, logprobs_N)
    torch.testing.assert_close(gradient_N, -advantages_N)


@pytest.mark.parametrize("config", ALL)
@pytest.mark.parametrize("advantage", [1.0, -1.0])
@pytest.mark.parametrize("log_ratio", [27.7, 200.0, -27.7, -200.0])
def test_a_ratio_is_bounded_and_counted(config: LossConfig, advantage: float, log_ratio: float):
    """Of a token that the sampler thought impossible and that is certain now, or the other way round."""
    sampled_N, logprobs_N = torch.tensor([-abs(log_ratio), 0.0]).sort(descending=log_ratio < 0).values[:, None]
    moving_N = logprobs_N.clone().requires_grad_()
    result = find_loss(config).function(batch_of(sampled_N, torch.tensor([advantage])), moving_N)
    assert result.loss_N.abs().item() <= max(exp(20), 5 * abs(log_ratio))
    [gradient_N] = torch.autograd.grad(result.loss_N.sum(), moving_N)
    assert torch.isfinite(gradient_N).all()
    if "clippedShare" in result.metrics and not isinstance(config, CispoLoss):
        assert result.metrics["clippedShare"].all()


@pytest.mark.parametrize("config", ALL)
def test_a_weight_folded_into_the_advantage_scales_the_loss(config: LossConfig):
    generator = torch.Generator().manual_seed(2)
    logprobs_N, sampled_N, advantages_N = torch.randn(3, 20, dtype=torch.float64, generator=generator)
    weighted = loss_of(config, logprobs_N, sampled_N, advantages_N, weight=0.125)
    torch.testing.assert_close(weighted, loss_of(config, logprobs_N, sampled_N, advantages_N) * 0.125)


def test_a_sequence_has_the_geometric_mean_of_its_ratios():
    """Log ratios of two sequences: 0.002 and 0 (mean 0.001: clipped at 1.0004), −0.0004 and 0.0006 (0.0001)."""
    log_ratios_N = torch.tensor([0.002, 0.0, -0.0004, 0.0006], dtype=torch.float64)
    sampled_N, advantages_N = torch.full_like(log_ratios_N, -1), torch.tensor([1.0, 1.0, 1.0, 2.0]).double()
    logprobs_N = (log_ratios_N - 1).requires_grad_()
    result = find_loss(GSPO).function(batch_of(sampled_N, advantages_N, num_sequences=2), logprobs_N)
    ratio = exp(0.0001)
    assert result.loss_N.tolist() == pytest.approx([-1.0004, -1.0004, -ratio, -2 * ratio], rel=1e-12)
    assert result.metrics["clippedShare"].tolist() == [True, True, False, False]
    # The second sequence's ratio stands at each of its tokens, which its own advantage moves.
    [gradient_N] = torch.autograd.grad(result.loss_N.sum(), logprobs_N)
    assert gradient_N.tolist() == pytest.approx([0.0, 0.0, -ratio, -2 * ratio], rel=1e-12)


def trl_loss(config: LossConfig, logprobs_BT: Tensor, old_BT: Tensor, advantages_B1: Tensor) -> Tensor:
    """TRL's GRPOTrainer, `_compute_loss` (huggingface/trl f2cd577), per token.

    Its `delta` bounds ρ, our dual clip the objective; its `epsilon_high` of CISPO is the bound, ours a distance from 1.
    """
    log_ratio_BT = logprobs_BT - old_BT
    level_BT = log_ratio_BT.mean(-1, keepdim=True) if config.name == "gspo" else log_ratio_BT
    coef_1 = torch.exp(level_BT)
    if isinstance(config, CispoLoss):
        return -torch.clamp(coef_1, max=1 + config.epsilon_high).detach() * advantages_B1 * logprobs_BT
    if isinstance(config, SapoLoss):
        temperatures = torch.where(advantages_B1 > 0, config.tau_positive, config.tau_negative)
        return -(torch.sigmoid(temperatures * (coef_1 - 1)) * 4 / temperatures) * advantages_B1
    assert isinstance(config, PpoLoss | GspoLoss)
    coef_2 = torch.clamp(coef_1, 1 - config.epsilon_low, 1 + config.epsilon_high)
    if isinstance(config, PpoLoss) and config.dual_clip is not None:
        coef_1 = torch.clamp(coef_1, max=config.dual_clip)
    return (-torch.min(coef_1 * advantages_B1, coef_2 * advantages_B1)).expand_as(logprobs_BT)


@pytest.mark.parametrize(("config", "spread"), [(CISPO_5, 1.5), (PPO_28, 1.0), (GSPO, 2e-3), (SAPO, 1.0)])
def test_losses_and_gradients_are_those_of_trl(config: LossConfig, spread: float):
    generator = torch.Generator().manual_seed(3)
    draws_BT = torch.randn(2, 6, 7, dtype=torch.float64, generator=generator)
    advantages_B1 = torch.randn(6, 1, dtype=torch.float64, generator=generator)
    old_BT = draws_BT[0] - 2
    ours_N, theirs_BT = ((old_BT + spread * draws_BT[1]).clone().requires_grad_() for _ in range(2))
    found_N = loss_of(config, ours_N.flatten(), old_BT.flatten(), advantages_B1.expand(6, 7).flatten(), num_sequences=6)
    expected_BT = trl_loss(config, theirs_BT, old_BT, advantages_B1)
    torch.testing.assert_close(found_N, expected_BT.flatten())
    [found] = torch.autograd.grad(found_N.sum(), ours_N)
    [expected] = torch.autograd.grad(expected_BT.sum(), theirs_BT)
    torch.testing.assert_close(found, expected)


def test_cross_entropy_is_torchs_and_its_gradient_the_finite_difference():
    generator = torch.Generator().manual_seed(7)
    logits_NV = torch.randn(12, 5, dtype=torch.float64, generator=generator).requires_grad_()
    targets_N = torch.randint(5, (12,), generator=generator)
    weights_N = torch.rand(12, dtype=torch.float64, generator=generator)

    def ours(logits_NV: Tensor, weights_N: Tensor) -> Tensor:
        logprobs_N = torch.log_softmax(logits_NV, -1).gather(1, targets_N[:, None])[:, 0]
        return cross_entropy(logprobs_N, weights_N).sum()

    mean = ours(logits_NV, torch.full_like(weights_N, 1 / 12))
    torch.testing.assert_close(mean, F.cross_entropy(logits_NV, targets_N))
    weighted = F.cross_entropy(logits_NV, targets_N, reduction="none") * weights_N
    torch.testing.assert_close(ours(logits_NV, weights_N), weighted.sum())
    torch.autograd.gradcheck(partial(ours, weights_N=weights_N), logits_NV, eps=1e-7)


def test_the_union_of_the_contract_has_every_loss_of_the_contract():
    assert set(MEMBERS.values()) == {member for name, member in vars(contract).items() if name.endswith("Loss")}


@pytest.mark.parametrize("name", MEMBERS)
def test_every_loss_of_the_contract_has_its_row_with_the_metrics_that_it_says(name: str):
    config = next(config for config in ALL if config.name == name)
    loss = find_loss(config)
    losses = loss.function(batch_of(torch.full((3,), -1.0), torch.tensor([1.0, -1.0, 0.5])), torch.full((3,), -1.0))
    assert isinstance(config, MEMBERS[name])
    # pyrefly: ignore[missing-attribute]
    assert loss.function.func.__name__ == name
    assert tuple(losses.metrics) == loss.metrics
    assert {tensor.shape for tensor in (losses.loss_N, *losses.metrics.values())} == {(3,)}
