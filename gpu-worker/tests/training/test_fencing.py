"""Whatever a step is ended by, and wherever: the next one from the same parent has the bytes of an undisturbed one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from temper_gpu.commits.checkpoints import Commit, manifest_key
from temper_gpu.contract import STORE_KEYS, Checkpoint, OptimizerConfig
from temper_gpu.store import FileStore
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.ranks import StepCancelled
from temper_gpu.training.trainer import Outcome, Trainer
from tests.failing import failing
from tests.training.samples import open_folder, sampled_groups, train_config, train_input
from tests.training.trainers import begin, never, new_trainer

make_deterministic(1)


class Frozen(BaseException):
    """The process was killed here, as far as its step is concerned."""


def train(
    store: FileStore, trainer: Trainer, parent: Checkpoint, is_cancelled: Callable[[], bool] = never, seed: int = 0
) -> Outcome:
    """The same step under any name: names are in no hash. Loose, because all samples come from the base model."""
    groups = sampled_groups(parent.adapter_sha256, seed)
    config = train_config(max_logprob_mismatch=10.0, micro_batch_tokens=32)
    return trainer.train(train_input(store, parent, groups, train=config), is_cancelled)


def two_steps(store: FileStore, trainer: Trainer, run: str) -> list[Commit]:
    first = train(store, trainer, begin(trainer, run)).commit
    return [first, train(store, trainer, first.checkpoint(run), seed=1).commit]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[Commit]:
    store = open_folder(tmp_path_factory.mktemp("undisturbed"))
    return two_steps(store, new_trainer(store), "undisturbed")


def count_polls(tmp_path: Path) -> int:
    """Micro-batch boundaries of the step: before each, and behind the last."""
    store = open_folder(tmp_path / "counted")
    trainer, polls = new_trainer(store), []
    train(store, trainer, begin(trainer, "counted"), lambda: bool(polls.append(None)))
    return len(polls)


def test_a_step_cancelled_at_any_micro_batch_boundary_leaves_nothing_behind(tmp_path: Path, undisturbed: list[Commit]):
    num_boundaries = count_polls(tmp_path)
    assert num_boundaries >= 4
    store = open_folder(tmp_path)
    trainer = new_trainer(store)
    for boundary in range(num_boundaries):
        run = f"cancelled-at-{boundary}"
        answers = iter([False] * boundary + [True])
        with pytest.raises(StepCancelled):
            train(store, trainer, begin(trainer, run), lambda answers=answers: next(answers))
        assert store.read(manifest_key(run, 0, 1)) is None
        assert two_steps(store, trainer, run) == undisturbed


def test_a_worker_frozen_at_any_micro_batch_boundary_finds_the_others_commit_and_leaves_nothing_behind(
    tmp_path: Path, undisturbed: list[Commit]
):
    num_boundaries = count_polls(tmp_path)
    store = open_folder(tmp_path)
    frozen, other = new_trainer(store), new_trainer(store)
    for boundary in range(num_boundaries):
        run = f"frozen-at-{boundary}"
        parent, polls = begin(frozen, run), []

        def thaw_late(parent: Checkpoint = parent, polls: list[None] = polls, boundary: int = boundary) -> bool:
            polls.append(None)
            if len(polls) == boundary + 1:
                train(store, other, parent)
            return False

        late = train(store, frozen, parent, thaw_late)
        assert (late.discarded, late.found, late.commit) == (True, True, undisturbed[0])
        assert two_steps(store, frozen, f"after-{boundary}") == undisturbed
        assert train(store, frozen, late.commit.checkpoint(run), seed=1).commit == undisturbed[1]


def test_a_worker_that_is_late_with_other_inputs_leaves_the_tokens_of_the_step(tmp_path: Path):
    store = open_folder(tmp_path)
    late, other = new_trainer(store), new_trainer(store)
    parent, written = begin(late, "demo"), []
    tokens = store.root / STORE_KEYS["tokens"].format(run="demo", branch=0, step=1)
    config = train_config(max_logprob_mismatch=10.0, micro_batch_tokens=32)
    work = train_input(store, parent, sampled_groups(parent.adapter_sha256, 0), train=config)

    def the_other_finishes() -> bool:
        if not written:
            other.train(work, never)
            written.append(tokens.stat().st_ino)
        return False

    with failing("StepConflict", "another run name"):
        late.train(work.model_copy(update={"inputs_sha256": "f" * 64}), the_other_finishes)
    # Each writing is a new file.
    assert [tokens.stat().st_ino] == written


def inside_the_optimizer_step(trainer: Trainer, happen: Callable[[], None]) -> None:
    """A seam in AdamW: it updates the first half of the tensors and their moments, then `happen`, then the rest."""
    assert trainer.policy is not None
    optimizer = trainer.policy._optimizer
    whole_step, parameters = optimizer.step, optimizer._parameters
    names = list(parameters)

    def step(config: OptimizerConfig, learning_rate: float) -> None:
        def update(half: list[str]) -> None:
            optimizer._parameters = {name: parameters[name] for name in half}
            whole_step(config, learning_rate)

        optimizer.step = whole_step
        try:
            update(names[: len(names) // 2])
            happen()
            optimizer._num_steps -= 1
            update(names[len(names) // 2 :])
        finally:
            optimizer._parameters = parameters

    optimizer.step = step


def die() -> None:
    raise Frozen


def test_a_step_that_ends_inside_the_optimizer_step_leaves_nothing_behind(
    store: FileStore, trainer: Trainer, undisturbed: list[Commit]
):
    two_steps(store, trainer, "warm")
    parent = begin(trainer, "torn")
    train(store, trainer, begin(trainer, "before"))
    inside_the_optimizer_step(trainer, die)
    with pytest.raises(Frozen):
        train(store, trainer, parent)
    assert trainer.policy is not None
    torn = [tensor.any().item() for name, tensor in trainer.policy.parameters.items() if ".lora_B." in name]
    # Torn indeed: some tensors have been updated, others have not.
    assert True in torn
    assert False in torn
    assert store.read(manifest_key("torn", 0, 1)) is None
    assert two_steps(store, trainer, "torn") == undisturbed


def test_a_worker_frozen_inside_the_optimizer_step_finds_the_others_commit_and_leaves_nothing_behind(
    store: FileStore, undisturbed: list[Commit]
):
    frozen, other = new_trainer(store), new_trainer(store)
    two_steps(store, frozen, "warm")
    parent = begin(frozen, "frozen")
    inside_the_optimizer_step(frozen, lambda: train(store, other, parent) and None)
    late = train(store, frozen, parent)
    assert (late.discarded, late.commit) == (True, undisturbed[0])
    assert two_steps(store, frozen, "after") == undisturbed


def test_a_commit_with_other_bytes_wins_and_the_losers_memory_is_not_taken_for_it(
    tmp_path: Path, undisturbed: list[Commit]
):
    """Another worker on another kind of processor: equal up to rounding, and first."""
    store = open_folder(tmp_path)
    frozen, other = new_trainer(store), new_trainer(store)
    parent = begin(frozen, "demo")

    def round_otherwise() -> None:
        assert other.policy is not None
        with torch.no_grad():
            for parameter in other.policy.parameters.values():
                parameter.add_(1e-6)

    def the_other_finishes() -> bool:
        if store.read(manifest_key("demo", 0, 1)) is None:
            two_steps(store, other, "warm")
            inside_the_optimizer_step(other, round_otherwise)
            train(store, other, parent)
        return False

    late = train(store, frozen, parent, the_other_finishes)
    assert late.discarded
    assert late.commit.manifest.adapter != undisturbed[0].manifest.adapter
    copy = FileStore(Path(shutil.copytree(store.root, tmp_path / "copy")))
    winner = late.commit.checkpoint("demo")
    assert train(store, frozen, winner, seed=1).commit == train(copy, new_trainer(copy), winner, seed=1).commit
