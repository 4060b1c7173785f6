"""python -m temper_gpu.process.vocabulary: the token pieces of a base model that is on this machine, into a file.

For runs whose store does not have them. Downloads nothing if HF_HUB_OFFLINE is set. Prints one JSON object: the
number of tokens.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temper_gpu.failures import TemperError
from temper_gpu.process.arguments import print_answer
from temper_gpu.process.plan import add_model, find


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="temper_gpu.process.vocabulary", allow_abbrev=False, description=__doc__)
    add_model(parser)
    parser.add_argument("--to", required=True, metavar="FILE", help="where to write the pieces")
    arguments = parser.parse_args(argv)
    return print_answer(lambda: write(arguments.model, arguments.source, Path(arguments.to)))


def write(name: str, source: str | None, file: Path) -> dict[str, Any]:
    from transformers import AutoTokenizer

    from temper_gpu.model.bucket import is_downloaded, parse_s3_model
    from temper_gpu.model.models import explained
    from temper_gpu.model.vocabulary import vocabulary_bytes

    in_bucket = None if source is None else parse_s3_model(source)
    if in_bucket is not None and not is_downloaded(in_bucket):
        raise TemperError("BadConfig", f"model {name} must be on this machine, but it is not downloaded; train it here")
    folder = find(name, source).folder
    with explained(name, folder):
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    file.write_bytes(vocabulary_bytes(tokenizer))
    return {"tokens": len(tokenizer)}


if __name__ == "__main__":
    sys.exit(main())
