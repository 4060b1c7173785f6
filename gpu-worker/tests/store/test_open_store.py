import subprocess
import sys
from pathlib import Path

import pytest

from temper_gpu.store import FileStore, open_store
from tests.failing import failing

GPU_WORKER = Path(__file__).parents[2]


def test_a_folders_uri_is_a_store(tmp_path: Path):
    folder = tmp_path / "a b"
    store = open_store(folder.as_uri())
    assert isinstance(store, FileStore)
    assert (store.root, store.uri) == (folder, folder.as_uri())


@pytest.mark.parametrize("uri", ["/plain/path", "file://elsewhere/x", "gs://bucket/x", ""])
def test_what_is_neither_folder_nor_bucket_is_refused(uri: str):
    with failing("BadConfig", "file:// or s3://"):
        open_store(uri)


def test_a_store_in_a_folder_does_not_wait_for_the_client_of_s3():
    code = "import sys; from temper_gpu.store import open_store; open_store('file:///s').check(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], cwd=GPU_WORKER, capture_output=True, text=True, check=True)
    assert not {"boto3", "botocore", "torch"} & set(modules.stdout.split())
