"""python -m temper_gpu.process.ranks: the agent of a GPU worker's ranks (training/group). Started by the GPU worker.

Its stdin holds its orders, and is its leash.
"""

import torch

from temper_gpu.model.models import ModelLibrary
from temper_gpu.process.compose import ModelFolders, choose_device
from temper_gpu.process.logs import configure_logs
from temper_gpu.store import open_store
from temper_gpu.training.group import GroupOrder, run_agent
from temper_gpu.training.group.member import take_part
from temper_gpu.training.platform import make_deterministic


def main() -> None:
    configure_logs()
    import peft  # noqa: F401  # seconds, once for all ranks

    run_agent(enter)


def enter(order: GroupOrder, rank: int) -> None:
    settings = order.settings
    make_deterministic(settings.threads)
    device = choose_device(settings.devices[rank])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    library = ModelLibrary(ModelFolders(settings.models), getattr(torch, settings.dtype), device)
    take_part(order, rank, library, open_store(settings.store), device)


if __name__ == "__main__":
    main()
