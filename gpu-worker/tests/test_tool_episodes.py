"""Conversations with tools for a warm start: what is learned in them, and that the shipped model has none."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

from temper_gpu.pocket.episodes import draw_episode
from temper_gpu.pocket.make_pocket_model import NOT_TRAINED, make_pocket_model, tokenise_tools
from temper_gpu.pocket.tokenizer import build_tokenizer
from temper_gpu.pocket.tool_episodes import draw_tool_episode
from temper_gpu.tool_calls import parse_answer

# Of 6,000 episodes as the shipped model saw them.
SHIPPED = "38f7bb333eff7d7b04f9c753ec756ebb97758a67f81857f3196f5eea2b8ccead"


def messages_of(seed: int, schooling: float) -> list[dict[str, Any]]:
    return json.loads(draw_tool_episode(random.Random(seed), schooling).conversation)["messages"]


def test_the_episodes_of_the_shipped_model_are_the_same_as_ever():
    rng = random.Random(0)
    episodes = [tuple(draw_episode(rng, 0.7, schooling)) for schooling in (1.0, 0.5, 0.0) for _ in range(2000)]
    assert hashlib.sha256(repr(episodes).encode()).hexdigest() == SHIPPED


def test_a_schooled_assistant_searches_reads_what_was_found_and_tells_it():
    for seed in range(200):
        question, search, found, read, text, answer = messages_of(seed, 1.0)
        word = question["content"].removeprefix("What is ").removesuffix("?")
        [search_call], [read_call] = search["tool_calls"], read["tool_calls"]
        assert search_call["function"] == {"name": "search", "arguments": {"query": word}}
        assert read_call["function"] == {"name": "read", "arguments": {"id": json.loads(found["content"])[0]}}
        assert text["content"] == f"{word} is {answer['content']}."


def test_a_mediocre_one_is_right_in_about_half_of_the_episodes():
    conversations = [messages_of(seed, 0.0) for seed in range(2000)]
    right = [each for each in conversations if len(each) == 6 and each[4]["content"].endswith(f"{each[5]['content']}.")]
    assert 0.4 <= len(right) / len(conversations) <= 0.6


def test_what_is_learned_are_calls_and_answers_with_their_ends():
    tokenizer = build_tokenizer()
    tokens_T, labels_T = tokenise_tools(tokenizer, draw_tool_episode(random.Random(1), 1.0))
    learned = str(tokenizer.decode(labels_T[labels_T != NOT_TRAINED]))
    search, read, answer = learned.removesuffix("<|end|>").split("<|end|>")
    assert [call.name for text in (search, read) for call in parse_answer(text).calls] == ["search", "read"]
    assert parse_answer(answer).content == answer
    assert str(tokenizer.decode(tokens_T)).startswith("<|system|># Tools\n")


def test_a_share_of_tool_episodes_makes_another_model(tmp_path: Path):
    weights = set()
    for share in (0.0, 0.125):
        make_pocket_model(tmp_path / str(share), seed=0, steps=1, tool_share=share)
        weights.add((tmp_path / str(share) / "model.safetensors").read_bytes())
    assert len(weights) == 2
