"""LoRA's first product below float32, without a copy of its inputs.

PEFT turns a layer's inputs into float32 and keeps that copy for the backward pass, one for each adapted layer. The
numbers are the same if the inputs are kept as they are, as other parts of the model keep them anyway, and turned again.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class _CastProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return F.linear(x.to(weight.dtype), weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        [grad] = grads
        x, weight = ctx.saved_tensors
        needs_x, needs_weight = ctx.needs_input_grad
        grad_MR = grad.reshape(-1, grad.shape[-1])
        grad_x = (grad_MR @ weight).to(x.dtype).view(x.shape) if needs_x else None
        return grad_x, grad_MR.T @ x.reshape(-1, x.shape[-1]).to(weight.dtype) if needs_weight else None


def keep_inputs_small(layer: Any) -> None:
    """Replaces the forward of a PEFT layer whose adapter is in float32."""
    first: nn.Linear = layer.lora_A["default"]
    layer.cast_input_dtype_enabled = False
    # pyrefly: ignore[bad-assignment]
    first.forward = lambda x: _CastProduct.apply(x, first.weight)
