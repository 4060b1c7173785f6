"""A trainer of several ranks. The GPU worker is rank 0: it starts the others, sends them each step's work, and commits.

    GPU worker (rank 0) ──► fork server: everything imported, no weights ──► rank 1, rank 2 …
        ╰── a pipe to each: the step's work there, heartbeats and failures back. Ends with either of them

The others commit nothing. A group that loses a rank is ended; the next step starts another group.
"""

from temper_gpu.training.group.group import RankGroup, RankSettings
from temper_gpu.training.group.group_trainer import GroupTrainer

__all__ = ["GroupTrainer", "RankGroup", "RankSettings"]
