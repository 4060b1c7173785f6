"""Models of the hub: one commit for ever, what is in the cache is not asked for again, and clear words for the rest."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants

from temper_gpu.failures import TemperError
from temper_gpu.model.hub import HubModel, download, find_commit, parse_hub_model
from temper_gpu.model.models import POCKET_FOLDER, ModelLibrary
from tests.model.hub_server import TOKEN, HubServer, Repository, serve

NAME = "owner/model"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = Path(shutil.copytree(POCKET_FOLDER, tmp_path / "hosted"))
    repository = Repository(folder)
    repository.commit(folder, "main")
    return repository


@pytest.fixture
def hub(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with serve({NAME: repository}) as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield server


def refusal(model: HubModel) -> TemperError:
    with pytest.raises(TemperError) as caught:
        download(model)
    return caught.value


def test_a_name_is_an_owner_a_repository_and_perhaps_a_revision():
    assert parse_hub_model("hub:owner/model") == HubModel(NAME, None)
    assert parse_hub_model("owner/model@v1.0") == HubModel(NAME, "v1.0")
    assert str(HubModel(NAME, "v1.0")) == "owner/model@v1.0"


def test_the_files_of_a_commit_are_downloaded_and_the_commit_is_told(hub: HubServer, repository: Repository):
    told: list[tuple[int, int]] = []
    snapshot = download(HubModel(NAME, None), lambda done, total: told.append((done, total)))
    assert snapshot.commit == repository.commits[repository.folder]
    names = {file.name for file in snapshot.folder.iterdir()}
    assert names == {file.name for file in POCKET_FOLDER.iterdir() if file.suffix != ".md"}
    weights = sum(file.stat().st_size for file in snapshot.folder.iterdir())
    assert told[-1] == (weights, weights)


def test_a_revision_keeps_its_commit_when_the_branch_moves_on(hub: HubServer, repository: Repository, tmp_path: Path):
    first = download(HubModel(NAME, None))
    newer = Path(shutil.copytree(repository.folder, tmp_path / "newer"))
    (newer / "config.json").write_text((newer / "config.json").read_text() + "\n")
    commit = repository.commit(newer, "main")
    assert download(HubModel(NAME, None)).commit == commit != first.commit
    assert download(HubModel(NAME, first.commit)).folder == first.folder


def test_a_branch_that_moves_on_during_a_download_does_not_change_what_is_downloaded(
    hub: HubServer, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The commit that a run records is told before the first file comes."""
    newer = Path(shutil.copytree(repository.folder, tmp_path / "newer"))
    (newer / "config.json").write_text((newer / "config.json").read_text() + "\n")

    def found_before_it_moves(model: HubModel) -> str:
        commit = find_commit(model)
        repository.commit(newer, "main")
        return commit

    monkeypatch.setattr("temper_gpu.model.hub.find_commit", found_before_it_moves)
    snapshot = download(HubModel(NAME, None))
    assert snapshot.commit == repository.commits[repository.folder]
    assert (snapshot.folder / "config.json").read_bytes() == (repository.folder / "config.json").read_bytes()


def test_what_the_cache_has_is_had_without_the_hub(hub: HubServer, monkeypatch: pytest.MonkeyPatch):
    first = download(HubModel(NAME, None))
    hub.asked.clear()
    assert download(HubModel(NAME, first.commit)) == first
    assert hub.asked == []
    # A branch is asked for; where nobody answers, it is what it last was.
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert download(HubModel(NAME, None)) == first
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert download(HubModel(NAME, None)) == first


def test_a_download_that_broke_off_is_taken_up_where_it_ended(hub: HubServer):
    hub.cut_after = 1000
    snapshot = download(HubModel(NAME, None))
    weights = (snapshot.folder / "model.safetensors").read_bytes()
    assert weights == (POCKET_FOLDER / "model.safetensors").read_bytes()


def test_files_of_other_formats_and_folders_are_left_there(hub: HubServer, repository: Repository):
    folder = repository.folder
    other = ("pytorch_model.bin", "modeling_own.py", "consolidated.safetensors", "onnx/model.safetensors")
    for name in (*other, "adapter_config.json", "adapter_model.safetensors"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"not wanted")
    found = {file.name for file in download(HubModel(NAME, None)).folder.rglob("*")}
    assert not found & {"pytorch_model.bin", "modeling_own.py", "consolidated.safetensors", "onnx"}
    assert not found & {"adapter_config.json", "adapter_model.safetensors"}


