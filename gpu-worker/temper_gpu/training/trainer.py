"""Steps as commits: found or made, from parent and groups in the store to a manifest in it.

Memory is a cache of the store. The policy in memory is identified by its manifest; that key is dropped before the first
in-place change and set again after the commit, so a step that ends early costs only a reload. Agents with roles may
train several policies: one after the other, in one commit.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from torch import Tensor

from temper_gpu.commits.checkpoints import (
    Commit,
    Manifest,
    PolicyName,
    load_policy,
    manifest_key,
    publish_commit,
    read_commit,
    read_parent,
    require_same_inputs,
    require_trainable,
)
from temper_gpu.commits.same_base import require_same_base
from temper_gpu.commits.vocabularies import publish_vocabulary
from temper_gpu.contract import (
    MAIN_POLICY,
    RECORD_SCHEMA,
    STORE_KEYS,
    InitialiseInput,
    Parent,
    PolicyFiles,
    TrainConfig,
    TrainInput,
)
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import adapter_bytes
from temper_gpu.model.memory import give_back
from temper_gpu.model.models import BaseModel, Models
from temper_gpu.store import Store
from temper_gpu.training.examples import Datasets, TurnReader, refuse_turns
from temper_gpu.training.groups import require_groups
from temper_gpu.training.inputs import StepInputs, load_inputs, read_tensors
from temper_gpu.training.metrics import Metrics, baseline_metrics, on_the_wire, policy_metrics
from temper_gpu.training.optimizers import optimizer_fingerprint
from temper_gpu.training.platform import (
    base_fingerprint,
    fix_threads,
    platform_fingerprint,
    ranks_fingerprint,
    repeatable,
)
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import ALONE, IsCancelled, Ranks, never_cancelled
from temper_gpu.training.start import make_start
from temper_gpu.training.step import train_step
from temper_gpu.training.supervised import SupervisedInputs, load_supervision, supervised_step
from temper_gpu.training.token_trace import TokenTrace

_Inputs = StepInputs | SupervisedInputs


@dataclass
class Outcome:
    """`found`: the step had been committed before. `seconds` by phase are for display. `discarded`: this worker made
    the step too, but another one committed first."""

    commit: Commit
    found: bool
    seconds: dict[str, float] = field(default_factory=dict)
    discarded: bool = False


@dataclass
class _Loaded:
    """The one policy in memory, and whose weights it has: a manifest's hash and a policy's name (None: dirty)."""

    shape: tuple[str, str, str]
    policy: TrainablePolicy
    weights: tuple[str, str] | None = None


class _Tensors(NamedTuple):
    """A policy's adapter, and its optimizer's state."""

    adapter: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]


@dataclass
class _Made:
    """A step that is not committed yet. `last`: the policy whose weights are in memory; `earlier`: copies of those that
    were trained before it. `baselines`: of roles, after the step."""

    parent: Commit
    loaded: _Loaded
    last: str
    earlier: Mapping[str, _Tensors]
    metrics: Metrics
    baselines: Mapping[str, float]
    trace: TokenTrace


class Switching(Protocol):
    """A device lock for which an engine in another process releases memory."""

    def expect(self, base_model: str, train: TrainConfig) -> None:
        """Announces what the next holder of the lock trains. Its weights are loaded."""
        ...

    def take_seconds(self) -> dict[str, float]:
        """Seconds that taking and returning the device added to the last step, by phase; empty if none."""
        ...


class Trainer:
    """Trains one step at a time. `device_lock` orders training and the engine's forward passes on one device.

    `sampler`: fields of manifests about the engine of a base model. `read_turns`: tokenizes the chats of supervised
    steps. `ranks`: the processes that compute a step together. `switching`: set if the lock supports it.
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
    ) -> None:
        self._library = library
        self._store = store
        self._device_lock = device_lock
        self._sampler = sampler
        self._read_turns = read_turns
        self._ranks = ranks
        self._switching = switching
        self._loaded: _Loaded | None = None
        self._datasets = Datasets(store)
        self._clock = Stopwatch("load")

    def progress(self) -> dict[str, str]:
        """Phase of the current step and its start, for display."""
        return {"phase": self._clock.phase, "since": self._clock.since}

    @property
    def base_model(self) -> str | None:
        """The base model of the policy in memory."""
        return None if self._loaded is None else self._loaded.shape[0]

    @property
    def policy(self) -> TrainablePolicy | None:
        """The policy in memory, between steps with the last one's weights."""
        return None if self._loaded is None else self._loaded.policy

    def forget(self) -> None:
        """Frees the policy in memory; the next step reads it from the store."""
        self._loaded = None

    def initialise(self, input: InitialiseInput) -> Outcome:
        """Commits step 0: the seeded adapters and AdamW's zero state, or a fork's parent's bytes."""
        found = self._find(input.run, input.branch, 0, input.inputs_sha256)
        if found is not None:
            return Outcome(found, True)
        self._clock = Stopwatch("load")
        start = make_start(self._library, self._store, input)
        manifest = Manifest(
            schema_=RECORD_SCHEMA,
            branch=input.branch,
            step=0,
            parent=start.parent,
            inputs_sha256=input.inputs_sha256,
            base_model=input.base_model,
            base_model_sha256=start.base.sha256,
            adapter=start.adapter,
            adapter_config=start.adapter_config,
            optimizer=start.optimizer,
            groups=[],
            learning_rate=0.0,
            metrics={},
            platform=self._platform(start.base),
            seed=input.seed,
            train=None,
            policies=dict(start.policies) or None,
            baselines=None if start.baselines is None else dict(start.baselines),
            full_fine_tuning=True if input.lora is None else None,
        )
        publish_vocabulary(self._store, input.run, start.base)
        commit, created = publish_commit(self._store, input.run, manifest)
        return Outcome(commit, not created)

    def train(self, input: TrainInput, is_cancelled: IsCancelled) -> Outcome:
        """load → step → commit. Same inputs: the recorded step; other inputs under its name: StepConflict."""
        found = self._find(input.run, input.branch, input.step, input.inputs_sha256)
        if found is not None:
            return Outcome(found, True)
        clock = self._clock = Stopwatch("load")
        made = self._make(input, is_cancelled)
        parent, policy = made.parent.manifest, made.loaded.policy
        tensors = {**made.earlier, made.last: _tensors_of(policy)}
        clock.begin("commit")
        if self._switching is not None:
            clock.move("switch", self._switching.take_seconds())
        weights = {name: self._put(of_policy) for name, of_policy in tensors.items()}
        main = weights.pop(MAIN_POLICY)
        manifest = Manifest(
            schema_=RECORD_SCHEMA,
            branch=input.branch,
            step=input.step,
            parent=Parent(step=input.parent.step, manifest_sha256=input.parent.manifest_sha256),
            inputs_sha256=input.inputs_sha256,
            base_model=input.base_model,
            base_model_sha256=policy.base.sha256,
            adapter=main.adapter,
            adapter_config=parent.adapter_config,
            optimizer=main.optimizer,
            groups=input.groups,
            learning_rate=input.learning_rate,
            metrics=on_the_wire(made.metrics),
            platform=self._platform(policy.base)
            | ranks_fingerprint(self._ranks.count)
            | optimizer_fingerprint(input.train.optimizer.kind),
            seed=input.seed,
            train=input.train,
            samplers=input.samplers,
            supervised=input.supervised,
            policies={**(parent.policies or {}), **weights} or None,
            roles=input.roles,
            baselines=dict(made.baselines) or None,
            league=input.league,
            full_fine_tuning=parent.full_fine_tuning,
        )
        # Another worker's step of other inputs keeps its tokens.
        if input.supervised is None and self._find(input.run, input.branch, input.step, input.inputs_sha256) is None:
            key = STORE_KEYS["tokens"].format(run=input.run, branch=input.branch, step=input.step)
            self._store.replace(key, made.trace.file())
        commit, created = publish_commit(self._store, input.run, manifest)
        if commit.manifest.weights_of(made.last) == manifest.weights_of(made.last):
            made.loaded.weights = (commit.sha256, made.last)
        clock.begin("publish")
        return Outcome(commit, not created, clock.seconds, discarded=not created)

    def _put(self, tensors: _Tensors) -> PolicyFiles:
        adapter, optimizer = (self._store.put_blob(adapter_bytes(part)) for part in tensors)
        return PolicyFiles(adapter=adapter, optimizer=optimizer)

    def join_step(self, input: TrainInput) -> None:
        """Computes this rank's share of a step that rank 0 commits."""
        self._make(input, never_cancelled)

    def _make(self, input: TrainInput, is_cancelled: IsCancelled) -> _Made:
        """load → step, for each policy."""
        fix_threads()
        parent = read_parent(self._store, input.parent)
        require_trainable(self._store, input.parent.run, parent.manifest)
        base = self._load_base(input.parent.run, parent)
        steps, baselines = self._load_steps(input, parent.manifest, base)
        loaded = self._load_policy(parent, base, input.train, next(iter(steps)))
        if self._switching is not None:
            self._switching.expect(base.name, input.train)
        self._clock.begin("wait")
        trace = TokenTrace()
        self._ranks.meet()
        with self._device_lock:
            self._ranks.meet()
            self._clock.begin("train")
            try:
                metrics, earlier = self._take_steps(loaded, parent, steps, is_cancelled, trace)
            except TemperError as error:
                raise TemperError(error.type, f"step {input.step} of {input.run}: {error.message}") from error
            finally:
                # The engine computes next, and needs the memory.
                give_back(base.device)
        metrics |= baseline_metrics(baselines)
        return _Made(parent, loaded, list(steps)[-1], earlier, metrics, baselines, trace)

    def _take_steps(
        self,
        loaded: _Loaded,
        parent: Commit,
        steps: Mapping[str, _Inputs],
        is_cancelled: IsCancelled,
        trace: TokenTrace,
    ) -> tuple[Metrics, Mapping[str, _Tensors]]:
        """One policy after the other, and copies of all but the last, which stays in memory."""
        metrics: Metrics = {}
        earlier: dict[str, _Tensors] = {}
        *_, last = steps
        for name, step in steps.items():
            self._load_weights(loaded, parent, name)
            loaded.weights = None
            metrics |= policy_metrics(name, _take_step(loaded.policy, step, is_cancelled, trace))
            if name != last and self._ranks.rank == 0:
                earlier[name] = _copied(_tensors_of(loaded.policy))
        return metrics, earlier

    def _load_steps(
        self, input: TrainInput, parent: Manifest, base: BaseModel
    ) -> tuple[Mapping[str, _Inputs], Mapping[str, float]]:
        """Inputs by policy, and the baselines of roles after the step."""
        seed = f"{input.seed}/{input.step}"
        if input.supervised is None:
            self._datasets.forget()
            require_groups(input)
            inputs = load_inputs(self._store, input, parent, seed)
            return inputs.by_policy, inputs.baselines
        supervision = load_supervision(self._datasets, input.supervised, base, self._read_turns)
        # Examples have no roles: they train the main policy, and the others stay.
        step = SupervisedInputs(supervision, input.train, input.learning_rate, seed)
        return {MAIN_POLICY: step}, parent.baselines or {}

    def _platform(self, base: BaseModel) -> dict[str, str | int]:
        return {**platform_fingerprint(base.device, base.dtype), **base_fingerprint(base), **self._sampler(base.name)}

    def _find(self, run: str, branch: int, step: int, inputs_sha256: str) -> Commit | None:
        commit = read_commit(self._store, run, branch, step)
        if commit is not None:
            require_same_inputs(commit, inputs_sha256, manifest_key(run, branch, step))
        return commit

    def _load_base(self, run: str, parent: Commit) -> BaseModel:
        base = self._library.get(parent.manifest.base_model)
        if self._ranks.rank == 0 or not self._ranks.shards:
            # Other ranks receive the weights of rank 0.
            policy = PolicyName(run, parent.manifest.branch, parent.manifest.step)
            require_same_base(str(policy), parent.manifest, base)
        return base

    def _load_policy(self, parent: Commit, base: BaseModel, config: TrainConfig, name: str) -> _Loaded:
        lora, kind = config.lora, config.optimizer.kind
        shape = (base.name, "" if lora is None else lora.model_dump_json(), kind)
        if self._loaded is None or self._loaded.shape != shape:
            self._loaded = None  # Frees the old policy before the new one is made.
            self._loaded = _Loaded(shape, TrainablePolicy(base, lora, self._ranks, kind))
        self._load_weights(self._loaded, parent, name)
        return self._loaded

    def _load_weights(self, loaded: _Loaded, parent: Commit, name: str) -> None:
        if loaded.weights == (parent.sha256, name):
            return
        loaded.weights = None
        optimizer = read_tensors(self._store, parent.manifest.weights_of(name).optimizer, "a safetensors file")
        loaded.policy.load(load_policy(self._store, parent.manifest, name).tensors, optimizer)
        loaded.weights = (parent.sha256, name)


