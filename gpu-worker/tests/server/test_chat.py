"""Bodies read strictly, answers in OpenAI's shape; without a server."""

from typing import Any

import pytest

from temper_gpu.engine.interface import UNCHANGED, Distribution
from temper_gpu.failures import TemperError
from temper_gpu.server.chat import ChatRequest
from temper_gpu.server.prompts import plain_message
from temper_gpu.server.sampling import before_stop, choice_seed
from tests.failing import failing

LOOK = {"type": "function", "function": {"name": "look"}}
MESSAGES = [{"role": "user", "content": "hello"}]


def parse(**changes: Any):
    return ChatRequest.parse({"model": "pocket", "messages": MESSAGES, **changes})


def test_what_is_left_out_has_openais_defaults():
    chat = parse()
    assert (chat.temperature, chat.distribution, chat.seed, chat.n, chat.limit) == (1.0, UNCHANGED, None, 1, None)
    assert (chat.stop, chat.stop_token_ids, chat.ignore_eos) == ((), (), False)
    assert (chat.logprobs, chat.top_logprobs) == (False, 0)
    assert (chat.stream, chat.with_usage, chat.return_token_ids) == (False, False, False)
    assert parse(**{name: None for name in ChatRequest.model_fields if name not in ("model", "messages")}) == chat


def test_either_name_of_max_tokens_is_read():
    assert parse(max_tokens=3).limit == 3
    assert parse(max_completion_tokens=4, max_tokens=3).limit == 4


