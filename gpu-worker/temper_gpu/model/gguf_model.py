"""Models of the Llama and Qwen families in GGUF: names and numbers as llama.cpp's loader wants them.

Shapes: O outputs, I inputs, H heads, D size of a head.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from temper_gpu.failures import TemperError
from temper_gpu.model.gguf_file import Q8_0, NumberType, Value, write_gguf
from temper_gpu.model.gguf_tokenizer import tokenizer_fields
from temper_gpu.model.layers import attention_heads

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

    from temper_gpu.model.models import BaseModel

# Architectures by transformers' names.
ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
OF_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)\.(weight|bias)")
# Formulas for lower frequencies, by transformers' names.
ROPE_SCALINGS = ("default", "linear", "llama3")


def write_model(
    file: Path, model: "PreTrainedModel", base: "BaseModel", name: str, adapter_sha256: str, kind: NumberType
) -> None:
    config: Any = model.config
    architecture = require_known(config)
    tensors = list(_tensors(model, architecture))
    fields: dict[str, Value] = {
        "general.architecture": architecture,
        "general.type": "model",
        "general.name": name,
        "general.file_type": kind.file_type,
        **({"general.quantization_version": 2} if kind is Q8_0 else {}),
        # A model that was imported is recognized by it.
        "temper.adapter_sha256": adapter_sha256,
        **{f"{architecture}.{key}": value for key, value in _numbers(config).items()},
        **tokenizer_fields(base.tokenizer, base.end_token_ids, config.vocab_size),
    }
    write_gguf(file, fields, tensors, kind)


def require_known(config: Any) -> str:
    architecture = ARCHITECTURES.get(config.model_type)
    scaling = config.rope_parameters["rope_type"]
    windows = {kind for kind in getattr(config, "layer_types", None) or [] if kind != "full_attention"}
    reason = (
        f"is of the type {config.model_type}"
        if architecture is None
        else f"scales its positions by {scaling}"
        if scaling not in ROPE_SCALINGS
        else "has attention over a window"
        if windows or (config.model_type == "mistral" and config.sliding_window is not None)
        else None
    )
    if architecture is not None and reason is None:
        return architecture
    raise TemperError(
        "BadConfig",
        f"--format gguf knows models of the types {', '.join(ARCHITECTURES)} with full attention, but this one "
        f"{reason}; export with --format merged, and convert that folder with llama.cpp's convert_hf_to_gguf.py",
    )


def _numbers(config: Any) -> dict[str, Value]:
    rope, heads = config.rope_parameters, attention_heads(config)
    scaling: dict[str, Value] = {}
    if rope["rope_type"] == "linear":
        scaling = {"rope.scaling.type": "linear", "rope.scaling.factor": float(rope["factor"])}
    return {
        "vocab_size": config.vocab_size,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": heads.queries,
        "attention.head_count_kv": heads.keys,
        "attention.key_length": heads.size,
        "attention.value_length": heads.size,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "rope.dimension_count": heads.size,
        "rope.freq_base": float(rope["rope_theta"]),
        **scaling,
    }


def _tensors(model: "PreTrainedModel", architecture: str) -> Iterator[tuple[str, Tensor]]:
    config: Any = model.config
    if config.rope_parameters["rope_type"] == "llama3":
        yield "rope_freqs.weight", torch.tensor(llama3_factors(config), dtype=torch.float32)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        yield _name(name), _in_place(name, tensor, config) if architecture == "llama" else tensor


def _name(name: str) -> str:
    module, _, part = name.rpartition(".")
    if module in TOP:
        return f"{TOP[module]}.{part}"
    match = LAYER.fullmatch(name)
    if match is None or match[2] not in OF_LAYER:
        raise TemperError("BadConfig", f"--format gguf knows no weight {name}; export with --format merged")
    return f"blk.{match[1]}.{OF_LAYER[match[2]]}.{part}"


def _in_place(name: str, tensor: Tensor, config: Any) -> Tensor:
    """llama.cpp rotates neighbours in a head of Llama, transformers its two halves: so rows change places."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    num_heads = heads.get(name.split(".")[-2])
    if num_heads is None:
        return tensor
    return tensor.reshape(num_heads, 2, -1, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)


def llama3_factors(config: Any) -> list[float]:
    """Divisors of frequencies, as in Llama 3.1's own code."""
    rope, size = config.rope_parameters, attention_heads(config).size
    factor, low, high = (float(rope[key]) for key in ("factor", "low_freq_factor", "high_freq_factor"))
    context = float(rope["original_max_position_embeddings"])
    factors: list[float] = []
    for index in range(0, size, 2):
        length = 2 * math.pi * rope["rope_theta"] ** (index / size)
        smooth = min(max((context / length - low) / (high - low), 0.0), 1.0)
        factors.append(1 / ((1 - smooth) / factor + smooth))
    return factors
