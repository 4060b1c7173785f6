"""A frozen layer and its adapter as one node of the graph: W x + b + s · B A x.

PEFT computes the adapter's part by itself, scales it and adds it, and its backward pass scales and adds once more. Each
of these reads and writes all outputs or inputs, which takes longer than the products of a small rank. Here each product
adds to the one before it.

Shapes: M tokens, I inputs, O outputs, R rank.
"""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class _LoraProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, frozen: nn.Linear, a_RI: Tensor, b_OR: Tensor, scale: float):
        x_MI = x.reshape(-1, x.shape[-1])
        low_MR = x_MI @ a_RI.T
        out_MO = F.linear(x_MI, frozen.weight, frozen.bias).addmm_(low_MR, b_OR.T, alpha=scale)
        ctx.save_for_backward(x, a_RI, b_OR, low_MR)
        # Not its weight, which may be packed.
        ctx.frozen, ctx.scale = frozen, scale
        return out_MO.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        [grad] = grads
        x, a_RI, b_OR, low_MR = ctx.saved_tensors
        grad_MO, x_MI = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        # Scaled where it is smallest.
        low_grad_MR = (grad_MO @ b_OR).mul_(ctx.scale)
        b_grad_OR = (grad_MO.T @ low_MR).mul_(ctx.scale)
        # What stands before the first adapted layer asks for none.
        needs_x = ctx.needs_input_grad[0]
        x_grad = (grad_MO @ ctx.frozen.weight).addmm_(low_grad_MR, a_RI).view(x.shape) if needs_x else None
        return x_grad, None, low_grad_MR.T @ x_MI, b_grad_OR, None


def compute_as_one(layer: Any) -> None:
    """Of one of PEFT's layers, without dropout or magnitudes, in the type of its frozen layer."""
    layer.forward = partial(_forward, layer)


def _forward(layer: Any, x: Tensor) -> Tensor:
    frozen = layer.base_layer
    if layer.disable_adapters:
        return frozen(x)
    a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    return _LoraProduct.apply(x, frozen, a, b, layer.scaling["default"])
