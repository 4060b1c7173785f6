"""python -m temper_gpu.process NAME: a program beside the worker. It reads its input on stdin, in the form that
core/contract/programs.ts says, prints one JSON object, and ends."""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module

from pydantic import BaseModel, ValidationError

from temper_gpu import contract
from temper_gpu.failures import TemperError
from temper_gpu.process.arguments import describe_invalid, exit_code
from temper_gpu.process.startup import collecting_seldom, limit_spinning

# Each is a module beside this one, whose function `run` takes the input and returns the answer.
PROGRAMS: dict[str, type[BaseModel]] = {
    "check_examples": contract.CheckExamplesInput,
    "check_template": contract.CheckTemplateInput,
    "export": contract.ExportInput,
    "fetch_model": contract.FetchModelInput,
    "measure": contract.MeasureInput,
    "plan": contract.ModelPlanInput,
    "recompute": contract.RecomputeInput,
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="temper_gpu.process", allow_abbrev=False, description=__doc__)
    parser.add_argument("name", choices=PROGRAMS)
    name = parser.parse_args(argv).name
    return print_answer(name, sys.stdin.buffer.read())


def print_answer(name: str, given: bytes) -> int:
    """Returns the exit code."""
    limit_spinning()
    try:
        with collecting_seldom():
            print(json.dumps(import_module(f"temper_gpu.process.{name}").run(read_input(name, given))))
    except TemperError as error:
        print(f"{error.type}: {error}", file=sys.stderr)
        return exit_code(error)
    return 0


def read_input(name: str, given: bytes) -> BaseModel:
    try:
        return PROGRAMS[name].model_validate_json(given)
    except ValidationError as error:
        raise TemperError("BadConfig", f"the input of {name} must be right, but {describe_invalid(error)}") from error


if __name__ == "__main__":
    sys.exit(main())
