"""Adapters beside the weights: one module of a base model for all loaded policies. Each pass is of one policy."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.engine.embedded.activations import instantiate
from temper_gpu.model.lora import (
    RANK_BLOCK,
    Adapter,
    LoraLinear,
    adapted_modules,
    initial_tensors,
    require_in_effect,
    require_linear,
    target_modules,
)
from temper_gpu.model.models import BaseModel


@dataclass
class RunningPass:
    """The policy of the current pass, read by the layers of a model."""

    policy: str | None = None


class AdaptedLinear(nn.Module):
    """A frozen layer, and beside it what each loaded policy adds to it."""

    def __init__(self, frozen: nn.Linear, running: RunningPass) -> None:
        super().__init__()
        self.frozen = frozen
        self.policies: dict[str | None, LoraLinear] = {}
        self._running = running

    def forward(self, x: Tensor) -> Tensor:
        own = self.policies.get(self._running.policy)
        return self.frozen(x) if own is None else own(x)


class AdaptedModel:
    """A base model and its loaded policies. `for_pass` comes before each forward pass, and one pass after another."""

    def __init__(self, base: BaseModel) -> None:
        self._base = base
        self._module = instantiate(base)
        self._running = RunningPass()
        self._layers: dict[str, AdaptedLinear] = {}

    def place(self, key: str, adapter: Adapter) -> None:
        made = self._made(adapter)
        require_in_effect(self._base, made.__getitem__, adapter)
        self._put(key, made)

    def for_trial_pass(self) -> PreTrainedModel:
        """With a policy that adapts every layer that may be adapted: for proof and plan, which need no training."""
        targets = target_modules(self._module, None)
        tensors = initial_tensors(self._module, targets, RANK_BLOCK, 0)
        # Zeros cannot hide NaN in what they multiply.
        filled = {name: tensor if tensor.any() else torch.full_like(tensor, 0.01) for name, tensor in tensors.items()}
        self._put("trial", self._made(Adapter("", filled, RANK_BLOCK, RANK_BLOCK)))
        return self.for_pass("trial")

    def drop(self, key: str) -> None:
        for layer in self._layers.values():
            layer.policies.pop(key, None)

    def for_pass(self, policy: str | None) -> PreTrainedModel:
        self._running.policy = policy
        return self._module

    def _made(self, adapter: Adapter) -> dict[str, LoraLinear]:
        return {name: LoraLinear(self._linear(name), adapter, name) for name in adapted_modules(adapter)}

    def _linear(self, name: str) -> nn.Linear:
        replaced = self._layers.get(name)
        return replaced.frozen if replaced else require_linear(name, self._module.get_submodule(name))

    def _put(self, key: str, made: dict[str, LoraLinear]) -> None:
        for name, own in made.items():
            if name not in self._layers:
                self._layers[name] = AdaptedLinear(self._linear(name), self._running)
                self._module.set_submodule(name, self._layers[name])
            self._layers[name].policies[key] = own
