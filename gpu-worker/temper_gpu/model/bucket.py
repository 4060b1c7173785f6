"""Models in an S3 bucket: the objects below a prefix, as they were when a run began, kept in a folder of the cache.

Address and credentials are those of AWS's own tools, as for stores. The cache is that of models of the Hugging Face
hub (HF_HOME). A complete model is not requested again, because changed objects are another model.
"""

import errno
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from filelock import FileLock
from huggingface_hub import constants

from temper_gpu.contract import S3_NAMED, S3_SCHEME
from temper_gpu.failures import TemperError
from temper_gpu.model.hub import FILES, LEFT_OUT, OnProgress, Snapshot, unreported

# Allowed file names: none that could lead outside the folder, or is hidden.
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
MD5 = re.compile("[0-9a-f]{32}")
# The folder's list of files, and whether all of them are there.
CONTENTS = ".temper.json"
AT_ONCE = 8


@dataclass(frozen=True)
class S3Model:
    # BUCKET/PREFIX
    place: str
    # The hash of a listing; None: whatever is there now.
    pin: str | None

    @property
    def name(self) -> str:
        """The name that runs record. It has three parts or more, so it is no name of the hub."""
        return S3_NAMED + self._pinned

    def __str__(self) -> str:
        return S3_SCHEME + self._pinned

    @property
    def _pinned(self) -> str:
        return self.place if self.pin is None else f"{self.place}@{self.pin}"


@dataclass(frozen=True)
class S3File:
    name: str
    num_bytes: int
    etag: str


@dataclass(frozen=True)
class Listing:
    place: str
    # Objects by name.
    files: tuple[S3File, ...]

    @property
    def pin(self) -> str:
        """A pin has the length of a git commit: names of models have room for that."""
        text = json.dumps([self.place, *([file.name, file.num_bytes, file.etag] for file in self.files)])
        return hashlib.sha256(text.encode()).hexdigest()[:40]


def parse_s3_model(text: str) -> S3Model | None:
    """A source or a name; None for what is neither."""
    if not is_s3_model(text):
        return None
    place, _, pin = text.removeprefix(S3_SCHEME).removeprefix(S3_NAMED).partition("@")
    return S3Model(place, pin or None)


def is_s3_model(text: str) -> bool:
    return text.startswith(S3_SCHEME) or (text.startswith(S3_NAMED) and text.count("/") > 1)


def resolve_revision(model: S3Model) -> str:
    """The revision that is there now. Raises as `download_s3` does."""
    return model.pin or _list(_client(model), model).pin


def download_s3(model: S3Model, report: OnProgress = unreported, patterns: list[str] = FILES) -> Snapshot:
    """The model's files in the cache, downloaded where they are missing; what broke off is taken up where it ended.

    Raises TemperError BadConfig for what a person has to change, and EngineFailed where the server does not answer.
    """
    if model.pin is not None and _is_complete(model.pin):
        return Snapshot(_folder(model.pin), model.pin)
    client = _client(model)
    listing = _list(client, model)
    if model.pin not in (None, listing.pin):
        raise _changed(model, listing)
    snapshot = Snapshot(_folder(listing.pin), listing.pin)
    if _is_complete(listing.pin):
        return snapshot
    wanted = [file for file in listing.files if any(fnmatch(file.name, pattern) for pattern in patterns)]
    with _explained(model, "read"):
        snapshot.folder.mkdir(parents=True, exist_ok=True)
        # Another process may want the same.
        with FileLock(snapshot.folder / ".lock"):
            if _is_complete(listing.pin):
                return snapshot
            _note_contents(listing, is_whole=False)
            counter = _Counter(report, sum(file.num_bytes for file in wanted))
            _fetch_all(_Fetch(client, model, snapshot.folder, counter), wanted)
            if patterns == FILES:
                _note_contents(listing, is_whole=True)
    return snapshot


def _folder(pin: str) -> Path:
    return Path(constants.HF_HOME) / "temper-s3" / pin


def _is_complete(pin: str) -> bool:
    noted, folder = _read_contents(pin), _folder(pin)
    try:
        files = noted["files"].items()
        is_whole = noted.get("is_whole", False) and bool(files)
        return is_whole and all((folder / name).stat().st_size == size for name, (size, _) in files)
    except FileNotFoundError:
        return False


def _read_contents(pin: str) -> dict[str, Any]:
    try:
        return json.loads((_folder(pin) / CONTENTS).read_bytes())
    except (FileNotFoundError, ValueError):
        return {"files": {}}


def _note_contents(listing: Listing, is_whole: bool) -> None:
    files = {file.name: (file.num_bytes, file.etag) for file in listing.files}
    partial = _folder(listing.pin) / f"{CONTENTS}.partial"
    partial.write_text(json.dumps({"is_whole": is_whole, "files": files}, indent=1))
    partial.replace(partial.with_suffix(""))


def _list(client: Any, model: S3Model) -> Listing:
    bucket, prefix = _bucket_and_prefix(model)
    files: list[S3File] = []
    with _explained(model, "list"):
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
        for found in (found for page in pages for found in page.get("Contents", [])):
            name = found["Key"].removeprefix(prefix)
            if not _is_wanted(name):
                continue
            etag = found.get("ETag", "").strip('"')
            if not etag:
                raise _refused(model, f"the server gives {name} no ETag", "upload it again, or use another server")
            files.append(S3File(name, found["Size"], etag))
    names = {file.name for file in files}
    if "config.json" not in names:
        what = "is no config.json" if names else "are no files of a model"
        raise _refused(model, f"there {what} below it", "name the prefix that a model was saved to")
    if not any(name.endswith(".safetensors") for name in names):
        reason = "it has no .safetensors file (pickled weights are not loaded)"
        raise _refused(model, reason, "convert the model to safetensors")
    return Listing(model.place, tuple(sorted(files, key=lambda file: file.name)))


