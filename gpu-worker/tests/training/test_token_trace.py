"""The file with what a step computed of each sampled token: against plain torch."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load
from torch import Tensor
from torch.func import functional_call

from temper_gpu.commits.checkpoints import read_parent
from temper_gpu.contract import STORE_KEYS, TOKEN_TRACE_METADATA, Checkpoint, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore, Store
from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.packing import Row
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.ranks import ALONE
from temper_gpu.training.rows import Rows
from temper_gpu.training.token_trace import TokenTrace
from temper_gpu.training.tokens import tokens_of
from tests.training.samples import (
    initialise_input,
    merged_weights,
    mixed_input,
    plain_logprobs,
    played_by_roles,
    sampled_by,
    sampled_groups,
    tiny_model,
    train_config,
    train_input,
    with_logprobs,
)
from tests.training.trainers import never, new_trainer

make_deterministic(1)
# Of float16, and of what is near zero there.
HALF = (1e-3, 1e-5)
SHARED = Path(__file__).parents[3] / "test" / "store" / "records" / "token-trace.json"
Traced = dict[tuple[int, ...], dict[str, Tensor]]


def begin(store: FileStore, run: str = "demo", **changes: Any) -> Checkpoint:
    return new_trainer(store).initialise(initialise_input(run, **changes)).commit.checkpoint(run)


def key_of(work: TrainInput) -> str:
    return STORE_KEYS["tokens"].format(run=work.run, branch=work.branch, step=work.step)


def train(store: FileStore, work: TrainInput) -> Traced:
    new_trainer(store).train(work, never)
    return read(store, work)


def read(store: Store, work: TrainInput) -> Traced:
    """Columns by branch, step, group, attempt and call."""
    columns = load(store.read(key_of(work)) or b"")
    places = {"tokens": 0, "advantages": 0}
    found: Traced = {}
    for *call, tokens, advantages in columns["calls"].tolist():
        ends = {"tokens": places["tokens"] + tokens, "advantages": places["advantages"] + advantages}
        of_call = {
            name: columns[name][places["tokens"] : ends["tokens"]].float()
            for name in ("logRatios", "entropies", "mask")
        }
        of_call["advantages"] = columns["advantages"][places["advantages"] : ends["advantages"]].expand(tokens)
        found[tuple(call)] = of_call
        places = ends
    assert places["tokens"] == len(columns["mask"])
    assert places["advantages"] == len(columns["advantages"])
    return found


def about(store: FileStore, work: TrainInput) -> dict[str, object]:
    file = store._path(key_of(work))
    with safe_open(str(file), "pt") as opened:
        assert list(opened.metadata()) == [TOKEN_TRACE_METADATA]
        return json.loads(opened.metadata()[TOKEN_TRACE_METADATA])


@torch.no_grad()
def plain_entropies(adapter: dict[str, Tensor], call: Call) -> Tensor:
    ids = torch.tensor([call.prompt_token_ids + call.token_ids])
    logits_TV = functional_call(tiny_model(), merged_weights(adapter), (ids,)).logits[0]
    probabilities_TV = (logits_TV[len(call.prompt_token_ids) - 1 : -1] / call.temperature).softmax(-1)
    return -(probabilities_TV * probabilities_TV.log()).sum(-1)


def expected(adapter: dict[str, Tensor], group: Group, step: int = 1, number: int | None = None) -> Traced:
    """Of a group whose advantages are rewards minus their mean."""
    mean = sum(attempt.reward or 0 for attempt in group.attempts) / len(group.attempts)
    return {
        (0, step, group.index if number is None else number, place, index): {
            "logRatios": (plain_logprobs(adapter, call) - torch.tensor(call.logprobs)).detach(),
            "entropies": plain_entropies(adapter, call),
            "advantages": torch.full((len(call.token_ids),), (attempt.reward or 0) - mean),
            "mask": torch.ones(len(call.token_ids)),
        }
        for place, attempt in enumerate(group.attempts)
        for index, call in enumerate(attempt.calls)
    }


def require_same(found: Traced, wanted: Traced) -> None:
    rtol, atol = HALF
    assert found.keys() == wanted.keys()
    for call, columns in wanted.items():
        for name, values in columns.items():
            torch.testing.assert_close(found[call][name], values, rtol=rtol, atol=atol, msg=f"{call} {name}")


def adapter_of(store: FileStore, checkpoint: Checkpoint) -> dict[str, Tensor]:
    return load(store.get_blob(read_parent(store, checkpoint).manifest.adapter))


def blurred(groups: list[Group]) -> list[Group]:
    """Log-probabilities that differ visibly from the trainer's."""
    return [with_logprobs(g, lambda call: [p + 0.01 * n for n, p in enumerate(call.logprobs, 1)]) for g in groups]


