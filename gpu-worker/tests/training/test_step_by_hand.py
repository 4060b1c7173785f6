"""A step's loss and gradient against numbers worked out by hand.

The policy is a table of four logits, all 0, whatever the prompt: each token has the probability 1/4. Attempt a (reward
1) sampled the tokens 0, 1, 2 and attempt b (reward 0) token 3, so A = ±1/2 and the step's mean is over 4 tokens.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import log, sqrt

import pytest
import torch
from torch import Tensor, nn

from temper_gpu.contract import CispoLoss, ImportanceSamplingLoss, LossConfig, OptimizerConfig, PpoLoss
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.packing import MicroBatch
from temper_gpu.training.policy import TokenScores
from temper_gpu.training.ranks import ALONE, Ranks
from temper_gpu.training.step import train_step
from tests.training.samples import train_config

pytestmark = pytest.mark.numerics

ADAPTER = "a" * 64
QUARTER = log(1 / 4)


@dataclass
class TablePolicy:
    """What a step asks of a policy. The update is left to other tests: it keeps what it was asked for."""

    logits_V: Tensor = field(default_factory=lambda: torch.zeros(4, requires_grad=True))
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    updates: int = 0
    ranks: Ranks = ALONE
    has_dropout: bool = False
    dtype: torch.dtype = torch.float32

    def zero_grad(self) -> None:
        self.logits_V.grad = None

    @contextmanager
    def without_adapter(self) -> Iterator[None]:
        """Its base gives each token the same probability."""
        trained, self.logits_V = self.logits_V, torch.zeros(4)
        yield
        self.logits_V = trained

    @contextmanager
    def dropping(self, seed: str) -> Iterator[None]:
        yield

    @contextmanager
    def with_adapter(self, tensors: Mapping[str, Tensor]) -> Iterator[None]:
        trained, self.logits_V = self.logits_V, tensors["logits"]
        yield
        self.logits_V = trained

    def log_probabilities(self, batch: MicroBatch, trains_entropy: bool = False) -> TokenScores:
        logprobs_V = torch.log_softmax(self.logits_V, -1)
        entropy_N = -(logprobs_V.exp() * logprobs_V).sum().expand(len(batch.targets_N))
        return TokenScores(logprobs_V[batch.targets_N], entropy_N if trains_entropy else entropy_N.detach())

    def add_gradients(self) -> None:
        pass

    def clip_gradients(self, max_norm: float) -> Tensor:
        return nn.utils.clip_grad_norm_([self.logits_V], max_norm)

    def optimizer_step(self, config: OptimizerConfig, learning_rate: float) -> None:
        self.updates += 1

    def adapter_norm(self) -> float:
        return 0.0


def attempt(reward: float, *answers: list[int], truncated: bool = False) -> Attempt:
    calls = [Call([9], answer, [QUARTER] * len(answer), 1.0, ADAPTER) for answer in answers]
    return Attempt(reward, truncated, calls)


def step(policy: TablePolicy, *attempts: list[Attempt], **changes: object) -> dict[str, float]:
    """`attempts`: of each group."""
    optimizer = train_config().optimizer.model_copy(update={"max_grad_norm": 1e9})
    config = train_config(optimizer=optimizer, **changes)
    groups = [Group(index, of_group) for index, of_group in enumerate(attempts)]
    return train_step(policy, StepInputs(ADAPTER, groups, config, 0.1))


@pytest.mark.parametrize(
    ("config", "loss"),
    [
        # −mean of A · log π: (3 · 1/2 − 1/2) · log 4 / 4
        (CispoLoss(name="cispo", epsilon_low=0.2, epsilon_high=0.28), log(4) / 4),
        # −mean of ρA with ρ = 1: −(3 · 1/2 − 1/2) / 4
        (PpoLoss(name="ppo", epsilon_low=0.2, epsilon_high=0.28, dual_clip=3), -1 / 4),
        (ImportanceSamplingLoss(name="importance_sampling"), -1 / 4),
    ],
)
@pytest.mark.parametrize("micro_batch_tokens", [1, 64])
def test_loss_and_gradient_are_means_over_the_trained_tokens(config: LossConfig, loss: float, micro_batch_tokens: int):
    policy = TablePolicy()
    attempts = [attempt(1, [0, 1, 2]), attempt(0, [3])]
    metrics = step(policy, attempts, loss=config, micro_batch_tokens=micro_batch_tokens)
    assert metrics["loss"] == pytest.approx(loss, rel=1e-6)
    # −mean of A (e_token − 1/4): −(1/2 − 1/4) / 4 for each of a's tokens, −(−1/2 − 1/4) / 4 for b's.
    assert policy.logits_V.grad is not None
    assert policy.logits_V.grad.tolist() == pytest.approx([-1 / 16, -1 / 16, -1 / 16, 3 / 16], rel=1e-6)
    assert metrics["gradNorm"] == pytest.approx(sqrt(12) / 16, rel=1e-6)
    assert metrics["clippedShare"] == 0


@pytest.mark.parametrize(
    ("changes", "advantages"),
    [
        ({"advantage_scale": "none"}, (1 / 2, 2)),
        # Divided by the deviation of each group, 1/2 and 2; of all rewards, √(59/16).
        ({"advantage_scale": "group-std"}, (1, 1)),
        ({"advantage_scale": "batch-std"}, (2 / sqrt(59), 8 / sqrt(59))),
        # Each is compared with the other one.
        ({"leave_one_out": True}, (1, 4)),
        ({"leave_one_out": True, "advantage_scale": "group-std"}, (2, 2)),
    ],
)
def test_scales_and_leave_one_out_by_hand(changes: dict[str, object], advantages: tuple[float, float]):
    """Two groups of two attempts with the rewards 1 and 0, 5 and 1. Each attempt sampled a token of its own."""
    policy = TablePolicy()
    metrics = step(policy, [attempt(1, [0]), attempt(0, [1])], [attempt(5, [2]), attempt(1, [3])], **changes)
    # −mean of A (e_token − 1/4), and each group's advantages add up to 0.
    expected = [-sign * advantage / 4 for advantage in advantages for sign in (1, -1)]
    assert policy.logits_V.grad is not None
    assert policy.logits_V.grad.tolist() == pytest.approx(expected, rel=1e-5)
    assert metrics["advantageMass"] == pytest.approx(sum(advantages) / 2, rel=1e-5)


def test_twice_the_attempts_have_the_same_mean():
    once, twice = TablePolicy(), TablePolicy()
    attempts = [attempt(1, [0, 1, 2]), attempt(0, [3])]
    assert step(once, attempts)["loss"] == pytest.approx(step(twice, attempts * 2)["loss"], rel=1e-6)
    torch.testing.assert_close(once.logits_V.grad, twice.logits_V.grad)


def test_a_step_whose_advantages_are_all_zero_moves_nothing():
    """AdamW's momentum would: the gradient is 0, and the policy goes on where it went before."""
    policy = TablePolicy()
    metrics = step(policy, [attempt(2, [0], truncated=True), attempt(1, [1]), attempt(1, [2])], truncated="penalise")
    assert (metrics["trainedTokens"], metrics["advantageMass"], policy.updates) == (3, 0, 0)


@pytest.mark.parametrize(
    "config",
    [
        CispoLoss(name="cispo", epsilon_low=0, epsilon_high=0),
        PpoLoss(name="ppo", epsilon_low=0, epsilon_high=0, dual_clip=None),
    ],
)
def test_a_ratio_off_by_a_rounding_is_not_reported_as_clipped(config: LossConfig):
    """ε = 0 is the narrowest range: sampler and trainer differ in the last bits alone."""
    calls = [Call([9], [token], [QUARTER + off], 1.0, ADAPTER) for token, off in enumerate([1e-6, -1e-6, 2e-5, -2e-5])]
    metrics = step(TablePolicy(), [Attempt(1, False, calls[:2]), Attempt(0, False, calls[2:])], loss=config)
    assert metrics["clippedShare"] == 0
