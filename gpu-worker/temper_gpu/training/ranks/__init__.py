"""Processes that compute a step together, each on its own device: their shares, and sums in a fixed order."""

from temper_gpu.training.ranks.ranks import ALONE, Alone, IsCancelled, RankLost, Ranks, StepCancelled, never_cancelled

__all__ = ["ALONE", "Alone", "IsCancelled", "RankLost", "Ranks", "StepCancelled", "never_cancelled"]
