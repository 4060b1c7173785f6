"""What a run begins with: a seeded adapter, the base model's own weights where all of them train, or, of a fork, the
bytes of another run's checkpoint."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from temper_gpu.commits.checkpoints import Manifest, Parent, PolicyName, read_parent, require_kept
from temper_gpu.commits.same_base import require_same_base
from temper_gpu.contract import BlobRef, Checkpoint, InitialiseInput, LoraConfig, StartAdapter
from temper_gpu.failures import TemperError
from temper_gpu.model.full_weights import full_config_bytes, initial_weights
from temper_gpu.model.lora import (
    adapter_bytes,
    adapter_shapes,
    config_bytes,
    initial_tensors,
    lora_shape,
    target_modules,
)
from temper_gpu.model.models import BaseModel, Models
from temper_gpu.store import Store
from temper_gpu.training.optimizers import initial_optimizer_tensors

# Fields of PEFT's config that decide what an adapter computes, beside its tensors; and what they are where absent.
SHAPING: Mapping[str, object] = {"r": None, "lora_alpha": None, "use_rslora": False, "use_dora": False}


@dataclass(frozen=True)
class Start:
    base: BaseModel
    # Of a fork, by hash and step alone: the parent's name stands in run.json, outside every hash.
    parent: Parent | None
    adapter: BlobRef
    adapter_config: BlobRef
    optimizer: BlobRef


def make_start(library: Models, store: Store, work: InitialiseInput) -> Start:
    if work.parent is not None:
        return _fork(library, store, work, work.parent)
    if work.start_adapter is not None:
        return _import(library, store, work, work.start_adapter)
    return _plain(library, store, work) if work.lora is None else _seed(library, store, work, work.lora)


def _plain(library: Models, store: Store, work: InitialiseInput) -> Start:
    """The base model's weights, and AdamW's zero state."""
    base = library.get(work.base_model)
    weights = {name: tensor.cpu() for name, tensor in initial_weights(base).items()}
    return _committed(store, base, weights, full_config_bytes(work.base_model))


def _seed(library: Models, store: Store, work: InitialiseInput, lora: LoraConfig) -> Start:
    """An adapter that changes nothing yet (B is zero), and AdamW's zero state."""
    base = library.get(work.base_model)
    model = base.instantiate(base.attention)
    targets = target_modules(model, lora.target_modules)
    adapter = initial_tensors(model, targets, lora.rank, work.seed, lora.layers, lora.dora)
    return _committed(store, base, adapter, config_bytes(work.base_model, lora, targets))


def _committed(store: Store, base: BaseModel, trained: Mapping[str, Tensor], config: bytes) -> Start:
    return Start(
        base=base,
        parent=None,
        adapter=store.put_blob(adapter_bytes(trained)),
        adapter_config=store.put_blob(config),
        optimizer=store.put_blob(adapter_bytes(initial_optimizer_tensors(trained))),
    )


def _import(library: Models, store: Store, work: InitialiseInput, files: StartAdapter) -> Start:
    """An adapter that PEFT saved, in float32 and under names in our order; AdamW's zero state. Other adapters than the
    run's options describe are refused: the trainer would go on with another policy than the one that was meant."""
    lora = work.lora
    if lora is None:
        raise TemperError(
            "BadConfig", "a run that trains all weights must begin without an adapter, but was given one; leave it out"
        )
    base, given = library.get(work.base_model), store.get_blob(files.config)
    model = base.instantiate(base.attention)
    targets = target_modules(model, lora.target_modules)
    try:
        found = load(store.get_blob(files.weights))
    except SafetensorError as error:
        raise TemperError(
            "BadConfig", f"the adapter of a run must be a safetensors file, got {error}; pass another folder"
        ) from error
    expected = config_bytes(work.base_model, lora.model_copy(update={"dropout": 0}), targets)
    different = [name for name in SHAPING if _field(given, name) != _field(expected, name)]
    if different:
        values = ", ".join(f"{name} {_field(given, name)} instead of {_field(expected, name)}" for name in different)
        raise TemperError(
            "BadConfig", f"the adapter of a run must have the run's LoRA options, but has {values}; leave them out"
        )
    _require_shapes(work.base_model, lora, adapter_shapes(model, lora), found)
    tensors = {name: tensor.float() for name, tensor in found.items()}
    broken = next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)
    if broken is not None:
        raise TemperError(
            "BadConfig", f"the adapter of a run must hold finite numbers alone, but {broken} does not; pass another"
        )
    return _committed(store, base, tensors, config_bytes(work.base_model, lora, targets))


