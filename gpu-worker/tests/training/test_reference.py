"""KL to a frozen checkpoint.

By hand: π gives the tokens 0 to 3 the probabilities 2/5, 1/5, 1/5, 1/5, the reference 1/2, 1/6, 1/6, 1/6. Attempt a
(A = 1/2) sampled 0 and 1, attempt b (A = −1/2) 3, so the mean is over three tokens.
"""

from math import log
from pathlib import Path

import pytest
import torch
from torch import Tensor

from temper_gpu.commits.checkpoints import Manifest
from temper_gpu.contract import BlobRef, Checkpoint
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import adapter_bytes
from temper_gpu.store import FileStore
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.inputs import StepInputs
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.step import train_step
from temper_gpu.training.trainer import Trainer
from tests.training.samples import open_folder, train_config, train_input
from tests.training.test_regularisers import PROBABILITIES, by_hand
from tests.training.test_step_by_hand import ADAPTER, TablePolicy
from tests.training.test_trainer import fresh
from tests.training.trainers import begin, never, new_trainer

make_deterministic(1)


def step(reference_V: Tensor, **changes: object) -> tuple[list[float], float]:
    policy = TablePolicy(torch.tensor([log(2), 0.0, 0.0, 0.0], requires_grad=True))
    attempts = [
        Attempt(reward, False, [Call([9], answer, [log(PROBABILITIES[t]) for t in answer], 1.0, ADAPTER)])
        for reward, answer in ((1, [0, 1]), (0, [3]))
    ]
    optimizer = train_config().optimizer.model_copy(update={"max_grad_norm": 1e9})
    config = train_config(optimizer=optimizer, kl_coefficient=0.5, **changes)
    inputs = StepInputs(ADAPTER, [Group(0, attempts)], config, 0.1, reference={"logits": reference_V})
    metrics = train_step(policy, inputs)
    assert policy.logits_V.grad is not None
    return policy.logits_V.grad.tolist(), metrics["kl"]


@pytest.mark.numerics
def test_the_penalty_of_a_divergence_from_another_policy():
    """The slope β (1 − π_ref / π) is β (1 − 5/4) for token 0 and β (1 − 5/6) for 1 and 3."""
    gradient, kl = step(torch.tensor([log(3), 0.0, 0.0, 0.0]))
    slopes = {0: -1 / 6 - 0.5 / 12, 1: -1 / 6 + 0.5 / 18, 3: 1 / 6 + 0.5 / 18}
    assert gradient == pytest.approx(by_hand(slopes), rel=1e-4)
    assert kl == pytest.approx((5 / 4 - log(5 / 4) - 1 + 2 * (5 / 6 - log(5 / 6) - 1)) / 3, rel=1e-5)


@pytest.mark.numerics
def test_the_same_in_the_reward():
    """log π / π_ref is log 4/5 for token 0 and log 6/5 for 1 and 3; what is above their mean is taken off."""
    low, high = log(4 / 5), log(6 / 5)
    mean = (low + 2 * high) / 3
    a0, a1, a3 = 1 / 2 + 0.5 * (mean - low), 1 / 2 + 0.5 * (mean - high), -1 / 2 + 0.5 * (mean - high)
    gradient, _ = step(torch.tensor([log(3), 0.0, 0.0, 0.0]), kl_as="reward")
    assert gradient == pytest.approx(by_hand({0: -a0 / 3, 1: -a1 / 3, 3: -a3 / 3}), rel=1e-4)


@pytest.mark.numerics
def test_a_policy_that_is_its_own_reference_pays_nothing():
    gradient, kl = step(torch.tensor([log(2), 0.0, 0.0, 0.0]))
    assert (gradient, kl) == (pytest.approx(by_hand({0: -1 / 6, 1: -1 / 6, 3: 1 / 6}), rel=1e-5), 0)


def second_step(folder: Path, reference: str, **changes: object) -> Manifest:
    """Of a run whose first step moved the policy, with the base model or the first step's adapter as the reference."""
    store = open_folder(folder)
    trainer = new_trainer(store)
    first = train_one(store, trainer, begin(trainer))
    blob = {"kl_reference": first.manifest.adapter} if reference == "first" else {}
    return train_one(store, trainer, first.checkpoint("demo"), kl_coefficient=0.5, **blob, **changes).manifest


def train_one(store: FileStore, trainer: Trainer, parent: Checkpoint, **changes: object):
    config = train_config(max_logprob_mismatch=10.0, **changes)
    return trainer.train(train_input(store, parent, fresh(parent, parent.step), train=config), never).commit


@pytest.mark.numerics
def test_the_reference_is_the_checkpoint_that_the_plan_names(tmp_path: Path):
    first, base = (second_step(tmp_path / of, of) for of in ("first", "base"))
    assert first.metrics["kl"] == 0
    assert base.metrics["kl"] is not None and base.metrics["kl"] > 1e-6
    assert first.adapter != base.adapter
    assert first.train is not None and first.train.kl_reference is not None
    # A policy that has moved away from the first step's pays; the adapter that is trained comes back after each look.
    twice = [second_step(tmp_path / f"twice-{of}", of, passes=2) for of in ("first", "base")]
    assert twice[0].metrics["kl"] is not None and twice[0].metrics["kl"] > 0
    assert twice[0].adapter != twice[1].adapter


def test_an_adapter_of_another_shape_and_bytes_that_are_none_are_refused(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):

    def refusal(blob: BlobRef) -> TemperError:
        with pytest.raises(TemperError) as caught:
            train_one(store, trainer, parent, kl_coefficient=0.5, kl_reference=blob)
        return caught.value

    other = refusal(store.put_blob(adapter_bytes({"x": torch.zeros(2)})))
    assert (other.type, "an adapter to be compared with must have rank 4" in other.message) == ("BadConfig", True)
    broken = refusal(store.put_blob(b"nothing of the kind"))
    assert (broken.type, "must be an adapter as safetensors" in broken.message) == ("StoreCorrupt", True)
