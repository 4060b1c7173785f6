"""The GPU worker's side of one group of ranks: from its start to the first one that is lost."""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from queue import Empty
from typing import Any

from temper_gpu.failures import FAILURE_TYPES, TemperError
from temper_gpu.training.group.agent_process import AgentProcess
from temper_gpu.training.group.channel import Channel, Kind, Message
from temper_gpu.training.group.orders import RankSettings
from temper_gpu.training.ranks import StepCancelled

# The agent imports torch and transformers before it forks.
START_S = 300.0
LOOK_S = 0.5
# A rank beats every second, from a thread that never touches torch. Counted while this process runs.
SILENT_S = 15.0
# After one has failed, until the others must have given up: they may wait for it in a collective.
GIVE_UP_S = 5.0

IsCancelled = Callable[[], bool]

log = logging.getLogger(__name__)


@dataclass
class Rank:
    channel: Channel
    pid: int
    silent_s: float = 0.0
    # The last of what it told of the step in hand.
    told: Message = field(default_factory=lambda: Message("hello"))
    is_gone: bool = False

    @property
    def has_ended(self) -> bool:
        """The step, not itself."""
        return self.told.kind in ("made", "cancelled", "failed")


class RankGroup:
    """Whatever is wrong with one of its ranks ends all of it, and raises."""

    def __init__(self, agent: AgentProcess, settings: RankSettings, is_cancelled: IsCancelled) -> None:
        self.settings = settings
        self._agent = agent
        self._ranks: dict[int, Rank] = {}
        self._is_closed = False
        agent.order(settings)
        end = time.monotonic() + START_S
        while len(self._ranks) < self.count:
            if is_cancelled():
                self.close()
                raise StepCancelled
            self._welcome(end)
        log.info("ranks began", extra={"pids": self.pids})

    @property
    def pids(self) -> list[int]:
        return [self._ranks[number].pid for number in range(self.count)]

    @property
    def count(self) -> int:
        return len(self.settings.devices)

    def close(self) -> None:
        self._is_closed = True
        for rank in self._ranks.values():
            rank.channel.close()
        self._agent.kill_ranks()

    def is_whole(self) -> bool:
        """Between two steps."""
        if self._is_closed:
            return False
        try:
            self._hear(0)
        except TemperError:
            return False
        return True

    def make(self, turn: AbstractContextManager[object], is_cancelled: IsCancelled, **work: Any) -> list[Message]:
        """What each rank made of a step. `turn`: held from when all have loaded what they need."""
        for rank in self._ranks.values():
            rank.told = Message("work")
        self._tell("work", **work)
        self._until(lambda rank: rank.told.kind == "waiting", is_cancelled)
        with turn:
            self._tell("cancel" if is_cancelled() else "go")
            self._until(lambda rank: rank.has_ended, is_cancelled)
        return [self._ranks[number].told for number in range(self.count)]

    def _welcome(self, end: float) -> None:
        try:
            channel, hello = self._agent.hellos.get(timeout=LOOK_S)
        except Empty:
            if self._agent.is_alive and self._agent.how_it_ended() is None and time.monotonic() < end:
                return
            raise self._ended(f"{self.count} ranks must start, but did not") from None
        self._ranks[hello.fields["rank"]] = Rank(channel, hello.fields["pid"])

    def _until(self, is_enough: Callable[[Rank], bool], is_cancelled: IsCancelled) -> None:
        """Returns when it is so of all ranks; raises when one of them ended without having made the step."""
        ranks = self._ranks.values()
        gives_up, end = False, None
        while not all(map(is_enough, ranks)) or (gives_up and not all(rank.has_ended for rank in ranks)):
            self._hear(LOOK_S)
            has_failed = any(rank.told.kind == "failed" for rank in ranks)
            if not gives_up and (has_failed or is_cancelled()):
                self._tell("cancel")
                gives_up = True
            if has_failed and end is None:
                end = time.monotonic() + GIVE_UP_S
            if end is not None and time.monotonic() > end:
                break
        self._raise_failure()

    def _raise_failure(self) -> None:
        """The lowest rank's, where several have failed. If others have not ended, the group is of no use any more."""
        told = {number: rank.told for number, rank in sorted(self._ranks.items())}
        is_broken = any(rank.is_gone or not rank.has_ended for rank in self._ranks.values())
        if is_broken and any(message.kind == "failed" for message in told.values()):
            self.close()
        for number, message in told.items():
            if message.kind == "failed":
                raise failure_of(number, message)
        if any(message.kind == "cancelled" for message in told.values()):
            raise StepCancelled

    def _tell(self, kind: Kind, **fields: Any) -> None:
        for number, rank in self._ranks.items():
            try:
                rank.channel.send(kind, **fields)
            except OSError:
                if rank.told.kind == "failed":
                    continue
                raise self._ended(f"rank {number} of {self.count} must live until the step ends, but ended") from None

    def _hear(self, timeout_s: float) -> None:
        """What ranks have to say within the time."""
        started = time.monotonic()
        here = {number: rank for number, rank in self._ranks.items() if not rank.is_gone}
        by_connection = {rank.channel.connection: number for number, rank in here.items()}
        ready = [by_connection[connection] for connection in wait(list(by_connection), timeout_s)]  # pyright: ignore[reportArgumentType]  (of pipes and sockets)
        # However long this process itself was suspended.
        passed_s = min(time.monotonic() - started, LOOK_S)
        for number, rank in here.items():
            rank.silent_s = 0.0 if number in ready else rank.silent_s + passed_s
            if rank.silent_s > SILENT_S:
                raise self._lost(f"rank {number} of {self.count} must answer, but was silent for {SILENT_S:g} s")
        for number in ready:
            self._receive(number)

    def _receive(self, number: int) -> None:
        rank = self._ranks[number]
        try:
            message = rank.channel.receive()
        except (EOFError, OSError):
            if rank.told.kind != "failed":
                raise self._ended(f"rank {number} of {self.count} must live until the step ends, but ended") from None
            rank.is_gone = True
            return
        if message.kind != "beat":
            rank.told = message

    def _ended(self, what: str) -> TemperError:
        """The agent says how, before the others are killed."""
        reason = self._agent.wait_for_end()
        return self._lost(what if reason is None else f"{what} ({reason})")

    def _lost(self, what: str) -> TemperError:
        self.close()
        return TemperError("TrainerFailed", f"{what}; nothing was committed, and a retry makes the step with new ranks")


def failure_of(number: int, message: Message) -> Exception:
    kind, words = message.fields["type"], message.fields["message"]
    if kind == "OutOfMemory":
        return MemoryError(f"rank {number}: {words}")
    if kind in FAILURE_TYPES:
        return TemperError(kind, words)
    return RuntimeError(f"rank {number}: {words}")
