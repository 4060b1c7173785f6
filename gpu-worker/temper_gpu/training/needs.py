"""The trainer's device memory, estimated from a model's shapes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.contract import LoraConfig
from temper_gpu.model.layers import attention_heads, attention_windows
from temper_gpu.model.lora import adapter_shapes
from temper_gpu.model.memory_plan import count_parameters
from temper_gpu.model.models import attention_of
from temper_gpu.training.optimizers import OptimizerKind, moments_bytes
from temper_gpu.training.policy import MAX_LOGITS
from temper_gpu.training.recomputation import is_recomputed, least_free_to_keep, saved_bytes_per_token

# Trained parameters are float32 for every type of base model. So are gradients and, by default, moments.
STATE_DTYPE = torch.float32
# Copies of a checkpoint's file while it is made: a list of parts, and one piece.
COPIES_OF_FILE = 2
# Of what a layer keeps: its peak while it is computed again and back.
BACKWARD = 1.75
# Of the scores of a layer without fused attention: what the backward pass keeps of them. Their peak is twice that.
KEPT_SCORES = 1.5


def state_bytes(model: PreTrainedModel, lora: LoraConfig | None) -> int:
    """Bytes of one float32 tensor for each trained parameter: weights, gradients, or a moment of AdamW."""
    if lora is None:
        return count_parameters(model) * STATE_DTYPE.itemsize
    return sum(shape.numel() for shape in adapter_shapes(model, lora).values()) * STATE_DTYPE.itemsize


def optimizer_bytes(model: PreTrainedModel, lora: LoraConfig | None, optimizer: OptimizerKind = "adamw") -> int:
    if lora is not None:
        return moments_bytes(adapter_shapes(model, lora).values(), optimizer)
    embedding: Any = model.get_input_embeddings()
    others = [parameter.shape for parameter in model.parameters() if parameter is not embedding.weight]
    return moments_bytes(others, optimizer) + moments_bytes([embedding.weight.shape], "adamw")


def rounded_bytes(model: PreTrainedModel, lora: LoraConfig | None, dtype: torch.dtype) -> int:
    """Bytes of the rounded copies of fully trained weights, if the base model has a smaller type."""
    return 0 if lora is not None or dtype == STATE_DTYPE else count_parameters(model) * dtype.itemsize


def commit_bytes(model: PreTrainedModel, lora: LoraConfig | None) -> int:
    """Main memory of a commit, after the gradients are freed; negligible for an adapter. Step 0 has float32 moments for
    every optimizer, and the first step reads them."""
    return 0 if lora is not None else COPIES_OF_FILE * optimizer_bytes(model, lora)


def gathered_bytes(model: PreTrainedModel, dtype: torch.dtype) -> int:
    """Largest part of a sharded base model that is whole at once: one group of weights, beside the gathered parts of it
    or of the next group."""
    return 2 * max(_group_sizes(model)) * dtype.itemsize


def _group_sizes(model: PreTrainedModel) -> list[int]:
    """Numbers of the embedding, the output head, and each layer."""
    decoder: Any = model.get_decoder()
    groups: list[Any] = [model.get_input_embeddings(), model.get_output_embeddings(), *decoder.layers]
    return [sum(parameter.numel() for parameter in group.parameters()) for group in groups]


@dataclass(frozen=True)
class MicroBatches:
    """Micro-batches of one row of `num_tokens`, all of them sampled. Shorter rows with as many tokens take no more."""

    model: PreTrainedModel
    dtype: torch.dtype
    lora: LoraConfig | None
    num_tokens: int
    trains_entropy: bool = False

    @cached_property
    def _saved(self) -> int:
        """What the trainer decides by, too."""
        return self.num_tokens * saved_bytes_per_token(self.model, self.lora, self.dtype)

    def are_recomputed(self, free: int, device: torch.device) -> bool:
        return is_recomputed(self._saved, free, device)

    def free_to_keep(self, device: torch.device) -> int:
        """The least free memory with which the trainer keeps activations."""
        return least_free_to_keep(self._saved, device)

    def num_bytes(self, recomputes: bool) -> int:
        """Peak of forward and backward pass, estimated rather high: activations, logits, masks of windows, and in full
        fine-tuning new gradients beside those of the micro-batch before."""
        config: Any = self.model.config
        num_tokens, num_layers = self.num_tokens, config.num_hidden_layers
        layer, scores = self._saved // num_layers, self._score_bytes
        if recomputes:
            kept = num_tokens * (num_layers + 1) * config.hidden_size * self.dtype.itemsize
            largest = BACKWARD * layer + KEPT_SCORES * 2 * scores
        else:
            kept = self._saved + KEPT_SCORES * num_layers * scores
            largest = layer // 2 + KEPT_SCORES * scores
        return int(kept + max(largest, self._logit_bytes) + self._mask_bytes + self._gradient_bytes)

    @property
    def _logit_bytes(self) -> int:
        """Logits exist in the head's type, and four times in float32; in training of entropies six times."""
        vocabulary: int = self.model.config.vocab_size
        num_rows = min(self.num_tokens, max(1, MAX_LOGITS // vocabulary))
        return num_rows * vocabulary * (26 if self.trains_entropy else 18)

    @property
    def _score_bytes(self) -> int:
        """Attention of all tokens to all, of a model without fused attention."""
        if attention_of(self.model.config) != "eager":
            return 0
        return self.num_tokens**2 * attention_heads(self.model.config).queries * self.dtype.itemsize

    @property
    def _mask_bytes(self) -> int:
        """A window's mask as booleans, as numbers, and as a kernel takes it."""
        windows = attention_windows(self.model.config)
        return 6 * self.num_tokens**2 if any(each and each <= self.num_tokens for each in windows) else 0

    @property
    def _gradient_bytes(self) -> int:
        if self.lora is not None:
            return 0
        embedding, head, *layers = _group_sizes(self.model)
        is_tied = self.model.config.tie_word_embeddings
        return (embedding + max(layers) + (0 if is_tied else head)) * self.dtype.itemsize
