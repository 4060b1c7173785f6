"""Exported models against transformers, PEFT and the engine: the same greedy tokens from each."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from temper_gpu.commits.checkpoints import Manifest, StoredAdapter, pruned_key, publish_commit
from temper_gpu.contract import LoraConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.full_weights import FullWeights, initial_weights
from temper_gpu.model.lora import LORA_B, adapter_bytes, config_bytes, initial_tensors, target_modules
from temper_gpu.model.merging import merge
from temper_gpu.model.models import POCKET_FOLDER, BaseModel, ModelLibrary
from temper_gpu.process import export
from temper_gpu.store import FileStore
from tests.engine.embedded.tiny import ask, open_engine, request, tiny_base
from tests.failing import failing
from tests.process.programs import answered

RANK, ALPHA = 4, 8.0
LORA = LoraConfig(rank=RANK, alpha=ALPHA, target_modules=None)
PROMPTS, NEW_TOKENS = 4, 12
MATRIX = "model.layers.0.mlp.down_proj"


@dataclass(frozen=True)
class Exporter:
    """A committed policy `demo@1` of a base model, and the ways out of it."""

    base: BaseModel
    source: str
    store: FileStore
    adapter: StoredAdapter
    models: Path
    folder: Path
    policy: str = "demo@1"

    def written(self, **fields: Any) -> int:
        given = {"store": self.store.uri, "policy": self.policy, "models": str(self.models), "folder": str(self.folder)}
        return answered("export", **given | fields)

    def merged(self, **fields: Any) -> Any:
        assert self.written(**fields) == 0
        return AutoModelForCausalLM.from_pretrained(self.folder).eval()


Make = Callable[..., Exporter]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(name: str = "pocket", scale: float = 0.1, **changes: Any) -> Exporter:
        source = tmp_path / "base"
        write_base(name, source)
        models = tmp_path / "models.json"
        models.write_text(json.dumps({"mine": str(source)}))
        base = ModelLibrary(lambda: {"mine": str(source)}, torch.float32, torch.device("cpu")).get("mine")
        store = FileStore(tmp_path / "store")
        manifest = commit_policy(store, base, scale, **changes)
        folder = tmp_path / "out"
        folder.mkdir()
        return Exporter(base, str(source), store, StoredAdapter(store, "demo", manifest), models, folder)

    return made


def write_base(name: str, folder: Path) -> None:
    if name == "pocket":
        shutil.copytree(POCKET_FOLDER, folder)
        return
    base = tiny_base(name)
    base.instantiate("sdpa").save_pretrained(folder)
    base.tokenizer.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}")


def commit_policy(store: FileStore, base: BaseModel, scale: float, **changes: Any) -> Manifest:
    model = base.instantiate("sdpa")
    targets = target_modules(model, None)
    tensors = initial_tensors(model, targets, RANK, seed=1)
    generator = torch.Generator().manual_seed(2)
    for name, tensor in tensors.items():
        if name.endswith(LORA_B):
            tensors[name] = scale * torch.randn(tensor.shape, generator=generator)
    fields: dict[str, Any] = {
        "branch": 0,
        "step": 1,
        "schema": 1,
        "parent": None,
        "inputs_sha256": "1" * 64,
        "base_model": "mine",
        "base_model_sha256": base.sha256,
        "adapter": store.put_blob(adapter_bytes(tensors)),
        "adapter_config": store.put_blob(config_bytes("mine", LORA, targets)),
        "optimizer": store.put_blob(b"zeros"),
        "groups": [],
        "learning_rate": 0.0,
        "metrics": {},
        "platform": {"threads": 1},
        "seed": 1,
        "train": None,
    }
    return publish_commit(store, "demo", Manifest(**{**fields, **changes}))[0].manifest


def greedy(model: Any) -> list[list[int]]:
    """Token by token, with nothing of a generation config in it."""
    answers: list[list[int]] = []
    for seed in range(PROMPTS):
        ids = list(request(seed, 6 + seed, 1).prompt_token_ids)
        prompt = len(ids)
        for _ in range(NEW_TOKENS):
            with torch.no_grad():
                ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        answers.append(ids[prompt:])
    return answers


def greedy_engine(exporter: Exporter) -> list[list[int]]:
    engine = open_engine(exporter.base)
    asked = [replace(request(seed, 6 + seed, NEW_TOKENS), temperature=0) for seed in range(PROMPTS)]
    try:
        return [ask(engine, each, exporter.adapter).token_ids for each in asked]
    finally:
        engine.close()


@pytest.mark.numerics
@pytest.mark.parametrize("name", ["pocket", "qwen3", "llama"])
def test_a_merged_model_answers_as_peft_and_the_engine_do(make: Make, tmp_path: Path, name: str):
    exporter = make(name)
    plain = AutoModelForCausalLM.from_pretrained(exporter.source).eval()
    before = greedy(plain)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    exporter.adapter.write_folder(adapter)
    by_peft: Any = peft.PeftModel.from_pretrained(plain, str(adapter))
    expected = greedy(by_peft)
    assert expected != before
    assert greedy(exporter.merged()) == expected
    assert greedy(by_peft.merge_and_unload()) == expected
    assert greedy_engine(exporter) == expected


def commit_weights(exporter: Exporter, scale: float, **changes: Any) -> Exporter:
    """In the place of the adapter: all weights, as a run without LoRA trains them."""
    generator = torch.Generator().manual_seed(2)
    start = initial_weights(exporter.base)
    tensors = {name: tensor + scale * torch.randn(tensor.shape, generator=generator) for name, tensor in start.items()}
    blobs = {"adapter": exporter.store.put_blob(adapter_bytes(tensors)), "full_fine_tuning": True}
    manifest = commit_policy(exporter.store, exporter.base, 0.0, step=2, **blobs, **changes)
    return replace(exporter, adapter=StoredAdapter(exporter.store, "demo", manifest), policy="demo@2")


@pytest.mark.numerics
@pytest.mark.parametrize("name", ["pocket", "qwen3"])
def test_weights_without_an_adapter_are_exported_as_they_are(make: Make, name: str, capsys: pytest.CaptureFixture[str]):
    """qwen3's embedding and head are one."""
    exporter = commit_weights(make(name), 0.05)
    model = exporter.merged()
    written, weights = load_file(exporter.folder / "model.safetensors"), exporter.adapter.read()
    assert written.keys() == weights.tensors.keys()
    assert all(torch.equal(tensor, weights.tensors[each]) for each, tensor in written.items())
    assert json.loads(capsys.readouterr().out)["kept"] is None
    expected = greedy(model)
    assert expected == greedy_engine(exporter) != greedy(AutoModelForCausalLM.from_pretrained(exporter.source))


