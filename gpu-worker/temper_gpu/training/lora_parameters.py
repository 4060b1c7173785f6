"""LoRA in training: adapters beside the layers of a frozen model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from temper_gpu.contract import LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import LORA_A, LORA_B, MAGNITUDE, PREFIX, target_modules
from temper_gpu.model.models import BaseModel
from temper_gpu.training.lora_layers import LoraLayer, Mode, adapt
from temper_gpu.training.ranks import Ranks
from temper_gpu.training.recomputation import saved_bytes_per_token
from temper_gpu.training.sharding import ShardedBase, WholeBase


class LoraParameters:
    embeddings: frozenset[str] = frozenset()

    def __init__(self, base: BaseModel, lora: LoraConfig, ranks: Ranks) -> None:
        self._base = base
        self._lora = lora
        self._mode = Mode()
        self.model: Any = base.instantiate(base.attention)
        self.saved_bytes_per_token = saved_bytes_per_token(self.model, lora, base.dtype)
        self._targets = target_modules(self.model, lora.target_modules)
        layers = adapt(self.model, lora, base.device, self._mode)
        self.weights = ShardedBase(self.model, ranks, base.device) if ranks.shards else WholeBase()
        self.parameters = _by_file_name(layers)

    def require_same(self, what: str, tensors: Mapping[str, Tensor]) -> None:
        found, own = ({name: tensor.shape for name, tensor in of.items()} for of in (tensors, self.parameters))
        if found != own:
            raise TemperError(
                "BadConfig",
                f"{what} must have rank {self._lora.rank} on {', '.join(self._targets)} of "
                f"{self._base.name}, but it has {len(found)} other tensors; train it with its own LoRA options",
            )

    def updated(self) -> None: ...

    @contextmanager
    def as_base(self) -> Iterator[None]:
        self._mode.is_base = True
        try:
            yield
        finally:
            self._mode.is_base = False

    @contextmanager
    def dropping(self) -> Iterator[None]:
        # The adapted layers alone: a base model's dropout would make trainer and sampler disagree.
        self._mode.dropout = self._lora.dropout
        try:
            yield
        finally:
            self._mode.dropout = 0.0

    @contextmanager
    def as_checkpoint(self, tensors: Mapping[str, Tensor]) -> Iterator[None]:
        self.require_same("an adapter to be compared with", tensors)
        own = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}
        try:
            self._lay_in(tensors)
            yield
        finally:
            self._lay_in(own)

    @torch.no_grad()
    def _lay_in(self, tensors: Mapping[str, Tensor]) -> None:
        for name, parameter in self.parameters.items():
            parameter.copy_(tensors[name])


def _by_file_name(layers: Mapping[str, LoraLayer]) -> dict[str, nn.Parameter]:
    """Trainable parameters under their file names, sorted."""
    parameters: dict[str, nn.Parameter] = {}
    for name, layer in layers.items():
        named = {LORA_A: layer.a_RI, LORA_B: layer.b_OR, MAGNITUDE: layer.magnitudes_O}
        parameters |= {PREFIX + name + end: parameter for end, parameter in named.items() if parameter is not None}
    return dict(sorted(parameters.items()))
