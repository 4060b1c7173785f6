"""Processes that compute a step together, each on a device of its own: whose share is what, and sums in their order."""

from temper_gpu.training.ranks.ranks import ALONE, Alone, RankLost, Ranks, StepCancelled, deal_shares

__all__ = ["ALONE", "Alone", "RankLost", "Ranks", "StepCancelled", "deal_shares"]
