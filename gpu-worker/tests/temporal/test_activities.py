import asyncio
import dataclasses
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from temper_gpu.commits.checkpoints import manifest_key
from temper_gpu.commits.resolver import StoreResolver
from temper_gpu.contract import InitialiseInput, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.server.metrics import Metrics
from temper_gpu.store import FileStore
from temper_gpu.temporal.activities import GpuActivities, require_fresh
from temper_gpu.temporal.heartbeat import run_with_heartbeats
from temper_gpu.temporal.pause_detector import PauseDetector
from temper_gpu.training import trainer as trainer_module
from tests.training.samples import initialise_input, open_folder, sampled_groups, train_input
from tests.training.trainers import new_trainer


def activities(store: FileStore, probe=None, pauses: PauseDetector | None = None) -> GpuActivities:
    return GpuActivities(new_trainer(store), store, probe, pauses=pauses)


def activities_with(store: FileStore, initialise: Callable[[InitialiseInput], Any]) -> GpuActivities:
    """Of a trainer whose step 0 is this."""
    trainer = new_trainer(store)
    trainer.initialise = initialise
    return GpuActivities(trainer, store)


def run(activity, work, environment: ActivityEnvironment | None = None):
    return asyncio.run((environment or ActivityEnvironment()).run(activity, work))


def first_step(store: FileStore, gpu: GpuActivities) -> TrainInput:
    parent = run(gpu.initialise, initialise_input()).checkpoint
    return train_input(store, parent, sampled_groups(parent.adapter_sha256))


def test_a_step_is_made_once_and_found_ever_after(store: FileStore):
    gpu = activities(store)
    work = first_step(store, gpu)
    made, found = run(gpu.train, work), run(activities(store).train, work)
    assert (made.found, found.found) == (False, True)
    assert (made.checkpoint, made.metrics) == (found.checkpoint, found.metrics)
    assert made.seconds.keys() == {"load", "wait", "train", "commit", "publish"}
    assert made.metrics["rows"] == 8


def test_each_execution_is_told_for_metrics_also_one_that_fails(store: FileStore):
    metrics = Metrics()
    gpu = GpuActivities(new_trainer(store), store, executed=metrics.executed)
    work = first_step(store, gpu)
    for _ in range(2):
        run(gpu.train, work)
    with pytest.raises(ApplicationError):
        run(gpu.train, work.model_copy(update={"inputs_sha256": "f" * 64}))
    text = metrics.text({})
    # The test's environment gives all activities one name.
    for outcome, count in (("committed", 2), ("found", 1), ("failed", 1)):
        assert f'temper_train_executions_total{{activity="unknown",outcome="{outcome}"}} {count}\n' in text
    assert 'temper_train_phase_seconds_total{phase="train"} ' in text
    assert 'temper_train_execution_seconds_count{activity="unknown"} 4\n' in text


def test_a_run_that_could_never_be_played_does_not_begin(store: FileStore):
    asked = []

    def check(work: InitialiseInput) -> None:
        asked.append(work.chat_template_sha256)
        raise TemperError("BadConfig", "the chat template fails")

    gpu = GpuActivities(new_trainer(store), store, check_run=check)
    with pytest.raises(ApplicationError, match="the chat template fails") as caught:
        run(gpu.initialise, initialise_input(chat_template_sha256="b" * 64))
    assert (caught.value.type, caught.value.non_retryable, asked) == ("BadConfig", True, ["b" * 64])
    assert store.read(manifest_key("demo", 0, 0)) is None


def test_a_commit_is_published_with_its_times_beside_it(store: FileStore):
    gpu = activities(store)
    run(gpu.train, first_step(store, gpu))
    for step in (0, 1):
        assert (store.root / f"runs/demo/branches/0/checkpoints/{step}/adapter/adapter_model.safetensors").is_file()
    times = store.read("runs/demo/branches/0/steps/1/manifest.times.json")
    assert times is not None
    assert json.loads(times).keys() == {"attempt", "committedAt", "host", "manifestSha256", "pid", "seconds"}


