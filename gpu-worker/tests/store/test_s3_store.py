"""What can go wrong between a store and a real S3 server: addresses, keys, lost answers, a server that dies."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest

from temper_gpu.failures import TemperError
from temper_gpu.store import blob_ref, open_store
from temper_gpu.store.s3_store import S3Store
from tests.store.places import HASTY, SMALL_PARTS, s3_place
from tests.store.s3_server import BUCKET, SECRET_KEY, S3Server, Wire, free_port
from tests.store.test_stores import failure_of

LARGE = os.urandom(12 << 20)
MIDDLE = 6 << 20
MAX_TRIES = 5
# The first bytes of every answer to a write.
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def again(act: Callable[[], object]) -> None:
    """As Temporal does: what may pass is tried again."""
    for _ in range(MAX_TRIES):
        try:
            act()
            return
        except TemperError as error:
            assert error.type == "StoreUnavailable"
    raise AssertionError("it did not pass")


def once(wire: Wire, direction: str, more_than: int, act: Callable[[], object] = lambda: None) -> None:
    """Cuts the wire when so many bytes have passed in that direction, after `act`."""

    def is_cut(passing: str, passed: int) -> bool:
        if passing != direction or passed <= more_than:
            return False
        wire.is_cut = lambda *_: False
        act()
        return True

    wire.is_cut = is_cut


def restarting(server: S3Server) -> Callable[[], None]:
    def restart() -> None:
        server.kill()
        server.start()

    return restart


def test_a_checked_bucket_has_the_name_that_typescript_gives_a_store(aws, s3_server: S3Server):
    place = s3_place(s3_server)
    for _ in range(2):
        place.open().check()
    name = (place.folder / "store.json").read_bytes()
    assert name == json.dumps(json.loads(name), separators=(",", ":")).encode() + b"\n"
    assert UUID(json.loads(name)["id"]).version == 4
    assert [file.name for file in place.folder.iterdir()] == ["store.json"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"AWS_ACCESS_KEY_ID": "nobody"}, "AWS_ACCESS_KEY_ID"),
        ({"AWS_SECRET_ACCESS_KEY": "another secret"}, "AWS_SECRET_ACCESS_KEY"),
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "keys must be in AWS_ACCESS_KEY_ID"),
        ({"AWS_SECRET_ACCESS_KEY": None}, "keys must be in AWS_ACCESS_KEY_ID"),
        ({"AWS_PROFILE": "nowhere"}, "AWS_PROFILE"),
        ({"AWS_ENDPOINT_URL": "no address"}, "AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "http://user:another secret@127.0.0.1:1"}, "AWS_ENDPOINT_URL"),
    ],
)
def test_wrong_settings_are_told_with_the_remedy_and_no_secret(aws, changes: dict[str, str | None], told: str):
    for name, value in changes.items():
        aws.delenv(name) if value is None else aws.setenv(name, value)
    failure = failure_of(lambda: S3Store(BUCKET).check())
    assert (failure.type, told in failure.message) == ("BadConfig", True), failure.message
    assert not any(secret in failure.message for secret in (SECRET_KEY, "another secret"))


def test_a_bucket_that_does_not_exist_is_told(aws, s3_server: S3Server):
    store = S3Store("another-bucket")
    for act in (store.check, lambda: store.put_blob(b"x"), lambda: store.read("a"), lambda: store.publish("a", b"x")):
        failure = failure_of(act)
        assert (failure.type, failure.retryable) == ("BadConfig", False)
        assert "s3://another-bucket/" in failure.message
        assert "create it" in failure.message


@pytest.mark.parametrize("how", ["refuses connections", "ends connections"])
def test_a_server_that_is_away_is_unavailable(aws, how: str):
    wire = Wire(free_port())
    if how == "refuses connections":
        wire.close()
    aws.setenv("AWS_ENDPOINT_URL", wire.url)
    store = S3Store(BUCKET, settings=HASTY)
    reads = [store.check, partial(store.read, "a"), partial(store.stamp, "a")]
    writes = [partial(act, "a", b"x") for act in (store.publish, store.replace)]
    blobs = [partial(store.put_blob, b"x"), partial(store.link_blob, blob_ref(b"x"), "a")]
    for act in (*reads, *writes, *blobs):
        failure = failure_of(act)
        assert (failure.type, failure.retryable) == ("StoreUnavailable", True)
        assert f"s3://{BUCKET}" in failure.message
        assert wire.url in failure.message
    wire.close()


def test_a_server_that_never_answers_is_given_up(wire: Wire):
    wire.is_swallowing = True
    settings = replace(HASTY, read_timeout_s=0.3)
    assert failure_of(lambda: S3Store(BUCKET, settings=settings).read("a")).type == "StoreUnavailable"


def test_an_own_object_whose_answer_was_lost_is_no_loss(wire: Wire, s3_server: S3Server):
    store = s3_place(s3_server).open()
    once(wire, "down", len(CONTINUE))
    published = store.publish("a/b", b"mine")
    assert (published.created, published.bytes) == (True, b"mine")
    assert wire.num_connections == 3  # the first try, the second, and a look at what is there


def test_anothers_object_is_a_loss_also_where_the_answer_was_lost(wire: Wire, s3_server: S3Server):
    place = s3_place(s3_server)
    place.open().publish("a/b", b"theirs")
    once(wire, "down", wire.passed["down"] + len(CONTINUE))
    published = place.open().publish("a/b", b"mine")
    assert (published.created, published.bytes) == (False, b"theirs")


def test_what_is_large_goes_in_parts_and_comes_back_whole(aws, s3_server: S3Server):
    place = s3_place(s3_server, SMALL_PARTS)
    store = place.open()
    ref = store.put_blob(LARGE)
    assert str(store.stamp(ref.key)).strip('"').endswith("-3")
    assert store.get_blob(ref) == LARGE
    store.link_blob(ref, "view/adapter")
    assert (place.folder / "view/adapter").read_bytes() == LARGE


def test_a_server_killed_during_an_upload_gets_the_rest_when_it_is_back(wire: Wire, s3_server: S3Server):
    place = s3_place(s3_server)
    store = place.open()
    once(wire, "up", MIDDLE, restarting(s3_server))
    again(lambda: store.put_blob(LARGE))
    assert (place.folder / blob_ref(LARGE).key).read_bytes() == LARGE


def test_an_upload_given_up_in_the_middle_leaves_no_object(wire: Wire, s3_server: S3Server):
    place = s3_place(s3_server, HASTY)
    wire.is_cut = lambda direction, passed: direction == "up" and passed > MIDDLE
    assert failure_of(lambda: place.open().put_blob(LARGE)).type == "StoreUnavailable"
    wire.is_cut = lambda *_: False
    assert place.open().read(blob_ref(LARGE).key) is None
    for _ in range(MAX_TRIES):
        # The server may still be clearing away what it had got, and take the new object along.
        found = place.open().read(place.open().put_blob(LARGE).key)
        if found is not None:
            break
    # pyrefly: ignore[unbound-name]
    assert found == LARGE


def test_a_server_killed_during_a_download_sends_only_the_rest_when_it_is_back(wire: Wire, s3_server: S3Server):
    store = s3_place(s3_server).open()
    ref = store.put_blob(LARGE)
    before = wire.passed["down"]
    once(wire, "down", before + MIDDLE, restarting(s3_server))
    found: list[bytes] = []
    again(lambda: found.append(store.get_blob(ref)))
    assert found == [LARGE]
    assert wire.passed["down"] - before < len(LARGE) + (2 << 20)


def test_an_object_replaced_during_its_download_is_read_anew(wire: Wire, s3_server: S3Server):
    place = s3_place(s3_server)
    store, other = place.open(), bytes(reversed(LARGE))
    store.replace("view", LARGE)
    once(wire, "down", wire.passed["down"] + MIDDLE, lambda: replace_directly(place.folder / "view", other))
    assert store.read("view") == other


def replace_directly(file, data: bytes) -> None:
    """As another writer's upload would: a new file, with an ETag of its own."""
    fresh = file.with_name("fresh")
    fresh.write_bytes(data)
    os.setxattr(fresh, "user.etag", b'"another"')
    fresh.replace(file)


@pytest.mark.parametrize(
    ("uri", "canonical"),
    [
        ("s3://my-bucket", "s3://my-bucket"),
        ("S3://my.bucket.1/", "s3://my.bucket.1"),
        ("s3://my-bucket/a/b_c~1/", "s3://my-bucket/a/b_c~1"),
    ],
)
def test_a_bucket_and_a_prefix_are_a_store(aws, uri: str, canonical: str):
    assert open_store(uri).uri == canonical


@pytest.mark.parametrize(
    "uri",
    [
        *("s3://", "s3://ab", "s3://My-Bucket/x", "s3://-bucket", "s3://a..b", "s3://10.0.0.1/x", "s3://bucket//a"),
        *("s3://bucket/../x", "s3://bucket/.x", "s3://bucket/a b", "s3://KEY:hidden@bucket_/x", "s3://bucket/x?y=1"),
    ],
)
def test_what_is_no_bucket_or_prefix_is_refused(uri: str):
    failure = failure_of(partial(open_store, uri))
    assert failure.type == "BadConfig"
    assert "s3://bucket/prefix" in failure.message
    assert "hidden" not in failure.message
