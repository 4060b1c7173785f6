"""Processes that compute a step together, each on its own device: their shares, and sums in a fixed order."""

from temper_gpu.training.ranks.ranks import ALONE, Alone, IsCancelled, RankLost, Ranks, StepCancelled, never_cancelled
from temper_gpu.training.ranks.turns import take_turns

__all__ = ["ALONE", "Alone", "IsCancelled", "RankLost", "Ranks", "StepCancelled", "never_cancelled", "take_turns"]
