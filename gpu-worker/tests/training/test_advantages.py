from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_gpu.training.advantages import (
    Scale,
    attempt_advantages,
    count_one_sided_groups,
    count_unusable_groups,
    population_std,
)
from temper_gpu.training.groups import Attempt, Call


def attempts(*rewards: float | None, truncated: tuple[int, ...] = ()) -> list[Attempt]:
    return [Attempt(reward, i in truncated, []) for i, reward in enumerate(rewards)]


def group_advantages(rewards: list[list[float]], scale: Scale, leave_one_out: bool) -> list[list[float]]:
    advantages = iter(attempt_advantages([attempts(*group) for group in rewards], scale, leave_one_out, "mask"))
    return [[only for _ in group for [only] in [next(advantages) or []]] for group in rewards]


def played(reward: float | None, *earned: float, truncated: bool = False) -> Attempt:
    """An attempt of a call for each turn."""
    calls = [Call([1], [2], [-1.0], 1.0, None, turn, of_turn) for turn, of_turn in enumerate(earned)]
    return Attempt(reward, truncated, calls)


def test_an_advantage_is_the_distance_from_the_groups_mean():
    assert group_advantages([[1, 0, 0, 1], [3, -1]], "none", False) == [[0.5, -0.5, -0.5, 0.5], [2, -2]]


def test_group_std_divides_by_the_population_deviation_of_the_group():
    [one, two] = group_advantages([[1, 0, 0, 1], [3, -1]], "group-std", False)
    assert one == pytest.approx([0.999998, -0.999998, -0.999998, 0.999998], abs=1e-9)  # std 0.5, plus 1e-6
    assert two == pytest.approx([0.9999995, -0.9999995], abs=1e-9)  # std 2, plus 1e-6


def test_batch_std_divides_by_the_deviation_of_all_rewards():
    [one, two] = group_advantages([[1, 0], [3, 0]], "batch-std", False)  # mean 1, deviations 0, 1, 4, 1: std √1.5
    assert one == pytest.approx([0.408248, -0.408248], abs=1e-5)
    assert two == pytest.approx([1.224744, -1.224744], abs=1e-5)


def test_leave_one_out_compares_with_the_mean_of_the_others():
    assert group_advantages([[1, 0, 0.5]], "none", True) == [[0.75, -0.75, 0.0]]  # others: 0.25, 0.75, 0.5


def test_equal_rewards_carry_no_signal_whatever_the_scale():
    for scale in ("none", "group-std", "batch-std"):
        assert group_advantages([[0.1, 0.1, 0.1]], scale, False) == [[0, 0, 0]]


def test_a_failed_attempt_has_no_advantage_and_counts_in_no_mean():
    assert attempt_advantages([attempts(1, None, 0)], "none", False, "mask") == [[0.5], None, [-0.5]]


@given(st.lists(st.floats(-1e300, 1e300), min_size=1))
def test_numbers_of_every_size_have_a_deviation(values: list[float]):
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction()) / len(exact)
    variance = sum(((value - mean) ** 2 for value in exact), Fraction()) / len(exact)
    wanted = float((Decimal(variance.numerator) / Decimal(variance.denominator)).sqrt())
    # The mean is rounded.
    rounding = max(map(abs, values)) * 4e-16 + 1e-323
    assert population_std(values) == pytest.approx(wanted, rel=1e-12, abs=rounding)


def test_a_group_with_advantages_beyond_what_a_gradient_holds_is_left_out_alone():
    groups = [attempts(1, 0), attempts(-1e300, None, 1), attempts(1e12, -1e12)]
    advantages = attempt_advantages(groups, "none", False, "mask")
    assert advantages == [[0.5], [-0.5], None, None, None, [1e12], [-1e12]]
    assert count_unusable_groups(groups, advantages) == 1
    # Divided by its deviation, each can be used.
    divided = attempt_advantages(groups, "group-std", False, "mask")
    assert [of_turns and round(of_turns[0], 3) for of_turns in divided] == [1, -1, -1, None, 1, 1, -1]


def test_a_lone_attempt_has_nothing_to_be_compared_with():
    assert attempt_advantages([attempts(1, None)], "group-std", True, "mask") == [[0], None]


def test_a_penalised_truncated_attempt_gets_the_lowest_reward_of_its_group():
    group = attempts(1, 0, -1, truncated=(0,))
    assert attempt_advantages([group], "none", False, "penalise") == [
        [pytest.approx(-1 / 3)],
        [pytest.approx(2 / 3)],
        [pytest.approx(-1 / 3)],
    ]
    assert attempt_advantages([group], "none", False, "keep") == [[1], [0], [-1]]


def test_a_turn_is_worth_what_the_attempt_earned_from_it_on_compared_with_the_group_at_that_turn():
    # Returns: 3, 2, 1.5 and 1, 1, 0.5: means 2, 1.5, 1.
    group = [played(3, 1, 0.5, 0), played(1, 0, 0.5, 0)]
    assert attempt_advantages([group], "none", False, "mask") == [[1, 0.5, 0.5], [-1, -0.5, -0.5]]


def test_an_attempt_that_was_over_counts_with_what_its_end_was_worth():
    # Returns: 2, 1, 1 and 1, 0.5 and then its end, 0.5: means 1.5, 0.75, 0.75.
    group = [played(2, 1, 0, 0), played(1, 0.5)]
    assert attempt_advantages([group], "none", False, "mask") == [[0.5, 0.25, 0.25], [-0.5]]


