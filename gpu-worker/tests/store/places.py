"""Where a store stands, and where its objects lie as files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from temper_gpu.store import FileStore, Store
from temper_gpu.store.s3_client import S3Settings
from temper_gpu.store.s3_store import S3Store
from tests.store.s3_server import BUCKET, S3Server

# The smallest part that S3 takes.
SMALL_PARTS = S3Settings(part_bytes=5 << 20)
# Gives up soon.
HASTY = S3Settings(connect_timeout_s=5, read_timeout_s=5, max_attempts=2, part_bytes=5 << 20)


@dataclass(frozen=True)
class Place:
    folder: Path
    open: Callable[[], Store]
    prefix: str = ""


def file_place(folder: Path) -> Place:
    return Place(folder / "store", lambda: FileStore(folder / "store"))


def s3_place(server: S3Server, settings: S3Settings = SMALL_PARTS, prefix: str | None = None) -> Place:
    """Without a prefix, under one of its own."""
    prefix = prefix or f"tests/{uuid4().hex}"
    return Place(server.bucket / prefix, lambda: S3Store(BUCKET, prefix, settings), prefix)
