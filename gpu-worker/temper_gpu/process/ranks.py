"""What another rank than the GPU worker is made of. The fork server imports it once for all (training/group)."""

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
    make_deterministic(settings.threads)
    ranks = Joined(rank, len(settings.devices), parts_on=settings.parts_on(rank))
    join_steps(partial(open_trainer, settings, rank), ranks, meeting, pipe)


def open_trainer(settings: RankSettings, rank: int, ranks: Ranks) -> Trainer:
    device = choose_device(settings.devices[rank])
    store = open_store(settings.store)
    kind = OutlineLibrary if settings.shards else ModelLibrary
    dtype = getattr(torch, settings.dtype)
    library = kind(ModelFolders(settings.models), dtype, device, load_in_4bit=settings.load_in_4bit)
    read_turns = ChatTurns(StoredTemplates(store).text)
    given = (library, store, nullcontext(), lambda base_model: {}, read_turns, ranks)
    return Trainer(*given, compiles=settings.compile_layers)
