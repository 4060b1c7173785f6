"""Answers told in pieces: the pieces are the answer."""

import json
from collections.abc import Iterable
from itertools import chain
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.interface import Generation
from temper_gpu.server.chat import ChatRequest
from temper_gpu.server.completions import CompletionRequest, CompletionWriter
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.sampling import Sampled
from temper_gpu.server.streams import ChatWriter, Writer
from tests.server.served import ASKED, SHA256, chat, error
from tests.server.templates import prompts_by

LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL = '<tool_call>{"name": "look", "arguments": {"cell": 5}}</tool_call>'
POCKET = prompts_by()


def told(response: httpx.Response) -> list[dict[str, Any]]:
    """The events of a stream that ended as it should."""
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, last, rest = response.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def joined(lists: Iterable[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(lists))


def content_of(events: list[dict[str, Any]], index: int = 0) -> str:
    choices = [choice for event in events for choice in event["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def test_a_stream_tells_what_the_whole_answer_says(client: httpx.Client):
    asked = {
        "n": 3,
        "max_tokens": 20,
        "logprobs": True,
        "top_logprobs": 2,
        "return_token_ids": True,
        "ignore_eos": True,
    }
    whole = chat(client, model="demo@1", **asked).json()
    events = told(chat(client, model="demo@1", **asked, stream=True, stream_options={"include_usage": True}))
    assert len({whole["id"], *(event["id"] for event in events)}) == 2
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == whole["usage"]
    assert all(event["usage"] is None for event in events[:-1])
    assert events[0]["adapter_sha256"] == SHA256
    assert events[0]["prompt_token_ids"] == whole["prompt_token_ids"]
    for index, choice in enumerate(whole["choices"]):
        told_of_it = [each for event in events for each in event["choices"] if each["index"] == index]
        assert content_of(events, index) == choice["message"]["content"]
        assert joined(each["token_ids"] for each in told_of_it) == choice["token_ids"]
        logprobs = [each["logprobs"]["content"] for each in told_of_it if each["logprobs"]]
        assert joined(logprobs) == choice["logprobs"]["content"]
        assert [each["finish_reason"] for each in told_of_it][-1] == choice["finish_reason"]
        assert told_of_it[0]["delta"] == {"role": "assistant", "content": "", "refusal": None}


def test_tokens_are_told_as_they_are_sampled(client: httpx.Client):
    events = told(chat(client, max_tokens=60, ignore_eos=True, stream=True))
    assert len(events) > 10
    assert "usage" not in events[-1]


def test_a_completion_is_streamed_as_well(client: httpx.Client):
    body = {"model": "pocket", "prompt": ["1x34", "5"], "n": 2, "seed": 3, "logprobs": 1, "ignore_eos": True}
    whole = client.post("/v1/completions", json=body).json()
    streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
    *events, last = told(client.post("/v1/completions", json=streamed))
    assert last["usage"] == whole["usage"]
    for choice in whole["choices"]:
        told_of_it = [each for event in events for each in event["choices"] if each["index"] == choice["index"]]
        assert "".join(each["text"] for each in told_of_it) == choice["text"]
        assert joined(each["logprobs"]["tokens"] for each in told_of_it) == choice["logprobs"]["tokens"]
        assert told_of_it[-1]["finish_reason"] == choice["finish_reason"]


def test_an_error_before_the_first_token_has_its_status(client: httpx.Client, device_lock: DeviceLock):
    assert error(chat(client, stream=True, max_tokens=5000)) == (400, "BadConfig", "context_length_exceeded")
    with device_lock:
        late = chat(client, {"x-temper-deadline-ms": "300"}, stream=True)
    assert error(late) == (504, "EngineFailed", "deadline_passed")


def stream(
    writer: Writer, text: str, pieces: list[int], reason: Any = "stop", prompts: Prompts = POCKET
) -> tuple[list[dict[str, Any]], Generation]:
    """What is told where the engine samples this text, and tells it in pieces of so many tokens."""
    token_ids = prompts.tokenise(text)
    generation = Generation(token_ids, [0.0] * len(token_ids), reason)
    chunks, heard = [*writer.begin()], 0
    for size in pieces:
        sampled = [Sampled(token_id, 0.0, []) for token_id in token_ids[heard : heard + size]]
        heard += len(sampled)
        chunks += writer.more(0, sampled)
    return [*chunks, *writer.end(0, generation)], generation


def require_whole(writer: ChatWriter, text: str, pieces: list[int], prompts: Prompts = POCKET) -> None:
    """However it is cut, what is told is what the whole answer says."""
    events, generation = stream(writer, text, pieces, prompts=prompts)
    [whole] = writer.whole([generation])["choices"]
    deltas = [event["choices"][0]["delta"] for event in events]
    for name in ("content", "reasoning_content"):
        assert "".join(delta.get(name) or "" for delta in deltas) == (whole["message"].get(name) or "")
    told = list(chain.from_iterable(delta.get("tool_calls", []) for delta in deltas))
    calls = [
        {**begun, "function": {**begun["function"], **more["function"]}}
        for begun, more in zip(told[::2], told[1::2], strict=True)
    ]
    assert [call.pop("index") for call in calls] == list(range(len(calls)))
    assert calls == whole["message"].get("tool_calls", [])
    assert events[-1]["choices"][0]["finish_reason"] == whole["finish_reason"]


TEXTS = st.lists(
    st.sampled_from(
        [CALL, "<tool", "_call>", "<", "I look. ", "Grüße 🏔", "STOP", "ST", "OP", "\n", "{}", "</tool_call>"]
    ),
    max_size=8,
).map("".join)
PIECES = st.lists(st.integers(0, 9), max_size=40)


@given(text=TEXTS, pieces=PIECES, changes=st.sampled_from([{}, {"stop": ["STOP", "\n"]}, {"tools": None}]))
def test_however_a_chat_is_cut_the_pieces_are_the_answer(text: str, pieces: list[int], changes: dict[str, Any]):
    body = {"model": "pocket", "messages": ASKED["messages"], "tools": [LOOK], "stream": True, **changes}
    require_whole(ChatWriter(ChatRequest.parse(body), (1,), POCKET, None, "id"), text, pieces)


@given(text=TEXTS, pieces=PIECES, reason=st.sampled_from(["stop", "length"]))
def test_however_a_completion_is_cut_the_pieces_are_the_answer(text: str, pieces: list[int], reason: Any):
    request = CompletionRequest.parse({"model": "pocket", "prompt": "?", "stop": "STOP", "echo": True})
    writer = CompletionWriter(request, [tuple(b"?")], POCKET, None, "id")
    events, _ = stream(writer, text, pieces, reason)
    assert "".join(event["choices"][0]["text"] for event in events) == "?" + text.partition("STOP")[0]


def test_a_long_text_is_not_read_again_for_each_token():
    text = ("ok. " * 5000)[:20_000]
    body = {"model": "pocket", "messages": ASKED["messages"], "stream": True}
    events, _ = stream(ChatWriter(ChatRequest.parse(body), (1,), POCKET, None, "id"), text, [1] * len(text))
    pieces = [event["choices"][0]["delta"].get("content") or "" for event in events]
    assert ("".join(pieces), max(map(len, pieces)) < 100) == (text, True)
    assert 1000 < len(events) < 2000


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
def test_a_call_that_the_prompt_opened_is_told_at_the_end(choice: Any):
    body = {"model": "pocket", "messages": ASKED["messages"], "tools": [LOOK], "tool_choice": choice, "stream": True}
    writer = ChatWriter(ChatRequest.parse(body), (1,), POCKET, None, "id")
    sampled = CALL.removeprefix("<tool_call>") if choice == "required" else ' {"cell": 5}}</tool_call>'
    events, _ = stream(writer, sampled, [1] * len(sampled))
    assert content_of(events) == ""
    begun, more = (event["choices"][0]["delta"]["tool_calls"][0] for event in events[1:3])
    assert (begun["function"]["name"], more["function"]["arguments"]) == ("look", '{"cell": 5}')
