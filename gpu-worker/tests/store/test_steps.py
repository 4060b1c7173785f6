"""Steps on a store in a bucket: the same bytes as in a folder, whatever happens to an answer."""

import threading
from pathlib import Path

from temper_gpu.commits.checkpoints import manifest_key, publish_view
from temper_gpu.commits.resolver import StoreResolver
from temper_gpu.contract import Checkpoint
from temper_gpu.store import FileStore, Store
from temper_gpu.training.platform import make_deterministic
from temper_gpu.training.trainer import Outcome, Trainer
from tests.store.places import HASTY, s3_place
from tests.store.s3_server import S3Server, Wire
from tests.store.test_stores import failure_of
from tests.training.samples import TinyLibrary, initialise_input, sampled_groups, train_config, train_input

make_deterministic(1)
ADAPTER = "runs/demo/branches/0/checkpoints/2/adapter/adapter_model.safetensors"


def trainer_on(store: Store) -> Trainer:
    return Trainer(TinyLibrary(), store, threading.Lock())


def next_step(store: Store, parent: Checkpoint) -> Outcome:
    work = train_input(
        store,
        parent,
        sampled_groups(parent.adapter_sha256, parent.step),
        train=train_config(max_logprob_mismatch=10.0),  # the samples come from the base model
    )
    outcome = trainer_on(store).train(work, lambda: False)
    publish_view(store, "demo", outcome.commit)
    return outcome


def play(store: Store) -> None:
    checkpoint = trainer_on(store).initialise(initialise_input()).commit.checkpoint("demo")
    for _ in range(2):
        checkpoint = next_step(store, checkpoint).commit.checkpoint("demo")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_in_a_bucket_has_the_bytes_of_one_in_a_folder(aws, tmp_path: Path, s3_server: S3Server):
    place = s3_place(s3_server)
    play(FileStore(tmp_path))
    play(place.open())
    assert files(place.folder) == files(tmp_path)
    assert ADAPTER in files(tmp_path)


def test_a_commit_whose_answer_was_lost_is_found_and_is_one(wire: Wire, s3_server: S3Server):
    place = s3_place(s3_server)
    parent = trainer_on(place.open()).initialise(initialise_input()).commit.checkpoint("demo")
    manifest, lost = place.folder / manifest_key("demo", 0, 1), []

    def is_cut(direction: str, passed: int) -> bool:
        if lost or direction == "up" or not manifest.exists():
            return False
        lost.append(manifest.read_bytes())
        return True

    wire.is_cut = is_cut
    made = next_step(place.open(), parent)
    assert (made.found, lost) == (False, [manifest.read_bytes()])
    found = next_step(place.open(), parent)
    assert (found.found, found.commit) == (True, made.commit)


def test_a_step_whose_worker_lost_the_server_for_good_is_found_by_the_next_worker(wire: Wire, s3_server: S3Server):
    place = s3_place(s3_server)
    parent = trainer_on(place.open()).initialise(initialise_input()).commit.checkpoint("demo")
    hasty = s3_place(s3_server, HASTY, place.prefix)
    manifest = place.folder / manifest_key("demo", 0, 1)
    wire.is_cut = lambda direction, passed: direction == "down" and manifest.exists()
    assert failure_of(lambda: next_step(hasty.open(), parent)).type == "StoreUnavailable"
    wire.is_cut = lambda *_: False
    found = next_step(place.open(), parent)
    assert (found.found, manifest.exists()) == (True, True)


def test_a_policy_that_is_known_is_remembered_without_asking_and_while_the_server_is_away(
    wire: Wire, s3_server: S3Server
):
    place = s3_place(s3_server, HASTY)
    commit = trainer_on(place.open()).initialise(initialise_input()).commit
    resolver = StoreResolver(place.open())
    assert resolver.recall("demo@0") is None  # an event loop asks no server
    assert resolver.resolve("demo@0").adapter_sha256 == commit.manifest.adapter.sha256
    asked = wire.num_connections
    for _ in range(100):
        recalled = resolver.recall("demo@0")
        assert recalled is not None
        assert recalled.adapter_sha256 == commit.manifest.adapter.sha256
    assert wire.num_connections == asked
    wire.is_cut = lambda *_: True
    assert resolver.resolve("demo@0").adapter_sha256 == commit.manifest.adapter.sha256
    assert failure_of(lambda: resolver.resolve("demo@1")).type == "StoreUnavailable"


def test_a_run_begun_anew_under_its_name_is_another_policy(aws, s3_server: S3Server):
    place = s3_place(s3_server)
    first = trainer_on(place.open()).initialise(initialise_input()).commit
    resolver = StoreResolver(place.open())
    resolver.resolve("demo@0")
    (place.folder / manifest_key("demo", 0, 0)).unlink()
    other = initialise_input().model_copy(update={"seed": 4})
    second = trainer_on(place.open()).initialise(other).commit
    assert second.manifest.adapter != first.manifest.adapter
    assert resolver.resolve("demo@0").adapter_sha256 == second.manifest.adapter.sha256
