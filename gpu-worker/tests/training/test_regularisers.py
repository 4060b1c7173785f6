"""Penalties by hand: the policy gives the tokens 0 to 3 the probabilities 2/5, 1/5, 1/5, 1/5, its base 1/4 each.

Attempt a (A = 1/2) sampled 0 and 1, attempt b (A = −1/2) 3, so the mean is over three tokens.
"""

from collections.abc import Mapping
from math import log

import pytest
import torch
from torch import Tensor

from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.losses import kl_penalty, kl_reward, policy_kl_penalty
from temper_gpu.training.packing import Row, pack
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.step import train_step
from tests.training.samples import tiny_base, train_config
from tests.training.test_packing import POLICY
from tests.training.test_step_by_hand import ADAPTER, TablePolicy

pytestmark = pytest.mark.numerics

PROBABILITIES = [2 / 5, 1 / 5, 1 / 5, 1 / 5]
ENTROPY = -sum(p * log(p) for p in PROBABILITIES)


def step(said: Mapping[int, float] | None = None, **changes: object) -> tuple[list[float], dict[str, float]]:
    """`said`: the sampler's log-probabilities, where they are not the policy's."""
    policy = TablePolicy(torch.tensor([log(2), 0.0, 0.0, 0.0], requires_grad=True))
    said = dict(enumerate(map(log, PROBABILITIES))) if said is None else said
    attempts = [
        Attempt(reward, False, [Call([9], answer, [said[t] for t in answer], 1.0, ADAPTER)])
        for reward, answer in ((1, [0, 1]), (0, [3]))
    ]
    optimizer = train_config().optimizer.model_copy(update={"max_grad_norm": 1e9})
    config = train_config(optimizer=optimizer, **changes)
    metrics = train_step(policy, StepInputs(ADAPTER, [Group(0, attempts)], config, 0.1))
    assert policy.logits_V.grad is not None
    return policy.logits_V.grad.tolist(), metrics


def by_hand(slopes: dict[int, float]) -> list[float]:
    """From the derivatives by log π of the sampled tokens to those by the logits: slope · (e_token − π)."""
    total = sum(slopes.values())
    return [slopes.get(t, 0.0) - total * p for t, p in enumerate(PROBABILITIES)]


def test_without_penalties():
    assert step()[0] == pytest.approx(by_hand({0: -1 / 6, 1: -1 / 6, 3: 1 / 6}), rel=1e-5)


def test_the_penalty_of_a_divergence():
    """β (π_ref / π − log(π_ref / π) − 1) has the slope β (1 − π_ref / π): 3/8 for token 0, −1/4 for 1 and 3."""
    gradient, metrics = step(kl_coefficient=0.5)
    slopes = {0: -1 / 6 + 0.5 / 8, 1: -1 / 6 - 0.5 / 12, 3: 1 / 6 - 0.5 / 12}
    assert gradient == pytest.approx(by_hand(slopes), rel=1e-4)
    kl = (5 / 8 - log(5 / 8) - 1 + 2 * (5 / 4 - log(5 / 4) - 1)) / 3
    assert metrics["kl"] == pytest.approx(kl, rel=1e-5)
    assert metrics["loss"] == pytest.approx(step()[1]["loss"] + 0.5 * kl, rel=1e-5)


@pytest.mark.parametrize("sampler", [[0.0, 0.0, 0.0, 0.0], [1.0, -1.0, 0.5, 0.2]])
def test_weighed_by_the_ratio_the_gradient_is_that_of_the_policys_divergence(sampler: list[float]):
    """Over all tokens that a sampler may draw; k3 alone has that of the reference's divergence, where they are one."""
    logits_V, reference_V = torch.tensor([[1.2, -0.3, 0.4, 0.1], [-0.5, 0.9, 0.0, 0.3]], dtype=torch.float64)
    logits_V.requires_grad_()
    logprobs_V, reference_V = logits_V.log_softmax(-1), reference_V.log_softmax(-1)
    samplers_V = (logits_V.detach() + torch.tensor(sampler)).log_softmax(-1)

    def gradient(value: Tensor) -> Tensor:
        return torch.autograd.grad(value, logits_V, retain_graph=True)[0]

    expected = gradient((logprobs_V.exp() * (logprobs_V - reference_V)).sum())
    weighed_V = policy_kl_penalty(logprobs_V, reference_V, samplers_V)
    torch.testing.assert_close(gradient((samplers_V.exp() * weighed_V).sum()), expected)
    alone = gradient((samplers_V.exp() * kl_penalty(logprobs_V, reference_V)).sum())
    assert (alone - expected).norm() > 0.2 * expected.norm()
    if not any(sampler):
        torch.testing.assert_close(alone, gradient(-(reference_V.exp() * logprobs_V).sum()))


