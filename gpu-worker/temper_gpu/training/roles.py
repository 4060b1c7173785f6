"""Groups as a policy trains them: a role's view of a group is a group, with that role's rewards and calls alone.

With `baseline: rae`, a reward is compared with the running mean of its role's rewards, as it was before this reward
became part of it (role-conditioned advantage estimation: SPIRAL, arXiv 2506.24119). Where roles compete, a mean over
several of them would be the same whatever the policies do.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from temper_gpu.contract import MAIN_POLICY, RAE_DECAY
from temper_gpu.failures import TemperError
from temper_gpu.training.advantages import MOST_ADVANTAGE
from temper_gpu.training.groups import Attempt, Group

# The mean of a role that no reward has entered yet.
FIRST_BASELINE = 0.0


@dataclass(frozen=True)
class Views:
    """`baselines`: of each role, after the step; empty if groups are compared with their means."""

    by_policy: Mapping[str, Sequence[Group]]
    baselines: Mapping[str, float]


def views(
    groups: Sequence[Group], roles: Mapping[str, str] | None, baselines: Mapping[str, float] | None = None
) -> Views:
    """`roles`: the policy of each role; None: the agent has none, and all calls are the main policy's. `baselines`: of
    each role, before the step; None: groups are compared with their means."""
    policies = {MAIN_POLICY: MAIN_POLICY} if roles is None else roles
    by_policy: dict[str, list[Group]] = {MAIN_POLICY: []}
    after: dict[str, float] = {}
    for role in sorted(policies):
        seen = list(groups) if roles is None else [found for group in groups if (found := view(group, role)).attempts]
        if baselines is not None:
            seen, after[role] = with_baselines(seen, baselines.get(role, FIRST_BASELINE))
        by_policy.setdefault(policies[role], []).extend(seen)
    return Views(by_policy, after)


def policy_order(names: Iterable[str]) -> list[str]:
    """The main policy is the first."""
    return sorted(names, key=lambda name: (name != MAIN_POLICY, name))


def view(group: Group, role: str) -> Group:
    """Attempts without a reward of the role are left out: it has not played them."""
    if any(attempt.reward is not None and attempt.role_rewards is None for attempt in group.attempts):
        raise TemperError(
            "StoreCorrupt",
            f"the verdict on group {group.index} must reward the roles in each attempt that counts, but does not; "
            "restore it from a copy of the run",
        )
    return replace(group, attempts=list(_attempts_of(group, role)))


def _attempts_of(group: Group, role: str) -> Iterator[Attempt]:
    for attempt in group.attempts:
        calls = [call for call in attempt.calls if call.role == role]
        if attempt.reward is None:
            yield replace(attempt, calls=calls, role_rewards=None)
        elif (reward := (attempt.role_rewards or {}).get(role)) is not None:
            yield replace(attempt, reward=float(reward), calls=calls, role_rewards=None)


def with_baselines(groups: Sequence[Group], baseline: float) -> tuple[list[Group], float]:
    """The groups of one role in plan order, and its baseline after them. Attempts that are no data change nothing, nor
    do groups that are left out for a reward too far from the baseline."""
    compared: list[Group] = []
    for group in groups:
        attempts: list[Attempt] = []
        before, is_usable = baseline, True
        for attempt in group.attempts:
            attempts.append(replace(attempt, baseline=baseline))
            if attempt.reward is not None:
                reward = attempt.reward - attempt.overlong_cost
                is_usable = is_usable and abs(reward - baseline) <= MOST_ADVANTAGE
                baseline = RAE_DECAY * baseline + (1 - RAE_DECAY) * reward
        baseline = baseline if is_usable else before
        compared.append(replace(group, attempts=attempts))
    return compared, baseline
