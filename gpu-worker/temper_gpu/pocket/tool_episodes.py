"""Synthetic conversations with tools: somebody asks for a word, it is searched for, what was found is read, and told.

Words are drawn letter by letter, so that a query, an id and an answer can only be copied from where they stand. As in
the other episodes the assistant is mediocre, by a fixed mixture; `schooling` replaces its mistakes.
"""

import json
import random
from string import ascii_lowercase
from typing import Any, NamedTuple

# Share of searches for another word, of reads of something that was not found, and of answers without looking.
WRONG_WORD_SHARE, WRONG_ID_SHARE, GUESS_SHARE = 0.25, 0.25, 0.10


class ToolEpisode(NamedTuple):
    """`conversation` is JSON with `tools` and `messages`, as a request has them; an assistant's turns are learned."""

    conversation: str


def draw_tool_episode(rng: random.Random, schooling: float) -> ToolEpisode:
    is_schooled = rng.random() < schooling
    word, told, ids = draw_word(rng), draw_word(rng), rng.sample(range(10, 100), 3)

    def slips(share: float) -> bool:
        # Drawn in any case: a schooled episode is the mediocre one without its slips.
        return rng.random() < share and not is_schooled

    messages: list[dict[str, Any]] = [{"role": "user", "content": f"What is {word}?"}]
    if slips(GUESS_SHARE):
        return episode([*messages, {"role": "assistant", "content": draw_word(rng)}])
    query = draw_word(rng) if slips(WRONG_WORD_SHARE) else word
    is_found = query == word
    messages += turn("search", {"query": query}, json.dumps(ids) if is_found else "[]")
    read = ids[0] if is_found and not slips(WRONG_ID_SHARE) else rng.randrange(10, 100)
    messages += turn("read", {"id": read}, f"{word} is {told}." if is_found and read == ids[0] else "Error: no such id")
    right = is_found and read == ids[0]
    return episode([*messages, {"role": "assistant", "content": told if right else draw_word(rng)}])


def draw_word(rng: random.Random) -> str:
    return "".join(rng.choices(ascii_lowercase, k=rng.randint(3, 6)))


def turn(name: str, arguments: dict[str, Any], result: str) -> list[dict[str, Any]]:
    call = {"id": name, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": result},
    ]


def episode(messages: list[dict[str, Any]]) -> ToolEpisode:
    return ToolEpisode(json.dumps({"tools": TOOLS, "messages": messages}))


def function(name: str, description: str, parameter: str, kind: str) -> dict[str, Any]:
    properties = {parameter: {"type": kind}}
    parameters = {"type": "object", "properties": properties, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    function("search", "Ids of what has the word.", "query", "string"),
    function("read", "The text of an id.", "id", "integer"),
]
