"""A request inside the vLLM engine, from submission to its answer."""

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from temper_gpu.engine.interface import AdapterSource, ContextTooLong, Generation, GenerationRequest
from temper_gpu.engine.vllm import server
from temper_gpu.engine.vllm.client import Client
from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import Detokenizer


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
            reason = end_of(request, token_ids, detokenizer)
            if reason is not None:
                return Generation(token_ids, logprobs, reason, tops[: len(token_ids)])


def end_of(
    request: GenerationRequest, token_ids: list[int], detokenizer: Detokenizer
) -> Literal["stop", "length"] | None:
    """Whether the last token is the one that ends the answer (engine/interface.py)."""
    if token_ids[-1] in request.stop_token_ids:
        return "stop"
    if request.stop:
        # A token is at least one byte, a character at most four.
        span = 4 * max(map(len, request.stop)) + 8
        tail = detokenizer.decode(token_ids[-span:])
        if any(stop in tail for stop in request.stop):
            return "stop"
    return "length" if len(token_ids) >= request.max_tokens else None


def check(model: ServedModel, request: GenerationRequest) -> None:
    length, window = len(request.prompt_token_ids), model.context_window
    if not length:
        raise TemperError("BadConfig", "a prompt must have at least 1 token, got none; send a message")
    if request.max_tokens < 1:
        raise TemperError(
            "BadConfig", f"max_tokens must be at least 1, got {request.max_tokens}; raise it or leave it out"
        )
    if length + request.max_tokens > window:
        raise ContextTooLong(
            f"prompt and max_tokens must fit into the {window} tokens of {model.name}, got {length} + "
            f"{request.max_tokens}; shorten the conversation or lower max_tokens"
        )
    if not (request.temperature >= 0 and math.isfinite(request.temperature)):
        raise TemperError("BadConfig", f"temperature must be finite and not negative, got {request.temperature}; use 1")
