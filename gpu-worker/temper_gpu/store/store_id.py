"""The random name of a store, as TypeScript's store/bytes/store-id.ts makes and reads it: task queues carry it."""

import json
import re
import uuid

from temper_gpu.contract import STORE_ID_PATTERN, STORE_KEY
from temper_gpu.failures import TemperError
from temper_gpu.store.store import Store

_ID = re.compile(STORE_ID_PATTERN)


def store_id(store: Store) -> str:
    """The first call makes the id."""
    try:
        named = json.loads(store_name(store))
    except ValueError:
        named = None
    found = named.get("id") if isinstance(named, dict) else None
    if isinstance(found, str) and _ID.fullmatch(found):
        return found
    raise TemperError(
        "StoreCorrupt",
        f"{STORE_KEY} must hold the store's id (letters, digits and hyphens), got {str(found)[:80]!r}; "
        "restore it from a copy",
    )


def store_name(store: Store) -> bytes:
    """Bytes of the file with the id."""
    return store.read(STORE_KEY) or store.publish(STORE_KEY, _new_name()).bytes


def _new_name() -> bytes:
    """A new id, in the same bytes as TypeScript writes."""
    return (json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":")) + "\n").encode()
