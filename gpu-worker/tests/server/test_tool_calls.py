"""Which outputs of a model are calls: fixtures, most of them by the rules of vLLM's parser `hermes`."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temper_gpu.model.detokenizer import END, START
from temper_gpu.server.tool_calls import ParsedAnswer, parse_answer

FIXTURES = json.loads(Path(__file__).with_name("hermes_outputs.json").read_text())["outputs"]

any_text = st.text(st.characters(exclude_categories=["Cs"]))
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
any_object = st.dictionaries(any_text | st.sampled_from([START, END]), any_json | st.just(END), max_size=3)


@pytest.mark.parametrize("fixture", FIXTURES, ids=[fixture["name"] for fixture in FIXTURES])
def test_an_output_is_parsed(fixture: dict[str, Any]):
    answer = parse_answer(fixture["output"])
    assert answer.content == fixture["content"]
    assert [vars(call) for call in answer.calls] == fixture["calls"]
    assert answer.num_malformed == fixture["malformed"]


def test_the_fixtures_are_many_and_say_whose_rule_they_hold():
    assert len(FIXTURES) >= 40
    assert {fixture["definedBy"] for fixture in FIXTURES} == {"vllm", "temper"}


@given(any_text.filter(bool), any_object)
@example("write", {"text": f"It ends with {END}."})
def test_what_was_written_as_a_call_is_read_as_it_was(name: str, arguments: dict[str, Any]):
    written = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    [call] = parse_answer(f"{START}{written}{END}").calls
    assert (call.name, json.loads(call.arguments)) == (name, arguments)


@given(any_json.filter(lambda value: not isinstance(value, dict)))
def test_arguments_that_a_template_could_not_write_again_are_malformed(arguments: Any):
    text = START + json.dumps({"name": "look", "arguments": arguments}) + END
    assert parse_answer(text) == ParsedAnswer(text, num_malformed=1)


@given(st.lists(st.sampled_from([START, END, "{", "}", '"name"', '"arguments"', ":", '"f"', " ", "\n", "text"])))
def test_no_output_fails_and_none_loses_text_without_a_call(parts: list[str]):
    text = "".join(parts)
    answer = parse_answer(text)
    assert answer.calls or answer.content == text
    assert not (answer.calls and answer.num_malformed)
