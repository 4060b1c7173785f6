"""Rank 0's side of a group of ranks, from its start until the first of them is lost."""

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

from temper_gpu.contract import GpuWorkerSettings
from temper_gpu.failures import FAILURE_TYPES, TemperError
from temper_gpu.training.ranks import IsCancelled, RankLost, StepCancelled, never_cancelled
from temper_gpu.training.ranks.joined import Joined

# Start-up of the fork server, which imports torch and transformers before it forks.
START_S = 300.0
# Interval at which rank 0 checks what it waits for.
LOOK_S = 0.002
# Longest silence of a rank, counted while rank 0 waits for it. Ranks beat every second, from a thread that never
# touches torch.
SILENT_S = 15.0
# Time in which rank 0 must fail like a failed rank; otherwise the failure is that rank's own.
SAME_FAILURE_S = 2.0
EXPLAIN_S = 1.0
END_S = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RankSettings:
    """The GPU worker's settings, and what `auto` became on this host."""

    worker: GpuWorkerSettings
    # Devices by rank.
    devices: tuple[str, ...]
    dtype: str

    def parts_on(self, rank: int) -> torch.device | None:
        return torch.device(self.devices[rank]) if self.worker.engine.shard_base_model else None


# The entry point of a rank's process: settings, rank, the file to meet at, the pipe to rank 0. It never returns.
Enter = Callable[[RankSettings, int, Path, Connection], None]


def prepare(enter: Enter) -> None:
    """Starts to import what ranks need, so that the first group starts at once."""
    multiprocessing.set_forkserver_preload([enter.__module__])
    forkserver.ensure_running()


@dataclass
class Member:
    process: BaseProcess
    connection: Connection
    has_begun: bool = False
    silent_s: float = 0.0
    # The rank's failure, and for how long rank 0 has known it.
    failure: dict[str, Any] | None = None
    failed_s: float = 0.0


class RankGroup:
    """Several ranks. A failure of one ends the group and raises."""

    def __init__(self, enter: Enter, settings: RankSettings) -> None:
        self.settings = settings
        self.members: dict[int, Member] = {}
        # The folder is readable by this user alone.
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
        """Forks from a process without threads: an import for each rank would take seconds."""
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
        # All ranks have connected.
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
        """Whether no rank was lost between two steps."""
        try:
            for rank, member in self.members.items():
                while member.connection.poll():
                    self._receive(rank)
        except RankLost:
            return False
        return True

    def watch(self) -> None:
        """Receives messages; raises if waiting for the ranks is pointless."""
        if self._is_cancelled():
            raise StepCancelled
        by_connection = {member.connection: rank for rank, member in self.members.items()}
        started = time.monotonic()
        ready = wait(list(by_connection), LOOK_S)
        # A suspension of this process does not count.
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
        """Kills the ranks: they may wait in a collective that will never complete."""
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
