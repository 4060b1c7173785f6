"""Tools in requests and answers: choices, the calls that a prompt opens, and what goes back into the next prompt."""

from typing import Any

import pytest

from temper_gpu.engine.interface import Generation
from temper_gpu.failures import TemperError
from temper_gpu.model.detokenizer import Detokenizer, stop_check
from temper_gpu.server.chat import ChatRequest, stops_of
from temper_gpu.server.prompts import Prompts, plain_message
from temper_gpu.server.streams import ChatWriter
from temper_gpu.server.tool_choice import ToolChoice
from tests.failing import failing
from tests.server.templates import (
    OTHER_FORM,
    QWEN,
    THINKING,
    WITHOUT_TOOLS,
    pocket,
    prompts_by,
    with_special_tags,
)

QUESTION = {"role": "user", "content": "Is cell 5 free?"}
LOOK = {
    "type": "function",
    "function": {"name": "look", "description": "Look at a cell.", "parameters": {"type": "object"}},
}
STEP = {"type": "function", "function": {"name": "step"}}
NAMED = {"type": "function", "function": {"name": "look"}}
CALL = '<tool_call>{"name": "look", "arguments": {"cell": 5}}</tool_call>'


@pytest.fixture(scope="module")
def prompts() -> Prompts:
    return prompts_by()


def parse(**changes: Any) -> ChatRequest:
    body = {"model": "pocket", "messages": [QUESTION], "tools": [LOOK, STEP], **changes}
    return ChatRequest.parse(body)


def answer(prompts: Prompts, text: str, request: ChatRequest, finish_reason: Any = "stop") -> dict[str, Any]:
    """What is answered where the model samples this text."""
    token_ids = prompts.tokenise(text + ("<|end|>" if finish_reason == "stop" else ""))
    generation = Generation(token_ids, [0.0] * len(token_ids), finish_reason)
    [choice] = ChatWriter(request, (1,), prompts, None, "id").whole([generation])["choices"]
    return choice


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ToolChoice()),
        ({"tool_choice": None, "parallel_tool_calls": None}, ToolChoice()),
        ({"tool_choice": "auto", "parallel_tool_calls": False}, ToolChoice("auto", None, False)),
        ({"tool_choice": "none"}, ToolChoice("none")),
        ({"tool_choice": "required"}, ToolChoice("required")),
        ({"tool_choice": NAMED}, ToolChoice("named", "look")),
        ({"tools": [], "tool_choice": "none"}, ToolChoice("none")),
    ],
)
def test_choices_are_read(body: dict[str, Any], expected: ToolChoice):
    assert parse(**body).tool_choice == expected


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"tools": "none"}, "tools must be a list of functions"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tool 0 must be of type function"),
        ({"tools": [LOOK, {"type": "function", "function": {"name": 5}}]}, "tool 1 must be of type function"),
        (
            {"tools": [LOOK, {"type": "function", "function": {"name": "step", "strict": True}}]},
            "strict of tool 1 must be false or absent .*leave it out",
        ),
        ({"tool_choice": "any"}, "tool_choice must be none, auto, required or one of the functions look, step"),
        ({"tool_choice": {"type": "function", "function": {"name": "jump"}}}, "tool_choice must be .*look, step"),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {}}}, "tool_choice must be none"),
        ({"parallel_tool_calls": 1}, "parallel_tool_calls must be true or false"),
        ({"tools": None, "tool_choice": "required"}, "need tools"),
        ({"tools": [], "tool_choice": NAMED}, "need tools"),
        ({"tools": [], "parallel_tool_calls": False}, "need tools"),
    ],
)
def test_what_would_not_be_honoured_is_refused(body: dict[str, Any], words: str):
    with failing("BadConfig", words):
        parse(**body)


def test_calls_are_answered_in_openais_shape(prompts: Prompts):
    choice = answer(prompts, f"I look. {CALL}{CALL}", parse())
    assert choice["message"] == {
        "role": "assistant",
        "content": "I look. ",
        "refusal": None,
        "tool_calls": [
            {"id": f"call-id-0-{i}", "type": "function", "function": {"name": "look", "arguments": '{"cell": 5}'}}
            for i in range(2)
        ],
    }
    assert (choice["finish_reason"], choice["malformed_tool_calls"]) == ("tool_calls", 0)


def test_a_call_after_which_the_answer_was_cut_is_a_call_and_cut(prompts: Prompts):
    choice = answer(prompts, CALL + CALL[:20], parse(), "length")
    assert (choice["message"]["content"], choice["finish_reason"]) == (CALL + CALL[:20], "length")
    choice = answer(prompts, CALL, parse(), "length")
    assert (len(choice["message"]["tool_calls"]), choice["finish_reason"]) == (1, "length")


@pytest.mark.parametrize("body", [{"tools": None}, {"tool_choice": "none"}])
def test_without_tools_to_call_all_is_text_and_nothing_is_counted(prompts: Prompts, body: dict[str, Any]):
    choice = answer(prompts, CALL, parse(**body))
    assert (choice["message"]["content"], choice["finish_reason"]) == (CALL, "stop")
    assert "malformed_tool_calls" not in choice


