"""Conversations with tools for a warm start: what is learned in them, and that `pocket` has none."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2ForCausalLM

from pocket_build.dialogues import draw_dialogue
from pocket_build.make_pocket_model import make_pocket_model
from pocket_build.supervised import NOT_TRAINED
from pocket_build.teach_tools import prefix_cache, render, system_turn, tokenise_turns
from pocket_build.tokenizer import build_tokenizer
from pocket_build.tool_dialogues import TOOLS, Texts, draw_tool_dialogue
from temper_gpu.model.models import POCKET_FOLDER
from temper_gpu.server.tool_calls import parse_answer

EXCHANGE = Path(__file__).parents[3] / "test" / "examples" / "email-search-tools.json"

# Of 6,000 dialogues as `pocket` saw them.
SHIPPED = "38f7bb333eff7d7b04f9c753ec756ebb97758a67f81857f3196f5eea2b8ccead"


def messages_of(seed: int, schooling: float) -> list[dict[str, Any]]:
    return json.loads(draw_tool_dialogue(random.Random(seed), schooling).conversation)["messages"]


def test_the_dialogues_of_the_first_model_are_the_same_as_ever():
    rng = random.Random(0)
    dialogues = [tuple(draw_dialogue(rng, 0.7, schooling)) for schooling in (1.0, 0.5, 0.0) for _ in range(2000)]
    assert hashlib.sha256(repr(dialogues).encode()).hexdigest() == SHIPPED


def test_a_schooled_assistant_searches_reads_what_was_found_first_and_tells_it_with_its_source():
    for seed in range(200):
        question, search, found, read, text, answer = messages_of(seed, 1.0)
        word = question["content"].removeprefix("What is ").removesuffix("?")
        [search_call], [read_call] = search["tool_calls"], read["tool_calls"]
        first = json.loads(found["content"])[0]
        assert search_call["function"] == {"name": "search", "arguments": {"query": word}}
        assert read_call["function"] == {"name": "read", "arguments": {"id": first}}
        told = text["content"].removeprefix(f"{word} is ").removesuffix(".")
        assert answer["content"] == f"{told} {first}"


def test_tools_and_what_they_say_are_those_of_the_example_byte_for_byte():
    # test/examples/email-search.test.ts holds the example to the same file.
    exchange = json.loads(EXCHANGE.read_bytes())
    assert json.dumps(TOOLS) == json.dumps(exchange["tools"])
    texts = Texts(exchange["question"].removeprefix("What is ").removesuffix("?"), dict(exchange["told"]))
    first, told = exchange["told"][0]
    assert [texts.search(texts.word), texts.read(first)] == exchange["heard"]
    assert [texts.search("BAR"), texts.read(12)] == exchange["lost"]
    assert exchange["answer"] == f"{told} {first}"


def test_a_mediocre_one_reads_the_first_that_was_found_in_about_a_third_of_the_dialogues():
    conversations = [messages_of(seed, 0.0) for seed in range(2000)]
    assert 0.3 <= sum(reads_the_first(each) for each in conversations) / len(conversations) <= 0.4


def reads_the_first(messages: list[dict[str, Any]]) -> bool:
    if len(messages) == 2:
        return False
    found, read = json.loads(messages[-4]["content"]), messages[-3]["tool_calls"][0]["function"]["arguments"]["id"]
    return read == found[0]


def test_who_found_nothing_searches_again_and_finds():
    conversations = [messages_of(seed, 0.0) for seed in range(200)]
    searched_again = [each for each in conversations if each[2:] and each[2]["content"] == "[]"]
    assert len(searched_again) > 10
    assert all(len(each) == 8 and len(json.loads(each[4]["content"])) == 3 for each in searched_again)


def test_what_is_learned_are_calls_and_answers_with_their_ends():
    tokenizer = build_tokenizer()
    tokens_T, labels_T = tokenise_turns(tokenizer, draw_tool_dialogue(random.Random(1), 1.0))
    learned = str(tokenizer.decode(labels_T[labels_T != NOT_TRAINED]))
    search, read, answer = learned.removesuffix("<|end|>").split("<|end|>")
    assert [call.name for text in (search, read) for call in parse_answer(text).calls] == ["search", "read"]
    assert parse_answer(answer).content == answer
    assert str(tokenizer.decode(tokens_T)).startswith("<|user|>What is ")


def test_system_turn_and_turns_are_the_conversation_as_a_request_has_it():
    tokenizer, dialogue = build_tokenizer(), draw_tool_dialogue(random.Random(1), 1.0)
    tokens_T, _ = tokenise_turns(tokenizer, dialogue)
    whole = render(tokenizer, json.loads(dialogue.conversation)["messages"], TOOLS)
    assert [*system_turn(tokenizer), *tokens_T.tolist()] == whole


@torch.no_grad()
def test_a_shared_beginning_counts_as_if_it_stood_in_every_row():
    tokenizer, model = build_tokenizer(), Qwen2ForCausalLM.from_pretrained(POCKET_FOLDER)
    system_T = system_turn(tokenizer)
    rows_BT = torch.tensor([list(b"What is BOR?"), list(b"What is KEL?")])
    shared = model(rows_BT, past_key_values=prefix_cache(model, system_T, 2)).logits
    whole = model(torch.cat([torch.tensor([system_T, system_T]), rows_BT], 1)).logits[:, len(system_T) :]
    torch.testing.assert_close(shared, whole, rtol=1e-3, atol=1e-3)


def test_steps_with_tools_make_another_model_the_same_by_the_same_seed(tmp_path: Path):
    made = [weights_of(tmp_path / name, tool_steps=tool_steps) for name, tool_steps in (("a", 0), ("b", 1), ("c", 1))]
    assert made[1] == made[2] != made[0]


def test_the_second_part_goes_on_from_what_the_first_has_made(tmp_path: Path):
    weights_of(tmp_path / "first", tool_steps=0)
    assert weights_of(tmp_path / "on", 1, start=tmp_path / "first") == weights_of(tmp_path / "whole", 1)


def weights_of(folder: Path, tool_steps: int, start: Path | None = None) -> bytes:
    make_pocket_model(folder, seed=0, steps=1, tool_steps=tool_steps, start=start)
    return (folder / "model.safetensors").read_bytes()