def test_weights_that_another_type_would_lose_are_refused_but_not_in_the_type_of_their_run(
    make: Make, capsys: pytest.CaptureFixture[str]
):
    made = make()
    # As most models are published: with weights that bfloat16 holds, whatever type they are opened in.
    held = replace(made.base, tensors={name: t.bfloat16().float() for name, t in made.base.tensors.items()})
    moved = FullWeights("0", {name: tensor * (1 + 2**-11) for name, tensor in initial_weights(held).items()})
    with pytest.raises(TemperError, match=r"a rounded model must keep what training changes.*--dtype float32$"):
        merge(held, moved, torch.bfloat16)
    half = {"base_model_sha256": bfloat16_base(made), "platform": {"threads": 1, "dtype": "bfloat16"}}
    assert commit_weights(made, 1e-5, **half).written(dtype="bfloat16") == 0
    # It was sampled from just so.
    assert json.loads(capsys.readouterr().out)["kept"] is None


def test_the_folder_is_whole_and_names_no_path(make: Make, capsys: pytest.CaptureFixture[str]):
    exporter = make()
    model = exporter.merged()
    assert json.loads(capsys.readouterr().out) == {"revision": None, "kept": pytest.approx(1)}
    names = {file.name for file in exporter.folder.iterdir()}
    assert {"config.json", "generation_config.json", "model.safetensors", "chat_template.jinja"} <= names
    assert model.generation_config.eos_token_id == 261
    messages = [{"role": "user", "content": "1x34o6789"}]
    ours, theirs = (AutoTokenizer.from_pretrained(place) for place in (exporter.folder, exporter.source))
    assert ours.apply_chat_template(messages, tokenize=False) == theirs.apply_chat_template(messages, tokenize=False)
    for file in exporter.folder.glob("*.json"):
        assert str(exporter.folder.parent) not in file.read_text()


def test_the_template_of_a_run_is_in_the_folder_in_the_place_of_the_models_own(make: Make):
    exporter = make()
    template = "said: {{ messages[0].content }}"
    exporter.merged(chatTemplateSha256=exporter.store.put_blob(template.encode()).sha256)
    assert (exporter.folder / "chat_template.jinja").read_text() == template
    assert AutoTokenizer.from_pretrained(exporter.folder).chat_template == template


def test_tied_weights_are_written_once(make: Make):
    exporter = make("qwen3")
    model = exporter.merged()
    assert model.get_output_embeddings().weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()
    assert "lm_head.weight" not in load_file(exporter.folder / "model.safetensors")


def test_a_head_with_weights_of_its_own_is_not_said_to_be_tied(make: Make):
    """The pocket model's is no copy of its embedding, whatever its config says."""
    exporter = make()
    config = Path(exporter.source, "config.json")
    config.write_text(json.dumps(json.loads(config.read_text()) | {"tie_word_embeddings": True}))
    head = exporter.merged().get_output_embeddings().weight
    assert json.loads((exporter.folder / "config.json").read_text())["tie_word_embeddings"] is False
    assert torch.equal(head, load_file(POCKET_FOLDER / "model.safetensors")["lm_head.weight"])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_are_merged_in_float32_and_rounded_once(make: Make, dtype: torch.dtype):
    exporter = make()
    name = str(dtype).removeprefix("torch.")
    tensors = exporter.merged(dtype=name).state_dict()
    read = exporter.adapter.read()
    a, b = (read.tensors[f"base_model.model.{MATRIX}.lora_{part}.weight"] for part in "AB")
    wanted = exporter.base.tensors[f"{MATRIX}.weight"] + ALPHA / RANK * (b @ a)
    assert torch.equal(tensors[f"{MATRIX}.weight"], wanted.to(dtype))
    assert {tensor.dtype for tensor in tensors.values()} == {dtype}


