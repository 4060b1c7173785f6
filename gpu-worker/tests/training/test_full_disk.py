"""A store that refuses a step's writes: StoreUnavailable, and with space again the bytes of an undisturbed step."""

import asyncio
import errno
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from temper_gpu.commits.checkpoints import read_parent
from temper_gpu.contract import Checkpoint, TrainInput
from temper_gpu.store import FileStore
from temper_gpu.temporal.activities import GpuActivities
from temper_gpu.training.platform import make_deterministic
from tests.store.disks import FailingAt, remount, small_disk
from tests.training.samples import initialise_input, open_folder, sampled_groups, train_input
from tests.training.trainers import new_trainer

make_deterministic(1)


def activities(store: FileStore) -> GpuActivities:
    trainer = new_trainer(store)
    return GpuActivities(trainer, store, None)


def initialise(gpu: GpuActivities, run: str = "demo") -> Checkpoint:
    return asyncio.run(ActivityEnvironment().run(gpu.initialise, initialise_input(run))).checkpoint


def train(gpu: GpuActivities, work: TrainInput) -> str:
    return asyncio.run(ActivityEnvironment().run(gpu.train, work)).checkpoint.manifest_sha256


def step_one(store: FileStore, gpu: GpuActivities, run: str = "demo") -> TrainInput:
    parent = initialise(gpu, run)
    return train_input(store, parent, sampled_groups(parent.adapter_sha256))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    store = open_folder(tmp_path_factory.mktemp("undisturbed"))
    gpu = activities(store)
    return train(gpu, step_one(store, gpu))


def require_unavailable(error: ApplicationError, code: int) -> None:
    assert (error.type, error.non_retryable) == ("StoreUnavailable", False)
    assert errno.errorcode[code] in error.message
    assert "resumes by itself" in error.message


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_at_each_write_in_turn(tmp_path: Path, undisturbed: str, code: int):
    """One trainer for all: what a failed commit leaves in memory would show in the next step."""
    store = open_folder(tmp_path)
    gpu = activities(store)
    disk = store._files
    fail_at, is_refused = 0, True
    while is_refused:
        run = f"refused-at-{fail_at}"
        work = step_one(store, gpu, run)
        for ref in (tmp_path / "store" / "blobs").iterdir():
            if ref.name not in (work.parent.adapter_sha256, *parents_blobs(store, work)):
                ref.unlink()
        store._files = FailingAt(fail_at, code)
        try:
            train(gpu, work)
            is_refused = False
        except ApplicationError as error:
            require_unavailable(error, code)
        store._files = disk
        assert train(gpu, work) == undisturbed
        fail_at += 1
    # Two blobs, the manifest, the view's two links, the sidecar: each a folder, a file, a name and a synchronisation.
    assert fail_at > 20


def parents_blobs(store: FileStore, work: TrainInput) -> set[str]:
    manifest = read_parent(store, work.parent).manifest
    return {manifest.adapter.sha256, manifest.adapter_config.sha256, manifest.optimizer.sha256}


def test_on_a_real_disk_that_is_full_and_then_read_only(tmp_path: Path, undisturbed: str):
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        store = FileStore(disk / "store")
        gpu = activities(store)
        work = step_one(store, gpu)
        ballast = disk / "ballast"
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(b"x" * (1 << 20))
        with pytest.raises(ApplicationError) as full:
            train(gpu, work)
        require_unavailable(full.value, errno.ENOSPC)
        ballast.unlink()
        remount(disk, "ro")
        with pytest.raises(ApplicationError) as read_only:
            train(gpu, work)
        require_unavailable(read_only.value, errno.EROFS)
        remount(disk, "rw")
        assert train(gpu, work) == undisturbed
