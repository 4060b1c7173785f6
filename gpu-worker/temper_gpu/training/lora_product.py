"""A frozen layer and its adapter as one node of the graph: W x + b + s · B A x.

PEFT computes the adapter's part separately, scales it and adds it, and its backward pass scales and adds again. Each of
these reads and writes all outputs or inputs, which takes longer than the products of a small rank. Here each product
adds to the one before it.

Below float32, PEFT's factors, products and outputs are float32 beside the frozen layer. Here they have its type, as in
the engine (model/lora.py): what the adapter adds comes first, and is taken up into the frozen layer's sum, so it is
rounded once. Gradients of the factors are float32.

Shapes: M tokens, I inputs, O outputs, R rank.
"""

from types import MethodType
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
        # Scaling is cheapest here, on the smallest tensor.
        low_grad_MR = (grad_MO @ b_OR).mul_(ctx.scale)
        b_grad_OR = (grad_MO.T @ low_MR).mul_(ctx.scale)
        # Inputs of the first adapted layer need no gradient.
        needs_x = ctx.needs_input_grad[0]
        x_grad = (grad_MO @ ctx.frozen.weight).addmm_(low_grad_MR, a_RI).view(x.shape) if needs_x else None
        return x_grad, None, low_grad_MR.T @ x_MI, b_grad_OR, None


class _HalfLoraProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, frozen: nn.Linear, a_RI: Tensor, b_OR: Tensor, scale: float):
        x_MI = x.reshape(-1, x.shape[-1])
        # s · B, as the engine rounds it.
        a_half_RI, b_half_OR = a_RI.to(x.dtype), (b_OR * scale).to(x.dtype)
        low_MR = x_MI @ a_half_RI.T
        out_MO = (low_MR @ b_half_OR.T).addmm_(x_MI, frozen.weight.T)
        if frozen.bias is not None:
            out_MO += frozen.bias
        ctx.save_for_backward(x, a_half_RI, b_half_OR, low_MR)
        ctx.frozen, ctx.scale = frozen, scale
        return out_MO.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        [grad] = grads
        x, a_half_RI, b_half_OR, low_MR = ctx.saved_tensors
        grad_MO, x_MI = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        low_grad_MR = grad_MO @ b_half_OR
        b_grad_OR = _float_product(grad_MO.T, low_MR).mul_(ctx.scale)
        needs_x = ctx.needs_input_grad[0]
        x_grad = (low_grad_MR @ a_half_RI).addmm_(grad_MO, ctx.frozen.weight).view(x.shape) if needs_x else None
        return x_grad, None, _float_product(low_grad_MR.T, x_MI), b_grad_OR, None


def _float_product(left: Tensor, right: Tensor) -> Tensor:
    """Multiplies halves into float32. A GPU has a kernel for it that keeps the sum."""
    if left.device.type == "cuda":
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()


def compute_as_one(layer: Any) -> None:
    """The forward of a PEFT layer without dropout or magnitudes."""
    layer.forward = MethodType(_forward, layer)


def _forward(layer: Any, x: Tensor) -> Tensor:
    frozen = layer.base_layer
    if layer.disable_adapters:
        return frozen(x)
    a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    product = _LoraProduct if x.dtype == a.dtype else _HalfLoraProduct
    return product.apply(x, frozen, a, b, layer.scaling["default"])


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
    """The forward of a PEFT layer whose adapter computes in float32. PEFT keeps a float32 copy of the inputs for the
    backward pass. Here they are kept as they are, as other parts of the model keep them anyway, and turned again."""
    first: nn.Linear = layer.lora_A["default"]
    layer.cast_input_dtype_enabled = False
    # pyrefly: ignore[bad-assignment]
    first.forward = lambda x: _CastProduct.apply(x, first.weight)
