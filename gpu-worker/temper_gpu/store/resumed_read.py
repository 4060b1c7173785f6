"""An object of S3, read to its end: an interrupted download is resumed, as long as the object is the same."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from temper_gpu.store.s3_failures import BROKEN, http_status

CHUNK_BYTES = 1 << 20
# Consecutive interruptions without a byte between them.
MAX_TRIES = 5
FIRST_PAUSE_S = 0.2
# Answers for another ETag than the requested one, or for fewer bytes.
_CHANGED = (412, 416)


class ChangedObject(Exception):
    """The object is another one than before."""


def read_resuming(client: Any, place: Mapping[str, str], etag: str | None = None, start: int = 0) -> Iterator[bytes]:
    """Chunks from the byte `start` on. `etag`: the object's, without quotes; None: that of the first answer."""
    tries = 0
    while True:
        body, etag = _open(client, place, etag, start)
        before = start
        try:
            for chunk in body.iter_chunks(CHUNK_BYTES):
                start += len(chunk)
                yield chunk
        except BROKEN:
            tries = 0 if start > before else tries + 1
            if tries >= MAX_TRIES:
                raise
            time.sleep(FIRST_PAUSE_S * 2**tries)
        else:
            return


def _open(client: Any, place: Mapping[str, str], etag: str | None, start: int) -> tuple[Any, str]:
    same = {} if etag is None else {"IfMatch": etag}
    rest = {"Range": f"bytes={start}-"} if start else {}
    try:
        answer = client.get_object(**place, **same, **rest)
    except ClientError as error:
        if http_status(error) in _CHANGED:
            raise ChangedObject from error
        raise
    found = answer.get("ETag", "").strip('"')
    # Not every server honours If-Match.
    if etag not in (None, found):
        raise ChangedObject
    return answer["Body"], found
