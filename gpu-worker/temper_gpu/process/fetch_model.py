"""python -m temper_gpu.process.fetch_model: the files of a model of the Hugging Face hub, before anything is started.

Prints one JSON object a line: how many bytes of how many are here, and last the commit that the name stands for.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from temper_gpu.failures import TemperError
from temper_gpu.process.arguments import exit_code

TELL_EVERY_S = 0.2


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="temper_gpu.process.fetch_model", allow_abbrev=False, description=__doc__)
    parser.add_argument("--model", required=True, metavar="OWNER/NAME[@REVISION]", help="of the Hugging Face hub")
    arguments = parser.parse_args(argv)
    from temper_gpu.model.hub import download, now_and_then, parse_hub_model

    try:
        snapshot = download(parse_hub_model(arguments.model), now_and_then(print_progress, TELL_EVERY_S))
    except TemperError as error:
        print(f"{error.type}: {error}", file=sys.stderr)
        return exit_code(error)
    print(json.dumps({"commit": snapshot.commit}))
    return 0


def print_progress(done: int, total: int) -> None:
    print(json.dumps({"done": done, "total": total}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
