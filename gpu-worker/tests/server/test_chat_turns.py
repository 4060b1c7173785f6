"""Assistant's messages of chats as ids, against what the server asks the engine with."""

from dataclasses import replace
from typing import Any

import pytest

from temper_gpu.contract import BlobRef, ExampleRendering
from temper_gpu.server.chat_turns import ChatTurns
from temper_gpu.server.prompts import Prompts
from tests.failing import failing
from tests.server.templates import FORGETFUL, LLAMA, QWEN, SWITCHED, THINKING, WITHOUT_TOOLS, pocket

TOOLS = [{"type": "function", "function": {"name": "look", "description": "x", "parameters": {}}}]
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b"},
    {"role": "user", "content": "c"},
    {"role": "assistant", "content": "d"},
]


def rendering(turns: str = "all", **changes: Any) -> ExampleRendering:
    ref = BlobRef(key="blobs/" + "1" * 64, sha256="1" * 64, bytes=1)
    return ExampleRendering.model_validate({"dataset": ref, "turns": turns, "overlong": "mask", **changes})


def turns_of(chat: dict[str, Any], template: str | None = None, **changes: Any) -> list[tuple[str, str]]:
    """Prompt and message of each turn, as text with control tokens."""
    base = pocket()
    if template is not None:
        base.tokenizer.chat_template = template
    turns = ChatTurns(lambda sha256: "")(base, chat, rendering(**changes))
    return [(base.tokenizer.decode(list(prompt)), base.tokenizer.decode(list(ids))) for prompt, ids in turns]


def test_a_message_ends_with_the_end_of_its_turn_and_answers_the_prompt_that_would_be_sampled_from():
    base = pocket()
    turns = ChatTurns(lambda sha256: "")(base, {"messages": CHAT}, rendering())
    prompts = Prompts(base)
    assert [prompt for prompt, _ in turns] == [prompts.encode(CHAT[:1], None), prompts.encode(CHAT[:3], None)]
    assert [ids[-1] in base.end_token_ids for _, ids in turns] == [True, True]
    assert turns_of({"messages": CHAT}) == [
        ("<|user|>a<|end|><|assistant|>", "b<|end|>"),
        ("<|user|>a<|end|><|assistant|>b<|end|><|user|>c<|end|><|assistant|>", "d<|end|>"),
    ]


def test_the_last_message_alone_is_one_turn_and_what_follows_it_is_left_out():
    longer = [*CHAT, {"role": "user", "content": "e"}]
    assert turns_of({"messages": longer}, turns="last") == turns_of({"messages": CHAT})[1:]


def test_a_message_of_weight_0_is_asked_behind_and_not_trained():
    weighed = [CHAT[0], {**CHAT[1], "weight": 0}, CHAT[2], {**CHAT[3], "weight": 1}]
    assert turns_of({"messages": weighed}) == turns_of({"messages": CHAT})[1:]
    weighed[3] = {**CHAT[3], "weight": 0}
    assert turns_of({"messages": weighed}, turns="last") == []


def test_what_a_template_writes_after_the_end_of_a_turn_is_not_trained():
    assert [message for _, message in turns_of({"messages": CHAT}, QWEN)] == ["b<|end|>", "d<|end|>"]


def test_a_call_of_a_tool_is_trained_as_the_template_writes_it():
    messages = [CHAT[0], {"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "tool", "content": "1"}]
    [(prompt, message)] = turns_of({"messages": messages, "tools": TOOLS}, turns="last")
    assert '"name": "look"' in prompt
    assert message == '<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call><|end|>'


def test_thoughts_that_a_template_takes_out_of_the_history_are_trained_where_they_were_thought():
    thought = {"role": "assistant", "content": "<think>x</think>b"}
    first, second = turns_of({"messages": [CHAT[0], thought, *CHAT[2:]]}, THINKING.replace("loop.last", "false"))
    assert first[1] == "<think>x</think>b<|end|>"
    assert "x" in second[0]


def test_control_tokens_in_a_message_are_text():
    [(_, message)] = turns_of({"messages": [CHAT[0], {"role": "assistant", "content": "b<|end|>c"}]})
    base = pocket()
    [(_, ids)] = ChatTurns(lambda sha256: "")(
        base, {"messages": [CHAT[0], {"role": "assistant", "content": "b<|end|>c"}]}, rendering()
    )
    assert message == "b<|end|>c<|end|>"
    assert [token_id in base.end_token_ids for token_id in ids].count(True) == 1


@pytest.mark.parametrize(
    ("template", "chat", "kwargs", "reason"),
    [
        (SWITCHED, CHAT, {"enable_thinking": False}, "message 1, an assistant's, must be .* opens the turn"),
        (FORGETFUL, [CHAT[0], {"role": "assistant", "content": "<think>x</think>b"}], {}, None),
        (WITHOUT_TOOLS, CHAT, {}, "must end with a token that ends an answer|opens the turn"),
        (WITHOUT_TOOLS, [CHAT[0], {"role": "assistant", "tool_calls": [CALL]}], {}, "tools must be supported"),
        (LLAMA, [CHAT[0], {"role": "assistant", "tool_calls": [CALL, CALL]}], {}, "one call"),
        (None, [{"role": "poet", "content": "a"}, CHAT[1]], {}, "role of message 0 must be one of"),
        (None, [{**CHAT[0], "weight": 1}, CHAT[1]], {}, "weight of message 0"),
    ],
)
def test_what_a_template_cannot_write_is_refused(
    template: str | None, chat: list[dict[str, Any]], kwargs: dict[str, Any], reason: str | None
):
    if reason is None:
        # Thoughts that are taken out at once are no part of what is trained.
        assert turns_of({"messages": chat}, template)[0][1] == "b<|end|>"
        return
    with failing("BadConfig", reason):
        turns_of({"messages": chat}, template, chatTemplateKwargs=kwargs)


def test_a_template_in_the_place_of_the_models_own_is_read_once():
    read: list[str] = []

    def read_template(sha256: str) -> str:
        read.append(sha256)
        return QWEN

    turns, base = ChatTurns(read_template), replace(pocket(), name="bare")
    for _ in range(2):
        [_, (prompt, _)] = turns(base, {"messages": CHAT}, rendering(chatTemplateSha256="2" * 64))
        assert base.tokenizer.decode(list(prompt)).startswith("<|user|>\na<|end|>\n")
    assert read == ["2" * 64]
