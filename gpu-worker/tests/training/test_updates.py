from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import Any

import pytest
import torch
from pydantic.fields import FieldInfo
from safetensors.torch import load
from torch import Tensor

from temper_gpu.commits.checkpoints import Manifest, manifest_key
from temper_gpu.contract import LossConfig
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.ranks import StepCancelled
from temper_gpu.training.rows import Rows, build_rows
from temper_gpu.training.step import train_step
from temper_gpu.training.updates import Update, plan_updates
from tests.training.agreement import require_near
from tests.training.samples import (
    STEADY,
    initialise_input,
    load_adapter,
    open_folder,
    sampled_groups,
    tiny_base,
    train_config,
    train_input,
)
from tests.training.test_losses import CISPO_5, DPPO, GSPO, IMPORTANCE_SAMPLING, MEMBERS, PPO_28, SAPO
from tests.training.test_packing import policy_with_a_step_behind_it
from tests.training.trainers import never, new_trainer


def groups_of(rewards: list[list[float]]) -> list[Group]:
    """Token 10 · group + attempt is what an attempt sampled."""
    return [
        Group(g, [Attempt(r, False, [Call([1], [10 * g + a], [-1.0], 1.0, None)]) for a, r in enumerate(of_group)])
        for g, of_group in enumerate(rewards)
    ]


def plan(rewards: list[list[float]], seed: str = "3/1", **changes: object) -> list[Update]:
    groups = groups_of(rewards)
    attempts = list(chain.from_iterable(group.attempts for group in groups))
    rows = build_rows(attempts, [[attempt.reward or 0.0] for attempt in attempts], "mask")
    return plan_updates(groups, rows, train_config(**changes), seed)


def trained(rows: Rows) -> list[int]:
    return [row.token_ids[-1] for row in rows.rows]


EIGHT = [[1.0, -1.0]] * 8


def test_by_default_a_step_is_one_update_on_all_rows_in_plan_order():
    [update] = plan(EIGHT)
    assert (update.pass_number, trained(update.rows)) == (1, [10 * g + a for g in range(8) for a in range(2)])


def test_each_pass_trains_every_group_once_and_whole():
    updates = plan(EIGHT, passes=2, mini_batches=3)
    assert [update.pass_number for update in updates] == [1, 1, 1, 2, 2, 2]
    assert [len(update.rows.rows) for update in updates] == [4, 6, 6] * 2
    for number in (1, 2):
        tokens = [trained(update.rows) for update in updates if update.pass_number == number]
        assert sorted(chain.from_iterable(tokens)) == trained(plan(EIGHT)[0].rows)
        assert all(token + 1 in part for part in tokens for token in part if token % 10 == 0)


def test_the_order_is_the_seeds_and_another_one_in_each_pass():
    def orders(seed: str) -> list[list[int]]:
        return [trained(update.rows) for update in plan(EIGHT, seed, passes=2, mini_batches=8)]

    first = orders("3/1")
    assert first == orders("3/1")
    assert first != orders("3/2")
    assert first[:8] != first[8:]


def test_fewer_groups_than_mini_batches_make_fewer_updates_and_none_without_a_signal():
    assert len(plan(EIGHT[:2], mini_batches=8)) == 2
    [update] = plan([[0.0, 0.0], [1.0, -1.0]], mini_batches=2)
    assert trained(update.rows) == [10, 11]


def step_of(folder: Path, seed: Any = 3, learning_rate: float = 1e-2, **changes: object) -> Manifest:
    return committed(open_folder(folder), seed, learning_rate, **changes)


def committed(store: FileStore, seed: int, learning_rate: float, **changes: object) -> Manifest:
    trainer = new_trainer(store)
    parent = trainer.initialise(initialise_input()).commit.checkpoint("demo")
    groups = sampled_groups(parent.adapter_sha256, num_groups=4)
    work = train_input(store, parent, groups, train=train_config(**changes), seed=seed, learning_rate=learning_rate)
    return trainer.train(work, never).commit.manifest


NARROW = PPO_28.model_copy(update={"epsilon_low": 0.01, "epsilon_high": 0.01})
LOSSES = (CISPO_5, NARROW, GSPO, DPPO, SAPO)