def test_the_choice_none_leaves_the_tools_in_the_prompt(prompts: Prompts):
    """As in vLLM: else the last turn of a conversation would rewrite its beginning."""
    auto, none = parse(), parse(tool_choice="none")
    assert prompts.encode(auto.messages, auto.tools, auto.tool_choice) == prompts.encode(
        none.messages, none.tools, none.tool_choice
    )


@pytest.mark.parametrize(
    ("template", "required", "named"),
    [
        (None, "<tool_call>", '<tool_call>{"name": "look", "arguments":'),
        (QWEN, "<tool_call>", '<tool_call>\n{"name": "look", "arguments":'),
        (
            THINKING,
            "<think>\n\n</think>\n\n<tool_call>",
            '<think>\n\n</think>\n\n<tool_call>\n{"name": "look", "arguments":',
        ),
    ],
)
def test_a_call_that_must_be_is_opened_by_the_prompt(template: str | None, required: str, named: str):
    prompts, free = prompts_by(template), parse()
    plain = prompts.encode(free.messages, free.tools, free.tool_choice)
    for choice, opening in (("required", required), (NAMED, named)):
        request = parse(tool_choice=choice)
        prompt = prompts.encode(request.messages, request.tools, request.tool_choice)
        assert prompt == (*plain, *prompts.tokenise(opening))


def test_an_opened_call_is_part_of_the_answer(prompts: Prompts):
    named = answer(prompts, ' {"cell": 5}}</tool_call>', parse(tool_choice=NAMED))
    assert named["message"]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"cell": 5}'}
    assert named["finish_reason"] == "stop"
    required = answer(prompts, '{"name": "step", "arguments": {}}</tool_call>', parse(tool_choice="required"))
    assert required["message"]["tool_calls"][0]["function"] == {"name": "step", "arguments": "{}"}
    assert required["finish_reason"] == "tool_calls"
    failed = answer(prompts, " no idea", parse(tool_choice=NAMED))
    assert failed["message"]["content"] == '<tool_call>{"name": "look", "arguments": no idea'
    assert (failed["finish_reason"], failed["malformed_tool_calls"]) == ("stop", 1)


@pytest.mark.parametrize(
    ("body", "is_ended"),
    [
        ({}, False),
        ({"tool_choice": "required"}, False),
        ({"parallel_tool_calls": False}, True),
        ({"tool_choice": NAMED}, True),
        ({"tool_choice": "none", "parallel_tool_calls": False}, False),
    ],
)
def test_an_answer_of_one_call_ends_with_it(prompts: Prompts, body: dict[str, Any], is_ended: bool):
    end = prompts.tools.form.end
    assert stops_of(parse(**body), end) == (("</tool_call>",) if is_ended else ())
    assert stops_of(parse(**body, stop=["a", "b"]), end) == (("a", "b", "</tool_call>") if is_ended else ("a", "b"))


@pytest.mark.parametrize("has_special_tags", [False, True])
def test_the_end_of_a_call_is_found_where_its_tag_is_a_special_token_too(has_special_tags: bool):
    base = with_special_tags(pocket()) if has_special_tags else pocket()
    is_stopped = stop_check(("</tool_call>",), Detokenizer(base.tokenizer).decode)
    assert is_stopped is not None
    token_ids = Prompts(base).tokenise(f"<|assistant|>{CALL}")
    assert [is_stopped(token_ids[:length]) for length in (1, len(token_ids) - 1, len(token_ids))] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("template", "words"),
    [(WITHOUT_TOOLS, "it leaves tools out"), (OTHER_FORM, "it writes calls in another form")],
)
def test_a_template_that_knows_no_such_tools_is_refused(template: str, words: str):
    with failing("BadConfig", words):
        prompts_by(template).encode([QUESTION], [LOOK])
    assert prompts_by(template).encode([QUESTION], None)


def test_arguments_go_to_the_template_as_objects():
    def plain(arguments: Any) -> Any:
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
        [made] = plain_message({"role": "assistant", "content": None, "tool_calls": [call]})["tool_calls"]
        return made["function"]["arguments"]

    assert plain('{"x": [1, {"y": "é"}]}') == {"x": [1, {"y": "é"}]}
    assert plain({"x": 1}) == {"x": 1}
    assert plain("") == plain(None) == plain("{}") == {}
    assert plain("no JSON") == "no JSON"


@pytest.mark.parametrize("calls", ["look", [5], [{"function": {}}], [{"id": "1"}], {"function": {"name": "look"}}])
def test_calls_without_a_shape_are_refused(calls: Any):
    with pytest.raises(TemperError, match="tool_calls of a message must be a list of calls"):
        plain_message({"role": "assistant", "content": "", "tool_calls": calls})


def test_tags_that_are_special_tokens_are_read_all_the_same():
    prompts = Prompts(with_special_tags(pocket()))
    text = f"I look.{CALL}"
    assert prompts.decode(prompts.tokenise(f"<|assistant|>{text}<|end|>")) == text
