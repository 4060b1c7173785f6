"""A base model as the engine runs it: with its attention, its experts, and activations whose numbers do not depend on
an element's place (vectors.py)."""

from torch import Tensor, nn
from transformers.activations import ACT2CLS
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.engine.embedded.attention import ATTENTION
from temper_gpu.engine.embedded.experts import EXPERTS
from temper_gpu.engine.embedded.vectors import elementwise
from temper_gpu.model.layers import expert_layers
from temper_gpu.model.models import BaseModel


class WholeVectors(nn.Module):
    """An activation over a tensor of any size."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return elementwise(self.activation, x)


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
