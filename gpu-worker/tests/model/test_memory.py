"""A lack of memory, in the words of each who may tell of it."""

import pytest
import torch

from temper_gpu.model import memory
from temper_gpu.model.memory import Shortage, give_back, is_device_lost, is_out_of_memory

GPU = torch.device("cuda", 1)


@pytest.mark.parametrize(
    ("error", "is_lack"),
    [
        (torch.AcceleratorError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (MemoryError(), True),
        (torch.AcceleratorError("CUDA error: an illegal memory access was encountered"), False),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"), False),
        (ValueError("CUDA error: out of memory"), False),
        (None, False),
    ],
    ids=str,
)
def test_each_way_to_say_that_memory_is_lacking_is_known(error: BaseException | None, is_lack: bool):
    assert is_out_of_memory(error) == is_lack


def test_a_device_is_lost_by_its_own_errors_but_for_a_lack_of_memory():
    assert is_device_lost(torch.AcceleratorError("CUDA error: an illegal memory access was encountered"))
    assert not is_device_lost(torch.AcceleratorError("CUDA error: out of memory"))
    assert not is_device_lost(RuntimeError("shapes do not fit"))


def test_what_a_step_leaves_in_a_gpus_allocator_is_given_back_and_a_cpu_keeps_nothing(monkeypatch: pytest.MonkeyPatch):
    freed: list[str] = []
    monkeypatch.setattr(memory, "free_memory", lambda: freed.append("freed"))
    give_back(torch.device("cpu"))
    assert freed == []
    give_back(GPU)
    assert freed == ["freed"]


def test_a_lack_is_told_in_figures_of_the_gpu_that_lacks(monkeypatch: pytest.MonkeyPatch):
    asked: list[torch.device | None] = []

    def told(value: object):
        return lambda device=None: (asked.append(device), value)[1]

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", told((1 << 30, 80 << 30)))
    monkeypatch.setattr(torch.cuda, "get_device_name", told("NVIDIA H100"))
    failure = Shortage("a step", "use a smaller model", GPU).failed(MemoryError())
    assert "1.0 GiB of 80.0 GiB are free on NVIDIA H100 (cuda:1)" in failure.message
    assert asked == [GPU, GPU]