def test_large_models_are_written_in_parts(make: Make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(export, "MAX_SHARD_SIZE", "300KB")
    exporter = make()
    whole = exporter.merged().state_dict()
    parts = sorted(exporter.folder.glob("model-*-of-*.safetensors"))
    assert len(parts) > 1
    assert (exporter.folder / "model.safetensors.index.json").exists()
    read = {name: tensor for part in parts for name, tensor in load_file(part).items()}
    assert all(torch.equal(tensor, read[name]) for name, tensor in whole.items())


def complaint(exporter: Exporter, capsys: pytest.CaptureFixture[str], **fields: Any) -> tuple[int, str]:
    code = exporter.written(**fields)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    return code, told.err


def bfloat16_base(exporter: Exporter) -> str:
    tensors = {name: tensor.bfloat16() for name, tensor in exporter.base.tensors.items()}
    return replace(exporter.base, tensors=tensors).sha256


def test_an_adapter_that_rounding_would_lose_is_refused(make: Make, capsys: pytest.CaptureFixture[str]):
    """As after a first step: trained beside a base model in bfloat16, where a change this small has no place."""
    exporter = make(scale=0.0)
    manifest = commit_policy(
        exporter.store,
        exporter.base,
        1e-4,
        step=2,
        base_model_sha256=bfloat16_base(exporter),
        platform={"threads": 1, "dtype": "bfloat16"},
    )
    assert manifest.step == 2
    assert exporter.written(policy="demo@2", dtype="bfloat16") == 1
    assert "is left in bfloat16; pass --dtype float32" in capsys.readouterr().err
    assert list(exporter.folder.iterdir()) == []
    assert exporter.written(policy="demo@2") == 0
    assert json.loads(capsys.readouterr().out)["kept"] == pytest.approx(1, abs=0.01)


def test_a_weight_that_float16_cannot_hold_is_named(make: Make, capsys: pytest.CaptureFixture[str]):
    exporter = make(scale=1e6)
    code, told = complaint(exporter, capsys, dtype="float16")
    assert code == 2
    assert "float16 must hold every weight" in told
    assert list(exporter.folder.iterdir()) == []


def test_another_base_model_under_the_name_is_refused(make: Make, capsys: pytest.CaptureFixture[str]):
    exporter = make(base_model_sha256="c" * 64)
    code, told = complaint(exporter, capsys)
    assert code == 1
    assert "PolicyMismatch: the base model mine must have the weights that the run was trained on" in told


def test_pruned_weights_are_told_with_the_way_back(make: Make, capsys: pytest.CaptureFixture[str]):
    exporter = make()
    exporter.store.publish(pruned_key("demo", 0, 1), b'{"schema":1,"pruned":true}')
    code, told = complaint(exporter, capsys)
    assert code == 2
    assert "temper checkpoints pull demo STORE --with-pruned" in told


def test_weights_that_are_missing_or_damaged_are_told(make: Make, capsys: pytest.CaptureFixture[str]):
    exporter = make()
    (exporter.store.root / exporter.adapter.manifest.adapter.key).unlink()
    code, told = complaint(exporter, capsys)
    assert code == 1
    assert "StoreCorrupt: blobs/" in told
    assert "it is missing; restore it from a copy" in told


@pytest.mark.parametrize("policy", ["demo", "demo@9", "../x@1", "demo@1 "])
def test_a_policy_that_is_none_is_refused(make: Make, policy: str, capsys: pytest.CaptureFixture[str]):
    exporter = make()
    assert exporter.written(policy=policy) == 2
    assert "BadConfig: " in capsys.readouterr().err


def test_a_folder_that_is_not_empty_stays_as_it_is(make: Make, capsys: pytest.CaptureFixture[str]):
    exporter = make()
    (exporter.folder / "mine.txt").write_text("mine")
    code, told = complaint(exporter, capsys)
    assert code == 2
    assert "--to must be an empty folder" in told
    assert [file.name for file in exporter.folder.iterdir()] == ["mine.txt"]


def test_a_type_of_numbers_that_a_manifest_makes_up_is_refused(make: Make):
    exporter = make(platform={"threads": 1, "dtype": "load"})
    with failing("StoreCorrupt", "must be one of float32, bfloat16, float16, got 'load'"):
        export.load_trained_base(str(exporter.models), exporter.adapter)


@pytest.mark.parametrize("dtype", ["float64", "auto"])
def test_input_of_another_form_has_code_2(dtype: str, capsys: pytest.CaptureFixture[str]):
    assert answered("export", store="file:///s", policy="demo@1", folder="/x", dtype=dtype) == 2
    assert "BadConfig: the input of export must be right, but dtype: Input should be 'float32'" in (
        capsys.readouterr().err
    )
