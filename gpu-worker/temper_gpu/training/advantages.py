"""Rewards → advantages. An advantage is relative to its group: A = R − mean of the group.

`group-std` divides by the group's population standard deviation + 1e-6 (GRPO, arXiv 2402.03300), `batch-std` by the
batch's (mean by group, scale by batch: arXiv 2508.08221), `none` by nothing (Dr. GRPO, arXiv 2503.20783). Leave-one-out
compares with the mean of the *others* (RLOO, arXiv 2402.14740), which is A · G / (G − 1).

If turns have rewards, a turn is trained with its return: the attempt's reward from that turn on, which is its whole
reward less that of the turns before. It is compared with the group's returns at the same turn; an attempt that ended
earlier counts with its reward less that of all its turns. Without rewards of turns, every return is the attempt's
reward. The divisor is that of the whole rewards, so that the turns of a group keep their proportions.

If attempts have baselines (roles.py), an attempt is compared with its own, and nothing divides: A = R − baseline. All
its turns share that advantage.

Truncated attempts: `mask` counts them in the mean and trains none of them, `penalise` gives them the lowest return of
their group at every turn (never above the mean, so never a positive advantage), `keep` treats them like the others.

Overlong attempts: their reward is reduced by the cost of their length in the group's verdict
(`core/plan/shaped-rewards.ts`).
"""

from collections.abc import Sequence
from itertools import islice
from math import frexp, fsum, ldexp, sqrt
from typing import Literal

from temper_gpu.training.groups import Attempt
from temper_gpu.training.rows import TruncatedPolicy

Scale = Literal["none", "group-std", "batch-std"]
STD_EPSILON = 1e-6
# Gradients of larger ones overflow: their norm adds squares in float32.
MOST_ADVANTAGE = 1e12


def group_advantages(
    returns: Sequence[Sequence[Sequence[float]]], scale: Scale, leave_one_out: bool
) -> list[list[list[float]]]:
    """Per group, per turn, per attempt. The returns at the first turn are the rewards of the attempts."""
    batch_std = population_std([reward for group in returns for reward in group[0]])
    return [_group_advantages(group, _divisor(group[0], scale, batch_std), leave_one_out) for group in returns]


def attempt_advantages(
    groups: Sequence[Sequence[Attempt]],
    scale: Scale,
    leave_one_out: bool,
    truncated: TruncatedPolicy,
) -> list[list[float] | None]:
    """One list per attempt in order, None for those that are no data: they count in no mean. Groups with an advantage
    beyond MOST_ADVANTAGE are left out: None, too.

    It has an advantage for each turn; a single one, for all of them, where no turn of the group has a reward.
    """
    if any(attempt.baseline is not None for group in groups for attempt in group):
        found = [_baseline_advantages(group, truncated) for group in groups]
    else:
        by_turn = group_advantages([_returns(group, truncated) for group in groups], scale, leave_one_out)
        found = [_by_attempt(*both) for both in zip(groups, by_turn, strict=True)]
    return [advantage if _is_usable(of_group) else None for of_group in found for advantage in of_group]


def _by_attempt(group: Sequence[Attempt], by_turn: list[list[float]]) -> list[list[float] | None]:
    of_data = zip(*by_turn, strict=True)
    return [None if attempt.reward is None else list(next(of_data))[: _num_turns(attempt)] for attempt in group]


def _is_usable(advantages: Sequence[Sequence[float] | None]) -> bool:
    return all(abs(advantage) <= MOST_ADVANTAGE for of_turns in advantages for advantage in of_turns or ())


def population_std(values: Sequence[float]) -> float:
    if not values:
        return 0.0
    mean = fsum(values) / len(values)
    # Squares of large numbers overflow. A power of two changes no digit.
    exponent = frexp(max(abs(value - mean) for value in values))[1]
    return ldexp(sqrt(fsum(ldexp(value - mean, -exponent) ** 2 for value in values) / len(values)), exponent)


