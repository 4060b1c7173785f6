"""Folders from which a vLLM server reads adapters: the instance's own, or one that its host and this one share."""

import filecmp
import os
import re
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from temper_gpu.engine.interface import AdapterSource
from temper_gpu.failures import TemperError

# Age after which an unrenewed folder belongs to a dead process, so that others remove it.
LEFT_BEHIND_S = 86400.0
OF_OURS = re.compile(r"[0-9a-f]{64}|\.(writing|seen)-[0-9a-f]{16}")


class AdapterFolders(Protocol):
    def write(self, source: AdapterSource) -> str:
        """PEFT's files of an adapter; returns the folder as the server sees it."""
        ...

    def remove(self, seen: str) -> None: ...


class OwnFolders:
    """Adapters in a folder that is removed with the server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, source: AdapterSource) -> str:
        # A new folder each time, because vLLM reads it again after it has evicted the adapter.
        folder = Path(tempfile.mkdtemp(prefix="adapter-", dir=self._folder))
        try:
            source.write_folder(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return str(folder)

    def remove(self, seen: str) -> None:
        shutil.rmtree(seen, ignore_errors=True)


class SharedFolders:
    """One folder for each adapter, named after its hash. It is written atomically, also with several writers."""

    def __init__(self, folder: Path, there: str) -> None:
        """`there`: the same folder as the server's host has it."""
        self._folder = folder
        self._there = there.rstrip("/")
        self._kept: set[str] = set()

    def write(self, source: AdapterSource) -> str:
        target = self._folder / source.sha256
        staged = self._new(".writing-")
        try:
            source.write_folder(staged)
            if not is_same(staged, target):
                # The existing folder is damaged.
                shutil.rmtree(target, ignore_errors=True)
                with suppress(OSError):  # another process was faster
                    staged.rename(target)
            if staged.exists() and not is_same(staged, target):
                raise TemperError("EngineFailed", f"{target} must keep what is written there, but changes; retry")
        except OSError as error:
            raise self._failure(error) from error
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        self._kept.add(target.name)
        self.renew()
        return self._seen(target)

    def renew(self) -> None:
        """They are in use."""
        for name in list(self._kept):
            with suppress(OSError):
                os.utime(self._folder / name)

    def remove(self, seen: str) -> None:
        name = seen.rpartition("/")[2]
        self._kept.discard(name)
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def write_sign(self) -> str:
        """A folder without an adapter: the server's error about it shows whether it sees the folder."""
        folder = self._new(".seen-")
        try:
            (folder / "adapter_config.json").write_text("{}")
        except OSError as error:
            raise self._failure(error) from error
        return self._seen(folder)

    def remove_left_behind(self) -> list[str]:
        """Removes folders of processes that ended without doing so, by the clock of the folder's own host."""
        now, removed = self._new(".seen-"), []
        try:
            limit = now.stat().st_mtime - LEFT_BEHIND_S
            now.rmdir()
            found = [path for path in self._folder.iterdir() if OF_OURS.fullmatch(path.name)]
        except OSError as error:
            raise self._failure(error) from error
        for path in found:
            with suppress(OSError):
                if path.stat().st_mtime < limit:
                    shutil.rmtree(path)
                    removed.append(path.name)
        return removed

    def _new(self, prefix: str) -> Path:
        """Readable for others: the server may run as another user."""
        folder = self._folder / f"{prefix}{secrets.token_hex(8)}"
        try:
            folder.mkdir()
        except OSError as error:
            raise self._failure(error) from error
        return folder

    def _seen(self, path: Path) -> str:
        return f"{self._there}/{path.name}"

    def _failure(self, error: OSError) -> TemperError:
        is_wrong = isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)
        return TemperError(
            "BadConfig" if is_wrong else "EngineFailed",
            f"engine.vllm.adapters.folder must be a folder that this host can write to, but {self._folder} is not "
            f"({error.strerror}); correct it, or make the folder",
        )


def is_same(written: Path, target: Path) -> bool:
    with suppress(OSError):
        names = [path.name for path in written.iterdir()]
        same, _, _ = filecmp.cmpfiles(written, target, names, shallow=False)
        return bool(names) and len(same) == len(names)
    return False
