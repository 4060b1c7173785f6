"""OpenAI's chat completions as values: a body read strictly, an answer written. Nothing here waits or knows HTTP."""

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

from temper_gpu.engine.interface import Generation
from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import END
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.tool_calls import call_message, parse_answer
from temper_gpu.server.tool_choice import ToolChoice, parse_tool_choice, parse_tools

MAX_STOPS, MAX_MODEL_NAME = 16, 256
# Below the least one, logits divided by it leave the range of numbers; as in OpenAI's API above.
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.001, 2
ROLES = frozenset(["system", "developer", "user", "assistant", "tool"])
# Parameters that would change what is sampled or returned, and the values that ask for nothing.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (None,),
    "frequency_penalty": (None, 0),
    "function_call": (None, "none"),
    "functions": (None, []),
    "logit_bias": (None, {}),
    "min_p": (None, 0),
    "modalities": (None, ["text"]),
    "prediction": (None,),
    "presence_penalty": (None, 0),
    "reasoning_effort": (None,),
    "repetition_penalty": (None, 1),
    "response_format": (None, {"type": "text"}),
    "stream": (None, False),
    "stream_options": (None,),
    "top_k": (None, 0, -1),
    "top_logprobs": (None, 0),
    "top_p": (None, 1),
    "verbosity": (None,),
    "web_search_options": (None,),
}
# Parameters that change nothing here.
IGNORED = frozenset(
    ["metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "service_tier", "store", "user"]
)
READ = frozenset(
    [
        *("logprobs", "max_completion_tokens", "max_tokens", "messages", "model", "n"),
        *("parallel_tool_calls", "return_token_ids", "seed", "stop", "temperature", "tool_choice", "tools"),
    ]
)


@dataclass(frozen=True)
class ChatRequest:
    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    tool_choice: ToolChoice
    temperature: float
    max_tokens: int | None
    # None: by chance.
    seed: int | None
    stop: tuple[str, ...]
    num_choices: int
    with_logprobs: bool
    with_token_ids: bool


def parse_chat_request(body: Any, max_choices: int) -> ChatRequest:
    """Refuses what it would not honour."""
    require(isinstance(body, dict), "the body must be a JSON object, got something else; see OpenAI's chat completions")
    check_unsupported(body)
    tools = parse_tools(body)
    max_tokens = first_not_none(body.get("max_completion_tokens"), body.get("max_tokens"))
    return ChatRequest(
        model=parse_model(body.get("model")),
        messages=parse_messages(body.get("messages")),
        tools=tools,
        tool_choice=parse_tool_choice(body, tools),
        temperature=parse_temperature(body),
        max_tokens=None if max_tokens is None else integer({"max_tokens": max_tokens}, "max_tokens", 1, 1, 1 << 31),
        seed=None if body.get("seed") is None else integer(body, "seed", 0, -(1 << 63), (1 << 64) - 1),
        stop=parse_stop(body.get("stop")),
        num_choices=integer(body, "n", 1, 1, max_choices),
        with_logprobs=flag(body, "logprobs"),
        with_token_ids=flag(body, "return_token_ids"),
    )


def check_unsupported(body: dict[str, Any]) -> None:
    for name, value in body.items():
        if name in READ or name in IGNORED:
            continue
        if name not in NEUTRAL:
            raise TemperError("BadConfig", f"parameter {name} must be one that this server supports; leave it out")
        if not any(is_same(value, neutral) for neutral in NEUTRAL[name]):
            raise TemperError(
                "BadConfig",
                f"{name} must be {shown(NEUTRAL[name][-1])} (nothing else is supported), got {shown(value)}; "
                "leave it out",
            )


def is_same(value: Any, other: Any) -> bool:
    """In Python true equals 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def parse_messages(messages: Any) -> list[dict[str, Any]]:
    require(is_list_of_objects(messages) and len(messages) > 0, "messages must be objects, at least one; send one")
    for index, message in enumerate(messages):
        if not isinstance(message.get("role"), str) or message["role"] not in ROLES:
            role = shown(message.get("role"))
            known = ", ".join(sorted(ROLES))
            raise TemperError("BadConfig", f"role of message {index} must be one of {known}, got {role}; change it")
    return messages


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


def parse_stop(stop: Any) -> tuple[str, ...]:
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    ok = isinstance(stops, list) and len(stops) <= MAX_STOPS and all(isinstance(item, str) and item for item in stops)
    if not ok:
        rule = f"stop must be a string or a list of at most {MAX_STOPS} non-empty strings"
        raise TemperError("BadConfig", f"{rule}, got {shown(stop)}; change it")
    return tuple(stops)


def require(condition: bool, message: str) -> None:
    if not condition:
        raise TemperError("BadConfig", message)


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def first_not_none(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def flag(body: dict[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise TemperError("BadConfig", f"{name} must be true or false, got {shown(value)}; change it")
    return bool(value)


def integer(body: dict[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = first_not_none(body.get(name), default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise TemperError(
            "BadConfig", f"{name} must be a whole number from {least} to {most}, got {shown(value)}; change it"
        )
    return value


def number(body: dict[str, Any], name: str, default: float, least: float, most: float) -> float:
    value = first_not_none(body.get(name), default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not least <= value <= most:
        raise TemperError("BadConfig", f"{name} must be a number from {least} to {most}, got {shown(value)}; change it")
    return float(value)


def stops_of(request: ChatRequest) -> tuple[str, ...]:
    """What ends sampling: the request's own stop strings, and the end of a call where one is all that may come."""
    return (*request.stop, END) if request.tool_choice.is_single else request.stop


def choice_seed(seed: int, index: int) -> int:
    """The first choice of a request samples as if it were the only one."""
    if index == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:6])


