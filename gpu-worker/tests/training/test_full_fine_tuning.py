"""Runs that train all weights of their base model, without an adapter."""

import copy
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load
from torch import Tensor
from transformers import Qwen2ForCausalLM

from temper_gpu.commits.checkpoints import Commit, StoredAdapter, manifest_key, publish_view, read_parent
from temper_gpu.contract import Checkpoint, OptimizerConfig, StartAdapter
from temper_gpu.failures import TemperError
from temper_gpu.model.full_weights import initial_weights
from temper_gpu.model.models import BaseModel
from temper_gpu.store import FileStore
from temper_gpu.training.groups import Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import MicroBatch, Row, pack
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import ALONE
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.step import train_step
from temper_gpu.training.trainer import Trainer
from tests.training.agreement import first_moments, require_same_gradients
from tests.training.samples import (
    STEADY,
    initialise_input,
    open_folder,
    sampled_groups,
    sampler_of,
    tiny_base,
    train_config,
    train_input,
)
from tests.training.trainers import never, step_at_once

make_deterministic(1)

LEARNING_RATE = 1e-3
ADAMW = train_config().optimizer
FULL: dict[str, Any] = {"lora": None}


class OneModel:
    """Stands for ModelLibrary."""

    def __init__(self, base: BaseModel) -> None:
        self._base = base

    def get(self, name: str) -> BaseModel:
        return replace(self._base, name=name)


def tied_base(dtype: torch.dtype = torch.float32) -> BaseModel:
    """Embedding and output head are one tensor."""
    config: Any = copy.deepcopy(tiny_base().config)
    config.tie_word_embeddings = True
    torch.manual_seed(11)
    model: Any = Qwen2ForCausalLM(config).eval().requires_grad_(False)
    model.to(dtype)
    made: dict[int, Tensor] = {}
    state = model.state_dict(keep_vars=True)
    tensors = {name: made.setdefault(id(tensor), tensor.detach()) for name, tensor in state.items()}
    buffers = {name: buffer for name, buffer in model.named_buffers() if name not in tensors}
    return BaseModel("tiny", config, tensors, None, buffers)


def new_trainer(store: FileStore, base: BaseModel | None = None) -> Trainer:
    return Trainer(OneModel(base or tied_base()), store, threading.Lock())


@pytest.fixture
def trainer(store: FileStore) -> Trainer:
    return new_trainer(store)


def begin(trainer: Trainer, run: str = "demo") -> Checkpoint:
    return trainer.initialise(initialise_input(run, **FULL)).commit.checkpoint(run)


def step(
    store: FileStore,
    trainer: Trainer,
    parent: Checkpoint,
    seed: int = 0,
    shared: int = 0,
    optimizer: OptimizerConfig = ADAMW,
    **changes: object,
) -> Commit:
    """Of groups that a random model has sampled: what matters is that every trainer is given the same."""
    groups = sampled_groups(parent.adapter_sha256, seed, shared=shared)
    config = train_config(lora=None, max_logprob_mismatch=100.0, optimizer=optimizer, **changes)
    work = train_input(store, parent, groups, train=config, learning_rate=LEARNING_RATE)
    return trainer.train(work, never).commit


def weights_of(store: FileStore, commit: Commit) -> dict[str, Tensor]:
    return load(store.get_blob(commit.manifest.adapter))


def plain_loss(model: Qwen2ForCausalLM, groups: list[Group]) -> Tensor:
    losses = []
    for group in groups:
        rewards = [attempt.reward or 0.0 for attempt in group.attempts]
        for attempt, reward in zip(group.attempts, rewards, strict=True):
            for call in attempt.calls:
                ids = torch.tensor([call.prompt_token_ids + call.token_ids])
                logits = model(ids).logits[0, len(call.prompt_token_ids) - 1 : -1] / call.temperature
                logprobs = torch.log_softmax(logits, -1)[range(len(call.token_ids)), call.token_ids]
                ratio = (logprobs - torch.tensor(call.logprobs)).exp().detach().clamp(0, 5)
                losses.append(-ratio * (reward - sum(rewards) / len(rewards)) * logprobs)
    return torch.cat(losses).mean()


@pytest.mark.numerics
def test_two_steps_agree_with_plain_torch(tmp_path: Path):
    """transformers' own model, whose embedding and head are tied, with torch's AdamW: none of the trainer's code."""
    store, base = open_folder(tmp_path), tied_base()
    trainer = new_trainer(store, base)
    parent = begin(trainer)
    config: Any = base.config
    plain = Qwen2ForCausalLM(config).eval()
    plain.load_state_dict(base.tensors)
    optimizer = torch.optim.AdamW(
        plain.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.99), eps=STEADY.epsilon, weight_decay=0
    )
    for seed in (1, 2):
        groups = sampled_groups(parent.adapter_sha256, seed)
        commit = step(store, trainer, parent, seed, optimizer=STEADY)
        parent = commit.checkpoint("demo")
        optimizer.zero_grad()
        loss = plain_loss(plain, groups)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimizer.step()
        found = commit.manifest.metrics
        assert (found["loss"], found["gradNorm"]) == pytest.approx((loss.item(), norm.item()), rel=1e-3, abs=1e-5)
        trained, expected = weights_of(store, commit), dict(plain.named_parameters())
        # All of them, tied ones once, under the first of their names.
        assert trained.keys() == expected.keys()
        assert "lm_head.weight" not in trained
        for name, tensor in trained.items():
            torch.testing.assert_close(tensor, expected[name].detach(), atol=1e-6, rtol=0)
            assert not tensor.equal(base.tensors[name])


