"""Base models: shared storage, and clear words for what cannot be loaded."""

import json
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, JetMoeConfig, LlamaConfig

from temper_gpu.engine.embedded.host import EngineHost
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BUILT_IN, POCKET_FOLDER, BaseModel, ModelLibrary, load_base, outline
from temper_gpu.model.outlines import OutlineLibrary, without_numbers
from temper_gpu.model.stock_models import MAKING
from temper_gpu.server.answers import http_meaning
from tests.failing import failing

SMALL: dict[str, Any] = {
    "vocab_size": 264,
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
LONGROPE: dict[str, Any] = {
    "rope_scaling": {
        "rope_type": "longrope",
        "factor": 4.0,
        "short_factor": [1.0] * 8,
        "long_factor": [2.0] * 8,
        "original_max_position_embeddings": 64,
    }
}
IDS = torch.tensor([[258, 49, 50, 261, 259]])


def library(**folders: Path) -> ModelLibrary:
    named = {name: str(folder) for name, folder in folders.items()}
    return ModelLibrary(lambda: named, torch.float32, torch.device("cpu"))


@pytest.fixture(scope="module")
def pocket() -> BaseModel:
    return library().get("pocket")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(POCKET_FOLDER, tmp_path / "copy"))


def test_an_outline_is_its_model_without_numbers(pocket: BaseModel):
    """Of a rank whose weights come from another one: whatever else it computes with must be the same."""
    gpu = torch.device("cuda", 1)
    found = OutlineLibrary(dict, torch.float32, gpu).get("pocket")
    assert (found.device, found.weights_on) == (gpu, torch.device("meta"))
    for what in ("tensors", "buffers"):
        mine, theirs = ({n: (t.shape, t.dtype) for n, t in getattr(base, what).items()} for base in (found, pocket))
        assert mine == theirs
    assert found.config.to_diff_dict() == pocket.config.to_diff_dict()
    assert (found.name, found.folder, found.context_window) == (pocket.name, pocket.folder, pocket.context_window)
    assert found.end_token_ids == pocket.end_token_ids != frozenset()
    assert found.tokenizer("7*8=").input_ids == pocket.tokenizer("7*8=").input_ids


def test_models_are_made_one_at_a_time_and_only_reading_weights_changes_the_default_type(
    monkeypatch: pytest.MonkeyPatch,
):
    true, seen = torch.set_default_dtype, []

    def noted(dtype: torch.dtype) -> None:
        seen.append((dtype, MAKING.locked()))
        true(dtype)

    monkeypatch.setattr(torch, "set_default_dtype", noted)
    cpu = torch.device("cpu")
    base = load_base("pocket", str(POCKET_FOLDER), torch.bfloat16, cpu)
    assert set(seen) == {(torch.float32, True), (torch.bfloat16, True)}
    seen.clear()
    outline(str(POCKET_FOLDER))
    assert {tensor.dtype for tensor in without_numbers(base.config, base.dtype, cpu).tensors.values()} == {base.dtype}
    model = base.instantiate("sdpa")
    assert (model.dtype, model.config.dtype) == (torch.bfloat16, torch.bfloat16)
    assert set(seen) == {(torch.float32, True)}


@pytest.mark.parametrize("loads", [False, True])
def test_two_models_made_at_once_leave_the_default_type(monkeypatch, pocket: BaseModel, loads: bool):
    """A second thread enters a constructor while the first is in one, and leaves it last, if nothing stops it."""
    first_inside, second_inside, first_over = (threading.Event() for _ in range(3))
    true, main = transformers.PreTrainedModel.__init__, threading.current_thread()

    def paused(*given: Any, **options: Any) -> None:
        if threading.current_thread() is not main:
            second_inside.set()
            first_over.wait(60)
        elif not first_inside.is_set():
            first_inside.set()
            second_inside.wait(1)
        true(*given, **options)

    monkeypatch.setattr(transformers.PreTrainedModel, "__init__", paused)
    folder = str(BUILT_IN["pocket-tools"])
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(lambda: first_inside.wait(60) and pocket.instantiate("sdpa"))
        load_base("pocket-tools", folder, torch.bfloat16, pocket.device) if loads else outline(folder)
        first_over.set()
        assert second.result()
    found = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    assert found == torch.float32


