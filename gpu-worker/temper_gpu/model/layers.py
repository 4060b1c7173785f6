"""Kinds of layers in a model: attention windows, linear layers, mixtures of experts.

Engine and trainer support the models that pass these checks.
"""

from typing import Any, NamedTuple

from torch import nn
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.failures import TemperError

FULL, SLIDING = "full_attention", "sliding_attention"


def layer_kinds(config: PreTrainedConfig) -> list[str]:
    """Configs without kinds of layers (Mistral's) have one window for all layers, or none."""
    default = FULL if getattr(config, "sliding_window", None) is None else SLIDING
    return list(getattr(config, "layer_types", None) or [default] * config.num_hidden_layers)


def attention_windows(config: PreTrainedConfig) -> list[int | None]:
    """Attention window by layer, the token itself included; None: unlimited."""
    window: int | None = getattr(config, "sliding_window", None)
    return [window if kind == SLIDING else None for kind in layer_kinds(config)]


class AttentionHeads(NamedTuple):
    queries: int
    keys: int
    size: int


def attention_heads(config: PreTrainedConfig) -> AttentionHeads:
    queries: int = config.num_attention_heads
    keys: int | None = getattr(config, "num_key_value_heads", None)
    size: int | None = getattr(config, "head_dim", None)
    return AttentionHeads(queries, keys or queries, size or config.hidden_size // queries)


def expert_layers(model: PreTrainedModel) -> dict[str, nn.Module]:
    """Expert layers by path; each holds the weights of all experts of a layer."""
    return {path: module for path, module in model.named_modules() if path.rpartition(".")[2] == "experts"}


def linear_layers(model: PreTrainedModel) -> list[tuple[str, nn.Linear]]:
    """Linear layers except the output head. A mixture of experts has only those of attention: experts' weights are no
    linear layers, and routers, dense and shared experts stay frozen, too."""
    head = model.get_output_embeddings()
    mixtures = {path.split(".")[-2] for path in expert_layers(model)}
    layers = [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not head and mixtures.isdisjoint(name.split("."))
    ]
    return sorted(layers, key=lambda layer: layer[0])


def experts_per_token(config: PreTrainedConfig) -> int:
    """Experts for each token of a mixture; 1 without any."""
    return getattr(config, "num_experts_per_tok", None) or 1


def require_known_attention(name: str, config: PreTrainedConfig) -> None:
    kinds, window = set(layer_kinds(config)), getattr(config, "sliding_window", None)
    if not kinds <= {FULL, SLIDING}:
        raise TemperError(
            "BadConfig",
            f"every layer of model {name} must attend to its whole context or to a sliding window of it, got "
            f"{sorted(kinds)}; take a model without linear or chunked attention",
        )
    if SLIDING in kinds and not (isinstance(window, int) and window > 0):
        raise TemperError(
            "BadConfig",
            f"sliding_window of model {name} must be a number of tokens, because its config has sliding layers, got "
            f"{window}; mend its config.json",
        )
    if getattr(config, "use_bidirectional_attention", False):
        raise TemperError(
            "BadConfig",
            f"model {name} must attend to earlier tokens only, but its config says use_bidirectional_attention; use "
            "a model that generates text",
        )


def require_independent_tokens(name: str, model: PreTrainedModel) -> None:
    """Refuses models in which a token's numbers depend on other tokens of the pass: batch invariance could not hold."""
    # The form of the engine (engine/embedded/experts.py) reads these.
    if any(getattr(experts, "has_post_expert_norm", True) for experts in expert_layers(model).values()):
        raise TemperError(
            "BadConfig",
            f"model {name} must compute each token by itself, but {type(model).__name__} computes its mixture of "
            "experts in a form that the engine does not know; use a Qwen3-MoE or Mixtral model, or a dense one",
        )
    if "longrope" in rope_types(model.config):
        raise TemperError(
            "BadConfig",
            f"model {name} must compute each token by itself, but its rotary frequencies (longrope) follow the longest "
            "prompt of a pass; use a model with another rope_type",
        )


def rope_types(config: PreTrainedConfig) -> set[str]:
    """Rope types of the whole model, or of each kind of layer."""
    parameters: dict[str, Any] = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    entries = [parameters, *(entry for entry in parameters.values() if isinstance(entry, dict))]
    return {str(entry.get("rope_type") or entry.get("type")) for entry in entries}
