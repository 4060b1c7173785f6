"""The start of a run: a seeded adapter, the base model's own weights if all of them train, or a fork's parent's
bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from temper_gpu.commits.checkpoints import Manifest, PolicyName, read_parent, require_trainable
from temper_gpu.commits.same_base import require_same_base
from temper_gpu.contract import (
    MAIN_POLICY,
    BlobRef,
    Checkpoint,
    InitialiseInput,
    LoraConfig,
    Parent,
    PolicyFiles,
    StartAdapter,
)
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

# Fields of PEFT's config, besides tensors, that decide what an adapter computes, with their defaults.
SHAPING: Mapping[str, object] = {"r": None, "lora_alpha": None, "use_rslora": False, "use_dora": False}


@dataclass(frozen=True)
class Start:
    base: BaseModel
    # The fork's parent by hash and step alone: its name is in run.json, outside every hash.
    parent: Parent | None
    adapter: BlobRef
    adapter_config: BlobRef
    optimizer: BlobRef
    # Policies beside the main one.
    policies: Mapping[str, PolicyFiles] = field(default_factory=dict)
    # Those of the fork's parent.
    baselines: Mapping[str, float] | None = None


def make_start(library: Models, store: Store, input: InitialiseInput) -> Start:
    """Each further policy has an adapter of its own, from a seed of its own. It begins like the main policy instead if
    that one does not begin fresh, and the fork's parent lacks it."""
    if input.lora is None and input.policies:
        raise TemperError(
            "BadConfig",
            f"a run that trains all weights must have one policy, but its roles have {', '.join(input.policies)} too; "
            "leave --full-fine-tuning out, or let policy() play these roles",
        )
    if input.parent is not None:
        return _like_main(_fork(library, store, input, input.parent), input)
    if input.start_adapter is not None:
        return _like_main(_import(library, store, input, input.start_adapter), input)
    return _plain(library, store, input) if input.lora is None else _seed(library, store, input, input.lora)


def _like_main(start: Start, input: InitialiseInput) -> Start:
    main = PolicyFiles(adapter=start.adapter, optimizer=start.optimizer)
    return replace(start, policies={**dict.fromkeys(input.policies or (), main), **start.policies})


def _plain(library: Models, store: Store, input: InitialiseInput) -> Start:
    """The base model's weights, and AdamW's zero state."""
    base = library.get(input.base_model)
    weights = {name: tensor.cpu() for name, tensor in initial_weights(base).items()}
    return _committed(store, base, weights, full_config_bytes(input.base_model))


def _seed(library: Models, store: Store, input: InitialiseInput, lora: LoraConfig) -> Start:
    """An adapter that changes nothing yet (B is zero), and AdamW's zero state."""
    base = library.get(input.base_model)
    model = base.instantiate(base.attention)
    targets = target_modules(model, lora.target_modules)
    fresh = {
        name: initial_tensors(model, targets, lora.rank, policy_seed(input.seed, name), lora.layers, lora.dora)
        for name in (MAIN_POLICY, *(input.policies or ()))
    }
    start = _committed(store, base, fresh.pop(MAIN_POLICY), config_bytes(input.base_model, lora, targets))
    return replace(start, policies={name: _put(store, tensors) for name, tensors in fresh.items()})


def policy_seed(seed: int, policy: str) -> int:
    """The run's seed for the main policy, and another for each other one."""
    if policy == MAIN_POLICY:
        return seed
    return int.from_bytes(sha256(f"{seed}/{policy}".encode()).digest()[:6])


def _committed(store: Store, base: BaseModel, trained: Mapping[str, Tensor], config: bytes) -> Start:
    weights = _put(store, trained)
    return Start(base, None, weights.adapter, store.put_blob(config), weights.optimizer)


def _put(store: Store, trained: Mapping[str, Tensor]) -> PolicyFiles:
    optimizer = initial_optimizer_tensors(trained)
    return PolicyFiles(
        adapter=store.put_blob(adapter_bytes(trained)), optimizer=store.put_blob(adapter_bytes(optimizer))
    )


def _import(library: Models, store: Store, input: InitialiseInput, files: StartAdapter) -> Start:
    """An adapter saved by PEFT, in float32 and under names in our order, with AdamW's zero state. It must match the
    run's options, or another policy than intended would be trained."""
    lora = input.lora
    if lora is None:
        raise TemperError(
            "BadConfig", "a run that trains all weights must begin without an adapter, but was given one; leave it out"
        )
    base, given = library.get(input.base_model), store.get_blob(files.config)
    model = base.instantiate(base.attention)
    targets = target_modules(model, lora.target_modules)
    try:
        found = load(store.get_blob(files.weights))
    except SafetensorError as error:
        raise TemperError(
            "BadConfig", f"the adapter of a run must be a safetensors file, got {error}; pass another folder"
        ) from error
    expected = config_bytes(input.base_model, lora.model_copy(update={"dropout": 0}), targets)
    different = [name for name in SHAPING if _field(given, name) != _field(expected, name)]
    if different:
        values = ", ".join(f"{name} {_field(given, name)} instead of {_field(expected, name)}" for name in different)
        raise TemperError(
            "BadConfig", f"the adapter of a run must have the run's LoRA options, but has {values}; leave them out"
        )
    _require_shapes(input.base_model, lora, adapter_shapes(model, lora), found)
    tensors = {name: tensor.float() for name, tensor in found.items()}
    broken = next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)
    if broken is not None:
        raise TemperError(
            "BadConfig", f"the adapter of a run must hold finite numbers alone, but {broken} does not; pass another"
        )
    return _committed(store, base, tensors, config_bytes(input.base_model, lora, targets))


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


def _fork(library: Models, store: Store, input: InitialiseInput, checkpoint: Checkpoint) -> Start:
    """The parent's own blobs, without a copy. They are read, so that a fork of lost weights fails here."""
    name = str(PolicyName(checkpoint.run, checkpoint.branch, checkpoint.step))
    source = read_parent(store, checkpoint).manifest
    if source.base_model != input.base_model:
        raise TemperError(
            "BadConfig",
            f"a fork must keep its parent's base model: {name} uses {source.base_model}, but the fork asks for "
            f"{input.base_model}; leave --base-model out",
        )
    base = library.get(input.base_model)
    require_same_base(name, source, base)
    _require_same_kind(name, source, input)
    require_trainable(store, checkpoint.run, source)
    if input.lora is not None:
        _require_same_lora(name, store.get_blob(source.adapter_config), input.base_model, input.lora, base)
    for weights in map(source.weights_of, source.policy_names):
        store.get_blob(weights.adapter)
        store.get_blob(weights.optimizer)
    parent = Parent(step=checkpoint.step, manifest_sha256=checkpoint.manifest_sha256)
    kept = (source.policies or {}, source.baselines)
    return Start(base, parent, source.adapter, source.adapter_config, source.optimizer, *kept)


def _require_same_kind(name: str, source: Manifest, input: InitialiseInput) -> None:
    if bool(source.full_fine_tuning) != (input.lora is None):
        kinds = ("a LoRA adapter", "all weights")
        its, own = kinds if input.lora is None else reversed(kinds)
        raise TemperError(
            "BadConfig",
            f"a fork must train what its parent trains: {name} has {its}, but the fork asks for {own}; "
            f"{'leave --full-fine-tuning out' if input.lora is None else 'pass --full-fine-tuning'}",
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
