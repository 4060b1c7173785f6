"""LoRA in training: PEFT's modules in place of the adapted layers of a frozen model."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.contract import LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.bits import without_bitsandbytes
from temper_gpu.model.lora import MAGNITUDE, adapted_layers, adapter_shapes, target_modules
from temper_gpu.model.models import BaseModel
from temper_gpu.training.lora_product import compute_as_one, keep_inputs_small
from temper_gpu.training.ranks import Ranks
from temper_gpu.training.recomputation import saved_bytes_per_token
from temper_gpu.training.sharding import ShardedBase, WholeBase


class LoraParameters:
    embeddings: frozenset[str] = frozenset()

    def __init__(self, base: BaseModel, lora: LoraConfig, ranks: Ranks) -> None:
        self._base = base
        self._lora = lora
        self.model: Any = base.instantiate(base.attention)
        self.saved_bytes_per_token = saved_bytes_per_token(self.model, lora, base.dtype)
        self._targets = target_modules(self.model, lora.target_modules)
        self._shapes = adapter_shapes(self.model, lora)
        self._adapted: Any = _with_lora(self.model, lora, self._targets, base.device)
        self.weights = ShardedBase(self.model, ranks, base.device) if ranks.shards else WholeBase()
        self.parameters = _lora_parameters(self._adapted)

    def require_same(self, what: str, tensors: Mapping[str, Tensor]) -> None:
        found = {name: tensor.shape for name, tensor in tensors.items()}
        if found != self._shapes:
            raise TemperError(
                "BadConfig",
                f"{what} must have rank {self._lora.rank} on {', '.join(self._targets)} of "
                f"{self._base.name}, but it has {len(found)} other tensors; train it with its own LoRA options",
            )

    def updated(self) -> None: ...

    @contextmanager
    def as_base(self) -> Iterator[None]:
        with self._adapted.disable_adapter():
            yield

    @contextmanager
    def dropping(self) -> Iterator[None]:
        # The adapted layers alone: a base model's dropout would make trainer and sampler disagree.
        layers = [module for module in self._adapted.modules() if hasattr(module, "lora_dropout")]
        for layer in layers:
            layer.train()
        try:
            yield
        finally:
            for layer in layers:
                layer.eval()

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


def _with_lora(model: PreTrainedModel, lora: LoraConfig, targets: list[str], device: torch.device) -> nn.Module:
    """Inserts PEFT's modules."""
    from temper_gpu.training.peft_alone import peft  # takes seconds; the engine answers its first calls meanwhile

    alpha: Any = lora.alpha  # typed int, but only its ratio to the rank is used
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=alpha,
        target_modules=targets,
        layers_to_transform=lora.layers,
        lora_dropout=lora.dropout,
        bias="none",
        use_rslora=lora.rslora,
        use_dora=lora.dora,
    )
    layers = [layer for _, layer in adapted_layers(model, targets, lora.layers)]
    is_half = bool(layers) and layers[0].weight.dtype != torch.float32
    with without_bitsandbytes():
        adapted: Any = peft.get_peft_model(model, config).eval()
    for layer in adapted.modules():
        if not isinstance(layer, peft.tuners.lora.Linear) or lora.dora:
            continue
        if not lora.dropout and (not is_half or joins_halves(device)):
            compute_as_one(layer)
        elif is_half:
            keep_inputs_small(layer)
    return adapted


def joins_halves(device: torch.device) -> bool:
    """Whether adapters compute in the weights' type below float32. A CPU keeps float32, which is as fast there."""
    return device.type == "cuda"


def _lora_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Trainable parameters under their file names, sorted."""
    trainable: Iterable[tuple[str, nn.Parameter]] = ((n, p) for n, p in model.named_parameters() if p.requires_grad)
    return dict(sorted((_file_name(name), parameter) for name, parameter in trainable))


def _file_name(name: str) -> str:
    stem = name.removesuffix(".default.weight")
    return stem if stem.endswith(MAGNITUDE) else f"{stem}.weight"