def test_of_steps_that_are_found_again_the_engine_is_asked_for_the_newest_alone(store: FileStore):
    asked = []
    work = first_step(store, activities(store))
    run(activities(store).train, work)

    def probe(policy: str) -> str:
        asked.append(policy)
        return StoreResolver(store).resolve(policy).adapter_sha256 or ""

    run(activities(store, probe).initialise, initialise_input())
    run(activities(store, probe).train, work)
    assert asked == ["demo@1"]


def test_a_pruned_step_is_found_without_its_weights_and_nothing_is_made_from_it(store: FileStore):
    gpu = activities(store)
    work = first_step(store, gpu)
    adapter = StoreResolver(store).resolve("demo@0").adapter_sha256
    (store.root / f"blobs/{adapter}").unlink()
    store.publish("runs/demo/branches/0/steps/0/pruned.json", b'{"schema":1,"pruned":true}')
    assert run(activities(store, lambda _: "never asked").initialise, initialise_input()).found
    with pytest.raises(ApplicationError, match=r"demo@0.*pruned.*--with-pruned") as caught:
        run(activities(store).train, work)
    assert (caught.value.type, caught.value.non_retryable) == ("BadConfig", True)
    pruned = StoreResolver(store).resolve("demo@0").adapter
    assert pruned is not None
    with pytest.raises(TemperError, match="pruned"):
        pruned.read()


def test_results_are_json_that_every_parser_reads(store: FileStore):
    gpu = activities(store)
    result = run(gpu.train, first_step(store, gpu)).model_dump(by_alias=True)
    assert result["checkpoint"]["adapterSha256"]
    json.dumps(result, allow_nan=False)


def test_the_engine_of_the_process_is_asked_for_its_hash(store: FileStore):
    asked = []
    with pytest.raises(ApplicationError, match=r"demo@0.*somebody else") as caught:
        run(activities(store, lambda policy: asked.append(policy) or "somebody else").initialise, initialise_input())
    assert (caught.value.type, caught.value.non_retryable, asked) == ("PolicyMismatch", True, ["demo@0"])


class Host:
    """A process on a host whose clock is apart from the server's by `skew_s`."""

    def __init__(self, skew_s: float = 0.0) -> None:
        self._skew_s, self.now = skew_s, datetime.now(UTC).timestamp()
        self.pauses = PauseDetector(lambda: self.now)

    def stand_still(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.check()

    def live(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.5)):
            self.stand_still(0.5)

    def info(self, handed_out_ago_s: float) -> activity.Info:
        """As Temporal gives it, in the server's time."""
        started = datetime.fromtimestamp(self.now - self._skew_s - handed_out_ago_s, UTC)
        limit = timedelta(seconds=10)
        return dataclasses.replace(ActivityEnvironment().info, started_time=started, heartbeat_timeout=limit)

    def is_refused(self, handed_out_ago_s: float) -> bool:
        try:
            require_fresh(self.info(handed_out_ago_s), self.pauses, datetime.fromtimestamp(self.now, UTC))
        except ApplicationError as error:
            assert (error.type, error.non_retryable) == ("StaleAttempt", False)
            return True
        return False


@pytest.mark.parametrize("skew_s", [0.0, 3600.0, -3600.0])
def test_what_was_handed_to_a_frozen_worker_is_refused_whatever_its_clock_says(skew_s: float):
    host = Host(skew_s)
    host.stand_still(11)
    assert host.is_refused(handed_out_ago_s=11)
    assert host.is_refused(handed_out_ago_s=10.5)


@pytest.mark.parametrize("skew_s", [0.0, 3600.0, -3600.0])
def test_a_worker_that_lives_refuses_nothing_whatever_its_clock_says(skew_s: float):
    host = Host(skew_s)
    host.stand_still(11)
    host.live(11)
    assert not host.is_refused(handed_out_ago_s=0.1)
    host.stand_still(9)  # shorter than the timeout: nobody else was given its work
    assert not host.is_refused(handed_out_ago_s=9)


