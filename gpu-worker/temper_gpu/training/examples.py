"""Chats of a dataset → training rows.

An assistant's message is trained as if the model had sampled it: the prompt is what the engine would be asked with, and
the message ends with the token that ends an answer. So an example becomes rows as an attempt does (rows.py): where the
chat template writes the history of a later turn otherwise, that turn has a row of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from temper_gpu.contract import BlobRef, ExampleRendering
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel
from temper_gpu.store import Store
from temper_gpu.training.groups import Call
from temper_gpu.training.packing import Row
from temper_gpu.training.rows import attempt_rows

# The ids of a prompt, and those of the assistant's message that answers it, its end included.
Turn = tuple[tuple[int, ...], tuple[int, ...]]


class TurnReader(Protocol):
    """The assistant's messages of a chat, as its model's template writes them (server/chat_turns.py)."""

    def __call__(self, base: BaseModel, chat: dict[str, Any], rendering: ExampleRendering) -> list[Turn]: ...


def refuse_turns(base: BaseModel, chat: dict[str, Any], rendering: ExampleRendering) -> list[Turn]:
    """Of a trainer that was made for steps on groups alone."""
    raise TemperError("BadConfig", "this trainer must be given a reader of chats for supervised steps; pass read_turns")


@dataclass(frozen=True)
class Examples:
    """`num_overlong`: how many were longer than the limit. They are left out, or cut."""

    rows: list[Row]
    num_examples: int
    num_overlong: int

    @property
    def num_trained_tokens(self) -> int:
        return sum(len(row.positions) for row in self.rows)


class Dataset:
    """The chats of a blob, one a line."""

    def __init__(self, store: Store, ref: BlobRef) -> None:
        self._key = ref.key
        self._lines = store.get_blob(ref).splitlines()

    def __len__(self) -> int:
        return len(self._lines)

    def chat(self, index: int) -> dict[str, Any]:
        try:
            chat = orjson.loads(self._lines[index])
            if isinstance(chat, dict) and isinstance(chat.get("messages"), list):
                return chat
            reason = "it holds something else"
        except (IndexError, ValueError) as error:
            reason = str(error)
        raise TemperError(
            "StoreCorrupt", f"{self._key} must have a chat in line {index + 1} ({reason}); restore it from a copy"
        )


def read_examples(
    dataset: Dataset, indices: Iterable[int], base: BaseModel, rendering: ExampleRendering, read_turns: TurnReader
) -> Examples:
    """In order. An example that cannot be written is refused by its name."""
    limit = min(base.context_window, rendering.max_example_tokens or base.context_window)
    rows: list[Row] = []
    num_examples = num_overlong = 0
    for index in indices:
        chat = dataset.chat(index)
        of_example = _rows_of(_named(chat, index), base, chat, rendering, read_turns)
        num_examples += 1
        if any(len(row.token_ids) > limit for row in of_example):
            num_overlong += 1
            of_example = _within(limit, of_example, rendering, _named(chat, index))
        rows.extend(of_example)
    return Examples(rows, num_examples, num_overlong)


@dataclass(frozen=True)
class DatasetFacts:
    num_examples: int
    num_overlong: int
    num_tokens: int
    num_trained_tokens: int
    longest: int


def check_examples(
    dataset: Dataset, base: BaseModel, rendering: ExampleRendering, read_turns: TurnReader
) -> DatasetFacts:
    """Writes all of them, before a run begins. Refuses a dataset of which nothing is left to train."""
    require_reachable_limit(base, rendering.max_example_tokens)
    num_overlong = num_tokens = num_trained = longest = 0
    for index in range(len(dataset)):
        found = read_examples(dataset, [index], base, rendering, read_turns)
        lengths = [len(row.token_ids) for row in found.rows]
        num_overlong += found.num_overlong
        num_tokens += sum(lengths)
        num_trained += found.num_trained_tokens
        longest = max([longest, *lengths])
    if num_trained > 0:
        return DatasetFacts(len(dataset), num_overlong, num_tokens, num_trained, longest)
    raise TemperError(
        "BadConfig",
        f"some of the {len(dataset)} examples must fit into the limit of tokens, but all are longer; raise "
        "--max-example-tokens, or use a model with a longer context",
    )


def require_reachable_limit(base: BaseModel, max_tokens: int | None) -> None:
    if max_tokens is None or max_tokens <= base.context_window:
        return
    raise TemperError(
        "BadConfig",
        f"--max-example-tokens must be at most {base.context_window}, the context window of {base.name}, got "
        f"{max_tokens}; lower it, or leave it out",
    )


def _named(chat: dict[str, Any], index: int) -> str:
    return str(chat.get("id", f"line {index + 1}"))


def _rows_of(
    name: str, base: BaseModel, chat: dict[str, Any], rendering: ExampleRendering, read_turns: TurnReader
) -> list[Row]:
    try:
        turns = read_turns(base, chat, rendering)
    except TemperError as error:
        raise TemperError(error.type, f"{name} of the examples: {error.message}") from error
    return attempt_rows([_call(turn) for turn in turns], [1.0])


def _call(turn: Turn) -> Call:
    prompt, ids = map(list, turn)
    return Call(prompt, ids, [0.0] * len(ids), 1.0, None)


def _within(limit: int, rows: Sequence[Row], rendering: ExampleRendering, name: str) -> list[Row]:
    if rendering.overlong == "refuse":
        longest = max(len(row.token_ids) for row in rows)
        raise TemperError(
            "BadConfig",
            f"{name} of the examples must have at most {limit} tokens, it has {longest}; shorten it, or set "
            "overlong to mask (such examples are left out) or truncate (they are cut)",
        )
    return [] if rendering.overlong == "mask" else [cut for row in rows if (cut := _cut(row, limit)).positions]


def _cut(row: Row, limit: int) -> Row:
    count = sum(position < limit for position in row.positions)
    return Row(
        row.token_ids[:limit],
        row.begins,
        row.positions[:count],
        row.logprobs[:count],
        row.temperatures[:count],
        row.advantages[:count],
    )
