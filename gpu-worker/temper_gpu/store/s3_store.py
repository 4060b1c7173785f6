"""The store in a bucket: the same keys under a prefix. Write-once objects are made by `If-None-Match: *`.

Every request has bounded waits and the client's own retries; what is left then is StoreUnavailable, for Temporal to try
again, or BadConfig for what stays wrong.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from botocore.exceptions import ClientError

from temper_gpu.contract import KEPT_UNNAMED_MS, STORE_KEY, BlobRef
from temper_gpu.failures import TemperError
from temper_gpu.store.s3_client import S3Settings, create_client
from temper_gpu.store.s3_failures import BROKEN, FAILURES, error_code, http_status, retries, s3_failure
from temper_gpu.store.store import Published, Store, blob_ref, check_key
from temper_gpu.store.store_id import store_name

_CHUNK_BYTES = 1 << 20
# Of a download that breaks off, and of a write that meets another one; before each a longer pause.
_MAX_TRIES = 5
_FIRST_PAUSE_S = 0.2
_TAKEN, _CONFLICT = 412, 409
# Answers to HEAD that come without a word of why.
_SILENT = (403, 404)


class S3Store(Store):
    stamp_lifetime_s = 10.0

    def __init__(self, bucket: str, prefix: str = "", settings: S3Settings | None = None) -> None:
        self._settings = settings or S3Settings()
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._has_answered = False
        try:
            self._client = create_client(self._settings)
        except FAILURES as error:
            raise s3_failure(error, "reach", self.uri) from error
        except ValueError:
            raise _no_address() from None
        self._address: str = self._client.meta.endpoint_url
        if "@" in self._address:
            # It would stand in every message.
            raise _no_address()
        self._transfer = self._settings.transfer

    @property
    def uri(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".removesuffix("/")

    def check(self) -> None:
        """Bucket, keys, the right to read and to write, and that this server keeps what is written once."""
        name = store_name(self)
        with self._asking("write", STORE_KEY):
            is_kept = self._create(STORE_KEY, name) is not None
        if not is_kept:
            raise TemperError(
                "BadConfig",
                "an S3 server must honour If-None-Match: * (otherwise two workers could overwrite each other's "
                f"steps), but {self._address} does not; use one that does, or --store file:///folder",
            )

    def put_blob(self, data: bytes) -> BlobRef:
        """By length alone: S3 keeps hashes of its own, and a bit that flips there is its matter to find.

        Old ones are put again: `temper gc` goes by their age.
        """
        ref = blob_ref(data)
        with self._asking("write", ref.key):
            head = self._head(ref.key)
            if head.get("ContentLength") != ref.bytes or _age_ms(head) > KEPT_UNNAMED_MS / 2:
                self._client.upload_fileobj(BytesIO(data), **self._at(ref.key), Config=self._transfer)
        return ref

    def publish(self, key: str, data: bytes) -> Published:
        with self._asking("write", key):
            for pause_s in _pauses():
                refusal = self._create(key, data)
                if refusal is None:
                    return Published(True, data)
                winner = self._get(key) if http_status(refusal) == _TAKEN else None
                if winner is not None:
                    # The first answer was lost, and the next try met the first one's object: our own.
                    return Published(winner == data and retries(refusal) > 0, winner)
                # Another write of this key is under way, or the winner was deleted meanwhile.
                if pause_s is None:
                    raise refusal
                time.sleep(pause_s)
        raise AssertionError("unreachable")

    def replace(self, key: str, data: bytes) -> None:
        with self._asking("write", key):
            self._client.put_object(**self._at(key), Body=data)

    def read(self, key: str) -> bytes | None:
        with self._asking("read", key):
            return self._get(key)

    def stamp(self, key: str) -> str | None:
        with self._asking("read", key):
            return self._head(key).get("ETag")

    def link_blob(self, ref: BlobRef, key: str) -> None:
        """Copied by the server; by way of this process where it says that there is no such blob (or is asked why)."""
        with self._asking("write", key):
            try:
                self._client.copy(self._at(ref.key), **self._at(key), Config=self._transfer)
            except ClientError as error:
                if http_status(error) not in _SILENT:
                    raise
                self.replace(key, self.get_blob(ref))

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + check_key(key)}

    def _create(self, key: str, data: bytes) -> ClientError | None:
        """None where it was made; else why not."""
        try:
            self._client.put_object(**self._at(key), Body=data, IfNoneMatch="*")
        except ClientError as error:
            if http_status(error) not in (_TAKEN, _CONFLICT):
                raise
            return error

    def _head(self, key: str) -> dict[str, Any]:
        """Empty also where the bucket or the key to it is wrong: this answer has no words, what is asked next has."""
        try:
            return self._client.head_object(**self._at(key))
        except ClientError as error:
            if http_status(error) not in _SILENT:
                raise
            return {}

    def _get(self, key: str) -> bytes | None:
        """A download that breaks off is taken up where it ended."""
        chunks: list[bytes] = []
        etag = None
        for pause_s in _pauses():
            answer = self._open(key, etag, sum(map(len, chunks)))
            if answer is None:
                return None
            if answer["ETag"] != etag:
                chunks, etag = [], answer["ETag"]
            try:
                # One by one: what came before the break is kept.
                for chunk in answer["Body"].iter_chunks(_CHUNK_BYTES):
                    chunks.append(chunk)
                return b"".join(chunks)
            except BROKEN:
                if pause_s is None:
                    raise
                time.sleep(pause_s)
        raise AssertionError("unreachable")

    def _open(self, key: str, etag: str | None, start: int) -> Any:
        """From a byte on, as long as it is the same object; else from its beginning. None: there is none."""
        rest = {"IfMatch": etag, "Range": f"bytes={start}-"} if etag and start else {}
        try:
            return self._client.get_object(**self._at(key), **rest)
        except ClientError as error:
            if error_code(error) == "NoSuchKey":
                return None
            if not rest or http_status(error) != _TAKEN:
                raise
            return self._open(key, None, 0)

    @contextmanager
    def _asking(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
            self._has_answered = True
        except FAILURES as error:
            place = f"{self.uri}/{key} at {self._address}"
            raise s3_failure(error, verb, place, self._has_answered) from error


def _age_ms(head: dict[str, Any]) -> float:
    return (time.time() - head["LastModified"].timestamp()) * 1000


def _pauses() -> Iterator[float | None]:
    """Before each further try, at random so that two that met do not meet again; None: this was the last."""
    for attempt in range(_MAX_TRIES - 1):
        yield _FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.5)
    yield None


def _no_address() -> TemperError:
    return TemperError(
        "BadConfig",
        "AWS_ENDPOINT_URL must be the address of an S3 server without a key in it; set it to https://host, or unset it",
    )
