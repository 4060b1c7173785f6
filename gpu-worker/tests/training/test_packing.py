from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GptOssConfig, GptOssForCausalLM, Qwen2Config

from temper_gpu.model.lora import PREFIX, initial_tensors
from temper_gpu.model.models import BaseModel
from temper_gpu.training.losses import find_loss
from temper_gpu.training.packing import MicroBatch, Row, Segment, SegmentTree, deal, pack
from temper_gpu.training.policy import TrainablePolicy, initial_optimizer_tensors
from temper_gpu.training.rows import build_rows
from tests.training.samples import lora, sampled_groups, tiny_base, train_config

pytestmark = pytest.mark.numerics

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


def test_a_token_attends_to_its_own_segment_and_its_ancestors():
    """A root of two tokens with two branches, one of them branched again; then padding."""
    tree = SegmentTree((Segment(0, 0, 2), Segment(0, 2, 1, 0), Segment(0, 3, 2, 0), Segment(0, 5, 1, 2)))
    mask_B1TT = tree.mask_B1TT(1, 7, torch.device("cpu"))
    assert mask_B1TT is not None
    seen = [[k for k, sees in enumerate(of_token) if sees] for of_token in mask_B1TT[0, 0].tolist()]
    assert seen == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 3, 4], [0, 1, 3, 4, 5], [6]]
    assert tree.positions_BT(1, 7, torch.device("cpu")).tolist() == [[0, 1, 2, 2, 3, 4, 0]]


def test_a_window_is_counted_along_a_tokens_own_sequence():
    """The tree of the test above; the last token is the fourth of its sequence, and the sixth of the row."""
    tree = SegmentTree((Segment(0, 0, 2), Segment(0, 2, 1, 0), Segment(0, 3, 2, 0), Segment(0, 5, 1, 2)))
    mask_B1TT = tree.mask_B1TT(1, 7, torch.device("cpu"), window=3)
    assert mask_B1TT is not None
    seen = [[k for k, sees in enumerate(of_token) if sees] for of_token in mask_B1TT[0, 0].tolist()]
    assert seen == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [1, 3, 4], [3, 4, 5], [6]]


def policy_with_a_step_behind_it(base: BaseModel) -> TrainablePolicy:
    """B is zero at the start and hides A's gradient; here it is not."""
    policy = TrainablePolicy(base, lora())
    tensors = initial_tensors(base.instantiate("eager"), policy.targets, 4, 0)
    moved = {name: tensor + (0.1 if ".lora_B." in name else 0) for name, tensor in tensors.items()}
    assert all(name.startswith(PREFIX) for name in moved)
    policy.load(moved, initial_optimizer_tensors(moved))
    return policy


POLICY = policy_with_a_step_behind_it(tiny_base())


def gradient(seed: int, max_tokens: int) -> torch.Tensor:
    groups = sampled_groups("x", seed)
    attempts = [attempt for group in groups for attempt in group.attempts]
    rows = build_rows(attempts, [[attempt.reward or 0.0] for attempt in attempts], "keep")
    POLICY.zero_grad()
    for batch in pack(rows.rows, rows.num_trained_tokens, max_tokens, POLICY.device):
        logprobs_N = POLICY.log_probabilities(batch).logprobs_N
        find_loss(train_config().loss).function(batch, logprobs_N).loss_N.sum().backward()
    return torch.cat(
        [parameter.grad.flatten() for parameter in POLICY.parameters.values() if parameter.grad is not None]
    )


@settings(max_examples=25)
@given(st.integers(0, 5), st.integers(1, 400))
def test_the_gradient_does_not_depend_on_the_micro_batches(seed: int, max_tokens: int):
    torch.testing.assert_close(gradient(seed, max_tokens), gradient(seed, 10**6), atol=1e-6, rtol=1e-4)


