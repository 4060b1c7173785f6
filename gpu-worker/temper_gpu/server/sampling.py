"""Parameters that chats and completions share: sampling, stopping, and details of the tokens."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from temper_gpu.engine.interface import UNCHANGED, Distribution, Generation, GenerationRequest, OnToken, TextModel
from temper_gpu.failures import TemperError
from temper_gpu.server.fields import flag, integer, is_integer, is_number, number, require, shown

MAX_STOPS, MAX_MODEL_NAME, MAX_BIASES, MAX_TOP_LOGPROBS = 16, 256, 1024, 20
# Below the least one, logits divided by it leave the range of numbers; as in OpenAI's API above.
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.001, 2


@dataclass(frozen=True)
class Sampling:
    temperature: float
    distribution: Distribution
    # None: a random seed.
    seed: int | None
    num_choices: int
    max_tokens: int | None
    stop: tuple[str, ...]
    stop_token_ids: frozenset[int]
    ignores_end: bool


@dataclass(frozen=True)
class ResponseOptions:
    """Options for the response besides the answer's text."""

    with_token_ids: bool
    is_streamed: bool
    with_usage: bool


def parse_sampling(body: dict[str, Any], max_choices: int, max_tokens: int | None) -> Sampling:
    return Sampling(
        temperature=parse_temperature(body),
        distribution=parse_distribution(body),
        seed=None if body.get("seed") is None else integer(body, "seed", 0, -(1 << 63), (1 << 64) - 1),
        num_choices=integer(body, "n", 1, 1, max_choices),
        max_tokens=None if max_tokens is None else integer({"max_tokens": max_tokens}, "max_tokens", 1, 1, 1 << 31),
        stop=parse_stop(body.get("stop")),
        stop_token_ids=parse_stop_token_ids(body.get("stop_token_ids")),
        ignores_end=flag(body, "ignore_eos"),
    )


def parse_response_options(body: dict[str, Any]) -> ResponseOptions:
    is_streamed, options = flag(body, "stream"), body.get("stream_options")
    rule = "stream_options must be an object of include_usage alone, in a stream"
    is_known = options is None or (isinstance(options, dict) and is_streamed and set(options) <= {"include_usage"})
    require(is_known, f"{rule}, got {shown(options)}; change it")
    return ResponseOptions(flag(body, "return_token_ids"), is_streamed, flag(options or {}, "include_usage"))


def parse_model(name: Any) -> str:
    if isinstance(name, str) and 0 < len(name) <= MAX_MODEL_NAME:
        return name
    raise TemperError(
        "BadConfig",
        f"model must be a string of 1 to {MAX_MODEL_NAME} characters, got {shown(name)}; send the name of a model",
    )


def parse_temperature(body: dict[str, Any]) -> float:
    temperature = number(body, "temperature", 1.0, 0, MAX_TEMPERATURE)
    rule = f"temperature must be 0 (the likeliest token), or from {MIN_TEMPERATURE} to {MAX_TEMPERATURE}"
    require(temperature == 0 or temperature >= MIN_TEMPERATURE, f"{rule}, got {temperature:g}; send 0 or raise it")
    return temperature


def parse_distribution(body: dict[str, Any]) -> Distribution:
    repetition_penalty = number(body, "repetition_penalty", 1.0, 0, 2)
    require(repetition_penalty > 0, "repetition_penalty must be above 0, got 0; send 1, or leave it out")
    asked = Distribution(
        top_p=number(body, "top_p", 1.0, 0, 1),
        top_k=max(0, integer(body, "top_k", 0, -1, 1 << 31)),
        min_p=number(body, "min_p", 0.0, 0, 1),
        presence_penalty=number(body, "presence_penalty", 0.0, -2, 2),
        frequency_penalty=number(body, "frequency_penalty", 0.0, -2, 2),
        repetition_penalty=repetition_penalty,
        logit_bias=parse_logit_bias(body.get("logit_bias")),
    )
    return asked if asked.changes else UNCHANGED


def parse_logit_bias(biases: Any) -> tuple[tuple[int, float], ...]:
    given = {} if biases is None else biases
    ok = isinstance(given, dict) and len(given) <= MAX_BIASES and all(map(is_bias, given.items()))
    rule = f"logit_bias must be an object of at most {MAX_BIASES} token ids, each with a number from -100 to 100"
    require(ok, f"{rule}, got {shown(biases)}; change it")
    # Different spellings of one id, such as 5 and 05, are the same.
    return tuple(sorted({int(token_id): float(bias) for token_id, bias in given.items() if bias}.items()))


def is_bias(entry: tuple[str, Any]) -> bool:
    token_id, bias = entry
    return token_id.isascii() and token_id.isdigit() and len(token_id) < 10 and is_number(bias) and abs(bias) <= 100


def parse_stop(stop: Any) -> tuple[str, ...]:
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    ok = isinstance(stops, list) and len(stops) <= MAX_STOPS and all(isinstance(item, str) and item for item in stops)
    if not ok:
        rule = f"stop must be a string or a list of at most {MAX_STOPS} non-empty strings"
        raise TemperError("BadConfig", f"{rule}, got {shown(stop)}; change it")
    return tuple(stops)


def parse_stop_token_ids(token_ids: Any) -> frozenset[int]:
    given = [] if token_ids is None else token_ids
    ok = isinstance(given, list) and len(given) <= MAX_STOPS and all(is_integer(item) and item >= 0 for item in given)
    rule = f"stop_token_ids must be a list of at most {MAX_STOPS} token ids"
    require(ok, f"{rule}, got {shown(token_ids)}; change it")
    return frozenset(given)


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
        max_tokens = self.sampling.max_tokens
        ends = frozenset() if self.sampling.ignores_end else model.end_token_ids
        return GenerationRequest(
            self.prompt_ids,
            max_tokens if max_tokens is not None else min(default, room),
            self.sampling.temperature,
            choice_seed(seed, index),
            ends | self.sampling.stop_token_ids,
            self.stop,
            self.sampling.distribution,
            self.schema,
            self.num_top_logprobs,
            on_token,
        )
