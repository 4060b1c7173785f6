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
    temperatures_S = torch.tensor(temperatures, dtype=torch.float32, device=logits_SV.device)
    greedy_S = temperatures_S == 0
    scaled_SV = logits_SV.float() / temperatures_S.masked_fill(greedy_S, 1.0)[:, None]
    logprobs_SV = scaled_SV.log_softmax(-1)
    # In integers, whose sum has no rounding and so no order. Not exp(logprobs): an elementwise loop is cut by threads
    # without regard to rows, softmax works row by row.
    cumulative_SV = (scaled_SV.softmax(-1) * PROBABILITY_ONE).long().cumsum(-1)
    targets_S1 = (uniforms_S.to(logits_SV.device) * cumulative_SV[:, -1]).long()[:, None]
    # The first token whose cumulative probability exceeds the target, so never one of probability zero.
    ids_S1 = torch.searchsorted(cumulative_SV, targets_S1, right=True).clamp_(max=logits_SV.shape[-1] - 1)
    if any(temperature == 0 for temperature in temperatures):
        ids_S1 = torch.where(greedy_S[:, None], logits_SV.argmax(-1, keepdim=True), ids_S1)
    return ids_S1[:, 0].tolist(), logprobs_SV.gather(1, ids_S1)[:, 0].tolist()