def test_pickled_weights_alone_are_refused(hub: HubServer, repository: Repository):
    (repository.folder / "model.safetensors").rename(repository.folder / "pytorch_model.bin")
    error = refusal(HubModel(NAME, None))
    assert error.type == "BadConfig"
    assert "owner/model of the hub cannot be loaded: it has no .safetensors file (pickled" in error.message


def test_what_is_no_model_of_transformers_is_refused(hub: HubServer, repository: Repository):
    (repository.folder / "config.json").unlink()
    assert "it has no config.json" in refusal(HubModel(NAME, None)).message


def test_a_gated_model_needs_its_terms_accepted(
    hub: HubServer, repository: Repository, monkeypatch: pytest.MonkeyPatch
):
    repository.access = "gated"
    error = refusal(HubModel(NAME, None))
    assert error.type == "BadConfig"
    assert f"is gated, and its files were refused to you; accept its terms at {hub.url}/owner/model" in error.message
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert download(HubModel(NAME, None)).folder.is_dir()


def test_a_missing_and_a_private_model_look_the_same(hub: HubServer, repository: Repository):
    missing = refusal(HubModel("owner/other", None))
    repository.access = "private"
    private = refusal(HubModel(NAME, None))
    for name, error in (("owner/other", missing), (NAME, private)):
        assert error.type == "BadConfig"
        assert f"{hub.url} has no model {name}, or it is private" in error.message
        assert TOKEN not in error.message


def test_a_missing_revision_is_named(hub: HubServer):
    assert "owner/model has no revision v9" in refusal(HubModel(NAME, "v9")).message


def test_a_hub_that_is_away_may_come_back(hub: HubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    away = refusal(HubModel(NAME, None))
    assert (away.type, away.retryable) == ("EngineFailed", True)
    assert "owner/model could not be had from http://127.0.0.1:9 (ConnectError" in away.message
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    offline = refusal(HubModel(NAME, None))
    assert offline.type == "BadConfig"
    assert "HF_HUB_OFFLINE forbids" in offline.message


def library(**sources: str) -> ModelLibrary:
    return ModelLibrary(lambda: sources, torch.float32, torch.device("cpu"))


def test_a_run_has_the_commit_that_it_names_of_a_model_that_is_registered(hub: HubServer, repository: Repository):
    commit = repository.commits[repository.folder]
    for source in (f"hub:{NAME}", f"hub:{NAME}@{commit}"):
        base = library(mine=source).get(f"{NAME}@{commit}")
        assert (base.name, base.revision) == (f"{NAME}@{commit}", commit)
    other = "0" * 40
    with pytest.raises(TemperError, match="must be registered on this host"):
        library(mine=f"hub:{NAME}@{commit}").get(f"{NAME}@{other}")


def test_a_name_is_settled_as_the_commit_that_it_stands_for(hub: HubServer, repository: Repository):
    commit = repository.commits[repository.folder]
    registered = library(mine=f"hub:{NAME}", folder="/somewhere")
    for name in ("mine", NAME, f"{NAME}@main", f"{NAME}@{commit}"):
        assert registered.pin(name) == f"{NAME}@{commit}"
    assert [registered.pin(name) for name in ("pocket", "folder")] == ["pocket", "folder"]
    with pytest.raises(TemperError, match="owner/other must be registered on this host"):
        registered.pin("owner/other")
    with pytest.raises(TemperError, match="has no revision v9"):
        registered.pin(f"{NAME}@v9")


def test_the_program_tells_how_far_it_is_and_which_commit_it_has(
    hub: HubServer, repository: Repository, tmp_path: Path
):
    command = [sys.executable, "-m", "temper_gpu.process", "fetch_model"]
    env = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}
    given = json.dumps({"source": f"hub:{NAME}"})
    had = subprocess.run(command, input=given, env=env, capture_output=True, text=True, check=True)
    *progress, last = map(json.loads, had.stdout.splitlines())
    assert last == {"commit": repository.commits[repository.folder]}
    assert all(0 <= each["done"] <= each["total"] for each in progress)
    missing = subprocess.run(command, input='{"source": "hub:owner/other"}', env=env, capture_output=True, text=True)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.startswith("BadConfig: ")
