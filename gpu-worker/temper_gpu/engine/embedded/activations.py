"""A base model as the engine runs it: with its attention, its experts, and activations whose numbers do not depend on
an element's place.

torch's elementwise loops are cut by threads without regard to rows, and what is left of a thread's share after its
whole vectors is computed by other code (the C library's `exp`), with other last bits. So shares are made of whole
vectors: the input is padded until they are. Where they are already, nothing is copied.

Shapes: M tokens of a pass, W width.
"""

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.activations import ACT2CLS

from temper_gpu.engine.embedded.attention import ATTENTION
from temper_gpu.engine.embedded.experts import EXPERTS
from temper_gpu.model.layers import expert_layers
from temper_gpu.model.models import BaseModel

# Two vectors of AVX-512 in the smallest type, of which a loop takes as many at once.
WHOLE_VECTORS = 64
# The least elements that torch gives a thread; some kernels take less, all of them a power of two.
GRAINS = (32768, 16384, 4096, 2048, 1024)


class WholeVectors(nn.Module):
    """An activation over a tensor of any size."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        num_elements = x.numel()
        padded = padded_size(num_elements, torch.get_num_threads())
        if x.device.type != "cpu" or padded == num_elements:
            return self.activation(x)
        flat = F.pad(x.reshape(-1), (0, padded - num_elements))
        return self.activation(flat)[:num_elements].view(x.shape)


@lru_cache(maxsize=4096)
def padded_size(num_elements: int, num_threads: int) -> int:
    """The next size that every number of threads which torch may choose cuts into whole vectors."""
    size = -(-num_elements // WHOLE_VECTORS) * WHOLE_VECTORS
    while not all(size % (WHOLE_VECTORS * threads) == 0 for threads in _threads_used(size, num_threads)):
        size += WHOLE_VECTORS
    return size


def _threads_used(num_elements: int, num_threads: int) -> set[int]:
    return {min(num_threads, -(-num_elements // grain)) for grain in GRAINS}


def instantiate(base: BaseModel, overrides: dict[str, Tensor] | None = None) -> PreTrainedModel:
    model = base.instantiate(ATTENTION, overrides)
    if expert_layers(model):
        model.set_experts_implementation(EXPERTS)
    kinds = tuple({nn.SiLU, nn.GELU, nn.Sigmoid, *(kind for kind in map(_class, ACT2CLS.values()) if kind)})
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, kinds):
                setattr(parent, name, WholeVectors(child))
    return model


def _class(entry: object) -> type[nn.Module] | None:
    kind = entry[0] if isinstance(entry, tuple) else entry
    return kind if isinstance(kind, type) and issubclass(kind, nn.Module) else None
