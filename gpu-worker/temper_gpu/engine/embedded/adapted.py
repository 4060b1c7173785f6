"""Adapters beside the weights: one module of a base model for all loaded policies, and passes that they share.

A pass of one policy takes `LoraLinear` as it is. In a pass of several, each policy's rows are gathered, padded to a
proven size and multiplied with its factors. The products go back to their rows, and the frozen weights are multiplied
once for all rows. A row without an adapter starts from the layer's bias, or from zero, where others start from their
adapter's product. The proof at start (proof.py) compares all of them with what each policy alone gives.

Shapes: M tokens of a pass, N of one policy, P these padded, I inputs, O outputs.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Literal

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.engine.embedded.activations import instantiate
from temper_gpu.engine.embedded.sizes import Sizes
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

# Which policies may share a pass: any, the base model included; those whose adapters change the same layers; none.
Mixing = Literal["any", "alike", "none"]
# Tokens of a pass that follow one another, and whose they are: the policy, and how many.
Run = tuple[str | None, int]


@dataclass(frozen=True)
class Share:
    """One policy's rows of a pass: where they are, and these padded to a proven size."""

    policy: str | None
    rows_N: Tensor
    padded_P: Tensor


@dataclass(frozen=True)
class Sharing:
    """Owners of a pass's rows. Padding has none."""

    # None: several owners.
    shares: tuple[Share, ...] = ()
    # The owner of all rows, if there are no shares.
    sole: str | None = None
    _plain: dict[tuple[str | None, ...], Tensor | None] = field(default_factory=dict)

    def plain(self, adapted: tuple[str | None, ...], num_rows: int) -> Tensor | None:
        """[M, 1]: rows of policies that do not adapt a layer, where these do; None: there are no such rows."""
        if adapted not in self._plain:
            others = [share for share in self.shares if share.policy not in adapted]
            self._plain[adapted] = None if not others else self._mask(others, num_rows)
        return self._plain[adapted]

    def _mask(self, shares: list[Share], num_rows: int) -> Tensor:
        mask_M = torch.zeros(num_rows, dtype=torch.bool, device=shares[0].rows_N.device)
        for share in shares:
            mask_M.index_fill_(0, share.rows_N, True)
        return mask_M[:, None]


@dataclass
class RunningPass:
    """State of the current pass, read by the layers of a model."""

    sharing: Sharing = field(default_factory=Sharing)


class AdaptedLinear(nn.Module):
    """A frozen layer, and beside it what each loaded policy adds to it."""

    def __init__(self, frozen: nn.Linear, running: RunningPass) -> None:
        super().__init__()
        self.frozen = frozen
        self.policies: dict[str | None, LoraLinear] = {}
        self._running = running

    def forward(self, x: Tensor) -> Tensor:
        sharing = self._running.sharing
        if sharing.shares:
            return self._shared(x, sharing)
        own = self.policies.get(sharing.sole)
        return self.frozen(x) if own is None else own(x)

    def _shared(self, x: Tensor, sharing: Sharing) -> Tensor:
        adapted = [(share, self.policies[share.policy]) for share in sharing.shares if share.policy in self.policies]
        if not adapted:
            return self.frozen(x)
        x_MI = x.reshape(-1, x.shape[-1])
        plain_M1 = sharing.plain(tuple(share.policy for share, _ in adapted), len(x_MI))
        weight, bias = self.frozen.weight, self.frozen.bias
        out_MO = torch.addmm(self._starts(x_MI, weight, adapted, plain_M1 is not None), x_MI, weight.T)
        if bias is not None:
            biased_MO = out_MO + bias
            out_MO = biased_MO if plain_M1 is None else torch.where(plain_M1, out_MO, biased_MO)
        return out_MO.view(*x.shape[:-1], -1)

    def _starts(self, x_MI: Tensor, weight: Tensor, adapted: list[tuple[Share, LoraLinear]], has_plain: bool) -> Tensor:
        """Outputs that the product of the frozen weights is added to."""
        starts_MO = x_MI.new_zeros(len(x_MI), len(weight))
        if has_plain and self.frozen.bias is not None:
            starts_MO.copy_(self.frozen.bias)
        for share, own in adapted:
            product_PO = own.product(x_MI.index_select(0, share.padded_P), weight)
            starts_MO.index_copy_(0, share.rows_N, product_PO[: len(share.rows_N)])
        return starts_MO


