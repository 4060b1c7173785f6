"""A trainer of a tiny model on the store of the test, and the checkpoint that its run begins with."""

import pytest

from temper_gpu.contract import Checkpoint
from temper_gpu.store import FileStore
from temper_gpu.training.trainer import Trainer
from tests.training.trainers import begin, new_trainer


@pytest.fixture
def trainer(store: FileStore) -> Trainer:
    return new_trainer(store)


@pytest.fixture
def parent(trainer: Trainer) -> Checkpoint:
    return begin(trainer)
