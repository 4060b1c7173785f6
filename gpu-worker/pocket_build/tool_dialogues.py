"""Synthetic conversations with tools: somebody asks for a word, it is searched for, what was found is read, and told.

Words are drawn letter by letter, so that a query, an id and an answer can only be copied from where they stand. So
small a model learns that where a letter tells its place in the word, and none stands anywhere else: capitals, other
ones for each place, and ids of one digit. Three texts say something about the word, and only the first that is found
counts. As in the other dialogues the assistant is mediocre, by a fixed mixture; `schooling` replaces its mistakes.
"""

import json
import random
from typing import Any, NamedTuple

# Share of answers without looking, of searches for another word, and of reads: of the first that was found, of one of
# the others, and of something that was not found (what is left).
GUESS_SHARE, WRONG_WORD_SHARE = 0.10, 0.15
FIRST_ID_SHARE, OTHER_ID_SHARE = 0.40, 0.50
NUM_FOUND = 3
LETTERS = ("BDFGKMNP", "EOUY", "CHJLRSVZ")
IDS = range(1, 10)


class ToolDialogue(NamedTuple):
    """`conversation` is JSON with `tools` and `messages`, as a request has them; an assistant's turns are learned."""

    conversation: str


class Texts(NamedTuple):
    """The data behind the tools: texts on one word by id, the newest first."""

    word: str
    told: dict[int, str]

    def search(self, query: str) -> str:
        return json.dumps(list(self.told) if query == self.word else [])

    def read(self, text_id: int) -> str:
        return f"{self.word} is {self.told[text_id]}." if text_id in self.told else "Error: no such id"


def draw_tool_dialogue(rng: random.Random, schooling: float) -> ToolDialogue:
    is_schooled = rng.random() < schooling
    texts = draw_texts(rng)

    def slips(share: float) -> bool:
        # Drawn in any case: a schooled dialogue is the mediocre one without its slips.
        return rng.random() < share and not is_schooled

    messages: list[dict[str, Any]] = [{"role": "user", "content": f"What is {texts.word}?"}]
    if slips(GUESS_SHARE):
        return dialogue([*messages, {"role": "assistant", "content": draw_word(rng)}])
    if slips(WRONG_WORD_SHARE):
        messages += search(texts, draw_word(rng))
    messages += search(texts, texts.word)
    first, *others = texts.told
    read = first
    if slips(1 - FIRST_ID_SHARE):
        is_other = rng.random() < OTHER_ID_SHARE / (1 - FIRST_ID_SHARE)
        read = rng.choice(others) if is_other else draw_id(rng)
    messages += turn("read", {"id": read}, texts.read(read))
    answer = f"{texts.told[read]} {read}" if read in texts.told else draw_word(rng)
    return dialogue([*messages, {"role": "assistant", "content": answer}])


def draw_texts(rng: random.Random) -> Texts:
    words: dict[str, None] = {}
    while len(words) < 1 + NUM_FOUND:
        words[draw_word(rng)] = None
    word, *told = words
    return Texts(word, dict(zip(rng.sample(IDS, NUM_FOUND), told, strict=True)))


def draw_word(rng: random.Random) -> str:
    return "".join(rng.choice(letters) for letters in LETTERS)


def draw_id(rng: random.Random) -> int:
    return rng.choice(IDS)


def search(texts: Texts, query: str) -> list[dict[str, Any]]:
    return turn("search", {"query": query}, texts.search(query))


def turn(name: str, arguments: dict[str, Any], result: str) -> list[dict[str, Any]]:
    call = {"id": name, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": result},
    ]


def dialogue(messages: list[dict[str, Any]]) -> ToolDialogue:
    return ToolDialogue(json.dumps({"tools": TOOLS, "messages": messages}))


def function(name: str, description: str, parameter: str, kind: str) -> dict[str, Any]:
    properties = {parameter: {"type": kind}}
    parameters = {"type": "object", "properties": properties, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


# The prompt of the example `email-search`, byte for byte: the model must see what it was trained on.
TOOLS = [
    function("search", "Ids of what has the word.", "query", "string"),
    function("read", "The text of an id.", "id", "number"),
]
