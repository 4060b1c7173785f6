"""The trainer's turn on a GPU that it shares with vLLM: what vLLM releases for it, and takes again."""

import logging
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Protocol

import torch

from temper_gpu.contract import TrainConfig
from temper_gpu.engine.vllm.switching import Held, Release, StepNeed, larger, more, plan_release
from temper_gpu.model.memory import free_bytes, give_back, is_out_of_memory

log = logging.getLogger(__name__)

# Needs by base model and trained part; and the bytes of its vLLM.
StepNeeds = Callable[[str, TrainConfig], tuple[StepNeed, Held]]


class Shared(Protocol):
    """An engine on the trainer's GPU."""

    @property
    def is_live(self) -> bool:
        """Its server has all of its memory."""
        ...

    def pause(self) -> None: ...
    def release(self, release: Release) -> Release: ...
    def resume(self) -> None: ...


class Training:
    """A context that is entered while a step is computed. Requests wait meanwhile, also if vLLM releases nothing."""

    def __init__(
        self, shared: Callable[[], Mapping[str, Shared]], device: torch.device, needs: StepNeeds | None
    ) -> None:
        self._shared = shared
        self._device = device
        self._needs = needs
        self._plans: dict[tuple[str, str], Release] = {}
        # Raised by a lack of memory, until the process ends.
        self._least: Release = "nothing"
        self._release: Release = "all"
        # Resumes the engines that are paused.
        self._paused = ExitStack()
        self._is_shared = False
        self._seconds: dict[str, float] = {}
        self._has_more_room = False

    def expect(self, base_model: str, train: TrainConfig) -> None:
        """Announces the next training, whose model is loaded."""
        self._release = larger(self._planned(base_model, train), self._least)

    def take_seconds(self) -> dict[str, float]:
        """Seconds of switching in the last step, by phase; empty without switching."""
        seconds, self._seconds = self._seconds, {}
        return seconds

    def take_more_room(self) -> bool:
        """Whether the next try has more memory than the failed one."""
        has_more, self._has_more_room = self._has_more_room, False
        return has_more

    def __enter__(self) -> None:
        self._seconds = {}
        engines = list(self._shared().values())
        self._is_shared = bool(engines)
        with ExitStack() as paused:
            for engine in engines:
                paused.callback(engine.resume)
                engine.pause()
            started = time.perf_counter()
            for engine in engines:
                released = engine.release(self._release)
                if released != self._release:
                    # A server that knows no smaller release will not know it the next time.
                    self._least = released
            self._paused = paused.pop_all()
        if engines and self._release != "nothing":
            self._seconds["wait"] = time.perf_counter() - started

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._paused:
            if self._is_shared and is_out_of_memory(error):
                # The step's memory would be in the way of vLLM's.
                traceback.clear_frames(trace)
                give_back(self._device)
                self._release_more()
            started = time.perf_counter()
        if self._seconds:
            self._seconds["train"] = time.perf_counter() - started

    def _release_more(self) -> None:
        following = more(larger(self._release, self._least))
        if following is None:
            return
        self._least, self._has_more_room = following, True
        log.warning("a step lacked memory; from now on vLLM releases more of it", extra={"release": following})

    def _planned(self, base_model: str, train: TrainConfig) -> Release:
        engines = self._shared()
        # Plans are impossible with several models, whose memory is unknown, and during a start, which has not taken all
        # of its memory.
        if self._needs is None or list(engines) != [base_model] or not engines[base_model].is_live:
            return "all"
        key = (base_model, train.model_dump_json())
        if key not in self._plans:
            self._plans[key] = self._plan(base_model, train, self._needs)
        return self._plans[key]

    def _plan(self, base_model: str, train: TrainConfig, needs: StepNeeds) -> Release:
        free = free_bytes(self._device)
        if free is None:
            return "all"
        need, taken = needs(base_model, train)
        plan = plan_release(free, taken, need)
        fields = {"model": base_model, "release": plan.release, "reason": plan.reason}
        log.info("planned what vLLM releases while steps are trained", extra=fields)
        return plan.release
