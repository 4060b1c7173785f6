"""Several policies in one step: each trains the calls of its own roles, and one commit holds all of them."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load

from temper_gpu.commits.checkpoints import Commit, manifest_key, publish_view
from temper_gpu.contract import Checkpoint, LeagueScore, TrainInput
from temper_gpu.store import FileStore
from temper_gpu.training import trainer as trainer_module
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import IsCancelled
from temper_gpu.training.roles import views, with_baselines
from temper_gpu.training.step import train_step
from temper_gpu.training.token_trace import TokenTrace
from temper_gpu.training.trainer import Trainer
from tests.failing import failing
from tests.training.samples import (
    initialise_input,
    open_folder,
    played_by_roles,
    train_config,
    train_input,
)
from tests.training.trainers import never, new_trainer

make_deterministic(1)
GPU_WORKER = Path(__file__).parents[2]
LORA_A = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
ROLES = {"white": "main", "black": "b"}
RAE = {"baseline": "rae", "max_logprob_mismatch": 10.0}


def begin(trainer: Trainer, **changes: object) -> Checkpoint:
    return trainer.initialise(initialise_input().model_copy(update={"policies": ["b"], **changes})).commit.checkpoint(
        "demo"
    )


@pytest.fixture
def parent(trainer: Trainer) -> Checkpoint:
    return begin(trainer)


def step_of(
    store: FileStore, parent: Checkpoint, roles: Mapping[str, str] = ROLES, frozen: str | None = None, **changes: object
) -> TrainInput:
    groups = played_by_roles(parent, roles, seed=parent.step, frozen=frozen)
    return train_input(store, parent, groups, roles=dict(roles), train=train_config(**{**RAE, **changes}))


def two_steps(store: FileStore, trainers: list[Trainer]) -> list[Commit]:
    commits: list[Commit] = []
    parent = begin(trainers[0])
    for trainer in trainers:
        commits.append(trainer.train(step_of(store, parent), never).commit)
        parent = commits[-1].checkpoint("demo")
    return commits


def call(role: str | None, *tokens: int) -> Call:
    return Call([1], list(tokens), [-1.0] * len(tokens), 1.0, None, role=role)


def test_a_roles_view_has_its_rewards_and_its_calls_alone():
    attempt = Attempt(
        0.5, False, [call("white", 1), call("user", 2), call("black", 3, 4)], role_rewards={"white": 1, "black": 0}
    )
    failed = Attempt(None, False, [call("white", 5)])
    seen = views([Group(3, [attempt, failed])], ROLES).by_policy
    assert [[(a.reward, [c.token_ids for c in a.calls]) for a in g.attempts] for g in seen["b"]] == [
        [(0.0, [[3, 4]]), (None, [])]
    ]
    assert [[(a.reward, [c.token_ids for c in a.calls]) for a in g.attempts] for g in seen["main"]] == [
        [(1.0, [[1]]), (None, [[5]])]
    ]


def test_two_roles_of_one_policy_are_groups_of_their_own():
    attempt = Attempt(0.5, False, [call("white", 1), call("black", 3)], role_rewards={"white": 1, "black": 0})
    seen = views([Group(0, [attempt])], {"white": "main", "black": "main"}).by_policy
    assert [[a.reward for a in group.attempts] for group in seen["main"]] == [[0.0], [1.0]]


def test_an_attempt_that_a_role_has_not_played_is_no_data_for_it():
    groups = [Group(7, [Attempt(1.0, False, [call("white", 1)], role_rewards={"white": 1})])]
    seen = views(groups, ROLES, {"black": 0.5})
    assert [[a.reward for a in group.attempts] for group in seen.by_policy["main"]] == [[1.0]]
    assert seen.by_policy["b"] == []
    assert seen.baselines == {"black": 0.5, "white": pytest.approx(0.05)}


def test_a_verdict_without_rewards_of_roles_is_a_corrupt_store():
    with failing("StoreCorrupt", "group 7 must reward the roles"):
        views([Group(7, [Attempt(0.5, False, [])])], ROLES)


def test_a_baseline_is_compared_before_a_reward_enters_it():
    groups = [Group(0, [Attempt(1.0, False, []), Attempt(None, False, [])]), Group(1, [Attempt(-1.0, False, [], 0.5)])]
    compared, after = with_baselines(groups, 0.2)
    assert [a.baseline for group in compared for a in group.attempts] == pytest.approx([0.2, 0.24, 0.24])
    assert after == pytest.approx(0.95 * 0.24 + 0.05 * -1.5)
    # Nothing of a group that is left out enters it.
    groups[1].attempts.append(Attempt(1e200, False, []))
    assert with_baselines(groups, 0.2)[1] == pytest.approx(0.24)


@pytest.mark.numerics
def test_each_token_is_trained_into_the_adapter_of_its_role(tmp_path: Path):
    store = open_folder(tmp_path)
    trainer = new_trainer(store)
    parent = begin(trainer)
    work = step_of(store, parent, frozen="past", max_logprob_mismatch=1e-4)
    commit = trainer.train(work, never).commit
    groups = played_by_roles(parent, ROLES, frozen="past")
    for role, prefix in (("white", ""), ("black", "b/")):
        calls = [c for group in groups for attempt in group.attempts for c in attempt.calls if c.role == role]
        assert commit.manifest.metrics[f"{prefix}sampledTokens"] == sum(len(c.token_ids) for c in calls)
        assert commit.manifest.metrics[f"{prefix}trainedTokens"] == sum(len(c.token_ids) for c in calls)
    # Alone in a run, each role trains the same bytes.
    for role, policy in ROLES.items():
        alone = open_folder(tmp_path / role)
        start = begin(new_trainer(alone))
        only = train_input(alone, start, groups, roles={role: policy}, train=work.train)
        made = new_trainer(alone).train(only, never).commit.manifest
        assert made.weights_of(policy) == commit.manifest.weights_of(policy)
        [other] = {"main", "b"} - {policy}
        assert made.weights_of(other) != commit.manifest.weights_of(other)


def test_answers_of_another_policys_adapter_are_a_mismatch(store: FileStore, trainer: Trainer, parent: Checkpoint):
    groups = played_by_roles(parent, {"white": "b", "black": "main"})
    with failing("PolicyMismatch", "its parent sampled"):
        trainer.train(train_input(store, parent, groups, roles=ROLES, train=train_config()), never)


@pytest.mark.numerics
def test_a_step_that_ends_between_two_policies_commits_neither_and_is_repeated_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    undisturbed = two_steps(store := open_folder(tmp_path / "whole"), [new_trainer(store)] * 2)
    store = open_folder(tmp_path / "torn")
    trainer = new_trainer(store)
    steps: list[str] = []

    def second_fails(
        policy: TrainablePolicy, step: StepInputs, is_cancelled: IsCancelled, trace: TokenTrace
    ) -> dict[str, float]:
        steps.append(step.parent_sha256)
        if len(steps) == 2:
            raise KeyboardInterrupt
        return train_step(policy, step, is_cancelled, trace)

    parent = begin(trainer)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(trainer_module, "train_step", second_fails)
        trainer.train(step_of(store, parent), never)
    assert store.read(manifest_key("demo", 0, 1)) is None
    assert two_steps(store, [trainer] * 2) == undisturbed
    assert (
        len({commit.manifest.weights_of(name).adapter.sha256 for commit in undisturbed for name in ("main", "b")}) == 4
    )


KILLED = """
import gc, os, signal, sys
gc.disable()
from pathlib import Path
from temper_gpu.training import trainer as module
from tests.training.samples import open_folder
from tests.training.test_roles import two_steps
from tests.training.trainers import new_trainer
store, at = open_folder(Path(sys.argv[1])), int(sys.argv[2])
whole, calls = module.train_step, []
def train_step(*arguments):
    calls.append(0)
    if len(calls) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*arguments)
