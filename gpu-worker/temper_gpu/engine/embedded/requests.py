"""A request inside the embedded engine."""

import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Literal

import numpy as np

from temper_gpu.engine.embedded.constraints import Constraint
from temper_gpu.engine.embedded.pieces import chunk_names, piece_keys, piece_size
from temper_gpu.engine.interface import Generation, GenerationRequest
from temper_gpu.model.detokenizer import stop_check

# Room for an answer with which a request begins; most answers end long before `max_tokens`.
FIRST_ROOM = 64


class Sequence:
    __slots__ = (
        *(
            "_is_stopped",
            "_num_told",
            "chunks",
            "computed",
            "constraint",
            "created",
            "deadline",
            "future",
            "keys",
            "logprobs",
        ),
        *("piece_size", "policy", "prompt", "request", "slot", "token_ids", "top_logprobs", "was_preempted"),
    )

    def __init__(
        self, policy: str | None, request: GenerationRequest, deadline: float, decode: Callable[[list[int]], str]
    ) -> None:
        self.policy = policy
        self.request = request
        self._is_stopped = stop_check(request.stop, decode)
        self.created = time.monotonic()
        self.deadline = deadline
        self.future: Future[Generation] = Future()
        self.prompt = np.array(request.prompt_token_ids, dtype=np.int64)
        self.piece_size = piece_size(len(self.prompt))
        # Keys of the prompt's pieces.
        self.keys = piece_keys(policy, self.prompt)
        self.chunks = chunk_names(self.keys, len(self.prompt))
        self._num_told = 0
        self.was_preempted = False
        # Set before it is queued, if the request has a schema.
        self.constraint: Constraint | None = None
        self.begin_again()

    def begin_again(self) -> None:
        """Resets the state to that before the first slot."""
        self.slot = -1
        if self.constraint is not None:
            self.constraint.begin_again()
        # Tokens of the prompt whose keys are in the slot table.
        self.computed = 0
        self.token_ids: list[int] = []
        self.logprobs: list[float] = []
        self.top_logprobs: list[list[tuple[int, float]]] = []

    @property
    def num_tokens(self) -> int:
        """Room it may need in its slot."""
        return len(self.prompt) + self.request.max_tokens

    @property
    def next_room(self) -> int:
        """Room it needs to begin, or to go on: once it had too little, all that it may need."""
        so_far = len(self.prompt) + len(self.token_ids)
        return self.num_tokens if self.was_preempted else min(self.num_tokens, so_far + FIRST_ROOM)

    @property
    def is_prefilled(self) -> bool:
        return self.computed == len(self.prompt)

    def is_abandoned(self, now: float) -> bool:
        return now > self.deadline or self.future.cancelled()

    def part(self, position: int) -> tuple[bytes, bool]:
        """The key of the piece that this token of the prompt is in, and whether it is the prompt's last."""
        index = position // self.piece_size
        return self.keys[index], index == len(self.keys) - 1

    def add(self, token_id: int, logprob: float) -> Literal["stop", "length"] | None:
        """Takes a sampled token; returns the reason if it was the last."""
        self.token_ids.append(token_id)
        self.logprobs.append(logprob)
        self._tell()
        if self.constraint is not None:
            self.constraint.take(token_id)
        if token_id in self.request.stop_token_ids:
            return "stop"
        if self._is_stopped is not None and self._is_stopped(self.token_ids):
            return "stop"
        return "length" if len(self.token_ids) >= self.request.max_tokens else None

    def _tell(self) -> None:
        """Once: a sequence that begins again samples the same tokens."""
        if self.request.on_token is not None and len(self.token_ids) > self._num_told:
            self._num_told = len(self.token_ids)
            top_logprobs = self.top_logprobs[-1] if self.top_logprobs else []
            self.request.on_token(self.token_ids[-1], self.logprobs[-1], top_logprobs)

    def finish(self, reason: Literal["stop", "length"]) -> None:
        with suppress(InvalidStateError):  # the caller gave up at this very moment
            self.future.set_result(Generation(self.token_ids, self.logprobs, reason, self.top_logprobs))

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)
