"""The store's interface, and what all stores share: names, references, verification."""

import hashlib
import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from temper_gpu.contract import STORE_KEYS, BlobRef
from temper_gpu.failures import TemperError

# Names in keys. Only temporary files begin with a dot.
_NAME = re.compile(r"[A-Za-z0-9_~@-][A-Za-z0-9._~@-]*")


@dataclass(frozen=True)
class Published:
    """`created` is False if another writer was first; `bytes` are the object's bytes now."""

    created: bool
    bytes: bytes


class Store(Protocol):
    """Every method may be called from any thread. Stores inherit from it, so that reads are verified in one place."""

    # Time for which a stamp may be trusted without reading it again; 0: reading a stamp costs nothing.
    stamp_lifetime_s: float

    @property
    def uri(self) -> str: ...

    def check(self) -> None:
        """Raises BadConfig if the store can never work as it is configured."""
        ...

    def put_blob(self, data: bytes) -> BlobRef: ...

    def get_blob(self, ref: BlobRef) -> bytes:
        """Verifies length and hash. Other bytes, or none, are StoreCorrupt."""
        return verified(ref.key, self.read(ref.key), ref.sha256, ref.bytes)

    def read_verified(self, key: str, sha256: str) -> bytes:
        """Verifies the hash of an object that has its own key."""
        return verified(key, self.read(key), sha256)

    def publish(self, key: str, data: bytes) -> Published:
        """Write-once: fencing by the store, no locks. A loser discards its own work."""
        ...

    def replace(self, key: str, data: bytes) -> None:
        """The last writer wins. Only for sidecars and displays."""
        ...

    def read(self, key: str) -> bytes | None: ...

    def stamp(self, key: str) -> Hashable | None:
        """Changes when the object does; lets a reader keep what it parsed. None: there is no such object."""
        ...

    def link_blob(self, ref: BlobRef, key: str) -> None:
        """Shows a blob under a second name, without moving its bytes where the store can."""
        ...


def check_key(key: str) -> str:
    """Keys are relative, `/` between names, none of which leads anywhere else."""
    if all(_NAME.fullmatch(name) for name in key.split("/")):
        return key
    raise TemperError(
        "BadConfig",
        f"the store's key {key!r} must be names of letters, digits and ._~@- with / between them, none beginning with "
        "a dot; take keys from checkpoints.py",
    )


def blob_key(sha256: str) -> str:
    return STORE_KEYS["blob"].format(sha256=sha256)


def blob_ref(data: bytes) -> BlobRef:
    sha256 = hashlib.sha256(data).hexdigest()
    return BlobRef(key=blob_key(sha256), sha256=sha256, bytes=len(data))


def verified(key: str, data: bytes | None, sha256: str, length: int | None = None) -> bytes:
    """Returns the bytes if length and hash agree."""
    if data is None:
        raise _corrupt(key, sha256, "it is missing")
    if length is not None and len(data) != length:
        raise _corrupt(key, sha256, f"it has {len(data)} bytes instead of {length}")
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise _corrupt(key, sha256, f"its bytes have sha256 {found}")
    return data


def _corrupt(key: str, sha256: str, finding: str) -> TemperError:
    return TemperError(
        "StoreCorrupt",
        f"{key} must have sha256 {sha256}, but {finding}; restore it from a copy of the store "
        "(temper checkpoints pull RUN STORE), or start a new run",
    )
