"""Probes how a chat template renders tools, by rendering some, and a call."""

import json
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

from temper_gpu.failures import TemperError
from temper_gpu.server.harmony import HARMONY_TOOLS
from temper_gpu.server.tool_forms import TOOL_FORMS, ToolForm, find_form

QUESTION = {"role": "user", "content": "?"}
PROBE, TEXT = "probe", "probing"
PROBE_TOOLS = [{"type": "function", "function": {"name": PROBE, "description": PROBE, "parameters": {}}}]
# Some templates want ids of nine letters or digits.
CALL_ID = "000000000"

# Messages, tools and whether a turn is opened, to text.
Render = Callable[[list[dict[str, Any]], list[dict[str, Any]] | None, bool], str]


def probe_call(name: str, arguments: dict[str, Any], call_id: str = CALL_ID) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class ToolTemplate:
    def __init__(self, name: str, render: Render, is_harmony: bool) -> None:
        self._name = name
        self._render = render
        self._is_harmony = is_harmony
        self.opening = lru_cache(256)(self._opening)

    @cached_property
    def form(self) -> ToolForm:
        """Refuses a template that writes calls otherwise than they could be read."""
        turn = self._turn("", PROBE)
        form = HARMONY_TOOLS if self._is_harmony and HARMONY_TOOLS.sign.search(turn) else find_form(turn)
        if form is None:
            raise self._knows_no_tools("writes calls in another form")
        return form

    @cached_property
    def joiner(self) -> str:
        """Text between a turn's text and its first call; None if the template drops the text."""
        start = self.form.start
        before = self._turn(TEXT, PROBE).partition(start)[0]
        return before.partition(TEXT)[2]

    @cached_property
    def writes_one_call(self) -> bool:
        calls = [probe_call(PROBE, {PROBE: 0}, call_id) for call_id in (CALL_ID, "111111111")]
        try:
            self._render([QUESTION, {"role": "assistant", "content": "", "tool_calls": calls}], PROBE_TOOLS, False)
        except TemperError:
            return True
        return self.form is HARMONY_TOOLS

    def _opening(self, name: str | None) -> str:
        """Text from an opened turn on: up to the beginning of a call, or up to the arguments of `name`."""
        turn, start = self._turn("", name or PROBE), self.form.start
        if name is None:
            return turn[: turn.index(start) + len(start)]
        arguments = turn.find('{"probe"', turn.index(start))
        if arguments < 0:
            arguments = turn.index("{", turn.index(name, turn.index(start)) + len(name))
        # The blank before the arguments is left out, because tokenizers join it with what follows.
        opening = turn[:arguments].rstrip()
        if json.dumps(name, ensure_ascii=False)[1:-1] in opening[opening.index(start) :]:
            return opening
        raise self._knows_no_tools("writes the arguments of a call before its name")

    def _turn(self, content: str, name: str) -> str:
        """A turn with a call, from where a generation begins."""
        try:
            prompt = self._render([QUESTION], PROBE_TOOLS, True)
            message = {"role": "assistant", "content": content, "tool_calls": [probe_call(name, {PROBE: 0})]}
            answered = self._render([QUESTION, message], PROBE_TOOLS, False)
        except TemperError as error:
            raise self._knows_no_tools(f"refuses them ({error})") from error
        if PROBE not in prompt:
            raise self._knows_no_tools("leaves tools out")
        if not answered.startswith(prompt):
            raise self._knows_no_tools("writes a turn with a call otherwise than it opens one")
        return answered[len(prompt) :]

    def _knows_no_tools(self, reason: str) -> TemperError:
        forms = ", ".join(form.name for form in (*TOOL_FORMS, HARMONY_TOOLS))
        rule = f"tools must be supported by the chat template of {self._name} in a form that can be read ({forms})"
        remedy = "use a model that has one, or describe the tools in a message and parse calls from the text"
        return TemperError("BadConfig", f"{rule}, it {reason}; {remedy}")
