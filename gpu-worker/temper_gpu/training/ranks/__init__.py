"""Processes that compute a step together, each on its own device: their shares, and sums in a fixed order."""

from temper_gpu.training.ranks.ranks import ALONE, Alone, IsCancelled, RankLost, Ranks, StepCancelled, never_cancelled
from temper_gpu.training.ranks.turns import Turn, deal_shares, plan_turns, take_turns

__all__ = [
    "ALONE",
    "Alone",
    "IsCancelled",
    "RankLost",
    "Ranks",
    "StepCancelled",
    "Turn",
    "deal_shares",
    "never_cancelled",
    "plan_turns",
    "take_turns",
]
