"""Supervises one vLLM server: each instance proves itself before use, and after its end the next one starts, with a
pause that grows with each failure."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from temper_gpu.engine.vllm.adapters import Adapters
from temper_gpu.engine.vllm.client import Address, Client
from temper_gpu.engine.vllm.external import DETACH_S, ExternalServer
from temper_gpu.engine.vllm.folders import AdapterFolders
from temper_gpu.engine.vllm.process import VllmProcess
from temper_gpu.engine.vllm.proof import Prover
from temper_gpu.engine.vllm.server import Completion
from temper_gpu.engine.vllm.settings import VllmSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel

# Uptime after which the pause starts again from its minimum.
STABLE_S = 60.0
HELD_POLL_S = 0.2

log = logging.getLogger(__name__)


class Server(Protocol):
    """One instance of a server: a process of ours, or an external one."""

    @property
    def address(self) -> Address: ...
    @property
    def folders(self) -> AdapterFolders: ...
    @property
    def ended(self) -> threading.Event: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def served_name(self) -> str:
        """The base model's name on the server."""
        ...

    @property
    def context_window(self) -> int: ...
    def recorded(self) -> dict[str, str]:
        """Engine fields for manifests: its name, version and flags."""
        ...

    def wait_until_ready(self, timeout_s: float) -> None: ...
    def proven(self, fingerprint: str | None) -> None: ...
    def require_same(self, completion: Completion) -> None:
        """Requires that the proven server gave this answer. Raises LostServer."""
        ...

    def confirm(self, client: Client, adapter: str | None, folder: str | None) -> None:
        """Requires that it had the adapter while it answered. Raises LostAdapter and LostServer."""
        ...

    def lost(self, error: TemperError) -> TemperError:
        """Handles a call's finding that the server is gone, or another one."""
        ...

    def failure(self) -> TemperError: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class ServerInstance:
    """A server that has proven itself."""

    server: Server
    adapters: Adapters
    since: float

    def detach(self) -> None:
        """Unloads our adapters from an external server, which keeps running."""
        if self.server.address.url is not None:
            client = Client(self.server.address)
            self.adapters.drop_all(client, DETACH_S)
            client.close()


class ServerSupervisor:
    """`changed` guards all state; waiters are notified of a new instance, and of the final failure."""

    def __init__(
        self,
        base: BaseModel,
        source: str,
        settings: VllmSettings,
        changed: threading.Condition,
        on_start: Callable[[Server, float], None],
        on_proof: Callable[[], None],
        on_lost: Callable[[TemperError], None],
    ) -> None:
        """`on_lost` is called when an external server becomes unavailable for an unknown time."""
        self._base = base
        self._source = source
        self._settings = settings
        self._changed = changed
        self._on_start = on_start
        self._prover = Prover(base, on_proof)
        self._on_lost = on_lost
        self._newest: Server | None = None
        self.now: ServerInstance | None = None
        # Reason why there is no instance, if an external server is unavailable.
        self.unavailable: TemperError | None = None
        # Reason why there will be no other instance.
        self.failure: TemperError | None = None
        # Forbids a new instance while others use its memory.
        self.is_held = False
        # A pause waits for the end of a start.
        self.is_starting = False
        self._closing = threading.Event()

    @property
    def is_closed(self) -> bool:
        return self._closing.is_set()

    def begin(self) -> None:
        """Returns when the first server is of use; raises a TemperError if it does not come so far."""
        self.now = self._start()
        threading.Thread(target=self._keep_alive, name=f"supervisor of {self._base.name}", daemon=True).start()

    def close(self) -> None:
        with self._changed:
            self._closing.set()
            newest, instance = self._newest, self.now
            self._changed.notify_all()
        if instance is not None:
            instance.detach()
        if newest is not None:
            newest.close()

    def _start(self) -> ServerInstance:
        started = time.monotonic()
        process = self._open_server()
        with self._changed:
            self._newest = process
            is_closed = self.is_closed
        try:
            if is_closed:
                raise TemperError("EngineFailed", f"the engine of {self._base.name} was closed; retry")
            process.wait_until_ready(self._settings.start_timeout_s)
            client = Client(process.address)
            try:
                process.proven(self._prover.prove_base(client, process.served_name))
            finally:
                client.close()
        except TimeoutError as error:
            process.close()
            raise TemperError(
                "EngineFailed", f"{process.address.server} must answer while it is looked at, but is too slow; retry"
            ) from error
        except BaseException:
            process.close()
            raise
        seconds = time.monotonic() - started
        self._on_start(process, seconds)
        log.info("vLLM is ready", extra={"model": self._base.name, "pid": process.pid, "seconds": round(seconds, 1)})
        adapters = Adapters(self._settings.max_policies, process.folders, self._prover.prove_adapter)
        return ServerInstance(process, adapters, time.monotonic())

    def _open_server(self) -> Server:
        if self._settings.external is not None:
            return ExternalServer(self._base, self._settings.external)
        return VllmProcess(self._base, self._source, self._settings)

    def _keep_alive(self) -> None:
        least_s, most_s = self._settings.backoff_s
        pause_s = least_s
        while True:
            instance = self.now
            if instance is not None:
                instance.server.ended.wait()
                if time.monotonic() - instance.since > STABLE_S:
                    pause_s = least_s
                with self._changed:
                    self.now = None
                if not self.is_closed:
                    log.warning("vLLM is started again, or awaited: %s", instance.server.failure())
                    self._lose(instance.server.failure())
                    instance.detach()
            self._closing.wait(pause_s)
            while not self._may_start() and not self._closing.wait(HELD_POLL_S):
                pass
            if self.is_closed:
                return
            pause_s = min(2 * pause_s, most_s)
            self._restart()

    def _may_start(self) -> bool:
        with self._changed:
            self.is_starting = not self.is_held
            return self.is_starting

    def _restart(self) -> None:
        instance = failure = None
        try:
            instance = self._start()
        except TemperError as error:
            log.error("vLLM did not start: %s", error)
            failure = None if error.retryable else error
            self._lose(error)
        except Exception:
            log.exception("vLLM did not start")
        with self._changed:
            self.now, self.failure = instance, failure
            self.is_starting = False
            self.unavailable = None if instance is not None else self.unavailable
            if failure is not None:
                self._closing.set()
            is_closed = self.is_closed
            self._changed.notify_all()
        if is_closed and instance is not None:
            instance.server.close()

    def _lose(self, reason: TemperError) -> None:
        """Fails calls to an external server, so that they are retried. Our own returns soon, so calls wait for it."""
        if self._settings.external is None or not reason.retryable:
            return
        with self._changed:
            self.unavailable = reason
        self._on_lost(reason)
