"""Ranks of test_ranks.py: they know tiny base models alone."""

import threading
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from torch.distributed.tensor import DTensor

from temper_gpu.contract import TrainInput
from temper_gpu.store import open_store
from temper_gpu.training.group import RankSettings
from temper_gpu.training.group.member import join_steps
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import Ranks
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.trainer import Trainer
from tests.training.samples import TinyLibrary, TinyOutlines, read_ids


def enter(settings: RankSettings, rank: int, meeting: Path, pipe: Connection) -> None:
    make_deterministic(settings.worker.engine.threads)
    ranks = Joined(rank, len(settings.devices), parts_on=settings.parts_on(rank))
    join_steps(partial(open_trainer, settings), ranks, meeting, pipe)


def open_trainer(settings: RankSettings, ranks: Ranks) -> Trainer:
    library: Any = TinyOutlines() if settings.worker.engine.shard_base_model else TinyLibrary()
    trainer = Member(library, open_store(settings.worker.store), threading.Lock(), read_turns=read_ids, ranks=ranks)
    trainer.told = told_by(settings.worker.store, ranks.count, ranks.rank)
    return trainer


class Member(Trainer):
    """Tells, after each step, how much of the base model it holds."""

    told: Path

    def join_step(self, work: TrainInput) -> None:
        super().join_step(work)
        assert self._loaded is not None
        # Whoever reads it meanwhile finds the last step's: it is never half-written.
        written = self.told.with_suffix(".new")
        written.write_text(str(frozen_bytes(self._loaded.policy)))
        written.replace(self.told)


def told_by(store: str, count: int, rank: int) -> Path:
    return Path(urlsplit(store).path).parent / f"rank-{rank}-of-{count}"


def frozen_bytes(policy: TrainablePolicy) -> int:
    frozen = [p for p in policy.model.parameters() if not p.requires_grad]
    return sum((p.to_local() if isinstance(p, DTensor) else p).nbytes for p in frozen)
