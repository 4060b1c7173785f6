"""Numbers by hand: with log μ = −1, log π = −1 + ln ρ for the ratio ρ that a case needs."""

from collections.abc import Callable
from math import log

import pytest
import torch
from torch import Tensor

from temper_gpu.training.losses import TokenLoss, cispo, importance_sampling, ppo

Loss = Callable[[Tensor, Tensor, Tensor], TokenLoss]


def of(loss: Loss, ratio: float, advantage: float) -> tuple[float, float, bool]:
    """Loss, its derivative by log π, and whether the token was clipped."""
    logprobs_N = torch.tensor([log(ratio) - 1], dtype=torch.float64, requires_grad=True)
    result = loss(logprobs_N, torch.tensor([-1.0], dtype=torch.float64), torch.tensor([advantage], dtype=torch.float64))
    [slope] = torch.autograd.grad(result.loss_N.sum(), logprobs_N)
    return result.loss_N.item(), slope.item(), bool(result.clipped_N.item())


def cispo_5(*tensors: Tensor) -> TokenLoss:
    return cispo(*tensors, low=1.0, high=4.0)


def ppo_28(*tensors: Tensor) -> TokenLoss:
    return ppo(*tensors, low=0.2, high=0.28, dual_clip=3.0)


def ppo_single(*tensors: Tensor) -> TokenLoss:
    return ppo(*tensors, low=0.2, high=0.28, dual_clip=None)


@pytest.mark.parametrize(
    ("loss", "ratio", "advantage", "expected", "slope", "is_clipped"),
    [
        (cispo_5, 2.0, 0.5, -2 * 0.5 * (log(2) - 1), -1.0, False),
        (cispo_5, 8.0, 0.5, -5 * 0.5 * (log(8) - 1), -2.5, True),  # held at 1 + 4, and still a gradient
        (cispo_5, 0.1, -1.0, 0.1 * (log(0.1) - 1), 0.1, False),  # 1 − 1 = 0 is no bound for a ratio
        (ppo_28, 1.1, 2.0, -2.2, -2.2, False),
        (ppo_28, 1.5, 2.0, -1.28 * 2, 0.0, True),
        (ppo_28, 0.5, 2.0, -1.0, -1.0, False),  # a good token that became rarer is pulled back
        (ppo_28, 0.5, -2.0, 1.6, 0.0, True),
        (ppo_28, 2.0, -2.0, 4.0, 4.0, False),
        (ppo_28, 4.0, -2.0, 6.0, 0.0, True),  # dual clip: 3 · 2
        (ppo_single, 4.0, -2.0, 8.0, 8.0, False),
        (importance_sampling, 4.0, -2.0, 8.0, 8.0, False),
    ],
)
def test_loss_by_hand(loss: Loss, ratio: float, advantage: float, expected: float, slope: float, is_clipped: bool):
    value, derivative, clipped = of(loss, ratio, advantage)
    assert value == pytest.approx(expected)
    assert derivative == pytest.approx(slope)
    assert clipped == is_clipped


@pytest.mark.parametrize("loss", [ppo_28, importance_sampling])
def test_gradients_are_the_finite_differences(loss: Loss):
    generator = torch.Generator().manual_seed(1)
    draws = torch.randn(2, 50, dtype=torch.float64, generator=generator)
    logprobs_N, sampled_N, advantages_N = draws[0] - 2, draws[0] - 2 - 0.3 * draws[1], draws.prod(0)
    torch.autograd.gradcheck(lambda x: loss(x, sampled_N, advantages_N).loss_N, logprobs_N.requires_grad_(), eps=1e-7)


def test_cispos_gradient_is_that_of_its_weighted_log_probability():
    """−w · log π with w = clip(ρ) · A held fixed: by finite differences of log π alone."""
    logprobs_N = torch.tensor([-0.5, -2.0, -1.0], dtype=torch.float64)
    sampled_N = torch.tensor([-3.0, -1.0, -1.1], dtype=torch.float64)
    advantages_N = torch.tensor([1.0, -0.5, 0.25], dtype=torch.float64)
    weights_N = (logprobs_N - sampled_N).exp().clamp(0, 5) * advantages_N
    step = 1e-6
    slopes_N = -(weights_N * (logprobs_N + step) - weights_N * (logprobs_N - step)) / (2 * step)
    moving_N = logprobs_N.clone().requires_grad_()
    [gradient_N] = torch.autograd.grad(cispo_5(moving_N, sampled_N, advantages_N).loss_N.sum(), moving_N)
    torch.testing.assert_close(gradient_N, slopes_N, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("loss", [cispo_5, ppo_28, importance_sampling])
def test_a_weight_folded_into_the_advantage_scales_the_loss(loss: Loss):
    generator = torch.Generator().manual_seed(2)
    logprobs_N, sampled_N, advantages_N = torch.randn(3, 20, dtype=torch.float64, generator=generator)
    weighted = loss(logprobs_N, sampled_N, advantages_N * 0.125).loss_N
    torch.testing.assert_close(weighted, loss(logprobs_N, sampled_N, advantages_N).loss_N * 0.125)
