"""The table of parameters is what the parsers do, and what the documentation says."""

from pathlib import Path
from typing import Any

import pytest

import temper_gpu
from temper_gpu.server.chat import parse_chat_request
from temper_gpu.server.completions import parse_completion_request
from temper_gpu.server.harmony import HARMONY_TOOLS
from temper_gpu.server.parameters import PARAMETERS, Endpoint, markdown
from temper_gpu.server.thoughts import THOUGHT_FORMS
from temper_gpu.server.tool_forms import TOOL_FORMS
from tests.failing import failing

PAGE = Path(temper_gpu.__file__).parents[2] / "docs/http-api.md"
BODIES: dict[Endpoint, dict[str, Any]] = {
    "chat": {"model": "pocket", "messages": [{"role": "user", "content": "?"}]},
    "completions": {"model": "pocket", "prompt": "?"},
}
PARSERS = {"chat": parse_chat_request, "completions": parse_completion_request}
ENDPOINTS: list[Endpoint] = ["chat", "completions"]


class Noting(dict[str, Any]):
    """Notes what is read of it."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(body)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_honoured_parameters_are_those_that_are_read(endpoint: Endpoint):
    body = Noting(BODIES[endpoint])
    PARSERS[endpoint](body, 8)
    assert body.read == {each.name for each in PARAMETERS if each.effect(endpoint) == "honoured"}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
def test_the_others_change_nothing_or_are_refused_by_name(parameter: Any, endpoint: Endpoint):
    body, effect = BODIES[endpoint], parameter.effect(endpoint)
    if effect == "honoured":
        return
    for neutral in {"refused": parameter.neutral, "no effect": (None, "anything", {"a": 1})}.get(effect, ()):
        assert PARSERS[endpoint]({**body, parameter.name: neutral}, 8) == PARSERS[endpoint](body, 8)
    if effect != "no effect":
        with failing("BadConfig", f"{parameter.name} must be .*;"):
            PARSERS[endpoint]({**body, parameter.name: {"other": True}}, 8)


def test_the_pages_name_every_form_of_calls_and_thoughts():
    tools = PAGE.with_name("tools.md").read_text()
    assert [form.name for form in (*TOOL_FORMS, HARMONY_TOOLS) if f"| {form.name} |" not in tools] == []
    assert [form.name for form in THOUGHT_FORMS if f"| {form.name} |" not in PAGE.read_text()] == []


def test_the_page_shows_the_table():
    """Where they differ, print `markdown()` and copy it."""
    assert markdown() in PAGE.read_text()
