"""Runs that begin with an adapter that PEFT saved."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from temper_gpu.commits.checkpoints import read_parent
from temper_gpu.contract import InitialiseInput, LoraConfig, StartAdapter
from temper_gpu.model.lora import attach
from temper_gpu.store import FileStore
from tests.failing import failing
from tests.training.samples import (
    initialise_input,
    load_adapter,
    sampled_groups,
    tiny_base,
    train_config,
    train_input,
)
from tests.training.trainers import never, new_trainer

IDS = torch.tensor([[1, 30, 7, 7, 12, 3]])
TARGETS = ["down_proj", "q_proj"]


def saved_by_peft(folder: Path, **options: Any) -> tuple[Any, bytes, bytes]:
    """Of a model whose adapter changes something, and the two files."""
    config = peft.LoraConfig(r=4, lora_alpha=12, target_modules=TARGETS, init_lora_weights=False, **options)
    torch.manual_seed(5)
    model: Any = peft.get_peft_model(tiny_base().instantiate("eager"), config).eval()
    model.save_pretrained(str(folder))
    weights, written = (folder / name for name in ("adapter_model.safetensors", "adapter_config.json"))
    return model, weights.read_bytes(), written.read_bytes()


def work_of(store: FileStore, weights: bytes, config: bytes, **options: Any) -> InitialiseInput:
    start = StartAdapter(weights=store.put_blob(weights), config=store.put_blob(config))
    lora = LoraConfig(rank=4, alpha=12, target_modules=TARGETS).model_copy(update=options)
    return initialise_input(lora=lora, start_adapter=start)


@pytest.mark.parametrize("options", [{}, {"rslora": True, "dora": True}, {"layers": [1]}])
@torch.no_grad()
def test_the_first_checkpoint_is_the_adapter_that_peft_saved_and_steps_go_on_from_it(
    store: FileStore, tmp_path: Path, options: dict[str, Any]
):
    names = {"rslora": "use_rslora", "dora": "use_dora", "layers": "layers_to_transform"}
    given = {names[name]: value for name, value in options.items()}
    model, weights, config = saved_by_peft(tmp_path / "adapter", lora_dropout=0.1, **given)
    trainer = new_trainer(store)
    work = work_of(store, weights, config, **options)
    first = trainer.initialise(work).commit
    assert trainer.initialise(work).found
    adapter = load_adapter(store, first.manifest)
    expected = model(IDS).logits
    played = attach(tiny_base().instantiate("eager"), adapter)(IDS).logits
    torch.testing.assert_close(played, expected, atol=1e-5, rtol=1e-4)
    assert float((expected - tiny_base().instantiate("eager")(IDS).logits).abs().max()) > 0.1
    optimizer = load(store.get_blob(first.manifest.optimizer))
    assert not any(tensor.any() for tensor in optimizer.values())
    parent = first.checkpoint("demo")
    train = train_config(lora=work.lora, max_logprob_mismatch=1e9)
    with torch.enable_grad():
        step = trainer.train(train_input(store, parent, sampled_groups(parent.adapter_sha256), train=train), never)
    after = load_adapter(store, read_parent(store, step.commit.checkpoint("demo")).manifest).tensors
    assert after.keys() == adapter.tensors.keys()
    assert any(not torch.equal(after[name], tensor) for name, tensor in adapter.tensors.items())


def test_adapters_in_half_precision_and_in_any_order_give_the_same_checkpoint(store: FileStore, tmp_path: Path):
    _, weights, config = saved_by_peft(tmp_path / "adapter")
    halves = {name: tensor.bfloat16() for name, tensor in load(weights).items()}
    wholes = {name: halves[name].float() for name in reversed(sorted(halves))}
    found = [
        new_trainer(store).initialise(work_of(store, save(tensors), config).model_copy(update={"run": run})).commit
        for run, tensors in (("a", halves), ("b", wholes))
    ]
    assert found[0].manifest.adapter == found[1].manifest.adapter


def changed(tensors: dict[str, Tensor], **changes: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    first = sorted(tensors)[0]
    return {**tensors, first: changes["first"](tensors[first])}


REFUSED: dict[str, tuple[Callable[[bytes, dict[str, Any]], tuple[bytes, dict[str, Any]]], dict[str, Any], str]] = {
    "other rank": (lambda w, c: (w, c), {"rank": 8}, "has r 4 instead of 8; leave them out"),
    "other alpha": (lambda w, c: (w, {**c, "lora_alpha": 3}), {}, "has lora_alpha 3 instead of 12"),
    "other scale": (lambda w, c: (w, {**c, "use_rslora": True}), {}, "has use_rslora True instead of False"),
    "other layers": (lambda w, c: (w, c), {"layers": [0]}, "is in only one of them .8 tensors, 4 needed"),
    "other base model": (
        lambda w, c: (save(changed(load(w), first=lambda tensor: tensor[:, :-1].contiguous())), c),
        {},
        r"must fit tiny with rank 4, but .*lora_A.weight is \[4, 31\] instead of \[4, 32\]",
    ),
    "no numbers": (lambda w, c: (save(changed(load(w), first=lambda tensor: tensor * torch.nan)), c), {}, "finite"),
    "no tensors": (lambda w, c: (b"nonsense", c), {}, "must be a safetensors file"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_another_adapter_than_the_run_says_is_refused(store: FileStore, tmp_path: Path, kind: str):
    change, options, words = REFUSED[kind]
    _, weights, config = saved_by_peft(tmp_path / "adapter")
    weights, fields = change(weights, json.loads(config))
    with failing("BadConfig", words):
        new_trainer(store).initialise(work_of(store, weights, json.dumps(fields).encode(), **options))
