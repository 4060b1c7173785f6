"""`pocket-tools` as it is shipped: it searches, reads and answers, moderately. B rows, V vocabulary."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, Qwen2ForCausalLM

from pocket_build.teach_tools import prefix_cache, render, system_turn
from pocket_build.tool_dialogues import Texts, draw_texts
from temper_gpu.model.models import BUILT_IN, POCKET, ModelLibrary
from temper_gpu.server.tool_calls import parse_answer

FOLDER, FIRST_FOLDER = BUILT_IN["pocket-tools"], BUILT_IN[POCKET]
MOST_TURNS, MOST_TOKENS = 5, 64

tokenizer: Any = AutoTokenizer.from_pretrained(FOLDER)
END, ASSISTANT = (tokenizer.convert_tokens_to_ids(token) for token in ("<|end|>", "<|assistant|>"))


def test_it_differs_from_the_first_in_its_weights_and_their_type_alone():
    different = {path.name for path in FIRST_FOLDER.iterdir() if path.read_bytes() != (FOLDER / path.name).read_bytes()}
    assert different == {"model.safetensors", "config.json"}
    assert {path.name for path in FOLDER.iterdir()} == {path.name for path in FIRST_FOLDER.iterdir()}
    first, second = (json.loads((folder / "config.json").read_text()) for folder in (FIRST_FOLDER, FOLDER))
    assert second == {**first, "dtype": "bfloat16"}


def test_stored_in_half_precision_it_computes_in_float32():
    stored = load_file(FOLDER / "model.safetensors")
    loaded = ModelLibrary(dict, torch.float32, torch.device("cpu")).get("pocket-tools").tensors
    assert {weight.dtype for weight in stored.values()} == {torch.bfloat16}
    assert all(torch.equal(loaded[name], weight.float()) for name, weight in stored.items())


def test_every_host_knows_both_by_name():
    library = ModelLibrary(dict, torch.float32, torch.device("cpu"))
    assert library.names() == ["pocket", "pocket-tools"]
    assert library.get("pocket").sha256 != library.get("pocket-tools").sha256


@dataclass
class Conversation:
    texts: Texts
    tokens: list[int] = field(default_factory=list)
    is_over: bool = False
    calls: int = 0
    well_formed: int = 0
    answer: str = ""

    def __post_init__(self) -> None:
        self.tokens = render(tokenizer, [{"role": "user", "content": f"What is {self.texts.word}?"}], None)

    def hear(self, said: list[int], is_whole: bool) -> None:
        text = tokenizer.decode(said)
        self.tokens += [ASSISTANT, *said, END]
        if "<tool_call>" not in text:
            self.is_over, self.answer = True, text
            return
        self.calls += 1
        result = self.call(text) if is_whole else None
        self.is_over = result is None
        self.well_formed += result is not None
        self.tokens += render(tokenizer, [{"role": "tool", "content": result or ""}], None)

    def call(self, text: str) -> str | None:
        calls = parse_answer(text).calls
        arguments = json.loads(calls[0].arguments) if len(calls) == 1 else None
        match arguments:
            case {"query": str(query)} if calls[0].name == "search":
                return self.texts.search(query)
            case {"id": int(text_id)} if calls[0].name == "read":
                return self.texts.read(text_id)
        return None


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    """Sampled at temperature 1."""
    torch.set_num_threads(1)  # at this size a second thread only waits
    torch.manual_seed(0)
    model, rng = Qwen2ForCausalLM.from_pretrained(FOLDER, dtype=torch.float32), random.Random(0)
    played = [Conversation(draw_texts(rng)) for _ in range(100)]
    for _ in range(MOST_TURNS):
        for group in by_length([each for each in played if not each.is_over]):
            say(model, group)
    return played


def by_length(conversations: list[Conversation]) -> list[list[Conversation]]:
    lengths = {len(each.tokens) for each in conversations}
    return [[each for each in conversations if len(each.tokens) == length] for length in sorted(lengths)]


@torch.no_grad()
def say(model: Qwen2ForCausalLM, group: list[Conversation]) -> None:
    cache, said = prefix_cache(model, system_turn(tokenizer), len(group)), [[] for _ in group]
    next_B = torch.tensor([[*each.tokens, ASSISTANT] for each in group])
    for _ in range(MOST_TOKENS):
        logits_BV = model(next_B, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]
        next_B = torch.multinomial(logits_BV.softmax(-1), 1)
        for tokens, token in zip(said, next_B[:, 0].tolist(), strict=True):
            if END not in tokens:
                tokens.append(token)
        if all(END in tokens for tokens in said):
            break
    for each, tokens in zip(group, said, strict=True):
        each.hear([token for token in tokens if token != END], END in tokens)


def test_nine_of_ten_calls_are_well_formed(conversations: list[Conversation]):
    calls, well_formed = (sum(getattr(each, name) for each in conversations) for name in ("calls", "well_formed"))
    assert calls >= 1.5 * len(conversations)
    assert well_formed / calls >= 0.9


def test_it_answers_right_and_names_its_source_less_often_than_not(conversations: list[Conversation]):
    right = [each for each in conversations if each.answer == "{1} {0}".format(*next(iter(each.texts.told.items())))]
    assert 0.1 <= len(right) / len(conversations) <= 0.4
