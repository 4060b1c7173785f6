"""Attempts → training rows, by exact token ids.

A call whose prompt extends a row of its attempt exactly (prompt and answers so far) continues that row. Any other call
begins a new row: a fork if that conversation occurred before (a rewritten history, a repeated question), otherwise
another history (a sub-agent, a compacted context). All rows of an attempt share its advantages. Each sampled token is
trained once, in the row of the call that sampled it. In other rows' prompts it is context.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from temper_gpu.training.groups import Attempt, Call
from temper_gpu.training.packing import Begin, Row

TruncatedPolicy = Literal["mask", "penalise", "keep"]


@dataclass(frozen=True)
class Rows:
    """`attempts`: for each row, the index of its attempt in the step."""

    rows: list[Row]
    attempts: list[int]

    @property
    def num_trained_tokens(self) -> int:
        return sum(len(row.positions) for row in self.rows)

    @property
    def have_signal(self) -> bool:
        """Some trained token is better or worse than its group."""
        return any(map(any, (row.advantages for row in self.rows)))

    def of_attempts(self, attempts: Collection[int]) -> "Rows":
        kept = [(row, attempt) for row, attempt in zip(self.rows, self.attempts, strict=True) if attempt in attempts]
        return Rows([row for row, _ in kept], [attempt for _, attempt in kept])

    @property
    def num_forks(self) -> int:
        return sum(row.begins == "fork" for row in self.rows)

    @property
    def num_histories(self) -> int:
        """Rows besides the first one of each attempt."""
        return sum(row.begins == "history" for row in self.rows)


def build_rows(
    attempts: Sequence[Attempt], advantages: Sequence[Sequence[float] | None], truncated: TruncatedPolicy
) -> Rows:
    """`advantages`: None for a failed attempt. Truncated attempts are left out under `mask`."""
    rows: list[Row] = []
    places: list[int] = []
    for place, (attempt, of_attempt) in enumerate(zip(attempts, advantages, strict=True)):
        if of_attempt is not None and not (attempt.truncated and truncated == "mask"):
            found = attempt_rows(attempt.calls, of_attempt)
            rows.extend(found)
            places.extend([place] * len(found))
    return Rows(rows, places)


def attempt_rows(calls: Sequence[Call], advantages: Sequence[float]) -> list[Row]:
    """`advantages` by turn, or a single one for all turns."""
    rows: list[Row] = []
    for index, call in enumerate(calls):
        if not call.token_ids:
            continue
        row = _extended(rows, call.prompt_token_ids)
        if row is None:
            row = Row(list(call.prompt_token_ids), _begin(call, calls[:index]) if rows else "attempt")
            rows.append(row)
        else:
            row.token_ids.extend(call.prompt_token_ids[len(row.token_ids) :])
        _append_sampled(row, call, advantages[0 if len(advantages) == 1 else call.turn])
    return rows


def _append_sampled(row: Row, call: Call, advantage: float) -> None:
    row.positions.extend(range(len(row.token_ids), len(row.token_ids) + len(call.token_ids)))
    row.token_ids.extend(call.token_ids)
    row.calls.append((call.place, len(call.token_ids)))
    row.logprobs.extend(call.logprobs)
    row.temperatures.extend([call.temperature] * len(call.token_ids))
    row.advantages.extend([advantage] * len(call.token_ids))


def _begin(call: Call, before: Sequence[Call]) -> Begin:
    """A fork repeats the messages of an earlier prompt exactly; its answers may differ."""
    is_known = any(call.messages[: len(earlier.messages)] == earlier.messages for earlier in before)
    return "fork" if is_known else "history"


def _extended(rows: list[Row], prompt: list[int]) -> Row | None:
    """The longest row that the prompt begins with."""
    matching = [
        row for row in rows if len(row.token_ids) <= len(prompt) and prompt[: len(row.token_ids)] == row.token_ids
    ]
    return max(matching, key=lambda row: len(row.token_ids), default=None)
