"""What a run begins with: a seeded adapter, or, of a fork, the bytes of another run's checkpoint."""

from dataclasses import dataclass

from temper_gpu.commits.checkpoints import DEFAULT_DTYPE, Manifest, Parent, PolicyName, read_parent
from temper_gpu.contract import BlobRef, Checkpoint, InitialiseInput
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import adapter_bytes, config_bytes, dtype_name, initial_tensors, lora_shape, target_modules
from temper_gpu.model.models import BaseModel, Models
from temper_gpu.store import Store
from temper_gpu.training.policy import initial_optimizer_tensors


@dataclass(frozen=True)
class Start:
    base: BaseModel
    # Of a fork, by hash and step alone: the parent's name stands in run.json, outside every hash.
    parent: Parent | None
    adapter: BlobRef
    adapter_config: BlobRef
    optimizer: BlobRef


def make_start(library: Models, store: Store, work: InitialiseInput) -> Start:
    return _seed(library, store, work) if work.parent is None else _fork(library, store, work, work.parent)


def _seed(library: Models, store: Store, work: InitialiseInput) -> Start:
    """An adapter that changes nothing yet (B is zero), and AdamW's zero state."""
    base = library.get(work.base_model)
    model = base.instantiate(base.attention)
    targets = target_modules(model, work.lora.target_modules)
    adapter = initial_tensors(model, targets, work.lora.rank, work.seed)
    return Start(
        base=base,
        parent=None,
        adapter=store.put_blob(adapter_bytes(adapter)),
        adapter_config=store.put_blob(config_bytes(work.base_model, work.lora.rank, work.lora.alpha, targets)),
        optimizer=store.put_blob(adapter_bytes(initial_optimizer_tensors(adapter))),
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
    require_same_base(source, base)
    _require_same_lora(name, store.get_blob(source.adapter_config), work, base)
    for blob in (source.adapter, source.optimizer):
        store.get_blob(blob)
    parent = Parent(step=checkpoint.step, manifest_sha256=checkpoint.manifest_sha256)
    return Start(base, parent, source.adapter, source.adapter_config, source.optimizer)


def _require_same_lora(name: str, recorded: bytes, work: InitialiseInput, base: BaseModel) -> None:
    targets = target_modules(base.instantiate(base.attention), work.lora.target_modules)
    asked = config_bytes(work.base_model, work.lora.rank, work.lora.alpha, targets)
    if lora_shape(recorded) != lora_shape(asked):
        raise TemperError(
            "BadConfig",
            f"a fork must keep its parent's LoRA: {name} has {lora_shape(recorded)}, but the fork asks for "
            f"{lora_shape(asked)}; leave the LoRA options out",
        )


def require_same_base(manifest: Manifest, base: BaseModel) -> None:
    recorded, here = str(manifest.platform.get("dtype", DEFAULT_DTYPE)), dtype_name(base.dtype)
    if recorded != here:
        raise TemperError(
            "BadConfig",
            f"a run must keep the type of its weights: step {manifest.step} was trained in {recorded}, but this GPU "
            f"worker loads {manifest.base_model} in {here}; start it with --dtype {recorded}",
        )
    if manifest.base_model_sha256 != base.sha256:
        raise TemperError(
            "PolicyMismatch",
            f"a run must keep its base model: step {manifest.step} uses {manifest.base_model} with weights "
            f"{manifest.base_model_sha256}, but this host has {base.sha256} under that name; restore the old weights",
        )
