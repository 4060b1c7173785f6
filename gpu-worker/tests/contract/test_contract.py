import json
import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from temper_gpu import contract

FOLDER = Path(__file__).parents[3] / "test" / "contract"
FIXTURES = sorted(path.stem for path in FOLDER.glob("*.json"))


def read(name: str):
    return json.loads((FOLDER / f"{name}.json").read_text())


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def type_of(name: str) -> TypeAdapter:
    return TypeAdapter(getattr(contract, name))


def test_there_are_fixtures():
    assert len(FIXTURES) > 20


@pytest.mark.parametrize("name", FIXTURES)
def test_every_fixture_parses_and_goes_back_as_it_came(name: str):
    type_ = type_of(name)
    assert type_.dump_python(type_.validate_python(read(name)), by_alias=True, exclude_unset=True) == read(name)


@pytest.mark.parametrize("name", [name for name in FIXTURES if name != "StepMetrics"])
def test_an_unknown_field_is_refused(name: str):
    with pytest.raises(ValidationError, match="unheardOf"):
        type_of(name).validate_python({**read(name), "unheardOf": 1})


def test_defaults_are_read_and_not_written():
    written = {**read("TrainInput")["train"], "passes": 2}
    omitted = {name for name in written if contract.TrainConfig.model_fields[snake(name)].default == written[name]}
    assert {"packing", "miniBatches", "klEstimator", "overlongPenalty"} <= omitted
    recorded = {name: value for name, value in written.items() if name not in omitted}
    # pyrefly: ignore[bad-index]
    recorded["lora"] = {name: recorded["lora"][name] for name in ("rank", "alpha", "targetModules")}
    # pyrefly: ignore[missing-attribute]
    recorded["optimizer"] = {name: value for name, value in recorded["optimizer"].items() if name != "kind"}
    config = contract.TrainConfig.model_validate(written)
    assert config.model_dump(by_alias=True, exclude_defaults=True) == recorded
    assert contract.TrainConfig.model_validate(recorded) == config


def test_bounds_hold_on_nullable_numbers():
    with pytest.raises(ValidationError, match="dualClip"):
        contract.PpoLoss.model_validate({**read("PpoLoss"), "dualClip": 1})
