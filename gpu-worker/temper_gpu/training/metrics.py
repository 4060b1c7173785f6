"""Numbers of one step, by the names they have on the wire. Part of the commit: deterministic, nothing of time.

Shapes: N sampled tokens of a micro-batch.
"""

import math
from collections.abc import Sequence
from math import fsum

import torch
from torch import Tensor

from temper_gpu.training.advantages import count_one_sided_groups, population_std
from temper_gpu.training.groups import Group
from temper_gpu.training.losses import TokenLoss
from temper_gpu.training.packing import MicroBatch
from temper_gpu.training.rows import Rows, TruncatedPolicy

Metrics = dict[str, float]


def batch_metrics(
    groups: Sequence[Group],
    advantages: Sequence[Sequence[float] | None],
    rows: Rows,
    truncated: TruncatedPolicy,
) -> Metrics:
    """What is known before the policy is asked. What few agents have is named where there is some of it."""
    attempts = [attempt for group in groups for attempt in group.attempts]
    data = [attempt for attempt in attempts if attempt.reward is not None]
    rewards = [attempt.reward for attempt in data if attempt.reward is not None]
    sizes = [fsum(map(abs, of_turns)) / len(of_turns) for of_turns in advantages if of_turns is not None]
    rare = {
        "histories": rows.num_histories,
        "rewardedTurns": sum(call.reward != 0 for attempt in data for call in attempt.calls),
        "oneSidedGroups": count_one_sided_groups([group.attempts for group in groups], advantages, truncated),
    }
    return {
        "groups": len(groups),
        "attempts": len(attempts),
        "failed": len(attempts) - len(data),
        "truncated": sum(attempt.truncated for attempt in data),
        "rewardMean": fsum(rewards) / max(1, len(rewards)),
        "rewardStd": population_std(rewards),
        "rewardMin": min(rewards, default=0.0),
        "rewardMax": max(rewards, default=0.0),
        "advantageMass": fsum(sizes) / max(1, len(sizes)),
        "sampledTokens": sum(attempt.num_sampled_tokens for attempt in data),
        "trainedTokens": rows.num_trained_tokens,
        "rows": len(rows.rows),
        "forks": rows.num_forks,
        **{name: count for name, count in rare.items() if count > 0},
    }


def packing_metrics(batches: Sequence[MicroBatch]) -> Metrics:
    """What was computed, padding included, and what was not computed again because several rows share it."""
    return {
        "computedTokens": sum(batch.token_ids_BT.numel() for batch in batches),
        "sharedTokens": sum(batch.num_shared_tokens for batch in batches),
    }


class TokenSums:
    """Sums over the trained tokens of all micro-batches. Tensors until the end: reading one waits for the device."""

    def __init__(self, loss_metrics: Sequence[str]) -> None:
        self._loss_metrics = loss_metrics
        self._num_tokens = 0
        self._sums: list[Tensor] = []
        self._largest: list[Tensor] = []

    @torch.no_grad()
    def add(self, losses: TokenLoss, entropy_N: Tensor, log_ratio_N: Tensor) -> None:
        self._num_tokens += len(losses.loss_N)
        # k3 = ρ − log ρ − 1 ≥ 0 is 0 only where both agree (Schulman, "Approximating KL divergence").
        k3_N = log_ratio_N.expm1() - log_ratio_N
        columns = (losses.loss_N, *(losses.metrics[name] for name in self._loss_metrics), entropy_N, k3_N)
        self._sums.append(torch.stack([column.double().sum() for column in columns]))
        self._largest.append(log_ratio_N.abs().max())

    def metrics(self, gradient_norm: Tensor) -> Metrics:
        loss, *of_loss, entropy, k3 = torch.stack(self._sums).sum(0).tolist()
        return {
            "loss": loss,
            "gradNorm": gradient_norm.item(),
            "logprobK3": k3 / self._num_tokens,
            "maxAbsLogRatio": torch.stack(self._largest).max().item(),
            **{name: value / self._num_tokens for name, value in zip(self._loss_metrics, of_loss, strict=True)},
            "entropy": entropy / self._num_tokens,
        }


def on_the_wire(metrics: Metrics) -> dict[str, float | None]:
    """JSON has no NaN: what is not finite is null."""
    return {name: float(value) if math.isfinite(value) else None for name, value in metrics.items()}
