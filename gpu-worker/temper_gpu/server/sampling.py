"""Parameters that chats and completions share: sampling, stopping, and details of the tokens."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, ValidationInfo, field_validator

from temper_gpu.engine.interface import UNCHANGED, Distribution, Generation, GenerationRequest, OnToken, TextModel
from temper_gpu.server.bodies import Body, flag, number, whole

MAX_MODEL_NAME, MAX_CHOICES, MAX_STOPS, MAX_BIASES, MAX_TOP_LOGPROBS = 256, 64, 16, 1024, 20


def few(value: Any) -> tuple[Any, ...]:
    """Counts before the items are read: each wrong one of a million would be an error of its own."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or len(items) > MAX_STOPS:
        raise ValueError
    return tuple(items)


def biases_of(given: Any) -> tuple[tuple[int, float], ...]:
    if not isinstance(given, dict) or len(given) > MAX_BIASES or not all(map(is_bias, given.items())):
        raise ValueError
    # Different spellings of one id, such as 5 and 05, are the same.
    return tuple(sorted({int(token_id): float(bias) for token_id, bias in given.items() if bias}.items()))


def is_bias(entry: tuple[str, Any]) -> bool:
    token_id, bias = entry
    is_id = token_id.isascii() and token_id.isdigit() and len(token_id) < 10
    return is_id and type(bias) in (int, float) and -100 <= bias <= 100


class Sampling(Body):
    """Parameters that chats and completions share."""

    model: str = Field(
        min_length=1,
        max_length=MAX_MODEL_NAME,
        description=f"the name of a base model, or a policy `run@step`, in at most {MAX_MODEL_NAME} characters",
    )
    max_tokens: int | None = whole(None, 1, 1 << 31, "; default: 1024 for chats, 16 for completions")
    temperature: float = number(1.0, 0, 2, ", but none below 0.001 besides 0 (the likeliest token); default 1")
    top_p: float = number(1.0, 0, 1)
    top_k: int = whole(0, -1, 1 << 31, "; -1 and 0: all tokens (vLLM's)")
    min_p: float = number(0.0, 0, 1, "; vLLM's")
    frequency_penalty: float = number(0.0, -2, 2)
    presence_penalty: float = number(0.0, -2, 2)
    repetition_penalty: float = Field(1.0, gt=0, le=2, description="a number above 0, at most 2; vLLM's")
    logit_bias: Annotated[tuple[tuple[int, float], ...], PlainValidator(biases_of)] = Field(
        (), description=f"an object of at most {MAX_BIASES} token ids, each with a number from -100 to 100"
    )
    # None: a random seed.
    seed: int | None = whole(None, -(1 << 63), (1 << 64) - 1, "; the same seed samples the same answer")
    n: int = whole(1, 1, MAX_CHOICES)
    stop: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(few)] = Field(
        (), description=f"a string or a list of at most {MAX_STOPS} non-empty strings"
    )
    stop_token_ids: Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(few)] = Field(
        (), description=f"a list of at most {MAX_STOPS} token ids; vLLM's"
    )
    ignore_eos: bool = flag("true ignores the end token (vLLM's)")
    stream: bool = flag("server-sent events, token by token")
    stream_options: dict[str, Any] = Field({}, description="an object of `include_usage` alone, in a stream")
    return_token_ids: bool = flag("adds `prompt_token_ids` and `token_ids` (vLLM's)")

    @field_validator("temperature")
    @classmethod
    def _is_sampled(cls, temperature: float) -> float:
        """Below 0.001, logits divided by it leave the range of numbers; as in OpenAI's API."""
        if 0 < temperature < 0.001:
            raise ValueError
        return temperature

    @field_validator("stream_options")
    @classmethod
    def _is_of_stream(cls, options: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        asks = options.get("include_usage")
        if not info.data.get("stream") or options.keys() - {"include_usage"} or not isinstance(asks, bool | None):
            raise ValueError
        return options

    @property
    def limit(self) -> int | None:
        return self.max_tokens

    @property
    def with_usage(self) -> bool:
        return bool(self.stream_options.get("include_usage"))

    @cached_property
    def distribution(self) -> Distribution:
        given: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(Distribution)}
        asked = Distribution(**given | {"top_k": max(0, self.top_k)})
        return asked if asked.changes else UNCHANGED


def choice_seed(seed: int, index: int) -> int:
    """The first choice of a request samples as if it were the only one."""
    if index == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:6])


@dataclass(frozen=True, slots=True)
class Sampled:
    token_id: int
    logprob: float
    top_logprobs: list[tuple[int, float]]


def sampled_of(generation: Generation) -> list[Sampled]:
    likely = generation.top_logprobs or [[] for _ in generation.token_ids]
    return list(map(Sampled, generation.token_ids, generation.logprobs, likely))


def text_of(sampling: Sampling, generation: Generation, decode: Callable[[list[int]], str]) -> str:
    """The answer's text, without the token or string that stopped it."""
    token_ids = generation.token_ids
    if token_ids and token_ids[-1] in sampling.stop_token_ids:
        token_ids = token_ids[:-1]
    return before_stop(decode(token_ids), sampling.stop)


def before_stop(content: str, stops: tuple[str, ...]) -> str:
    ends = [position for position in map(content.find, stops) if position >= 0]
    return content[: min(ends)] if ends else content


@dataclass(frozen=True)
class Asked:
    """One prompt, as the choices of its request are sampled."""

    sampling: Sampling
    prompt_ids: tuple[int, ...]
    stop: tuple[str, ...]
    num_top_logprobs: int
    # See `GenerationRequest`.
    schema: str | None = None

    def request(
        self, index: int, seed: int, model: TextModel, default: int, on_token: OnToken | None
    ) -> GenerationRequest:
        """The engine's request of choice `index`; `default`: limit of tokens if the request names none."""
        room = max(1, model.context_window - len(self.prompt_ids))
        limit = self.sampling.limit
        ends = frozenset() if self.sampling.ignore_eos else model.end_token_ids
        return GenerationRequest(
            self.prompt_ids,
            limit if limit is not None else min(default, room),
            self.sampling.temperature,
            choice_seed(seed, index),
            ends.union(self.sampling.stop_token_ids),
            self.stop,
            self.sampling.distribution,
            self.schema,
            self.num_top_logprobs,
            on_token,
        )
