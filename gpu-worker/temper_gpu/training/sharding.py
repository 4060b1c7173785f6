"""A frozen base model whose weights are spread over the ranks by PyTorch's FSDP2 (`fully_shard`).

Each decoder layer, the embedding and the output head are a group of weights, gathered when the layer is computed,
forward and backward, and freed afterwards. Ranks exchange bits, so the numbers are those of an unsharded model. LoRA's
parameters are whole on every rank, and `Ranks` sums their gradients.

Rank 0 alone loads the weights, into main memory. The others receive theirs from it, group by group.
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
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.training.ranks import Ranks

_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool)


class WholeBase:
    def begin_pass(self) -> None: ...

    def end_decoder(self, hidden_BTD: Tensor) -> None: ...

    def end_pass(self) -> None: ...


class ShardedBase:
    """Shards a model in place. All ranks shard it, and run all of its passes, together."""

    def __init__(self, model: PreTrainedModel, ranks: Ranks, device: torch.device) -> None:
        self._device = device
        self._decoder: Any = model.get_decoder()
        self._has_run = False
        incoming = _Incoming(model, ranks, device)
        with _mesh(ranks, device) as mesh:
            shard = _Sharder(mesh, ranks, incoming)
            # pyrefly: ignore[not-iterable]
            for layer in self._decoder.layers:
                # pyrefly: ignore[bad-argument-type]
                shard(layer)
            embedding, self._head = self._shard_ends(model, shard, incoming)
            # Remaining weights (norms) are small, and whole everywhere.
            incoming.place(model)
            fully_shard(self._decoder, mesh=mesh, ignored_params=set(self._decoder.parameters()))
        input_embeddings: Any = model.get_input_embeddings()
        output_embeddings: Any = model.get_output_embeddings()
        input_embeddings.register_forward_pre_hook(lambda *_: embedding.unshard())
        input_embeddings.register_forward_hook(lambda *_: embedding.reshard())
        # The head stays gathered until all chunks are through, because it is called once for each, and again if
        # recomputed.
        output_embeddings.register_forward_pre_hook(lambda *_: self._head.unshard())
        self._ends = (embedding, self._head)

    @staticmethod
    def _shard_ends(model: PreTrainedModel, shard: "_Sharder", incoming: "_Incoming") -> tuple[Any, Any]:
        """Shards tied weights as one, in containers that are never called."""
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
        """Resets gathered weights that the last pass left. The prefetch order then depends on this pass alone."""
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        if self._has_run:
            self._decoder.reset_iter_state()
        for end in self._ends:
            end.reshard()
        self._has_run = True

    def end_decoder(self, hidden_BTD: Tensor) -> None:
        """Frees the head's weights when the decoder's backward pass begins."""
        if hidden_BTD.requires_grad:
            hidden_BTD.register_hook(lambda _: self._head.reshard())

    def end_pass(self) -> None:
        """Frees the weights of a pass without a backward pass."""
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
    """FSDP's all-gather over `Ranks`, which notices a lost rank."""

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
        # Ranks without weights need their types, and which are tied: only rank 0 knows.
        sent = torch.tensor([*(_DTYPES.index(tensor.dtype) for tensor in frozen), _is_one(*ends)])
        ranks.send(sent)
        *types, tied = sent.tolist()
        self.has_tied_ends = bool(tied)
        if self.has_tied_ends:
            ends[1].weight = ends[0].weight
        # References keep the addresses of the tensors unique.
        self._left = {id(tensor): (tensor, _DTYPES[number]) for tensor, number in zip(frozen, types, strict=True)}

    def place(self, module: nn.Module) -> None:
        """Replaces tensors that have no numbers yet."""
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
    """Frozen weights and buffers, with their modules."""
    for owner in module.modules():
        for name, parameter in owner.named_parameters(recurse=False):
            if not parameter.requires_grad:
                yield owner, name, parameter
        for name, buffer in owner.named_buffers(recurse=False):
            yield owner, name, buffer


def _is_one(embedding: nn.Embedding, head: nn.Linear) -> bool:
    """Compares addresses on rank 0. Tensors without numbers have none."""
    return not embedding.weight.is_meta and embedding.weight.data_ptr() == head.weight.data_ptr()


@contextmanager
def _mesh(ranks: Ranks, device: torch.device) -> Iterator[DeviceMesh]:
    """A mesh for FSDP, which asks its group for ranks and sends nothing over it: this group cannot send."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # The import would replace the hook for uncaught errors.
    excepthook = sys.excepthook
    store = dist.HashStore()
    dist.init_process_group("fake", store=store, rank=ranks.rank, world_size=ranks.count)
    try:
        # pyrefly: ignore[bad-argument-type]
        yield DeviceMesh.from_group(dist.group.WORLD, device.type)
    finally:
        dist.destroy_process_group()
        sys.excepthook = excepthook
