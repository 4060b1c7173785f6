"""Whether a dataset suits a base model, before anything is started.

Writes each example with the model's chat template and its tokenizer; reads no weights. Answers how many examples and
tokens there are, and how many examples are longer than the limit.
"""

from pathlib import Path
from typing import Any, cast

from temper_gpu.contract import CheckExamplesInput
from temper_gpu.failures import TemperError
from temper_gpu.process.described_model import find, read_template


def run(work: CheckExamplesInput) -> dict[str, Any]:
    from temper_gpu.model.outlines import read_without_weights
    from temper_gpu.server.chat_turns import ChatTurns
    from temper_gpu.training.examples import Dataset, check_examples

    rendering, given = work.rendering, read_template(work.chat_template)
    base = read_without_weights(work.model, find(work.model, work.source).folder)
    dataset = Dataset(cast(Any, OneBlob(Path(work.dataset))), rendering.dataset)
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
