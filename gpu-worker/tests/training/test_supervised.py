"""Supervised steps: their numbers against a plain computation, their limits, and their commits."""

import json
import math
import re
import threading
from contextlib import nullcontext
from math import fsum
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from temper_gpu.commits.checkpoints import manifest_key
from temper_gpu.contract import BlobRef, Checkpoint, SupervisedStep, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel
from temper_gpu.server.chat_turns import ChatTurns
from temper_gpu.store import FileStore
from temper_gpu.training import supervised
from temper_gpu.training.examples import Dataset, Datasets, check_examples, read_examples
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.policy import TrainablePolicy
from temper_gpu.training.ranks import StepCancelled
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.scoring import layout_of
from temper_gpu.training.supervised import SupervisedInputs, Supervision, backward, load_supervision, supervised_step
from temper_gpu.training.trainer import Trainer
from tests.failing import failing
from tests.server.templates import FORGETFUL, loaded_pocket, pocket
from tests.training.agreement import first_moments, gradients, require_same_gradients
from tests.training.samples import initialise_input, load_adapter, lora, open_folder, train_config
from tests.training.trainers import never, step_at_once

make_deterministic(1)
TURNS = ChatTurns(lambda sha256: "")
# Three and two trained tokens with their ends, then a chat of two turns.
CHATS = [
    [("7*8=", "56")],
    [("2*3=", "6")],
    [("7*8=", "54"), ("2*2=", "4")],
    [("12*12=", "144")],
]