def _field(config: bytes, name: str) -> object:
    try:
        return json.loads(config).get(name, SHAPING[name])
    except (ValueError, AttributeError) as error:
        raise TemperError(
            "BadConfig", f"the adapter of a run must have PEFT's adapter_config.json, got {error}; pass another folder"
        ) from error


def _require_shapes(
    base_model: str, lora: LoraConfig, wanted: Mapping[str, torch.Size], found: Mapping[str, Tensor]
) -> None:
    shapes = {name: tensor.shape for name, tensor in found.items()}
    if shapes == wanted:
        return
    both = sorted(wanted.keys() & shapes.keys())
    differing = next((name for name in both if wanted[name] != shapes[name]), None)
    odd = [*sorted(wanted.keys() - shapes.keys()), *sorted(shapes.keys() - wanted.keys())]
    if differing is None:
        detail = f"{odd[0]} is in only one of them ({len(shapes)} tensors, {len(wanted)} needed)"
    else:
        detail = f"{differing} is {list(shapes[differing])} instead of {list(wanted[differing])}"
    raise TemperError(
        "BadConfig",
        f"the adapter of a run must fit {base_model} with rank {lora.rank}, but {detail}; pass the base "
        "model that it was trained on, or another adapter",
    )


def _fork(library: Models, store: Store, work: InitialiseInput, checkpoint: Checkpoint) -> Start:
    """The parent's very blobs: nothing is copied. They are read, so that a fork of lost weights fails here."""
    name = str(PolicyName(checkpoint.run, checkpoint.branch, checkpoint.step))
    source = read_parent(store, checkpoint).manifest
    if source.base_model != work.base_model:
        raise TemperError(
            "BadConfig",
            f"a fork must keep its parent's base model: {name} uses {source.base_model}, but the fork asks for "
            f"{work.base_model}; leave --base-model out",
        )
    base = library.get(work.base_model)
    require_same_base(name, source, base)
    _require_same_kind(name, source, work)
    require_kept(store, checkpoint.run, source)
    if work.lora is not None:
        _require_same_lora(name, store.get_blob(source.adapter_config), work.base_model, work.lora, base)
    for blob in (source.adapter, source.optimizer):
        store.get_blob(blob)
    parent = Parent(step=checkpoint.step, manifest_sha256=checkpoint.manifest_sha256)
    return Start(base, parent, source.adapter, source.adapter_config, source.optimizer)


def _require_same_kind(name: str, source: Manifest, work: InitialiseInput) -> None:
    if bool(source.full_fine_tuning) != (work.lora is None):
        kinds = ("a LoRA adapter", "all weights")
        its, own = kinds if work.lora is None else reversed(kinds)
        raise TemperError(
            "BadConfig",
            f"a fork must train what its parent trains: {name} has {its}, but the fork asks for {own}; "
            f"{'leave --full-fine-tuning out' if work.lora is None else 'pass --full-fine-tuning'}",
        )


def _require_same_lora(name: str, recorded: bytes, base_model: str, lora: LoraConfig, base: BaseModel) -> None:
    targets = target_modules(base.instantiate(base.attention), lora.target_modules)
    asked = config_bytes(base_model, lora, targets)
    if lora_shape(recorded) != lora_shape(asked):
        raise TemperError(
            "BadConfig",
            f"a fork must keep its parent's LoRA: {name} has {lora_shape(recorded)}, but the fork asks for "
            f"{lora_shape(asked)}; leave the LoRA options out",
        )
