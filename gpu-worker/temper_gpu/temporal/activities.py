"""The GPU worker's activities. They check that the attempt is current, run the trainer in its thread with heartbeats,
publish its commit, and turn failures into the contract's types."""

import asyncio
import contextvars
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError

from temper_gpu.commits.checkpoints import PolicyName, canonical_json, is_pruned, publish_view, read_commit
from temper_gpu.commits.later_version import describe, is_from_later_version
from temper_gpu.contract import RESUME_GRACE_MS, STORE_KEYS, InitialiseInput, TrainInput, TrainResult
from temper_gpu.failures import TemperError
from temper_gpu.model.memory import Shortage, free_memory, is_device_lost, is_out_of_memory
from temper_gpu.store import Store
from temper_gpu.temporal.heartbeat import run_with_heartbeats
from temper_gpu.temporal.pause_detector import PauseDetector, start_pause_detector
from temper_gpu.training.ranks import StepCancelled
from temper_gpu.training.trainer import Outcome, Trainer

log = logging.getLogger(__name__)

# Loads a policy into the engine of this process, and returns the hash of the adapter that answered.
Probe = Callable[[str], str | None]
# Raises for a run that can never be trained.
CheckRun = Callable[[InitialiseInput], None]

# Grace period after this process was suspended: it may have received tasks meanwhile, also if the clocks disagree.
RESUME_GRACE_S = RESUME_GRACE_MS / 1000
MEMORY_PAUSE_S = 1.0
# Both must be reached: an outage of a disk or of memory gives the same error for seconds, and passes.
SAME_ERROR_TRIES, SAME_ERROR_S = 5, 15.0

Make = Callable[[Callable[[], bool]], Outcome]
# Activity, outcome, seconds in the queue, seconds of the execution, and those by phase.
Executed = Callable[[str, str, float, float, Mapping[str, float]], None]

Work = TypeVar("Work", bound=BaseModel)


@dataclass(frozen=True)
class RepeatedError:
    """An unexpected error that came several times in a row, in the same words."""

    words: str
    times: int
    since: float

    def again(self) -> "RepeatedError":
        return replace(self, times=self.times + 1)


