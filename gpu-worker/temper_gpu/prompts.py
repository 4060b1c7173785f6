"""Conversations to token ids and back, for one base model, by its own chat template (in jinja's sandbox)."""

import json
from functools import lru_cache
from typing import Any

import orjson
from jinja2 import TemplateError

from temper_gpu.failures import TemperError
from temper_gpu.models import BaseModel

# The attempts of a group begin with the same prompt, and rendering it is the dearest part of a call.
MAX_REMEMBERED, MAX_REMEMBERED_BYTES = 1024, 16_384


class Prompts:
    def __init__(self, base: BaseModel) -> None:
        self._name = base.name
        self._tokenizer = base.tokenizer
        # The Rust tokenizer beneath is thirty microseconds cheaper a call than its wrapper; slow tokenizers have none.
        self._backend = getattr(base.tokenizer, "backend_tokenizer", None)
        self._remembered: dict[bytes, tuple[int, ...]] = {}
        self.token_text = lru_cache(1 << 16)(self._token_text)

    def encode(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> tuple[int, ...]:
        """Token ids of the conversation with the assistant's turn opened."""
        key = orjson.dumps([messages, tools])
        if len(key) > MAX_REMEMBERED_BYTES:
            return self._encode(messages, tools)
        ids = self._remembered.get(key)
        if ids is None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            ids = self._remembered[key] = self._encode(messages, tools)
        return ids

    def _encode(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> tuple[int, ...]:
        plain = [plain_message(message) for message in messages]
        try:
            text = self._tokenizer.apply_chat_template(plain, tools=tools, add_generation_prompt=True, tokenize=False)
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            raise TemperError(
                "BadConfig",
                f"messages must fit the chat template of {self._name}, it says: {error}; change the messages",
            ) from error
        if self._backend is not None:
            return tuple(self._backend.encode(text, add_special_tokens=False).ids)
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, token_ids: list[int]) -> str:
        if self._backend is not None:
            return self._backend.decode(token_ids, skip_special_tokens=True)
        return self._tokenizer.decode(token_ids, skip_special_tokens=True)

    def _token_text(self, token_id: int) -> str:
        return self._tokenizer.decode([token_id])


def plain_message(message: dict[str, Any]) -> dict[str, Any]:
    """Templates want text, not parts, and arguments of tool calls as objects, not as JSON text."""
    plain = {name: value for name, value in message.items() if value is not None}
    if isinstance(plain.get("content"), list):
        plain["content"] = "".join(part_text(part) for part in plain["content"])
    elif not isinstance(plain.get("content", ""), str):
        raise TemperError(
            "BadConfig", "a message's content must be a string or a list of text parts, got something else; send text"
        )
    plain.setdefault("content", "")
    if plain.get("tool_calls"):
        plain["tool_calls"] = [plain_tool_call(call) for call in plain["tool_calls"]]
    return plain


def part_text(part: Any) -> str:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return part["text"]
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    raise TemperError("BadConfig", f"parts of a message must be text, got {kind}; send text only")


def plain_tool_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        return {**call, "function": {**function, "arguments": json.loads(function["arguments"])}}
    except ValueError:
        return call
