"""A store, a trainer of a tiny model on it, and the checkpoint that its run begins with."""

from pathlib import Path

import pytest

from temper_gpu.contract import Checkpoint
from temper_gpu.store import FileStore
from temper_gpu.training.trainer import Trainer
from tests.training.samples import open_folder
from tests.training.trainers import begin, new_trainer


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return open_folder(tmp_path)


@pytest.fixture
def trainer(store: FileStore) -> Trainer:
    return new_trainer(store)


@pytest.fixture
def parent(trainer: Trainer) -> Checkpoint:
    return begin(trainer)
