"""Rank 0's side of one group of ranks: from its start to the first one that is lost."""

import json
import logging
import multiprocessing
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from temper_gpu.failures import FAILURE_TYPES, TemperError
from temper_gpu.training.ranks import IsCancelled, RankLost, StepCancelled, never_cancelled
from temper_gpu.training.ranks.joined import Joined

# The fork server imports torch and transformers before it forks.
START_S = 300.0
# How long rank 0 waits before it looks again whether what it waits for is there.
LOOK_S = 0.002
# A rank beats every second, from a thread that never touches torch. Counted while rank 0 waits for it.
SILENT_S = 15.0
# From a rank's failure until rank 0 must have met the same; else it is that rank's own.
SAME_FAILURE_S = 2.0
EXPLAIN_S = 1.0
END_S = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RankSettings:
    """What ranks have to know of their GPU worker."""

    store: str
    models: str | None
    # By rank.
    devices: tuple[str, ...]
    dtype: str
    # Of each.
    threads: int
    # Whether each holds a part of the base model alone.
    shards: bool = False
    load_in_4bit: bool = False
    compile_layers: bool = False

    def parts_on(self, rank: int) -> torch.device | None:
        return torch.device(self.devices[rank]) if self.shards else None


# In a process of its own, until that is ended: the settings, its rank, the file to meet at, the pipe to rank 0.
Enter = Callable[[RankSettings, int, Path, Connection], None]


def prepare(enter: Enter) -> None:
    """Begins to import what ranks need, beside this process: the first group is there at once then."""
    multiprocessing.set_forkserver_preload([enter.__module__, "temper_gpu.training.peft_alone"])
    forkserver.ensure_running()


@dataclass
class Member:
    process: BaseProcess
    connection: Connection
    has_begun: bool = False
    silent_s: float = 0.0
    # Why it cannot go on, and for how long rank 0 knew.
    failure: dict[str, Any] | None = None
    failed_s: float = 0.0


class RankGroup:
    """Whatever is wrong with one of its ranks ends all of it, and raises."""

    def __init__(self, enter: Enter, settings: RankSettings) -> None:
        self.settings = settings
        self.members: dict[int, Member] = {}
        # Of this user alone.
        self._folder = Path(tempfile.mkdtemp(prefix="temper-ranks-"))
        self._is_cancelled: IsCancelled = never_cancelled
        try:
            for rank in range(1, self.count):
                self.members[rank] = self._fork(enter, rank)
        except BaseException:
            self.close()
            raise

    @property
    def count(self) -> int:
        return len(self.settings.devices)

    @property
    def _meeting(self) -> Path:
        return self._folder / "meeting"

    def _fork(self, enter: Enter, rank: int) -> Member:
        """Of a process that has no threads: an import for each rank would take seconds."""
        context = multiprocessing.get_context("forkserver")
        here, there = context.Pipe()
        process = context.Process(
            target=enter, args=(self.settings, rank, self._meeting, there), daemon=True, name=f"rank {rank}"
        )
        try:
            process.start()
        except (EOFError, ConnectionError) as error:
            raise RankLost(
                f"{self.count} ranks must begin, but the process that forks them ended before rank {rank} did"
            ) from error
        finally:
            there.close()
        return Member(process, here)

    def join(self, ranks: Joined, is_cancelled: IsCancelled) -> None:
        self._is_cancelled = is_cancelled
        end = time.monotonic() + START_S
        while not all(member.has_begun for member in self.members.values()):
            self.watch()
            if time.monotonic() > end:
                raise RankLost(f"{self.count} ranks must begin within {START_S:g} s, but did not")
        ranks.join(self._meeting)
        # The others have found each other, too.
        ranks.meet()
        shutil.rmtree(self._folder, ignore_errors=True)
        log.info("ranks began", extra={"pids": [member.process.pid for member in self.members.values()]})

    def begin(self, work: bytes, is_cancelled: IsCancelled) -> None:
        self._is_cancelled = is_cancelled
        for rank, member in self.members.items():
            member.silent_s = 0.0
            try:
                member.connection.send_bytes(work)
            except OSError:
                raise RankLost(self._how_it_ended(rank)) from None

    def is_whole(self) -> bool:
        """Between two steps."""
        try:
            for rank, member in self.members.items():
                while member.connection.poll():
                    self._receive(rank)
        except RankLost:
            return False
        return True

    def watch(self) -> None:
        """Takes what ranks have said; raises where there is no sense in waiting for them."""
        if self._is_cancelled():
            raise StepCancelled
        by_connection = {member.connection: rank for rank, member in self.members.items()}
        started = time.monotonic()
        ready = wait(list(by_connection), LOOK_S)
        # However long this process itself was suspended.
        passed_s = min(time.monotonic() - started, 10 * LOOK_S)
        for connection, rank in by_connection.items():
            if connection in ready:
                self._receive(rank)
            else:
                self._count_silence(rank, passed_s)

    def explain(self, error: RankLost) -> str:
        """A connection may break a moment before its rank is known to have ended."""
        ended = wait([member.process.sentinel for member in self.members.values()], EXPLAIN_S)
        lost = [rank for rank, member in self.members.items() if member.process.sentinel in ended]
        return self._how_it_ended(lost[0]) if lost else str(error)

    def close(self) -> None:
        """Kills the ranks: they may be in a collective that nobody comes to any more."""
        for member in self.members.values():
            member.process.kill()
        for member in self.members.values():
            member.process.join(END_S)
            member.connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _receive(self, rank: int) -> None:
        member = self.members[rank]
        try:
            told = json.loads(member.connection.recv_bytes())
        except (EOFError, OSError):
            raise RankLost(self._how_it_ended(rank)) from None
        member.silent_s = 0.0
        member.has_begun = True
        if told is not None:
            member.failure = told

    def _count_silence(self, rank: int, passed_s: float) -> None:
        member = self.members[rank]
        member.silent_s += passed_s
        if member.has_begun and member.silent_s > SILENT_S:
            raise RankLost(f"rank {rank} of {self.count} must answer, but was silent for {SILENT_S:g} s")
        if member.failure is not None:
            member.failed_s += passed_s
            if member.failed_s > SAME_FAILURE_S:
                raise failure_of(rank, member.failure)

    def _how_it_ended(self, rank: int) -> str:
        process = self.members[rank].process
        process.join(END_S)
        code = process.exitcode
        how = "" if code is None else f" ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"
        return f"rank {rank} of {self.count} must live until the step ends, but ended{how}"


def failure_of(rank: int, told: dict[str, Any]) -> Exception:
    kind, words = told["type"], told["message"]
    if kind == "OutOfMemory":
        return MemoryError(f"rank {rank}: {words}")
    if kind in FAILURE_TYPES:
        return TemperError(kind, words)
    return RuntimeError(f"rank {rank}: {words}")
