import hashlib
import json
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from temper_gpu.commits.checkpoints import manifest_key, publish_view, read_parent
from temper_gpu.contract import Checkpoint, TrainConfig, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from temper_gpu.training import trainer as trainer_module
from temper_gpu.training.groups import Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.step import train_step
from temper_gpu.training.trainer import Trainer
from tests.failing import failing
from tests.training.samples import (
    TinyLibrary,
    initialise_input,
    load_adapter,
    lora,
    open_folder,
    sampled_groups,
    tiny_base,
    train_config,
    train_input,
    with_logprobs,
)
from tests.training.trainers import begin, never, new_trainer

make_deterministic(1)


def fresh(parent: Checkpoint, seed: int = 0) -> list[Group]:
    return sampled_groups(parent.adapter_sha256, seed)


@pytest.fixture
def work(store: FileStore, parent: Checkpoint) -> TrainInput:
    return train_input(store, parent, fresh(parent))


def run_steps(store: FileStore, trainers: list[Trainer], run: str = "demo") -> list[Checkpoint]:
    """One step per trainer. Later steps loosen the mismatch: the samples come from the base model."""
    checkpoints = [begin(trainers[0], run)]
    for trainer in trainers:
        parent = checkpoints[-1]
        work = train_input(store, parent, fresh(parent, parent.step), train=train_config(max_logprob_mismatch=10.0))
        checkpoints.append(trainer.train(work, never).commit.checkpoint(run))
    return checkpoints


def test_the_default_type_that_another_thread_sets_while_it_loads_changes_no_step(store: FileStore):
    made: list[tuple[object, ...]] = []
    for run, dtype in (("calm", torch.float32), ("beside", torch.bfloat16)):
        torch.set_default_dtype(dtype)
        try:
            checkpoint = run_steps(store, [new_trainer(store)], run)[-1]
        finally:
            torch.set_default_dtype(torch.float32)
        manifest = read_parent(store, checkpoint).manifest
        made.append((manifest.adapter, manifest.optimizer, manifest.metrics))
    assert made[0] == made[1]


def test_each_step_changes_the_adapter_and_names_its_parent(store: FileStore, trainer: Trainer):
    checkpoints = run_steps(store, [trainer, trainer, trainer])
    assert len({checkpoint.adapter_sha256 for checkpoint in checkpoints}) == 4
    for parent, checkpoint in pairwise(checkpoints):
        manifest = read_parent(store, checkpoint).manifest
        assert manifest.parent is not None
        assert manifest.parent.manifest_sha256 == parent.manifest_sha256


@pytest.mark.numerics
def test_a_trainer_that_lost_its_memory_makes_the_same_bytes(tmp_path: Path):
    kept, lost = open_folder(tmp_path / "kept"), open_folder(tmp_path / "lost")
    same = new_trainer(kept)
    assert run_steps(kept, [same, same, same]) == run_steps(lost, [new_trainer(lost) for _ in range(3)])


def test_a_step_asked_for_twice_is_found_not_made(store: FileStore, trainer: Trainer, work: TrainInput):
    made, found = trainer.train(work, never), new_trainer(store).train(work, never)
    assert (made.found, found.found) == (False, True)
    assert made.commit == found.commit
    assert trainer.initialise(initialise_input()).found


def test_other_inputs_under_a_committed_step_are_a_conflict_that_names_both(trainer: Trainer, work: TrainInput):
    trainer.train(work, never)
    other = work.model_copy(update={"inputs_sha256": "f" * 64})
    with failing("StepConflict", f"{work.inputs_sha256}.*{'f' * 64}"):
        trainer.train(other, never)


@pytest.mark.numerics
def test_learning_rate_zero_moves_nothing_but_the_moments(store: FileStore, trainer: Trainer, parent: Checkpoint):
    work = train_input(store, parent, fresh(parent), learning_rate=0.0)
    commit = trainer.train(work, never).commit
    assert commit.manifest.adapter.sha256 == parent.adapter_sha256
    assert commit.manifest.optimizer != read_parent(store, parent).manifest.optimizer


