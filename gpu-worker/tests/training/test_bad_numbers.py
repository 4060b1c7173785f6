"""What is clipped and trained, and what is refused: NaN, infinity, exploding gradients, weights and files."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch

from temper_gpu.commits.checkpoints import Manifest, manifest_key, read_parent
from temper_gpu.contract import Checkpoint
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from temper_gpu.training.groups import Group
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.trainer import Trainer
from tests.failing import failing
from tests.training.samples import load_adapter, sampled_groups, train_config, train_input
from tests.training.trainers import begin, never

make_deterministic(1)


def groups_with(parent: Checkpoint, factor: float) -> list[Group]:
    """Rewards times `factor`."""
    groups = sampled_groups(parent.adapter_sha256)
    return [
        replace(group, attempts=[replace(a, reward=a.reward and a.reward * factor) for a in group.attempts])
        for group in groups
    ]


def refusal(store: FileStore, trainer: Trainer, parent: Checkpoint, groups: list[Group], **changes: object) -> str:
    """Refused for good, before the commit; the next step is an undisturbed one."""
    work = train_input(store, parent, groups, **changes)
    with pytest.raises(TemperError) as caught:
        trainer.train(work, never)
    assert (caught.value.type, caught.value.retryable) == ("LossNotFinite", False)
    assert store.read(manifest_key("demo", 0, 1)) is None
    return caught.value.message


@pytest.mark.numerics
def test_a_large_gradient_is_clipped_and_its_norm_recorded(store: FileStore, trainer: Trainer):
    manifests = []
    for run, factor in (("small", 1e3), ("large", 1e6)):
        parent = begin(trainer, run)
        work = train_input(store, parent, groups_with(parent, factor))
        manifests.append(trainer.train(work, never).commit.manifest)
    small, large = manifests
    assert large.metrics["gradNorm"] == pytest.approx(1000 * (small.metrics["gradNorm"] or 0), rel=1e-3)
    # Clipped to the same length: the update is the same but for rounding.
    assert largest_weight(store, large) == pytest.approx(largest_weight(store, small), rel=1e-3)


def largest_weight(store: FileStore, manifest: Manifest) -> float:
    tensors = load_adapter(store, manifest).tensors
    return max(tensor.abs().max().item() for name, tensor in tensors.items() if ".lora_B." in name)


def test_a_gradient_beyond_numbers_is_refused_with_step_and_remedy(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    config = train_config(entropy_coefficient=1e38)
    message = refusal(store, trainer, parent, sampled_groups(parent.adapter_sha256), train=config)
    assert message.startswith("step 1 of demo: ")
    assert "gradient" in message
    assert "temper rollback" in message


def test_a_group_whose_rewards_no_gradient_holds_is_left_out_as_if_its_attempts_had_failed(
    store: FileStore, trainer: Trainer
):
    adapters: list[Mapping[str, torch.Tensor]] = []
    for run, reward in (("large", 1e200), ("failed", None)):
        parent = begin(trainer, run)
        first, second = groups_with(parent, 1)
        spoiled = [replace(second.attempts[0], reward=reward), *(replace(a, reward=0) for a in second.attempts[1:])]
        if reward is None:
            spoiled = [replace(attempt, reward=None) for attempt in spoiled]
        groups = [first, replace(second, attempts=spoiled)]
        manifest = trainer.train(train_input(store, parent, groups), never).commit.manifest
        assert manifest.metrics.get("unusableGroups") == (None if reward is None else 1)
        adapters.append(load_adapter(store, manifest).tensors)
    assert all(torch.equal(tensor, adapters[1][name]) for name, tensor in adapters[0].items())
    work = train_input(store, begin(trainer, "all"), groups_with(parent, 1e200))
    assert trainer.train(work, never).commit.manifest.metrics["unusableGroups"] == 2


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_is_refused_with_step_and_remedy(
    store: FileStore, trainer: Trainer, parent: Checkpoint, monkeypatch, value: float
):
    def broken(config):
        loss = whole(config)

        def function(batch, logprobs_N):
            losses = loss.function(batch, logprobs_N)
            return losses._replace(loss_N=losses.loss_N * value)

        return loss._replace(function=function)

    from temper_gpu.training import step

    whole = step.find_loss
    with monkeypatch.context() as patch:
        patch.setattr(step, "find_loss", broken)
        message = refusal(store, trainer, parent, sampled_groups(parent.adapter_sha256))
    assert message.startswith("step 1 of demo: loss and gradient must be finite")
    assert "temper rollback" in message
    work = train_input(store, parent, sampled_groups(parent.adapter_sha256))
    assert trainer.train(work, never).commit.manifest.metrics["loss"]


def test_an_update_that_explodes_the_adapter_is_refused_before_the_commit(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    message = refusal(store, trainer, parent, sampled_groups(parent.adapter_sha256), learning_rate=1e38)
    assert "learning rate 1e+38" in message


def test_weights_that_give_no_numbers_are_refused(store: FileStore, trainer: Trainer, parent: Checkpoint, monkeypatch):
    groups = sampled_groups(parent.adapter_sha256)
    work = train_input(store, parent, groups)
    load = trainer._load_policy

    def poisoned(*arguments):
        held = load(*arguments)
        with torch.no_grad():
            next(iter(held.policy.parameters.values())).fill_(math.nan)
        return held

    monkeypatch.setattr(trainer, "_load_policy", poisoned)
    with failing("LossNotFinite", r"step 1 of demo: log-probabilities .* finite.*temper rollback"):
        trainer.train(work, never)


@pytest.mark.parametrize("part", ["adapter", "adapter_config", "optimizer"])
@pytest.mark.parametrize("damage", ["one flipped bit", "truncated", "missing"])
def test_a_damaged_file_of_the_parent_is_named(
    store: FileStore, trainer: Trainer, parent: Checkpoint, part: str, damage: str
):
    work = train_input(store, parent, sampled_groups(parent.adapter_sha256))
    ref = getattr(read_parent(store, parent).manifest, part)
    path = store.root / ref.key
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(whole[:-7] if damage == "truncated" else whole[:-7] + bytes([whole[-7] ^ 1]) + whole[-6:])
    with failing("StoreCorrupt", f"{ref.key}.*{ref.sha256}.*restore it", retryable=False):
        trainer.train(work, never)
    assert store.read(manifest_key("demo", 0, 1)) is None
    path.write_bytes(whole)
    assert not trainer.train(work, never).found
