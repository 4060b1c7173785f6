"""The documentation shows every parameter. One that is not honoured changes nothing, or is refused."""

from pathlib import Path
from typing import Any

import pytest

import temper_gpu
from temper_gpu.server.bodies import shown
from temper_gpu.server.chat import ChatRequest
from temper_gpu.server.completions import CompletionRequest
from temper_gpu.server.harmony import HARMONY_TOOLS
from temper_gpu.server.sampling import Sampling
from temper_gpu.server.thoughts import THOUGHT_FORMS
from temper_gpu.server.tool_forms import TOOL_FORMS
from tests.failing import failing

PAGE = Path(temper_gpu.__file__).parents[2] / "docs/http-api.md"
BODIES: dict[type[Sampling], dict[str, Any]] = {
    ChatRequest: {"model": "pocket", "messages": [{"role": "user", "content": "?"}]},
    CompletionRequest: {"model": "pocket", "prompt": "?"},
}
# Those of both requests come first.
NAMES = dict.fromkeys(name for kind in (Sampling, *BODIES) for name in kind.model_fields) | dict.fromkeys(
    name for kind in BODIES for name in (*kind.no_effect, *kind.refused)
)


OTHERS = [(kind, name) for kind in BODIES for name in NAMES if name not in kind.model_fields]


@pytest.mark.parametrize(("kind", "name"), OTHERS)
def test_the_others_change_nothing_or_are_refused_by_name(kind: type[Sampling], name: str):
    body = BODIES[kind]
    neutral = (None, kind.refused[name][1]) if name in kind.refused else ()
    for value in (None, "anything", {"a": 1}) if name in kind.no_effect else neutral:
        assert kind.parse({**body, name: value}) == kind.parse(body)
    if name not in kind.no_effect:
        with failing("BadConfig", f"{name} must be .*;"):
            kind.parse({**body, name: {"other": True}})


def test_the_pages_name_every_form_of_calls_and_thoughts():
    tools = PAGE.with_name("tools.md").read_text()
    assert [form.name for form in (*TOOL_FORMS, HARMONY_TOOLS) if f"| {form.name} |" not in tools] == []
    assert [form.name for form in THOUGHT_FORMS if f"| {form.name} |" not in PAGE.read_text()] == []


def test_the_page_shows_the_table():
    """Where they differ, print `markdown()` and copy it."""
    assert markdown() in PAGE.read_text()


def markdown() -> str:
    head = "| parameter | chat | completions | |\n| --- | --- | --- | --- |\n"
    return head + "".join(f"| `{name}` | {' | '.join(cells_of(name))} |\n" for name in NAMES)


def cells_of(name: str) -> list[str]:
    (chat, note), (completions, other) = (told(kind, name) for kind in BODIES)
    both = f"chats: {note}; completions: {other}" if note and other and note != other else note or other
    return [chat, completions, both]


def told(kind: type[Sampling], name: str) -> tuple[str, str]:
    if name in kind.model_fields:
        return "honoured", kind.model_fields[name].description or ""
    if name in kind.no_effect:
        return "no effect", kind.no_effect[name]
    if name not in kind.refused:
        return "–", ""
    remedy, neutral = kind.refused[name]
    return f"refused (but `{shown(neutral)}`)" if neutral is not None else "refused", remedy
