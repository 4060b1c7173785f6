"""vLLM as the engine of one base model (engine/interface.py): a queue of ours before a server, which is a process of
ours or one that somebody else runs.

A request is sent to vLLM when that has a place for it, so what waits outlives a death of a server of ours. What vLLM
had in hand when it died fails as an outage, which callers retry; so does what waits while somebody else's is away.
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
)
from temper_gpu.engine.vllm import server
from temper_gpu.engine.vllm.calls import Call, ServedModel, check, generate
from temper_gpu.engine.vllm.client import Client
from temper_gpu.engine.vllm.lives import Life, Lives, Server
from temper_gpu.engine.vllm.settings import VllmSettings
from temper_gpu.engine.vllm.switching import Release
from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import Detokenizer
from temper_gpu.model.models import BaseModel

# What moving a model's weights between a GPU and main memory may take.
SLEEP_S = 300.0

log = logging.getLogger(__name__)


class VllmEngine:
    def __init__(self, base: BaseModel, source: str, settings: VllmSettings) -> None:
        """`source`: the base model's folder. Returns when the server answers; raises a TemperError if it does not."""
        self._base = base
        self._settings = settings
        self._detokenizer = Detokenizer(base.tokenizer)
        # Guards the queue and the counters. Of the threads that wait for work one is woken for each request.
        lock = threading.RLock()
        self._work, self._idle = threading.Condition(lock), threading.Condition(lock)
        self._calls: deque[Call] = deque()
        self._num_running = 0
        # While it is paused.
        self._released: Release = "nothing"
        self._counters = {"requests": 0, "tokens": 0, "starts": 0, "proofs": 0, "start_s": 0.0, "answer_s": 0.0}
        self._lives = Lives(
            base,
            source,
            settings,
            self._work,
            on_start=self._started,
            on_proof=lambda: self._count(proofs=1),
            on_lost=self._fail_all,
        )
        self._lives.begin()
        # A few more than vLLM computes at once: it need not wait while an answer is read.
        for number in range(settings.slots + settings.slots // 8):
            threading.Thread(target=self._serve, name=f"vLLM {number} of {base.name}", daemon=True).start()

    def _started(self, found: Server, seconds: float) -> None:
        """A server that somebody else runs may come back with another context, or another version."""
        base = self._base
        self.model = ServedModel(
            base.name, base.tokenizer, found.context_window, base.vocabulary_size, base.end_token_ids
        )
        self.recorded = found.recorded()
        self._count(starts=1, start_s=seconds)

    def submit(
        self, adapter: AdapterSource | None, request: GenerationRequest, deadline_s: float
    ) -> Future[Generation]:
        check(self.model, request)
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
            life, failure = self._lives.now, self._lives.failure
            away = self._lives.away
            absent = "starting" if away is None else f"awaited: {away}"
            held = "asleep" if self._released == "all" else "paused"
            state = absent if life is None else held if self._lives.is_held else "ready"
            return EngineHealth(
                failure=None if failure is None else str(failure),
                waiting=len(self._calls),
                running=self._num_running,
                adapters=() if life is None else life.adapters.loaded(),
                details={**self.recorded, "state": state, "pid": None if life is None else life.server.pid},
            )

    def counters(self) -> Mapping[str, int | float]:
        with self._work:
            return dict(self._counters)

    def close(self) -> None:
        self._lives.close()
        self._fail_all(TemperError("EngineFailed", f"the engine of {self.model.name} was closed; retry"))

    @property
    def is_live(self) -> bool:
        return self._lives.now is not None

    def pause(self) -> None:
        """For training on the same GPU: what is in hand is answered, and nothing else is sent. A server that is being
        started is awaited: it would take its memory in the middle of a step."""
        with self._idle:
            self._lives.is_held = True
            self._work.wait_for(lambda: not self._lives.is_starting or self._lives.is_closed)
            self._idle.wait_for(lambda: self._num_running == 0 or self._lives.is_closed)

    def release(self, release: Release) -> Release:
        """Of vLLM's memory, while it is paused. Returns what was released: more, where it knows no smaller release."""
        self._released = release
        if release != "nothing":
            self._tell(self._lives.now, lambda client: self._give_up(client, release))
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
        if released != "nothing":
            tag = "kv_cache" if released == "cache" else None
            self._tell(self._lives.now, lambda client: server.wake_up(client, SLEEP_S, tag))
        with self._work:
            self._lives.is_held = False
            self._work.notify_all()

    def _tell(self, life: Life | None, message: Callable[[Client], None]) -> None:
        """A server that does not hear is ended; another one begins when it may."""
        if life is None:
            return
        client = Client(life.server.address)
        try:
            message(client)
        except (TemperError, TimeoutError) as error:
            log.warning("vLLM is ended: %s", error)
            life.server.close()
        finally:
            client.close()

    def _check_open(self) -> None:
        if self._lives.failure is not None:
            raise self._lives.failure
        if self._lives.is_closed:
            raise TemperError("EngineFailed", f"the engine of {self.model.name} was closed; retry")
        if self._lives.away is not None:
            raise self._lives.away
        if len(self._calls) >= self._settings.max_waiting:
            raise QueueFull(
                f"at most {self._settings.max_waiting} requests may wait for {self.model.name}, and this many already "
                "do; retry later"
            )

    def _serve(self) -> None:
        """One of the threads that wait for answers."""
        client, of = None, None
        while (taken := self._take()) is not None:
            call, life = taken
            if client is None or of is not life:
                client, of = Client(life.server.address), life
            started = time.perf_counter()
            self._answer(call, life, client)
            with self._work:
                self._num_running -= 1
                self._counters["answer_s"] += time.perf_counter() - started
                if self._num_running == 0:
                    self._idle.notify_all()
        failure = self._lives.failure
        if failure is not None:
            self._fail_all(failure)

    def _take(self) -> tuple[Call, Life] | None:
        """The next request that somebody waits for, once there is a server for it; None: there will be none."""
        with self._work:
            self._work.wait_for(lambda: self._lives.is_closed or self._has_work())
            life = self._lives.now
            if self._lives.is_closed or life is None:
                return None
            self._num_running += 1
            return self._calls.popleft(), life

    def _has_work(self) -> bool:
        while self._calls and self._is_over(self._calls[0]):
            self._calls.popleft()
        return bool(self._calls) and self._lives.now is not None and not self._lives.is_held

    def _is_over(self, call: Call) -> bool:
        if call.left_s <= 0:
            call.fail(DeadlinePassed("an answer must be ready by its deadline, but vLLM was not free; retry"))
        return call.future.done()

    def _answer(self, call: Call, life: Life, client: Client) -> None:
        try:
            if not call.begin(client):
                return
            generation = self._generate(call, life, client)
            self._count(tokens=len(generation.token_ids))
            call.finish(generation)
        except TimeoutError:
            call.fail(DeadlinePassed("an answer must be ready by its deadline, but vLLM gave none; retry"))
        except server.LostServer as error:
            call.fail(life.server.lost(error))
        except TemperError as error:
            call.fail(error)
        except Exception as error:
            log.exception("request failed")
            call.fail(TemperError("EngineFailed", f"a request to vLLM failed ({error!r}); retry"))
        finally:
            call.end()

    def _generate(self, call: Call, life: Life, client: Client) -> Generation:
        """Handed over once the server is seen to have, still, what it was asked for."""
        check_each, adapter = life.server.require_same, call.adapter
        if adapter is None:
            name = life.server.served_name
            generation = generate(call, client, name, self._detokenizer, check_each)
            life.server.confirm(client, None, None)
            return generation
        with life.adapters.using(client, adapter) as folder:
            generation = generate(call, client, adapter.sha256, self._detokenizer, check_each)
            life.server.confirm(client, adapter.sha256, folder)
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