def test_what_asks_for_nothing_is_accepted():
    neutral = {
        "top_p": 1,
        "presence_penalty": 0.0,
        "logit_bias": {},
        "stream": False,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
    assert parse(**neutral, user="me", metadata={"a": "b"}, response_format={"type": "text"}) == parse()


def test_what_changes_the_distribution_is_read():
    asked = parse(
        top_p=0.9,
        top_k=40,
        min_p=0.1,
        presence_penalty=-2,
        frequency_penalty=0.5,
        repetition_penalty=1.1,
        logit_bias={"7": -100, "3": 1.5, "4": 0},
    ).distribution
    assert asked == Distribution(0.9, 40, 0.1, -2.0, 0.5, 1.1, ((3, 1.5), (7, -100.0)))
    assert parse(top_k=-1, logit_bias={"4": 0}).distribution is UNCHANGED


def test_a_form_of_the_answer_is_a_schema():
    assert parse(response_format={"type": "json_object"}).response_format == '{"type": "object"}'
    described = {"name": "answer", "strict": True, "schema": {"type": "array"}}
    asked = parse(response_format={"type": "json_schema", "json_schema": described}, tools=[LOOK], tool_choice="none")
    assert asked.response_format == '{"type": "array"}'
    assert parse(response_format={"type": "text"}, tools=[LOOK]).response_format is None


def test_what_is_to_be_told_and_what_ends_an_answer_is_read():
    chat = parse(
        logprobs=True, top_logprobs=20, stream=True, stream_options={"include_usage": True}, return_token_ids=True
    )
    assert (chat.logprobs, chat.top_logprobs) == (True, 20)
    assert (chat.stream, chat.with_usage, chat.return_token_ids) == (True, True, True)
    ending = parse(stop="END", stop_token_ids=[3, 4], ignore_eos=True)
    assert (ending.stop, ending.stop_token_ids, ending.ignore_eos) == (("END",), (3, 4), True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"top_p": 1.1}, "top_p must be a number from 0 to 1, got 1.1"),
        ({"top_p": -0.1}, "top_p must be a number from 0 to 1"),
        ({"top_k": -2}, "top_k must be a whole number from -1"),
        ({"top_k": 0.5}, "top_k must be a whole number"),
        ({"min_p": 2}, "min_p must be a number from 0 to 1"),
        ({"frequency_penalty": 2.1}, "frequency_penalty must be a number from -2 to 2"),
        ({"presence_penalty": "1"}, "presence_penalty must be a number"),
        ({"repetition_penalty": True}, "repetition_penalty must be a number"),
        ({"repetition_penalty": 0}, "repetition_penalty must be a number above 0"),
        ({"logit_bias": {"5": 101}}, "logit_bias must be an object .* from -100 to 100, got"),
        ({"logit_bias": {"x": 1}}, "logit_bias must be an object"),
        ({"logit_bias": {"-5": 1}}, "logit_bias must be an object"),
        ({"logit_bias": {"²": 1}}, "logit_bias must be an object"),
        ({"logit_bias": [5]}, "logit_bias must be an object"),
        ({"logit_bias": {str(i): 1 for i in range(1025)}}, "at most 1024 token ids"),
        ({"response_format": {"type": "json"}}, "response_format must be of type `text`, `json_object`"),
        ({"response_format": "json_object"}, "response_format must be of type"),
        ({"response_format": {"type": "json_schema"}}, "response_format must be .* with a `schema`, got"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": [1]}}}, "response_format must be"),
        ({"response_format": {"type": "json_object"}, "tools": [LOOK]}, "response_format must be text where tools"),
        ({"stream": "yes"}, "stream must be true or false"),
        ({"stream_options": {"include_usage": True}}, "stream_options must be .* in a stream"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options must be an object"),
        ({"stream": True, "stream_options": {"chunks": 1}}, "stream_options must be an object of `include_usage`"),
        ({"top_logprobs": 5}, "top_logprobs must come with logprobs, got 5"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs must be a whole number from 0 to 20"),
        ({"stop_token_ids": [1.5]}, "stop_token_ids must be a list"),
        ({"stop_token_ids": [-1]}, "stop_token_ids must be a list"),
        ({"stop_token_ids": 5}, "stop_token_ids must be a list"),
        ({"echo": True}, "echo must be one that this server supports"),
        ({"best_of": 1}, "best_of must be one that this server supports"),
        ({"reasoning_effort": "high"}, "reasoning_effort must be null .*; say in a message"),
        ({"functions": [{}]}, "functions must be \\[\\] .*; send tools"),
        ({"guided_json": {}}, "guided_json must be one that this server supports"),
        ({"temprature": 1}, "temprature must be one"),
        ({"model": ""}, "model must be the name of a base model"),
        ({"model": 7}, "model must be the name of .*, got 7; change it"),
        ({"model": "a" * 257}, "model must be .*, in at most 256 characters, got"),
        ({"messages": []}, "at least one"),
        ({"messages": "hello"}, "messages must be"),
        ({"messages": [{"role": "wizard", "content": ""}]}, "role of message 0 .*wizard"),
        ({"messages": [{"role": ["user"], "content": ""}]}, "role of message 0 must be one of"),
        ({"temperature": -1}, "temperature must be a number from 0"),
        ({"temperature": "hot"}, 'temperature must be a number .*got "hot"'),
        ({"temperature": True}, "temperature must be a number"),
        ({"temperature": 99}, "temperature must be a number from 0 to 2, .*got 99"),
        ({"temperature": 1e-39}, "temperature must be .* none below 0.001 besides 0 .*got 1e-39"),
        ({"max_tokens": 0}, "max_tokens must be a whole number from 1"),
        ({"max_tokens": 1.5}, "max_tokens must be a whole number"),
        ({"seed": "x"}, "seed must be a whole number"),
        ({"seed": -(1 << 63) - 1}, "seed must be a whole number"),
        ({"seed": 1 << 64}, "seed must be a whole number"),
        ({"n": 65}, "n must be a whole number from 1 to 64, got 65"),
        ({"stop": [""]}, "stop must be"),
        ({"stop": ["a"] * 17}, "stop must be"),
        ({"stop": ["a"] * 1000}, "stop must be a string or a list of at most 16"),
        ({"logprobs": 3}, "logprobs must be true or false"),
        ({"chat_template_sha256": "B" * 64}, "chat_template_sha256 must be 64 hexadecimal digits in lower case, got"),
        ({"chat_template_sha256": "b" * 63}, "chat_template_sha256 must be 64 hexadecimal digits"),
        ({"chat_template_sha256": "b" * 64 + "\n"}, "chat_template_sha256 must be 64 hexadecimal digits"),
    ],
)
def test_what_would_not_be_honoured_is_refused(changes: dict[str, Any], words: str):
    with failing("BadConfig", words):
        parse(**changes)


@pytest.mark.parametrize("body", [None, [], "text", 3])
def test_a_body_that_is_no_object_is_refused(body: Any):
    with pytest.raises(TemperError, match="JSON object"):
        ChatRequest.parse(body)


def test_messages_become_what_templates_want():
    parts = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": None}
    assert plain_message(parts) == {"role": "user", "content": "ab"}
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    assert plain_message({"role": "assistant", "content": None, "tool_calls": [call]}) == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}],
    }
    with pytest.raises(TemperError, match="must be text, got image_url"):
        plain_message({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]})


def test_text_ends_before_the_first_stop():
    assert before_stop("one two three", ("three", "two")) == "one "
    assert before_stop("one", ("x",)) == "one"


def test_choices_have_seeds_of_their_own():
    seeds = [choice_seed(7, index) for index in range(4)]
    assert seeds[0] == 7
    assert len(set(seeds)) == 4
