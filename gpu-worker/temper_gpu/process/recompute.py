"""Repeats a committed step on this machine, with the trainer's own code.

The step's inputs say what to compute; nothing is written to the store. Answers the hashes of the results,
this machine's platform and, if bytes differ, by how much.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from temper_gpu.commits.checkpoints import Commit, Manifest, manifest_key, read_commit, read_parent
from temper_gpu.commits.templates import StoredTemplates
from temper_gpu.contract import MAIN_POLICY, BlobRef, GpuWorkerSettings, InitialiseInput, RecomputeInput, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.model.instructions import limit_as
from temper_gpu.store import Published, Store, blob_ref, open_store

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class OverlayStore:
    """Reads through to a store and keeps writes in memory. The commit at `hidden` is invisible."""

    def __init__(self, store: Store, hidden: str) -> None:
        self._store = store
        self._hidden = hidden
        self.blobs: dict[str, bytes] = {}

    def put_blob(self, data: bytes) -> BlobRef:
        ref = blob_ref(data)
        self.blobs[ref.sha256] = data
        return ref

    def get_blob(self, ref: BlobRef) -> bytes:
        return self._store.get_blob(ref)

    def read_verified(self, key: str, sha256: str) -> bytes:
        return self._store.read_verified(key, sha256)

    def read(self, key: str) -> bytes | None:
        return None if key == self._hidden else self._store.read(key)

    def publish(self, key: str, data: bytes) -> Published:
        return Published(True, data)

    def replace(self, key: str, data: bytes) -> None:
        """Nobody reads the sidecars of a step that is only compared."""


def run(given: RecomputeInput) -> dict[str, Any]:
    step = find_step(given)
    if step.recorded is not None:
        limit_as(step.recorded.manifest.platform.get("instructions"))
    # Imported late: torch reads the limits once, and takes seconds, so bad usage is reported first.
    from temper_gpu.training.platform import make_deterministic

    make_deterministic(given.settings.engine.threads)
    return recompute(given.settings, step)


@dataclass(frozen=True)
class Step:
    """A step's inputs, and the commit that was recorded for them."""

    store: Store
    work: TrainInput | InitialiseInput
    place: tuple[str, int, int]
    recorded: Commit | None


def find_step(given: RecomputeInput) -> Step:
    store, work = open_store(given.settings.store), given.work
    place = (work.run, work.branch, work.step if isinstance(work, TrainInput) else 0)
    return Step(store, work, place, read_commit(store, *place))


def recompute(settings: GpuWorkerSettings, step: Step) -> dict[str, Any]:
    import torch

    from temper_gpu.model.lora import dtype_name
    from temper_gpu.model.models import ModelLibrary
    from temper_gpu.process.host import ModelFolders, choose_device, choose_dtype
    from temper_gpu.process.training import open_trainer
    from temper_gpu.server.chat_turns import ChatTurns
    from temper_gpu.training.group import RankSettings

    store, work, recorded, engine = step.store, step.work, step.recorded, settings.engine
    overlay = OverlayStore(store, manifest_key(*step.place))
    device_like, dtype_like = chosen_like(recorded, engine.device, engine.dtype)
    device = choose_device(device_like)
    dtype = choose_dtype(dtype_like, device)
    # The engine of the step does not run again: its answers are recorded, and so is its name.
    sampler = sampler_of(recorded)
    read_turns = ChatTurns(StoredTemplates(store).text)
    devices = devices_like(recorded, device)
    # A single device cannot share the base model.
    shards = engine.shard_base_model and len(devices) > 1
    packs = engine.load_in4bit or (recorded is not None and recorded.manifest.is_packed)
    chosen = {"shard_base_model": shards, "load_in4bit": packs}
    worker = settings.model_copy(update={"engine": engine.model_copy(update=chosen)})
    ranks = RankSettings(worker, devices, dtype_name(dtype))
    weights_on = torch.device("cpu") if shards else device
    folders = ModelFolders(settings.models)
    library = ModelLibrary(folders, dtype, weights_on, parts_on=ranks.parts_on(0), load_in_4bit=packs)
    trainer = open_trainer(library, cast(Any, overlay), nullcontext(), lambda base_model: sampler, read_turns, ranks)
    try:
        outcome = trainer.train(work, lambda: False) if isinstance(work, TrainInput) else trainer.initialise(work)
    finally:
        trainer.forget()
    before = read_parent(store, work.parent) if isinstance(work, TrainInput) else None
    made = outcome.commit
    weights = {
        name: {
            "adapterSha256": made.manifest.weights_of(name).adapter.sha256,
            "optimizerSha256": made.manifest.weights_of(name).optimizer.sha256,
            "differences": None if recorded is None else differences(store, overlay, name, made, recorded, before),
        }
        for name in made.manifest.policy_names
    }
    return {
        **weights.pop(MAIN_POLICY),
        "manifestSha256": made.sha256,
        "platform": made.manifest.platform,
        **({"policies": weights} if weights else {}),
    }


