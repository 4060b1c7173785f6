"""What kinds of layers a model has, as its config says: of how many tokens each one sees."""

from transformers import PreTrainedConfig

FULL, SLIDING = "full_attention", "sliding_attention"


def layer_kinds(config: PreTrainedConfig) -> list[str]:
    """Configs without kinds of layers (Mistral's) have one window for all layers, or none."""
    default = FULL if getattr(config, "sliding_window", None) is None else SLIDING
    return list(getattr(config, "layer_types", None) or [default] * config.num_hidden_layers)


def attention_windows(config: PreTrainedConfig) -> list[int | None]:
    """Of each layer: how many tokens a token sees, itself included; None: all."""
    window: int | None = getattr(config, "sliding_window", None)
    return [window if kind == SLIDING else None for kind in layer_kinds(config)]
