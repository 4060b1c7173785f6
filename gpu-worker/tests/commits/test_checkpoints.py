import hashlib
import json
from pathlib import Path

import pytest

from temper_gpu.commits.checkpoints import (
    PolicyName,
    canonical_json,
    is_pruned,
    manifest_key,
    parse_policy_name,
    publish_commit,
    read_commit,
    read_parent,
)
from temper_gpu.store import FileStore
from tests.commits.written import commit, manifest
from tests.failing import failing


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
    with failing("BadConfig", "run@step"):
        parse_policy_name(name)


def test_canonical_json_is_sorted_compact_and_has_no_nan():
    assert canonical_json({"b": [1, None], "a": {"é": 0.5}}) == '{"a":{"é":0.5},"b":[1,null]}\n'.encode()
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"loss": float("nan")})


def test_canonical_json_is_that_of_typescript():
    fixture = json.loads((Path(__file__).parents[3] / "test/core/text/canonical.json").read_text())
    assert canonical_json(fixture["value"]).decode() == fixture["canonical"] + "\n"


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
    with failing("StepConflict", f"{'1' * 64}.*{'2' * 64}"):
        publish_commit(store, "demo", manifest(store, inputs="2" * 64))


def test_a_manifest_that_is_none_is_corrupt(tmp_path: Path):
    FileStore(tmp_path).publish(manifest_key("demo", 0, 0), b'{"schema":1}')
    with failing("StoreCorrupt", r"demo/branches/0/steps/0/manifest\.json"):
        read_commit(FileStore(tmp_path), "demo", 0, 0)


def test_a_parent_with_other_bytes_than_its_checkpoint_names_is_corrupt(tmp_path: Path):
    store = FileStore(tmp_path)
    checkpoint = commit(store).checkpoint("demo").model_copy(update={"manifest_sha256": "0" * 64})
    with failing("StoreCorrupt", "0000"):
        read_parent(store, checkpoint)


def test_a_mark_of_pruning_that_is_none_is_corrupt(tmp_path: Path):
    store = FileStore(tmp_path)
    made = commit(store)
    store.publish("runs/demo/branches/0/steps/0/pruned.json", b"[]")
    with failing("StoreCorrupt", r"steps/0/pruned\.json"):
        is_pruned(store, "demo", made.manifest)
