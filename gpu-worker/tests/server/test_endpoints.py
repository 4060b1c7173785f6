"""Endpoints beside chats: completions, tokens, models, metrics. And what clients send that is too much, or broken."""

import json
import re
from typing import Any

import httpx
import pytest

from temper_gpu.engine.interface import Generation
from temper_gpu.server.metrics import Metrics
from tests.server.served import ASKED, KEY, METRICS_KEY, SHA256, chat, error

ASKED_TEXT = {"model": "pocket", "prompt": "1x34o6789", "seed": 3, "max_tokens": 4}
GREEDY = (("top_p", 0), ("top_k", 1))
PROMPT_IDS = list(b"1x34o6789")


def complete(client: httpx.Client, **changes: Any) -> httpx.Response:
    return client.post("/v1/completions", json={**ASKED_TEXT, **changes})


def test_a_completion_goes_on_from_the_prompt_without_a_template(client: httpx.Client):
    body = complete(client, return_token_ids=True, logprobs=2).json()
    [choice] = body["choices"]
    assert (body["object"], body["adapter_sha256"]) == ("text_completion", None)
    assert choice["prompt_token_ids"] == PROMPT_IDS
    assert body["usage"]["prompt_tokens"] == len(PROMPT_IDS)
    logprobs = choice["logprobs"]
    assert len(logprobs["tokens"]) == len(choice["token_ids"]) == len(logprobs["text_offset"])
    columns = (logprobs[name] for name in ("tokens", "token_logprobs", "top_logprobs"))
    for token, logprob, top in zip(*columns, strict=True):
        assert top[token] == logprob
        assert 2 <= len(top) <= 3


def test_tokens_are_prompts_too_and_each_prompt_has_its_choices(client: httpx.Client):
    text = complete(client).json()["choices"][0]["text"]
    assert complete(client, prompt=PROMPT_IDS).json()["choices"][0]["text"] == text
    several = complete(client, prompt=["1x34o6789", "12"], n=2, echo=True, model="demo@1").json()
    assert [choice["index"] for choice in several["choices"]] == [0, 1, 2, 3]
    assert several["adapter_sha256"] == SHA256
    assert [choice["text"].startswith("1x34o6789") for choice in several["choices"]] == [True, True, False, False]
    # Control tokens are the caller's own here.
    written = complete(client, prompt="<|user|>12<|end|><|assistant|>", max_tokens=1, return_token_ids=True).json()
    asked = chat(client, messages=[{"role": "user", "content": "12"}], max_tokens=1, return_token_ids=True).json()
    assert written["choices"][0]["prompt_token_ids"] == asked["prompt_token_ids"]


def test_a_stop_token_ends_the_text_before_it(client: httpx.Client):
    asked = {"max_tokens": 8, "ignore_eos": True, "return_token_ids": True}
    free = chat(client, **asked).json()["choices"][0]
    third = free["token_ids"][2]
    stopped = chat(client, **asked, stop_token_ids=[third]).json()["choices"][0]
    end = free["token_ids"].index(third) + 1
    assert (stopped["token_ids"], stopped["finish_reason"]) == (free["token_ids"][:end], "stop")
    assert free["message"]["content"].startswith(stopped["message"]["content"])
    assert chr(third) not in stopped["message"]["content"]


def test_biases_and_alternatives_reach_the_engine(client: httpx.Client):
    biased = chat(client, logit_bias={"120": 100}, max_tokens=3, logprobs=True, top_logprobs=1).json()["choices"][0]
    assert biased["message"]["content"] == "xxx"
    assert [entry["top_logprobs"][0]["token"] for entry in biased["logprobs"]["content"]] == ["x", "x", "x"]
    refused = chat(client, logit_bias={"264": 1})
    assert error(refused)[0] == 400
    assert "below 264, the size of pocket's vocabulary, got 264" in refused.text
    asked: list[dict[str, Any]] = [{name: value, "seed": seed} for seed in (1, 2) for name, value in GREEDY]
    greedy = [chat(client, **changes) for changes in asked]
    assert len({answer.json()["choices"][0]["message"]["content"] for answer in greedy}) == 1


def test_an_answer_has_the_form_that_is_asked_for(client: httpx.Client):
    schema = {"enum": [{"cell": 1}, {"cell": 2}]}
    asked = {"type": "json_schema", "json_schema": {"name": "move", "schema": schema}}
    # Blanks between its parts are allowed.
    answer = chat(client, response_format=asked, max_tokens=300).json()["choices"][0]
    assert json.loads(answer["message"]["content"]) in schema["enum"]
    assert answer["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": None},
        {"prompt": []},
        {"prompt": [[]]},
        {"prompt": [1, "x"]},
        {"prompt": [99_999]},
        {"prompt": [-1]},
        {"prompt": "x", "n": 65},
        {"prompt": ["x"] * 65},
        {"prompt": ["x"] * 33, "n": 2},
        {"suffix": "x"},
        {"best_of": 2},
        {"echo": True, "logprobs": 1},
        {"logprobs": 21},
        {"messages": ASKED["messages"]},
        {"max_tokens": 5000},
    ],
)
def test_completions_that_would_not_be_honoured_are_refused(client: httpx.Client, changes: dict[str, Any]):
    status, kind, _ = error(complete(client, **changes))
    assert (status, kind) == (400, "BadConfig")


