import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load

import temper_gpu.process.recompute as again
from temper_gpu.contract import (
    EngineSettings,
    GpuWorkerSettings,
    InitialiseInput,
    RecomputeInput,
    TrainConfig,
    TrainInput,
)
from temper_gpu.model.instructions import LIMITS, limit_as
from temper_gpu.model.models import ModelLibrary
from temper_gpu.store import FileStore
from temper_gpu.training.optimizers import without_scales
from temper_gpu.training.trainer import Trainer
from tests.failing import failing
from tests.process.programs import answered
from tests.training.samples import (
    TinyLibrary,
    initialise_input,
    lora,
    open_folder,
    sampled_groups,
    train_config,
    train_input,
)


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FileStore, InitialiseInput, TrainInput]:
    """A store with steps 0 and 1 in it; the tiny base model answers to every library."""
    monkeypatch.setattr("temper_gpu.model.models.ModelLibrary", lambda *_, **__: TinyLibrary())
    store = open_folder(tmp_path)
    library: ModelLibrary = TinyLibrary()
    return store, *commit_two(store, Trainer(library, store, again.nullcontext()), train_config())


def commit_two(store: FileStore, trainer: Trainer, train: TrainConfig) -> tuple[InitialiseInput, TrainInput]:
    first = initialise_input(lora=train.lora)
    parent = trainer.initialise(first).commit.checkpoint("demo")
    work = train_input(store, parent, sampled_groups(parent.adapter_sha256), train=train)
    trainer.train(work, lambda: False)
    return first, work


def run(store: FileStore, work: InitialiseInput | TrainInput) -> dict[str, object]:
    settings = GpuWorkerSettings(store=store.uri, engine=EngineSettings(threads=1, shard_base_model=True))
    return again.recompute(settings, again.find_step(RecomputeInput(settings=settings, work=work)))


def files(store: FileStore) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(store.root.rglob("*")) if path.is_file()}


def test_a_step_made_again_has_the_same_bytes_and_leaves_the_store_as_it_was(committed):
    store, first, work = committed
    before = files(store)
    for made_from, step in ((first, 0), (work, 1)):
        recorded = store.read(f"runs/demo/branches/0/steps/{step}/manifest.json")
        assert recorded is not None
        manifest = json.loads(recorded)
        made = run(store, made_from)
        assert made["adapterSha256"] == manifest["adapter"]["sha256"]
        assert made["optimizerSha256"] == manifest["optimizer"]["sha256"]
        # pyrefly: ignore[missing-attribute]
        assert made["manifestSha256"] == again.read_commit(store, "demo", 0, step).sha256
        assert made["platform"] == manifest["platform"]
        assert made["differences"] == {name: {"max": 0.0, "share": 0.0} for name in ("adapter", "optimizer")}
    assert files(store) == before


def test_another_step_is_told_by_how_much_it_differs(committed):
    store, _, work = committed
    made = run(store, work.model_copy(update={"learning_rate": work.learning_rate * 2}))
    differences = made["differences"]
    assert isinstance(differences, dict)
    # Twice the way: what differs is half of what this step changed.
    assert differences["adapter"]["share"] == pytest.approx(0.5, abs=0.01)
    assert differences["adapter"]["max"] == pytest.approx(work.learning_rate, rel=0.01)


def test_moments_in_8_bits_are_compared_as_the_numbers_that_they_stand_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With those of step 0, too, which are float32."""
    monkeypatch.setattr("temper_gpu.model.models.ModelLibrary", lambda *_, **__: TinyLibrary())
    store = open_folder(tmp_path)
    library: ModelLibrary = TinyLibrary()
    optimizer = train_config().optimizer.model_copy(update={"kind": "adamw_8bit", "max_grad_norm": 1e9})
    config = train_config(lora=lora(256), optimizer=optimizer)
    _, work = commit_two(store, Trainer(library, store, again.nullcontext()), config)
    same = {"max": 0.0, "share": 0.0}
    assert run(store, work)["differences"] == {"adapter": same, "optimizer": same}
    faster = config.model_copy(update={"optimizer": optimizer.model_copy(update={"beta1": 0.8})})
    differences = run(store, work.model_copy(update={"train": faster}))["differences"]
    assert isinstance(differences, dict)
    # The first moments are twice as large, and much larger than the second ones.
    recorded = again.read_commit(store, "demo", 0, 1)
    assert recorded is not None
    moments = without_scales(load(store.get_blob(recorded.manifest.optimizer)))
    largest = max(float(tensor.abs().max()) for name, tensor in moments.items() if name != "step")
    assert differences["optimizer"]["max"] == pytest.approx(largest, rel=0.05)


def test_bytes_that_were_pruned_are_compared_by_hash_alone(committed):
    store, _, work = committed
    manifest = json.loads(store.read("runs/demo/branches/0/steps/1/manifest.json") or b"")
    (store.root / manifest["adapter"]["key"]).unlink()
    made = run(store, work.model_copy(update={"learning_rate": 0.5}))
    assert isinstance(made["differences"], dict)
    assert made["differences"]["adapter"] is None
    assert run(store, work)["adapterSha256"] == manifest["adapter"]["sha256"]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"work": {"run": "demo"}}, "work.TrainInput.branch: "),
        ({"settings": {"store": "file:///s", "engine": {"threads": 0}}}, "settings.engine.threads: "),
        ({"settings": {"store": "file:///s", "engine": {"device": "mps"}}}, "settings.engine.device: "),
    ],
)
def test_input_of_another_form_has_code_2(changes: dict[str, Any], place: str, capsys: pytest.CaptureFixture[str]):
    work = initialise_input().model_dump(by_alias=True, exclude_unset=True)
    assert answered("recompute", **{"settings": {"store": "file:///s"}, "work": work} | changes) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"BadConfig: the input of recompute must be right, but {place}" in told


def test_a_step_is_made_again_with_the_device_and_the_numbers_it_was_made_with(committed):
    store, _, _ = committed
    commit = again.read_commit(store, "demo", 0, 1)
    assert commit is not None
    assert "dtype" not in commit.manifest.platform  # float32 has no name: old manifests keep their bytes
    assert again.chosen_like(commit, "auto", "auto") == ("cpu", "float32")
    assert again.chosen_like(None, "auto", "auto") == ("auto", "auto")
    assert again.chosen_like(commit, "cuda", "bfloat16") == ("cuda", "bfloat16")
    platform = {**commit.manifest.platform, "gpu": "a GPU", "dtype": "bfloat16"}
    on_gpu = dataclasses.replace(commit, manifest=commit.manifest.model_copy(update={"platform": platform}))
    assert again.chosen_like(on_gpu, "auto", "auto") == ("auto", "bfloat16")


AVX2 = {"ATEN_CPU_CAPABILITY": "avx2"}
# A manifest may come from a foreign store: it sets nothing else.
FOREIGN = "LD_PRELOAD=evil.so MKL_CBWR=AVX2;x ATEN_CPU_CAPABILITY ATEN_CPU_CAPABILITY=avx2"


@pytest.mark.parametrize(
    ("recorded", "here", "expected"),
    [
        ("ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=AUTO,STRICT", {}, {**AVX2, "MKL_CBWR": "AUTO,STRICT"}),
        ("ATEN_CPU_CAPABILITY=avx2", {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"}, AVX2),
        (None, AVX2, {}),
        (FOREIGN, {}, AVX2),
    ],
)
def test_a_step_is_made_again_with_the_instructions_it_was_made_with(
    recorded: str | None, here: dict[str, str], expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    environment = {"PATH": "/bin", **here}
    monkeypatch.setattr("os.environ", environment)
    limit_as(recorded)
    assert environment == {"PATH": "/bin", **expected}


# What is made again does not matter here, nor how torch is set up: both take seconds.
RECOMPUTE = """
import sys, types
from temper_gpu.model.instructions import limits
from temper_gpu.process import recompute as again
from temper_gpu.process.__main__ import print_answer

