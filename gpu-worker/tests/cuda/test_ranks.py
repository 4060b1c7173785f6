"""What ranks do with tensors on a GPU, on a fake one: sums by host memory, and a base model in parts by FSDP2.

One rank is all there are, so nothing is sent, and NCCL is left out: what it would gather is copied. Streams and events
are objects that do nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup

from temper_gpu.training.ranks import Alone, Ranks
from temper_gpu.training.ranks.joined import Joined
from tests.cuda.fake_gpu import GPU, FakeGpu, on_gpu
from tests.cuda.test_trainer import Way, require_same_numbers, step
from tests.training.agreement import first_moments, require_same_gradients
from tests.training.samples import tiny_base


class InParts(Alone):
    """Of the base model this rank has a part, which is all of it."""

    shards = True


class Nothing:
    """A stream, or an event."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self


@contextmanager
def no_stream(_: Any) -> Iterator[None]:
    yield


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "Stream": Nothing,
        "Event": Nothing,
        "current_stream": Nothing,
        "stream": no_stream,
        "current_device": lambda: GPU.index,
        "set_device": lambda device: None,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    # C++ says that they are on the meta device.
    monkeypatch.setattr(FSDPParamGroup, "_validate_no_meta_params", lambda group: None)


def require_same(ranks: Ranks, way: Way, is_in_parts: bool) -> None:
    base = tiny_base()
    wanted, _, state = step(base, way)
    with FakeGpu() as gpu:
        there = replace(base, parts_on=GPU) if is_in_parts else on_gpu(base)
        found, _, state_there = step(there, way, ranks)
    assert gpu.launched.total() > 500
    require_same_numbers(found, wanted)
    require_same_gradients(first_moments(state_there), first_moments(state))


def test_a_ranks_gradients_go_through_host_memory(tmp_path: Path):
    joined = Joined(0, 1)
    joined.join(tmp_path / "meeting")
    try:
        require_same(joined, Way("rows"), False)
    finally:
        joined.leave()


@pytest.mark.usefixtures("streams")
def test_a_base_model_in_parts_has_the_cpus_numbers():
    require_same(InParts(), Way("tree", is_recomputed=True), True)