def test_a_run_begins_with_the_base_models_weights_and_says_what_it_trains(tmp_path: Path):
    store, base = open_folder(tmp_path), tied_base()
    first = read_parent(store, begin(new_trainer(store, base)))
    for name, tensor in weights_of(store, first).items():
        assert tensor.equal(base.tensors[name])
    stored = json.loads((store.root / manifest_key("demo", 0, 0)).read_bytes())
    assert stored["fullFineTuning"] is True
    assert json.loads(store.get_blob(first.manifest.adapter_config))["full_fine_tuning"] is True
    # All weights without a config are nothing that a program could load.
    publish_view(store, "demo", first)
    assert not (store.root / "runs/demo/branches/0/checkpoints").exists()
    with pytest.raises(TemperError, match=r"demo@0 must be sampled from by the embedded engine"):
        StoredAdapter(store, "demo", first.manifest).write_folder(tmp_path)


def test_a_run_with_an_adapter_says_nothing_of_it(store: FileStore):
    new_trainer(store).initialise(initialise_input())
    assert "fullFineTuning" not in json.loads((store.root / manifest_key("demo", 0, 0)).read_bytes())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_trainer_that_lost_its_memory_makes_the_same_bytes(tmp_path: Path, dtype: torch.dtype):
    made = []
    for is_forgetful in (False, True):
        store = open_folder(tmp_path / str(is_forgetful))
        trainer = new_trainer(store, tied_base(dtype))
        commits = [read_parent(store, begin(trainer))]
        for seed in (1, 2, 3):
            if is_forgetful:
                trainer = new_trainer(store, tied_base(dtype))
            commits.append(step(store, trainer, commits[-1].checkpoint("demo"), seed))
        made.append([commit.sha256 for commit in commits])
    assert made[0] == made[1]


@pytest.mark.numerics
def test_micro_batches_and_shared_prefixes_come_to_the_same_gradients(tmp_path: Path):
    found = []
    each: list[dict[str, Any]] = [{}, {"packing": "tree"}, {"micro_batch_tokens": 1}]
    for place, changes in enumerate(each):
        store = open_folder(tmp_path / str(place))
        trainer = new_trainer(store)
        commit = step(store, trainer, begin(trainer), 1, shared=20, **changes)
        assert bool(commit.manifest.metrics.get("sharedTokens")) == ("packing" in changes)
        found.append(first_moments(load(store.get_blob(commit.manifest.optimizer))))
    for other in found[1:]:
        require_same_gradients(other, found[0])


def sampled_batch(policy: TrainablePolicy) -> MicroBatch:
    rows = [Row(ids, "attempt", [2, 3], [0.0] * 2, [1.0] * 2, [1.0] * 2) for ids in ([5, 6, 7, 8], [9, 10, 11, 12])]
    [batch] = pack(rows, 4, 100, policy.device, "rows")
    return batch


def loaded(dtype: torch.dtype) -> TrainablePolicy:
    policy = TrainablePolicy(tied_base(dtype), None)
    start = policy.adapter_tensors()
    policy.load(start, initial_optimizer_tensors(start))
    return policy


def test_below_float32_updates_smaller_than_the_last_place_add_up():
    policy = loaded(torch.bfloat16)
    optimizer = train_config().optimizer
    name = "model.layers.0.mlp.up_proj.weight"
    computing = policy.model.get_parameter(name)
    before, rounded_before = policy.parameters[name].detach().clone(), computing.detach().clone()
    for _ in range(64):
        for parameter in policy.parameters.values():
            parameter.grad = torch.ones_like(parameter)
        # A tenth of bfloat16's last place of most weights.
        policy.optimizer_step(optimizer, 2e-5)
        if _ == 0:
            assert not policy.parameters[name].equal(before)
            assert (computing == rounded_before).float().mean() > 0.9
    after = policy.parameters[name].detach()
    assert after.dtype == torch.float32
    torch.testing.assert_close(after, before - 64 * 2e-5, atol=1e-6, rtol=1e-5)
    assert computing.equal(after.to(torch.bfloat16))
    assert (computing == rounded_before).float().mean() < 0.5
    assert policy.adapter_tensors()[name].dtype == torch.float32


