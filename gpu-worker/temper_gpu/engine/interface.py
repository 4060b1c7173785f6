"""The interface of engines: token ids in, token ids and log-probabilities out.

Templates, tools, policy names and HTTP are handled before it (server/). Only process/compose.py knows which engine it
is. An engine serves one base model and any adapters of it.
"""

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from temper_gpu.failures import TemperError

if TYPE_CHECKING:
    from temper_gpu.model.full_weights import FullWeights
    from temper_gpu.model.lora import Adapter


@dataclass(frozen=True)
class Distribution:
    """Parameters that change the probabilities of tokens, besides the temperature. The defaults change nothing.

    The order is vLLM's: `logit_bias` is added; `repetition_penalty` divides the logits of tokens that the prompt or the
    answer contains (or multiplies them, if negative); the other penalties are subtracted from those of the answer's;
    then, of the probabilities after temperature, `min_p`, `top_k` and `top_p` leave tokens out.
    """

    # Cumulative probability of the likeliest tokens that stay.
    top_p: float = 1.0
    # 0: all tokens.
    top_k: int = 0
    # Smallest share of the likeliest token's probability.
    min_p: float = 0.0
    # Penalties for a token of the answer: once, and for each occurrence.
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    # Logit offsets by token id.
    logit_bias: tuple[tuple[int, float], ...] = ()

    @property
    def leaves_out(self) -> bool:
        return self.top_p < 1 or self.top_k > 0 or self.min_p > 0

    @property
    def changes(self) -> bool:
        return self is not UNCHANGED and self != UNCHANGED


UNCHANGED = Distribution()

# A token's id, its log-probability, and those of the likeliest tokens in its place.
OnToken = Callable[[int, float, list[tuple[int, float]]], None]


@dataclass(frozen=True)
class GenerationRequest:
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    # 0 takes the likeliest token.
    temperature: float
    # The only source of chance: the same request with the same seed samples the same tokens.
    seed: int
    stop_token_ids: frozenset[int] = frozenset()
    # The answer ends with the first token after which its text contains one of them. The text is what
    # `Detokenizer.decode` (model/detokenizer.py) makes of the sampled tokens; nothing is cut off it here.
    stop: tuple[str, ...] = ()
    distribution: Distribution = UNCHANGED
    # JSON text of a schema that the answer's text matches, unless `max_tokens` or a stop string cuts it. Tokens that
    # cannot come are left out before all that `distribution` says. None: any text.
    schema: str | None = None
    # Number of the likeliest tokens that are reported for each sampled one.
    num_top_logprobs: int = 0
    # Called once for each token, in order, before the answer is complete. It runs in a thread of the engine and must
    # not block it. An engine may skip some tokens, or all, and deliver them with the answer.
    on_token: OnToken | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Generation:
    """Sampled tokens, the one that ended the answer included, and their log-probabilities: those of the distribution
    that they were sampled from, after temperature."""

    token_ids: list[int]
    logprobs: list[float]
    # `length`: `max_tokens` were sampled, and the last one ended nothing.
    finish_reason: Literal["stop", "length"]
    # Alternatives by sampled token, the likeliest first; empty unless requested.
    top_logprobs: list[list[tuple[int, float]]] = field(default_factory=list)


class AdapterSource(Protocol):
    """The source of a policy in the form that an engine loads: an adapter, or other weights. It reads a store, so it
    must not be used in an event loop."""

    @property
    def sha256(self) -> str:
        """Hash of its safetensors file, the key of loaded adapters."""
        ...

    def read(self) -> "Adapter | FullWeights":
        """Its tensors, verified against the hash."""
        ...

    def write_folder(self, folder: Path) -> None:
        """PEFT's two files, verified against their hashes, into a folder that exists and belongs to the caller. Raises
        BadConfig where there is no adapter."""
        ...


class TextModel(Protocol):
    """Properties of an engine's base model that prompts need. Its weights are internal to the engine."""

    @property
    def name(self) -> str: ...

    @property
    def tokenizer(self) -> Any:
        """A tokenizer of transformers, with its chat template."""
        ...

    @property
    def context_window(self) -> int: ...

    @property
    def vocabulary_size(self) -> int:
        """Token ids below it have an embedding. Some tokenizers know more."""
        ...

    @property
    def end_token_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        ...


@dataclass(frozen=True)
class EngineHealth:
    # The reason why the engine has failed; None: it works.
    failure: str | None
    # Numbers of requests.
    waiting: int
    running: int
    # Hashes of the loaded adapters.
    adapters: tuple[str, ...]
    # Details of this kind of engine: numbers, texts and lists of them.
    details: Mapping[str, Any]


class Engine(Protocol):
    """One base model, served. All of it may be called from any thread, and nothing of it waits."""

    @property
    def model(self) -> TextModel: ...

    def submit(
        self, adapter: AdapterSource | None, request: GenerationRequest, deadline_s: float
    ) -> Future[Generation]:
        """Queues a request to the base model, or to it with an adapter, which is loaded if necessary.

        The answer is dropped `deadline_s` seconds from now, or once the future is cancelled. Raises, or fails the
        future with, a TemperError: QueueFull, ContextTooLong and DeadlinePassed among them.
        """
        ...

    def health(self) -> EngineHealth: ...

    def counters(self) -> Mapping[str, int | float]:
        """Sums since the engine was started; seconds end in `_s`."""
        ...


class Engines(Protocol):
    """The engines of one process, by base model."""

    def names(self) -> list[str]:
        """Base models that can be served."""
        ...

    def pin(self, base_model: str) -> str:
        """The name that a run records: for a model of the hub, with its commit. Raises TemperError for one that cannot
        be served. It may call the hub, so it must not be used in an event loop."""
        ...

    def has(self, base_model: str) -> bool:
        """Whether the model can be served. A model of the hub has more names than `names` lists: one for each
        commit."""
        ...

    def started(self) -> Mapping[str, Engine]: ...

    def engine(self, base_model: str) -> Engine:
        """Starts the engine on first use, which takes long, so it must not be called in an event loop."""
        ...


class QueueFull(TemperError):
    """Too many requests are waiting: come back later."""

    def __init__(self, message: str) -> None:
        super().__init__("EngineFailed", message)


class DeadlinePassed(TemperError):
    """The client has stopped waiting for the answer."""

    def __init__(self, message: str) -> None:
        super().__init__("EngineFailed", message)


class ContextTooLong(TemperError):
    """The prompt has more tokens than the model's context window. The attempt fails, not the run."""

    def __init__(self, message: str) -> None:
        super().__init__("BadConfig", message)


def require_possible(model: TextModel, request: GenerationRequest) -> None:
    """Refuses what no engine of this model can answer."""
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
