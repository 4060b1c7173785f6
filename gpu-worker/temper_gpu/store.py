"""The file store, as TypeScript's store/ has it: write-once objects by key relative to a root, blobs by hash.

Every write is a temporary file, fsynced, then renamed (blobs: same name, same bytes) or linked (write-once: EEXIST
means that somebody committed, and the winner's bytes are read). Every read by reference is verified.
"""

import errno
import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from temper_gpu.contract import BlobRef
from temper_gpu.failures import TemperError

# Not the fault of what is written, and may pass: full, over quota, read-only, not permitted, disk gone.
_UNAVAILABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENODEV})
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP})


class FileSystem:
    """The one seam to the disk; tests raise ENOSPC and EROFS here, at each write in turn."""

    def make_folder(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)

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


@dataclass(frozen=True)
class Published:
    """`created` is False where another writer was first; `bytes` are what stands there now."""

    created: bool
    bytes: bytes


class FileStore:
    def __init__(self, root: Path, files: FileSystem | None = None) -> None:
        self.root = root
        self._files = files or FileSystem()

    @property
    def uri(self) -> str:
        return self.root.as_uri()

    def put_blob(self, data: bytes) -> BlobRef:
        ref = blob_ref(data)
        path = self.root / ref.key
        # A blob with a flipped bit is put right by whoever makes the same bytes again.
        if self.read(ref.key) != data:
            self._write(path, data, self._files.rename)
        return ref

    def get_blob(self, ref: BlobRef) -> bytes:
        return self.read_verified(ref.key, ref.sha256)

    def read_verified(self, key: str, sha256: str) -> bytes:
        data = self.read(key)
        if data is None:
            raise _corrupt(key, sha256, "it is missing")
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise _corrupt(key, sha256, f"its bytes have sha256 {found}")
        return data

    def publish(self, key: str, data: bytes) -> Published:
        """Write-once: fencing by the store, no locks. A loser discards its own work."""
        winner = self.read(key)
        if winner is None and self._write(self.root / key, data, self._files.link):
            return Published(True, data)
        return Published(False, winner or self.read(key) or b"")

    def replace(self, key: str, data: bytes) -> None:
        """For sidecars and displays alone: last writer wins."""
        self._write(self.root / key, data, self._files.rename)

    def read(self, key: str) -> bytes | None:
        try:
            return self._files.read(self.root / key)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._unavailable("read", self.root / key, error) from error

    def stamp(self, key: str) -> tuple[int, int] | None:
        """Changes when the object does; lets a reader keep what it parsed."""
        try:
            status = (self.root / key).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def link_blob(self, ref: BlobRef, key: str) -> None:
        """Shows a blob under a second name: a hard link, or a copy where the disk has none."""
        target = self.root / key
        try:
            self._files.make_folder(target.parent)
            self._files.link(self.root / ref.key, target)
        except FileExistsError:
            return
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise self._unavailable("write", target, error) from error
            self.replace(key, self.get_blob(ref))

    def _write(self, path: Path, data: bytes, place: Callable[[Path, Path], None]) -> bool:
        """False where `place` found the name taken."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        try:
            self._files.make_folder(path.parent)
            self._files.write_synced(temporary, data)
            place(temporary, path)
            self._files.sync_folder(path.parent)
            return True
        except FileExistsError:
            return False
        except OSError as error:
            raise self._unavailable("write", path, error) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _unavailable(self, verb: str, path: Path, error: OSError) -> Exception:
        if error.errno not in _UNAVAILABLE:
            return error
        return TemperError(
            "StoreUnavailable",
            f"the store must be able to {verb} in {path.parent}, got {errno.errorcode.get(error.errno or 0)} "
            f"({error.strerror}); free space or make the folder writable: the work goes on by itself then",
        )


def open_store(uri: str) -> FileStore:
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise TemperError(
            "BadConfig", f"a store must be a file:// URI, got {uri}; pass --store file:///absolute/folder"
        )
    return FileStore(Path(url2pathname(parts.path)))


def blob_ref(data: bytes) -> BlobRef:
    sha256 = hashlib.sha256(data).hexdigest()
    return BlobRef(key=f"blobs/{sha256}", sha256=sha256, bytes=len(data))


def _corrupt(key: str, sha256: str, finding: str) -> TemperError:
    return TemperError(
        "StoreCorrupt",
        f"{key} must have sha256 {sha256}, but {finding}; restore it from a copy of the store, or start a new run",
    )