def count_unusable_groups(groups: Sequence[Sequence[Attempt]], advantages: Sequence[Sequence[float] | None]) -> int:
    remaining = iter(advantages)
    found = [[(attempt.reward, next(remaining)) for attempt in group] for group in groups]
    return sum(any(reward is not None and of_turns is None for reward, of_turns in group) for group in found)


def count_one_sided_groups(
    groups: Sequence[Sequence[Attempt]], advantages: Sequence[Sequence[float] | None], truncated: TruncatedPolicy
) -> int:
    """Groups that train attempts above the mean alone, or below it alone: a mask left the others out."""
    if truncated != "mask":
        return 0
    remaining = iter(advantages)
    return sum(_is_one_sided(group, list(islice(remaining, len(group)))) for group in groups)


def _is_one_sided(group: Sequence[Attempt], advantages: Sequence[Sequence[float] | None]) -> bool:
    if not any(attempt.truncated and attempt.reward is not None for attempt in group):
        return False
    trained = [
        advantage
        for attempt, of_turns in zip(group, advantages, strict=True)
        if of_turns is not None and not attempt.truncated
        for advantage in of_turns
    ]
    return any(trained) and (min(trained) >= 0 or max(trained) <= 0)


def _returns(group: Sequence[Attempt], truncated: TruncatedPolicy) -> list[list[float]]:
    """Per turn, per attempt that is data."""
    data = [(attempt, attempt.reward - attempt.overlong_cost) for attempt in group if attempt.reward is not None]
    earned = [_earned(attempt) for attempt, _ in data]
    num_turns = max(map(len, earned)) if any(map(any, earned)) else 1
    returns = [
        [reward - fsum(of_attempt[:turn]) for (_, reward), of_attempt in zip(data, earned, strict=True)]
        for turn in range(num_turns)
    ]
    if truncated != "penalise":
        return returns
    return [
        [min(at_turn) if attempt.truncated else value for (attempt, _), value in zip(data, at_turn, strict=True)]
        for at_turn in returns
    ]


def _baseline_advantages(group: Sequence[Attempt], truncated: TruncatedPolicy) -> list[list[float] | None]:
    rewards = iter(_returns(group, truncated)[0])
    advantages: list[list[float] | None] = []
    for attempt in group:
        if attempt.reward is None:
            advantages.append(None)
            continue
        advantage = next(rewards) - (attempt.baseline or 0.0)
        # The lowest reward of a group may still be above the baseline.
        is_bounded = truncated == "penalise" and attempt.truncated
        advantages.append([min(advantage, 0.0) if is_bounded else advantage])
    return advantages


def _earned(attempt: Attempt) -> list[float]:
    """Rewards by turn."""
    earned = [0.0] * _num_turns(attempt)
    for call in attempt.calls:
        earned[call.turn] += call.reward
    return earned


def _num_turns(attempt: Attempt) -> int:
    return max((call.turn + 1 for call in attempt.calls), default=1)


def _divisor(group: Sequence[float], scale: Scale, batch_std: float) -> float:
    if scale == "none":
        return 1.0
    return (population_std(group) if scale == "group-std" else batch_std) + STD_EPSILON


def _group_advantages(returns: Sequence[Sequence[float]], divisor: float, leave_one_out: bool) -> list[list[float]]:
    if len(set(returns[0])) < 2:
        # No attempt was worth more than another: when each earned it is no reason to prefer one.
        return [[0.0] * len(turn) for turn in returns]
    return [_advantages(turn, divisor, leave_one_out) for turn in returns]


def _advantages(group: Sequence[float], divisor: float, leave_one_out: bool) -> list[float]:
    if len(set(group)) < 2:
        # Exactly zero: the mean of equal rewards need not be one of them (0.1, three times).
        return [0.0] * len(group)
    mean = fsum(group) / len(group)
    factor = len(group) / (len(group) - 1) if leave_one_out else 1.0
    return [(reward - mean) * factor / divisor for reward in group]
