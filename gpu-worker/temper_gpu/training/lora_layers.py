"""Layers that train an adapter beside their frozen weights: W x + b + s · B A x (LoRA), or m / ‖W + s · B A‖ times
W x + s · B A x (DoRA). Names, shapes and files of adapters are PEFT's (model/lora.py).

Three parties change a forward pass, from the inside out: a `LoraLayer` replaces a linear layer for good; recomputation
wraps the `forward` of decoder layers for one pass (recomputation.py); FSDP's hooks gather and free the weights of a
decoder layer around each call (sharding.py).

Shapes: M tokens, I inputs, O outputs, R rank.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.contract import LoraConfig
from temper_gpu.model.lora import adapted_layers, adapted_norms, lora_scale, target_modules


@dataclass
class Mode:
    """What all adapted layers of a model compute."""

    is_base: bool = False
    # Share of the adapter's inputs that are dropped.
    dropout: float = 0.0


class LoraLayer(nn.Module):
    def __init__(self, frozen: nn.Linear, lora: LoraConfig, device: torch.device, mode: Mode) -> None:
        """Parameters are float32 zeros: a checkpoint brings their values."""
        super().__init__()
        self.frozen = frozen
        self.a_RI = _parameter(lora.rank, frozen.in_features, device=device)
        self.b_OR = _parameter(frozen.out_features, lora.rank, device=device)
        self.magnitudes_O = _parameter(frozen.out_features, device=device) if lora.dora else None
        self._scale = lora_scale(lora.rank, lora.alpha, lora.rslora or False)
        self._mode = mode

    def forward(self, x: Tensor) -> Tensor:
        if self._mode.is_base:
            return self.frozen(x)
        is_plain = self.magnitudes_O is None and not self._mode.dropout
        if is_plain and (x.dtype == self.a_RI.dtype or joins_halves(x.device)):
            return _LoraProduct.apply(x, self.frozen, self.a_RI, self.b_OR, self._scale)
        return self._add_apart(x)

    def _add_apart(self, x: Tensor) -> Tensor:
        """The sum of separate products, in the type of the parameters."""
        out, dropped = self.frozen(x), x
        if self._mode.dropout:
            dropped = F.dropout(x, self._mode.dropout)
        # Keeps the inputs in their own type for the backward pass, as other layers keep them anyway.
        low = checkpoint(self._low_product, dropped, use_reentrant=False) * self._scale
        if self.magnitudes_O is None:
            return (out + low).to(out.dtype)
        with torch.no_grad():
            # A constant for the gradient (DoRA, arXiv 2402.09353, section 4.3).
            norms_O = adapted_norms(self.frozen.weight, self.a_RI, self.b_OR, self._scale)
        gains_O = self.magnitudes_O / norms_O
        of_frozen = out if dropped is x else self.frozen(dropped)
        if self.frozen.bias is not None:
            of_frozen = of_frozen - self.frozen.bias
        return (out + (gains_O - 1) * of_frozen + gains_O * low).to(out.dtype)

    def _low_product(self, x: Tensor) -> Tensor:
        return F.linear(F.linear(x.to(self.a_RI.dtype), self.a_RI), self.b_OR)


def adapt(model: PreTrainedModel, lora: LoraConfig, device: torch.device, mode: Mode) -> dict[str, LoraLayer]:
    """Inserts adapters into a model; returns their layers by name."""
    adapted: dict[str, LoraLayer] = {}
    for name, frozen in adapted_layers(model, target_modules(model, lora.target_modules), lora.layers):
        adapted[name] = LoraLayer(frozen, lora, device, mode)
        model.set_submodule(name, adapted[name])
    return adapted


def joins_halves(device: torch.device) -> bool:
    """Whether adapters compute in the weights' type below float32. A CPU keeps float32, which is as fast there."""
    return device.type == "cuda"


def _parameter(*shape: int, device: torch.device) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape, dtype=torch.float32, device=device))


class _LoraProduct(torch.autograd.Function):
    """A frozen layer and its adapter as one node of the graph. Each product adds to the one before it, because passes
    over all outputs or inputs take longer than the products of a small rank.

    Below float32, factors have the inputs' type, as in the engine (model/lora.py): what the adapter adds comes first,
    and is taken up into the frozen layer's sum, so it is rounded once. Gradients of the factors are float32.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, frozen: nn.Linear, a_RI: Tensor, b_OR: Tensor, scale: float) -> Tensor:
        x_MI = x.reshape(-1, x.shape[-1])
        if x.dtype == torch.float32:
            low_MR = x_MI @ a_RI.T
            out_MO = F.linear(x_MI, frozen.weight, frozen.bias).addmm_(low_MR, b_OR.T, alpha=scale)
        else:
            # s · B, as the engine rounds it.
            a_RI, b_OR = a_RI.to(x.dtype), (b_OR * scale).to(x.dtype)
            low_MR = x_MI @ a_RI.T
            out_MO = (low_MR @ b_OR.T).addmm_(x_MI, frozen.weight.T)
            if frozen.bias is not None:
                out_MO += frozen.bias
        ctx.save_for_backward(x, a_RI, b_OR, low_MR)
        # Not its weight, which may be packed.
        ctx.frozen, ctx.scale = frozen, scale
        return out_MO.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        [grad] = grads
        x, a_RI, b_OR, low_MR = ctx.saved_tensors
        grad_MO, x_MI = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        is_whole = x.dtype == torch.float32
        low_grad_MR = grad_MO @ b_OR
        if is_whole:
            low_grad_MR *= ctx.scale
        x_grad = None
        # Inputs of the first adapted layer need no gradient.
        if ctx.needs_input_grad[0]:
            first, second = (grad_MO, ctx.frozen.weight), (low_grad_MR, a_RI)
            first, second = (first, second) if is_whole else (second, first)
            x_grad = torch.mm(*first).addmm_(*second).view(x.shape)
        b_grad_OR = _float_product(grad_MO.T, low_MR).mul_(ctx.scale)
        return x_grad, None, _float_product(low_grad_MR.T, x_MI), b_grad_OR, None


def _float_product(left: Tensor, right: Tensor) -> Tensor:
    """A product in float32. A GPU has a kernel that multiplies halves and keeps their sum."""
    if left.device.type == "cuda" and left.dtype != torch.float32:
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()
