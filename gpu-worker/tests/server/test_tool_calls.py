"""Which outputs of a model are calls: fixtures, most of them by the rules of vLLM's parser `hermes`."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_gpu.model.detokenizer import END, START
from temper_gpu.server.tool_calls import parse_answer

FIXTURES = json.loads(Path(__file__).with_name("hermes_outputs.json").read_text())["outputs"]

any_text = st.text(st.characters(exclude_categories=["Cs"]))
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
without_tags = any_json.filter(lambda value: END not in json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize("fixture", FIXTURES, ids=[fixture["name"] for fixture in FIXTURES])
def test_an_output_is_parsed(fixture: dict[str, Any]):
    answer = parse_answer(fixture["output"])
    assert answer.content == fixture["content"]
    assert [vars(call) for call in answer.calls] == fixture["calls"]
    assert answer.num_malformed == fixture["malformed"]


def test_the_fixtures_are_many_and_say_whose_rule_they_hold():
    assert len(FIXTURES) >= 40
    assert {fixture["definedBy"] for fixture in FIXTURES} == {"vllm", "temper"}


@given(any_text.filter(bool), without_tags)
def test_what_was_written_as_a_call_is_read_as_it_was(name: str, arguments: Any):
    written = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    if END in written:
        return
    [call] = parse_answer(f"{START}{written}{END}").calls
    assert (call.name, json.loads(call.arguments)) == (name, arguments)


@given(st.lists(st.sampled_from([START, END, "{", "}", '"name"', '"arguments"', ":", '"f"', " ", "\n", "text"])))
def test_no_output_fails_and_none_loses_text_without_a_call(parts: list[str]):
    text = "".join(parts)
    answer = parse_answer(text)
    assert answer.calls or answer.content == text
    assert not (answer.calls and answer.num_malformed)
