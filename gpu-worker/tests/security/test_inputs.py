"""Whoever reaches the task queue must not do more than a run may."""

import asyncio
import dataclasses
import shutil
from pathlib import Path

import pytest
import torch
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from temper_gpu.contract import InitialiseInput
from temper_gpu.failures import TemperError
from temper_gpu.model import models, sources
from temper_gpu.model.hub import HubModel, Snapshot
from temper_gpu.model.models import ModelLibrary
from temper_gpu.temporal.activities import GpuActivities, parse_input
from tests.training.samples import initialise_input


def refusal(name: str, given: object) -> ApplicationError:
    """Of activities that have no trainer: nothing may come so far."""
    gpu = GpuActivities(None, None, None)
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, activity_type=name)
    with pytest.raises(ApplicationError) as caught:
        asyncio.run(environment.run(getattr(gpu, name), given))
    return caught.value


def good() -> dict[str, object]:
    return initialise_input().model_dump(by_alias=True)


@pytest.mark.parametrize("name", ["initialise", "train"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda work: {**work, "path": "/etc", "run": "../other"},
        lambda work: {**work, "run": "../other"},
        lambda work: {**work, "baseModel": "/models/x"},
        lambda work: {**work, "baseModel": "a/../b"},
        lambda work: {**work, "branch": "0"},
        lambda work: {**work, "seed": True},
        lambda work: [work],
        lambda _: None,
        lambda _: "demo",
        lambda _: {},
    ],
)
def test_an_input_that_is_not_of_the_contract_is_refused_for_good(name: str, spoil):
    error = refusal(name, spoil(good()))
    assert (error.type, error.non_retryable) == ("BadConfig", True)
    assert f"the input of the activity {name} must follow the contract" in error.message


@pytest.mark.parametrize(
    ("more", "unknown"),
    [({"unheardOf": 1}, "unheardOf"), ({"optimizerKind": "unheard-of"}, "optimizerKind")],
)
def test_an_input_of_a_later_version_waits_for_a_worker_of_that_version(more: dict[str, object], unknown: str):
    error = refusal("initialise", {**good(), **more})
    assert (error.type, error.non_retryable) == ("LaterVersion", False)
    assert f"was sent by a later version of Temper ({unknown}: " in error.message
    assert error.message.endswith(
        "upgrade this worker: Temporal retries until a worker of that version takes the activity"
    )


def test_what_workflows_send_is_of_the_contract():
    """The strict reading takes what JSON holds: numbers without a point where floats are meant, null for none."""
    work = {**good(), "lora": {"rank": 2, "alpha": 4, "targetModules": None}}
    lora = parse_input(InitialiseInput, work).lora
    assert lora is not None
    assert lora.alpha == 4.0


def library(**sources: str) -> ModelLibrary:
    return ModelLibrary(lambda: sources, torch.float32, torch.device("cpu"))


def test_the_hub_is_asked_only_for_what_a_person_registered(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    def download(model: HubModel, *_: object) -> Snapshot:
        asked.append(str(model))
        return Snapshot(models.POCKET_FOLDER, "0" * 40)

    monkeypatch.setattr(sources, "download", download)
    with pytest.raises(
        TemperError, match=r"somebody/model must be registered on this host, which has .*pocket"
    ) as caught:
        library().get("somebody/model")
    assert (caught.value.type, asked) == ("BadConfig", [])
    library(**{"somebody/model": "hub:somebody/model"}).get("somebody/model")
    assert asked == ["somebody/model"]


def test_a_name_never_means_a_folder_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copytree(models.POCKET_FOLDER, tmp_path / "owner" / "model")
    monkeypatch.chdir(tmp_path)
    for name in ("owner/model", str(tmp_path / "owner" / "model")):
        with pytest.raises(TemperError, match="must be registered on this host"):
            library().get(name)

    def download(model: HubModel, *_: object) -> Snapshot:
        raise TemperError("BadConfig", f"asked the hub for {model}")

    monkeypatch.setattr(sources, "download", download)
    with pytest.raises(TemperError, match="asked the hub for owner/model"):
        library(mine="hub:owner/model").get("mine")
