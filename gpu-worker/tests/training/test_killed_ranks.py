"""Two ranks whose fork server is killed, and of which one is killed in half of eight steps."""

import multiprocessing.forkserver
import os
import random
import signal
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from torch import Tensor

from temper_gpu.commits.checkpoints import Commit, Manifest, manifest_key
from temper_gpu.contract import TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from temper_gpu.training.group import GroupTrainer
from tests.training.processes import expect_ended, parent_of
from tests.training.samples import (
    initialise_input,
    load_adapter,
    sampled_groups,
    train_config,
    train_input,
)
from tests.training.test_ranks import first_step, group_trainer, pids
from tests.training.trainers import never, new_trainer


@pytest.fixture
def trainer(store: FileStore) -> Iterator[GroupTrainer]:
    trainer = group_trainer(store, 2)
    yield trainer
    trainer.close()


def test_a_step_whose_ranks_could_not_be_forked_is_made_again(
    store: FileStore, trainer: GroupTrainer, monkeypatch: pytest.MonkeyPatch
):
    work = first_step(store, "forked")
    trainer.train(first_step(store, "before-fork"), never)
    fork_server = parent_of(pids(trainer)[0])
    trainer.forget()
    os.kill(fork_server, signal.SIGSTOP)

    def read_from_nobody(source: int) -> int:
        os.kill(fork_server, signal.SIGKILL)
        return read_signed(source)

    read_signed = multiprocessing.forkserver.read_signed
    with monkeypatch.context() as patches:
        patches.setattr(multiprocessing.forkserver, "read_signed", read_from_nobody)
        with pytest.raises(TemperError, match="2 ranks must begin, .* nothing was committed") as failure:
            trainer.train(work, never)
    assert failure.value.type == "TrainerFailed"
    # A killed process may still look alive to the next fork.
    expect_ended([fork_server])
    assert trainer.train(work, never).commit.manifest.platform["devices"] == 2


class Kills:
    """Of the other rank, once in each of some steps: when rank 0 asks for so many times whether it may go on. It does
    so at least before each of its micro-batches."""

    def __init__(self, trainer: GroupTrainer, steps: dict[int, int]) -> None:
        self.left = dict(steps)
        self.num_lost = 0
        self._trainer = trainer

    def train(self, work: TrainInput) -> Commit:
        while True:
            try:
                return self._trainer.train(work, partial(self._is_cancelled, work.step)).commit
            except TemperError as error:
                assert (error.type, error.retryable) == ("TrainerFailed", True)
                self.num_lost += 1

    def _is_cancelled(self, step: int) -> bool:
        if step in self.left:
            self.left[step] -= 1
            if self.left[step] == 0:
                del self.left[step]
                os.kill(pids(self._trainer)[0], signal.SIGKILL)
        return False


def test_under_kills_of_a_rank_steps_are_committed_once_with_the_same_bytes_and_come_to_what_one_rank_does(
    store: FileStore, trainer: GroupTrainer
):
    num_steps, rng = 8, random.Random(14)
    kills = Kills(trainer, {step: rng.randint(1, 3) for step in rng.sample(range(1, num_steps + 1), 4)})
    one, two = (
        steps_of(store, run, num_steps, lambda work, trainer=trainer: trainer.train(work, never).commit)
        for run, trainer in (("steps-of-one", new_trainer(store)), ("steps-of-two", trainer))
    )
    killed = steps_of(store, "steps-killed", num_steps, kills.train)
    assert (kills.left, kills.num_lost) == ({}, 4)
    # The first one is what the run began with.
    found = (store.root / "runs/steps-killed").rglob("manifest.json")
    assert sorted(found) == sorted(store.root / manifest_key("steps-killed", 0, step) for step in range(num_steps + 1))
    for undisturbed, again in zip(two, killed, strict=True):
        assert (again.adapter, again.optimizer) == (undisturbed.adapter, undisturbed.optimizer)
        assert again.metrics == undisturbed.metrics
    first, last, last_of_one = (adapter_of(store, manifest) for manifest in (two[0], killed[-1], one[-1]))
    assert (last - last_of_one).norm() < 1e-4 * (last_of_one - first).norm()


def steps_of(store: FileStore, run: str, num_steps: int, train: Callable[[TrainInput], Commit]) -> list[Manifest]:
    commits = [new_trainer(store).initialise(initialise_input(run)).commit]
    for step in range(1, num_steps + 1):
        parent = commits[-1].checkpoint(run)
        # Sampled by the first policy, and the same for every run.
        groups = sampled_groups(parent.adapter_sha256, step)
        config = train_config(micro_batch_tokens=1, max_logprob_mismatch=1e9)
        commits.append(train(train_input(store, parent, groups, train=config)))
    return [commit.manifest for commit in commits]


def adapter_of(store: FileStore, manifest: Manifest) -> Tensor:
    tensors = load_adapter(store, manifest).tensors
    return torch.cat([tensors[name].flatten() for name in sorted(tensors)])
