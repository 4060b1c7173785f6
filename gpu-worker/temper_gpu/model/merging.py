"""A policy as a plain model, which needs neither Temper nor PEFT: a base model with an adapter merged into it, or with
other weights.

LoRA computes W x + α / r · B A x beside each frozen matrix W (Hu et al. 2021, arXiv:2106.09685, section 4.1), so the
same policy is a plain model with W′ = W + α / r · B A in place of W. W′ is computed in float32 and rounded once, to the
requested type. Below float32 that rounding may remove most of a small adapter (model/lora.py): the remaining share is
measured, and a lost policy is refused. Weights of full fine-tuning are rounded to another type by the same rule.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.failures import TemperError
from temper_gpu.model.change_kept import ChangeKept
from temper_gpu.model.full_weights import FullWeights, require_weights
from temper_gpu.model.lora import Adapter, adapted_modules, dtype_name, merged_weight
from temper_gpu.model.models import BaseModel


@dataclass(frozen=True)
class MergedModel:
    model: PreTrainedModel
    # Share of the adapter's change that remains in the type of the weights; None: it changes nothing.
    kept: float | None


@torch.no_grad()
def merge(base: BaseModel, policy: Adapter | FullWeights, dtype: torch.dtype) -> MergedModel:
    """Leaves `base` as it is. One matrix at a time is in float32."""
    kept = ChangeKept()
    merged: dict[str, Tensor] = {}
    for names, exact, wanted in _changed(base, policy):
        rounded = cast(names[0], wanted, dtype)
        merged |= dict.fromkeys(names, rounded)
        plain = exact.to(dtype).double()
        kept.add(wanted - exact, rounded.double() - plain, plain * torch.finfo(dtype).eps / 2)
    unpacked = {name: packed.unpack() for name, packed in base.packed.items() if name not in merged}
    tensors = {**cast_all({**base.tensors, **unpacked}, merged, dtype), **merged}
    model = replace(base, tensors=tensors, packed={}).instantiate(base.attention)
    say_what_is_tied(model)
    if base.generation_config is not None:
        model.generation_config = base.generation_config
    # A full policy in the base model's type was sampled with exactly these weights.
    is_as_sampled = isinstance(policy, FullWeights) and dtype == base.dtype
    return MergedModel(model, None if is_as_sampled else _kept(policy, kept, dtype))


def say_what_is_tied(model: PreTrainedModel) -> None:
    """Corrects `tie_word_embeddings` for a head with separate weights. A fine-tuning may have untied it, and kept the
    config, and a loader that trusts the config would replace the head by the embedding."""
    embedding: Any = model.get_input_embeddings()
    head: Any = model.get_output_embeddings()
    if head is not None and head.weight.data_ptr() != embedding.weight.data_ptr():
        for config in (model.config, model.config.get_text_config()):
            config.tie_word_embeddings = False


def _changed(base: BaseModel, policy: Adapter | FullWeights) -> Iterator[tuple[list[str], Tensor, Tensor]]:
    """Changed weights under all of their names: before and after, in float32."""
    if isinstance(policy, FullWeights):
        require_weights(base, "a policy", policy.tensors)
        for name, names in base.parameter_names.items():
            yield names, base.tensors[name].float(), policy.tensors[name]
        return
    for module in adapted_modules(policy):
        name = f"{module}.weight"
        exact = base.weight(name).float()
        yield [name], exact, merged_weight(exact, policy, module)


def _kept(policy: Adapter | FullWeights, kept: ChangeKept, dtype: torch.dtype) -> float | None:
    if kept.is_lost:
        is_adapter = isinstance(policy, Adapter)
        what, whose = ("merged", "its adapter") if is_adapter else ("rounded", "training")
        other = ", or export the adapter alone with --format peft" if is_adapter else ""
        raise TemperError(
            "PolicyMismatch",
            f"a {what} model must keep what {whose} changes, but only {kept.share:.0%} of what {policy.sha256} "
            f"changes is left in {dtype_name(dtype)}; pass --dtype float32{other}",
        )
    return kept.share


def cast_all(tensors: Mapping[str, Tensor], left_out: Collection[str], dtype: torch.dtype) -> dict[str, Tensor]:
    """Tied weights are one tensor under two names, and stay one."""
    made: dict[int, Tensor] = {}
    return {
        name: made.setdefault(tensor.data_ptr(), cast(name, tensor, dtype))
        for name, tensor in tensors.items()
        if name not in left_out
    }


def cast(name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """float16 ends at 65,504: a larger weight would become infinite."""
    if not tensor.is_floating_point():
        return tensor
    rounded = tensor.to(dtype)
    if not torch.isfinite(rounded).all() and torch.isfinite(tensor).all():
        raise TemperError(
            "BadConfig",
            f"{dtype_name(dtype)} must hold every weight, but {name} has one of {float(tensor.abs().max()):.3g}; pass "
            "--dtype bfloat16 or --dtype float32",
        )
    return rounded