def test_one_model_is_shown_by_its_name(client: httpx.Client):
    chat(client, model="demo@1")
    for name in ("pocket", "demo@1"):
        assert client.get(f"/v1/models/{name}").json() == {
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "temper",
        }
    assert error(client.get("/v1/models/gpt-5")) == (404, "BadConfig", "model_not_found")


def test_metrics_are_told_with_the_key_under_vllms_names(client: httpx.Client, url: str):
    chat(client, max_tokens=2, ignore_eos=True, stream=True)
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    lines = response.text.splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    label = '{model_name="pocket",engine="0"}'
    assert samples["vllm:num_requests_running" + label] == "0"
    assert samples["vllm:num_requests_waiting" + label] == "0"
    assert int(samples["vllm:prompt_tokens_total" + label]) >= 12
    assert int(samples["vllm:generation_tokens_total" + label]) >= 2
    assert int(samples['vllm:request_success_total{model_name="pocket",engine="0",finished_reason="length"}']) >= 1
    assert int(samples['vllm:time_to_first_token_seconds_count{model_name="pocket",engine="0"}']) >= 1
    assert float(samples["temper_forward_seconds_total" + label]) > 0
    # As Prometheus reads it: a type before its samples, and each name once.
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
    names = {re.sub(r"_(bucket|sum|count)$", "", sample.partition("{")[0]) for sample in samples}
    assert names <= set(types)
    for headers in ({}, {"authorization": "Bearer wrong"}):
        for method, path in (("GET", "/metrics"), ("POST", "/v1/completions")):
            assert httpx.request(method, url + path, headers=headers, trust_env=False).status_code == 401
    assert KEY not in response.text
    alone = {"authorization": f"Bearer {METRICS_KEY}"}
    assert httpx.get(f"{url}/metrics", headers=alone, trust_env=False).status_code == 200
    assert httpx.get(f"{url}/v1/models", headers=alone, trust_env=False).status_code == 401


def test_a_histogram_counts_up_to_each_bound():
    metrics = Metrics()
    for seconds in (0.3, 0.4, 99_999):
        metrics.answered('a "b"\n', [Generation([1], [0.0], "stop")], seconds, None)
    text = metrics.text({})
    label = 'model_name="a \\"b\\"\\n",engine="0"'
    for bound, count in (("0.3", 1), ("0.5", 2), ("7680", 2), ("+Inf", 3)):
        assert f'vllm:e2e_request_latency_seconds_bucket{{{label},le="{bound}"}} {count}\n' in text


# ---- too much, or broken


def tools(count: int) -> list[dict[str, Any]]:
    parameters = {"type": "object", "properties": {"cell": {"type": "integer"}}}
    return [{"type": "function", "function": {"name": f"look{i}", "parameters": parameters}} for i in range(count)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"stop": [f"stop {i}" for i in range(1000)]}, (400, "bad_request")),
        ({"stop": "x" * 50_000}, None),
        ({"tools": tools(20), "max_tokens": 1}, None),
        # More than the pocket model's context.
        ({"tools": tools(200)}, (400, "context_length_exceeded")),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": 7}}}], "max_tokens": 1},
            None,
        ),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": [1]}}], "max_tokens": 1}, None),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 7}}}}, (400, "bad_request")),
        ({"response_format": {"type": "json_schema"}}, (400, "bad_request")),
        ({"messages": [{"role": "user", "content": "word " * 10_000}]}, (400, "context_length_exceeded")),
        ({"messages": [{"role": "user", "content": "\x00\x07\x1b�"}]}, None),
    ],
)
def test_much_of_anything_is_answered_or_refused(
    client: httpx.Client, changes: dict[str, Any], expected: tuple[int, str] | None
):
    answer = chat(client, **changes)
    assert (None if answer.status_code == 200 else (answer.status_code, error(answer)[2])) == expected


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_body_that_is_no_text_or_too_large_is_refused(client: httpx.Client, path: str):
    for body in (b'{"model": "\xff\xfe"}', b'{"model": "\xed\xa0\x80"}', b"\x00", b"{" * 400, b"[" * 400 + b"]" * 400):
        assert error(client.post(path, content=body)) == (400, "BadConfig", "bad_request")
    assert error(client.post(path, content=b"x" * 200_000)) == (413, "BadConfig", "too_large")


def test_a_body_of_100_mb_is_refused_without_being_kept(client: httpx.Client):
    def body():
        for _ in range(100):
            yield b" " * (1 << 20)

    try:
        answer = client.post("/v1/chat/completions", content=body())
    except httpx.WriteError:
        return  # hung up while it was sent
    assert error(answer) == (413, "BadConfig", "too_large")
