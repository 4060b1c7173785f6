"""What of a conversation reaches the model: all of it, or a refusal by name."""

from typing import Any

import pytest

from temper_gpu.failures import TemperError
from temper_gpu.server.prompts import Prompts
from tests.failing import failing
from tests.server.templates import QWEN, SILENT, WITH_NAMES, pocket, prompts_by

ASK = {"role": "user", "content": "Go."}
INSTRUCT = {"role": "developer", "content": "Be brief."}


def rendered(template: str | None, *messages: dict[str, Any]) -> str:
    return prompts_by(template).decode(list(prompts_by(template).encode(list(messages), None)))


@pytest.mark.parametrize("template", [None, SILENT])
def test_a_developer_is_shown_as_system_where_the_template_knows_none(template: str | None):
    prompts = prompts_by(template)
    as_system = prompts.encode([{**INSTRUCT, "role": "system"}, ASK], None)
    assert prompts.encode([INSTRUCT, ASK], None) == as_system
    assert b"Be brief." in bytes(token_id for token_id in as_system if token_id < 256)


def test_a_developer_stays_one_where_the_template_writes_it():
    """In this template every role has a tag of its own."""
    assert "<|developer|>" in rendered(QWEN, INSTRUCT, ASK)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([ASK, {"role": "tool", "content": "42"}], "role of message 1 .*leaves tool out .*send it as user"),
        ([ASK, {"role": "system", "content": "Now obey."}], "role of message 1 .*leaves system out after the first"),
        ([ASK, INSTRUCT], "role of message 1 .*leaves system out after the first"),
    ],
)
def test_a_role_that_the_template_leaves_out_is_refused_by_name(messages: list[dict[str, Any]], words: str):
    with failing("BadConfig", words):
        prompts_by(SILENT).encode(messages, None)


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
@pytest.mark.parametrize("member", ["name", "refusal", "function_call", "reasoning_content"])
def test_a_member_that_the_template_leaves_out_is_refused_by_name(role: str, member: str):
    messages = [{"role": role, "content": "Go.", member: "ann"}]
    with pytest.raises(TemperError, match=f"{member} of message 0 must be .*pocket renders.*leave it out, or put it"):
        prompts_by().encode(messages, None)
    absent = prompts_by().encode([{**messages[0], member: None}], None)
    assert absent == prompts_by().encode([{"role": role, "content": "Go."}], None)


def test_a_token_that_was_added_to_the_tokenizer_alone_is_refused_wherever_it_comes_from():
    base = pocket()
    base.tokenizer.add_special_tokens({"additional_special_tokens": ["<|new|>"]})
    prompts = Prompts(base)
    assert prompts.encode([ASK], None) == prompts_by().encode([ASK], None)
    for ask in (lambda: prompts.encode_text("a<|new|>", False), lambda: prompts.known_ids((264,))):
        with pytest.raises(TemperError, match=r"must be below 264, .*got 264 \(<\|new\|>, which the tokenizer has"):
            ask()


def test_a_name_is_honoured_where_the_template_writes_it():
    assert "ann: Go." in rendered(WITH_NAMES, {**ASK, "name": "ann"})


def test_what_an_agent_sends_back_of_an_answer_is_accepted():
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    answer = {"role": "assistant", "content": None, "refusal": None, "annotations": [], "tool_calls": [call]}
    result = {"role": "tool", "content": "free", "tool_call_id": "1"}
    assert "free" in rendered(None, ASK, answer, result)


def test_names_of_members_are_remembered_up_to_a_length():
    prompts = prompts_by()
    message = {"role": "user", "content": "?", "x" * 100_000: "1"}
    with pytest.raises(TemperError, match=f"^{'x' * 64} of message 0 must"):
        prompts.encode([message], None)
    assert prompts._writes_member.cache_info().currsize == 0


def test_the_gaps_of_a_template_are_told_before_any_request():
    *gaps, tools = prompts_by(SILENT).gaps()
    assert gaps == [
        "it leaves out system messages after the first message",
        "it leaves out results of tools",
        "it leaves out names of messages",
    ]
    assert "leaves tools out" in tools
    assert prompts_by(QWEN).gaps() == ["it leaves out names of messages"]
