"""python -m temper_gpu.process.fetch_model: the files of a model of the Hugging Face hub or of a bucket, before
anything is started.

Prints one JSON object a line: how many bytes of how many are here, and last the commit that the name stands for, or the
hash of the bucket's listing.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from temper_gpu.failures import TemperError
from temper_gpu.process.arguments import print_answer

PROGRESS_EVERY_S = 0.2


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="temper_gpu.process.fetch_model", allow_abbrev=False, description=__doc__)
    parser.add_argument(
        "--source", required=True, metavar="PLACE", help="hub:OWNER/NAME[@REVISION] or s3://BUCKET/PREFIX[@HASH]"
    )
    arguments = parser.parse_args(argv)
    return print_answer(lambda: {"commit": fetch_commit(arguments.source)})


def fetch_commit(source: str) -> str:
    from temper_gpu.model.hub import throttled
    from temper_gpu.model.sources import fetch

    snapshot = fetch(source, throttled(print_progress, PROGRESS_EVERY_S))
    if snapshot is None:
        raise TemperError(
            "BadConfig", f"--source must begin with hub: or s3://, got {source}; a folder needs no download"
        )
    return snapshot.commit


def print_progress(done: int, total: int) -> None:
    print(json.dumps({"done": done, "total": total}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
