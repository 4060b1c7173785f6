"""The forms in which families of models write calls of tools. A chat template shows which one its model learned: it is
given a conversation with a call, and what it writes is looked up here.

What is read, what is text and what is malformed is as in `tool_calls`: one malformed call makes all of it text.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from temper_gpu.model.detokenizer import END, START
from temper_gpu.server.tool_calls import BLANKS, DECODER, ParsedAnswer, ToolCall, end_of, made_call, parse_answer

TOOL_CALLS, PYTHON_TAG = "[TOOL_CALLS]", "<|python_tag|>"
# Between calls, in what Llama and Mistral write.
SEPARATORS = re.compile(rf"(?:[\s;,]|{re.escape(TOOL_CALLS)})*")
# First member of a call that is cut or no JSON.
OPENED = re.compile(r'\{\s*("name"|"type"\s*:\s*"function")')
# A value of Gemma's without quotes.
PLAIN = re.compile(r"[^,\]}]*")


@dataclass(frozen=True)
class ToolForm:
    # Names in the documentation.
    name: str
    # Text of this form in a turn with a call of `probe`.
    sign: re.Pattern[str]
    # Beginning and end of a call in the model's text; "": the end of the answer.
    start: str
    end: str
    parse: Callable[[str], ParsedAnswer]
    # Other texts after which an answer may turn out to be a call.
    may_start: tuple[str, ...] = ()

    @property
    def starts(self) -> tuple[str, ...]:
        return (self.start, *self.may_start)


class Malformed(Exception):
    pass


def parse_llama(text: str) -> ParsedAnswer:
    """{"name": …, "parameters": {…}}, which the whole answer is; several with a semicolon between."""
    body = text.strip().removeprefix(PYTHON_TAG).strip()
    if not body.startswith("{") or (PYTHON_TAG not in text and not is_meant_as_call(body)):
        return ParsedAnswer(text)
    return parsed(text, None, body)


def is_meant_as_call(body: str) -> bool:
    """Other JSON is an answer, whatever its members are."""
    try:
        value, _ = DECODER.raw_decode(body)
    except (ValueError, RecursionError):
        return OPENED.match(body) is not None
    return "name" in value and not value.keys().isdisjoint(("parameters", "arguments"))


def parse_mistral(text: str) -> ParsedAnswer:
    """[TOOL_CALLS] [{"name": …, "arguments": {…}}, …], or [TOOL_CALLS]name[ARGS]{…} for each call."""
    content, tag, calls = text.partition(TOOL_CALLS)
    return parsed(text, content, calls) if tag else ParsedAnswer(text)


def parsed(text: str, content: str | None, called: str) -> ParsedAnswer:
    try:
        calls = tuple(calls_in(called.strip()))
    except Malformed:
        return ParsedAnswer(text, num_malformed=1)
    return ParsedAnswer(content or None, calls)


NAMED = re.compile(r"([\w.-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{)")


def calls_in(text: str) -> Iterator[ToolCall]:
    """JSON objects, lists of them, or names before their arguments; at least one."""
    at = 0
    while at < len(text):
        named = NAMED.match(text, at)
        try:
            value, at = DECODER.raw_decode(text, named.end() if named else at)
        except (ValueError, RecursionError) as error:
            raise Malformed from error
        for each in value if isinstance(value, list) and not named else [value]:
            yield call_of({"name": named[1], "arguments": each} if named else each)
        at = end_of(SEPARATORS, text, at)
    if not text:
        raise Malformed


def call_of(value: Any) -> ToolCall:
    if not isinstance(value, dict):
        raise Malformed
    arguments = value.get("arguments", value.get("parameters"))
    call = made_call({"name": value.get("name"), "arguments": arguments}) if isinstance(arguments, dict) else None
    if call is None:
        raise Malformed
    return call


@dataclass(frozen=True)
class GemmaParser:
    """call:name{key:value,…}, with strings between quotes that are separate tokens."""

    start: str
    end: str
    quote: str

    def __call__(self, text: str) -> ParsedAnswer:
        content, *parts = text.split(self.start)
        if not parts:
            return ParsedAnswer(text)
        try:
            calls = tuple(self._call(part.partition(self.end)[0].strip()) for part in parts)
        except (Malformed, RecursionError):
            return ParsedAnswer(text, num_malformed=1)
        return ParsedAnswer(content or None, calls)

    def _call(self, text: str) -> ToolCall:
        named = re.match(r"call:([\w.-]+)\s*(?=\{)", text)
        if named is None:
            raise Malformed
        arguments, end = self._value(text, named.end())
        call = made_call({"name": named[1], "arguments": arguments})
        if call is None or text[end:].strip():
            raise Malformed
        return call

    def _value(self, text: str, at: int) -> tuple[Any, int]:
        if text.startswith(self.quote, at):
            end = text.find(self.quote, at + len(self.quote))
            if end < 0:
                raise Malformed
            return text[at + len(self.quote) : end], end + len(self.quote)
        if text.startswith("{", at):
            members, at = self._items(text, at + 1, "}")
            return dict(members), at
        if text.startswith("[", at):
            items, at = self._items(text, at + 1, "]")
            return items, at
        end = end_of(PLAIN, text, at)
        return literal(text[at:end].strip()), end

    def _items(self, text: str, at: int, closing: str) -> tuple[list[Any], int]:
        items: list[Any] = []
        while not text.startswith(closing, at := end_of(BLANKS, text, at)):
            key = None
            if closing == "}":
                key, at = self._key(text, at)
            value, at = self._value(text, end_of(BLANKS, text, at))
            items.append(value if key is None else (key, value))
            at = end_of(BLANKS, text, at)
            if text.startswith(",", at):
                at += 1
            elif not text.startswith(closing, at):
                raise Malformed
        return items, at + 1

    def _key(self, text: str, at: int) -> tuple[str, int]:
        end = text.find(":", at)
        key = text[at:end].strip().removeprefix(self.quote).removesuffix(self.quote)
        if end < 0 or not key:
            raise Malformed
        return key, end + 1


def literal(text: str) -> Any:
    """A number, a truth value or null; anything else is a text whose quotes were forgotten."""
    try:
        return json.loads(text)
    except ValueError:
        return text


FUNCTION_GEMMA = GemmaParser("<start_function_call>", "<end_function_call>", "<escape>")
GEMMA_4 = GemmaParser("<|tool_call>", "<tool_call|>", '<|"|>')

TOOL_FORMS: tuple[ToolForm, ...] = (
    ToolForm("Hermes (Qwen)", re.compile(rf'{START}.*"probe".*\{{"probe".*{END}', re.DOTALL), START, END, parse_answer),
    ToolForm("Mistral", re.compile(r'\[TOOL_CALLS\].*probe.*\{"probe"', re.DOTALL), TOOL_CALLS, "", parse_mistral),
    ToolForm("Gemma 4", re.compile(r"<\|tool_call>call:probe\{"), GEMMA_4.start, GEMMA_4.end, GEMMA_4),
    ToolForm(
        "FunctionGemma",
        re.compile(r"<start_function_call>call:probe\{"),
        FUNCTION_GEMMA.start,
        FUNCTION_GEMMA.end,
        FUNCTION_GEMMA,
    ),
    ToolForm(
        "Llama 3",
        re.compile(r'\{"name": ?"probe", ?"parameters": ?\{"probe"'),
        '{"name":',
        "",
        parse_llama,
        ("{", PYTHON_TAG),
    ),
)


def find_form(turn: str) -> ToolForm | None:
    """The form of a turn that calls `probe` with the argument `probe`."""
    return next((form for form in TOOL_FORMS if form.sign.search(turn)), None)
