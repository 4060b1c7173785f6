import json
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch

from temper_gpu.store import FileStore
from temper_gpu.training.advantages import attempt_advantages
from temper_gpu.training.groups import Attempt, Call, Group, load_groups
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.step import train_step
from tests.training.samples import sampled_groups, train_config, write_group
from tests.training.test_step_by_hand import ADAPTER, TablePolicy

# test/store/records/groups/group-result.test.ts holds the verdict to the same file.
CASES = json.loads((Path(__file__).parents[3] / "test/store/records/groups/shaped-rewards.json").read_text())


def attempt_of(played: dict[str, Any], cost: float) -> Attempt:
    calls = [Call([1], [2] * tokens, [-1.0] * tokens, 1.0, None) for tokens, _ in played["calls"]]
    return Attempt(played["reward"], played.get("truncated", False), calls, cost)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_advantages_are_taken_from_the_rewards_of_the_verdict(case: dict[str, Any]):
    played, trained = case["attempts"], case["trained"]
    group = [attempt_of(*costing) for costing in zip(played, case.get("costs", [0.0] * len(played)), strict=True)]
    data = [reward for reward in trained if reward is not None]
    expected = [None if reward is None else [pytest.approx(reward - sum(data) / len(data))] for reward in trained]
    assert attempt_advantages([group], "none", False, case["rules"]["truncated"]) == expected


def test_the_divisor_is_that_of_the_rewards_after_the_costs():
    group = [Attempt(1, False, [Call([1], [2], [-1.0], 1.0, None)], cost) for cost in (0.0, 1.0)]
    # Rewards 1 and 0: mean 0.5, deviation 0.5. Before the costs they are equal.
    [short, long] = attempt_advantages([group], "group-std", False, "keep")
    assert (short, long) == ([pytest.approx(1, abs=1e-5)], [pytest.approx(-1, abs=1e-5)])


def test_where_turns_are_rewarded_the_cost_counts_at_every_turn():
    def played(earned: float, cost: float) -> Attempt:
        calls = [Call([1], [2], [-1.0], 1.0, None, turn, earned) for turn in (0, 1)]
        return Attempt(2 * earned, False, calls, cost)

    # Returns: 2, 1 and, less what the length costs, -1, -1: means 0.5, 0.
    assert attempt_advantages([[played(1, 0.0), played(0, 1.0)]], "none", False, "keep") == [[1.5, 1], [-1.5, -1]]


def step(cost: float = 0.0, **changes: object) -> tuple[list[float], dict[str, float]]:
    """Every token is as likely as any other. Two attempts of reward 1, of one and two tokens; the second one costs."""
    policy = TablePolicy(torch.zeros(4, requires_grad=True))
    attempts = [
        Attempt(1, False, [Call([9], answer, [log(1 / 4)] * len(answer), 1.0, ADAPTER)], overlong)
        for answer, overlong in (([0], 0.0), ([3, 3], cost))
    ]
    optimizer = train_config().optimizer.model_copy(update={"max_grad_norm": 1e9})
    config = train_config(optimizer=optimizer, **changes)
    metrics = train_step(policy, StepInputs(ADAPTER, [Group(0, attempts)], config, 0.1))
    gradient = policy.logits_V.grad
    return ([] if gradient is None else gradient.tolist()), metrics


@pytest.mark.numerics
def test_a_step_trains_away_from_long_answers():
    # The second is worth 1/2, and the advantages are 1/4 and -1/4 over three tokens.
    gradient, metrics = step(0.5, overlong_buffer=1, overlong_penalty=0.5)
    slopes, total = {0: -1 / 12, 3: 2 / 12}, 1 / 12
    assert gradient == pytest.approx([slopes.get(t, 0.0) - total / 4 for t in range(4)], rel=1e-5)
    assert (metrics["overlong"], metrics["rewardMean"]) == (1, 1)


def test_without_a_buffer_equal_rewards_train_nothing():
    assert (step()[0], "overlong" in step()[1]) == ([], False)


def test_a_verdict_tells_what_the_length_of_its_attempts_costs(store: FileStore):
    [group] = sampled_groups(ADAPTER, num_groups=1)
    first = replace(group.attempts[0], overlong_cost=0.75)
    ref = write_group(store, "demo", 1, Group(0, [first, *group.attempts[1:]]))
    [read] = load_groups(store, "demo", 0, 1, [ref])
    assert [attempt.overlong_cost for attempt in read.attempts] == [0.75] + [0.0] * (len(group.attempts) - 1)
