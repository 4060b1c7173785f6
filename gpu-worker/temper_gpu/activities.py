"""The GPU worker's activities: thin. They check that the attempt is still wanted, run the trainer in its thread with
heartbeats, publish what it committed, and turn failures into the contract's types."""

import asyncio
import contextvars
import logging
import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError

from temper_gpu.checkpoints import PolicyName, canonical_json, is_pruned, publish_view, read_commit, step_key
from temper_gpu.contract import InitialiseInput, StepMetrics, TrainInput, TrainResult
from temper_gpu.failures import TemperError
from temper_gpu.heartbeat import run_with_heartbeats
from temper_gpu.pulse import Pulse, start_pulse
from temper_gpu.store import Store
from temper_gpu.training.step import StepCancelled
from temper_gpu.training.trainer import Outcome, Trainer

log = logging.getLogger("temper.gpu")

# Loads a policy into the engine of this process and says which adapter answers to its name there.
Probe = Callable[[str], str | None]

# What a process that was just thawed begins may have been handed to it while it stood still, whatever the clocks say.
JUST_THAWED_S = 1.0

Work = TypeVar("Work", bound=BaseModel)


class GpuActivities:
    def __init__(self, trainer: Trainer, store: Store, probe: Probe | None, pulse: Pulse | None = None) -> None:
        self._trainer = trainer
        self._store = store
        self._probe = probe
        self._pulse = pulse or start_pulse()
        # One thread: one step at a time, whatever Temporal hands out.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trainer")

    @activity.defn(name="initialise")
    async def initialise(self, given: Any) -> TrainResult:
        """Commits step 0 of a branch: the seeded adapter."""
        work = parse_input(InitialiseInput, given)
        return await self._perform(work.run, 0, lambda _: self._trainer.initialise(work))

    @activity.defn(name="train")
    async def train(self, given: Any) -> TrainResult:
        """All groups of a step → one committed optimizer step, published under `run@step`."""
        work = parse_input(TrainInput, given)
        return await self._perform(work.run, work.step, lambda is_cancelled: self._trainer.train(work, is_cancelled))

    async def _perform(self, run: str, step: int, make: Callable[[Callable[[], bool]], Outcome]) -> TrainResult:
        fields = {"run": run, "step": step, "attempt": activity.info().attempt}
        require_fresh(activity.info(), self._pulse, datetime.now(UTC), fields)
        context = contextvars.copy_context()

        def work(is_cancelled: Callable[[], bool]) -> Outcome:
            try:
                outcome = make(is_cancelled)
            except StepCancelled:
                log.info("step discarded", extra=fields | {"reason": context.run(describe_cancellation)})
                raise
            started = time.perf_counter()
            self._publish(run, outcome, fields)
            outcome.seconds["publish"] = time.perf_counter() - started
            # Here, not where the result is awaited: nobody awaits that of an activity that was taken away.
            tell(outcome, fields)
            return outcome

        def beat() -> None:
            activity.heartbeat({"step": step, **self._trainer.progress()})

        log.info("step begins", extra=fields)
        try:
            outcome = await run_with_heartbeats(self._thread, work, beat)
        except TemperError as error:
            log.warning("step failed: %s", error, extra=fields | {"type": error.type})
            raise application_error(error) from error
        except (StepCancelled, asyncio.CancelledError):
            log.info("step cancelled", extra=fields)
            raise
        except Exception as error:
            log.exception("step failed", extra=fields | {"type": "TrainerFailed"})
            raise application_error(_unexpected(error)) from error
        return TrainResult(
            checkpoint=outcome.commit.checkpoint(run),
            metrics=StepMetrics(outcome.commit.manifest.metrics),
            seconds=outcome.seconds,
            found=outcome.found,
        )

    def _publish(self, run: str, outcome: Outcome, fields: dict[str, Any]) -> None:
        """The view for people and other engines, the sidecar of times; then this process's engine is asked."""
        manifest = outcome.commit.manifest
        if outcome.found and is_pruned(self._store, run, manifest):
            return
        publish_view(self._store, run, outcome.commit)
        if not outcome.found:
            self._store.replace(
                f"{step_key(run, manifest.branch, manifest.step)}/manifest.times.json", _times(outcome, fields)
            )
        # A run that is played again from its store finds step after step: only the newest is about to be sampled from.
        is_passed = outcome.found and read_commit(self._store, run, manifest.branch, manifest.step + 1) is not None
        if self._probe is not None and not is_passed:
            require_probed(self._probe, str(PolicyName(run, manifest.branch, manifest.step)), manifest.adapter.sha256)


