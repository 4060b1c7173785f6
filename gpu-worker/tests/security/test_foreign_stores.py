"""Rollouts that somebody else packed: small files that unpack to large ones."""

import gzip
import hashlib
import zlib

import pytest

from temper_gpu.contract import GroupRef
from temper_gpu.store import FileStore
from temper_gpu.training import groups
from temper_gpu.training.groups import load_groups, unpack
from tests.failing import failing


def test_what_unpacks_to_more_than_the_bound_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(groups, "MAX_ROLLOUT_BYTES", 1 << 20)
    with pytest.raises(ValueError, match="more than 1 MiB when unpacked"):
        unpack(gzip.compress(bytes(64 << 20)))
    assert len(unpack(gzip.compress(bytes(1 << 20)))) == 1 << 20


@pytest.mark.parametrize("spoil", [lambda data: data[:-4], lambda data: data + data, lambda data: b"\0" + data])
def test_what_is_cut_short_or_goes_on_is_refused(spoil):
    with pytest.raises((EOFError, zlib.error)):
        unpack(spoil(gzip.compress(b"{}\n")))


def test_a_group_that_cannot_be_unpacked_is_a_corrupt_store(store: FileStore):
    stem = "runs/demo/branches/0/steps/1/groups/0"
    packed = gzip.compress(bytes(1 << 10))[:-9] + b"broken bytes"
    store.publish(f"{stem}.rollouts.jsonl.gz", packed)
    store.publish(f"{stem}.judged.json", b"{}")
    hashes = [hashlib.sha256(data).hexdigest() for data in (packed, b"{}")]
    ref = GroupRef.model_validate({"group": 0, "rolloutsSha256": hashes[0], "judgedSha256": hashes[1]})
    with failing("StoreCorrupt", "must be a group's rollouts"):
        load_groups(store, "demo", 0, 1, [ref])
