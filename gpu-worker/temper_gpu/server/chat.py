"""OpenAI's chat completions as values: a body read strictly, an answer written. Nothing here waits or knows HTTP."""

import json
from dataclasses import dataclass
from typing import Any

from temper_gpu.engine.interface import Generation
from temper_gpu.failures import TemperError
from temper_gpu.server.answer_text import Reading
from temper_gpu.server.fields import first_not_none, flag, integer, is_list_of_objects, require, shown
from temper_gpu.server.parameters import check_parameters
from temper_gpu.server.prompts import THOUGHTS, Prompts
from temper_gpu.server.sampling import (
    MAX_TOP_LOGPROBS,
    ResponseOptions,
    Sampled,
    Sampling,
    parse_model,
    parse_response_options,
    parse_sampling,
    sampled_of,
    text_of,
)
from temper_gpu.server.template_kwargs import TemplateKwargs, parse_template_kwargs, parse_template_sha256
from temper_gpu.server.tool_calls import call_message
from temper_gpu.server.tool_choice import ToolChoice, parse_tool_choice, parse_tools

ROLES = frozenset(["system", "developer", "user", "assistant", "tool"])


@dataclass(frozen=True)
class ChatRequest:
    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    tool_choice: ToolChoice
    template_kwargs: TemplateKwargs
    # Hash of a template that replaces the model's own.
    template_sha256: str | None
    sampling: Sampling
    response: ResponseOptions
    with_logprobs: bool
    num_top_logprobs: int
    # Thoughts are sent separately from the answer.
    separates_thoughts: bool
    # JSON text of a schema that the answer is to match.
    schema: str | None

    @property
    def parses_calls(self) -> bool:
        return self.tools is not None and self.tool_choice.is_parsed


def parse_chat_request(body: Any, max_choices: int) -> ChatRequest:
    """Refuses what it would not honour."""
    require(isinstance(body, dict), "the body must be a JSON object, got something else; see OpenAI's chat completions")
    check_parameters(body, "chat")
    tools = parse_tools(body)
    tool_choice = parse_tool_choice(body, tools)
    with_logprobs, num_top_logprobs = flag(body, "logprobs"), integer(body, "top_logprobs", 0, 0, MAX_TOP_LOGPROBS)
    require(
        with_logprobs or not num_top_logprobs,
        f"top_logprobs must come with logprobs, got {num_top_logprobs}; send logprobs: true",
    )
    return ChatRequest(
        model=parse_model(body.get("model")),
        messages=parse_messages(body.get("messages")),
        tools=tools,
        tool_choice=tool_choice,
        template_kwargs=parse_template_kwargs(body.get("chat_template_kwargs")),
        template_sha256=parse_template_sha256(body.get("chat_template_sha256")),
        sampling=parse_sampling(
            body, max_choices, first_not_none(body.get("max_completion_tokens"), body.get("max_tokens"))
        ),
        response=parse_response_options(body),
        with_logprobs=with_logprobs,
        num_top_logprobs=num_top_logprobs,
        separates_thoughts=flag(body, "separate_reasoning", True),
        schema=parse_response_format(body.get("response_format"), tools, tool_choice),
    )


def parse_response_format(given: Any, tools: list[dict[str, Any]] | None, choice: ToolChoice) -> str | None:
    asked = {"type": "text"} if given is None else given if isinstance(given, dict) else {}
    kind = asked.get("type")
    if kind == "text":
        return None
    rule = "response_format must be of type text, json_object, or json_schema with a json_schema that has a schema"
    described = asked.get("json_schema") if kind == "json_schema" else {"schema": {"type": "object"}}
    schema = described.get("schema") if isinstance(described, dict) else None
    is_known = kind in ("json_object", "json_schema") and isinstance(schema, dict)
    require(is_known, f"{rule}, got {shown(given)}; change it")
    require(
        tools is None or not choice.is_parsed,
        f"response_format must be text where tools may be called, got {kind}; send tool_choice none, or no tools",
    )
    return json.dumps(schema)


