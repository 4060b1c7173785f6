"""LoRA adapters as values: PEFT's tensor names, reproducible bytes, a seeded start, and how they are put to use.

In float32 on a CPU the engine merges an adapter into the frozen weights. Elsewhere it stays beside them (`LoraLinear`).
Below float32 it has to: the type's last place is larger than what a few steps change, and a merge would round most of
it away. The trainer's layers are in training/lora_layers.py.

Shapes: M tokens, I inputs, O outputs, R rank.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from temper_gpu.contract import LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.change_kept import ChangeKept
from temper_gpu.model.layers import expert_layers, linear_layers

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

    from temper_gpu.model.models import BaseModel

PREFIX = "base_model.model."
LORA_A, LORA_B = ".lora_A.weight", ".lora_B.weight"
# DoRA's magnitudes: the length of each row of an adapted matrix.
MAGNITUDE = ".lora_magnitude_vector"
RANK_BLOCK = 64
PROBE_TOKENS = 16


@dataclass(frozen=True)
class Adapter:
    """The adapter whose safetensors file has this sha256."""

    sha256: str
    tensors: dict[str, Tensor]
    rank: int
    alpha: float
    # rsLoRA.
    is_rank_stabilized: bool = False

    @property
    def scale(self) -> float:
        """Factor of B A."""
        return lora_scale(self.rank, self.alpha, self.is_rank_stabilized)


def lora_scale(rank: int, alpha: float, is_rank_stabilized: bool) -> float:
    """alpha / rank (LoRA, arXiv 2106.09685), or alpha / √rank, with which the size of an update does not shrink as the
    rank grows (rsLoRA, arXiv 2312.03732)."""
    return alpha / (math.sqrt(rank) if is_rank_stabilized else rank)


class LoraLinear(nn.Module):
    """W x + s · B A x on a frozen layer's own storage, rounded once.

    Added to a product that was rounded already, as PEFT and vLLM do, a small adapter is lost as it is in a merge (42 %
    of it is left after a first step in bfloat16, tried). `addmm` takes it up into the sum, which is kept in float32.

    With DoRA each output is multiplied by its gain g: what the adapter adds to W x is g · s · B A x + (g − 1) · W x.
    """

    def __init__(self, frozen: nn.Linear, adapter: Adapter, module: str) -> None:
        super().__init__()
        self.frozen = frozen
        # Once: a packed layer unpacks it on each reading.
        weight = frozen.weight
        a_RI, b_OR = _factors(adapter, module)
        b_OR = b_OR * adapter.scale
        gains_O = _gains(adapter, module, weight)
        if gains_O is not None:
            b_OR = gains_O[:, None] * b_OR
        # Blocks of one size: which kernel multiplies them, and so the bits, does not depend on the adapter's rank.
        padding = -len(a_RI) % RANK_BLOCK
        like = {"device": weight.device, "dtype": weight.dtype}
        self._a_blocks = F.pad(a_RI, (0, 0, 0, padding)).to(**like).split(RANK_BLOCK)
        self._b_blocks = [block.contiguous() for block in F.pad(b_OR, (0, padding)).to(**like).split(RANK_BLOCK, 1)]
        self._added_gains_O = None if gains_O is None else (gains_O - 1).to(**like)

    def forward(self, x: Tensor) -> Tensor:
        x_MI = x.reshape(-1, x.shape[-1])
        weight, bias = self.frozen.weight, self.frozen.bias
        out_MO = torch.addmm(self.product(x_MI, weight), x_MI, weight.T)
        return (out_MO if bias is None else out_MO + bias).view(*x.shape[:-1], -1)

    def product(self, x_MI: Tensor, weight: Tensor) -> Tensor:
        """The adapter's alone, beside the frozen layer's weight."""
        (a_RI, b_OR), *others = zip(self._a_blocks, self._b_blocks, strict=True)
        low_MO = (x_MI @ a_RI.T) @ b_OR.T
        for a_RI, b_OR in others:
            low_MO = torch.addmm(low_MO, x_MI @ a_RI.T, b_OR.T)
        if self._added_gains_O is None:
            return low_MO
        return torch.addcmul(low_MO, x_MI @ weight.T, self._added_gains_O)


def attach(model: "PreTrainedModel", adapter: Adapter) -> "PreTrainedModel":
    """The adapter beside the weights of a module that shares them."""
    for name in adapted_modules(adapter):
        frozen = require_linear(name, model.get_submodule(name))
        model.set_submodule(name, LoraLinear(frozen, adapter, name))
    return model


def require_linear(name: str, layer: nn.Module) -> nn.Linear:
    if not isinstance(layer, nn.Linear):
        raise TemperError(
            "BadConfig",
            f"an adapter must target linear layers, but {name} is a {type(layer).__name__}; name other layers",
        )
    return layer


def _gains(adapter: Adapter, module: str, weight: Tensor) -> Tensor | None:
    """m / ‖W + s · B A‖, row by row (DoRA, arXiv 2402.09353, eq. 5); None: the adapter has no magnitudes."""
    magnitudes_O = adapter.tensors.get(PREFIX + module + MAGNITUDE)
    if magnitudes_O is None:
        return None
    a_RI, b_OR = (factor.to(weight.device) for factor in _factors(adapter, module))
    return magnitudes_O.float().to(weight.device) / adapted_norms(weight, a_RI, b_OR, adapter.scale)


def adapted_norms(weight: Tensor, a_RI: Tensor, b_OR: Tensor, scale: float) -> Tensor:
    return row_norms(weight.float() + scale * (b_OR @ a_RI))


def row_norms(weight: Tensor) -> Tensor:
    """Norms in float32, like PEFT's."""
    return torch.linalg.norm(weight.float(), dim=1)


