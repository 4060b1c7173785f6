import asyncio
import json
from pathlib import Path

import pytest

from temper_gpu.contract import Checkpoint, TrainResult
from temper_gpu.failures import TemperError
from temper_gpu.store import FileStore
from temper_gpu.temporal import polling
from tests.failing import failing


def queue_of(folder: Path) -> str:
    return asyncio.run(polling.store_queue(FileStore(folder), "h200"))


class LateStore(FileStore):
    """Away for the first two questions."""

    asked = 0

    def read(self, key: str) -> bytes | None:
        self.asked += 1
        if self.asked <= 2:
            raise TemperError("StoreUnavailable", "the store is away")
        return super().read(key)


def test_workers_of_two_stores_poll_two_queues_and_those_of_one_store_the_same(tmp_path: Path):
    first, again = (queue_of(tmp_path / "first") for _ in range(2))
    other = queue_of(tmp_path / "other")
    assert first == again != other
    assert first.startswith("h200/")


def test_a_store_that_is_away_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(polling, "RECONNECT_S", 0)
    store = LateStore(tmp_path)
    queue = asyncio.run(polling.store_queue(store, "h200"))
    assert store.asked > 2
    assert queue == queue_of(tmp_path)


def test_a_result_names_an_optional_member_only_if_it_has_one():
    checkpoint = Checkpoint(run="a", branch=0, step=1, manifest_sha256="0" * 64, adapter_sha256="1" * 64)
    result = TrainResult(checkpoint=checkpoint, metrics={"loss": None}, seconds={}, found=True)
    several = result.model_copy(update={"checkpoint": checkpoint.model_copy(update={"adapters": {"b": "2" * 64}})})
    convert = polling.DATA_CONVERTER.payload_converter.to_payloads
    alone, both, detail = (json.loads(payload.data) for payload in convert([result, several, {"step": None}]))
    named = {"run": "a", "branch": 0, "step": 1, "manifestSha256": "0" * 64, "adapterSha256": "1" * 64}
    assert alone == {"checkpoint": named, "metrics": {"loss": None}, "seconds": {}, "found": True}
    assert both["checkpoint"] == {**named, "adapters": {"b": "2" * 64}}
    assert detail == {"step": None}


@pytest.mark.parametrize("name", [b'{"id":"../b"}', b'{"id":7}', b"{}", b"[]", b"no json"])
def test_a_store_without_a_proper_id_is_not_polled_for(tmp_path: Path, name: bytes):
    (tmp_path / "store.json").write_bytes(name)
    with failing("StoreCorrupt", "must hold the store's id"):
        queue_of(tmp_path)
