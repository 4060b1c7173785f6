"""A fork begins with the bytes of another run's checkpoint."""

import hashlib
from pathlib import Path

import pytest
from safetensors.torch import load

from temper_gpu.commits.checkpoints import manifest_key, read_parent
from temper_gpu.contract import Checkpoint, LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from temper_gpu.training.trainer import Outcome, Trainer
from tests.training.samples import initialise_input, lora, open_folder, sampled_groups, train_config, train_input
from tests.training.test_trainer import new_trainer, run_steps

FORK_INPUTS = "2" * 64


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return open_folder(tmp_path)


def fork(trainer: Trainer, parent: Checkpoint, run: str = "fork", **changes: object) -> Outcome:
    return trainer.initialise(initialise_input(run, FORK_INPUTS, parent=parent, **changes))


def last_checkpoint(store: FileStore) -> Checkpoint:
    trainer = new_trainer(store)
    return run_steps(store, [trainer, trainer])[-1]


def blobs(store: FileStore) -> set[str]:
    return {path.name for path in (store.root / "blobs").iterdir()}


def test_a_fork_begins_with_its_parents_very_blobs_and_names_it_by_hash(store: FileStore):
    parent = last_checkpoint(store)
    before = blobs(store)
    outcome = fork(new_trainer(store), parent)
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


def test_a_fork_asked_for_twice_is_found(store: FileStore):
    parent = last_checkpoint(store)
    made, found = (fork(new_trainer(store), parent) for _ in range(2))
    assert (made.found, found.found) == (False, True)
    assert made.commit == found.commit


def test_a_fork_of_a_copy_under_another_name_has_the_same_bytes(tmp_path: Path):
    stores = open_folder(tmp_path / "one"), open_folder(tmp_path / "other")
    commits = []
    for store, run in zip(stores, ("one", "other"), strict=True):
        trainer = new_trainer(store)
        parent = run_steps(store, [trainer, trainer], run)[-1]
        commits.append(fork(trainer, parent, f"fork-of-{run}").commit)
    assert commits[0] == commits[1]


def test_the_first_step_of_a_fork_goes_on_with_the_parents_moments(store: FileStore):
    trainer = new_trainer(store)
    parent = fork(trainer, last_checkpoint(store)).commit.checkpoint("fork")
    work = train_input(
        store, parent, sampled_groups(parent.adapter_sha256, 9), train=train_config(max_logprob_mismatch=10.0)
    )
    step = trainer.train(work, lambda: False).commit.manifest
    assert load(store.get_blob(step.optimizer))["step"].item() == 3
    assert step.adapter != read_parent(store, parent).manifest.adapter


def test_a_parent_with_another_hash_is_corrupt(store: FileStore):
    parent = last_checkpoint(store).model_copy(update={"manifest_sha256": "0" * 64})
    with pytest.raises(TemperError, match=r"demo/branches/0/steps/2/manifest\.json must have sha256 0000") as caught:
        fork(new_trainer(store), parent)
    assert caught.value.type == "StoreCorrupt"
    assert store.read(manifest_key("fork", 0, 0)) is None


@pytest.mark.parametrize("part", ["adapter", "optimizer", "adapter_config"])
def test_a_parent_whose_weights_are_lost_is_corrupt(store: FileStore, part: str):
    parent = last_checkpoint(store)
    ref = getattr(read_parent(store, parent).manifest, part)
    (store.root / ref.key).unlink()
    with pytest.raises(TemperError, match=f"{ref.sha256}, but it is missing") as caught:
        fork(new_trainer(store), parent)
    assert caught.value.type == "StoreCorrupt"


def test_another_base_model_is_refused_and_both_are_named(store: FileStore):
    with pytest.raises(TemperError, match="demo@2 uses tiny, but the fork asks for other") as caught:
        fork(new_trainer(store), last_checkpoint(store), base_model="other")
    assert caught.value.type == "BadConfig"


def test_weights_that_changed_under_the_base_models_name_are_another_policy(store: FileStore, monkeypatch):
    parent = last_checkpoint(store)
    trainer = new_trainer(store)
    base = trainer._library.get("tiny")
    changed = hashlib.sha256(b"other weights").hexdigest()
    monkeypatch.setattr(type(base), "sha256", property(lambda _: changed))
    with pytest.raises(TemperError, match=f"this host has {changed}") as caught:
        fork(trainer, parent)
    assert caught.value.type == "PolicyMismatch"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lora(rank=8), "rank 8, alpha 8"),
        (LoraConfig(rank=4, alpha=16, target_modules=None), "rank 4, alpha 16"),
        (LoraConfig(rank=4, alpha=8, target_modules=["q_proj"]), "on q_proj of tiny"),
    ],
)
def test_another_lora_shape_is_refused_and_both_are_named(store: FileStore, other: LoraConfig, words: str):
    with pytest.raises(
        TemperError, match=f"demo@2 has rank 4, alpha 8 on .*, but the fork asks for .*{words}"
    ) as caught:
        fork(new_trainer(store), last_checkpoint(store), lora=other)
    assert caught.value.type == "BadConfig"


def test_a_fork_from_other_inputs_under_its_name_is_a_conflict(store: FileStore):
    parent = last_checkpoint(store)
    trainer = new_trainer(store)
    fork(trainer, parent)
    with pytest.raises(TemperError, match=FORK_INPUTS) as caught:
        trainer.initialise(initialise_input("fork", "3" * 64))
    assert caught.value.type == "StepConflict"
