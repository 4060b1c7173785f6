import errno
import hashlib
import json
from pathlib import Path

import pytest

from temper_gpu.commits.checkpoints import (
    KEPT_COMMITS,
    Commit,
    Manifest,
    PolicyName,
    StoreResolver,
    canonical_json,
    is_pruned,
    manifest_key,
    parse_policy_name,
    publish_commit,
    read_commit,
    read_parent,
)
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import adapter_bytes, config_bytes, initial_tensors
from temper_gpu.store import FileStore, FileSystem, blob_ref
from tests.training.samples import tiny_model

TARGETS = ["q_proj", "v_proj"]


def manifest(store: FileStore, inputs: str = "1" * 64, step: int = 0, branch: int = 0) -> Manifest:
    tensors = initial_tensors(tiny_model(), TARGETS, 2, seed=1)
    return Manifest(
        branch=branch,
        step=step,
        parent=None,
        inputs_sha256=inputs,
        base_model="tiny",
        base_model_sha256="b" * 64,
        adapter=store.put_blob(adapter_bytes(tensors)),
        adapter_config=store.put_blob(config_bytes("tiny", 2, 4.0, TARGETS)),
        optimizer=store.put_blob(b"zeros"),
        groups=[],
        learning_rate=0.0,
        metrics={"loss": None, "rows": 3},
        platform={"threads": 1},
    )


def commit(store: FileStore, **changes: int) -> Commit:
    return publish_commit(store, "demo", manifest(store, **changes))[0]  # pyright: ignore[reportArgumentType]  (numbers alone)


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("demo@0", PolicyName("demo", 0, 0)),
        ("a.b-c_d@12", PolicyName("a.b-c_d", 0, 12)),
        ("demo~3@7", PolicyName("demo", 3, 7)),
    ],
)
def test_a_policy_name_reads_as_it_is_written(name: str, parsed: PolicyName):
    assert parse_policy_name(name) == parsed
    assert str(parsed) == name


@pytest.mark.parametrize(
    "name",
    ["demo", "demo@", "demo@01", "demo~0@1", "../x@1", "a/b@1", "Demo@1", "@1", "demo@1\n", "demo@-1", "x" * 64 + "@1"],
)
def test_what_is_no_policy_name_is_refused(name: str):
    with pytest.raises(TemperError, match="run@step") as caught:
        parse_policy_name(name)
    assert caught.value.type == "BadConfig"


def test_canonical_json_is_sorted_compact_and_has_no_nan():
    assert canonical_json({"b": [1, None], "a": {"é": 0.5}}) == '{"a":{"é":0.5},"b":[1,null]}\n'.encode()
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"loss": float("nan")})


def test_a_commit_is_its_canonical_bytes(tmp_path: Path):
    store = FileStore(tmp_path)
    made = commit(store)
    data = store.read(manifest_key("demo", 0, 0))
    assert data is not None
    assert made == read_commit(store, "demo", 0, 0)
    assert made.sha256 == hashlib.sha256(data).hexdigest()
    assert data == canonical_json(json.loads(data))
    assert read_parent(store, made.checkpoint("demo")) == made


def test_a_second_commit_of_the_same_inputs_is_the_first_and_of_others_a_conflict(tmp_path: Path):
    store = FileStore(tmp_path)
    first = commit(store)
    assert publish_commit(store, "demo", manifest(store)) == (first, False)
    with pytest.raises(TemperError, match=f"{'1' * 64}.*{'2' * 64}") as caught:
        publish_commit(store, "demo", manifest(store, inputs="2" * 64))
    assert caught.value.type == "StepConflict"


def test_a_manifest_that_is_none_is_corrupt(tmp_path: Path):
    FileStore(tmp_path).publish(manifest_key("demo", 0, 0), b'{"schema":1}')
    with pytest.raises(TemperError, match=r"demo/branches/0/steps/0/manifest\.json") as caught:
        read_commit(FileStore(tmp_path), "demo", 0, 0)
    assert caught.value.type == "StoreCorrupt"


