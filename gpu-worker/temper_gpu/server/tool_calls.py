"""Tool calls in what a model wrote, in Hermes form (Qwen's): <tool_call>{"name": …, "arguments": {…}}</tool_call>.

What is a call, what is text, and how arguments are written again is as vLLM's parser `hermes` has it where it does not
stream: a call may lack its end at the end of the text, one malformed call makes all of it text, and nothing is checked
against the tools that were offered, for that is the caller's affair. Here malformed calls are counted, too.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from temper_gpu.model.detokenizer import END, START

# No tool asks for more, and a template that writes them again goes down level by level.
MAX_DEPTH = 100
REGION = re.compile(rf"{START}(.*?)(?:{END}|\Z)", re.DOTALL)


@dataclass(frozen=True)
class ToolCall:
    name: str
    # JSON text: written again from what was read, so that the same arguments always look the same.
    arguments: str


@dataclass(frozen=True)
class ParsedAnswer:
    """`content` is None where calls begin the text; what stands between and after calls is in neither."""

    content: str | None
    calls: tuple[ToolCall, ...] = ()
    num_malformed: int = 0


def parse_answer(text: str) -> ParsedAnswer:
    if START not in text:
        return ParsedAnswer(text)
    calls = [parse_call(region) for region in REGION.findall(text)]
    num_malformed = calls.count(None)
    if num_malformed:
        return ParsedAnswer(text, num_malformed=num_malformed)
    return ParsedAnswer(text[: text.index(START)] or None, tuple(call for call in calls if call is not None))


def parse_call(region: str) -> ToolCall | None:
    try:
        return made_call(json.loads(region))
    except (ValueError, RecursionError):
        return None


def made_call(call: Any) -> ToolCall | None:
    """None where it lacks a name or arguments, or could not be sent."""
    try:
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
    """As OpenAI's API has it."""
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