# How far the first update moves ratios: some of them between the two values of each option. Gspo's are means.
LEARNING_RATES = {"gspo": 1e-5}
OPTIONS: list[tuple[LossConfig, str, float]] = [
    (CISPO_5, "epsilon_low", 0.0),
    (CISPO_5, "epsilon_high", 0.01),
    (PPO_28, "epsilon_low", 0.01),
    (PPO_28, "epsilon_high", 0.01),
    (PPO_28, "dual_clip", 1.01),
    (GSPO, "epsilon_low", 3e-5),
    (GSPO, "epsilon_high", 4e-5),
    (DPPO, "max_shift", 0.01),
    (DPPO, "log_ratio_penalty", 1.0),
    (SAPO, "tau_positive", 3.0),
    (SAPO, "tau_negative", 3.0),
]


@pytest.fixture(scope="module")
def second_pass(tmp_path_factory: pytest.TempPathFactory) -> Callable[[LossConfig], Manifest]:
    """A step of two passes with this loss, computed once."""
    found: dict[str, Manifest] = {}

    def committed_with(loss: LossConfig) -> Manifest:
        key, learning_rate = repr(loss), LEARNING_RATES.get(loss.name, 1e-2)
        if key not in found:
            folder = tmp_path_factory.mktemp(loss.name)
            found[key] = step_of(folder, learning_rate=learning_rate, passes=2, loss=loss)
        return found[key]

    return committed_with


@pytest.mark.numerics
@pytest.mark.parametrize(("loss", "option", "value"), OPTIONS)
def test_in_a_second_pass_each_option_of_a_loss_changes_the_adapter(
    second_pass: Callable[[LossConfig], Manifest], loss: LossConfig, option: str, value: float
):
    assert second_pass(loss).adapter != second_pass(loss.model_copy(update={option: value})).adapter


@pytest.mark.numerics
def test_in_a_second_pass_importance_sampling_has_no_limit(tmp_path: Path):
    """Its gradient is that of a cispo whose limits no ratio reaches."""
    narrow = CISPO_5.model_copy(update={"epsilon_high": 0.01})
    wide, cut, unlimited = (
        weights_of(tmp_path / str(number), passes=2, loss=loss, optimizer=STEADY)
        for number, loss in enumerate((CISPO_5, narrow, IMPORTANCE_SAMPLING))
    )
    require_near(unlimited, wide)
    assert (unlimited - cut).norm() > 1e-3 * wide.norm()


def test_each_option_of_each_loss_is_tried_in_a_second_pass():
    options = {
        (name, option)
        for name, member in MEMBERS.items()
        for option, field in member.model_fields.items()
        if option != "name" and not is_fixed(field)
    }
    assert {(loss.name, option) for loss, option, _ in OPTIONS} == options


def is_fixed(field: FieldInfo) -> bool:
    """Whether the contract has a single value of it."""
    lowest, highest = ([getattr(each, of) for each in field.metadata if hasattr(each, of)] for of in ("ge", "le"))
    return field.annotation is NoneType or (lowest != [] and lowest == highest)


@pytest.mark.numerics
def test_in_one_update_all_losses_have_the_same_gradient(tmp_path: Path):
    optimizer = train_config().optimizer.model_copy(update={"max_grad_norm": 1e9})
    gradients = [
        moments_of(tmp_path / loss.name, loss=loss, optimizer=optimizer) for loss in (*LOSSES, IMPORTANCE_SAMPLING)
    ]
    cispo, ppo, *_ = gradients
    assert torch.equal(cispo, ppo)
    for other in gradients:
        assert (other - cispo).norm() <= 1e-4 * cispo.norm()


def weights_of(folder: Path, **changes: object) -> Tensor:
    store = open_folder(folder)
    tensors = load_adapter(store, committed(store, 3, 1e-2, **changes)).tensors
    return torch.cat([tensors[name].flatten() for name in sorted(tensors)])


def moments_of(folder: Path, **changes: object) -> Tensor:
    """AdamW's first moment after a single update: a tenth of its gradient."""
    store = open_folder(folder)
    tensors = load(store.get_blob(committed(store, 3, 1e-2, **changes).optimizer))
    return torch.cat([tensors[name].flatten() for name in sorted(tensors) if name.startswith("exp_avg/")])