def set_up(threads):
    assert "torch" not in sys.modules

sys.modules["temper_gpu.training.platform"] = types.SimpleNamespace(make_deterministic=set_up)
again.recompute = lambda settings, step: {"recorded": step.recorded.sha256}
assert print_answer("recompute", sys.stdin.buffer.read()) == 0
import torch
print(limits())
print(torch.backends.cpu.get_cpu_capability())
"""


def test_the_process_limits_itself_before_anything_reads_the_limits(tmp_path: Path):
    """The step was made natively here, and its manifest says otherwise."""
    store, work = open_folder(tmp_path), initialise_input()
    library: ModelLibrary = TinyLibrary()
    manifest = Trainer(library, store, again.nullcontext()).initialise(work).commit.manifest
    platform = {**manifest.platform, "instructions": "ATEN_CPU_CAPABILITY=default"}
    path = store.root / "runs/demo/branches/0/steps/0/manifest.json"
    path.write_text(manifest.model_copy(update={"platform": platform}).model_dump_json(by_alias=True))
    given = RecomputeInput(settings=GpuWorkerSettings(store=store.uri), work=work).model_dump_json(by_alias=True)
    command = [sys.executable, "-c", RECOMPUTE]
    environment = {name: value for name, value in os.environ.items() if name not in LIMITS}
    answer = subprocess.run(command, input=given, capture_output=True, env=environment, check=True, text=True).stdout
    made, instructions, capability = answer.splitlines()
    assert json.loads(made) == {"recorded": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert (instructions, capability) == ("ATEN_CPU_CAPABILITY=default", "DEFAULT")


def test_a_run_of_bfloat16_says_so_and_goes_on_in_no_other_type(store: FileStore):
    trainer = Trainer(bfloat16_library(), store, again.nullcontext())
    commit = trainer.initialise(initialise_input()).commit
    assert commit.manifest.platform["dtype"] == "bfloat16"
    groups = sampled_groups(commit.manifest.adapter.sha256)
    with failing("PolicyMismatch", "demo@0 .* in bfloat16.*in float32; start it with --dtype bfloat16"):
        float32: ModelLibrary = TinyLibrary()
        work = train_input(store, commit.checkpoint("demo"), groups)
        Trainer(float32, store, again.nullcontext()).train(work, lambda: False)


def bfloat16_library() -> ModelLibrary:
    library: ModelLibrary = TinyLibrary()
    base = library.get("tiny")
    tensors = {name: tensor.bfloat16() for name, tensor in base.tensors.items()}
    library.get = lambda name: dataclasses.replace(base, tensors=tensors)
    return library


def test_a_step_that_another_engine_sampled_names_it_and_is_made_again_with_the_same_manifest(tmp_path: Path):
    store, work = open_folder(tmp_path), initialise_input()
    sampler = {"engine": "vllm 0.32.0", "engineFlags": "--dtype=float32"}
    library: ModelLibrary = TinyLibrary()
    commit = Trainer(library, store, again.nullcontext(), lambda base_model: sampler).initialise(work).commit
    assert sampler.items() <= commit.manifest.platform.items()
    assert again.sampler_of(commit) == sampler
    plain = Trainer(library, open_folder(tmp_path / "other"), again.nullcontext()).initialise(work).commit
    assert plain.manifest.platform.keys() == commit.manifest.platform.keys() - sampler.keys()
    assert again.sampler_of(plain) == again.sampler_of(None) == {}
