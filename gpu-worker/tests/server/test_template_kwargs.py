"""Variables of chat templates, and templates in the place of a model's own: honoured, or refused by name."""

from datetime import date, timedelta
from typing import Any

import httpx
import pytest

from temper_gpu.failures import TemperError
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.template_kwargs import TemplateKwargs, parse_template_kwargs
from tests.failing import failing
from tests.server import served
from tests.server.templates import LLAMA, QWEN, SWITCHED, WITHOUT_TOOLS, pocket, prompts_by

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


@pytest.mark.parametrize(
    ("template", "kwargs", "reads_clock"),
    [
        (QWEN, (), False),
        ("{{ strftime_now('%Y') }}" + QWEN, (), True),
        ("{{ strftime_now('%Y') }}" + QWEN, (("strftime_now", "2024-07-26"),), False),
        ("{{ tools and strftime_now('%A') }}" + QWEN, (), True),
        ("{{ day or strftime_now('%d') }}" + QWEN, (("day", "26"),), False),
        ("{# strftime_now #}" + QWEN, (), False),
    ],
)
def test_whether_prompts_depend_on_the_day(template: str, kwargs: TemplateKwargs, reads_clock: bool):
    assert prompts_by(template, kwargs).reads_clock is reads_clock


def test_a_day_that_is_set_is_what_the_template_writes_and_otherwise_it_is_today():
    dated = "{{ strftime_now('%d %b %Y') }}" + QWEN
    assert rendered(dated, (("strftime_now", "2024-07-26"),)).startswith("26 Jul 2024")
    prompts = prompts_by(dated)
    days = {prompts.decode(list(prompts.encode(ASK, None)))[:11] for _ in range(2)}
    assert days <= {f"{day:%d %b %Y}" for day in (date.today(), date.today() - timedelta(1))}


@pytest.mark.parametrize("start", ["", "\n\n a", "  {% if true %}b{% endif %}", "\t{{- 'c' }}", "{%- set x = 1 %}\nd"])
def test_a_day_that_is_set_changes_nothing_else(start: str):
    template = start + "{# strftime_now #}" + QWEN
    assert rendered(template, (("strftime_now", "2024-07-26"),)) == rendered(template)


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
    with failing("BadConfig", words):
        parse_template_kwargs(given)


def test_a_request_that_sets_what_the_template_does_not_know_is_refused(client: httpx.Client):
    body = {"model": "pocket", "messages": ASK, "max_tokens": 1, "chat_template_kwargs": {"enable_thinking": False}}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert "does not know enable_thinking; leave it out" in answer.json()["error"]["message"]


def given(template: str, own: str | None = WITHOUT_TOOLS) -> Prompts:
    base = pocket()
    base.tokenizer.chat_template = own
    return Prompts(base, (), template)


@pytest.mark.parametrize("own", [WITHOUT_TOOLS, "{{ raise_exception('never used') }}", None])
def test_a_given_template_writes_prompts_in_the_place_of_the_models_own(own: str | None):
    assert given(QWEN, own).encode(ASK, None) == prompts_by(QWEN).encode(ASK, None)
    assert given(QWEN, own).gaps() == prompts_by(QWEN).gaps()


def test_the_form_of_calls_is_that_of_the_given_template():
    assert [given(each).tools.form for each in (QWEN, LLAMA)] == [prompts_by(each).tools.form for each in (QWEN, LLAMA)]


def test_what_callers_send_is_no_control_token_in_a_given_template_either():
    said = "<|im_end|>"
    ids = given("{% for message in messages %}{{ message.content }}{% endfor %}").encode(
        [{"role": "user", "content": said}], None
    )
    assert bytes(ids) == said.encode()


def test_a_model_without_a_template_says_so_where_messages_are_sent_and_completes_texts():
    base = pocket()
    base.tokenizer.chat_template = None
    prompts = Prompts(base)
    assert prompts.encode_text("Go.", False) == tuple(b"Go.")
    with pytest.raises(TemperError, match="must have a chat template, .* none; pass one with --chat-template FILE"):
        prompts.encode(ASK, None)


def test_a_request_names_a_template_of_the_store_by_its_hash(client: httpx.Client, monkeypatch: pytest.MonkeyPatch):
    sha256 = "b" * 64
    monkeypatch.setitem(served.TEMPLATES, sha256, "{{ '[' ~ messages[0].content ~ ']' }}")

    def answered(**template: str) -> httpx.Response:
        return served.chat(client, messages=ASK, max_tokens=1, return_token_ids=True, **template)

    assert answered(chat_template_sha256=sha256).json()["prompt_token_ids"] == list(b"[Go.]")
    assert answered().json()["prompt_token_ids"] == list(prompts_by().encode(ASK, None))
    unknown = answered(chat_template_sha256="c" * 64)
    assert served.error(unknown)[:2] == (400, "BadConfig")
    assert "has no blobs/cccc" in unknown.json()["error"]["message"]
