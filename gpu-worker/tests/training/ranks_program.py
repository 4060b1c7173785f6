"""Ranks of test_ranks.py: they know the tiny base model alone."""

import threading
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from temper_gpu.store import open_store
from temper_gpu.training.group import RankSettings
from temper_gpu.training.group.member import take_part
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.ranks import Ranks
from temper_gpu.training.trainer import Trainer
from tests.training.samples import TinyLibrary


def enter(settings: RankSettings, rank: int, meeting: Path, pipe: Connection) -> None:
    make_deterministic(settings.threads)
    take_part(partial(open_trainer, settings), rank, len(settings.devices), meeting, pipe)


def open_trainer(settings: RankSettings, ranks: Ranks) -> Trainer:
    library: Any = TinyLibrary()
    return Trainer(library, open_store(settings.store), threading.Lock(), ranks=ranks)
