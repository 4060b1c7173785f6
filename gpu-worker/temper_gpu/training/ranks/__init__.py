"""Processes that compute a step together, each on a device of its own: whose share is what, and sums in their order."""

from temper_gpu.training.ranks.ranks import ALONE, Alone, RankLost, Ranks, StepCancelled
from temper_gpu.training.ranks.turns import Turn, deal_shares, plan_turns

__all__ = ["ALONE", "Alone", "RankLost", "Ranks", "StepCancelled", "Turn", "deal_shares", "plan_turns"]
