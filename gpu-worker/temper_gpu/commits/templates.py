"""Chat templates of runs, used instead of their model's own: blobs of the store, known by hash."""

from functools import lru_cache

from temper_gpu.contract import MAX_CHAT_TEMPLATE_BYTES
from temper_gpu.failures import TemperError
from temper_gpu.model.chat_templates import decode_template
from temper_gpu.store import Store
from temper_gpu.store.store import blob_key, verified

KEPT_TEMPLATES = 16


class StoredTemplates:
    """Templates are cached without a check: a hash always names the same bytes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.text = lru_cache(KEPT_TEMPLATES)(self._read)

    def _read(self, sha256: str) -> str:
        key = blob_key(sha256)
        data = self._store.read(key)
        if data is None:
            raise TemperError(
                "BadConfig",
                f"the chat template must be in the store, but {self._store.uri} has no {key}; restore it from a copy "
                "of the store (temper checkpoints pull RUN STORE), or start a new run with --chat-template",
            )
        try:
            if len(data) <= MAX_CHAT_TEMPLATE_BYTES:
                return decode_template(verified(key, data, sha256))
        except UnicodeDecodeError:
            pass
        rule = f"a chat template must be text in UTF-8 of at most {MAX_CHAT_TEMPLATE_BYTES:,} bytes"
        raise TemperError("BadConfig", f"{rule}, {key} is something else; name a template's hash")
