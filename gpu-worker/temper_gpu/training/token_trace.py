"""Numbers that a step computed of each sampled token, for display: a file beside the commit, outside every hash.

No pass is made for it. Log-probabilities are those that were scored before the first update, or else those of the first
update that has the token. `store/records/groups/token-trace.ts` reads the file.
Shapes: F sampled tokens of a policy's rows, or of an update; N those of one micro-batch; C calls, one after the other.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from safetensors.torch import save
from torch import Tensor

from temper_gpu.contract import RECORD_SCHEMA, TOKEN_TRACE_METADATA
from temper_gpu.training.groups import Group
from temper_gpu.training.ranks import Ranks
from temper_gpu.training.rows import Rows
from temper_gpu.training.tokens import Tokens

LARGEST_HALF = torch.finfo(torch.float16).max
# Numbers in a call's row before its number of advantages.
CALL_FIELDS = 6


class PassScores:
    """Scores of an update's tokens. They stay on the device until the end, because reading one waits for it."""

    def __init__(self, num_tokens: int, device: torch.device) -> None:
        self._found_2F = torch.zeros(2, num_tokens, device=device, dtype=torch.float32)

    @torch.no_grad()
    def add(self, places_N: Tensor, log_ratio_N: Tensor, entropy_N: Tensor) -> None:
        self._found_2F[:, places_N] = torch.stack([log_ratio_N, entropy_N]).float()

    def read(self, ranks: Ranks) -> Tensor:
        """Each place belongs to one rank; the others have zeros there."""
        return ranks.add(self._found_2F.cpu())


class PolicyTrace:
    """One policy's tokens, in the order of its rows. NaN: the trainer never scored the token."""

    def __init__(self, groups: Sequence[Group], rows: Rows) -> None:
        self._calls = list(_calls_of(groups, rows))
        num_tokens = rows.num_trained_tokens
        self._scores_2F = torch.full((2, num_tokens), torch.nan, dtype=torch.float32)
        self._advantages_F = torch.zeros(num_tokens, dtype=torch.float32)
        self._trained_F = torch.zeros(num_tokens, dtype=torch.bool)
        self._num_updates = 0
        self.is_before_updates = True

    def scored(self, log_ratios_F: Tensor, entropy_F: Tensor) -> None:
        """Takes the scores of all tokens, before the first update."""
        self._scores_2F = torch.stack([log_ratios_F, entropy_F]).float()

    def begin_update(self, tokens: Tokens, device: torch.device) -> PassScores | None:
        """None if all of its tokens have been scored."""
        is_new = bool(self._scores_2F[0, tokens.places_F].isnan().any())
        return PassScores(len(tokens.places_F), device) if is_new else None

    def end_update(self, tokens: Tokens, scores: PassScores | None, ranks: Ranks) -> None:
        places_F = tokens.places_F
        self._advantages_F[places_F] = tokens.advantages_F.float()
        self._trained_F[places_F] |= tokens.kept_F
        if scores is not None:
            self.is_before_updates &= self._num_updates == 0
            before_2F = self._scores_2F[:, places_F]
            self._scores_2F[:, places_F] = torch.where(before_2F.isnan(), scores.read(ranks), before_2F)
        self._num_updates += 1

    def columns(self) -> dict[str, Tensor]:
        """Parallel to the calls: one advantage of a call whose tokens have the same, which is the rule."""
        sizes_C = torch.tensor([size for *_, size in self._calls], dtype=torch.int64)
        calls_F = torch.arange(len(sizes_C)).repeat_interleave(sizes_C)
        firsts_C = sizes_C.cumsum(0) - sizes_C
        advantages_F = self._advantages_F
        differs_F = advantages_F != advantages_F[firsts_C][calls_F]
        differs_C = torch.zeros_like(sizes_C).index_add(0, calls_F, differs_F.long()) > 0
        is_kept_F = differs_C[calls_F].index_fill(0, firsts_C, True)
        calls_C = torch.tensor(self._calls, dtype=torch.int32).reshape(-1, CALL_FIELDS)
        num_advantages_C = sizes_C.where(differs_C, 1).int()
        log_ratios_F, entropies_F = self._scores_2F.clamp(-LARGEST_HALF, LARGEST_HALF).half()
        return {
            "calls": torch.cat([calls_C, num_advantages_C[:, None]], 1),
            "logRatios": log_ratios_F,
            "entropies": entropies_F,
            "advantages": advantages_F[is_kept_F],
            "mask": self._trained_F.to(torch.uint8),
        }


def _calls_of(groups: Sequence[Group], rows: Rows) -> Iterator[tuple[int, ...]]:
    """Branch, step and number of the group (as it was dealt), attempt, call, number of tokens."""
    places = ((group, (group.branch, group.step, group.index)) for group in groups)
    attempts = [(*place, attempt.place) for group, place in places for attempt in group.attempts]
    for row, attempt in zip(rows.rows, rows.attempts, strict=True):
        for call, num_tokens in row.calls:
            yield (*attempts[attempt], call, num_tokens)


@dataclass
class TokenTrace:
    """All policies that a step trains."""

    policies: list[PolicyTrace] = field(default_factory=list)

    def begin(self, groups: Sequence[Group], rows: Rows) -> PolicyTrace:
        self.policies.append(PolicyTrace(groups, rows))
        return self.policies[-1]

    def file(self) -> bytes:
        """Metadata have one key, because several are written in a random order."""
        found = [policy.columns() for policy in self.policies or [PolicyTrace([], Rows([], []))]]
        columns = {name: torch.cat([each[name] for each in found]) for name in found[0]}
        is_before = all(policy.is_before_updates for policy in self.policies)
        about = json.dumps({"schema": RECORD_SCHEMA, "isBeforeUpdates": is_before}, separators=(",", ":"))
        return save(columns, metadata={TOKEN_TRACE_METADATA: about})