def _take_step(policy: TrainablePolicy, step: _Inputs, is_cancelled: IsCancelled, trace: TokenTrace) -> Metrics:
    with repeatable(policy.device):
        if isinstance(step, SupervisedInputs):
            return supervised_step(policy, step, is_cancelled)
        return train_step(policy, step, is_cancelled, trace)


def _tensors_of(policy: TrainablePolicy) -> _Tensors:
    """On a CPU they are the policy's own, which the next step changes."""
    return _Tensors(policy.adapter_tensors(), policy.optimizer_tensors())


def _copied(tensors: _Tensors) -> _Tensors:
    return _Tensors(*({name: tensor.clone() for name, tensor in part.items()} for part in tensors))


class Stopwatch:
    """Seconds by phase, for display."""

    def __init__(self, phase: str) -> None:
        self.seconds: dict[str, float] = {}
        self._enter(phase)

    def begin(self, phase: str) -> None:
        self.seconds[self.phase] = time.perf_counter() - self._started
        self._enter(phase)

    def move(self, phase: str, seconds: Mapping[str, float]) -> None:
        """Moves seconds of other, ended phases to this one."""
        for other, part in seconds.items():
            self.seconds[other] -= part
            self.seconds[phase] = self.seconds.get(phase, 0.0) + part

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self.since = datetime.now(UTC).isoformat(timespec="seconds")
        self._started = time.perf_counter()
