"""The policies that sampled a step's groups: its parent, or older checkpoints, which the plan names by hash.

A group's rollouts name the adapter that sampled it. The parent's log-probabilities differ from those of an older
checkpoint. Instead, its own weights are loaded for a moment and re-score a part of what it sampled.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from torch import Tensor

from temper_gpu.commits.checkpoints import (
    Manifest,
    is_pruned,
    load_policy,
    manifest_key,
    parse_commit,
    parse_policy,
)
from temper_gpu.contract import MAIN_POLICY, STORE_KEYS, Sampler, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.store import Store
from temper_gpu.training.groups import Group
from temper_gpu.training.rows import Rows

# Enough tokens to show a disagreement; scoring all of them would cost a whole forward pass.
CHECKED_TOKENS = 1024


@dataclass(frozen=True)
class SamplingPolicy:
    """`adapter_sha256`: of the policy that a step trains. `header_sha256`: of the main policy, which rollouts name.
    `staleness`: number of optimizer steps behind the parent. `read_adapter`: None for the parent, whose weights are in
    memory, and for a checkpoint that was pruned before the step is repeated. One adapter at a time is in memory."""

    adapter_sha256: str
    header_sha256: str
    staleness: int = 0
    read_adapter: Callable[[], Mapping[str, Tensor]] | None = None


def read_samplers(store: Store, input: TrainInput, parent: Manifest, policy: str) -> list[SamplingPolicy]:
    """Every policy that may have sampled a group; none but the parent if the step names none."""
    of_parent = SamplingPolicy(parent.weights_of(policy).adapter.sha256, parent.adapter.sha256)
    return [of_parent, *(_read(store, input.run, older, parent, policy) for older in input.samplers or [])]


def _read(store: Store, run: str, named: Sampler, parent: Manifest, policy: str) -> SamplingPolicy:
    if named.foreign:
        return _read_foreign(store, named, parent, policy)
    key = manifest_key(run, named.branch, named.step)
    manifest = parse_commit(store.read_verified(key, named.manifest_sha256), key).manifest
    sha256 = manifest.weights_of(policy).adapter.sha256
    read = None if is_pruned(store, run, manifest) else lambda: load_policy(store, manifest, policy).tensors
    return SamplingPolicy(sha256, manifest.adapter.sha256, named.staleness, read)


def _read_foreign(store: Store, named: Sampler, parent: Manifest, policy: str) -> SamplingPolicy:
    """A copy of the run may have neither the other run's manifest nor its weights."""
    if policy != MAIN_POLICY:
        raise TemperError(
            "BadConfig",
            f"groups that another run sampled must train the policy {MAIN_POLICY} alone, got {policy}; leave them out",
        )
    sha256 = named.adapter_sha256
    key = STORE_KEYS["blob"].format(sha256=sha256)
    is_there = store.read(key) is not None
    read = (lambda: parse_policy(store, parent, store.read_verified(key, sha256)).tensors) if is_there else None
    return SamplingPolicy(sha256, sha256, named.staleness, read)


def sampler_of(group: Group, samplers: Sequence[SamplingPolicy]) -> SamplingPolicy | None:
    """The one that the group's rollouts name; None if it is none of them."""
    if len(samplers) == 1:
        return samplers[0]
    named = [sampler for sampler in samplers if sampler.header_sha256 == group.sampled_by]
    # If two checkpoints have the same main policy, another policy's calls tell which one it is.
    answered = [sampler for sampler in named if group.answered_by <= {sampler.adapter_sha256}]
    return next(iter(answered or named), None)


def rows_by_sampler(
    rows: Rows, groups: Sequence[Group], samplers: Iterable[SamplingPolicy]
) -> Iterator[tuple[SamplingPolicy, Rows]]:
    """Some rows that each policy sampled. Policies without rows are left out."""
    samplers = list(samplers)
    ends = accumulate((len(group.attempts) for group in groups), initial=0)
    places = [(sampler_of(group, samplers), range(*ends)) for group, ends in zip(groups, pairwise(ends), strict=True)]
    for sampler in samplers:
        sampled = first_rows(rows.of_attempts({place for found, of in places if found is sampler for place in of}))
        if sampled.rows:
            yield sampler, sampled


def first_rows(rows: Rows) -> Rows:
    """Rows of the first attempts that have enough tokens."""
    chosen: set[int] = set()
    num_tokens = 0
    for row, attempt in zip(rows.rows, rows.attempts, strict=True):
        if num_tokens >= CHECKED_TOKENS and attempt not in chosen:
            break
        chosen.add(attempt)
        num_tokens += len(row.positions)
    return rows.of_attempts(chosen)
