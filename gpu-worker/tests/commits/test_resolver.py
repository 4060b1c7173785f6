"""What names of policies stand for, and for how long that is believed."""

import errno
from pathlib import Path

import pytest

from temper_gpu.commits.checkpoints import publish_commit
from temper_gpu.commits.resolver import KEPT_COMMITS, StoreResolver
from temper_gpu.contract import PolicyFiles
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import Adapter
from temper_gpu.store import FileStore, FileSystem, blob_ref
from tests.commits.written import commit, manifest
from tests.failing import failing


def test_a_policy_is_found_by_name_and_its_weights_are_verified(tmp_path: Path):
    store = FileStore(tmp_path)
    made = commit(store, step=4, branch=2)
    policy = StoreResolver(store).resolve("demo~2@4")
    source = policy.adapter
    assert source is not None
    adapter = source.read()
    assert isinstance(adapter, Adapter)
    assert (policy.base_model, policy.adapter_sha256) == ("tiny", made.manifest.adapter.sha256)
    assert (adapter.sha256, adapter.rank, adapter.alpha) == (policy.adapter_sha256, 2, 4.0)
    (tmp_path / made.manifest.adapter.key).write_bytes(b"other weights")
    for read in (source.read, lambda: source.write_folder(tmp_path)):
        with failing("StoreCorrupt"):
            read()


def test_an_adapter_is_written_as_a_folder_that_peft_loads(tmp_path: Path):
    made = commit(FileStore(tmp_path / "store")).manifest
    source = StoreResolver(FileStore(tmp_path / "store")).resolve("demo@0").adapter
    assert source is not None
    folder = tmp_path / "folder"
    folder.mkdir()
    source.write_folder(folder)
    files = {"adapter_config.json": made.adapter_config, "adapter_model.safetensors": made.adapter}
    assert {path.name: blob_ref(path.read_bytes()) for path in folder.iterdir()} == files


def test_a_name_without_a_step_is_a_base_model():
    policy = StoreResolver(FileStore(Path("nowhere"))).resolve("pocket")
    assert (policy.base_model, policy.adapter) == ("pocket", None)


def test_a_step_that_was_not_committed_is_refused_until_it_is(tmp_path: Path):
    store = FileStore(tmp_path)
    resolver = StoreResolver(store)
    with failing("BadConfig", "demo@0"):
        resolver.resolve("demo@0")
    made = commit(store)
    assert resolver.resolve("demo@0").adapter_sha256 == made.manifest.adapter.sha256


def test_a_policy_that_is_known_outlasts_an_outage_of_its_store(tmp_path: Path):
    class Disk(FileSystem):
        is_away = False

        def stamp(self, path: Path) -> tuple[int, int]:
            if self.is_away:
                raise OSError(errno.EIO, "Input/output error")
            return super().stamp(path)

    disk = Disk()
    store = FileStore(tmp_path, disk)
    made, resolver = commit(store), StoreResolver(store)
    resolver.resolve("demo@0")
    disk.is_away = True
    assert resolver.recall("demo@0") is None
    assert resolver.resolve("demo@0").adapter_sha256 == made.manifest.adapter.sha256
    assert resolver.recall("demo@0") is not None
    with failing("StoreUnavailable"):
        resolver.resolve("demo@1")


def test_a_long_run_leaves_only_its_newest_commits_in_memory(tmp_path: Path):
    store = FileStore(tmp_path)
    resolver = StoreResolver(store)
    for step in range(KEPT_COMMITS + 10):
        commit(store, step=step)
        assert resolver.resolve(f"demo@{step}").base_model == "tiny"
    assert len(resolver._known) == KEPT_COMMITS
    assert resolver.resolve("demo@0").base_model == "tiny"


def test_a_policy_beside_the_main_one_is_found_by_its_own_name(tmp_path: Path):
    store = FileStore(tmp_path)
    alone = manifest(store)
    other = PolicyFiles(adapter=store.put_blob(b"weights of b"), optimizer=alone.optimizer)
    publish_commit(store, "demo", alone.model_copy(update={"policies": {"b": other}}))
    resolver = StoreResolver(store)
    found = {name: resolver.resolve(name).adapter_sha256 for name in ("demo@0", "demo@0:main", "demo@0:b")}
    main = alone.adapter.sha256
    assert found == {"demo@0": main, "demo@0:main": main, "demo@0:b": other.adapter.sha256}
    with failing("BadConfig", "must be main or b, got c"):
        resolver.resolve("demo@0:c")
    for name in ("demo@0:", "demo@0:B", "demo@0:b:b"):
        with pytest.raises(TemperError, match="must be named run@step"):
            resolver.resolve(name)