def parse_input(contract: type[Work], given: Any) -> Work:
    """Whoever reaches the task queue may send anything. Temporal's converter would parse it, too, but retries what it
    cannot parse for ever."""
    try:
        return contract.model_validate(given, strict=True)
    except ValidationError as error:
        issue = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in issue["loc"]) or "as a whole"
        raise application_error(
            TemperError(
                "BadConfig",
                f"the input of the activity {activity.info().activity_type} must follow the contract of this version "
                f"of Temper, this one does not ({place}: {issue['msg']}); start runs with temper, and run one version "
                "of it on all hosts",
            )
        ) from error


def require_probed(probe: Probe, policy: str, adapter_sha256: str) -> None:
    found = probe(policy)
    if found != adapter_sha256:
        raise TemperError(
            "PolicyMismatch",
            f"the engine must answer as {policy} with adapter {adapter_sha256}, it has {found}; restart the GPU worker",
        )


def tell(outcome: Outcome, fields: dict[str, Any]) -> None:
    if outcome.discarded:
        log.info("step discarded", extra=fields | {"reason": "another worker committed it first"})
    else:
        log.info("step committed", extra=fields | {"found": outcome.found, "seconds": outcome.seconds})


def describe_cancellation() -> str:
    """Why Temporal took an activity away."""
    details = activity.cancellation_details()
    if details is not None and (details.not_found or details.timed_out):
        return "the activity was given to another worker"
    return "the worker is shutting down" if details is not None and details.worker_shutdown else "cancelled"


def require_fresh(info: activity.Info, pulse: Pulse, now: datetime, fields: dict[str, Any] | None = None) -> None:
    """A frozen worker starts, when thawed, what it was handed long ago; by then somebody else has it.

    The age alone is no sign: the server took the time by its clock, and a host whose clock is wrong would refuse all.
    Nor is a standstill alone. A clock that is behind hides the age, so what begins right after the thaw is refused too.
    """
    if info.heartbeat_timeout is None:
        return
    limit_s = info.heartbeat_timeout.total_seconds()
    age_s = (now - info.started_time).total_seconds()
    within_s = limit_s if age_s >= limit_s else JUST_THAWED_S
    gap_s = pulse.longest_gap_s(within_s)
    if gap_s < limit_s:
        return
    log.info("activity refused", extra=(fields or {}) | {"type": "StaleAttempt", "stoodStillS": round(gap_s, 1)})
    raise application_error(
        TemperError(
            "StaleAttempt",
            f"{info.activity_type} must begin within its heartbeat timeout ({limit_s:g} s), this attempt was handed "
            f"out {age_s:.1f} s ago and this process stood still for {gap_s:.1f} s; it is tried again",
        )
    )


def application_error(error: TemperError) -> ApplicationError:
    return ApplicationError(error.message, type=error.type, non_retryable=not error.retryable)


def _unexpected(error: Exception) -> TemperError:
    if type(error).__name__ == "OutOfMemoryError":
        return TemperError("TrainerFailed", f"a micro-batch must fit into memory: {error}; lower microBatchTokens")
    return TemperError("TrainerFailed", f"{type(error).__name__}: {error}")


def _times(outcome: Outcome, fields: dict[str, Any]) -> bytes:
    clock = {"committedAt": datetime.now(UTC).isoformat(), "seconds": outcome.seconds}
    maker = {"host": socket.gethostname(), "pid": os.getpid(), "attempt": fields["attempt"]}
    # No other file names the hash of the newest manifest: the next step's does, once there is one.
    return canonical_json({**clock, **maker, "manifestSha256": outcome.commit.sha256})