def test_a_clock_that_was_ahead_and_is_put_right_stops_no_work():
    """The jump ahead is a standstill like any other; the one back ends it, long before the clock comes there again."""
    host = Host()
    host.stand_still(3600)
    assert host.is_refused(handed_out_ago_s=0.1)
    host.stand_still(-3600)
    host.live(2)
    assert not host.is_refused(handed_out_ago_s=0.1)
    host.stand_still(11)
    assert host.is_refused(handed_out_ago_s=0.1)


def test_a_frozen_workers_attempt_ends_before_any_effect(tmp_path: Path):
    host = Host()
    host.stand_still(11)
    environment = ActivityEnvironment()
    environment.info = host.info(handed_out_ago_s=11)
    with pytest.raises(ApplicationError, match="11") as caught:
        run(activities(open_folder(tmp_path), pauses=host.pauses).initialise, initialise_input(), environment)
    assert (caught.value.type, caught.value.non_retryable) == ("StaleAttempt", False)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(("type_", "non_retryable"), [("StoreUnavailable", False), ("StoreCorrupt", True)])
def test_failures_keep_their_type_and_whether_a_retry_may_help(
    store: FileStore, monkeypatch, type_, non_retryable: bool
):

    def fail(_: bytes) -> None:
        raise TemperError(type_, "why")

    monkeypatch.setattr(store, "put_blob", fail)
    with pytest.raises(ApplicationError, match="why") as caught:
        run(activities(store).initialise, initialise_input())
    assert (caught.value.type, caught.value.non_retryable) == (type_, non_retryable)


def test_what_caused_a_failure_is_in_the_log_and_leaves_the_failure_small(store: FileStore, caplog):
    def fail(_: object) -> None:
        try:
            raise EOFError("nobody wrote")
        except EOFError as error:
            raise TemperError("TrainerFailed", "why") from error

    gpu = activities_with(store, fail)
    with pytest.raises(ApplicationError, match="why") as caught:
        run(gpu.initialise, initialise_input())
    assert caught.value.__cause__ is None
    assert "EOFError: nobody wrote" in caplog.text


def test_an_unexpected_error_is_the_trainers_and_may_pass(store: FileStore):
    gpu = activities_with(store, lambda _: 1 / 0)
    with pytest.raises(ApplicationError, match="ZeroDivisionError") as caught:
        run(gpu.initialise, initialise_input())
    assert (caught.value.type, caught.value.non_retryable) == ("TrainerFailed", False)


def test_an_outage_of_seconds_is_waited_for_however_often_it_is_met(store: FileStore, monkeypatch):
    """Whoever meets it may be much faster than it passes."""
    gpu = activities_with(store, lambda _: 1 / 0)
    monkeypatch.setattr("temper_gpu.temporal.activities.SAME_ERROR_S", 1e9)
    for _ in range(8):
        with pytest.raises(ApplicationError, match="ZeroDivisionError") as caught:
            run(gpu.initialise, initialise_input())
        assert not caught.value.non_retryable


def test_an_unexpected_error_that_comes_again_and_again_ends_the_run(store: FileStore, monkeypatch):
    monkeypatch.setattr("temper_gpu.temporal.activities.SAME_ERROR_S", 0.0)
    words = iter(["first", *["second"] * 5, "second"])

    def fail(_) -> None:
        raise KeyError(next(words))

    gpu = activities_with(store, fail)
    seen: list[ApplicationError] = []
    for _ in range(7):
        with pytest.raises(ApplicationError) as caught:
            run(gpu.initialise, initialise_input())
        seen.append(caught.value)
    assert {error.type for error in seen} == {"TrainerFailed"}
    assert [error.non_retryable for error in seen] == [False] * 5 + [True, False]
    assert "step 0 of demo failed 5 times in a row with the same error (KeyError: 'second')" in seen[5].message
    assert "gpu-worker.jsonl" in seen[5].message