def test_the_gradient_does_not_depend_on_the_chunks_of_the_output_head(monkeypatch):
    whole = gradient(0, 10**6)
    monkeypatch.setattr("temper_gpu.training.policy.MAX_LOGITS", 37 * 5)
    torch.testing.assert_close(gradient(0, 10**6), whole, atol=1e-6, rtol=1e-4)


def test_layers_that_are_computed_again_give_the_same_bits(monkeypatch):
    kept = gradient(0, 60)
    monkeypatch.setattr("temper_gpu.training.policy.free_bytes", lambda device: 1)
    assert POLICY.recomputes(1)
    assert torch.equal(gradient(0, 60), kept)


# In all layers, or in the second of two: transformers' models take one mask or one for each kind of layer.
WINDOWED = {
    "one window": ["sliding_attention"] * 2,
    "two kinds of layers": ["full_attention", "sliding_attention"],
}


@pytest.fixture(params=["no window", *WINDOWED, "sinks"])
def policy(request: pytest.FixtureRequest) -> TrainablePolicy:
    if request.param == "no window":
        return POLICY
    if request.param == "sinks":
        return policy_with_a_step_behind_it(gpt_oss())
    windows = {"use_sliding_window": True, "sliding_window": 3, "layer_types": WINDOWED[request.param]}
    config = Qwen2Config(**{**tiny_base().config.to_dict(), **windows})
    return policy_with_a_step_behind_it(replace(tiny_base(), config=config))


def gpt_oss() -> BaseModel:
    """Its attention is transformers' eager one, which takes another form of masks."""
    shape: dict[str, Any] = {
        key: tiny_base().config.to_dict()[key] for key in ("vocab_size", "hidden_size", "num_hidden_layers")
    }
    heads: dict[str, Any] = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "sliding_window": 3}
    experts: dict[str, Any] = {"intermediate_size": 16, "num_local_experts": 2, "num_experts_per_tok": 1}
    model = GptOssForCausalLM(GptOssConfig(**shape, **heads, **experts)).eval()
    buffers = {name: buffer for name, buffer in model.named_buffers() if name not in model.state_dict()}
    return replace(tiny_base(), config=model.config, tensors=dict(model.state_dict()), buffers=buffers)


def test_a_tree_has_the_log_probabilities_and_gradients_of_its_chains(policy: TrainablePolicy):
    """Two sequences begin with the same three tokens. In the tree these stand once, and the first branch is sampled."""
    first = Row([5, 6, 7, 8, 9], positions=[3, 4])
    second = Row([5, 6, 7, 10, 11, 12], positions=[3, 5])
    for row in (first, second):
        row.logprobs, row.temperatures, row.advantages = [-3.0, -3.0], [1.25, 1.25], [1.0, -0.5]
    [chains] = pack([first, second], 4, 100, POLICY.device)
    tree = SegmentTree((Segment(0, 0, 3), Segment(0, 3, 3, 0), Segment(0, 6, 2, 0)))
    # The second is the longer one, so its tokens come first; two of the row's ten stand for nothing.
    laid = replace(
        chains,
        token_ids_BT=torch.tensor([[5, 6, 7, 10, 11, 12, 8, 9, 0, 0]]),
        positions_BT=tree.positions_BT(1, 10, POLICY.device),
        attention=tree,
        sources_N=torch.tensor([2, 4, 2, 6]),
    )
    torch.testing.assert_close(scored(policy, laid), scored(policy, chains), atol=1e-5, rtol=1e-4)
    if policy is not POLICY:
        assert (scored(policy, chains)[0] - scored(POLICY, chains)[0]).abs().max() > 1e-3


def scored(policy: TrainablePolicy, batch: MicroBatch) -> tuple[torch.Tensor, torch.Tensor]:
    policy.zero_grad()
    logprobs_N = policy.log_probabilities(batch).logprobs_N
    find_loss(train_config().loss).function(batch, logprobs_N).loss_N.sum().backward()
    gradients = [parameter.grad.flatten() for parameter in policy.parameters.values() if parameter.grad is not None]
    return logprobs_N.detach(), torch.cat(gradients)
