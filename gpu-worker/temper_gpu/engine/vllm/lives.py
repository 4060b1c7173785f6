"""The lives of one vLLM server, one after the other: each proves itself before it is of use, and the end of one is the
beginning of the next, after a pause that grows with each failure."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from temper_gpu.engine.vllm.adapters import Adapters
from temper_gpu.engine.vllm.client import Client
from temper_gpu.engine.vllm.process import VllmProcess
from temper_gpu.engine.vllm.proof import Prover
from temper_gpu.engine.vllm.settings import VllmSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel

# After so long a life a death is the first again.
LONG_LIFE_S = 60.0
HELD_POLL_S = 0.2

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Life:
    """A server that has proven itself."""

    process: VllmProcess
    adapters: Adapters
    since: float


class Lives:
    """`changed` guards all of it; who waits on it is woken when another life begins, or none will."""

    def __init__(
        self,
        base: BaseModel,
        source: str,
        settings: VllmSettings,
        changed: threading.Condition,
        on_start: Callable[[float], None],
        on_proof: Callable[[], None],
    ) -> None:
        self._base = base
        self._source = source
        self._settings = settings
        self._changed = changed
        self._on_start = on_start
        self._prover = Prover(base, on_proof)
        self._newest: VllmProcess | None = None
        self.now: Life | None = None
        # Why there will be no other life.
        self.failure: TemperError | None = None
        # No life begins meanwhile: its memory is somebody else's.
        self.is_held = False
        self._closing = threading.Event()

    @property
    def is_closed(self) -> bool:
        return self._closing.is_set()

    def begin(self) -> None:
        """Returns when the first server is of use; raises a TemperError if it does not come so far."""
        self.now = self._live()
        threading.Thread(target=self._keep_alive, name=f"lives of {self._base.name}", daemon=True).start()

    def close(self) -> None:
        with self._changed:
            self._closing.set()
            newest = self._newest
            self._changed.notify_all()
        if newest is not None:
            newest.close()

    def _live(self) -> Life:
        started = time.monotonic()
        process = VllmProcess(self._base, self._source, self._settings)
        with self._changed:
            self._newest = process
            is_closed = self.is_closed
        try:
            if is_closed:
                raise TemperError("EngineFailed", f"the engine of {self._base.name} was closed; retry")
            process.wait_until_ready(self._settings.start_timeout_s)
            client = Client(process.address)
            try:
                self._prover.prove_base(client)
            finally:
                client.close()
        except BaseException:
            process.close()
            raise
        seconds = time.monotonic() - started
        self._on_start(seconds)
        log.info("vLLM is ready", extra={"model": self._base.name, "pid": process.pid, "seconds": round(seconds, 1)})
        adapters = Adapters(self._settings.max_policies, process.folder, self._prover.prove_adapter)
        return Life(process, adapters, time.monotonic())

    def _keep_alive(self) -> None:
        least_s, most_s = self._settings.backoff_s
        pause_s = least_s
        while True:
            life = self.now
            if life is not None:
                life.process.ended.wait()
                if time.monotonic() - life.since > LONG_LIFE_S:
                    pause_s = least_s
                with self._changed:
                    self.now = None
                if not self.is_closed:
                    log.warning("vLLM is started again: %s", life.process.failure())
            self._closing.wait(pause_s)
            while self.is_held and not self._closing.wait(HELD_POLL_S):
                pass
            if self.is_closed:
                return
            pause_s = min(2 * pause_s, most_s)
            self._live_again()

    def _live_again(self) -> None:
        life = failure = None
        try:
            life = self._live()
        except TemperError as error:
            log.error("vLLM did not start: %s", error)
            failure = None if error.retryable else error
        except Exception:
            log.exception("vLLM did not start")
        with self._changed:
            self.now, self.failure = life, failure
            if failure is not None:
                self._closing.set()
            is_closed = self.is_closed
            self._changed.notify_all()
        if is_closed and life is not None:
            life.process.close()