@torch.no_grad()
def require_in_effect(base: "BaseModel", layer: Callable[[str], nn.Module], adapter: Adapter) -> None:
    """Refuses a policy whose adapter was rounded away. It would sample as the base model does, which its
    log-probabilities would hardly show.

    So the share of the adapter's change that remains is measured over all layers. An adapter so small that noise
    dominates is accepted.
    """
    kept = ChangeKept()
    eps = torch.finfo(base.dtype).eps
    for name in adapted_modules(adapter):
        weight, bias = base.weight(f"{name}.weight"), base.tensors.get(f"{name}.bias")
        x_MI = _probe_inputs(weight.shape[1]).to(weight.device, base.dtype)
        plain_MO = F.linear(x_MI, weight, bias).double()
        wanted_MO = _change(adapter, name, weight, x_MI.float())
        kept.add(wanted_MO, layer(name)(x_MI).double() - plain_MO, plain_MO * eps / 2)
    if kept.is_lost:
        raise TemperError(
            "PolicyMismatch",
            f"an adapter must take effect in the engine, but only {kept.share:.0%} of what {adapter.sha256} "
            f"changes is kept in {dtype_name(base.dtype)}; start the GPU worker with --dtype float32",
        )


def _change(adapter: Adapter, module: str, weight: Tensor, x_MI: Tensor) -> Tensor:
    """An adapter's addition to a layer's outputs, in float32."""
    a_RI, b_OR = (factor.to(weight.device) for factor in _factors(adapter, module))
    low_MO = adapter.scale * (x_MI @ a_RI.T @ b_OR.T)
    gains_O = _gains(adapter, module, weight)
    return low_MO if gains_O is None else gains_O * low_MO + (gains_O - 1) * (x_MI @ weight.float().T)


