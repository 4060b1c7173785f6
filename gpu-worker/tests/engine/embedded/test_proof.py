"""What breaks batch invariance is noticed: by its tests, by the proof at start, by the process that starts anew."""

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

import temper_gpu.engine.embedded.engine as engine_module
import temper_gpu.engine.embedded.forward as forward
from temper_gpu.engine.embedded.engine import find_sizes
from temper_gpu.engine.embedded.experts import EXPERTS, block_experts
from temper_gpu.engine.embedded.host import EngineHost
from temper_gpu.engine.embedded.proof import Unproven, prove_sizes
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.model.instructions import LIMITS
from temper_gpu.model.models import BaseModel, ModelLibrary
from tests.engine.embedded.tiny import open_proving_engine, tiny_base
from tests.failing import failing


def test_experts_that_feel_who_else_chose_them_are_noticed(monkeypatch: pytest.MonkeyPatch):
    """As they do where their tokens are one matrix, whose number of rows chooses the kernel; made visible."""

    def careless(experts, hidden_MD, index_MK, weights_MK):
        counts = torch.bincount(index_MK.flatten(), minlength=experts.num_experts)
        return block_experts(experts, hidden_MD, index_MK, weights_MK * (1 + 1e-6 * counts[index_MK]))

    monkeypatch.setitem(ALL_EXPERTS_FUNCTIONS, EXPERTS, careless)
    with pytest.raises(Unproven, match="token's position"):
        prove_sizes(tiny_base("mixture"), Sizes((16, 128), 0), 128)


@pytest.mark.parametrize("size", [48, 128, 256])
@pytest.mark.parametrize("mutant", ["first layer", "last layer", "far positions", "decode"])
def test_a_mutant_that_breaks_invariance_for_one_size_is_found_by_the_proof(
    base, monkeypatch: pytest.MonkeyPatch, size: int, mutant: str
):
    """One bit of a token (of every other one in the last layer, where only sampled tokens count)."""
    true_attend = forward.ForwardPass.attend

    def attend(self, layer, query_1HMD):
        output = true_attend(self, layer, query_1HMD)
        is_far = bool(self.earlier)
        is_decode = self.own[0].positions_RC.shape[1] == 1
        is_hit = {
            "first layer": layer.index == 0 and not is_decode,
            "last layer": layer.index == 1 and not is_decode,
            "far positions": layer.index == 0 and is_far,
            "decode": layer.index == 0 and is_decode,
        }[mutant]
        if is_hit and query_1HMD.shape[2] == size:
            output = output.clone()
            hit = slice(None, None, 2) if mutant == "last layer" else size // 2
            output[0, hit] = torch.nextafter(output[0, hit], torch.tensor(torch.inf))
        return output

    monkeypatch.setattr(forward.ForwardPass, "attend", attend)
    sizes = Sizes((16, 48, 128, 256, 512), 0)
    assert prove_sizes(base, sizes, 256).allowed == tuple(each for each in sizes.allowed if each != size)


def test_where_places_matter_in_every_size_the_engine_does_not_start(base, monkeypatch: pytest.MonkeyPatch):
    true_attend = forward.attend

    def attend(query_RCHD, *others):
        attended = true_attend(query_RCHD, *others)
        places_Q11 = torch.arange(len(attended.output_QHD))[:, None, None]
        return attended._replace(output_QHD=attended.output_QHD * (1 + 1e-5 * places_Q11))

    monkeypatch.setattr(forward, "attend", attend)
    with failing("BadConfig", "token's position"):
        open_proving_engine(base)


def on_a_gpu(base: BaseModel) -> BaseModel:
    """Stands for one: its numbers are elsewhere."""
    return replace(base, tensors={name: tensor.to("meta") for name, tensor in base.tensors.items()})


def test_on_a_gpu_an_engine_without_a_proof_starts_without_its_promise_and_says_so(
    base, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """There are no narrower instructions that would help."""

    def prove(*_) -> None:
        raise Unproven("every size depends on places")

    monkeypatch.setattr(engine_module, "prove_sizes", prove)
    sizes = find_sizes(on_a_gpu(base), Sizes((16, 128), 0), 128)
    assert sizes == Sizes((16, 128), 0, is_proven=False)
    assert "--engine vllm" in caplog.text


@pytest.mark.parametrize(("is_proven", "recorded"), [(True, {}), (False, {"invariance": "none"})])
def test_manifests_say_where_answers_may_depend_on_the_load(
    base, monkeypatch: pytest.MonkeyPatch, is_proven: bool, recorded: dict[str, str]
):
    def find(base: BaseModel, sizes: Sizes, max_slots: int) -> Sizes:
        return replace(sizes, is_proven=is_proven)

    monkeypatch.setattr(engine_module, "find_sizes", find)
    host = EngineHost(Library(base), EmbeddedSettings(num_threads=1, max_pass_tokens=256))
    assert host.recorded(base.name) == recorded
    assert host.engine(base.name).health().details["proven"] == is_proven
    host.close()


# ---- where the proof leaves too little, the process is limited to narrower instructions


class Library(ModelLibrary):
    def __init__(self, base: BaseModel) -> None:
        super().__init__(dict, base.dtype, base.device)
        self._models[base.name] = base


@pytest.mark.parametrize(("num_sizes", "is_doubted"), [(0, True), (3, True), (4, False)])
def test_a_model_of_which_few_sizes_are_proven_is_doubted(
    base, monkeypatch: pytest.MonkeyPatch, num_sizes: int, is_doubted: bool
):
    def prove(base: BaseModel, sizes: Sizes, max_slots: int, beside: bool) -> Sizes:
        if not num_sizes:
            raise Unproven("every size depends on places")
        return Sizes(sizes.allowed[-num_sizes:], 0)

    monkeypatch.setattr(engine_module, "prove_sizes", prove)
    doubts: list[str] = []
    settings = EmbeddedSettings(num_threads=1, max_pass_tokens=256)
    host = EngineHost(Library(base), settings, on_doubt=doubts.append)
    with suppress(Unproven):
        host.engine(base.name)
    assert bool(doubts) == is_doubted
    host.close()


START_NARROWER = """
import os, sys
from temper_gpu.model.instructions import limits, start_narrower
print(os.getpid(), limits(), flush=True)
if not limits():
    assert os.read(0, 1) == b"1"
start_narrower("no size is proven")
print("ready", os.read(0, 1), *sys.argv[1:], flush=True)
"""


def test_a_process_starts_narrower_once_with_its_id_and_its_stdin():
    env = {name: value for name, value in os.environ.items() if name not in LIMITS}
    command = [sys.executable, "-c", START_NARROWER, "--leash", "--standby"]
    process = subprocess.run(command, input=b"12", capture_output=True, env=env, check=True)
    first, second, ready = process.stdout.decode().splitlines()
    narrow = "ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=AUTO,STRICT ONEDNN_MAX_CPU_ISA=AVX2"
    assert (second, ready) == (f"{first.strip()} {narrow}", "ready b'2' --leash")
    assert b"no size is proven. The worker starts again with narrower instructions" in process.stderr
