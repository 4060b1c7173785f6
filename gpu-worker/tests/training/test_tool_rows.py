"""Attempts with tools as training rows: prompts by the engine's own code, answers read back as an agent sends them."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from temper_gpu.engine.interface import Generation
from temper_gpu.server.chat import ChatRequest
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.streams import ChatWriter
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.metrics import batch_metrics
from temper_gpu.training.rows import Rows, build_rows
from tests.server.templates import FORGETFUL, QWEN, prompts_by

TURNS = 12
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
HERMES = '<tool_call>{{"name": "read", "arguments": {{"id": {}}}}}</tool_call>'
QWENS = '<tool_call>\n{{"name": "read", "arguments": {{"id": {}}}}}\n</tool_call>'


def played(prompts: Prompts, texts: list[str], **asked: Any) -> Iterator[Call]:
    """Calls of an agent that answers every tool call and goes on, with a policy that says these texts."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read on."}]
    for turn, text in enumerate(texts):
        body = {"model": "pocket", "messages": messages, "tools": TOOLS, **asked}
        request = ChatRequest.parse(body)
        prompt = prompts.encode(request.messages, request.tools, request.tool_choice)
        token_ids = prompts.tokenise(text)
        logprobs = [-0.01 * (turn + 1)] * len(token_ids)
        yield Call(list(prompt), token_ids, logprobs, 1.0, None)
        generation = Generation(token_ids, logprobs, "stop")
        [choice] = ChatWriter(request, prompt, prompts, None, f"{turn}").whole([generation])["choices"]
        message = choice["message"]
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "next"} for call in message["tool_calls"]]
        messages = [*messages, message, *results]


def goes_on(earlier: Call, later: Call) -> bool:
    conversation = earlier.prompt_token_ids + earlier.token_ids
    return later.prompt_token_ids[: len(conversation)] == conversation


def rows_and_metrics(calls: list[Call]) -> tuple[Rows, dict[str, float]]:
    attempt = Attempt(1.0, False, calls)
    rows = build_rows([attempt], [[0.5]], "mask")
    return rows, batch_metrics([Group(0, [attempt])], [[0.5]], rows, "mask")


@pytest.mark.parametrize(
    ("template", "texts"),
    [
        (None, [HERMES.format(turn) + "<|end|>" for turn in range(TURNS)]),
        (None, [f"Turn {turn}: " + HERMES.format(turn) * 2 + "<|end|>" for turn in range(TURNS)]),
        (QWEN, [f"Turn {turn}.\n{QWENS.format(turn)}\n{QWENS.format(turn)}<|end|>" for turn in range(TURNS)]),
    ],
    ids=["one call a turn", "two calls and text", "two calls and text by Qwen's template"],
)
def test_twelve_turns_with_tools_are_one_row(template: str | None, texts: list[str]):
    prompts = prompts_by(template)
    calls = list(played(prompts, texts))
    rows, metrics = rows_and_metrics(calls)
    [row] = rows.rows
    assert row.token_ids == calls[-1].prompt_token_ids + calls[-1].token_ids
    assert prompts.tokenise("".join(texts)) == [row.token_ids[t] for t in row.positions]
    assert {name: metrics[name] for name in ("rows", "forks", "sampledTokens", "trainedTokens")} == {
        "rows": 1,
        "forks": 0,
        "sampledTokens": sum(len(call.token_ids) for call in calls),
        "trainedTokens": sum(len(call.token_ids) for call in calls),
    }


@pytest.mark.parametrize(
    ("asked", "sampled"),
    [
        ({"parallel_tool_calls": False}, HERMES),
        ({"tool_choice": "required"}, HERMES.removeprefix("<tool_call>") + "<|end|>"),
        ({"tool_choice": {"type": "function", "function": {"name": "read"}}}, ' {{"id": {}}}}}</tool_call>'),
    ],
    ids=["one call at a time", "required", "named"],
)
def test_calls_that_a_choice_opens_or_ends_are_one_row_in_which_only_what_was_sampled_is_trained(
    asked: dict[str, Any], sampled: str
):
    prompts = prompts_by()
    texts = [sampled.format(turn) for turn in range(TURNS)]
    rows, metrics = rows_and_metrics(list(played(prompts, texts, **asked)))
    [row] = rows.rows
    assert metrics["forks"] == 0
    assert prompts.tokenise("".join(texts)) == [row.token_ids[t] for t in row.positions]
    whole = prompts.decode(row.token_ids)
    assert all(HERMES.format(turn) in whole for turn in range(TURNS))


def test_a_template_that_rewrites_history_forks_and_every_sampled_token_is_trained_once():
    texts = [f"<think>{'x' * turn}</think>{QWENS.format(turn)}<|end|>" for turn in range(TURNS)]
    calls = list(played(prompts_by(FORGETFUL), texts))
    rows, metrics = rows_and_metrics(calls)
    assert not any(goes_on(earlier, later) for earlier, later in pairwise(calls))
    assert metrics["forks"] == TURNS - 1
    assert metrics["rows"] == TURNS
    # In the row of the call that sampled it, with that call's log-probabilities, and nowhere else.
    assert [[row.token_ids[t] for t in row.positions] for row in rows.rows] == [call.token_ids for call in calls]
    assert [row.logprobs for row in rows.rows] == [call.logprobs for call in calls]
    assert metrics["trainedTokens"] == metrics["sampledTokens"] == sum(len(call.token_ids) for call in calls)


def test_turns_without_thoughts_go_on_in_one_row_between_those_that_are_rewritten():
    thinks = {0, 5}
    texts = [("<think>hm</think>" if turn in thinks else "") + QWENS.format(turn) + "<|end|>" for turn in range(TURNS)]
    calls = list(played(prompts_by(FORGETFUL), texts))
    rows, metrics = rows_and_metrics(calls)
    assert metrics["forks"] == len(thinks)
    assert metrics["trainedTokens"] == metrics["sampledTokens"]
    # Each turn has a log-probability of its own here, which says where a trained token comes from.
    trained = Counter(logprob for row in rows.rows for logprob in row.logprobs)
    assert trained == Counter(logprob for call in calls for logprob in call.logprobs)


def test_another_form_of_the_same_call_forks_too():
    """Arguments go back as objects: a template writes them in its own form, not in the one that was sampled."""
    texts = ['<tool_call>{"name":"read","arguments":{"id":1}}</tool_call><|end|>' for _ in range(3)]
    _, metrics = rows_and_metrics(list(played(prompts_by(), texts)))
    assert (metrics["forks"], metrics["trainedTokens"]) == (2, metrics["sampledTokens"])