@pytest.mark.numerics
def test_reductions_differ_and_do_not_depend_on_micro_batches(tmp_path: Path):
    constant = {"reduction": "constant", "reduction_tokens": 50}
    options = [{}, {"reduction": "token"}, {"reduction": "attempt"}, constant]
    whole, cut = (
        [step_of(tmp_path / f"{size}-{i}", micro_batch_tokens=size, **o) for i, o in enumerate(options)]
        for size in (64, 1)
    )
    assert whole[0].adapter == whole[1].adapter
    assert len({manifest.adapter.sha256 for manifest in whole}) == 3
    for one, other in zip(whole, cut, strict=True):
        assert other.metrics["loss"] == pytest.approx(one.metrics["loss"], rel=1e-4)
        assert other.metrics["gradNorm"] == pytest.approx(one.metrics["gradNorm"], rel=1e-4)


@pytest.mark.numerics
def test_metrics_tell_how_far_each_pass_moved_from_the_sampler(tmp_path: Path):
    once, twice = step_of(tmp_path / "once").metrics, step_of(tmp_path / "twice", passes=2, loss=PPO_28).metrics
    assert "updates" not in once
    assert twice["updates"] == 2
    # Sampler and trainer are compared before anything has moved.
    assert (twice["logprobK3"], twice["maxAbsLogRatio"]) == (once["logprobK3"], once["maxAbsLogRatio"])
    assert twice["pass1RatioK3"] == twice["logprobK3"]
    first, second = twice["pass1ClippedShare"], twice["pass2ClippedShare"]
    assert first == 0
    assert second is not None and 0 < second < 1
    assert twice["clippedShare"] == pytest.approx(second / 2)
    moved = twice["pass2MaxAbsLogRatio"]
    assert moved is not None and moved > 0.28


@pytest.mark.numerics
def test_a_step_cancelled_between_its_updates_commits_nothing_and_leaves_no_trace(tmp_path: Path):
    options = {"passes": 2, "mini_batches": 2, "loss": PPO_28}
    undisturbed = step_of(tmp_path / "undisturbed", **options)
    store = open_folder(tmp_path)
    trainer = new_trainer(store)
    parent = trainer.initialise(initialise_input()).commit.checkpoint("demo")
    groups = sampled_groups(parent.adapter_sha256, num_groups=4)
    work = train_input(store, parent, groups, train=train_config(**options))
    polls = iter(range(100))
    with pytest.raises(StepCancelled):
        trainer.train(work, lambda: next(polls) > 7)
    assert store.read(manifest_key("demo", 0, 1)) is None
    assert trainer.train(work, never).commit.manifest == undisturbed


@pytest.mark.numerics
def test_a_policy_that_differs_from_its_sampler_is_refused_before_the_first_update(tmp_path: Path):
    """Later updates differ from the sampler by design: the bound is not theirs."""
    with pytest.raises(TemperError, match="k3"):
        step_of(tmp_path / "strict", passes=2, max_logprob_mismatch=1e-30)
    step_of(tmp_path / "wide", passes=2, max_logprob_mismatch=1e-8)


@pytest.mark.parametrize(
    ("changes", "most_skipped"), [({}, True), ({"loss": DPPO}, False), ({"entropy_coefficient": 0.1}, False)]
)
def test_micro_batches_without_an_advantage_are_scored_alone_and_change_no_byte(
    changes: dict[str, Any], most_skipped: bool, monkeypatch: pytest.MonkeyPatch
):
    """Half of the attempts are as good as their group's mean."""
    groups = sampled_groups("x", num_groups=3, num_attempts=4)
    rewards = [1.0, 0.0, 0.5, 0.5]
    groups = [Group(g.index, [replace(a, reward=r) for a, r in zip(g.attempts, rewards, strict=True)]) for g in groups]
    found: list[tuple[Any, dict[str, Any], int]] = []
    for skips in (True, False):
        if not skips:
            monkeypatch.setattr("temper_gpu.training.step.has_gradient", lambda laid, config: True)
        policy, scored = policy_with_a_step_behind_it(tiny_base()), 0
        ask = policy.log_probabilities

        def counted(*args: Any, ask: Any = ask) -> Any:
            nonlocal scored
            scores = ask(*args)
            scored += not scores.logprobs_N.requires_grad
            return scores

        monkeypatch.setattr(policy, "log_probabilities", counted)
        config = train_config(max_logprob_mismatch=10.0, micro_batch_tokens=1, **changes)
        metrics = train_step(policy, StepInputs("x", groups, config, 1e-2))
        found.append((policy.adapter_tensors(), metrics, scored))
    (after, metrics, skipped), (as_before, all_metrics, none) = found
    assert (skipped > 0, none) == (most_skipped, 0)
    assert metrics == all_metrics
    assert all(torch.equal(after[name], tensor) for name, tensor in as_before.items())
