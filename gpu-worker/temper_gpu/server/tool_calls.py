"""Tool calls in what a model wrote, in Hermes form (Qwen's): <tool_call>{"name": …, "arguments": {…}}</tool_call>.

What is a call, what is text, and how arguments are written again is as vLLM's parser `hermes` has it where it does not
stream: a call may lack its end at the end of the text, one malformed call makes all of it text, and nothing is checked
against the tools that were offered, for that is the caller's affair. Otherwise than there, malformed calls are counted,
arguments have to be an object, which is what templates can write again, and a text in them may hold the end tag.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from temper_gpu.contract import MAX_DEPTH
from temper_gpu.model.detokenizer import END, START

DECODER = json.JSONDecoder()
BLANKS = re.compile(r"\s*")


@dataclass(frozen=True)
class ToolCall:
    name: str
    # JSON text: written again from what was read, so that the same arguments always look the same.
    arguments: str


@dataclass(frozen=True)
class ParsedAnswer:
    """`content` is None if calls begin the text. Text between and after calls is dropped."""

    content: str | None
    calls: tuple[ToolCall, ...] = ()
    num_malformed: int = 0


def parse_answer(text: str) -> ParsedAnswer:
    if START not in text:
        return ParsedAnswer(text)
    calls = [parse_call(region) for region in regions(text)]
    num_malformed = calls.count(None)
    if num_malformed:
        return ParsedAnswer(text, num_malformed=num_malformed)
    return ParsedAnswer(text[: text.index(START)] or None, tuple(call for call in calls if call is not None))


def regions(text: str) -> Iterator[str]:
    """Text between tags, or after the last one."""
    at = text.find(START)
    while at >= 0:
        begin = at + len(START)
        end = text.find(END, end_of_json(text, begin))
        yield text[begin:] if end < 0 else text[begin:end]
        at = -1 if end < 0 else text.find(START, end)


def end_of_json(text: str, at: int) -> int:
    """The end of the JSON value at `at`; `at` if there is none."""
    try:
        return DECODER.raw_decode(text, end_of(BLANKS, text, at))[1]
    except (ValueError, RecursionError):
        return at


def end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The end of a match, which may be empty."""
    found = pattern.match(text, at)
    return at if found is None else found.end()


def parse_call(region: str) -> ToolCall | None:
    try:
        return made_call(json.loads(region))
    except (ValueError, RecursionError):
        return None


def made_call(call: Any) -> ToolCall | None:
    """None without a name or arguments, or if the call could not be sent."""
    try:
        if not isinstance(call["arguments"], dict):
            return None
        name, arguments = call["name"], json.dumps(call["arguments"], ensure_ascii=False)
        # Half of a surrogate pair is JSON, but no text that could be sent.
        f"{name}{arguments}".encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return ToolCall(name, arguments) if isinstance(name, str) and not is_deeper(call, MAX_DEPTH) else None


def is_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [item for node in level for item in children(node)]
    return bool(level)


def children(node: Any) -> list[Any]:
    return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []


def call_message(call: ToolCall, call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
