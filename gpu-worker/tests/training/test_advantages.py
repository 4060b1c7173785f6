import pytest

from temper_gpu.training.advantages import attempt_advantages, group_advantages
from temper_gpu.training.groups import Attempt


def attempts(*rewards: float | None, truncated: tuple[int, ...] = ()) -> list[Attempt]:
    return [Attempt(reward, i in truncated, []) for i, reward in enumerate(rewards)]


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
    assert attempt_advantages([attempts(1, None, 0)], "none", False, "mask") == [0.5, None, -0.5]


def test_a_lone_attempt_has_nothing_to_be_compared_with():
    assert attempt_advantages([attempts(1, None)], "group-std", True, "mask") == [0, None]


def test_a_penalised_truncated_attempt_gets_the_lowest_reward_of_its_group():
    group = attempts(1, 0, -1, truncated=(0,))
    assert attempt_advantages([group], "none", False, "penalise") == pytest.approx([-1 / 3, 2 / 3, -1 / 3])
    assert attempt_advantages([group], "none", False, "keep") == [1, 0, -1]
