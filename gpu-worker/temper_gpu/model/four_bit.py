"""Linear layers whose weights take 4 bits each: the frozen part of QLoRA (Dettmers et al. 2023, arXiv 2305.14314,
section 3).

A weight is one of the 16 numbers of NF4, times the largest magnitude of its block of 64. That is the base model then:
engine and trainer compute with the same unpacked numbers. They exist while a layer is computed, and again in its
backward pass, one layer at a time.

The paper's second quantization, that of the magnitudes, is left out: it takes their mean, and the order of that sum is
another one on another processor. So the packed bytes are the same on every machine.

Shapes: O outputs, I inputs, N blocks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.failures import TemperError
from temper_gpu.model.bits import import_bitsandbytes
from temper_gpu.model.layers import expert_layers, linear_layers

# Block size in weights. bitsandbytes 0.50 unpacks rows wrongly on CPUs if they end within a block, so each block is a
# row of its own here.
BLOCK = 64
NF4 = "nf4"
BITS_PER_WEIGHT = 4 + 32 / BLOCK


@dataclass(frozen=True)
class PackedWeight:
    """The weight of one layer, [O, I]."""

    # Two weights in each byte.
    codes: Tensor
    magnitudes_N: Tensor
    shape: torch.Size
    # Type of the unpacked weight.
    dtype: torch.dtype

    def unpack(self) -> Tensor:
        """The unpacked weight, [O, I], in new memory; the same bits on each call."""
        blocks_NB = torch.ops.bitsandbytes.dequantize_4bit(
            self.codes, self.magnitudes_N, BLOCK, NF4, (len(self.magnitudes_N), BLOCK), self.dtype
        )
        return blocks_NB.view(self.shape)

    def parts(self) -> list[tuple[str, Tensor]]:
        return [("codes", self.codes), ("magnitudes", self.magnitudes_N)]


def pack(weight: Tensor, device: torch.device) -> PackedWeight:
    """Packed where it is, and brought to that device: each step is of one weight or the largest of a block, so that
    all machines find the same bytes."""
    import_bitsandbytes("--load-in-4bit")
    blocks_NB = weight.detach().reshape(-1, BLOCK)
    codes, magnitudes_N = torch.ops.bitsandbytes.quantize_4bit(blocks_NB, BLOCK, NF4, torch.uint8)
    return PackedWeight(codes.to(device), magnitudes_N.to(device), weight.shape, weight.dtype)


def packed_layers(model: PreTrainedModel) -> dict[str, nn.Linear]:
    """Layers that are packed, by name: those with whole blocks that an adapter can modify. Embeddings, output head and
    norms stay."""
    return {name: layer for name, layer in linear_layers(model) if layer.weight.numel() % BLOCK == 0}


def pack_layers(model: PreTrainedModel, device: torch.device) -> dict[str, PackedWeight]:
    """Packs a loaded model, which releases each weight once it is packed. Keys are names of weights."""
    packed: dict[str, PackedWeight] = {}
    for name, layer in packed_layers(model).items():
        packed[f"{name}.weight"] = pack(layer.weight, device)
        del layer.weight
    return packed


def place_packed(model: PreTrainedModel, packed: Mapping[str, PackedWeight]) -> None:
    """Layers of a module without numbers, which has the others still to come."""
    for name, weight in packed.items():
        path = name.removesuffix(".weight")
        layer = model.get_submodule(path)
        # pyrefly: ignore[bad-argument-type]
        model.set_submodule(path, FourBitLinear(weight, getattr(layer, "bias", None)))


def require_packable(name: str, model: PreTrainedModel) -> None:
    """Refuses, before weights are read, a model whose layers cannot be packed."""
    if expert_layers(model):
        raise TemperError(
            "BadConfig",
            f"model {name} must have no mixture of experts to be loaded in 4 bits, because experts, most of its "
            "weights, stay unpacked; leave --load-in-4bit out, or use a dense model",
        )
    if not packed_layers(model):
        raise TemperError(
            "BadConfig",
            f"model {name} must have linear layers of whole blocks of {BLOCK} weights to be loaded in 4 bits, but has "
            "none; leave --load-in-4bit out",
        )


class FourBitLinear(nn.Linear):
    """Replaces a frozen layer. Its `weight` is unpacked at each read."""

    def __init__(self, packed: PackedWeight, bias: nn.Parameter | None) -> None:
        nn.Module.__init__(self)
        self.out_features, self.in_features = packed.shape
        self.packed = packed
        self.register_parameter("bias", bias)

    @property
    # pyrefly: ignore[bad-override]
    def weight(self) -> Tensor:
        return self.packed.unpack()

    def forward(self, input: Tensor) -> Tensor:
        return _Product.apply(input, self.packed, self.bias)


class _Product(torch.autograd.Function):
    """W x + b, which keeps W packed for its backward pass. Neither W nor b is trained."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, packed: PackedWeight, bias: Tensor | None) -> Tensor:
        ctx.packed = packed
        return F.linear(x, packed.unpack(), bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        [grad] = grads
        return grad @ ctx.packed.unpack(), None, None
