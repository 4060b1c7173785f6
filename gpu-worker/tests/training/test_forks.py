"""A fork begins with the bytes of another run's checkpoint."""

import hashlib
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load

from temper_gpu.commits.checkpoints import manifest_key, pruned_key, read_parent, require_kept
from temper_gpu.contract import Checkpoint, LoraConfig
from temper_gpu.store import FileStore
from temper_gpu.training.trainer import Outcome, Trainer
from tests.failing import failing
from tests.training.samples import initialise_input, lora, open_folder, sampled_groups, train_config, train_input
from tests.training.test_trainer import run_steps
from tests.training.trainers import never, new_trainer

FORK_INPUTS = "2" * 64


def fork(trainer: Trainer, parent: Checkpoint, run: str = "fork", **changes: object) -> Outcome:
    return trainer.initialise(initialise_input(run, FORK_INPUTS, parent=parent, **changes))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Checkpoint]:
    """A store, and the last checkpoint of a run of two steps in it."""
    store = open_folder(tmp_path_factory.mktemp("trained"))
    trainer = new_trainer(store)
    return store.root, run_steps(store, [trainer, trainer])[-1]


@pytest.fixture
def store(tmp_path: Path, trained: tuple[Path, Checkpoint]) -> FileStore:
    return FileStore(Path(shutil.copytree(trained[0], tmp_path / "store")))


@pytest.fixture
def parent(trained: tuple[Path, Checkpoint]) -> Checkpoint:
    return trained[1]


def blobs(store: FileStore) -> set[str]:
    return {path.name for path in (store.root / "blobs").iterdir()}


def test_a_fork_begins_with_its_parents_very_blobs_and_names_it_by_hash(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    before = blobs(store)
    outcome = fork(trainer, parent)
    begun, source = outcome.commit.manifest, read_parent(store, parent).manifest
    assert not outcome.found
    assert (begun.adapter, begun.adapter_config, begun.optimizer) == (
        source.adapter,
        source.adapter_config,
        source.optimizer,
    )
    assert (begun.branch, begun.step, begun.groups) == (0, 0, [])
    assert begun.parent is not None
    assert (begun.parent.step, begun.parent.manifest_sha256) == (2, parent.manifest_sha256)
    assert blobs(store) == before
    data = store.read(manifest_key("fork", 0, 0))
    assert data is not None
    assert b"demo" not in data
    assert b"fork" not in data


def test_a_fork_asked_for_twice_is_found(store: FileStore, parent: Checkpoint):
    made, found = (fork(new_trainer(store), parent) for _ in range(2))
    assert (made.found, found.found) == (False, True)
    assert made.commit == found.commit


def test_the_first_step_of_a_fork_goes_on_with_the_parents_moments(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    parent = fork(trainer, parent).commit.checkpoint("fork")
    work = train_input(
        store, parent, sampled_groups(parent.adapter_sha256, 9), train=train_config(max_logprob_mismatch=10.0)
    )
    step = trainer.train(work, never).commit.manifest
    assert load(store.get_blob(step.optimizer))["step"].item() == 3
    assert step.adapter != read_parent(store, parent).manifest.adapter


def test_a_parent_with_another_hash_is_corrupt(store: FileStore, trainer: Trainer, parent: Checkpoint):
    parent = parent.model_copy(update={"manifest_sha256": "0" * 64})
    with failing("StoreCorrupt", r"demo/branches/0/steps/2/manifest\.json must have sha256 0000"):
        fork(trainer, parent)
    assert store.read(manifest_key("fork", 0, 0)) is None


@pytest.mark.parametrize("part", ["adapter", "optimizer", "adapter_config"])
def test_a_parent_whose_weights_are_lost_is_corrupt(store: FileStore, trainer: Trainer, parent: Checkpoint, part: str):
    ref = getattr(read_parent(store, parent).manifest, part)
    (store.root / ref.key).unlink()
    with failing("StoreCorrupt", f"{ref.sha256}, but it is missing"):
        fork(trainer, parent)


def test_a_parent_without_its_optimizer_state_is_refused_but_can_be_sampled(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    manifest = read_parent(store, parent).manifest
    store.publish(pruned_key("demo", 0, 2), b'{"schema":1,"pruned":"optimizer"}')
    (store.root / manifest.optimizer.key).unlink()
    with failing("BadConfig", "the optimizer state of demo@2 must be in the store, but it was pruned"):
        fork(trainer, parent)
    with failing("BadConfig", "the optimizer state of demo@2"):
        trainer.train(train_input(store, parent, sampled_groups(parent.adapter_sha256, 9)), never)
    require_kept(store, "demo", manifest)


def test_another_base_model_is_refused_and_both_are_named(trainer: Trainer, parent: Checkpoint):
    with failing("BadConfig", "demo@2 uses tiny, but the fork asks for other"):
        fork(trainer, parent, base_model="other")


def test_weights_that_changed_under_the_base_models_name_are_another_policy(
    trainer: Trainer, parent: Checkpoint, monkeypatch
):
    base = trainer._library.get("tiny")
    changed = hashlib.sha256(b"other weights").hexdigest()
    monkeypatch.setattr(type(base), "sha256", property(lambda _: changed))
    with failing("PolicyMismatch", f"this host has {changed}"):
        fork(trainer, parent)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lora(rank=8), "rank 8, alpha 8"),
        (LoraConfig(rank=4, alpha=16, target_modules=None), "rank 4, alpha 16"),
        (LoraConfig(rank=4, alpha=8, target_modules=["q_proj"]), "on q_proj of tiny"),
    ],
)
def test_another_lora_shape_is_refused_and_both_are_named(
    trainer: Trainer, parent: Checkpoint, other: LoraConfig, words: str
):
    with failing("BadConfig", f"demo@2 has rank 4, alpha 8 on .*, but the fork asks for .*{words}"):
        fork(trainer, parent, lora=other)


def test_a_fork_from_other_inputs_under_its_name_is_a_conflict(trainer: Trainer, parent: Checkpoint):
    fork(trainer, parent)
    with failing("StepConflict", FORK_INPUTS):
        trainer.initialise(initialise_input("fork", "3" * 64))
