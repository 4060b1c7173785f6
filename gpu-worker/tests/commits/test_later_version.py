"""What a later version of Temper has written is right: it is never called damage."""

import json
from pathlib import Path
from typing import Any

import pytest

from temper_gpu.commits.checkpoints import is_pruned, manifest_key, parse_commit
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from tests.commits.written import commit
from tests.failing import failing

REPOSITORY = Path(__file__).parents[3]
KEY = manifest_key("demo", 0, 1)
# The same cases as in test/store/records/later-version.test.ts.
CASES: dict[str, dict[str, Any]] = json.loads(
    (REPOSITORY / "test/store/records/later-versions.json").read_text(encoding="utf-8")
)


@pytest.fixture
def good(tmp_path: Path) -> dict[str, Any]:
    """A manifest of a trained step, as JSON."""
    made = commit(FileStore(tmp_path)).manifest.model_dump(by_alias=True)
    train = json.loads((REPOSITORY / "test/contract/TrainConfig.json").read_text(encoding="utf-8"))
    return {**made, "step": 1, "train": train}


def outcome_of(manifest: dict[str, Any]) -> str:
    try:
        parse_commit(json.dumps(manifest).encode(), KEY)
    except TemperError as error:
        return error.type
    return "read"


@pytest.mark.parametrize("name", CASES)
def test_a_manifest_with(name: str, good: dict[str, Any]):
    assert outcome_of(good) == "read"
    path, value = CASES[name]["set"]
    place = good
    for member in path[:-1]:
        place = place[member]
    place[path[-1]] = value
    assert outcome_of(good) == CASES[name]["python"]


def test_the_message_says_what_this_version_does_not_know(good: dict[str, Any]):
    with pytest.raises(TemperError) as caught:
        parse_commit(json.dumps({**good, "schema": 2}).encode(), KEY)
    assert caught.value.message == (
        f"{KEY} was made by a later version of Temper (schema 2; this version knows 1); upgrade Temper on this host, "
        "and leave the file as it is"
    )
    assert caught.value.retryable


def test_other_records_of_a_later_schema(tmp_path: Path):
    store = FileStore(tmp_path)
    made = commit(store)
    store.publish("runs/demo/branches/0/steps/0/pruned.json", b'{"schema":2,"pruned":"for-a-while"}')
    with failing("LaterVersion", r"pruned\.json was made by a later version"):
        is_pruned(store, "demo", made.manifest)
