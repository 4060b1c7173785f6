"""The inputs of a step on groups, loaded from the store.

A plan names the adapters of older samplers and of a KL reference by hash, so a copy of a run needs their bytes and
nothing else of the other run. Each policy of a run trains its own roles' views of the same groups (roles.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from temper_gpu.commits.checkpoints import Manifest
from temper_gpu.contract import BlobRef, TrainConfig, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.store import Store
from temper_gpu.training.groups import Group, load_groups
from temper_gpu.training.roles import policy_order, views
from temper_gpu.training.samplers import SamplingPolicy, read_samplers


@dataclass(frozen=True)
class StepInputs:
    """`seed` orders the groups of several updates, and seeds dropout. `samplers`: the policies that may have sampled a
    group, by default the parent. `reference` is None if the KL divergence is measured from the base model."""

    parent_sha256: str
    groups: Sequence[Group]
    config: TrainConfig
    learning_rate: float
    seed: str = ""
    samplers: Sequence[SamplingPolicy] = ()
    reference: Mapping[str, Tensor] | None = None

    @property
    def allowed(self) -> Sequence[SamplingPolicy]:
        return self.samplers or [SamplingPolicy(self.parent_sha256, self.parent_sha256)]

    @property
    def is_stale(self) -> bool:
        """Whether an older policy than the parent may have sampled."""
        return any(sampler.staleness > 0 for sampler in self.allowed)

    @property
    def answered_by(self) -> set[str | None]:
        return set().union(*(group.answered_by for group in self.groups))


@dataclass(frozen=True)
class PolicyInputs:
    """The inputs of each policy of a step, in order, and the baselines of roles after it."""

    by_policy: Mapping[str, StepInputs]
    baselines: Mapping[str, float]


def load_inputs(store: Store, input: TrainInput, parent: Manifest, seed: str) -> PolicyInputs:
    groups = load_groups(store, input.run, input.branch, input.step, input.groups)
    blob, before = input.train.kl_reference, parent.baselines or {}
    reference = None if blob is None else read_tensors(store, blob, "an adapter as safetensors")
    seen = views(groups, input.roles, before if input.train.baseline == "rae" else None)
    inputs: dict[str, StepInputs] = {}
    for name in policy_order(seen.by_policy):
        sha256 = parent.weights_of(name).adapter.sha256
        samplers = read_samplers(store, input, parent, name)
        inputs[name] = StepInputs(
            sha256, seen.by_policy[name], input.train, input.learning_rate, seed, samplers, reference
        )
    return PolicyInputs(inputs, {**before, **seen.baselines})


def read_tensors(store: Store, blob: BlobRef, kind: str) -> dict[str, Tensor]:
    try:
        return load(store.get_blob(blob))
    except SafetensorError as error:
        raise TemperError("StoreCorrupt", f"{blob.key} must be {kind}, got {error}; restore it from a copy") from error
