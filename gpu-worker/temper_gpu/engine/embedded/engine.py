"""The embedded engine of one base model (engine/interface.py): a queue, a thread, and policies loaded beside it."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import torch

from temper_gpu.engine.embedded.constraints import Constraints
from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.policies import Policies, is_merged
from temper_gpu.engine.embedded.proof import Unproven, prove_sizes
from temper_gpu.engine.embedded.requests import Sequence
from temper_gpu.engine.embedded.scheduler import Scheduler
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import Sizes, sizes_for, threads_for
from temper_gpu.engine.interface import (
    AdapterSource,
    EngineHealth,
    Generation,
    GenerationRequest,
    QueueFull,
    require_possible,
)
from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import Detokenizer
from temper_gpu.model.memory import Shortage, describe_error, format_bytes, free_memory, is_out_of_memory
from temper_gpu.model.models import BaseModel

# Interval at which requests are checked for passed deadlines while training has the device.
DEVICE_POLL_S = 0.2
POLICY_ROOM_TIMEOUT_S = 60.0
ROOM_REMEDY = (
    "lower --kv-cache-bytes or --slots (engine.kvCacheBytes, engine.slots in temporal.config.ts), "
    "or use a smaller base model or --dtype bfloat16"
)
UNPROVEN = (
    "on this GPU no size of a forward pass of %s gives the same bits at every place: what a request samples may depend "
    "on which others run at the same time, as it does with vLLM (--engine vllm), which is faster"
)

log = logging.getLogger(__name__)


class EmbeddedEngine:
    """Samples depend on (adapter, prompt, parameters, seed) alone, never on the load."""

    def __init__(
        self,
        base: BaseModel,
        settings: EmbeddedSettings,
        device_lock: "DeviceLock | threading.Lock | None" = None,
        on_death: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.base = base
        self.settings = settings
        self.failure: BaseException | None = None
        # Time of the last request, by the monotonic clock.
        self.used_at = time.monotonic()
        self._device_lock = device_lock or DeviceLock()
        self._on_death = on_death
        self._is_closed = False
        # Guards `_loading`, `_constraining` and `_is_closed`.
        self._lock = threading.Lock()
        self._loading: dict[str, list[Sequence]] = {}
        self._loader = ThreadPoolExecutor(1, thread_name_prefix=f"policies of {base.name}")
        self._constraints = Constraints(base)
        self._constraining: list[Sequence] = []
        self._constrainer = ThreadPoolExecutor(1, thread_name_prefix=f"schemas of {base.name}")
        self._detokenizer = Detokenizer(base.tokenizer)
        self._shortage = Shortage(f"what the engine of {base.name} computes", ROOM_REMEDY, base.device)
        # The last pass that ran out of memory: its time, the length of the request that was blamed, and that failure.
        self._lack_at, self._lack_tokens, self._lack = 0.0, 0, TemperError("EngineFailed", "")
        self._num_threads = threads_for(base.num_parameters, settings.num_threads)
        self.candidates = sizes_for(base.num_parameters, settings.max_pass_tokens, base.device)
        with self._device_lock, threads(self._num_threads):
            self.sizes = find_sizes(base, self.candidates, settings.max_slots)
        self._policies = Policies(base, settings.max_policies, self._device_lock)
        self._scheduler = Scheduler(base, self.sizes, self._policies, settings)
        self._thread = threading.Thread(target=self._run, name=f"engine of {base.name}", daemon=True)
        self._thread.start()

    @property
    def model(self) -> BaseModel:
        return self.base

    def submit(
        self, adapter: AdapterSource | None, request: GenerationRequest, deadline_s: float
    ) -> Future[Generation]:
        require_possible(self.base, request)
        self._check_room(len(request.prompt_token_ids), request.max_tokens)
        self.used_at = time.monotonic()
        policy = None if adapter is None else adapter.sha256
        sequence = Sequence(policy, request, time.monotonic() + deadline_s, self._detokenizer.decode)
        with self._lock:
            self._check_open()
            if request.schema is None:
                self._enqueue(adapter, sequence)
            else:
                self._constraining.append(sequence)
                self._constrainer.submit(self._constrain, adapter, sequence, request.schema)
        return sequence.future

    @property
    def is_idle(self) -> bool:
        """No request waits or is being answered."""
        return not self._num_waiting() and not self._scheduler.num_running()

    @property
    def max_tokens(self) -> int:
        """The longest request, prompt and answer, that the key-value cache has room for."""
        return self._scheduler.max_tokens

    def health(self) -> EngineHealth:
        return EngineHealth(
            failure=None if self.failure is None else repr(self.failure),
            waiting=self._num_waiting(),
            running=self._scheduler.num_running(),
            adapters=tuple(self._policies.loaded()),
            details={
                "sizes": self.sizes.allowed,
                "threads": self._num_threads,
                "proven": self.sizes.is_proven,
                "kv_cache_usage": self._scheduler.kv_cache_usage(),
                "prefix_cache_bytes": self._scheduler.num_prefix_bytes(),
            },
        )

    def counters(self) -> Mapping[str, int | float]:
        return dict(vars(self._scheduler.counters))

    def _num_waiting(self) -> int:
        preparing = [*self._loading.values(), self._constraining]
        return self._scheduler.num_waiting() + sum(map(len, preparing))

    def close(self) -> None:
        """Ends the thread; what still waits fails."""
        with self._lock:
            self._is_closed = True
        with self._scheduler.arrived:
            self._scheduler.arrived.notify()
        self._thread.join()
        for threads in (self._loader, self._constrainer):
            threads.shutdown(cancel_futures=True)
        self._fail_all(TemperError("EngineFailed", f"the engine of {self.base.name} was closed; retry"))

    def _check_room(self, length: int, max_tokens: int) -> None:
        """Refuses requests that fit into the window but not into memory: waiting would not help."""
        if length + max_tokens > self.max_tokens:
            raise TemperError(
                "BadConfig",
                f"a request must fit into the key-value cache of {self.base.name}: {length} + {max_tokens} tokens need "
                f"{format_bytes(self._scheduler.bytes_of(length + max_tokens))}, but the cache may take "
                f"{format_bytes(self.settings.kv_cache_bytes)} ({self.max_tokens} tokens); raise --kv-cache-bytes "
                "(engine.kvCacheBytes in temporal.config.ts), or shorten the conversation or max_tokens",
            )

    def _is_down(self) -> bool:
        return self.failure is not None or self._is_closed

    def _check_open(self) -> None:
        if self._is_down():
            reason = repr(self.failure) if self.failure else "closed"
            raise TemperError(
                "EngineFailed", f"the engine of {self.base.name} is down ({reason}) and is being restarted"
            )
        if self._num_waiting() >= self.settings.max_waiting:
            raise QueueFull(
                f"at most {self.settings.max_waiting} requests may wait for {self.base.name}, and this many already "
                "do; retry later"
            )

    def _constrain(self, adapter: AdapterSource | None, sequence: Sequence, schema: str) -> None:
        """Runs in its own thread, because reading a schema, and at first the vocabulary, takes time."""
        error: BaseException = TemperError("EngineFailed", f"the engine of {self.base.name} was closed; retry")
        try:
            if not sequence.future.cancelled():
                sequence.constraint = self._constraints.of(schema)
        except BaseException as caught:
            error = caught
        with self._lock:
            self._constraining.remove(sequence)
            if sequence.constraint is None or self._is_down():
                sequence.fail(error)
            else:
                self._enqueue(adapter, sequence)

    def _enqueue(self, adapter: AdapterSource | None, sequence: Sequence) -> None:
        if self._policies.use(sequence.policy):
            self._scheduler.enqueue(sequence)
        elif adapter is not None:
            self._enqueue_after_loading(adapter, sequence)

    def _enqueue_after_loading(self, adapter: AdapterSource, sequence: Sequence) -> None:
        if adapter.sha256 in self._loading:
            self._loading[adapter.sha256].append(sequence)
        else:
            self._loading[adapter.sha256] = [sequence]
            self._loader.submit(self._load, adapter)

    def _load(self, adapter: AdapterSource) -> None:
        """Runs in the loader's thread, so that other policies keep sampling."""
        key = adapter.sha256
        error: BaseException = TemperError("EngineFailed", f"adapter {key} was dropped while loading; retry")
        try:
            torch.set_num_threads(self._num_threads)  # counted per thread by OpenMP
            self._policies.load(adapter, POLICY_ROOM_TIMEOUT_S)
        except BaseException as caught:
            error = self._shortage.failed(caught) if is_out_of_memory(caught) else caught
        with self._lock:
            for sequence in self._loading.pop(key):
                if not self._is_down() and self._policies.use(key):
                    self._scheduler.enqueue(sequence)
                else:
                    sequence.fail(error)

    def _run(self) -> None:
        torch.set_num_threads(self._num_threads)
        try:
            with torch.inference_mode():
                while self._wait_for_work():
                    with self._device() as is_ours:
                        if is_ours:
                            self._step()
        except BaseException as error:
            self.failure = error
            self._fail_all(self._is_restarted(error))
            if self._on_death is not None:
                self._on_death(error)

    def _step(self) -> None:
        """One pass. If it has no room, the longest request is dropped, and the others begin again. If it fails
        otherwise, they do so one by one."""
        try:
            self._scheduler.step()
            return
        except Exception as error:
            if not is_out_of_memory(error):
                if self._scheduler.num_running() == 0:
                    raise
                return self._find_culprit(error)
            is_roomy = self._scheduler.longest_answered >= self._lack_tokens
            longest = self._scheduler.take_longest()
            if longest is None:
                raise
            # One lack of memory may fail several requests: that is one try. A later request is the next try.
            if longest.created > self._lack_at:
                # An answer to a shorter request says nothing about this one.
                if is_roomy:
                    self._shortage.succeeded()
                self._lack = self._shortage.failed(error)
                self._lack_at = time.monotonic()
            self._lack_tokens = longest.num_tokens
        # Outside of the handler, whose error holds what was computed.
        log.warning("no memory for a pass, the longest request is dropped: %s", self._lack)
        longest.fail(self._lack)
        free_memory()

    def _find_culprit(self, error: Exception) -> None:
        log.error("a pass failed, its requests run once more, each alone", exc_info=error)
        culprit = self._scheduler.take_culprit()
        is_sound = self._scheduler.is_sound()
        if culprit is not None:
            # The server reports unexpected errors like any others.
            culprit.fail(error if is_sound else self._is_restarted(error))
        if not is_sound:
            raise error

    def _is_restarted(self, error: BaseException) -> TemperError:
        return TemperError("EngineFailed", f"the engine of {self.base.name} failed ({error!r}) and is being restarted")

    def _wait_for_work(self) -> bool:
        with self._scheduler.arrived:
            self._scheduler.arrived.wait_for(lambda: self._is_closed or self._scheduler.has_work())
        return not self._is_closed

    @contextmanager
    def _device(self) -> Iterator[bool]:
        """The device for one pass; false if the engine was closed while it waited."""
        started = time.perf_counter()
        while not self._device_lock.acquire(timeout=DEVICE_POLL_S):
            self._scheduler.drop_abandoned()
            if self._is_closed:
                yield False
                return
        self._scheduler.counters.device_wait_s += time.perf_counter() - started
        try:
            yield True
        finally:
            self._device_lock.release()

    def _fail_all(self, error: BaseException) -> None:
        self._scheduler.fail_all(error)
        with self._lock:
            for sequence in [sequence for each in (*self._loading.values(), self._constraining) for sequence in each]:
                sequence.fail(error)


@contextmanager
def threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def find_sizes(base: BaseModel, candidates: Sizes, max_slots: int) -> Sizes:
    """The first time that the model is run here: what it cannot do shows."""
    try:
        beside = not is_merged(base.dtype, base.device, bool(base.packed))
        return prove_sizes(base, candidates, max_slots, beside)
    except Unproven:
        if base.device.type == "cpu":
            raise
        # A GPU has no narrower instructions.
        log.warning(UNPROVEN, base.name, extra={"model": base.name})
        return replace(candidates, is_proven=False)
    except Exception as error:
        if isinstance(error, TemperError) or is_out_of_memory(error):
            raise
        log.warning("model not usable", extra={"model": base.name}, exc_info=error)
        raise TemperError(
            "BadConfig",
            f"the model {base.name} must run in the embedded engine, but {type(base.config).__name__} does not "
            f"({describe_error(error)}); use a Qwen2, Qwen3, Llama or Mistral model",
        ) from error
