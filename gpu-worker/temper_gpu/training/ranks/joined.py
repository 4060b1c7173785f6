"""One of several ranks, connected by gloo over this host's loopback, also on GPUs: LoRA's gradients are small and go
through host memory. Parts of a sharded base model go from GPU to GPU, by NCCL.

`all_reduce` has no fixed order of additions, so values are gathered and summed here, in the order of the ranks.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed import FileStore, PrefixStore, ProcessGroupGloo

from temper_gpu.training.ranks.ranks import RankLost

# Its type stubs are incomplete.
GLOO: Any = ProcessGroupGloo
# Time for all ranks to connect, after each has announced it.
MEETING = timedelta(seconds=30)
# Timeout of a collective. Lost connections show dead ranks, and `watch` hanging ones, so a rank may compute for long.
PATIENCE = timedelta(days=1)
# Numbers of a gradient that are gathered at a time, from each rank (fp32: 64 MB).
MOST_AT_ONCE = 1 << 24
# NCCL's network interface, read when its first group begins.
_NCCL_ON_LOOPBACK = ("NCCL_SOCKET_IFNAME", "=lo")


class Joined:
    """`watch` is called repeatedly while others are waited for, and raises if that is pointless. `parts_on`: the device
    with this rank's part of a sharded base model; None: not sharded."""

    def __init__(
        self,
        rank: int,
        count: int,
        watch: Callable[[], None] | None = None,
        parts_on: torch.device | None = None,
    ) -> None:
        self.rank = rank
        self.count = count
        self._watch = watch
        self._parts_on = parts_on
        self._group: Any = None
        # NCCL's group, for parts of the base model.
        self._gpus: Any = None

    @property
    def shards(self) -> bool:
        return self._parts_on is not None

    def join(self, meeting: Path) -> None:
        """`meeting`: a new file that all ranks name."""
        store = FileStore(str(meeting), self.count)
        store.set_timeout(MEETING)
        options = GLOO._Options()
        options._devices = [GLOO.create_device(hostname="127.0.0.1")]
        options._timeout = PATIENCE
        try:
            self._group = GLOO(store, self.rank, self.count, options)
        except RuntimeError as error:
            raise RankLost(str(error)) from error
        if self._parts_on is not None and self._parts_on.type == "cuda":
            self._join_gpus(store, self._parts_on)

    def _join_gpus(self, store: FileStore, device: torch.device) -> None:
        from torch.distributed import ProcessGroupNCCL

        os.environ.setdefault(*_NCCL_ON_LOOPBACK)
        torch.cuda.set_device(device)
        nccl: Any = ProcessGroupNCCL
        options = nccl.Options()
        # Its watchdog would end this process.
        options._timeout = PATIENCE
        self._gpus = nccl(PrefixStore("gpus", store), self.rank, self.count, options)
        # The first collective connects the ranks, while the store still exists.
        sent = torch.zeros(self.count, device=device, dtype=torch.float32)
        self.collect(sent, torch.zeros_like(sent[:1]))
        torch.cuda.synchronize(device)

    def leave(self) -> None:
        gpus, self._group, self._gpus = self._gpus, None, None
        if gpus is not None:
            # GPUs would wait for a lost rank's part forever.
            gpus.abort()

    def meet(self) -> None:
        self.gather(torch.zeros(1, dtype=torch.float32))

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
    def broadcast(self, parameters: Iterable[nn.Parameter]) -> None:
        for chunk in chunked(parameters):
            values = torch.cat([parameter.detach().flatten() for parameter in chunk]).cpu()
            self._do(lambda group, values=values: group.broadcast(values, 0))
            for parameter, part in zip(chunk, values.split([p.numel() for p in chunk]), strict=True):
                parameter.copy_(part.view_as(parameter))

    def send(self, tensor: Tensor) -> None:
        self._do(lambda group: group.broadcast(as_bytes(tensor), 0))

    def collect(self, whole: Tensor, part: Tensor) -> None:
        if whole.device.type == "cuda":
            return self._do(lambda _: self._gpus._allgather_base(whole, part))
        return self._do(lambda group: group._allgather_base(as_bytes(whole), as_bytes(part)))

    def _do(self, begin: Callable[[Any], Any]) -> None:
        try:
            work = begin(self._group)
            while self._watch is not None and not work.is_completed():
                self._watch()
            work.wait()
        except RuntimeError as error:
            raise RankLost(str(error)) from error


def as_bytes(tensor: Tensor) -> Tensor:
    """Bytes, because gloo supports few types."""
    return tensor.detach().view(-1).view(torch.uint8)


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
