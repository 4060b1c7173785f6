"""What a manifest says about the machine that made it."""

import os
from contextlib import suppress

import pytest
import torch

from temper_gpu.model.instructions import LIMITS
from temper_gpu.training import platform
from temper_gpu.training.platform import (
    between_steps,
    fix_gpu_sums,
    fix_kernels,
    fix_threads,
    platform_fingerprint,
    repeatable,
)


@pytest.fixture(autouse=True)
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIMITS:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def fingerprint() -> dict[str, str | int]:
    return platform_fingerprint(torch.device("cpu"), torch.float32)


def test_a_limited_instruction_set_stands_in_the_fingerprint_and_an_unlimited_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
):
    plain = fingerprint()
    assert "instructions" not in plain
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert fingerprint() == {**plain, "instructions": "ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2"}


def test_a_trainer_computes_with_the_threads_that_are_set_whatever_an_engine_computes_with(
    monkeypatch: pytest.MonkeyPatch,
):
    before = torch.get_num_threads()
    monkeypatch.setattr(platform, "_threads", before + 1)
    torch.set_num_threads(1)
    assert fingerprint()["threads"] == before + 1
    fix_threads()
    assert torch.get_num_threads() == before + 1
    torch.set_num_threads(before)


@pytest.mark.parametrize(("vendor", "setting"), [("GenuineIntel", "AUTO,STRICT"), ("AuthenticAMD", None), ("", None)])
def test_on_intels_processors_matrix_products_are_strict(monkeypatch: pytest.MonkeyPatch, vendor: str, setting):
    monkeypatch.setattr(platform, "_cpu_field", lambda field: vendor)
    fix_kernels()
    assert os.environ.get("MKL_CBWR") == setting
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    fix_kernels()
    assert os.environ["MKL_CBWR"] == "AVX2"


def test_sums_of_bfloat16_products_are_not_rounded_on_the_way(monkeypatch: pytest.MonkeyPatch):
    products = torch.backends.cuda.matmul
    before = products.allow_bf16_reduced_precision_reduction
    products.allow_bf16_reduced_precision_reduction = True
    fix_gpu_sums()
    assert not products.allow_bf16_reduced_precision_reduction
    products.allow_bf16_reduced_precision_reduction = before


@pytest.mark.parametrize(("device", "after"), [("cuda", False), ("cpu", True)])
def test_on_a_gpu_kernels_are_deterministic_while_a_step_computes_and_on_a_cpu_always(device: str, after: bool):
    """The engine's own give one result without; the deterministic ones copy its whole key-value cache."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    between_steps(torch.device(device))
    assert torch.are_deterministic_algorithms_enabled() == after
    with suppress(KeyError), repeatable(torch.device(device)):
        assert torch.are_deterministic_algorithms_enabled()
        raise KeyError
    assert torch.are_deterministic_algorithms_enabled() == after
    with repeatable(torch.device(device)):
        assert torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(before)
