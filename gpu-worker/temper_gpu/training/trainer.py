"""Steps as commits: found or made, from parent and groups in the store to a manifest in it.

Memory is a cache of the store. The policy in memory is known by the manifest that it stands for; that key is dropped
before the first in-place change and set again after the commit, so whatever ends a step early costs only a reload.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from temper_gpu.commits.checkpoints import (
    Commit,
    Manifest,
    Parent,
    PolicyName,
    load_policy,
    manifest_key,
    publish_commit,
    read_commit,
    read_parent,
    require_kept,
    require_same_inputs,
)
from temper_gpu.commits.same_base import require_same_base
from temper_gpu.contract import InitialiseInput, TrainConfig, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import adapter_bytes
from temper_gpu.model.memory import give_back
from temper_gpu.model.models import BaseModel, Models
from temper_gpu.store import Store
from temper_gpu.training.examples import Datasets, TurnReader, refuse_turns
from temper_gpu.training.groups import Group, load_groups, require_groups, with_groups
from temper_gpu.training.metrics import Metrics, on_the_wire
from temper_gpu.training.optimizers import optimizer_fingerprint
from temper_gpu.training.platform import (
    base_fingerprint,
    fix_threads,
    layers_fingerprint,
    platform_fingerprint,
    ranks_fingerprint,
    repeatable,
)
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import ALONE, Ranks
from temper_gpu.training.reference import read_reference
from temper_gpu.training.stale_sampler import StaleSampler, read_sampler
from temper_gpu.training.start import make_start
from temper_gpu.training.step import train_step
from temper_gpu.training.supervised import Supervision, load_supervision, supervised_step


@dataclass
class Outcome:
    """`found`: the step had been committed before. Seconds by phase are for display.

    `discarded`: it was made here all the same, and another worker's commit came first.
    """

    commit: Commit
    found: bool
    seconds: dict[str, float] = field(default_factory=dict)
    discarded: bool = False


@dataclass
class _Held:
    """The one policy in memory, and the manifest it stands for (None: dirty)."""

    shape: tuple[str, str, str]
    policy: TrainablePolicy
    manifest_sha256: str | None = None


class Switching(Protocol):
    """Of a device lock for which an engine in another process releases memory."""

    def expect(self, base_model: str, train: TrainConfig) -> None:
        """What is trained once the lock is taken. Its weights are loaded."""
        ...

    def take_seconds(self) -> dict[str, float]:
        """By phase of the last step, what taking and giving back the device took; empty where it took nothing."""
        ...


class Trainer:
    """One step at a time. `device_lock` orders training and the engine's forward passes on one device.

    `sampler`: what manifests say of what samples from a base model, beside the platform. `read_turns`: how chats of
    supervised steps are written. `ranks`: who computes a step together. `switching`: that of the lock, where it has
    one. `compiles`: whether decoder layers are compiled.
    """

    def __init__(
        self,
        library: Models,
        store: Store,
        device_lock: AbstractContextManager[object],
        sampler: Callable[[str], Mapping[str, str]] = lambda base_model: {},
        read_turns: TurnReader = refuse_turns,
        ranks: Ranks = ALONE,
        switching: Switching | None = None,
        compiles: bool = False,
    ) -> None:
        self._library = library
        self._store = store
        self._device_lock = device_lock
        self._sampler = sampler
        self._read_turns = read_turns
        self._ranks = ranks
        self._switching = switching
        self._compiles = compiles
        self._held: _Held | None = None
        self._datasets = Datasets(store)
        self._clock = Stopwatch("load")

    def progress(self) -> dict[str, str]:
        """For people: what the step in hand does, and since when."""
        return {"phase": self._clock.phase, "since": self._clock.since}

    @property
    def base_model(self) -> str | None:
        """Of the policy in memory, which goes on being trained."""
        held = self._held
        return None if held is None else held.shape[0]

    def forget(self) -> None:
        """Frees the policy in memory; the next step reads it from the store."""
        self._held = None

    def initialise(self, work: InitialiseInput) -> Outcome:
        """Commits step 0: the seeded adapter and AdamW's zero state, or a fork's parent's bytes."""
        found = self._find(work.run, work.branch, 0, work.inputs_sha256)
        if found is not None:
            return Outcome(found, True)
        self._clock = Stopwatch("load")
        start = make_start(self._library, self._store, work)
        manifest = Manifest(
            branch=work.branch,
            step=0,
            parent=start.parent,
            inputs_sha256=work.inputs_sha256,
            base_model=work.base_model,
            base_model_sha256=start.base.sha256,
            adapter=start.adapter,
            adapter_config=start.adapter_config,
            optimizer=start.optimizer,
            groups=[],
            learning_rate=0.0,
            metrics={},
            platform=self._platform(start.base),
            seed=work.seed,
            full_fine_tuning=True if work.lora is None else None,
        )
        commit, created = publish_commit(self._store, work.run, manifest)
        return Outcome(commit, not created)

    def train(self, work: TrainInput, is_cancelled: Callable[[], bool]) -> Outcome:
        """load → step → commit. Same inputs: the recorded step; other inputs under its name: StepConflict."""
        found = self._find(work.run, work.branch, work.step, work.inputs_sha256)
        if found is not None:
            return Outcome(found, True)
        clock = self._clock = Stopwatch("load")
        work = with_groups(self._store, work)
        parent, held, metrics = self._make(work, is_cancelled)
        adapter, optimizer = held.policy.adapter_tensors(), held.policy.optimizer_tensors()
        clock.begin("commit")
        if self._switching is not None:
            clock.move("switch", self._switching.take_seconds())
        manifest = Manifest(
            branch=work.branch,
            step=work.step,
            parent=Parent(step=work.parent.step, manifest_sha256=work.parent.manifest_sha256),
            inputs_sha256=work.inputs_sha256,
            base_model=work.base_model,
            base_model_sha256=held.policy.base.sha256,
            adapter=self._store.put_blob(adapter_bytes(adapter)),
            adapter_config=parent.manifest.adapter_config,
            optimizer=self._store.put_blob(adapter_bytes(optimizer)),
            groups=work.groups,
            learning_rate=work.learning_rate,
            metrics=on_the_wire(metrics),
            platform=self._platform(held.policy.base)
            | ranks_fingerprint(self._ranks.count)
            | layers_fingerprint(held.policy.compiled_layers is not None)
            | optimizer_fingerprint(work.train.optimizer.kind),
            seed=work.seed,
            train=work.train,
            sampler=work.sampler,
            supervised=work.supervised,
            full_fine_tuning=parent.manifest.full_fine_tuning,
        )
        commit, created = publish_commit(self._store, work.run, manifest)
        if commit.manifest.adapter == manifest.adapter and commit.manifest.optimizer == manifest.optimizer:
            held.manifest_sha256 = commit.sha256
        clock.begin("publish")
        return Outcome(commit, not created, clock.seconds, discarded=not created)

    def take_part(self, work: TrainInput) -> None:
        """As one of several ranks, of which another one commits."""
        self._make(with_groups(self._store, work), lambda: False)

    def _make(self, work: TrainInput, is_cancelled: Callable[[], bool]) -> tuple[Commit, _Held, Metrics]:
        """load → step."""
        fix_threads()
        parent = read_parent(self._store, work.parent)
        groups = load_groups(self._store, work.run, work.branch, work.step, work.groups)
        require_kept(self._store, work.parent.run, parent.manifest)
        compared = (read_sampler(self._store, work), read_reference(self._store, work.train))
        held = self._load_policy(work.parent.run, parent, work.train)
        supervision = self._load_supervision(work, held.policy.base)
        if self._switching is not None:
            self._switching.expect(held.policy.base.name, work.train)
        self._clock.begin("wait")
        self._ranks.meet()
        with self._device_lock:
            self._ranks.meet()
            self._clock.begin("train")
            held.manifest_sha256 = None
            try:
                with repeatable(held.policy.device):
                    # Found out in each step, rows or not: its manifest says it.
                    _ = held.policy.compiled_layers
                    given = (work, held.policy, parent, supervision or groups, compared, is_cancelled)
                    return parent, held, self._step(*given)
            finally:
                # The engine computes next, and needs the room.
                give_back(held.policy.device)

    def _platform(self, base: BaseModel) -> dict[str, str | int]:
        return {**platform_fingerprint(base.device, base.dtype), **base_fingerprint(base), **self._sampler(base.name)}

    def _step(
        self,
        work: TrainInput,
        policy: TrainablePolicy,
        parent: Commit,
        material: Supervision | list[Group],
        compared: tuple[StaleSampler | None, Mapping[str, Tensor] | None],
        is_cancelled: Callable[[], bool],
    ) -> Metrics:
        parent_sha256, seed = parent.manifest.adapter.sha256, f"{work.seed}/{work.step}"
        try:
            if isinstance(material, Supervision):
                return supervised_step(policy, material, work.train, work.learning_rate, is_cancelled, seed)
            given = (policy, parent_sha256, material, work.train, work.learning_rate)
            return train_step(*given, is_cancelled, seed, *compared)
        except TemperError as error:
            raise TemperError(error.type, f"step {work.step} of {work.run}: {error.message}") from error

    def _load_supervision(self, work: TrainInput, base: BaseModel) -> Supervision | None:
        """None where the step trains its groups."""
        if work.supervised is None:
            self._datasets.forget()
            require_groups(work)
            return None
        return load_supervision(self._datasets, work.supervised, base, self._read_turns)

    def _find(self, run: str, branch: int, step: int, inputs_sha256: str) -> Commit | None:
        commit = read_commit(self._store, run, branch, step)
        if commit is not None:
            require_same_inputs(commit, inputs_sha256, manifest_key(run, branch, step))
        return commit

    def _load_policy(self, run: str, parent: Commit, config: TrainConfig) -> _Held:
        base = self._library.get(parent.manifest.base_model)
        if self._ranks.rank == 0 or not self._ranks.shards:
            # Another one's weights are those of rank 0.
            policy = PolicyName(run, parent.manifest.branch, parent.manifest.step)
            require_same_base(str(policy), parent.manifest, base)
        lora, optimizer = config.lora, config.optimizer.kind
        shape = (base.name, "" if lora is None else lora.model_dump_json(), optimizer)
        if self._held is None or self._held.shape != shape:
            self._held = None  # frees the old one before the new one is made
            self._held = _Held(shape, TrainablePolicy(base, lora, self._ranks, optimizer, self._compiles))
        held = self._held
        if held.manifest_sha256 != parent.sha256:
            held.manifest_sha256 = None
            held.policy.load(load_policy(self._store, parent.manifest).tensors, self._optimizer(parent.manifest))
            held.manifest_sha256 = parent.sha256
        return held

    def _optimizer(self, manifest: Manifest) -> dict[str, Tensor]:
        try:
            return load(self._store.get_blob(manifest.optimizer))
        except SafetensorError as error:
            raise TemperError(
                "StoreCorrupt",
                f"{manifest.optimizer.key} must be a safetensors file, got {error}; restore it from a copy",
            ) from error


class Stopwatch:
    """Seconds by phase, for people."""

    def __init__(self, phase: str) -> None:
        self.seconds: dict[str, float] = {}
        self._enter(phase)

    def begin(self, phase: str) -> None:
        """Ends the phase before."""
        self.seconds[self.phase] = time.perf_counter() - self._started
        self._enter(phase)

    def move(self, phase: str, seconds: Mapping[str, float]) -> None:
        """Seconds of other phases, which have ended, belong to this one."""
        for other, part in seconds.items():
            self.seconds[other] -= part
            self.seconds[phase] = self.seconds.get(phase, 0.0) + part

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self.since = datetime.now(UTC).isoformat(timespec="seconds")
        self._started = time.perf_counter()
