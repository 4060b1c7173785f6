"""The inputs of a step on groups, loaded from the store.

A plan names the adapters of a stale sampler and of a KL reference by hash, so a copy of a run needs their bytes and
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
from temper_gpu.training.stale_sampler import StaleSampler, read_sampler


@dataclass(frozen=True)
class StepInputs:
    """`seed` orders the groups of several updates, and seeds dropout. `sampler` is None if the parent has sampled,
    `reference` if the KL divergence is measured from the base model."""

    parent_sha256: str
    groups: Sequence[Group]
    config: TrainConfig
    learning_rate: float
    seed: str = ""
    sampler: StaleSampler | None = None
    reference: Mapping[str, Tensor] | None = None

    @property
    def sampler_sha256(self) -> str:
        """The adapter that must have sampled."""
        return self.parent_sha256 if self.sampler is None else self.sampler.adapter_sha256

    @property
    def answered_by(self) -> set[str | None]:
        """The adapters that have sampled. Failed attempts do not count."""
        attempts = [attempt for group in self.groups for attempt in group.attempts if attempt.reward is not None]
        return {call.adapter_sha256 for attempt in attempts for call in attempt.calls}


@dataclass(frozen=True)
class PolicyInputs:
    """Inputs of each policy of a step, in order, and the baselines of roles after it."""

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
        sampler = read_sampler(store, input, name)
        inputs[name] = StepInputs(
            sha256, seen.by_policy[name], input.train, input.learning_rate, seed, sampler, reference
        )
    return PolicyInputs(inputs, {**before, **seen.baselines})


def read_tensors(store: Store, blob: BlobRef, kind: str) -> dict[str, Tensor]:
    try:
        return load(store.get_blob(blob))
    except SafetensorError as error:
        raise TemperError("StoreCorrupt", f"{blob.key} must be {kind}, got {error}; restore it from a copy") from error