def parse_messages(messages: Any) -> list[dict[str, Any]]:
    require(is_list_of_objects(messages) and len(messages) > 0, "messages must be objects, at least one; send one")
    for index, message in enumerate(messages):
        if not isinstance(message.get("role"), str) or message["role"] not in ROLES:
            role = shown(message.get("role"))
            known = ", ".join(sorted(ROLES))
            raise TemperError("BadConfig", f"role of message {index} must be one of {known}, got {role}; change it")
    return messages


def stops_of(request: ChatRequest, end_of_call: str) -> tuple[str, ...]:
    """Stop strings: the request's own, and the end of a call if only a call may follow."""
    ends_with_call = request.tool_choice.is_single and end_of_call
    return (*request.sampling.stop, end_of_call) if ends_with_call else request.sampling.stop


def reading_of(request: ChatRequest, prompts: Prompts, prompt_ids: tuple[int, ...]) -> Reading:
    tool_choice = request.tool_choice if request.parses_calls else None
    is_thinking = prompts.is_thinking(prompt_ids)
    return Reading(prompts, request.sampling, tool_choice, request.separates_thoughts, is_thinking)


def chat_response(
    request: ChatRequest,
    prompt_ids: tuple[int, ...],
    generations: list[Generation],
    prompts: Prompts,
    adapter_sha256: str | None,
    request_id: str,
) -> dict[str, Any]:
    reading = reading_of(request, prompts, prompt_ids)
    response: dict[str, Any] = {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [
            choice(request, index, generation, reading, request_id) for index, generation in enumerate(generations)
        ],
        "usage": chat_usage(prompt_ids, generations, reading),
        "adapter_sha256": adapter_sha256,
    }
    if request.response.with_token_ids:
        response["prompt_token_ids"] = prompt_ids
    return response


def usage(prompts: list[tuple[int, ...]], generations: list[Generation]) -> dict[str, int]:
    prompt_tokens = sum(map(len, prompts))
    completion_tokens = sum(len(generation.token_ids) for generation in generations)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def chat_usage(prompt_ids: tuple[int, ...], generations: list[Generation], reading: Reading) -> dict[str, Any]:
    num_thought = sum(reading.num_thought_tokens(generation.token_ids) for generation in generations)
    details = {"completion_tokens_details": {"reasoning_tokens": num_thought}} if num_thought else {}
    return {**usage([prompt_ids], generations), **details}


def choice(
    request: ChatRequest, index: int, generation: Generation, reading: Reading, request_id: str
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "index": index,
        **written(generation, reading, f"{request_id}-{index}"),
        "logprobs": None,
    }
    if request.with_logprobs:
        answer["logprobs"] = {"content": logprob_entries(reading.prompts, sampled_of(generation)), "refusal": None}
    if request.response.with_token_ids:
        answer["token_ids"] = generation.token_ids
    return answer


def logprob_entries(prompts: Prompts, tokens: list[Sampled]) -> list[dict[str, Any]]:
    return [
        {
            **logprob_entry(prompts, token.token_id, token.logprob),
            "top_logprobs": [logprob_entry(prompts, *likely) for likely in token.top_logprobs],
        }
        for token in tokens
    ]


def logprob_entry(prompts: Prompts, token_id: int, logprob: float) -> dict[str, Any]:
    return {"token": prompts.token_text(token_id), "logprob": logprob, "bytes": None}


def written(generation: Generation, reading: Reading, call_id: str) -> dict[str, Any]:
    """The message, why it ended and, where tools were offered, how many calls in it were malformed."""
    choice = reading.tool_choice
    answer = reading.whole(text_of(reading.sampling, generation, reading.prompts.decode))
    message: dict[str, Any] = {"role": "assistant", "content": answer.content, "refusal": None}
    if answer.thoughts is not None:
        message[THOUGHTS] = answer.thoughts
    if answer.calls:
        message["tool_calls"] = [call_message(call, f"call-{call_id}-{i}") for i, call in enumerate(answer.calls)]
    if choice is None:
        return {"message": message, "finish_reason": generation.finish_reason}
    # Named calls end with `stop`, like OpenAI's. Cut answers stay cut, which makes an attempt truncated.
    is_called = bool(answer.calls) and choice.kind != "named" and generation.finish_reason == "stop"
    finish_reason = "tool_calls" if is_called else generation.finish_reason
    return {"message": message, "finish_reason": finish_reason, "malformed_tool_calls": answer.num_malformed}