def test_a_loaded_model_is_there_while_another_one_is_downloaded(monkeypatch: pytest.MonkeyPatch):
    models, found = library(other=POCKET_FOLDER), []
    base = models.get("pocket")

    def fetch(*_: object) -> None:
        with ThreadPoolExecutor(1) as pool:
            found.append(pool.submit(models.get, "pocket").result(60))

    monkeypatch.setattr("temper_gpu.model.models.fetch", fetch)
    models.get("other")
    assert found == [base]


def test_modules_share_the_frozen_weights(pocket: BaseModel):
    first, second = pocket.instantiate("eager"), pocket.instantiate("sdpa")
    for name, parameter in first.named_parameters():
        assert parameter.data_ptr() == second.get_parameter(name).data_ptr() == pocket.tensors[name].data_ptr()
        assert not parameter.requires_grad
    assert not first.training
    torch.testing.assert_close(first(IDS).logits, second(IDS).logits, atol=1e-4, rtol=1e-4)


def test_a_module_keeps_its_kind_of_attention(pocket: BaseModel):
    first = pocket.instantiate("eager")
    pocket.instantiate("sdpa")
    assert first.config._attn_implementation == "eager"


def test_overrides_have_their_own_storage_and_effect(pocket: BaseModel):
    name = "model.layers.0.self_attn.q_proj.weight"
    changed = pocket.instantiate("eager", {name: torch.zeros_like(pocket.tensors[name])})
    assert changed.get_parameter(name).abs().max() == 0
    assert pocket.tensors[name].abs().max() > 0
    with pytest.raises(TemperError, match="must exist in pocket"):
        pocket.instantiate("eager", {"nowhere.weight": torch.zeros(1)})


def test_the_hash_is_of_the_weights_not_of_the_name(pocket: BaseModel, copy: Path):
    assert library(other=copy).get("other").sha256 == pocket.sha256
    assert pocket.end_token_ids == {261}
    assert pocket.context_window == 4096


def test_a_model_is_loaded_once():
    models = library()
    assert models.get("pocket") is models.get("pocket")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "config.json").unlink(), "folder with config.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "safetensors"),
        (lambda folder: edit(folder, model_type="no-such-model"), "no-such-model"),
        (
            lambda folder: edit(folder, layer_types=["chunked_attention"] * 2),
            "to a sliding window of it, got .*chunked",
        ),
        (lambda folder: edit(folder, layer_types=["sliding_attention"] * 2, sliding_window=0), "sliding_window of"),
        (lambda folder: edit(folder, use_bidirectional_attention=True), "earlier tokens only"),
        (
            lambda folder: edit(folder, num_hidden_layers=3, layer_types=["full_attention"] * 3),
            r"must have all weights .* are missing \(model.layers.2",
        ),
        (
            lambda folder: os.truncate(folder / "model.safetensors", 1000),
            "must have a config, a tokenizer and weights that transformers loads",
        ),
    ],
)
def test_what_cannot_be_loaded_is_said(copy: Path, spoil, words: str):
    spoil(copy)
    with failing("BadConfig", words):
        library(broken=copy).get("broken")


TINY = {**SMALL, "num_hidden_layers": 2}
LATENT: dict[str, Any] = {
    "moe_intermediate_size": 32,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 2,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_group": 1,
    "topk_group": 1,
}
IMAGES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}


def gemma3() -> transformers.PreTrainedModel:
    text = {**TINY, "head_dim": 16, "layer_types": ["full_attention"] * 2}
    config = transformers.Gemma3Config(
        text_config=text, vision_config=IMAGES, mm_tokens_per_image=4, image_token_index=263
    )
    return transformers.Gemma3ForConditionalGeneration(config)