def test_a_parent_with_other_bytes_than_its_checkpoint_names_is_corrupt(tmp_path: Path):
    store = FileStore(tmp_path)
    checkpoint = commit(store).checkpoint("demo").model_copy(update={"manifest_sha256": "0" * 64})
    with pytest.raises(TemperError, match="0000") as caught:
        read_parent(store, checkpoint)
    assert caught.value.type == "StoreCorrupt"


def test_a_policy_is_found_by_name_and_its_weights_are_verified(tmp_path: Path):
    store = FileStore(tmp_path)
    made = commit(store, step=4, branch=2)
    policy = StoreResolver(store).resolve("demo~2@4")
    source = policy.adapter
    assert source is not None
    adapter = source.read()
    assert (policy.base_model, policy.adapter_sha256) == ("tiny", made.manifest.adapter.sha256)
    assert (adapter.sha256, adapter.rank, adapter.alpha) == (policy.adapter_sha256, 2, 4.0)
    (tmp_path / made.manifest.adapter.key).write_bytes(b"other weights")
    for read in (source.read, lambda: source.write_folder(tmp_path)):
        with pytest.raises(TemperError) as caught:
            read()
        assert caught.value.type == "StoreCorrupt"


def test_an_adapter_is_written_as_a_folder_that_peft_loads(tmp_path: Path):
    made = commit(FileStore(tmp_path / "store")).manifest
    source = StoreResolver(FileStore(tmp_path / "store")).resolve("demo@0").adapter
    assert source is not None
    folder = tmp_path / "folder"
    folder.mkdir()
    source.write_folder(folder)
    files = {"adapter_config.json": made.adapter_config, "adapter_model.safetensors": made.adapter}
    assert {path.name: blob_ref(path.read_bytes()) for path in folder.iterdir()} == files


def test_a_name_without_a_step_is_a_base_model():
    policy = StoreResolver(FileStore(Path("nowhere"))).resolve("pocket")
    assert (policy.base_model, policy.adapter) == ("pocket", None)


def test_a_step_that_was_not_committed_is_refused_until_it_is(tmp_path: Path):
    store = FileStore(tmp_path)
    resolver = StoreResolver(store)
    with pytest.raises(TemperError, match="demo@0") as caught:
        resolver.resolve("demo@0")
    assert caught.value.type == "BadConfig"
    made = commit(store)
    assert resolver.resolve("demo@0").adapter_sha256 == made.manifest.adapter.sha256


def test_a_policy_that_is_known_outlasts_an_outage_of_its_store(tmp_path: Path):
    class Disk(FileSystem):
        is_away = False

        def stamp(self, path: Path) -> tuple[int, int]:
            if self.is_away:
                raise OSError(errno.EIO, "Input/output error")
            return super().stamp(path)

    disk = Disk()
    store = FileStore(tmp_path, disk)
    made, resolver = commit(store), StoreResolver(store)
    resolver.resolve("demo@0")
    disk.is_away = True
    assert resolver.recall("demo@0") is None
    assert resolver.resolve("demo@0").adapter_sha256 == made.manifest.adapter.sha256
    assert resolver.recall("demo@0") is not None
    with pytest.raises(TemperError) as caught:
        resolver.resolve("demo@1")
    assert caught.value.type == "StoreUnavailable"


def test_a_mark_of_pruning_that_is_none_is_corrupt(tmp_path: Path):
    store = FileStore(tmp_path)
    made = commit(store)
    store.publish("runs/demo/branches/0/steps/0/pruned.json", b"[]")
    with pytest.raises(TemperError, match=r"steps/0/pruned\.json") as caught:
        is_pruned(store, "demo", made.manifest)
    assert caught.value.type == "StoreCorrupt"


def test_a_long_run_leaves_only_its_newest_commits_in_memory(tmp_path: Path):
    store = FileStore(tmp_path)
    resolver = StoreResolver(store)
    for step in range(KEPT_COMMITS + 10):
        commit(store, step=step)
        assert resolver.resolve(f"demo@{step}").base_model == "tiny"
    assert len(resolver._known) == KEPT_COMMITS
    assert resolver.resolve("demo@0").base_model == "tiny"