def test_an_error_after_which_nothing_computes_on_a_gpu_ends_the_process(store: FileStore, monkeypatch):
    """Each try in this process would fail alike; a new one has the GPU afresh."""
    lost = []
    gpu = GpuActivities(new_trainer(store), store, on_lost_device=lost.append)
    work = first_step(store, gpu)
    error = torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    def fail(*_) -> None:
        raise error

    monkeypatch.setattr("temper_gpu.training.trainer.train_step", fail)
    with pytest.raises(ApplicationError, match="illegal memory access"):
        run(gpu.train, work)
    assert lost == [error]


@pytest.mark.parametrize("how", ["torch", "python"])
def test_a_step_without_room_is_tried_three_times_and_ends_with_figures_and_the_flag(
    store: FileStore, monkeypatch, how: str
):
    monkeypatch.setattr("temper_gpu.temporal.activities.MEMORY_PAUSE_S", 0.0)
    tries = []
    trainer = new_trainer(store)
    gpu = GpuActivities(trainer, store)
    parent = run(gpu.initialise, initialise_input(branch=2)).checkpoint
    work = train_input(store, parent, sampled_groups(parent.adapter_sha256))

    def too_much(*_) -> None:
        tries.append(trainer.policy)
        torch.empty(1 << 60) if how == "torch" else bytearray(1 << 62)

    with monkeypatch.context() as patch:
        patch.setattr("temper_gpu.training.trainer.train_step", too_much)
        with pytest.raises(ApplicationError) as caught:
            run(gpu.train, work)
    assert (caught.value.type, caught.value.non_retryable, len(tries)) == ("OutOfMemory", True, 3)
    assert len({id(held) for held in tries}) == 3  # nothing that might be freed was kept
    assert "lower --micro-batch-tokens (now 64): temper train AGENT --from demo~2@0 --run NEW" in caught.value.message
    assert "free on" in caught.value.message
    assert ("you tried to allocate" in caught.value.message) == (how == "torch")
    assert not run(gpu.train, work).found


def fail_first(monkeypatch: pytest.MonkeyPatch, failures: list[Exception]) -> None:
    """A step's first tries; the later ones are computed."""
    whole = trainer_module.train_step

    def scarce(*arguments):
        if failures:
            raise failures.pop()
        return whole(*arguments)

    monkeypatch.setattr("temper_gpu.training.trainer.train_step", scarce)


def test_memory_that_is_free_again_costs_a_step_nothing(store: FileStore, monkeypatch):
    monkeypatch.setattr("temper_gpu.temporal.activities.MEMORY_PAUSE_S", 0.0)
    gpu = activities(store)
    work = first_step(store, gpu)
    fail_first(monkeypatch, [MemoryError(), torch.OutOfMemoryError("CUDA out of memory")])
    assert not run(gpu.train, work).found


def test_a_try_with_less_memory_than_the_next_one_does_not_count(store: FileStore, monkeypatch):
    monkeypatch.setattr("temper_gpu.temporal.activities.MEMORY_PAUSE_S", 0.0)
    more_room = [True, True]
    gpu = GpuActivities(new_trainer(store), store, has_more_room=lambda: bool(more_room and more_room.pop()))
    work = first_step(store, gpu)
    fail_first(monkeypatch, [MemoryError()] * 4)
    assert not run(gpu.train, work).found


