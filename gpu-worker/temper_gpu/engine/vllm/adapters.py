"""Adapters that a vLLM server has loaded, by hash: verified and proven when they come, the least recently used out
first. What a server had is forgotten when it ends."""

import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from temper_gpu.engine.interface import AdapterSource, DeadlinePassed
from temper_gpu.engine.vllm import server
from temper_gpu.engine.vllm.client import Client
from temper_gpu.failures import TemperError

ROOM_TIMEOUT_S = 60.0

# Whether what the server answers under the adapter's name is sampled from the adapter: raises PolicyMismatch.
Prove = Callable[[Client, AdapterSource], None]


class Adapters:
    """Of one life of a server."""

    def __init__(self, max_policies: int, folder: Path, prove: Prove) -> None:
        self._max_policies = max_policies
        # Of the server's own life, so that it goes with it.
        self._folder = folder
        self._prove = prove
        self._folders: OrderedDict[str, Path] = OrderedDict()
        self._loading: set[str] = set()
        self._num_users: dict[str, int] = {}
        self._changed = threading.Condition()

    def loaded(self) -> tuple[str, ...]:
        with self._changed:
            return tuple(self._folders)

    @contextmanager
    def using(self, client: Client, source: AdapterSource) -> Iterator[None]:
        """Loads the adapter if need be, and keeps it meanwhile."""
        self._enter(client, source)
        try:
            yield
        except server.LostAdapter:
            self._forget(source.sha256)
            raise
        finally:
            with self._changed:
                self._num_users[source.sha256] -= 1
                self._changed.notify_all()

    def _enter(self, client: Client, source: AdapterSource) -> None:
        key = source.sha256
        with self._changed:
            self._changed.wait_for(lambda: key not in self._loading)
            if key in self._folders:
                self._folders.move_to_end(key)
                self._num_users[key] = self._num_users.get(key, 0) + 1
                return
            self._loading.add(key)
        try:
            self._make_room(client)
            folder = self._load(client, source)
            with self._changed:
                self._folders[key] = folder
                self._num_users[key] = self._num_users.get(key, 0) + 1
        finally:
            with self._changed:
                self._loading.discard(key)
                self._changed.notify_all()

    def _load(self, client: Client, source: AdapterSource) -> Path:
        """Into a folder of its own: vLLM reads it again when it had to make room in its memory."""
        folder = Path(tempfile.mkdtemp(prefix="adapter-", dir=self._folder))
        try:
            source.write_folder(folder)
            server.load_adapter(client, source.sha256, folder)
            server.require_listed(client, source.sha256, folder)
            self._prove(client, source)
        except BaseException:
            self._unload(client, source.sha256, folder)
            raise
        return folder

    def _make_room(self, client: Client) -> None:
        """Drops an adapter that nobody uses; one in use is never dropped, and room not awaited for ever."""
        with self._changed:
            if not self._changed.wait_for(self._has_room, ROOM_TIMEOUT_S):
                raise DeadlinePassed(
                    f"at most {self._max_policies} adapters are kept loaded, and all were in use for "
                    f"{ROOM_TIMEOUT_S:g} s; retry"
                )
            dropped = [self._unused()] if self._num_kept() > self._max_policies else []
            folders = [(key, self._folders.pop(key)) for key in dropped if key is not None]
        for key, folder in folders:
            self._unload(client, key, folder)

    def _has_room(self) -> bool:
        return self._num_kept() <= self._max_policies or self._unused() is not None

    def _num_kept(self) -> int:
        """Those that are being loaded have a place already."""
        return len(self._folders) + len(self._loading)

    def _unused(self) -> str | None:
        return next((key for key in self._folders if not self._num_users.get(key)), None)

    def _forget(self, key: str) -> None:
        with self._changed:
            self._folders.pop(key, None)

    def _unload(self, client: Client, key: str, folder: Path) -> None:
        # Where the server has ended, or does not answer, its end takes all with it.
        with suppress(TemperError, TimeoutError):
            server.unload_adapter(client, key)
        shutil.rmtree(folder, ignore_errors=True)
