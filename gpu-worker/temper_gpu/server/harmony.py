"""Harmony, the form of gpt-oss: an answer is several messages, each with a channel and perhaps a recipient.

<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary to=functions.look <|constrain|>json
<|message|>{…}<|call|>, or at last <|channel|>final<|message|>…<|return|>. The prompt has written <|start|>assistant.
"""

import json
import re
from dataclasses import dataclass

from temper_gpu.server.tool_calls import ParsedAnswer, ToolCall, made_call
from temper_gpu.server.tool_forms import ToolForm

START, MESSAGE = "<|start|>", "<|message|>"
ENDS = re.compile(r"<\|end\|>|<\|return\|>|<\|call\|>|<\|start\|>")
CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
RECIPIENT = re.compile(r"\bto=functions\.([\w.-]+)")
RECIPIENT_START = "to=functions."
TAGS = (START, MESSAGE, "<|end|>", "<|return|>", "<|call|>", "<|channel|>", " " + RECIPIENT_START)
FIRST_TAG = re.compile("|".join(map(re.escape, TAGS[:-1])))


@dataclass(frozen=True)
class Part:
    header: str
    body: str

    @property
    def channel(self) -> str:
        found = CHANNEL.search(self.header)
        return found[1] if found else "final"

    @property
    def function(self) -> str | None:
        found = RECIPIENT.search(self.header)
        return found[1] if found else None


def parts_of(text: str) -> list[Part]:
    """Text before the first tag is a separate message, the answer, unless it begins a call."""
    before = FIRST_TAG.split(text, maxsplit=1)[0]
    is_plain = bool(before) and not before.lstrip().startswith(RECIPIENT_START)
    parts = (part.partition(MESSAGE) for part in ENDS.split(text[len(before) :] if is_plain else text))
    return [*([Part("", before)] if is_plain else []), *(Part(header, body) for header, tag, body in parts if tag)]


def split_channels(text: str) -> tuple[str | None, str]:
    """Splits thoughts from the visible text: the final channel, and comments that are no calls."""
    parts = [part for part in parts_of(text) if part.function is None]
    thoughts = "\n".join(part.body for part in parts if part.channel == "analysis")
    return thoughts or None, "".join(part.body for part in parts if part.channel != "analysis")


def parse_calls(text: str) -> ParsedAnswer:
    _, told = split_channels(text)
    calls = [call_of(part.function, part.body) for part in parts_of(text) if part.function is not None]
    if None in calls:
        return ParsedAnswer(told or text, num_malformed=calls.count(None))
    return ParsedAnswer(told if told or not calls else None, tuple(call for call in calls if call is not None))


def call_of(name: str, body: str) -> ToolCall | None:
    try:
        arguments = json.loads(body or "{}")
    except (ValueError, RecursionError):
        return None
    return made_call({"name": name, "arguments": arguments})


HARMONY_TOOLS = ToolForm(
    "Harmony (gpt-oss)",
    re.compile(r'to=functions\.probe.*<\|message\|>\{"probe"', re.DOTALL),
    " " + RECIPIENT_START,
    "<|call|>",
    parse_calls,
)
