"""OpenAI's chat completions as values: a body read strictly, an answer written. Nothing here waits or knows HTTP."""

from dataclasses import dataclass
from typing import Any

from temper_gpu.engine.interface import Generation
from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import END
from temper_gpu.server.fields import first_not_none, flag, integer, is_list_of_objects, require, shown
from temper_gpu.server.parameters import check_parameters
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.sampling import (
    MAX_TOP_LOGPROBS,
    Sampled,
    Sampling,
    Telling,
    parse_model,
    parse_sampling,
    parse_telling,
    sampled_of,
    text_of,
)
from temper_gpu.server.template_kwargs import TemplateKwargs, parse_template_kwargs
from temper_gpu.server.tool_calls import call_message, parse_answer
from temper_gpu.server.tool_choice import ToolChoice, parse_tool_choice, parse_tools

ROLES = frozenset(["system", "developer", "user", "assistant", "tool"])


@dataclass(frozen=True)
class ChatRequest:
    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    tool_choice: ToolChoice
    template_kwargs: TemplateKwargs
    sampling: Sampling
    telling: Telling
    with_logprobs: bool
    num_top_logprobs: int

    @property
    def parses_calls(self) -> bool:
        return self.tools is not None and self.tool_choice.is_parsed


def parse_chat_request(body: Any, max_choices: int) -> ChatRequest:
    """Refuses what it would not honour."""
    require(isinstance(body, dict), "the body must be a JSON object, got something else; see OpenAI's chat completions")
    check_parameters(body, "chat")
    tools = parse_tools(body)
    with_logprobs, num_top_logprobs = flag(body, "logprobs"), integer(body, "top_logprobs", 0, 0, MAX_TOP_LOGPROBS)
    require(
        with_logprobs or not num_top_logprobs,
        f"top_logprobs must come with logprobs, got {num_top_logprobs}; send logprobs: true",
    )
    return ChatRequest(
        model=parse_model(body.get("model")),
        messages=parse_messages(body.get("messages")),
        tools=tools,
        tool_choice=parse_tool_choice(body, tools),
        template_kwargs=parse_template_kwargs(body.get("chat_template_kwargs")),
        sampling=parse_sampling(
            body, max_choices, first_not_none(body.get("max_completion_tokens"), body.get("max_tokens"))
        ),
        telling=parse_telling(body),
        with_logprobs=with_logprobs,
        num_top_logprobs=num_top_logprobs,
    )


def parse_messages(messages: Any) -> list[dict[str, Any]]:
    require(is_list_of_objects(messages) and len(messages) > 0, "messages must be objects, at least one; send one")
    for index, message in enumerate(messages):
        if not isinstance(message.get("role"), str) or message["role"] not in ROLES:
            role = shown(message.get("role"))
            known = ", ".join(sorted(ROLES))
            raise TemperError("BadConfig", f"role of message {index} must be one of {known}, got {role}; change it")
    return messages


def stops_of(request: ChatRequest) -> tuple[str, ...]:
    """What ends sampling: the request's own stop strings, and the end of a call where one is all that may come."""
    return (*request.sampling.stop, END) if request.tool_choice.is_single else request.sampling.stop


def chat_response(
    request: ChatRequest,
    prompt_ids: tuple[int, ...],
    generations: list[Generation],
    prompts: Prompts,
    adapter_sha256: str | None,
    request_id: str,
) -> dict[str, Any]:
    response: dict[str, Any] = {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [
            choice(request, index, generation, prompts, request_id) for index, generation in enumerate(generations)
        ],
        "usage": usage([prompt_ids], generations),
        "adapter_sha256": adapter_sha256,
    }
    if request.telling.with_token_ids:
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


def choice(
    request: ChatRequest, index: int, generation: Generation, prompts: Prompts, request_id: str
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "index": index,
        **written(request, generation, prompts, f"{request_id}-{index}"),
        "logprobs": None,
    }
    if request.with_logprobs:
        answer["logprobs"] = {"content": logprob_entries(prompts, sampled_of(generation)), "refusal": None}
    if request.telling.with_token_ids:
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


def written(request: ChatRequest, generation: Generation, prompts: Prompts, call_id: str) -> dict[str, Any]:
    """The message, why it ended and, where tools were offered, how many calls in it were malformed."""
    text = text_of(request.sampling, generation, prompts.decode)
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if not request.parses_calls:
        return {"message": message, "finish_reason": generation.finish_reason}
    parsed = parse_answer(prompts.shown_opening(request.tool_choice) + text)
    message["content"] = parsed.content
    if parsed.calls:
        message["tool_calls"] = [call_message(call, f"call-{call_id}-{i}") for i, call in enumerate(parsed.calls)]
    # As OpenAI has it, a named call ends by `stop`. What was cut stays cut: that makes an attempt truncated.
    is_called = bool(parsed.calls) and request.tool_choice.kind != "named" and generation.finish_reason == "stop"
    finish_reason = "tool_calls" if is_called else generation.finish_reason
    return {"message": message, "finish_reason": finish_reason, "malformed_tool_calls": parsed.num_malformed}
