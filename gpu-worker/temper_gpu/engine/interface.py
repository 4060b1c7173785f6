"""What an engine is to the rest of the GPU worker: token ids in, token ids and log-probabilities out.

Templates, tools, names of policies and HTTP stand before it (server/); which engine it is, only the process that
starts it knows (process/compose.py). An engine serves one base model and any adapters of it.
"""

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
    """What changes the probabilities of tokens, besides the temperature. The defaults change nothing.

    In this order, which is vLLM's: `logit_bias` is added; `repetition_penalty` divides the logits of tokens that the
    prompt or the answer contains (or multiplies them, if negative); the other penalties are subtracted from those of
    the answer's; then, of the probabilities after temperature, `min_p`, `top_k` and `top_p` leave tokens out.
    """

    # Of what is left, the share that the likeliest tokens have together.
    top_p: float = 1.0
    # 0: all tokens.
    top_k: int = 0
    # A share of the likeliest token's probability.
    min_p: float = 0.0
    # Once for a token of the answer, and each time.
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    # Token ids and what is added to their logits.
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
    # How many of the likeliest tokens are told beside each sampled one.
    num_top_logprobs: int = 0
    # Told each token once, in order, before the answer is complete; in a thread of the engine's, which it must not hold
    # up. An engine may tell some tokens, or all, by the answer alone.
    on_token: OnToken | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Generation:
    """Sampled tokens, the one that ended the answer included, and their log-probabilities: those of the distribution
    that they were sampled from, after temperature."""

    token_ids: list[int]
    logprobs: list[float]
    # `length`: `max_tokens` were sampled, and the last one ended nothing.
    finish_reason: Literal["stop", "length"]
    # By sampled token, the likeliest first; empty if none were asked for.
    top_logprobs: list[list[tuple[int, float]]] = field(default_factory=list)


class AdapterSource(Protocol):
    """What makes a policy of a base model, in the form that an engine loads: an adapter, or other weights. Reads a
    store: not for an event loop."""

    @property
    def sha256(self) -> str:
        """Of its safetensors file: what an engine keeps loaded adapters by."""
        ...

    def read(self) -> "Adapter | FullWeights":
        """Its tensors, verified against the hash."""
        ...

    def write_folder(self, folder: Path) -> None:
        """PEFT's two files, verified against their hashes, into a folder that exists and belongs to the caller. Raises
        BadConfig where there is no adapter."""
        ...


class TextModel(Protocol):
    """What has to be known of an engine's base model to make prompts for it. Weights are the engine's own affair."""

    @property
    def name(self) -> str: ...

    @property
    def tokenizer(self) -> Any:
        """Of transformers, with its chat template."""
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
    # Why the engine answers nothing any more; None: it works.
    failure: str | None
    # Requests.
    waiting: int
    running: int
    # Hashes of the adapters that are loaded.
    adapters: tuple[str, ...]
    # What this kind of engine tells of itself beside: numbers, texts and lists of them.
    details: Mapping[str, Any]


class Engine(Protocol):
    """One base model, served. All of it may be called from any thread, and nothing of it waits."""

    @property
    def model(self) -> TextModel: ...

    def submit(
        self, adapter: AdapterSource | None, request: GenerationRequest, deadline_s: float
    ) -> Future[Generation]:
        """Queues a request to the base model, or to it with an adapter, which is loaded if need be.

        `deadline_s` seconds from now nobody wants the answer any more, nor after the future is cancelled. Raises, or
        fails the future with, a TemperError: QueueFull, ContextTooLong and DeadlinePassed among them.
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

    def settle(self, base_model: str) -> str:
        """The name that a run records: of a model of the hub, with its commit. Raises TemperError for one that cannot
        be served. May ask the hub: not for an event loop."""
        ...

    def has(self, base_model: str) -> bool:
        """Whether it can be served. A model of the hub has more names than `names` gives: one for each commit."""
        ...

    def started(self) -> Mapping[str, Engine]: ...

    def engine(self, base_model: str) -> Engine:
        """Started on first use, which takes its time: not for an event loop."""
        ...


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
