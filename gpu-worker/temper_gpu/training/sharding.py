"""A frozen base model of which each rank holds a part, by PyTorch's FSDP2 (`fully_shard`).

A decoder layer is a group of weights that come together when the layer is computed, forward and backward, and go again;
so are the embedding, and the output head. What the ranks give each other are bits: the numbers are those of a model
that is whole on each of them. LoRA's parameters are whole everywhere, and their gradients are added by `Ranks`.

Rank 0 alone has the weights, in main memory. The others get theirs from it, group by group.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from transformers import PreTrainedModel

from temper_gpu.training.ranks import Ranks

_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool)


class WholeBase:
    """Of a rank that needs nobody for its passes."""

    def begin_pass(self) -> None:
        """All weights are there."""

    def end_decoder(self, hidden_BTD: Tensor) -> None:
        """They stay."""

    def end_pass(self) -> None:
        """They stay."""


class ShardedBase:
    """Makes a model into this rank's part of it, in place. All ranks make it, and all of its passes, together."""

    def __init__(self, model: PreTrainedModel, ranks: Ranks, device: torch.device) -> None:
        self._device = device
        self._decoder: Any = model.get_decoder()
        self._has_run = False
        _make_room_for_adapter(model, device)
        incoming = _Incoming(model, ranks, device)
        with _mesh(ranks, device) as mesh:
            shard = _Sharder(mesh, ranks, incoming)
            for layer in self._decoder.layers:
                shard(layer)
            embedding, self._head = self._shard_ends(model, shard, incoming)
            # What remains (norms) is small, and whole everywhere.
            incoming.place(model)
            fully_shard(self._decoder, mesh=mesh, ignored_params=set(self._decoder.parameters()))
        input_embeddings: Any = model.get_input_embeddings()
        output_embeddings: Any = model.get_output_embeddings()
        input_embeddings.register_forward_pre_hook(lambda *_: embedding.unshard())
        input_embeddings.register_forward_hook(lambda *_: embedding.reshard())
        # Asked in chunks, and again where they are computed again: it stays until all of them are through.
        output_embeddings.register_forward_pre_hook(lambda *_: self._head.unshard())
        self._ends = (embedding, self._head)

    @staticmethod
    def _shard_ends(model: PreTrainedModel, shard: "_Sharder", incoming: "_Incoming") -> tuple[Any, Any]:
        """In containers that are never called: what is tied comes and goes as one, whoever of them is asked."""
        ends: list[Any] = [model.get_input_embeddings(), model.get_output_embeddings()]
        if incoming.has_tied_ends:
            both = nn.Sequential(*ends)
            shard(both)
            return both, both
        embedding, head = (nn.Sequential(end) for end in ends)
        shard(embedding)
        shard(head)
        return embedding, head

    def begin_pass(self) -> None:
        """Whatever became of the pass before. Whose weights come next depends on this pass alone then."""
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        if self._has_run:
            self._decoder.reset_iter_state()
        for end in self._ends:
            end.reshard()
        self._has_run = True

    def end_decoder(self, hidden_BTD: Tensor) -> None:
        """The backward pass of the head ends where that of the decoder begins."""
        if hidden_BTD.requires_grad:
            hidden_BTD.register_hook(lambda _: self._head.reshard())

    def end_pass(self) -> None:
        """Where no backward pass follows."""
        self._head.reshard()


class _Sharder:
    def __init__(self, mesh: DeviceMesh, ranks: Ranks, incoming: "_Incoming") -> None:
        self._mesh = mesh
        self._collecting: Any = _Collecting(ranks)
        self._incoming = incoming

    def __call__(self, group: nn.Module) -> None:
        self._incoming.place(group)
        adapter = {parameter for parameter in group.parameters() if parameter.requires_grad}
        fully_shard(group, mesh=self._mesh, reshard_after_forward=True, ignored_params=adapter)
        sharded: Any = group
        sharded.set_custom_all_gather(self._collecting)


class _Collecting:
    """FSDP's all-gather, by which ranks wait for each other as for anything else: a lost one is noticed."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def allocate(self, size: Iterable[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: object, async_op: bool = False) -> None:
        self._ranks.collect(output_tensor, input_tensor)


class _Incoming:
    """Weights and buffers of a model on their way to all ranks, each once."""

    def __init__(self, model: PreTrainedModel, ranks: Ranks, device: torch.device) -> None:
        self._ranks = ranks
        self._device = device
        ends: list[Any] = [model.get_input_embeddings(), model.get_output_embeddings()]
        frozen = [tensor for _, _, tensor in _frozen(model)]
        # The others have outlines: of which types the weights are, and which are one, only rank 0 knows.
        told = torch.tensor([*(_DTYPES.index(tensor.dtype) for tensor in frozen), _is_one(*ends)])
        ranks.send(told)
        *types, tied = told.tolist()
        self.has_tied_ends = bool(tied)
        if self.has_tied_ends:
            ends[1].weight = ends[0].weight
        # With the tensors: an address stays theirs as long as they are held.
        self._left = {id(tensor): (tensor, _DTYPES[number]) for tensor, number in zip(frozen, types, strict=True)}

    def place(self, module: nn.Module) -> None:
        """What is not there yet."""
        placed: dict[int, Tensor] = {}
        for owner, name, tensor in list(_frozen(module)):
            key = id(tensor)
            if key not in placed and key in self._left:
                placed[key] = self._receive(*self._left[key])
            if key in placed:
                setattr(owner, name, placed[key])
        for key in placed:
            del self._left[key]

    def _receive(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        is_here = self._ranks.rank == 0
        here = tensor.detach().contiguous() if is_here else torch.empty(tensor.shape, dtype=dtype)
        self._ranks.send(here)
        there = here.to(self._device)
        return nn.Parameter(there, requires_grad=False) if isinstance(tensor, nn.Parameter) else there


def _frozen(module: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """Weights that are not trained, and buffers, with the modules that have them."""
    for owner in module.modules():
        for name, parameter in owner.named_parameters(recurse=False):
            if not parameter.requires_grad:
                yield owner, name, parameter
        for name, buffer in owner.named_buffers(recurse=False):
            yield owner, name, buffer


def _is_one(embedding: nn.Embedding, head: nn.Linear) -> bool:
    """On rank 0. Without numbers there is no address."""
    return not embedding.weight.is_meta and embedding.weight.data_ptr() == head.weight.data_ptr()


def _make_room_for_adapter(model: nn.Module, device: torch.device) -> None:
    """Its values come with a checkpoint."""
    for owner in list(model.modules()):
        for name, parameter in list(owner.named_parameters(recurse=False)):
            if parameter.requires_grad:
                setattr(owner, name, nn.Parameter(torch.zeros_like(parameter, device=device)))


@contextmanager
def _mesh(ranks: Ranks, device: torch.device) -> Iterator[DeviceMesh]:
    """FSDP asks a process group who is who, and sends nothing by it: this one cannot, and nobody listens for it."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # It would take over how uncaught errors are told.
    excepthook = sys.excepthook
    store = dist.HashStore()  # pyright: ignore[reportPrivateImportUsage]
    dist.init_process_group("fake", store=store, rank=ranks.rank, world_size=ranks.count)
    try:
        yield DeviceMesh.from_group(dist.group.WORLD, device.type)  # pyright: ignore[reportArgumentType]
    finally:
        dist.destroy_process_group()
        sys.excepthook = excepthook
