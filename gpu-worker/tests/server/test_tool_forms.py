"""Calls in other forms than Hermes', and thoughts: found by the template, read, opened, and written again."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temper_gpu.engine.interface import Generation
from temper_gpu.server.chat import ChatRequest
from temper_gpu.server.harmony import HARMONY_TOOLS
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.streams import ChatWriter
from temper_gpu.server.tool_calls import ParsedAnswer, ToolCall
from temper_gpu.server.tool_forms import FUNCTION_GEMMA as PARSE_FUNCTION_GEMMA
from temper_gpu.server.tool_forms import GEMMA_4 as PARSE_GEMMA_4
from temper_gpu.server.tool_forms import parse_llama, parse_mistral
from tests.server import templates
from tests.server.templates import pocket, prompts_by, with_special_tags
from tests.server.test_streams import require_whole

QUESTION = {"role": "user", "content": "Is cell 5 free?"}
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
NAMED = {"type": "function", "function": {"name": "look"}}
ARGUMENTS = {"cell": 5, "why": 'it says "x"'}
LLAMA_CALL = '{"name": "look", "parameters": {"cell": 5, "why": "it says \\"x\\""}}'
OLD_CALL = '{"name": "look", "arguments": {"cell": 5, "why": "it says \\"x\\""}}'
NEWER_CALL = '[TOOL_CALLS]look[ARGS]{"cell": 5, "why": "it says \\"x\\""}'
GEMMA_CALL = '<|tool_call>call:look{cell:5,why:<|"|>it says "x"<|"|>}<tool_call|>'
FUNCTION_CALL = '<start_function_call>call:look{cell:5,why:<escape>it says "x"<escape>}<end_function_call>'
HARMONY_CALL = (
    '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"cell": 5, "why": "it says \\"x\\""}<|call|>'
)
HARMONY_TAGS = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|return|>", "<|call|>")


@dataclass(frozen=True)
class Form:
    name: str
    template: str
    # As a model writes it.
    call: str
    several: str
    required: str
    named: str
    tags: tuple[str, ...] = ()

    def prompts(self) -> Prompts:
        if self.tags:
            base = with_special_tags(pocket(), *self.tags)
            base.tokenizer.chat_template = self.template
            return Prompts(base)
        return prompts_by(self.template)


FORMS = [
    Form(
        "Llama 3",
        templates.LLAMA,
        LLAMA_CALL,
        f"{LLAMA_CALL}; {LLAMA_CALL}",
        '{"name":',
        '{"name": "look", "parameters":',
    ),
    Form(
        "Mistral",
        templates.MISTRAL,
        f"[TOOL_CALLS] [{OLD_CALL}]",
        f"[TOOL_CALLS] [{OLD_CALL}, {OLD_CALL}]",
        "[TOOL_CALLS]",
        '[TOOL_CALLS] [{"name": "look", "arguments":',
        ("[TOOL_CALLS]", "[AVAILABLE_TOOLS]"),
    ),
    Form(
        "Mistral",
        templates.MISTRAL_NEWER,
        NEWER_CALL,
        NEWER_CALL * 2,
        "[TOOL_CALLS]",
        "[TOOL_CALLS]look[ARGS]",
        ("[TOOL_CALLS]", "[ARGS]"),
    ),
    Form("Gemma 4", templates.GEMMA_4, GEMMA_CALL, GEMMA_CALL * 2, "<|tool_call>", "<|tool_call>call:look"),
    Form(
        "FunctionGemma",
        templates.FUNCTION_GEMMA,
        FUNCTION_CALL,
        f"{FUNCTION_CALL}\n{FUNCTION_CALL}",
        "<start_function_call>",
        "<start_function_call>call:look",
        ("<start_function_call>", "<end_function_call>", "<escape>"),
    ),
    Form(
        "Harmony (gpt-oss)",
        templates.HARMONY,
        f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant{HARMONY_CALL}",
        HARMONY_CALL + "<|start|>assistant" + HARMONY_CALL,
        " to=functions.",
        " to=functions.look<|channel|>commentary json<|message|>",
        HARMONY_TAGS,
    ),
]
NAMES = [f"{form.name} {index}" for index, form in enumerate(FORMS)]


def parse(**changes: Any) -> ChatRequest:
    return ChatRequest.parse({"model": "pocket", "messages": [QUESTION], "tools": [LOOK], **changes})


def answer(prompts: Prompts, text: str, request: ChatRequest, prompt_ids: tuple[int, ...] = (1,)) -> dict[str, Any]:
    token_ids = prompts.tokenise(text)
    generation = Generation(token_ids, [0.0] * len(token_ids), "stop")
    [choice] = ChatWriter(request, prompt_ids, prompts, None, "id").whole([generation])["choices"]
    return choice


def calls_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    functions = [call["function"] for call in message.get("tool_calls", [])]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_a_template_shows_in_which_form_its_model_calls(form: Form):
    prompts = form.prompts()
    assert prompts.tools.form.name == form.name
    choice = answer(prompts, form.call, parse())
    assert calls_of(choice["message"]) == [("look", ARGUMENTS)]
    assert (choice["message"]["content"], choice["finish_reason"]) == (None, "tool_calls")
    assert choice["malformed_tool_calls"] == 0


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_several_calls_are_read_where_the_template_writes_several(form: Form):
    prompts = form.prompts()
    num_calls = 1 if form.name in ("Llama 3", "Harmony (gpt-oss)") else 2
    assert calls_of(answer(prompts, form.several, parse())["message"]) == [("look", ARGUMENTS)] * num_calls
    single = answer(prompts, form.several, parse(parallel_tool_calls=False))["message"]
    assert calls_of(single) == [("look", ARGUMENTS)]


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_a_call_that_must_be_is_opened_as_the_template_writes_it(form: Form):
    prompts, free = form.prompts(), parse()
    plain = prompts.encode(free.messages, free.tools, free.tool_choice)
    for choice, opening in (("required", form.required), (NAMED, form.named)):
        request = parse(tool_choice=choice)
        assert prompts.encode(request.messages, request.tools, request.tool_choice) == (
            *plain,
            *prompts.tokenise(opening),
        )
        _, found, sampled = form.call.partition(opening)
        if found:
            assert calls_of(answer(prompts, sampled, request)["message"]) == [("look", ARGUMENTS)]


def test_harmonys_opened_calls_are_read():
    prompts = FORMS[-1].prompts()
    named = answer(prompts, json.dumps(ARGUMENTS) + "<|call|>", parse(tool_choice=NAMED))
    assert calls_of(named["message"]) == [("look", ARGUMENTS)]
    body = "look<|channel|>commentary json<|message|>" + json.dumps(ARGUMENTS) + "<|call|>"
    assert calls_of(answer(prompts, body, parse(tool_choice="required"))["message"]) == [("look", ARGUMENTS)]


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_what_was_answered_goes_back_into_the_prompt(form: Form):
    prompts, request = form.prompts(), parse()
    message = answer(prompts, form.call, request)["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "free"}
    written = prompts._tokenizer.decode(list(prompts.encode([QUESTION, message, result], request.tools)))
    assert '"x"' in written.replace("\\", "")
    assert "free" in written


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
@pytest.mark.parametrize("text", ["", "No call.", "a { b } [c]: d", "{}", '{"cell": 5}', "5"])
def test_what_is_no_call_is_text(form: Form, text: str):
    choice = answer(form.prompts(), text, parse())
    assert (choice["message"]["content"], choice["malformed_tool_calls"]) == (text, 0)
    assert "tool_calls" not in choice["message"]


@pytest.mark.parametrize("text", ['{"name": "Alice", "age": 3}', '{"name": "look"}', '{"type": "function"}'])
def test_an_answer_in_json_is_no_call_of_llamas(text: str):
    assert parse_llama(text) == ParsedAnswer(text)


def test_a_call_of_llamas_may_name_its_type():
    call = ToolCall("look", '{"cell": 5}')
    assert parse_llama('{"type": "function", "name": "look", "parameters": {"cell": 5}}') == ParsedAnswer(None, (call,))


def test_a_text_in_a_call_of_mistrals_may_hold_its_tag():
    call = ToolCall("look", '{"why": "[TOOL_CALLS]"}')
    written = [f'[{{"name": "look", "arguments": {call.arguments}}}]', f"look[ARGS]{call.arguments}"]
    for calls in written:
        assert parse_mistral(f"[TOOL_CALLS]{calls}[TOOL_CALLS]{calls}") == ParsedAnswer(None, (call, call))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (parse_llama, '{"name": "look", "parameters": {'),
        (parse_llama, '{"name": "look", "parameters": 5}'),
        (parse_llama, '{"type": "function", "name": "look", "par'),
        (parse_llama, '{"name": "look", "parameters": {}} and then'),
        (parse_mistral, "[TOOL_CALLS]"),
        (parse_mistral, "[TOOL_CALLS] [5]"),
        (parse_mistral, '[TOOL_CALLS] [{"name": "look"}]'),
        (parse_mistral, "[TOOL_CALLS]look[ARGS]{"),
        (PARSE_GEMMA_4, "<|tool_call>look{}<tool_call|>"),
        (PARSE_GEMMA_4, "<|tool_call>call:look{cell:<tool_call|>"),
        (PARSE_GEMMA_4, '<|tool_call>call:look{why:<|"|>x}<tool_call|>'),
        (PARSE_GEMMA_4, "<|tool_call>call:look{a:[1,2}<tool_call|>"),
        (PARSE_FUNCTION_GEMMA, "<start_function_call>call:look{cell}<end_function_call>"),
        (HARMONY_TOOLS.parse, "<|channel|>commentary to=functions.look<|message|>{<|call|>"),
    ],
)
def test_a_malformed_call_is_text_and_counted(read: Any, text: str):
    parsed = read(text)
    assert (parsed.content, parsed.calls, parsed.num_malformed) == (text, (), 1)


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("{}", {}),
        ("{a:1,b:-2.5,c:true,d:null}", {"a": 1, "b": -2.5, "c": True, "d": None}),
        ('{a:{b:[1,<|"|>x, y}<|"|>,[]],<|"|>c d<|"|>:<|"|><|"|>}}', {"a": {"b": [1, "x, y}", []], "c d": ""}}),
        ("{ city : Paris , when:2 }", {"city": "Paris", "when": 2}),
    ],
)
def test_gemmas_arguments_are_read(written: str, arguments: dict[str, Any]):
    [call] = PARSE_GEMMA_4(f"<|tool_call>call:look{written}<tool_call|>").calls
    assert json.loads(call.arguments) == arguments


PARTS = [
    *(GEMMA_CALL, FUNCTION_CALL, LLAMA_CALL, OLD_CALL, NEWER_CALL, HARMONY_CALL, "<think>", "</think>", "[TOOL_CALLS]"),
    *("{", "}", "[", "]", "\n", " ", "Hm.", "call:look{", '<|"|>', "<|channel|>final<|message|>", "<|end|>", ":", ","),
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=8).map("".join)


@pytest.mark.parametrize("read", [parse_llama, parse_mistral, PARSE_GEMMA_4, PARSE_FUNCTION_GEMMA, HARMONY_TOOLS.parse])
@given(text=TEXTS)
def test_no_output_fails(read: Any, text: str):
    parsed = read(text)
    assert not (parsed.calls and parsed.num_malformed)


# ---- thoughts


@pytest.mark.parametrize(
    ("text", "thoughts", "content"),
    [
        ("<think>\nHm.\n\nYes.\n</think>\n\nIt is free.", "Hm.\n\nYes.", "It is free."),
        ("\n<think></think>It is free.", "", "It is free."),
        ("<think>\nHm", "Hm", ""),
        ("It is <think>free</think>.", None, "It is <think>free</think>."),
        ("It is free.", None, "It is free."),
    ],
)
def test_thoughts_are_told_apart(text: str, thoughts: str | None, content: str):
    prompts = prompts_by(templates.THINKING)
    told = answer(prompts, text, parse(tools=None))["message"]
    assert (told.get("reasoning_content"), told["content"]) == (thoughts, content)
    left = answer(prompts, text, parse(tools=None, separate_reasoning=False))["message"]
    assert left == {"role": "assistant", "content": text, "refusal": None}


@pytest.mark.parametrize(
    ("text", "before_answer"),
    [
        ("<think>\nHm.\n</think>\n\nIt is free.", "<think>\nHm."),
        ("<think>Hm… é", "<think>Hm… é"),
        ("<think></think>It is free.", ""),
        ("It is free.", ""),
    ],
)
def test_tokens_of_thoughts_are_counted(text: str, before_answer: str):
    prompts = prompts_by(templates.THINKING)
    token_ids = prompts.tokenise(text)
    generation = Generation(token_ids, [0.0] * len(token_ids), "stop")
    request = parse(tools=None)
    used = ChatWriter(request, (1,), prompts, None, "id").whole([generation, generation])["usage"]
    num_thought = 2 * len(prompts.tokenise(before_answer))
    assert used.get("completion_tokens_details", {"reasoning_tokens": 0}) == {"reasoning_tokens": num_thought}
    assert used["completion_tokens"] == 2 * len(token_ids)
    assert ChatWriter(request, (1,), prompts, None, "id").used([generation, generation])["usage"] == used
    left = ChatWriter(parse(tools=None, separate_reasoning=False), (1,), prompts, None, "id").whole([generation])
    assert "completion_tokens_details" not in left["usage"]


def test_a_template_may_begin_the_thoughts():
    opened = templates.QWEN.replace("{{- '<|assistant|>\n' -}}{%- endif", "{{- '<|assistant|>\n<think>\n' -}}{%- endif")
    prompts = prompts_by(opened + "{#- </think> -#}")
    prompt = prompts.encode([QUESTION], None)
    told = answer(prompts, "Hm.</think>Free.", parse(tools=None), prompt)["message"]
    assert (told["reasoning_content"], told["content"]) == ("Hm.", "Free.")
    assert answer(prompts, "Hm", parse(tools=None), prompt)["message"]["reasoning_content"] == "Hm"


def test_a_call_in_thoughts_is_none():
    call = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
    told = answer(prompts_by(templates.THINKING), f"<think>{call}</think>{call}", parse())["message"]
    assert (told["reasoning_content"], told["content"], len(told["tool_calls"])) == (call, None, 1)


def test_thoughts_that_are_sent_back_may_be_dropped_by_the_template():
    message = {"role": "assistant", "content": "Free.", "reasoning_content": "Hm."}
    assert prompts_by(templates.THINKING).encode([QUESTION, message, QUESTION], None)


def test_harmonys_channels_are_thoughts_and_answer():
    prompts = FORMS[-1].prompts()
    text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Free.<|return|>"
    told = answer(prompts, text, parse(tools=None))["message"]
    assert (told["reasoning_content"], told["content"]) == ("Hm.", "Free.")
    assert "<|" not in answer(prompts, text, parse(tools=None, separate_reasoning=False))["message"]["content"]


STREAMED = [Form("Qwen 3", templates.THINKING, "", "", "", ""), *FORMS]


@given(
    text=TEXTS,
    pieces=st.lists(st.integers(0, 12), max_size=30),
    form=st.sampled_from(STREAMED),
    has_tools=st.booleans(),
)
@example(text=f"\n{LLAMA_CALL}", pieces=[9], form=FORMS[0], has_tools=True)
def test_however_an_answer_is_cut_the_pieces_are_the_answer(text: str, pieces: list[int], form: Form, has_tools: bool):
    prompts = PROMPTS[form.template]
    request = parse(stream=True, **({} if has_tools else {"tools": None}))
    require_whole(ChatWriter(request, (1,), prompts, None, "id"), text, pieces, prompts)


PROMPTS = {form.template: form.prompts() for form in STREAMED}
