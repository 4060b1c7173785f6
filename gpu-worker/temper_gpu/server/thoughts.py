"""Thoughts of a model, separated from its answer."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ThoughtForm:
    # Names in the documentation.
    name: str
    start: str
    end: str


THOUGHT_FORMS: tuple[ThoughtForm, ...] = (
    ThoughtForm("Qwen 3, DeepSeek, SmolLM 3", "<think>", "</think>"),
    ThoughtForm("Magistral", "[THINK]", "[/THINK]"),
    ThoughtForm("Gemma 4", "<|channel>thought\n", "<channel|>"),
)


def find_thoughts(template: str, tokens: Iterable[str]) -> ThoughtForm | None:
    """The form whose end is in the chat template, or is a token of the tokenizer."""
    known = set(tokens)
    return next((form for form in THOUGHT_FORMS if form.end in template or form.end in known), None)


def split_thoughts(text: str, form: ThoughtForm | None, is_opened: bool) -> tuple[str | None, str]:
    """Thoughts, and the answer after them. `is_opened`: the prompt began them. Line breaks around them are left out:
    chat templates write them again."""
    if form is None:
        return None, text
    begun = text.lstrip()
    if not is_opened and not begun.startswith(form.start):
        return None, text
    thoughts, _, answer = begun.removeprefix(form.start).partition(form.end)
    return thoughts.strip("\n"), answer.lstrip("\n")
