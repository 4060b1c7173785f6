"""Sampling as a pure function. S rows, V vocabulary."""

import math

import pytest
import torch

from temper_gpu.engine.embedded.sampling import sample, uniforms

pytestmark = pytest.mark.numerics

LOGITS_V = torch.tensor([1.0, 0.0, -1.0, 2.0])
RECORDED = [0.6524484863740305, 0.9435642308648511, 0.7570191751339905]


def draw(num_rows: int, temperature: float) -> list[int]:
    logits_SV = LOGITS_V.repeat(num_rows, 1)
    return sample(logits_SV, [temperature] * num_rows, uniforms(list(range(num_rows)), [0] * num_rows))[0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_shares_are_those_of_the_softmax_at_this_temperature(temperature: float):
    ids = torch.tensor(draw(20_000, temperature))
    shares_V = torch.bincount(ids, minlength=4) / len(ids)
    assert torch.allclose(shares_V, (LOGITS_V / temperature).softmax(-1), atol=0.012)


def test_temperature_0_takes_the_likeliest_with_the_log_probability_of_temperature_1():
    ids, logprobs = sample(LOGITS_V[None], [0.0], uniforms([5], [0]))
    assert ids == [3]
    assert logprobs == pytest.approx([2 - math.log(sum(math.exp(x) for x in (1, 0, -1, 2)))])


def test_log_probabilities_are_after_temperature():
    [token_id], [logprob] = sample(LOGITS_V[None], [0.5], uniforms([5], [0]))
    total = math.log(sum(math.exp(x) for x in (2, 0, -2, 4)))
    assert logprob == pytest.approx(float(LOGITS_V[token_id]) * 2 - total)


def test_a_row_is_drawn_by_its_own_seed_and_index():
    together = uniforms([3, 1, 2], [0, 7, 7]).tolist()
    assert together == [uniforms([seed], [index]).item() for seed, index in ((3, 0), (1, 7), (2, 7))]
    assert len(set(together)) == 3


def test_numbers_of_chance_do_not_change_between_versions():
    """Recorded: another generator would change every run."""
    numbers = uniforms([0, 1, 2**48 - 1], [0, 1, 2]).tolist()
    assert numbers == RECORDED
    assert all(0 <= number < 1 for number in numbers)


def test_a_token_of_probability_zero_is_never_drawn():
    logits_SV = torch.tensor([[-torch.inf, 0.0, -torch.inf]]).repeat(3, 1)
    for uniform in (0.0, 0.5, 1 - 2.0**-48):
        assert sample(logits_SV, [1.0] * 3, torch.full((3,), uniform, dtype=torch.float64))[0] == [1, 1, 1]


def test_a_row_is_drawn_with_the_same_bits_whatever_its_neighbours_need():
    """Rows of temperature 1 alone are not divided, greedy rows alone are not drawn."""
    logits_SV = torch.randn(4, 3000, generator=torch.Generator().manual_seed(0)) * 4
    chance_S = uniforms([5, 6, 7, 8], [0, 1, 2, 3])
    mixed = sample(logits_SV, [1.0, 0.0, 0.7, 1.0], chance_S)
    for rows, temperature in (([0, 3], 1.0), ([1], 0.0), ([2], 0.7)):
        alone = sample(logits_SV[rows], [temperature] * len(rows), chance_S[rows])
        assert alone == tuple([column[row] for row in rows] for column in mixed)
