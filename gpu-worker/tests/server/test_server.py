"""The HTTP server as clients meet it: a real one, on a free port, with the pocket model."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import torch

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.host import EngineHost
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.models import ModelLibrary
from temper_gpu.server.server import create_app
from temper_gpu.server.settings import ServerSettings
from temper_gpu.server.targets import Targets
from tests.server.served import ASKED, KEY, SHA256, Resolver, chat, error, serving


def test_an_answer_has_openais_shape_and_what_training_needs(client: httpx.Client):
    body = chat(client, logprobs=True, return_token_ids=True).json()
    [choice] = body["choices"]
    assert body["object"] == "chat.completion"
    assert body["created"] == 0
    assert body["adapter_sha256"] is None
    assert body["prompt_token_ids"] == [258, *b"1x34o6789", 261, 259]
    assert body["usage"] == {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 14}
    assert choice["finish_reason"] == "stop"
    assert choice["token_ids"][-1] == 261
    assert choice["message"]["content"] == chr(choice["token_ids"][0])
    entries = choice["logprobs"]["content"]
    assert [entry["token"] for entry in entries] == [choice["message"]["content"], "<|end|>"]
    assert all(entry["logprob"] < 0 for entry in entries)


@pytest.mark.numerics
def test_the_same_request_has_the_same_answer_and_another_seed_another(client: httpx.Client):
    call = {"x-temper-call": "attempt/call/0"}
    assert chat(client, call).content == chat(client, call).content
    texts = {chat(client, seed=seed).json()["choices"][0]["message"]["content"] for seed in range(30)}
    assert len(texts) > 2
    without = {chat(client, seed=None).json()["choices"][0]["message"]["content"] for _ in range(30)}
    assert len(without) > 1


@pytest.mark.numerics
def test_several_choices_differ_and_the_first_is_that_of_a_single_one(client: httpx.Client):
    choices = chat(client, n=8).json()["choices"]
    assert [choice["index"] for choice in choices] == list(range(8))
    assert choices[0] == chat(client).json()["choices"][0]
    assert len({choice["message"]["content"] for choice in choices}) > 1


def test_a_policy_is_loaded_on_demand_and_its_hash_is_in_the_answer(client: httpx.Client):
    body = chat(client, model="demo@1", logprobs=True).json()
    assert body["adapter_sha256"] == SHA256
    plain = chat(client, logprobs=True).json()["choices"][0]["logprobs"]
    assert body["choices"][0]["logprobs"] != plain
    names = [model["id"] for model in client.get("/v1/models").json()["data"]]
    assert names == ["pocket", "pocket-tools", "demo@1"]


def test_an_id_says_nothing_of_the_policys_name(client: httpx.Client):
    """Ids of tool calls are part of what is hashed, and no run's name may be."""
    call = {"x-temper-call": "attempt/call/0"}
    [same, again, other] = [
        chat(client, call, **changes).json()["id"] for changes in ({"model": "demo@1"}, {}, {"seed": 4})
    ]
    assert same == again != other


def test_an_answer_that_is_none_of_an_attempts_has_an_id_of_its_own_whatever_it_is_asked_with(client: httpx.Client):
    asked: list[dict[str, Any]] = [{}, {}, {"temperature": 0.5}, {"max_tokens": 1}]
    assert len({chat(client, **changes).json()["id"] for changes in asked}) == len(asked)


def test_tools_are_in_the_prompt_and_a_named_call_is_opened_by_it(client: httpx.Client):
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    named = {"type": "function", "function": {"name": "look"}}
    free = chat(client, tools=tools, return_token_ids=True).json()
    opened = chat(client, tools=tools, tool_choice=named, max_tokens=4, return_token_ids=True).json()
    opening = '<tool_call>{"name": "look", "arguments":'
    assert b'"name": "look"' in bytes(token_id for token_id in free["prompt_token_ids"] if token_id < 256)
    assert opened["prompt_token_ids"] == [*free["prompt_token_ids"], 262, *opening.removeprefix("<tool_call>").encode()]
    assert opened["usage"]["completion_tokens"] == len(opened["choices"][0]["token_ids"]) <= 4
    # The pocket model never learned to go on from here, and what it says instead is its answer.
    [choice] = opened["choices"]
    assert choice["message"]["content"].startswith(opening)
    assert (choice["malformed_tool_calls"], free["choices"][0]["malformed_tool_calls"]) == (1, 0)


