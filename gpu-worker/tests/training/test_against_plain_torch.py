"""Proof against circularity: steps and entropy recomputed by plain torch, without PEFT, packing, AdamW or the trainer's
code.

Every call is a row of its own here, weights are merged by hand, the update is written out.
"""

import hashlib

import pytest
import torch
from safetensors.torch import load
from torch.func import functional_call

from temper_gpu.commits.checkpoints import read_parent
from temper_gpu.contract import PpoLoss
from temper_gpu.store import FileStore
from temper_gpu.training.groups import Group
from temper_gpu.training.packing import Row, pack
from temper_gpu.training.trainer import Trainer
from tests.training.samples import (
    STEADY,
    VOCABULARY,
    initialise_input,
    merged_weights,
    mixed_input,
    plain_logprobs,
    sampled_by,
    sampled_groups,
    tiny_model,
    train_config,
    train_input,
    with_turn_rewards,
)
from tests.training.test_packing import POLICY
from tests.training.trainers import never

pytestmark = pytest.mark.numerics

MAX_NORM, LEARNING_RATE = 0.05, 1e-2
OPTIMIZER = STEADY.model_copy(update={"max_grad_norm": MAX_NORM})
LOSSES = {
    "cispo": train_config().loss,
    "ppo": PpoLoss(name="ppo", epsilon_low=0.2, epsilon_high=0.28, dual_clip=3),
}
BETA1, BETA2, EPSILON = OPTIMIZER.beta1, OPTIMIZER.beta2, OPTIMIZER.epsilon


def plain_loss(adapter: dict[str, torch.Tensor], groups: list[Group], loss_name: str) -> torch.Tensor:
    losses = []
    for group in groups:
        for attempt in group.attempts:
            for turn, call in enumerate(attempt.calls):
                logprobs = plain_logprobs(adapter, call)
                returns = [(a.reward or 0) - sum(c.reward for c in a.calls[:turn]) for a in group.attempts]
                advantage = (attempt.reward or 0) - sum(c.reward for c in attempt.calls[:turn])
                advantage -= sum(returns) / len(returns)
                ratio = (logprobs - torch.tensor(call.logprobs)).exp()
                if loss_name == "cispo":
                    losses.append(-ratio.detach().clamp(0, 5) * advantage * logprobs)
                else:
                    surrogate = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)
                    losses.append(-(surrogate if advantage >= 0 else surrogate.clamp(min=3 * advantage)))
    return torch.cat(losses).mean()


def plain_order(step: int, number: int, num_groups: int) -> list[int]:
    return sorted(range(num_groups), key=lambda g: hashlib.sha256(f"3/{step}/{number}/{g}".encode()).digest())


def plain_update(adapter: dict, state: dict, groups: list[Group], loss_name: str, step: int) -> tuple[float, float]:
    """Loss and the gradient's norm before it is clipped."""
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in adapter.items()}
    loss = plain_loss(leaves, groups, loss_name)
    gradients = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
    norm = torch.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    assert norm > MAX_NORM  # the clip acts
    for name, gradient in gradients.items():
        first, second = state.setdefault(name, (torch.zeros_like(gradient), torch.zeros_like(gradient)))
        clipped = gradient * MAX_NORM / norm
        first, second = BETA1 * first + (1 - BETA1) * clipped, BETA2 * second + (1 - BETA2) * clipped**2
        state[name] = (first, second)
        mean, deviation = first / (1 - BETA1**step), (second / (1 - BETA2**step)).sqrt()
        adapter[name] = adapter[name] - LEARNING_RATE * mean / (deviation + EPSILON)
    return loss.item(), norm.item()


@pytest.mark.parametrize(("loss_name", "has_turn_rewards"), [("cispo", False), ("ppo", False), ("cispo", True)])
def test_two_steps_agree_with_plain_torch(store: FileStore, trainer: Trainer, loss_name: str, has_turn_rewards: bool):
    checkpoint = trainer.initialise(initialise_input()).commit.checkpoint("demo")
    adapter = load(store.get_blob(read_parent(store, checkpoint).manifest.adapter))
    state: dict = {}
    config = train_config(loss=LOSSES[loss_name], optimizer=OPTIMIZER, max_logprob_mismatch=10.0)
    for step in (1, 2):
        groups = sampled_groups(checkpoint.adapter_sha256, step)
        if has_turn_rewards:
            groups = [with_turn_rewards(group, step) for group in groups]
        work = train_input(store, checkpoint, groups, train=config, learning_rate=LEARNING_RATE)
        commit = trainer.train(work, never).commit
        checkpoint = commit.checkpoint("demo")
        loss_and_norm = plain_update(adapter, state, groups, loss_name, step)
        assert (commit.manifest.metrics["loss"], commit.manifest.metrics["gradNorm"]) == pytest.approx(
            loss_and_norm, rel=1e-3, abs=1e-5
        )
        trained = load(store.get_blob(read_parent(store, checkpoint).manifest.adapter))
        for name, tensor in trained.items():
            torch.testing.assert_close(tensor, adapter[name], atol=1e-6, rtol=0)


