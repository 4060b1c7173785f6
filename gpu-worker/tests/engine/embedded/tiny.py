"""Random tiny models, and what tests ask of an engine."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

from pocket_build.tokenizer import build_tokenizer
from temper_gpu.engine.embedded import engine as engine_module
from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.interface import AdapterSource, Generation, GenerationRequest
from temper_gpu.model.full_weights import FullWeights
from temper_gpu.model.lora import Adapter
from temper_gpu.model.models import BaseModel

SHAPE = {
    "vocab_size": 264,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,  # spread logits: near ties would hide nothing and break comparisons
}
ODD = {
    "vocab_size": 271,
    "hidden_size": 90,
    "intermediate_size": 77,
    "num_attention_heads": 3,
    "num_key_value_heads": 3,
}
CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "qwen2": lambda: Qwen2Config(**SHAPE, tie_word_embeddings=False),
    "qwen3": lambda: Qwen3Config(**SHAPE, head_dim=24, tie_word_embeddings=True),
    # Nothing here is a multiple of what processors like.
    "odd": lambda: Qwen2Config(**{**SHAPE, **ODD}, tie_word_embeddings=False),
    "llama": lambda: LlamaConfig(**SHAPE, tie_word_embeddings=False),
    "mixture": lambda: Qwen3MoeConfig(
        **SHAPE, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=40, tie_word_embeddings=False
    ),
}


def tiny_base(kind: str = "qwen2", seed: int = 0) -> BaseModel:
    return random_base(kind, CONFIGS[kind](), seed)


def random_base(name: str, config: PreTrainedConfig, seed: int = 0) -> BaseModel:
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    tensors = dict(model.state_dict())
    buffers = {name: buffer for name, buffer in model.named_buffers() if name not in tensors}
    return BaseModel(name, model.config, tensors, build_tokenizer(), buffers, frozenset([261]))


def tiny_adapter(base: BaseModel, seed: int, scale: float = 0.3) -> Adapter:
    """Changes the first layer's query and the last layer's down projection."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for module in ("model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj"):
        rows, columns = base.tensors[f"{module}.weight"].shape
        for part, shape in (("lora_A", (4, columns)), ("lora_B", (rows, 4))):
            tensors[f"base_model.model.{module}.{part}.weight"] = torch.randn(shape, generator=generator) * scale
    return Adapter(sha256=f"{seed:064x}", tensors=tensors, rank=4, alpha=8.0)


def open_engine(base: BaseModel, lock: DeviceLock | None = None, **settings) -> EmbeddedEngine:
    """Its sizes are proven by the first engine of models of one shape: for tests that change nothing in a pass."""
    with proving_once():
        return open_proving_engine(base, lock, **settings)


def open_proving_engine(base: BaseModel, lock: DeviceLock | None = None, **settings) -> EmbeddedEngine:
    """Of few sizes: each is proven before the engine answers. Without prefix cache, so that all is computed."""
    given = {"num_threads": 1, "max_pass_tokens": 256, "prefix_cache_bytes": 0, **settings}
    return EmbeddedEngine(base, EmbeddedSettings(**given), lock)


@contextmanager
def proving_once() -> Iterator[None]:
    """Engines of models of one shape are proven once in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "find_sizes", partial(_find_sizes_once, engine_module.find_sizes))
        yield


Find = Callable[[BaseModel, Sizes, int], Sizes]
_found: dict[tuple[Any, ...], Sizes] = {}


def _find_sizes_once(find: Find, base: BaseModel, candidates: Sizes, max_slots: int) -> Sizes:
    """Tests of the proof have others of its functions."""
    functions = (find, engine_module.prove_sizes)
    stored = (base.dtype, base.device, bool(base.packed))
    shape = (base.config.to_json_string(), *stored, engine_module.is_merged(*stored), torch.get_num_threads())
    key = (*functions, *shape, candidates, max_slots)
    if key not in _found:
        _found[key] = find(base, candidates, max_slots)
    return _found[key]


def request(seed: int, length: int, max_tokens: int, temperature: float = 1.0) -> GenerationRequest:
    rng = random.Random(seed)
    return GenerationRequest(tuple(rng.randrange(256) for _ in range(length)), max_tokens, temperature, seed)


@dataclass(frozen=True)
class Held:
    """An adapter that is in memory already, or what reading it comes to."""

    sha256: str
    read: Callable[[], Adapter | FullWeights]

    def write_folder(self, folder: Path) -> None:
        raise NotImplementedError


def held(adapter: Adapter | FullWeights) -> AdapterSource:
    # pyrefly: ignore[bad-return]
    return Held(adapter.sha256, lambda: adapter)


def ask(engine: EmbeddedEngine, request: GenerationRequest, adapter: AdapterSource | None = None) -> Generation:
    return engine.submit(adapter, request, 300).result(300)


def ask_together(engine: EmbeddedEngine, requests: Sequence[GenerationRequest]) -> list[Generation]:
    futures = [engine.submit(None, request, 300) for request in requests]
    return [future.result(300) for future in futures]
