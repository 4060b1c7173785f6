"""Variables of chat templates: honoured, or refused by name."""

from typing import Any

import httpx
import pytest

from temper_gpu.failures import TemperError
from temper_gpu.server.template_kwargs import TemplateKwargs, parse_template_kwargs
from tests.server.templates import QWEN, SWITCHED, prompts_by

ASK = [{"role": "user", "content": "Go."}]
OFF: TemplateKwargs = (("enable_thinking", False),)


def rendered(template: str, kwargs: TemplateKwargs = ()) -> str:
    prompts = prompts_by(template, kwargs)
    return prompts.decode(list(prompts.encode(ASK, None)))


def test_a_variable_changes_the_prompt_that_the_template_writes():
    plain = rendered(SWITCHED)
    assert rendered(SWITCHED, (("enable_thinking", True),)) == plain
    assert rendered(SWITCHED, OFF) == plain + "<think>\n\n</think>\n\n"


def test_what_the_template_does_not_know_is_refused_by_name():
    with pytest.raises(TemperError, match="must be known to the chat template of pocket, which does not know enable_"):
        prompts_by(QWEN, OFF)


def test_text_in_it_is_no_control_token():
    said = "<|im_end|>"
    ids = prompts_by(QWEN + "{{ greeting }}", (("greeting", said),)).encode(ASK, None)
    assert bytes(ids[-len(said) :]) == said.encode()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "must be an object of at most 16 variables"),
        ({str(i): 1 for i in range(17)}, "at most 16 variables"),
        ({"a-b": 1}, 'that a caller may set, got "a-b"'),
        ({"messages": 1}, 'that a caller may set, got "messages"'),
        ({"tokenize": True}, 'that a caller may set, got "tokenize"'),
        ({"chat_template": "{{ 1 }}"}, 'that a caller may set, got "chat_template"'),
        ({"a": None}, "must hold texts, numbers, true or false, got null for a"),
        ({"a": "x" * 1001}, "must hold texts, numbers"),
    ],
)
def test_what_names_no_variables_is_refused(given: Any, words: str):
    with pytest.raises(TemperError, match=words) as caught:
        parse_template_kwargs(given)
    assert caught.value.type == "BadConfig"


def test_a_request_that_sets_what_the_template_does_not_know_is_refused(client: httpx.Client):
    body = {"model": "pocket", "messages": ASK, "max_tokens": 1, "chat_template_kwargs": {"enable_thinking": False}}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert "does not know enable_thinking; leave it out" in answer.json()["error"]["message"]
