"""The assistant's messages of a chat as the model would have sampled them: for supervised steps.

The prompt is written by the same code as for requests, so that training and sampling have equal prompts.
"""

from collections.abc import Callable
from typing import Any

import orjson

from temper_gpu.contract import ExampleRendering
from temper_gpu.engine.interface import TextModel
from temper_gpu.failures import TemperError
from temper_gpu.server.chat import parse_messages
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.template_kwargs import parse_template_kwargs
from temper_gpu.server.tool_choice import parse_tools

# Weight of an assistant's message, as in OpenAI's and Mistral's formats: 0 is not trained.
WEIGHT = "weight"
# Prompts by base model, template and variables.
KEPT_PROMPTS = 4

# Ids of the prompt, and those of the message with its end.
TurnIds = tuple[tuple[int, ...], tuple[int, ...]]


class ChatTurns:
    """`read_template`: the text of a template by its sha256."""

    def __init__(self, read_template: Callable[[str], str]) -> None:
        self._read_template = read_template
        self._opened: dict[tuple[str, str | None, bytes], Prompts] = {}

    def __call__(self, base: TextModel, chat: dict[str, Any], rendering: ExampleRendering) -> list[TurnIds]:
        """Turns in order. Refuses chats that the template cannot render, or renders so that a message does not continue
        its prompt."""
        prompts = self._prompts(base, rendering)
        given, tools = parse_messages(chat.get("messages")), parse_tools(chat.get("tools"))
        messages = list(map(without_weight, given))
        if tools or any(message.get("tool_calls") or message["role"] == "tool" for message in messages):
            _ = prompts.tools.form  # refuses a template that writes none
        ends = [index + 1 for index, message in enumerate(given) if is_trained(message)]
        chosen = ends[-1:] if rendering.turns == "last" else ends
        return [self._turn(base, prompts, messages[:end], tools) for end in chosen]

    def _prompts(self, base: TextModel, rendering: ExampleRendering) -> Prompts:
        kwargs, sha256 = parse_template_kwargs(rendering.chat_template_kwargs), rendering.chat_template_sha256
        # JSON types are compared, because True equals 1 in Python.
        key = (base.name, sha256, orjson.dumps(kwargs))
        prompts = self._opened.get(key)
        if prompts is None:
            if len(self._opened) >= KEPT_PROMPTS:
                self._opened.clear()
            given = None if sha256 is None else self._read_template(sha256)
            prompts = self._opened[key] = Prompts(base, kwargs, given)
        return prompts

    def _turn(
        self, base: TextModel, prompts: Prompts, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None
    ) -> TurnIds:
        prompt_ids, ids = prompts.split_assistant_turn(messages, tools)
        end = next((index for index, token_id in enumerate(ids) if token_id in base.end_token_ids), None)
        if end is not None:
            return prompt_ids, ids[: end + 1]
        raise TemperError(
            "BadConfig",
            f"message {len(messages) - 1}, an assistant's, must end with a token that ends an answer of {base.name}, "
            "but its chat template writes none; pass another template by --chat-template",
        )


def without_weight(message: dict[str, Any]) -> dict[str, Any]:
    is_known = message["role"] == "assistant" and message.get(WEIGHT) in (0, 1)
    return {name: value for name, value in message.items() if name != WEIGHT} if is_known else message


def is_trained(message: dict[str, Any]) -> bool:
    return message["role"] == "assistant" and message.get(WEIGHT) != 0
