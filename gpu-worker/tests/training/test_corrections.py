from math import exp, log

import pytest
import torch

from temper_gpu.contract import CispoLoss
from temper_gpu.training.corrections import Kind, correct
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.step import train_step
from tests.training.samples import train_config
from tests.training.test_step_by_hand import ADAPTER, QUARTER, TablePolicy

pytestmark = pytest.mark.numerics

# Sequence 0: ratios 4 and 1/2, product 2, geometric mean √2. Sequence 1: ratio 1/4.
LOG_RATIOS_F = torch.tensor([log(4), -log(2), -log(4)], dtype=torch.float64)
SEQUENCES_F = torch.tensor([0, 0, 1])
ADVANTAGES_F = torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("kind", "cap", "factors", "exceeded"),
    [
        ("token-truncate", 3, [3, 0.5, 0.25], [True, False, False]),
        ("token-mask", 3, [0, 0.5, 0], [True, False, True]),
        ("sequence-truncate", 1.5, [1.5, 1.5, 0.25], [True, True, False]),
        ("sequence-mask", 3, [2, 2, 0], [False, False, True]),
        ("geometric", 1.5, [1, 1, 0], [False, False, True]),
        ("geometric", 1.4, [0, 0, 0], [True, True, True]),
        # The trainer has moved away from sequence 1, by 4.
        ("off-policy-mask", 3, [1, 1, 0], [False, False, True]),
        ("off-policy-mask", 5, [1, 1, 1], [False, False, False]),
    ],
)
def test_corrections_by_hand(kind: Kind, cap: float, factors: list[float], exceeded: list[bool]):
    correction = correct(kind, cap, LOG_RATIOS_F, SEQUENCES_F, ADVANTAGES_F)
    assert correction.factors_F.tolist() == pytest.approx(factors)
    assert correction.exceeded_F.tolist() == exceeded
    is_mask = not kind.endswith("truncate")
    assert correction.kept_F.tolist() == [not (is_mask and each) for each in exceeded]
    assert correction.is_weighing == (kind not in ("geometric", "off-policy-mask"))


def test_the_off_policy_mask_keeps_what_is_better_than_its_group():
    good = correct("off-policy-mask", 3, LOG_RATIOS_F, SEQUENCES_F, -ADVANTAGES_F)
    assert good.factors_F.tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", ["token-truncate", "token-mask", "sequence-truncate", "sequence-mask"])
def test_factors_are_those_of_trl(kind: Kind):
    """GRPOTrainer's `vllm_importance_sampling_ratio` (huggingface/trl f2cd577). Its masks have a lower bound of their
    own, `clip_min`, which ours is 1 / cap; its truncation has none."""
    log_ratios_BT = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    diff = log_ratios_BT.sum(-1, keepdim=True) if kind.startswith("sequence") else log_ratios_BT
    ratio = torch.exp(diff)
    if kind.endswith("truncate"):
        expected = torch.clamp(ratio, max=2)
    else:
        expected = ratio.masked_fill((ratio < 0.5) | (ratio > 2), 0.0)
    sequences_F = torch.arange(5).repeat_interleave(4)
    found = correct(kind, 2, log_ratios_BT.flatten(), sequences_F, torch.ones(20)).factors_F
    torch.testing.assert_close(found, expected.expand(5, 4).flatten())


CISPO_1 = CispoLoss(name="cispo", epsilon_low=0.25, epsilon_high=0.5)


def gradient(**changes: object) -> tuple[list[float], dict[str, float]]:
    """π₀ gives each of four tokens 1/4. Attempt a (A = 1/2) sampled tokens 0 and 1, whose μ was 1/12 and 1/4; attempt b
    (A = −1/2) token 3 with μ = 1/2."""
    policy = TablePolicy()
    a = Call([9], [0, 1], [QUARTER - log(3), QUARTER], 1.0, ADAPTER)
    b = Call([9], [3], [QUARTER + log(2)], 1.0, ADAPTER)
    optimizer = train_config().optimizer.model_copy(update={"max_grad_norm": 1e9})
    config = train_config(loss=CISPO_1, optimizer=optimizer, max_logprob_mismatch=10.0, **changes)
    groups = [Group(0, [Attempt(1, False, [a]), Attempt(0, False, [b])])]
    metrics = train_step(policy, StepInputs(ADAPTER, groups, config, 0.1))
    assert policy.logits_V.grad is not None
    return policy.logits_V.grad.tolist(), metrics


def by_hand(weight_0: float, weight_1: float, weight_3: float) -> list[float]:
    """−Σ w A (e_token − 1/4)."""
    pulls = [weight_0 / 2, weight_1 / 2, 0.0, -weight_3 / 2]
    return [sum(pulls) / 4 - pull for pull in pulls]


@pytest.mark.parametrize(
    ("correction", "cap", "weights", "share"),
    [
        # CISPO clips its own ratio, 3, 1 and 1/2, at 3/4 and 3/2.
        (None, None, (1.5 / 3, 1 / 3, 0.75 / 3), None),
        # Its ratio is π₀ / π₀ = 1 now; the correction truncates 3 at 2.5.
        ("token-truncate", 2.5, (2.5 / 3, 1 / 3, 0.5 / 3), 1 / 3),
        # The mean is over the two tokens that are left.
        ("token-mask", 2.5, (0, 1 / 2, 0.5 / 2), 1 / 3),
        ("sequence-truncate", 2.5, (2.5 / 3, 2.5 / 3, 0.5 / 3), 2 / 3),
        ("sequence-mask", 2.5, (0, 0, 0.5), 2 / 3),
        # √3 is kept, 1/2 is not; the loss's own ratio stays.
        ("geometric", 1.9, (1.5 / 2, 1 / 2, 0), 1 / 3),
        # √3 is beyond the cap, too, but the other way, and of an advantage above 0.
        ("off-policy-mask", 1.5, (1.5 / 2, 1 / 2, 0), 1 / 3),
    ],
)
def test_a_step_with_a_correction_by_hand(
    correction: str | None, cap: float | None, weights: tuple[float, float, float], share: float | None
):
    options = {} if correction is None else {"correction": correction, "correction_cap": cap}
    found, metrics = gradient(**options)
    assert found == pytest.approx(by_hand(*weights), rel=1e-5)
    assert metrics.get("correctedShare") == (None if share is None else pytest.approx(share))
    # Sampler and trainer are compared whatever the loss does with it.
    assert metrics["maxAbsLogRatio"] == pytest.approx(log(3), rel=1e-6)
    assert metrics["logprobK3"] == pytest.approx((3 - log(3) - 1 + 0.5 + log(2) - 1) / 3, rel=1e-5)


def test_where_everything_is_masked_nothing_moves():
    policy = TablePolicy()
    config = train_config(correction="token-mask", correction_cap=1.5, max_logprob_mismatch=10.0)
    attempts = [Attempt(r, False, [Call([9], [0], [QUARTER - 1], 1.0, ADAPTER)]) for r in (0, 1)]
    metrics = train_step(policy, StepInputs(ADAPTER, [Group(0, attempts)], config, 0.1))
    assert (policy.updates, metrics["correctedShare"]) == (0, 1)
    assert metrics["logprobK3"] == pytest.approx(exp(1) - 2, rel=1e-5)