@pytest.mark.numerics
@pytest.mark.parametrize("packing", ["rows", "tree"])
@pytest.mark.parametrize("micro_batch_tokens", [1, 10**6])
def test_each_tokens_columns_are_those_of_plain_torch(store: FileStore, packing: str, micro_batch_tokens: int):
    parent = begin(store)
    groups = blurred(sampled_groups(parent.adapter_sha256, shared=20))
    config = train_config(packing=packing, micro_batch_tokens=micro_batch_tokens, max_logprob_mismatch=10.0)
    work = train_input(store, parent, groups, train=config)
    adapter = adapter_of(store, parent)
    wanted = expected(adapter, groups[0]) | expected(adapter, groups[1])
    require_same(train(store, work), wanted)
    assert about(store, work) == {"schema": 1, "isBeforeUpdates": True}


@pytest.mark.numerics
def test_what_was_scored_before_several_updates_is_recorded_and_so_is_the_first_pass_otherwise(store: FileStore):
    parent = begin(store)
    groups = sampled_groups(parent.adapter_sha256, num_groups=3)
    several: dict[str, Any] = {"passes": 2, "mini_batches": 3}
    adapter = adapter_of(store, parent)
    wanted = {call: columns for group in groups for call, columns in expected(adapter, group).items()}
    scored = train_config(**several, correction="token-truncate", correction_cap=2.0)
    work = train_input(store, parent, groups, train=scored)
    require_same(train(store, work), wanted)
    assert about(store, work)["isBeforeUpdates"] is True
    unscored = train_input(store, begin(store, "unscored"), groups, train=train_config(**several))
    found = train(store, unscored)
    assert about(store, unscored)["isBeforeUpdates"] is False
    # Of one group no update had happened; the others had moved by then.
    moved = {call[2] for call, columns in found.items() if columns["logRatios"].abs().max() > 1e-4}
    assert len(moved) == 2
    assert all(columns["mask"].all() for columns in found.values())


@pytest.mark.numerics
def test_groups_of_older_samplers_have_ratios_to_the_policy_that_sampled_them_and_their_own_place(store: FileStore):
    policies = [begin(store)]
    for step in (1, 2):
        work = train_input(store, policies[-1], [sampled_by(store, policies[-1], step)], learning_rate=1e-2)
        policies.append(new_trainer(store).train(work, never).commit.checkpoint("demo"))
    mixed = mixed_input(store, policies)
    adapter = adapter_of(store, policies[-1])
    groups = [sampled_by(store, policy, 3 + place) for place, policy in enumerate(policies)]
    found = train(store, mixed)
    wanted: Traced = {}
    for step, group in enumerate(groups, 1):
        wanted |= expected(adapter, group, step, number=9)
    require_same(found, wanted)
    ratios = {call[1]: columns["logRatios"].abs().max() for call, columns in found.items()}
    assert ratios[1] > 1e-3
    assert ratios[3] < 1e-4


def test_each_role_has_its_calls_under_their_numbers_in_the_record(store: FileStore):
    parent = begin(store, policies=["b"])
    roles = {"white": "main", "black": "b"}
    groups = played_by_roles(parent, roles, frozen="past")
    config = train_config(baseline="rae")
    found = train(store, train_input(store, parent, groups, roles=roles, train=config))
    trained = {
        (0, 1, group.index, place, index): len(call.token_ids)
        for group in groups
        for place, attempt in enumerate(group.attempts)
        for index, call in enumerate(attempt.calls)
        if call.role != "past"
    }
    assert {call: len(columns["mask"]) for call, columns in found.items()} == trained


def test_failed_and_masked_attempts_are_left_out_and_do_not_shift_the_others(store: FileStore):
    parent = begin(store)
    [group] = sampled_groups(parent.adapter_sha256, num_groups=1)
    first, second, third, fourth = group.attempts
    attempts = [replace(first, reward=None), replace(second, truncated=True), third, replace(fourth, reward=7.0)]
    work = train_input(store, parent, [replace(group, attempts=attempts)], train=train_config())
    assert {call[3] for call in train(store, work)} == {2, 3}


