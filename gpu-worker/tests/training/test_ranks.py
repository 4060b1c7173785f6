"""Steps that several processes compute: what they come to, and what becomes of a step when one of them is lost."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import pytest
import torch
from safetensors.torch import load
from torch import Tensor

from temper_gpu.commits.checkpoints import Commit, Manifest, manifest_key
from temper_gpu.contract import EngineSettings, GpuWorkerSettings, SupervisedStep, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from temper_gpu.training.group import GroupTrainer, RankSettings
from temper_gpu.training.group.group import SILENT_S, prepare
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import StepCancelled
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.sharding import ShardedBase
from tests.training.agreement import first_moments, require_same_gradients
from tests.training.processes import expect_ended, listening
from tests.training.ranks_program import enter, frozen_bytes, told_by
from tests.training.samples import (
    STEADY,
    TinyLibrary,
    initialise_input,
    lora,
    mixed_input,
    open_folder,
    played_by_roles,
    read_ids,
    sampled_by,
    sampled_groups,
    tiny_base,
    train_config,
    train_input,
)
from tests.training.test_token_trace import read as read_trace
from tests.training.test_token_trace import require_same as require_same_trace
from tests.training.trainers import never, new_trainer

make_deterministic(1)

# The ranks' fork server imports what it needs while other tests run.
prepare(enter)
LIBRARY: Any = TinyLibrary()
# A tenth of the gradient is AdamW's first moment, where nothing is clipped.
UNCLIPPED = STEADY.model_copy(update={"max_grad_norm": 1e9})


class Trainers(Protocol):
    def __call__(self, count: int, shards: bool = False) -> GroupTrainer: ...


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> FileStore:
    return open_folder(tmp_path_factory.mktemp("ranks"))


class Hook:
    """A device lock: what happens when all ranks wait for the device."""

    def __init__(self) -> None:
        self.then: Callable[[], None] = lambda: None

    def __enter__(self) -> None:
        then, self.then = self.then, lambda: None
        then()

    def __exit__(self, *_: object) -> None:
        pass


HOOK = Hook()


def group_trainer(store: FileStore, count: int, shards: bool = False) -> GroupTrainer:
    engine = EngineSettings(threads=1, shard_base_model=shards)
    worker = GpuWorkerSettings(store=store.uri, engine=engine)
    settings = RankSettings(worker, ("cpu",) * count, "float32")
    given = (LIBRARY, store, HOOK, lambda base_model: {}, read_ids)
    return GroupTrainer(*given, enter=enter, settings=settings)


@pytest.fixture(scope="module")
def trainers(store: FileStore) -> Iterator[Trainers]:
    """Of so many ranks, which live until the tests end. One fork server for all: it imports torch once."""
    found: dict[tuple[int, bool], GroupTrainer] = {}

    def trainer_of(count: int, shards: bool = False) -> GroupTrainer:
        if (count, shards) not in found:
            found[count, shards] = group_trainer(store, count, shards)
        return found[count, shards]

    yield trainer_of
    for trainer in found.values():
        trainer.close()


def first_step(
    store: FileStore, run: str, adapter: str | None = None, base_model: str = "tiny", shared: int = 0, **changes: Any
) -> TrainInput:
    trained = initialise_input(run, lora=changes.get("lora", lora()), base_model=base_model)
    parent = new_trainer(store).initialise(trained).commit.checkpoint(run)
    groups = sampled_groups(adapter or parent.adapter_sha256, num_groups=3, shared=shared)
    # Two attempts that nothing pulls.
    groups[0] = replace(
        groups[0], attempts=[replace(a, reward=r) for a, r in zip(groups[0].attempts, (1, 0, -1, 0), strict=True)]
    )
    return train_input(store, parent, groups, base_model=base_model, train=train_config(optimizer=UNCLIPPED, **changes))


def gradients(store: FileStore, commit: Commit) -> dict[str, Tensor]:
    return first_moments(load(store.get_blob(commit.manifest.optimizer)))


def pids(trainer: GroupTrainer) -> list[int]:
    """Of the other ranks."""
    assert trainer.group is not None
    return [member.process.pid or 0 for member in trainer.group.members.values()]


@pytest.mark.numerics
@pytest.mark.parametrize("count", [2, 3])
def test_ranks_come_to_the_gradient_of_one_whatever_the_micro_batches_and_the_packing(
    store: FileStore, trainers: Trainers, count: int
):
    expected = gradients(store, new_trainer(store).train(first_step(store, f"alone-{count}", shared=20), never).commit)
    trainer = trainers(count)
    for packing in ("rows", "tree"):
        for tokens in (1, 80, 10**6):
            changes: dict[str, Any] = {"micro_batch_tokens": tokens, "packing": packing}
            work = first_step(store, f"of-{count}-{packing}-{tokens}", shared=20, **changes)
            commit = trainer.train(work, never).commit
            assert commit.manifest.platform.get("devices", 1) == count
            # A micro-batch of a single row shares nothing.
            assert (commit.manifest.metrics["sharedTokens"] != 0) == (packing == "tree" and tokens > 1)
            require_same_gradients(gradients(store, commit), expected)


@pytest.mark.numerics
def test_ranks_measure_what_one_measures_with_corrections_references_dropout_and_several_updates(
    store: FileStore, trainers: Trainers
):
    changes: dict[str, Any] = {"kl_coefficient": 0.1, "passes": 2, "lora": lora().model_copy(update={"dropout": 0.25})}
    changes |= {"correction": "token-truncate", "correction_cap": 2.0}
    here = new_trainer(store).train(first_step(store, "measured-alone", **changes), never).commit.manifest.metrics
    there = trainers(3).train(first_step(store, "measured", **changes), never).commit.manifest.metrics
    assert there.keys() == here.keys()
    for name, value in here.items():
        # Of the first pass they are nothing but rounding: what a log-probability of some nats has in float32.
        rounding = 1e-5 if name.endswith("AbsLogRatio") else 1e-6
        assert there[name] == pytest.approx(value, rel=1e-4, abs=rounding), name


@pytest.mark.numerics
@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("correction", ["none", "token-truncate"])
def test_ranks_record_of_each_token_what_one_records(
    store: FileStore, trainers: Trainers, shards: bool, correction: str
):
    changes: dict[str, Any] = {"correction": correction, "correction_cap": 2.0}
    here, there = (first_step(store, f"traced-{name}-{correction}-{shards:d}", **changes) for name in ("alone", "by-2"))
    new_trainer(store).train(here, never)
    trainers(2, shards).train(there, never)
    require_same_trace(read_trace(store, there), read_trace(store, here))


@pytest.mark.numerics
@pytest.mark.parametrize("shards", [False, True])
def test_ranks_train_groups_of_several_policies_as_one_does(store: FileStore, trainers: Trainers, shards: bool):
    commits: list[Commit] = []
    for run, trainer in ((f"mixed-alone-{shards:d}", new_trainer(store)), (f"mixed-{shards:d}", trainers(2, shards))):
        policies = [new_trainer(store).initialise(initialise_input(run)).commit.checkpoint(run)]
        work = train_input(store, policies[0], [sampled_by(store, policies[0], 1)])
        policies.append(new_trainer(store).train(work, never).commit.checkpoint(run))
        mixed = mixed_input(store, policies, train=train_config(optimizer=UNCLIPPED))
        commits.append(trainer.train(mixed, never).commit)
    require_same_gradients(*(gradients(store, commit) for commit in commits))
    assert commits[0].manifest.metrics["staleness"] == commits[1].manifest.metrics["staleness"] == 0.5


def test_what_three_ranks_gathered_is_added_in_their_order(monkeypatch: pytest.MonkeyPatch):
    """Of numbers that come to another sum in any other order: with two ranks there is none."""
    parts = [torch.tensor([1e8]), torch.tensor([-1e8]), torch.tensor([1.0])]
    ranks = Joined(0, 3)
    monkeypatch.setattr(ranks, "gather", lambda tensor: parts)
    assert ranks.add(parts[0]).item() == 1
    assert (parts[2] + parts[1] + parts[0]).item() == 0


UNEQUAL: dict[str, Any] = {"max_logprob_mismatch": 1e9}
SHARED: dict[str, Any] = {"packing": "tree", "shared": 20}
# Several passes of each micro-batch, whose numbers are not even, and some of which have no gradient.
PARTS: dict[str, dict[str, Any]] = {
    "rows": {"micro_batch_tokens": 1},
    "trees": {**SHARED, "kl_coefficient": 0.1, "correction": "token-truncate", "correction_cap": 2.0},
    "lora": {"lora": lora().model_copy(update={"dropout": 0.25, "dora": True, "layers": [1]}), "passes": 2},
    "experts": {**UNEQUAL, **SHARED, "base_model": "tiny-experts"},
}


@pytest.mark.parametrize("count", [2, 3])
def test_ranks_with_parts_of_the_base_model_come_to_the_bytes_of_ranks_that_have_all_of_it(
    store: FileStore, trainers: Trainers, count: int, monkeypatch: pytest.MonkeyPatch
):
    # Of rank 0 alone: each decides it by its own memory.
    monkeypatch.setattr(TrainablePolicy, "recomputes", lambda self, num_tokens: self.ranks.shards)
    for name, changes in PARTS.items():
        whole, parts = (
            trainers(count, shards).train(first_step(store, f"{name}-{count}-{shards}".lower(), **changes), never)
            for shards in (False, True)
        )
        assert parts.commit.manifest.metrics == whole.commit.manifest.metrics, name
        assert parts.commit.manifest.adapter == whole.commit.manifest.adapter, name
        assert parts.commit.manifest.optimizer == whole.commit.manifest.optimizer, name
        assert "packing" not in changes or whole.commit.manifest.metrics["sharedTokens"], name


def test_supervised_steps_have_the_same_bytes_and_each_rank_holds_its_part_of_the_weights(
    store: FileStore, trainers: Trainers
):
    chats = [{"messages": [{"ids": list(range(n))}, {"ids": [n, n + 1]}]} for n in range(1, 6)]
    dataset = store.put_blob("\n".join(map(json.dumps, chats)).encode())
    rendering = {"dataset": dataset, "turns": "all", "overlong": "mask"}
    asked = {"rendering": rendering, "examples": [0, 1, 2, 4], "heldOut": [3], "scoresParent": True}
    changes = {"groups": [], "supervised": SupervisedStep.model_validate(asked)}
    work = [first_step(store, f"supervised-{kind}", micro_batch_tokens=1) for kind in ("whole", "parts")]
    whole = trainers(3).train(work[0].model_copy(update=changes), never).commit.manifest
    trainer = trainers(3, shards=True)
    parts = trainer.train(work[1].model_copy(update=changes), never).commit.manifest
    assert parts.metrics == whole.metrics
    assert (parts.adapter, parts.optimizer) == (whole.adapter, whole.optimizer)
    # Once the next step is through, all have told of this one.
    trainer.train(first_step(store, "next-parts"), never)
    assert trainer.policy is not None
    held = [frozen_bytes(trainer.policy), *(int(told_by(store.uri, 3, rank).read_text()) for rank in (1, 2))]
    tensors = tiny_base().tensors
    parts_of = {name: [part.nbytes for part in tensor.chunk(3)] for name, tensor in tensors.items()}
    # It stands outside of the layers, and is small.
    parts_of["model.norm.weight"] = [tensors["model.norm.weight"].nbytes] * 3
    assert held == [sum(sizes[rank] for sizes in parts_of.values()) for rank in range(3)]
    assert max(held) < sum(tensor.nbytes for tensor in tensors.values()) * 0.37


def test_several_policies_have_the_same_bytes_with_whole_weights_and_with_parts(store: FileStore, trainers: Trainers):
    roles = {"white": "main", "black": "b"}
    made: list[Manifest] = []
    for shards in (False, True):
        run = f"roles-{shards}".lower()
        parent = new_trainer(store).initialise(initialise_input(run, policies=["b"])).commit.checkpoint(run)
        work = train_input(
            store, parent, played_by_roles(parent, roles), roles=roles, train=train_config(baseline="rae")
        )
        made.append(trainers(3, shards).train(work, never).commit.manifest)
    whole, parts = made
    assert whole.platform["devices"] == 3
    assert (whole.policies, whole.adapter, whole.optimizer) == (parts.policies, parts.adapter, parts.optimizer)
    assert whole.metrics["b/gradNorm"] != 0


def test_an_error_of_the_step_is_the_same_as_alone(store: FileStore, trainers: Trainers):
    with pytest.raises(TemperError) as expected:
        new_trainer(store).train(first_step(store, "mismatch-alone", "e" * 64), never)
    with pytest.raises(TemperError) as caught:
        trainers(2).train(first_step(store, "mismatch", "e" * 64), never)
    assert caught.value.type == "PolicyMismatch"
    assert caught.value.message == expected.value.message.replace("mismatch-alone", "mismatch")


@pytest.mark.parametrize("moment", ["before", "backward"])
def test_a_cancelled_step_commits_nothing_and_ends_its_ranks(
    store: FileStore, trainers: Trainers, moment: str, monkeypatch: pytest.MonkeyPatch
):
    trainer, cancelled, run = trainers(2, moment != "before"), threading.Event(), f"cancelled-{moment}"
    undisturbed = trainer.train(first_step(store, f"not-{run}"), never).commit
    before = pids(trainer)
    at(moment, monkeypatch, cancelled.set)
    with pytest.raises(StepCancelled):
        trainer.train(first_step(store, run), cancelled.is_set)
    assert store.read(manifest_key(run, 0, 1)) is None
    expect_ended(before)
    commit = trainer.train(first_step(store, run), never).commit
    assert commit.manifest.adapter == undisturbed.manifest.adapter


def at(moment: str, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    """Once: when all ranks wait for the device; or, if they have parts of the base model, in the middle of a pass."""
    if moment == "before":
        HOOK.then = then
        return
    end, hook = ShardedBase.end_decoder, Hook()
    hook.then = then

    def end_decoder(self: ShardedBase, hidden_BTD: Tensor) -> None:
        end(self, hidden_BTD)
        if moment == "forward":
            # Before the output head.
            hook.__enter__()
        elif hidden_BTD.requires_grad:
            # Before the last layer.
            hidden_BTD.register_hook(lambda _: hook.__enter__())

    monkeypatch.setattr(ShardedBase, "end_decoder", end_decoder)


@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGKILL, "before"), (signal.SIGSTOP, "before"), (signal.SIGKILL, "backward"), (signal.SIGSTOP, "forward")],
)
def test_a_step_whose_rank_is_lost_is_made_again_by_others_with_the_same_bytes(
    store: FileStore, trainers: Trainers, number: signal.Signals, moment: str, monkeypatch: pytest.MonkeyPatch
):
    trainer, run = trainers(3, moment != "before"), f"lost-{number.name.lower()}-{moment}"
    undisturbed = trainer.train(first_step(store, f"un{run}"), never).commit
    before = pids(trainer)
    at(moment, monkeypatch, lambda: lose(trainer, 2, number))
    with pytest.raises(TemperError, match=rf"step 1 of {run}: rank 2 of 3 must .*nothing was committed") as caught:
        trainer.train(first_step(store, run), never)
    assert caught.value.type == "TrainerFailed"
    assert caught.value.retryable
    assert ("ended (SIGKILL)" if number == signal.SIGKILL else "was silent") in caught.value.message
    assert store.read(manifest_key(run, 0, 1)) is None
    expect_ended(before)
    commit = trainer.train(first_step(store, run), never).commit
    assert commit.manifest.adapter == undisturbed.manifest.adapter
    assert commit.manifest.optimizer == undisturbed.manifest.optimizer
    assert not set(before) & set(pids(trainer))


def lose(trainer: GroupTrainer, rank: int, number: signal.Signals) -> None:
    """A stopped rank has been silent for long already. Others keep their time: a busy machine may delay their beats."""
    assert trainer.group is not None
    member = trainer.group.members[rank]
    assert member.process.pid is not None
    os.kill(member.process.pid, number)
    if number == signal.SIGSTOP:
        while member.connection.poll():
            member.connection.recv_bytes()
        member.silent_s = SILENT_S - 2


def test_a_rank_that_is_lost_between_two_steps_is_replaced_before_the_next(store: FileStore, trainers: Trainers):
    trainer = trainers(2)
    trainer.train(first_step(store, "before-loss"), never)
    [lost], group = pids(trainer), trainer.group
    assert group is not None
    os.kill(lost, signal.SIGKILL)
    # Its last thread, too: until then nobody sees that it let its connection go.
    group.members[1].process.join(10)
    trainer.train(first_step(store, "after-loss"), never)
    assert pids(trainer) != [lost]


def test_ranks_end_when_nobody_is_left_to_tell_them_work(store: FileStore, trainers: Trainers):
    trainers(3).train(first_step(store, "left"), never)
    before, group = pids(trainers(3)), trainers(3).group
    assert group is not None
    # As when the GPU worker is killed.
    for member in group.members.values():
        member.connection.close()
    expect_ended(before)
    trainers(3).close()


def test_ranks_listen_on_this_host_alone(store: FileStore, trainers: Trainers):
    trainers(3).train(first_step(store, "listening"), never)
    addresses = {address for pid in [*pids(trainers(3)), os.getpid()] for address in listening(pid)}
    assert addresses
    # 127.0.0.1
    assert addresses == {"0100007F"}
