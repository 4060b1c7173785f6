import errno
import os
from pathlib import Path

import pytest

from temper_gpu.store import FileStore, FileSystem, blob_ref
from tests.failing import failing
from tests.store.disks import FailingAt


def write_all(store: FileStore) -> None:
    ref = store.put_blob(b"weights")
    assert store.publish("runs/demo/manifest.json", b"commit").bytes == b"commit"
    store.link_blob(ref, "runs/demo/view/adapter")
    store.replace("runs/demo/times.json", b"{}")


def count_changes(root: Path) -> int:
    disk = FailingAt(-1, 0)
    write_all(FileStore(root, disk))
    return disk.num_changes


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses_any_write_is_unavailable_and_the_retry_succeeds(tmp_path: Path, code: int):
    for fail_at in range(count_changes(tmp_path / "counted")):
        root = tmp_path / f"{code}.{fail_at}"
        with failing("StoreUnavailable", rf"{root}.*{errno.errorcode[code]}", retryable=True):
            write_all(FileStore(root, FailingAt(fail_at, code)))
        write_all(FileStore(root))
        assert not [path for path in root.rglob("*.tmp")]
        assert FileStore(root).get_blob(blob_ref(b"weights")) == b"weights"


def test_a_writer_that_loses_the_race_after_looking_gets_the_winners_bytes(tmp_path: Path):
    class Racing(FileSystem):
        def link(self, source: Path, target: Path) -> None:
            target.write_bytes(b"winner")
            super().link(source, target)

    published = FileStore(tmp_path, Racing()).publish("a/b", b"loser")
    assert (published.created, published.bytes) == (False, b"winner")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_a_view_shares_the_blobs_bytes_on_disk(tmp_path: Path):
    store = FileStore(tmp_path)
    ref = store.put_blob(b"weights")
    for _ in range(2):
        store.link_blob(ref, "view/adapter")
    assert (tmp_path / ref.key).samefile(tmp_path / "view/adapter")


def test_a_disk_without_links_gets_a_copy(tmp_path: Path):
    class Linkless(FileSystem):
        def link(self, source: Path, target: Path) -> None:
            raise OSError(errno.EPERM, "no links here")

    store = FileStore(tmp_path, Linkless())
    store.link_blob(store.put_blob(b"weights"), "view/adapter")
    assert store.read("view/adapter") == b"weights"


def test_whoever_makes_a_blob_again_mends_it(tmp_path: Path):
    store = FileStore(tmp_path)
    ref = store.put_blob(b"weights")
    (tmp_path / ref.key).write_bytes(b"weighty")
    assert store.get_blob(store.put_blob(b"weights")) == b"weights"


def test_a_file_where_a_folder_must_be_is_an_error_and_no_lost_race(tmp_path: Path):
    store = FileStore(tmp_path / "store")
    ref = FileStore(tmp_path / "other").put_blob(b"weights")
    (tmp_path / "store").mkdir()
    for name in ("blobs", "runs"):
        (tmp_path / "store" / name).touch()
    for write in (
        lambda: store.put_blob(b"weights"),
        lambda: store.publish("runs/state.json", b"{}"),
        lambda: store.replace("runs/state.json", b"{}"),
        lambda: store.link_blob(ref, "runs/view"),
    ):
        with pytest.raises(FileExistsError):
            write()


def test_a_disk_that_cannot_be_asked_is_not_taken_for_one_without_the_object(tmp_path: Path):
    class Unreadable(FileSystem):
        def stamp(self, path: Path) -> tuple[int, int]:
            raise OSError(errno.EIO, "Input/output error")

    with failing("StoreUnavailable", "EIO"):
        FileStore(tmp_path, Unreadable()).stamp("runs/demo")


def test_an_old_blob_of_another_user_is_put_again(tmp_path: Path):
    class NotOwned(FileSystem):
        def touch(self, path: Path) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

    store = FileStore(tmp_path, NotOwned())
    ref = store.put_blob(b"weights")
    os.utime(tmp_path / ref.key, (1e9, 1e9))
    store.put_blob(b"weights")
    assert (tmp_path / ref.key).stat().st_mtime > 1e9
    assert store.get_blob(ref) == b"weights"


def test_a_store_that_is_made_is_closed_to_other_users(tmp_path: Path):
    write_all(FileStore(tmp_path / "made"))
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "made" / "runs").stat().st_mode & 0o700 == 0o700
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o770)
    write_all(FileStore(tmp_path / "shared"))
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o770
