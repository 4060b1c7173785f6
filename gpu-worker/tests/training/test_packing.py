from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from temper_gpu.model.lora import PREFIX, initial_tensors, target_modules
from temper_gpu.model.models import BaseModel
from temper_gpu.training.losses import find_loss
from temper_gpu.training.optimizers import initial_optimizer_tensors
from temper_gpu.training.packing import Row, deal, pack
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.rows import build_rows
from tests.live_bytes import peak_bytes
from tests.process.test_plan import CONFIGS, random_base
from tests.process.test_plan import row as row_of
from tests.training.agreement import gradients, require_same_gradients
from tests.training.samples import lora, sampled_groups, tiny_base, train_config

rows_of_any_length = st.lists(st.integers(1, 30).map(lambda length: Row([1] * length, positions=[0])), max_size=20)


@given(rows_of_any_length, st.integers(1, 100))
def test_dealing_keeps_every_row_within_the_bound(rows: list[Row], max_tokens: int):
    parts = deal(rows, max_tokens)
    assert sorted(map(id, rows)) == sorted(id(row) for part in parts for row in part)
    for part in parts:
        assert len(part) == 1 or len(part) * max(len(row.token_ids) for row in part) <= max_tokens


def test_rows_of_one_length_keep_their_plan_order():
    rows = [Row([1] * (i % 2 + 1), positions=[i]) for i in range(6)]
    assert [row.positions[0] for part in deal(rows, 100) for row in part] == [1, 3, 5, 0, 2, 4]


def test_a_sampled_token_knows_its_sequence():
    rows = [Row([1, 2, 3], positions=[2]), Row([4, 5, 6, 7], positions=[1, 3])]
    for row in rows:
        row.logprobs = row.temperatures = row.advantages = [1.0] * len(row.positions)
    [batch] = pack(rows, 3, 100, torch.device("cpu"))
    assert batch.num_sequences == 2
    assert batch.sequences_N.tolist() == [0, 0, 1]
    assert batch.targets_N.tolist() == [5, 7, 3]
    assert batch.positions_BT.tolist() == [[0, 1, 2, 3]]
    assert batch.attention.is_chains


def policy_with_a_step_behind_it(base: BaseModel, **options: Any) -> TrainablePolicy:
    """B is zero at the start and hides A's gradient; here it is not."""
    policy = TrainablePolicy(base, lora(), **options)
    model = base.instantiate("eager")
    tensors = initial_tensors(model, target_modules(model, None), 4, 0)
    moved = {name: tensor + (0.1 if ".lora_B." in name else 0) for name, tensor in tensors.items()}
    assert all(name.startswith(PREFIX) for name in moved)
    policy.load(moved, initial_optimizer_tensors(moved))
    return policy


POLICY = policy_with_a_step_behind_it(tiny_base())


def gradients_of(seed: int, max_tokens: int) -> dict[str, torch.Tensor]:
    groups = sampled_groups("x", seed)
    attempts = [attempt for group in groups for attempt in group.attempts]
    rows = build_rows(attempts, [[attempt.reward or 0.0] for attempt in attempts], "keep")
    POLICY.zero_grad()
    for batch in pack(rows.rows, rows.num_trained_tokens, max_tokens, POLICY.device):
        logprobs_N = POLICY.log_probabilities(batch).logprobs_N
        find_loss(train_config().loss).function(batch, logprobs_N).loss_N.sum().backward()
    return gradients(POLICY)


@pytest.mark.numerics
@given(st.integers(0, 5), st.integers(1, 400))
def test_the_gradient_does_not_depend_on_the_micro_batches(seed: int, max_tokens: int):
    require_same_gradients(gradients_of(seed, max_tokens), gradients_of(seed, 10**6))


@pytest.mark.numerics
def test_the_gradient_does_not_depend_on_the_chunks_of_the_output_head(monkeypatch):
    whole = gradients_of(0, 10**6)
    monkeypatch.setattr("temper_gpu.training.policy.MAX_LOGITS", 37 * 5)
    require_same_gradients(gradients_of(0, 10**6), whole)


@pytest.mark.numerics
def test_layers_that_are_computed_again_give_the_same_bits(monkeypatch):
    kept = gradients_of(0, 60)
    monkeypatch.setattr("temper_gpu.training.policy.free_bytes", lambda device: 1)
    assert POLICY.recomputes(1)
    again = gradients_of(0, 60)
    assert again.keys() == kept.keys() and all(again[name].equal(tensor) for name, tensor in kept.items())


@pytest.mark.numerics
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["window", "half with a window"])
def test_one_mask_for_each_kind_of_layers_gives_the_bits_of_one_for_each_layer(
    kind: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
):
    policy = TrainablePolicy(random_base(CONFIGS[kind], dtype), lora())
    fresh = {name: tensor + 0.1 for name, tensor in policy.adapter_tensors().items()}
    policy.load(fresh, initial_optimizer_tensors(fresh))
    [batch] = pack([row_of(60)], 59, 60, policy.device)
    found: list[torch.Tensor] = []
    most: list[int] = []

    def train() -> None:
        policy.zero_grad()
        policy.log_probabilities(batch).logprobs_N.sum().backward()

    for is_own in (True, False):
        if not is_own:
            monkeypatch.setattr(policy, "_attention_inputs", lambda batch, is_recomputed: {})
        train()
        most.append(peak_bytes(train))
        found.append(torch.cat([p.grad.flatten() for p in policy.parameters.values() if p.grad is not None]))
    assert torch.equal(*found)
    assert most[0] < most[1]