@cache
def _probe_inputs(num_inputs: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(PROBE_TOKENS, num_inputs, generator=generator, dtype=torch.float32)


def _factors(adapter: Adapter, module: str) -> tuple[Tensor, Tensor]:
    a_RI, b_OR = (adapter.tensors[PREFIX + module + end].float() for end in (LORA_A, LORA_B))
    return a_RI, b_OR


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def merged_weights(base: "BaseModel", adapter: Adapter) -> dict[str, Tensor]:
    """W + s · B A for every adapted matrix, in new storage; only in float32."""
    return {
        f"{module}.weight": merged_weight(base.weight(f"{module}.weight"), adapter, module)
        for module in adapted_modules(adapter)
    }


def adapted_modules(adapter: Adapter) -> list[str]:
    """Module names as the base model has them, sorted."""
    return sorted(name[len(PREFIX) : -len(LORA_A)] for name in adapter.tensors if name.endswith(LORA_A))


def merged_weight(weight: Tensor, adapter: Adapter, module: str) -> Tensor:
    if weight.dtype != torch.float32:
        raise TypeError(f"a merge into {weight.dtype} would round the adapter away")
    a, b = (factor.to(weight.device) for factor in _factors(adapter, module))
    merged = weight + adapter.scale * (b @ a)
    gains_O = _gains(adapter, module, weight)
    return merged if gains_O is None else gains_O[:, None] * merged


def target_modules(model: "PreTrainedModel", wanted: list[str] | None) -> list[str]:
    """Sorted last parts of names: the wanted ones, or those of every linear layer but the output head."""
    linear = {name for name, _ in linear_layers(model)}
    if wanted is None:
        return sorted({name.rsplit(".", 1)[-1] for name in linear})
    for target in wanted:
        if not any(_is_target(name, [target]) for name in linear):
            known = ", ".join(sorted({name.rsplit(".", 1)[-1] for name in linear}))
            raise TemperError(
                "BadConfig",
                "lora.targetModules (--lora-target-modules) must name linear layers of the base model, got "
                f"{target}{_why_frozen(model, target)}; "
                f"use {known}",
            )
    return sorted(wanted)


def _why_frozen(model: "PreTrainedModel", target: str) -> str:
    names = [name for name, _ in (*model.named_modules(), *model.named_parameters())]
    if not expert_layers(model) or not any(_is_target(name, [target]) for name in names):
        return ""
    return " (a mixture of experts trains its attention alone: experts and what stands beside them stay frozen)"


def adapted_layers(
    model: "PreTrainedModel", targets: Sequence[str], layers: Sequence[int] | None = None
) -> list[tuple[str, nn.Linear]]:
    """Adapted layers, sorted by name. `layers`: indices of the adapted ones; None: all."""
    found = [(name, layer) for name, layer in linear_layers(model) if _is_target(name, targets)]
    if layers is None:
        return found
    count: int = model.config.num_hidden_layers
    unknown = [layer for layer in layers if layer >= count]
    if unknown:
        raise TemperError(
            "BadConfig",
            f"lora.layers must be numbers of the base model's {count} layers, from 0 to {count - 1}, got {unknown[0]}; "
            "correct --lora-layers",
        )
    chosen = [(name, layer) for name, layer in found if _layer_number(name) in layers]
    if not chosen:
        raise TemperError(
            "BadConfig",
            f"lora.layers must hold one of {', '.join(targets)}, but layers {', '.join(map(str, layers))} have none of "
            "them; name other layers or other target modules",
        )
    return chosen


def adapter_shapes(model: "PreTrainedModel", lora: LoraConfig) -> dict[str, torch.Size]:
    """Shapes of an adapter's tensors, by their names in its file."""
    shapes: dict[str, torch.Size] = {}
    for name, layer in adapted_layers(model, target_modules(model, lora.target_modules), lora.layers):
        shapes[PREFIX + name + LORA_A] = torch.Size([lora.rank, layer.in_features])
        shapes[PREFIX + name + LORA_B] = torch.Size([layer.out_features, lora.rank])
        if lora.dora:
            shapes[PREFIX + name + MAGNITUDE] = torch.Size([layer.out_features])
    return shapes


def initial_tensors(
    model: "PreTrainedModel",
    targets: Sequence[str],
    rank: int,
    seed: int,
    layers: Sequence[int] | None = None,
    has_magnitudes: bool = False,
) -> dict[str, Tensor]:
    """A uniform in ±1/√in (Kaiming with a = √5, as PEFT), each module from a generator of its own; B zero; magnitudes
    (DoRA) those of the frozen weights."""
    tensors: dict[str, Tensor] = {}
    for name, layer in adapted_layers(model, targets, layers):
        bound = layer.in_features**-0.5
        generator = torch.Generator().manual_seed(_module_seed(seed, name))
        tensors[PREFIX + name + LORA_A] = torch.empty(rank, layer.in_features, dtype=torch.float32).uniform_(
            -bound, bound, generator=generator
        )
        tensors[PREFIX + name + LORA_B] = torch.zeros(layer.out_features, rank, dtype=torch.float32)
        if has_magnitudes:
            tensors[PREFIX + name + MAGNITUDE] = row_norms(layer.weight.detach()).cpu()
    return tensors


def adapter_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Reproducible bytes: sorted tensors, one metadata key (several would be in random order)."""
    return save({name: tensors[name].contiguous() for name in sorted(tensors)}, metadata={"format": "pt"})


def config_bytes(base_model: str, lora: LoraConfig, targets: Iterable[str]) -> bytes:
    """PEFT's adapter_config.json, written by ourselves: PEFT's order comes from a set and differs in every process."""
    config = {
        "base_model_name_or_path": base_model,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": int(lora.alpha) if lora.alpha == int(lora.alpha) else lora.alpha,
        "lora_dropout": float(lora.dropout),
        "peft_type": "LORA",
        "r": lora.rank,
        "target_modules": sorted(targets),
        "task_type": "CAUSAL_LM",
        "use_dora": lora.dora,
        "use_rslora": lora.rslora,
        **({} if lora.layers is None else {"layers_to_transform": sorted(lora.layers)}),
    }
    return (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()


def parse_adapter(adapter: bytes, config: bytes) -> Adapter:
    """Raises StoreCorrupt for bytes that are no adapter."""
    try:
        fields: dict[str, Any] = json.loads(config)
        rank, alpha = int(fields["r"]), float(fields["lora_alpha"])
        is_rank_stabilized = bool(fields.get("use_rslora", False))
        return Adapter(hashlib.sha256(adapter).hexdigest(), load(adapter), rank, alpha, is_rank_stabilized)
    except (ValueError, KeyError, SafetensorError) as error:
        raise TemperError(
            "StoreCorrupt", f"an adapter must be a safetensors file with PEFT's config, got {error}"
        ) from error


def lora_shape(config: bytes) -> str:
    """An adapter_config.json in words: `rank 16, alpha 32 on k_proj, q_proj of pocket`."""
    try:
        fields: dict[str, Any] = json.loads(config)
        targets = ", ".join(fields["target_modules"])
        kinds = "".join(
            f", {name}" for name, field in (("rsLoRA", "use_rslora"), ("DoRA", "use_dora")) if fields.get(field)
        )
        layers = fields.get("layers_to_transform")
        within = "" if layers is None else f" in layers {', '.join(map(str, layers))}"
        base = fields["base_model_name_or_path"]
        return f"rank {fields['r']}, alpha {fields['lora_alpha']}{kinds} on {targets}{within} of {base}"
    except (ValueError, KeyError) as error:
        raise TemperError("StoreCorrupt", f"an adapter must have PEFT's config, got {error}") from error


def _is_target(name: str, targets: Sequence[str]) -> bool:
    return any(re.search(rf"(^|\.){re.escape(target)}$", name) for target in targets)


def _layer_number(name: str) -> int | None:
    """The first number that follows two parts of a module's name, as PEFT reads it."""
    match = re.match(r".*?\.[^.]*\.(\d+)\.", f"{PREFIX}{name}")
    return None if match is None else int(match[1])


def _module_seed(seed: int, module: str) -> int:
    """A generator per module: adding a module to the targets changes no other module's start."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{module}".encode()).digest()[:7], "big")