def messages(chat: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [m for q, a in chat for m in ({"role": "user", "content": q}, {"role": "assistant", "content": a})]


def put_dataset(store: FileStore, chats: list[list[tuple[str, str]]] = CHATS) -> BlobRef:
    lines = [{"id": f"line {n}", "messages": messages(chat)} for n, chat in enumerate(chats, 1)]
    return store.put_blob("".join(f"{json.dumps(line)}\n" for line in lines).encode())


def step_of(store: FileStore, examples: list[int], **changes: Any) -> SupervisedStep:
    rendering = {"dataset": put_dataset(store), "turns": "all", "overlong": "mask", **changes.pop("rendering", {})}
    return SupervisedStep.model_validate({"rendering": rendering, "examples": examples, **changes})


class PocketLibrary:
    def get(self, name: str) -> BaseModel:
        return loaded_pocket()


@pytest.fixture
def trainer(store: FileStore) -> Trainer:
    return new_trainer(store)


def new_trainer(store: FileStore) -> Trainer:
    return Trainer(PocketLibrary(), store, threading.Lock(), read_turns=TURNS)


@pytest.fixture
def parent(trainer: Trainer) -> Checkpoint:
    return begin(trainer)


def begin(trainer: Trainer) -> Checkpoint:
    return trainer.initialise(initialise_input(base_model="pocket")).commit.checkpoint("demo")


def work_of(parent: Checkpoint, step: SupervisedStep, **changes: Any) -> TrainInput:
    work = TrainInput(
        run="demo",
        branch=0,
        step=parent.step + 1,
        base_model="pocket",
        parent=parent,
        groups=[],
        learning_rate=1e-2,
        seed=3,
        train=train_config(),
        supervised=step,
        inputs_sha256="2" * 64,
    )
    return work.model_copy(update=changes)


class CountingStore(FileStore):
    """How often each blob was read."""

    def get_blob(self, ref: BlobRef) -> bytes:
        self.reads = [*getattr(self, "reads", []), ref.sha256]
        return super().get_blob(ref)


def test_a_dataset_is_read_once_for_all_steps_in_a_row(tmp_path: Path):
    store = CountingStore(tmp_path)
    trainer = new_trainer(store)
    parent = begin(trainer)
    for examples in ([0], [1], [2]):
        parent = trainer.train(work_of(parent, step_of(store, examples)), never).commit.checkpoint("demo")
    assert store.reads.count(put_dataset(store).sha256) == 1
    # Of another one its own lines are trained: two tokens in the first, not three.
    other = step_of(store, [0], rendering={"dataset": put_dataset(store, CHATS[1:])})
    assert trainer.train(work_of(parent, other), never).commit.manifest.metrics["trainedTokens"] == 2


def plain_nats(base: BaseModel, chat: list[tuple[str, str]]) -> list[float]:
    """Of each trained token, by the template's text and transformers alone."""
    text = "".join(f"<|user|>{question}<|end|><|assistant|>{answer}<|end|>" for question, answer in chat)
    ids: list[int] = base.tokenizer(text, add_special_tokens=False)["input_ids"]
    opened, ended = (base.tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in ("assistant", "end"))
    with torch.no_grad():
        logprobs = torch.log_softmax(base.instantiate("eager")(torch.tensor([ids])).logits[0].double(), -1)
    nats, is_trained = [], False
    for place, token in enumerate(ids):
        if is_trained:
            nats.append(-logprobs[place - 1, token].item())
        is_trained = (is_trained or token == opened) and token != ended
    return nats


def fresh_policy(trainer: Trainer) -> TrainablePolicy:
    parent = trainer.initialise(initialise_input(base_model="pocket")).commit
    base = trainer._load_base("demo", parent)
    return trainer._load_policy(parent, base, train_config(lora=lora()), "main").policy


@pytest.mark.numerics
def test_the_loss_is_the_mean_of_nats_over_all_trained_tokens_of_the_step(store: FileStore, trainer: Trainer):
    policy = fresh_policy(trainer)
    work = load_supervision(
        Datasets(store), step_of(store, [0, 2, 3], heldOut=[1], scoresParent=True), policy.base, TURNS
    )
    metrics = supervised_step(policy, SupervisedInputs(work, train_config(), 1e-2))
    nats = [nat for chat in (CHATS[0], CHATS[2], CHATS[3]) for nat in plain_nats(policy.base, chat)]
    assert metrics["trainedTokens"] == len(nats) == 3 + 3 + 2 + 4
    assert metrics["loss"] == pytest.approx(fsum(nats) / len(nats), rel=1e-5)
    held = plain_nats(policy.base, CHATS[1])
    assert metrics["heldOutLossBefore"] == pytest.approx(fsum(held) / len(held), rel=1e-5)
    assert metrics["heldOutLoss"] != metrics["heldOutLossBefore"]
    assert (metrics["examples"], metrics["heldOutExamples"]) == (3, 1)


@pytest.mark.numerics
@pytest.mark.parametrize(("tokens", "packing"), [(1, "rows"), (24, "rows"), (64, "tree"), (4096, "tree")])
def test_micro_batches_and_packing_change_rounding_alone(
    store: FileStore, trainer: Trainer, tokens: int, packing: str | None
):
    policy = fresh_policy(trainer)
    # The base model's own answers first: B of a fresh adapter is zero, and so is the gradient of A.
    work = load_supervision(Datasets(store), step_of(store, [0, 1, 2, 3]), policy.base, TURNS).trained
    supervised_step(policy, SupervisedInputs(Supervision(work, None, False), train_config(), 1e-2))
    whole, cut = (train_config(micro_batch_tokens=4096), train_config(micro_batch_tokens=tokens, packing=packing))
    found = []
    for config in (whole, cut):
        backward(policy, work, config, layout_of(policy, config), never)
        found.append(gradients(policy))
    require_same_gradients(*reversed(found))


@pytest.mark.numerics
def test_a_model_that_goes_another_way_to_attention_is_trained_row_by_row_and_says_so(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
):
    policy = TrainablePolicy(loaded_pocket(), lora())
    monkeypatch.setattr(policy, "_attention_inputs", lambda batch, is_recomputed: {})
    work = load_supervision(Datasets(store), step_of(store, [0, 2]), policy.base, TURNS)
    found = supervised_step(policy, SupervisedInputs(work, train_config(packing="tree"), 0.0))
    assert (found["packedAsRows"], found["sharedTokens"]) == (1, 0)
    assert "packedAsRows" not in supervised_step(policy, SupervisedInputs(work, train_config(packing="rows"), 0.0))


@pytest.mark.numerics
def test_two_ranks_come_to_what_one_does(store: FileStore, trainer: Trainer, tmp_path: Path):
    policy = fresh_policy(trainer)
    step = step_of(store, [0, 2, 3], heldOut=[1], scoresParent=True)
    work = load_supervision(Datasets(store), step, policy.base, TURNS)
    expected = supervised_step(policy, SupervisedInputs(work, train_config(), 1e-2))
    policies = [TrainablePolicy(policy.base, lora(), Joined(rank, 2)) for rank in range(2)]
    start = load_adapter(store, trainer.initialise(initialise_input(base_model="pocket")).commit.manifest).tensors
    inputs = SupervisedInputs(work, train_config(), 1e-2)
    found = step_at_once(policies, start, tmp_path, lambda policy: supervised_step(policy, inputs))
    assert found[0] == found[1]
    # Padding hangs on the micro-batches, of which each rank has some.
    same = expected.keys() - {"computedTokens"}
    assert {name: found[0][name] for name in same} == pytest.approx({name: expected[name] for name in same}, rel=1e-5)
    require_same_gradients(*(first_moments(each.optimizer_tensors()) for each in (policies[0], policy)))
    for name, tensor in policies[0].adapter_tensors().items():
        assert policies[1].adapter_tensors()[name].equal(tensor)


@given(st.floats(allow_nan=False), st.integers(), st.sampled_from(["repr", "json", ".3f", "E", "19.90", "1e5", "-0"]))
def test_a_line_is_refused_only_for_a_number_without_a_value(number: float, whole: int, form: str):
    written = {"repr": repr(number), "json": json.dumps(whole), "19.90": "19.90", "1e5": "1e5", "-0": "-0"}
    digits = (written.get(form) or format(number, form)).lower().replace("inf", "1e999")
    dataset = Dataset.__new__(Dataset)
    for arguments in (digits, json.dumps(digits)):
        call = f'{{"function": {{"name": "look", "arguments": {arguments}}}}}'
        dataset._lines = [f'{{"messages": [{{"role": "assistant", "tool_calls": [{call}]}}]}}'.encode()]
        is_finite = math.isfinite(float(digits))
        with nullcontext() if is_finite else failing("BadConfig", re.escape(f"but {digits} is not")):
            dataset.require_finite_numbers(0)


def test_an_example_over_the_limit_is_left_out_cut_or_refused_and_counted(store: FileStore):
    base = pocket()
    [whole] = read_examples(Dataset(store, put_dataset(store)), [2], base, step_of(store, [2]).rendering, TURNS).rows

    def read(overlong: str, most: int):
        step = step_of(store, [1, 2], rendering={"overlong": overlong, "maxExampleTokens": most})
        return read_examples(Dataset(store, step.rendering.dataset), step.examples, base, step.rendering, TURNS)

    length = len(whole.token_ids)
    assert (len(read("mask", length).rows), read("mask", length).num_overlong) == (2, 0)
    assert (len(read("mask", length - 1).rows), read("mask", length - 1).num_overlong) == (1, 1)
    cut = read("truncate", length - 1)
    assert (cut.rows[1].token_ids, cut.num_overlong) == (whole.token_ids[:-1], 1)
    assert cut.rows[1].positions == whole.positions[:-1]
    assert len(cut.rows[1].advantages) == len(cut.rows[1].positions)
    # Cut before its first answer: there is nothing to train.
    assert len(read("truncate", 5).rows) == 0
    with pytest.raises(TemperError, match=f"line 3 of the examples must have at most {length - 1} tokens, it has"):
        read("refuse", length - 1)


def test_a_dataset_is_refused_by_the_line_that_cannot_be_written_and_where_nothing_fits(store: FileStore):
    base = pocket()
    lines = b'{"id":"line 1","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}\n'
    dataset = Dataset(store, store.put_blob(lines + lines.replace(b"user", b"poet").replace(b"line 1", b"line 9")))
    with pytest.raises(TemperError, match="line 9 of the examples: role of message 0"):
        check_examples(dataset, base, step_of(store, [0]).rendering, TURNS)
    good = Dataset(store, put_dataset(store))
    facts = check_examples(good, base, step_of(store, [0]).rendering, TURNS)
    assert (facts.num_examples, facts.num_overlong, facts.num_trained_tokens) == (4, 0, 3 + 2 + 5 + 4)
    with pytest.raises(TemperError, match="some of the 4 examples must fit"):
        check_examples(good, base, step_of(store, [0], rendering={"maxExampleTokens": 3}).rendering, TURNS)
    window = base.context_window
    at_most = step_of(store, [0], rendering={"maxExampleTokens": window}).rendering
    assert check_examples(good, base, at_most, TURNS) == facts
    above = step_of(store, [0], rendering={"maxExampleTokens": window + 1}).rendering
    with pytest.raises(TemperError, match=f"must be at most {window}, the context window of pocket, got {window + 1}"):
        check_examples(good, base, above, TURNS)
    with pytest.raises(TemperError, match="must have a chat in line 5"):
        read_examples(good, [4], base, step_of(store, [0]).rendering, TURNS)


def test_a_history_that_the_template_rewrites_gives_a_row_for_each_turn(store: FileStore):
    base = pocket()
    remembered = "('x' if message.role == 'assistant' and not loop.last else message.content)"
    base.tokenizer.chat_template = FORGETFUL.replace("message.content.split('</think>')[-1]", remembered)
    found = read_examples(Dataset(store, put_dataset(store)), [2], base, step_of(store, [2]).rendering, ChatTurns(str))
    assert [row.begins for row in found.rows] == ["attempt", "fork"]
    assert found.num_trained_tokens == 5


def test_a_supervised_step_is_committed_once_with_what_it_was_made_from(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    work = work_of(parent, step_of(store, [0, 3], heldOut=[1], scoresParent=True))
    first = trainer.train(work, never)
    manifest = json.loads(store.read(manifest_key("demo", 0, 1)) or b"")
    assert manifest["supervised"] == json.loads(
        work.supervised.model_dump_json(by_alias=True, exclude_unset=True) if work.supervised else ""
    )
    assert (manifest["groups"], manifest["metrics"]["examples"]) == ([], 2)
    again = new_trainer(store).train(work, never)
    assert (again.found, again.commit.sha256) == (True, first.commit.sha256)
    with pytest.raises(TemperError, match="other inputs|inputs"):
        trainer.train(work.model_copy(update={"inputs_sha256": "3" * 64}), never)
    assert "supervised" not in json.loads(store.read(manifest_key("demo", 0, 0)) or b"")


def test_the_same_step_has_the_same_bytes_in_a_fresh_process_or_a_warm_one(tmp_path: Path):
    hashes: list[list[str]] = []
    for folder, is_warm in (("warm", True), ("fresh", False)):
        store = open_folder(tmp_path / folder)
        trainer = new_trainer(store)
        parent = begin(trainer)
        of_run: list[str] = []
        for examples in ([0, 1], [2, 3]):
            work = work_of(parent, step_of(store, examples, heldOut=[1]))
            parent = (trainer if is_warm else new_trainer(store)).train(work, never).commit.checkpoint("demo")
            of_run.append(parent.manifest_sha256)
        hashes.append(of_run)
    assert hashes[0] == hashes[1]


def test_dropout_follows_from_the_seed_of_the_step(tmp_path: Path):
    dropped = train_config(lora=lora().model_copy(update={"dropout": 0.5}))
    adapters: list[str] = []
    for number, seed in enumerate((3, 3, 4)):
        store = open_folder(tmp_path / str(number))
        trainer = new_trainer(store)
        work = work_of(begin(trainer), step_of(store, [0, 1]), seed=seed, train=dropped)
        adapters.append(trainer.train(work, never).commit.manifest.adapter.sha256)
    assert adapters[0] == adapters[1] != adapters[2]


def test_a_step_whose_examples_are_all_too_long_leaves_the_policy_as_it_is(
    store: FileStore, trainer: Trainer, parent: Checkpoint
):
    step = step_of(store, [2], rendering={"maxExampleTokens": 4}, heldOut=[3])
    outcome = trainer.train(work_of(parent, step), never)
    assert outcome.commit.manifest.adapter.sha256 == parent.adapter_sha256
    assert outcome.commit.manifest.metrics == {
        "examples": 1,
        "trainedTokens": 0,
        "rows": 0,
        "overlongExamples": 1,
        "heldOutExamples": 1,
    }


def test_a_step_is_given_up_between_two_micro_batches(store: FileStore, trainer: Trainer, parent: Checkpoint):
    with pytest.raises(StepCancelled):
        trainer.train(work_of(parent, step_of(store, [0])), lambda: True)
    assert store.read(manifest_key("demo", 0, 1)) is None


def test_a_step_of_neither_groups_nor_examples_is_refused(store: FileStore, trainer: Trainer, parent: Checkpoint):
    work = work_of(parent, step_of(store, [0])).model_copy(update={"supervised": None})
    with pytest.raises(TemperError, match="must train groups or examples, got neither"):
        trainer.train(work, never)


def test_weights_that_have_diverged_are_not_committed(store: FileStore, trainer: Trainer):
    policy = fresh_policy(trainer)
    work = load_supervision(Datasets(store), step_of(store, [0]), policy.base, TURNS)
    with torch.no_grad():
        next(iter(policy.parameters.values())).fill_(float("nan"))
    with failing("LossNotFinite"):
        supervised_step(policy, SupervisedInputs(work, train_config(), 1e-2))


def test_a_loss_that_is_no_number_points_to_the_examples(store: FileStore, trainer: Trainer, monkeypatch):
    monkeypatch.setattr(supervised, "cross_entropy", lambda logprobs_N, weights_N: logprobs_N * float("inf"))
    parent = begin(trainer)
    with failing("LossNotFinite", r"^step 1 of demo: loss .* look at the step's examples, roll back"):
        trainer.train(work_of(parent, step_of(store, [0])), never)
