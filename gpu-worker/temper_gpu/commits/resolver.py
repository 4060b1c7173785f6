"""Resolves a policy's name to a base model or a commit of the store, and caches commits while they are unchanged."""

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from temper_gpu.commits.checkpoints import Commit, Manifest, StoredAdapter, manifest_key, parse_policy_name, read_commit
from temper_gpu.engine.interface import AdapterSource
from temper_gpu.failures import TemperError
from temper_gpu.store import Store

# Time for which a cached policy is trusted after its store did not answer.
OUTAGE_TRUST_S = 60.0
KEPT_COMMITS = 64


@dataclass(frozen=True)
class ResolvedPolicy:
    base_model: str
    adapter: AdapterSource | None
    # Manifest of the policy's step; None for a base model.
    manifest: Manifest | None

    @property
    def adapter_sha256(self) -> str | None:
        return None if self.adapter is None else self.adapter.sha256


class PolicyResolver(Protocol):
    def resolve(self, name: str) -> ResolvedPolicy:
        """Raises TemperError BadConfig for an unknown name. May wait for a server."""
        ...

    def recall(self, name: str) -> ResolvedPolicy | None:
        """The policy of a name if that is known without waiting; otherwise None."""
        ...


@dataclass
class _Known:
    """A cached commit. The stamp detects a run that was deleted and started again."""

    commit: Commit
    stamp: Hashable
    trusted_until: float


class StoreResolver:
    """Finds `run@step` in the store. Every other name is a base model's, also `owner/model@commit`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, _Known] = {}
        self._keeping = threading.Lock()

    def resolve(self, name: str) -> ResolvedPolicy:
        if not _is_policy(name):
            return ResolvedPolicy(name, None, None)
        return self._policy(name, self._commit(name))

    def recall(self, name: str) -> ResolvedPolicy | None:
        if not _is_policy(name):
            return self.resolve(name)
        known = self._known.get(name)
        if known is None or not self._is_trusted(name, known):
            return None
        return self._policy(name, known.commit)

    def _policy(self, name: str, commit: Commit) -> ResolvedPolicy:
        policy = parse_policy_name(name)
        commit.manifest.weights_of(policy.policy)  # raises for one that the run does not have
        source = StoredAdapter(self._store, policy.run, commit.manifest, policy.policy)
        return ResolvedPolicy(commit.manifest.base_model, source, commit.manifest)

    def _is_trusted(self, name: str, known: _Known) -> bool:
        if time.monotonic() < known.trusted_until:
            return True
        if self._store.stamp_lifetime_s:
            return False
        try:
            return self._stamp(name) == known.stamp
        except TemperError as error:
            if not error.retryable:
                raise
            return False  # `resolve` meets the same outage, and decides

    def _commit(self, name: str) -> Commit:
        known = self._known.get(name)
        trusted_until = time.monotonic() + self._store.stamp_lifetime_s
        try:
            stamp = self._stamp(name)
        except TemperError as error:
            if known is None or not error.retryable:
                raise
            # A known policy stays usable while the store is unavailable.
            known.trusted_until = time.monotonic() + OUTAGE_TRUST_S
            return known.commit
        if known is not None and known.stamp == stamp:
            known.trusted_until = trusted_until
            return known.commit
        policy = parse_policy_name(name)
        commit = read_commit(self._store, policy.run, policy.branch, policy.step)
        if commit is None:
            raise TemperError(
                "BadConfig", f"the policy {name} must be a committed step of this store, found none; correct it"
            )
        with self._keeping:
            self._known[name] = _Known(commit, stamp, trusted_until)
            # The oldest are dropped: a run of thousands of steps uses each of its policies once.
            for oldest in list(self._known)[:-KEPT_COMMITS]:
                del self._known[oldest]
        return commit

    def _stamp(self, name: str) -> Hashable | None:
        policy = parse_policy_name(name)
        return self._store.stamp(manifest_key(policy.run, policy.branch, policy.step))


def _is_policy(name: str) -> bool:
    return "@" in name and "/" not in name
