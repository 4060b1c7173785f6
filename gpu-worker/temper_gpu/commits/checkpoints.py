"""What stands under `run@step`: manifests, the grammar of policy names, and the view of a checkpoint that people open.

The manifest is the commit of a step. It is canonical JSON, holds nothing of names, times or hosts, and its sha256 is
the checkpoint's identity; the clock's part stands beside it in `manifest.times.json`, outside every hash.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_serializer,
    model_serializer,
)
from pydantic.alias_generators import to_camel

from temper_gpu.commits.later_version import describe, is_from_later_version, later_version, require_known_schema
from temper_gpu.contract import (
    POLICY_NAME_PATTERN,
    BlobRef,
    Checkpoint,
    GroupRef,
    Sampler,
    SupervisedStep,
    TrainConfig,
)
from temper_gpu.failures import TemperError
from temper_gpu.store import Store

if TYPE_CHECKING:
    from temper_gpu.model.full_weights import FullWeights
    from temper_gpu.model.lora import Adapter

POLICY_NAME = re.compile(POLICY_NAME_PATTERN)
# The dtype of steps whose manifest names none.
DEFAULT_DTYPE = "float32"
# `quantization` in a manifest's platform, where the base model was in 4 bits (NF4).
QUANTIZED = "nf4"
# `layers` there, where PyTorch had compiled the decoder layers that trained.
COMPILED = "compiled"


class _Stored(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Parent(_Stored):
    step: int
    manifest_sha256: str


class Manifest(_Stored):
    """`runs/<run>/branches/<b>/steps/<n>/manifest.json`."""

    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    branch: int
    step: int
    parent: Parent | None
    inputs_sha256: str
    base_model: str
    base_model_sha256: str
    adapter: BlobRef
    adapter_config: BlobRef
    optimizer: BlobRef
    groups: list[GroupRef]
    learning_rate: float
    metrics: dict[str, float | None]
    platform: dict[str, str | int]
    # With these two the manifest names all that its step was made from: `temper verify` does it again.
    seed: int
    # None: step 0, which trains nothing.
    train: TrainConfig | None = None
    # None, and absent in the file, here and below: the parent itself has sampled.
    sampler: Sampler | None = None
    # The step trained its groups.
    supervised: SupervisedStep | None = None
    # `adapter` is a LoRA adapter. Otherwise it holds all weights, and `adapter_config` says nothing that is needed.
    full_fine_tuning: Literal[True] | None = None

    @field_serializer("train", "supervised")
    def _without_defaults(self, given: TrainConfig | SupervisedStep | None) -> dict[str, Any] | None:
        """Without the contract's defaults, as in the hash of the step's inputs."""
        return None if given is None else given.model_dump(by_alias=True, exclude_defaults=True)

    @property
    def is_packed(self) -> bool:
        """Whether it was trained on a base model in 4 bits."""
        return self.platform.get("quantization") == QUANTIZED

    @property
    def has_compiled_layers(self) -> bool:
        """Whether it was trained with decoder layers that PyTorch had compiled."""
        return self.platform.get("layers") == COMPILED

    @property
    def dtype(self) -> str:
        """Of the base model's weights."""
        return str(self.platform.get("dtype", DEFAULT_DTYPE))

    @model_serializer(mode="wrap")
    def _without_neutral(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As manifests were before there were other samplers, examples, and weights without an adapter."""
        written: dict[str, Any] = write(self)
        rare = ("sampler", "supervised", "fullFineTuning", "full_fine_tuning")
        absent = {name for name in rare if written.get(name) is None}
        return {name: value for name, value in written.items() if name not in absent}


@dataclass(frozen=True)
class Commit:
    """A manifest and the hash of its bytes."""

    manifest: Manifest
    sha256: str

    def checkpoint(self, run: str) -> Checkpoint:
        return Checkpoint(
            run=run,
            branch=self.manifest.branch,
            step=self.manifest.step,
            manifest_sha256=self.sha256,
            adapter_sha256=self.manifest.adapter.sha256,
        )


@dataclass(frozen=True)
class PolicyName:
    run: str
    branch: int
    step: int

    def __str__(self) -> str:
        return f"{self.run}@{self.step}" if self.branch == 0 else f"{self.run}~{self.branch}@{self.step}"


def parse_policy_name(name: str) -> PolicyName:
    match = POLICY_NAME.fullmatch(name)
    if match is None:
        raise TemperError("BadConfig", f"a policy must be named run@step or run~branch@step, got {name!r}; correct it")
    run, branch, step = match.groups()
    return PolicyName(run, int(branch or 0), int(step))


def step_key(run: str, branch: int, step: int) -> str:
    return f"runs/{run}/branches/{branch}/steps/{step}"


def manifest_key(run: str, branch: int, step: int) -> str:
    return f"{step_key(run, branch, step)}/manifest.json"


def canonical_json(value: Any) -> bytes:
    """Sorted keys, no spaces, newline at the end; NaN and infinity are no JSON and raise."""
    return (
        json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"
    ).encode()


def read_commit(store: Store, run: str, branch: int, step: int) -> Commit | None:
    data = store.read(manifest_key(run, branch, step))
    return None if data is None else parse_commit(data, manifest_key(run, branch, step))


def read_parent(store: Store, checkpoint: Checkpoint) -> Commit:
    """The commit that a checkpoint names, verified against its hash."""
    key = manifest_key(checkpoint.run, checkpoint.branch, checkpoint.step)
    return parse_commit(store.read_verified(key, checkpoint.manifest_sha256), key)


def parse_commit(data: bytes, key: str) -> Commit:
    try:
        return Commit(Manifest.model_validate_json(data), hashlib.sha256(data).hexdigest())
    except ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid":
            require_known_schema(json.loads(data), key)
        if is_from_later_version(error):
            raise later_version(key, describe(error)) from error
        raise TemperError(
            "StoreCorrupt", f"{key} must be a manifest, but {describe(error)}; restore it from a copy of the store"
        ) from error


def publish_commit(store: Store, run: str, manifest: Manifest) -> tuple[Commit, bool]:
    """Commits a step, or finds that somebody did: their commit, and False."""
    key = manifest_key(run, manifest.branch, manifest.step)
    published = store.publish(key, canonical_json(manifest.model_dump(by_alias=True)))
    commit = parse_commit(published.bytes, key)
    require_same_inputs(commit, manifest.inputs_sha256, key)
    return commit, published.created


def require_same_inputs(commit: Commit, inputs_sha256: str, key: str) -> None:
    if commit.manifest.inputs_sha256 != inputs_sha256:
        raise TemperError(
            "StepConflict",
            f"{key} was committed from inputs {commit.manifest.inputs_sha256}, but was requested from inputs "
            f"{inputs_sha256}; a step is written once: use another run name, or another branch",
        )


def publish_view(store: Store, run: str, commit: Commit) -> None:
    """`checkpoints/<n>/adapter/`: what PEFT, vLLM and people load, the blobs under a second name. All weights without
    config and tokenizer are nothing that can be loaded: `temper export` makes a folder of them."""
    manifest = commit.manifest
    if manifest.full_fine_tuning:
        return
    folder = f"runs/{run}/branches/{manifest.branch}/checkpoints/{manifest.step}/adapter"
    for name, ref in view_files(manifest).items():
        store.link_blob(ref, f"{folder}/{name}")


def view_files(manifest: Manifest) -> dict[str, BlobRef]:
    """By PEFT's names, in the order of writing: who finds the weights finds their config."""
    return {"adapter_config.json": manifest.adapter_config, "adapter_model.safetensors": manifest.adapter}


@dataclass(frozen=True)
class StoredAdapter:
    """A checkpoint's adapter, or all of its weights, as engines take it (engine/interface.py)."""

    store: Store
    run: str
    manifest: Manifest

    @property
    def sha256(self) -> str:
        return self.manifest.adapter.sha256

    def read(self) -> "Adapter | FullWeights":
        require_kept(self.store, self.run, self.manifest)
        return load_policy(self.store, self.manifest)

    def write_folder(self, folder: Path) -> None:
        require_kept(self.store, self.run, self.manifest)
        if self.manifest.full_fine_tuning:
            policy = PolicyName(self.run, self.manifest.branch, self.manifest.step)
            raise TemperError(
                "BadConfig",
                f"{policy} must be sampled from by the embedded engine, because all of its weights are trained and "
                "vLLM takes only adapters per request; set engine.kind to embedded",
            )
        for name, ref in view_files(self.manifest).items():
            (folder / name).write_bytes(self.store.get_blob(ref))


def pruned_key(run: str, branch: int, step: int) -> str:
    return f"{step_key(run, branch, step)}/pruned.json"


def is_pruned(store: Store, run: str, manifest: Manifest) -> bool:
    """Its weights were removed on purpose (`temper checkpoints RUN prune`), and no copy brought them back."""
    key = pruned_key(run, manifest.branch, manifest.step)
    data = store.read(key)
    try:
        mark = None if data is None else json.loads(data)
        require_known_schema(mark, key)
        return mark is not None and mark["pruned"] is True
    except (ValueError, TypeError, KeyError) as error:
        raise TemperError(
            "StoreCorrupt", f"{key} must say whether the step was pruned, got {error!r}; restore it from a copy"
        ) from error


def require_kept(store: Store, run: str, manifest: Manifest) -> None:
    if is_pruned(store, run, manifest):
        policy = PolicyName(run, manifest.branch, manifest.step)
        raise TemperError(
            "BadConfig",
            f"the weights of {policy} must be in the store, but they were pruned; name a step that was kept, or bring "
            f"them back from a copy: temper checkpoints {run} pull STORE --with-pruned",
        )


def load_policy(store: Store, manifest: Manifest) -> "Adapter | FullWeights":
    """What the commit adds to the base model, or puts in the place of its weights."""
    # torch: seconds, and names must resolve without it
    from temper_gpu.model.full_weights import parse_full_weights
    from temper_gpu.model.lora import parse_adapter

    data = store.get_blob(manifest.adapter)
    return (
        parse_full_weights(data)
        if manifest.full_fine_tuning
        else parse_adapter(data, store.get_blob(manifest.adapter_config))
    )
