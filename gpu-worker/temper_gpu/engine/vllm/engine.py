"""vLLM as the engine of one base model (engine/interface.py): our own queue before a server, which is a process of ours
or an external one.

A request is sent once vLLM has a place for it, so waiting requests survive the death of our server. Requests in flight
then fail as an outage, which callers retry; so do waiting ones while an external server is unavailable.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from temper_gpu.engine.interface import (
    AdapterSource,
    DeadlinePassed,
    EngineHealth,
    Generation,
    GenerationRequest,
    QueueFull,
    require_possible,
)
from temper_gpu.engine.vllm import server
from temper_gpu.engine.vllm.calls import Call, ServedModel, generate
from temper_gpu.engine.vllm.client import Client
from temper_gpu.engine.vllm.settings import VllmSettings
from temper_gpu.engine.vllm.supervisor import Server, ServerInstance, ServerSupervisor
from temper_gpu.engine.vllm.switching import Release
from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import Detokenizer
from temper_gpu.model.models import BaseModel

# Longest time for moving a model's weights between a GPU and main memory.
SLEEP_S = 300.0

log = logging.getLogger(__name__)


class VllmEngine:
    def __init__(self, base: BaseModel, source: str, settings: VllmSettings) -> None:
        """`source`: the base model's folder. Returns when the server answers; raises a TemperError if it does not."""
        self._base = base
        self._settings = settings
        self._detokenizer = Detokenizer(base.tokenizer)
        # The lock guards the queue and the counters. Each request wakes one of the waiting threads.
        lock = threading.RLock()
        self._work, self._idle = threading.Condition(lock), threading.Condition(lock)
        self._calls: deque[Call] = deque()
        self._num_running = 0
        # Memory that is released during a pause.
        self._released: Release = "nothing"
        self._counters = {"requests": 0, "tokens": 0, "starts": 0, "proofs": 0, "start_s": 0.0, "answer_s": 0.0}
        self._supervisor = ServerSupervisor(
            base,
            source,
            settings,
            self._work,
            on_start=self._started,
            on_proof=lambda: self._count(proofs=1),
            on_lost=self._fail_all,
        )
        self._supervisor.begin()
        # Threads exceed vLLM's slots, so that it need not wait while an answer is read.
        for number in range(settings.slots + settings.slots // 8):
            threading.Thread(target=self._serve, name=f"vLLM {number} of {base.name}", daemon=True).start()

    def _started(self, found: Server, seconds: float) -> None:
        """An external server may return with another context window or version."""
        base = self._base
        self.model = ServedModel(
            base.name, base.tokenizer, found.context_window, base.vocabulary_size, base.end_token_ids
        )
        self.recorded = found.recorded()
        self._count(starts=1, start_s=seconds)

    def submit(
        self, adapter: AdapterSource | None, request: GenerationRequest, deadline_s: float
    ) -> Future[Generation]:
        require_possible(self.model, request)
        call = Call(adapter, request, time.monotonic() + deadline_s)
        with self._work:
            self._check_open()
            self._calls.append(call)
            self._counters["requests"] += 1
            self._work.notify()
        call.future.add_done_callback(call.given_up)
        return call.future

    def health(self) -> EngineHealth:
        with self._work:
            instance, failure = self._supervisor.now, self._supervisor.failure
            unavailable = self._supervisor.unavailable
            absent = "starting" if unavailable is None else f"awaited: {unavailable}"
            held = "asleep" if self._released == "all" else "paused"
            state = absent if instance is None else held if self._supervisor.is_held else "ready"
            return EngineHealth(
                failure=None if failure is None else str(failure),
                waiting=len(self._calls),
                running=self._num_running,
                adapters=() if instance is None else instance.adapters.loaded(),
                details={**self.recorded, "state": state, "pid": None if instance is None else instance.server.pid},
            )

    def counters(self) -> Mapping[str, int | float]:
        with self._work:
            return dict(self._counters)

    def close(self) -> None:
        self._supervisor.close()
        self._fail_all(TemperError("EngineFailed", f"the engine of {self.model.name} was closed; retry"))

    @property
    def is_live(self) -> bool:
        return self._supervisor.now is not None

    def pause(self) -> None:
        """Pauses for training on the same GPU: finishes requests in flight and sends no others. A starting server is
        awaited, because it would take its memory in the middle of a step."""
        with self._idle:
            self._supervisor.is_held = True
            self._work.wait_for(lambda: not self._supervisor.is_starting or self._supervisor.is_closed)
            self._idle.wait_for(lambda: self._num_running == 0 or self._supervisor.is_closed)

    def release(self, release: Release) -> Release:
        """Releases memory of the paused vLLM. Returns what was released, which is more if it supports no smaller
        release."""
        self._released = release
        if release != "nothing":
            self._tell(self._supervisor.now, lambda client: self._give_up(client, release))
        return self._released

    def _give_up(self, client: Client, release: Release) -> None:
        if release == "cache":
            try:
                return server.release_cache(client, SLEEP_S)
            except server.LostServer:
                raise
            except TemperError as error:
                log.warning("vLLM keeps its key-value cache, so it sleeps: %s", error)
        self._released = "all"
        return server.sleep(client, SLEEP_S)

    def resume(self) -> None:
        released, self._released = self._released, "nothing"
        try:
            if released != "nothing":
                tag = "kv_cache" if released == "cache" else None
                self._tell(self._supervisor.now, lambda client: server.wake_up(client, SLEEP_S, tag))
        finally:
            with self._work:
                self._supervisor.is_held = False
                self._work.notify_all()

    def _tell(self, instance: ServerInstance | None, message: Callable[[Client], None]) -> None:
        """Ends a server that does not respond; the supervisor starts another one."""
        if instance is None:
            return
        client = Client(instance.server.address)
        try:
            message(client)
        except (TemperError, TimeoutError) as error:
            log.warning("vLLM is ended: %s", error)
            instance.server.close()
        finally:
            client.close()

    def _check_open(self) -> None:
        if self._supervisor.failure is not None:
            raise self._supervisor.failure
        if self._supervisor.is_closed:
            raise TemperError("EngineFailed", f"the engine of {self.model.name} was closed; retry")
        if self._supervisor.unavailable is not None:
            raise self._supervisor.unavailable
        if len(self._calls) >= self._settings.max_waiting:
            raise QueueFull(
                f"at most {self._settings.max_waiting} requests may wait for {self.model.name}, and this many already "
                "do; retry later"
            )

    def _serve(self) -> None:
        """One of the threads that wait for answers."""
        client, of = None, None
        while (taken := self._take()) is not None:
            call, instance = taken
            if client is None or of is not instance:
                client, of = Client(instance.server.address), instance
            started = time.perf_counter()
            self._answer(call, instance, client)
            with self._work:
                self._num_running -= 1
                self._counters["answer_s"] += time.perf_counter() - started
                if self._num_running == 0:
                    self._idle.notify_all()
        failure = self._supervisor.failure
        if failure is not None:
            self._fail_all(failure)

    def _take(self) -> tuple[Call, ServerInstance] | None:
        """The next pending request, once there is a server for it; None: there will be none."""
        with self._work:
            self._work.wait_for(lambda: self._supervisor.is_closed or self._has_work())
            instance = self._supervisor.now
            if self._supervisor.is_closed or instance is None:
                return None
            self._num_running += 1
            return self._calls.popleft(), instance

    def _has_work(self) -> bool:
        while self._calls and self._is_over(self._calls[0]):
            self._calls.popleft()
        return bool(self._calls) and self._supervisor.now is not None and not self._supervisor.is_held

    def _is_over(self, call: Call) -> bool:
        if call.left_s <= 0:
            call.fail(DeadlinePassed("an answer must be ready by its deadline, but vLLM was not free; retry"))
        return call.future.done()

    def _answer(self, call: Call, instance: ServerInstance, client: Client) -> None:
        try:
            if not call.begin(client):
                return
            generation = self._generate(call, instance, client)
            self._count(tokens=len(generation.token_ids))
            call.finish(generation)
        except TimeoutError:
            call.fail(DeadlinePassed("an answer must be ready by its deadline, but vLLM gave none; retry"))
        except server.LostServer as error:
            call.fail(instance.server.lost(error))
        except TemperError as error:
            call.fail(error)
        except Exception as error:
            log.exception("request failed")
            call.fail(TemperError("EngineFailed", f"a request to vLLM failed ({error!r}); retry"))
        finally:
            call.end()

    def _generate(self, call: Call, instance: ServerInstance, client: Client) -> Generation:
        """Returns the answer once the server is known to still have the requested policy."""
        check_each, adapter = instance.server.require_same, call.adapter
        if adapter is None:
            name = instance.server.served_name
            generation = generate(call, client, name, self._detokenizer, check_each)
            instance.server.confirm(client, None, None)
            return generation
        with instance.adapters.using(client, adapter) as folder:
            generation = generate(call, client, adapter.sha256, self._detokenizer, check_each)
            instance.server.confirm(client, adapter.sha256, folder)
            return generation

    def _fail_all(self, error: TemperError) -> None:
        with self._work:
            calls, self._calls = self._calls, deque()
        for call in calls:
            call.fail(error)

    def _count(self, **added: float) -> None:
        with self._work:
            for name, value in added.items():
                self._counters[name] += value
