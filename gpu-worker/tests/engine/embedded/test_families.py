"""Which families of models are served: tiny random ones, from a folder to the answers of the engine.

The table of docs/engine-and-trainer.md says the same.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedConfig

import temper_gpu
from temper_gpu.failures import TemperError
from temper_gpu.model.models import POCKET_FOLDER, BaseModel, ModelLibrary
from tests.engine.embedded.test_against_naive import greedy
from tests.engine.embedded.tiny import SHAPE, ask_together, open_engine, request

PAGE = Path(temper_gpu.__file__).parents[2] / "docs/engine-and-trainer.md"
LENGTHS = (5, 90)
TINY: dict[str, Any] = SHAPE
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2}
# Of generations that are none of a tiny vocabulary.
NO_IDS: dict[str, Any] = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}

SERVED: dict[str, Callable[[], PreTrainedConfig]] = {
    "Llama 3": lambda: transformers.LlamaConfig(**TINY, rope_parameters=LLAMA3),
    "Qwen2, Qwen2.5": lambda: transformers.Qwen2Config(**TINY),
    "Qwen3": lambda: transformers.Qwen3Config(**TINY, head_dim=24),
    "Mistral": lambda: transformers.MistralConfig(**TINY, sliding_window=None),
    "Phi-4": lambda: transformers.Phi3Config(**TINY, **NO_IDS),
    "OLMo 2": lambda: transformers.Olmo2Config(**TINY, **NO_IDS),
    # One layer in two without positions.
    "SmolLM3": lambda: transformers.SmolLM3Config(**TINY, **NO_IDS, no_rope_layers=[1, 0]),
    "Granite 3": lambda: transformers.GraniteConfig(**TINY),
}
REFUSED: dict[str, tuple[Callable[[], PreTrainedConfig], str]] = {
    "Qwen3-MoE": (
        lambda: transformers.Qwen3MoeConfig(**TINY, **EXPERTS, moe_intermediate_size=32, num_experts=4),
        "a mixture of experts",
    ),
    "gpt-oss": (
        lambda: transformers.GptOssConfig(**TINY, **EXPERTS, head_dim=16, num_local_experts=4, sliding_window=64),
        "must attend to its whole context",
    ),
    "Gemma 3": (
        lambda: transformers.Gemma3TextConfig(**TINY, head_dim=16, sliding_window=64),
        "must attend to its whole context",
    ),
    "Mistral with a sliding window": (lambda: transformers.MistralConfig(**TINY, sliding_window=64), "sliding_window"),
}


def load(config: PreTrainedConfig, folder: Path) -> BaseModel:
    torch.manual_seed(0)
    shutil.copytree(POCKET_FOLDER, folder)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return ModelLibrary(lambda: {"tiny": str(folder)}, torch.float32, torch.device("cpu")).get("tiny")


@pytest.mark.parametrize("family", SERVED)
def test_a_family_is_served_with_the_numbers_of_transformers(family: str, tmp_path: Path):
    base = load(SERVED[family](), tmp_path / "model")
    engine, model = open_engine(base, max_pass_tokens=64), base.instantiate("eager")
    requests = [request(length, length, 12, temperature=0) for length in LENGTHS]
    for asked, answer in zip(requests, ask_together(engine, requests), strict=True):
        ids, logprobs = greedy(model, asked.prompt_token_ids, answer.token_ids)
        assert answer.token_ids == ids
        assert answer.logprobs == pytest.approx(logprobs, abs=1e-4)
    engine.close()


@pytest.mark.parametrize("family", REFUSED)
def test_a_family_that_is_not_served_is_refused_with_the_reason(family: str, tmp_path: Path):
    make, reason = REFUSED[family]
    with pytest.raises(TemperError, match=reason) as caught:
        open_engine(load(make(), tmp_path / "model")).close()
    assert caught.value.type == "BadConfig"


def test_the_page_names_each_family():
    rows = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.read_text().splitlines() if " | " in line]
    for family in (*SERVED, *REFUSED):
        assert family in rows
