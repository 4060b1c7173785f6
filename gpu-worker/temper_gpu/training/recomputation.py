"""Layers that the backward pass computes again, a third more work, instead of keeping what it needs of all at once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from temper_gpu.contract import LoraConfig
from temper_gpu.model.layers import expert_layers, experts_per_token
from temper_gpu.model.lora import adapted_layers, target_modules

# Of the memory that is free before a micro-batch, for what its backward pass needs.
MOST_OF_FREE = 0.5


def is_recomputed(num_bytes: int, free: int) -> bool:
    return num_bytes > free * MOST_OF_FREE


def saved_bytes_per_token(model: PreTrainedModel, lora: LoraConfig | None) -> int:
    """About what the backward pass needs of one token, rather more than less: for each linear layer its input, and what
    it and the activation after it wrote; for each expert that a token takes, what this wrote. Dropout adds a mask and
    what it leaves of the input; DoRA reads inputs in float32, and keeps two of its results. Without LoRA all weights
    train: those of a norm need its result, beside what they made of it."""
    has_dora, has_dropout = (False, False) if lora is None else (bool(lora.dora), bool(lora.dropout))
    layers = [layer for _, layer in adapted_layers(model, target_modules(model, None))]
    if lora is None:
        head = model.get_output_embeddings()
        layers = [module for module in model.modules() if isinstance(module, nn.Linear) and module is not head]
    linear = sum(
        (4 if has_dora else layer.weight.itemsize) * (3 if has_dropout else 1) * layer.in_features
        + (2 * layer.weight.itemsize + (8 if has_dora else 0)) * layer.out_features
        for layer in layers
    )
    vectors = [weight for weight in model.parameters() if weight.dim() == 1]
    normed = 0 if lora is not None else sum(weight.itemsize * len(weight) for weight in vectors)
    weights = [weight for experts in expert_layers(model).values() for weight in experts.parameters()]
    # [experts, inputs, outputs], or with the last two the other way round.
    written = sum(2 * weight.itemsize * sum(weight.shape[1:]) for weight in weights if weight.dim() == 3)
    return linear + normed + experts_per_token(model.config) * written


@contextmanager
def computed_again(layers: Iterable[nn.Module]) -> Iterator[None]:
    """A forward pass within keeps only what goes into each of these layers."""
    found = [(layer, layer.forward) for layer in layers]
    for layer, forward in found:
        layer.forward = partial(checkpoint, forward, use_reentrant=False, preserve_rng_state=False)
    try:
        yield
    finally:
        for layer, forward in found:
            layer.forward = forward
