"""Trainers of a tiny model over a store, with which most tests of steps begin."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch import Tensor

from temper_gpu.contract import Checkpoint
from temper_gpu.store import Store
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.trainer import Trainer
from tests.training.samples import TinyLibrary, initialise_input


def never() -> bool:
    return False


def new_trainer(store: Store) -> Trainer:
    return Trainer(TinyLibrary(), store, threading.Lock())


def begin(trainer: Trainer, run: str = "demo", **changes: Any) -> Checkpoint:
    return trainer.initialise(initialise_input(run, **changes)).commit.checkpoint(run)


def step_at_once(
    policies: Sequence[TrainablePolicy],
    start: Mapping[str, Tensor],
    folder: Path,
    step: Callable[[TrainablePolicy], dict[str, float]],
) -> list[dict[str, float]]:
    """The metrics of each. Ranks among them meet in the folder, as threads of this process."""

    def take_part(policy: TrainablePolicy) -> dict[str, float]:
        if isinstance(policy.ranks, Joined):
            policy.ranks.join(folder / "meeting")
        policy.load(start, initial_optimizer_tensors(start))
        return step(policy)

    with ThreadPoolExecutor(len(policies)) as pool:
        return list(pool.map(take_part, policies))