def test_it_beats_while_the_step_runs(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("temper_gpu.temporal.heartbeat.BEAT_EVERY_S", 0.01)
    store, beats, enough = open_folder(tmp_path), [], threading.Event()

    def slow(work):
        assert enough.wait(10)
        return new_trainer(store).initialise(work)

    def beat(*details) -> None:
        beats.append(details)
        if len(beats) >= 3:
            enough.set()

    gpu = activities_with(store, slow)
    environment = ActivityEnvironment()
    environment.on_heartbeat = beat
    run(gpu.initialise, initialise_input(), environment)
    assert len(beats) >= 3


def test_a_step_that_was_given_to_another_worker_is_awaited_and_discarded_and_says_so(
    store: FileStore, monkeypatch, caplog
):
    caplog.set_level("INFO", "temper_gpu.temporal.activities")
    trainer = new_trainer(store)
    gpu = GpuActivities(trainer, store)
    work = first_step(store, gpu)
    train, began = trainer.train, threading.Event()

    def cancelled_midway(work: TrainInput, is_cancelled):
        def poll() -> bool:
            began.set()
            deadline = datetime.now(UTC) + timedelta(seconds=10)
            while not is_cancelled() and datetime.now(UTC) < deadline:
                pass
            return is_cancelled()

        return train(work, poll)

    monkeypatch.setattr(trainer, "train", cancelled_midway)

    async def cancel_midway() -> None:
        environment = ActivityEnvironment()
        step = asyncio.create_task(environment.run(gpu.train, work))
        await asyncio.to_thread(began.wait, 10)
        environment.cancel(activity.ActivityCancellationDetails(not_found=True))
        await step

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel_midway())
    assert store.read(manifest_key("demo", 0, 1)) is None
    assert told(caplog, "step discarded") == ["the activity was given to another worker"]
    monkeypatch.undo()
    assert not run(gpu.train, work).found


def test_of_two_workers_that_make_one_step_the_late_one_discards_its_own_and_says_so(
    store: FileStore, monkeypatch, caplog
):
    caplog.set_level("INFO", "temper_gpu.temporal.activities")
    frozen, other = activities(store), activities(store)
    work = first_step(store, frozen)
    compute, results = trainer_module.train_step, []

    def thawed_after_the_other_finished(*arguments):
        metrics = compute(*arguments)
        monkeypatch.undo()
        results.append(run(other.train, work))
        return metrics

    monkeypatch.setattr(trainer_module, "train_step", thawed_after_the_other_finished)
    late = run(frozen.train, work)
    assert (late.found, late.checkpoint) == (True, results[0].checkpoint)
    assert told(caplog, "step discarded") == ["another worker committed it first"]
    times = store.read("runs/demo/branches/0/steps/1/manifest.times.json")
    assert times is not None
    assert json.loads(times)["seconds"].keys() >= {"commit"}
    assert len([record for record in caplog.records if record.message == "step committed"]) == 2  # steps 0 and 1


def told(caplog, message: str) -> list[str]:
    return [record.reason for record in caplog.records if record.message == message]


def test_what_cancelled_work_fails_with_is_logged(caplog):
    caplog.set_level("INFO", "temper_gpu.temporal.heartbeat")
    began, cancelled = threading.Event(), threading.Event()

    def work(is_cancelled) -> None:
        began.set()
        assert cancelled.wait(10)
        raise TemperError("StoreUnavailable", "the disk is full")

    async def cancel_midway() -> None:
        with ThreadPoolExecutor(1) as executor:
            running = asyncio.create_task(run_with_heartbeats(executor, work, lambda: None))
            await asyncio.to_thread(began.wait, 10)
            running.cancel()
            cancelled.set()
            await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel_midway())
    assert "the disk is full" in caplog.text


def test_a_heartbeat_tells_step_and_phase(store: FileStore, monkeypatch):
    monkeypatch.setattr("temper_gpu.temporal.heartbeat.BEAT_EVERY_S", 0.01)
    gpu = activities(store)
    work, enough, beats = first_step(store, gpu), threading.Event(), []

    def slow(*_) -> None:
        enough.wait(10)
        raise TemperError("TrainerFailed", "enough")

    def beat(detail) -> None:
        beats.append(detail)
        if detail["phase"] == "train":
            enough.set()

    monkeypatch.setattr("temper_gpu.training.trainer.train_step", slow)
    environment = ActivityEnvironment()
    environment.on_heartbeat = beat
    with pytest.raises(ApplicationError, match="enough"):
        run(gpu.train, work, environment)
    assert beats[-1]["step"] == 1
    assert datetime.fromisoformat(beats[-1]["since"]) <= datetime.now(UTC)
