"""The store in a bucket: the same keys under a prefix. Write-once objects are made by `If-None-Match: *`.

Every request has bounded waits and the client's own retries. A failure after those is StoreUnavailable, which Temporal
retries, or BadConfig.
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
from temper_gpu.store.resumed_read import ChangedObject, read_resuming
from temper_gpu.store.s3_client import S3Settings, create_client
from temper_gpu.store.s3_failures import FAILURES, error_code, http_status, retries, s3_failure
from temper_gpu.store.store import Published, Store, blob_ref, check_key
from temper_gpu.store.store_id import store_name

# Tries of a write that meets another one, after growing pauses.
_MAX_TRIES = 5
_FIRST_PAUSE_S = 0.2
_TAKEN, _CONFLICT = 412, 409
# Answers to HEAD that give no reason.
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
            # Every message would show it.
            raise _no_address()
        self._transfer = self._settings.transfer

    @property
    def uri(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".removesuffix("/")

    def check(self) -> None:
        """Checks bucket, keys, permissions, and that the server supports write-once objects."""
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
        """Compares only lengths, because S3 verifies its objects itself. Old blobs are written again, because
        `temper gc` goes by age."""
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
                    # If the first answer was lost, the client's retry met this writer's own object.
                    return Published(winner == data and retries(refusal) > 0, winner)
                # Another write of this key is in progress, or the winner was deleted meanwhile.
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
        """The server copies. If its HEAD refuses, this process reads and writes the blob, which tells why."""
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
        """Returns None if the object was created, otherwise the refusal."""
        try:
            self._client.put_object(**self._at(key), Body=data, IfNoneMatch="*")
        except ClientError as error:
            if http_status(error) not in (_TAKEN, _CONFLICT):
                raise
            return error

    def _head(self, key: str) -> dict[str, Any]:
        """Headers of an object; empty for every refusal. HEAD gives no reason, but the next request does."""
        try:
            return self._client.head_object(**self._at(key))
        except ClientError as error:
            if http_status(error) not in _SILENT:
                raise
            return {}

    def _get(self, key: str) -> bytes | None:
        try:
            return b"".join(read_resuming(self._client, self._at(key)))
        except ChangedObject:
            # It was replaced meanwhile.
            return self._get(key)
        except ClientError as error:
            if error_code(error) == "NoSuchKey":
                return None
            raise

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
    """Pauses before further tries, random so that two writers do not meet again; None after the last try."""
    for attempt in range(_MAX_TRIES - 1):
        yield _FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.5)
    yield None


def _no_address() -> TemperError:
    return TemperError(
        "BadConfig",
        "AWS_ENDPOINT_URL must be the address of an S3 server without a key in it; set it to https://host, or unset it",
    )