def test_a_step_without_trainable_tokens_is_an_unchanged_copy_that_says_so(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    groups = [replace(g, attempts=[replace(a, truncated=True) for a in g.attempts]) for g in fresh(parent)]
    manifest = trainer.train(train_input(store, parent, groups), never).commit.manifest
    assert (manifest.metrics["trainedTokens"], manifest.metrics["truncated"]) == (0, 8)
    assert manifest.optimizer == read_parent(store, parent).manifest.optimizer


def test_answers_of_another_adapter_are_a_policy_mismatch_that_names_both(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    with failing("PolicyMismatch", f"{parent.adapter_sha256}.*{'e' * 64}"):
        trainer.train(train_input(store, parent, sampled_groups("e" * 64)), never)


def test_log_probabilities_that_differ_are_a_policy_mismatch_before_the_update(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    groups = shifted(fresh(parent))
    with failing("PolicyMismatch", rf"k3 .*{parent.adapter_sha256}"):
        trainer.train(train_input(store, parent, groups), never)
    assert store.read(manifest_key("demo", 0, 1)) is None


@pytest.mark.parametrize(("dtype", "is_refused"), [(torch.float32, True), (torch.bfloat16, False)])
def test_below_float32_sampler_and_trainer_may_differ_by_more(dtype: torch.dtype, is_refused: bool):
    """By what two ways of rounding make of the same weights; ten times the bound."""
    base = tiny_base()
    base = replace(base, tensors={name: tensor.to(dtype) for name, tensor in base.tensors.items()})
    policy = TrainablePolicy(base, lora())
    groups = shifted(sampled_groups("p"))

    def step(max_mismatch: float) -> dict[str, float]:
        return train_step(policy, StepInputs("p", groups, train_config(max_logprob_mismatch=max_mismatch), 0.0))

    with pytest.raises(TemperError, match=r"mean k3 at most 0\.001\)") if is_refused else nullcontext():
        metrics = step(1e-3)
        # A bound that is not the run's own is told.
        assert metrics["mostLogprobK3"] == 1e-2
    with pytest.raises(TemperError, match="mean k3 at most"):
        step(1e-5)


class Watched:
    """A lock that tells when it is released."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    def __enter__(self) -> None:
        self._told.append("taken")

    def __exit__(self, *_) -> None:
        self._told.append("released")


@pytest.mark.parametrize("fails", [False, True])
def test_memory_is_given_back_before_the_engine_goes_on(store: FileStore, monkeypatch: pytest.MonkeyPatch, fails: bool):
    """Who waits for the device needs room on it: vLLM wakes up, the embedded engine computes a pass."""
    told: list[str] = []
    trainer = Trainer(TinyLibrary(), store, Watched(told))
    parent = begin(trainer)
    monkeypatch.setattr(trainer_module, "give_back", lambda device: told.append(f"given back on {device}"))
    groups = sampled_groups("e" * 64) if fails else fresh(parent)
    with pytest.raises(TemperError) if fails else nullcontext():
        trainer.train(train_input(store, parent, groups), never)
    assert told == ["taken", "given back on cpu", "released"]


class Switching(Watched):
    """A lock for which an engine released memory."""

    def expect(self, base_model: str, train: TrainConfig) -> None:
        self._told.append(f"{base_model}, {train.micro_batch_tokens} tokens")

    def take_seconds(self) -> dict[str, float]:
        return {"wait": 0.25, "train": 0.5}


def test_seconds_of_switching_are_told_apart_and_are_in_no_manifest(store: FileStore, work: TrainInput):
    told: list[str] = []
    lock = Switching(told)
    switched = Trainer(TinyLibrary(), store, lock, switching=lock)
    outcome = switched.train(work, never)
    assert told == ["tiny, 64 tokens", "taken", "released"]
    assert outcome.seconds["switch"] == 0.75
    assert "switch" not in str(outcome.commit.manifest.metrics)
    assert outcome.seconds.keys() == {"load", "wait", "train", "commit", "switch"}


def shifted(groups: list[Group]) -> list[Group]:
    return [with_logprobs(group, lambda call: [p - 0.1 for p in call.logprobs]) for group in groups]


def test_a_flipped_bit_in_a_group_file_is_found(store: FileStore, trainer: Trainer, work: TrainInput):
    path = store.root / "runs/demo/branches/0/steps/1/groups/1.judged.json"
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)
    with failing("StoreCorrupt", r"1\.judged\.json"):
        trainer.train(work, never)


@pytest.mark.numerics
def test_metrics_tell_the_step(store: FileStore, trainer: Trainer, parent: Checkpoint):
    groups = fresh(parent)
    metrics = trainer.train(train_input(store, parent, groups), never).commit.manifest.metrics
    calls = [call for group in groups for attempt in group.attempts for call in attempt.calls]
    assert metrics["sampledTokens"] == metrics["trainedTokens"] == sum(len(call.token_ids) for call in calls)
    assert (metrics["rows"], metrics["forks"], metrics["clippedShare"]) == (8, 0, 0)
    mismatch, distance, norm = metrics["logprobK3"], metrics["maxAbsLogRatio"], metrics["gradNorm"]
    assert mismatch is not None and distance is not None and norm is not None
    assert 0 <= mismatch < 1e-8
    assert 0 < distance < 1e-4
    assert norm > 0


@pytest.mark.numerics
def test_the_view_loads_in_peft_and_gives_what_the_trainer_trains(store: FileStore, trainer: Trainer):
    from peft import PeftModel

    from temper_gpu.model.lora import merged_weights

    checkpoint = run_steps(store, [trainer])[-1]
    commit = read_parent(store, checkpoint)
    publish_view(store, "demo", commit)
    folder = store.root / "runs/demo/branches/0/checkpoints/1/adapter"
    assert hashlib.sha256((folder / "adapter_model.safetensors").read_bytes()).hexdigest() == checkpoint.adapter_sha256
    ids = torch.arange(9)[None]
    with torch.no_grad():
        by_peft = PeftModel.from_pretrained(tiny_base().instantiate("eager"), str(folder))(ids).logits
        merged = (
            tiny_base()
            .instantiate("eager", merged_weights(tiny_base(), load_adapter(store, commit.manifest)))(ids)
            .logits
        )
        plain = tiny_base().instantiate("eager")(ids).logits
    torch.testing.assert_close(by_peft, merged, atol=1e-5, rtol=1e-5)
    assert (by_peft - plain).abs().max() > 1e-4
    assert json.loads((folder / "adapter_config.json").read_bytes())["target_modules"][0] == "down_proj"


def test_the_trainer_shares_the_frozen_weights():
    policy = TrainablePolicy(tiny_base(), lora())
    storages = {parameter.data_ptr() for parameter in policy.model.parameters()}
    assert {tensor.data_ptr() for tensor in tiny_base().tensors.values()} <= storages


def test_an_adapter_of_another_shape_is_refused(store: FileStore, trainer: Trainer, parent: Checkpoint):
    changed = train_config(lora=lora(8))
    with failing("BadConfig", "rank 8"):
        trainer.train(train_input(store, parent, fresh(parent), train=changed), never)