def test_the_penalty_weighed_by_the_ratio():
    """β ρ (π_ref / π − log(π_ref / π) − 1) has the slope β log(π / π_ref) where ρ is 1."""
    gradient, metrics = step(kl_coefficient=0.5, kl_estimator="k3-ratio")
    high, low = log(8 / 5) / 6, log(4 / 5) / 6
    assert gradient == pytest.approx(by_hand({0: -1 / 6 + high, 1: -1 / 6 + low, 3: 1 / 6 + low}), rel=1e-4)
    plain = step(kl_coefficient=0.5)[1]
    assert (metrics["loss"], metrics["kl"]) == pytest.approx((plain["loss"], plain["kl"]), rel=1e-5)


def test_the_weighed_penalty_has_the_weights_of_the_loss_where_a_correction_truncates():
    """Token 0 was sampled with 1/5, so its weight π₀ / μ is 2, truncated to 3/2; token 1 with 2/5: it has 1/2."""
    said = {0: log(1 / 5), 1: log(2 / 5), 3: log(1 / 5)}
    options = {"correction": "token-truncate", "correction_cap": 1.5, "max_logprob_mismatch": 10.0}
    gradient, _ = step(said, kl_coefficient=0.5, kl_estimator="k3-ratio", **options)
    high, low = log(8 / 5) / 6, log(4 / 5) / 6
    slopes = {0: 1.5 * (-1 / 6 + high), 1: 0.5 * (-1 / 6 + low), 3: 1 / 6 + low}
    assert gradient == pytest.approx(by_hand(slopes), rel=1e-4)


def test_a_divergence_in_the_reward():
    """log π / π_ref is log 8/5 for token 0 and log 4/5 for 1 and 3; what is above their mean is taken off."""
    high, low = log(8 / 5), log(4 / 5)
    mean = (high + 2 * low) / 3
    a0, a1, a3 = 1 / 2 + 0.5 * (mean - high), 1 / 2 + 0.5 * (mean - low), -1 / 2 + 0.5 * (mean - low)
    gradient, metrics = step(kl_coefficient=0.5, kl_as="reward")
    assert gradient == pytest.approx(by_hand({0: -a0 / 3, 1: -a1 / 3, 3: -a3 / 3}), rel=1e-4)
    assert metrics["kl"] == pytest.approx(step(kl_coefficient=0.5)[1]["kl"])


def test_entropy_that_is_worth_something():
    """−c H has the slope c π (log π + H) by a logit, whatever was sampled."""
    gradient, metrics = step(entropy_coefficient=0.5)
    plain, plain_metrics = step()
    expected = [g + 0.5 * p * (log(p) + ENTROPY) for g, p in zip(plain, PROBABILITIES, strict=True)]
    assert gradient == pytest.approx(expected, rel=1e-4)
    assert metrics["entropy"] == pytest.approx(ENTROPY, rel=1e-5)
    assert metrics["loss"] == pytest.approx(plain_metrics["loss"] - 0.5 * ENTROPY, rel=1e-5)


def test_the_penalty_is_trls_and_its_gradient_the_finite_difference():
    """GRPOTrainer's `per_token_kl` (TRL 1.16)."""
    logprobs_N, reference_N = torch.randn(2, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(5)) - 2
    old_N = logprobs_N + torch.linspace(-1, 1, 30, dtype=torch.float64)
    expected = torch.exp(reference_N - logprobs_N) - (reference_N - logprobs_N) - 1
    torch.testing.assert_close(kl_penalty(logprobs_N, reference_N), expected)
    # `use_bias_correction_kl`, its default.
    weighed = expected * torch.exp(logprobs_N - old_N)
    torch.testing.assert_close(policy_kl_penalty(logprobs_N, reference_N, old_N), weighed)
    leaves_N = logprobs_N.clone().requires_grad_()
    torch.autograd.gradcheck(lambda logprobs: kl_penalty(logprobs, reference_N), leaves_N, eps=1e-7)
    torch.autograd.gradcheck(lambda logprobs: policy_kl_penalty(logprobs, reference_N, old_N), leaves_N, eps=1e-7)
    assert kl_reward(logprobs_N, reference_N).mean().item() == pytest.approx(0, abs=1e-12)


def test_the_reference_is_the_base_model_and_the_adapter_comes_back():
    [batch] = pack([Row([5, 6, 7, 8], "attempt", [2, 3], [0.0] * 2, [1.0] * 2, [1.0] * 2)], 2, 64, POLICY.device)

    def scores(policy: TrainablePolicy) -> Tensor:
        return policy.log_probabilities(batch).logprobs_N.detach()

    before = scores(POLICY)
    with POLICY.without_adapter():
        reference = scores(POLICY)
    torch.testing.assert_close(reference, scores(TrainablePolicy(tiny_base(), POLICY.lora)))
    assert torch.equal(scores(POLICY), before)
    assert (before - reference).abs().max() > 1e-3