@pytest.mark.numerics
def test_masked_tokens_are_computed_but_not_trained_and_a_penalty_makes_advantages_of_single_tokens(store: FileStore):
    parent = begin(store)
    groups = blurred(sampled_groups(parent.adapter_sha256))
    changes: dict[str, Any] = {"correction": "token-mask", "correction_cap": 1.025, "max_logprob_mismatch": 10.0}
    found = train(store, train_input(store, parent, groups, train=train_config(**changes)))
    for columns in found.values():
        torch.testing.assert_close(columns["mask"], (columns["logRatios"].abs() < 0.0247).float())
    moved = new_trainer(store).train(
        train_input(store, begin(store, "moved"), sampled_groups(parent.adapter_sha256)), never
    )
    config = train_config(kl_coefficient=0.5, kl_as="reward", max_logprob_mismatch=10.0)
    groups = sampled_groups(moved.commit.checkpoint("moved").adapter_sha256, 2)
    next_step = train_input(store, moved.commit.checkpoint("moved"), groups, train=config)
    assert any(len(set(columns["advantages"].tolist())) > 1 for columns in train(store, next_step).values())


def test_a_step_whose_every_attempt_is_masked_has_an_empty_file(store: FileStore):
    parent = begin(store)
    groups = [
        replace(group, attempts=[replace(attempt, truncated=True) for attempt in group.attempts])
        for group in sampled_groups(parent.adapter_sha256)
    ]
    assert train(store, train_input(store, parent, groups)) == {}


def unlike(store: FileStore, **changes: object) -> TrainInput:
    """A step whose first call has log-probabilities that no policy gives."""
    parent = begin(store)
    [group] = sampled_groups(parent.adapter_sha256, num_groups=1)
    attempt, *others = group.attempts
    call, *later = attempt.calls
    far = replace(attempt, calls=[replace(call, logprobs=[1e6] * len(call.token_ids)), *later])
    return train_input(store, parent, [replace(group, attempts=[far, *others])], train=train_config(**changes))


def test_a_ratio_beyond_half_precision_is_its_largest_number(store: FileStore):
    found = train(store, unlike(store, max_logprob_mismatch=1e9))
    assert set(found[0, 1, 0, 0, 0]["logRatios"].tolist()) == {-65504}


def test_a_step_that_is_refused_leaves_no_file(store: FileStore):
    work = unlike(store)
    with pytest.raises(TemperError, match="same log-probabilities"):
        train(store, work)
    assert store.read(key_of(work)) is None


def test_the_file_is_the_one_that_typescript_reads():
    """`test/store/records/groups/token-trace.test.ts` reads it."""
    attempts = [Attempt(1.0, False, [], place=place) for place in (0, 3)]
    groups = [Group(0, attempts), Group(5, attempts[1:], branch=1, step=2)]
    rows = [
        Row([1, 2, 3, 4], "attempt", [1, 2, 3], [0.0] * 3, [1.0] * 3, [0.0] * 3, [(0, 1), (2, 2)]),
        Row([1, 2], "attempt", [1], [0.0], [1.0], [0.0], [(1, 1)]),
        Row([1, 2, 3], "attempt", [1, 2], [0.0] * 2, [1.0] * 2, [0.0] * 2, [(0, 2)]),
    ]
    trace = TokenTrace()
    traced = trace.begin(groups, Rows(rows, [0, 1, 2]))
    tokens = tokens_of(Rows(rows, [0, 1, 2]))
    traced.scored(torch.tensor([0.5, -0.25, 1e-6, 1e9, 0.0, -1.5]), torch.tensor([0, 0.125, 2, 3.14159, 4, 5]))
    advantages_F = torch.tensor([0.1, 1.5, 1.5, -2.0, 0.75, 0.5])
    kept_F = torch.tensor([True, True, False, True, True, True])
    traced.end_update(replace(tokens, advantages_F=advantages_F, kept_F=kept_F), None, ALONE)
    known = json.loads(SHARED.read_text())
    assert base64.b64encode(trace.file()).decode() == known["base64"]


def test_without_a_policy_there_are_no_calls():
    assert load(TokenTrace().file())["calls"].shape == (0, 7)
