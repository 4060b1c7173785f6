"""Weights by hand: attempt 0 has three tokens, attempt 4 one, attempt 7 two."""

import pytest
import torch

from temper_gpu.training.losses import token_weights
from temper_gpu.training.losses.loss import Reduction

ATTEMPTS_F = torch.tensor([0, 0, 0, 4, 7, 7])
ALL_F = torch.ones(6, dtype=torch.bool)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("token", [1 / 6] * 6),
        ("attempt", [1 / 9] * 3 + [1 / 3] + [1 / 6] * 2),
        ("constant", [1 / 30] * 6),
    ],
)
def test_weights_by_hand(reduction: Reduction, expected: list[float]):
    assert token_weights(reduction, ATTEMPTS_F, ALL_F, 10).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("token", [1 / 3, 1 / 3, 0, 0, 1 / 3, 0]),
        ("attempt", [1 / 4, 1 / 4, 0, 0, 1 / 2, 0]),
        ("constant", [1 / 20, 1 / 20, 0, 0, 1 / 20, 0]),
    ],
)
def test_masked_tokens_count_in_no_denominator(reduction: Reduction, expected: list[float]):
    kept_F = torch.tensor([True, True, False, False, True, False])
    assert token_weights(reduction, ATTEMPTS_F, kept_F, 10).tolist() == pytest.approx(expected)
