"""What kinds of layers a model has: how many tokens each one sees, and which are mixtures of experts."""

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

FULL, SLIDING = "full_attention", "sliding_attention"


def layer_kinds(config: PreTrainedConfig) -> list[str]:
    """Configs without kinds of layers (Mistral's) have one window for all layers, or none."""
    default = FULL if getattr(config, "sliding_window", None) is None else SLIDING
    return list(getattr(config, "layer_types", None) or [default] * config.num_hidden_layers)


def attention_windows(config: PreTrainedConfig) -> list[int | None]:
    """Of each layer: how many tokens a token sees, itself included; None: all."""
    window: int | None = getattr(config, "sliding_window", None)
    return [window if kind == SLIDING else None for kind in layer_kinds(config)]


def expert_layers(model: PreTrainedModel) -> dict[str, nn.Module]:
    """By path; each holds the weights of all experts of a layer."""
    return {path: module for path, module in model.named_modules() if path.rpartition(".")[2] == "experts"}
