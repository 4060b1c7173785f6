"""A rank's side of the conversation with its GPU worker: takes a step's work, makes it, tells how it ended."""

import logging
import os
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Literal

import torch

from temper_gpu.commits.checkpoints import canonical_json, manifest_key
from temper_gpu.commits.forgetful_store import ForgetfulStore
from temper_gpu.contract import TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.model.memory import is_out_of_memory
from temper_gpu.model.models import Models
from temper_gpu.store import Store
from temper_gpu.training.group.channel import Channel, Message
from temper_gpu.training.group.orders import GroupOrder
from temper_gpu.training.ranks import StepCancelled
from temper_gpu.training.ranks.joined import join
from temper_gpu.training.trainer import Trainer

BEAT_S = 1.0

log = logging.getLogger(__name__)


def take_part(order: GroupOrder, rank: int, library: Models, store: Store, device: torch.device) -> None:
    """Joins the others, and makes steps with them until this process is ended."""
    worker = GpuWorker(order, rank)
    ranks = join(rank, order.count, device, Path(order.folder) / "meeting", worker.is_cancelled)
    memory, sampler = ForgetfulStore(store), Sampler()
    trainer = Trainer(library, memory, worker, sampler, ranks)  # pyright: ignore[reportArgumentType]  (of a store, what a trainer uses)
    while True:
        asked = worker.works.get()
        sampler.recorded = asked.fields["recorded"]
        _make(worker, trainer, memory, TrainInput.model_validate(asked.fields["work"]), rank)


class Sampler:
    """What manifests say of what samples: told with each step."""

    def __init__(self) -> None:
        self.recorded: dict[str, str] = {}

    def __call__(self, base_model: str) -> dict[str, str]:
        return self.recorded


class GpuWorker:
    """As a rank knows it. Held as a lock: the GPU worker says when the device is the trainer's."""

    def __init__(self, order: GroupOrder, rank: int) -> None:
        self.channel = Channel(Client(order.address, authkey=bytes.fromhex(order.key)))
        self.channel.send("hello", group=order.number, rank=rank, pid=os.getpid())
        self.works: SimpleQueue[Message] = SimpleQueue()
        self._turns: SimpleQueue[Literal["go", "cancel"]] = SimpleQueue()
        self._cancelled = threading.Event()
        for target in (self._listen, self._beat):
            threading.Thread(target=target, name=target.__name__, daemon=True).start()

    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def __enter__(self) -> None:
        self.channel.send("waiting")
        if self._turns.get() == "cancel":
            raise StepCancelled

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def _listen(self) -> None:
        """Ends this process where the GPU worker is gone, or done with the group, whatever the other threads do."""
        while True:
            try:
                self._take(self.channel.receive())
            except (EOFError, OSError):
                os._exit(1)

    def _take(self, message: Message) -> None:
        match message.kind:
            case "work":
                # What was said of the step before.
                self._cancelled.clear()
                while not self._turns.empty():
                    self._turns.get()
                self.works.put(message)
            case "cancel":
                self._cancelled.set()
                self._turns.put("cancel")
            case "go":
                self._turns.put("go")

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_S)
            self.channel.send("beat")


def _make(worker: GpuWorker, trainer: Trainer, memory: ForgetfulStore, work: TrainInput, rank: int) -> None:
    memory.hide(manifest_key(work.run, work.branch, work.step))
    tell: Callable[..., None] = worker.channel.send
    try:
        # Alone, a rank never gives up: `Joined` lets all do it at once.
        manifest = trainer.train(work, lambda: False).commit.manifest
    except StepCancelled:
        return tell("cancelled")
    except TemperError as error:
        return tell("failed", type=error.type, message=error.message)
    except Exception as error:
        tell(
            "failed",
            type="OutOfMemory" if is_out_of_memory(error) else None,
            message=f"{type(error).__name__}: {error}",
        )
        log.exception("rank failed", extra={"rank": rank})
        # The others may be in a collective that this one never comes to.
        raise
    blobs = [memory.blobs[ref.sha256] for ref in (manifest.adapter, manifest.optimizer)] if rank == 0 else []
    tell("made", blobs, manifest=canonical_json(manifest.model_dump(by_alias=True)).decode())
