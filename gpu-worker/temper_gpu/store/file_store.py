"""The store in a folder.

Every write is a temporary file, fsynced, then renamed (blobs: same name, same bytes) or linked (write-once: on EEXIST
another writer was first, and its bytes are read). Every read by reference is verified.
"""

import errno
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from temper_gpu.contract import KEPT_UNNAMED_MS, BlobRef
from temper_gpu.failures import TemperError
from temper_gpu.store.store import Published, Store, blob_ref, check_key

# Errors of the disk that may pass: full, over quota, read-only, not permitted, disk gone.
_UNAVAILABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENODEV})
# Errors of a link after which a copy is tried. A missing blob fails there, too, with its name.
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOENT})

T = TypeVar("T")


class FileSystem:
    """The only access to the disk. Tests raise ENOSPC and EROFS here, at each write in turn."""

    def make_folder(self, folder: Path, mode: int = 0o777) -> None:
        folder.mkdir(mode, parents=True, exist_ok=True)

    def write_synced(self, path: Path, data: bytes) -> None:
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)

    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def sync_folder(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def touch(self, path: Path) -> None:
        os.utime(path)

    def stamp(self, path: Path) -> tuple[int, int]:
        status = path.stat()
        return status.st_ino, status.st_mtime_ns


class FileStore(Store):
    stamp_lifetime_s = 0.0

    def __init__(self, root: Path, files: FileSystem | None = None) -> None:
        self.root = root
        self._files = files or FileSystem()

    @property
    def uri(self) -> str:
        return self.root.as_uri()

    def check(self) -> None:
        """Checks nothing: the first write makes the folder, and may be retried."""

    def put_blob(self, data: bytes) -> BlobRef:
        ref = blob_ref(data)
        # Writing the same bytes again repairs a blob with a flipped bit.
        if self.read(ref.key) != data or not self._renew(ref.key):
            self.replace(ref.key, data)
        return ref

    def publish(self, key: str, data: bytes) -> Published:
        winner = self.read(key)
        if winner is None:
            try:
                self._write(key, data, self._files.link)
                return Published(True, data)
            except FileExistsError:
                winner = self.read(key)
                if winner is None:  # no lost race: the key is a folder, or a file is in the place of a folder
                    raise
        return Published(False, winner)

    def replace(self, key: str, data: bytes) -> None:
        self._write(key, data, self._files.rename)

    def read(self, key: str) -> bytes | None:
        return self._look(key, self._files.read)

    def stamp(self, key: str) -> tuple[int, int] | None:
        return self._look(key, self._files.stamp)

    def link_blob(self, ref: BlobRef, key: str) -> None:
        """Shows a blob under a second name: a hard link, or a copy where the disk has none."""
        target = self._path(key)
        with self._reaching("write", target):
            self._make_folder(target.parent)
            try:
                self._files.link(self._path(ref.key), target)
                return
            except FileExistsError:
                return
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
        self.replace(key, self.get_blob(ref))

    def _make_folder(self, folder: Path) -> None:
        """A store that Temper makes is for its user alone; who shares one gives its folder another mode."""
        self._files.make_folder(self.root, 0o700)
        self._files.make_folder(folder)

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    def _renew(self, key: str) -> bool:
        """Renews an old blob's time, so that `temper gc` keeps it. False if it is gone or belongs to another user."""
        path = self._path(key)
        with self._reaching("write", path), suppress(FileNotFoundError, PermissionError):
            if (time.time() - path.stat().st_mtime) * 1000 > KEPT_UNNAMED_MS / 2:
                self._files.touch(path)
            return True
        return False

    def _look(self, key: str, look: Callable[[Path], T]) -> T | None:
        """Returns None if there is no such file."""
        path = self._path(key)
        with self._reaching("read", path), suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return look(path)

    def _write(self, key: str, data: bytes, place: Callable[[Path, Path], None]) -> None:
        """Raises FileExistsError if `place` finds the name taken."""
        path = self._path(key)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        try:
            with self._reaching("write", path):
                self._make_folder(path.parent)
                self._files.write_synced(temporary, data)
                place(temporary, path)
                self._files.sync_folder(path.parent)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    @contextmanager
    def _reaching(self, verb: str, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _UNAVAILABLE:
                raise
            raise TemperError(
                "StoreUnavailable",
                f"the store must be able to {verb} in {path.parent}, got {errno.errorcode[error.errno]} "
                f"({error.strerror}); free space or make the folder writable: the work then resumes by itself",
            ) from error
