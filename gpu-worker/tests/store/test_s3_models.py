"""Base models in a bucket: a run keeps what is there when it begins, downloaded once, and clear words for the rest."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants

from temper_gpu.failures import TemperError
from temper_gpu.model import bucket
from temper_gpu.model.bucket import S3Model, download_s3, parse_s3_model, resolve_revision
from temper_gpu.model.hub import DESCRIPTION
from temper_gpu.model.models import POCKET_FOLDER, ModelLibrary
from temper_gpu.store import resumed_read
from temper_gpu.store.s3_client import S3Settings, create_client
from tests.process.programs import answered
from tests.store.s3_server import BUCKET, S3Server, Wire

PIN = "a" * 40


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def model(aws: pytest.MonkeyPatch, cache: Path, tmp_path: Path) -> S3Model:
    """The pocket model, uploaded."""
    model = S3Model(f"{BUCKET}/models/{tmp_path.name}", None)
    for file in POCKET_FOLDER.iterdir():
        upload(model, file.name, file.read_bytes())
    return model


@pytest.fixture
def objects(s3_server: S3Server, model: S3Model) -> Path:
    """Where the server keeps the model's files."""
    return s3_server.folder / model.place


def upload(model: S3Model, name: str, data: bytes) -> None:
    bucket_name, _, prefix = model.place.partition("/")
    create_client(S3Settings()).put_object(Bucket=bucket_name, Key=f"{prefix}/{name}", Body=data)


def refusal(model: S3Model) -> TemperError:
    with pytest.raises(TemperError) as caught:
        download_s3(model)
    return caught.value


def test_a_model_of_a_bucket_is_told_from_one_of_the_hub():
    assert parse_s3_model("s3://b/p/q") == parse_s3_model("s3/b/p/q") == S3Model("b/p/q", None)
    assert parse_s3_model(f"s3/b/p@{PIN}") == S3Model("b/p", PIN)
    assert (S3Model("b/p", PIN).name, str(S3Model("b/p", None))) == (f"s3/b/p@{PIN}", "s3://b/p")
    assert [parse_s3_model(each) for each in ("s3/model", "pocket", "hub:s3/b", "/s3/b/p")] == [None] * 4


def test_the_files_of_a_model_are_downloaded_once(model: S3Model, aws: pytest.MonkeyPatch):
    for name in (
        "pytorch_model.bin",
        "modeling_own.py",
        "consolidated.safetensors",
        "adapter_config.json",
        "adapter_model.safetensors",
        "onnx/model.safetensors",
        ".a.json",
    ):
        upload(model, name, b"not wanted")
    told: list[tuple[int, int]] = []
    snapshot = download_s3(model, lambda done, total: told.append((done, total)))
    files = {file.name: file.read_bytes() for file in snapshot.folder.iterdir() if not file.name.startswith(".")}
    assert files == {file.name: file.read_bytes() for file in POCKET_FOLDER.iterdir() if file.suffix != ".md"}
    assert told[-1] == (sum(map(len, files.values())),) * 2
    # Whatever the server says by now, or whether it is there at all.
    aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert download_s3(S3Model(model.place, snapshot.commit)) == snapshot


def test_a_changed_object_is_another_model_and_is_named(objects: Path, model: S3Model):
    first = download_s3(model, patterns=DESCRIPTION).commit
    config = (objects / "config.json").read_bytes()
    # As long as before.
    upload(model, "config.json", config.replace(b": ", b" :", 1))
    assert resolve_revision(model) != first
    error = refusal(S3Model(model.place, first))
    assert error.type == "BadConfig"
    assert "others than those that the run began with (config.json changed); restore them" in error.message
    unknown = refusal(S3Model(model.place, PIN)).message
    assert "others than those that the run began with; restore them, or begin a new run" in unknown


