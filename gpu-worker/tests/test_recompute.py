import json
from argparse import Namespace
from pathlib import Path

import pytest

import temper_gpu.recompute as again
from temper_gpu.contract import InitialiseInput, TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.models import ModelLibrary
from temper_gpu.store import FileStore
from temper_gpu.training.trainer import Trainer
from tests.training.samples import TinyLibrary, initialise_input, open_folder, sampled_groups, train_input


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FileStore, InitialiseInput, TrainInput]:
    """A store with steps 0 and 1 in it; the tiny base model answers to every library."""
    monkeypatch.setattr("temper_gpu.models.ModelLibrary", lambda *_: TinyLibrary())
    store = open_folder(tmp_path)
    library: ModelLibrary = TinyLibrary()  # pyright: ignore[reportAssignmentType]  (only `get` is used)
    trainer = Trainer(library, store, again.nullcontext())
    first = initialise_input()
    parent = trainer.initialise(first).commit.checkpoint("demo")
    work = train_input(store, parent, sampled_groups(parent.adapter_sha256))
    trainer.train(work, lambda: False)
    return store, first, work


def run(store: FileStore, work: InitialiseInput | TrainInput, tmp_path: Path) -> dict[str, object]:
    file = tmp_path / "input.json"
    file.write_text(work.model_dump_json(by_alias=True))
    return again.recompute(Namespace(store=store.uri, input=str(file), models=None, device="cpu"))


def files(store: FileStore) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(store.root.rglob("*")) if path.is_file()}


def test_a_step_made_again_has_the_same_bytes_and_leaves_the_store_as_it_was(committed, tmp_path: Path):
    store, first, work = committed
    before = files(store)
    for made_from, step in ((first, 0), (work, 1)):
        recorded = store.read(f"runs/demo/branches/0/steps/{step}/manifest.json")
        assert recorded is not None
        manifest = json.loads(recorded)
        made = run(store, made_from, tmp_path)
        assert made["adapterSha256"] == manifest["adapter"]["sha256"]
        assert made["optimizerSha256"] == manifest["optimizer"]["sha256"]
        assert made["manifestSha256"] == again.read_commit(store, "demo", 0, step).sha256  # pyright: ignore[reportOptionalMemberAccess]
        assert made["platform"] == manifest["platform"]
        assert made["differences"] == {name: {"max": 0.0, "share": 0.0} for name in ("adapter", "optimizer")}
    assert files(store) == before


def test_another_step_is_told_by_how_much_it_differs(committed, tmp_path: Path):
    store, _, work = committed
    made = run(store, work.model_copy(update={"learning_rate": work.learning_rate * 2}), tmp_path)
    differences = made["differences"]
    assert isinstance(differences, dict)
    # Twice the way: what differs is half of what this step changed.
    assert differences["adapter"]["share"] == pytest.approx(0.5, abs=0.01)
    assert differences["adapter"]["max"] == pytest.approx(work.learning_rate, rel=0.01)


def test_bytes_that_were_pruned_are_compared_by_hash_alone(committed, tmp_path: Path):
    store, _, work = committed
    manifest = json.loads(store.read("runs/demo/branches/0/steps/1/manifest.json") or b"")
    (store.root / manifest["adapter"]["key"]).unlink()
    made = run(store, work.model_copy(update={"learning_rate": 0.5}), tmp_path)
    assert isinstance(made["differences"], dict)
    assert made["differences"]["adapter"] is None
    assert run(store, work, tmp_path)["adapterSha256"] == manifest["adapter"]["sha256"]


def test_input_that_is_no_step_is_refused(tmp_path: Path):
    with pytest.raises(TemperError, match="a step's inputs"):
        again.parse_work(b'{"run": "demo"}')
