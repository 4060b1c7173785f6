"""Group files as the trainer sees them: rewards from the verdict, tokens from the rollouts, both hashes checked."""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from temper_gpu.commits.later_version import require_known_schema
from temper_gpu.contract import MAX_ROLLOUT_BYTES, STORE_KEYS, GroupRef, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.store import Store

# Unpacked; as much in `store/records/groups/trajectories.ts`. Two megabytes of a foreign store can unpack to two
# gigabytes.
_GZIP = 31
# Sums of larger numbers may overflow.
MOST_REWARD = 1e300


@dataclass(frozen=True)
class Call:
    """One answered model call: exactly the ids that went in and came out, and the sampler's log-probabilities."""

    prompt_token_ids: list[int]
    token_ids: list[int]
    logprobs: list[float]
    temperature: float
    adapter_sha256: str | None
    # Number of earlier turns of the attempt, and this turn's own reward; both 0 unless turns are rewarded.
    turn: int = 0
    reward: float = 0.0
    # The request's messages, as the agent wrote them: they show whether a history was rewritten.
    messages: list[Any] = field(default_factory=list)
    # The role that called, if the agent has roles.
    role: str | None = None
    # Index in the attempt's record.
    place: int = 0


@dataclass(frozen=True)
class Attempt:
    """`reward` is the total, rewards of turns included; None if the attempt failed and is not trained. `overlong_cost`
    is subtracted from the reward for its length. `role_rewards`: what each role earned, if the agent has roles
    (roles.py). `baseline`: what the reward is compared with; None: its group's mean. `place`: index in the group's
    record."""

    reward: float | None
    truncated: bool
    calls: list[Call]
    overlong_cost: float = 0.0
    role_rewards: Mapping[str, float] | None = None
    baseline: float | None = None
    place: int = 0

    @property
    def num_sampled_tokens(self) -> int:
        return sum(len(call.token_ids) for call in self.calls)


@dataclass(frozen=True)
class Group:
    """`sampled_by`: the adapter that its rollouts name, the main policy's; None in a file that names none. `branch`,
    `step`: the ones that it was dealt to."""

    index: int
    attempts: list[Attempt]
    sampled_by: str | None = None
    branch: int = 0
    step: int = 0

    @property
    def answered_by(self) -> set[str | None]:
        """The adapters that sampled its calls. Failed attempts do not count."""
        data = [attempt for attempt in self.attempts if attempt.reward is not None]
        return {call.adapter_sha256 for attempt in data for call in attempt.calls}


def require_groups(input: TrainInput) -> None:
    if not input.groups:
        raise TemperError(
            "BadConfig",
            f"step {input.step} of {input.run} must train groups or examples, got neither; run one version of Temper "
            "on all hosts",
        )


def load_groups(store: Store, run: str, branch: int, step: int, refs: list[GroupRef]) -> list[Group]:
    """The groups of a step in plan order. A group that was dealt to another step lies there."""
    place = {"run": run, "branch": branch, "step": step}
    return [_load_group(store, ref, place | ref.model_dump(include=_PLACE, exclude_none=True)) for ref in refs]


_PLACE = {"branch", "step", "group"}


def _load_group(store: Store, ref: GroupRef, place: dict[str, str | int]) -> Group:
    rollouts = store.read_verified(STORE_KEYS["rollouts"].format(**place), ref.rollouts_sha256)
    judged = store.read_verified(STORE_KEYS["judged"].format(**place), ref.judged_sha256)
    try:
        group = parse_group(ref, rollouts, judged)
        return replace(group, branch=int(place["branch"]), step=int(place["step"]))
    except (AttributeError, KeyError, TypeError, ValueError, EOFError, zlib.error) as error:
        stem = STORE_KEYS["group"].format(**place)
        raise TemperError(
            "StoreCorrupt", f"{stem} must be a group's rollouts and verdict, got {error!r}; start a new run"
        ) from error


def parse_group(ref: GroupRef, rollouts: bytes, judged: bytes) -> Group:
    header, *lines = (orjson.loads(line) for line in unpack(rollouts).splitlines() if line)
    verdict = orjson.loads(judged)
    require_known_schema(header, f"the file with the rollouts of group {ref.group}")
    require_known_schema(verdict, f"the file with the verdict on group {ref.group}")
    if verdict["rolloutsSha256"] != ref.rollouts_sha256:
        raise ValueError(f"a verdict on rollouts {verdict['rolloutsSha256']}, not on {ref.rollouts_sha256}")
    turn_rewards = verdict.get("turnRewards") or [None] * len(lines)
    costs = verdict.get("overlongCosts") or [0.0] * len(lines)
    role_rewards = verdict.get("roleRewards") or [None] * len(lines)
    of_attempts = zip(lines, verdict["rewards"], turn_rewards, costs, role_rewards, strict=True)
    attempts = [_attempt(place, *of_attempt) for place, of_attempt in enumerate(of_attempts)]
    return Group(ref.group, attempts, header.get("adapterSha256"))


def unpack(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=_GZIP)
    lines = unpacker.decompress(packed, MAX_ROLLOUT_BYTES + 1)
    if len(lines) > MAX_ROLLOUT_BYTES:
        raise ValueError(f"more than {MAX_ROLLOUT_BYTES >> 20} MiB when unpacked")
    if not unpacker.eof or unpacker.unused_data:
        raise EOFError("a file that is truncated or continues after its end")
    return lines


def _attempt(
    place: int,
    line: dict[str, Any],
    reward: float | None,
    turn_rewards: list[float] | None,
    cost: float,
    role_rewards: dict[str, float] | None,
) -> Attempt:
    """Combines a call's reward from the verdict (None: no rewards of turns) with its turn from the rollouts. An attempt
    with a number beyond MOST_REWARD counts as failed."""
    calls = line["calls"]
    if turn_rewards is not None and not all("turn" in call for call in calls):
        raise ValueError("rewards of turns, where calls do not say which turn they are")
    earned = [0.0] * len(calls) if turn_rewards is None else turn_rewards
    numbers = [reward or 0.0, cost, *earned, *(role_rewards or {}).values()]
    is_data = reward is not None and line["status"] == "ok" and all(abs(number) <= MOST_REWARD for number in numbers)
    return Attempt(
        float(reward) if is_data and reward is not None else None,
        line["truncated"],
        [_call(number, *both) for number, both in enumerate(zip(calls, earned, strict=True))],
        float(cost),
        role_rewards,
        place=place,
    )


def _call(place: int, call: dict[str, Any], earned: float) -> Call:
    prompt, sampled, logprobs = call["promptTokenIds"], call["tokenIds"], call["logprobs"]
    if not prompt or len(sampled) != len(logprobs):
        raise ValueError(
            f"a call with {len(prompt)} prompt tokens, {len(sampled)} sampled tokens, {len(logprobs)} log-probabilities"
        )
    if not math.isfinite(earned):
        raise ValueError(f"a turn that earned {earned}")
    request = call["request"]
    return Call(
        prompt,
        sampled,
        logprobs,
        float(request.get("temperature", 1.0)),
        call["adapterSha256"],
        call.get("turn", 0),
        float(earned),
        request.get("messages", []),
        call.get("role"),
        place,
    )