def test_a_download_that_broke_off_is_taken_up_where_it_ended(
    model: S3Model, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(resumed_read, "CHUNK_BYTES", 1 << 14)
    monkeypatch.setattr(resumed_read, "FIRST_PAUSE_S", 0.001)
    cuts = iter([200_000, 400_000])
    limit = [next(cuts)]

    def is_cut(direction: str, passed: int) -> bool:
        if direction == "up" or passed < limit[0]:
            return False
        limit[0] = next(cuts, 1 << 40)
        return True

    wire.is_cut = is_cut
    folder = download_s3(model).folder
    assert (folder / "model.safetensors").read_bytes() == (POCKET_FOLDER / "model.safetensors").read_bytes()
    # Not all of it again.
    assert wire.passed["down"] < 1.7 * sum(file.stat().st_size for file in folder.iterdir())


def test_a_download_that_was_killed_is_taken_up_where_it_ended(model: S3Model, wire: Wire):
    folder = bucket._folder(resolve_revision(model))
    folder.mkdir(parents=True)
    whole = (POCKET_FOLDER / "model.safetensors").read_bytes()
    (folder / "model.safetensors.partial").write_bytes(whole[:-1000])
    before = wire.passed["down"]
    assert (download_s3(model).folder / "model.safetensors").read_bytes() == whole
    assert wire.passed["down"] - before < len(whole) / 2


def test_what_a_killed_download_left_is_used_only_if_it_is_the_object(model: S3Model):
    folder = bucket._folder(resolve_revision(model))
    folder.mkdir(parents=True)
    files = {name: (POCKET_FOLDER / name).read_bytes() for name in ("model.safetensors", "config.json")}
    # As a disk may have it after the machine lost power.
    (folder / "model.safetensors.partial").write_bytes(bytes(1000) + files["model.safetensors"][1000:-1000])
    (folder / "config.json").write_bytes(bytes(len(files["config.json"])))
    told: list[tuple[int, int]] = []
    download_s3(model, lambda done, total: told.append((done, total)))
    assert {name: (folder / name).read_bytes() for name in files} == files
    assert told[-1][0] == told[-1][1]


@pytest.mark.parametrize("honours_if_match", [True, False])
def test_an_object_that_changes_while_it_is_downloaded_is_named(model: S3Model, monkeypatch, honours_if_match: bool):
    listed = bucket._list

    def late(client: Any, model: S3Model) -> bucket.Listing:
        found = listed(client, model)
        upload(model, "tokenizer.json", b"{}")
        if not honours_if_match:
            get = client.get_object
            client.get_object = lambda IfMatch, **asked: get(**asked)
        return found

    monkeypatch.setattr(bucket, "_list", late)
    assert "tokenizer.json changed while it was downloaded; run the command again" in refusal(model).message


@pytest.mark.parametrize(
    ("lost", "reason"),
    [("config.json", "there is no config.json below it"), ("model.safetensors", "no .safetensors file (pickled")],
)
def test_what_is_no_model_is_refused(objects: Path, model: S3Model, lost: str, reason: str):
    (objects / lost).unlink()
    assert reason in refusal(model).message


def test_a_place_or_a_key_that_is_wrong_is_told(model: S3Model, aws: pytest.MonkeyPatch):
    told = {
        "there is no such bucket (NoSuchBucket); correct its name": refusal(S3Model("no-such-bucket/p", None)),
        "there are no files of a model below it; name the prefix": refusal(S3Model(f"{BUCKET}/models/none", None)),
    }
    aws.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    told["the secret key does not belong to the access key"] = refusal(model)
    for words, error in told.items():
        assert (error.type, words in error.message) == ("BadConfig", True), error.message
    assert "s3://no-such-bucket/p" in next(iter(told.values())).message


def test_an_object_whose_changes_nobody_could_see_is_refused(objects: Path, model: S3Model):
    (objects / "extra.json").write_text("not uploaded")
    assert "the server gives extra.json no ETag" in refusal(model).message


def test_a_server_that_is_away_may_come_back(model: S3Model, aws: pytest.MonkeyPatch):
    aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    error = refusal(model)
    assert (error.type, error.retryable) == ("EngineFailed", True)
    assert "the S3 server must answer to list s3://" in error.message


def test_a_library_loads_what_is_registered_under_the_name_that_a_run_records(model: S3Model):
    pin = resolve_revision(model)
    models = ModelLibrary(lambda: {"mine": str(model)}, torch.float32, torch.device("cpu"))
    name = S3Model(model.place, pin).name
    assert models.pin("mine") == name
    base = models.get(name)
    assert (base.name, base.revision, base.num_parameters > 0) == (name, pin, True)
    assert not models.has("s3/another-bucket/model")
    assert not models.has(f"s3/{BUCKET}/models")
    only = ModelLibrary(lambda: {name: f"s3://{model.place}@{pin}"}, torch.float32, torch.device("cpu"))
    assert (only.has(name), only.has(f"s3/{model.place}@{PIN}")) == (True, False)


def test_programs_take_models_of_a_bucket(model: S3Model, cache: Path, capsys: pytest.CaptureFixture[str]):
    fields = {"lora": None, "optimizer": "adamw", "microBatchTokens": 64, "context": 64}
    assert answered("plan", model="mine", source=str(model), **fields) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["refusal"], told["commit"]) == (None, resolve_revision(model))
    assert not list(cache.rglob("*.safetensors"))
    assert download_s3(model, patterns=DESCRIPTION).commit == told["commit"]
    assert answered("fetch_model", source=str(model)) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"commit": told["commit"]}
    assert list(cache.rglob("*.safetensors"))