class AdaptedModel:
    """A base model and its loaded policies. `for_pass` comes before each forward pass, and one pass after another."""

    def __init__(self, base: BaseModel, sizes: Sizes, mixing: Mixing = "none") -> None:
        self._base = base
        self._sizes = sizes
        self._mixing = mixing
        self._module = instantiate(base)
        self._running = RunningPass()
        self._layers: dict[str, AdaptedLinear] = {}
        # Modules that were replaced.
        self._frozen: dict[str, nn.Linear] = {}
        # The names of the layers that a policy adapts.
        self._adapted: dict[str | None, frozenset[str]] = {None: frozenset()}

    @property
    def policies(self) -> list[str | None]:
        return list(self._adapted)

    def place(self, key: str, adapter: Adapter) -> None:
        made = self._made(adapter)
        require_in_effect(self._base, made.__getitem__, adapter)
        self._put(key, made)

    def place_trial(self, keys: Sequence[str]) -> None:
        """Policies that adapt every layer that may be adapted: for proof and plan, which need no training."""
        targets = target_modules(self._module, None)
        tensors = initial_tensors(self._module, targets, RANK_BLOCK, 0)
        # Zeros cannot hide NaN in what they multiply.
        filled = {name: tensor if tensor.any() else torch.full_like(tensor, 0.01) for name, tensor in tensors.items()}
        made = self._made(Adapter("", filled, RANK_BLOCK, RANK_BLOCK))
        for key in keys:
            self._put(key, made)

    def drop(self, key: str) -> None:
        for name in self._adapted.pop(key):
            del self._layers[name].policies[key]

    def batch_group(self, key: str | None) -> Hashable:
        """Policies of one group may share a pass."""
        return {"any": "any", "alike": self._adapted[key], "none": key}[self._mixing]

    def for_pass(self, runs: Sequence[Run]) -> PreTrainedModel:
        owners = {policy for policy, _ in runs}
        self._running.sharing = Sharing(sole=owners.pop()) if len(owners) == 1 else Sharing(self._shares(runs))
        return self._module

    def _shares(self, runs: Sequence[Run]) -> tuple[Share, ...]:
        rows: dict[str | None, list[int]] = {}
        start = 0
        for policy, num_tokens in runs:
            rows.setdefault(policy, []).extend(range(start, start + num_tokens))
            start += num_tokens
        return tuple(self._share(policy, own) for policy, own in rows.items())

    def _share(self, policy: str | None, rows: list[int]) -> Share:
        padding = self._sizes.at_least(len(rows)) - len(rows)
        padded_P = torch.tensor([*rows, *repeat(rows[0], padding)], device=self._base.device)
        return Share(policy, padded_P[: len(rows)], padded_P)

    def _made(self, adapter: Adapter) -> dict[str, LoraLinear]:
        return {name: LoraLinear(self._linear(name), adapter, name) for name in adapted_modules(adapter)}

    def _linear(self, name: str) -> nn.Linear:
        return self._frozen.get(name) or require_linear(name, self._module.get_submodule(name))

    def _put(self, key: str, made: dict[str, LoraLinear]) -> None:
        for name, own in made.items():
            if name not in self._layers:
                self._frozen[name] = self._linear(name)
                self._layers[name] = AdaptedLinear(self._frozen[name], self._running)
                self._module.set_submodule(name, self._layers[name])
            self._layers[name].policies[key] = own
        self._adapted[key] = frozenset(made)
