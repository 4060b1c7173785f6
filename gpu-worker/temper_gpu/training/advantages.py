"""Rewards → advantages. An advantage is relative to its group: A = R − mean of the group.

`group-std` divides by the group's population standard deviation + 1e-6 (GRPO, arXiv 2402.03300), `batch-std` by the
batch's (mean by group, scale by batch: arXiv 2508.08221), `none` by nothing (Dr. GRPO, arXiv 2503.20783). Leave-one-out
compares with the mean of the *others* (RLOO, arXiv 2402.14740), which is A · G / (G − 1).
"""

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Literal

from temper_gpu.training.groups import Attempt
from temper_gpu.training.rows import TruncatedPolicy

Scale = Literal["none", "group-std", "batch-std"]
STD_EPSILON = 1e-6


def group_advantages(rewards: Sequence[Sequence[float]], scale: Scale, leave_one_out: bool) -> list[list[float]]:
    """One list of rewards per group in, one list of advantages per group out."""
    batch_std = population_std([reward for group in rewards for reward in group])
    return [_advantages(group, _divisor(group, scale, batch_std), leave_one_out) for group in rewards]


def attempt_advantages(
    groups: Sequence[Sequence[Attempt]], scale: Scale, leave_one_out: bool, truncated: TruncatedPolicy
) -> list[float | None]:
    """One advantage per attempt in order, None for those that are no data: they count in no mean."""
    rewards = [_rewards(group, truncated) for group in groups]
    remaining = (iter(group) for group in group_advantages(rewards, scale, leave_one_out))
    return [
        None if attempt.reward is None else next(of_group)
        for group, of_group in zip(groups, remaining, strict=True)
        for attempt in group
    ]


def population_std(values: Sequence[float]) -> float:
    if not values:
        return 0.0
    mean = fsum(values) / len(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / len(values))


def _rewards(group: Sequence[Attempt], truncated: TruncatedPolicy) -> list[float]:
    """Under `penalise` a truncated attempt gets its group's lowest reward; under `mask` it still counts in the mean."""
    rewards = [(attempt.reward, attempt.truncated) for attempt in group if attempt.reward is not None]
    lowest = min((reward for reward, _ in rewards), default=0.0)
    return [lowest if truncated == "penalise" and was_truncated else reward for reward, was_truncated in rewards]


def _divisor(group: Sequence[float], scale: Scale, batch_std: float) -> float:
    if scale == "none":
        return 1.0
    return (population_std(group) if scale == "group-std" else batch_std) + STD_EPSILON


def _advantages(group: Sequence[float], divisor: float, leave_one_out: bool) -> list[float]:
    if len(set(group)) < 2:
        # Exactly zero: the mean of equal rewards need not be one of them (0.1, three times).
        return [0.0] * len(group)
    mean = fsum(group) / len(group)
    factor = len(group) / (len(group) - 1) if leave_one_out else 1.0
    return [(reward - mean) * factor / divisor for reward in group]
