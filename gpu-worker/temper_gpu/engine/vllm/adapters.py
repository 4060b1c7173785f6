"""Adapters that a vLLM server has loaded, by hash: verified and proven when they come, the least recently used out
first. What a server had is forgotten when it ends."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from temper_gpu.engine.interface import AdapterSource, DeadlinePassed
from temper_gpu.engine.vllm import server
from temper_gpu.engine.vllm.client import Client
from temper_gpu.engine.vllm.folders import AdapterFolders
from temper_gpu.failures import TemperError

ROOM_TIMEOUT_S = 60.0


@dataclass(eq=False)
class Loaded:
    # Name of the adapter on the server.
    folder: str
    num_users: int = 0


# Whether what the server answers under the adapter's name is sampled from the adapter: raises PolicyMismatch.
Prove = Callable[[Client, AdapterSource], None]


class Adapters:
    """Loaded adapters of one server instance."""

    def __init__(self, max_policies: int, folders: AdapterFolders, prove: Prove) -> None:
        self._max_policies = max_policies
        self._folders = folders
        self._prove = prove
        self._loaded: OrderedDict[str, Loaded] = OrderedDict()
        # Adapters being loaded, and being unloaded: requests for them wait.
        self._loading: set[str] = set()
        self._leaving: set[str] = set()
        self._changed = threading.Condition()

    def loaded(self) -> tuple[str, ...]:
        with self._changed:
            return tuple(self._loaded)

    @contextmanager
    def using(self, client: Client, source: AdapterSource) -> Iterator[str]:
        """Loads the adapter if need be, and keeps it meanwhile. Gives its folder, as the server sees it."""
        loaded = self._enter(client, source)
        try:
            yield loaded.folder
        except server.LostAdapter:
            self._forget(source.sha256, loaded)
            raise
        finally:
            with self._changed:
                loaded.num_users -= 1
                self._changed.notify_all()

    def drop_all(self, client: Client, timeout_s: float) -> None:
        """Unloads all adapters of a server that keeps running."""
        with self._changed:
            dropped, self._loaded = self._loaded, OrderedDict()
        for key, loaded in dropped.items():
            self._unload(client, key, loaded.folder, timeout_s)

    def _enter(self, client: Client, source: AdapterSource) -> Loaded:
        key = source.sha256
        with self._changed:
            self._changed.wait_for(lambda: key not in self._loading and key not in self._leaving)
            loaded = self._loaded.get(key)
            if loaded is not None:
                self._loaded.move_to_end(key)
                loaded.num_users += 1
                return loaded
            self._loading.add(key)
        try:
            self._make_room(client)
            loaded = Loaded(self._load(client, source), num_users=1)
            with self._changed:
                self._loaded[key] = loaded
            return loaded
        finally:
            with self._changed:
                self._loading.discard(key)
                self._changed.notify_all()

    def _load(self, client: Client, source: AdapterSource) -> str:
        folder = self._folders.write(source)
        try:
            server.load_adapter(client, source.sha256, folder)
            server.require_listed(client, source.sha256, folder)
            self._prove(client, source)
        except BaseException:
            self._unload(client, source.sha256, folder)
            raise
        return folder

    def _make_room(self, client: Client) -> None:
        """Drops an unused adapter. One in use is never dropped, and the wait for room is limited."""
        with self._changed:
            if not self._changed.wait_for(self._has_room, ROOM_TIMEOUT_S):
                raise DeadlinePassed(
                    f"at most {self._max_policies} adapters are kept loaded, and all were in use for "
                    f"{ROOM_TIMEOUT_S:g} s; retry"
                )
            key = self._unused() if self._num_kept() > self._max_policies else None
            if key is None:
                return
            dropped = self._loaded.pop(key)
            self._leaving.add(key)
        try:
            self._unload(client, key, dropped.folder)
        finally:
            with self._changed:
                self._leaving.discard(key)
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._num_kept() <= self._max_policies or self._unused() is not None

    def _num_kept(self) -> int:
        """Includes adapters that are being loaded."""
        return len(self._loaded) + len(self._loading)

    def _unused(self) -> str | None:
        return next((key for key, loaded in self._loaded.items() if not loaded.num_users), None)

    def _forget(self, key: str, lost: Loaded) -> None:
        """Another thread may have loaded it again meanwhile."""
        with self._changed:
            if self._loaded.get(key) is lost:
                del self._loaded[key]
                self._folders.remove(lost.folder)

    def _unload(self, client: Client, key: str, folder: str, timeout_s: float = server.LOAD_S) -> None:
        # A server that ended or is silent takes its adapters with it.
        with suppress(TemperError, TimeoutError):
            server.unload_adapter(client, key, timeout_s)
        self._folders.remove(folder)
