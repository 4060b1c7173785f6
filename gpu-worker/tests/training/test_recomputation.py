"""What the backward pass keeps of a token, beside what is really allocated."""

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, PreTrainedConfig, Qwen2Config, Qwen3Config

from temper_gpu.contract import LoraConfig
from temper_gpu.model.outlines import without_numbers
from temper_gpu.training.packing import Row, pack
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.recomputation import is_recomputed, saved_bytes_per_token
from tests.live_bytes import LiveBytes
from tests.tier import IS_NIGHTLY

SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 448,
    "intermediate_size": 2304,
    "num_hidden_layers": 8,
    "num_attention_heads": 7,
    "num_key_value_heads": 1,
    "max_position_embeddings": 4096,
}
CONFIGS: dict[str, PreTrainedConfig] = {
    "Qwen2.5": Qwen2Config(**SHAPE),
    "Qwen3": Qwen3Config(**SHAPE, head_dim=64),
    "Llama": LlamaConfig(**{**SHAPE, "intermediate_size": 1536, "num_key_value_heads": 7}),
}
PLAIN = LoraConfig(rank=4, alpha=8, target_modules=None)
WAYS: dict[str, LoraConfig | None] = {
    "LoRA": PLAIN,
    "dropout": PLAIN.model_copy(update={"dropout": 0.1}),
    "DoRA": PLAIN.model_copy(update={"dora": True}),
    "all weights": None,
}


# Each kind in each way, and both types of numbers for each kind and for each way; on a landing, each way once.
CASES = [
    (kind, [torch.bfloat16, torch.float32][(row + column) % 2], way)
    for row, kind in enumerate(CONFIGS)
    for column, way in enumerate(WAYS)
    if IS_NIGHTLY or row == column % len(CONFIGS)
]


@pytest.mark.parametrize(("kind", "dtype", "way"), CASES)
def test_what_is_kept_of_a_token_is_reckoned_nearly_right(kind: str, dtype: torch.dtype, way: str):
    torch.manual_seed(0)
    policy = TrainablePolicy(without_numbers(CONFIGS[kind], dtype, torch.device("cpu")), WAYS[way])
    few, many = (kept_bytes(policy, num_tokens) for num_tokens in (64, 128))
    plain = policy.base.instantiate(policy.base.attention)
    kept, reckoned = (many - few) / 64, saved_bytes_per_token(plain, WAYS[way], dtype)
    assert 0.95 * kept <= reckoned <= 1.35 * kept


def kept_bytes(policy: TrainablePolicy, num_tokens: int) -> int:
    """Live bytes after a forward pass that predicts one token."""
    row = Row([1] * num_tokens, "attempt", [num_tokens - 1], [1.0], [1.0], [1.0])
    [batch] = pack([row], 1, num_tokens, policy.device)
    with LiveBytes() as live, policy.dropping("any"):
        scores = policy.log_probabilities(batch)
        now = live.now
    assert scores.logprobs_N.requires_grad
    return now


def test_a_gpu_keeps_layers_in_more_of_what_is_free_than_a_cpu():
    assert [is_recomputed(num_bytes, 100, torch.device("cuda")) for num_bytes in (80, 81)] == [False, True]
    assert [is_recomputed(num_bytes, 100, torch.device("cpu")) for num_bytes in (50, 51)] == [False, True]