UNUSABLE: dict[str, tuple[Callable[[], transformers.PreTrainedModel], str]] = {
    "gemma3": (gemma3, "more parts than a text decoder"),
    "gpt2": (
        lambda: transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=264, n_embd=64, n_layer=2, n_head=4, n_positions=512)
        ),
        "no linear layers",
    ),
    "deepseek3": (
        lambda: transformers.DeepseekV3ForCausalLM(transformers.DeepseekV3Config(**TINY, **LATENT)),
        "latent attention",
    ),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_model_that_cannot_be_used_is_refused_by_its_kind_when_it_is_loaded(copy: Path, kind: str):
    make, reason = UNUSABLE[kind]
    for name in ("model.safetensors", "config.json", "generation_config.json"):
        (copy / name).unlink(missing_ok=True)
    make().save_pretrained(str(copy))
    with failing("BadConfig", rf"model {kind} must be a plain text decoder, but .*{reason}.*use a Qwen2"):
        library(**{kind: copy}).get(kind)


def test_an_adapter_beside_a_models_weights_is_not_loaded_into_them(copy: Path):
    """transformers would: the model has more tensors then, and the first use fails."""
    model = transformers.AutoModelForCausalLM.from_pretrained(copy)
    peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["q_proj"])).save_pretrained(str(copy))
    with failing("BadConfig", r"mine must be weights without an adapter, but .*--adapter"):
        library(mine=copy).get("mine")
    for file in copy.glob("adapter_*"):
        file.unlink()
    assert library(mine=copy).get("mine").sha256 == library().get("pocket").sha256


def test_a_model_that_fails_in_its_first_pass_is_refused_by_its_kind(copy: Path, monkeypatch: pytest.MonkeyPatch):
    def raw(*_: object) -> None:
        raise AttributeError("'StrangeConfig' object has no attribute 'num_hidden_layers'")

    monkeypatch.setattr("temper_gpu.engine.embedded.engine.prove_sizes", raw)
    host = EngineHost(library(strange=copy), EmbeddedSettings(num_threads=1))
    with pytest.raises(
        TemperError, match=r"strange must run in the embedded engine, but .*'num_hidden_layers'"
    ) as caught:
        host.engine("strange")
    assert (caught.value.type, http_meaning(caught.value)[0]) == ("BadConfig", 400)


def test_a_model_without_room_is_tried_again_and_then_given_up(copy: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("temper_gpu.engine.embedded.engine.prove_sizes", lambda *_: torch.empty(1 << 60))
    host = EngineHost(library(huge=copy), EmbeddedSettings(num_threads=1))
    statuses = []
    for _ in range(3):
        with pytest.raises(TemperError, match=r"the model huge must fit into memory.* are free on") as caught:
            host.engine("huge")
        statuses.append((caught.value.type, http_meaning(caught.value)[0]))
    assert statuses == [("EngineFailed", 503), ("EngineFailed", 503), ("OutOfMemory", 422)]
    assert "3 times in a row; lower --kv-cache-bytes or --slots" in caught.value.message


def test_a_path_as_name_is_refused(monkeypatch: pytest.MonkeyPatch, copy: Path):
    monkeypatch.chdir(copy.parent)
    with pytest.raises(TemperError, match="copy must be registered on this host"):
        library().get("copy")


def edit(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), **changes, "use_sliding_window": "layer_types" in changes})
    )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (JetMoeConfig(**SMALL, kv_channels=16, num_local_experts=4), "mixture of experts"),
        (LlamaConfig(**SMALL, **LONGROPE), "longrope"),
    ],
    ids=["JetMoe", "longrope"],
)
def test_a_model_whose_tokens_depend_on_their_neighbours_is_refused(copy: Path, config, words: str):
    AutoModelForCausalLM.from_config(config).save_pretrained(copy)
    rule = "model mine must compute each token by itself"
    with failing("BadConfig", rf"{rule}.*{words}.*; use a"):
        library(mine=copy).get("mine")
