"""Chats of a dataset → training rows.

An assistant's message is trained as if the model had sampled it: the prompt is the engine's, and the message ends with
the end-of-turn token. So an example becomes rows like an attempt (rows.py): a turn whose history the chat template
renders differently has a row of its own.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from temper_gpu.contract import BlobRef, ExampleRendering
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel
from temper_gpu.store import Store
from temper_gpu.training.groups import Call
from temper_gpu.training.packing import Row
from temper_gpu.training.rows import attempt_rows

# Digits of a number in an error.
MAX_SHOWN = 100
# The ids of a prompt, and those of the assistant's message that answers it, its end included.
Turn = tuple[tuple[int, ...], tuple[int, ...]]


class TurnReader(Protocol):
    """Tokenizes the assistant's messages of a chat by its model's template (server/chat_turns.py)."""

    def __call__(self, base: BaseModel, chat: dict[str, Any], rendering: ExampleRendering) -> list[Turn]: ...


def refuse_turns(base: BaseModel, chat: dict[str, Any], rendering: ExampleRendering) -> list[Turn]:
    """The reader of a trainer for steps on groups alone."""
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

    def require_finite_numbers(self, index: int) -> None:
        """Refuses numbers of a chat that a template would write as Infinity. Arguments of calls may be text."""
        finite: Any = {"parse_float": _finite, "parse_int": _finite}
        chat = json.loads(self._lines[index], **finite)
        calls = [calls for message in chat["messages"] if isinstance(calls := message.get("tool_calls"), list)]
        for call in chain(*calls):
            function = call.get("function") if isinstance(call, dict) else None
            arguments = function.get("arguments") if isinstance(function, dict) else None
            with suppress(ValueError, RecursionError):
                json.loads(arguments if isinstance(arguments, str) else "{}", **finite)

    def chat(self, index: int) -> dict[str, Any]:
        try:
            chat = json.loads(self._lines[index])
            if isinstance(chat, dict) and isinstance(chat.get("messages"), list):
                return chat
            reason = "it holds something else"
        except (IndexError, ValueError) as error:
            reason = str(error)
        raise TemperError(
            "StoreCorrupt", f"{self._key} must have a chat in line {index + 1} ({reason}); restore it from a copy"
        )


class Datasets:
    """Caches the last dataset: all steps of a run read the same one, and splitting it can take longer than a step."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: tuple[str, Dataset] | None = None

    def open(self, ref: BlobRef) -> Dataset:
        if self._last is None or self._last[0] != ref.sha256:
            self._last = None
            self._last = (ref.sha256, Dataset(self._store, ref))
        return self._last[1]

    def forget(self) -> None:
        self._last = None


def read_examples(
    dataset: Dataset, indices: Iterable[int], base: BaseModel, rendering: ExampleRendering, read_turns: TurnReader
) -> Examples:
    """Reads examples in order. The error for an invalid one names it."""
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
    """Reads all examples before a run begins. Refuses a dataset without any trained token."""
    require_reachable_limit(base, rendering.max_example_tokens)
    num_overlong = num_tokens = num_trained = longest = 0
    for index in range(len(dataset)):
        with _naming(_named(dataset.chat(index), index)):
            dataset.require_finite_numbers(index)
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


def _finite(text: str) -> float:
    number = float(text)
    if math.isfinite(number):
        return number
    raise TemperError(
        "BadConfig",
        f"a number must be below 1.8e308 in size, as chat templates write it, but {text[:MAX_SHOWN]} is not; write it "
        "as a string",
    )


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except TemperError as error:
        raise TemperError(error.type, f"{name} of the examples: {error.message}") from error


def _rows_of(
    name: str, base: BaseModel, chat: dict[str, Any], rendering: ExampleRendering, read_turns: TurnReader
) -> list[Row]:
    with _naming(name):
        turns = read_turns(base, chat, rendering)
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