class GpuActivities:
    def __init__(
        self,
        trainer: Trainer,
        store: Store,
        probe: Probe | None = None,
        check_run: CheckRun = lambda work: None,
        pauses: PauseDetector | None = None,
        on_lost_device: Callable[[BaseException], None] = lambda error: None,
        has_more_room: Callable[[], bool] = lambda: False,
        executed: Executed = lambda *execution: None,
    ) -> None:
        """`on_lost_device` is called when the device is unusable; it may end the process. `has_more_room`: whether the
        next try has more memory than the failed one. `executed` is told each execution, for metrics."""
        self._executed = executed
        self._on_lost_device = on_lost_device
        self._has_more_room = has_more_room
        self._trainer = trainer
        self._store = store
        self._probe = probe
        self._check_run = check_run
        self._pauses = pauses or start_pause_detector()
        # Errors by run and step.
        self._repeated: dict[tuple[str, int], RepeatedError] = {}
        # A single thread runs one step at a time.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trainer")

    @activity.defn(name="initialise")
    async def initialise(self, given: Any) -> TrainResult:
        """Commits step 0 of a branch: the seeded adapter."""
        work = parse_input(InitialiseInput, given)

        def make(_: Callable[[], bool]) -> Outcome:
            self._check_run(work)
            return self._trainer.initialise(work)

        return await self._perform(work.run, 0, make, "use a smaller base model, or --dtype bfloat16")

    @activity.defn(name="train")
    async def train(self, given: Any) -> TrainResult:
        """All groups of a step → one committed optimizer step, published under `run@step`."""
        work = parse_input(TrainInput, given)
        parent = PolicyName(work.parent.run, work.parent.branch, work.parent.step)
        remedy = (
            f"lower --micro-batch-tokens (now {work.train.micro_batch_tokens}): temper train AGENT "
            f"--from {parent} --run NEW --micro-batch-tokens {max(1, work.train.micro_batch_tokens // 2)}; or lower "
            "engine.kvCacheBytes in temporal.config.ts"
        )
        return await self._perform(work.run, work.step, partial(self._trainer.train, work), remedy)

    async def _perform(self, run: str, step: int, make: Make, remedy: str) -> TrainResult:
        """Measures one execution."""
        info, started = activity.info(), time.perf_counter()
        waited_s = (info.started_time - info.current_attempt_scheduled_time).total_seconds()
        outcome, phases = "failed", {}
        try:
            result = await self._perform_once(run, step, make, remedy)
            outcome, phases = "found" if result.found else "committed", result.seconds
            return result
        except (StepCancelled, asyncio.CancelledError):
            outcome = "cancelled"
            raise
        finally:
            self._executed(info.activity_type, outcome, waited_s, time.perf_counter() - started, phases)

    async def _perform_once(self, run: str, step: int, make: Make, remedy: str) -> TrainResult:
        fields = {"run": run, "step": step, "attempt": activity.info().attempt}
        require_fresh(activity.info(), self._pauses, datetime.now(UTC), fields)
        context = contextvars.copy_context()

        def work(is_cancelled: Callable[[], bool]) -> Outcome:
            try:
                outcome = self._make_in_memory(make, is_cancelled, remedy)
            except StepCancelled:
                log.info("step discarded", extra=fields | {"reason": context.run(describe_cancellation)})
                raise
            started = time.perf_counter()
            self._publish(run, outcome, fields)
            outcome.seconds["publish"] = time.perf_counter() - started
            # Logged here, because the result of a reassigned activity is not awaited.
            log_outcome(outcome, fields)
            return outcome

        def beat() -> None:
            activity.heartbeat({"step": step, **self._trainer.progress()})

        log.info("step begins", extra=fields)
        # Failures are raised without causes: with their stacks a server finds them too large, and hides the message.
        try:
            outcome = await run_with_heartbeats(self._thread, work, beat)
        except TemperError as error:
            log.warning("step failed: %s", error, extra=fields | {"type": error.type}, exc_info=error.__cause__)
            raise application_error(error) from None
        except (StepCancelled, asyncio.CancelledError):
            log.info("step cancelled", extra=fields)
            raise
        except Exception as error:
            log.exception("step failed", extra=fields | {"type": "TrainerFailed"})
            if is_device_lost(error):
                self._on_lost_device(error)
            raise self._unexpected(error, (run, step)) from None
        self._repeated.pop((run, step), None)
        return TrainResult(
            checkpoint=outcome.commit.checkpoint(run),
            metrics=outcome.commit.manifest.metrics,
            seconds=outcome.seconds,
            found=outcome.found,
        )

    def _make_in_memory(self, make: Make, is_cancelled: Callable[[], bool], remedy: str) -> Outcome:
        """Retries a step that ran out of memory a few times: other processes may free some, but a step that can never
        fit must end."""
        shortage = Shortage("a step", remedy)
        while True:
            try:
                return make(is_cancelled)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                failure = shortage.failed(error)
            # Done outside the handler, whose error keeps the step's tensors alive.
            self._trainer.forget()
            free_memory()
            if self._has_more_room():
                shortage.succeeded()  # a try with less memory says nothing of the next one
            elif not failure.retryable:
                raise failure
            log.warning("step failed: %s", failure)
            time.sleep(MEMORY_PAUSE_S)
            if is_cancelled():
                raise StepCancelled

    def _unexpected(self, error: Exception, place: tuple[str, int]) -> ApplicationError:
        """Retries unexpected errors; one that repeats with the same message is a bug."""
        words, now = f"{type(error).__name__}: {error}", time.monotonic()
        last = self._repeated.get(place)
        repeated = RepeatedError(words, 1, now) if last is None or last.words != words else last.again()
        self._repeated[place] = repeated
        if repeated.times < SAME_ERROR_TRIES or now - repeated.since < SAME_ERROR_S:
            return application_error(TemperError("TrainerFailed", words))
        del self._repeated[place]  # a run that is started again gets as many tries
        failure = TemperError(
            "TrainerFailed",
            f"step {place[1]} of {place[0]} failed {repeated.times} times in a row with the same error ({words}); the "
            "GPU worker's log (.temper/logs/gpu-worker.jsonl) says where: report it, or restart the GPU worker and the "
            "run",
        )
        return ApplicationError(failure.message, type=failure.type, non_retryable=True)

    def _publish(self, run: str, outcome: Outcome, fields: dict[str, Any]) -> None:
        """Publishes the view and the sidecar of times, and probes this process's engine."""
        manifest = outcome.commit.manifest
        if outcome.found and is_pruned(self._store, run, manifest):
            return
        publish_view(self._store, run, outcome.commit)
        if not outcome.found:
            key = STORE_KEYS["manifestTimes"].format(run=run, branch=manifest.branch, step=manifest.step)
            self._store.replace(key, _times(outcome, fields))
        # A run that is repeated from its store finds step after step; only the newest is sampled from next.
        is_passed = outcome.found and read_commit(self._store, run, manifest.branch, manifest.step + 1) is not None
        if self._probe is None or is_passed:
            return
        for policy in manifest.policy_names:
            name = PolicyName(run, manifest.branch, manifest.step, policy)
            require_probed(self._probe, str(name), manifest.weights_of(policy).adapter.sha256)


