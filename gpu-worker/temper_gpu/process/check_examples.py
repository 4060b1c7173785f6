"""python -m temper_gpu.process.check_examples: whether a dataset suits a base model, before anything is started.

Writes each example with the model's chat template and its tokenizer; reads no weights. Prints one JSON object: how many
examples and tokens there are, and how many examples are longer than the limit.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from temper_gpu.contract import ExampleRendering
from temper_gpu.failures import TemperError
from temper_gpu.process.arguments import print_answer
from temper_gpu.process.plan import add_model, find, read_template


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="temper_gpu.process.check_examples", allow_abbrev=False, description=__doc__)
    add_model(parser)
    parser.add_argument("--dataset", required=True, metavar="FILE", help="lines of messages and tools")
    parser.add_argument("--rendering", required=True, metavar="JSON", help="as a step's input has it")
    arguments = parser.parse_args(argv)
    return print_answer(lambda: check(arguments))


def check(arguments: argparse.Namespace) -> dict[str, Any]:
    from temper_gpu.model.outlines import read_without_weights
    from temper_gpu.server.chat_turns import ChatTurns
    from temper_gpu.training.examples import Dataset, check_examples

    rendering = ExampleRendering.model_validate_json(arguments.rendering)
    base = read_without_weights(arguments.model, find(arguments.model, arguments.source).folder)
    given = read_template(arguments.chat_template)
    dataset = Dataset(cast(Any, OneBlob(Path(arguments.dataset))), rendering.dataset)
    facts = check_examples(dataset, base, rendering, ChatTurns(lambda sha256: given or ""))
    return {
        "examples": facts.num_examples,
        "overlong": facts.num_overlong,
        "tokens": facts.num_tokens,
        "trainedTokens": facts.num_trained_tokens,
        "longest": facts.longest,
    }


class OneBlob:
    """A file that is not in a store yet, read like a blob."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def get_blob(self, ref: object) -> bytes:
        try:
            return self._file.read_bytes()
        except OSError as error:
            raise TemperError("BadConfig", f"--dataset must be a file, got {self._file} ({error})") from error


if __name__ == "__main__":
    sys.exit(main())
