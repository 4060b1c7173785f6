"""Chat templates of runs, as the store has them."""

from pathlib import Path

import pytest

from temper_gpu.commits.templates import StoredTemplates
from temper_gpu.contract import MAX_CHAT_TEMPLATE_BYTES
from temper_gpu.store import FileStore
from tests.failing import failing


def test_a_template_is_read_once_and_held_to_its_hash(tmp_path: Path):
    store = FileStore(tmp_path)
    ref = store.put_blob(b"hello")
    templates = StoredTemplates(store)
    assert templates.text(ref.sha256) == "hello"
    (tmp_path / ref.key).unlink()
    assert templates.text(ref.sha256) == "hello"
    with failing("BadConfig", f"has no {ref.key}; restore it from a copy"):
        StoredTemplates(store).text(ref.sha256)
    (tmp_path / ref.key).write_bytes(b"other")
    with failing("StoreCorrupt"):
        StoredTemplates(store).text(ref.sha256)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * (MAX_CHAT_TEMPLATE_BYTES + 1)])
def test_other_blobs_are_no_templates(tmp_path: Path, data: bytes):
    store = FileStore(tmp_path)
    with failing("BadConfig", "a chat template must be text in UTF-8 of at most 100,000 bytes"):
        StoredTemplates(store).text(store.put_blob(data).sha256)
