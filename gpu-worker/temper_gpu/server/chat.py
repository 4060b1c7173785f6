"""OpenAI's chat completions as values: a body read strictly, an answer written. Nothing here waits or knows HTTP."""

import json
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, PlainValidator, ValidationInfo, model_validator

from temper_gpu.engine.interface import Generation
from temper_gpu.failures import TemperError
from temper_gpu.server.answer_text import Reading
from temper_gpu.server.bodies import flag, require, shown, whole
from temper_gpu.server.prompts import THOUGHTS, Prompts
from temper_gpu.server.sampling import MAX_TOP_LOGPROBS, Sampled, Sampling, text_of
from temper_gpu.server.template_kwargs import TemplateKwargs, parse_template_kwargs
from temper_gpu.server.tool_calls import call_message
from temper_gpu.server.tool_choice import ToolChoice, parse_tool_choice, parse_tools

ROLES = frozenset(["system", "developer", "user", "assistant", "tool"])
TEMPLATE = "64 hexadecimal digits in lower case; a [run's template](engine.md#build-prompts) in the store (Temper's)"
FORMS = "of type `text`, `json_object`, or `json_schema` with a `schema`; see [JSON answers](#json-answers)"


def parse_messages(messages: Any) -> list[dict[str, Any]]:
    is_known = isinstance(messages, list) and len(messages) > 0 and all(isinstance(each, dict) for each in messages)
    require(is_known, "messages must be objects, at least one; send one")
    for index, message in enumerate(messages):
        role = message.get("role")
        if not isinstance(role, str) or role not in ROLES:
            known = ", ".join(sorted(ROLES))
            rule = f"role of message {index} must be one of {known}, got {shown(role)}; change it"
            raise TemperError("BadConfig", rule)
    return messages


def schema_of(asked: Any, info: ValidationInfo) -> str | None:
    """JSON text of a schema that the answer is to match."""
    kind = asked.get("type") if isinstance(asked, dict) else None
    if kind == "text":
        return None
    described = asked.get("json_schema") if kind == "json_schema" else {"schema": {"type": "object"}}
    schema = described.get("schema") if isinstance(described, dict) else None
    if kind not in ("json_object", "json_schema") or not isinstance(schema, dict):
        raise ValueError
    require(
        info.data["tools"] is None or not info.data["tool_choice"].is_parsed,
        f"response_format must be text where tools may be called, got {kind}; send tool_choice none, or no tools",
    )
    return json.dumps(schema)


def tool_choice_of(choice: Any, info: ValidationInfo) -> ToolChoice:
    return parse_tool_choice(choice, info.data.get("parallel_tool_calls", True), info.data["tools"])


class ChatRequest(Sampling):
    no_effect: ClassVar = {
        "metadata": "nothing is stored",
        "store": "nothing is stored",
        "user": "there is one user",
        "safety_identifier": "there is one user",
        "service_tier": "there is one tier",
        "prompt_cache_key": "changes no answer",
        "prompt_cache_retention": "changes no answer",
    }
    refused: ClassVar = {
        "functions": ("send tools", []),
        "function_call": ("send tool_choice", "none"),
        "reasoning_effort": ("say in a message how long to think", None),
        "verbosity": ("say in a message how long to answer", None),
        "modalities": ("ask for text", ["text"]),
        "audio": ("ask for text", None),
        "prediction": ("leave it out; it would only be faster", None),
        "web_search_options": ("search in the agent, and send what it found", None),
    }

    messages: Annotated[list[dict[str, Any]], PlainValidator(parse_messages)] = Field(
        description="a list of messages; text alone, see [Build prompts](engine.md#build-prompts)"
    )
    max_completion_tokens: int | None = whole(None, 1, 1 << 31, "; overrides `max_tokens`")
    logprobs: bool = flag("those of the sampled tokens")
    top_logprobs: int = whole(0, 0, MAX_TOP_LOGPROBS, "; needs `logprobs`")
    tools: Annotated[list[dict[str, Any]] | None, PlainValidator(parse_tools)] = Field(
        None, description="a list of functions; see [Tools](tools.md)"
    )
    parallel_tool_calls: bool = flag("false ends the answer after its first call", True)
    tool_choice: Annotated[ToolChoice, PlainValidator(tool_choice_of)] = Field(
        "auto", validate_default=True, description="`none`, `auto`, `required` or a function"
    )
    chat_template_kwargs: Annotated[TemplateKwargs, PlainValidator(parse_template_kwargs)] = Field(
        (), description="an object; variables of the chat template, such as `enable_thinking` (vLLM's)"
    )
    chat_template_sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$", description=TEMPLATE)
    # JSON text of a schema.
    response_format: Annotated[str | None, PlainValidator(schema_of)] = Field(None, description=FORMS)
    separate_reasoning: bool = flag("false leaves [thoughts](#thoughts) in `content` (SGLang's)", True)

    @model_validator(mode="after")
    def _has_logprobs(self) -> Self:
        rule = f"top_logprobs must come with logprobs, got {self.top_logprobs}; send logprobs: true"
        require(self.logprobs or not self.top_logprobs, rule)
        return self

    @property
    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def parses_calls(self) -> bool:
        return self.tools is not None and self.tool_choice.is_parsed


def stops_of(request: ChatRequest, end_of_call: str) -> tuple[str, ...]:
    """Stop strings: the request's own, and the end of a call if only a call may follow."""
    ends_with_call = request.tool_choice.is_single and end_of_call
    return (*request.stop, end_of_call) if ends_with_call else request.stop


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
