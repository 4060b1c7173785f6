"""Which devices train, and what is refused before anything is loaded."""

import os
from pathlib import Path

import pytest
import torch

from temper_gpu.contract import EngineSettings, GpuWorkerSettings
from temper_gpu.process.host import choose_device
from temper_gpu.process.ranks import open_trainer
from temper_gpu.process.training import choose_devices, require_shardable
from temper_gpu.training.group import RankSettings
from temper_gpu.training.ranks import ALONE
from tests.failing import failing

CPU = torch.device("cpu")
CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def four_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)


def test_cores_train_on_a_cpu_and_gpus_from_the_first_one_on(four_gpus: None):
    assert choose_devices(CORES, CPU) == ("cpu",) * CORES
    assert choose_devices(3, torch.device("cuda:1")) == ("cuda:1", "cuda:2", "cuda:3")
    assert choose_devices(2, torch.device("cuda"), of_vllm=(2, 3)) == ("cuda:0", "cuda:1")
    # On a GPU that it shares, vLLM sleeps while a step is trained.
    assert choose_devices(2, torch.device("cuda"), of_vllm=(0, 1)) == ("cuda:0", "cuda:1")


def test_more_than_there_are_and_those_of_vllm_are_refused(four_gpus: None):
    for count, first, of_vllm, complaint in (
        (CORES + 1, CPU, (), f"--devices must be at most {CORES}, the number of CPU cores .* pass --devices {CORES}$"),
        (3, torch.device("cuda:2"), (), "--devices must be at most 2, the number of GPUs .* got 3; pass --devices 2$"),
        (2, torch.device("cuda"), (1,), "--vllm-devices must not name a GPU that trains, got 1 with --devices 2"),
    ):
        with failing("BadConfig", complaint):
            choose_devices(count, first, of_vllm)


def test_an_engine_that_holds_the_whole_base_model_on_a_gpu_is_refused_where_it_is_sharded():
    require_shardable("vllm", torch.device("cuda:0"))
    require_shardable("embedded", CPU)
    with failing("BadConfig", "--engine vllm on GPUs, got the embedded engine.* pass --engine vllm"):
        require_shardable("embedded", torch.device("cuda:0"))


def test_other_ranks_load_the_base_model_as_the_first_one_does(tmp_path: Path):
    worker = GpuWorkerSettings(store=f"file://{tmp_path}", engine=EngineSettings(threads=1, load_in4bit=True))
    settings = RankSettings(worker, ("cpu", "cpu"), "bfloat16")
    base = open_trainer(settings, 1, ALONE)._library.get("pocket")
    assert base.packed
    assert base.dtype == torch.bfloat16


SMI = """#!/bin/sh
echo "NVIDIA H100 80GB HBM3, 550.54.15"
"""


@pytest.fixture
def old_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that the driver's own tool lists and PyTorch does not see."""
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_a_gpu_that_pytorch_cannot_use_is_told_with_its_driver(old_driver: None, monkeypatch: pytest.MonkeyPatch):
    complaint = "NVIDIA H100 80GB HBM3, driver 550.54.15.* PyTorch .* update the driver, or pass --device cpu"
    with failing("BadConfig", complaint):
        choose_device("auto")
    assert choose_device("cpu") == CPU
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert choose_device("auto") == CPU


def test_without_the_drivers_tool_a_host_has_no_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == CPU