def _is_wanted(name: str) -> bool:
    return (
        PLAIN.fullmatch(name) is not None
        and any(fnmatch(name, each) for each in FILES)
        and not any(fnmatch(name, each) for each in LEFT_OUT)
    )


def _bucket_and_prefix(model: S3Model) -> tuple[str, str]:
    bucket, _, prefix = model.place.partition("/")
    return bucket, f"{prefix.rstrip('/')}/"


class _Counter:
    """Bytes that are here, of all."""

    def __init__(self, report: OnProgress, total: int) -> None:
        self._report, self._total, self._done = report, total, 0
        self._lock = threading.Lock()

    def add(self, num_bytes: int) -> None:
        with self._lock:
            self._done += num_bytes
            self._report(self._done, self._total)


@dataclass(frozen=True)
class _Fetch:
    client: Any
    model: S3Model
    folder: Path
    counter: _Counter


def _fetch_all(fetch: _Fetch, files: list[S3File]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(_fetch_file, fetch, file) for file in files]
        try:
            for future in running:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_file(fetch: _Fetch, file: S3File) -> None:
    from temper_gpu.store.resumed_read import ChangedObject, read_resuming

    target, partial = fetch.folder / file.name, fetch.folder / f"{file.name}.partial"
    if target.is_file() and _is_listed(target, file):
        return fetch.counter.add(file.num_bytes)
    bucket, prefix = _bucket_and_prefix(fetch.model)
    place = {"Bucket": bucket, "Key": prefix + file.name}
    with partial.open("ab") as out:
        at = out.tell()
        fetch.counter.add(min(at, file.num_bytes))
        try:
            for chunk in read_resuming(fetch.client, place, file.etag, at) if at < file.num_bytes else ():
                out.write(chunk)
                fetch.counter.add(len(chunk))
        except ChangedObject as error:
            reason = f"{file.name} changed while it was downloaded"
            raise _refused(fetch.model, reason, "run the command again for what is there now") from error
    if at > 0 and not _is_listed(partial, file):
        # What an earlier process left was damaged.
        partial.unlink()
        fetch.counter.add(-file.num_bytes)
        return _fetch_file(fetch, file)
    partial.replace(target)


def _is_listed(path: Path, file: S3File) -> bool:
    """Whether a file that was found here is the listed one. The ETag of an object of one part is its MD5 with most
    servers; with the others, its bytes are read again."""
    if path.stat().st_size != file.num_bytes or not MD5.fullmatch(file.etag):
        return path.stat().st_size == file.num_bytes
    with path.open("rb") as found:
        return hashlib.file_digest(found, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() == file.etag


def _client(model: S3Model) -> Any:
    from temper_gpu.store.s3_client import S3Settings, create_client

    try:
        with _explained(model, "reach"):
            return create_client(S3Settings())
    except ValueError:
        raise _refused(model, "AWS_ENDPOINT_URL is no address", "correct it") from None


@contextmanager
def _explained(model: S3Model, verb: str) -> Iterator[None]:
    from temper_gpu.store.s3_failures import FAILURES

    try:
        yield
    except FAILURES as error:
        raise _explain(model, verb, error) from error


def _explain(model: S3Model, verb: str, error: Exception) -> TemperError:
    from temper_gpu.store.s3_failures import error_code, s3_failure

    if getattr(error, "errno", None) == errno.ENOSPC:
        place = constants.HF_HOME
        return _refused(model, f"the disk is full at {place}", "free space there, or set HF_HOME")
    code = error_code(error)
    if code in ("NoSuchBucket", "InvalidBucketName"):
        return _refused(model, f"there is no such bucket ({code})", "correct its name, or AWS_ENDPOINT_URL")
    if code in ("AccessDenied", "403", "AllAccessDisabled"):
        remedy = "allow the credentials s3:ListBucket on the bucket and s3:GetObject on its objects, or use others"
        return _refused(model, f"access was refused ({code})", f"{remedy} (AWS_ACCESS_KEY_ID or AWS_PROFILE)")
    failure = s3_failure(error, verb, str(model))
    message = failure.message.replace("the store", "the S3 server").replace("--store", "the model's address")
    return TemperError("EngineFailed" if failure.retryable else "BadConfig", message)


def _changed(model: S3Model, listing: Listing) -> TemperError:
    """Names what changed, if this host has the earlier listing."""
    before: dict[str, list[Any]] = _read_contents(model.pin or "")["files"]
    now = {file.name: [file.num_bytes, file.etag] for file in listing.files}
    others = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    difference = f" ({', '.join(others)} changed)" if before else ""
    reason = f"its objects are others than those that the run began with{difference}"
    return _refused(model, reason, "restore them, or begin a new run without the @ and what follows it")


def _refused(model: S3Model, reason: str, remedy: str) -> TemperError:
    return TemperError("BadConfig", f"the model {model} cannot be loaded: {reason}; {remedy}")
