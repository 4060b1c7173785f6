"""One of several ranks, joined by gloo on this host's loopback, whatever device it computes on: what LoRA trains is
small beside a step's work, and goes through host memory.

What `all_reduce` adds up first is its own affair: sums are made here, of what was gathered, in the order of the ranks.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed import FileStore, ProcessGroupGloo  # pyright: ignore[reportPrivateImportUsage]

from temper_gpu.training.ranks.ranks import RankLost, deal_shares

# Its types leave out what it can do.
GLOO: Any = ProcessGroupGloo
# For all to find each other, once each has said that it is about to.
MEETING = timedelta(seconds=30)
# Who dies is noticed by its connections, who hangs by `watch`: a rank that computes may take as long as it needs.
PATIENCE = timedelta(days=1)
# Numbers of a gradient that are gathered at a time, from each rank (fp32: 64 MB).
MOST_AT_ONCE = 1 << 24

T = TypeVar("T")


class Joined:
    """`watch`: asked again and again while the others are waited for; raises where that is of no use."""

    def __init__(self, rank: int, count: int, watch: Callable[[], None] | None = None) -> None:
        self.rank = rank
        self.count = count
        self._watch = watch
        self._group: Any = None

    def join(self, meeting: Path) -> None:
        """`meeting`: a file that all ranks name, and nobody used before."""
        store = FileStore(str(meeting), self.count)
        store.set_timeout(MEETING)
        options = GLOO._Options()
        options._devices = [GLOO.create_device(hostname="127.0.0.1")]
        options._timeout = PATIENCE
        try:
            self._group = GLOO(store, self.rank, self.count, options)
        except RuntimeError as error:
            raise RankLost(str(error)) from error

    def leave(self) -> None:
        self._group = None

    def meet(self) -> None:
        self.gather(torch.zeros(1))

    def share(self, batches: Sequence[T], size: Callable[[T], int]) -> Sequence[T]:
        return [batches[place] for place in deal_shares([size(batch) for batch in batches], self.count)[self.rank]]

    def gather(self, tensor: Tensor) -> list[Tensor]:
        sent = tensor.detach().cpu().contiguous()
        found = [torch.empty_like(sent) for _ in range(self.count)]
        self._do(lambda group: group.allgather([found], [sent]))
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

    @torch.no_grad()
    def spread(self, parameters: Iterable[nn.Parameter]) -> None:
        for chunk in chunked(parameters):
            values = torch.cat([parameter.detach().flatten() for parameter in chunk]).cpu()
            self._do(lambda group, values=values: group.broadcast(values, 0))
            for parameter, part in zip(chunk, values.split([p.numel() for p in chunk]), strict=True):
                parameter.copy_(part.view_as(parameter))

    def _do(self, begin: Callable[[Any], Any]) -> None:
        try:
            work = begin(self._group)
            while self._watch is not None and not work.is_completed():
                self._watch()
            work.wait()
        except RuntimeError as error:
            raise RankLost(str(error)) from error


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