module.train_step = train_step
two_steps(store, [new_trainer(store)] * 2)
"""


def test_a_worker_killed_between_two_policies_leaves_both_or_none(tmp_path: Path):
    whole = two_steps(store := open_folder(tmp_path / "whole"), [new_trainer(store)] * 2)

    # In the second step, with the first policy updated.
    command = [sys.executable, "-c", KILLED, str(tmp_path / "killed"), "4"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=GPU_WORKER, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    killed = open_folder(tmp_path / "killed")
    assert (killed.read(manifest_key("demo", 0, 1)) is None, killed.read(manifest_key("demo", 0, 2))) == (False, None)
    assert two_steps(killed, [new_trainer(killed)] * 2) == whole


@pytest.mark.numerics
def test_baselines_go_on_in_a_worker_that_lost_its_memory(tmp_path: Path):
    kept, lost = open_folder(tmp_path / "kept"), open_folder(tmp_path / "lost")
    commits = two_steps(kept, [new_trainer(kept)] * 2)
    assert commits == two_steps(lost, [new_trainer(lost), new_trainer(lost)])
    rewards = {
        role: [
            a.role_rewards[role]
            for g in played_by_roles(begin(new_trainer(kept)), ROLES, 0)
            for a in g.attempts
            if a.role_rewards
        ]
        for role in ROLES
    }
    expected = {
        role: with_baselines([Group(0, [Attempt(r, False, []) for r in rewards[role]])], 0.0)[1] for role in ROLES
    }
    assert commits[0].manifest.baselines == pytest.approx(expected)
    assert commits[1].manifest.baselines != commits[0].manifest.baselines
    # pyrefly: ignore[unsupported-operation]
    assert commits[1].manifest.metrics["baseline/white"] == commits[1].manifest.baselines["white"]


def test_rae_trains_a_run_without_roles_and_groups_of_equal_rewards(store: FileStore, trainer: Trainer):
    parent = trainer.initialise(initialise_input()).commit.checkpoint("demo")
    attempt = played_by_roles(parent, {"only": "main"})[0].attempts[0]
    alike = [replace(attempt, reward=1.0, role_rewards=None, calls=[replace(c, role=None) for c in attempt.calls])] * 2
    manifest = trainer.train(
        train_input(store, parent, [Group(0, alike)], train=train_config(**RAE)), never
    ).commit.manifest
    assert manifest.adapter.sha256 != parent.adapter_sha256
    assert manifest.baselines == {"main": pytest.approx(1 - 0.95**2)}
    assert (manifest.roles, manifest.policies) == (None, None)


@pytest.mark.numerics
def test_a_policy_without_signal_keeps_its_bytes_while_the_other_learns(store: FileStore, trainer: Trainer):
    first = two_steps(store, [trainer])[0]
    parent = first.checkpoint("demo")

    def equal(attempt: Attempt) -> Attempt:
        return replace(attempt, role_rewards={**(attempt.role_rewards or {}), "black": 1.0})

    groups = [replace(g, attempts=[equal(a) for a in g.attempts]) for g in played_by_roles(parent, ROLES, 5)]
    config = train_config(max_logprob_mismatch=10.0)
    manifest = trainer.train(train_input(store, parent, groups, roles=ROLES, train=config), never).commit.manifest
    assert manifest.weights_of("b") == first.manifest.weights_of("b")
    assert manifest.adapter != first.manifest.adapter
    assert "b/gradNorm" not in manifest.metrics
    # Baselines of other steps of the run stay.
    assert manifest.baselines == first.manifest.baselines


def test_policies_begin_with_adapters_of_their_own(store: FileStore, trainer: Trainer):
    start = trainer.initialise(initialise_input(policies=["b", "c"])).commit.manifest
    adapters = {
        load(store.get_blob(start.weights_of(name).adapter))[LORA_A].sum().item() for name in ("main", "b", "c")
    }
    assert len(adapters) == 3
    # The main one is that of a run without roles.
    assert trainer.initialise(initialise_input("plain")).commit.manifest.adapter == start.adapter


def test_a_fork_keeps_all_policies_and_begins_new_ones_like_the_main_one(store: FileStore, trainer: Trainer):
    parent = two_steps(store, [trainer])[0]
    fork = initialise_input("fork", parent=parent.checkpoint("demo"), policies=["b", "c"])
    manifest = trainer.initialise(fork).commit.manifest
    assert manifest.weights_of("b") == parent.manifest.weights_of("b")
    assert manifest.weights_of("c") == manifest.weights_of("main") == parent.manifest.weights_of("main")
    assert manifest.baselines == parent.manifest.baselines
    alone = trainer.initialise(initialise_input("alone", parent=parent.checkpoint("demo"))).commit.manifest
    assert alone.weights_of("b") == parent.manifest.weights_of("b")


def test_several_policies_that_train_all_weights_are_refused(tmp_path: Path):
    with failing("BadConfig", "must have one policy, but its roles have b too"):
        begin(new_trainer(open_folder(tmp_path)), lora=None)


def test_a_commit_keeps_the_roles_and_the_leagues_scores_and_its_view_has_every_policy(
    store: FileStore, trainer: Trainer
):
    scores = {"past": [LeagueScore(branch=0, step=0, played=4, won=2.5)]}
    work = step_of(store, begin(trainer)).model_copy(update={"league": scores})
    commit = trainer.train(work, never).commit
    assert (commit.manifest.roles, commit.manifest.league) == (ROLES, scores)
    assert commit.checkpoint("demo").adapters == {"b": commit.manifest.weights_of("b").adapter.sha256}
    publish_view(store, "demo", commit)
    folder = store.root / "runs/demo/branches/0/checkpoints/1"
    for place, policy in (("adapter", "main"), ("adapters/b", "b")):
        weights = (folder / place / "adapter_model.safetensors").read_bytes()
        assert weights == store.get_blob(commit.manifest.weights_of(policy).adapter)
        assert json.loads((folder / place / "adapter_config.json").read_bytes())["peft_type"] == "LORA"
