"""A request's settings of the chat template: variables (`chat_template_kwargs`), such as `enable_thinking`, and a
template that replaces the model's own, by its hash (`chat_template_sha256`)."""

import inspect
import re
import string
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from temper_gpu.failures import TemperError
from temper_gpu.server.bodies import shown

Scalar = str | float | bool
# Fixed as a request is read, and then a key of what is remembered.
TemplateKwargs = tuple[tuple[str, Scalar], ...]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
MAX_VARIABLES, MAX_TEXT = 16, 1000
# Variables that Temper and transformers set themselves.
GIVEN = frozenset(inspect.signature(PreTrainedTokenizerBase.apply_chat_template).parameters) | {
    "messages",
    "raise_exception",
}
# The function by which templates write a date. Set to a day, as YYYY-MM-DD, it is always that day.
CLOCK = "strftime_now"


def parse_template_kwargs(given: Any) -> TemplateKwargs:
    if given is None:
        return ()
    if not isinstance(given, dict) or len(given) > MAX_VARIABLES:
        raise _bad(f"must be an object of at most {MAX_VARIABLES} variables, got {shown(given)}", "change it")
    for name, value in given.items():
        if not NAME.fullmatch(name) or name in GIVEN:
            rule = f"must name variables of the chat template that a caller may set, got {shown(name)}"
            raise _bad(rule, "leave it out")
        if not isinstance(value, str | int | float | bool) or (isinstance(value, str) and len(value) > MAX_TEXT):
            raise _bad(f"must hold texts, numbers, true or false, got {shown(value)} for {name}", "change it")
    if CLOCK in given:
        day_of(given[CLOCK])
    return tuple(sorted(given.items()))


def day_of(value: Scalar) -> date:
    try:
        return date.fromisoformat(str(value))
    except ValueError as error:
        raise _bad(f"must set {CLOCK} to a day, got {shown(value)}", "write it as YYYY-MM-DD") from error


def clock_of(kwargs: TemplateKwargs) -> str:
    """A prefix that fixes the date of a template, in its first line, which jinja leaves out of the text. Variables of
    transformers' templates cannot be functions."""
    day = next((day_of(value) for name, value in kwargs if name == CLOCK), None)
    if day is None:
        return ""
    midnight = datetime(day.year, day.month, day.day)
    formats = [f"%{flag}{letter}" for flag in ("", "-") for letter in string.ascii_letters if letter != "s"]
    written = [(each, text) for each in formats if (text := midnight.strftime(each)) != each]
    return (
        f"{{% macro {CLOCK}(format) %}}{{% for part in format.split('%%') %}}{{% set said = namespace(text=part) %}}"
        f"{{% for each, text in {written} %}}{{% set said.text = said.text.replace(each, text) %}}{{% endfor %}}"
        "{{ '%' if not loop.first }}{{ said.text }}{% endfor %}{% endmacro %}\n"
    )


def require_known(kwargs: TemplateKwargs, template: str | Mapping[str, str], model: str) -> None:
    """A template does not say what it does not know: the variable would have no effect."""
    text = template if isinstance(template, str) else "\n".join(template.values())
    for name, _ in kwargs:
        if re.search(rf"\b{name}\b", text) is None:
            raise _bad(f"must be known to the chat template of {model}, which does not know {name}", "leave it out")


def _bad(rule: str, remedy: str) -> TemperError:
    return TemperError("BadConfig", f"chat_template_kwargs {rule}; {remedy}")
