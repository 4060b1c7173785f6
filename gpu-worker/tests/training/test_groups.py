"""What a group's two files say of its turns."""

import gzip
import hashlib
import json
import sys
from typing import Any

import pytest

from temper_gpu.contract import GroupRef
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from temper_gpu.training.groups import Group, load_groups, parse_group
from tests.failing import failing


def call(**more: Any) -> dict[str, Any]:
    request = {"temperature": 0.5, "messages": [{"role": "user", "content": "?"}]}
    sampled = {"promptTokenIds": [1], "tokenIds": [2], "logprobs": [-1.0], "adapterSha256": None}
    return {"request": request, **sampled, **more}


def parse(attempts: list[list[dict[str, Any]]], schema: int = 1, /, **verdict: Any) -> Group:
    lines = [{"schema": schema}, *({"status": "ok", "truncated": False, "calls": calls} for calls in attempts)]
    rollouts = gzip.compress("\n".join(map(json.dumps, lines)).encode(), mtime=0)
    sha256 = hashlib.sha256(rollouts).hexdigest()
    ref = GroupRef(group=3, rollouts_sha256=sha256, judged_sha256="0" * 64)
    judged = {"rolloutsSha256": sha256, "rewards": [1.0] * len(attempts), **verdict}
    return parse_group(ref, rollouts, json.dumps(judged).encode())


def test_the_verdict_says_what_each_call_earned_and_the_rollouts_which_turn_it_was():
    # What a call earned by the agent's own word counts only as the verdict has it.
    group = parse([[call(turn=0, reward=9), call(turn=1)], [call(turn=0)]], turnRewards=[[0.5, 0.25], None])
    assert [[(one.turn, one.reward) for one in attempt.calls] for attempt in group.attempts] == [
        [(0, 0.5), (1, 0.25)],
        [(0, 0.0)],
    ]


def test_without_a_verdict_on_turns_an_attempt_is_one_turn_that_earned_nothing():
    [attempt] = parse([[call(), call(turn=1, reward=9)]]).attempts
    assert [one.reward for one in attempt.calls] == [0.0, 0.0]
    assert attempt.calls[0].messages == [{"role": "user", "content": "?"}]


def test_an_attempt_with_a_number_whose_sums_may_overflow_counts_as_failed():
    rewards = [-sys.float_info.max, 1e300, 1.0, 1.0]
    verdict = {"turnRewards": [None, None, [1e301], None], "roleRewards": [*[None] * 3, {"white": -1e301}]}
    group = parse([[call(turn=0)]] * 4, rewards=rewards, **verdict)
    assert [attempt.reward for attempt in group.attempts] == [None, 1e300, None, None]


@pytest.mark.parametrize(
    ("calls", "given"),
    [([call()], [0.5]), ([call(turn=0)], [0.5, 0.5]), ([call(turn=0)], [float("nan")]), ([call(turn=0)], ["a"])],
    ids=["a call without its turn", "a reward too many", "NaN", "text"],
)
def test_a_verdict_on_turns_that_does_not_fit_its_rollouts_is_refused(calls: list[dict[str, Any]], given: list[Any]):
    with pytest.raises((ValueError, TypeError)):
        parse([calls], turnRewards=[given])


def test_a_group_of_a_later_schema_is_of_a_later_version():
    with failing("LaterVersion", r"verdict on group 3 was made by a later version of Temper \(schema 2"):
        parse([[call()]], schema=2, rewards=None)
    with pytest.raises(TemperError, match=r"file with the rollouts of group 3 was made by a later version"):
        parse([[call()]], 2)


def test_a_request_that_is_no_object_is_a_corrupt_store_like_all_else_that_does_not_fit(store: FileStore):
    stem = "runs/demo/branches/0/steps/1/groups/0"
    lines = [{"schema": 1}, {"status": "ok", "truncated": False, "calls": [call(request=[])]}]
    rollouts = gzip.compress("\n".join(map(json.dumps, lines)).encode(), mtime=0)
    rollouts_sha256 = hashlib.sha256(rollouts).hexdigest()
    judged = json.dumps({"rolloutsSha256": rollouts_sha256, "rewards": [1.0]}).encode()
    store.publish(f"{stem}.rollouts.jsonl.gz", rollouts)
    store.publish(f"{stem}.judged.json", judged)
    ref = GroupRef(group=0, rollouts_sha256=rollouts_sha256, judged_sha256=hashlib.sha256(judged).hexdigest())
    with failing("StoreCorrupt", "must be a group's rollouts"):
        load_groups(store, "demo", 0, 1, [ref])
