"""Every parameter of OpenAI's requests, and those of vLLM's that are read here: which is honoured, has no effect or is
refused. docs/http-api.md shows this table; a test compares them."""

from dataclasses import dataclass
from typing import Any, Literal

from temper_gpu.failures import TemperError
from temper_gpu.server.fields import shown

Effect = Literal["honoured", "no effect", "refused"]
Endpoint = Literal["chat", "completions"]


@dataclass(frozen=True)
class Parameter:
    name: str
    # None: the endpoint refuses the parameter like an unknown one.
    chat: Effect | None
    completions: Effect | None
    # Values of a honoured parameter, the reason why one has no effect, or what to do instead of a refused one.
    note: str
    # Values of a refused parameter that ask for nothing: they are accepted.
    neutral: tuple[Any, ...] = (None,)

    def effect(self, endpoint: Endpoint) -> Effect | None:
        return self.chat if endpoint == "chat" else self.completions


def of_both(name: str, note: str) -> Parameter:
    return Parameter(name, "honoured", "honoured", note)


def of_chat(name: str, note: str) -> Parameter:
    return Parameter(name, "honoured", None, note)


def of_completions(name: str, note: str) -> Parameter:
    return Parameter(name, None, "honoured", note)


def without_effect(name: str, reason: str, completions: Effect | None = None) -> Parameter:
    return Parameter(name, "no effect", completions, reason)


def refused(name: str, remedy: str, *neutral: Any) -> Parameter:
    return Parameter(name, "refused", None, remedy, (None, *neutral))


def refused_of_completions(name: str, remedy: str, *neutral: Any) -> Parameter:
    return Parameter(name, None, "refused", remedy, (None, *neutral))


PARAMETERS: tuple[Parameter, ...] = (
    of_both("model", "a base model's name, or a policy `run@step`"),
    of_chat("messages", "text; see [Build prompts](engine.md#build-prompts)"),
    of_completions("prompt", "a string, a list of token ids, or a list of these"),
    of_both("max_tokens", "default: 1024 for chats, 16 for completions"),
    of_chat("max_completion_tokens", "overrides `max_tokens`"),
    of_both("temperature", "0 (the likeliest token), or 0.001 to 2; default 1"),
    of_both("top_p", "0 to 1"),
    of_both("top_k", "-1 or 0 for all tokens, or the number of tokens (vLLM's)"),
    of_both("min_p", "0 to 1 (vLLM's)"),
    of_both("frequency_penalty", "-2 to 2"),
    of_both("presence_penalty", "-2 to 2"),
    of_both("repetition_penalty", "above 0, at most 2 (vLLM's)"),
    of_both("logit_bias", "up to 1,024 token ids, each with -100 to 100"),
    of_both("seed", "the same seed samples the same answer"),
    of_both("n", "up to 64 choices"),
    of_both("stop", "up to 16 strings"),
    of_both("stop_token_ids", "up to 16 token ids (vLLM's)"),
    of_both("ignore_eos", "ignores the end token (vLLM's)"),
    of_both("logprobs", "chat: true or false; completions: 0 to 20 alternatives"),
    of_chat("top_logprobs", "0 to 20; needs `logprobs`"),
    of_both("stream", "server-sent events, token by token"),
    of_both("stream_options", "`include_usage`"),
    of_both("return_token_ids", "adds `prompt_token_ids` and `token_ids` (vLLM's)"),
    of_completions("echo", "puts the prompt before the text; without `logprobs`"),
    of_completions("add_special_tokens", "adds the tokenizer's own to a string; default true (vLLM's)"),
    of_chat("tools", "functions; see [Tools](tools.md)"),
    of_chat("tool_choice", "`none`, `auto`, `required` or a function"),
    of_chat("chat_template_kwargs", "variables of the chat template, such as `enable_thinking` (vLLM's)"),
    of_chat("chat_template_sha256", "a [template of a run](engine.md#build-prompts) in the store (Temper's)"),
    of_chat("parallel_tool_calls", "false ends the answer after its first call"),
    of_chat("response_format", "`text`, `json_object` or `json_schema`; see [JSON answers](#json-answers)"),
    of_chat("separate_reasoning", "false leaves [thoughts](#thoughts) in `content`; default true (SGLang's)"),
    without_effect("metadata", "nothing is stored"),
    without_effect("store", "nothing is stored"),
    without_effect("user", "there is one user", "no effect"),
    without_effect("safety_identifier", "there is one user"),
    without_effect("service_tier", "there is one tier"),
    without_effect("prompt_cache_key", "changes no answer"),
    without_effect("prompt_cache_retention", "changes no answer"),
    refused_of_completions("best_of", "send n, and choose by log-probabilities", 1),
    refused_of_completions("suffix", "put it into the prompt", ""),
    refused("functions", "send tools", []),
    refused("function_call", "send tool_choice", "none"),
    refused("reasoning_effort", "say in a message how long to think"),
    refused("verbosity", "say in a message how long to answer"),
    refused("modalities", "ask for text", ["text"]),
    refused("audio", "ask for text"),
    refused("prediction", "leave it out; it would only be faster"),
    refused("web_search_options", "search in the agent, and send what it found"),
)
BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}


def check_parameters(body: dict[str, Any], endpoint: Endpoint) -> None:
    """Refuses by name what would not be honoured."""
    for name, value in body.items():
        parameter = BY_NAME.get(name)
        effect = None if parameter is None else parameter.effect(endpoint)
        if parameter is None or effect is None:
            raise TemperError("BadConfig", f"parameter {name} must be one that this server supports; leave it out")
        if effect == "refused" and not any(is_same(value, neutral) for neutral in parameter.neutral):
            rule = f"{name} must be {shown(parameter.neutral[-1])} (nothing else is supported)"
            raise TemperError("BadConfig", f"{rule}, got {shown(value)}; {parameter.note}")


def is_same(value: Any, other: Any) -> bool:
    """Compares types too, because True equals 1 in Python."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def markdown() -> str:
    """The table of docs/http-api.md."""
    head = "| parameter | chat | completions | |\n| --- | --- | --- | --- |\n"
    return head + "".join(map(row, PARAMETERS))


def row(parameter: Parameter) -> str:
    neutral = [f"`{shown(value)}`" for value in parameter.neutral if value is not None]
    accepted = f" (but {' and '.join(neutral)})" if neutral else ""
    chat, completions = (
        f"{effect}{accepted if effect == 'refused' else ''}" if effect else "–"
        for effect in (parameter.chat, parameter.completions)
    )
    return f"| `{parameter.name}` | {chat} | {completions} | {parameter.note} |\n"
