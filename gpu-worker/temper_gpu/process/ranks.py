"""Ranks other than the GPU worker. The fork server imports this file once for all of them (training/group)."""

from contextlib import nullcontext
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from temper_gpu.commits.templates import StoredTemplates
from temper_gpu.model.models import ModelLibrary
from temper_gpu.model.outlines import OutlineLibrary
from temper_gpu.process.host import ModelFolders, choose_device
from temper_gpu.process.logs import configure_logs
from temper_gpu.server.chat_turns import ChatTurns
from temper_gpu.store import open_store
from temper_gpu.training.group import RankSettings
from temper_gpu.training.group.member import join_steps
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.ranks import Ranks
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.trainer import Trainer


def enter(settings: RankSettings, rank: int, meeting: Path, pipe: Connection) -> None:
    configure_logs()
    make_deterministic(settings.worker.engine.threads)
    ranks = Joined(rank, len(settings.devices), parts_on=settings.parts_on(rank))
    join_steps(partial(open_trainer, settings, rank), ranks, meeting, pipe)


def open_trainer(settings: RankSettings, rank: int, ranks: Ranks) -> Trainer:
    worker, engine = settings.worker, settings.worker.engine
    store, folders = open_store(worker.store), ModelFolders(worker.models)
    device, dtype = choose_device(settings.devices[rank]), getattr(torch, settings.dtype)
    kind = OutlineLibrary if engine.shard_base_model else ModelLibrary
    library = kind(folders, dtype, device, load_in_4bit=engine.load_in4bit)
    turns = ChatTurns(StoredTemplates(store).text)
    return Trainer(library, store, nullcontext(), lambda base_model: {}, turns, ranks)
