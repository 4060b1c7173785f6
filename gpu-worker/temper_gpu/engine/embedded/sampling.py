"""Sampling: a pure function of logits, temperature, seed and token index.

Shapes: S sampled rows, V vocabulary.
"""

import numpy as np
import torch
from torch import Tensor

# Probability 1 in fixed point. A token less likely than its inverse (1e-12) is never drawn.
PROBABILITY_ONE = 2.0**40
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def uniforms(seeds: list[int], token_indices: list[int]) -> Tensor:
    """One number in [0, 1) per row, by splitmix64 over (seed, index): no state that a neighbour could move."""
    seeds_S = np.array([seed & 0xFFFF_FFFF_FFFF_FFFF for seed in seeds], dtype=np.uint64)
    indices_S = np.array(token_indices, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits_S = _mix(_mix(seeds_S + GOLDEN_GAMMA) + (indices_S + np.uint64(1)) * GOLDEN_GAMMA)
    # 48 bits, so that the product with a total stays below the total.
    return torch.from_numpy((bits_S >> np.uint64(16)).astype(np.float64) * 2.0**-48)


def _mix(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def sample(logits_SV: Tensor, temperatures: list[float], uniforms_S: Tensor) -> tuple[list[int], list[float]]:
    """Token ids and their log-probabilities after temperature; at 0 the likeliest token, as of temperature 1."""
    ids_S1, logprobs_S1 = sample_rows(logits_SV, temperatures, uniforms_S)
    return ids_S1[:, 0].tolist(), logprobs_S1[:, 0].tolist()


def sample_rows(logits_SV: Tensor, temperatures: list[float], uniforms_S: Tensor) -> tuple[Tensor, Tensor]:
    """The same on the device, one column each."""
    scaled_SV = scale(logits_SV.float(), temperatures)
    if all(temperature == 0 for temperature in temperatures):
        ids_S1 = logits_SV.argmax(-1, keepdim=True)
    else:
        ids_S1 = draw(scaled_SV, uniforms_S.to(logits_SV.device))
        if 0 in temperatures:
            greedy_S1 = torch.tensor([[temperature == 0] for temperature in temperatures], device=logits_SV.device)
            ids_S1 = torch.where(greedy_S1, logits_SV.argmax(-1, keepdim=True), ids_S1)
    return ids_S1, scaled_SV.log_softmax(-1).gather(1, ids_S1)


def scale(logits_SV: Tensor, temperatures: list[float]) -> Tensor:
    """Divides by temperature; 0 counts as 1. Copies nothing if all divisors are 1."""
    divisors = [temperature or 1.0 for temperature in temperatures]
    if all(divisor == 1 for divisor in divisors):
        return logits_SV
    return logits_SV / torch.tensor(divisors, dtype=torch.float32, device=logits_SV.device)[:, None]


def draw(scaled_SV: Tensor, uniforms_S: Tensor) -> Tensor:
    """One token of each row."""
    # Integers have a sum without rounding, so its order is irrelevant. Softmax works row by row; exp(logprobs) would
    # not, because threads split an elementwise loop without regard to rows.
    cumulative_SV = scaled_SV.softmax(-1).mul_(PROBABILITY_ONE).long().cumsum_(-1)
    targets_S1 = (uniforms_S * cumulative_SV[:, -1]).long()[:, None]
    # The first token whose cumulative probability exceeds the target, so never one of probability zero.
    return torch.searchsorted(cumulative_SV, targets_S1, right=True).clamp_(max=scaled_SV.shape[-1] - 1)
