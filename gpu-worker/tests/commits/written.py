"""Commits of a store without a trainer."""

from temper_gpu.commits.checkpoints import Commit, Manifest, publish_commit
from temper_gpu.contract import LoraConfig
from temper_gpu.model.lora import adapter_bytes, config_bytes, initial_tensors
from temper_gpu.store import FileStore
from tests.training.samples import tiny_model

TARGETS = ["q_proj", "v_proj"]
LORA = LoraConfig(rank=2, alpha=4, target_modules=TARGETS)


def manifest(store: FileStore, inputs: str = "1" * 64, step: int = 0, branch: int = 0) -> Manifest:
    tensors = initial_tensors(tiny_model(), TARGETS, 2, seed=1)
    return Manifest(
        schema_=1,
        branch=branch,
        step=step,
        parent=None,
        inputs_sha256=inputs,
        base_model="tiny",
        base_model_sha256="b" * 64,
        adapter=store.put_blob(adapter_bytes(tensors)),
        adapter_config=store.put_blob(config_bytes("tiny", LORA, TARGETS)),
        optimizer=store.put_blob(b"zeros"),
        groups=[],
        learning_rate=0.0,
        metrics={"loss": None, "rows": 3},
        platform={"threads": 1},
        seed=1,
        train=None,
    )


def commit(store: FileStore, **changes: int) -> Commit:
    return publish_commit(store, "demo", manifest(store, **changes))[0]