def test_below_float32_gradients_of_micro_batches_are_added_in_float32():
    policy = loaded(torch.bfloat16)
    batch = sampled_batch(policy)
    found = []
    for _ in range(3):
        policy.log_probabilities(batch).logprobs_N.sum().backward()
        # pyrefly: ignore[missing-attribute]
        found.append({name: parameter.grad.clone() for name, parameter in policy.parameters.items()})
    for name, once in found[0].items():
        assert once.dtype == torch.float32
        # Three times a number of eight bits has up to ten.
        assert found[2][name].equal(once + once + once)
    assert all(parameter.grad is None for parameter in policy.model.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_references_are_the_base_model_and_other_checkpoints(dtype: torch.dtype):
    policy = loaded(dtype)
    batch = sampled_batch(policy)

    @torch.no_grad()
    def scores() -> Tensor:
        return policy.log_probabilities(batch).logprobs_N

    plain = scores()
    other = {name: tensor + 0.05 for name, tensor in policy.adapter_tensors().items()}
    policy.load(other, initial_optimizer_tensors(other))
    moved = scores()
    assert (moved - plain).abs().max() > 1e-3
    for _ in range(2):
        with policy.without_adapter():
            assert scores().equal(plain)
        with policy.with_adapter({name: tensor - 0.05 for name, tensor in other.items()}):
            torch.testing.assert_close(scores(), plain, rtol=1e-2, atol=1e-2)
        assert scores().equal(moved)
    with (
        pytest.raises(TemperError, match=r"a policy must have all \d+ weights of tiny, but .* differs"),
        policy.with_adapter({"x": torch.zeros(2)}),
    ):
        scores()


@pytest.mark.numerics
def test_divergence_is_charged_and_older_samplers_are_checked(store: FileStore):
    trainer = new_trainer(store, tiny_base())
    checkpoints = [begin(trainer)]
    commits = [step(store, trainer, checkpoints[0], 1)]
    checkpoints.append(commits[0].checkpoint("demo"))
    # What `sampled_groups` samples is sampled from this base model, which is the first checkpoint.
    sampled_by = checkpoints[0].adapter_sha256
    groups = [replace(group, sampled_by=sampled_by) for group in sampled_groups(sampled_by, 2)]
    config = train_config(lora=None, kl_coefficient=0.1)
    work = train_input(store, checkpoints[1], groups, train=config, samplers=[sampler_of(checkpoints[0])])
    commit = trainer.train(work, never).commit
    metrics = commit.manifest.metrics
    assert metrics["staleness"] == 1
    assert metrics["kl"] is not None and metrics["kl"] > 1e-6
    changes = {"kl_coefficient": 0.1, "kl_reference": commit.manifest.adapter}
    own = step(store, new_trainer(store, tiny_base()), commit.checkpoint("demo"), 3, **changes)
    assert own.manifest.metrics["kl"] == 0


@pytest.mark.numerics
def test_two_ranks_come_to_what_one_does(tmp_path: Path):
    groups, config = sampled_groups("0" * 64, 1), train_config(lora=None, max_logprob_mismatch=100.0)
    start = initial_weights(tiny_base())
    policies = [TrainablePolicy(tiny_base(), None, ranks) for ranks in (ALONE, Joined(0, 2), Joined(1, 2))]
    inputs = StepInputs("0" * 64, groups, config, LEARNING_RATE)
    found = step_at_once(policies, start, tmp_path, lambda policy: train_step(policy, inputs))
    assert found[1] == found[2]
    assert found[1]["gradNorm"] == pytest.approx(found[0]["gradNorm"], rel=1e-5)
    require_same_gradients(*(first_moments(policies[place].optimizer_tensors()) for place in (1, 0)))
    for name, tensor in policies[1].adapter_tensors().items():
        assert policies[2].adapter_tensors()[name].equal(tensor)


def test_a_fork_trains_what_its_parent_trains(store: FileStore, trainer: Trainer):
    parent = step(store, trainer, begin(trainer), 1)
    checkpoint = parent.checkpoint("demo")
    fork = trainer.initialise(initialise_input("fork", parent=checkpoint, **FULL)).commit.manifest
    assert (fork.adapter, fork.optimizer, fork.full_fine_tuning) == (
        parent.manifest.adapter,
        parent.manifest.optimizer,
        True,
    )
    with pytest.raises(TemperError, match="demo@1 has all weights, but the fork asks for a LoRA adapter; pass --full"):
        trainer.initialise(initialise_input("other", parent=checkpoint))
    adapted = trainer.initialise(initialise_input("adapted")).commit.checkpoint("adapted")
    with pytest.raises(TemperError, match="has a LoRA adapter, but the fork asks for all weights; leave --full"):
        trainer.initialise(initialise_input("third", parent=adapted, **FULL))
    files = StartAdapter(weights=fork.adapter, config=fork.adapter_config)
    with pytest.raises(TemperError, match="must begin without an adapter"):
        trainer.initialise(initialise_input("fourth", start_adapter=files, **FULL))
    # A step that is asked for otherwise than its run began.
    with pytest.raises(TemperError, match="the checkpoint that a step trains must have rank 4"):
        groups = sampled_groups(checkpoint.adapter_sha256)
        trainer.train(train_input(store, checkpoint, groups, train=train_config()), never)