@pytest.mark.parametrize("loss_name", LOSSES)
def test_two_passes_of_two_mini_batches_agree_with_plain_torch(store: FileStore, trainer: Trainer, loss_name: str):
    """Four updates in a step, each the mean over its own tokens, and AdamW counts each of them."""
    parent = trainer.initialise(initialise_input()).commit.checkpoint("demo")
    adapter = load(store.get_blob(read_parent(store, parent).manifest.adapter))
    config = train_config(loss=LOSSES[loss_name], optimizer=OPTIMIZER, passes=2, mini_batches=2)
    groups = sampled_groups(parent.adapter_sha256, 1, num_groups=3)
    work = train_input(store, parent, groups, train=config, learning_rate=LEARNING_RATE)
    commit = trainer.train(work, never).commit
    state: dict = {}
    orders = [plain_order(1, number, 3) for number in (1, 2)]
    parts = [part for order in orders for part in (order[:1], order[1:])]
    for update, part in enumerate(parts, 1):
        plain_update(adapter, state, [groups[g] for g in part], loss_name, update)
    trained = load(store.get_blob(commit.manifest.adapter))
    for name, tensor in trained.items():
        torch.testing.assert_close(tensor, adapter[name], atol=1e-6, rtol=0)


@pytest.mark.parametrize("loss_name", LOSSES)
def test_a_step_on_groups_of_two_older_policies_and_its_parent_agrees_with_plain_torch(
    store: FileStore, trainer: Trainer, loss_name: str
):
    policies = [trainer.initialise(initialise_input()).commit.checkpoint("demo")]
    adapter = load(store.get_blob(read_parent(store, policies[0]).manifest.adapter))
    state: dict = {}
    config = train_config(loss=LOSSES[loss_name], optimizer=OPTIMIZER)
    for step in (1, 2):
        groups = [sampled_by(store, policies[-1], step)]
        work = train_input(store, policies[-1], groups, train=config, learning_rate=LEARNING_RATE)
        policies.append(trainer.train(work, never).commit.checkpoint("demo"))
        plain_update(adapter, state, groups, loss_name, step)
    work = mixed_input(store, policies, train=config, learning_rate=LEARNING_RATE)
    commit = trainer.train(work, never).commit
    groups = [sampled_by(store, policy, 3 + place) for place, policy in enumerate(policies)]
    loss_and_norm = plain_update(adapter, state, groups, loss_name, 3)
    metrics = commit.manifest.metrics
    assert (metrics["loss"], metrics["gradNorm"]) == pytest.approx(loss_and_norm, rel=1e-3, abs=1e-5)
    assert (metrics["staleness"], metrics["largestStaleness"]) == (1, 2)
    assert (commit.manifest.samplers, commit.manifest.groups) == (work.samplers, work.groups)
    for name, tensor in load(store.get_blob(commit.manifest.adapter)).items():
        torch.testing.assert_close(tensor, adapter[name], atol=1e-6, rtol=0)


def plain_entropy(adapter: dict[str, torch.Tensor], rows: list[Row]) -> torch.Tensor:
    """−Σ p log p of each distribution that a token was drawn from."""
    weights = merged_weights(adapter)
    found = []
    for row in rows:
        logits_TV = functional_call(tiny_model(), weights, (torch.tensor([row.token_ids]),)).logits[0]
        for position, temperature in zip(row.positions, row.temperatures, strict=True):
            probabilities_V = (logits_TV[position - 1] / temperature).softmax(-1)
            found.append(-(probabilities_V * probabilities_V.log()).sum())
    return torch.stack(found)


@pytest.mark.parametrize("most_logits", [None, 5 * VOCABULARY])
def test_entropy_and_its_gradient_agree_with_plain_torch(most_logits: int | None, monkeypatch: pytest.MonkeyPatch):
    """Of nine tokens, weighed at random: whole, and in chunks of the output head."""
    if most_logits is not None:
        monkeypatch.setattr("temper_gpu.training.policy.MAX_LOGITS", most_logits)
    rows = [Row([*range(n, n + 9)], "attempt", [3, 4, 8], [0.0] * 3, [0.5, 1.0, 1.7], [1.0] * 3) for n in range(3)]
    [batch] = pack(rows, 9, 100, POLICY.device)
    weights_N = torch.rand(9, generator=torch.Generator().manual_seed(1))
    entropy_N = POLICY.log_probabilities(batch, True).entropy_N
    found = torch.autograd.grad((weights_N * entropy_N).sum(), list(POLICY.parameters.values()))
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in POLICY.adapter_tensors().items()}
    expected_N = plain_entropy(leaves, rows)
    expected = torch.autograd.grad((weights_N * expected_N).sum(), list(leaves.values()))
    torch.testing.assert_close(entropy_N, expected_N)
    for ours, plain in zip(found, expected, strict=True):
        assert (ours - plain).norm() <= 1e-4 * plain.norm()
    # What is only measured has the same values.
    assert torch.equal(POLICY.log_probabilities(batch).entropy_N, entropy_N)
