"""Metrics of one step, by their names on the wire. They are part of the commit: deterministic, without times.

Shapes: N sampled tokens of a micro-batch.
"""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from math import fsum

import torch
from torch import Tensor

from temper_gpu.contract import MAIN_POLICY
from temper_gpu.training.advantages import count_one_sided_groups, count_unusable_groups, population_std
from temper_gpu.training.groups import Group
from temper_gpu.training.losses import CLIPPED_SHARE
from temper_gpu.training.packing import MicroBatch, Packing, num_computed_tokens
from temper_gpu.training.ranks import ALONE, Ranks
from temper_gpu.training.rows import Rows, TruncatedPolicy
from temper_gpu.training.updates import Update

Metrics = dict[str, float]

# Metrics that compare an update's policy with its sampler.
_COMPARISON = ("logprobK3", "maxAbsLogRatio")
# Metrics that are summed over all updates.
_COUNTS = ("computedTokens", "sharedTokens")


def batch_metrics(
    groups: Sequence[Group],
    advantages: Sequence[Sequence[float] | None],
    rows: Rows,
    truncated: TruncatedPolicy,
) -> Metrics:
    """Metrics that need no policy. Rare ones are left out if they are 0."""
    attempts = [attempt for group in groups for attempt in group.attempts]
    data = [attempt for attempt in attempts if attempt.reward is not None]
    rewards = [attempt.reward for attempt in data if attempt.reward is not None]
    sizes = [fsum(map(abs, of_turns)) / len(of_turns) for of_turns in advantages if of_turns is not None]
    rare = {
        "histories": rows.num_histories,
        "rewardedTurns": sum(call.reward != 0 for attempt in data for call in attempt.calls),
        "unusableGroups": count_unusable_groups([group.attempts for group in groups], advantages),
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


def packing_metrics(batches: Sequence[MicroBatch], wanted: Packing | None, packing: Packing) -> Metrics:
    """Tokens that were computed, padding included, and those that were not, because several rows share them."""
    return {
        "computedTokens": sum(num_computed_tokens(batch) for batch in batches),
        "sharedTokens": sum(batch.num_shared_tokens for batch in batches),
        **({"packedAsRows": 1} if wanted == "tree" != packing else {}),
    }


class TokenSums:
    """Sums over the trained tokens of all micro-batches. They stay tensors until the end, because reading one waits for
    the device."""

    def __init__(self, loss_metrics: Sequence[str]) -> None:
        self._loss_metrics = loss_metrics
        self._num_tokens = 0
        self._sums: list[Tensor] = []
        self._largest: list[Tensor] = []

    @torch.no_grad()
    def add(self, loss_N: Tensor, metrics: Mapping[str, Tensor], entropy_N: Tensor, log_ratio_N: Tensor) -> None:
        self._num_tokens += len(loss_N)
        # k3 = ρ − log ρ − 1 ≥ 0 is 0 only where both agree (Schulman, "Approximating KL divergence").
        k3_N = log_ratio_N.expm1() - log_ratio_N
        columns = (loss_N, *(metrics[name] for name in self._loss_metrics), entropy_N, k3_N)
        self._sums.append(torch.stack([column.double().sum() for column in columns]))
        self._largest.append(log_ratio_N.abs().max())

    def metrics(self, gradient_norm: Tensor, ranks: Ranks = ALONE) -> Metrics:
        """Metrics over all ranks; a rank without micro-batches contributes zeros."""
        num_sums = 3 + len(self._loss_metrics)
        sums = torch.stack(self._sums).sum(0) if self._sums else torch.zeros(num_sums, dtype=torch.float64)
        largest = torch.stack(self._largest).max() if self._largest else torch.zeros((), dtype=torch.float32)
        others = torch.tensor([self._num_tokens, largest.item()], dtype=torch.float64)
        found = ranks.gather(torch.cat([sums.cpu(), others]))
        loss, *of_loss, entropy, k3, num_tokens, _ = reduce(torch.add, found).tolist()
        return {
            "loss": loss,
            "gradNorm": gradient_norm.item(),
            "logprobK3": k3 / num_tokens,
            "maxAbsLogRatio": torch.stack(found)[:, -1].max().item(),
            **{name: value / num_tokens for name, value in zip(self._loss_metrics, of_loss, strict=True)},
            "entropy": entropy / num_tokens,
        }


def comparison_metrics(log_ratios_F: Tensor) -> Metrics:
    """Distance of sampler and trainer with the same weights."""
    k3 = (log_ratios_F.expm1() - log_ratios_F).mean().item()
    return dict(zip(_COMPARISON, (k3, log_ratios_F.abs().max().item()), strict=True))


def update_metrics(measured: Sequence[tuple[Update, Metrics]]) -> Metrics:
    """Means over the tokens of all updates. Sampler and trainer are compared before the first one; each pass reports
    how far the policy has moved since."""
    if len(measured) < 2:
        return dict(measured[0][1]) if measured else {}
    first = measured[0][1]
    names = [name for name in first if name not in (*_COMPARISON, *_COUNTS)]
    metrics = {name: _token_mean(measured, name) for name in names} | {name: first[name] for name in _COMPARISON}
    metrics |= {name: sum(found[name] for _, found in measured) for name in _COUNTS if name in first}
    for number in sorted({update.pass_number for update, _ in measured}):
        of_pass = [(update, found) for update, found in measured if update.pass_number == number]
        metrics[f"pass{number}RatioK3"] = _token_mean(of_pass, "logprobK3")
        metrics[f"pass{number}MaxAbsLogRatio"] = max(found["maxAbsLogRatio"] for _, found in of_pass)
        if CLIPPED_SHARE in first:
            metrics[f"pass{number}ClippedShare"] = _token_mean(of_pass, CLIPPED_SHARE)
    return {"updates": len(measured), **metrics}


def _token_mean(measured: Sequence[tuple[Update, Metrics]], name: str) -> float:
    sizes = [update.rows.num_trained_tokens for update, _ in measured]
    return sum(size * found[name] for size, (_, found) in zip(sizes, measured, strict=True)) / sum(sizes)


def policy_metrics(policy: str, metrics: Metrics) -> Metrics:
    """Metrics of the main policy have plain names; those of another one begin with its name."""
    return metrics if policy == MAIN_POLICY else {f"{policy}/{name}": value for name, value in metrics.items()}


def baseline_metrics(baselines: Mapping[str, float]) -> Metrics:
    return {f"baseline/{role}": baseline for role, baseline in baselines.items()}


def on_the_wire(metrics: Metrics) -> dict[str, float | None]:
    """Replaces non-finite numbers by null, because JSON has no NaN."""
    return {name: float(value) if math.isfinite(value) else None for name, value in metrics.items()}