def parse_input(contract: type[Work], given: Any) -> Work:
    """Parses defensively: any client of the task queue may send anything, and Temporal's converter would retry
    unparsable input forever."""
    try:
        return contract.model_validate(given, strict=True)
    except ValidationError as error:
        subject = f"the input of the activity {activity.info().activity_type}"
        if is_from_later_version(error):
            raise application_error(
                TemperError(
                    "LaterVersion",
                    f"{subject} was sent by a later version of Temper ({describe(error)}); upgrade this worker: "
                    "Temporal retries until a worker of that version takes the activity",
                )
            ) from error
        raise application_error(
            TemperError(
                "BadConfig",
                f"{subject} must follow the contract of this version of Temper, but does not ({describe(error)}); "
                "start runs with temper, and run one version of it on all hosts",
            )
        ) from error


def require_probed(probe: Probe, policy: str, adapter_sha256: str) -> None:
    found = probe(policy)
    if found != adapter_sha256:
        raise TemperError(
            "PolicyMismatch",
            f"the engine must answer as {policy} with adapter {adapter_sha256}, but it has {found}; restart the GPU "
            "worker",
        )


def log_outcome(outcome: Outcome, fields: dict[str, Any]) -> None:
    if outcome.discarded:
        log.info("step discarded", extra=fields | {"reason": "another worker committed it first"})
    else:
        log.info("step committed", extra=fields | {"found": outcome.found, "seconds": outcome.seconds})


def describe_cancellation() -> str:
    """The reason of Temporal's cancellation."""
    details = activity.cancellation_details()
    if details is not None and (details.not_found or details.timed_out):
        return "the activity was given to another worker"
    return "the worker is shutting down" if details is not None and details.worker_shutdown else "cancelled"


def require_fresh(
    info: activity.Info, pauses: PauseDetector, now: datetime, fields: dict[str, Any] | None = None
) -> None:
    """Refuses an attempt that a suspended process received long ago: another worker has it by now.

    Age alone proves nothing, because the start time is by the server's clock, and a host with a wrong clock would
    refuse everything. A suspension alone proves nothing either. A clock that is behind hides the age, so attempts that
    begin right after a suspension are refused too.
    """
    if info.heartbeat_timeout is None:
        return
    limit_s = info.heartbeat_timeout.total_seconds()
    age_s = (now - info.started_time).total_seconds()
    within_s = limit_s if age_s >= limit_s else RESUME_GRACE_S
    paused_s = pauses.longest_pause_s(within_s)
    if paused_s < limit_s:
        return
    log.info("activity refused", extra=(fields or {}) | {"type": "StaleAttempt", "stoodStillS": round(paused_s, 1)})
    raise application_error(
        TemperError(
            "StaleAttempt",
            f"{info.activity_type} must begin within its heartbeat timeout ({limit_s:g} s), this attempt was handed "
            f"out {age_s:.1f} s ago and this process was suspended for {paused_s:.1f} s; Temporal retries it",
        )
    )


def application_error(error: TemperError) -> ApplicationError:
    return ApplicationError(error.message, type=error.type, non_retryable=not error.retryable)


def _times(outcome: Outcome, fields: dict[str, Any]) -> bytes:
    clock = {"committedAt": datetime.now(UTC).isoformat(), "seconds": outcome.seconds}
    maker = {"host": socket.gethostname(), "pid": os.getpid(), "attempt": fields["attempt"]}
    # No other file names the hash of the newest manifest: the next step's does, once there is one.
    return canonical_json({**clock, **maker, "manifestSha256": outcome.commit.sha256})
