"""Groups sampled by an older checkpoint than the step's parent (`maxStaleness`), which the plan names by hash.

The parent's log-probabilities then differ from the sampler's. Instead, the sampler's own weights are loaded for a
moment and re-score a part of what was sampled.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from temper_gpu.commits.checkpoints import is_pruned, load_policy, manifest_key, parse_commit
from temper_gpu.contract import TrainInput
from temper_gpu.store import Store
from temper_gpu.training.rows import Rows

# Enough tokens to show a disagreement; scoring all of them would cost a whole forward pass.
CHECKED_TOKENS = 1024


@dataclass(frozen=True)
class StaleSampler:
    """`staleness`: number of optimizer steps behind the parent. `adapter`: None if it was pruned before the step is
    repeated."""

    adapter_sha256: str
    staleness: int
    adapter: Mapping[str, Tensor] | None


def read_sampler(store: Store, input: TrainInput, policy: str) -> StaleSampler | None:
    """None if the parent itself has sampled."""
    if input.sampler is None:
        return None
    key = manifest_key(input.run, input.sampler.branch, input.sampler.step)
    manifest = parse_commit(store.read_verified(key, input.sampler.manifest_sha256), key).manifest
    adapter = None if is_pruned(store, input.run, manifest) else load_policy(store, manifest, policy).tensors
    return StaleSampler(manifest.weights_of(policy).adapter.sha256, input.sampler.staleness, adapter)


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
