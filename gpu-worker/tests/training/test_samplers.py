"""Steps whose groups an older checkpoint than their parent has sampled. A fresh adapter samples as the base model."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from temper_gpu.commits.checkpoints import Commit, manifest_key, pruned_key, read_commit, read_parent
from temper_gpu.contract import Checkpoint, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from temper_gpu.training.packing import Row
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.rows import Rows
from temper_gpu.training.samplers import first_rows
from tests.failing import failing
from tests.training.samples import (
    mixed_input,
    open_folder,
    sampled_groups,
    sampler_of,
    train_config,
    train_input,
    with_logprobs,
    write_group,
)
from tests.training.test_trainer import fresh
from tests.training.trainers import begin, never, new_trainer

make_deterministic(1)


def stale_step(
    store: FileStore, number: int, answered_by: int = 0, planned: int = 0
) -> tuple[list[Checkpoint], TrainInput]:
    """Steps 1 … number − 1 are trained; calls of the next one say which checkpoint answered, its plan which should."""
    trainer = new_trainer(store)
    checkpoints = [begin(trainer)]
    for step in range(1, number):
        config = train_config(max_logprob_mismatch=10.0)
        work = train_input(store, checkpoints[-1], fresh(checkpoints[-1], step), train=config)
        checkpoints.append(trainer.train(work, never).commit.checkpoint("demo"))
    sampled_by = checkpoints[answered_by].adapter_sha256
    groups = [replace(group, sampled_by=sampled_by) for group in sampled_groups(sampled_by, number)]
    work = train_input(store, checkpoints[-1], groups, samplers=[sampler_of(checkpoints[planned], number - 1)])
    return checkpoints, work


def test_a_step_is_trained_from_its_parent_and_held_to_its_samplers_own_weights(store: FileStore):
    checkpoints, work = stale_step(store, 3)
    commit = new_trainer(store).train(work, never).commit
    metrics = commit.manifest.metrics
    drift = metrics["logprobK3"]
    assert metrics["staleness"] == 2
    # Far more than the bound allows to a sampler and its own weights.
    assert drift is not None
    assert drift > work.train.max_logprob_mismatch
    assert commit.manifest.samplers == work.samplers
    assert commit.manifest.parent is not None
    assert commit.manifest.parent.manifest_sha256 == checkpoints[2].manifest_sha256


@pytest.mark.numerics
def test_laying_in_the_samplers_weights_leaves_no_trace(tmp_path: Path):
    looked, pruned = open_folder(tmp_path / "looked"), open_folder(tmp_path / "pruned")
    works = [stale_step(store, 2)[1] for store in (looked, pruned)]
    # Made again after the sampler was pruned: there is nothing to lay in, and nothing to read.
    pruned.publish(pruned_key("demo", 0, 0), json.dumps({"schema": 1, "pruned": True}).encode())
    sampler = read_commit(pruned, "demo", 0, 0)
    assert sampler is not None
    [weights] = (tmp_path / "pruned").rglob(sampler.manifest.adapter.sha256)
    weights.unlink()
    commits = [
        new_trainer(store).train(work, never).commit for store, work in zip((looked, pruned), works, strict=True)
    ]
    assert commits[0] == commits[1]


def test_a_sampler_that_does_not_compute_what_its_weights_do_is_a_mismatch(store: FileStore):
    # Sampled by the base model, but checkpoint 1 is said to have answered.
    checkpoints, work = stale_step(store, 3, answered_by=1, planned=1)
    with pytest.raises(TemperError, match=r"same log-probabilities.*sampled by adapter") as caught:
        new_trainer(store).train(work, never)
    assert caught.value.type == "PolicyMismatch"
    assert checkpoints[1].adapter_sha256 in caught.value.message
    assert store.read(manifest_key("demo", 0, 3)) is None


def test_answers_of_an_older_adapter_than_the_plan_names_are_a_mismatch(store: FileStore):
    _, work = stale_step(store, 3, answered_by=1)
    with failing("PolicyMismatch", "sampled by a policy that the step names"):
        new_trainer(store).train(work, never)


def test_a_manifest_names_no_sampler_where_the_parent_sampled(store: FileStore):
    parent = begin(new_trainer(store))
    commit = new_trainer(store).train(train_input(store, parent, fresh(parent)), never).commit
    written = json.loads(store.read(manifest_key("demo", 0, 1)) or b"")
    assert "samplers" not in written
    assert "staleness" not in written["metrics"]
    assert read_parent(store, commit.checkpoint("demo")) == commit


def mixed_step(store: FileStore) -> tuple[list[Checkpoint], TrainInput]:
    """Step 2 trains groups of both checkpoints before it."""
    trainer = new_trainer(store)
    first = begin(trainer)
    work = train_input(store, first, fresh(first, 1))
    checkpoints = [first, trainer.train(work, never).commit.checkpoint("demo")]
    return checkpoints, mixed_input(store, checkpoints)


@pytest.mark.numerics
def test_a_step_of_several_policies_has_the_same_bytes_again_whether_their_weights_are_there_or_not(tmp_path: Path):
    stores = [open_folder(tmp_path / name) for name in ("one", "other", "foreign", "gone")]
    commits: list[Commit] = []
    for number, store in enumerate(stores):
        [first, _], work = mixed_step(store)
        if number >= 2:
            # A checkpoint of another run, whose weights may be here.
            foreign = sampler_of(first).model_copy(update={"foreign": True, "step": 7, "manifest_sha256": "7" * 64})
            work = work.model_copy(update={"samplers": [foreign]})
        if number == 3:
            [weights] = (tmp_path / "gone").rglob(first.adapter_sha256)
            weights.unlink()
        commits.append(new_trainer(store).train(work, never).commit)
    assert commits[0] == commits[1]
    assert commits[2] == commits[3]
    assert commits[2].manifest.adapter == commits[0].manifest.adapter
    assert (commits[0].manifest.metrics["staleness"], commits[0].manifest.metrics["largestStaleness"]) == (0.5, 1)


def test_a_group_of_a_policy_that_the_step_does_not_name_is_a_mismatch(store: FileStore):
    [first, parent], work = mixed_step(store)
    unnamed = work.model_copy(update={"samplers": [sampler_of(first).model_copy(update={"step": 1, **sha_of(parent)})]})
    with failing("PolicyMismatch", f"sampled by a policy that the step names.*{first.adapter_sha256}"):
        new_trainer(store).train(unnamed, never)


def sha_of(checkpoint: Checkpoint) -> dict[str, str]:
    return checkpoint.model_dump(include={"manifest_sha256", "adapter_sha256"})


def test_a_sampler_with_another_hash_than_its_manifests_is_refused(store: FileStore):
    [first, _], work = mixed_step(store)
    wrong = sampler_of(first).model_copy(update={"manifest_sha256": "7" * 64})
    with failing("StoreCorrupt", "7777"):
        new_trainer(store).train(work.model_copy(update={"samplers": [wrong]}), never)


@pytest.mark.parametrize("place", [0, 1])
def test_each_policy_is_held_to_its_own_weights(store: FileStore, place: int):
    """The group of the other policy has the log-probabilities of its weights."""
    checkpoints, work = mixed_step(store)
    said = replace(sampled_groups(checkpoints[place].adapter_sha256, 9, 1)[0], index=8)
    said = with_logprobs(said, lambda call: [x - 1 for x in call.logprobs])
    said = replace(said, sampled_by=checkpoints[place].adapter_sha256)
    refs = list(work.groups)
    refs[place] = write_group(store, "demo", 2, said)
    with pytest.raises(TemperError, match=f"trained from adapter {checkpoints[place].adapter_sha256}"):
        new_trainer(store).train(work.model_copy(update={"groups": refs}), never)


def test_calls_of_another_policy_than_a_groups_rollouts_name_are_a_mismatch(store: FileStore):
    [first, parent], work = mixed_step(store)
    mixed = replace(sampled_groups(first.adapter_sha256, 9, 1)[0], index=8, sampled_by=parent.adapter_sha256)
    refs = [work.groups[0], write_group(store, "demo", 2, mixed)]
    with failing("PolicyMismatch", f"answers came from adapter {first.adapter_sha256}"):
        new_trainer(store).train(work.model_copy(update={"groups": refs}), never)


def test_whole_attempts_are_looked_at_until_there_are_tokens_enough():
    sizes = [(0, 600), (0, 300), (1, 200), (1, 1), (2, 5)]
    rows = Rows([Row([], "attempt", list(range(size))) for _, size in sizes], [attempt for attempt, _ in sizes])
    assert first_rows(rows).attempts == [0, 0, 1, 1]
