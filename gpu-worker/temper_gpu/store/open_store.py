"""Opens a store by its URI. Only S3 stores import S3's client, which takes half a second."""

import re
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from temper_gpu.failures import TemperError
from temper_gpu.store.file_store import FileStore
from temper_gpu.store.store import Store, check_key

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_ADDRESS = re.compile(r"[0-9]+(\.[0-9]+){3}")


def open_store(uri: str) -> Store:
    """Opens a store without accessing it: `check` or the first use does that."""
    scheme, separator, rest = uri.partition("://")
    if separator and scheme.lower() == "s3":
        bucket, prefix = parse_place(rest)
        from temper_gpu.store.s3_store import S3Store

        return S3Store(bucket, prefix)
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise TemperError(
            "BadConfig",
            f"a store must be a file:// or s3:// URI, got {uri}; pass --store file:///absolute/folder or "
            "--store s3://bucket/prefix",
        )
    return FileStore(Path(url2pathname(parts.path)))


def parse_place(rest: str) -> tuple[str, str]:
    """`bucket` or `bucket/prefix`, as after `s3://`."""
    bucket, _, prefix = rest.partition("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket or _ADDRESS.fullmatch(bucket):
        # The value itself is not shown: pasted addresses may contain keys.
        shown = bucket.rpartition("@")[2]
        raise TemperError(
            "BadConfig",
            "a bucket must be 3 to 63 lower-case letters, digits, dots and hyphens, beginning and ending with a letter "
            f"or digit, got {shown!r}; pass --store s3://bucket/prefix, and keys by AWS_ACCESS_KEY_ID or AWS_PROFILE",
        )
    prefix = prefix.removesuffix("/")
    if prefix:
        _check_prefix(prefix)
    return bucket, prefix


def _check_prefix(prefix: str) -> None:
    try:
        check_key(prefix)
    except TemperError as error:
        raise TemperError(
            "BadConfig",
            f"a store's prefix must be names of letters, digits and ._~@- with / between them, none beginning with a "
            f"dot, got {prefix!r}; pass --store s3://bucket/prefix",
        ) from error
