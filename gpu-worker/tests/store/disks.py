"""Disks that refuse: by the store's seam, and real ones."""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from temper_gpu.store import FileSystem


class FailingAt(FileSystem):
    """A disk whose n-th operation that changes something fails; counts them."""

    def __init__(self, fail_at: int, code: int) -> None:
        self.num_changes, self._fail_at, self._code = 0, fail_at, code

    def _change(self) -> None:
        self.num_changes += 1
        if self.num_changes - 1 == self._fail_at:
            raise OSError(self._code, os.strerror(self._code))

    def make_folder(self, folder: Path, mode: int = 0o777) -> None:
        self._change()
        super().make_folder(folder, mode)

    def write_synced(self, path: Path, data: bytes) -> None:
        if self.num_changes == self._fail_at:
            path.write_bytes(data[:3])  # a full disk leaves a torn file
        self._change()
        super().write_synced(path, data)

    def link(self, source: Path, target: Path) -> None:
        self._change()
        super().link(source, target)

    def rename(self, source: Path, target: Path) -> None:
        self._change()
        super().rename(source, target)

    def touch(self, path: Path) -> None:
        self._change()
        super().touch(path)

    def sync_folder(self, folder: Path) -> None:
        self._change()
        super().sync_folder(folder)


@contextmanager
def small_disk(folder: Path, num_bytes: int) -> Generator[Path]:
    """A real file system of this size; skips the test where this user may not mount one."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={num_bytes}", "tmpfs", str(folder)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small disk is not permitted here; the seam's test stands for it")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def remount(folder: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(folder)], check=True)