def chat_response(
    request: ChatRequest,
    prompt_ids: tuple[int, ...],
    generations: list[Generation],
    prompts: Prompts,
    adapter_sha256: str | None,
    request_id: str,
) -> dict[str, Any]:
    completion_tokens = sum(len(generation.token_ids) for generation in generations)
    response: dict[str, Any] = {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [
            choice(request, index, generation, prompts, request_id) for index, generation in enumerate(generations)
        ],
        "usage": {
            "prompt_tokens": len(prompt_ids),
            "completion_tokens": completion_tokens,
            "total_tokens": len(prompt_ids) + completion_tokens,
        },
        "adapter_sha256": adapter_sha256,
    }
    if request.with_token_ids:
        response["prompt_token_ids"] = prompt_ids
    return response


def choice(
    request: ChatRequest, index: int, generation: Generation, prompts: Prompts, request_id: str
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "index": index,
        **written(request, generation, prompts, f"{request_id}-{index}"),
        "logprobs": None,
    }
    if request.with_logprobs:
        answer["logprobs"] = {
            "content": [
                {"token": prompts.token_text(token_id), "logprob": logprob, "bytes": None, "top_logprobs": []}
                for token_id, logprob in zip(generation.token_ids, generation.logprobs, strict=True)
            ],
            "refusal": None,
        }
    if request.with_token_ids:
        answer["token_ids"] = generation.token_ids
    return answer


def written(request: ChatRequest, generation: Generation, prompts: Prompts, call_id: str) -> dict[str, Any]:
    """The message, why it ended and, where tools were offered, how many calls in it were malformed."""
    text = before_stop(prompts.decode(generation.token_ids), request.stop)
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if not (request.tools and request.tool_choice.is_parsed):
        return {"message": message, "finish_reason": generation.finish_reason}
    parsed = parse_answer(prompts.shown_opening(request.tool_choice) + text)
    message["content"] = parsed.content
    if parsed.calls:
        message["tool_calls"] = [call_message(call, f"call-{call_id}-{i}") for i, call in enumerate(parsed.calls)]
    # As OpenAI has it, a named call ends by `stop`. What was cut stays cut: that makes an attempt truncated.
    is_called = bool(parsed.calls) and request.tool_choice.kind != "named" and generation.finish_reason == "stop"
    finish_reason = "tool_calls" if is_called else generation.finish_reason
    return {"message": message, "finish_reason": finish_reason, "malformed_tool_calls": parsed.num_malformed}


def before_stop(content: str, stops: tuple[str, ...]) -> str:
    ends = [position for position in map(content.find, stops) if position >= 0]
    return content[: min(ends)] if ends else content