def chosen_like(recorded: Commit | None, device: str, dtype: str) -> tuple[str, str]:
    """Device and type of the recorded step, unless set: another type of numbers gives another result."""
    if recorded is None:
        return device, dtype
    on_gpu = "gpu" in recorded.manifest.platform
    return (
        device if on_gpu or device != "auto" else "cpu",
        recorded.manifest.dtype if dtype == "auto" else dtype,
    )


def devices_like(recorded: Commit | None, device: "torch.device") -> tuple[str, ...]:
    """Devices in the number of the step, if this host has as many; otherwise one, which differs only by rounding."""
    from temper_gpu.process.training import choose_devices, num_devices

    count = 1 if recorded is None else int(recorded.manifest.platform.get("devices", 1))
    return choose_devices(count if count <= num_devices(device) else 1, device)


def sampler_of(recorded: Commit | None) -> dict[str, str]:
    """Manifest entries about an engine that is not part of this package."""
    platform = {} if recorded is None else recorded.manifest.platform
    return {name: str(platform[name]) for name in ("engine", "engineFlags") if name in platform}


def differences(
    store: Store, made: OverlayStore, policy: str, ours: Commit, recorded: Commit, before: Commit | None
) -> dict[str, Any]:
    """Differences by file of one policy; null if the recorded bytes were pruned or are corrupt."""
    parts: dict[str, Callable[[Manifest], BlobRef]] = {
        "adapter": lambda m: m.weights_of(policy).adapter,
        "optimizer": lambda m: m.weights_of(policy).optimizer,
    }
    return {name: _difference(store, made, part, ours, recorded, before) for name, part in parts.items()}


def _difference(
    store: Store,
    made: OverlayStore,
    part: Callable[[Manifest], BlobRef],
    ours: Commit,
    recorded: Commit,
    before: Commit | None,
) -> dict[str, float | None] | None:
    from safetensors import SafetensorError
    from safetensors.torch import load

    from temper_gpu.training.optimizers import without_scales

    if part(ours.manifest) == part(recorded.manifest):
        return {"max": 0.0, "share": 0.0}
    try:
        theirs = without_scales(load(store.get_blob(part(recorded.manifest))))
        start = None if before is None else without_scales(load(store.get_blob(part(before.manifest))))
    except (TemperError, SafetensorError):
        return None
    mine = without_scales(load(made.blobs[part(ours.manifest).sha256]))
    if mine.keys() != theirs.keys():
        return None
    step = 0.0 if start is None else _distance(mine, start)
    return {
        "max": max(float((mine[name] - theirs[name]).abs().max()) for name in mine),
        # Share of the step's own change: small for rounding, large for another step.
        "share": _distance(mine, theirs) / step if step > 0 else None,
    }


def _distance(left: "Mapping[str, Tensor]", right: "Mapping[str, Tensor]") -> float:
    return sum(float((left[name].double() - right[name].double()).square().sum()) for name in left) ** 0.5
