"""One of several ranks, joined by torch.distributed: gloo on CPUs, NCCL on GPUs.

Its collectives on objects pickle, so only tensors go over it. What `all_reduce` adds up first is its own affair: sums
are made here, of what was gathered, in the order of the ranks.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from temper_gpu.training.ranks.ranks import StepCancelled, deal_shares

# A rank that hears nothing of another one for so long gives up. Who dies is noticed at once (group/group.py).
PATIENCE = timedelta(minutes=15)
# Numbers of a gradient that are gathered at a time, from each rank (fp32: 64 MB).
MOST_AT_ONCE = 1 << 24

T = TypeVar("T")


def join(rank: int, count: int, device: torch.device, meeting: Path, is_cancelled: Callable[[], bool]) -> "Joined":
    """`meeting`: a file that all ranks name, and nobody used before."""
    backend = "nccl" if device.type == "cuda" else "gloo"
    device_id = device if device.type == "cuda" else None
    store = dist.FileStore(str(meeting), count)
    dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=PATIENCE, device_id=device_id)
    return Joined(rank, count, device, is_cancelled)


class Joined:
    def __init__(self, rank: int, count: int, device: torch.device, is_cancelled: Callable[[], bool]) -> None:
        self.rank = rank
        self.count = count
        self._device = device
        self._is_cancelled = is_cancelled

    def share(self, batches: Sequence[T], size: Callable[[T], int]) -> Iterator[T]:
        """Ends early where the step is to be given up: the next `gather` tells everybody."""
        for place in deal_shares([size(batch) for batch in batches], self.count)[self.rank]:
            if self._is_cancelled():
                return
            yield batches[place]

    def gather(self, tensor: Tensor) -> list[Tensor]:
        gives_up = torch.tensor([int(self._is_cancelled())], device=self._device)
        if any(flag.item() for flag in self._gather(gives_up)):
            raise StepCancelled
        return self._gather(tensor)

    def _gather(self, tensor: Tensor) -> list[Tensor]:
        sent = tensor.detach().to(self._device).contiguous()
        found = [torch.empty_like(sent) for _ in range(self.count)]
        dist.all_gather(found, sent)
        return [each.to(tensor.device) for each in found]

    def add(self, tensor: Tensor) -> Tensor:
        return reduce(torch.add, self.gather(tensor))

    @torch.no_grad()
    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        for chunk in chunked(parameters):
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in chunk]
            total = self.add(torch.cat([at_least_float32(gradient).flatten() for gradient in gradients]))
            for parameter, part in zip(chunk, total.split([p.numel() for p in chunk]), strict=True):
                parameter.grad = part.view_as(parameter).to(parameter.dtype)


def at_least_float32(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def chunked(parameters: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    chunk: list[nn.Parameter] = []
    for parameter in parameters:
        if chunk and sum(p.numel() for p in chunk) + parameter.numel() > MOST_AT_ONCE:
            yield chunk
            chunk = []
        chunk.append(parameter)
    if chunk:
        yield chunk
