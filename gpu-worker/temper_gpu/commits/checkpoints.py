"""Commits of steps: manifests, names of policies, and the view of a checkpoint for other programs.

The manifest is the commit of a step. It is canonical JSON without names, times or hosts, and its sha256 is the
checkpoint's identity. Times are in `manifest.times.json`, outside every hash.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from temper_gpu import contract
from temper_gpu.commits.later_version import describe, is_from_later_version, later_version, require_known_schema
from temper_gpu.contract import (
    BRANCH_POLICY_NAME,
    MAIN_POLICY,
    POLICY_NAME,
    POLICY_NAME_PATTERN,
    POLICY_SUFFIX,
    STORE_KEYS,
    BlobRef,
    Checkpoint,
    PolicyFiles,
)
from temper_gpu.failures import TemperError
from temper_gpu.store import Store

if TYPE_CHECKING:
    from temper_gpu.model.full_weights import FullWeights
    from temper_gpu.model.lora import Adapter

# The dtype of steps whose manifest has none.
DEFAULT_DTYPE = "float32"
# `quantization` in a manifest's platform, if the base model was in 4 bits (NF4).
QUANTIZED = "nf4"


class Manifest(contract.Manifest):
    """A manifest, with the weights of its policies by name, and the entries of its platform as properties."""

    @property
    def policy_names(self) -> list[str]:
        return [MAIN_POLICY, *sorted(self.policies or {})]

    def weights_of(self, policy: str) -> PolicyFiles:
        if policy == MAIN_POLICY:
            return PolicyFiles(adapter=self.adapter, optimizer=self.optimizer)
        found = (self.policies or {}).get(policy)
        if found is None:
            raise TemperError(
                "BadConfig",
                f"a policy of step {self.step} must be {' or '.join(self.policy_names)}, got {policy}; correct it",
            )
        return found

    @property
    def is_packed(self) -> bool:
        """Whether it was trained on a base model in 4 bits."""
        return self.platform.get("quantization") == QUANTIZED

    @property
    def dtype(self) -> str:
        """Type of the base model's weights."""
        return str(self.platform.get("dtype", DEFAULT_DTYPE))


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
            adapters={name: other.adapter.sha256 for name, other in (self.manifest.policies or {}).items()} or None,
        )


@dataclass(frozen=True)
class PolicyName:
    run: str
    branch: int
    step: int
    policy: str = MAIN_POLICY

    def __str__(self) -> str:
        name = POLICY_NAME if self.branch == 0 else BRANCH_POLICY_NAME
        suffix = "" if self.policy == MAIN_POLICY else POLICY_SUFFIX.format(policy=self.policy)
        return name.format(run=self.run, branch=self.branch, step=self.step) + suffix


def parse_policy_name(name: str) -> PolicyName:
    match = re.fullmatch(POLICY_NAME_PATTERN, name)
    if match is None:
        raise TemperError(
            "BadConfig",
            f"a policy must be named run@step or run~branch@step, and :policy if the run has several, got {name!r}; "
            "correct it",
        )
    run, branch, step, policy = match.groups()
    return PolicyName(run, int(branch or 0), int(step), policy or MAIN_POLICY)


def manifest_key(run: str, branch: int, step: int) -> str:
    return STORE_KEYS["manifest"].format(run=run, branch=branch, step=step)


def canonical_json(value: Any) -> bytes:
    """Keys sorted by UTF-16 units (RFC 8785), as TypeScript does; no spaces, newline at the end. NaN raises."""
    text = json.dumps(_sorted(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value, key=lambda name: name.encode("utf-16-be"))}
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


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
    """Commits a step. If another writer was first: its commit, and False."""
    key = manifest_key(run, manifest.branch, manifest.step)
    published = store.publish(key, canonical_json(manifest.model_dump(by_alias=True, exclude_defaults=True)))
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
    """Links the blobs in `checkpoints/<n>/adapter/`, under the names that PEFT and vLLM load; those of other policies
    than the main one in `checkpoints/<n>/adapters/<policy>/`. Full weights get no view, because they need a config and
    a tokenizer: `temper export` writes such a folder."""
    manifest = commit.manifest
    if manifest.full_fine_tuning:
        return
    folder = STORE_KEYS["view"].format(run=run, branch=manifest.branch, step=manifest.step)
    for policy in manifest.policy_names:
        place = "adapter" if policy == MAIN_POLICY else f"adapters/{policy}"
        for name, ref in view_files(manifest, policy).items():
            store.link_blob(ref, f"{folder}/{place}/{name}")


