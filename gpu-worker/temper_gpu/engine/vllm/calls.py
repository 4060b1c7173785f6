"""A request inside the vLLM engine, from submission to its answer."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from temper_gpu.engine.interface import AdapterSource, Generation, GenerationRequest
from temper_gpu.engine.vllm import server
from temper_gpu.engine.vllm.client import Client
from temper_gpu.model.detokenizer import Detokenizer, stop_check


@dataclass(frozen=True)
class ServedModel:
    """A base model as vLLM serves it (engine/interface.py): its window may be the smaller one."""

    name: str
    tokenizer: Any
    context_window: int
    vocabulary_size: int
    end_token_ids: frozenset[int]


@dataclass
class Call:
    adapter: AdapterSource | None
    request: GenerationRequest
    deadline: float
    future: Future[Generation] = field(default_factory=Future)
    # The connection that the answer is read from, meanwhile. Guarded by `lock`.
    client: Client | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def begin(self, client: Client) -> bool:
        """False if the caller has stopped waiting."""
        with self.lock:
            self.client = client
            return not self.future.done()

    def end(self) -> None:
        with self.lock:
            self.client = None

    def given_up(self, _: Future[Generation]) -> None:
        """Aborts the request if the caller has cancelled the future."""
        with self.lock:
            if self.future.cancelled() and self.client is not None:
                self.client.abort()

    def finish(self, generation: Generation) -> None:
        with suppress(InvalidStateError):  # the caller gave up at this very moment
            self.future.set_result(generation)

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


def generate(
    call: Call,
    client: Client,
    name: str,
    detokenizer: Detokenizer,
    check_each: Callable[[server.Completion], None],
) -> Generation:
    """vLLM searches stop strings in its own decoded text. If Temper's text ends earlier, the rest is dropped; if it has
    not ended yet, vLLM continues. Raises TimeoutError at the deadline."""
    request = call.request
    token_ids: list[int] = []
    logprobs: list[float] = []
    tops: list[list[tuple[int, float]]] = []
    is_stopped = stop_check(request.stop, detokenizer.decode)
    while True:
        left_s = call.left_s
        if left_s <= 0:
            raise TimeoutError
        prompt = [*request.prompt_token_ids, *token_ids]
        rest = replace(request, max_tokens=request.max_tokens - len(token_ids))
        answer = server.complete(client, name, prompt, rest, left_s)
        check_each(answer)
        tops += answer.top_logprobs
        for token_id, logprob in zip(answer.token_ids, answer.logprobs, strict=True):
            token_ids.append(token_id)
            logprobs.append(logprob)
            has_ended = token_id in request.stop_token_ids or (is_stopped is not None and is_stopped(token_ids))
            if has_ended or len(token_ids) >= request.max_tokens:
                reason = "stop" if has_ended else "length"
                return Generation(token_ids, logprobs, reason, tops[: len(token_ids)])
