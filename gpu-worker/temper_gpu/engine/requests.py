"""What is asked of the engine, and what it answers."""

import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from temper_gpu.failures import TemperError


@dataclass(frozen=True)
class GenerationRequest:
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    # 0 takes the likeliest token.
    temperature: float
    # The only source of chance: the same request with the same seed samples the same tokens.
    seed: int
    stop_token_ids: frozenset[int] = frozenset()
    # Asked after each token about all tokens so far; true ends the answer (stop strings).
    is_stopped: Callable[[list[int]], bool] | None = None


@dataclass(frozen=True)
class Generation:
    """Sampled tokens, the one that ended the answer included, and their log-probabilities after temperature."""

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: Literal["stop", "length"]


class QueueFull(TemperError):
    """Too many requests are waiting: come back later."""

    def __init__(self, message: str) -> None:
        super().__init__("EngineFailed", message)


class DeadlinePassed(TemperError):
    """Nobody waits for the answer any more."""

    def __init__(self, message: str) -> None:
        super().__init__("EngineFailed", message)


class ContextTooLong(TemperError):
    """More tokens than the model has places for: the agent's affair, not the run's."""

    def __init__(self, message: str) -> None:
        super().__init__("BadConfig", message)


class NotFound(TemperError):
    """No model and no policy of this name."""

    def __init__(self, message: str) -> None:
        super().__init__("BadConfig", message)


class Sequence:
    """A request in the scheduler's hands: where it stands, and what it has sampled."""

    __slots__ = (
        *("computed", "created", "deadline", "future", "logprobs", "policy"),
        *("prompt", "request", "slot", "token_ids"),
    )

    def __init__(self, policy: str | None, request: GenerationRequest, deadline: float) -> None:
        self.policy = policy
        self.request = request
        self.created = time.monotonic()
        self.deadline = deadline
        self.future: Future[Generation] = Future()
        self.prompt = np.array(request.prompt_token_ids, dtype=np.int64)
        self.begin_again()

    def begin_again(self) -> None:
        """As if it had never had a slot."""
        self.slot = -1
        # Tokens of the prompt whose keys are in the slot table.
        self.computed = 0
        self.token_ids: list[int] = []
        self.logprobs: list[float] = []

    @property
    def num_tokens(self) -> int:
        """Room it may need in its slot."""
        return len(self.prompt) + self.request.max_tokens

    def add(self, token_id: int, logprob: float) -> Literal["stop", "length"] | None:
        """Takes a sampled token; returns the reason if it was the last."""
        self.token_ids.append(token_id)
        self.logprobs.append(logprob)
        if token_id in self.request.stop_token_ids:
            return "stop"
        if self.request.is_stopped is not None and self.request.is_stopped(self.token_ids):
            return "stop"
        return "length" if len(self.token_ids) >= self.request.max_tokens else None

    def finish(self, reason: Literal["stop", "length"]) -> None:
        with suppress(InvalidStateError):  # the caller gave up at this very moment
            self.future.set_result(Generation(self.token_ids, self.logprobs, reason))

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)