def test_calls_of_one_turn_earn_together():
    both = Attempt(
        3, False, [Call([1], [2], [-1.0], 1.0, None, turn, of_call) for turn, of_call in ((0, 1), (0, 1), (1, 0))]
    )
    assert attempt_advantages([[both, played(0, 0, 0)]], "none", False, "mask") == [[1.5, 0.5], [-1.5, -0.5]]


def test_a_group_without_rewards_on_turns_has_one_advantage_whatever_its_neighbours_have():
    groups = [[played(1, 0, 0), played(0, 0)], [played(2, 1, 0), played(0, 0, 0)]]
    assert attempt_advantages(groups, "none", False, "mask") == [[0.5], [-0.5], [1, 0.5], [-1, -0.5]]


def test_an_attempt_whose_turns_earned_nothing_is_compared_turn_by_turn_too():
    # Returns: 1, 0.5 and 0.5, 0.5.
    group = [played(1, 0.5, 0), played(0.5, 0, 0)]
    assert attempt_advantages([group], "none", False, "mask") == [[0.25, 0], [-0.25, 0]]


def test_the_divisor_is_that_of_the_whole_rewards_for_all_turns():
    group = [played(3, 1, 0.5, 0), played(1, 0, 0.5, 0)]  # rewards 3 and 1: std 1
    [one, two] = attempt_advantages([group], "group-std", False, "mask")
    assert one == pytest.approx([1, 0.5, 0.5], abs=1e-5)
    assert two == pytest.approx([-1, -0.5, -0.5], abs=1e-5)
    assert attempt_advantages([group], "none", True, "mask") == [[2, 1, 1], [-2, -1, -1]]  # × 2 / (2 − 1)


def test_equal_rewards_carry_no_signal_whenever_they_were_earned():
    group = [played(1, 1, 0), played(1, 0, 1), played(None, 5, 5)]
    assert attempt_advantages([group], "group-std", False, "mask") == [[0, 0], [0, 0], None]


def test_equal_returns_at_a_turn_are_exactly_zero_where_the_whole_rewards_differ():
    # At the second turn all three have a return of 0.1, and the mean of three times 0.1 is not 0.1.
    group = [played(0.2, 0.1, 0), played(0.1, 0, 0), played(0.1, 0, 0)]
    assert [of_turns[1] for of_turns in attempt_advantages([group], "none", False, "mask") if of_turns] == [0, 0, 0]


def test_a_penalised_attempt_is_penalised_in_all_of_its_turns():
    # The lowest reward is 1, for both turns of the first; returns of the others: 3, 1 and 1, 1.
    group = [played(5, 4, 0, truncated=True), played(3, 2, 0), played(1, 0, 0)]
    [cut, best, worst] = attempt_advantages([group], "none", False, "penalise")
    assert (cut, best, worst) == (pytest.approx([-2 / 3, 0]), pytest.approx([4 / 3, 0]), pytest.approx([-2 / 3, 0]))


def test_a_penalised_attempt_has_the_lowest_return_of_every_turn():
    # Returns: the cut one's own 2, 2; 3, 0 and 1, 0 of the others. The lowest are 1 and 0: the means 5/3 and 0.
    group = [played(2, 0, 0, truncated=True), played(3, 3, 0), played(1, 1, 0)]
    [cut, best, worst] = attempt_advantages([group], "none", False, "penalise")
    assert (cut, best, worst) == (pytest.approx([-2 / 3, 0]), pytest.approx([4 / 3, 0]), pytest.approx([-2 / 3, 0]))


earned_by_turn = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=3)
attempts_with_turns = st.lists(st.tuples(earned_by_turn, st.sampled_from([-1.0, 0.0, 1.0]), st.booleans()), min_size=2)


@given(attempts_with_turns, st.sampled_from(["none", "group-std", "batch-std"]), st.booleans())
def test_no_penalised_attempt_has_a_positive_advantage(
    drawn: list[tuple[list[float], float, bool]], scale: Scale, leave_one_out: bool
):
    group = [played(sum(earned) + end, *earned, truncated=is_cut) for earned, end, is_cut in drawn]
    advantages = attempt_advantages([group], scale, leave_one_out, "penalise")
    for attempt, of_turns in zip(group, advantages, strict=True):
        # The mean of equal returns is off by a rounding.
        assert not attempt.truncated or max(of_turns or [0.0]) <= 1e-9


def test_groups_that_a_mask_leaves_one_sided_are_counted():
    failures_cut = attempts(1, 1, 0, truncated=(2,))
    successes_cut = attempts(1, 0, 0, truncated=(0,))
    mixed = attempts(1, 0, 0, truncated=(2,))
    uncut, all_cut = attempts(1, 0), attempts(1, 0, truncated=(0, 1))
    groups = [failures_cut, successes_cut, mixed, uncut, all_cut]
    advantages = attempt_advantages(groups, "none", False, "mask")
    assert count_one_sided_groups(groups, advantages, "mask") == 2
    assert count_one_sided_groups(groups, advantages, "keep") == 0


def test_a_baseline_replaces_the_groups_mean_and_all_turns_share_the_advantage():
    compared = [
        Attempt(1.0, False, played(1.0, 0.5, 0.5).calls, baseline=0.25),
        Attempt(None, False, [], baseline=0.3),
        Attempt(1.0, False, [], 0.5, baseline=0.5),
    ]
    assert attempt_advantages([compared], "group-std", True, "mask") == [[0.75], None, [0.0]]


def test_a_truncated_attempt_is_never_above_its_baseline_under_penalise():
    compared = [Attempt(reward, reward == 2.0, [], baseline=-1.0) for reward in (2.0, 0.5)]
    assert attempt_advantages([compared], "none", False, "penalise") == [[0.0], [1.5]]
