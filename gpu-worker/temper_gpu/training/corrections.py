"""Corrections for a sampler whose probabilities differ from the trainer's: another engine, another type, another order
of additions, or older weights.

They compare π₀, the trainer before the step's first update, with μ, the sampler. Where a correction weighs tokens by
π₀ / μ, the loss takes its ratio against π₀ in the place of μ, so that nothing counts twice.
Shapes: F sampled tokens of the step, S sequences (rows).
"""

from dataclasses import dataclass
from typing import Literal, assert_never

import torch
from torch import Tensor

Kind = Literal["token-truncate", "token-mask", "sequence-truncate", "sequence-mask", "geometric", "off-policy-mask"]


@dataclass(frozen=True)
class Correction:
    """`exceeded_F`: truncated or masked. `is_weighing`: the loss takes its ratio against π₀."""

    factors_F: Tensor
    kept_F: Tensor
    exceeded_F: Tensor
    is_weighing: bool


def correct(kind: Kind, cap: float, log_ratios_F: Tensor, sequences_F: Tensor, advantages_F: Tensor) -> Correction:
    """`log_ratios_F`: log π₀ − log μ. Masks keep [1 / cap, cap].

    Truncated importance sampling, min(π₀ / μ, cap): Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You
    Off-Policy RL Training". Two-sided token masks: IcePop (Ring-1T). Both by token and by sequence: TRL's
    `vllm_importance_sampling_mode`. A sequence's ratio is the product of its tokens', which grows with the length; the
    geometric mean does not, and only masks. The off-policy mask (DeepSeek-V3.2, section 3.1; TRL's
    `off_policy_mask_threshold` is log cap) drops sequences with a negative advantage that the trainer has already moved
    away from, mean(log μ − log π₀) > log cap: pushing them further teaches nothing and harms similar answers.
    """
    kept_F = torch.ones_like(log_ratios_F, dtype=torch.bool)
    sums_F, means_F = _over_sequences(log_ratios_F, sequences_F)
    match kind:
        case "token-truncate" | "sequence-truncate":
            ratios_F = (log_ratios_F if kind == "token-truncate" else sums_F).exp()
            return Correction(ratios_F.clamp(max=cap), kept_F, ratios_F > cap, True)
        case "token-mask" | "sequence-mask":
            ratios_F = (log_ratios_F if kind == "token-mask" else sums_F).exp()
            kept_F = (ratios_F <= cap) & (ratios_F >= 1 / cap)
            return Correction(ratios_F.where(kept_F, 0.0), kept_F, ~kept_F, True)
        case "geometric":
            ratios_F = means_F.exp()
            kept_F = (ratios_F <= cap) & (ratios_F >= 1 / cap)
            return Correction(kept_F.double(), kept_F, ~kept_F, False)
        case "off-policy-mask":
            kept_F = ((-means_F).exp() <= cap) | (advantages_F >= 0)
            return Correction(kept_F.double(), kept_F, ~kept_F, False)
        case _:
            assert_never(kind)


def _over_sequences(values_F: Tensor, sequences_F: Tensor) -> tuple[Tensor, Tensor]:
    """Sum and mean over its sequence, for each token."""
    num_sequences = int(sequences_F.max()) + 1
    sums_S = values_F.new_zeros(num_sequences).index_add(0, sequences_F, values_F)
    sizes_S = values_F.new_zeros(num_sequences).index_add(0, sequences_F, torch.ones_like(values_F))
    return sums_S[sequences_F], (sums_S / sizes_S.clamp(min=1))[sequences_F]
