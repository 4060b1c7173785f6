"""What every store does: the same cases on a folder and on a bucket."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from temper_gpu.failures import TemperError
from temper_gpu.store import blob_ref
from tests.store.places import Place


def failure_of(act: Callable[[], object]) -> TemperError:
    with pytest.raises(TemperError) as caught:
        act()
    return caught.value


def test_what_is_written_is_read_and_the_rest_is_not_there(place: Place):
    store = place.open()
    store.check()
    store.replace("runs/demo/state.json", b"{}")
    store.replace("runs/demo/state.json", b"[]")
    store.replace("runs/demo/empty", b"")
    assert place.open().read("runs/demo/state.json") == b"[]"
    assert store.read("runs/demo/empty") == b""
    assert store.read("runs/demo/other.json") is None
    assert store.read("runs/demo") is None
    assert store.read("runs/demo/state.json/below") is None


def test_a_write_once_object_keeps_its_first_bytes(place: Place):
    first, second = place.open().publish("a/b", b"one"), place.open().publish("a/b", b"two")
    assert (first.created, second.created) == (True, False)
    assert second.bytes == place.open().read("a/b") == b"one"


def test_of_many_writers_at_once_one_wins_and_all_get_its_bytes(place: Place):
    stores = [place.open() for _ in range(4)]
    for race in range(5):
        key = f"races/{race}"

        def write(writer: int, key: str = key) -> tuple[int, bool, bytes]:
            published = stores[writer % len(stores)].publish(key, b"%d" % writer * 1000)
            return writer, published.created, published.bytes

        with ThreadPoolExecutor(12) as pool:
            outcomes = list(pool.map(write, range(12)))
        (winner,) = (writer for writer, created, _ in outcomes if created)
        assert {data for _, _, data in outcomes} == {b"%d" % winner * 1000} == {stores[0].read(key)}


def test_a_blob_lies_under_its_hash_and_is_written_once(place: Place):
    store = place.open()
    ref = store.put_blob(b"weights")
    stamp = store.stamp(ref.key)
    assert ref == blob_ref(b"weights") == place.open().put_blob(b"weights")
    assert (place.folder / ref.key).read_bytes() == store.get_blob(ref) == b"weights"
    assert stamp is not None
    assert store.stamp(ref.key) == stamp


def test_an_old_blob_that_is_put_again_counts_as_written_now(place: Place):
    store = place.open()
    ref = store.put_blob(b"weights")
    file = place.folder / ref.key
    os.utime(file, (1e9, 1e9))
    assert store.put_blob(b"weights") == ref
    assert time.time() - file.stat().st_mtime < 3600
    assert store.get_blob(ref) == b"weights"


@pytest.mark.parametrize("found", [b"weighty", b"weig", b"weights and more", b""])
def test_bytes_that_changed_are_corrupt_and_named(place: Place, found: bytes):
    store = place.open()
    ref = store.put_blob(b"weights")
    (place.folder / ref.key).write_bytes(found)
    for read in (lambda: store.get_blob(ref), lambda: store.read_verified(ref.key, ref.sha256)):
        failure = failure_of(read)
        assert (failure.type, failure.retryable) == ("StoreCorrupt", False)
        assert ref.key in failure.message
        assert "restore it" in failure.message


def test_a_reference_with_another_length_is_corrupt(place: Place):
    store = place.open()
    ref = store.put_blob(b"weights").model_copy(update={"bytes": 8})
    assert failure_of(lambda: store.get_blob(ref)).type == "StoreCorrupt"


def test_a_blob_that_is_missing_is_corrupt_and_makes_no_view(place: Place):
    store, ref = place.open(), blob_ref(b"never written")
    store.check()
    for act in (lambda: store.get_blob(ref), lambda: store.link_blob(ref, "view/adapter")):
        failure = failure_of(act)
        assert failure.type == "StoreCorrupt"
        assert f"{ref.key}" in failure.message
        assert "missing" in failure.message
    assert store.read("view/adapter") is None


def test_a_view_has_the_blobs_bytes_however_often_it_is_made(place: Place):
    store = place.open()
    ref = store.put_blob(b"weights" * (1 << 20))
    for _ in range(2):
        store.link_blob(ref, "runs/demo/branches/0/checkpoints/1/adapter/adapter_model.safetensors")
    view = place.folder / "runs/demo/branches/0/checkpoints/1/adapter/adapter_model.safetensors"
    assert view.read_bytes() == b"weights" * (1 << 20)


def test_a_stamp_changes_with_the_object(place: Place):
    store = place.open()
    assert store.stamp("a/b") is None
    store.replace("a/b", b"one")
    one = store.stamp("a/b")
    store.replace("a/b", b"two")
    assert one is not None
    assert store.stamp("a/b") not in (one, None)


def test_a_key_that_leads_elsewhere_is_refused(place: Place):
    store, blob = place.open(), blob_ref(b"x")
    for key in ("", "/etc/passwd", "../outside", "a//b", "a/../../b", ".hidden", "a/b\n", "a b"):
        for act in (store.read, store.stamp):
            require_refused(partial(act, key), key)
        for act in (store.replace, store.publish):
            require_refused(partial(act, key, b"x"), key)
        wandering = blob.model_copy(update={"key": key})
        for act in (partial(store.get_blob, wandering), partial(store.link_blob, wandering, "view")):
            require_refused(act, key)
        require_refused(partial(store.link_blob, blob, key), key)


def require_refused(act: Callable[[], object], key: str) -> None:
    failure = failure_of(act)
    assert failure.type == "BadConfig"
    assert repr(key) in failure.message
