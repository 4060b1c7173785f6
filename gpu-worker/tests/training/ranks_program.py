"""The agent of test_ranks.py: its ranks know the tiny base model alone."""

from typing import Any

import peft  # noqa: F401  # before ranks are forked
import torch

from temper_gpu.store import open_store
from temper_gpu.training.group import GroupOrder, run_agent
from temper_gpu.training.group.member import take_part
from temper_gpu.training.platform import make_deterministic
from tests.training.samples import TinyLibrary


def enter(order: GroupOrder, rank: int) -> None:
    make_deterministic(order.settings.threads)
    library: Any = TinyLibrary()
    take_part(order, rank, library, open_store(order.settings.store), torch.device(order.settings.devices[rank]))


def main() -> None:
    run_agent(enter)
