"""What the backward pass keeps of a token, beside what tracing it without numbers finds."""

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, PreTrainedConfig, Qwen2Config, Qwen3Config

from temper_gpu.contract import LoraConfig
from temper_gpu.model.outlines import without_numbers
from temper_gpu.training.needs import META, MicroBatches
from temper_gpu.training.recomputation import is_recomputed, saved_bytes_per_token
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
    config, lora = CONFIGS[kind], WAYS[way]
    model = without_numbers(config, dtype, META).instantiate("eager")
    few, many = (MicroBatches(config, dtype, lora, tokens).num_bytes(model, False) for tokens in (1024, 2048))
    traced, reckoned = (many - few) / 1024, saved_bytes_per_token(model, lora, dtype)
    assert 0.95 * traced <= reckoned <= 1.35 * traced


def test_a_gpu_keeps_layers_in_more_of_what_is_free_than_a_cpu():
    assert [is_recomputed(num_bytes, 100, torch.device("cuda")) for num_bytes in (80, 81)] == [False, True]
    assert [is_recomputed(num_bytes, 100, torch.device("cpu")) for num_bytes in (50, 51)] == [False, True]