@pytest.mark.parametrize(
    "given", [None, "", KEY, "Bearer", "Bearer wrong", f"Bearer {KEY}x", f"bearer {KEY}", "Bearer é"]
)
def test_without_the_key_nothing_is_told(url: str, given: str | None):
    headers = {} if given is None else {b"authorization": given.encode()}
    for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions")):
        response = httpx.request(method, url + path, headers=headers, json=ASKED, trust_env=False)
        assert error(response) == (401, "BadConfig", "invalid_api_key")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("localhost:9999", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("GPU.example:1", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
    ],
)
def test_only_own_names_are_answered(client: httpx.Client, name: str, status: int):
    assert client.get("/health", headers={"host": name}).status_code == status
    assert client.get("/v1/models", headers={"host": name}).status_code == status


def test_health_needs_no_key(url: str):
    body = httpx.get(url + "/health", trust_env=False).json()
    assert body["status"] == "ok"
    assert len(body["boot"]) == 16


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": "gpt-5"}, (404, "BadConfig", "model_not_found")),
        ({"model": "demo@7"}, (404, "BadConfig", "model_not_found")),
        ({"model": "../../etc/passwd"}, (404, "BadConfig", "model_not_found")),
        ({"model": "corrupt@1"}, (422, "StoreCorrupt", "cannot_answer")),
        ({"max_tokens": 5000}, (400, "BadConfig", "context_length_exceeded")),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, (400, "BadConfig", "context_length_exceeded")),
        ({"messages": [{"role": "user", "content": 3}]}, (400, "BadConfig", "bad_request")),
        ({"messages": [{"role": "user", "content": "x", "name": "ann"}]}, (400, "BadConfig", "bad_request")),
        ({"temperature": 99}, (400, "BadConfig", "bad_request")),
        ({"messages": [{"role": "user", "content": "x" * 200_000}]}, (413, "BadConfig", "too_large")),
        ({"top_p": 1.5}, (400, "BadConfig", "bad_request")),
        ({"logit_bias": {"99999": 1}}, (400, "BadConfig", "bad_request")),
        ({"tool_choice": "required"}, (400, "BadConfig", "bad_request")),
        ({"messages": [{"role": "assistant", "tool_calls": [5]}]}, (400, "BadConfig", "bad_request")),
    ],
)
def test_bad_requests_are_told_what_is_wrong(
    client: httpx.Client, changes: dict[str, Any], expected: tuple[int, str, str]
):
    assert error(chat(client, **changes)) == expected


def test_a_body_that_is_no_json_is_refused(client: httpx.Client):
    for body in (b"", b"{", b"\xff", b"[" * 5000):
        assert error(client.post("/v1/chat/completions", content=body)) == (400, "BadConfig", "bad_request")


def test_a_full_queue_says_when_to_come_back_and_a_passed_deadline_is_told(
    client: httpx.Client, device_lock: DeviceLock
):
    chat(client)
    with device_lock, ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(chat, client, {"x-temper-deadline-ms": "1000"}) for _ in range(12)]
        answers = [future.result() for future in waiting]
    assert sorted({error(answer) for answer in answers}) == [
        (429, "EngineFailed", "queue_full"),
        (504, "EngineFailed", "deadline_passed"),
    ]
    assert {answer.headers.get("retry-after") for answer in answers if answer.status_code == 429} == {"1"}
    for given in ("soon", "-1", "0", "1.5"):
        assert chat(client, {"x-temper-deadline-ms": given}).status_code == 400


def test_each_executed_call_is_logged_once(client: httpx.Client, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, "temper_gpu.server.answering"):
        chat(client, {"x-temper-call": "attempt/call/0"}, model="demo@1")
        chat(client, {"x-temper-call": "attempt/call/1"}, top_p=1.5)
    [record] = [vars(record) for record in caplog.records if record.getMessage() == "call"]
    assert record["call"] == "attempt/call/0"
    assert (record["policy"], record["adapter"]) == ("demo@1", SHA256[:12])
    assert (record["promptTokens"], record["sampledTokens"]) == (12, 2)
    assert KEY not in json.dumps({name: str(value) for name, value in record.items()})


def test_a_dead_engine_shows_in_health(device_lock: DeviceLock, monkeypatch: pytest.MonkeyPatch):
    library = ModelLibrary(lambda: {}, torch.float32, torch.device("cpu"))
    deaths: list[BaseException] = []
    host = EngineHost(library, EmbeddedSettings(num_threads=1, max_pass_tokens=64), device_lock, deaths.append)
    monkeypatch.setattr(host.engine("pocket")._scheduler, "_admit", lambda: 1 / 0)
    with serving(host, ServerSettings()) as url, httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        client.headers["authorization"] = f"Bearer {KEY}"
        assert error(chat(client)) == (503, "EngineFailed", "unavailable")
        assert (client.get("/health").status_code, client.get("/health").json()["status"]) == (503, "dead")
    assert len(deaths) == 1


def test_an_empty_key_is_refused(host: EngineHost):
    with pytest.raises(TemperError, match="key must not be empty"):
        create_app(host, Targets(Resolver(), host, None), ServerSettings(), "")