def view_files(manifest: Manifest, policy: str) -> dict[str, BlobRef]:
    """Files by PEFT's names. The config comes first, so that a reader who finds weights finds it."""
    weights = manifest.weights_of(policy)
    return {"adapter_config.json": manifest.adapter_config, "adapter_model.safetensors": weights.adapter}


@dataclass(frozen=True)
class StoredAdapter:
    """A checkpoint's adapter, or all of its weights, as engines take it (engine/interface.py)."""

    store: Store
    run: str
    manifest: Manifest
    policy: str = MAIN_POLICY

    @property
    def sha256(self) -> str:
        return self.manifest.weights_of(self.policy).adapter.sha256

    def read(self) -> "Adapter | FullWeights":
        require_kept(self.store, self.run, self.manifest)
        return load_policy(self.store, self.manifest, self.policy)

    def write_folder(self, folder: Path) -> None:
        require_kept(self.store, self.run, self.manifest)
        if self.manifest.full_fine_tuning:
            policy = PolicyName(self.run, self.manifest.branch, self.manifest.step)
            raise TemperError(
                "BadConfig",
                f"{policy} must be sampled from by the embedded engine, because all of its weights are trained and "
                "vLLM takes only adapters per request; set engine.kind to embedded",
            )
        for name, ref in view_files(self.manifest, self.policy).items():
            (folder / name).write_bytes(self.store.get_blob(ref))


def pruned_key(run: str, branch: int, step: int) -> str:
    return STORE_KEYS["pruned"].format(run=run, branch=branch, step=step)


def is_pruned(store: Store, run: str, manifest: Manifest) -> bool:
    """Its weights were removed on purpose, and no copy brought them back."""
    return read_pruned(store, run, manifest) is True


def read_pruned(store: Store, run: str, manifest: Manifest) -> bool | Literal["optimizer"]:
    """What was removed on purpose: all weights (`True`), or the optimizer states alone."""
    key = pruned_key(run, manifest.branch, manifest.step)
    data = store.read(key)
    try:
        mark = None if data is None else json.loads(data)
        require_known_schema(mark, key)
        return False if mark is None else mark["pruned"]
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
            f"them back from a copy: temper checkpoints pull {run} STORE --with-pruned",
        )


def require_trainable(store: Store, run: str, manifest: Manifest) -> None:
    """Both the weights and the optimizer state are kept."""
    require_kept(store, run, manifest)
    if read_pruned(store, run, manifest) == "optimizer":
        policy = PolicyName(run, manifest.branch, manifest.step)
        raise TemperError(
            "BadConfig",
            f"the optimizer state of {policy} must be in the store, but it was pruned; name a step that temper "
            f"checkpoints {run} lists as kept, or bring it back from a copy: temper checkpoints pull {run} STORE "
            "--with-pruned",
        )


def load_policy(store: Store, manifest: Manifest, policy: str = MAIN_POLICY) -> "Adapter | FullWeights":
    """The commit's adapter, or the weights that replace those of the base model."""
    return parse_policy(store, manifest, store.get_blob(manifest.weights_of(policy).adapter))


def parse_policy(store: Store, like: Manifest, data: bytes) -> "Adapter | FullWeights":
    """Weights of the same kind and shape as a commit's."""
    # Imported late: torch takes seconds, and names must resolve without it.
    from temper_gpu.model.full_weights import parse_full_weights
    from temper_gpu.model.lora import parse_adapter

    if like.full_fine_tuning:
        return parse_full_weights(data)
    return parse_adapter(data, store.get_blob(like.adapter_config))
