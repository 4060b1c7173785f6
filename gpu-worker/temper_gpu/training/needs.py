"""The trainer's device memory, computed from a model's shapes and the trainer's own code.

Shapes: T tokens of a row, V vocabulary.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.configuration_utils import PreTrainedConfig
from transformers.integrations.sdpa_attention import repeat_kv
from transformers.modeling_utils import AttentionInterface, PreTrainedModel

from temper_gpu.contract import LoraConfig
from temper_gpu.model.alike_routing import AlikeRouting
from temper_gpu.model.layers import few_layers
from temper_gpu.model.live_bytes import peak_bytes
from temper_gpu.model.lora import adapter_shapes
from temper_gpu.model.memory_plan import count_parameters
from temper_gpu.model.models import BaseModel
from temper_gpu.model.outlines import shortened, without_numbers
from temper_gpu.training.attention_inputs import window_masks
from temper_gpu.training.optimizers import OptimizerKind, moments_bytes
from temper_gpu.training.packing import MicroBatch, Row, pack
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.recomputation import is_recomputed, least_free_to_keep, saved_bytes_per_token

# Trained parameters are float32 for every type of base model. So are gradients and, by default, moments.
STATE_DTYPE = torch.float32
# Copies of a checkpoint's file while it is made: a list of parts, and one piece.
COPIES_OF_FILE = 2
META = torch.device("meta")
FUSED = "temper_fused"


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
    decoder: Any = model.get_decoder()
    groups: list[Any] = [*decoder.layers, model.get_input_embeddings(), model.get_output_embeddings()]
    return 2 * max(sum(p.numel() for p in group.parameters()) for group in groups) * dtype.itemsize


@dataclass(frozen=True)
class MicroBatches:
    """Micro-batches of one row of `num_tokens`, all of them sampled. Shorter rows with as many tokens take no more."""

    config: PreTrainedConfig
    dtype: torch.dtype
    lora: LoraConfig | None
    num_tokens: int
    trains_entropy: bool = False

    def are_recomputed(self, model: PreTrainedModel, free: int, device: torch.device) -> bool:
        return is_recomputed(self.num_tokens * saved_bytes_per_token(model, self.lora, self.dtype), free, device)

    def free_to_keep(self, model: PreTrainedModel, device: torch.device) -> int:
        """The least free memory with which the trainer keeps activations."""
        return least_free_to_keep(self.num_tokens * saved_bytes_per_token(model, self.lora, self.dtype), device)

    def num_bytes(self, model: PreTrainedModel, recomputes: bool) -> int:
        """Peak of forward and backward pass: activations, logits, and new gradients beside those of the micro-batch
        before. Layers repeat, so each further one adds as much as the ones before."""
        num_layers: int = self.config.num_hidden_layers
        first, period = few_layers(model)
        # A longer sample, because very few layers may peak at another moment.
        few = first + period
        if num_layers < few + period:
            return self._traced(num_layers, recomputes)
        start = self._traced(few, recomputes)
        return start + (num_layers - few) * (self._traced(few + period, recomputes) - start) // period

    def _traced(self, num_layers: int, recomputes: bool) -> int:
        config = shortened(self.config, num_layers)
        shapes = without_numbers(config, self.dtype, META)
        base = FusedBase("", config, shapes.tensors, None, shapes.buffers)
        policy, batch = Outline(base, self.lora, recomputes), self._batch()
        for parameter in policy.parameters.values():
            # Gradients of the micro-batch before.
            parameter.grad = torch.zeros_like(parameter)

        def train() -> None:
            scores = policy.log_probabilities(batch, self.trains_entropy)
            total = scores.logprobs_N.sum()
            (total + scores.entropy_N.sum() if self.trains_entropy else total).backward()

        with AlikeRouting(config), policy.dropping("any"):
            return peak_bytes(train)

    def _batch(self) -> MicroBatch:
        num_sampled = self.num_tokens - 1
        ones = [1.0] * num_sampled
        row = Row([0] * self.num_tokens, "attempt", list(range(1, self.num_tokens)), ones, ones, ones)
        [batch] = pack([row], num_sampled, self.num_tokens, META)
        return batch


class Outline(TrainablePolicy):
    """A policy of tensors without numbers. The last layer computes all tokens, because all of them are sampled."""

    knows_last_layer = False

    def __init__(self, base: BaseModel, lora: LoraConfig | None, recomputes: bool) -> None:
        super().__init__(base, lora)
        self._recomputes = recomputes

    def recomputes(self, num_tokens: int) -> bool:
        return self._recomputes

    @contextmanager
    def _drawing(self, batch: MicroBatch) -> Iterator[None]:
        yield

    def _attention_inputs(self, batch: MicroBatch, is_recomputed: bool) -> dict[str, Any]:
        """Names the masks of an attention that transformers does not know, even if there is none."""
        inputs = super()._attention_inputs(batch, is_recomputed)
        if inputs or self.base.attention != "sdpa":
            return inputs
        return {"attention_mask": window_masks(self.base, batch.token_ids_BT.shape[1])}

    def _require_plain_head(self) -> None:
        """Skipped: there are no numbers to compare."""


class FusedBase(BaseModel):
    """A base that replaces torch's fast attention by the one below."""

    def instantiate(self, attention: str, overrides: dict[str, Tensor] | None = None) -> PreTrainedModel:
        return super().instantiate(FUSED if attention == "sdpa" else attention, overrides)


def fused_attention(module, query, key, value, attention_mask, scaling, **options):
    """Calls the fused kernel that CPUs and GPUs have. On `meta`, torch would split it into products of all tokens with
    all."""
    if attention_mask is not None:
        # Heads that share keys get copies, like in transformers.
        key, value = (repeat_kv(tensor, module.num_key_value_groups) for tensor in (key, value))
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    is_causal = attention_mask is None
    output, _ = fused(query, key, value, is_causal=is_causal, attn_mask=attention_mask, scale=scaling)
    return output.transpose(1, 2), None


AttentionInterface.register(FUSED, fused_attention)
